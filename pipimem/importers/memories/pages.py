"""A foreign folder of Markdown, read-only: its files, and what a page holds as entries and as sections."""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from pipimem import front, markdown, safety
from pipimem.errors import Usage
from pipimem.files import read_regular, reason
from pipimem.importers.memories import Item
from pipimem.text import decode, printable, quote, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMENT = re.compile(r"[ \t]*<!--(.*?)-->[ \t]*\Z", re.DOTALL)
DAY = re.compile(r"(?<!\d)(20\d\d)[-/.年](\d{1,2})[-/.月](\d{1,2})(?!\d)")
LISTED = re.compile(r"\A[-*+][ \t]+(?=[^\n]*\Z)")
TASK = re.compile(r"\[([ xX])\][ \t]+")
PRIVATE = "[redacted:private]"


class Folder:
    """A folder of theirs. `left` names what is passed over: (place, reason), in order. `only` is the one file asked."""

    def __init__(self, root: str, only: str = "") -> None:
        self.root = root
        self.only = only
        self.left: list[tuple[str, str]] = []

    def leave(self, place: str, why: str) -> None:
        """Names something that is not taken."""
        self.left.append((place, why))

    def has(self, *parts: str) -> bool:
        """Whether there is such a file or folder."""
        return os.path.exists(os.path.join(self.root, *parts))

    def listed(self, folder: str = "", *, deep: bool = True) -> list[str]:
        """The Markdown files below a folder by path, relative to the root; hidden ones and links are not among them."""
        base = os.path.join(self.root, folder) if folder else self.root
        found = []
        for here, folders, files in os.walk(base):
            folders[:] = sorted(f for f in folders if not f.startswith(".")) if deep else []
            found += [os.path.relpath(os.path.join(here, f), self.root) for f in files if _is_page(here, f)]
        return sorted(f for f in found if not self.only or f == self.only)

    def others(self, folder: str, ending: str) -> list[str]:
        """The files of a folder whose names end so, relative to the root."""
        try:
            names = os.listdir(os.path.join(self.root, folder))
        except OSError:
            return []
        return [f"{folder}/{name}" for name in sorted(names) if name.endswith(ending)]

    def page(self, path: str) -> Page | None:
        """One page, None where it is not there or cannot be read (then it is named)."""
        full = os.path.join(self.root, path)
        if not os.path.lexists(full) or (self.only and path != self.only):
            return None
        if os.path.islink(full):
            self.leave(path, "it is a link")
            return None
        try:
            data, changed = read_regular(full), os.stat(full).st_mtime
        except OSError as error:
            self.leave(path, f"it cannot be read: {reason(error, reading=True)}")
            return None
        if why := markdown.damage(data):
            self.leave(path, f"it {why}")
            return None
        return Page(path, data, datetime.fromtimestamp(changed, UTC).date())

    def wrong(self, what: str) -> Usage:
        """That the folder is not of the format that was named."""
        return Usage(f"'{printable(self.root)}' holds no {what}.", "Check the format's name and the path.")


def _is_page(folder: str, name: str) -> bool:
    return name.endswith(".md") and not name.startswith(".") and not os.path.islink(os.path.join(folder, name))


class Page:
    """One Markdown file of theirs: `front` its front matter, `day` the day it speaks of, else of its last change.

    What is marked as private is not in `data`; lines keep their numbers.
    """

    def __init__(self, path: str, data: bytes, changed: date) -> None:
        self.path = path
        self.data = safety.withheld(data)
        self.parsed = markdown.parse(self.data)
        self.front: dict[str, Any] = front.read_front(self.data)[0]
        self.day = self._said("updated", "modified", "created", "date") or day_of(os.path.basename(path))
        self.day = self.day or changed.isoformat()

    def _said(self, *keys: str) -> str:
        return next((day for key in keys if (day := day_of(str(self.front.get(key) or "")))), "")

    def place(self, line: int) -> str:
        """Where a line of it is, without characters that end a reference."""
        return f"{quote(self.path)}#L{line}"

    @property
    def head(self) -> str:
        """The front matter with both fences, "" without."""
        start, end = self.parsed.front
        return scrub(decode(self.data[start:end]))


