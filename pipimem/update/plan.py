"""Operations, the plan that holds them, and what a plan is called in git.

A model, the offline rules and a person's command all end in a plan; merge.py is its one way to a file's new bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipimem.text import clip, one_line, plural
from pipimem.workspace import Change

MIGRATED = "in the current format"


@dataclass(frozen=True, slots=True)
class Op:
    """One wanted edit. `op` is add, note, section, supersede, mark (an entry says the same with other facts),
    invalidate, forget, block, append (text at the end), proposal, file (the whole text of a file), cut (the same, with
    something forgotten taken out) or remove (the file goes).

    `path` is the file it goes to, `heading` its section, `text` what will be written, `target` the entry it acts on,
    `facts` what the new entry's comment says (kind, since, src, conf, trial, by), `reason` why, for people. `needs`
    is a path: what cannot be written there, such as an archive, keeps this from being done. An `add` with a `target`
    takes the bytes of that entry in the file it `needs`.
    """

    op: str
    path: str
    text: str = ""
    heading: str = ""
    id: str = ""
    target: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    needs: str = ""

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

    `base` holds the bytes each file had when the plan was made; `templates` the text a missing file starts with;
    `tokens` what models were paid for it, and `fell` what each of them failed with. Of a `whole` plan one refused
    operation refuses all.
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
    tokens: int = 0
    fell: tuple[str, ...] = ()
    whole: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file the plan may write; what others need comes first."""
        needed = [op.needs for op in self.ops if op.needs]
        return tuple(dict.fromkeys([*needed, *(op.path for op in self.ops)]))


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


WIDTH = 72
NAMES = {
    "add": "remember", "note": "note", "section": "rewrite", "supersede": "correct", "invalidate": "retire",
    "forget": "forget", "block": "log", "proposal": "propose", "file": "write", "remove": "remove",
    "append": "archive", "mark": "retire", "cut": "forget",
}  # fmt: skip
COMMANDS = {"pinned": "pin", "promoted": "share"}


def subject(plan: Plan, ops: list[Op]) -> str:
    """The first line of the commit: what changed in which channel, 72 characters at most, as a person would say it."""
    where = f"{plan.channel}: " if plan.channel else ""
    answered = [op for op in ops if op.op == "remove" and op.reason in ("accepted", "rejected")]
    if answered and len(answered) == len(ops):
        return clip(one_line(f"{where}reject “{answered[0].text}”"), WIDTH)
    if answered:
        return clip(f"accept: {subject(plan, [op for op in ops if op not in answered])}", WIDTH)
    said = _kind(ops) or _job(plan, ops) or (_one(ops[0]) if len(ops) == 1 else "") or _learned(ops, WIDTH - len(where))
    return clip(one_line(where + (said or _counted(ops))), WIDTH)


def _kind(ops: Sequence[Op]) -> str:
    """Of operations that are all of one kind by their nature."""
    forgotten = sum(int(op.target.split()[0]) if op.op == "cut" else op.op == "forget" for op in ops)
    if forgotten or not ops:
        return f"forget {'an entry' if [op.op for op in ops] == ['forget'] else plural(forgotten, 'thing')}"
    if all(op.reason == MIGRATED for op in ops):
        return f"bring {plural(len(ops), 'file')} to the current format"
    if all(op.op == "mark" for op in ops):
        kept = [op for op in ops if not op.facts.get("until")]
        return f"{'settle: keep' if kept else 'retire'} “{(kept or ops)[0].text}”"
    if ops[0].reason in COMMANDS:
        return f"{COMMANDS[ops[0].reason]} “{ops[0].text}”"
    return "unpin an instruction" if ops[0].reason == "unpinned" else ""


def _one(op: Op) -> str:
    if op.op == "block" and "/memory/" in f"/{op.path}":
        return f"note “{op.text}”"
    if op.op == "block":
        return f"log “{op.heading}”"
    if op.op in ("file", "remove"):
        return f"{NAMES[op.op]} {op.path}"
    return f"{NAMES[op.op]} “{op.text}”" if op.op in ("add", "note", "supersede") else ""


def _job(plan: Plan, ops: Sequence[Op]) -> str:
    """Of the jobs that make files shorter or move things between them."""
    if plan.source in ("condense", "fold"):
        count = next((op.reason.partition(": ")[2] for op in ops if op.op == "file"), "")
        return (
            f"{plan.source} the {'memory' if plan.source == 'condense' else 'history'}{f', {count}' if count else ''}"
        )
    if plan.source == "promote" and not any(op.op == "add" for op in ops):
        gone = sum(op.op == "invalidate" for op in ops)
        return f"archive {plural(gone, 'item')} of the session" if gone else ""
    return ""


def _learned(ops: Sequence[Op], width: int) -> str:
    """Of what a conversation gave: its first thing in its own words, how many more, what waits for a person."""
    adds = [op for op in ops if op.op in ("add", "supersede")]
    held = sum(op.op == "proposal" for op in ops)
    waits = f", {held} to review" if held else ""
    if adds:
        more = (f" and {len(adds) - 1} more" if len(adds) > 1 else "") + waits
        room = max(12, width - len(f"remember “”{more}"))
        return f"{NAMES[adds[0].op]} “{clip(one_line(adds[0].text), room)}”{more}"
    if held == len(ops):
        return f"{plural(held, 'proposal')} to review"
    rest = [op for op in ops if op.op != "proposal"]
    return f"bring the session up to date{waits}" if all(op.path.endswith("SESSION.md") for op in rest) else ""


def _counted(ops: Sequence[Op]) -> str:
    counts: dict[str, int] = {}
    for op in ops:
        name = "note" if op.op == "append" and "/memory/" in f"/{op.path}" else NAMES[op.op]
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def message(plan: Plan, ops: list[Op]) -> str:
    """The commit message: subject, one line an operation, trailers with actor, origin, run and source.

    A forgotten entry's text is not repeated.
    """
    lines = [f"- {o.op} {o.id or o.target or o.path}: {_said(o)}" for o in ops if not o.path.startswith("review/")]
    trailers = [f"Pipimem-Run: {plan.run}", f"Pipimem-Actor: {plan.actor}", f"Pipimem-Origin: {plan.origin}"]
    trailers += [f"Pipimem-Source: {plan.source}"] if plan.source else []
    body = "\n".join(lines[:40])
    return f"{subject(plan, ops)}\n\n{body}\n\n" + "\n".join(trailers) + "\n"


def _said(op: Op) -> str:
    if op.op in ("forget", "invalidate", "file", "remove", "cut"):
        return op.reason or "removed"
    return clip(one_line(op.heading if op.op == "block" else op.text), 100)
