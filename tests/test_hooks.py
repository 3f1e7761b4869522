"""Agent hooks: for every event of both hosts an answer the host takes, whatever state things are in, and in time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipimem
from pipimem import hooks, traces
from pipimem.files import locked
from pipimem.hooks import Event, answered, event_named, fitted, last_turn
from pipimem.memory import Memory
from pipimem.options import Options
from pipimem.queued import Queue
from pipimem.recall.context import Context, Part
from pipimem.text import BLOCK
from tests.conftest import run, write
from tests.test_cold import FORBIDDEN, imported

GOLDEN = Path(__file__).parent / "golden" / "hooks"
INPUTS = sorted(GOLDEN.glob("*/*.json"))
PROJECT = "project:kilnwren"
SESSION = b"5e0c7a1e-93f4-4a52-8d2b-7c1b6a0f9e11"
COMMON = {"continue", "stopReason", "suppressOutput", "systemMessage"}
DECIDING = ("UserPromptSubmit", "Stop", "SubagentStop")
TAKES = {
    "claude": ("SessionStart", "UserPromptSubmit", "SubagentStart", "Stop"),
    "codex": ("SessionStart", "UserPromptSubmit"),
}
LIMIT = 10_000


def validate(host: str, event: str, answer: Any) -> str:
    """Holds an answer against the host's rules (conventions of the hosts, 2026-11); the text it gives to the model."""
    assert isinstance(answer, dict)
    allowed = COMMON | ({"decision", "reason"} if event in DECIDING else set())
    allowed |= {"hookSpecificOutput"} if event in TAKES[host] else set()
    assert set(answer) <= allowed
    if answer.get("decision") is not None:
        assert answer["decision"] == "block"
        assert answer["reason"]
    given = answer.get("hookSpecificOutput")
    if given is None:
        return ""
    assert set(given) == {"hookEventName", "additionalContext"}
    assert given["hookEventName"] == event
    text = given["additionalContext"]
    assert isinstance(text, str)
    assert 0 < len(text.encode("utf-16-le")) // 2 < LIMIT
    return text


def filled(path: Path, cwd: Path, transcript: Path) -> bytes:
    """A recorded input, in this place."""
    text = path.read_text("utf-8")
    return text.replace("{cwd}", str(cwd)).replace("{transcript}", str(transcript)).encode()


@pytest.fixture
def kiln(sample: Path) -> Path:
    """The sample workspace as its team's coding agents have it: a project folder inside."""
    (sample / "kilnwren/api").mkdir(parents=True)
    with pipimem.open(str(sample)) as memory:
        memory.index()
    return sample


def mode(root: Path, before: str, name: str) -> None:
    text = (root / "pipimem.toml").read_text("utf-8")
    (root / "pipimem.toml").write_text(text.replace(f'mode = "{before}"', f'mode = "{name}"'), "utf-8")


def answer_of(root: Path, path: Path, channel: str | None = PROJECT, session: str = "") -> tuple[str, dict[str, Any]]:
    """What the model is given for a recorded input, checked by the host's rules, and what the log says."""
    host, name = path.parent.name, path.name.partition(".")[0]
    data = filled(path, root, root / "transcripts/claude-session.jsonl")
    if session:
        data = data.replace(SESSION, session.encode())
    note: dict[str, Any] = {}
    with pipimem.open(str(root)) as memory:
        found = answered(memory, Event(host, name, data), channel, note)
    return validate(host, name, found), note


GIVES = ("SessionStart", "UserPromptSubmit.english", "UserPromptSubmit.agent", "UserPromptSubmit.chinese",
         "UserPromptSubmit.no-transcript", "SubagentStart")  # fmt: skip


def test_each_recorded_event_of_both_hosts_is_answered_by_its_rules_and_by_the_mode(
    kiln: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("true"))  # the detached process is another test's
    assert len(INPUTS) == 32
    before = "auto"
    for name in ("auto", "full", "policy", "observe"):
        mode(kiln, before, name)
        before = name
        (kiln / ".pipimem/state/traces.jsonl").unlink(missing_ok=True)
        for path in INPUTS:
            text, _ = answer_of(kiln, path, session=f"{path.parent.name}-{path.stem}-{name}")
            starts = "SessionStart" in path.stem or "SubagentStart" in path.stem
            wanted = path.stem.startswith(GIVES) and (name != "policy" or starts) and name != "observe"
            assert bool(text) == wanted, (name, path)
        with pipimem.open(str(kiln)) as memory:
            assert any(row.get("packed") for row in traces.rows(memory.traces)) == (name != "policy")
            assert {line.event for line in Queue(memory.workspace).lines()} == {"turn", "compact", "session-end"}


