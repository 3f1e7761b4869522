"""Memories that other systems wrote → items. Each format is one module with `read`; what an item becomes here is
adopting.py's.

A format only reads: nothing of theirs is changed, links are not followed, and what is passed over is named with the
reason. Formats of other packages are found by the entry point group `pipimem.memories`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from pipimem.errors import Unreadable, Usage
from pipimem.text import nearest, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.importers.memories.pages import Folder

GROUP = "pipimem.memories"
OWN = {
    "basic-memory": "basic_memory",
    "claude": "claude",
    "hermes": "hermes",
    "minimem": "minimem",
    "nanobot": "nanobot",
    "openclaw": "openclaw",
}
LAYERS = ("memory", "user", "history", "note")


@dataclass(frozen=True, slots=True)
class Item:
    """One remembered thing of theirs. `place` is file and line there (`memories/MEMORY.md#L12`).

    `layer`: memory and user become entries, history a block of HISTORY, note a part of the page `page` (a path without
    ending, below `memory/`). `day` is ISO or "", `heading` the section it stood under, for history its title; `front`
    the page's front matter with both fences.
    """

    text: str
    place: str
    layer: str = "memory"
    kind: str = ""
    day: str = ""
    heading: str = ""
    page: str = ""
    front: str = ""


class Format(Protocol):
    """What the module of a format provides."""

    def read(self, folder: Folder) -> Iterator[Item]:
        """The items in their order; what is left out is told to `folder.leave`. Raises `Usage` for another format."""


def names() -> list[str]:
    """Every known format."""
    from importlib.metadata import entry_points

    return sorted({*OWN, *(point.name for point in entry_points(group=GROUP))})


def named(name: str) -> Format:
    """The format of that name. Raises `Usage` with the known names."""
    if name in OWN:
        own: Format = import_module(f"{__name__}.{OWN[name]}")
        return own
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        if point.name == name:
            loaded: Format = point.load()
            return loaded
    known = names()
    raise Usage(
        f"There is no format of memories '{printable(name)}'.", f"Known: {', '.join(nearest(name, known) or known)}."
    )


def opened(path: str) -> Folder:
    """The folder of theirs, or of the one file that is given. Raises `Unreadable`."""
    from pipimem.importers.memories.pages import Folder

    full = os.path.abspath(path)
    if os.path.isdir(full):
        if not os.access(full, os.R_OK | os.X_OK):
            raise Unreadable(f"The folder '{printable(path)}' cannot be read.", "Check its permissions.")
        return Folder(full)
    if not os.path.isfile(full):
        raise Unreadable(f"There is no folder or file '{printable(path)}'.", "Check the path.")
    return Folder(os.path.dirname(full), only=os.path.basename(full))
