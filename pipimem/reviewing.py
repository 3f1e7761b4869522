"""A person's answers to what waits in `review/`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pipimem import forgetting, markdown, update
from pipimem.errors import Error, Refused
from pipimem.history import REJECTED
from pipimem.skills import Skill, rewritten
from pipimem.text import decode, printable
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
    if why := overtaken(memory, proposal):
        raise Refused(f"The proposal '{proposal.id}' is out of date: {why}.", "Reject it, or edit its file.")
    if op.op == "file":
        op = replace(op, text=decode(rewritten(op.path, memory.workspace.read(op.path) or b"", op.text)))
    if op.op == "forget":
        refs = [identity for identity, _ in _targets(memory, proposal)]
        return forgetting.forget(memory, refs, answering=proposal.path).applied
    templates = memory.templates(memory.workspace.channel(proposal.channel)) if proposal.channel else {}
    answered = Op("remove", proposal.path, reason="accepted")
    plan = memory.planned(proposal.channel, [op, answered], templates, "person")
    return memory.apply(replace(plan, whole=True))  # what cannot be written waits on


def _steps(memory: Opened, path: str) -> str | None:
    """What a skill says now; None where `path` is no skill. No other file is written whole by a proposal."""
    data = memory.workspace.read(path) if SKILL.fullmatch(path) else None
    return None if data is None else Skill(path, data).text


def overtaken(memory: Opened, proposal: Proposal) -> str:
    """Why what a proposal acts on is no longer what was meant, as the files are now; "" where it is."""
    if proposal.problem:
        return ""
    if not memory.workspace.is_document(proposal.file):
        return f"'{printable(proposal.file)}' is no document of this workspace"
    try:
        if proposal.op == "file":
            return review.overtaken(proposal, _steps(memory, proposal.file))
        targets = _targets(memory, proposal)
    except Error as error:
        return error.message.rstrip(".")
    if len(targets) > 1:
        return f"it may mean any of {len(targets)} entries"
    return review.overtaken(proposal, targets[0][1] if targets else None)


def _targets(memory: Opened, proposal: Proposal) -> list[tuple[str, str]]:
    """Id and text of what a proposal acts on: the entry it names, else of a *forget* those that say the same."""
    known = markdown.identified(markdown.parse(memory.text_of(proposal.file, {})), proposal.channel)
    if proposal.target:
        return [(identity, entry.text) for identity, entry in known if identity == proposal.target]
    return [(i, e.text) for i, e in known if proposal.op == "forget" and guards.same(e.text, proposal.text)]


def reject(memory: Opened, name: str) -> Applied:
    """Takes a proposal out of `review/` and remembers, without its text, not to propose it again."""
    proposal = memory.proposal(name)
    op = Op("remove", proposal.path, proposal.text, reason="rejected")
    meant = Op(proposal.op, proposal.file)
    line = guards.rejection(memory.key(), proposal.id, meant, proposal.text or proposal.old)
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
