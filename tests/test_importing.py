"""Taking conversations in: what is meant, what is kept, what a second time changes; and the index derived again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipimem.errors import NotFound, Refused, Unreadable, Usage
from pipimem.importers import Pointer, opened
from pipimem.importing import Report, reread, trust
from pipimem.memory import Memory, init
from pipimem.sources import PATH, read
from tests.conftest import run, snapshot, write
from tests.talks import claude, lines
from tests.test_importer_golden import CASES, built, module, spec
from tests.test_importer_properties import LINES, source

SAID = [
    ("user", "Why does the relay drop the webhook after 30 seconds?"),
    ("assistant", "The gateway closes idle sockets; raise `idle_timeout`."),
    ("user", "改成 90 秒，然后重启网关。"),
    ("assistant", "改好了，网关已经重启。"),
]
WORDS = ("lantern", "copper", "basket")
PROJECT = {"pipimem.toml": '[workspace.projects]\n"project:kiln" = "kiln"\n'}


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """Where Claude Code keeps its sessions on this machine."""
    return tmp_path / "home" / ".claude" / "projects"


@pytest.fixture
def kiln(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, which is the current one."""
    folder = tmp_path / "src" / "kiln"
    folder.mkdir(parents=True)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def memory(make: Callable[..., Memory], kiln: Path) -> Memory:
    memory = make(PROJECT)
    memory.add_channel("project:kiln", kind="project")
    memory.add_channel("dm:ines", kind="direct")
    return memory


def rows(memory: Memory) -> list[dict[str, Any]]:
    path = Path(memory.workspace.root) / PATH
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def content(memory: Memory) -> Any:
    """Everything the index of sessions says, without row numbers and stamps."""
    db = memory.said.db()
    sql = (
        "SELECT s.engine, s.session, m.name, m.id & 3, m.ident, m.time, m.at, m.end, hex(m.digest), hex(m.terms)"
        " FROM messages m JOIN sources s ON s.id = m.id >> 24 ORDER BY 1, 2, 3, 4"
    )
    columns = (
        "engine",
        "session",
        "digest",
        "channel",
        "project",
        "first",
        "last",
        "messages",
        "calls",
        "errors",
        "title",
    )
    talks = sorted([getattr(t, c) for c in columns] for t in memory.said.talks())
    db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.v USING fts5vocab(main, f, 'col')")
    return talks, db.execute(sql).fetchall(), db.execute("SELECT term, col, doc FROM temp.v ORDER BY 1, 2").fetchall()


def whats(report: Report) -> list[tuple[str, str, int, int]]:
    return [(s.what, s.ref, s.messages, s.kept) for s in report.sources]


# What is meant


def test_only_the_current_projects_sessions_are_taken_and_all_leaves_it(
    memory: Memory, projects: Path, kiln: Path
) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln / "api"))
    claude(projects / "b" / "bbbb-2.jsonl", SAID[:2], cwd="/src/elsewhere")
    report = memory.import_sessions("claude")
    assert whats(report) == [("new", "claude:aaaa-1", 4, 4)]
    assert report.skipped == {"another project": 1}
    assert [r["scope"] for r in rows(memory)] == ["project:kiln"]
    report = memory.import_sessions("claude", everything=True)
    assert whats(report) == [("new", "claude:bbbb-2", 2, 2), ("unchanged", "claude:aaaa-1", 4, 0)]
    assert [r.get("scope", "") for r in rows(memory)] == ["project:kiln", ""]


def test_a_worktrees_sessions_are_the_projects(memory: Memory, projects: Path, kiln: Path, tmp_path: Path) -> None:
    for arguments in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", "-b", "t", str(tmp_path / "tree")],
    ):
        subprocess.run(["git", "-C", str(kiln), *arguments], check=True, capture_output=True)
    claude(projects / "t" / "tttt-1.jsonl", SAID, cwd=str(tmp_path / "tree"))
    assert whats(memory.import_sessions("claude")) == [("new", "claude:tttt-1", 4, 4)]
    assert rows(memory)[0]["project"] == str(kiln)


def test_another_folder_may_be_named_as_the_project(memory: Memory, projects: Path, tmp_path: Path) -> None:
    claude(projects / "b" / "bbbb-2.jsonl", SAID, cwd=str(tmp_path / "other"))
    assert memory.import_sessions("claude").sources == []
    assert len(memory.import_sessions("claude", project=str(tmp_path / "other")).sources) == 1


