"""Turns and documents → a plan: the window, the jobs, the guards. Pure: nothing here writes a file.

`plan` owns operations, `window` what may be looked at, `rules` and `asked` the extraction without and with a model,
`guards` the checks, `merge` the files' new text. `propose` puts them in order; memory.py applies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.text import clip, decode, one_line
from pipimem.transcript import Message, Transcript
from pipimem.update import dates, guards, offline, review
from pipimem.update.plan import Op, Outcome, Plan, new_id
from pipimem.update.window import MESSAGE_LIMIT, bounded, too_long

if TYPE_CHECKING:
    from pipimem.llm import Provider

HEADINGS: Mapping[str, tuple[str, ...]] = {
    "decision": ("Decisions", "决定", "决策"),
    "preference": ("Preferences", "偏好"),
    "constraint": ("Constraints", "约束", "限制"),
    "open-loop": ("Open Loops", "待办", "未决事项"),
    "fact": ("Facts", "Durable Facts", "事实"),
    "lesson": ("Lessons", "教训", "经验"),
}
LESSONS = ("failure", "correction", "insight", "convention", "tool-quirk", "lesson")
KINDS = (*(k for k in HEADINGS if k != "lesson"), *LESSONS)
SESSION_LIMIT, ITEM_LIMIT = 12, 300
TITLES = ("decision", "failure", "correction", "constraint", "fact")
SESSION_PLACES = {
    "open-loop": "Next Steps",
    "correction": "Errors & Corrections",
    "failure": "Errors & Corrections",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What `propose` needs to know about the channel and the moment; clocks and keys arrive here."""

    channel: str
    kind: str
    folder: str
    language: str
    run: str
    today: date
    read: Callable[[str], bytes | None]
    taken: Callable[[str], bool]
    key: bytes = b""
    tombstones: Sequence[str] = ()
    rejections: Sequence[str] = ()
    waiting: Sequence[str] = ()
    trial_days: int = 30
    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    templates: Mapping[str, bytes] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """A file of the channel."""
        return f"{self.folder}/{name}"

    def text(self, name: str) -> bytes:
        """The bytes a file of the channel has, or starts with."""
        data = self.read(self.path(name))
        return self.templates.get(self.path(name), b"") if data is None else data


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a window comes to: operations to write, to propose, and left out, each with the reason.

    `origin` is `offline` or the model whose reply it is ("" where none gave one); `tokens` what models were paid,
    `fell` what each of them failed with.
    """

    ops: tuple[Op, ...] = ()
    proposed: tuple[Outcome, ...] = ()
    rejected: tuple[Outcome, ...] = ()
    origin: str = "offline"
    tokens: int = 0
    fell: tuple[str, ...] = ()


def heading_for(kind: str, parsed: markdown.Parsed, language: str) -> str:
    """The section an entry of that kind belongs to: one the file has, else the usual name in its language."""
    names = HEADINGS["lesson" if kind in LESSONS else kind if kind in HEADINGS else "fact"]
    have = {s.title: s for s in parsed.sections if s.level}
    found = next((have[n].name for n in names if n in have), "")
    return found or (names[1 if language == "zh" and kind != "fact" else 2 if language == "zh" else 0])


def fresh_id(taken: Callable[[str], bool]) -> str:
    """An entry id the workspace does not have yet."""
    identity = new_id()
    while taken(identity):
        identity = new_id()
    return identity


def propose(
    transcript: Transcript, setting: Setting, jobs: Sequence[str] = ("extract", "refresh"),
    models: Sequence[Provider] = (), timeout: float = 60.0,
) -> Plan:  # fmt: skip
    """What should change in the channel after this conversation, by the models in order, else by rules.

    The job `extract` gives MEMORY, a HISTORY block and proposals; `refresh` gives SESSION. `origin` names the model
    whose reply it is, or `offline`; nothing of a reply is in the plan that the guards did not let through.
    """
    window = bounded(transcript)
    rejected = [_too_long(m, setting) for m in transcript.messages if too_long(m)] if "extract" in jobs else []
    found = _extracted(window, setting, models if "extract" in jobs else (), timeout)
    made: list[Op] = []
    if "extract" in jobs:
        made += [*found.ops, *_history_ops(transcript, window, found.ops, setting)]
        made += [
            review.proposal(outcome, f"{setting.run}-{number}", setting.channel, setting.today)
            for number, outcome in enumerate(found.proposed, 1)
        ]
        rejected += found.rejected
    if "refresh" in jobs:
        made += _session_ops(transcript, window, found.ops, setting)
    paths = dict.fromkeys(op.path for op in made)
    return Plan(
        run=setting.run, channel=setting.channel, origin=found.origin, actor="updater", ops=tuple(made),
        base={path: setting.read(path) for path in paths}, templates=setting.templates,
        proposed=found.proposed if "extract" in jobs else (), rejected=tuple(rejected), source=transcript.ref,
        tokens=found.tokens, fell=found.fell,
    )  # fmt: skip


def _extracted(window: Sequence[Message], setting: Setting, models: Sequence[Provider], timeout: float) -> Extracted:
    """What a model makes of the window, or where none gives a usable reply, the rules."""
    from pipimem.update import rules

    if not models or not window:
        return rules.extract(window, setting)
    from pipimem.update import asked

    found = asked.extract(models, window, setting, timeout=timeout)
    if found.origin:
        return found
    return replace(rules.extract(window, setting), tokens=found.tokens, fell=found.fell)


def _too_long(message: Message, setting: Setting) -> Outcome:
    op = Op("add", setting.path("MEMORY.md"), facts={"src": message.ref})
    return Outcome(op, f"the message '{message.ref}' has {len(message.text):,} characters, more than {MESSAGE_LIMIT:,}")


def _session_ops(transcript: Transcript, window: Sequence[Message], adds: Sequence[Op], setting: Setting) -> list[Op]:
    """What is going on now: open loops, corrections, files touched, one line of work; never more than fits."""
    parsed = markdown.parse(setting.text("SESSION.md"))
    wanted = [(SESSION_PLACES[op.kind], op.text) for op in adds if op.kind in SESSION_PLACES]
    wanted += [("Active Files", path) for path in _files(window)]
    if window and transcript.ref not in decode(parsed.data):
        wanted.append(("Worklog", _worklog(transcript, window, adds)))
    ops = []
    counts = {s.title: sum(e.trail == s.trail for e in parsed.entries) for s in parsed.sections}
    known = [e.text for e in parsed.entries]
    for heading, text in wanted:
        line = clip(one_line(text), ITEM_LIMIT)
        if guards.duplicate(line, known) or counts.get(heading, 0) >= SESSION_LIMIT:
            continue
        if guards.unsafe(line, setting.patterns, setting.allow):
            continue
        ops.append(Op("note", setting.path("SESSION.md"), line, heading, reason="the session's state"))
        counts[heading] = counts.get(heading, 0) + 1
        known.append(line)
    return ops


def _files(window: Sequence[Message]) -> list[str]:
    """The last five files the agent's tools named, newest last."""
    named = [os.path.normpath(f) for m in window for f in m.files]
    return list(dict.fromkeys(reversed(named)))[:5][::-1]


