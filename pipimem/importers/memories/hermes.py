"""Hermes: `memories/MEMORY.md` and `USER.md`, entries parted by lines of `§`; also the `failures.md` of its Pi port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipimem.importers.memories.pages import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.importers.memories import Item
    from pipimem.importers.memories.pages import Folder

FILES = (("MEMORY.md", "memory", ""), ("USER.md", "user", "preference"), ("failures.md", "memory", "failure"))


def read(folder: Folder) -> Iterator[Item]:
    """The entries of its home, its `memories` folder, or one file of it."""
    base = "memories/" if folder.has("memories") and not folder.only else ""
    if not any(folder.has(base + name) for name, _, _ in FILES):
        raise folder.wrong("memory of Hermes (MEMORY.md or USER.md, in 'memories' or here)")
    for name, layer, kind in FILES:
        page = folder.page(base + name)
        if page:
            yield from entries(page, layer, kind)
    for name in folder.others("pending/memory", ".json"):
        folder.leave(name, "it waits for approval there")