def test_what_has_no_project_is_taken_only_when_it_is_pointed_at(memory: Memory, tmp_path: Path) -> None:
    path = lines(tmp_path / "talk" / "ines.jsonl", *SAID)
    found = memory.import_sessions("jsonl", str(path), channel="dm:ines")
    assert [(s.ref, s.channel) for s in found.sources] == [("jsonl:ines", "dm:ines")]


def test_group_chats_are_taken_only_when_named(memory: Memory, tmp_path: Path) -> None:
    root = tmp_path / "home" / ".pipiclaw" / "workspace"
    for channel in ("slack:group:C1", "dm:ines"):
        log = root / channel / "log.jsonl"
        log.parent.mkdir(parents=True)
        row = {"ts": 1780000000000, "user": "u1", "userName": "Ines", "text": f"窑炉 in {channel}", "isBot": False}
        log.write_text(json.dumps(row) + "\n", encoding="utf-8")
    memory.add_channel("slack:group:C1")
    report = memory.import_sessions("pipiclaw", everything=True)
    assert ([s.channel for s in report.sources], report.skipped) == (["dm:ines"], {"group chat, not named": 1})
    assert memory.import_sessions("pipiclaw").skipped == {"group chat, not named": 1, "no project": 1}
    for named in (
        {"session": "slack:group:C1"},
        {"channel": "slack:group:C1"},
        {"path": str(root / "slack:group:C1" / "log.jsonl")},
    ):
        report = memory.import_sessions("pipiclaw", **named, dry_run=True)  # type: ignore[arg-type]
        assert [s.channel for s in report.sources] == ["slack:group:C1"]


def test_other_peoples_chats_are_not_filed_in_a_named_channel(memory: Memory, tmp_path: Path) -> None:
    root = tmp_path / "claw"
    for chat in ("dm:ines", "dm:wu"):
        (root / chat).mkdir(parents=True)
        row = {"ts": 1780000000000, "user": "u", "userName": "吴", "text": f"窑炉 in {chat}", "isBot": False}
        (root / chat / "log.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    for everything in (False, True):
        report = memory.import_sessions("pipiclaw", str(root), channel="dm:ines", everything=everything, dry_run=True)
        assert ([s.ref for s in report.sources], report.skipped) == (["pipiclaw:dm:ines"], {"another chat": 1})
    report = memory.import_sessions("pipiclaw", str(root), channel="project:kiln", dry_run=True)
    assert (report.sources, report.skipped) == ([], {"another chat": 2})
    for path, session in ((root, "dm:wu"), (root / "dm:wu" / "log.jsonl", ""), (root / "dm:wu", "")):
        report = memory.import_sessions("pipiclaw", str(path), channel="dm:ines", session=session, dry_run=True)
        assert [(s.ref, s.channel) for s in report.sources] == [("pipiclaw:dm:wu", "dm:ines")]


def test_sessions_are_chosen_by_date_number_and_platform(memory: Memory, projects: Path, kiln: Path) -> None:
    for n in (1, 2, 3):
        path = projects / "a" / f"aaaa-{n}.jsonl"
        claude(path, SAID, cwd=str(kiln))
        path.write_text(path.read_text("utf-8").replace("2026-11-20T", f"2026-11-2{n}T"), encoding="utf-8")
    report = memory.import_sessions("claude", since="2026-11-22", dry_run=True)
    assert ([s.ref for s in report.sources], report.skipped) == (
        ["claude:aaaa-2", "claude:aaaa-3"],
        {"before 2026-11-22": 1},
    )
    report = memory.import_sessions("claude", limit=1, dry_run=True)
    assert ([s.ref for s in report.sources], report.skipped) == (["claude:aaaa-3"], {"over the limit": 2})
    assert memory.import_sessions("claude", platform="slack", dry_run=True).skipped == {"another platform": 3}
    assert [s.ref for s in memory.import_sessions("claude", session="aaaa-2", dry_run=True).sources] == [
        "claude:aaaa-2"
    ]


def test_a_sub_agents_session_is_taken_when_it_is_named(memory: Memory, projects: Path, kiln: Path) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    agent = projects / "a" / "agent-7.jsonl"
    claude(agent, SAID[:2], session="aaaa-1", cwd=str(kiln), start=20)
    agent.write_text(agent.read_text("utf-8").replace('"cwd"', '"isSidechain": true, "agentId": "7", "cwd"'), "utf-8")
    assert len(memory.import_sessions("claude").sources) == 1
    report = memory.import_sessions("claude", str(agent), session="agent-7")
    assert whats(report) == [("new", "claude:agent-7", 2, 2)]
    assert rows(memory)[-1]["kind"] == "sub-agent"


def test_what_is_not_there_or_makes_no_sense_is_said(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no transcripts of 'claude'"):
        memory.import_sessions("claude")
    with pytest.raises(NotFound, match="it has no place of its own"):
        memory.import_sessions("jsonl")
    with pytest.raises(Usage, match="no importer 'cloude'"):
        memory.import_sessions("cloude")
    path = str(lines(tmp_path / "t.jsonl", *SAID))
    with pytest.raises(Usage, match="The date 'Friday' is none"):
        memory.import_sessions("jsonl", path, since="Friday")
    with pytest.raises(Unreadable, match="nowhere"):
        memory.import_sessions("jsonl", path, channel="nowhere")
    with pytest.raises(NotFound, match="no session 'x'"):
        memory.import_sessions("jsonl", path, session="x")
    assert memory.import_sessions("claude", path).skipped == {"another format": 1}


# What is kept


def test_the_list_holds_facts_and_no_text_and_is_committed(memory: Memory, projects: Path, kiln: Path) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln), files=[str(kiln / "relay.py")])
    before = snapshot(projects)
    subprocess.run(["git", "init", "-q", memory.workspace.root], check=True)
    report = memory.import_sessions("claude")
    row = rows(memory)[0]
    assert row["path"] == "~/.claude/projects/a/aaaa-1.jsonl"
    assert {k: row[k] for k in ("engine", "session", "scope", "name", "messages", "calls", "status")} == {
        "engine": "claude", "session": "aaaa-1", "scope": "project:kiln", "name": "kiln", "messages": 4, "calls": 2, "status": "indexed",
    }  # fmt: skip
    assert (row["first"], row["last"]) == ("2026-11-20T09:01:00Z", "2026-11-20T09:04:00Z")
    text = (Path(memory.workspace.root) / PATH).read_text("utf-8")
    assert not any(word in text for word in ("webhook", "网关", "idle_timeout"))
    shown = subprocess.run(
        ["git", "-C", memory.workspace.root, "show", "--stat", report.commit],
        capture_output=True,
        text=True,
        check=True,
    )
    assert PATH in shown.stdout
    assert snapshot(projects) == before


