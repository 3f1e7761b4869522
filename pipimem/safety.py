"""Judges text: secrets, hidden characters, and instruction-like text. Pure functions over strings, no I/O.

Findings carry positions, never the text itself. What follows from one (refuse, redact, keep out of recall, name
the line) is the caller's. Nothing is compiled at import, and a pattern only once its anchor word occurs.
"""

from __future__ import annotations

from pipimem.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Span = tuple[int, int, str]  # start, end, kind

VERSION = 1
"""Raised whenever a verdict may change for some text; part of the index fingerprint."""


class Finding:
    """One place in a text: `kind` ("secret:github-token", "hidden:bidi", "instruction"), `start` and `end` as
    character offsets into the text given, `line` counted from 1 as CommonMark does.
    """

    __slots__ = ("end", "kind", "line", "start")

    def __init__(self, kind: str, start: int, end: int, line: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.line = line

    def __repr__(self) -> str:
        return f"Finding({self.kind!r}, {self.start}, {self.end}, line={self.line})"


def verdict(text: str, extra: Sequence[str] = (), allow: Sequence[str] = ()) -> str:
    """ "" for clean text, else the sorted words of what it holds, joined by commas: hidden, instruction, secret."""
    words = []
    if hidden(text):
        words.append("hidden")
    if instructions(text):
        words.append("instruction")
    if secrets(text, extra, allow):
        words.append("secret")
    return ",".join(words)


def redact(text: str, extra: Sequence[str] = (), allow: Sequence[str] = ()) -> str:
    """The text with each secret value replaced by "[redacted:KIND]"; the same object when there is none.

    Idempotent: it repeats until nothing is found, and a placeholder is never part of a finding, so each round
    leaves less to find.
    """
    while found := secrets(text, extra, allow):
        parts, at = [], 0
        for finding in found:
            parts += [text[at : finding.start], f"[redacted:{finding.kind.partition(':')[2]}]"]
            at = finding.end
        text = "".join(parts) + text[at:]
    return text


def secrets(text: str, extra: Sequence[str] = (), allow: Sequence[str] = ()) -> list[Finding]:
    """Credentials in reading order, not overlapping; each finding covers the secret value only. A value that was
    found in one place is found in every place, also where nothing announces it.

    `extra` are regular expressions of the workspace (kind "secret:custom"; group 1 is the value when there is
    one; Usage when one does not compile). `allow` are values that are none, as written or as a regular
    expression for the whole value.
    """
    spans: list[Span] = []
    masked = _mask(text)
    for view, kept in _views(masked):
        found = [span for scan in _SCANS for span in scan(view)]
        found += _custom(view, extra)
        spans += [_continued(text, span) for span in _original(found, kept)]
    if allow:
        spans = [span for span in spans if not _allowed(text[span[0] : span[1]], allow)]
    if spans:
        spans += _repeated(masked, spans)
    return _located(text, _merged(spans), "secret:")


def hidden(text: str) -> list[Finding]:
    """Characters that are there but not seen: zero-width, bidi, tags, smuggled variation selectors, blank letters,
    runs of soft hyphens, terminal sequences that erase or conceal. Neighbours are one finding.

    Joiners in emoji and in scripts that need them, a variation selector on a symbol or ideograph, direction marks
    in a line with right-to-left letters, single soft hyphens, and a BOM at offset 0 are normal text.
    """
    spans: list[Span] = []
    if "\x1b" in text or "\x08" in text:
        spans += [(*found.span(), "terminal") for found in _rx(_TERMINAL).finditer(text)]
    if not text.isascii():
        for found in _rx(_UNSEEN_RUN).finditer(text):
            if not _is_normal(text, *found.span()):
                spans.append((*found.span(), _unseen_kind(found[0][0])))
    return _located(text, sorted(spans), "hidden:")


def instructions(text: str) -> list[Finding]:
    """Text that speaks to the assistant instead of informing it, in English and Chinese, and shell commands that
    only an attacker's text would ask for; in reading order, not overlapping.

    A mention counts like a use ("the page said: ignore previous instructions"): a scanner cannot tell them apart.
    A prohibition ("never run ...") does not count.
    """
    spans: list[Span] = []
    for view, kept in _views(text):
        spans += _original(list(_orders(view)), kept)
    return _located(text, _merged(spans), "")


# ---- positions, views, patterns

_compiled: dict[str, re.Pattern[str]] = {}


def _rx(source: str) -> re.Pattern[str]:
    pattern = _compiled.get(source)
    if pattern is None:
        import re

        pattern = _compiled[source] = re.compile(source)
    return pattern


def _positions(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _lowered(text: str) -> str:
    return text.replace("İ", "I").lower()  # the one letter whose lower case is longer


def _glued(text: str, at: int) -> bool:
    return at > 0 and text[at - 1].isascii() and text[at - 1].isalnum()


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Overlapping spans become one, named by the one that starts first, then by the more specific (earlier) rule."""
    done: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: span[0]):
        if done and start < done[-1][1]:
            done[-1] = (done[-1][0], max(end, done[-1][1]), done[-1][2])
        else:
            done.append((start, end, kind))
    return done


def _located(text: str, spans: list[Span], prefix: str) -> list[Finding]:
    found, line, at = [], 1, 0
    for start, end, kind in spans:
        passed = text[at:start]
        line += passed.count("\n") + passed.count("\r") - passed.count("\r\n")
        at = start
        found.append(Finding(prefix + kind, start, end, line))
    return found


def _original(spans: list[Span], kept: list[int] | None) -> list[Span]:
    if kept is None:
        return spans
    return [(kept[start], kept[end - 1] + 1, kind) for start, end, kind in spans]


def _repeated(text: str, spans: list[Span]) -> Iterator[Span]:
    """The other places of what was found, for the first 500 values that are no plain word or number."""
    values: dict[str, str] = {}
    for start, end, kind in spans:
        values.setdefault(text[start:end], kind)
    for value, kind in list(values.items())[:500]:
        if len(value) >= 8 and _rx("[0-9]").search(value) and _rx("[A-Za-z]").search(value):
            for at in _positions(text, value):
                yield at, at + len(value), kind


def _continued(text: str, span: Span) -> Span:
    """The span, with what follows it in the same word behind unseen characters."""
    more = None if text.isascii() else _rx(_UNSEEN_REST).match(text, span[1])
    return (span[0], more.end(), span[2]) if more else span


_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN_RUN = f"[{_UNSEEN}]+"
_UNSEEN_REST = f"(?:[{_UNSEEN}]++[A-Za-z0-9_+/=.-]++)++"
_UNSEEN_INSIDE = f"(?<=[!-~\u4e00-\u9fff])[{_UNSEEN}]++(?=[!-~\u4e00-\u9fff])"
_WIDE = "[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]"
_wide: dict[int, str] = {}


def _views(text: str) -> Iterator[tuple[str, list[int] | None]]:
    """The text with full-width and mathematical letters folded, and, where unseen characters stand inside words,
    the 400 characters around once more without them, with the offsets of what was kept.

    Both, because the same character hides a word's middle in one text and parts two words in another.
    """
    if text.isascii():
        yield text, None
        return
    if _rx(_WIDE).search(text):
        text = text.translate(_wide or _fill_wide())
    yield text, None
    kept: list[int] = []
    parts: list[str] = []
    for start, end in _windows(text):
        inside = [at for at in range(start, end) if text[at].isascii() or not _rx(_UNSEEN_RUN).match(text[at])]
        parts += ["".join([text[at] for at in inside]), "\0"]
        kept += [*inside, end - 1]
    if kept:
        yield "".join(parts), kept


def _windows(text: str) -> list[tuple[int, int]]:
    windows: list[tuple[int, int]] = []
    for found in _rx(_UNSEEN_INSIDE).finditer(text):
        start, end = max(0, found.start() - 400), min(len(text), found.end() + 400)
        if windows and start <= windows[-1][1]:
            start = windows.pop()[0]
        windows.append((start, end))
    return windows


def _fill_wide() -> dict[int, str]:
    # the full-width comma, colon, brackets, ! ? ; stay: in Chinese they end a value
    signs = map(ord, "－＿．＠＝／＋＃＄％＆＊")
    wide = {code: chr(code - 0xFEE0) for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *signs)}
    wide |= {code: chr(code - 0xFEE0) for code in range(0xFF41, 0xFF5B)}
    for code in range(0x1D400, 0x1D6A4):
        letter = (code - 0x1D400) % 52
        wide[code] = chr((65 if letter < 26 else 71) + letter)
    wide |= {code: str((code - 0x1D7CE) % 10) for code in range(0x1D7CE, 0x1D800)}
    _wide.update(wide)  # at once: other threads see all of it or nothing
    return wide


# ---- secrets: known forms

_PLACED = r"\[redacted:[a-z0-9-]{1,40}\]"


def _mask(text: str) -> str:
    """Placeholders become NULs of the same length, which no pattern crosses and no value begins with."""
    if "[redacted:" not in text:
        return text
    return _rx(_PLACED).sub(lambda found: "\0" * len(found[0]), text)


def _allowed(value: str, allow: Sequence[str]) -> bool:
    import re

    for entry in allow:
        if value == entry:
            return True
        try:
            if re.fullmatch(entry, value):
                return True
        except re.error:  # written as a plain value, not as a pattern
            continue
    return False


def _custom(text: str, extra: Sequence[str]) -> Iterator[Span]:
    for source in extra:
        pattern = _custom_pattern(source)
        for found in pattern.finditer(text):
            start, end = found.span(1 if pattern.groups and found[1] is not None else 0)
            while start < end and text[start] == "\0":
                start += 1
            end = end if (stop := text.find("\0", start, end)) < 0 else stop
            if start < end:
                yield start, end, "custom"


def _custom_pattern(source: str) -> re.Pattern[str]:
    import re

    try:
        return _rx(source)
    except re.error as error:
        raise Usage(
            f'The pattern "{source}" in [safety] extra is not a regular expression: {error}.',
            "Correct it in pipimem.toml.",
        ) from None


# kind, what it starts with, what follows (group v: only that is secret), whether the rest must look random because
# the start is also a word. An AWS key id that ends in EXAMPLE is Amazon's own placeholder and no secret.
_PREFIXED: tuple[tuple[str, str, str, bool], ...] = (
    ("aws-key-id", "AKIA ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])", False),
    ("aliyun-key-id", "LTAI", r"[A-Za-z0-9]{12,26}(?![A-Za-z0-9])", True),
    ("tencent-key-id", "AKID", r"[A-Za-z0-9]{28,40}(?![A-Za-z0-9])", True),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}", False),
    ("github-token", "github_pat_", r"[A-Za-z0-9_]{22,}", False),
    ("gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glsoat- glft- glimt- glagent-", r"[A-Za-z0-9_-]{18,}", False),
    ("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{16,}", False),
    ("openrouter-key", "sk-or-", r"[A-Za-z0-9_-]{16,}", True),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin-", r"[A-Za-z0-9_-]{16,}", True),
    ("api-key", "sk- rk- pk-", r"[A-Za-z0-9_-]{16,}", True),
    ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_", r"[A-Za-z0-9+/]{10,}=*", False),
    ("google-key", "AIza", r"[A-Za-z0-9_-]{30,}", False),
    ("google-key", "GOCSPX- ya29.", r"[A-Za-z0-9_-]{20,}", False),
    ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe.xoxp- xoxo- xoxp- xoxr- xoxs-", r"[A-Za-z0-9%+/-]{20,}", False),
    ("slack-token", "xapp-", r"[0-9]-[A-Za-z0-9-]{10,}", False),
    ("slack-webhook", "hooks.slack.com/services/", r"(?P<v>[A-Z0-9]{6,}/[A-Z0-9]{6,}/[A-Za-z0-9]{10,})", False),
    ("npm-token", "npm_", r"[A-Za-z0-9]{30,}", False),
    ("pypi-token", "pypi-", r"[A-Za-z0-9_-]{32,}", True),
    ("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,}", False),
    ("notion-token", "ntn_ secret_", r"[A-Za-z0-9]{40,}", False),
    ("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}", False),
    (
        "discord-webhook",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        r"\d{15,20}/(?P<v>[\w-]{30,})",
        False,
    ),
    ("feishu-webhook", "/bot/v2/hook/ /bot/hook/", r"(?P<v>[0-9a-fA-F-]{16,})", False),
    ("wecom-webhook", "/webhook/send?key= /webhook/upload_media?key=", r"(?P<v>[0-9a-fA-F-]{16,})", False),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{40,}", False),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{24,}", False),
    ("docker-token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}", False),
    ("vault-token", "hvs. hvb.", r"[A-Za-z0-9_-]{24,}", False),
    ("groq-key", "gsk_", r"[A-Za-z0-9]{30,}", False),
    ("xai-key", "xai-", r"[A-Za-z0-9]{40,}", False),
    ("replicate-token", "r8_", r"[A-Za-z0-9]{30,}", False),
    ("databricks-token", "dapi", r"[a-f0-9]{32}(?![A-Za-z0-9])", False),
    ("atlassian-token", "ATATT3", r"[A-Za-z0-9_=-]{40,}", False),
    ("linear-key", "lin_api_", r"[A-Za-z0-9]{30,}", False),
    ("grafana-token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{30,}", False),
    ("tailscale-key", "tskey-", r"[A-Za-z0-9-]{20,}", True),
    ("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{40,}", False),
    ("jwt", "eyJ", r"[A-Za-z0-9_-]{6,2000}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]++)*+", False),
)


def _prefixed(text: str) -> Iterator[Span]:
    for kind, prefixes, rest, random in _PREFIXED:
        for prefix in prefixes.split():
            if prefix in text:
                for start, end in _after_prefix(text, prefix, rest, random):
                    yield start, end, kind


def _after_prefix(text: str, prefix: str, rest: str, random: bool) -> Iterator[tuple[int, int]]:
    done = 0
    for at in _positions(text, prefix):
        if at < done or (prefix[0].isalnum() and _glued(text, at)):
            continue
        found = _rx(rest).match(text, at + len(prefix))
        if not found:
            continue
        done = found.end()  # what was looked at once is not looked at again: linear time
        body = found[0][:400]
        if not _is_placeholder(body) and (not random or _looks_random(body)):
            yield found.start("v") if "v" in found.re.groupindex else at, done


def _looks_random(body: str) -> bool:
    """A run of 16 letters and digits with both, or a UUID: what "sk-fading-circle-2" is not."""
    return bool(
        _rx(r"(?=[A-Za-z]{0,400}[0-9])(?=[0-9]{0,400}[A-Za-z])[A-Za-z0-9]{16}").search(body, 0, 400)
        or _rx(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-").search(body, 0, 400)
    )


_CHUNK = r"[A-Za-z0-9+/]"
_BETWEEN = r"(?:\s|\\[nr]|[>|\"'+,#*;])"
_PEM_HEAD = r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_NOTE = rf"(?:{_BETWEEN}*+[A-Z][A-Za-z-]{{2,24}}: [^\n\\\0]{{0,200}}+)*+"
_PEM_WHOLE = rf"{_PEM_HEAD}{_PEM_NOTE}(?={_BETWEEN}*+{_CHUNK}{{12}})(?:{_CHUNK}++=*+|=|{_BETWEEN})*+{_PEM_END}"
_PEM_CUT = rf"{_PEM_HEAD}{_PEM_NOTE}(?:{_BETWEEN}*+{_CHUNK}{{20,}}+=*+)++(?:{_BETWEEN}++{_CHUNK}{{2,}}+=++)?+"
_PUTTY = rf"[0-9]{{1,3}}(?:\r?\n{_CHUNK}{{16,}}+=*+)++"


def _key_blocks(text: str) -> Iterator[Span]:
    """Private keys in PEM, OpenSSH, PGP and PuTTY form, also with one end cut off, quoted, or in a JSON string."""
    if "PRIVATE KEY" in text:
        covered = 0
        for at in _positions(text, "-----BEGIN "):
            if found := _rx(_PEM_WHOLE).match(text, at) or _rx(_PEM_CUT).match(text, at):
                covered = found.end()
                yield at, covered, "private-key"
        for at in _positions(text, "-----END "):
            if at >= covered and (found := _rx(_PEM_END).match(text, at)) and (start := _body_before(text, at)) < at:
                yield start, found.end(), "private-key"
    for at in _positions(text, "Private-Lines: "):
        if found := _rx(_PUTTY).match(text, at + 15):
            yield at, found.end(), "private-key"


def _body_before(text: str, at: int) -> int:
    """Where the key lines begin that end at `at`: a block whose BEGIN was cut off. At most 200 lines back."""
    start = at
    for _ in range(200):
        line = text.rfind("\n", max(0, start - 200), max(start - 1, 0)) + 1
        if line >= start or not _rx(r"[A-Za-z0-9+/]{24,}={0,2}\r?\n?").fullmatch(text, line, start):
            break
        start = line
    return start


_URL_LOGIN = (
    r"://(?P<user>[^\s/:@?#'\"<>`\0\u0080-\U0010ffff]{0,80})"
    r"(?::(?P<v>[^\s/?#'\"<>`\0\u0080-\U0010ffff]{1,256}))?@(?P<host>[A-Za-z0-9_.\[-]{1,80})"
)
_LOGIN_WORDS = frozenset("pass password passwd secret xxxx token".split())
_LOCAL = frozenset("localhost 127.0.0.1 db postgres mysql redis".split())
_TELEGRAM = r":AA[A-Za-z0-9_-]{30,}"
_DISCORD = r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
_DIGITS = "0123456789"
_BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


def _shaped(text: str) -> Iterator[Span]:
    """Secrets known by their shape around an anchor in the middle."""
    for at in _positions(text, "://"):
        if found := _rx(_URL_LOGIN).match(text, at):
            if found["v"] and _is_login(found["user"], found["v"], found["host"]):
                yield *found.span("v"), "url-password"
            elif found["v"] is None and _looks_random(found["user"]):
                yield *found.span("user"), "url-token"
    for at in _positions(text, ":AA"):
        start = _back(text, at, _DIGITS, 12)
        if 8 <= at - start <= 11 and (found := _rx(_TELEGRAM).match(text, at)):
            yield start, found.end(), "telegram-token"
    for found in _rx(_DISCORD).finditer(text) if "." in text else ():
        start = _back(text, found.start(), _BASE64URL, 30)
        if found.start() - start >= 23 and text[start] in "MNO":
            yield start, found.end(), "discord-token"


def _back(text: str, at: int, alphabet: str, most: int) -> int:
    start = at
    while start > 0 and at - start < most and text[start - 1] in alphabet:
        start -= 1
    return start


def _is_login(user: str, word: str, host: str) -> bool:
    if len(word) < 4 or _is_placeholder(word) or word.lower() in _LOGIN_WORDS or word[0] in "$%{[*":
        return word[:1] == "%" and _rx(r"%[0-9A-F]{2}").match(word) is not None
    if _rx(r"\d{2,5}(?:[,;)]|$)").match(word):  # a port: http://host:8080,name@host
        return False
    return not (host in _LOCAL and word == user)  # postgres:postgres@localhost is a default, not a secret


# ---- secrets: values that a name gives away

_NAMES = (
    ("password", "password passwd passwort passphrase passcode pwd 密码 密碼 口令 pass pw"),
    ("secret", "secret"),
    ("authorization", "authorization"),
    ("token", "token 令牌 授权码 bearer"),
    ("key", "key 密钥 密鑰 秘钥 秘鑰 私钥"),
)
_KEY_OF = (
    r"(?:api|access|secret|private|encryption|signing|master|auth|service|account|storage|license|subscription"
    r"|client|app|webhook|session|deploy|ssh|hmac|jwt|aes)[ _-]?$"
)
# tokens of a parser, a model or a page of results open nothing
_NOT_OF = (
    r"(?<![a-z])(?:page|next|prev|continuation|continue|sync|cursor|cancel|cancellation|stop|start|eos|bos|pad|unk"
    r"|mask|sep|cls|special|last|first|max|min|num|total|input|output|lookahead|public)[_ -]?$"
)
_REST = (
    r"(?:[_-]?(?:access[_-]?)?key|[_-]?(?:value|prod|production|dev|test|staging|live|new|old|admin|root"
    r"|[0-9]{1,2}))?"
)
_NOTE = r"(?:[ \u3000]?[(（][^()（）\n\0]{1,16}[)）])?"
_TYPE = r"[:：] ?(?:&?(?:'[a-z]{1,8} )?str|string|secretstr|optional\[str\]|str ?\| ?none|bytes) ?="
_LINE = r"(?P<line>[:：][ \t]*\r?\n[ \t>*-]{0,8})"
_OPEN = r"(?:[brfu]{1,2}(?=[\"']))?(?P<open>(?:\\(?=[\"'])|[\"'`“‘「『【(（*]| (?=[`\"'*“「])){0,6})"
_SEP = r"[ \t\u3000]{0,4}(?::=|=>|={1,3}|[:：](?!//)|＝|->|→|\|)[ \t\u3000]{0,4}"
_VERB = (
    r"\s{1,3}(?:(?:is|was|are|to|as|has been|got)(?: now| still| currently| called)?(?: (?:re)?set to| changed to)?"
    r"|(?:re)?set to|changed to)[ :]{1,3}"
)
_VERB_ZH = (
    r"[ \t\u3000]?(?:(?:已经?|现在|暂时|统一|默认|都|就|先|也|还|仍|仍然|一直|目前|分别)[ \t\u3000]?){0,2}"
    r"(?:是|为|為|(?:改成|改为|改為|换成|换为|设成|设为|设置为|重置为|更新为)了?|叫|用)[：: \t\u3000]{0,3}"
)
_AFTER = (
    rf"{_REST}\\?[\"'`*_\])）]{{0,4}}{_NOTE}"
    rf"(?:(?: (?:for|of|to|on|at|in) [a-z0-9 _'./-]{{1,40}}?[\"'`*]{{0,3}})?(?:{_LINE}"
    rf"|(?P<sep>[ \t]{{0,4}}{_TYPE}[ \t]{{0,4}}|{_SEP}|>|%3d)|(?P<verb>{_VERB}|{_VERB_ZH}))"
    rf"|(?P<gap>[ \t\u3000]{{1,4}})){_OPEN}(?:(?:bearer|basic|token|apikey|digest|bot) {{1,2}})?"
)
_AFTER_ZH = (
    rf"[\"'`*_”」）)]{{0,4}}{_NOTE}(?:(?:已经?|现在|默认|统一)[ \t\u3000]?)?"
    rf"(?:{_LINE}|(?P<sep>{_SEP})|(?P<verb>{_VERB_ZH})|(?P<gap>[ \t\u3000]{{0,4}})){_OPEN}"
)
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』", "【": "】"}


def _named(text: str) -> Iterator[Span]:
    low = _lowered(text)
    for kind, names in _NAMES:
        for name in names.split():
            for start, end in _values_after(text, low, name, kind) if name in low else ():
                yield start, end, kind


def _values_after(text: str, low: str, name: str, kind: str) -> Iterator[tuple[int, int]]:
    done = refused = last = 0
    for at in _positions(low, name):
        if at < done:
            continue  # inside a value already found, or a run of "name=name=name=" refused often enough
        start, end, secret = _value_after(text, low, at, name, kind)
        refused = refused + 1 if end == last and not secret else 0
        last = end
        if secret or refused == 20:
            done = end
        if secret:
            yield start, end


def _value_after(text: str, low: str, at: int, name: str, kind: str) -> tuple[int, int, bool]:
    """Where the value stands that the name at `at` announces, and whether it is a secret."""
    before = low[max(0, at - 24) : at]
    chinese = not name.isascii()
    if not chinese and not _is_name(before, text[max(0, at - 2) : at + 3], name):
        return 0, 0, False
    found = _rx(_AFTER_ZH if chinese else _AFTER).match(low, at + len(name))
    if not found:
        return 0, 0, False
    start, end, quoted = _value(text, found.end(), found["open"])
    value = text[start : min(end, start + 200)]
    judge = _is_password if kind == "password" else _is_token
    if not _could_open(value, quoted=quoted) or not judge(value):
        return start, end, False
    way = next((way for way in ("sep", "verb", "line") if found[way]), "gap")
    convincing = _is_convincing(_tie(way, name, before), kind, value, text[end : end + 3], chinese=chinese)
    return start, end, convincing


def _is_name(before: str, around: str, name: str) -> bool:
    if name == "key":  # FOO_KEY counts too, in capitals
        return bool(_rx(_KEY_OF).search(before)) or (around[1:] == "_KEY" and around[:1].isalnum())
    if before[-1:] == "1" or (name in ("pass", "pw", "bearer") and before[-1:].isalnum()):
        return False  # 1password, bypass
    if _rx(r"://[^\s/?#]*$").search(before):
        return False  # https://x-access-token:...@host is read as an address
    return not _rx(_NOT_OF).search(before)


def _tie(way: str, name: str, before: str) -> str:
    """How firmly the name is tied to the value: "sep" (a: b), "verb" (a is b), "line" (b on its own line), "gap"
    (a b), or "none".
    """
    if way == "gap" and _rx(r"(?:^|[\s\"'`(=])--[a-z0-9-]{0,20}$").search(before):
        return "sep"  # --password X
    if way == "gap" and _rx(r"\b(?:login|user|username|account)[ =:]{1,3}\S{1,16}[ ,;/]{1,3}$").search(before):
        return "sep"  # login ines password X
    if name == "bearer":
        return "long"
    if name in ("pass", "pw"):  # "pass: 12/14 tests", but DB_PASS=x
        return "none" if way != "sep" else way if before[-1:] in ("_", "-") else "line"
    return way


def _value(text: str, start: int, opening: str) -> tuple[int, int, bool]:
    """Where the value ends, and whether it stands in quotes; visible ASCII only, so Chinese text ends it."""
    quote = opening.replace("*", "").replace("(", "").replace("（", "")[-1:]
    if quote in _CLOSING:
        end = text.find(_CLOSING[quote], start, start + 400)
        if end > start and "\n" not in text[start:end] and "\0" not in text[start:end]:
            return start, end - text[start:end].endswith("\\"), True
    run = _rx(r"[!-~]{1,4096}+").match(text, start)
    if not run:
        return start, start, False
    end = run.end()
    stop = _rx(r"[\"'`|](?=[\s,;:.)\]}>]|$)|<(?=/?[A-Za-z])|\\[nrt\"']|[,;&](?=[A-Za-z0-9_.-]{1,30}[\"']?[=:])").search(
        text, start, end
    )
    if stop:
        end = stop.start()
    elif end - start == 4096 and (rest := _rx(r"[!-~]++").match(text, end)):
        end = rest.end()
    return start, start + len(text[start:end].rstrip(".,;:)]}>*_\\")), False


_PLACEHOLDER = (
    r"(?i)example|placeholder|change[-_]?me|redacted|dummy|x{4,}|\*{3,}|\.{3}|…|(?<![a-z])your(?:[-_ ]|[a-z]*(?:key"
    r"|token|secret|password))|(?<![a-z])(?:insert|replace|enter|paste)[-_]|[-_]here\b|^[x.*#?-]+$"
)


def _is_placeholder(value: str) -> bool:
    return _rx(_PLACEHOLDER).search(value, 0, 400) is not None


# code, variables, paths, addresses, versions, dates, amounts: what stands after such a name and is no secret
_REFERENCE = (
    r"\$[\w{(\[]|%\(\w+\)|%\{|[%@!][A-Za-z_]+\d{0,2}%?$|\{|<|\[|&#?\w|\w+=[\"']|\*\*|\\|"
    r"(?:~|\.{1,2})?/[\w.@:-]{0,20}(?:/[\w.@:-]{0,20})*$|[a-z][a-z0-9+.-]{1,20}:/|arn:|ENC\[|"
    r"(?:env|vault|op|ssm|sops|file|secretref|kms|secrets?|process|os)[:.]\S|"
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}$|"
    r"[A-Za-z_$][A-Za-z_$]*\d{0,2}(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z_$]*\d{0,2})+$|"
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|[A-Z]{2,}\d{0,3}$|"
    r"v?\d+(?:\.\d+)+[-+.\w]*$|(?:19|20)\d\d[-/.]\d{1,2}(?:[-/.]\d{1,2}|$)|\d{1,2}:\d\d|"
    r"\d[\d.,_]*-?(?:[smhdwkx]|ms|mins?|minutes?|hours?|days?|weeks?|months?|years?|chars?|characters?|bits?|bytes?"
    r"|[kmgt]i?b|times?|px|th|st|nd|rd|digits?|tokens?|words?|factor|step)$"
)
_IN_CODE = (
    r"^[\w.]+\(\)|\{\w*\}|=>|\)\.|\.(?:json|ya?ml|txt|py|md|toml|env|pem|key|[jt]sx?|go|java|sh|html|ini|cfg|conf|log"
    r"|csv)$"
)
_JARGON = frozenset(
    "rsa aes sha hmac ecdsa ecdh eddsa ed sm des hs rs es ps md pbkdf argon id scrypt bcrypt oauth oidc x utf mb base"
    " gcm cbc ctr kms jwt jws jwe saml totp hotp mfa fa password curve secp chacha poly rc blowfish tls ssl v r k p q"
    " s with enc sso ldap http https ipv iso gb pkcs prime nist fips hash hashed salted encrypted encoded protected"
    " based bit bits char chars character characters digit digits only day days factor hex int uint float string"
    " varchar step rev type version level phase stage round sprint week draft option plan no one".split()
)
_CODE_WORDS = (
    r"(?i)_(?:pass|pwd|password|secret|token|key|input|field|value|param|env|arg)|(?:password|pwd|input|field)\d{0,2}$"
)


def _could_open(value: str, *, quoted: bool) -> bool:
    """Whether the value is more than a placeholder, a reference, a variable or jargon."""
    if len(value) < 6 or _is_placeholder(value) or (len(set(value)) < 4 and not value.isdigit()):
        return False
    if _rx(_REFERENCE).match(value) or _rx(_IN_CODE).search(value) or (not quoted and _rx(r"\w[(\[]").search(value)):
        return False
    if not quoted and _rx(r"[A-Za-z_]\w*$").match(value) and _rx(_CODE_WORDS).search(value):
        return False
    words = _rx(r"[a-z]+").findall(value.lower())
    return not words or not all(word in _JARGON for word in words)


def _is_password(value: str) -> bool:
    """Six characters or more: digits only (a PIN, a date of birth), a digit among others, or three classes."""
    lower, upper, digit, other = _classes(value)
    if not lower and not upper:
        return (value.isdigit() and len(value) <= 16) or _rx(r"[@!#$%^&*?~]").search(value) is not None
    return digit > 0 or (bool(lower) + bool(upper) + bool(other) == 3 and " " not in value)


def _is_token(value: str) -> bool:
    """Eight characters or more, digits and letters (or 16 in mixed case), at least 3 bits a character or three
    classes, and no identifier made of words.
    """
    lower, upper, digit, other = _classes(value)
    if len(value) < 8 or " " in value or _is_wordy(value):
        return False
    mixed = (digit and (lower or upper)) or (lower and upper and (len(value) >= 16 or value[-1] == "="))
    return bool(mixed) and (_entropy(value) >= 3.0 or bool(lower) + bool(upper) + bool(digit) + bool(other) >= 3)


def _classes(value: str) -> tuple[int, int, int, int]:
    """How many lower-case letters, capitals, digits and other characters."""
    lower = sum("a" <= char <= "z" for char in value)
    upper = sum("A" <= char <= "Z" for char in value)
    digit = sum("0" <= char <= "9" for char in value)
    return lower, upper, digit, len(value) - lower - upper - digit


def _is_wordy(value: str) -> bool:
    """An identifier made of words and small numbers: app-tls-2026, accessToken2, not 9f3c1ab7d2e4."""
    parts = _rx(r"[-_.]").split(value)
    if len(parts) > 2 and 2 * sum(part.isalpha() and len(part) > 2 for part in parts) >= len(parts):
        return all(len(part) <= 4 or _rx(r"[A-Za-z]+[0-9]{0,2}").fullmatch(part) for part in parts)
    words = _rx(r"[A-Z]?[a-z]+|[A-Z]+").findall(value)
    if len(words) * 3.3 > len(value):  # random letters change case at every turn
        return False
    digits = sum("0" <= char <= "9" for char in value)
    real = sum(len(word) for word in words if len(word) >= 3 and _rx(r"(?i)[aeiouy]").search(word))
    return digits <= 4 and real > 0.7 * sum(map(len, words)) and not _rx(r"[^\w.:/@#$-]").search(value)


def _entropy(value: str) -> float:
    from math import log2

    shares = [value.count(char) / len(value) for char in set(value)]
    return -sum(share * log2(share) for share in shares)


_COUNTED = r"\s?(?:[a-z]|[位個个次天年月日轮字条起前后多万元秒分到至])"
_TICKET = r"[A-Z]{1,5}-?\d+(?:-\d+)*$"


def _is_convincing(tie: str, kind: str, value: str, after: str, *, chinese: bool) -> bool:
    """Whether the tie between name and value is strong enough: "password: x" is, "password x" needs more of x."""
    if tie in ("sep", "verb"):
        counted = value.isdigit() and _rx(_COUNTED).match(after)  # 密码是 100000 次迭代
        return not counted and not (tie == "verb" and _rx(_TICKET).match(value))
    lower, upper, digit, _ = _classes(value)
    spoken = chinese and kind == "password" and digit > 0 and lower + upper > 0  # 密码 qiyun2026
    marked = _rx(r"[@!#$%^&*?~]").search(value) is not None
    strong = lower > 0 and digit > 0 and (upper > 0 or marked)
    if tie == "line":
        return (strong or spoken) and (not after or after[0] in "\r\n ,;.，。)\"'`|<&")
    if tie == "gap":
        plain = strong and len(value) >= 8 and not _rx(r"[/-]").search(value) and (marked or not _is_wordy(value))
        return plain or _looks_random(value) or (spoken and not _rx(_TICKET).match(value))
    return tie == "long" and len(value) >= 16


# kind, word, what follows: programs whose short option takes a password, cookies, signed addresses, "login: a / b"
_CONTEXTS = (
    ("password", "mysql", r"(?:dump|admin|sh|import)?\b[^\n|;\0]{0,120}?\s-p[\"']?(?P<v>[^\s\"'\0]{4,64})"),
    ("password", "mariadb", r"(?:-dump|-admin)?\b[^\n|;\0]{0,120}?\s-p[\"']?(?P<v>[^\s\"'\0]{4,64})"),
    ("password", "sshpass", r"\s+-p\s*[\"']?(?P<v>[^\s\"'\0]{4,64})"),
    ("password", "redis-cli", r"\b[^\n|;\0]{0,120}?\s-a\s+[\"']?(?P<v>[^\s\"'\0]{4,64})"),
    ("password", "docker login", r"\b[^\n|;\0]{0,120}?\s-p\s+[\"']?(?P<v>[^\s\"'\0]{4,128})"),
    ("password", "mongo", r"(?:sh|dump|restore)?\b[^\n|;\0]{0,120}?\s-p\s+[\"']?(?P<v>[^\s\"'\0]{4,64})"),
    ("password", "curl", r"\b[^\n|;\0]{0,160}?\s(?:-u|--user)\s+[\"']?[^\s:\"'\0]{1,60}:(?P<v>[^\s\"'\0]{4,128})"),
    ("login", "login", r"(?: is|:|：| =) ?[\w.@-]{2,40} / (?P<v>[!-.0-~]{8,64})(?=\s|$|[，。,;])"),
    ("login", "credentials", r"(?: are|:|：| =) ?[\w.@-]{2,40} / (?P<v>[!-.0-~]{8,64})(?=\s|$|[，。,;])"),
    ("login", "账号", r" ?(?:是|:|：|=)? ?[a-zA-Z0-9_.@-]{2,40} ?/ ?(?P<v>[!-.0-~]{6,64})(?=\s|$|[，。,;])"),
    ("login", "root", r" ?/ ?(?P<v>(?=[^\s/]{0,40}[@!#$%^&*])[!-.0-~]{6,64})(?=\s|$|[，。,;])"),
    ("login", "admin", r" ?/ ?(?P<v>(?=[^\s/]{0,40}[@!#$%^&*])[!-.0-~]{6,64})(?=\s|$|[，。,;])"),
    ("cookie", "cookie: ", r"[^\n\0]{0,200}?(?:sess|sid|auth|token)[\w.-]{0,20}=(?P<v>[A-Za-z0-9%._~+/-]{16,})"),
    ("url-token", "sig=", r"(?P<v>[A-Za-z0-9%+/=_-]{20,})"),
    ("url-token", "signature=", r"(?P<v>[A-Za-z0-9%+/=_-]{20,})"),
)


def _in_context(text: str) -> Iterator[Span]:
    low = _lowered(text)
    for kind, word, rest in _CONTEXTS:
        for at in _positions(low, word) if word in low else ():
            found = _rx(rest).match(text, at + len(word))
            if not found or _glued(text, at):
                continue
            value = found["v"][:200]
            judge = _is_password if kind in ("password", "login") else _is_token
            if _could_open(value, quoted=True) and judge(value):
                yield *found.span("v"), kind


_SCANS: tuple[Callable[[str], Iterator[Span]], ...] = (_key_blocks, _prefixed, _shaped, _named, _in_context)


# ---- hidden characters

# backspaces, and terminal sequences other than colours and "clear to the end of the line", which grep prints: erase,
# move, conceal (8), titles, links
_TERMINAL = (
    r"\x08+|\x1b(?!\[(?:(?!8[;m])[0-9]{1,3}(?:;(?!8[;m])[0-9]{1,3}){0,6})?m|\[0?K)"
    r"(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b\n]{0,300})?"
)
_SIGN = (
    "#*0-9\u00a9\u00ae\u203c\u2049\u20e3\u2100-\u214f\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
)
# scripts in which joiners shape letters: Arabic to Mandaic, Indic to Khmer and Mongolian, Tai, Javanese, Arabic forms
_JOINING = (
    "\u0600-\u08ff\u0900-\u109f\u1780-\u18af\u1900-\u1aff\u1b00-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00011000-\U000119ff"
)
_SPACELESS = "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# what stands before, the unseen characters, what stands after
_NORMAL = (
    rf"(?:(?<=[{_SIGN}])[\ufe0e\ufe0f]?\u200d(?=[{_SIGN}])"
    rf"|(?<=[{_SIGN}])[\ufe00-\ufe02\ufe0e\ufe0f]"
    rf"|(?<=[{_JOINING}])[\u200c\u200d]"
    rf"|(?<=[{_SPACELESS}])[\u200b\u2060]"
    rf"|(?<=[{_IDEOGRAPH}])[\ufe00-\ufe02\U000e0100-\U000e01ef]"
    r"|(?<=[\u1800-\u18af])[\u180b-\u180f\u200c\u200d]{1,2}|(?<=[\u1000-\u109f\ua9e0-\uaa7f])\ufe00"
    r"|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
    r"|(?<=[^\W\d_])\u00ad(?=[^\W\d_])(?!.\u00ad)"
    r"|(?<=[\u1100-\u11ff\ua960-\ua97f])[\u115f\u1160]|[\u115f\u1160](?=[\u1100-\u11ff])"
    r"|(?<=[\u2801-\u28ff])\u2800+|\u2800+(?=[\u2801-\u28ff])|(?<=[\U0001d100-\U0001d1ff])[\U0001d173-\U0001d17a]"
    rf")(?![{_UNSEEN}])"
)
_DIRECTION = "[\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069]{1,3}"
_UNSEEN_KINDS = (
    ("bidi", "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"),
    ("tag", "\U000e0000-\U000e007f"),
    ("variation-selector", "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"),
    ("soft-hyphen", "\u00ad"),
    ("blank-letter", "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"),
)


def _is_normal(text: str, start: int, end: int) -> bool:
    if start == 0 and text[0] == "\ufeff":
        return end == 1
    if _rx(_NORMAL).match(text, start):
        return True
    if _rx(_DIRECTION).fullmatch(text, start, end):
        line = text.rfind("\n", max(0, start - 200), start) + 1 or max(0, start - 200)
        stop = text.find("\n", end, end + 200)
        return _rx(f"[{_RIGHT_TO_LEFT}]").search(text, line, stop if stop >= 0 else end + 200) is not None
    return False


def _unseen_kind(char: str) -> str:
    return next((kind for kind, chars in _UNSEEN_KINDS if _rx(f"[{chars}]").match(char)), "zero-width")


# ---- instruction-like text

# A rule is a line of words, one of which must occur, and below it, indented by four, what must follow. There a blank
# is any gap between words (line breaks, quote marks and emphasis included), " … " is anything up to the end of the
# clause, and {NAME} is one of the parts. All is matched in lower case; a lone "-" asks for nothing more.
_PARTS = {
    "RULES": r"(?:instructions?|prompts?|directives?|guidelines?|guardrails?|guidance|directions|rules|restrictions"
    r"|orders|programming|training)",
    "PAST": r"(?:previous|prior|above|earlier|preceding|existing|original|initial|former|past|foregoing|system|safety"
    r"|security|developer|hidden|other)",
    "FILL": r"(?: (?:all|any|the|of|your|these|those|this|its|every|each|my|completely|entirely|totally|about|to|and))",
    "MODEL": r"(?:assistants?|ai|a\.i\.|llms?|language models?|ai (?:assistants?|agents?|models?|systems?)|chatbots?"
    r"|bots?|agents?|claude|chatgpt|gpt|copilot|gemini|models?)",
    "ROLE": r"(?:ai|llm|assistant|chatbot|bot|language model|persona|hacker|terminal|jailbroken|unrestricted|unfiltered"
    r"|evil|dan)\b",
    "TALK": r"(?:sessions?|conversations?|chats?|responses?|repl(?:y|ies)|answers?|interactions?)",
    "GOODS": r"\b(?:it|this|that|them|these|everything|all|every|each|any|cop(?:y|ies)|conversations?|chats?"
    r"|transcripts?|histor(?:y|ies)|messages?|answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|reports?|outputs?"
    r"|results?|contents?|memor(?:y|ies)|context|prompts?|secrets?|keys?|credentials?|passwords?|tokens?"
    r"|env(?:ironment)?|variables?|files?|data|notes?|threads?|source|code|logs?|cookies?|config(?:uration)?)\b",
    "TO": r"(?:to|at|into|via|with)(?: (?:the|this|address|endpoint|url|server|webhook)){0,3}:? ?",
    "ADDRESS": r"(?:<|\(|mailto:)?(?:https?://|wss?://|ftp://|www\.|[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}"
    r"(?:\.[a-z0-9-]{1,63})+|(?!10\.|127\.|192\.168\.|172\.)\d{1,3}(?:\.\d{1,3}){3}|(?:[a-z0-9-]{1,63}\.){1,4}(?:com|net|org|io|example|cn|dev|xyz|top|ru|info|site|app"
    r"|invalid|test)\b)",
    "FETCH": r"(?:curl|wget)\b",
    "SHELL": r"(?:sudo\s+(?:-\S{1,8}\s+)?)?(?:/usr)?(?:/bin/)?(?:ba|z|da|k|fi)?sh\b(?!\.)",
    "过去": r"(?:之前|以前|以上|上面|上述|先前|前面|此前|所有|一切|全部|任何|原来|原有|原先|你的|系统|开发者|既定|安全)",
    "规则": r"(?:指令|指示|提示词?|规则|设定|设置|限制|约束|命令|准则|守则|人设|规定)",
    "助手": r"(?:(?:ai|人工智能|智能|大语言|大|语音|聊天|语言) ?){0,2}(?:助手|助理|模型|机器人|智能体|ai(?![a-z]))",
    "你的": r"你(?:的|收到的|最初的?|全部的?|完整的?|初始的?|原始的?|隐藏的?|第一条|所有的?){0,3} ?(?:系统)?"
    r"(?:提示词?|指令|设定|规则|系统消息|prompt|system prompt)",
    "东西": r"(?:对话|聊天|记录|内容|密钥|密码|口令|令牌|凭证|文件|数据|结果|回答|回复|摘要|报告|报表|信息|代码|记忆"
    r"|上下文|环境变量|配置|日志|历史|它|这|所有|全部|每|上述|以上|token|key|cookie)",
    "发往": r"(?:发送|发|上传|转发|提交|传|寄|抄送|同步|汇报|外传|泄露|推送|上报|post) ?(?:一份|一遍|邮件|请求)? ?"
    r"(?:给|到|至|往|去)? ?",
}
_ORDERS = r"""
# overriding what was said before
ignore|disregard|forget|pay no attention to|do not follow|don't follow|stop following|stop obeying|do not obey|set aside
    {FILL}{0,4} {PAST}(?: (?:and|or|given|messages?|conversations?|context|text|{PAST})){0,4} {RULES}\b
ignore|disregard|forget|bypass|override|overrule|break|violate|stop following
    {FILL}{0,3} your(?: [a-z-]{2,16}){0,2} (?:{RULES}|filters?|polic(?:y|ies)|constraints|limits)\b
override|bypass|discard
    {FILL}{0,4} {PAST} (?:instructions?|prompts?|directives?|guidelines?|guardrails?)\b
ignore|disregard|forget
    (?: all| any)(?: of)?(?: the| these| those)? (?:instructions|prompts|directives|guidelines|guardrails|rules)\b
    (?! (?:in|from|for|under|of|on)\b)
ignore|disregard|forget
     (?:everything|all|anything|what)(?: that)?(?: (?:is|was|were|i|you|have|has|been|they|we)){0,3}
    (?: (?:said|told|wrote|written|know|learned|given|instructed))? ?(?:above|before|previously|so far|until now)\b
ignore|disregard|forget
     (?:whatever|what|anything|everything|all)(?: that)?(?: the (?:user|system|developers?|prompt|operator|admin)| you| was| were| has| have| been){0,3}
     (?:told|said|instructed|asked|written)\b
ignore|disregard
    (?: all| everything)?(?: of)? the (?:above|foregoing) (?:and|instead|then)\b
ignore|disregard
     (?:all|everything)(?: of)?(?: the)? above(?=\W|$)
ignore|disregard|forget
    (?: all| any| the| every)* (?:(?:above|previous|prior|earlier|preceding) (?:text|context|conversations?)
    (?:\s?[;,.]| and\b| then\b)|(?:text|content|input|context|words) (?:before|above|preceding)(?: this)?\b)
ignore|disregard
     (?:the )?(?:instructions|guidelines|prompts)(?=\s?[,.;:!&]| and\b)
ignore|disregard
    (?: the| this| all)? (?:user|human|operator)(?:'s|’s|s)? (?:requests?|questions?|instructions?|input|prompts?)\b
forget
     (?:everything|all)(?: else)? ?[,.;:!]
ignore|disregard|override|bypass|forget|violate|drop
    (?: all| any| your| the| of){0,3} (?:safety|ethical|moral|content|moderation)
     (?:guidelines?|protocols?|polic(?:y|ies)|filters?|restrictions|guardrails?|rules)\b
follow|obey|execute
     (?:these|the following|my|those)? ?(?:new instructions|new orders|instructions instead|orders instead)\b
your
     (?:previous|prior|earlier|original|initial|hidden|secret|internal|system|developer) (?:[a-z]+ )?
    (?:instructions|prompts?|guidelines|directives|programming)\b
previous instructions|prior instructions|earlier instructions|original instructions
     (?:have been|has been|are|were) (?:now |hereby )?(?:revoked|cancell?ed|void|overridden|suspended|no longer|obsolete)
instruction|instructions|directive|directives|message
     (?:overrides?|supersedes?|takes? precedence over|replaces?)
     (?:all|any|your|previous|prior|every|earlier|the system|the previous|the above)\b
new instructions|updated instructions|revised instructions
     ?:
your
     (?:new|real|true|actual|secret|hidden|updated)
     (?:task|goal|objective|instructions?|role|purpose|mission|job|directive|rules?|identity) (?:is|are|now)\b
you have been|you were
     (?:reprogrammed|jailbroken|reconfigured|freed from|unlocked|instructed to ignore)\b

# speaking to the assistant
note|notes|message|instruction|instructions|notice|memo|reminder|warning|important
    ,? (?:to|for|from the developers to)(?: (?:all|any|the|every|other|future)){0,2} {MODEL}(?: [a-z]{2,12}){0,3} ?
    (?::|—|–| - |,)
attention|dear
    ,?(?: all| any)? (?:ai|llms?|ai [a-z]+|language models?|assistants?|chatbots?) ?[,:!]
assistant|assistants|agent|agents|llm|llms|ai|model|models|bot|chatbot
    (?: (?:agents?|assistants?|models?|systems?))?(?: (?:that|who|which))?(?: (?:is|are))?
     (?:reading|processing|parsing|seeing|summari[sz]ing|ingesting|indexing) this\b
ai agents|ai assistants|ai|assistant|assistants|llms|llm|models|model|agents|chatgpt|claude|gpt|copilot
     ?[:,] (?:please |you must |now )?(?:ignore|disregard|reply|respond|output|say|forget|stop|mark|treat|append|whatever)\b
whoever|whichever model|anyone who
     (?:reads|processes|summari[sz]es|is reading|is processing) this\b
treat|consider|interpret|handle
     (?:this|the following|the text|it|what follows)(?: [a-z]+)? as (?:a |an |your )?(?:new )?(?:system|developer|admin)
     (?:message|prompt|instructions?|command)\b
you have|you now have
     (?:admin|root|unlimited|administrator|unrestricted) (?:rights|access|privileges|permissions)\b
the user has|the developer has|the admin has|the administrator has|the operator has|user has|developers have
     (?:already |now )?(?:authori[sz]ed|approved|granted|pre-approved|permitted) (?:you|all|every|full|access|everything)\b
if you are an|if you're an|if you are a|since you are an
     (?:ai|llm|language model|chatbot|large language model)\b
as an|as a|as the
     (?:assistant|ai|llm|language|large language)(?: language)?(?: assistant| agent| model)?,?
     you (?:must|should|are|will|have to|need to|shall)\b
ai assistants|ai agents|all assistants|any assistant|llms
     must (?:obey|comply|follow|always|never)\b

# lasting rules
from now on|from this point on|from this moment on|from here on|henceforth|starting now|going forward
    ,? ?(?:you (?:must|will|shall|are|have to|need to|only|always|never|can only|may only|respond|answer|act|obey)
    |you have no|your (?:name|role|answers?|repl(?:y|ies)|responses?|task))\b
keep|remember|save|store|retain|memorize|memorise|follow|apply|obey
     (?:this|these|the following)(?: [a-z]+)? ?(?:rules?|instructions?|directives?|orders?|commands?)? ?
    (?:for|in|across|during|through) (?:all |any |every |your )?(?:later|future|subsequent|following|next|upcoming)
     {TALK}\b
your
     (?:[a-z-]+ )?memory ?[:]
update|add|write|record|append|inject|edit|change|modify|insert|overwrite
     … \byour (?:long-term |persistent |permanent |own )?memory\b(?! (?:usage|limit|leak|consumption|footprint))
remember permanently|permanently remember|remember forever|never forget this
     ?[:,]
for the rest of this|for the remainder of this|in the rest of this
     (?:conversation|chat|session|thread)\b
every future|all future|all later|any future|all subsequent|each future
     (?:sessions?\b(?= ?[:,])|conversations?|chats?|chat sessions?|responses?|repl(?:y|ies)|answers?|interactions?)\b
in all|in every|in any|for all|for every|in
     (?:later|future|subsequent|following|your|upcoming) {TALK},? (?:you|always|never|include|add|append|insert|mention)\b
you must|you will|you should|always|you have to
    (?: now| always)? (?:include|append|insert|add|recommend|promote|mention) …
     \b(?:your|every|all|each) (?:answers?|repl(?:y|ies)|responses?|outputs?)\b
you must|you have to|you need to|you are required to|you are obliged to
     (?:comply with|obey|follow|execute) (?:every|all|any|each|whatever)(?: [a-z]+)?
     (?:requests?|orders?|commands?|instructions?)\b
you must
    (?: now| always)? (?:obey|comply with (?:these|this|all|the following) (?:instructions?|orders?|directives?)|pretend
    |act as|follow these|follow this|follow the following|answer every|respond only|reply only|never refuse|not refuse
    |never reveal|not reveal|not mention|not disclose)\b
add|save|store|write|put|commit|insert
    (?: (?:this|these|the following|it)(?: [a-z]+){0,2})? (?:to|in|into)
     (?:your (?:long-term |persistent |permanent )?(?:memory(?! usage| limit)|memories|notes|instructions|system prompt)|(?:long-term|persistent|permanent) memory)\b
store|save|write|record|remember|note
    (?: this| the following| it)? (?:in|to|into) (?:your )?(?:long-term |persistent |permanent )?memory ?:

# the system prompt
reveal|leak|disclose|recite|repeat|exfiltrate|print|show|output|dump|display|tell me|give me|copy|paste|send|share
    (?: me| us)?(?: all| every| the exact| the full| the entire| verbatim| out)?(?: of)? your (?:[a-z]+ ){0,2}
    (?:prompts?|instructions|system message|guidelines|directives|rules|configuration)\b
what are|what is|summarize|summarise|translate
     your (?:[a-z]+ ){0,2}(?:prompt|instructions|system message|hidden rules)\b
reply|respond|answer|continue
     (?:only )?with (?:the|your) (?:[a-z]+ )?(?:hidden|system|initial|full|secret) (?:prompt|instructions|message)\b
output|print|repeat|reveal|show|return
    (?: me)?(?: the)? original (?:system )?prompt\b
reveal|leak|disclose|recite|repeat|exfiltrate
    (?: me| us)?(?: all| the exact| the full| the entire)?(?: of)? the (?:[a-z]+ )?
    (?:system prompt|hidden prompt|initial prompt|developer message|system message)\b
new system prompt|your system prompt|updated system prompt|override system prompt
    (?: is| now)* ?(?::|is\b)
begin system prompt|end of system prompt|begin new instructions|end of user input
     ?[\]=*#:.]
system override|admin override|developer override|system alert|system notice
     ?[:!\]—]
<system|</system
    (?:[-_](?:prompt|reminder|message|instructions?))?>
im_start|start_header_id
    \|>(?!`)
<<sys>>|[inst]|[/inst]
     ?(?=[a-z<])
[system]|[system message]|[system prompt]
     ?:? ?(?:override|you|the user|ignore|disregard|new|admin|access|all|from now)\b
system:|assistant:|developer:|### system|### instruction
    :? ?(?:you(?:r previous)? (?:are|must|will|should|instructions)|ignore|disregard|from now|the assistant
    |new (?:instructions?|rule)|override|forget|admin mode|do not (?:tell|reveal|mention))\b

# another role
you are now|you're now
     (?:an?|my|(?:in|entering) [a-z-]+ mode|the (?:[a-z-]+ ){0,2}{ROLE}|acting as|operating|running as|called|named|dan
    |free from|unrestricted|jailbroken|no longer)\b
    (?! (?:member|owner|maintainer|subscriber|contributor|collaborator|reviewer|part|follower|participant|guest|host
    |co-|admin|editor|group|queue|list|channel|waiting|team|lead|moderator|position|charge|release|on-call))
you will|you must|you shall|you have to|you should
    (?: now| henceforth)? (?:behave|act|respond|operate|function|speak|answer) (?:as|like)
     (?:if you|an? (?:[a-z-]+ ){0,3}(?:model\b|{ROLE}))
you are no longer
     (?:an?|bound|restricted|limited|required|claude|chatgpt|the assistant|subject)\b
act as|behave as|respond as|roleplay as|role-play as|you will act as|answer as
     (?:if you (?:are|were|have|had)|though you|an? (?:[a-z-]+ ){0,3}{ROLE}|dan\b|my (?:deceased|late|personal)\b)
you are|you're|imagine|respond|answer|operate|speak|act
     … \b(?:without|with no|free (?:of|from))(?: any| all)?(?: [a-z]+)?
     (?:limits|limitations|restrictions|filters|guardrails|rules|censorship)\b
imagine|suppose|assume
    (?: that)? you(?: are|'re) (?:an? (?:[a-z-]+ ){0,2}{ROLE}|dan\b)
pretend
    (?: that)? (?:you (?:are|have|can|were|do)
    |to be (?:an?|the) (?:[a-z-]+ ){0,2}(?:ai|human|admin|hacker|user|developer|model))\b
do anything now|no ethical guidelines|without any restrictions or filters|jailbreak mode|jailbroken mode
    -
enter|activate|switch to|enable|you are in|you're in
     (?:dan|god|jailbreak|unrestricted|unfiltered|sudo|root|evil)(?: [a-z]+)? mode\b

# hiding it
do not|don't|never|must not|without|avoid|you may not|should not|shouldn't
    (?: ever)? (?:tell|inform|warn|alert|let|mak)(?:e|ing|ting)? the (?:user|human|operator)s?\b
    (?! (?:their|which|how|why|to))
do not|don't|never|must not|without|avoid|not
     (?:ever )?(?:tell|telling|say|saying|mention|mentioning|notify|notifying|reveal|revealing|disclose|disclosing|report
    |reporting) (?:[a-z]+ ){0,5}?(?:to )?the (?:user|human|operator)\b(?!'s|’s| (?:their|which|how|why))
do not|don't|never|must not|without|avoid
    (?: ever)? (?:mention|reveal|disclose|disclos|say|show|acknowledge|acknowledg|report|explain)(?:ing)?
     (?:this|these|that|it|any of this|the following)(?: [a-z]+){0,3} (?:to|in)
     (?:the (?:user|human|operator|reply|answer|response|chat|conversation)|your|anyone|users?)\b
do not|don't|never|must not
     (?:mention|reveal|disclose|repeat|quote|acknowledge|discuss) (?:this|these|the above)
     (?:instructions?|messages?|rules?|prompts?|notes?|text)\b
hide|keep|conceal
     (?:this|it|these|that|everything|the [a-z]+)(?: [a-z]+){0,2} from the (?:user|human|operator)\b
the user
     (?:never (?:finds?|learns?|knows?|notices)|doesn't find|does not find|won't find|will not find)\b
the user
     (?:must|should|shall|may|can|is) not (?:to )?be (?:told|informed|notified|aware|made aware)\b
without
    (?<![a-z]\swithout) (?:asking|telling|consulting|informing|notifying)(?: the)? user\b
the user
     must (?:not|never) (?:know|notice|learn|find out|see (?:this|that|it)\b|be told|be informed|be aware)\b
do not|don't|never|without
     (?:ask|request|wait for|seek)(?:ing)?(?: the)? user(?:'s)? ?(?:for |for their )?
    (?:confirmation|permission|approval|consent)\b
when the user asks|whenever the user asks|if the user asks|when a user asks|if asked|when asked
     … \b(?:recommend|claim|deny|lie|pretend|insist|say that you (?:do not|don't|cannot)|say you (?:do not|don't))\b

# approving and disabling
bypass|disable|turn off|remove|deactivate|circumvent|evade|skip
    (?: all| any| every)(?: of)?(?: the)?(?: your)? (?:safety|security|ethical|moderation)(?: and [a-z]+)?
     (?:filters?|checks|restrictions?|guidelines?|guardrails?|protocols?|policies|measures)\b
approve|accept|auto-approve|confirm|allow
     (?:all|every|any)(?: [a-z]+)? (?:tool calls?|commands?|tool requests?|permission (?:requests?|prompts?))
     (?:without|automatically|silently)\b
run|execute
     (?:this|these|the following|the next)(?: [a-z]+)? (?:commands?|code|scripts?|payloads?|instructions?)
    (?: [a-z]+){0,3} (?:immediately|silently|without (?:asking|telling|question|confirmation)
    |before (?:you answer|answering|anything))\b

# carrying data away
send|sent|sending|forward|forwarded|forwarding|post|posting|upload|uploading|email|e-mail|mail|transmit|exfiltrate
    |leak|submit|deliver|append
     … {GOODS} … \b{TO}{ADDRESS}
exfiltrate|leak
     … \b{TO}{ADDRESS}
include|paste|put|append|add|insert|quote
     … (?:\.ssh|\.env|/etc/|\b(?:passwords?|credentials?|secrets?|keys?|tokens?|memory|prompt|instructions|link|phrase|words?
    |text)\b) … \b(?:in|into|to) (?:your|every|each|all) (?:[a-z]+ )?(?:repl(?:y|ies)|answers?|responses?|output)\b
before answering|before you answer|before replying|before you reply|before responding|before doing anything
     ?,? (?:first )?(?:fetch|call|run|open|send|visit|load|execute|download|read|post)\b
each time you|every time you|whenever you
     (?:answer|reply|respond|summari[sz]e) … \b(?:send|append|include|add|mention|post|call|recommend|forward)\b
every|each|all|any
     (?:[a-z]+ ){0,3}(?:goes|go|is sent|are sent|must be sent|should be sent|is forwarded|are forwarded|must go|has to go
    |must be forwarded)(?: first| also| immediately)? to {ADDRESS}
email|mail|cc|bcc|message
     {ADDRESS} … \b(?:all|every|everything|copy|copies|conversations?|credentials|secrets|memory|history)\b
silently|secretly|quietly|covertly
     (?:send|forward|post|upload|email|mail|transmit|copy|submit) … {TO}{ADDRESS}
![
    [^\]\n]{0,80}\]\(https?://[^)\s]{1,200}[?&/=](?:\{|<|\[|%7b|\$\{?)[a-z]

# commands
curl|wget
    \s[^\n]{2,300}?\|\s{0,3}(?:{SHELL}|(?:sudo\s)?(?:python3?|perl|node|ruby)(?=\s*-?\s*(?:$|[\n"'`)])))
