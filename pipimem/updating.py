"""The updater over one opened workspace: recorded turns, what a plan needs to know, and the plans."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipimem import traces, update
from pipimem.errors import Usage
from pipimem.history import REJECTED, TOMBSTONES
from pipimem.text import printable
from pipimem.transcript import Transcript
from pipimem.turns import Recorded, Turns, Window
from pipimem.update import Setting
from pipimem.update import tidy as shorter
from pipimem.update.plan import Plan, new_run
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
    """The recorded turns that no `update` has worked on yet."""
    turns = Turns(memory.workspace, memory.workspace.channel(channel).id)
    return turns.since(min(turns.cursor(job) for job in JOBS))


def learned(memory: Opened, channel: str, window: Window) -> None:
    """An `update` is done with these turns: the next begins after them."""
    turns = Turns(memory.workspace, memory.workspace.channel(channel).id)
    for job in JOBS:
        turns.move(job, window.end)


def propose(
    memory: Opened, channel: str, transcript: Transcript, jobs: Sequence[str] = JOBS, *,
    models: Sequence[str] | None = None,
) -> Plan:  # fmt: skip
    """What should change in `channel` after `transcript`; writes nothing, and holds no lock while a model thinks."""
    setting = _setting(memory, memory.workspace.channel(channel))
    return update.propose(transcript, setting, jobs, _models(memory, models))


def _setting(memory: Opened, found: Channel) -> Setting:
    """What the updater needs to know of a channel and the moment."""
    config, now = memory.workspace.config, memory.now()
    memory.workspace.trust()
    key_file = memory.workspace.private("state", "key")
    language = memory.language_of(f"{found.path}/MEMORY.md")
    return update.Setting(
        channel=found.id, kind=found.kind, folder=found.path, language=language, today=now.date(),
        run=new_run(now.date().isoformat()), read=memory.workspace.read, taken=memory.taken,
        key=memory.key() if os.path.exists(key_file) else b"", tombstones=memory.stones(TOMBSTONES),
        recalled=traces.recalled(memory.traces), rejections=memory.stones(REJECTED),
        waiting=[p.text for p in memory.proposals()],
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
