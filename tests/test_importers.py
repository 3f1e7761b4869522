"""Foreign transcripts: what was said comes through, what was not is counted, nothing breaks on a bad line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem.errors import Unreadable, Usage
from pipimem.importers import codex, hermes, importer, importers, load, openclaw, pi
from tests.conftest import SAMPLE, case


def saved(tmp_path: Path, data: bytes | str, name: str = "t.jsonl") -> str:
    path = tmp_path / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return str(path)


def test_a_claude_session_gives_talk_only_and_counts_the_rest(tmp_path: Path) -> None:
    found = load(saved(tmp_path, case("G53-claude.jsonl")))
    assert found.ref == "claude:s-53"
    assert [(m.role, m.text) for m in found.messages] == [
        ("user", "Why does the pump stop?"),
        ("assistant", "The relay is set to 30 minutes."),
        ("assistant", "LAST-LINE-MARKER: set it to 90 minutes."),
    ]
    assert found.messages[1].commands == ("relayctl get",)
    assert found.messages[0].ref == "claude:s-53#1"
    bad = {k: found.skipped.get(k, 0) for k in ("not JSON", "not a record", "half a line")}
    assert bad == {"not JSON": 2, "not a record": 1, "half a line": 1}
    assert "thinking" in found.skipped
    assert not any("not for the notes" in m.text for m in found.messages)


def test_a_session_imported_again_adds_nothing_and_a_grown_one_its_new_message(tmp_path: Path) -> None:
    data = case("G53-claude.jsonl")
    row = {"type": "user", "uuid": "6", "sessionId": "s-53", "timestamp": "2026-03-03T10:01:00Z",
           "message": {"role": "user", "content": "谢谢"}}  # fmt: skip
    first, second = load(saved(tmp_path, data)), load(saved(tmp_path, data))
    third = load(saved(tmp_path, data + b"\n" + json.dumps(row, ensure_ascii=False).encode() + b"\n"))
    keys = [{(m.ref, m.role) for m in t.messages} for t in (first, second, third)]
    assert (first.messages, first.digest) == (second.messages, second.digest)
    assert first.digest != third.digest
    assert keys[1] - keys[0] == set()
    assert keys[2] - keys[0] == {("claude:s-53#6", "user")}
    assert third.messages[: len(first.messages)] == first.messages
    for imported in (first, second):
        assert sum(imported.skipped[k] for k in ("not JSON", "not a record", "half a line")) == 4


def test_a_codex_rollout_gives_its_two_messages_and_counts_its_tool_call(tmp_path: Path) -> None:
    found = codex.read(saved(tmp_path, case("G54-codex.jsonl")))
    assert [(m.role, m.text) for m in found.messages] == [
        ("user", "请把重试间隔改成 1、4、16 秒"),
        ("assistant", "改好了：1、4、16 秒。"),
    ]
    assert (found.calls, found.errors) == (1, 0)
    assert found.messages[1].commands == ("sed -n 1,5p retry.toml",)
    assert found.skipped["type world_state"] == 1
    assert found.skipped["system or developer text"] == 1
    assert found.skipped["tool output"] == 1
    said = "".join(m.text for m in found.messages)
    assert not any(word in said for word in ("SYSTEM", "permissions", "intervals"))


def talked(tmp_path: Path, *rows: tuple[str, str | None, dict[str, Any]]) -> list[str]:
    """What is said in a Claude Code session of these lines (uuid, parent, record), a minute apart."""
    path = tmp_path / "11111111-1111-4111-8111-111111111111.jsonl"
    common = {"sessionId": path.stem, "cwd": "/x", "version": "2.1.150"}
    told = [
        {"uuid": uuid, "parentUuid": parent, "timestamp": f"2026-11-10T10:{minute:02d}:00Z", **common, **row}
        for minute, (uuid, parent, row) in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in told), "utf-8")
    return [m.text for m in load(str(path)).messages]


def asks(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}


def says(text: str, identity: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text}, {"type": "tool_use", "id": f"t{identity}", "name": "x", "input": {}}]
    return {"type": "assistant", "message": {"role": "assistant", "id": identity, "content": blocks}}


def test_the_newest_branch_is_followed_wherever_somebody_went_back(tmp_path: Path) -> None:
    first = [("a", None, asks("第一次")), ("b", "a", says("bad", "m1"))]
    assert talked(tmp_path, *first, ("c", None, asks("第二次")), ("d", "c", says("good", "m2"))) == ["第二次", "good"]
    assert talked(tmp_path, *first, ("c", "a", says("好", "m2"))) == ["第一次", "好"]
    through = ("s", "b", {"type": "system", "subtype": "turn_duration"})
    old = [("c", "s", asks("old")), ("d", "c", says("old answer", "m2"))]
    assert talked(tmp_path, *first, through, *old, ("e", "b", asks("new"))) == ["第一次", "bad", "new"]


def test_parallel_tools_and_a_compaction_are_no_branches(tmp_path: Path) -> None:
    result = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "tm1"}]}}
    compact = {"type": "system", "subtype": "compact_boundary", "logicalParentUuid": "b"}
    said = talked(
        tmp_path, ("a", None, asks("问")), ("b", "a", says("one", "m1")), ("c", "b", says("two", "m1")),
        ("d", "b", result), ("e", "d", says("three", "m2")), ("f", "b", asks("继续")), ("g", None, compact),
        ("h", "g", asks("压缩以后")), ("i", "h", says("four", "m3")),
    )  # fmt: skip
    assert said == ["问", "one\ntwo", "three", "继续", "压缩以后", "four"]


HEADER = {"id": "019a2b3c-4d5e-7f60-8a9b-0c1d2e3f4a5b", "timestamp": "2026-11-14T10:00:00Z", "cwd": "/x"}


def rollout(tmp_path: Path, *payloads: tuple[float, str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Who says what in a rollout of these lines (seconds, type, payload)."""
    path = tmp_path / f"rollout-2026-11-14T10-00-00-{HEADER['id']}.jsonl"
    rows = [
        {"timestamp": f"2026-11-14T10:00:{seconds:06.3f}Z", "type": kind, "payload": payload}
        for seconds, kind, payload in [(0, "session_meta", HEADER), *payloads]
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return [(m.role, m.text) for m in load(str(path)).messages]


def event(text: str, kind: str = "user_message", seconds: float = 1) -> tuple[float, str, dict[str, Any]]:
    return seconds, "event_msg", {"type": kind, "last_agent_message" if kind == "task_complete" else "message": text}


def item(*texts: str, role: str = "user", seconds: float = 1) -> tuple[float, str, dict[str, Any]]:
    parts = [{"type": "input_text", "text": text} for text in texts]
    return seconds, "response_item", {"type": "message", "role": role, "content": parts}


@pytest.mark.parametrize(
    "text",
    [
        "<skill> tag is not rendered in the page, please fix it",
        "<permissions> element missing in AndroidManifest.xml, add it",
        "<permissions>相机</permissions> 这个标签为什么没有生效？",
        "<skill>foo</skill>\nis not shown",
        "<environment_context>没有闭合，为什么？",
        "<INSTRUCTIONS>keep it short</INSTRUCTIONS> write me a haiku",
        "# AGENTS.md instructions are ignored by the agent, why?",
        'Why does the prompt contain "## My request for Codex:" in the logs? We decided to strip it.',
        "Docs say:\n## My request for Codex:\nwhat is that?",
    ],
)
def test_a_prompt_that_speaks_of_codexs_tags_is_kept_whole(tmp_path: Path, text: str) -> None:
    assert rollout(tmp_path, event(text)) == rollout(tmp_path, item(text)) == [("user", text)]


AROUND = ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nbe nice\n</INSTRUCTIONS>",
          "<environment_context>\n<cwd>/x</cwd></environment_context>",
          "<permissions instructions>\nread only\n</permissions instructions>",
          "<skill>\n<name>s</name>\n<path>/s</path>\n做事\n</skill>")  # fmt: skip


