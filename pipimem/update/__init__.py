"""Turns and documents → a plan: the window, the jobs, the guards. Pure: nothing here writes a file.

`plan` owns operations, `window` what may be looked at, `rules` and `asked` the extraction without and with a model,
`guards` the checks, `merge` the files' new text. `propose` puts them in order; memory.py applies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.text import decode, plural
from pipimem.transcript import Message, Transcript
from pipimem.update import dates, guards, review
from pipimem.update.plan import Op, Outcome, Plan, new_id
from pipimem.update.window import MESSAGE_LIMIT, SPLIT, WINDOW_LIMIT, bounded, too_long

if TYPE_CHECKING:
    from pipimem.update.question import Models

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
SESSION_ITEMS, SESSION_ITEM = 12, 300
"""Items a section of SESSION.md holds, and characters an item has at most (design §3)."""
ARCHIVE = "HISTORY.archive.md"
ARCHIVE_TEMPLATE = b"# History archive\n"
TURNS = "turn"  # the engine of recorded turns


SHARED = ("MEMORY.md", "USER.md")


@dataclass(frozen=True, slots=True)
class Setting:
    """What `propose` needs to know about the channel and the moment; clocks and keys arrive here.

    `recalled` are the ids of entries that a recall gave lately; `project` is what the conversation was for, `cut` cuts
    Chinese into words; `again` derives a note that stands anew. `read` gives a file as it was when first asked for it:
    what a plan is made from is its base.
    """

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
    recalled: AbstractSet[str] = frozenset()
    trial_days: int = 30
    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    templates: Mapping[str, bytes] = field(default_factory=dict)
    project: str = ""
    cut: Callable[[Sequence[str]], list[list[str]]] | None = None
    again: bool = False

    def path(self, name: str) -> str:
        """A file of the channel."""
        return f"{self.folder}/{name}"

    def text(self, name: str) -> bytes:
        """The bytes a file of the channel has, or starts with."""
        data = self.read(self.path(name))
        return self.templates.get(self.path(name), b"") if data is None else data

    def repeated(self) -> list[str]:
        """What recalls gave lately of the shared files: said again in the channel it is no news of its own."""
        entries = (e for name in SHARED if self.recalled for e in markdown.parse(self.read(name) or b"").entries)
        return [entry.text for entry in entries if entry.id in self.recalled]


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
    transcript: Transcript, setting: Setting, jobs: Sequence[str] = ("extract", "refresh"), models: Models | None = None
) -> Plan:  # fmt: skip
    """What should change in the channel after this conversation, by the models in order, else by rules.

    The job `extract` gives MEMORY, a HISTORY block and proposals; `refresh` gives SESSION. `origin` names the models
    whose replies they are, and `offline` for the rules; nothing of a reply is in the plan that the guards did not let
    through.
    """
    from pipimem.update import refresh

    transcript, gone = unforgotten(transcript, setting.tombstones, setting.key)
    window = bounded(transcript)
    parts: list[Extracted] = []
    if "extract" in jobs:
        found = _extracted(window, setting, models)
        left = tuple(_too_long(m, setting) for m in transcript.messages if too_long(m))
        memory = setting.path("MEMORY.md")
        left += tuple(Outcome(Op("add", memory, facts={"src": ref}), "it was forgotten before") for ref in gone)
        if middle := [m for m in transcript.messages if m not in window and not too_long(m)]:
            after = plural(len(middle) - 1, "message")
            why = f"it and {after} after it do not fit in the {WINDOW_LIMIT:,} characters that are worked on at once"
            left += (Outcome(Op("add", memory, facts={"src": middle[0].ref}), why),)
        told = without_held(window, [*found.proposed, *(o for o in found.rejected if o.reason in UNTOLD)])
        history = _history_ops(transcript, told, [op for op in found.ops if op.op == "add"], setting)
        marks = _kept_trials(found, setting)
        parts.append(replace(found, ops=(*found.ops, *marks, *history), rejected=(*left, *found.rejected)))
    if "refresh" in jobs:
        parts.append(refresh.refresh(transcript, window, parts[0] if parts else None, setting, models))
    return planned(parts, setting, transcript.ref)


UNTOLD = ("it was forgotten before", "a person rejected it before", "it waits for review already")
HELD = 0.6
"""Share of a sentence's content from which it says what an operation says that is held back."""


def without_held(window: Sequence[Message], held: Sequence[Outcome]) -> list[Message]:
    """The messages without the sentences that only became proposals, or were refused as a person's decision: HISTORY
    must not say what a person has yet to allow, or did not.
    """
    from pipimem.update.grounds import units

    texts: dict[str, list[set[str]]] = {}
    for outcome in held:
        texts.setdefault(outcome.op.facts.get("src", ""), []).append(units(outcome.op.text))
    kept = []
    for message in window:
        said = texts.get(message.ref, [])
        parts = SPLIT.split(message.text) if said else [message.text]
        left = [p for p in parts if not any(len(units(p) & own) > HELD * len(units(p)) for own in said)]
        kept.append(message if len(left) == len(parts) else replace(message, text="\n".join(left).strip()))
    return kept


