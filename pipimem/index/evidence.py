"""How much of a question a passage really holds: an absolute number, the same in a workspace of ten passages and of a
million, which BM25 is not (a word that stands in half of ten passages is worth nothing to it).

Each word of the query that stands in the passage counts by how telling it is, less the more passages hold it.
"""

from __future__ import annotations

import re

from pipimem.index import words
from pipimem.index.stems import stems

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from pipimem.index.search import Hit

ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ed", "es", "ly", "er", "y", "s", "e")
WORD = r"\w+"
COMMON = 40
COUNTED = 1000
MOST_WORDS = 48


def weigh(db: sqlite3.Connection, query: words.Query, hits: Sequence[Hit]) -> None:
    """Sets each hit's `evidence` signal: the sum over matched query words of specificity / (1 + passages / 40)."""
    asked = [(word, beginning(word)) for word in query.words[:MOST_WORDS]]
    counts: dict[str, float] = {}
    for hit in hits:
        text = spread(" ".join([*hit.heading, hit.text]))
        total = 0.0
        for word, start in asked:
            if start in text:
                if word not in counts:
                    counts[word] = specificity(word) / (1 + _passages(db, word) / COMMON)
                total += counts[word]
        hit.signals["evidence"] = round(total, 3)


def spread(text: str) -> str:
    """`text` folded, words between single spaces, `-` and `_` gone as in the index's identifiers, then the same with
    them as spaces: what `beginning` is looked for in.
    """
    folded = words.fold(text)
    whole = folded.replace("-", "").replace("_", "")
    return f" {' '.join(re.findall(WORD, whole))} {' '.join(re.findall(WORD, folded.replace('_', ' ')))} "


def beginning(word: str) -> str:
    """What of a query's word must stand in a passage: a Latin word's stem at a word's start, a short one whole, a Han
    word anywhere. Rougher than the full text's own stemming, which ranks.
    """
    if not word.isascii():
        return word
    return f" {stem(word)}" if len(word) > 3 else f" {word} "


def specificity(word: str) -> float:
    """How telling a word is by its shape: identifiers and long words 3, short Latin words 1 or less; Han by length.

    The scale is pipiclaw's (3 with a digit or from four letters on, 0.8 below), with Han words of two characters at 2.
    """
    if any("\u3400" <= c <= "\u9fff" for c in word):
        return (0.3, 2.0, 3.0)[min(len(word), 3) - 1]
    if not word.isalpha() or len(word) > 3:
        return 3.0
    return 1.5 if len(word) == 3 else 0.8


def stem(word: str) -> str:
    """A rough stem: the word without its ending, three letters at least."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _passages(db: sqlite3.Connection, word: str) -> int:
    """In how many passages a word stands, counted to a thousand."""
    sql = "SELECT count(*) FROM (SELECT 1 FROM f WHERE f MATCH ? LIMIT ?)"
    match = f"{{heading body}} : {words.quoted(stems([word])[0])}"
    return int(db.execute(sql, (match, COUNTED)).fetchone()[0])