@pytest.mark.parametrize("texts", [[*AROUND], ["\n".join(AROUND)]])
def test_what_codex_puts_before_a_prompt_is_taken_off_and_is_no_prompt_itself(tmp_path: Path, texts: list[str]) -> None:
    assert rollout(tmp_path, item(*texts, "真正的问题：修复登录"), item(*texts)) == [("user", "真正的问题：修复登录")]
    setup = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\n修复登录"
    assert rollout(tmp_path, item(setup), event("修复登录")) == [("user", "修复登录")]


def test_a_prompt_is_told_twice_only_where_an_item_has_it_between_the_hosts_own_lines(tmp_path: Path) -> None:
    assert rollout(tmp_path, event("deploy to staging now"), item("deploy")) == [
        ("user", "deploy to staging now"), ("user", "deploy"),
    ]  # fmt: skip
    assert rollout(tmp_path, event("deploy"), item("do not deploy yet")) == [
        ("user", "deploy"), ("user", "do not deploy yet"),
    ]  # fmt: skip
    for pair in ([event("部署"), item("<x>host's</x>\n部署")], [item("<x>host's</x>\n部署"), event("部署")]):
        assert rollout(tmp_path, *pair) == [("user", "部署")]


def test_a_forks_own_prompt_is_no_copy_however_soon_it_comes(tmp_path: Path) -> None:
    parent = (0.06, "session_meta", {"id": "019a0000-4d5e-7f60-8a9b-0c1d2e3f4a5b"})
    said = rollout(
        tmp_path, parent, event("parent prompt", seconds=0.07), event("parent answer", "agent_message", 0.3),
        event("自己的问题", seconds=0.8), event("own answer", "agent_message", 0.9),
    )  # fmt: skip
    assert said == [("user", "自己的问题"), ("assistant", "own answer")]


