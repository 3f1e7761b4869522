"""basic-memory's project: pages with front matter, observations `- [category] text #tag (context)`, and relations.

Observations become entries; all else of a page, its relations too, stays a page under its own path.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pipimem.importers.memories.pages import entries, sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.importers.memories import Item
    from pipimem.importers.memories.pages import Folder, Page

OBSERVATION = re.compile(r"\[([^\]\n()\[]{2,40})\][ \t]+(?=\S)")
KINDS = {
    "decision": "decision", "决定": "decision", "决策": "decision", "preference": "preference", "偏好": "preference",
    "requirement": "constraint", "constraint": "constraint", "rule": "constraint", "约束": "constraint",
    "todo": "open-loop", "question": "open-loop", "issue": "open-loop", "待办": "open-loop", "lesson": "lesson",
    "insight": "insight", "problem": "failure", "failure": "failure", "convention": "convention", "教训": "lesson",
    "fact": "fact", "事实": "fact",
}  # fmt: skip
OWN_SECTIONS = ("observations", "观察")


def read(folder: Folder) -> Iterator[Item]:
    """The observations and pages of a project's folder."""
    names = folder.listed()
    if not names:
        raise folder.wrong("page of basic-memory")
    for name in names:
        page = folder.page(name)
        if page:
            yield from _observations(page)
            yield from sections(page, name.removesuffix(".md"), OWN_SECTIONS)


def _observations(page: Page) -> Iterator[Item]:
    """The list items that begin with a category; those of the section for them also without one."""
    own = {s.title for s in page.parsed.sections if s.title.lower() in OWN_SECTIONS}
    title = str(page.front.get("title") or os.path.basename(page.path).removesuffix(".md"))
    for item in entries(page):
        found = OBSERVATION.match(item.text)
        if item.heading not in own or item.text.startswith("[["):
            continue
        category = found[1].strip().lower() if found else ""
        kind = KINDS.get(category, "")
        text = item.text[found.end() :] if found and kind else item.text
        yield replace(item, text=text, kind=kind, heading=title)
