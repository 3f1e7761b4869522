"""When a job is due: gates that need no model, each refusal with its name.

The intervals and thresholds are pipiclaw's (its maintenance gates and tuning), whose users lived with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

JOBS = ("refresh", "extract", "promote", "condense", "fold")
IDLE = timedelta(minutes=10)
BACKOFF = timedelta(minutes=30)
INTERVALS: Mapping[str, timedelta] = {
    "refresh": timedelta(minutes=10),
    "extract": timedelta(minutes=20),
    "promote": timedelta(hours=6),
    "condense": timedelta(hours=6),
    "fold": timedelta(hours=6),
}
TURNS, CALLS = 2, 4
MEMORY_CHARACTERS, MEMORY_BLOCKS = 5000, 4
HISTORY_CHARACTERS, HISTORY_BLOCKS = 8000, 5


@dataclass(frozen=True, slots=True)
class State:
    """What the gates look at in one channel: turns and tool calls the job has not worked on, the last turn's time.

    Also the SESSION items that may move on, sizes in characters, dated blocks, and when each job last ended well or
    failed.
    """

    turns: int = 0
    calls: int = 0
    last_turn: datetime | None = None
    session: int = 0
    memory: int = 0
    memory_blocks: int = 0
    history: int = 0
    history_blocks: int = 0
    done: Mapping[str, datetime] = field(default_factory=dict)
    failed: Mapping[str, datetime] = field(default_factory=dict)


def skip(job: str, state: State, now: datetime) -> str:
    """Why `job` is not due now, "" when it is. `now` has a zone, as the times in `state` have."""
    if job in state.failed and now - state.failed[job] < BACKOFF:
        return "backoff-active"
    if job in state.done and now - state.done[job] < INTERVALS[job]:
        return "interval-not-elapsed"
    if job in ("refresh", "extract"):
        return _talk(job, state, now)
    if state.last_turn is not None and now - state.last_turn < IDLE:
        return "not-idle-yet"
    return "threshold-not-met" if too_short(job, state) else ""


def too_short(job: str, state: State) -> bool:
    """Whether the file that `promote`, `condense` or `fold` works on is too short to be worth it."""
    if job == "promote":
        return not state.session
    if job == "condense":
        return state.memory < MEMORY_CHARACTERS and state.memory_blocks < MEMORY_BLOCKS
    return state.history < HISTORY_CHARACTERS and state.history_blocks < HISTORY_BLOCKS


def _talk(job: str, state: State, now: datetime) -> str:
    if not state.turns:
        return "no-new-turns"
    if job == "refresh":
        return "" if state.turns >= TURNS or state.calls >= CALLS else "threshold-not-met"
    if state.turns < TURNS:
        return "threshold-not-met"
    return "not-idle-yet" if state.last_turn is not None and now - state.last_turn < IDLE else ""
