"""Recorded turns: durable, bounded, redacted, never counted twice and never lost in silence."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem import turns
from pipimem.transcript import Message, Transcript
from pipimem.turns import Turns
from pipimem.workspace import Workspace
from tests.conftest import run

NOW = "2026-03-14T10:00:00+08:00"


@pytest.fixture
def ops(root: Path) -> Turns:
    (root / "pipimem.toml").write_text("")
    return Turns(Workspace(str(root)), "dm:顾念")


def said(*texts: str) -> list[dict[str, object]]:
    return [{"role": "user", "name": "Ines", "content": t} for t in texts]


def test_what_is_recorded_is_read_back_in_order_with_its_own_references(ops: Turns) -> None:
    done = ops.record(
        [
            {"role": "user", "content": "记住：窗口是周四", "timestamp": "2026-03-01T09:00:00Z"},
            {"role": "assistant", "content": "好"},
        ],
        NOW,
    )
    assert (done.recorded, done.cursor, done.skipped) == (2, 2, {})
    ops.record(said("and again"), NOW)
    window = ops.since(0)
    assert [(m.role, m.text, m.time) for m in window.transcript.messages] == [
        ("user", "记住：窗口是周四", "2026-03-01T09:00:00Z"),
        ("assistant", "好", NOW),
        ("user", "and again", NOW),
    ]
    assert [m.ref for m in window.transcript.messages] == [f"turn:dm%3A顾念#{n}" for n in (1, 2, 3)]
    assert (window.end, window.turns, window.last) == (3, 2, NOW)
    assert [m.text for m in ops.since(2).transcript.messages] == ["and again"]
    assert ops.since(3).transcript.messages == ()
    assert ops.since(0).transcript.ref != ops.since(2).transcript.ref


def test_tool_calls_are_counted_and_give_their_files_and_commands(ops: Turns) -> None:
    calls = [
        {"name": "Edit", "input": {"file_path": "a/b.py"}},
        {"function": {"name": "sh", "arguments": json.dumps({"command": "make 测试"})}},
        {"name": "odd", "input": "not json"},
        "?",
    ]
    ops.record([{"role": "assistant", "content": "", "tool_calls": calls}], NOW)
    window = ops.since(0)
    assert (window.calls, window.transcript.messages[0].files, window.transcript.messages[0].commands) == (
        3,
        ("a/b.py",),
        ("make 测试",),
    )


def test_secrets_and_own_blocks_never_reach_the_record(ops: Turns, root: Path) -> None:
    secret = "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd"
    ops.record(
        [
            *said(f"the token is {secret}", "<pipimem-memory x>old</pipimem-memory>new"),
            {"role": "assistant", "content": "x", "tool_calls": [{"input": {"command": f"curl -H {secret}"}}]},
        ],
        NOW,
    )
    text = "".join(p.read_text() for p in (root / ".pipimem").rglob("*") if p.is_file())
    assert secret not in text
    assert "old" not in text
    assert [m.text for m in ops.since(0).transcript.messages][1] == "new"


def test_what_is_no_message_is_left_out_by_reason(ops: Turns) -> None:
    done = ops.record(
        [
            *said("fine", "长" * (turns.MESSAGE_LIMIT + 1), "  "),
            {"role": "system", "content": "x"},
            "text",
            {"role": "tool", "content": "out"},
        ],
        NOW,
    )
    assert done.recorded == 1
    assert done.skipped == {
        "more than 50,000 characters": 1,
        "no text": 1,
        "role system": 1,
        "not a message": 1,
        "role tool": 1,
    }


def test_a_cursor_moves_forward_only_and_each_job_has_its_own(ops: Turns) -> None:
    ops.record(said("a", "b", "c"), NOW)
    assert ops.cursor("extract") == 0
    ops.move("extract", 2)
    ops.move("extract", 1)
    ops.move("refresh", 3)
    assert (ops.cursor("extract"), ops.cursor("refresh")) == (2, 3)


def test_a_torn_line_is_none_and_swallows_no_other(ops: Turns, root: Path) -> None:
    ops.record(said("one"), NOW)
    path = next((root / ".pipimem/state/turns").glob("*.jsonl"))
    with open(path, "ab") as file:
        file.write(b'{"n": 2, "turn": 2, "role": "us')
    ops.record(said("二"), NOW)
    assert [m.text for m in ops.since(0).transcript.messages] == ["one", "二"]


def test_a_forgotten_message_is_gone_and_its_number_is_not_given_again(ops: Turns, root: Path) -> None:
    ops.record(said("the gate code is heron", "别的", "last one"), NOW)
    assert ops.forget(lambda text, ref: "heron" in text or ref == "turn:dm%3A顾念#3") == 2
    assert ops.forget(lambda text, ref: "heron" in text) == 0
    assert [m.text for m in ops.since(0).transcript.messages] == ["别的"]
    assert "heron" not in next((root / ".pipimem/state/turns").glob("*.jsonl")).read_text()
    assert ops.record(said("new"), NOW).cursor == 4


def test_the_record_is_bounded_and_keeps_what_no_job_has_done(
    ops: Turns, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setattr(turns, "FILE_LIMIT", 20_000)
    for n in range(30):
        ops.record(said(f"message {n} " + "字" * 50), NOW)
    ops.move("extract", 28)
    for n in range(30, 400):
        ops.record(said(f"message {n} " + "字" * 50), NOW)
        ops.move("extract", n - 10)
    path = next((root / ".pipimem/state/turns").glob("*.jsonl"))
    assert path.stat().st_size <= 20_000
    assert ops.since(0).end == 400
    assert {f"message {n} " + "字" * 50 for n in range(390, 400)} <= {m.text for m in ops.since(0).transcript.messages}


def test_what_no_job_had_worked_on_is_not_dropped_in_silence(ops: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "FILE_LIMIT", 20_000)
    lost = [ops.record(said(f"第 {n} 条 " + "字" * 50), NOW).skipped for n in range(150)]
    assert any(turns.LOST in skipped for skipped in lost)
    dropped = sum(skipped.get(turns.LOST, 0) for skipped in lost)
    assert dropped + len(ops.since(0).transcript.messages) == 150
    ops.move("extract", 150)
    assert all(turns.LOST not in ops.record(said("字" * 60), NOW).skipped for _ in range(30))


def test_however_large_a_turns_tool_calls_are_numbers_go_on(ops: Turns, root: Path) -> None:
    secret = "sk-ant-api03-" + "Zx9Q" * 20
    calls = [{"input": {"command": f"cat <<E > a.py\n{'数' * 30_000}\nE", "file_path": f"/tmp/{secret}"}}] * 20
    rows = [*said("部署吧"), {"role": "assistant", "content": "done", "name": secret, "tool_calls": calls}]
    assert ops.record(rows, NOW).cursor == 2
    assert ops.record(said("记住：六点关门"), NOW).cursor == 3
    path = next((root / ".pipimem/state/turns").glob("*.jsonl"))
    assert path.stat().st_size < 200_000
    assert secret not in path.read_text()
    with path.open("a") as file:  # written by an older version
        file.write(json.dumps({"n": 4, "turn": 4, "role": "user", "text": "x" * 600_000}) + "\n")
    assert ops.record(said("关灯"), NOW).cursor == 5


def test_many_recorders_at_once_give_every_message_a_number_of_its_own(ops: Turns, root: Path) -> None:
    def act(who: int) -> None:
        for n in range(10):
            Turns(Workspace(str(root)), "dm:顾念").record(said(f"{who}-{n}"), NOW)

    crew = [threading.Thread(target=act, args=(who,)) for who in range(6)]
    for member in crew:
        member.start()
    for member in crew:
        member.join()
    messages = ops.since(0).transcript.messages
    assert sorted(m.text for m in messages) == sorted(f"{who}-{n}" for who in range(6) for n in range(10))
    assert len({m.ref for m in messages}) == 60


CALLS = st.lists(
    st.one_of(st.text(max_size=5), st.dictionaries(st.sampled_from(["input", "function"]), st.text(max_size=5)))
)
VALUES = st.one_of(st.text(max_size=10), st.none(), CALLS)
NAMES = st.sampled_from(["role", "content", "text", "tool_calls", "name"])
ROWS = st.lists(st.one_of(st.text(max_size=20), st.none(), st.dictionaries(NAMES, VALUES)), max_size=4)


@settings(max_examples=40)
@given(ROWS)
def test_nothing_a_host_sends_breaks_the_record(make_root: str, rows: list[object]) -> None:
    found = Turns(Workspace(make_root), "x").record(rows, NOW)
    assert found.recorded + sum(found.skipped.values()) == len(rows)


@pytest.fixture(scope="module")
def make_root(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("turns")
    (root / "pipimem.toml").write_text("")
    return str(root)


def test_recorded_turns_are_what_update_works_on_and_each_is_worked_on_once(root: Path) -> None:
    (root / "pipimem.toml").write_text("")
    assert run("-w", root, "channel", "add", "dm:ines", "--kind", "direct").code == 0
    lines = "\n".join(
        json.dumps({"role": "user", "name": "Ines", "content": t, "timestamp": NOW})
        for t in ("记住：部署窗口是周四晚上", "thanks")
    )
    done = run("-w", root, "turn", "--channel", "dm:ines", "--json", stdin=lines + "\nnot json\n")
    assert (done.code, done.json) == (0, {"recorded": 2, "cursor": 2, "skipped": {"not a message": 1}})
    assert run("-w", root, "update", "--channel", "dm:ines", "--dry-run").code == 0
    first = run("-w", root, "update", "--channel", "dm:ines", "--json")
    assert [a["text"] for a in first.json["applied"] if a["op"] == "add"] == ["部署窗口是周四晚上"]
    assert run("-w", root, "update", "--channel", "dm:ines", "--json").json["applied"] == []
    assert run("-w", root, "turn", "--channel", "nowhere", stdin=lines).code == 3
    assert run("-w", root, "turn", "--channel", "dm:ines", stdin="nonsense").code == 2


def host(*rows: tuple[str, str, int], session: str = "s1") -> Transcript:
    """A host's transcript: (role, text, byte offset) each."""
    messages = [
        Message(f"claude:{session}#m{at}", role, text, time=NOW, files=("a.py",) if role == "assistant" else (), at=at)
        for role, text, at in rows
    ]
    return Transcript("claude", session, tuple(messages))


