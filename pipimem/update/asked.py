"""The extraction job by a model: what it is shown, the shape its reply must have, and the reply as guarded operations.

A model names what exists by number or id and never copies it; what it does not mention stays. Whether anything is
written is decided by the guards and by the gate here, never by the reply.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pipimem import markdown
from pipimem.llm.ladder import Answer
from pipimem.llm.shape import fit
from pipimem.text import one_line
from pipimem.transcript import Message
from pipimem.update import KINDS, Extracted, Setting, dates, fresh_id, guards, heading_for, pairs, question
from pipimem.update.plan import Op, Outcome

MOST_OPS, TEXT_LIMIT, REASON_LIMIT, MOST_CITES = 12, 300, 200, 6
ENTRIES_SHOWN = 12_000
"""Characters of the memory that a model is shown."""
DURABLE, TRIAL, TRIALS = 0.85, 0.90, 5
"""Confidence from which a necessary operation is durable, a useful one is tried, and how many are tried in a run."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["ops"],
    "properties": {
        "ops": {
            "type": "array",
            "maxItems": MOST_OPS,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["op", "text", "kind", "target", "cites", "confidence", "necessity", "reason"],
                "properties": {
                    "op": {"type": "string", "enum": ["add", "supersede", "invalidate"]},
                    "text": {"type": "string", "maxLength": TEXT_LIMIT},
                    "kind": {"type": "string", "enum": list(KINDS)},
                    "target": {"type": "string", "maxLength": 20, "description": "id of the entry, empty for add"},
                    "cites": {
                        "type": "array", "minItems": 1, "maxItems": MOST_CITES, "items": {"type": "integer"},
                    },
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "necessity": {"type": "string", "enum": ["high", "medium", "low"]},
                    "reason": {"type": "string", "maxLength": REASON_LIMIT},
                },
            },
        }
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """One operation of a reply, with the messages it cites and how much the model says it matters."""

    op: Op
    cited: tuple[Message, ...]
    confidence: float
    necessity: str


def extract(models: question.Models, window: Sequence[Message], setting: Setting) -> Extracted:
    """Asks the models in order what to remember, one question for each stretch of the window, so that all is shown.

    `origin` is "" when none of them gave a usable reply to one of the questions.
    """
    memory = markdown.parse(setting.text("MEMORY.md"))
    wanted: list[Wanted] = []
    answers: list[Answer] = []
    for shown in question.stretches(window, setting):
        parts = ["# Memory now", *_entries(memory, setting), "", *question.talk(shown, setting)]
        validate = functools.partial(_validated, shown=shown, memory=memory, setting=setting)
        answers.append(question.ask("extract", models, setting, parts, SCHEMA, validate))
        if not answers[-1].usable:
            break
        wanted += answers[-1].value or []
    usable = all(answer.usable for answer in answers)
    found = _judged(wanted, memory, setting) if usable else Extracted()
    left = [outcome for answer in answers for outcome in question.left_out(answer, setting.path("MEMORY.md"))]
    return replace(
        found, rejected=(*found.rejected, *left),
        origin=", ".join(dict.fromkeys(answer.model for answer in answers)) if usable else "",
        tokens=sum(answer.tokens for answer in answers), fell=tuple(f for answer in answers for f in answer.failures),
    )  # fmt: skip


def _entries(memory: markdown.Parsed, setting: Setting) -> list[str]:
    """The newest entries that fit, in the file's order."""
    entries, left = [], ENTRIES_SHOWN
    for identity, entry in reversed(markdown.identified(memory, setting.channel)):
        line = f"[{identity}] ({entry.facts.get('kind', 'fact')}) {one_line(entry.text)}"
        left -= len(line)
        if left < 0:
            break
        entries.append(line)
    return entries[::-1] or ["(empty)"]


def _validated(
    value: Any, shown: Sequence[Message], memory: markdown.Parsed, setting: Setting
) -> tuple[list[Wanted] | None, list[str]]:
    """The operations of a reply that mean something certain, and what is wrong with the others."""
    fitted, errors = fit(value, SCHEMA)
    if fitted is None:
        return None, errors
    known = dict(markdown.identified(memory, setting.channel))
    wanted = []
    for number, row in enumerate(fitted.get("ops", ())):
        try:
            wanted.append(_wanted(row, shown, known, setting))
        except ValueError as wrong:
            errors.append(f"ops[{number}]: {wrong}")
    return (None if errors and not wanted else wanted), errors


