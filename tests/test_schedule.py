"""Gates: a job runs when it is due and not before, and each refusal has its name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem.update.schedule import JOBS, State, skip

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("job", "state", "reason"),
    [
        ("refresh", State(), "no-new-turns"),
        ("refresh", State(turns=1, calls=3), "threshold-not-met"),
        ("refresh", State(turns=1, calls=4), ""),
        ("refresh", State(turns=2, last_turn=ago(0)), ""),
        ("refresh", State(turns=2, done={"refresh": ago(9)}), "interval-not-elapsed"),
        ("refresh", State(turns=2, done={"refresh": ago(10)}), ""),
        ("refresh", State(turns=2, failed={"refresh": ago(29)}), "backoff-active"),
        ("refresh", State(turns=2, failed={"refresh": ago(30), "extract": ago(1)}), ""),
        ("extract", State(turns=2, last_turn=ago(9)), "not-idle-yet"),
        ("extract", State(turns=2, last_turn=ago(10)), ""),
        ("extract", State(turns=1, calls=9, last_turn=ago(60)), "threshold-not-met"),
        ("extract", State(turns=2, last_turn=ago(60), done={"extract": ago(19)}), "interval-not-elapsed"),
        ("condense", State(memory=4999, memory_blocks=3), "threshold-not-met"),
        ("condense", State(memory=5000), ""),
        ("condense", State(memory_blocks=4), ""),
        ("condense", State(memory=9000, last_turn=ago(5)), "not-idle-yet"),
        ("condense", State(memory=9000, done={"condense": ago(359)}), "interval-not-elapsed"),
        ("fold", State(history=7999, history_blocks=4, memory=99999), "threshold-not-met"),
        ("fold", State(history=8000), ""),
        ("fold", State(history_blocks=5), ""),
    ],
)
def test_a_gate_opens_at_its_threshold_and_says_why_not_before(job: str, state: State, reason: str) -> None:
    assert skip(job, state, NOW) == reason


@given(
    st.sampled_from(JOBS),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 20000),
    st.integers(0, 9),
    st.integers(0, 600),
)
def test_a_job_that_just_failed_or_ended_is_never_due(
    job: str, turns: int, calls: int, size: int, blocks: int, minutes: int
) -> None:
    for past in ({"failed": {job: NOW}}, {"done": {job: NOW}}):
        state = State(turns, calls, ago(minutes), blocks, size, blocks, size, blocks, **past)
        assert skip(job, state, NOW)
