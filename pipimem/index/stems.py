"""English words → stems: Porter's algorithm of 1980, letter for letter as SQLite's own `porter` tokenizer has it.

Stems stand in the index, so that what ranks can count them without asking SQLite.
"""

from __future__ import annotations

from unicodedata import normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 64
"""Letters from which on a word is left as it is."""

_REMEMBERED = 50_000
# For each last letter but one the endings of a step and what becomes of them, the longer of two that fit first.
_SECOND = {
    "a": (("ational", "ate"), ("tional", "tion")),
    "c": (("enci", "ence"), ("anci", "ance")),
    "e": (("izer", "ize"),),
    "g": (("logi", "log"),),
    "l": (("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")),
    "o": (("ization", "ize"), ("ation", "ate"), ("ator", "ate")),
    "s": (("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    "t": (("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
}
_THIRD = {
    "a": (("ical", "ic"),),
    "s": (("ness", ""),),
    "t": (("icate", "ic"), ("iciti", "ic")),
    "u": (("ful", ""),),
    "v": (("ative", ""),),
    "z": (("alize", "al"),),
}
_FOURTH = {
    "a": ("al",),
    "c": ("ance", "ence"),
    "e": ("er",),
    "i": ("ic",),
    "l": ("able", "ible"),
    "n": ("ant", "ement", "ment", "ent"),
    "o": ("ion", "ou"),
    "s": ("ism",),
    "t": ("ate", "iti"),
    "u": ("ous",),
    "v": ("ive",),
    "z": ("ize",),
}
_known: dict[str, str] = {}


def stems(words: Sequence[str]) -> list[str]:
    """The stem of each word (folded); what is not English is its own stem."""
    found = list(map(_known.get, words))
    if None in found:
        return [known or _learn(word) for word, known in zip(words, found, strict=True)]
    return found  # type: ignore[return-value]


def _learn(word: str) -> str:
    if len(_known) > _REMEMBERED:
        _known.clear()
    bare = word if word.isascii() or word[0] >= "\u3000" else _without_accents(word)
    found = _known[word] = stem(bare) if bare.isascii() and 2 < len(bare) <= LONGEST else bare
    return found


def _without_accents(word: str) -> str:
    """Latin letters without what stands above and below them, as SQLite's tokenizer takes them."""
    return "".join(normalize("NFD", c)[0] if c < "\u0250" or "\u1e00" <= c < "\u1f00" else c for c in word)


def stem(word: str) -> str:
    """The stem of one word of 3 to 64 ASCII characters."""
    word = _third_person(word)
    if word[-1] in "dg":
        word = _past(word)
    if word[-1] == "y" and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(_replaced(word, _SECOND), _THIRD)
    return _tidied(_shortened(word))


def _third_person(word: str) -> str:
    if word[-1] != "s" or word[-2] == "s":
        return word
    two = word[-2] == "e" and ((len(word) > 4 and word[-4:-2] == "ss") or (len(word) > 3 and word[-3] == "i"))
    return word[:-2] if two else word[:-1]


def _past(word: str) -> str:
    if word.endswith("eed") and len(word) > 3:
        return word[:-1] if _measure(word[:-3]) > 0 else word
    bare = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not bare or not _has_vowel(bare):
        return word
    if len(bare) > 2 and bare.endswith(("at", "bl", "iz")):
        return bare + "e"
    last = bare[-1]
    if len(bare) > 1 and last not in "aeioulsz" and last == bare[-2]:
        return bare[:-1]
    return bare + "e" if _measure(bare) == 1 and _is_short(bare) else bare


def _replaced(word: str, step: dict[str, tuple[tuple[str, str], ...]]) -> str:
    for ending, other in step.get(word[-2:-1], ()):
        if len(word) > len(ending) and word.endswith(ending):
            bare = word[: -len(ending)]
            return bare + other if _measure(bare) > 0 else word
    return word


def _shortened(word: str) -> str:
    for ending in _FOURTH.get(word[-2:-1], ()):
        if len(word) > len(ending) and word.endswith(ending):
            bare = word[: -len(ending)]
            good = _measure(bare) > 1 and (ending != "ion" or bare[-1] in "st")
            return bare if good else word
    return word


def _tidied(word: str) -> str:
    if word[-1] == "e":
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    if word[-2:] == "ll" and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _kinds(word: str) -> str:
    """A `v` for each vowel, a `c` for each consonant; `y` is a vowel after a consonant."""
    kinds, before = [], "v"
    for letter in word:
        before = "v" if letter in "aeiou" or (letter == "y" and before == "c") else "c"
        kinds.append(before)
    return "".join(kinds)


def _measure(word: str) -> int:
    """How often a consonant follows a vowel."""
    return _kinds(word).count("vc")


def _has_vowel(word: str) -> bool:
    return any(letter in "aeiou" or (letter == "y" and at > 0) for at, letter in enumerate(word))


def _is_short(word: str) -> bool:
    """Whether it ends in consonant, vowel and another consonant than w, x or y."""
    return word[-1:] not in ("w", "x", "y") and _kinds(word)[-3:] == "cvc"
