"""Every recall can be explained afterwards, to a person who has not read the code; and no record keeps what it must not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import safety, traces
from pipimem.errors import NotFound
from pipimem.memory import Memory
from tests.conftest import run, snapshot

OPS = "channels/ops/MEMORY.md"
SECRET = "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd"
FILES = {
    "pipimem.toml": "",
    OPS: "# M\n\n- 部署窗口是周四晚上 <!-- m-0000000a kind=decision since=2026-03-01 -->\n- the old 部署窗口 was Monday <!-- m-0000000b kind=fact since=2026-01-01 until=2026-02-01 -->\n",
}  # fmt: skip


@pytest.fixture
def ops(make: Callable[..., Memory]) -> Memory:
    return make(FILES)


def test_a_recall_is_explained_with_what_was_given_and_what_was_not(ops: Memory, root: Path) -> None:
    result = ops.recall("上次定的部署窗口是什么时候？", "ops")
    row = ops.why()
    assert row["id"] == result.trace["id"]
    assert row["packed"] == ["m-0000000a"]
    assert ("m-0000000b", "expired on 2026-02-01") in [(g["ref"], g["reason"]) for g in row["gate"]]
    shown = run("-w", root, "why").out
    for words in (
        "Memory was asked, because",
        "部署窗口",
        "1 passage given",
        "[m-0000000a] 部署窗口是周四晚上",
        "score ",
        "because expired on 2026-02-01",
        "The index was up to date",
    ):
        assert words in shown
    assert run("-w", root, "why", "--json", row["id"]).json["packed"] == ["m-0000000a"]


def test_where_memory_was_not_asked_or_could_not_be_that_is_said(ops: Memory, root: Path) -> None:
    ops.recall("/status", "ops")
    assert "Memory was not asked, because" in run("-w", root, "why").out
    with pytest.raises(NotFound, match="t-00000000"):
        ops.why("t-00000000")


def test_before_the_first_recall_there_is_nothing_to_explain(root: Path) -> None:
    (root / "pipimem.toml").write_text("")
    assert run("-w", root, "why").code == 1


def test_asking_changes_no_document_and_a_read_only_place_no_answer(ops: Memory, root: Path) -> None:
    ops.index()
    before = snapshot(root)
    ops.recall("上次定的部署窗口是什么时候？", "ops")
    assert snapshot(root) == before
    (root / ".pipimem/state/traces.jsonl").unlink()
    (root / ".pipimem/state/traces.jsonl").mkdir()
    result = ops.recall("上次定的部署窗口是什么时候？", "ops")
    assert result.items
    assert "id" not in result.trace


def test_no_secret_is_kept_and_no_text_of_memory(ops: Memory, root: Path) -> None:
    ops.recall(f"why did we set {SECRET} for the 部署窗口 last time?", "ops")
    kept = (root / ".pipimem/state/traces.jsonl").read_text()
    assert SECRET not in kept
    assert "周四晚上" not in kept


def test_forgetting_reaches_traces_and_recorded_turns(ops: Memory, root: Path) -> None:
    ops.turn("ops", [{"role": "user", "content": "我说：部署窗口是周四晚上"}])
    ops.recall("上次定的部署窗口是什么时候？", "ops")
    ops.forget("m-0000000a")
    state = "".join(p.read_text() for p in (root / ".pipimem/state").rglob("*.jsonl") if p.name != "runs.jsonl")
    assert "m-0000000a" not in state
    assert "周四晚上" not in state


def test_a_session_is_given_a_passage_once_until_it_changes_or_a_compaction_clears_it(ops: Memory, root: Path) -> None:
    ask = "上次定的部署窗口是什么时候？"

    def got(session: str) -> list[str]:
        return [i.hit.text for i in ops.recall(ask, "ops", session=session).items]

    assert got("s1") == ["部署窗口是周四晚上"]
    assert got("s1") == []
    assert ("m-0000000a", "already-given") in ops.recall(ask, "ops", session="s1").omitted
    assert got("s2") == got("") == ["部署窗口是周四晚上"]
    path = root / OPS
    path.write_text(path.read_text().replace("周四晚上", "周五晚上"))
    ops.index()
    assert got("s1") == ["部署窗口是周五晚上"]
    assert got("s1") == []
    ops.before_compact("ops")
    assert got("s1") == ["部署窗口是周五晚上"]


def test_the_record_is_bounded_and_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "LIMIT", 2000)
    path = str(tmp_path / "state" / "traces.jsonl")
    for n in range(200):
        assert traces.keep(path, {"id": f"t-{n}", "reason": "第几次"})
    assert (tmp_path / "state" / "traces.jsonl").stat().st_size <= 2000
    assert traces.rows(path)[-1]["id"] == "t-199"
    (tmp_path / "state" / "traces.jsonl").write_bytes(b'{"id": "t-x"}\n{"id": 5}\n[]\n{"id": "t-y"')
    assert [r["id"] for r in traces.rows(path)] == ["t-x"]


@given(st.text(max_size=60))
def test_what_is_not_scanned_holds_no_secret(text: str) -> None:
    assert safety.redact(text) == text or traces._may_hold_one(text)


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        "密码是 hunter2x",
        "password: hunter2",
        "postgres://u:s3cr3tpw@db/x",
        "api_key=abc123DEF456ghi789",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "口令：aB3dE6gH9",
    ],
)
def test_what_looks_like_a_secret_is_scanned(text: str) -> None:
    assert traces._may_hold_one(text)
