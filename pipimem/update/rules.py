"""The extraction job without a model: what the offline rules find, as guarded operations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pipimem import markdown
from pipimem.transcript import Message
from pipimem.update import Extracted, Setting, dates, fresh_id, guards, heading_for, offline, pairs
from pipimem.update.plan import Op, Outcome

MAX_ADDS = 40
DURABLE = 0.90
"""Confidence from which what a rule found is durable; below, it goes on trial."""


def extract(window: Sequence[Message], setting: Setting) -> Extracted:
    """What the rules would write to MEMORY, propose, and leave out, each with the reason."""
    memory = markdown.parse(setting.text("MEMORY.md"))
    group = setting.kind == "group"
    findings = offline.read(window, memory.entries, group=group, patterns=setting.patterns, allow=setting.allow)
    ops: list[Op] = []
    proposed: list[Outcome] = []
    rejected = [Outcome(_add(found, memory, setting), reason) for found, reason in findings.left]
    repeated = setting.repeated()
    for found in findings.memory:
        op = _add(found, memory, setting)
        if reason := _refused(op, found, setting, repeated):
            rejected.append(Outcome(op, reason))
        elif found.hold or len(ops) >= MAX_ADDS:
            proposed.append(Outcome(op, found.hold or f"more than {MAX_ADDS} entries in one run"))
        else:
            made, held = pairs.paired(op, memory, setting)
            ops += made
            proposed += [held] if held else []
    for found in findings.forget:
        op = _op("forget", found, setting)
        if guards.rejected(setting.rejections, setting.key, op):
            rejected.append(Outcome(op, "a person rejected it before"))
        elif guards.duplicate(op.text, setting.waiting):
            rejected.append(Outcome(op, "it waits for review already"))
        else:
            proposed.append(Outcome(op, found.hold))
    return Extracted(tuple(ops), tuple(proposed), tuple(rejected))


def _refused(op: Op, found: offline.Found, setting: Setting, repeated: Sequence[str]) -> str:
    if guards.forgotten(
        setting.tombstones, setting.key, op.text, [m.ref for m in (found.sentence.message, *found.cites)]
    ):
        return "it was forgotten before"
    if guards.rejected(setting.rejections, setting.key, op):
        return "a person rejected it before"
    if guards.duplicate(op.text, repeated):
        return "it repeats what was recalled"
    return "it waits for review already" if guards.duplicate(op.text, setting.waiting) else ""


def _op(name: str, found: offline.Found, setting: Setting) -> Op:
    message = found.sentence.message
    stamp = dates.when(message.time)
    facts = {
        "kind": found.kind,
        "since": (stamp.date() if stamp else setting.today).isoformat(),
        "src": message.ref,
        "conf": f"{found.confidence:.2f}",
        "by": "updater",
    }
    target = found.target if name != "add" else ""
    return Op(name, setting.path("MEMORY.md"), found.text, target=target, facts=facts, reason=found.rule.name)


def _add(found: offline.Found, memory: markdown.Parsed, setting: Setting) -> Op:
    plain = _op("add", found, setting)
    facts = dict(plain.facts)
    if found.target:
        facts["supersedes"] = found.target
    if found.confidence < DURABLE:
        facts["trial"] = (setting.today + timedelta(setting.trial_days)).isoformat()
    heading = heading_for(found.kind, memory, setting.language)
    return Op("add", plain.path, plain.text, heading, fresh_id(setting.taken), facts=facts, reason=plain.reason)
