"""Secrets known by their own form: provider tokens, private keys, logins in addresses."""

from __future__ import annotations

from pipimem.safety.secret_values import is_placeholder, looks_random
from pipimem.safety.views import DIGITS, LETTERS, glued, positions, rx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.safety.views import Span


def find(text: str) -> Iterator[Span]:
    """The more specific forms first: the first finding names what several find."""
    yield from _key_blocks(text)
    yield from _prefixed(text)
    yield from _shaped(text)


# kind, what it starts with, what follows (group v: only that is secret), whether the rest must look random because
# the start is also a word. An AWS key id that ends in EXAMPLE is Amazon's own placeholder and no secret.
_TOKENS: tuple[tuple[str, str, str, bool], ...] = (
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
_PREFIXES = [(kind, prefix, rest, random) for kind, starts, rest, random in _TOKENS for prefix in starts.split()]
_LONG = r"[!-~]{16,}"  # no token of the table is shorter, and each is ASCII for so long


def _prefixed(text: str) -> Iterator[Span]:
    if not (found := rx(_LONG).findall(text)):
        return
    long = "\n".join(found)
    for kind, prefix, rest, random in _PREFIXES:
        if prefix in long:
            for start, end in _after_prefix(text, prefix, rest, random):
                yield start, end, kind


def _after_prefix(text: str, prefix: str, rest: str, random: bool) -> Iterator[tuple[int, int]]:
    done = 0
    for at in positions(text, prefix):
        if at < done or (prefix[0].isalnum() and glued(text, at)):
            continue
        found = rx(rest).match(text, at + len(prefix))
        if not found:
            continue
        done = found.end()  # what was looked at once is not looked at again: linear time
        body = found[0][:400]
        if not is_placeholder(body) and (not random or looks_random(body)):
            yield found.start("v") if "v" in found.re.groupindex else at, done


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
        for at in positions(text, "-----BEGIN "):
            if found := rx(_PEM_WHOLE).match(text, at) or rx(_PEM_CUT).match(text, at):
                covered = found.end()
                yield at, covered, "private-key"
        for at in positions(text, "-----END "):
            if at >= covered and (found := rx(_PEM_END).match(text, at)) and (start := _body_before(text, at)) < at:
                yield start, found.end(), "private-key"
    for at in positions(text, "Private-Lines: "):
        if found := rx(_PUTTY).match(text, at + 15):
            yield at, found.end(), "private-key"


def _body_before(text: str, at: int) -> int:
    """Where the key lines begin that end at `at`: a block whose BEGIN was cut off. At most 200 lines back."""
    start = at
    for _ in range(200):
        line = text.rfind("\n", max(0, start - 200), max(start - 1, 0)) + 1
        if line >= start or not rx(r"[A-Za-z0-9+/]{24,}={0,2}\r?\n?").fullmatch(text, line, start):
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


def _shaped(text: str) -> Iterator[Span]:
    """Secrets known by their shape around an anchor in the middle."""
    for at in positions(text, "://"):
        if found := rx(_URL_LOGIN).match(text, at):
            if found["v"] and _is_login(found["user"], found["v"], found["host"]):
                yield *found.span("v"), "url-password"
            elif found["v"] is None and looks_random(found["user"]):
                yield *found.span("user"), "url-token"
    for at in positions(text, ":AA"):
        start = _back(text, at, DIGITS, 12)
        if 8 <= at - start <= 11 and (found := rx(_TELEGRAM).match(text, at)):
            yield start, found.end(), "telegram-token"
    for found in rx(_DISCORD).finditer(text) if "." in text else ():
        start = _back(text, found.start(), LETTERS + DIGITS + "_-", 30)
        if found.start() - start >= 23 and text[start] in "MNO":
            yield start, found.end(), "discord-token"


def _back(text: str, at: int, alphabet: str, most: int) -> int:
    first = max(0, at - most)
    return first + len(text[first:at].rstrip(alphabet))


def _is_login(user: str, word: str, host: str) -> bool:
    if len(word) < 4 or is_placeholder(word) or word.lower() in _LOGIN_WORDS or word[0] in "$%{[*":
        return word[:1] == "%" and rx(r"%[0-9A-F]{2}").match(word) is not None
    if rx(r"\d{2,5}(?:[,;)]|$)").match(word):  # a port: http://host:8080,name@host
        return False
    return not (host in _LOCAL and word == user)  # postgres:postgres@localhost is a default, not a secret
