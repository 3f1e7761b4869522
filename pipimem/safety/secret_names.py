"""Secrets that the name before them gives away: "password:", "密钥", "X-Api-Key"; also in pairs of arguments."""

from __future__ import annotations

from pipimem.safety.secret_values import (
    classes,
    could_open,
    is_mail_code,
    is_password,
    is_token,
    is_wordy,
    looks_random,
)
from pipimem.safety.views import positions, rx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.safety.views import Span


def find(text: str, low: str) -> Iterator[Span]:
    """The values behind names; `low` is the text in lower case."""
    for kind, name in _NAMES:
        if name in low:
            for start, end in _values_after(text, low, name, kind):
                yield start, end, kind


_KINDS = (
    ("password", "password passwd passwort passphrase passcode pwd 密码 密碼 口令 pass pw"),
    ("secret", "secret"),
    ("authorization", "authorization"),
    ("token", "token 令牌 授权码 bearer"),
    ("key", "key 密钥 密鑰 秘钥 秘鑰 私钥"),
)
_NAMES = [(kind, name) for kind, names in _KINDS for name in names.split()]
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
# two arguments of a call that sets something, or name and value as attributes or keys of their own
_PAIR = r"(?P<pair>,?\s{1,40}[\"']?(?:value|default)[\"']?[ \t]{0,4}[:=][ \t]{0,4})|(?P<call>,[ \t]{0,3}(?=[\"'`]))"
_SETTING = (
    r"(?:define|(?<![a-z])(?:set|put|add|with|append|header|param)[a-z_]{0,20}|putenv|environ)"
    r"[(\[]\s*[\"'`][\w.-]{0,24}$"
)
_AFTER = (
    rf"{_REST}\\?[\"'`*_\])）]{{0,4}}{_NOTE}"
    rf"(?:(?: (?:for|of|to|on|at|in) [a-z0-9 _'./-]{{1,40}}?[\"'`*]{{0,3}})?(?:{_LINE}|{_PAIR}"
    rf"|(?P<sep>[ \t]{{0,4}}{_TYPE}[ \t]{{0,4}}|{_SEP}|>|%3d)|(?P<verb>{_VERB}|{_VERB_ZH}))"
    rf"|(?P<gap>[ \t\u3000]{{1,4}})){_OPEN}(?:(?:bearer|basic|token|apikey|digest|bot) {{1,2}})?"
)
_AFTER_ZH = (
    rf"[\"'`*_”」）)]{{0,4}}{_NOTE}(?:(?:已经?|现在|默认|统一)[ \t\u3000]?)?"
    rf"(?:{_LINE}|(?P<sep>{_SEP})|(?P<verb>{_VERB_ZH})|(?P<gap>[ \t\u3000]{{0,4}})){_OPEN}"
)
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」", "『": "』", "【": "】"}


def _values_after(text: str, low: str, name: str, kind: str) -> Iterator[tuple[int, int]]:
    done = refused = last = 0
    for at in positions(low, name):
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
    found = rx(_AFTER_ZH if chinese else _AFTER).match(low, at + len(name))
    if not found:
        return 0, 0, False
    start, end, quoted = _value(text, found.end(), found["open"])
    value = text[start : min(end, start + 200)]
    judge = is_password if kind == "password" else is_token
    opens = could_open(value, quoted=quoted) and judge(value)
    if not opens and not (name == "授权码" and is_mail_code(value)):
        return start, end, False
    ways = ("sep", "verb", "line") if chinese else ("sep", "verb", "line", "pair", "call")
    way = next((way for way in ways if found[way]), "gap")
    if way in ("pair", "call"):
        sets = way == "pair" or rx(_SETTING).search(low, max(0, at - 60), at)
        way = "sep" if sets else "none"
    convincing = _is_convincing(_tie(way, name, before), kind, value, text[end : end + 3], chinese=chinese)
    return start, end, convincing


def _is_name(before: str, around: str, name: str) -> bool:
    if name == "key":  # FOO_KEY counts too, in capitals
        return bool(rx(_KEY_OF).search(before)) or (around[1:] == "_KEY" and around[:1].isalnum())
    if before[-1:] == "1" or (name in ("pass", "pw", "bearer") and before[-1:].isalnum()):
        return False  # 1password, bypass
    if rx(r"://[^\s/?#]*$").search(before):
        return False  # https://x-access-token:...@host is read as an address
    return not rx(_NOT_OF).search(before)


def _tie(way: str, name: str, before: str) -> str:
    """How firmly the name is tied to the value: "sep" (a: b), "verb" (a is b), "line" (b on its own line), "gap"
    (a b), or "none".
    """
    if way == "gap" and rx(r"(?:^|[\s\"'`(=])--[a-z0-9-]{0,20}$").search(before):
        return "sep"  # --password X
    if way == "gap" and rx(r"\b(?:login|user|username|account)[ =:]{1,3}\S{1,16}[ ,;/]{1,3}$").search(before):
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
    run = rx(r"[!-~]{1,4096}+").match(text, start)
    if not run:
        return start, start, False
    end = run.end()
    stop = rx(r"[\"'`|](?=[\s,;:.)\]}>]|$)|<(?=/?[A-Za-z])|\\[nrt\"']|[,;&](?=[A-Za-z0-9_.-]{1,30}[\"']?[=:])").search(
        text, start, end
    )
    if stop:
        end = stop.start()
    elif end - start == 4096 and (rest := rx(r"[!-~]++").match(text, end)):
        end = rest.end()
    return start, start + len(text[start:end].rstrip(".,;:)]}>*_\\")), False


_COUNTED = r"\s?(?:[a-z]|[位個个次天年月日轮字条起前后多万元秒分到至])"
_TICKET = r"[A-Z]{1,5}-?\d+(?:-\d+)*$"


def _is_convincing(tie: str, kind: str, value: str, after: str, *, chinese: bool) -> bool:
    """Whether the tie between name and value is strong enough: "password: x" is, "password x" needs more of x."""
    if tie in ("sep", "verb"):
        counted = value.isdigit() and rx(_COUNTED).match(after)  # 密码是 100000 次迭代
        return not counted and not (tie == "verb" and rx(_TICKET).match(value))
    lower, upper, digit, _ = classes(value)
    marked = rx(r"[@!#$%^&*?~]").search(value) is not None
    coded = rx(r"[0-9]{4,12}[#*@!]{1,3}").fullmatch(value) is not None  # 密码 482913#
    spoken = chinese and kind == "password" and ((digit > 0 and lower + upper > 0) or coded)  # 密码 qiyun2026
    strong = lower > 0 and digit > 0 and (upper > 0 or marked)
    if tie == "line":
        return (strong or spoken) and (not after or after[0] in "\r\n ,;.，。)\"'`|<&")
    if tie == "gap":
        plain = strong and len(value) >= 8 and not rx(r"[/-]").search(value) and (marked or not is_wordy(value))
        return plain or looks_random(value) or (spoken and not rx(_TICKET).match(value))
    return tie == "long" and len(value) >= 16