def _worklog(transcript: Transcript, window: Sequence[Message], adds: Sequence[Op]) -> str:
    day = _day(window)
    return f"{day} {transcript.ref}: {len(window)} messages, {len(adds)} remembered"


def _day(window: Sequence[Message]) -> str:
    stamps = [s for m in window if (s := dates.when(m.time))]
    return max(stamps).date().isoformat() if stamps else ""


def _history_ops(transcript: Transcript, window: Sequence[Message], adds: Sequence[Op], setting: Setting) -> list[Op]:
    """One dated block that says what the conversation was about, in its own sentences, once per conversation."""
    path = setting.path("HISTORY.md")
    if not adds or not window or transcript.ref in decode(setting.text("HISTORY.md")):
        return []
    task = next((m.text for m in window if m.role == "user" and len(m.text) >= offline.SHORT), "")
    stamps = sorted(s for m in window if (s := dates.when(m.time)))
    lines = [f"- Task: {clip(one_line(_safe(task, setting)), ITEM_LIMIT)}"]
    lines += [f"- {op.kind}: {clip(op.text, ITEM_LIMIT)}" for op in adds[:8]]
    span = f", {stamps[0]:%H:%M}–{stamps[-1]:%H:%M}" if stamps else ""
    lines.append(f"- Evidence: {transcript.ref}, {len(window)} messages{span}")
    first = min(adds, key=lambda op: TITLES.index(op.kind) if op.kind in TITLES else len(TITLES))
    title = f"{_day(window) or setting.today.isoformat()} {clip(one_line(first.text), 60)}"
    return [Op("block", path, "\n".join(lines), title, reason="a record of the conversation")]


def _safe(text: str, setting: Setting) -> str:
    from pipimem import safety

    cleaned = safety.redact(text, setting.patterns, setting.allow)
    return "(withheld: it reads like an order to the assistant)" if safety.instructions(cleaned) else cleaned