TALK = (("user", "记住：窗口是周四", 0), ("assistant", "好", 100), ("user", "more", 200), ("assistant", "ok", 300))


def test_a_transcript_is_recorded_up_to_its_byte_under_its_own_references(ops: Turns) -> None:
    done = ops.feed(host(*TALK), 150, NOW)
    assert (done.recorded, done.cursor) == (2, 2)
    assert ops.feed(host(*TALK), 400, NOW).recorded == 2
    window = ops.since(0)
    assert [m.ref for m in window.transcript.messages] == [f"claude:s1#m{at}" for at in (0, 100, 200, 300)]
    assert (window.turns, window.calls, window.transcript.messages[1].files) == (2, 2, ("a.py",))
    assert ops.feed(host(*TALK), 400, NOW).recorded == 0


def test_a_kill_between_the_messages_and_their_place_records_none_twice(ops: Turns, root: Path) -> None:
    ops.feed(host(*TALK), 250, NOW)
    (root / ".pipimem/state/turns/dm%3A顾念.sources.json").unlink()
    assert ops.feed(host(*TALK), 400, NOW).recorded == 1
    assert [m.text for m in ops.since(0).transcript.messages] == ["记住：窗口是周四", "好", "more", "ok"]


def test_a_transcript_begun_anew_under_its_name_is_read_from_its_start(ops: Turns) -> None:
    ops.feed(host(*TALK), 400, NOW)
    assert ops.feed(host(("user", "afresh", 7)), 50, NOW).recorded == 1


def test_places_are_kept_for_the_last_transcripts_only(ops: Turns, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SOURCES", 3)
    for number in range(5):
        ops.feed(host(*TALK, session=f"s{number}"), 400, NOW)
    kept = json.loads((root / ".pipimem/state/turns/dm%3A顾念.sources.json").read_text("utf-8"))
    assert list(kept) == ["claude:s2", "claude:s3", "claude:s4"]


def test_what_was_forgotten_is_not_recorded_again_from_its_transcript(ops: Turns, root: Path) -> None:
    ops.feed(host(*TALK), 400, NOW)
    assert ops.forget(lambda text, ref: "周四" in text or ref == "claude:s1#m200") == 2
    (root / ".pipimem/state/turns/dm%3A顾念.sources.json").unlink()
    assert ops.feed(host(*TALK), 400, NOW).recorded == 0
    assert [m.text for m in ops.since(0).transcript.messages] == ["好", "ok"]