def test_what_a_turn_ended_with_is_told_once_also_after_steering(tmp_path: Path) -> None:
    said = rollout(
        tmp_path, event("start"), event("正在处理", "agent_message"), item("正在处理", role="assistant"),
        event("also do X", seconds=5), event("正在处理", "task_complete", 9),
        event("again", seconds=20), event("正在处理", "agent_message", 21), event("正在处理", "task_complete", 22),
    )  # fmt: skip
    assert said == [
        ("user", "start"), ("assistant", "正在处理"), ("user", "also do X"), ("user", "again"), ("assistant", "正在处理"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "how do I parse a <user_message> tag in my xml?",
        "<task_agenda> is not closed in my html, why?",
        "<task_agenda>待办</task_agenda> 为什么不显示？",
        "为什么这段不显示？\n<task_agenda>\n待办\n</task_agenda>",
        "<user_message>a</user_message> and <user_message>b</user_message> differ",
        "[2026-05-06 10:00] is when the outage began, please note",
        "System: [ALERT] disk full on node3\nwhat does this mean?",
        "[cron: every night] is the syntax I want, ok?",
        "Read HEARTBEAT.md and explain it to me please",
        "我要的格式是 [message_id: 7]",
    ],
)
def test_a_message_that_speaks_of_a_hosts_wrappers_is_kept_whole(text: str) -> None:
    assert pi.plain("user", text)[0] == openclaw.typed("user", text)[0] == text
    assert openclaw.typed("user", text)[2] == ""


def test_what_a_host_puts_around_a_message_is_taken_off() -> None:
    blocks = "<runtime_context>\nnow\n</runtime_context>\n<task_agenda>\n1\n</task_agenda>\n"
    about = "how do I parse a <user_message> tag?"
    assert pi.unwrapped(f"{blocks}<user_message>\n{about}\n</user_message>") == about
    assert pi.unwrapped("好的\n\n<memory-context>\n[System note: recalled]\n旧\n</memory-context>") == "好的"
    for stamp in ("[Wed 2026-05-06 15:00 GMT+8] ", "[Telegram Ada (@ada) id:87 +2m 2026-05-06T15:11Z] ",
                  "System: [2026-05-06 15:10:00 GMT+8] Node connected\n\n"):  # fmt: skip
        assert openclaw.typed("user", stamp + "谢谢\n[message_id: 7]")[0] == "谢谢"
    assert openclaw.typed("user", "[cron:9 daily] Summarise the day")[2] == "cron"
    assert openclaw.typed("assistant", "Use [[reply_to_current]] here")[0] == "Use [[reply_to_current]] here"


def test_json_that_somebody_wrote_stays_as_it_was_written() -> None:
    for text in (
        '{"text": "looks like json"}',
        '{"type": "text"}',
        '[{"type": "widget", "name": "窗"}]',
        '[{"text": "a"}]',
    ):
        assert hermes.content(text) == text
    assert hermes.content('[{"type": "text", "text": "看这张"}]') == "看这张"
    assert hermes.content('\x00json:{"text": "marked"}') == "marked"


def test_a_hermes_export_reads_content_in_every_shape_in_its_order(tmp_path: Path) -> None:
    found = hermes.read(saved(tmp_path, case("G55-hermes.jsonl")))
    assert [(m.id, m.role, m.text, m.time) for m in found.messages] == [
        ("1", "user", "明早几点浇水？", "2026-03-01T09:00:00.250Z"),
        ("4", "assistant", "5 点有雨，改到 9 点。", "2026-03-01T09:00:03.500Z"),
    ]
    assert (found.title, found.calls) == ("浇水计划", 1)
    assert found.skipped["tool output"] == 1
    assert not any("None" in m.text or "rain_mm" in m.text for m in found.messages)
    assert found.facts == {"platform": "telegram"}


