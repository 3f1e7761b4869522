"""nanobot's workspace: `memory/MEMORY.md`, USER.md, and what happened as `memory/history.jsonl` or HISTORY.md."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipimem.importers.memories import Item
from pipimem.importers.memories.openclaw import agent
from pipimem.importers.memories.pages import day_of
from pipimem.importers.reading import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.importers.memories.pages import Folder

LOG = "memory/history.jsonl"


def read(folder: Folder) -> Iterator[Item]:
    """The items of a workspace, or of the one in the host's home."""
    base = "workspace/" if folder.has("workspace", "memory") else ""
    if not folder.only and not folder.has(base + "memory") and not folder.has(base + "MEMORY.md"):
        raise folder.wrong("workspace of nanobot (memory/MEMORY.md)")
    yield from agent(folder, base)
    if folder.has(base + LOG) and not folder.only:
        yield from _log(folder, base + LOG)


def _log(folder: Folder, path: str) -> Iterator[Item]:
    """The rows {cursor, timestamp, content}; broken ones are named."""
    full = os.path.join(folder.root, path)
    if os.path.islink(full):
        folder.leave(path, "it is a link")
        return
    skipped: dict[str, int] = {}
    for number, _, row in Lines(full, skipped):
        content = row.get("content") if isinstance(row, dict) else None
        if not isinstance(content, str) or not content.strip():
            folder.leave(f"{path}#L{number}", "it has no text")
            continue
        yield Item(content.strip(), f"{path}#L{number}", "history", "", day_of(str(row.get("timestamp") or "")))
    for why, count in skipped.items():
        for _ in range(count):
            folder.leave(path, f"a line is {why}" if why != "half a line" else "the last line is cut off")
