"""Taking something out for good: from the file, the index and pipimem's own records, and where else it still stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipimem import traces
from pipimem.errors import Usage
from pipimem.index import Hit, Scope
from pipimem.index.words import fold
from pipimem.text import decode
from pipimem.turns import Turns
from pipimem.update import guards
from pipimem.update.guards import plain
from pipimem.update.plan import Applied, Op

if TYPE_CHECKING:
    from pipimem.opened import Opened


def matching(memory: Opened, text: str, channel: str | None = None) -> list[Hit]:
    """Every entry whose text holds `text`, folded; in file order."""
    wanted = fold(text)
    scope = memory.scope(channel, all_channels=channel is None)
    hits = memory.passages.search(text, scope, 1000)
    return [h for h in hits if h.entry and wanted in fold(h.text)]


def forget(memory: Opened, ref: str, *, dry_run: bool = False) -> tuple[Applied, list[str]]:
    """Removes an entry for good and remembers, without its text, not to learn it again."""
    hit = memory.entry(ref)
    op = Op("forget", hit.path, target=hit.ref, reason="asked to forget")
    templates = memory.templates(memory.workspace.channel(hit.channel)) if hit.channel else {}
    plan = memory.planned(hit.channel, [op], templates, "person")
    if dry_run:
        return Applied(plan, tuple(memory.preview(plan))), _still(memory, hit)
    sources = [s for s in [memory.source_of(hit)] if s]
    applied = memory.apply(plan, tombstone=guards.tombstone(memory.key(), hit.ref, hit.text, sources))
    memory.passages.purge()
    _forget_records(memory, hit, sources)
    return applied, _still(memory, hit)


def _forget_records(memory: Opened, hit: Hit, sources: Sequence[str]) -> None:
    """Takes a forgotten text out of pipimem's own records: recorded turns, and recalls kept to be explained."""
    traces.forget(memory.traces, [hit.ref], [hit.text])
    if hit.channel:
        Turns(memory.workspace, hit.channel).forget([hit.text], sources)


def _still(memory: Opened, hit: Hit) -> list[str]:
    wanted = plain(hit.text)
    try:
        found = memory.passages.search(hit.text, Scope(None), 200)
        found += memory.passages.search(hit.text, Scope(None, layers=["archive"]), 200)
    except Usage:  # a text without words can only be looked for in the proposals
        found = []
    places = [f"{h.path}:{h.line}" for h in found if wanted in plain(h.text) and h.ref != hit.ref]
    waiting = [p for p in memory.workspace.proposals() if wanted in plain(decode(memory.workspace.read(p) or b""))]
    return places + waiting
