"""Turns and documents → a plan: the window, the jobs, the guards. Pure: nothing here writes a file.

`plan` owns operations and their text, `window` what may be looked at, `offline` the rules, `guards` the checks,
`dates` relative days. `propose` puts them in order; memory.py applies.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from pipimem import markdown
from pipimem.index.words import fold
from pipimem.text import clip, decode, has_han, one_line
from pipimem.transcript import Message, Transcript
from pipimem.update import dates, guards, offline, review
from pipimem.update.plan import Op, Outcome, Plan, new_id
from pipimem.update.window import MESSAGE_LIMIT, bounded, sentences, too_long

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
MAX_ADDS = 40
DURABLE, TRIAL = 0.90, 0.85
TITLES = ("decision", "failure", "correction", "constraint", "fact")
SUPERSEDED_SHARE, SUPERSEDED_LEAD = 0.5, 0.1
FIRST_PERSON = re.compile(r"\b(?:I|I['’](?:m|ll|d|ve)|my|mine)\b|我(?!们)")
COMMON = frozenset(
    "the and for are not was were has have with from that this now into then than its our your their will".split()
)
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


def propose(transcript: Transcript, setting: Setting, jobs: Sequence[str] = ("extract", "refresh")) -> Plan:
    """What the offline rules would change in the channel after this conversation.

    The job `extract` gives MEMORY, a HISTORY block and proposals; `refresh` gives SESSION.
    """
    window = bounded(transcript)
    items = [s for m in window for s in sentences(m, setting.patterns, setting.allow)]
    findings = offline.find(items)
    ops: list[Op] = []
    proposed: list[Outcome] = []
    rejected = [_too_long(m, setting) for m in transcript.messages if too_long(m)]
    memory = markdown.parse(setting.text("MEMORY.md"))
    known = [e.text for e in memory.entries]
    for found in findings.memory:
        op = _memory_op(found, memory, setting)
        reason, refuse = _judge(op, found, known, setting, adds=len(ops))
        if not reason:
            ops.append(op)
            known.append(op.text)
        else:
            (rejected if refuse else proposed).append(Outcome(op, reason))
    for found in findings.forget if "extract" in jobs else ():
        op = Op(
            "forget",
            setting.path("MEMORY.md"),
            found.text,
            facts=_facts(found, setting),
            reason=found.rule.name,
        )
        if guards.duplicate(op.text, setting.waiting):
            rejected.append(Outcome(op, "it waits for review already"))
        else:
            proposed.append(Outcome(op, "forgetting is for a person to confirm"))
    adds = tuple(ops)
    if "extract" not in jobs:
        ops, proposed, rejected = [], [], []
    if "refresh" in jobs:
        ops += _session_ops(transcript, window, adds, setting)
    if "extract" in jobs:
        ops += _history_ops(transcript, window, adds, setting)
    ops += [
        review.proposal(outcome, f"{setting.run}-{number}", setting.channel, setting.today)
        for number, outcome in enumerate(proposed, 1)
    ]
    paths = dict.fromkeys(op.path for op in ops)
    return Plan(
        run=setting.run, channel=setting.channel, origin="offline", actor="updater", ops=tuple(ops),
        base={path: setting.read(path) for path in paths}, templates=setting.templates, proposed=tuple(proposed),
        rejected=tuple(rejected), source=transcript.ref,
    )  # fmt: skip


def _too_long(message: Message, setting: Setting) -> Outcome:
    op = Op("add", setting.path("MEMORY.md"), facts={"src": message.ref})
    return Outcome(op, f"the message '{message.ref}' has {len(message.text):,} characters, more than {MESSAGE_LIMIT:,}")


def _facts(found: offline.Found, setting: Setting) -> dict[str, str]:
    stamp = dates.when(found.sentence.message.time)
    return {
        "kind": found.kind,
        "since": (stamp.date() if stamp else setting.today).isoformat(),
        "src": found.sentence.message.ref,
        "conf": f"{found.confidence:.2f}",
        "by": "updater",
    }


def _memory_op(found: offline.Found, memory: markdown.Parsed, setting: Setting) -> Op:
    message = found.sentence.message
    stamp = dates.when(message.time)
    text = dates.resolve(found.text, stamp.date()) if stamp else found.text
    facts = _facts(found, setting)
    if found.kind == "correction" and (old := superseded(text, memory.entries)):
        facts["supersedes"] = old
    if found.confidence < DURABLE:
        facts["trial"] = (setting.today + timedelta(setting.trial_days)).isoformat()
    heading = heading_for(found.kind, memory, setting.language)
    return Op(
        "add", setting.path("MEMORY.md"), _attributed(text, message, setting), heading, fresh_id(setting.taken),
        facts=facts, reason=found.rule.name,
    )  # fmt: skip


def superseded(text: str, entries: Sequence[markdown.Entry]) -> str:
    """The id of the one entry a correction replaces, "" when that is not certain.

    Certain: at least half of the old entry's units (Latin words, Han pairs) stand in the correction, and no other
    entry has nearly as many. An entry a person typed has no id of its own and is never replaced.
    """
    said = units(text)
    shares = sorted(
        ((len(said & units(e.text)) / max(4, len(units(e.text))), e.id) for e in entries if e.id),
        reverse=True,
    )
    if not shares or shares[0][0] < SUPERSEDED_SHARE:
        return ""
    return "" if len(shares) > 1 and shares[1][0] > shares[0][0] - SUPERSEDED_LEAD else shares[0][1]


def units(text: str) -> set[str]:
    """The content of a text for overlap: folded Latin words of three or more letters and pairs of Han characters."""
    folded = fold(text)
    pairs = {a + b for a, b in itertools.pairwise(folded) if a >= "\u3400" and b >= "\u3400" and (a + b).isalpha()}
    return pairs | set(re.findall(r"[a-z][a-z0-9_.-]{2,}", folded)) - COMMON


def _attributed(text: str, message: Message, setting: Setting) -> str:
    """In a group an "I" needs its name, else nobody can tell later who said it."""
    if setting.kind != "group" or not message.name or not FIRST_PERSON.search(text):
        return text
    return f"{message.name}{'：' if has_han(text) else ': '}{text}"


def _judge(op: Op, found: offline.Found, known: Sequence[str], setting: Setting, *, adds: int) -> tuple[str, bool]:
    """Why an operation is not simply applied ("" when it is), and whether it is refused rather than proposed."""
    message = found.sentence.message
    if "[redacted:" in op.text:
        return "it held a secret", True
    if guards.forgotten(setting.tombstones, setting.key, op.text, [message.ref]):
        return "it was forgotten before", True
    if guards.forgotten(setting.rejections, setting.key, op.text, []):
        return "a person rejected it before", True
    if guards.duplicate(op.text, known):
        return "the memory says so already", True
    if guards.duplicate(op.text, setting.waiting):
        return "it waits for review already", True
    if reason := guards.unsafe(op.text, setting.patterns, setting.allow):
        return reason, False
    if setting.kind == "group" and message.role == "user" and not message.name:
        return "nobody knows who said it", False
    if setting.kind == "group" and not dates.when(message.time) and "明天" in op.text:
        return "a relative day without a date", False
    if adds >= MAX_ADDS:
        return f"more than {MAX_ADDS} entries in one run", False
    return "", False


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
