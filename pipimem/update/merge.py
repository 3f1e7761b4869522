"""A plan onto the files as they are now: a three-way merge by entry and section, pure.

Base is what the plan was made from, theirs what stands in the file now, ours the plan's operations. A person's text
wins; what no longer fits becomes a proposal; nothing that was deleted meanwhile comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date

from pipimem import markdown
from pipimem.errors import Error, NotFound, Refused
from pipimem.text import encode
from pipimem.update import guards, review
from pipimem.update.plan import Op, Outcome, Plan
from pipimem.workspace import Change

Read = Callable[[str], bytes | None]
TOGETHER = 8  # additions to one file from which they are folded in one pass; what it saves grows with their square
Damage = Callable[[str, bytes], str]


class Overtaken(Refused):
    """The operation no longer fits what a person has made of the file since the plan was made."""


def _own_damage(path: str, data: bytes) -> str:
    return markdown.damage(data)


@dataclass(slots=True)
class Merged:
    """What a plan comes to: the files' new texts, the operations in them, and those that are not, with the reason."""

    changes: list[Change] = field(default_factory=list)
    done: list[Op] = field(default_factory=list)
    refused: list[Outcome] = field(default_factory=list)
    proposed: list[Outcome] = field(default_factory=list)

    def settled(self, plan: Plan) -> Plan:
        """The plan with only the operations that were done, in its order, and the others where they belong."""
        place = {id(op): number for number, op in enumerate(plan.ops)}
        done = sorted(self.done, key=lambda op: place.get(id(op), len(place)))
        return replace(
            plan, ops=tuple(done), proposed=(*plan.proposed, *self.proposed),
            rejected=(*plan.rejected, *self.refused),
        )  # fmt: skip


def merge(plan: Plan, read: Read, damage: Damage = _own_damage) -> Merged:
    """The text each file gets when `plan` is folded onto what `read` gives now. Nothing is written.

    A file of which `damage` has something to say takes nothing; the plan's other files are not held up by it.

    An operation touches one entry or one section, so whatever a person changed elsewhere stays. One that a person has
    overtaken is refused; where a machine made the plan, a proposal in `review/` takes its place. What would move to
    another file stays where a person edited it or took it out.
    """
    merged = Merged()
    stay = {op.target for op in plan.ops if op.op == "invalidate" and op.needs and _edited(op, plan, read)}
    for path in plan.paths:
        before = read(path)
        count = len(merged.done)
        start = before if before is not None else plan.templates.get(path, b"")
        if why := damage(path, start):
            merged.refused += [Outcome(op, f"'{path}' {why}.") for op in plan.ops if op.path == path]
            continue
        held = [op for op in plan.ops if op.path == path and op.op == "add" and op.id in stay]
        merged.refused += [Outcome(op, f"The item '{op.id}' was edited meanwhile.") for op in held]
        data = _folded([op for op in plan.ops if op.path == path and op not in held], plan, start, merged)
        done = merged.done[count:]
        if any(op.op == "remove" for op in done):
            merged.changes.append(Change(path, before, None))
        elif done and data != (before or b""):
            merged.changes.append(Change(path, before, data))
    for op in _proposals(plan, merged.proposed, read):
        merged.changes.append(Change(op.path, None, encode(op.text)))
        merged.done.append(op)
    if merged.done:
        merged.changes += _restored(plan, read)
    return merged


def _edited(op: Op, plan: Plan, read: Read) -> bool:
    """Whether a person edited the entry an operation acts on, or took it out, since the plan was made."""
    try:
        _target(op, markdown.parse(read(op.path) or b""), _base(plan, op), plan)
    except Overtaken:
        return True
    return False


def _needed(op: Op, merged: Merged) -> bool:
    """Whether what an operation needs in another file was not done: its own entry, or a text that has no id."""
    undone = (o.op for o in (*merged.refused, *merged.proposed) if o.op.path == op.needs)
    return any(not other.id or other.id == op.target for other in undone)


