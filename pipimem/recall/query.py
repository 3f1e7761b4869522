"""What is looked for: a sentence without the words that carry no subject, an error without what varies."""

from __future__ import annotations

from pipimem.recall import cues
from pipimem.recall.signature import EDGES, is_error, signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Tables made when first needed, each filled in one step, the one that is asked for last: threads may meet here.
_latin: set[str] = set()
_han: list[str] = []
_short: dict[str, str] = {}
_english: dict[str, str] = {}
_chinese: dict[str, str] = {}


def telling(part: str) -> str:
    """`part` as a query: without filler words, an error as its signature; `part` itself when nothing else is left."""
    text = signature(part) if is_error(part) else part
    if not text.isascii():
        text = _without_fillers(text)
    words = [word for word in text.split() if telling_word(word)]
    return " ".join(words) if any(c.isalnum() for word in words for c in word) else part


def _without_fillers(text: str) -> str:
    if not _han:
        # Single characters are parts of words here (会议, 前端); alone the index does without them.
        _han.extend(sorted((p for p in cues.FILLER[1].split() if len(p) > 1), key=len, reverse=True))
    for phrase in _han:
        if phrase in text:
            text = text.replace(phrase, " ")
    return text


def telling_word(word: str) -> str:
    """`word` when it may say something of a subject; "" for a filler, a number of up to two digits, the time of day."""
    if not _latin:
        _latin.update(cues.FILLER[0].split())
    bare = _bare(word)
    if bare in _latin or (bare.replace(":", "").isdigit() and (len(bare) < 3 or bare[-3] == ":")):
        return ""
    return word


def spelled_out(query: str) -> str:
    """`query` with its short forms (prod, db, k8s) in full; "" when it has none."""
    if not _short:
        _short.update(dict(_pairs(cues.SHORT)))
    words = query.split()
    full = [_short.get(_bare(word), word) for word in words]
    return " ".join(full) if full != words else ""


def translated(query: str) -> str:
    """The work words of `query` in the other language, Chinese or English; "" when it has none that are known."""
    if not _english:
        pairs = dict(_pairs(cues.GLOSSARY))
        _chinese.update({chinese: english for english, chinese in reversed(pairs.items())})
        _english.update(pairs)
    words = [_english.get(word) or _english.get(word.removesuffix("s"), "") for word in map(_bare, query.split())]
    han = [] if query.isascii() else [english for chinese, english in _chinese.items() if chinese in query]
    return " ".join(dict.fromkeys(word for word in (*words, *han) if word))


def subjects(latin: Sequence[str], text: str) -> list[str]:
    """What the tasks named in `text` (its Latin runs in `latin`) are called where their preferences are noted."""
    said = frozenset(latin)
    return [
        words
        for english, han, words in cues.SUBJECTS
        if not said.isdisjoint(english.split("|")) or (not text.isascii() and any(p in text for p in han.split()))
    ]


def _bare(word: str) -> str:
    return word.strip(EDGES).rstrip(".").lower().replace("’", "'")


def _pairs(table: str) -> Iterator[tuple[str, str]]:
    for pair in table.split("|"):
        short, _, full = pair.partition(" ")
        yield short, full
