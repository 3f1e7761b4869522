"""The updater over one opened workspace: recorded turns, what a plan needs to know, and the plans."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pipimem import importing, markdown, sources, traces, update
from pipimem.errors import Usage
from pipimem.history import REJECTED, TOMBSTONES
from pipimem.scopes import Known, resolve
from pipimem.sources import Source
from pipimem.text import decode, printable
from pipimem.transcript import Message, Transcript
from pipimem.turns import ENGINE, Recorded, Turns, Window
from pipimem.update import Setting, summary
from pipimem.update import tidy as shorter
from pipimem.update.dates import when
from pipimem.update.plan import Applied, Op, Outcome, Plan, new_run
from pipimem.update.window import WINDOW_LIMIT
from pipimem.workspace import Channel

if TYPE_CHECKING:
    from pipimem.opened import Opened
    from pipimem.update.question import Models

JOBS = ("extract", "refresh")
ALL = (*JOBS, "promote", "condense", "fold")


def turn(memory: Opened, channel: str, messages: Sequence[object]) -> Recorded:
    """Records one finished turn for the next jobs, durably, and returns at once: no file, commit or index waits."""
    found = memory.workspace.channel(channel)
    memory.workspace.trust()
    return Turns(memory.workspace, found.id).record(messages, memory.now().isoformat(timespec="seconds"))


def recorded(memory: Opened, channel: str) -> Window:
    """The oldest recorded turns that no `update` has worked on yet: as many as it works on at once, and how many are
    left.
    """
    turns = Turns(memory.workspace, memory.workspace.channel(channel).id)
    return turns.since(min(turns.cursor(job) for job in JOBS), WINDOW_LIMIT)


def learned(memory: Opened, channel: str, window: Window) -> None:
    """An `update` is done with these turns: the next begins after them."""
    turns = Turns(memory.workspace, memory.workspace.channel(channel).id)
    for job in JOBS:
        turns.move(job, window.end)


def propose(
    memory: Opened, channel: str, transcript: Transcript, jobs: Sequence[str] = JOBS, *,
    models: Sequence[str] | None = None, again: bool = False,
) -> Plan:  # fmt: skip
    """What should change in `channel` after `transcript`; writes nothing, and holds no lock while a model thinks.

    What a message gave before is not given again, whatever a person made of it since; `again` makes the note anew.
    """
    found = memory.workspace.channel(channel)
    known = sources.read(memory.workspace.root).of(transcript.engine, transcript.session)
    setting = replace(_setting(memory, found), project=_project(memory, transcript, known), cut=memory.said.cut,
                      again=again)  # fmt: skip
    plan = update.propose(_at_home(memory, transcript), setting, jobs, _models(memory, models))
    return _unknown(plan, setting, known) if known else plan


def _at_home(memory: Opened, transcript: Transcript) -> Transcript:
    """The conversation with times in UTC told in the workspace's zone: hosts write UTC wherever the speaker is, and
    "tomorrow" is the speaker's."""
    zone = memory.now().tzinfo if memory.workspace.config["workspace.timezone"] else None

    def local(message: Message) -> Message:
        stamp = when(message.time)
        away = stamp is not None and stamp.utcoffset() == timedelta()
        return replace(message, time=stamp.astimezone(zone).isoformat()) if stamp and away else message

    return replace(transcript, messages=tuple(map(local, transcript.messages)))


def _project(memory: Opened, transcript: Transcript, known: Sequence[Source]) -> str:
    if known:
        return known[-1].name
    place = resolve(Known(transcript.cwd, transcript.session, transcript.facts), memory.channels(),
                    memory.workspace.config["workspace.projects"])  # fmt: skip
    return place.name


def _unknown(plan: Plan, setting: Setting, known: Sequence[Source]) -> Plan:
    """The plan without what its source gave before: an entry that stands, changed or archived by now, or that a person
    took out; and without a note that a person edited or took out."""
    texts = {n: setting.text(n) for n in ("MEMORY.md", "HISTORY.md", "HISTORY.archive.md")}
    stand = {(e.facts.get("src"), e.facts.get("kind")) for t in texts.values() for e in markdown.parse(t).entries}
    everything = b"".join(texts.values())
    gone = {ref for s in known for identity, ref in s.entries.items() if identity.encode() not in everything}
    note = next((s.note for s in reversed(known) if s.note), "")
    kept, rejected = list[Op](), list[Outcome]()
    for op in plan.ops:
        why = ""
        if op.op == "add" and (op.facts.get("src"), op.kind) in stand:
            why = "this message gave it before"
        elif op.op == "add" and op.facts.get("src", "").partition("#")[2] in gone:
            why = "a person took out what this message gave"
        elif op.op == "block" and note:
            why = "a person took the note out"
        elif op.op == "section" and op.path.endswith("/HISTORY.md"):
            section = markdown.find_section(markdown.parse(texts["HISTORY.md"]), op.heading)
            own = summary.mark(decode(texts["HISTORY.md"][section.body : section.end]))
            why = "a person edited the note" if own != note else "the note says so already" * (
                summary.mark(op.text) == note)  # fmt: skip
        if why:
            rejected.append(Outcome(op, why))
        else:
            kept.append(op)
    return replace(plan, ops=tuple(kept), rejected=(*plan.rejected, *rejected))


