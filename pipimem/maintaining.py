"""Background work on one opened workspace: what hooks left in the queue, within the budget of a day.

One process at a time works, so that nothing is paid for twice. A line leaves the queue after its work; the turns it
brought and the cursors of the jobs see to it that what a killed process had done is not done again. When a job is due
is lifecycle.py's to say.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipimem import importing, sources, updating
from pipimem.errors import Busy, Error, Unreadable
from pipimem.files import locked, own_folder
from pipimem.lifecycle import JOBS, RETAINING, Step
from pipimem.queued import Line, Queue
from pipimem.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from pipimem.lifecycle import Lifecycle
    from pipimem.opened import Opened
    from pipimem.sources import Source

    Report = Callable[[dict[str, Any]], None]

TAIL = 4 * 1024 * 1024
"""Bytes of the run record that are read for the day's figures: more than a day's runs at the highest budget."""
ANOTHER = "another-run-active"
MOST = 5
"""Imported conversations of a channel that one run works on."""
WAITING = ("indexed", "archived")
GATED = ("turn",)
"""The events at which the usual gates hold; the others are boundaries, at which everything is worked up."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What the updater did and was paid in one day."""

    runs: int = 0
    tokens: int = 0


def spent(memory: Opened) -> Spent:
    """The updater's runs of today, in the workspace's zone, by the run record."""
    day, runs, tokens = memory.today(), 0, 0
    for line in _tail(memory.workspace.private("state", "runs.jsonl")).splitlines():
        try:
            row = json.loads(line)
            if row["actor"] == "updater" and str(row["time"]).startswith(day):
                runs, tokens = runs + 1, tokens + int(row["tokens"])
        except (ValueError, KeyError, TypeError):
            continue
    return Spent(runs, tokens)


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read()
    except OSError:
        return b""


def over(memory: Opened) -> str:
    """Why nothing more may be run in the background today, "" when it may. Looked at before each job."""
    today = spent(memory)
    if today.runs >= memory.workspace.config["schedule.runs"]:
        return "budget-runs"
    return "budget-tokens" if today.tokens >= memory.workspace.config["schedule.tokens"] else ""


def today(memory: Opened) -> dict[str, int]:
    """The day's figures beside their limits."""
    config, found = memory.workspace.config, spent(memory)
    return {
        "runs": found.runs, "runs_limit": config["schedule.runs"],
        "tokens": found.tokens, "tokens_limit": config["schedule.tokens"],
    }  # fmt: skip


def queue(memory: Opened) -> dict[str, Any]:
    """How many lines wait and since when, and those given up, with their reason."""
    lines = Queue(memory.workspace).lines()
    waiting = [line for line in lines if not line.given_up]
    return {
        "waiting": len(waiting),
        "since": waiting[0].time if waiting else "",
        "failing": [_shown(line) for line in waiting if line.tries],
        "given_up": [_shown(line) for line in lines if line.given_up],
    }


def _shown(line: Line) -> dict[str, Any]:
    return {
        "event": line.event, "channel": line.channel, "transcript": line.transcript, "time": line.time,
        "tries": line.tries, "reason": line.why,
    }  # fmt: skip


def alone(memory: Opened) -> AbstractContextManager[None]:
    """The right to do background work in this workspace. Raises `Busy` at once where another process has it."""
    memory.workspace.prepare()
    return locked(own_folder(memory.workspace.private(), "locks"), ["maintain"], 0)


def imported(memory: Opened, channel: str) -> list[Source]:
    """The imported conversations of a channel that have yet to be worked on, or anew as they have grown; oldest first.

    Not those whose host's hooks record them (they are worked on as turns), nor what cannot be read here.
    """
    known, own = sources.read(memory.workspace.root), importing.trusted(memory)
    fed, folder = Turns(memory.workspace, channel).fed(), memory.workspace.channel(channel).path
    told = b"".join(memory.workspace.read(f"{folder}/{name}") or b"" for name in ("HISTORY.md", "HISTORY.archive.md"))
    last = {(s.engine, s.session): s for s in known}.values()
    found = [s for s in last if s.scope == channel and s.status in WAITING and importing.mark_of(s) in own]
    found = [s for s in found if s.ref not in fed and (s.note or s.ref.encode() not in told) and s.there]
    return sorted(found, key=lambda s: s.first)


def catch_up(memory: Opened, channel: str, *, budgeted: bool = False) -> Iterator[Step]:
    """Works on the oldest few imported conversations that wait, as `update --source` does; SESSION is left as it is.

    Each leaves a dated note in HISTORY, unless nothing was said that would be looked for again.
    """
    for source in imported(memory, channel)[:MOST]:
        if budgeted and (why := over(memory)):
            yield Step("budget", False, why)
            return
        try:
            with alone(memory):
                step = _caught_up(memory, channel, source)
        except Busy:
            step = Step("imported", False, ANOTHER)
        yield step