def day_of(text: str) -> str:
    """The first day in a text, ISO; "" without."""
    for found in DAY.finditer(text):
        try:
            return date(*map(int, found.groups())).isoformat()
        except ValueError:
            continue
    return ""


def entries(page: Page, layer: str = "memory", kind: str = "") -> Iterator[Item]:
    """The page's list items, paragraphs and `§` blocks as items, with heading and day; comments alone are none."""
    for text, line, trail, heading in _pieces(page):
        text, facts = _without_comment(scrub(text))
        task = TASK.match(text)
        own = "open-loop" if task and task[1] == " " else facts.get("kind", "")
        text = text[task.end() :] if task else text
        said = facts.get("since", "") or (markdown.DATE.match(text) and day_of(text[:20])) or facts.get("day", "")
        days = [day_of(title) for title in reversed(trail)]
        day = said or next(filter(None, days), "") or page.day
        yield Item(text, page.place(line), layer, own or kind, day, "" if day_of(heading) else scrub(heading))


def _pieces(page: Page) -> Iterator[tuple[str, int, tuple[str, ...], str]]:
    """Text, line, trail, and the heading it stands under, "" for a page's title."""
    parsed = page.parsed
    if parsed.family == "separated":
        yield from ((LISTED.sub("", _raw(e.text, e)), e.line, (), "") for e in parsed.entries)
        return
    listed = {e.start: e for e in parsed.entries}
    for section in parsed.sections:
        where = section.trail, section.title if section.level > 1 else ""
        for block in parsed.blocks_of(section):
            if block.items:
                found = (listed[start] for start, _, _ in block.items)
                yield from ((_raw(e.text, e), e.line, *where) for e in found)
            elif block.kind not in ("html_block", "hr"):
                yield decode(parsed.data[block.start : block.end]).strip(), block.line, *where


def _raw(text: str, entry: markdown.Entry) -> str:
    """An entry's text; what pipimem's own comment says is put back, to be read with the comments of others."""
    facts = " ".join(f"{key}={value}" for key, value in entry.facts.items())
    return f"{text} <!-- {facts} -->" if facts else text


def _without_comment(text: str) -> tuple[str, dict[str, str]]:
    """A text without the comment that ends it, and what that says: kind, since, and the first day in it."""
    found = COMMENT.search(text)
    if not found:
        return text, {}
    facts = dict(re.findall(r"\b(kind|since)=([\w-]+)", found[1]))
    return text[: found.start()].rstrip(), {**facts, "day": day_of(found[1])}


def sections(page: Page, name: str, skip: Sequence[str] = ()) -> Iterator[Item]:
    """The page's sections as parts of the note `name`, each with its heading; a heading without text goes with the
    next one. `skip` are titles (in lower case) of sections that are read in another way.
    """
    lead = ""
    for section in page.parsed.sections:
        start = section.start if section.level else section.body
        text = scrub(decode(page.data[start : section.end])).lstrip("\ufeff").strip("\r\n")
        body = scrub(decode(page.data[section.body : section.end]))
        if section.title.lower() in skip:
            continue
        if not body.strip() or body.strip() == PRIVATE:
            lead += text + "\n\n" if section.level and not body.strip() else ""
            continue
        yield Item(lead + text, page.place(section.line), "note", "", page.day, section.title, name, page.head)
        lead = ""


def history(page: Page) -> Iterator[Item]:
    """The page's blocks as history: its sections under dated headings, else its entries by their days."""
    dated = [s for s in page.parsed.sections if s.level and day_of(s.title)]
    if not dated:
        for item in entries(page, "history"):
            yield Item(item.text, item.place, "history", "", item.day, "")
        return
    for section in dated:
        text = scrub(decode(page.data[section.body : section.end])).strip("\r\n")
        if text.strip():
            yield Item(text, page.place(section.line), "history", "", day_of(section.title), scrub(section.title))