def _folded(ops: list[Op], plan: Plan, data: bytes, merged: Merged) -> bytes:
    if len(ops) >= TOGETHER and all(op.op == "add" and not op.needs for op in ops):
        data, ops = _together(plan, ops, data, merged)
    for op in ops:
        if op.needs and _needed(op, merged):
            merged.refused.append(Outcome(op, f"'{op.needs}' could not take what it needs there."))
            continue
        try:
            data = _fold(op, data, plan)
            merged.done.append(op)
        except Overtaken as error:
            (merged.refused if plan.actor == "person" or op.op == "mark" else merged.proposed).append(
                Outcome(op, error.message)
            )
        except Error as error:
            merged.refused.append(Outcome(op, error.message))
    return data


def _together(plan: Plan, ops: list[Op], data: bytes, merged: Merged) -> tuple[bytes, list[Op]]:
    """Many additions in one pass, as far as each fits without a question; the others are left to be folded singly."""
    now, base = markdown.parse(data), _base(plan, ops[0])
    if now.family != "listed":
        return data, ops
    said, before = guards.Said(e.text for e in now.entries), guards.Said(e.text for e in base.entries)
    headings = {op.heading for op in ops}
    lost = {h for h in headings if _has_section(base, h) and not _has_section(now, h)}
    fit: list[Op] = []
    rest: list[Op] = []
    for op in ops:
        if op.heading in lost or _others(op) or said.holds(op.text) or before.holds(op.text):
            rest.append(op)
        else:
            said.add(op.text)
            fit.append(op)
    return _halved(fit, rest, data, merged)


def _halved(fit: list[Op], rest: list[Op], data: bytes, merged: Merged) -> tuple[bytes, list[Op]]:
    """All that fit at once; where they do not go together, each half by itself."""
    try:
        wanted = [(op.heading, op.text, markdown.comment(op.id, op.facts)) for op in fit]
        new = markdown.add_entries(markdown.parse(data), wanted)
    except Error:
        new = None
    if new is not None:
        merged.done += fit
        return new, rest
    if len(fit) < TOGETHER:
        return data, [*fit, *rest]
    half = len(fit) // 2
    data, rest = _halved(fit[:half], rest, data, merged)
    return _halved(fit[half:], rest, data, merged)


def _restored(plan: Plan, read: Read) -> list[Change]:
    """The channel's files that are missing, from their templates: every writing verb makes them whole again."""
    missing = (path for path in plan.templates if path not in plan.paths and read(path) is None)
    return [Change(path, None, plan.templates[path]) for path in missing]


def _proposals(plan: Plan, outcomes: list[Outcome], read: Read) -> Iterator[Op]:
    """The proposals that take the place of overtaken operations, named so that no file of the plan is hit."""
    number = sum(op.op == "proposal" for op in plan.ops)
    for outcome in outcomes:
        number += 1
        while read(f"review/{plan.run}-{number}.md") is not None:
            number += 1
        old = _old_text(plan, outcome.op)
        yield review.proposal(outcome, f"{plan.run}-{number}", plan.channel, _day(plan), old)


def _old_text(plan: Plan, op: Op) -> str:
    entry = markdown.entry_by_id(_base(plan, op), plan.channel, op.target) if op.target else None
    return entry.text if entry else ""


def _day(plan: Plan) -> date:
    """The day a run's name holds."""
    return date.fromisoformat(plan.run.split("-")[1])


def _base(plan: Plan, op: Op) -> markdown.Parsed:
    base = plan.base.get(op.path)
    return markdown.parse(base if base is not None else plan.templates.get(op.path, b""))


