"""What stays the same when an error comes again: its names and words, without paths, numbers, times and addresses.

Queries are made of it, so that a stack trace finds the failure noted on another machine. Stored text is never changed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EDGES = "\"'`“”‘’「」()[]{}<>,;:!?*|=，。；：！？（）【】《》、"
HEX = frozenset("0123456789abcdef")
NUMBERS = frozenset("0123456789.,:+-/%TZ")
UNITS = ("ms", "s", "kb", "mb", "gb", "kib", "mib", "gib", "b", "px", "sec", "secs")
NOISE = frozenset(("file", "line", "in", "at", "most", "recent", "call", "last", "traceback", "module"))
FRAME = ("file ", "at ", "traceback (most recent")
SIGNS = ("Error", "Exception", "ERROR", "ERR!", "FATAL", "Traceback", "panic:", "error:", 'File "', "    at ", "errno")
PACKAGES = frozenset("java javax lang util io net builtins exceptions errors".split())
BEFORE_CODE = frozenset("http http/1.0 http/1.1 http/2 status code httperror statuscode 状态码".split())
AFTER_CODE = frozenset("bad client conflict forbidden gateway internal not server service too unauthorized".split())
"""What stands before or after an HTTP status: such a number is the error's name, not chance."""
LONGEST = 4_000


def signature(text: str) -> str:
    """`text` without what differs between two runs of one error; at most its last 4,000 characters are read.

    Of a path the file's name stays, of a stack frame its function's; error codes keep their digits. A text that is
    nothing but such things gives "". Applied twice it gives what it gave once.
    """
    lines = (_line(line.strip()) for line in text[-LONGEST:].split("\n"))
    return "\n".join(dict.fromkeys(line for line in lines if line))


def is_error(text: str) -> bool:
    """Whether a line looks like one of an error report: there numbers and paths are chance, elsewhere they are said."""
    return any(sign in text for sign in SIGNS)


def _line(line: str) -> str:
    frame = line.lower().startswith(FRAME)
    said = line.split()
    words = [stable(word) for word in said]
    for i, word in enumerate(said):
        if not words[i] and (code := word.strip(EDGES)) and _status(code, words[i - 1 : i], words[i + 1 : i + 2]):
            words[i] = code
    return " ".join(word for word in words if word and not (frame and word.lower() in NOISE))


def _status(word: str, before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether a word is an HTTP status of a failed request, by its neighbours."""
    if len(word) != 3 or word[0] not in "45" or not word.isascii() or not word.isdigit():
        return False
    named = any(w.lower().rpartition(".")[2] in BEFORE_CODE or w.lower() in BEFORE_CODE for w in before)
    return named or any(w.lower() in AFTER_CODE for w in after)


def stable(word: str) -> str:
    """A word as it stands in the next run too: "" for a number, time, address, digest; of a path the last part."""
    bare = word.strip(EDGES).rstrip(EDGES + ".")
    if not bare or bare.startswith("\\"):
        return ""
    name, at, version = bare.rpartition("@")
    if at and name and NUMBERS.issuperset(version):  # react@18.2.0
        return stable(name)
    if "://" in bare or "@" in bare[1:]:
        return ""
    if bare[0] in "/~" or bare[1:3] == ":\\":
        bare = bare.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    name, colon, rest = bare.partition(":")
    if colon and NUMBERS.issuperset(rest):  # webhook.py:88:12, 10.3.0.14:6379
        bare = name
    if _volatile(bare.lower()):
        return ""
    if bare.endswith(("Error", "Exception")) and "." in bare:
        bare = ".".join(part for part in bare.split(".") if part not in PACKAGES)
    return bare if bare == word else stable(bare)


def _volatile(word: str) -> bool:
    """Numbers with or without a unit, dates and times, digests, identifiers drawn at random, memory addresses."""
    if not any(c.isdigit() for c in word):
        return False
    digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    if NUMBERS.issuperset(digits.upper()) and word[len(digits) :] in ("", "z", *UNITS):
        return True
    if word.startswith("0x"):
        return True
    plain = word.replace("-", "").replace("_", "")
    if len(plain) >= 8 and HEX.issuperset(plain) and sum(c.isdigit() for c in plain) >= 2:
        return True
    return word[:4].isdigit() and word[4:5] == "-" and word[5:7].isdigit()
