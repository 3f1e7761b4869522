"""Secrets that their surroundings give away: options of programs, statements, cookies, signed addresses, tables, and
what stands before the words that name it.
"""

from __future__ import annotations

from pipimem.safety.secret_values import classes, could_open, is_password, is_seed, is_token
from pipimem.safety.views import glued, positions, rx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.safety.views import Span


def find(text: str, low: str) -> Iterator[Span]:
    """The values behind their context, then those before it, then in columns; `low` is the text in lower case."""
    yield from _behind(text, low)
    yield from _before(text, low)
    yield from _in_tables(text)


def _words(words: str) -> list[str]:
    """The words of a line of the tables; where one holds a blank they are parted by bars."""
    return [word for word in words.split("|") if word] if "|" in words else words.split()


_QUOTED = r"[\"']?(?P<v>[^\s\"'\0]{4,128})"
_ARGUMENTS = r"\b[^\n|;\0]{0,160}?\s"
_LOGIN = r"(?P<v>[!-.0-~]{8,64})(?=\s|$|[，。,;])"
_MARKED_LOGIN = r" ?/ ?(?P<v>(?=[^\s/]{0,40}[@!#$%^&*])[!-.0-~]{6,64})(?=\s|$|[，。,;])"
_COOKIE = r"(?i:sess|sid|auth|token)[\w.-]{0,20}=(?P<v>[A-Za-z0-9%._~+/-]{16,})"
_SEED = r"(?: (?:is|are)|是|为)?[ :：=]{0,3}[\"'「“]?(?P<v>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b"
# kind, words one of which must stand there, what follows
_CONTEXTS: tuple[tuple[str, str, str], ...] = (
    ("password", "mysql mariadb", rf"(?:sh|import|-?dump|-?admin)?{_ARGUMENTS}-p{_QUOTED}"),
    ("password", "sshpass", rf"\s+-p\s*{_QUOTED}"),
    ("password", "redis-cli", rf"{_ARGUMENTS}-a\s+{_QUOTED}"),
    ("password", "docker podman az mongo mongosh mongodump mongorestore", rf"{_ARGUMENTS}-p\s+{_QUOTED}"),
    ("password", "sqlcmd bcp mosquitto_pub mosquitto_sub unzip", rf"{_ARGUMENTS}-P\s*{_QUOTED}"),
    ("password", "ldapsearch ldapmodify ldapadd ldapwhoami", rf"{_ARGUMENTS}-w\s+{_QUOTED}"),
    (
        "password",
        "curl",
        rf"{_ARGUMENTS}(?:-u|--user|-U|--proxy-user)\s+[\"']?[^\s:\"'\0]{{1,60}}:(?P<v>[^\s\"'\0]{{4,128}})",
    ),
    ("password", "http https xh", rf"{_ARGUMENTS}(?:-a|--auth)\s+[\"']?[^\s:\"'\0]{{1,60}}:(?P<v>[^\s\"'\0]{{4,128}})"),
    ("password", "smbclient", rf"{_ARGUMENTS}-U\s*[\"']?[^\s%\"'\0]{{1,60}}%(?P<v>[^\s\"'\0]{{4,128}})"),
    (
        "password",
        "sqlplus jdbc:oracle:thin: jdbc:oracle:oci:",
        r"(?:\s{1,3}-\w{1,8})*\s{0,3}\w{1,30}/(?P<v>[^\s@/\0]{4,64})(?=@|\s|$)",
    ),
    ("password", "openssl", rf"{_ARGUMENTS}-pass(?:in|out)?\s+[\"']?pass:(?P<v>[^\s\"'\0]{{4,128}})"),
    ("password", "keytool jarsigner", rf"{_ARGUMENTS}-(?:store|key|src|dest)\w{{0,10}}pass\s+{_QUOTED}"),
    ("password", "htpasswd", r"\s+-\w*b\w*\s+\S{1,80}\s+\S{1,40}\s+" + _QUOTED),
    ("password", "requirepass masterauth bindpw rootpw", rf"\s+{_QUOTED}"),
    (
        "password",
        "identified |",
        r"(?i:with [\w'\"]{1,40} )?(?i:by)\s+(?i:password\s+)?['\"](?P<v>[^'\"\n\0]{4,128})['\"]",
    ),
    (
        "password",
        'variable "|',
        r"\w*(?i:password|passwd|secret|token|api_?key)\w*\"\s*\{[^{}\0]{0,300}?\bdefault\s*=\s*\"(?P<v>[^\"\n\0]{4,128})\"",
    ),
    ("login", "login credentials", rf"(?: is| are|:|：| =) ?[\w.@-]{{2,40}} / {_LOGIN}"),
    ("login", "账号 帐号 账户", r" ?(?:是|:|：|=)? ?[a-zA-Z0-9_.@-]{2,40} ?/ ?(?P<v>[!-.0-~]{6,64})(?=\s|$|[，。,;])"),
    ("login", "root admin", _MARKED_LOGIN),
    ("cookie", "cookie:", rf"[^\n\0]{{0,200}}?{_COOKIE}"),
    ("cookie", "curl wget", rf"{_ARGUMENTS}(?:-b|--cookie|--header)\s+[^\n|\0]{{0,200}}?{_COOKIE}"),
    ("cookie", "phpsessid= jsessionid= asp.net_sessionid= connect.sid=", r"(?P<v>[A-Za-z0-9%._~+/-]{16,})"),
    ("url-token", "sig= signature=", r"(?P<v>[A-Za-z0-9%+/=_-]{20,})"),
    ("otp-seed", "otpauth://", r"[^\s\0]{0,200}?[?&](?i:secret)=(?P<v>[A-Z2-7]{10,}=*)"),
    ("otp-seed", "totp otp 2fa", r"[ _-]?(?:seed|secret|key)?(?: is|是|为)?[ :：=]{1,3}(?P<v>[A-Z2-7]{16,}=*)"),
    ("seed-phrase", "助记词 seed mnemonic", rf"(?: (?:phrase|words?))?{_SEED}"),
    ("seed-phrase", "recovery phrase|", _SEED),
)
_BEHIND = [(kind, word, rest) for kind, words, rest in _CONTEXTS for word in _words(words)]