def _fold(op: Op, data: bytes, plan: Plan) -> bytes:
    if op.op == "proposal":
        return encode(op.text)
    if op.op in ("file", "cut", "remove"):
        if data != (plan.base.get(op.path) or b""):
            raise Refused(f"'{op.path}' was edited meanwhile.", "Look at it and try again.")
        return encode(op.text)
    now, base = markdown.parse(data), _base(plan, op)
    match op.op:
        case "add" | "note":
            _check_addition(op, now, base)
            for other in _others(op):
                if markdown.entry_by_id(base, plan.channel, other):
                    _target(replace(op, target=other), now, base, plan)
            note = markdown.comment(op.id, op.facts) if op.id else ""
            if op.target:
                source = markdown.parse(plan.base[op.needs] or b"")
                moved = markdown.entry_by_id(source, plan.channel, op.target)
                if moved is None:
                    raise Overtaken(f"The entry '{op.target}' is gone.", "Nothing was changed.")
                return markdown.move_entry(now, op.heading, source, moved, note)
            return markdown.add_entry(now, op.heading, op.text, note)
        case "append":
            return markdown.append_text(now, op.text)
        case "block":
            if _has_block(now, op):  # another updater worked on the same turns
                raise Refused(f"'{op.path}' says so already.", "Nothing was changed.")
            return markdown.append_section(now, op.heading, op.text)
        case "section":
            _check_section(op, now, base)
            return markdown.replace_section(now, op.heading, op.text)
    entry = _target(op, now, base, plan)
    if op.op in ("supersede", "mark"):
        return markdown.replace_entry(now, entry, op.text, markdown.comment(op.id, op.facts))
    return markdown.remove_entry(now, entry)


def _others(op: Op) -> list[str]:
    """The entries an addition stands in the place of or against: it rests on what they said."""
    return [other for key in ("supersedes", "conflicts") if (other := op.facts.get(key, ""))]


def _check_addition(op: Op, now: markdown.Parsed, base: markdown.Parsed) -> None:
    if op.op == "add" and guards.duplicate(op.text, (e.text for e in now.entries)):
        raise Refused(f"'{op.path}' says so already.", "Nothing was changed.")
    if op.op == "note" and any(e.text == op.text and e.trail[-1:] == (op.heading,) for e in now.entries):
        raise Refused(f"'{op.path}' says so already.", "Nothing was changed.")
    if guards.duplicate(op.text, (e.text for e in base.entries)) and not guards.duplicate(
        op.text, (e.text for e in now.entries)
    ):
        raise Refused(f"'{op.path}' said so and a person took it out.", "Nothing was changed.")
    if _has_section(base, op.heading) and not _has_section(now, op.heading):
        raise Overtaken(f"The section '{op.heading}' was taken out meanwhile.", "Nothing was changed.")


def _has_block(parsed: markdown.Parsed, op: Op) -> bool:
    text = encode(op.text).strip()
    return any(s.title == op.heading and parsed.data[s.body : s.end].strip() == text for s in parsed.sections)


def _has_section(parsed: markdown.Parsed, heading: str) -> bool:
    try:
        markdown.find_section(parsed, heading)
    except NotFound:
        return False
    except Refused:  # several fit: which one is meant is said when it is written
        return True
    return True


def _check_section(op: Op, now: markdown.Parsed, base: markdown.Parsed) -> None:
    if not _has_section(now, op.heading):
        raise Overtaken(f"The section '{op.heading}' was taken out meanwhile.", "Nothing was changed.")
    if _has_section(base, op.heading) and _own_text(now, op.heading) != _own_text(base, op.heading):
        raise Overtaken(f"The section '{op.heading}' was edited meanwhile.", "Look at it and try again.")


def _own_text(parsed: markdown.Parsed, heading: str) -> bytes:
    section = markdown.find_section(parsed, heading)
    return parsed.data[section.body : section.end].strip()


def _target(op: Op, now: markdown.Parsed, base: markdown.Parsed, plan: Plan) -> markdown.Entry:
    entry = markdown.entry_by_id(now, plan.channel, op.target)
    if entry is None:
        raise Overtaken(f"The entry '{op.target}' is gone.", "Nothing was changed.")
    old = markdown.entry_by_id(base, plan.channel, op.target)
    if old is not None and old.text != entry.text:
        raise Overtaken(f"The entry '{op.target}' was edited meanwhile.", "Look at it and try again.")
    return entry
