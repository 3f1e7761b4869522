"""What stands between a wanted operation and a file: pure checks, each with the reason people read.

A guard never edits a text; it lets an operation through, turns it into a proposal, or refuses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from pipimem import safety
from pipimem.index.words import fold
from pipimem.text import encode, keyed_digest

NEAR = 0.85
PLAIN = re.compile(r"[\W_]+")
NUMBER = re.compile(r"\d+(?:[.:/-]\d+)*")


def plain(text: str) -> str:
    """`text` for comparing: folded, without punctuation and spaces; equal means said again."""
    return PLAIN.sub("", fold(text))


def same(one: str, other: str) -> bool:
    """Whether two entries say the same: equal when plain, or nearly so with the same numbers.

    Nearly: character triples shared by at least 0.85 of their union. A different number is a different fact.
    """
    a, b = plain(one), plain(other)
    if a == b:
        return True
    if NUMBER.findall(one) != NUMBER.findall(other) or min(len(a), len(b)) < 8:
        return False
    left, right = _triples(a), _triples(b)
    return len(left & right) >= NEAR * len(left | right)


def _triples(text: str) -> set[str]:
    return {text[i : i + 3] for i in range(len(text) - 2)}


def duplicate(text: str, others: Iterable[str]) -> bool:
    """Whether one of `others` says the same."""
    return any(same(text, other) for other in others)


def unsafe(text: str, patterns: Sequence[str] = (), allow: Sequence[str] = ()) -> str:
    """Why `text` may not be written by a machine, "" when it may."""
    verdict = safety.verdict(text, patterns, allow)
    reasons = {
        "secret": "it holds a secret",
        "hidden": "it holds hidden characters",
        "instruction": "it reads like an order to the assistant",
    }
    return ", ".join(reasons[v] for v in verdict.split(",") if v)


def tombstone(key: bytes, identity: str, text: str, sources: Sequence[str]) -> str:
    """The line that remembers a forgotten entry without its text: id, keyed digest, source messages."""
    row = {"id": identity, "digest": keyed_digest(key, encode(plain(text))), "sources": list(sources)}
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def forgotten(lines: Iterable[str], key: bytes, text: str, sources: Sequence[str]) -> bool:
    """Whether a candidate was forgotten before: the same words, or the same source message."""
    mark = keyed_digest(key, encode(plain(text))) if key else ""
    for line in lines:
        try:
            row = json.loads(line)
            if (mark and row["digest"] == mark) or set(row["sources"]) & set(sources):
                return True
        except (ValueError, KeyError, TypeError):
            continue
    return False