def broken_settings(root: Path) -> None:
    (root / "pipimem.toml").write_text("[recall\n")


def broken_index(root: Path) -> None:
    for path in (root / ".pipimem/cache").glob("index-*"):
        path.write_bytes(b"no database at all")


def broken_files(root: Path) -> None:
    for path in [root / "STANDING.md", root / "SOUL.md", *(root / "channels").rglob("*.md")]:
        path.write_bytes(b"\x00\xff<<<<<<< HEAD\n- \xed\xa0\x80" * 50)


def broken_state(root: Path) -> None:
    """What hooks write to is a folder, or cannot be understood."""
    (root / ".pipimem/state").mkdir(exist_ok=True)
    (root / ".pipimem/state/queue.jsonl").mkdir()
    (root / ".pipimem/state/traces.jsonl").write_bytes(b"\xff\x00[{")
    (root / ".pipimem/state/turns").write_text("no folder")


def gone(root: Path) -> None:
    root.rename(root.parent / "elsewhere")


def emptied(root: Path) -> None:
    for path in root.rglob("*.md"):
        path.unlink()


@pytest.mark.parametrize("damage", [broken_settings, broken_index, broken_files, broken_state, gone, emptied])
def test_whatever_is_damaged_or_missing_each_recorded_event_has_an_answer_its_host_takes(
    kiln: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    damage(kiln)
    for path in INPUTS:
        host, name = path.parent.name, path.name.partition(".")[0]
        said: list[dict[str, Any]] = []
        note: dict[str, Any] = {}
        data = filled(path, kiln, kiln / "transcripts/claude-session.jsonl")
        options = Options({"workspace": None, "channel": PROJECT, "host": host})
        hooks.respond(options, Event(host, name, data), said.append, note)
        validate(host, name, said[0])
        if damage in (broken_settings, gone):
            assert said == [{}]
            assert note["failed"]


def test_a_session_is_given_each_passage_once_until_a_compaction(kiln: Path) -> None:
    prompt = GOLDEN / "claude/UserPromptSubmit.english.json"
    first, _ = answer_of(kiln, prompt)
    assert "staging-2.kilnwren.example" in first
    assert answer_of(kiln, prompt)[0] == ""
    assert "staging-2.kilnwren.example" in answer_of(kiln, GOLDEN / "claude/UserPromptSubmit.agent.json")[0]
    answer_of(kiln, GOLDEN / "claude/SessionStart.compact.json")
    assert answer_of(kiln, prompt)[0] == first


def test_a_chinese_prompt_is_given_what_an_english_note_says(kiln: Path) -> None:
    text, note = answer_of(kiln, GOLDEN / "claude/UserPromptSubmit.chinese.json")
    assert text.startswith(f"<{BLOCK} ")
    assert note["characters"] == len(text)


def test_a_session_start_gives_identity_policy_and_pinned_and_in_auto_the_newest_memory(kiln: Path) -> None:
    start = GOLDEN / "claude/SessionStart.startup.json"
    auto, _ = answer_of(kiln, start)
    mode(kiln, "auto", "policy")
    policy, _ = answer_of(kiln, start)
    for text in (auto, policy):
        assert 'kind="identity"' in text
        assert 'kind="instructions"' in text
    assert "## Newest" in auto
    assert "## Newest" not in policy


def test_a_sub_agent_gets_the_handover_and_no_identity(kiln: Path) -> None:
    text, _ = answer_of(kiln, GOLDEN / "claude/SubagentStart.explore.json")
    assert "## Current State" in text
    assert 'kind="identity"' not in text


def test_without_a_channel_only_the_shared_layer_is_read_and_nothing_is_queued(kiln: Path) -> None:
    text, _ = answer_of(kiln, GOLDEN / "claude/UserPromptSubmit.english.json", None)
    assert "kilnwren.example" not in text
    _, note = answer_of(kiln, GOLDEN / "claude/Stop.plain.json", None)
    assert "--channel" in note["reason"]
    with pipimem.open(str(kiln)) as memory:
        assert Queue(memory.workspace).lines() == []


def test_the_summary_of_a_compaction_becomes_a_source_once_and_without_secrets(
    kiln: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd"
    path = GOLDEN / "claude/PostCompact.auto.json"
    data = filled(path, kiln, kiln / "none").replace(b"staging-2", f"staging-2 {secret}".encode())
    with pipimem.open(str(kiln)) as memory:
        for recorded in (1, 0):
            note: dict[str, Any] = {}
            assert answered(memory, Event("claude", "PostCompact", data), PROJECT, note) == {}
            assert note["recorded"] == recorded
        (message,) = memory.recorded(PROJECT).transcript.messages
    assert message.ref.startswith("claude:5e0c7a1e-93f4-4a52-8d2b-7c1b6a0f9e11#summary-")
    assert (message.role, message.name) == ("assistant", "compaction summary")
    assert "下一步：补上第三相的测试" in message.text
    assert secret not in message.text


def test_files_and_errors_of_the_last_turn_come_from_the_end_of_either_hosts_transcript(tmp_path: Path) -> None:
    def told(*rows: dict[str, Any]) -> tuple[list[str], list[str]]:
        path = tmp_path / "t.jsonl"
        path.write_text("{torn\n[]\n" + "".join(json.dumps(row) + "\n" for row in rows) + '{"half', "utf-8")
        return last_turn(str(path))

    def claude(kind: str, *blocks: dict[str, Any]) -> dict[str, Any]:
        return {"type": kind, "message": {"role": kind, "content": list(blocks)}}

    old = claude("assistant", {"type": "tool_use", "name": "Edit", "input": {"file_path": "old.py"}})
    asked = {"type": "user", "message": {"role": "user", "content": "fix it"}}
    used = claude("assistant", {"type": "tool_use", "name": "Edit", "input": {"file_path": "api/窑.py"}})
    failed = claude(
        "user", {"type": "tool_result", "is_error": True, "content": [{"type": "text", "text": "E41 窑温"}]}
    )
    fine = claude("user", {"type": "tool_result", "content": "E99"})
    assert told(old, asked, used, failed, fine) == (["api/窑.py"], ["E41 窑温"])

    def codex(kind: str, **payload: Any) -> dict[str, Any]:
        return {"type": kind, "payload": payload}

    prompt = codex("event_msg", type="user_message", message="fix it")
    call = codex("response_item", type="function_call", name="read", arguments='{"path": "a.rs"}')
    bad = codex("response_item", type="function_call_output", output="boom\nProcess exited with code 101")
    good = codex("response_item", type="function_call_output", output="Process exited with code 0")
    assert told(call, prompt, call, bad, good) == (["a.rs"], ["boom\nProcess exited with code 101"])
    assert last_turn(str(tmp_path)) == last_turn("") == last_turn("/dev/full") == ([], [])


def test_an_error_of_the_last_turn_finds_the_failure_noted_for_it(kiln: Path, tmp_path: Path) -> None:
    rows = [
        {"type": "user", "message": {"role": "user", "content": "go on"}},
        {"type": "user", "message": {"content": [
            {"type": "tool_result", "is_error": True, "content": "FAILED kiln 7: KW-E41 open thermocouple"}]}},
    ]  # fmt: skip
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    event = {"session_id": "s", "prompt": "please go on", "transcript_path": str(path)}
    with pipimem.open(str(kiln)) as memory:
        told = answered(memory, Event("claude", "UserPromptSubmit", json.dumps(event).encode()), PROJECT, {})
        alone = {**event, "transcript_path": "", "session_id": "t"}
        without = answered(memory, Event("claude", "UserPromptSubmit", json.dumps(alone).encode()), PROJECT, {})
    assert "E41" in validate("claude", "UserPromptSubmit", told)
    assert without == {}


def test_a_text_over_the_hosts_limit_loses_whole_lines_of_memory_first_and_says_so() -> None:
    lines = "".join(f"第 {n} 行 🐋\n" for n in range(700))
    parts = [
        Part("identity", "identity", lines), Part("policy", "instructions", "the policy\n"),
        Part("newest", "memory", lines), Part("pinned", "instructions", "the rule\n"),
    ]  # fmt: skip
    note: dict[str, Any] = {}
    text = fitted(Context(parts), note)
    assert len(text.encode("utf-16-le")) // 2 <= hooks.CHARACTERS
    assert note["cut"] == ["newest"]
    assert hooks.CUT in text
    assert "the policy" in text
    assert "the rule" in text
    assert "第 699 行" in text
    huge = fitted(Context([Part("identity", "identity", lines * 9), *parts[1:]]), note)
    assert len(huge.encode("utf-16-le")) // 2 <= hooks.CHARACTERS
    assert note["cut"] == ["newest", "identity"]
    assert "the rule" in huge


def test_over_the_limit_history_goes_before_memory_and_session_last() -> None:
    def part(name: str, size: int) -> Part:
        return Part(name, "memory", f"{name} 的一行\n" * size)

    note: dict[str, Any] = {}
    text = fitted(Context([part("session", 60), part("memory", 900), part("history", 100)]), note)
    assert note["cut"] == ["history", "memory"]
    assert text.count("session 的一行") == 60
    assert "history" not in text
    assert text.count(hooks.CUT) == 1


@pytest.mark.parametrize("word", ["PreCompact", "pre-compact", "pre_compact", "PRECOMPACT"])
def test_an_event_is_known_however_it_is_written(word: str) -> None:
    assert event_named(word) == "PreCompact"
    assert event_named("Nonsense") == ""


# As a host starts it


def hooked(event: str, data: bytes | str, *arguments: str, host: str = "claude", **env: str) -> str:
    """One hook in a process of its own: always 0, always an answer the host takes; the text for the model."""
    done = run("hook", event, "--host", host, *arguments, stdin=data, env=env)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("\n")
    return validate(host, event_named(event), done.json)


def logged(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / ".pipimem/state/hooks.log").read_text("utf-8").splitlines()]


def test_the_workspace_and_channel_come_from_the_events_folder_or_from_the_options(kiln: Path, tmp_path: Path) -> None:
    prompt = GOLDEN / "claude/UserPromptSubmit.english.json"
    data = filled(prompt, kiln / "kilnwren/api", kiln / "none")
    assert "staging-2" in hooked("UserPromptSubmit", data)
    (row,) = logged(kiln)
    assert (row["host"], row["event"], row["characters"] > 100, row["ms"] > 0) == (
        "claude",
        "UserPromptSubmit",
        True,
        True,
    )
    assert "meter" not in json.dumps(row)
    elsewhere = filled(prompt, tmp_path, kiln / "none").replace(b"5e0c", b"5e0d")
    assert hooked("UserPromptSubmit", elsewhere, "--channel", PROJECT, "-w", str(kiln))
    assert hooked("UserPromptSubmit", elsewhere.replace(b"5e0d", b"5e0e"), PIPIMEM_WORKSPACE=str(kiln),
                  PIPIMEM_CHANNEL=PROJECT)  # fmt: skip


def test_what_cannot_be_answered_is_answered_with_nothing_and_said_in_the_log(
    kiln: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = filled(GOLDEN / "claude/SessionStart.startup.json", kiln, kiln / "none")
    assert hooked("SessionStart", b"\xff{ not json", "-w", str(kiln)) == ""
    assert hooked("SessionStart", "[" * 100_000, "-w", str(kiln)) == ""
    assert hooked("SessionStart", data, "--channel", "nowhere") == ""
    assert hooked("SessionStart", filled(GOLDEN / "codex/SessionStart.startup.json", tmp_path, tmp_path)) == ""
    assert hooked("SessionStart", data, PIPIMEM_AT_WORK="1") == ""
    assert run("hook", "Nonsense", stdin=data).out == "{}\n"
    for wrong in (["hook"], ["hook", "Stop", "--bad"], ["hook", "--help"]):
        assert run(*wrong, stdin=data).code == 0
    (kiln / "pipimem.toml").write_text("[recall\n")
    assert hooked("SessionStart", data) == ""
    reasons = [json.loads(n).get("failed") for n in (tmp_path / "cache/hooks.log").read_text("utf-8").splitlines()]
    assert reasons[0] == "the input is no JSON object"
    assert "no workspace at or above" in str(reasons)
    assert "not valid TOML" in str(reasons[-1])
    assert "nowhere" in logged(kiln)[-1]["failed"]


def test_a_damaged_or_locked_index_stops_no_prompt(kiln: Path) -> None:
    data = filled(GOLDEN / "claude/UserPromptSubmit.english.json", kiln / "kilnwren", kiln / "none")
    (index,) = (kiln / ".pipimem/cache").glob("index-*.sqlite3")
    index.write_bytes(b"no database at all" * 100)
    assert "staging-2" in hooked("UserPromptSubmit", data)
    locks = kiln / ".pipimem/locks"
    locks.mkdir(exist_ok=True)
    with locked(str(locks), ["shared", "queue", "maintain"]), open(kiln / ".pipimem/cache/write.lock", "w") as held:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX)
        assert "staging-2" in hooked("UserPromptSubmit", data.replace(b"5e0c", b"5e0d"))


def test_when_time_is_up_the_answer_is_empty_and_the_exit_code_still_0(kiln: Path) -> None:
    data = filled(GOLDEN / "claude/SessionEnd.other.json", kiln / "kilnwren", kiln / "transcripts/claude-session.jsonl")
    locks = kiln / ".pipimem/locks"
    locks.mkdir(exist_ok=True)
    with locked(str(locks), ["queue"]):
        began = time.monotonic()
        assert hooked("SessionEnd", data) == ""
        assert time.monotonic() - began < 20  # the lock would be waited for half a minute
    assert logged(kiln)[-1]["failed"] == "it took more than 1.2 seconds"
    command = [sys.executable, "-m", "pipimem", "hook", "SessionEnd"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)) as child:
        assert child.stdout
        assert child.stdout.read() == b"{}\n"  # though its input never ends
        assert child.wait() == 0


