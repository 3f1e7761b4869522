"""Whether a written entry says what a label says: its content covered both ways, its numbers and names equal."""

from __future__ import annotations

import itertools
import re

from pipimem.index.words import fold

LABEL_COVERED, ENTRY_COVERED = 0.8, 0.5
SAID_ON = re.compile(r"\s*[(（](?:said )?\d{4}-\d\d-\d\d(?: ?说)?[)）]$")
NUMBER = re.compile(r"\d+(?:[.:/-]\d+)*")
LATIN = re.compile(r"[A-Za-z][\w.@/-]*\w|[A-Za-z]")
NOT = re.compile(r"\b(?:not|never|no|nobody|none|without|cannot)\b|n['’]t\b|[不没别禁未勿]", re.IGNORECASE)
COMMON = frozenset(
    "a an the and or but is are was were be been it its that this these those to of in on at for with by from as so "
    "then now we i you he she they our my your has have had will do does did too also ok okay".split()
)


def says(entry: str, label: str) -> bool:
    """Whether `entry` says `label`: 0.8 of the label's units are in it, half of its own are in the label, numbers and
    names are the same and in the same order, and both or neither deny something.

    A trailing "(said DATE)" does not count: it dates the words, it is none of them.
    """
    entry = SAID_ON.sub("", entry)
    if NUMBER.findall(fold(entry)) != NUMBER.findall(fold(label)):
        return False
    if bool(NOT.search(entry)) != bool(NOT.search(label)) or not _in_order(names(label), names(entry)):
        return False
    mine, theirs = units(entry), units(label)
    shared = len(mine & theirs)
    return shared >= LABEL_COVERED * len(theirs) and shared >= ENTRY_COVERED * len(mine)


def units(text: str) -> set[str]:
    """Folded Latin words without the common ones, and pairs of Han characters that stand together."""
    folded = fold(text)
    pairs = {a + b for a, b in itertools.pairwise(folded) if a >= "\u3400" and b >= "\u3400" and (a + b).isalpha()}
    return pairs | {w for w in re.findall(r"[a-z][a-z0-9_]*", folded) if w not in COMMON}


def names(text: str) -> list[str]:
    """Identifiers and names, folded, in order: Latin words in Chinese text, words with a capital, digit or joiner."""
    chinese = any("\u3400" <= c <= "\u9fff" for c in text)
    found = []
    for match in LATIN.finditer(text):
        word = match[0]
        inner = word[1:] if match.start() == 0 else word
        if chinese or any(c.isupper() or c.isdigit() or c in "_./@-" for c in inner):
            found.append(fold(word))
    return [w for w in found if w not in COMMON and w not in ("i", "i'm")]


def _in_order(wanted: list[str], given: list[str]) -> bool:
    """Whether `wanted` is a subsequence of `given`."""
    rest = iter(given)
    return all(any(name == other for other in rest) for name in wanted)
