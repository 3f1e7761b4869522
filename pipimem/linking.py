"""What is wrong with how documents name each other: links that lead nowhere, ids that stand twice, odd front matter.

`checks.py` reads the files and reports; a link to a thing that has no page is none of this: things need none.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from pipimem import knowledge
from pipimem.front import read_front
from pipimem.index.links import Mention, canonical, lines_of_front, mentions, names
from pipimem.text import printable, unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.knowledge import Knowledge
    from pipimem.markdown import Parsed
    from pipimem.workspace import Document

    Said = tuple[str, int, bool, str]
    """Path, line, whether it is an error, what is wrong."""


class Linking:
    """Takes the documents one by one, then says what is wrong with them all."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._titles: dict[str, list[set[str]]] = {}
        self._things: set[str] = set()
        self._ids: dict[str, list[tuple[str, int, str]]] = {}
        self._links: list[tuple[str, Mention]] = []
        self._odd: list[Said] = []

    def take(self, document: Document, parsed: Parsed) -> None:
        """Notes what a document is called, what it names, and what is odd in its front matter."""
        if document.layer == "archive":
            return
        known = knowledge.read(read_front(parsed.data)[0])
        titles = {form for section in parsed.sections for form in _forms(section.title)}
        for name, _ in names(document, known):
            self._titles.setdefault(canonical(name), []).append(titles)
        for entry in parsed.entries:
            if entry.id:
                self._things.add(canonical(entry.id))
        links = mentions(document, parsed, known)
        self._links += [(document.path, link) for link in links]
        self._things.update(canonical(link.target) for link in links if link.form == "tag")
        if known is not None:
            self._take_front(document, parsed, known)

    def _take_front(self, document: Document, parsed: Parsed, known: Knowledge) -> None:
        lines = lines_of_front(parsed)
        self._things.update(canonical(thing) for thing in (*known.entities, *known.tags))
        if document.layer != "note":
            return
        for key, why in known.problems:
            self._odd.append((document.path, lines.of(key), False, why))
        if known.id:
            place = document.path, lines.of("id"), document.channel
            self._ids.setdefault(canonical(known.id), []).append(place)

    def wrong(self) -> Iterator[Said]:
        """Everything that is wrong, in no order."""
        yield from self._odd
        for identity, places in self._ids.items():
            for path, line, channel in places if len(places) > 1 else ():
                others = [place for place in places if place[:2] != (path, line)]
                together = any(channel in ("", other) or other == "" for _, _, other in others)
                shown = ", ".join(f"{p}:{n}" for p, n, _ in others)
                yield path, line, together, f"the id '{printable(identity)}' stands also in {shown}"
        for path, link in self._links:
            if why := self._broken(link):
                yield path, link.line, False, why

    def _broken(self, link: Mention) -> str:
        """Why a link leads nowhere; "" when it does not, or is to a thing that needs no page."""
        name = canonical(link.target)
        shown = printable(link.target, 80)
        pages = self._titles.get(name)
        if pages is not None:
            wanted = canonical(link.fragment.rpartition("#")[2])
            missing = wanted and wanted[0] != "^" and not any(wanted in titles for titles in pages)
            return f"'{shown}' has no heading '{printable(link.fragment, 80)}'" if missing else ""
        if link.form == "path":
            there = any(os.path.lexists(os.path.join(self._root, p)) for p in (link.target, unquote(link.target)))
            return "" if there else f"a link to '{shown}', which is not there"
        page = link.kind == "note" and (link.form == "wiki" or link.relation not in ("mentions", "supersedes"))
        if not page or link.form not in ("wiki", "front") or name in self._things:
            return ""
        return f"a link to '{shown}', and nothing is called that"


def _forms(title: str) -> Iterator[str]:
    """How a link may name a heading: by its text, or by the anchor that sites make of it."""
    folded = canonical(title)
    yield folded
    yield re.sub(r"[^\w\- ]", "", folded).replace(" ", "-")
