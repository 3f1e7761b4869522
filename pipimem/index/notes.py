"""Search filters by what notes say of themselves: type, domain, and the things they are linked to.

As SQL over passages, and the same rule over one file where there is no index.
"""

from __future__ import annotations

from pipimem.index.fresh import marks
from pipimem.index.links import WHOLE, Said, canonical, plain_name
from pipimem.index.schema import CHANNEL_BITS, PASSAGE_BITS, key
from pipimem.index.words import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pipimem.index.search import Scope
    from pipimem.knowledge import Knowledge

SEPARATOR = "\x1f"
_CHANNEL = CHANNEL_BITS + PASSAGE_BITS


def conditions(scope: Scope) -> Iterator[tuple[str, list[Any]]]:
    """Each filter as a condition on passages `p` with its values."""
    for column, wanted in (("type", scope.types), ("domains", scope.domains)):
        if wanted:
            some = " OR ".join([f"instr({column}, ?)"] * len(wanted))
            yield f"p.id >> {PASSAGE_BITS} IN (SELECT id FROM documents WHERE {some})", [stored([w]) for w in wanted]
    if scope.entities:
        names = [_key(entity) for entity in scope.entities]
        within, channels = _within(scope)
        # A name leads to a node from each channel by its own ways; whoever asks means any thing in scope called so.
        nodes = (
            f"SELECT node FROM names WHERE name IN ({marks(names)}){within}"
            f" UNION VALUES {','.join(['(?)'] * len(names))}"
        )
        values = [*names, *channels, *names]
        links = f"SELECT id, passage FROM edges WHERE dst IN ({nodes})"
        passages = f"SELECT (id >> {PASSAGE_BITS} << {PASSAGE_BITS}) + passage FROM ({links}) WHERE passage >= 0"
        documents = f"SELECT id >> {PASSAGE_BITS} FROM ({links}) WHERE passage < 0"
        yield f"(p.id IN ({passages}) OR p.id >> {PASSAGE_BITS} IN ({documents}))", values * 2


def _within(scope: Scope) -> tuple[str, list[str]]:
    """The condition that a name is a document's in scope, with its values."""
    if scope.channels is None:
        return "", []
    near = ["", *scope.channels]
    found = f"SELECT id >> {CHANNEL_BITS} FROM documents WHERE channel IN ({marks(near)})"
    return f" AND id >> {_CHANNEL} IN ({found})", near


def stored(values: Iterable[str]) -> str:
    """A note's type or domains as they are stored: folded, each between two separators; "" for none."""
    kept = [fold(value) for value in values if value]
    return SEPARATOR.join(["", *kept, ""]) if kept else ""


def matches(scope: Scope, known: Knowledge | None, said: Said, passage: int) -> bool:
    """Whether the passage of that number in a document meets the filters of a scope."""
    types, domains = ([known.type] if known else []), (known.domains if known else ())
    for wanted, values in ((scope.types, types), (scope.domains, domains)):
        if wanted and not {fold(value) for value in wanted} & {fold(value) for value in values if value}:
            return False
    things = {canonical(plain_name(entity)[1]) for entity in scope.entities}
    return not things or any(
        link.passage in (passage, WHOLE) and canonical(link.target) in things for link in said.links
    )


def _key(name: str) -> int:
    return key(canonical(plain_name(name)[1]))
