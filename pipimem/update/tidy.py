"""The jobs that make files shorter: SESSION promoted, MEMORY condensed, HISTORY folded, all originals archived.

Each is one plan with its source and its target; a plan that could lose an entry, or say something new, is not made.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipimem import markdown
from pipimem.text import decode
from pipimem.update import ARCHIVE, ARCHIVE_TEMPLATE, Setting, fresh_id, planned, reworded
from pipimem.update.condense import Condensed, condense, fold, foldable, unproven
from pipimem.update.guards import REMOVED_SHARE
from pipimem.update.plan import Op, Outcome, Plan
from pipimem.update.promote import promote
from pipimem.update.question import Models
from pipimem.update.reworded import Asked
from pipimem.update.schedule import HISTORY_CHARACTERS, MEMORY_CHARACTERS

TITLES = {"en": "Moved out of memory", "zh": "移出记忆"}
STILL_TRUE = ("archived: it was worth least", "shortened: only its telling sentences stay")


def plan(job: str, setting: Setting, models: Models | None = None) -> Plan:
    """What `promote`, `condense` or `fold` would change in the channel now; an empty plan where nothing is to be done.

    A run takes at most a fifth of the characters, so that what is moved goes little by little. What a model says in
    other words is only taken where it covers what it stands for; the rest is done by the rules.
    """
    if job == "promote":
        return planned([promote(setting, models)], setting, job)
    name = "MEMORY.md" if job == "condense" else "HISTORY.md"
    before = setting.text(name)
    size = len(decode(before))
    least = MEMORY_CHARACTERS if job == "condense" else HISTORY_CHARACTERS
    budget = max(least, int(size * (1 - REMOVED_SHARE)))
    said = _asked(job, before, budget, setting, models)
    if job == "condense":
        merges = [(merge, fresh_id(setting.taken)) for merge in said.merges]
        after = condense(before, budget, setting.today, merges=merges)
    else:
        after = fold(before, budget, said=said.lines)
    ops: Sequence[Op] = ()
    rejected: tuple[Outcome, ...] = ()
    if after.data != before:
        if why := unproven(before, after):
            rejected = (Outcome(Op("file", setting.path(name), reason=job), why),)
        else:
            ops = _ops(job, name, after, setting)
    paths = {op.path: setting.read(op.path) for op in ops}
    templates = {**setting.templates, setting.path(ARCHIVE): ARCHIVE_TEMPLATE} if ops else setting.templates
    return Plan(
        run=setting.run, channel=setting.channel, origin=said.origin or "offline", actor="updater", ops=tuple(ops),
        base=paths, templates=templates, rejected=(*said.left, *rejected), source=job, tokens=said.tokens,
        fell=said.fell, whole=True,
    )  # fmt: skip


def _asked(job: str, before: bytes, budget: int, setting: Setting, models: Models | None) -> Asked:
    """What a model would say in other words, where one is there and the file is too long."""
    if models is None or not models.of(job):
        return Asked()
    if job == "condense":
        too_long = len(decode(before)) > budget
        return reworded.merges(markdown.parse(before), setting, models) if too_long else Asked()
    return reworded.lines(foldable(before), setting, models)


def _ops(job: str, name: str, after: Condensed, setting: Setting) -> list[Op]:
    """The shorter file, the originals in the archive, and for MEMORY what is still true as one block of HISTORY."""
    day = setting.today.isoformat()
    archived = "\n".join(after.archived)
    ops = [
        Op("file", setting.path(name), decode(after.data), reason=f"{job}: {len(after.archived)} archived"),
        Op("append", setting.path(ARCHIVE), f"## {day} {name}, {setting.run}\n\n{archived}\n", reason="the originals"),
    ]
    if job == "condense" and (lines := _still_true(after)):
        title = f"{day} {TITLES[setting.language if setting.language in TITLES else 'en']}"
        ops.append(Op("block", setting.path("HISTORY.md"), "\n".join(lines), title, reason="moved one layer down"))
    return ops


def _still_true(after: Condensed) -> list[str]:
    """What left MEMORY for want of room only, as it was said: recall still finds it in HISTORY."""
    lines = []
    for raw in after.archived:
        entry = markdown.parse(raw.encode("utf-8", "surrogateescape")).entries
        if entry and after.fates.get(entry[0].id) in STILL_TRUE:
            lines.append(markdown.item(entry[0].text, ""))
    return lines