def test_the_end_of_a_session_is_worked_up_apart_and_a_fact_of_it_is_recalled(kiln: Path) -> None:
    transcript = kiln / "new.jsonl"
    rows = [
        {"type": "user", "uuid": "u1", "sessionId": "5e0c", "timestamp": "2026-11-29T10:00:00Z", "cwd": "/x",
         "message": {"role": "user", "content": "记住：三相电表的参考值每周一早上更新"}},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "5e0c",
         "timestamp": "2026-11-29T10:00:02Z", "message": {"id": "m", "content": [{"type": "text", "text": "好"}]}},
    ]  # fmt: skip
    transcript.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    data = filled(GOLDEN / "claude/SessionEnd.clear.json", kiln / "kilnwren", transcript)
    began = time.monotonic()
    hooked("SessionEnd", data)
    with pipimem.open(str(kiln)) as memory:
        while time.monotonic() < began + 30 and memory.queue()["waiting"]:
            time.sleep(0.02)
        assert memory.queue() == {"waiting": 0, "since": "", "failing": [], "given_up": []}
        hits = memory.search("参考值 更新", PROJECT, layers=["memory"])
    assert [h.text for h in hits][:1] == ["三相电表的参考值每周一早上更新"]
    assert logged(kiln)[-1]["spawned"] > 0


