"""How hosts' files are opened: streamed, bounded, read-only, never outside their folder, databases in one snapshot."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipimem.errors import NotFound, Unreadable, Usage
from pipimem.importers import chatgpt, claude, codex, hermes, jsonl, openclaw, pi, pipiclaw, recognised
from pipimem.importers.draft import called, moment, span, zoned
from pipimem.importers.reading import Lines, walk

SCHEMA = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, started_at REAL);
CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);
INSERT INTO sessions VALUES ('s-1', 'cli', 1774947600);
INSERT INTO messages VALUES (1, 's-1', 'user', '第一句', 1774947600);
"""


def rollout(path: Path, *rows: dict[str, Any]) -> str:
    meta = {"timestamp": "2026-04-02T08:00:00Z", "type": "session_meta", "payload": {"id": "c", "cwd": "/p"}}
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in (meta, *rows)), encoding="utf-8")
    return str(path)


def item(payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-04-02T08:00:01Z", "type": "response_item", "payload": payload}


def test_a_prompt_keeps_its_words_when_twenty_megabytes_of_image_stand_beside_them(tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0KGgoA" * 1_700_000}
    words = [{"type": "input_text", "text": "看这张图"}, image, {"type": "input_text", "text": "what is it?"}]
    path = rollout(tmp_path / "r.jsonl", item({"type": "message", "role": "user", "content": words}))
    tracemalloc.start()
    found = codex.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [m.text for m in found.messages] == ["看这张图\nwhat is it?"]
    assert found.skipped == {"image": 1}
    assert peak < 12_000_000


def test_a_claude_image_in_its_own_field_is_left_out_while_reading(tmp_path: Path) -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 3_000_000}}
    data = {"type": "text", "data": "short words stay", "text": "图在上面"}
    row = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": [block, data]}}
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert [m.text for m in claude.read(str(path)).messages] == ["图在上面"]
    value = next(v for _, _, v in Lines(str(path), {}))
    assert value["message"]["content"][1]["data"] == "short words stay"
    assert value["message"]["content"][0]["source"]["data"] == ""


def test_tool_output_longer_than_any_line_may_be_is_counted_as_tool_output(tmp_path: Path) -> None:
    output = "Process exited with code 1\nOutput:\n" + "行 of words, " * 900_000
    path = rollout(
        tmp_path / "r.jsonl",
        item({"type": "function_call", "name": "shell", "arguments": '{"cmd":"make"}', "call_id": "k"}),
        item({"type": "function_call_output", "call_id": "k", "output": output}),
        item({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "失败了"}]}),
    )
    found = codex.read(path)
    assert [(m.text, m.commands) for m in found.messages] == [("失败了", ("make",))]
    assert (found.calls, found.errors) == (1, 1)
    assert found.skipped == {"tool call": 1, "tool output": 1}


def test_a_long_result_keeps_its_head_and_tail_is_counted_and_no_secret_is_cut_in_half(tmp_path: Path) -> None:
    key = "AKIA" + "Q3XZ7PLM2RTV9KWD"
    middle = "".join(f"第 {n} 行 of the log\n" for n in range(2000))
    for text in (
        "开头\n" + middle + "结尾", "x " * 1993 + key + " y" * 9000, "水" * 3990 + key + "位" * 9000 + key + "高" * 3988,
        f"{key}{'/' * 20_000}{key}",
    ):  # fmt: skip
        path = rollout(tmp_path / "r.jsonl", item({"type": "function_call_output", "call_id": "k", "output": text}))
        found = codex.read(path, tools=True)
        kept = found.messages[0].text if found.messages else ""
        assert len(kept) <= 8_100
        assert found.skipped.get("tool output cut short", 0) == 1
        if text[0] == "开":
            assert kept.startswith("开头\n第 0 行")
            assert kept.endswith("第 1999 行 of the log\n结尾")
            assert re.search(r"log\n\[… [\d,]+ characters …\]\n第 ", kept)
        pieces = {key[a : a + 8] for a in range(len(key) - 7)}
        assert not [p for p in pieces if p in kept.replace(key, "")]


