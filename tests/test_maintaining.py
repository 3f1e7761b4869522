"""Background work: oldest first, within the day's budget, alone; a kill at any moment loses nothing and repeats nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import pipimem
from pipimem import hooks, maintaining
from pipimem.errors import Refused
from pipimem.markdown import uncommented
from pipimem.memory import Memory
from pipimem.queued import TRIES, Queue
from pipimem.sources import read
from tests.conftest import run, write
from tests.test_crash import killed_at
from tests.test_watch import eventually

CHANNEL = "dm:顾念"
SAID = ("记住：部署窗口是周四晚上", "We decided to ship on Tuesdays.", "决定：日志保留九十天")
NO_GIT = "[git]\ncommit = false\n"


def spoken(path: Path, *texts: str, hours: int = 0) -> str:
    """Appends one turn for each text to a transcript; its path."""
    rows = []
    for number, text in enumerate(texts):
        time = f"2026-03-14T{10 + hours}:{number:02d}:00+08:00"
        rows.append({"role": "user", "name": "顾念", "content": text, "timestamp": time})
        rows.append({"role": "assistant", "content": "好", "timestamp": time})
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return str(path)


@pytest.fixture
def memory(make: Callable[..., Memory]) -> Memory:
    memory = make({"pipimem.toml": NO_GIT})
    memory.add_channel(CHANNEL, kind="direct")
    return memory


def leave(memory: Memory, event: str, transcript: str = "", channel: str = CHANNEL) -> str:
    return Queue(memory.workspace).append(event, channel, transcript, memory.now().isoformat()).id


def worked(memory: Memory) -> tuple[list[tuple[str, str, bool, str]], str]:
    """Works the queue off: each step (channel, job, done, reason), and why it stopped."""
    rows: list[dict[str, Any]] = []
    stopped = memory.work_off(rows.append)
    return [(r["channel"], r["job"], r["done"], r["reason"]) for r in rows], stopped


def facts(memory: Memory, channel: str = CHANNEL) -> list[str]:
    path = memory.workspace.channel(channel).path
    text = (memory.workspace.read(f"{path}/MEMORY.md") or b"").decode()
    return [line[2:].split(" <!--")[0] for line in text.splitlines() if line.startswith("- ")]


def test_a_compaction_works_everything_up_whatever_the_gates_say(memory: Memory, tmp_path: Path) -> None:
    leave(memory, "compact", spoken(tmp_path / "s.jsonl", SAID[0]))
    steps, stopped = worked(memory)
    assert [(job, done) for _, job, done, _ in steps] == [
        ("record", True), ("refresh", True), ("extract", True), ("condense", False), ("fold", False),
    ]  # fmt: skip
    assert stopped == ""
    assert facts(memory) == ["部署窗口是周四晚上"]
    assert "src=jsonl:s#L1" in (memory.workspace.read("channels/dm%3A顾念/MEMORY.md") or b"").decode()
    assert memory.queue() == {"waiting": 0, "since": "", "failing": [], "given_up": []}


def test_after_a_turn_the_gates_hold_and_what_is_not_due_yet_waits_among_the_turns(
    memory: Memory, tmp_path: Path
) -> None:
    leave(memory, "turn", spoken(tmp_path / "s.jsonl", SAID[0]))
    steps, _ = worked(memory)
    assert [(job, reason) for _, job, _, reason in steps][1:3] == [
        ("refresh", "threshold-not-met"),
        ("extract", "threshold-not-met"),
    ]
    assert (facts(memory), memory.queue()["waiting"]) == ([], 0)
    leave(memory, "session-end", spoken(tmp_path / "s.jsonl", SAID[1], hours=1))
    worked(memory)
    assert sorted(facts(memory)) == ["We decided to ship on Tuesdays", "部署窗口是周四晚上"]


def test_only_what_was_said_before_the_moment_is_worked_on(memory: Memory, tmp_path: Path) -> None:
    path = spoken(tmp_path / "s.jsonl", SAID[0])
    leave(memory, "compact", path)
    spoken(tmp_path / "s.jsonl", SAID[1], hours=1)
    worked(memory)
    assert facts(memory) == ["部署窗口是周四晚上"]
    leave(memory, "compact", path)
    assert worked(memory)[0][0] == (CHANNEL, "record", True, "2 messages")
    assert len(facts(memory)) == 2


def test_the_same_stretch_twice_changes_nothing_the_second_time(memory: Memory, tmp_path: Path) -> None:
    path = spoken(tmp_path / "s.jsonl", *SAID)
    leave(memory, "session-end", path)
    worked(memory)
    before = facts(memory)
    leave(memory, "session-end", path)
    steps, _ = worked(memory)
    assert [reason for _, _, _, reason in steps][:3] == ["0 messages", "no-new-turns", "no-new-turns"]
    assert facts(memory) == before
    assert len(before) == 3


def test_lines_are_worked_oldest_first_and_one_that_fails_stops_no_other(memory: Memory, tmp_path: Path) -> None:
    memory.add_channel("dm:ines", kind="direct")
    gone = spoken(tmp_path / "gone.jsonl", SAID[2])
    leave(memory, "compact", gone)
    leave(memory, "compact", spoken(tmp_path / "a.jsonl", SAID[0]), "dm:ines")
    leave(memory, "compact", spoken(tmp_path / "b.jsonl", SAID[1]))
    Path(gone).unlink()
    steps, _ = worked(memory)
    assert [(channel, job) for channel, job, _, _ in steps if job in ("queue", "record")] == [
        (CHANNEL, "queue"), ("dm:ines", "record"), (CHANNEL, "record"),
    ]  # fmt: skip
    assert (facts(memory), facts(memory, "dm:ines")) == (["We decided to ship on Tuesdays"], ["部署窗口是周四晚上"])
    (left,) = memory.queue()["failing"]
    assert left["tries"] == 1
    assert "gone.jsonl" in left["reason"]


def test_a_failed_line_is_tried_again_after_half_an_hour_and_then_given_up(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = spoken(tmp_path / "s.jsonl", SAID[0])
    leave(memory, "compact", path)
    start = memory.now()
    (tmp_path / "s.jsonl").rename(tmp_path / "away")
    for tries in range(TRIES):
        monkeypatch.setattr(memory, "now", lambda tries=tries: start + timedelta(minutes=31 * tries))
        assert [job for _, job, _, _ in worked(memory)[0]] == ["queue"]
        assert worked(memory)[0] == []
    (given_up,) = memory.queue()["given_up"]
    assert (given_up["channel"], given_up["tries"], memory.queue()["waiting"]) == (CHANNEL, TRIES, 0)
    assert "s.jsonl" in given_up["reason"]
    shown = run("-w", memory.workspace.root, "status")
    assert f"given up    compact of {given_up['time']} in '{CHANNEL}' after 5 tries: failed:" in shown.out
    (tmp_path / "away").rename(tmp_path / "s.jsonl")
    leave(memory, "session-end", path)
    worked(memory)
    assert (facts(memory), memory.queue()["given_up"]) == (["部署窗口是周四晚上"], [])


def test_a_job_that_fails_keeps_its_line_and_only_that_job_is_run_again(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(memory, "compact", spoken(tmp_path / "s.jsonl", SAID[0]))
    real = memory.propose

    def failing(channel: str, transcript: Any, jobs: Any) -> Any:
        if "extract" in jobs:
            raise Refused("The disk is full.", "Free some space.")
        return real(channel, transcript, jobs)

    monkeypatch.setattr(memory, "propose", failing)
    assert worked(memory)[0][-1] == (CHANNEL, "queue", False, "failed: The disk is full. Free some space.")
    monkeypatch.undo()
    later = memory.now() + timedelta(minutes=31)
    monkeypatch.setattr(memory, "now", lambda: later)
    steps, _ = worked(memory)
    assert [(job, reason) for _, job, _, reason in steps][:3] == [
        ("record", "0 messages"), ("refresh", "no-new-turns"), ("extract", ""),
    ]  # fmt: skip
    assert facts(memory) == ["部署窗口是周四晚上"]


@pytest.mark.parametrize(
    ("limit", "spent", "reason"),
    [("runs = 3", 0, "budget-runs"), ("tokens = 900", 450, "budget-tokens"), ("runs = 0", 0, "budget-runs")],
)
def test_the_budget_of_the_day_is_counted_from_the_record_and_keeps_the_rest_waiting(
    make: Callable[..., Memory], tmp_path: Path, root: Path, limit: str, spent: int, reason: str
) -> None:
    memory = make({"pipimem.toml": f"{NO_GIT}[schedule]\n{limit}\n"})
    memory.add_channel(CHANNEL, kind="direct")
    row = {"actor": "updater", "time": memory.now().isoformat(), "tokens": spent}
    rows = [row, row, {**row, "time": "2020-01-01T00:00:00+00:00"}, {**row, "actor": "person"}, {**row, "actor": 5}]
    write(root, {".pipimem/state/runs.jsonl": "".join(json.dumps(r) + "\n" for r in rows) + '{"actor": "upd'})
    leave(memory, "stale", channel="")
    leave(memory, "compact", spoken(tmp_path / "s.jsonl", SAID[0]))
    leave(memory, "stale", channel="")
    assert maintaining.spent(memory) == maintaining.Spent(2, 2 * spent)
    steps, stopped = worked(memory)
    assert (stopped, memory.queue()["waiting"], memory.queue()["failing"]) == (reason, 1, [])
    assert [job for _, job, done, _ in steps if done].count("index") == 2
    assert facts(memory) == []
    today = memory.status()["today"]
    assert today["runs"] == (3 if limit == "runs = 3" else 2)
    write(root, {"pipimem.toml": NO_GIT})
    with pipimem.open(str(root)) as again:
        assert worked(again)[1] == ""
        assert (facts(again), again.queue()["waiting"]) == (["部署窗口是周四晚上"], 0)


def test_a_run_that_changes_nothing_is_on_record_with_what_it_cost(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"reply": {"ops": []}, "tokens": [400, 20]}]))
    real = memory.propose

    def asked(channel: str, transcript: Any, jobs: Any) -> Any:
        return real(channel, transcript, jobs, models=[f"scripted:{script}"])

    monkeypatch.setattr(memory, "propose", asked)
    leave(memory, "compact", spoken(tmp_path / "s.jsonl", "你好，今天天气不错"))
    worked(memory)
    assert maintaining.spent(memory) == maintaining.Spent(2, 840)
    assert facts(memory) == []


def test_one_process_works_and_a_second_leaves_at_once(memory: Memory, tmp_path: Path) -> None:
    leave(memory, "compact", spoken(tmp_path / "s.jsonl", SAID[0]))
    with maintaining.alone(memory):
        done = run("-w", memory.workspace.root, "maintain", "--queued", "--json")
    assert (done.code, done.json["stopped"], done.json["queue"]["waiting"]) == (0, "another-run-active", 1)
    done = run("-w", memory.workspace.root, "maintain", "--queued")
    assert done.code == 0
    assert done.out.endswith("0 waiting, 0 given up\n")
    assert facts(memory) == ["部署窗口是周四晚上"]


def test_a_line_that_comes_while_the_last_one_is_worked_on_is_seen(memory: Memory, tmp_path: Path) -> None:
    leave(memory, "compact", spoken(tmp_path / "s.jsonl", SAID[0]))
    seen: list[str] = []

    def report(row: dict[str, Any]) -> None:
        if not seen:
            leave(memory, "compact", spoken(tmp_path / "s.jsonl", SAID[1], hours=1))
        seen.append(row["job"])

    assert memory.work_off(report) == ""
    assert seen.count("record") == 2
    assert len(facts(memory)) == 2


def test_the_detached_process_works_the_queue_off_and_says_what_it_did_in_its_log(
    memory: Memory, tmp_path: Path, root: Path
) -> None:
    leave(memory, "session-end", spoken(tmp_path / "s.jsonl", *SAID))
    write(root, {"pipimem/__init__.py": "raise SystemExit('taken from the workspace')\n"})
    hooks.spawn(memory.workspace)
    eventually(lambda: memory.queue()["waiting"] == 0)
    eventually(lambda: "0 waiting, 0 given up" in (root / ".pipimem/state/queue.log").read_text("utf-8"))
    assert sorted(facts(memory)) == ["We decided to ship on Tuesdays", "日志保留九十天", "部署窗口是周四晚上"]


def everything(root: Path) -> dict[str, str]:
    """What the channel's files say, ids and run names aside."""
    with pipimem.open(str(root)) as memory:
        path = Path(root, memory.workspace.channel(CHANNEL).path)
        history = (path / "HISTORY.md").read_text("utf-8")
        session = uncommented((path / "SESSION.md").read_text("utf-8"))
        return {
            "facts": "\n".join(sorted(facts(memory))),
            "blocks": str(history.count("\n## ")),
            "evidence": str(history.count("Evidence:")),
            "session": "\n".join(sorted(line for line in session.splitlines() if line.startswith("- "))),
            "queue": str(memory.queue()),
        }


