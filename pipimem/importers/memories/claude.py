"""Claude Code's own memory of a project: MEMORY.md, an index, and topic files with name, description and type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipimem.importers.memories import Item
from pipimem.importers.memories.pages import PRIVATE, entries, sections
from pipimem.text import decode, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.importers.memories.pages import Folder, Page

POINTER = re.compile(r"\[[^\]\n]*\]\((?:\./)?([^)\s#]+\.md)\)")
SHORT = 1500  # characters up to which a topic is one entry; a longer one, or one with headings, is a page
TYPES = {"user": ("user", "preference"), "feedback": ("memory", "preference")}


def read(folder: Folder) -> Iterator[Item]:
    """The items of a project's memory folder, or of the project's folder among the host's."""
    if folder.has("projects"):
        raise folder.wrong("memory of one project: name a folder in 'projects'")
    base = "" if folder.has("MEMORY.md") or folder.only else "memory"
    names = folder.listed(base)
    if not names:
        raise folder.wrong("memory of Claude Code (MEMORY.md and topic files)")
    for name in names:
        page = folder.page(name)
        if page is None:
            continue
        inside = name.removeprefix("memory/") if base else name
        yield from _index(folder, page) if inside == "MEMORY.md" else _topic(page, inside.removesuffix(".md"))


def _index(folder: Folder, page: Page) -> Iterator[Item]:
    """What the index says besides naming topic files."""
    base = page.path.removesuffix("MEMORY.md")
    for item in entries(page):
        named = POINTER.match(item.text)
        if named and folder.has(base + named[1]):
            folder.leave(item.place, "it only names a topic file")
        else:
            yield item


def _topic(page: Page, name: str) -> Iterator[Item]:
    text = scrub(decode(page.data[page.parsed.offsets[0] :])).strip()
    layer, kind = TYPES.get(str(page.front.get("type") or "").lower(), ("memory", ""))
    if any(section.level for section in page.parsed.sections) or len(text) > SHORT:
        yield from sections(page, name)
        return
    said = str(page.front.get("description") or "")
    line = page.parsed.line_of(page.parsed.offsets[0])
    yield Item(text if text and text != PRIVATE else said, page.place(line), layer, kind, page.day)