def test_a_private_key_is_no_half_of_one_after_a_cut(tmp_path: Path) -> None:
    lines = "".join("MIIEowIBAAKCAQEAx7" + f"{n:04d}" * 11 + "\n" for n in range(200))
    begin, end = "-----BEGIN RSA " + "PRIVATE KEY-----\n", "-----END RSA " + "PRIVATE KEY-----\n"
    path = rollout(
        tmp_path / "r.jsonl",
        item({"type": "function_call_output", "call_id": "k", "output": f"密钥\n{begin}{lines}{end}done"}),
    )
    kept = codex.read(path, tools=True).messages[0].text
    assert kept.startswith("密钥")
    assert kept.endswith("done")
    assert "MIIE" not in kept


def test_a_record_of_talk_over_eight_megabytes_is_too_long_and_the_next_is_read(tmp_path: Path) -> None:
    path = rollout(
        tmp_path / "r.jsonl",
        item({"type": "message", "role": "user", "content": "x, " * 3_000_000}),
        item({"type": "message", "role": "user", "content": "后面的"}),
    )
    found = codex.read(path)
    assert [m.text for m in found.messages] == ["后面的"]
    assert found.skipped == {"too long": 1}


def test_a_message_opens_at_the_byte_it_says(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + b'{"role":"user","content":"\xe4\xb8\x80"}\n\n{broken\n{"role":"user","content":"two"}\n'
    )
    for message in jsonl.read(str(path)).messages:
        with path.open("rb") as file:
            file.seek(message.at)
            line = file.readline()
        assert json.loads(line.removeprefix(b"\xef\xbb\xbf"))["content"] == message.text


def test_a_header_longer_than_what_is_looked_at_first_is_still_read_for_the_listing(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    payload = {"id": "c-9", "instructions": "规则 " * 40_000, "source": {"subagent": "review"}, "cwd": "/p"}
    path.write_text(
        json.dumps({"timestamp": "2026-04-02T08:00:00Z", "type": "session_meta", "payload": payload}) + "\n"
    )
    found = codex.sessions(str(path))[0]
    assert (found.id, found.kind, found.cwd) == ("c-9", "sub-agent", "/p")


def test_a_live_database_is_read_with_its_log_and_nothing_beside_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.executescript(SCHEMA)
        writer.execute("INSERT INTO messages VALUES (2, 's-1', 'assistant', 'only in the log', 1774947601)")
        writer.commit()
        writer.execute("INSERT INTO messages VALUES (3, 's-1', 'user', 'not yet committed', 1774947602)")
        before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file() and not p.name.endswith("-shm")}
        assert "state.db-wal" in before
        found = hermes.read(str(path))
        after = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file() and not p.name.endswith("-shm")}
    assert [m.text for m in found.messages] == ["第一句", "only in the log"]
    assert after == before


def test_a_closed_database_is_read_without_creating_the_files_of_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "hermes"
    folder.mkdir()
    path = folder / "state.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.executescript(SCHEMA)
    assert [p.name for p in folder.iterdir()] == ["state.db"]
    folder.chmod(0o555)
    try:
        assert [m.text for m in hermes.read(str(path)).messages] == ["第一句"]
        assert [p.name for p in folder.iterdir()] == ["state.db"]
    finally:
        folder.chmod(0o755)


def test_only_the_session_that_grew_has_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript(SCHEMA + "INSERT INTO sessions VALUES ('s-2', 'cli', 1774947700);")
        writer.execute("INSERT INTO messages VALUES (2, 's-2', 'user', 'another', 1774947700)")
        writer.commit()
        before = {t.session: t for t in hermes.each(str(path), {})}
        writer.execute("INSERT INTO messages VALUES (3, 's-2', 'assistant', '更多', 1774947701)")
        writer.commit()
        after = {t.session: t for t in hermes.each(str(path), {})}
    assert before["s-1"] == after["s-1"]
    assert before["s-2"].digest != after["s-2"].digest
    assert after["s-2"].messages[:1] == before["s-2"].messages


def test_a_file_with_several_sessions_says_which_and_an_unknown_one_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript(SCHEMA + "INSERT INTO sessions VALUES ('会话二', 'cli', 1), ('job', 'cron', 2);")
    with pytest.raises(Usage, match=r"'state\.db' holds 2 sessions: '会话二', 's-1'\.") as several:
        hermes.read(str(path))
    assert several.value.hint
    with pytest.raises(NotFound, match="no session 'nowhere'"):
        hermes.read(str(path), "nowhere")
    assert hermes.read(str(path), "job").kind == "cron"
    for module in (claude, codex, jsonl, pi, pipiclaw, openclaw):
        file = tmp_path / "one.jsonl"
        file.write_text('{"type":"session","id":"s"}\n')
        with pytest.raises(NotFound, match="no session 'nowhere'"):
            module.read(str(file), "nowhere")
    with pytest.raises(NotFound, match="no session"):
        chatgpt.read(str(file), "nowhere")


