"""Boundaries: a step that fails stops no other, nothing is worked on twice or lost, and SESSION always survives."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from pipimem.errors import Refused
from pipimem.lifecycle import Step
from pipimem.memory import Memory
from pipimem.transcript import Message, Transcript
from pipimem.update.plan import Plan
from tests.conftest import run
from tests.test_update import talk

SAID = ("记住：部署窗口是周四晚上", "We decided to ship on Tuesdays.")


def spoke(memory: Memory, *texts: str, minutes: int = 60) -> None:
    """One finished turn of a person and the bot for each text, that many minutes ago."""
    time = (memory.now() - timedelta(minutes=minutes)).isoformat(timespec="seconds")
    for text in texts:
        memory.turn(
            "dm:ines",
            [
                {"role": "user", "name": "Ines", "content": text, "timestamp": time},
                {"role": "assistant", "content": "ok", "timestamp": time},
            ],
        )


@pytest.fixture
def dm(make: Callable[..., Memory]) -> Memory:
    memory = make({"pipimem.toml": '[recall]\nmode = "auto"\n'}, git=True)
    memory.add_channel("dm:ines", kind="direct")
    return memory


def worked(memory: Memory) -> list[Step]:
    """What `maintain` did with the talk of the channel; files that are still short are another test's."""
    steps = memory.maintain("dm:ines")["dm:ines"]
    assert [(s.name, s.done) for s in steps[2:]] == [("promote", False), ("condense", False), ("fold", False)]
    return steps[:2]


def entries(memory: Memory) -> list[str]:
    return [h.text for h in memory.search("部署窗口 ship Tuesdays", "dm:ines", layers=["memory"])]


def test_recorded_turns_are_worked_up_once_when_they_are_due(dm: Memory) -> None:
    assert [(s.name, s.reason) for s in worked(dm)] == [
        ("refresh", "no-new-turns"),
        ("extract", "no-new-turns"),
    ]
    spoke(dm, *SAID)
    steps = worked(dm)
    assert [(s.name, s.done) for s in steps] == [("refresh", True), ("extract", True)]
    assert sorted(entries(dm)) == ["We decided to ship on Tuesdays", "部署窗口是周四晚上"]
    assert all(s.reason in ("interval-not-elapsed", "no-new-turns") for s in worked(dm))


def test_talk_that_goes_on_is_not_extracted_yet_but_the_session_is_refreshed(dm: Memory) -> None:
    spoke(dm, *SAID, minutes=1)
    assert [(s.name, s.done, s.reason) for s in worked(dm)] == [
        ("refresh", True, ""),
        ("extract", False, "not-idle-yet"),
    ]
    assert entries(dm) == []


class Failing:
    """Makes the jobs named fail in `propose`, as a broken model or disk would."""

    def __init__(self, memory: Memory, *jobs: str) -> None:
        self._propose = memory.propose
        self._jobs = set(jobs)

    def __call__(self, channel: str, transcript: Transcript, jobs: Sequence[str] = ()) -> Plan:
        if self._jobs & set(jobs):
            raise Refused("The disk is full.", "Free some space.")
        return self._propose(channel, transcript, jobs)


@pytest.mark.parametrize("failing", [(), ("refresh",), ("extract",), ("refresh", "extract")])
def test_each_combination_of_failing_steps_keeps_the_session_and_is_made_up_for(
    dm: Memory, monkeypatch: pytest.MonkeyPatch, failing: tuple[str, ...]
) -> None:
    dm.before_compact("dm:ines", talk("下一步：周五前写压测脚本", "TODO: call the vendor about the gateway."))
    session = dm.workspace.read("channels/dm%3Aines/SESSION.md") or b""
    assert "压测脚本".encode() in session
    spoke(dm, *SAID)
    monkeypatch.setattr(dm, "propose", Failing(dm, *failing))
    done, kept = dm.before_compact("dm:ines")
    steps = done[:2]
    assert {s.name for s in steps if not s.done} == set(failing)
    assert all("disk is full" in s.reason for s in steps if not s.done)
    assert "压测脚本" in kept.text
    assert ("部署窗口是周四晚上" in entries(dm)) == ("extract" not in failing)
    monkeypatch.undo()
    again, _ = dm.new_session("dm:ines")
    assert {s.name for s in again[:2] if s.done} == set(failing)
    assert "部署窗口是周四晚上" in entries(dm)
    assert len(entries(dm)) == 2