def _caught_up(memory: Opened, channel: str, source: Source) -> Step:
    try:
        if sources.read(memory.workspace.root).rows.get(source.key) != source:
            return Step("imported", False, ANOTHER)  # it was worked on meanwhile
        transcript = importing.reread(memory, source.ref, channel)
        plan = updating.propose(memory, channel, transcript, ["extract"], again=bool(source.note))
        run = updating.learn(memory, channel, transcript, plan).run
        _stands(memory, channel, source, "summarized")
    except Unreadable as error:
        _stands(memory, channel, source, "error")  # the next import tries again
        return Step("imported", False, f"failed: {error}", failed=True)
    except (Error, OSError) as error:
        return Step("imported", False, f"failed: '{source.ref}': {error}", failed=True)
    return Step("imported", True, source.ref, run)


def _stands(memory: Opened, channel: str, source: Source, status: str) -> None:
    """Notes how far a conversation has come, where its line does not say more yet."""
    known = sources.read(memory.workspace.root)
    row = known.rows.get(source.key)
    if row is not None and row.status in WAITING:
        row = replace(row, status=status, time=memory.now().isoformat(timespec="seconds"), was="", instead="")
        importing.register(memory, [row], f"{channel}: worked on {row.ref}")
        importing.follow(memory, known.mark, row)


def work_off(memory: Opened, lifecycle: Callable[[str], Lifecycle], report: Report) -> str:
    """Works off the queue, oldest line first, then a few imported conversations of each channel; why it stopped before
    the end, "" where nothing is left to do now.

    A line written while the last one is worked on is seen: its own process may have found this one at work and left.
    """
    memory.workspace.trust()
    stopped = ""
    try:
        while not stopped and Queue(memory.workspace).due(memory.now().timestamp()):
            with alone(memory):
                stopped = _drain(memory, lifecycle, report)
    except Busy:
        return ANOTHER
    for channel in memory.channels() if not stopped else ():
        for step in catch_up(memory, channel.id, budgeted=True):
            if step.name == "budget":
                return step.reason
            report(work("imported", channel.id, step))
    return stopped


def _drain(memory: Opened, lifecycle: Callable[[str], Lifecycle], report: Report) -> str:
    """Each line that is due, once; why some had to be left."""
    stopped = ""
    for line in Queue(memory.workspace).due(memory.now().timestamp()):
        stopped = _work(memory, lifecycle, line, report) or stopped
    return stopped


def _work(memory: Opened, lifecycle: Callable[[str], Lifecycle], line: Line, report: Report) -> str:
    """One line; why it has to wait, "" when it is done with, well or not."""
    failed = ""
    try:
        for step in _steps(memory, lifecycle, line):
            if step.name == "budget":
                return step.reason
            report(work(line.event, line.channel, step))
            failed = failed or (step.reason if step.failed else "")
    except (Error, OSError) as error:
        failed = f"failed: {error}"
    except Exception as error:  # noqa: BLE001 - one line that goes wrong does not stop the others
        failed = f"failed: {error!r}"
    if not failed:
        Queue(memory.workspace).done([line.id])
        return ""
    Queue(memory.workspace).failed(line.id, failed, memory.now().timestamp())
    report(work(line.event, line.channel, Step("queue", False, failed, failed=True)))
    return ""


def work(event: str, channel: str, step: Step) -> dict[str, Any]:
    """A step of background work as it is reported."""
    return {
        "event": event, "channel": channel, "job": step.name, "done": step.done, "reason": step.reason,
        "run": step.run,
    }  # fmt: skip


def _steps(memory: Opened, lifecycle: Callable[[str], Lifecycle], line: Line) -> Iterator[Step]:
    """What a line asks for: the index brought up to date, or its stretch recorded and the channel's jobs run."""
    if line.event == "stale":
        memory.sync()
        yield Step("index", True)
        return
    yield from _recorded(memory, line)
    life = lifecycle(line.channel)
    for job in JOBS if line.event != "compact" else RETAINING:
        gated = line.event in GATED
        if not life.skip(job, gated=gated) and (why := over(memory)):
            yield Step("budget", False, why)
            return
        yield life.step(job, gated=gated)


def _recorded(memory: Opened, line: Line) -> Iterator[Step]:
    """Records what the line's transcript says up to its end, as turns of the channel."""
    if not line.transcript:
        return
    from pipimem import importing, update
    from pipimem.history import TOMBSTONES

    channel = memory.workspace.channel(line.channel)
    said = importing.load(memory, line.transcript)
    importing.adopt(memory, channel.id, said, line.transcript)  # what is remembered of it is opened there
    transcript, _ = update.unforgotten(said, memory.stones(TOMBSTONES), memory.key())
    done = Turns(memory.workspace, channel.id).feed(transcript, line.end, memory.now().isoformat(timespec="seconds"))
    left = ", ".join(f"{count} {reason}" for reason, count in done.skipped.items())
    yield Step("record", True, f"{done.recorded} messages" + (f", left out: {left}" if left else ""))
