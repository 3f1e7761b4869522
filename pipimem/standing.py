"""STANDING.md: instructions people pinned, which are in every context and so are few and short."""

from __future__ import annotations

from pipimem import markdown
from pipimem.errors import NotFound, Refused
from pipimem.index import outline
from pipimem.text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.markdown import Entry

PATH = "STANDING.md"
MOST, CHARACTERS = 20, 2000


class Standing:
    """What is pinned: `entries` in order, `fits` how many of them a context takes, `note` what is over ("" if none)."""

    __slots__ = ("characters", "entries", "fits", "note")

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        sizes = [len(e.text) for e in entries]
        self.characters = sum(sizes)
        self.fits = max(n for n in range(min(len(sizes), MOST) + 1) if sum(sizes[:n]) <= CHARACTERS)
        over = len(entries) - self.fits
        self.note = (
            f"{PATH} is over its limits ({plural(len(entries), 'item')} of {MOST}, {self.characters:,} characters of "
            f"{CHARACTERS:,}): the last {plural(over, 'item')} will not be given."
            if over
            else ""
        )

    def text(self) -> str:
        """The items that fit, as a list; "" when nothing is pinned."""
        return "".join("- " + e.text.replace("\n", "\n  ") + "\n" for e in self.entries[: self.fits])


def read(data: bytes) -> Standing:
    """What a STANDING file pins: its list items."""
    return Standing(outline.read(data).entries)


def check_room(standing: Standing, text: str) -> None:
    """Raises `Refused` when one more item with this text would be over a limit."""
    size = standing.characters + len(text)
    if len(standing.entries) >= MOST or size > CHARACTERS:
        raise Refused(
            f"'{PATH}' would have {plural(len(standing.entries) + 1, 'item')} and {size:,} characters; it holds {MOST} "
            f"and {CHARACTERS:,}.",
            "Remove one with 'pipimem pin remove N', or say it shorter.",
        )


def heading(data: bytes) -> str:
    """The section a new item goes to: the one that has the last item, else the file's first."""
    parsed = markdown.parse(data)
    trails = [e.trail for e in parsed.entries] or [s.trail for s in parsed.sections if s.level]
    return " > ".join(trails[-1] if parsed.entries else trails[0]) if trails else "Standing"


def numbered(standing: Standing, number: int) -> Entry:
    """The item of that number, from 1. Raises `NotFound`."""
    if not 1 <= number <= len(standing.entries):
        raise NotFound(f"'{PATH}' has no item {number}.", "See 'pipimem pin list'.")
    return standing.entries[number - 1]