def test_a_hook_that_reads_loads_nothing_heavy(kiln: Path, tmp_path: Path) -> None:
    while imported("-m", "pipimem", "-w", str(kiln), "search", "ramp")[0] & {"pipimem.index.sync"}:
        pass  # files as young as these are compared once more
    bare = imported("-m", "this")[0]
    for event in ("UserPromptSubmit.english", "UserPromptSubmit.chinese", "SessionStart.startup"):
        data = filled(GOLDEN / f"claude/{event}.json", kiln, kiln / "none").replace(SESSION, event.encode())
        channel = PROJECT if "Prompt" in event else "ops"  # whose files are plain
        command = ["-X", "importtime", "-m", "pipimem", "hook", event.partition(".")[0], "--channel", channel]
        done = subprocess.run([sys.executable, *command], input=data, capture_output=True, check=True)
        assert b"additionalContext" in done.stdout
        rows = [line.split("|") for line in done.stderr.decode().splitlines() if line.startswith("import time:")]
        loaded = {row[2].strip() for row in rows if len(row) == 3} - bare
        fine = {"pipimem.markdown", "zoneinfo"} if event.startswith("SessionStart") else set()
        assert sorted((loaded & FORBIDDEN) - fine) == []


def test_an_index_older_than_the_files_is_answered_from_and_brought_up_to_date_apart(
    make: Callable[..., Memory], root: Path
) -> None:
    memory = make({"pipimem.toml": '[recall]\nmode = "auto"\n'})
    memory.add_channel(PROJECT, kind="project")
    memory.index()
    write(
        root,
        {f"memory/topic-{n}.md": f"# Topic {n}\n\n" + "The kiln needs a new thermocouple. " * 400 for n in range(60)},
    )
    event = {"session_id": "s", "prompt": "which thermocouple did we decide on?", "cwd": str(root)}
    note: dict[str, Any] = {}
    answered(memory, Event("claude", "UserPromptSubmit", json.dumps(event).encode()), None, note)
    assert memory.stale, "so much at once is left to the next sync"
    hooked("UserPromptSubmit", json.dumps(event))
    assert logged(root)[-1]["spawned"] > 0
    until = time.monotonic() + 30
    while time.monotonic() < until and memory.queue()["waiting"]:
        time.sleep(0.02)
    assert memory.queue()["given_up"] == []
    with pipimem.open(str(root)) as again:
        assert again.search("thermocouple")
        assert not again.stale


def test_the_log_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "LIMIT", 2_000)
    for number in range(60):
        hooks._log({"workspace": str(root), "event": "Stop", "session": f"会话 {number}"})
    path = root / ".pipimem/state/hooks.log"
    assert path.stat().st_size < 2_200
    assert logged(root)[-1]["session"] == "会话 59"
