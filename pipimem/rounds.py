"""Rounds over the channels beside a watch: due jobs, one at a time, each channel in turn, within the day's budget.

What is due, and doing it, is lifecycle.py's; the budget and the queue are maintaining.py's.
"""

from __future__ import annotations

import os
import time
from datetime import datetime

from pipimem import maintaining
from pipimem.errors import Busy, Error
from pipimem.lifecycle import JOBS, Lifecycle
from pipimem.memory import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Report = Callable[[dict[str, Any]], None]

LOOK, TICK = 30.0, 1.0
"""Seconds between two looks whether a job is due, and between two whether a hook left something."""


class Rounds:
    """The rounds in one workspace. `report` is given each job as it ends, and each new reason why one is not run."""

    def __init__(self, root: str, report: Report) -> None:
        self._root = root
        self._report = report
        self._told: dict[tuple[str, str], str] = {}
        self._seen: object = None
        self._embedded_at: object = None

    def run(self, wait: Callable[[float], bool]) -> None:
        """Goes round until `wait` (which waits that many seconds) says so; a signal's exception ends it at once."""
        next_look = 0.0
        while not wait(0):
            left = self._queue_stamp()
            if left != self._seen or time.monotonic() >= next_look:
                more, self._seen = self._round(wait), left
                next_look = time.monotonic() + (TICK if more else LOOK)
            wait(TICK)

    def _round(self, wait: Callable[[float], bool]) -> bool:
        """What hooks left, then at most one job of each channel; whether there may be more to do at once."""
        try:
            with Memory(self._root) as memory:
                self._skipped("", "queue", memory.work_off(self._worked))
                ran = self._embedded(memory)
                for channel in memory.channels():
                    if wait(0):
                        return False
                    ran = self._job(memory, channel.id) or ran
                return ran
        except (Error, OSError) as error:
            self._skipped("", "round", str(error))
            return False

    def _embedded(self, memory: Memory) -> bool:
        """Embeds a slice of what has no vector yet, where that may be done unasked; whether there is more."""
        if memory.meaning is None or not memory.meaning.wanted:
            return False
        index = _stamp(memory.passages.path())
        if index == self._embedded_at:
            return False
        try:
            done = memory.meaning.keep_up(slices=True)
        except Error as error:
            self._skipped("", "vectors", str(error))
            return False
        self._skipped("", "vectors", "")
        if done.texts:
            self._say("embedded", texts=done.texts, waiting=done.waiting, model=done.model)
        if not (done.texts and done.waiting):
            self._embedded_at = index
        return bool(done.texts and done.waiting)

    def _job(self, memory: Memory, channel: str) -> bool:
        """Runs the channel's first job that is due; whether there was one and it was done."""
        memory.workspace.trust()
        life = Lifecycle(memory.workspace, memory.workspace.channel(channel), memory, memory.now())
        reasons = {job: life.skip(job) for job in JOBS}
        due = next((job for job, why in reasons.items() if not why), "")
        if due:
            reasons[due] = maintaining.over(memory)
        for job, why in reasons.items():
            self._skipped(channel, job, why)
        if not due or reasons[due]:
            return False
        try:
            with maintaining.alone(memory):
                step = life.step(due)
        except Busy:
            self._skipped(channel, due, maintaining.ANOTHER)
            return False
        self._worked(maintaining.work("due", channel, step))
        return step.done

    def _worked(self, row: dict[str, Any]) -> None:
        self._say("job", channel=row["channel"], because=row["event"], job=row["job"], done=row["done"],
                  reason=row["reason"], run=row["run"])  # fmt: skip

    def _skipped(self, channel: str, job: str, why: str) -> None:
        """Says why a job is not run, once until the reason is another."""
        if self._told.get((channel, job), "") != why:
            self._told[channel, job] = why
            if why:
                self._say("skipped", channel=channel, job=job, reason=why)

    def _say(self, event: str, **facts: Any) -> None:
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        self._report({"event": event, "time": now, **facts})

    def _queue_stamp(self) -> object:
        return _stamp(os.path.join(self._root, ".pipimem", "state", "queue.jsonl"))


def _stamp(path: str) -> object:
    """What changes when the file at `path` does, or a database's log beside it; None where neither is there."""
    found = [os.stat(p) for p in (path, path + "-wal") if os.path.exists(p)]
    return [(f.st_ino, f.st_size, f.st_mtime_ns) for f in found] or None
