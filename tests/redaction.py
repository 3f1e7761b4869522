"""The evaluation set of redaction: texts with marked secrets, texts without, and the figures of a scanner on them.

`golden/redaction/dev-*` is for working on the rules; `held-*` and `second-*` were written before a scanner saw them.
"¦" parts a secret so that none stands whole in a file, ⟦...⟧ marks what must go; both are taken out here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HALVES = ("dev", "held", "second")
FOLDER = os.path.join(os.path.dirname(__file__), "golden", "redaction")


@dataclass(frozen=True)
class Row:
    """One text, the values in it that must go, and what must stay around them (as one pattern)."""

    category: str
    text: str
    values: tuple[str, ...] = ()
    around: str = ""


def rows(name: str) -> list[Row]:
    """The rows of one file of the set."""
    with open(os.path.join(FOLDER, name + ".txt"), encoding="utf-8") as file:
        blocks = re.split(r"(?m)^%% (.+)\n", file.read())[1:]
    return [_row(category, block.removesuffix("\n")) for category, block in zip(blocks[::2], blocks[1::2], strict=True)]


def _row(category: str, block: str) -> Row:
    parts = re.split("⟦(.*?)⟧", block.replace("¦", ""), flags=re.DOTALL)
    around = r"\[redacted:[a-z0-9-]+\]".join(map(re.escape, parts[::2]))
    return Row(category, "".join(parts), tuple(parts[1::2]), around)


@dataclass(frozen=True)
class Figures:
    """What a scanner did: precision, recall, and the rows it got wrong. A row counts as found when its values are
    gone; as an alarm when anything else went, too, in a text with secrets or without.
    """

    found: int
    missed: list[Row]
    alarms: list[Row]

    @property
    def recall(self) -> float:
        return self.found / (self.found + len(self.missed))

    @property
    def precision(self) -> float:
        return self.found / (self.found + len(self.alarms))


def measure(name: str, redact: Callable[[str], str]) -> Figures:
    """The figures of `redact` on one part of the set."""
    secret, plain = rows(name + "-secret"), rows(name + "-plain")
    missed = [row for row in secret if any(value in redact(row.text) for value in row.values)]
    alarms = [row for row in secret if row not in missed and not re.fullmatch(row.around, redact(row.text))]
    alarms += [row for row in plain if redact(row.text) != row.text]
    return Figures(len(secret) - len(missed), missed, alarms)


if __name__ == "__main__":
    import sys

    from pipimem.safety import redact

    for part in sys.argv[1:] or HALVES:
        figures = measure(part, redact)
        count = len(rows(part + "-secret")), len(rows(part + "-plain"))
        print(
            f"{part}: {count[0]} with, {count[1]} without; recall {figures.recall:.3f}, precision {figures.precision:.3f}"
        )
        for word, wrong in (("missed", figures.missed), ("alarm", figures.alarms)):
            for row in wrong:
                print(f"  {word} ({row.category}): {redact(row.text)!r}")