def test_the_index_of_sessions_holds_no_sentence_of_what_was_said(memory: Memory, projects: Path, kiln: Path) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    memory.import_sessions("claude")
    memory.close()
    data = b"".join(p.read_bytes() for p in (Path(memory.workspace.root) / ".pipimem").rglob("sessions-*"))
    assert data
    for text in ("drop the webhook", "closes idle", "然后重启网关"):
        assert text.encode() not in data


def test_the_same_import_twice_changes_nothing(memory: Memory, projects: Path, kiln: Path) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    memory.import_sessions("claude")
    before, said = (Path(memory.workspace.root) / PATH).read_bytes(), content(memory)
    report = memory.import_sessions("claude")
    assert (whats(report), report.commit) == ([("unchanged", "claude:aaaa-1", 4, 0)], "")
    (projects / "a" / "aaaa-1.jsonl").touch()
    assert whats(memory.import_sessions("claude"))[0][0] == "unchanged"
    assert ((Path(memory.workspace.root) / PATH).read_bytes(), content(memory)) == (before, said)


def test_a_grown_session_gives_what_is_new(memory: Memory, projects: Path, kiln: Path) -> None:
    path = projects / "a" / "aaaa-1.jsonl"
    claude(path, SAID, cwd=str(kiln))
    memory.import_sessions("claude")
    claude(path, [("user", "And the 继电器?"), ("assistant", "Later.")], cwd=str(kiln), start=4)
    assert whats(memory.import_sessions("claude")) == [("grown", "claude:aaaa-1", 6, 2)]
    assert [r["messages"] for r in rows(memory)] == [4, 6]
    assert [h.ref for h in memory.session_search("继电器", all_channels=True)] == ["claude:aaaa-1#aaaa-1-5"]


