"""`watch --maintain` as people run it: due jobs in turn, each reason named once, and an end at once when it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pipimem.memory import Memory
from pipimem.queued import Queue
from pipimem.rounds import LOOK, Rounds
from tests.conftest import write
from tests.test_lifecycle import SAID
from tests.test_maintaining import NO_GIT, facts, spoken
from tests.test_watch import Watcher


def spoke(memory: Memory, channel: str, *texts: str) -> None:
    earlier = memory.now() - timedelta(minutes=30)
    for text in texts:
        memory.turn(channel, [{"role": "user", "content": text, "timestamp": earlier.isoformat()}])


@pytest.fixture
def two(make: Callable[..., Memory]) -> Memory:
    memory = make({"pipimem.toml": NO_GIT})
    for channel in ("dm:a", "dm:乙"):
        memory.add_channel(channel, kind="direct")
        spoke(memory, channel, *SAID)
    return memory


def gone_round(root: str, rounds: int) -> list[dict[str, Any]]:
    """What that many rounds report, without waiting for the clock between them."""
    events: list[dict[str, Any]] = []
    going = Rounds(root, events.append)
    for _ in range(rounds):
        going._round(lambda seconds: False)
    return events


def test_each_channel_has_its_turn_and_each_reason_is_said_once(two: Memory) -> None:
    events = gone_round(two.workspace.root, 6)
    jobs = [(e["channel"], e["job"]) for e in events if e["event"] == "job"]
    assert jobs == [("dm:a", "refresh"), ("dm:乙", "refresh"), ("dm:a", "extract"), ("dm:乙", "extract")]
    skipped = [(e["channel"], e["job"], e["reason"]) for e in events if e["event"] == "skipped"]
    assert len(skipped) == len(set(skipped))
    assert ("dm:乙", "refresh", "interval-not-elapsed") in skipped
    assert ("dm:a", "condense", "threshold-not-met") in skipped
    assert all(datetime.fromisoformat(e["time"]).tzinfo for e in events)
    assert len(facts(two, "dm:a")) == len(facts(two, "dm:乙")) == 2


def test_no_job_is_run_over_the_budget_and_that_is_said_once(two: Memory, root: Path) -> None:
    write(root, {"pipimem.toml": f"{NO_GIT}[schedule]\nruns = 3\n"})
    events = gone_round(str(root), 5)
    assert [e["job"] for e in events if e["event"] == "job"] == ["refresh", "refresh", "extract"]
    over = [(e["channel"], e["job"]) for e in events if e.get("reason") == "budget-runs"]
    assert over == [("dm:乙", "extract")]


def test_a_watch_with_maintain_indexes_works_off_the_queue_and_runs_what_is_due(
    two: Memory, root: Path, tmp_path: Path
) -> None:
    with Watcher(root, "--maintain") as watcher:
        watcher.until("job", lambda e: (e["channel"], e["job"]) == ("dm:乙", "extract"))
        write(root, {"memory/fresh.md": "# 窑温\n\nThe kiln runs at 1,240 degrees.\n"})
        watcher.indexed("memory/fresh.md", "added")
        Queue(two.workspace).append(
            "compact", "dm:乙", spoken(tmp_path / "s.jsonl", "决定：日志保留九十天"), two.now().isoformat()
        )
        done = watcher.until("job", lambda e: (e["because"], e["job"]) == ("compact", "extract"))
        assert done["run"]
        began = time.monotonic()
        code, errors = watcher.end()
        assert time.monotonic() - began < LOOK / 2
    assert (code, errors, watcher.seen[-1]["event"]) == (0, "", "stopped")
    assert "日志保留九十天" in facts(two, "dm:乙")


class Never(BaseHTTPRequestHandler):
    """A model that takes the question and does not answer."""

    asked = threading.Event()
    over = threading.Event()

    def do_POST(self) -> None:
        self.asked.set()
        self.over.wait(60)

    def log_message(self, format: str, *args: object) -> None:
        return


def test_it_stops_at_once_in_the_middle_of_a_model_call_and_loses_nothing(
    two: Memory, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_ai")
    Never.asked.clear()
    Never.over.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Never)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    own = tmp_path / "own.toml"
    own.write_text(f'[llm.servers]\nslow = "http://127.0.0.1:{server.server_address[1]}/v1"\n')
    monkeypatch.setenv("PIPIMEM_CONFIG", str(own))
    write(root, {"pipimem.toml": f'{NO_GIT}[update]\nmodels = ["compatible:slow/none"]\n'})
    try:
        with Watcher(root, "--maintain") as watcher:
            assert Never.asked.wait(60)
            began = time.monotonic()
            code, errors = watcher.end()
            assert time.monotonic() - began < 15  # the model's answer would take twice that
    finally:
        Never.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
    assert (code, errors) == (0, "")
    write(root, {"pipimem.toml": NO_GIT})
    gone_round(str(root), 3)
    assert len(facts(two, "dm:a")) == 2
    assert json.loads((root / ".pipimem/state/runs.jsonl").read_text().splitlines()[0])["actor"] == "updater"
