"""Entries that contradict each other: which pairs are open, and a person's word on which side holds.

The updater marks both sides (`conflicts=` in their comments); until a person has settled it neither is recalled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pipimem import markdown, update
from pipimem.errors import NotFound
from pipimem.update.plan import Applied, Op

if TYPE_CHECKING:
    from pipimem.opened import Opened


@dataclass(frozen=True, slots=True)
class Side:
    """One entry of a contradiction: where it stands, what it says, what its comment says."""

    ref: str
    channel: str
    path: str
    line: int
    text: str
    facts: dict[str, str]
    marked: bool


def contradictions(memory: Opened) -> list[tuple[Side, Side]]:
    """The pairs of entries that are marked as contradicting each other, while both hold; in the order of the files."""
    today, sides = memory.today(), {side.ref: side for side in _sides(memory)}
    open_ones = {ref for ref, side in sides.items() if not "" < side.facts.get("until", "") < today}
    pairs: dict[frozenset[str], tuple[Side, Side]] = {}
    for side in sides.values():
        pair = {side.ref, side.facts.get("conflicts", "")}
        if len(pair) == 2 and pair <= open_ones:
            one, other = (s for s in sides.values() if s.ref in pair)
            pairs.setdefault(frozenset(pair), (one, other))
    return list(pairs.values())


def _sides(memory: Opened) -> list[Side]:
    found = []
    for document in memory.workspace.scan().documents:
        if document.layer not in ("memory", "user"):
            continue
        parsed = markdown.parse(memory.workspace.read(document.path) or b"")
        for identity, entry in markdown.identified(parsed, document.channel):
            found.append(
                Side(identity, document.channel, document.path, entry.line, entry.text, entry.facts, bool(entry.id))
            )
    return found


def resolve(memory: Opened, ref: str) -> Applied:
    """Keeps one entry of a contradiction: the others stay in the file, no longer true since today; one commit.

    Raises `NotFound` for an entry that is in no open contradiction.
    """
    kept = memory.entry(ref).ref
    pairs = [pair for pair in contradictions(memory) if kept in (pair[0].ref, pair[1].ref)]
    if not pairs:
        raise NotFound(f"The entry '{kept}' is in no open contradiction.", "'pipimem resolve' lists them.")
    retired = {side.ref: side for pair in pairs for side in pair if side.ref != kept}
    ops = []
    for side in _sides(memory):
        if side.ref in retired:
            until = (memory.now().date() - timedelta(1)).isoformat()
            own = side.ref if side.marked else update.fresh_id(memory.taken)
            facts = {**side.facts, "until": until, "conflicts": ""}
            ops.append(Op("mark", side.path, side.text, "", own, side.ref, facts, f"'{kept}' was kept in its place"))
        elif side.facts.get("conflicts") in retired:
            facts = {**side.facts, "conflicts": ""}
            ops.append(Op("mark", side.path, side.text, "", side.ref, side.ref, facts, "a contradiction is settled"))
    ops.sort(key=lambda op: op.target != kept)
    plan = memory.planned(next(s.channel for pair in pairs for s in pair if s.ref == kept), ops, {}, "person")
    return memory.apply(replace(plan, whole=True))


def renamed(memory: Opened, old: str, new: str) -> Iterator[Op]:
    """The operations that make marks which name the entry `old` name `new` ("": no entry any more)."""
    for side in _sides(memory):
        if side.facts.get("conflicts") == old != side.ref:
            facts = {**side.facts, "conflicts": new}
            yield Op("mark", side.path, side.text, "", side.ref, side.ref, facts, "the entry it names is another now")