def _kept_trials(found: Extracted, setting: Setting) -> list[Op]:
    """What proved useful is on trial no more; an entry that another operation of the run touches is left to that."""
    from pipimem.update import trials

    touched = {op.target for op in found.ops}
    kept = trials.kept(markdown.parse(setting.text("MEMORY.md")), found.rejected, setting)
    return [op for op in kept if op.target not in touched]


def planned(parts: Sequence[Extracted], setting: Setting, source: str, *, whole: bool = False) -> Plan:
    """One plan of what the jobs found: operations, then what is held back as proposals."""
    proposed = [outcome for part in parts for outcome in part.proposed]
    ops = [op for part in parts for op in part.ops]
    ops += [
        review.proposal(outcome, f"{setting.run}-{number}", setting.channel, setting.today, _old(outcome, setting))
        for number, outcome in enumerate(proposed, 1)
    ]
    paths = dict.fromkeys(op.path for op in ops)
    templates = dict(setting.templates)
    if (archive := setting.path(ARCHIVE)) in paths:
        templates[archive] = ARCHIVE_TEMPLATE
    return Plan(
        run=setting.run, channel=setting.channel, origin=", ".join(dict.fromkeys(part.origin for part in parts)),
        actor="updater", ops=tuple(ops), base={path: setting.read(path) for path in paths}, templates=templates,
        proposed=tuple(proposed), rejected=tuple(o for part in parts for o in part.rejected), source=source,
        tokens=sum(part.tokens for part in parts), fell=tuple(line for part in parts for line in part.fell),
        whole=whole,
    )  # fmt: skip


def _old(outcome: Outcome, setting: Setting) -> str:
    """The text of the entry a held-back operation acts on, "" for none."""
    op = outcome.op
    data = setting.read(op.path) if op.target else None
    entry = markdown.entry_by_id(markdown.parse(data), setting.channel, op.target) if data else None
    return entry.text if entry else ""


def unforgotten(transcript: Transcript, tombstones: Sequence[str], key: bytes) -> tuple[Transcript, list[str]]:
    """The conversation without what a person had forgotten: messages by their source, sentences by their words.

    So nothing of it comes back, in whatever file a job writes. And the references of the messages that lost something;
    those that are out for their source are told by the first.
    """
    forgotten = guards.Forgotten(tombstones, key)
    if not forgotten:
        return transcript, []
    kept, cut = [], [m.ref for m in transcript.messages if forgotten.rests(m.ref)][:1]
    for message in transcript.messages:
        if forgotten.rests(message.ref):
            continue
        parts = [part for part in SPLIT.split(message.text) if part.strip()]
        gone = [part for part in parts if forgotten.covers(part)]
        if gone or forgotten.covers(message.text):
            left = "" if len(gone) == len(parts) or not gone else message.text
            for part in gone:
                left = left.replace(part, "")
            message = replace(message, text=left.strip())
            cut.append(message.ref)
        if message.text or message.files or message.commands:
            kept.append(message)
    return replace(transcript, messages=tuple(kept)), cut


def _extracted(window: Sequence[Message], setting: Setting, models: Models | None) -> Extracted:
    """What a model makes of the window, or where none gives a usable reply, the rules."""
    from pipimem.update import rules

    if models is None or not models.of("extract") or not window:
        return rules.extract(window, setting)
    from pipimem.update import asked

    found = asked.extract(models, window, setting)
    if found.origin:
        return found
    return replace(rules.extract(window, setting), tokens=found.tokens, fell=found.fell)


def _too_long(message: Message, setting: Setting) -> Outcome:
    op = Op("add", setting.path("MEMORY.md"), facts={"src": message.ref})
    return Outcome(op, f"the message '{message.ref}' has {len(message.text):,} characters, more than {MESSAGE_LIMIT:,}")


def day_of(window: Sequence[Message]) -> str:
    """The day of the newest message, ISO, "" where none has a time."""
    stamps = [s for m in window if (s := dates.when(m.time))]
    return max(stamps).date().isoformat() if stamps else ""


def _history_ops(transcript: Transcript, window: Sequence[Message], adds: Sequence[Op], setting: Setting) -> list[Op]:
    """One dated note that says what the conversation was about, in its own sentences, once per conversation.

    A host's conversation leaves one even when nothing was remembered of it; recorded turns, which are worked on every
    few minutes, only with what was. Done `again`, the note that stands gets the new text, under its old title.
    """
    from pipimem.update import summary

    path = setting.path("HISTORY.md")
    there = transcript.ref in decode(setting.text("HISTORY.md") + setting.text("HISTORY.archive.md"))
    if (there and not setting.again) or (not adds and transcript.engine == TURNS):
        return []
    made = summary.note(transcript, window, adds, setting)
    if made is None:
        return []
    title, text = made
    if not there:
        return [Op("block", path, text, title, reason="a record of the conversation")]
    old = summary.standing(setting.text("HISTORY.md"), transcript.ref)
    return [Op("section", path, text, old.name, reason="the record of the conversation anew")] if old else []
