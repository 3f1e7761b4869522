"""minimem's folder: MEMORY.md or memory.md, and pages in `memory/`, some with knowledge front matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipimem.errors import Usage
from pipimem.importers.memories.openclaw import agent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.importers.memories import Item
    from pipimem.importers.memories.pages import Folder


def read(folder: Folder) -> Iterator[Item]:
    """The items of the folder; the front matter of knowledge pages is kept as it is."""
    both = {"MEMORY.md", "memory.md"} <= set(folder.listed(deep=False))
    if both:
        raise Usage("The folder has both MEMORY.md and memory.md, which minimem refuses, too.", "Keep one of them.")
    if not any(folder.has(name) for name in ("MEMORY.md", "memory.md", "memory")):
        raise folder.wrong("memory of minimem (MEMORY.md or memory/)")
    yield from agent(folder, "")
