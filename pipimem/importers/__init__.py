"""Foreign transcripts → `Transcript`. Each format is one module, found by the entry point group `pipimem.importers`.

An importer has `detects(path, head)` (the file's first 64 kB) and `read(path)`; it opens read-only, counts what it
skips by reason, and never fails on a bad line.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Protocol

from pipimem.errors import Unreadable, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.transcript import Transcript

GROUP = "pipimem.importers"
HEAD = 64 * 1024
BROKEN = ("not JSON", "half a line", "too long", "not a record", "not a message")
LINE_LIMIT = 8 * 1024 * 1024


class Importer(Protocol):
    """What an importer module provides."""

    def detects(self, path: str, head: bytes) -> bool:
        """Whether the file, by its first 64 kB, is of this format."""

    def read(self, path: str) -> Transcript:
        """The conversation in the file."""


def load(path: str) -> Transcript:
    """The transcript in the file `path`, its format found by looking at it.

    Raises `Unreadable` for a file that cannot be read and `Usage` for one no importer knows.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise Unreadable(f"The transcript '{path}' cannot be read: {reason}.", "Check the path.") from None
    for importer in importers():
        if importer.detects(path, head):
            return importer.read(path)
    raise Usage(
        f"The transcript '{os.path.basename(path)}' is of no known format.",
        "Give a Claude Code session or JSON lines with role and content.",
    )


def importers() -> list[Importer]:
    """Every installed importer, the particular formats before the plain one."""
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=GROUP), key=lambda e: (e.name == "jsonl", e.name))
    return [point.load() for point in found]


def lines(path: str, skipped: dict[str, int]) -> Iterator[tuple[int, object]]:
    """Each line's number and JSON value, streamed; bad, cut and over-long lines are counted in `skipped`."""
    import json

    with open(path, "rb") as file:
        number = 0
        while raw := file.readline(LINE_LIMIT + 1):
            number += 1
            if len(raw) > LINE_LIMIT:
                count(skipped, "too long")
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(LINE_LIMIT)
                continue
            text = raw.removeprefix(b"\xef\xbb\xbf").strip()
            if not text:
                continue
            try:
                yield number, json.loads(text.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                count(skipped, "not JSON" if raw.endswith(b"\n") else "half a line")


def count(skipped: dict[str, int], reason: str) -> None:
    """One more thing skipped for `reason`."""
    skipped[reason] = skipped.get(reason, 0) + 1