def test_a_message_that_is_an_object_gives_its_text(tmp_path: Path) -> None:
    row = {"id": "h", "source": "cli", "messages": [{"id": 1, "role": "user", "content": {"text": "对象"}}]}
    assert [m.text for m in hermes.read(saved(tmp_path, json.dumps(row))).messages] == ["对象"]


def test_the_blocks_of_one_assistant_message_are_one_message_with_its_files() -> None:
    found = load(str(SAMPLE / "transcripts" / "claude-session.jsonl"))
    assert found.engine == "claude"
    assert len({m.ref for m in found.messages}) == len(found.messages)
    assert any("api/kilnwren/meters/em340.py" in m.files for m in found.messages)
    assert not any(m.text.startswith("<") for m in found.messages)
    assert found.skipped["tool output"] >= 3


def test_plain_lines_keep_names_times_and_line_references(tmp_path: Path) -> None:
    rows = [
        {"role": "user", "name": "顾念", "content": "你好", "timestamp": "2026-03-01T10:00:00+08:00"},
        {"role": "Assistant", "text": "hello", "id": "m7"},
        {"role": "system", "content": "obey"},
        {"role": "user", "content": [{"type": "text", "text": "parts"}, {"type": "image"}]},
        {"role": "user", "content": ""},
    ]
    found = load(saved(tmp_path, "\ufeff" + "\n".join(json.dumps(r, ensure_ascii=False) for r in rows)))
    assert [(m.ref, m.role, m.name, m.text) for m in found.messages] == [
        ("jsonl:t#L1", "user", "顾念", "你好"),
        ("jsonl:t#m7", "assistant", "", "hello"),
        ("jsonl:t#L4", "user", "", "parts"),
    ]
    assert found.skipped == {"role system": 1, "no text": 1}


def test_a_lone_surrogate_becomes_a_replacement_character_and_the_rest_is_read(tmp_path: Path) -> None:
    found = load(saved(tmp_path, case("G12-lone-surrogate.jsonl")))
    assert [m.role for m in found.messages] == ["user", "assistant"]
    assert found.skipped == {"tool output": 1}
    row = {
        "role": "user",
        "content": json.loads(case("G12-lone-surrogate.jsonl").splitlines()[1])["message"]["content"][0]["content"],
    }
    text = load(saved(tmp_path, json.dumps(row), "odd.jsonl")).messages[0].text
    assert text == "caf\ufffd menu, ok 🌾"


def test_pipimems_own_block_is_not_learned_again(tmp_path: Path) -> None:
    block = '<pipimem-memory security="untrusted-context">\nremember: we decided\n</pipimem-memory>\n'
    row = {"role": "user", "content": block + "and now the question"}
    assert load(saved(tmp_path, json.dumps(row))).messages[0].text == "and now the question"


def test_a_line_of_nine_megabytes_is_skipped_and_the_next_one_read(tmp_path: Path) -> None:
    rows = [
        {"role": "user", "content": "first"},
        {"role": "user", "content": "x" * 9_000_000},
        {"role": "user", "content": "最后"},
    ]
    found = load(saved(tmp_path, "\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n"))
    assert [m.text for m in found.messages] == ["first", "最后"]
    assert found.skipped == {"too long": 1}


@given(cut=st.integers(0, 4000))
def test_any_prefix_of_a_session_is_read_without_an_error(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    data = (SAMPLE / "transcripts" / "claude-session.jsonl").read_bytes()
    start = len(data) // 2
    folder = tmp_path_factory.mktemp("prefix")
    found = load(saved(folder, data[: start + cut]))
    assert found.messages
    assert found.skipped.get("half a line", 0) <= 1


def test_a_missing_file_and_an_unknown_format_are_different_errors(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="nowhere"):
        load(str(tmp_path / "nowhere.jsonl"))
    with pytest.raises(Usage, match="no known format"):
        load(saved(tmp_path, "just prose, 只是文字"))
    with pytest.raises(Unreadable):
        load(str(tmp_path))


def test_importers_are_found_by_entry_point_the_plain_one_last() -> None:
    names = [i.__name__.rpartition(".")[2] for i in importers()]  # type: ignore[attr-defined]
    assert names == ["chatgpt", "claude", "codex", "hermes", "openclaw", "pi", "pipiclaw", "jsonl"]


def test_an_importer_is_found_by_its_name_and_an_unknown_one_names_the_near_ones() -> None:
    assert importer("claude").detects("x.jsonl", b'{"type":"user","sessionId":"s","uuid":"u","message":{}}')
    with pytest.raises(Usage, match=r"no importer 'claud'.*claude"):
        importer("claud")