def _behind(text: str, low: str) -> Iterator[Span]:
    for kind, word, rest in _BEHIND:
        if word not in low:
            continue
        for at in positions(low, word):
            if glued(text, at) and kind != "cookie":
                continue
            found = rx(rest).match(text, at + len(word))
            if found and _judged(kind, found["v"][:200]):
                yield *found.span("v"), kind


def _judged(kind: str, value: str) -> bool:
    if kind == "seed-phrase":
        return is_seed(value)
    if not could_open(value, quoted=True):
        return False
    return kind == "otp-seed" or (is_password if kind in ("password", "login") else is_token)(value)


# kind, words, what stands before them on their line
_PIPED = (
    r"(?:^|[\s;&(])(?:echo|printf)\s+(?:-n\s+|['\"]%s(?:\\n)?['\"]\s+)?[\"']?(?:[\w.-]{1,32}:)?"
    r"(?P<v>[^\s\"'|:\0]{6,128})[\"']?\s*\|[^|\n\0]*$"
)
_SAID = r"(?:^|[\s\"'“「（(])(?P<v>[!-~]{6,64}?)[\"'”」]? $"
_BEFORE = (
    ("password", "--password-stdin --with-token sudo chpasswd", _PIPED),
    ("password", "as the password|as password|as its password|as my password", _SAID),
    ("password", "作为密码|当密码|做密码", r"(?:^|[^!-~])(?P<v>[!-~]{6,64})[\"'”」]? ?$"),
)
_STARTS = [(kind, word, rest) for kind, words, rest in _BEFORE for word in _words(words)]


def _before(text: str, low: str) -> Iterator[Span]:
    for kind, word, rest in _STARTS:
        if word not in low:
            continue
        for at in positions(low, word):
            start = max(text.rfind("\n", max(0, at - 300), at) + 1, at - 300, 0)
            found = rx(rest).search(text[start:at])
            if found and could_open(found["v"], quoted=True) and _is_strong(found["v"]):
                yield start + found.start("v"), start + found.end("v"), kind


def _is_strong(value: str) -> bool:
    lower, upper, digit, other = classes(value)
    return digit > 0 and lower + upper > 0 and bool(lower) + bool(upper) + bool(other) > 1


_TABLE = r"(?m)^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*){0,20}\|?[ \t]*\r?$"
_COLUMN = (
    r"(?i)(?:^|[\s_(（-]|[\u4e00-\u9fff])(?:password|passwd|passphrase|pwd|密码|密碼|口令|密钥|授权码|令牌|api[ _-]?key"
    r"|secret(?:[ _-]?key)?|(?:access|api|auth|bot)[ _-]token)[\s`*)）]{0,4}$"
)
_ROWS = 1000


def _in_tables(text: str) -> Iterator[Span]:
    """The cells of the columns that are headed as passwords or keys, in Markdown tables."""
    if "|" not in text or "--" not in text:
        return
    for rule in rx(_TABLE).finditer(text):
        if "|" not in rule[0]:
            continue
        head = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
        columns = [n for n, (_, name) in enumerate(_cells(text, head, rule.start() - 1)) if rx(_COLUMN).search(name)]
        if columns:
            yield from _column_values(text, rule.end() + 1, columns)


def _column_values(text: str, at: int, columns: list[int]) -> Iterator[Span]:
    for _ in range(_ROWS):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if "|" not in text[at:end]:
            return
        cells = _cells(text, at, end)
        for start, value in (cells[n] for n in columns if n < len(cells)):
            if " " not in value and could_open(value, quoted=False) and (is_password(value) or is_token(value)):
                yield start, start + len(value), "password"
        at = end + 1


def _cells(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """The cells of a table row: where each begins, and its text without the marks around it."""
    cells = []
    for found in rx(r"[^|\n]+|(?<=\|)(?=\|)").finditer(text, start, end):
        value = found[0].strip(" \t\r`*")
        cells.append((found.start() + found[0].find(value), value))
    if cells and not cells[0][1]:
        cells = cells[1:]  # what stands before the first bar
    return cells