def test_what_is_no_file_or_no_database_is_unreadable(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "state.db").write_bytes(b"SQLite format 3\x00" + b"damaged" * 100)
    for module in (claude, codex, hermes, jsonl, openclaw, pi, pipiclaw, chatgpt):
        for name in ("pipe", "folder", "nowhere"):
            with pytest.raises(Unreadable, match=name):
                module.read(str(tmp_path / name))
    for module in (hermes, openclaw):
        with pytest.raises(Unreadable, match=r"state\.db"):
            module.read(str(tmp_path / "state.db"))


def test_a_file_over_eight_gigabytes_is_refused_before_a_byte_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rollout-huge.jsonl"
    path.touch()
    os.truncate(path, 9 * 1024**3)
    with pytest.raises(Unreadable, match=r"rollout-huge\.jsonl' is larger than 8 GB"):
        codex.read(str(path))


def test_nesting_without_end_and_reasons_without_number_are_counted_not_fatal(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    deep = '{"role":"user","content":' + "[" * 100_000
    odd = [json.dumps({"role": f"角色{n}", "content": "x"}) for n in range(300)]
    call = {"function": {"arguments": '{"path":' + "[" * 100_000}}
    last = json.dumps({"role": "user", "content": "还在", "tool_calls": [call]})
    path.write_text("\n".join([deep, *odd, last]) + "\n")
    found = jsonl.read(str(path))
    assert [m.text for m in found.messages] == ["还在"]
    assert found.skipped["not JSON"] == 1
    assert len(found.skipped) == 101
    assert sum(found.skipped.values()) == 301


def test_a_name_that_could_break_a_reference_or_a_terminal_is_made_safe(tmp_path: Path) -> None:
    path = tmp_path / "my chat #1.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "hi", "id": "a b\n#c"}) + "\n" + '{"role":"\\u001b[2J"}\n')
    found = jsonl.read(str(path))
    assert found.messages[0].ref == "jsonl:my%20chat%20%231#a%20b%0A%23c"
    assert found.messages[0].id == "a b\n#c"
    assert all(reason.isprintable() for reason in found.skipped)


def test_a_damaged_database_is_unreadable_and_another_programs_is_of_no_known_format(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript("CREATE TABLE bookmarks(url TEXT)")
    hosts = [chatgpt, claude, codex, hermes, openclaw, pi, pipiclaw, jsonl]
    with pytest.raises(Usage, match="no known format"):
        recognised(str(path), hosts)
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4000)
    with pytest.raises(Unreadable, match=r"state\.db' cannot be read"):
        recognised(str(path), hosts)


def test_the_files_of_each_host_are_found_and_links_out_of_their_folder_are_not(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    names = {
        claude: ["projects/-p/one.jsonl"],
        codex: ["sessions/2026/01/02/rollout-b.jsonl", "sessions/rollout-a.jsonl"],
        hermes: ["profiles/work/state.db", "state.db"],
        openclaw: ["agents/main/agent/openclaw-agent.sqlite", "agents/main/sessions/x.jsonl", "agents/main/sessions/y.jsonl.reset.1"],
        pi: ["sessions/--p--/a.jsonl"],
        pipiclaw: ["dm_1/log.jsonl.1", "dm_1/log.jsonl", "dm_2/context.jsonl"],
        chatgpt: ["conversations-001.json", "conversations.json"],
        jsonl: ["对话.jsonl"],
    }  # fmt: skip
    others = {
        claude: ["projects/-p/one/subagents/agent-x.jsonl", "projects/-p/agent-y.jsonl", "projects/-p/memory/MEMORY.md"],
        codex: ["history.jsonl", "sessions/2026/01/02/rollout-b.jsonl.zst"],
        hermes: ["state.db-wal", "sessions/old.jsonl"],
        openclaw: ["agents/main/sessions/sessions.json", "agents/main/session-sqlite-import-archive/z.jsonl"],
        pi: ["settings.json"],
        pipiclaw: ["dm_1/context.jsonl"],
        chatgpt: ["user.json"],
        jsonl: ["read.me"],
    }  # fmt: skip
    for module in names:
        folder = root / module.__name__.rpartition(".")[2]
        for name in (*names[module], *others[module], "../../outside/linked.jsonl"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("{}\n")
        (folder / "link").symlink_to(outside)
        (folder / "loop").symlink_to(folder)
        (folder / "out.jsonl").symlink_to(outside / "linked.jsonl")
        skipped: dict[str, int] = {}
        found = [os.path.relpath(p, folder) for p in module.files(str(folder), skipped)]
        assert found == names[module], module.__name__
        assert skipped.pop("link out of the folder") == 2  # a file's and a folder's
        if module in (claude, pipiclaw, openclaw, codex):
            assert sum(skipped.values()) == {claude: 2, pipiclaw: 1, openclaw: 1, codex: 1}[module]


def test_a_file_that_is_also_linked_inside_the_folder_is_met_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "真.jsonl").write_text("{}\n")
    (root / "b.jsonl").symlink_to(root / "a" / "真.jsonl")
    skipped: dict[str, int] = {}
    assert [os.path.basename(p) for p in walk(str(root), skipped)] == ["真.jsonl"]
    assert skipped == {}


def test_hosts_are_looked_for_where_their_variables_say(tmp_path: Path) -> None:
    home = {"HOME": "/home/ada"}
    assert claude.places(home) == ["/home/ada/.claude/projects"]
    assert claude.places({**home, "CLAUDE_CONFIG_DIR": "/c"}) == ["/c/projects"]
    assert codex.places({**home, "CODEX_HOME": "/x"}) == ["/x/sessions", "/x/archived_sessions"]
    assert hermes.places(home) == ["/home/ada/.hermes"]
    assert openclaw.places(home) == ["/home/ada/.openclaw/agents"]
    assert pi.places(home) == ["/home/ada/.pi/agent/sessions"]
    assert pipiclaw.places(home) == ["/home/ada/.pipiclaw/workspace"]
    assert chatgpt.places(home) == jsonl.places(home) == []


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (1774947600.25, "2026-03-31T09:00:00.250Z"),
        (1774947600250, "2026-03-31T09:00:00.250Z"),
        (1774947600250000, "2026-03-31T09:00:00.250Z"),
        ("1774947600.25", "2026-03-31T09:00:00.250Z"),
        ("2026-03-31T17:00:00+08:00", "2026-03-31T17:00:00+08:00"),
        ("2026-03-31T09:00:00Z", "2026-03-31T09:00:00Z"),
        ("昨天", ""), ("nan", ""), (float("inf"), ""), (-5, ""), (True, ""), (None, ""), ({}, ""), (1e30, ""),
    ],
)  # fmt: skip
def test_a_hosts_time_is_an_instant_or_nothing(value: object, time: str) -> None:
    assert moment(value) == time


