"""Entries on trial: one that was recalled or said again stays for good, before its trial is over (design §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.update import guards
from pipimem.update.plan import Op, Outcome

if TYPE_CHECKING:
    from pipimem.update import Setting


def kept(memory: markdown.Parsed, left: Sequence[Outcome], setting: Setting) -> list[Op]:
    """The operations that take the end of the trial off the entries that proved useful.

    `left` are the operations that were not written: one that says what such an entry says, on another message, says
    it again.
    """
    said = [outcome.op for outcome in left if outcome.op.op in ("add", "supersede") and outcome.op.text]
    today = setting.today.isoformat()
    ops = []
    for entry in memory.entries:
        if not entry.id or entry.facts.get("trial", "") < today:
            continue
        source = entry.facts.get("src", "")
        again = guards.duplicate(entry.text, [op.text for op in said if op.facts.get("src") != source])
        if again or entry.id in setting.recalled:
            facts = {key: value for key, value in entry.facts.items() if key != "trial"}
            reason = "said again" if again else "it was recalled"
            path = setting.path("MEMORY.md")
            ops.append(Op("supersede", path, entry.text, id=entry.id, target=entry.id, facts=facts, reason=reason))
    return ops
