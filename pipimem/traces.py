"""The decisions of past recalls, kept so that any of them can be explained: what was given, what was not, and why.

One line each in `.pipimem/state/traces.jsonl`, the newest last: references, reasons and numbers, and the words that
were asked for with secrets taken out; no text of memory. Keeping one never stops a recall.
"""

from __future__ import annotations

import json
import os

from pipimem.files import append_private, write_private
from pipimem.text import decode, digest, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pipimem.index import Hit

    Row = dict[str, Any]

LIMIT = 512 * 1024
"""Bytes of the record; a longer one loses its older half."""
HINTS = ("pass", "pwd", "key", "token", "secret", "auth", "bearer", "cred", "密", "口令", "令牌", "@", "begin")


def keep(path: str, row: Mapping[str, Any]) -> bool:
    """Adds one line; whether it could be written."""
    try:
        append_private(path, json.dumps(row, ensure_ascii=False))
        if os.path.getsize(path) > LIMIT:
            lines = _lines(path)
            write_private(path, b"".join(lines[len(lines) // 2 :]))
    except OSError:
        return False
    return True


def rows(path: str) -> list[Row]:
    """Every whole line, oldest first."""
    found = []
    for line in _lines(path):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            found.append(row)
    return found


def forget(path: str, meant: Callable[[str], bool], *, dry_run: bool = False) -> int:
    """Takes out every line that is `meant`; how many those are."""
    lines = _lines(path)
    kept = [line for line in lines if not meant(decode(line))]
    if len(kept) < len(lines) and not dry_run:
        write_private(path, b"".join(kept))
    return len(lines) - len(kept)


def given(path: str, session: str) -> frozenset[str]:
    """What a session was given since its last compaction, as `mark` names it."""
    found: set[str] = set()
    for row in rows(path):
        if row.get("session") == session:
            found = set() if row.get("cleared") else found | set(row.get("given", ()))
    return frozenset(found)


def recalled(path: str) -> frozenset[str]:
    """The references of everything that a kept recall gave."""
    return frozenset(str(ref) for row in rows(path) for ref in row.get("packed", ()))


def mark(hit: Hit) -> str:
    """A passage as it stood when it was given: its reference and a digest of its text, which changes with it."""
    return f"{hit.ref}:{digest(encode(hit.text), 4)}"


def without_secrets(texts: Iterable[str], redact: Callable[[str], str]) -> list[str]:
    """The texts with secrets taken out. What cannot hold one is not scanned: that would cost as much as the recall."""
    return [redact(text) if _may_hold_one(text) else text for text in texts]


def _may_hold_one(text: str) -> bool:
    folded = text.lower()
    if any(hint in folded for hint in HINTS):
        return True
    return any(
        len(word) >= 8 and not word.isalpha() and any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
        for word in folded.split()
    )


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read().splitlines(keepends=True)
    except OSError:
        return []