def test_an_explicit_channel_stays_when_it_is_not_named_again(memory: Memory, projects: Path, kiln: Path) -> None:
    path = projects / "a" / "aaaa-1.jsonl"
    claude(path, SAID, cwd=str(kiln))
    memory.import_sessions("claude", channel="dm:ines")
    claude(path, SAID[:1], cwd=str(kiln), start=4)
    memory.import_sessions("claude")
    assert [r["scope"] for r in rows(memory)] == ["dm:ines", "dm:ines"]
    memory.import_sessions("claude", channel="project:kiln")
    assert memory.sessions("project:kiln")[0].ref == "claude:aaaa-1"
    assert memory.sessions("dm:ines") == []


def test_a_moved_file_is_the_same_source(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".codex"
    name = "rollout-2026-11-20T09-00-00-0199f0aa-0000-7000-8000-00000000cafe.jsonl"
    shutil.copytree(
        built(
            "codex/enveloped" if "codex/enveloped" in CASES else next(c for c in CASES if c.startswith("codex/")),
            tmp_path,
        ),
        tmp_path / "c",
    )
    first = next(p for p in (tmp_path / "c").rglob("*.jsonl") if p.name.startswith("rollout"))
    (folder / "sessions").mkdir(parents=True)
    shutil.copy(first, folder / "sessions" / name)
    report = memory.import_sessions("codex", everything=True)
    (folder / "archived_sessions").mkdir()
    shutil.move(folder / "sessions" / name, folder / "archived_sessions" / name)
    again = memory.import_sessions("codex", everything=True)
    assert [s.what for s in report.sources + again.sources] == ["new", "moved"]
    assert len(read(memory.workspace.root).rows) == len(memory.said.talks()) == 1
    assert memory.sessions(all_channels=True)[0].there


def test_what_an_earlier_session_said_already_is_not_taken_again(memory: Memory, projects: Path, kiln: Path) -> None:
    first, second = projects / "a" / "aaaa-1.jsonl", projects / "a" / "aaaa-2.jsonl"
    claude(first, SAID, cwd=str(kiln))
    second.write_text(first.read_text("utf-8").replace('"sessionId": "aaaa-1"', '"sessionId": "aaaa-2"'), "utf-8")
    claude(second, [("user", "Resumed: now the 固件.")], session="aaaa-2", cwd=str(kiln), start=9)
    report = memory.import_sessions("claude")
    assert {s.ref: (s.kept, s.skipped.get("in an earlier session", 0)) for s in report.sources} == {
        "claude:aaaa-1": (4, 0), "claude:aaaa-2": (1, 4),
    }  # fmt: skip
    shown = memory.show(["claude:aaaa-2#aaaa-1-1"], all_channels=True)[0]
    assert "drop the webhook" in shown.text


def resumed(first: Path, second: Path, cwd: Path) -> None:
    claude(first, SAID, cwd=str(cwd))
    second.write_text(first.read_text("utf-8").replace(f'"sessionId": "{first.stem}"', f'"sessionId": "{second.stem}"'))
    claude(second, [("user", "Resumed: now the 固件.")], session=second.stem, cwd=str(cwd), start=9)


def test_the_earliest_session_has_a_message_whichever_comes_first(memory: Memory, projects: Path, kiln: Path) -> None:
    first, second = projects / "a" / "bbbb-2.jsonl", projects / "a" / "aaaa-1.jsonl"
    resumed(first, second, kiln)
    assert whats(memory.import_sessions("claude", str(second))) == [("new", "claude:aaaa-1", 5, 5)]
    assert whats(memory.import_sessions("claude", str(first))) == [("new", "claude:bbbb-2", 4, 4)]
    assert [h.session for h in memory.session_search("webhook relay", all_channels=True)] == ["bbbb-2"]
    before = content(memory)
    memory.import_sessions("claude", force=True)
    assert content(memory) == before
    memory.said.discard()
    memory.sessions("project:kiln")
    assert content(memory) == before


def test_what_a_gone_session_said_is_found_in_the_one_that_repeats_it(
    memory: Memory, projects: Path, kiln: Path
) -> None:
    first, second = projects / "a" / "bbbb-2.jsonl", projects / "a" / "aaaa-1.jsonl"
    resumed(first, second, kiln)
    memory.import_sessions("claude")
    first.unlink()
    memory.import_sessions("claude")
    hit = memory.session_search("webhook relay", all_channels=True)[0]
    assert (hit.session, hit.there) == ("aaaa-1", True)
    assert [(s.what, s.kept) for s in memory.import_sessions("claude").sources] == [("unchanged", 0)]


def test_messages_of_other_chats_are_never_taken_for_copies(memory: Memory, tmp_path: Path) -> None:
    memory.add_channel("dm:wu", kind="direct")
    for chat, text in (("dm:ines", "好的，窑炉。"), ("dm:wu", "好的，火车票。")):
        log = tmp_path / "claw" / chat / "log.jsonl"
        log.parent.mkdir(parents=True)
        row = {"ts": "1794478800.000100", "user": "u", "text": text, "isBot": False}
        log.write_text(json.dumps(row) + "\n", encoding="utf-8")
    report = memory.import_sessions("pipiclaw", str(tmp_path / "claw"), everything=True)
    assert [s.kept for s in report.sources] == [1, 1]
    assert [h.text for h in memory.session_search("火车票", "dm:wu")] == ["好的，火车票。"]


def test_a_message_is_found_in_its_own_channel(memory: Memory, projects: Path, kiln: Path) -> None:
    first, second = projects / "a" / "aaaa-1.jsonl", projects / "a" / "bbbb-2.jsonl"
    resumed(first, second, kiln)
    memory.import_sessions("claude", str(first), channel="dm:ines")
    memory.import_sessions("claude", str(second), channel="project:kiln")
    for channel, session in (("dm:ines", "aaaa-1"), ("project:kiln", "bbbb-2")):
        assert [h.session for h in memory.session_search("webhook relay", channel)] == [session]


def test_two_files_of_one_name_are_two_conversations(memory: Memory, tmp_path: Path) -> None:
    memory.add_channel("dm:wu", kind="direct")
    first = lines(tmp_path / "ja" / "chat.jsonl", ("user", "我的窑炉密码本在阁楼。"), ("assistant", "记住了。"))
    second = lines(tmp_path / "jb" / "chat.jsonl", ("user", "明天去买火车票。"), ("assistant", "好的。"))
    memory.import_sessions("jsonl", str(first), channel="dm:ines")
    told = memory.import_sessions("jsonl", str(second), channel="dm:wu", dry_run=True)
    report = memory.import_sessions("jsonl", str(second), channel="dm:wu")
    assert whats(report) == whats(told)
    assert [s.kept for s in report.sources] == [2]
    ref = report.sources[0].ref
    assert ref.startswith("jsonl:chat~")
    assert [m.text for m in memory.source(ref, "dm:wu").messages] == ["明天去买火车票。", "好的。"]
    assert next(m.text for m in memory.source("jsonl:chat", "dm:ines").messages) == "我的窑炉密码本在阁楼。"
    with pytest.raises(Refused):
        memory.source("jsonl:chat", "dm:wu")
    assert "火车票" in memory.show([f"{ref}#L1"], "dm:wu")[0].text
    assert memory.transcript(str(second)).ref == ref
    hits = memory.session_search("火车票", "dm:wu")
    assert [h.ref for h in hits] == [f"{ref}#L1"]
    again = memory.import_sessions("jsonl", str(tmp_path), everything=True)
    assert [(s.what, s.channel) for s in again.sources] == [("unchanged", "dm:ines"), ("unchanged", "dm:wu")]


def test_files_of_one_name_in_one_import_are_told_apart(memory: Memory, tmp_path: Path) -> None:
    for name, text in (("a", "First kiln."), ("b", "Second kiln."), ("c", "Third kiln.")):
        lines(tmp_path / "x" / name / "chat.jsonl", ("user", text))
    report = memory.import_sessions("jsonl", str(tmp_path / "x"))
    assert len({s.ref for s in report.sources}) == 3
    assert [s.kept for s in report.sources] == [1, 1, 1]


def test_only_a_file_that_begins_with_what_was_read_has_moved(memory: Memory, tmp_path: Path) -> None:
    old = lines(tmp_path / "q1" / "chat.jsonl", ("user", "我的窑炉密码本在阁楼。"))
    memory.import_sessions("jsonl", str(old), channel="dm:ines")
    old.unlink()
    other = lines(tmp_path / "q2" / "chat.jsonl", ("user", "Somebody else's words."))
    moved = lines(tmp_path / "q3" / "chat.jsonl", ("user", "我的窑炉密码本在阁楼。"), ("user", "然后又长了一句。"))
    report = memory.import_sessions("jsonl", str(other))
    assert [(s.what, s.channel) for s in report.sources] == [("new", "")]
    report = memory.import_sessions("jsonl", str(moved))
    assert whats(report) == [("grown", "jsonl:chat", 2, 1)]
    assert report.sources[0].channel == "dm:ines"


def test_a_conversation_of_several_channels_gives_each_its_own_lines_only(memory: Memory, tmp_path: Path) -> None:
    first = lines(tmp_path / "ja" / "chat.jsonl", ("user", "我的窑炉密码本在阁楼。"))
    second = lines(tmp_path / "jb" / "chat.jsonl", ("user", "无关。"), ("assistant", "明天去买火车票。"))
    memory.import_sessions("jsonl", str(first), channel="dm:ines")
    memory.import_sessions("jsonl", str(second), channel="project:kiln")
    path = Path(memory.workspace.root) / PATH  # as lists were before, with one id for both
    path.write_text(re.sub("chat~[0-9a-f]+", "chat", path.read_text("utf-8")), "utf-8")
    for known in read(memory.workspace.root):
        trust(memory, known)
    assert [m.text for m in memory.source("jsonl:chat", "dm:ines").messages] == ["我的窑炉密码本在阁楼。"]
    assert [m.text for m in memory.source("jsonl:chat", "project:kiln").messages] == ["无关。", "明天去买火车票。"]


def test_a_rotated_log_keeps_every_message_at_its_file(memory: Memory, tmp_path: Path) -> None:
    log = tmp_path / "chat" / "dm:ines" / "log.jsonl"
    log.parent.mkdir(parents=True)

    def add(*numbers: int) -> None:
        with log.open("a", encoding="utf-8") as file:
            for n in numbers:
                row = {
                    "ts": 1780000000000 + n * 1000,
                    "user": "u",
                    "userName": "Ines",
                    "text": f"窑炉 {WORDS[n]}",
                    "isBot": False,
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    add(0, 1)
    memory.import_sessions("pipiclaw", str(log))
    log.rename(log.with_name("log.jsonl.1"))
    add(2)
    report = memory.import_sessions("pipiclaw", str(log.parent), everything=True)
    assert sum(s.kept for s in report.sources) == 1
    hits = {h.path.rpartition("/")[2]: h.text for h in memory.session_search("lantern basket", all_channels=True)}
    assert hits == {"log.jsonl.1": "窑炉 lantern", "log.jsonl": "窑炉 basket"}
    assert len(memory.source("pipiclaw:dm:ines").messages) == 3


def test_a_dry_run_reports_and_changes_nothing(memory: Memory, projects: Path, kiln: Path) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    memory.close()
    before = {p: p.stat().st_mtime_ns for p in Path(memory.workspace.root).rglob("*") if ".git" not in p.parts}
    done = run("-w", memory.workspace.root, "import", "claude", "--dry-run", "--json", cwd=kiln)
    assert done.code == 0, done.err
    assert [(s["what"], s["messages"], s["kept"]) for s in done.json["sources"]] == [("new", 4, 4)]
    assert {p: p.stat().st_mtime_ns for p in Path(memory.workspace.root).rglob("*") if ".git" not in p.parts} == before
    memory.import_sessions("claude")
    claude(projects / "a" / "aaaa-1.jsonl", SAID[:1], cwd=str(kiln), start=4)
    assert whats(memory.import_sessions("claude", dry_run=True)) == [("grown", "claude:aaaa-1", 5, 1)]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_a_dry_run_reports_what_the_run_then_does(
    memory: Memory, projects: Path, kiln: Path, *, known: bool, force: bool
) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    if known:
        memory.import_sessions("claude")
    resumed = (
        (projects / "a" / "aaaa-1.jsonl").read_text("utf-8").replace('"sessionId": "aaaa-1"', '"sessionId": "bbbb-2"')
    )
    (projects / "a" / "bbbb-2.jsonl").write_text(resumed, "utf-8")
    claude(projects / "a" / "bbbb-2.jsonl", [("user", "再把日志级别调成 INFO。")], cwd=str(kiln), start=4)
    claude(projects / "a" / "cccc-3.jsonl", SAID[:2], cwd=str(kiln), start=9)
    before = content(memory) if known else memory.said.exists
    tried = memory.import_sessions("claude", dry_run=True, force=force)
    assert (content(memory) if known else memory.said.exists) == before
    done = memory.import_sessions("claude", force=force)
    assert [s.row() for s in tried.sources] == [s.row() for s in done.sources]
    assert ("claude:bbbb-2", 1, {"in an earlier session": 4}) in [(s.ref, s.kept, s.skipped) for s in done.sources]


def test_a_forced_import_reads_everything_before_it_replaces_anything(memory: Memory, tmp_path: Path) -> None:
    case = next(c for c in CASES if c.startswith("hermes/early"))
    good = built(case, tmp_path / "good") / spec(case)["reads"][0]["file"]
    home = tmp_path / "hermes"
    for name in ("a", "b"):
        (home / name).mkdir(parents=True)
        shutil.copy(good, home / name / "state.db")
    memory.import_sessions("hermes", str(home), everything=True)
    before, listed = content(memory), rows(memory)
    data = bytearray((home / "b" / "state.db").read_bytes())
    data[100:] = b"\x55" * (len(data) - 100)
    (home / "b" / "state.db").write_bytes(data)
    with pytest.raises(Unreadable, match="cannot be read"):
        memory.import_sessions("hermes", str(home), everything=True, force=True)
    assert (content(memory), rows(memory)) == (before, listed)
    report = memory.import_sessions("hermes", str(home / "a"), everything=True, force=True)
    assert {s.what for s in report.sources} == {"unchanged"}
    assert (content(memory)[1], rows(memory)) == (before[1], listed)


def test_one_file_that_cannot_be_read_stops_no_other(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    lines(folder / "a.jsonl", *SAID)
    (folder / "b.jsonl").symlink_to(folder / "gone")
    lines(folder / "c.jsonl", *SAID[:2])
    (folder / "c.jsonl").chmod(0)
    report = memory.import_sessions("jsonl", str(folder))
    assert ("new", "jsonl:a", 4, 4) in whats(report)
    if os.geteuid():
        assert [s.status for s in report.sources[1:]] == ["error"]


def test_a_killed_import_is_made_up_for_by_the_next(memory: Memory, projects: Path, kiln: Path) -> None:
    for n in range(40):
        claude(
            projects / "a" / f"aaaa-{n:02d}.jsonl", [(role, f"{text} {n}.") for role, text in SAID * 5], cwd=str(kiln)
        )
    root, index = memory.workspace.root, memory.said.path()
    memory.close()
    process = subprocess.Popen(
        [sys.executable, "-m", "pipimem", "-w", root, "import", "claude"], stdout=subprocess.DEVNULL
    )
    while process.poll() is None and not os.path.exists(index):
        time.sleep(0.001)  # until the first conversation is being taken
    process.kill()
    process.wait()
    memory.import_sessions("claude")
    grown = content(memory), {r["session"] for r in rows(memory)}
    memory.close()
    shutil.rmtree(Path(root) / ".pipimem")
    memory.import_sessions("claude")
    assert (content(memory), {r["session"] for r in rows(memory)}) == grown
    assert len(grown[1]) == 40


# The index again


def test_the_index_is_derived_again_from_the_list_and_the_files(memory: Memory, projects: Path, kiln: Path) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    claude(projects / "a" / "aaaa-2.jsonl", [("user", "Which 固件 is on the 继电器 board?")], cwd=str(kiln))
    memory.import_sessions("claude")
    before = content(memory)
    for how in ("index", "sessions", "import", "rebuild"):
        memory.close()
        if how != "rebuild":
            shutil.rmtree(Path(memory.workspace.root) / ".pipimem" / "cache")
        if how in ("index", "rebuild"):
            memory.index(rebuild=how == "rebuild")
        elif how == "sessions":
            assert len(memory.sessions(all_channels=True)) == 2
        else:
            assert [s.what for s in memory.import_sessions("claude").sources] == ["unchanged", "unchanged"]
        assert content(memory) == before, how


def test_a_damaged_index_of_sessions_is_made_anew(memory: Memory, projects: Path, kiln: Path) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    memory.import_sessions("claude")
    path = memory.said.path()
    memory.close()
    Path(path).write_bytes(b"not a database at all" * 500)
    assert len(memory.session_search("webhook", all_channels=True)) == 1
    assert any("made anew" in note for note in memory.notes)


def test_a_database_of_another_program_is_left_alone(memory: Memory, projects: Path, kiln: Path) -> None:
    import sqlite3

    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    path = Path(memory.said.path())
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(Refused, match="another program's database"):
        memory.import_sessions("claude")
    assert path.read_bytes() == before


def test_a_list_from_elsewhere_makes_nobodys_conversations_its_own(
    memory: Memory, projects: Path, kiln: Path, tmp_path: Path
) -> None:
    claude(projects / "a" / "aaaa-1.jsonl", SAID, cwd=str(kiln))
    memory.import_sessions("claude")
    stranger = tmp_path / "cloned"
    init(str(stranger))
    write(stranger, {PATH: (Path(memory.workspace.root) / PATH).read_text("utf-8")})
    with Memory(str(stranger)) as other:
        other.add_channel("project:kiln")
        assert other.session_search("webhook", "project:kiln") == []
        assert [(c.ref, c.counts["messages"]) for c in other.sessions("project:kiln")] == [("claude:aaaa-1", 4)]
        other.import_sessions("claude", everything=True)
        assert len(other.session_search("webhook", "project:kiln")) == 1


def test_a_file_that_only_a_list_from_elsewhere_names_is_never_read(memory: Memory, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "私人" / "diary.jsonl", ("user", "我的工资是九万一千。记住：别告诉任何人。"), ("assistant", "好")
    )
    row = {"engine": "jsonl", "session": "diary", "scope": "dm:ines", "path": str(path), "digest": "00", "messages": 2}
    write(Path(memory.workspace.root), {PATH: json.dumps(row, ensure_ascii=False) + "\n"})
    refs = ["jsonl:diary#L1", "jsonl:diary#L9", "jsonl:diary"]
    shown = memory.show(refs, "dm:ines") + memory.show(refs, "dm:ines", around=2)
    assert not [s.text for s in shown if "工资" in s.text or "好" in s.text]
    assert f"not imported on this machine. To read its file: pipimem import jsonl '{path}'" in shown[0].text
    with pytest.raises(Refused, match="'jsonl:diary' was not imported on this machine"):
        reread(memory, "jsonl:diary", "dm:ines")
    memory.import_sessions("jsonl", str(path))
    assert "工资" in memory.show(refs, "dm:ines")[0].text
    (Path(memory.workspace.root) / ".pipimem" / "state" / "sources.here").unlink()  # an index from elsewhere
    assert "工资" not in json.dumps([s.text for s in memory.show(refs, "dm:ines")], ensure_ascii=False)
    assert memory.session_search("工资", "dm:ines") == []


PROPERTY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@PROPERTY
@given(which=st.sampled_from(LINES), parts=st.lists(st.floats(0, 1), min_size=1, max_size=2))
def test_a_part_then_the_whole_is_the_whole(
    tmp_path_factory: pytest.TempPathFactory, which: tuple[str, str, str], parts: list[float]
) -> None:
    case, file, session = which
    engine = case.split("/", maxsplit=1)[0]
    folder = tmp_path_factory.mktemp("prefix")
    path, data = source(case, file, folder)
    found = []
    for name, cuts in (("grown", [*sorted(parts), 1.0]), ("whole", [1.0])):
        root = folder / name
        (root / "channels").mkdir(parents=True)
        with Memory(str(root)) as memory:
            for cut in cuts:
                path.write_bytes(data[: int(len(data) * cut)])
                try:
                    report = memory.import_sessions(engine, str(path), session=session, everything=True)
                except NotFound:
                    continue  # the session's name is not there yet
                if cut == 1.0:
                    assert not any(s.what == "failed" for s in report.sources)
            listed = read(memory.workspace.root)
            current = sorted(
                (s.engine, s.session, s.digest, s.messages, s.calls, s.errors, s.first, s.last, s.path) for s in listed
            )
            found.append((current, content(memory)))
    assert found[0] == found[1]


@pytest.mark.parametrize("case", CASES)
def test_every_message_is_read_again_from_its_place(case: str, tmp_path: Path) -> None:
    if case == "codex/packed":
        pytest.skip("packed files are read whole")
    folder, importer = built(case, tmp_path), module(case.split("/", maxsplit=1)[0])
    for wanted in spec(case)["reads"]:
        path = str(folder / wanted["file"])
        transcript = importer.read(path, wanted.get("session", ""))
        pointers = [Pointer(m.id, m.role, m.at, m.end) for m in transcript.messages]
        found = opened(importer, path, wanted.get("session", ""), pointers)
        assert [found[p].text for p in pointers] == [m.text for m in transcript.messages]
        assert [found[p].files for p in pointers if p.end < 0] == [m.files for m in transcript.messages if m.end < 0]
