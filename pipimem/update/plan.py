"""Operations, the plan that holds them, and what a plan is called in git.

A model, the offline rules and a person's command all end in a plan; merge.py is its one way to a file's new bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipimem.text import clip, one_line
from pipimem.workspace import Change


@dataclass(frozen=True, slots=True)
class Op:
    """One wanted edit. `kind_of_op` is add, note, section, supersede, invalidate, forget, block, append (text at
    the end), proposal, file (the whole text of a file) or remove (the file goes).

    `path` is the file it goes to, `heading` its section, `text` what will be written, `target` the entry it acts on,
    `facts` what the new entry's comment says (kind, since, src, conf, trial, by), `reason` why, for people. `needs`
    is a path: what cannot be written there, such as an archive, keeps this from being done.
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


def subject(plan: Plan, ops: list[Op]) -> str:
    """The first line of the commit: what changed in which channel, 72 characters at most."""
    where = f"{plan.channel}: " if plan.channel else ""
    names = {
        "add": "remember", "note": "note", "section": "rewrite", "supersede": "correct", "invalidate": "retire",
        "forget": "forget", "block": "log", "proposal": "propose", "file": "write", "remove": "remove",
        "append": "archive",
    }  # fmt: skip
    counts: dict[str, int] = {}
    for op in ops:
        name = "note" if op.op == "append" and "/memory/" in f"/{op.path}" else names[op.op]
        counts[name] = counts.get(name, 0) + 1
    answered = [op for op in ops if op.op == "remove" and op.path.startswith("review/")]
    if answered and len(answered) == len(ops):
        return clip(one_line(f"{where}reject “{answered[0].text}”"), 72)
    if answered:
        return clip(f"accept: {subject(plan, [op for op in ops if op not in answered])}", 72)
    if len(ops) == 1 and ops[0].op == "block" and "/memory/" in f"/{ops[0].path}":
        return clip(one_line(f"{where}note “{ops[0].text}”"), 72)
    if len(ops) == 1 and ops[0].op in ("file", "remove"):
        return clip(f"{where}{names[ops[0].op]} {ops[0].path}", 72)
    if len(ops) == 1 and ops[0].op in ("add", "note", "supersede"):
        return clip(one_line(f"{where}{names[ops[0].op]} “{ops[0].text}”"), 72)
    return clip(where + ", ".join(f"{name} {n}" for name, n in counts.items()), 72)


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
    if op.op in ("forget", "invalidate", "file", "remove"):
        return op.reason or "removed"
    return clip(one_line(op.heading if op.op == "block" else op.text), 100)