def _wanted(
    row: Mapping[str, Any], shown: Sequence[Message], known: Mapping[str, markdown.Entry], setting: Setting
) -> Wanted:
    cited = question.cited(row["cites"], shown)
    target = row["target"].strip().strip("[]")
    if row["op"] == "add":
        target = ""
    elif target not in known:
        raise ValueError("its target is no entry of the memory")
    if row["op"] != "invalidate" and not row["text"].strip():
        raise ValueError("its text is empty")
    op = Op(
        row["op"], setting.path("MEMORY.md"), one_line(row["text"]), target=target, reason=one_line(row["reason"]),
        facts=_facts(cited, row, target, setting),
    )  # fmt: skip
    return Wanted(op, cited, float(row["confidence"]), row["necessity"])


def _facts(cited: Sequence[Message], row: Mapping[str, Any], target: str, setting: Setting) -> dict[str, str]:
    first = next((m for m in cited if m.role == "user"), cited[0])
    stamps = [stamp for m in cited if (stamp := dates.when(m.time))]
    facts = {
        "kind": row["kind"],
        "since": (max(stamps).date() if stamps else setting.today).isoformat(),
        "src": first.ref,
        "conf": f"{float(row['confidence']):.2f}",
        "by": "updater",
    }
    return {**facts, "supersedes": target} if row["op"] == "supersede" else facts


def _judged(wanted: Sequence[Wanted], memory: markdown.Parsed, setting: Setting) -> Extracted:
    """Every operation past the guards and the gate; what is superseded stays in the file and is not recalled again."""
    ids = dict(markdown.identified(memory, setting.channel))
    verdicts = guards.check_run([(w.op, w.cited) for w in wanted], _known(ids, setting))
    ops: list[Op] = []
    proposed: list[Outcome] = []
    rejected: list[Outcome] = []
    trials = 0
    for want, verdict in zip(wanted, verdicts, strict=True):
        op, reason = verdict.op, verdict.reason
        said = ids[op.target].text if op.target in ids else ""
        if verdict.outcome != "refuse" and guards.rejected(setting.rejections, setting.key, op, said):
            rejected.append(Outcome(op, "a person rejected it before"))
        elif verdict.outcome == "write":
            trial = gate(want.op.op, want.necessity, want.confidence, trials)
            if trial is None:
                rejected.append(Outcome(op, "not certain or not necessary enough"))
                continue
            trials += trial
            made, held = pairs.paired(_placed(op, memory, setting, trial=trial), memory, setting)
            ops += made
            proposed += [held] if held else []
        elif verdict.outcome == "review":
            proposed.append(Outcome(op, reason))
        else:
            rejected.append(Outcome(op, reason))
    return Extracted(tuple(ops), tuple(proposed), tuple(rejected))


def _known(ids: Mapping[str, markdown.Entry], setting: Setting) -> guards.Known:
    """What the guards compare with; an entry a person typed goes by its derived id, and is marked as a person's."""
    entries = []
    for identity, entry in ids.items():
        if not entry.id:
            entry.id, entry.facts = identity, {**entry.facts, "by": "person"}
        entries.append(entry)
    return guards.Known(
        entries=entries, recalled=setting.repeated(), waiting=tuple(setting.waiting),
        tombstones=tuple(setting.tombstones), key=setting.key,
        group=setting.kind == "group", patterns=setting.patterns, allow=setting.allow,
    )  # fmt: skip


def gate(op: str, necessity: str, confidence: float, trials: int) -> bool | None:
    """False: durable; True: on trial; None: not written. `trials` is how many the run has on trial already."""
    if necessity == "high" and confidence >= DURABLE:
        return False
    tried = op == "add" and necessity == "medium" and confidence >= TRIAL
    return True if tried and trials < TRIALS else None


def _placed(op: Op, memory: markdown.Parsed, setting: Setting, *, trial: bool) -> Op:
    facts = dict(op.facts)
    if trial:
        facts["trial"] = (setting.today + timedelta(setting.trial_days)).isoformat()
    heading = heading_for(op.kind, memory, setting.language)
    return replace(op, op="add", heading=heading, id=fresh_id(setting.taken), target="", facts=facts)
