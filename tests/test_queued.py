"""The queue of waiting work: a line is durable at once, leaves only when it is done, and one that fails is kept apart."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from pipimem.errors import Refused
from pipimem.queued import BACKOFF, LIMIT, SHOWN, SHOWN_FOR, TRIES, Queue
from pipimem.update import schedule
from pipimem.workspace import Workspace

TIME = "2026-03-14T10:00:00+08:00"


@pytest.fixture
def queue(root: Path) -> Queue:
    (root / "pipimem.toml").write_text("")
    return Queue(Workspace(str(root)))


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "会话.jsonl"
    path.write_bytes(b"x" * 100)
    return path


def test_a_line_says_which_bytes_of_which_conversation_are_due(queue: Queue, talk: Path, root: Path) -> None:
    queue.append("turn", "dm:顾念", str(talk), TIME)
    talk.write_bytes(b"x" * 250)
    queue.append("compact", "dm:顾念", str(talk), TIME)
    queue.append("stale", "", "", TIME)
    found = [(n.event, n.channel, n.transcript, n.start, n.end, n.time) for n in queue.lines()]
    assert found == [
        ("turn", "dm:顾念", str(talk), 0, 100, TIME),
        ("compact", "dm:顾念", str(talk), 100, 250, TIME),
        ("stale", "", "", 0, 0, TIME),
    ]
    assert "顾念" in (root / ".pipimem/state/queue.jsonl").read_text("utf-8")


def test_a_conversation_that_was_begun_anew_is_due_from_its_start(queue: Queue, talk: Path) -> None:
    queue.append("turn", "ops", str(talk), TIME)
    talk.write_bytes(b"x" * 40)
    assert (queue.append("turn", "ops", str(talk), TIME).start, queue.lines()[-1].end) == (0, 40)


def test_a_line_leaves_only_by_its_own_name(queue: Queue) -> None:
    names = [queue.append("turn", channel, "", TIME).id for channel in ("a", "b", "c")]
    queue.done([names[1], "q-unknown"])
    assert [line.channel for line in queue.lines()] == ["a", "c"]


def test_a_line_that_failed_waits_and_is_given_up_after_the_fifth_time_with_its_reason(queue: Queue) -> None:
    name, now = queue.append("turn", "a", "", TIME).id, 1_000.0
    queue.append("turn", "b", "", TIME)
    for tries in range(1, TRIES + 1):
        queue.failed(name, f"磁盘已满 {tries}", now)
        assert [line.channel for line in queue.due(now + BACKOFF - 1)] == ["b"]
        now += BACKOFF
        assert [line.channel for line in queue.due(now)] == (["a", "b"] if tries < TRIES else ["b"])
    (given_up,) = [line for line in queue.lines() if line.given_up]
    assert (given_up.channel, given_up.tries, given_up.why) == ("a", TRIES, f"磁盘已满 {TRIES}")
    assert schedule.BACKOFF.total_seconds() == BACKOFF


def test_what_was_given_up_goes_once_the_same_conversation_is_worked_up(queue: Queue, talk: Path) -> None:
    lost = queue.append("turn", "a", str(talk), TIME).id
    other = queue.append("turn", "b", str(talk), TIME).id
    for _ in range(TRIES):
        queue.failed(lost, "no", 0)
        queue.failed(other, "no", 0)
    queue.done([queue.append("compact", "a", str(talk), TIME).id])
    assert [line.channel for line in queue.lines()] == ["b"]


def test_lines_given_up_are_kept_for_a_month_and_twenty_at_most(queue: Queue) -> None:
    for number in range(SHOWN + 3):
        name = queue.append("turn", str(number), "", TIME).id
        for _ in range(TRIES):
            queue.failed(name, "no", 0)
    assert [line.channel for line in queue.lines()] == [str(n) for n in range(3, SHOWN + 3)]
    queue.failed(queue.append("turn", "new", "", TIME).id, "no", BACKOFF + SHOWN_FOR + 1)
    assert [line.channel for line in queue.lines()] == ["new"]


def test_a_line_torn_by_a_crash_and_a_foreign_one_take_no_other_with_them(queue: Queue, root: Path) -> None:
    queue.append("turn", "a", "", TIME)
    path = root / ".pipimem/state/queue.jsonl"
    with path.open("a") as file:
        file.write('{"event": "turn"}\n[]\n{"id": "q", "event": "rm"}\n{"id": "q-1", "event": "tur')
    queue.append("turn", "乙", "", TIME)
    assert [line.channel for line in queue.lines()] == ["a", "乙"]


def test_lines_written_and_taken_out_at_the_same_time_are_all_accounted_for(queue: Queue) -> None:
    def write(name: str) -> None:
        for number in range(20):
            line = queue.append("turn", f"{name}{number}", "", TIME)
            if number % 2:
                queue.done([line.id])

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(n.channel for n in queue.lines()) == sorted(f"{c}{n}" for c in "abc" for n in range(0, 20, 2))


def test_a_queue_that_nobody_works_off_stays_small_and_forgets_no_range(queue: Queue, talk: Path, root: Path) -> None:
    path = root / ".pipimem/state/queue.jsonl"
    queue.append("turn", "ops", str(talk), TIME)
    row = path.read_text("utf-8")
    path.write_text(row * (LIMIT // len(row) + 1), "utf-8")
    talk.write_bytes(b"x" * 900)
    queue.append("turn", "ops", str(talk), TIME)
    assert path.stat().st_size < 1000
    assert [(n.start, n.end) for n in queue.lines()] == [(0, 900)]


def test_a_queue_that_cannot_be_written_says_so(queue: Queue, root: Path) -> None:
    (root / ".pipimem").mkdir()
    (root / ".pipimem/state").symlink_to(root)
    with pytest.raises(Refused, match="state"):
        queue.append("turn", "a", "", TIME)
    os.unlink(root / ".pipimem/state")
    assert queue.append("turn", "a", "", TIME).id
    assert json.loads((root / ".pipimem/state/queue.jsonl").read_text())["channel"] == "a"
