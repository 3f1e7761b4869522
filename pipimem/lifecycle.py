"""When memory is worked on in a bot's life: during work, before a compaction, at a new session, at rest.

Each step may fail without stopping the next, says why it did not run, and is tried again: a cursor moves only after
success. What a step does is update's; when it is due is `update.schedule`'s.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from pipimem import markdown
from pipimem.channels import folder_name
from pipimem.errors import Error
from pipimem.files import write_private
from pipimem.pending import read_private
from pipimem.text import decode, encode
from pipimem.turns import Turns
from pipimem.update import dates, schedule
from pipimem.update.window import WINDOW_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.transcript import Transcript
    from pipimem.turns import Window
    from pipimem.update.plan import Applied, Plan
    from pipimem.workspace import Channel, Workspace

TALK = ("refresh", "extract")
TIDY = ("promote", "condense", "fold")
JOBS = (*TALK, *TIDY)
RETAINING = tuple(job for job in JOBS if job != "promote")
"""The jobs before a compaction: a session that goes on keeps its SESSION."""
HOWS = ("done", "failed")
AGES = (timedelta(1), timedelta(2), timedelta(14))
"""When an item of SESSION is looked at: no longer of today, and when `update.promote` calls it proven or stale."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a boundary: `done`, or the reason it was not; `run` names what it changed ("" for nothing).

    `failed` tells what was tried in vain from what was not due.
    """

    name: str
    done: bool
    reason: str = ""
    run: str = ""
    failed: bool = False


class Updater(Protocol):
    """What the lifecycle asks of an opened workspace."""

    def propose(self, channel: str, transcript: Transcript, jobs: Sequence[str]) -> Plan:
        """What the jobs would change; writes nothing."""

    def tidy(self, channel: str, job: str) -> Plan:
        """What making a file shorter would change; writes nothing."""

    def apply(self, plan: Plan) -> Applied:
        """Writes, commits and indexes a plan."""

    def note_run(self, plan: Plan) -> None:
        """Puts a run that changed nothing on record."""


class Lifecycle:
    """The jobs of one channel. `now` gives the time, with its zone."""

    def __init__(self, workspace: Workspace, channel: Channel, updater: Updater, now: datetime) -> None:
        self._workspace = workspace
        self._channel = channel
        self._updater = updater
        self._now = now
        self._turns = Turns(workspace, channel.id)

    def boundary(self, transcript: Transcript | None, jobs: Sequence[str] = JOBS) -> list[Step]:
        """Runs the jobs now, before a compaction or at a new session; files are made shorter where they are long."""
        return [self.step(job, transcript, gated=False) for job in jobs]

    def maintain(self) -> list[Step]:
        """Runs what is due; each job that is not says why."""
        return [self.step(job) for job in JOBS]

    def skip(self, job: str, *, gated: bool = True) -> str:
        """Why a job is not run now, "" when it is; not `gated` at a boundary, where only a short file is left alone."""
        if gated:
            return schedule.skip(job, self.state(job), self._now)
        return "threshold-not-met" if job in TIDY and schedule.too_short(job, self.state(job)) else ""

    def step(self, job: str, transcript: Transcript | None = None, *, gated: bool = True) -> Step:
        """Runs one job, or says why not: on a transcript, or on the recorded turns it has not worked on yet."""
        why = self.skip(job, gated=gated)
        return Step(job, False, why) if why else self._run(job, transcript if job in TALK else None)

    def state(self, job: str) -> schedule.State:
        """What the gates look at for a job."""
        window = self._turns.since(self._turns.cursor(job))
        memory, history = self._text("MEMORY.md"), self._text("HISTORY.md")
        record = self._record()
        return schedule.State(
            window.turns, window.calls, dates.when(window.last),
            self._movable(record["done"].get("promote", "")), len(decode(memory)), _blocks(memory),
            len(decode(history)), _blocks(history), _times(record["done"]), _times(record["failed"]),
        )  # fmt: skip

    def _movable(self, done: str) -> int:
        """How many items of SESSION may have somewhere to go since promotion last ran on the day `done`.

        Settled ones, and those that have come of an age since: otherwise a model would be asked the same every time.
        """
        entries = markdown.parse(self._text("SESSION.md")).entries
        own = [e.facts for e in entries if e.id and e.facts.get("by") == "updater"]
        today = self._now.date().isoformat()
        return sum(bool(facts.get("until")) or _came_of_age(facts.get("since", ""), done[:10], today) for facts in own)

    def _text(self, name: str) -> bytes:
        return self._workspace.read(f"{self._channel.path}/{name}") or b""

    def _run(self, job: str, transcript: Transcript | None) -> Step:
        """One job on a transcript, or on the recorded turns it has not worked on yet."""
        talk = job in TALK and transcript is None
        window = self._turns.since(self._turns.cursor(job), WINDOW_LIMIT) if talk else None
        if window is not None and not window.transcript.messages:
            return Step(job, False, "no-new-turns")
        try:
            with self._workspace.locks([f"{self._channel.path}/MEMORY.md"]):
                pass  # what a killed writer left is settled: a plan is made on what will stand
            step = self._update(job, transcript if window is None else window.transcript)
            self._ended(job, window)
        except (Error, OSError) as error:
            if window is not None and self._turns.cursor(job) >= window.end:
                return Step(job, False, "no-new-turns")  # another run worked on them meanwhile
            self._note("failed", job)
            return Step(job, False, f"failed: {error}", failed=True)
        return step

    def _update(self, job: str, transcript: Transcript | None) -> Step:
        if job in TIDY:
            plan = self._updater.tidy(self._channel.id, job)
        else:
            assert transcript is not None
            plan = self._updater.propose(self._channel.id, transcript, [job])
        if not plan.ops:
            self._updater.note_run(plan)
            return Step(job, True, plan.rejected[0].reason if plan.rejected else "nothing to change")
        try:
            return Step(job, True, run=self._updater.apply(plan).run)
        except (Error, OSError):
            self._updater.note_run(plan)  # what was paid for it counts all the same
            raise

    def _ended(self, job: str, window: Window | None) -> None:
        if window is not None:
            self._turns.move(job, window.end)
        self._note("done", job)

    def _note(self, how: str, job: str) -> None:
        """Remembers when a job ended; a record that cannot be written only makes it run again sooner."""
        record = self._record()
        record[how][job] = self._now.isoformat(timespec="seconds")
        if how == "done":
            record["failed"].pop(job, None)
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            write_private(self._path, encode(json.dumps(record)))
        except OSError:
            return

    def _record(self) -> dict[str, dict[str, str]]:
        """When each job last ended well (`done`) and failed; what cannot be read is as if it never had."""
        try:
            found = json.loads(read_private(self._path) or b"{}")
        except ValueError:
            found = {}
        parts: dict[str, object] = {how: found.get(how) if isinstance(found, dict) else {} for how in HOWS}
        return {how: dict(part) if isinstance(part, dict) else {} for how, part in parts.items()}

    @property
    def _path(self) -> str:
        return self._workspace.private("state", "schedule", f"{folder_name(self._channel.id)}.json")


def _came_of_age(since: str, last: str, today: str) -> bool:
    """Whether an item of the day `since` came of one of the ages after the day `last` ("" for never), up to today."""
    try:
        days = [(date.fromisoformat(since) + age).isoformat() for age in AGES]
    except ValueError:
        return False
    return any(last < day <= today for day in days)


def _blocks(data: bytes) -> int:
    """How many sections of a file are headed by a date."""
    return sum(markdown.DATE.match(s.title) is not None for s in markdown.parse(data).sections)


def _times(found: dict[str, str]) -> dict[str, datetime]:
    return {job: stamp for job, text in found.items() if (stamp := dates.when(str(text))) is not None}