def test_a_job_that_failed_waits_half_an_hour(dm: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    spoke(dm, *SAID)
    monkeypatch.setattr(dm, "propose", Failing(dm, "extract"))
    dm.maintain()
    monkeypatch.undo()
    assert [(s.name, s.reason) for s in worked(dm)][1] == ("extract", "backoff-active")
    later = dm.now() + timedelta(minutes=31)
    monkeypatch.setattr(dm, "now", lambda: later)
    assert [(s.name, s.done) for s in worked(dm)][1] == ("extract", True)


def test_a_new_session_starts_with_what_was_just_learned(dm: Memory) -> None:
    steps, given = dm.new_session("dm:ines", talk(*SAID))
    assert [(s.name, s.done) for s in steps if s.done] == [("refresh", True), ("extract", True), ("promote", True)]
    assert "部署窗口是周四晚上" in given.text
    assert (dm.workspace.read("channels/dm%3Aines/SESSION.md") or b"").startswith(b"# Session")


def test_the_commands_tell_each_step_and_what_is_kept(root: Path, dm: Memory) -> None:
    spoke(dm, *SAID)
    done = run("-w", root, "compact", "--channel", "dm:ines", "--json")
    assert [(s["name"], s["done"]) for s in done.json["steps"]][:2] == [("refresh", True), ("extract", True)]
    assert "部署窗口是周四晚上" in done.json["context"]
    rested = run("-w", root, "maintain", "--json")
    assert {s["reason"] for s in rested.json["steps"]} <= {"no-new-turns", "interval-not-elapsed", "threshold-not-met"}
    assert "no-new-turns" in run("-w", root, "new-session", "--channel", "dm:ines").err
    assert run("-w", root, "maintain", "--channel", "nowhere").code == 3


def test_a_torn_record_of_runs_only_makes_a_job_run_sooner(dm: Memory, root: Path) -> None:
    spoke(dm, *SAID)
    dm.maintain()
    path = next((root / ".pipimem/state/schedule").glob("*.json"))
    assert set(json.loads(path.read_text())["done"]) == {"refresh", "extract"}
    path.write_text('{"done": {"refr')
    assert [s.reason for s in worked(dm)] == ["no-new-turns", "no-new-turns"]
    path.write_text('{"done": {"refresh": "yesterday", "extract": 5}, "failed": []}')
    spoke(dm, "and more", "再来一条")
    assert [s.done for s in worked(dm)] == [True, True]
    assert datetime.fromisoformat(json.loads(path.read_text())["done"]["extract"])


def test_what_was_said_over_many_turns_is_still_found_after_files_were_made_shorter(
    make: Callable[..., Memory],
) -> None:
    from tests.bench.retention import found, live

    memory = make({"pipimem.toml": ""})
    memory.add_channel("ops", kind="group")
    said = live(memory, 75)
    assert len(said) == 25
    assert len(found(memory, said)) >= 24
    assert len(memory.workspace.read("channels/ops/HISTORY.archive.md") or b"") > 1000


def test_promotion_is_due_when_an_item_comes_of_age_and_not_again_every_time(dm: Memory, root: Path) -> None:
    day = (dm.now().date() - timedelta(1)).isoformat()
    session = root / "channels/dm%3Aines/SESSION.md"
    item = f"- 回板后先测热电偶 <!-- m-00000001 since={day} by=updater -->\n"
    session.write_text(f"# Session\n\n## Next Steps\n\n{item}", "utf-8")
    life = dm._lifecycle("dm:ines")
    assert life.state("promote").session == 1
    assert next(s for s in dm.maintain("dm:ines")["dm:ines"] if s.name == "promote").done
    assert dm._lifecycle("dm:ines").state("promote").session == 0
    session.write_text(session.read_text("utf-8").replace("by=updater", f"until={day} by=updater"), "utf-8")
    assert dm._lifecycle("dm:ines").state("promote").session == 1


def test_more_turns_than_fit_at_once_are_worked_on_in_several_runs_and_none_is_passed_over(
    dm: Memory, root: Path
) -> None:
    filler = "闲聊几句，没什么要紧的事。" * 3000
    for n in range(8):
        spoke(dm, "记住：备用钥匙在顾念那里。" if n == 4 else filler)
    window = dm.recorded("dm:ines")
    assert 0 < window.left < 8
    done = run("-w", str(root), "update", "--channel", "dm:ines", "--offline")
    assert (done.code, f"{window.left} recorded message" in done.err) == (0, True), (done.out, done.err)
    assert "left for the next" in done.err
    run("-w", str(root), "update", "--channel", "dm:ines", "--offline")
    assert dm.recorded("dm:ines").transcript.messages == ()
    assert "顾念" in (root / "channels/dm%3Aines/MEMORY.md").read_text("utf-8")


def test_the_middle_of_a_conversation_that_does_not_fit_is_named(dm: Memory) -> None:
    said = [Message(f"jsonl:x#{n}", "user", "闲聊几句，没什么要紧的事。" * 3000, "Ines") for n in range(9)]
    plan = dm.propose("dm:ines", Transcript("jsonl", "x", tuple(said)))
    assert [o.op.facts["src"] for o in plan.rejected if "do not fit in the 200,000" in o.reason] == ["jsonl:x#1"]
