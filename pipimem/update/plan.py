"""Operations, the plan that holds them, and the pure step from a plan to the text of each file.

A model, the offline rules and a person's command all end here: `changes` is the one way to a file's new bytes, for a
dry run and for the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pipimem import markdown
from pipimem.errors import Error, Refused
from pipimem.text import clip, one_line
from pipimem.update import guards
from pipimem.workspace import Change

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Op:
    """One wanted edit. `kind_of_op` is add, note, supersede, invalidate, forget, block or proposal.

    `path` is the file it goes to, `heading` its section, `text` what will be written, `target` the entry it acts on,
    `facts` what the new entry's comment says (kind, since, src, conf, trial, by), `reason` why, for people.
    """

    op: str
    path: str
    text: str = ""
    heading: str = ""
    id: str = ""
    target: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def kind(self) -> str:
        """The kind of the entry, "" where it has none."""
        return self.facts.get("kind", "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """An operation that was not applied, and why."""

    op: Op
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All operations of one run. `origin` says where they come from: person, offline, or a model's name.

    `base` holds the bytes each file had when the plan was made; `templates` the text a missing file starts with.
    """

    run: str
    channel: str
    origin: str
    actor: str
    ops: tuple[Op, ...]
    base: Mapping[str, bytes | None]
    templates: Mapping[str, bytes] = field(default_factory=dict)
    proposed: tuple[Outcome, ...] = ()
    rejected: tuple[Outcome, ...] = ()
    source: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file the plan may write, in order."""
        return tuple(dict.fromkeys(op.path for op in self.ops))


@dataclass(frozen=True, slots=True)
class Applied:
    """What a plan did: the changes that were written, the commit ("" with the reason in `deferred`)."""

    plan: Plan
    changes: tuple[Change, ...]
    commit: str = ""
    deferred: str = ""
    notes: tuple[str, ...] = ()

    @property
    def run(self) -> str:
        """The run's name, which `undo` takes."""
        return self.plan.run


def new_id() -> str:
    """A fresh entry id; the caller draws again when the workspace has it."""
    return "m-" + os.urandom(4).hex()


def new_run(stamp: str) -> str:
    """A fresh run name: `r-` + the day + six hex characters."""
    return f"r-{stamp[:10].replace('-', '')}-{os.urandom(3).hex()}"


def changes(plan: Plan, read: Read) -> tuple[list[Change], list[Op], list[Outcome]]:
    """The text each file gets, the operations that gave it, and those the text refused (pure: nothing is written).

    Folding onto what `read` gives now is the merge: an operation adds, replaces or removes one entry, so whatever a
    person changed elsewhere stays; an operation whose target a person changed since `base` is refused.
    """
    result: list[Change] = []
    done: list[Op] = []
    refused: list[Outcome] = []
    for path in plan.paths:
        before = read(path)
        data = before if before is not None else plan.templates.get(path, b"")
        for op in (o for o in plan.ops if o.path == path):
            try:
                data = _fold(op, data, plan)
                done.append(op)
            except Error as error:
                refused.append(Outcome(op, error.message))
        if data != (before or b"") and any(o.path == path for o in done):
            result.append(Change(path, before, data))
    if done:
        result += _restored(plan, read)
    return result, done, refused


def _restored(plan: Plan, read: Read) -> list[Change]:
    """The channel's files that are missing, from their templates: every writing verb makes them whole again."""
    missing = (path for path in plan.templates if path not in plan.paths and read(path) is None)
    return [Change(path, None, plan.templates[path]) for path in missing]


def _fold(op: Op, data: bytes, plan: Plan) -> bytes:
    if line := markdown.conflict_line(data):
        raise Refused(f"'{op.path}' has an unresolved merge conflict in line {line}.", "Resolve it first.")
    parsed = markdown.parse(data)
    match op.op:
        case "add":
            if guards.duplicate(op.text, (e.text for e in parsed.entries)):
                raise Refused(f"'{op.path}' says so already.", "Nothing was changed.")
            return markdown.add_entry(parsed, op.heading, op.text, markdown.comment(op.id, op.facts))
        case "note":
            return markdown.add_entry(parsed, op.heading, op.text, "")
        case "block":
            return markdown.append_section(parsed, op.heading, op.text)
        case "proposal":
            return op.text.encode("utf-8")
    entry = markdown.entry_by_id(parsed, plan.channel, op.target)
    if entry is None:
        raise Refused(f"The entry '{op.target}' is gone.", "Nothing was changed.")
    if _changed_since(op, entry, plan):
        raise Refused(f"The entry '{op.target}' was edited meanwhile.", "Look at it and try again.")
    if op.op == "supersede":
        return markdown.replace_entry(parsed, entry, op.text, markdown.comment(op.id, op.facts))
    return markdown.remove_entry(parsed, entry)


def _changed_since(op: Op, entry: markdown.Entry, plan: Plan) -> bool:
    base = plan.base.get(op.path)
    if base is None:
        return False
    old = markdown.entry_by_id(markdown.parse(base), plan.channel, op.target)
    return old is not None and old.text != entry.text


def subject(plan: Plan, ops: list[Op]) -> str:
    """The first line of the commit: what changed in which channel, 72 characters at most."""
    where = f"{plan.channel}: " if plan.channel else ""
    names = {
        "add": "remember", "note": "note", "supersede": "correct", "invalidate": "retire", "forget": "forget",
        "block": "log", "proposal": "propose",
    }  # fmt: skip
    counts: dict[str, int] = {}
    for op in ops:
        counts[names[op.op]] = counts.get(names[op.op], 0) + 1
    if len(ops) == 1 and ops[0].op in ("add", "note", "supersede"):
        return clip(one_line(f"{where}{names[ops[0].op]} “{ops[0].text}”"), 72)
    return clip(where + ", ".join(f"{name} {n}" for name, n in counts.items()), 72)


def message(plan: Plan, ops: list[Op]) -> str:
    """The commit message: subject, one line an operation, trailers with actor, origin, run and source.

    A forgotten entry's text is not repeated.
    """
    lines = [f"- {o.op} {o.id or o.target or o.path}: {_said(o)}" for o in ops if o.op != "proposal"]
    trailers = [f"Pipimem-Run: {plan.run}", f"Pipimem-Actor: {plan.actor}", f"Pipimem-Origin: {plan.origin}"]
    trailers += [f"Pipimem-Source: {plan.source}"] if plan.source else []
    body = "\n".join(lines[:40])
    return f"{subject(plan, ops)}\n\n{body}\n\n" + "\n".join(trailers) + "\n"


def _said(op: Op) -> str:
    if op.op in ("forget", "invalidate"):
        return op.reason or "removed"
    return clip(one_line(op.heading if op.op == "block" else op.text), 100)


def without(plan: Plan, refused: list[Outcome]) -> Plan:
    """The plan with the operations its text refused moved to `rejected`."""
    gone = [o.op for o in refused]
    return replace(plan, ops=tuple(o for o in plan.ops if o not in gone), rejected=(*plan.rejected, *refused))