def test_a_kill_at_any_step_loses_nothing_and_does_nothing_twice(memory: Memory, tmp_path: Path, root: Path) -> None:
    leave(memory, "compact", spoken(tmp_path / "s.jsonl", *SAID))
    memory.index()
    memory.close()
    start = tmp_path / "start"
    shutil.copytree(root, start)

    def work() -> None:
        with pipimem.open(str(root)) as opened:
            opened.work_off(lambda row: None)

    work()
    wanted = everything(root)
    assert wanted["facts"].count("\n") == 2
    kills = 0
    for number in range(1, 10_000, 27):
        shutil.rmtree(root)
        shutil.copytree(start, root)
        if not killed_at(number, work):
            break
        kills += 1
        work()
        assert everything(root) == wanted, number
    assert kills > 5


# Imported conversations


def brought(memory: Memory, folder: Path, name: str, *texts: str, hours: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    path = Path(spoken(folder / f"{name}.jsonl", *texts, hours=hours))
    memory.import_sessions("jsonl", str(path), channel=CHANNEL, everything=True)
    return path


def titles(memory: Memory) -> list[str]:
    history = memory.workspace.read(f"{memory.workspace.channel(CHANNEL).path}/HISTORY.md") or b""
    return [line[14:] for line in history.decode().splitlines() if line.startswith("## ")]


def statuses(memory: Memory) -> dict[str, str]:
    return {s.session: s.status for s in read(memory.workspace.root)}


@pytest.mark.parametrize("queued", [False, True])
def test_each_imported_conversation_leaves_a_note_oldest_first_a_few_at_a_time(
    memory: Memory, tmp_path: Path, *, queued: bool
) -> None:
    said = [
        "修登录",
        "网关的日志在哪里看？",
        "记住：部署窗口是周四晚上",
        "fix it",
        "看一下缓存",
        "日志保留几天？",
        "把证书换掉",
    ]
    for number, text in reversed(list(enumerate(said))):
        brought(memory, tmp_path / "chats", f"s-{number}", text, hours=number)
    assert memory.waiting(CHANNEL) == 7
    for left in (2, 0, 0):
        if queued:
            assert worked(memory)[1] == ""
        else:
            memory.maintain(CHANNEL)
        assert memory.waiting(CHANNEL) == left
    expected = ["修登录", said[1], said[2].removeprefix("记住："), *said[3:]]
    if queued:  # else the notes of the first run are folded in the second
        assert titles(memory) == expected
    folder = Path(memory.workspace.root) / memory.workspace.channel(CHANNEL).path
    history = "".join(path.read_text("utf-8") for path in folder.glob("HISTORY*.md"))
    assert not [text for text in expected if text not in history]
    assert facts(memory) == ["部署窗口是周四晚上"]
    assert set(statuses(memory).values()) == {"summarized", "extracted"}
    assert not worked(memory)[0]


def test_a_grown_conversation_has_its_note_made_anew_and_a_persons_note_stays(memory: Memory, tmp_path: Path) -> None:
    for name in ("一", "二"):
        brought(memory, tmp_path / "chats", f"s-{name}", f"网关{name}的日志在哪里看？")
    memory.maintain(CHANNEL)
    path = Path(memory.workspace.root) / memory.workspace.channel(CHANNEL).path / "HISTORY.md"
    path.write_text(path.read_text("utf-8").replace("- Task: 网关二", "- Task: 我改过：网关二"), "utf-8")
    for name in ("一", "二"):
        brought(memory, tmp_path / "chats", f"s-{name}", "再把日志级别调成 INFO。", hours=1)
    assert memory.waiting(CHANNEL) == 2
    memory.maintain(CHANNEL)
    assert memory.waiting(CHANNEL) == 0
    evidence = [line for line in path.read_text("utf-8").splitlines() if "Evidence" in line]
    assert [("4 messages" in line, "2 messages" in line) for line in evidence] == [(True, False), (False, True)]
    assert "我改过：网关二" in path.read_text("utf-8")


def test_what_hooks_record_is_worked_on_as_turns_and_what_is_gone_keeps_nobody_waiting(
    memory: Memory, tmp_path: Path
) -> None:
    leave(memory, "compact", spoken(tmp_path / "live.jsonl", *SAID))
    worked(memory)
    gone = brought(memory, tmp_path / "chats", "gone", "网关的日志在哪里看？")
    broken = brought(memory, tmp_path / "chats", "broken", "网关的日志又在哪里看？")
    gone.unlink()
    broken.write_bytes(b"\0\0\0")
    brought(memory, tmp_path / "chats", "good", "证书什么时候到期？", hours=3)
    memory.maintain(CHANNEL)
    assert memory.waiting(CHANNEL) == 0
    assert "证书什么时候到期？" in titles(memory)
    assert (statuses(memory)["gone"], statuses(memory)["good"]) == ("indexed", "summarized")


def test_an_import_says_how_many_wait_and_what_works_on_them(memory: Memory, tmp_path: Path) -> None:
    path = spoken(tmp_path / "chat.jsonl", "网关的日志在哪里看？")
    done = run("-w", memory.workspace.root, "import", "jsonl", path, "--channel", CHANNEL)
    assert done.out.endswith(f"1 session of '{CHANNEL}' to be worked on: pipimem maintain --channel '{CHANNEL}'\n")
    assert "imported" in run("-w", memory.workspace.root, "maintain", "--channel", CHANNEL).out
    again = run("-w", memory.workspace.root, "import", "jsonl", path, "--channel", CHANNEL, "--json")
    assert again.json["waiting"] == {CHANNEL: 0}