def learn(memory: Opened, channel: str, transcript: Transcript, plan: Plan, path: str = "") -> Applied:
    """Applies a plan made from a host's conversation, and notes in the list of sources what came of it, in one commit.

    A conversation that is not known yet is taken in from `path`, as one of the channel.
    """
    if transcript.engine == ENGINE:
        return memory.apply(plan)
    known = sources.read(memory.workspace.root)
    found = known.of(transcript.engine, transcript.session)
    if path:
        source, news = importing.meant(memory, channel, transcript, path)
    elif mine := [s for s in found if s.scope in ("", memory.workspace.channel(channel).id)]:
        source, news = mine[-1], False
    else:
        return memory.apply(plan)
    row = _came_of(source, plan, memory.now().isoformat(timespec="seconds"))
    if row.same(source) and not news:
        return memory.apply(plan)
    if plan.ops:
        applied = memory.apply(plan, tombstone=row.line(), into=sources.PATH)
    else:
        applied = memory.apply(plan)
        importing.register(memory, [row], f"{channel}: worked on {row.ref}")
    importing.follow(memory, known.mark, row, transcript if path else None)
    return applied


def _came_of(source: Source, plan: Plan, now: str) -> Source:
    """The source's line after a plan: what was remembered of it, the note on it, and how far the work has come."""
    entries = {op.id: op.facts.get("src", "").partition("#")[2] for op in plan.ops if op.op == "add" and op.id}
    notes = [op for op in plan.ops if op.path.endswith("/HISTORY.md") and op.op in ("block", "section")]
    note = summary.mark(notes[-1].text) if notes else source.note
    entries = {**source.entries, **entries}
    done = entries or plan.proposed or source.status == "extracted"
    status = "extracted" if done else "summarized" if note else source.status
    return replace(source, entries=entries, note=note, status=status, time=now, was="", instead="")


def _setting(memory: Opened, found: Channel) -> Setting:
    """What the updater needs to know of a channel and the moment. Each file is as it was when first looked
    at, so that what a person saves while a model thinks is seen as theirs.
    """
    config, now = memory.workspace.config, memory.now()
    memory.workspace.trust()
    key_file = memory.workspace.private("state", "key")
    language = memory.language_of(f"{found.path}/MEMORY.md")
    return update.Setting(
        channel=found.id, kind=found.kind, folder=found.path, language=language, today=now.date(),
        run=new_run(now.date().isoformat()), read=functools.cache(memory.workspace.read), taken=memory.taken,
        key=memory.key() if os.path.exists(key_file) else b"", tombstones=memory.stones(TOMBSTONES),
        recalled=traces.recalled(memory.traces), rejections=memory.stones(REJECTED),
        waiting=[p.text for p in memory.proposals() if p.channel in ("", found.id)],
        trial_days=config["update.trial_days"], patterns=tuple(config["safety.patterns"]),
        allow=tuple(config["safety.allow"]), templates=memory.templates(found),
    )  # fmt: skip


def tidy(memory: Opened, channel: str, job: str, *, models: Sequence[str] | None = None) -> Plan:
    """What `promote`, `condense` or `fold` would change now."""
    return shorter.plan(job, _setting(memory, memory.workspace.channel(channel)), _models(memory, models))


def _models(memory: Opened, names: Sequence[str] | None) -> Models | None:
    """Whom the jobs ask: the models named, or those of the settings. Raises `Usage` for a name that is none."""
    config = memory.workspace.config
    listed = list(config["update.models"]) if names is None else list(names)
    own = dict(config["update.job_models"]) if names is None else {}
    if not listed and not own:
        return None
    for job in own:
        if job not in ALL:
            raise Usage(f"The job '{printable(job)}' in 'update.job_models' is unknown.", f"One of: {', '.join(ALL)}.")
    from pipimem import llm
    from pipimem.update.question import Models

    settings = llm.Settings(servers=config["llm.servers"], scripted=names is not None)
    seconds = {job: float(config["update.timeout"]) for job in ALL}
    seconds["refresh"] = float(config["update.refresh_timeout"])
    return Models(
        [llm.provider(name, settings) for name in listed],
        {job: llm.provider(name, settings) for job, name in own.items()}, seconds,
    )  # fmt: skip
