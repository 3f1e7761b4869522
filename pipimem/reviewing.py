"""A person's answers to what waits in `review/`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pipimem import forgetting, markdown, update
from pipimem.errors import Error, Refused
from pipimem.history import REJECTED
from pipimem.index import Hit, Scope
from pipimem.skills import Skill, rewritten
from pipimem.text import decode
from pipimem.update import guards, review
from pipimem.update.plan import Applied, Op
from pipimem.update.review import Proposal

if TYPE_CHECKING:
    from pipimem.opened import Opened

SKILL = re.compile(r"skills/[^/]+/SKILL\.md")


def accept(memory: Opened, name: str) -> Applied:
    """Does what a proposal says, as its file says it now, and takes the file out of `review/`; one commit."""
    proposal = memory.proposal(name)
    op = review.accepted(proposal, update.fresh_id(memory.taken))
    found = _target(memory, proposal)
    now = _steps(memory, proposal.file) if op.op == "file" else found.text if found else None
    if why := review.overtaken(proposal, now):
        raise Refused(f"The proposal '{proposal.id}' is out of date: {why}.", "Reject it, or edit its file.")
    if op.op == "file":
        op = replace(op, text=decode(rewritten(op.path, memory.workspace.read(op.path) or b"", op.text)))
    if op.op == "forget":
        if found is None:
            raise Refused(f"The proposal '{proposal.id}' names no entry.", "Forget it with 'pipimem forget'.")
        return forgetting.forget(memory, [found.ref], answering=proposal.path).applied
    templates = memory.templates(memory.workspace.channel(proposal.channel)) if proposal.channel else {}
    answered = Op("remove", proposal.path, reason="accepted")
    plan = memory.planned(proposal.channel, [op, answered], templates, "person")
    return memory.apply(replace(plan, whole=True))  # what cannot be written waits on


def _steps(memory: Opened, path: str) -> str | None:
    """What a skill says now; None where `path` is no skill. No other file is written whole by a proposal."""
    data = memory.workspace.read(path) if SKILL.fullmatch(path) else None
    return None if data is None else Skill(path, data).text


def _target(memory: Opened, proposal: Proposal) -> Hit | None:
    """The entry a proposal acts on: the one it names, else the only one of its file that says the same."""
    if proposal.target:
        hits = [h for h in memory.passages.lookup(proposal.target, Scope(None)) if h.path == proposal.file]
    elif proposal.op == "forget":
        known = markdown.identified(markdown.parse(memory.text_of(proposal.file, {})), proposal.channel)
        same = [identity for identity, entry in known if guards.same(entry.text, proposal.text)]
        hits = [h for identity in same for h in memory.passages.lookup(identity, Scope(None))]
    else:
        return None
    return hits[0] if len(hits) == 1 else None


def reject(memory: Opened, name: str) -> Applied:
    """Takes a proposal out of `review/` and remembers, without its text, not to propose it again."""
    proposal = memory.proposal(name)
    op = Op("remove", proposal.path, proposal.text, reason="rejected")
    line = guards.tombstone(memory.key(), proposal.id, proposal.text or proposal.old, [])
    return memory.apply(memory.planned(proposal.channel, [op], {}, "person"), tombstone=line, into=REJECTED)


def answered(memory: Opened) -> list[tuple[Proposal, Applied | Error]]:
    """Does what is ticked in `review/*.md`, file by file; one that cannot be done says why and waits on."""
    done: list[tuple[Proposal, Applied | Error]] = []
    for proposal in [p for p in memory.proposals() if p.answer]:
        try:
            if proposal.answer == "both":
                raise Refused(f"The proposal '{proposal.id}' is ticked twice.", "Leave one tick.")
            act = accept if proposal.answer == "accept" else reject
            done.append((proposal, act(memory, proposal.id)))
        except Error as error:
            done.append((proposal, error))
    return done