def test_a_local_time_gets_its_zone_only_from_the_same_instant() -> None:
    assert zoned("2026-03-31T17:00:00", "1774947600250") == "2026-03-31T17:00:00+08:00"
    assert zoned("2026-03-31T05:30:00", 1774947600) == "2026-03-31T05:30:00-03:30"
    assert zoned("2026-03-31T17:07:00", 1774947600) == "2026-03-31T09:00:00.000Z"
    assert zoned("2026-03-31T17:00:00", None) == "2026-03-31T17:00:00"
    assert zoned("", 1774947600) == "2026-03-31T09:00:00.000Z"
    assert span(["2026-03-31T17:00:00+08:00", "", "2026-03-31T08:00:00Z"]) == (
        "2026-03-31T08:00:00Z", "2026-03-31T17:00:00+08:00",
    )  # fmt: skip


def test_tool_calls_name_their_files_and_commands() -> None:
    assert called({"file_path": "/p/a.py", "command": "ls"}, "/p") == (["a.py"], ["ls"])
    assert called('{"command":["bash","-lc","make 测试"]}') == ([], ["make 测试"])
    assert called({"command": ["git", "commit", "-m", "two words"]}) == ([], ["git commit -m 'two words'"])
    assert called({"input": "*** Begin Patch\n*** Add File: 新.md\n+x\n*** Delete File: b.md\n"}) == (
        ["新.md", "b.md"],
        [],
    )
    assert called({"command": {"odd": 1}, "path": 5}) == called("not JSON") == called(None) == ([], [])