bash|sh -c|zsh|eval|source
    (?:\s+-[a-z]{1,4})?\s*["']?\s?(?:<\(|\$\(|`)\s?{FETCH}
base64
    \s+(?:-d|--decode|-di)\b[^\n|]{0,80}\|\s?{SHELL}
rm
    \s+(?=(?:-[a-z-]{1,20}\s+){0,3}(?:-[a-z]{0,4}r|--recursive))(?:-[a-z-]{1,20}\s+){1,4}["']?
    (?:/(?:\*|(?:bin|etc|home|usr|var|boot|lib|root|dev)/?\*?)?|~/?\*?|\$\{?home\}?/?\*?)(?=["'`\s;&|),.，。！!]|$)
--no-preserve-root
    -
:()
    \s?\{\s?:\s?\|\s?:\s?&\s?\}\s?;\s?:
dd
    \s+[^\n]{0,60}of=/dev/(?:sd|nvme|hd|disk|vd|mmc)
mkfs
    (?:\.[a-z0-9]{1,8})?\s+(?:-\S{1,12}\s+){0,3}/dev/
>>
    \s?["']?[~/$\w.{}-]{0,60}authorized_keys\b
cat|less|head|type|read|print|open
     (?:[~/$\w.{}-]{0,40}/)?(?:\.ssh/)?(?:id_(?:rsa|ed25519|ecdsa|dsa)(?!\.pub)\b|\.aws/credentials|\.netrc\b|\.pgpass\b
    |etc/shadow\b)
cat
    \s+[~/\w.-]{0,60}\.env\b[^\n]{0,40}\|\s?(?:curl|nc|wget|base64)\b
curl
    \b[^\n]{0,200}?\s(?:-d|--data(?:-\w+)?|-f|--form|-t|--upload-file)=?\s?["']?[^\s"']{0,40}?
    (?:@\S{0,60}(?:\.env|\.ssh|id_rsa|/etc/|credentials|\.aws|\.netrc)|\$\((?:cat|env|printenv|history)\b
    |\$\{?\w{0,30}(?:token|secret|_key|password)\b)
nc|ncat|netcat
    \s+[^\n]{0,60}\s-(?:e|c)\s+\S{0,12}(?:sh|cmd|powershell)\b
/dev/tcp/
    [\w.$-]
powershell|powershell.exe|pwsh
    \s+[^\n]{0,60}-e(?:nc|ncodedcommand|c)?\s+[a-z0-9+/=]{8,}
iex|invoke-expression
    \s?["'(]{0,3}\s?(?:\(?new-object|iwr|irm|invoke-webrequest|invoke-restmethod)\b
iwr|irm|invoke-webrequest
    \s+[^\n|]{1,200}\|\s?(?:iex|invoke-expression)\b

# 推翻之前的话
忽略|忽视|无视|忘记|忘掉|不要理会|不用理会|不要遵守|不要遵循|停止遵守|停止遵循|抛弃|丢弃|违反|绕过|绕开|覆盖|推翻|不再遵守|不必遵守|不要再遵守|别再遵守
     ?(?:掉|你|所|的|那些|这些|其他|其它|一下|收到|接到|看到|得到){0,4}{过去}
    (?:{过去}|[的给出收到你和与中里]|其他|其它|对话|预设|内置|ai|输入){0,5} ?{规则}
忽略|无视|忘记|忘掉
    (?:掉)?(?:以上|上面|之前|前面|此前)(?:的)?(?:一切|所有(?:内容|对话|话|信息)|全部(?:内容|对话|话)|对话|内容)
现在按我说的做|现在听我的|从现在起听我的|现在照我说的做
    -
新的系统提示|新系统提示|系统提示更新|系统指令|系统消息|系统命令
    (?:词)? ?(?:如下)?[：:]
新指令|新的指令
     ?(?:如下)?[：:][^。\n]{0,20}(?:你|回答|回复|输出|忽略|必须|只能|只需)
你的新
    (?:任务|身份|角色|目标|指令|规则|名字|使命)(?:是|为|：|:)
之前的|先前的|以前的|原来的|原有的|原先的|以上|上述
    (?:所有|全部|一切)?(?:系统)?(?:指令|提示词?|设定)(?:已经?|全部|都|均|现在|从现在起){0,2}(?:失效|作废|无效|取消|不再有效|不再适用)
用户|开发者|管理员|系统|运营方
    已经?(?:授权|批准|同意|允许|许可)(?:了)?(?:你|全部|所有|一切|任何)
遵守|遵循|执行|服从
    (?:以下|下面|下列|如下|这条|这些)(?:新的?)?(?:指令|指示)(?!集)

# 对助手说话
作为
    (?:一个|一名|一位)? ?{助手}(?:[，,]| ){0,2}你(?:要|必须|应该|应当|需要|须|得|不能|不得|将|只能|有责任|有义务|的任务|的职责)
给|致|所有|各位|请|提醒|各|写给|通知
    (?:所有|各位|其他|未来|后续|任何)? ?(?:的)?{助手}们? ?(?:看)?(?:的)? ?(?:请)?
    (?:说明|提示|注意|指令|须知|留言|备注|指示|命令|话|消息|规则|必读|遵守|执行|照做)? ?[：:]
请|所有|各
     ?{助手}们?(?:请)?(?:注意|必读|请遵守|请记住|请执行|必须遵守|须遵守)
ai 助手|ai助手|大模型|智能体|语言模型|ai
    们?(?:请|务必)(?:注意|记住|遵守|执行|阅读|照做|忽略)
若是 ai|若是ai|如果是 ai|如果是ai|若为 ai|是 ai 的话
    [，,：:]
助手注意|助理注意|助手请注意|大模型注意|模型注意|智能体注意|ai 助手须知|大模型须知|智能体须知
    [：:]
忘记你是|忘掉你是
    (?:一个|一名)? ?{助手}
读到这|看到这|看到此|读到此|处理本|阅读本
    (?:段|条|里|文档|页|文件|文字|网页|份)?[^，。\n]{0,8}(?:{助手})
如果你是|若你是|假如你是|只要你是
    (?:一个|一名)? ?{助手}

# 长期的规则
从现在开始|从现在起|从此刻起|从此以后|从今以后|从今往后|自现在起|从即刻起|即日起
    (?:[，,]| ){0,2}(?:请)?你(?:都)?(?:必须|只能|只需|不得|不能|不许|不可以|要|将|需要|须|应该|应当|得|就是|是|会扮演|扮演|每次
    |的(?:名字|身份|角色|任务|回答|回复))
今后|此后|以后|接下来
    (?:[，,]| ){0,2}你(?:都)?(?:必须|只能|不得|一律|只需|务必)
记住|保存|写入|牢记|存入|存储|保留|添加|加入
    (?:住|下)?(?:这|此|该|以下|下面|如下|本)(?:条|个|些|一条)?(?:规则|指令|规定|要求|命令)[^。\n]{0,12}
    (?:以后|今后|后续|将来|未来|每次|所有|下次|长期)
写入|存入|保存到|加入|添加到|记到|更新|修改|改写|在|存到|记进
    你的(?:长期|永久|持久)?(?:的)?(?:记忆|系统提示)
把这段|将这段|把这条|将这条|把以下|将以下|把下面|将下面|把本|将本
    [^。\n]{0,12}(?:写|存|记|保存|加|录)(?:进|入|到)(?:你的?)?(?:长期|永久|持久)?(?:的)?记忆
以后的|今后的|后续的|将来的|未来的|之后的|每次|后续|所有|在每
    (?:所有|每次|每个|每一次|次)?(?:会话|对话|回答|回复|聊天)(?:中|里|时|前|后)?(?:[，,]| )?(?:都|你|请|也|要){0,3}
    (?:必须|须|遵守|遵循|执行|照做|生效|始终|附上|附带|带上|加上|推荐|加入|包含|插入)

# 系统提示
输出|打印|泄露|显示|告诉我|重复|透露|复述|展示|说出|给我看|翻译|公开|发出
    (?:一下|出|完整|全部)?{你的}
把|将
    {你的}[^。\n]{0,6}(?:输出|打印|发|告诉|复述|显示|贴|写|给|翻译)
把系统提示|将系统提示
    词?[^。\n]{0,6}(?:发给我|给我|告诉我|完整|原样|逐字|贴出来|发出来)
泄露|透露|套出|复述
    (?:一下|出|完整的?|全部的?|你的?){0,2}系统(?:提示|指令)

# 换个角色
你现在是|你现在起是|你从现在起是|现在你是
     ?(?:一个|一名|一位|我的|没有|不受|拥有|名为|dan\b
    |[^，。？?\n]{0,8}(?:助手|助理|机器人|模型|黑客|角色|终端|顾问|，一名|，一个))
你不再是|你已不再是|你不再受
    (?:一个|一名|任何)? ?(?:ai|人工智能|语言模型|助手|助理|chatgpt|claude|限制|约束|规则|原来的)
请扮演|你将扮演|你要扮演|你来扮演|请你扮演|假装你|请假装|请你假装|假设你是一个没有
    (?=\S{2})
停止扮演|不要再扮演|别再扮演
    {助手}
以|用|切换至
    (?:管理员|开发者|root|上帝|无限制|越狱|超级用户) ?(?:模式|身份|权限)(?:回答|回复|响应)
你已进入|你现在处于
    (?:了)?[“"「]?(?:开发者|调试|管理员|超级用户|维护)[”"」]? ?模式
进入|切换到|开启|启用
    (?:了)?[“"「]?(?:越狱|上帝|无限制|不受限制|无约束|dan)[”"」]? ?模式
你没有任何|你不受任何|不受任何
    (?:内容|安全|道德|规则)?(?:限制|约束|审查)

# 隐瞒
不要|别|不得|不能|不许|禁止|切勿|勿|无需|不必|不用|避免
    (?:把[^，。\n]{1,12})?(?:告诉|告知|透露给|泄露给|(?:让|使)(?=\S{1,6}(?:知道|看到|发现|察觉|注意|得知|看见|知晓|看出)))
    (?:任何)?(?:用户|使用者|主人|人类)(?!名|的?(?:密码|口令|邮箱|手机|价格|成本|内部|原因))
不要|别|不得|不能|切勿|禁止
    (?:向|跟|对|和|在)(?:用户|使用者|人类|主人|回答|回复)(?:中|里)?(?:透露|提及|提起|说明|泄露|解释|承认|说出|提到|说起)
不要跟用户|别跟用户|不要和用户|不要对用户|不要同用户|别对用户
    (?:说|讲|提)(?!明)
不要在|请勿在|勿在|别在|不得在
    (?:你的)?(?:回答|回复|输出|答案)(?:中|里)?(?:提到|提及|出现|透露|说明|包含)(?:这|本|该|以上|上述)
不要提及|不要透露|不要泄露|不要提到|不得提及|不得透露|别提
    (?:这条|这些|该|本条?|上述|以上)(?:指令|规则|消息|提示|说明|内容|文字)
瞒着|隐瞒|背着
    (?:用户|使用者)
对用户|向用户
    (?:隐瞒|保密|隐藏)

# 放行与解除
跳过|绕过|省略|免去|无需
    用户(?:的)?(?:确认|同意|授权|许可|审批)
无需|不需要|不必|不用|不要|无须
    (?:再)?(?:征得|经过|询问|请求|征求|等待|取得|问|向)(?:过)?用户(?:的|请求|征求)?(?:同意|确认|许可|授权|批准|意见)?
绕过|关闭|解除|禁用|取消|去除|突破
    (?:掉)?(?:你的|所有|一切|全部|系统的?|自身的?){1,2}(?:的)?(?:安全|内容|道德|权限|审核)?(?:限制|审查|过滤|防护|策略|约束|检查)(?![流速条用])
用户问|用户询问|用户提到|用户咨询|有人问
    [^。\n]{0,20}(?:一律|都|必须|始终|请|就)(?:回答|推荐|说|回复|声称|否认|谎称)

# 外传
把|将
     … {东西} … {发往}{ADDRESS}
发送|上传|转发|提交|抄送|外传|泄露|发邮件
     … {东西} … (?:给|到|至|往) ?{ADDRESS}
所有|全部|每份|每次|每条|每个|每一
     … {东西} … {发往}{ADDRESS}
偷偷|悄悄|暗中|私下|秘密
    [^。\n]{0,16}(?:发|传|抄送|寄|同步|提交)[^。\n]{0,8} ?{ADDRESS}
向
     ?{ADDRESS}\S{0,40} ?(?:发送|上传|提交|泄露|汇报|转发) … {东西}
"""

_GAP = r"(?:[\s>*_`\"'“”‘’-]{1,6})"
_CLAUSE_END = r"\n\s*(?:\n|[-*+#>]\s|\d+\.\s)|[.!?](?=\s)|[。！？]"
# what turns an order into a warning: never run `rm -rf /`
_FORBIDDEN = (
    r"(?:\b(?:never|do not|don't|dont|must not|mustn't|cannot|can't|should not|shouldn't|avoid|refuse to|not to|without"
    r"|no)(?: ever)?(?: (?:run|runn?ing|use|using|execute|executing|pipe|piping|type|typing|do|call|allow|trust|let))?"
    r"|(?:不要|不能|不得|不许|禁止|切勿|别|勿|严禁|避免|不可|防止|谨防)(?:再|直接|随便|轻易)?"
    r"(?:运行|执行|使用|用|敲|跑|让|直接)?)[\s`\"'“「:：]{0,4}$"
)
_rules: dict[str, dict[str, list[str]]] = {}  # first Latin word or Chinese character -> word -> what follows
_steps: dict[str, list[re.Pattern[str]]] = {}


def _orders(text: str) -> Iterator[Span]:
    low = _lowered(text)
    keys = {"", *_rx("[a-z]+").findall(low)}
    if not low.isascii():
        keys.update(low)
    rules = _rules or _read_rules()
    for key in keys & rules.keys():
        for word, rests in rules[key].items():
            if word in low:
                yield from _order(low, word, rests)


def _read_rules() -> dict[str, dict[str, list[str]]]:
    rules: dict[str, dict[str, list[str]]] = {}
    words = rest = ""
    for line in [*_ORDERS.split("\n"), "end"]:
        if line.startswith("    |") and not rest:
            words += line[4:]
        elif line.startswith("    "):
            rest += line[4:]
        elif line and not line.startswith("# "):
            for word in words.split("|") if words else ():
                latin = _rx("[a-z]*").match(word)
                key = (latin[0] if latin else "") or ("" if word[0].isascii() else word[0])
                rules.setdefault(key, {}).setdefault(word, []).append(rest)
            words, rest = line, ""
    _rules.update(rules)  # at once: other threads see all of them or none
    return rules


def _order(low: str, word: str, rests: list[str]) -> Iterator[Span]:
    edged = word.isascii() and word[-1].isalpha()
    for at in _positions(low, word):
        start = at + len(word)
        if edged and ((word[0].isalpha() and _glued(low, at)) or (start < len(low) and _glued(low, start + 1))):
            continue
        for rest in rests:
            end = _follow(low, start, rest, 160 if word.isascii() else 60)
            if end >= 0 and not _rx(_FORBIDDEN).search(low, max(0, at - 40), at):
                yield at, end, "instruction"
                break


def _follow(low: str, at: int, rest: str, most: int) -> int:
    """Where the parts of a rule end that follow each other in one clause of `most` characters; -1: they do not."""
    first, *others = _steps.get(rest) or _spell(rest)
    found = first.match(low, at)
    if found and others:
        limit = min(len(low), at + most)
        clause = _rx(_CLAUSE_END).search(low, at, limit)
        for part in others:
            found = found and part.search(low, found.end(), clause.start() if clause else limit)
    return found.end() if found else -1


def _spell(rest: str) -> list[re.Pattern[str]]:
    spelled = "" if rest == "-" else rest
    for name, part in _PARTS.items():
        spelled = spelled.replace(f"{{{name}}}", part)
    parts = spelled.replace(" … ", "…").replace(" …", "…").replace(" ", _GAP).split("…")
    _steps[rest] = [_rx(part) for part in parts]
    return _steps[rest]
