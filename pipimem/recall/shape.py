"""Names that only a project has: error codes, paths, functions, settings, flags; told by their shape, not a pattern."""

from __future__ import annotations

from pipimem.recall.cues import EXTENSIONS, NAMES, PUBLIC

EDGES = "\"'`“”‘’()[]{}<>,;:!?*|="
CODE, NAME, HINT = 6.0, 3.0, 2.0
"""A code outweighs a generic question ("what does KW-E41 mean"), a name decides alone, a hint needs company."""
LONGEST = 120


def shape(text: str) -> tuple[float, str]:
    """The most telling name in `text` and what it is worth, (0.0, "") when there is none."""
    if not text.isascii():
        text = "".join(c if c < "\u2e80" else " " for c in text)
    best, name = 0.0, ""
    for word in text.split():
        for part in word.split("="):
            value = _worth(part)
            if value > best:
                best, name = value, part.strip(EDGES)[:40]
    return best, name


def particular(text: str) -> str:
    """A name or date of something particular: a capital within a sentence, a day, a number of three digits and more."""
    if not text.isascii():
        text = "".join(c if c < "\u2e80" else " " for c in text)
    for place, word in enumerate(text.split()):
        bare = word.strip(EDGES).rstrip(".")
        if place and bare[:1].isupper() and bare[1:].islower() and bare.lower().removesuffix("'s") not in NAMES.split():
            return bare
        if (bare.isdigit() and len(bare) >= 3) or (bare[:4].isdigit() and bare[4:5] == "-"):
            return bare
    return ""


def _worth(word: str) -> float:
    bare = word.strip(EDGES).rstrip(".")
    if len(bare) < 3 or len(bare) > LONGEST or "://" in bare or (bare.isalpha() and bare[1:].islower()):
        return 0.0
    if bare.lower() in PUBLIC.split():
        return 0.0
    if _code(bare):
        return CODE
    if _path(bare) or _name(bare):
        return NAME
    return HINT if _hint(bare) else 0.0


def _code(word: str) -> bool:
    """KW-E41, E-207, MV4402, ERR_PNPM_LOCKFILE, m-5f3a2c1b: capitals with a digit or an underscore."""
    plain = word.replace("-", "").replace("_", "")
    if word.startswith("m-") and len(word) == 10:
        return not plain[1:].strip("0123456789abcdef")
    if not plain.isalnum() or not plain.isascii() or plain != plain.upper() or not plain[0].isalpha():
        return False
    digits = sum(c.isdigit() for c in plain)
    return ("_" in word.strip("_") or bool(digits)) and len(plain) - digits > 0 and len(word) >= 4


def _path(word: str) -> bool:
    """A file of a known kind, or a path of two parts and more; not `and/or`, not a date."""
    stem, dot, ending = word.rpartition(".")
    ending = ending.split(":")[0]
    if dot and ending in EXTENSIONS.split() and stem[-1:].isalnum():
        return True
    parts = [p for p in word.strip("~").split("/") if p]
    letters = [p for p in parts if any(c.isalpha() for c in p)]
    return len(letters) >= 2 and (word[0] in "/~." or len(letters) > 2 or word.endswith("/"))


def _name(word: str) -> bool:
    """snake_case, --flags, calls(), CamelCase of three humps, exceptions."""
    inner = word.strip("_-")
    if word.startswith("--") and inner[:1].isalpha():
        return True
    left, mark, right = inner.partition("_")
    if mark and left[-1:].isalnum() and right[:1].isalnum():
        return True
    if _humps(inner) >= 3 or (_humps(inner) == 2 and inner.endswith(("Error", "Exception"))):
        return True
    return word.endswith("()") or (word[0] == "#" and word[1:].isdigit() and len(word) > 2)


def _hint(word: str) -> bool:
    """Two humps, bookings.state, runner-2, scratch2, 61.2."""
    digits = word.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if digits.isdigit() and digits != word:
        return True
    if word.count(".") in (1, 2) and word.replace(".", "").isdigit():
        return True
    if _humps(word) == 2:
        return True
    left, dot, right = word.partition(".")
    if dot and left.isidentifier() and right.isidentifier() and min(len(left), len(right)) > 2 and word.islower():
        return True
    stem, dash, last = word.rpartition("-")
    return bool(dash) and len(last) <= 2 and stem[:1].isalpha() and last.isalnum() and len(stem) > 2


def _humps(word: str) -> int:
    """How many words a name in camel case is made of; 1 for any other."""
    if not word.isalnum():
        return 1
    return 1 + sum(word[i].isupper() and word[i - 1].islower() for i in range(1, len(word)))
