"""OpenClaw's workspace of an agent: MEMORY.md, USER.md, day notes in `memory/`, and a HISTORY.md where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipimem.importers.memories.pages import entries, history, sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.importers.memories import Item
    from pipimem.importers.memories.pages import Folder

IDENTITY = ("SOUL.md", "AGENTS.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md", "STANDING.md")
FILES = (("MEMORY.md", "memory", ""), ("memory.md", "memory", ""), ("USER.md", "user", "preference"))


def read(folder: Folder) -> Iterator[Item]:
    """The items of a workspace, or of the one in the host's home."""
    base = "workspace/" if folder.has("workspace", "MEMORY.md") or folder.has("workspace", "memory") else ""
    if not any(folder.has(base + name) for name in ("MEMORY.md", "memory.md", "USER.md", "memory", "HISTORY.md")):
        raise folder.wrong("workspace of OpenClaw (MEMORY.md, USER.md or memory/)")
    yield from agent(folder, base)


def agent(folder: Folder, base: str) -> Iterator[Item]:
    """The files that every system of this family has."""
    names = folder.listed(base, deep=False)
    for name, layer, kind in FILES:
        page = folder.page(base + name) if base + name in names else None
        if page:
            yield from entries(page, layer, kind)
    for name in names:
        if name.removeprefix(base) in IDENTITY:
            folder.leave(name, "identity and rules are a person's to copy")
    for name in [n for n in (base + "HISTORY.md",) if n in names]:
        page = folder.page(name)
        yield from history(page) if page else ()
    for name in folder.listed(base + "memory") if folder.has(base + "memory") else ():
        inside = name.removeprefix(base + "memory/")
        page = folder.page(name)
        if page is None:
            continue
        if inside == "MEMORY.md":
            yield from entries(page)
        elif inside == "HISTORY.md":
            yield from history(page)
        else:
            yield from sections(page, inside.removesuffix(".md"))
