"""The command line as people run it: real processes, what they print, what they leave alone, how they end."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pipimem
from pipimem import cli
from pipimem.text import has_han
from tests.conftest import SAMPLE, Ran, run, run_as_nobody, snapshot, write

CHINESE = "飞书:direct:贺知兰"
GROUP = "dingtalk:group:cidKq7/u+0kH//Zw=="
CLAUDE = SAMPLE / "transcripts" / "claude-session.jsonl"
CHAT = SAMPLE / "transcripts" / "chat-zh.jsonl"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A copy of the sample workspace in git, indexed once; for tests that only ask."""
    root = tmp_path_factory.mktemp("team") / "sample"
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("cache", "state", "locks"))
    in_git(root)
    assert run("-w", root, "index", env={"PIPIMEM_CACHE": str(shared_cache)}).code == 0
    return root


@pytest.fixture(scope="module")
def new_notes(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A new workspace in git with one channel, `ops`; to be copied."""
    root = tmp_path_factory.mktemp("new") / "notes"
    cache = {"PIPIMEM_CACHE": str(shared_cache)}
    assert run("init", root, "--git", env=cache).code == 0
    assert run("-w", root, "channel", "add", "ops", env=cache).code == 0
    return root


@pytest.fixture
def notes(new_notes: Path, root: Path) -> Path:
    """A new workspace in git with one channel, `ops`."""
    shutil.copytree(new_notes, root, dirs_exist_ok=True)
    return root


def in_git(root: Path) -> None:
    identity = ("-c", "user.name=Ines Vale", "-c", "user.email=ines@larkfield.example")
    for command in (("init", "-q", "-b", "main"), ("add", "."), (*identity, "commit", "-q", "-m", "as it was")):
        subprocess.run(["git", "-C", str(root), *command], check=True)


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes and mode of every file that is not pipimem's or git's own."""
    return {name: (data, mode) for name, (data, mode, _) in snapshot(root).items()}


def document(ran: Ran) -> Any:
    """The one JSON document of an answer."""
    assert ran.out.endswith("\n"), ran.err
    assert ran.out.count("\n") == 1
    return json.loads(ran.out)


# Help


def test_the_version_is_one_line() -> None:
    ran = run("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"pipimem {pipimem.__version__}\n", "")


def test_help_lists_every_command() -> None:
    ran = run("--help")
    assert (ran.code, ran.err) == (0, "")
    assert re.findall(r"(?m)^  ([\w-]+) ", ran.out) == list(cli.COMMANDS)
    assert run("search", "--help").code == 0


def test_no_command_at_all_is_wrong_usage() -> None:
    assert run().code == 2


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    shown = capsys.readouterr()
    assert (ended.value.code, shown.err) == (0, "")
    assert shown.out.startswith(f"usage: pipimem {name} ")
    assert cli.COMMANDS[name].does in shown.out


def test_an_unknown_command_is_answered_with_the_nearest() -> None:
    ran = run("serach", "x")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "pipimem: There is no command 'serach'. Did you mean 'search'?\n"


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["search"], "QUERY"),
        (["search", "--nope", "x"], "--nope"),
        (["search", "--limit", "many", "x"], "many"),
        (["search", "--layer", "attic", "x"], "attic"),
        (["search", "--all", "--channel", "ops", "x"], "--all"),
        (["channel"], "add|list|path"),
        (["add", "nowhere to put it"], "--channel"),
        (["add", "--channel", "ops", "--kind", "rumour", "x"], "rumour"),
        (["add", "--channel", "ops", ""], "empty"),
        (["forget"], "--match"),
        (["update"], "--channel"),
        (["channel", "add", " "], "empty"),
    ],
)
def test_wrong_usage_is_named_in_one_line(team: Path, arguments: list[str], names: str) -> None:
    ran = run("-w", team, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert names in ran.err
    assert ran.err.startswith("pipimem: ")
    assert ran.err.count("\n") == 1


# Where to look


@pytest.mark.parametrize("command", [["search", "x"], ["status"], ["log"], ["index"], ["add", "--channel", "ops", "x"]])
def test_no_workspace_is_could_not_look(tmp_path: Path, command: list[str]) -> None:
    ran = run(*command, cwd=tmp_path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        f"pipimem: No workspace was found in '{tmp_path}' or above it. "
        "Give one with -w DIR, or make one with 'pipimem init'.\n"
    )


def test_recall_without_a_workspace_is_an_empty_block_and_could_not_look(tmp_path: Path) -> None:
    ran = run("recall", "what did we decide", "--json", cwd=tmp_path)
    answer = document(ran)
    assert (ran.code, answer["recalled"], answer["text"], answer["items"]) == (3, 0, "", [])
    assert "No workspace was found" in answer["reason"]


def test_a_folder_that_is_no_workspace_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    for folder in ("letters", "nowhere"):
        ran = run("-w", folder, "search", "x", cwd=tmp_path)
        assert (ran.code, ran.out) == (3, "")
        assert f"'{folder}'" in ran.err


def test_the_workspace_is_found_from_a_folder_inside_and_from_the_environment(team: Path, tmp_path: Path) -> None:
    before = run("-w", team, "search", "贺知兰", cwd=tmp_path)
    after = run("search", "贺知兰", "-w", team, cwd=tmp_path)
    inside = run("search", "贺知兰", cwd=team / "channels" / "ops")
    named = run("search", "贺知兰", cwd=tmp_path, env={"PIPIMEM_WORKSPACE": str(team)})
    assert before.code == after.code == inside.code == named.code == 0
    assert before.out == after.out == inside.out == named.out


@pytest.mark.parametrize(
    "command",
    [
        ["search", "x", "--channel", "opss"],
        ["add", "x", "--channel", "opss"],
        ["update", "--channel", "opss", "--transcript", str(CHAT)],
        ["log", "--channel", "opss"],
        ["channel", "path", "opss"],
    ],
)
def test_an_unknown_channel_is_could_not_look_with_the_nearest(team: Path, command: list[str]) -> None:
    ran = run("-w", team, *command)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "pipimem: There is no channel 'opss'. Nearest: ops.\n"


def test_recall_in_an_unknown_channel_is_an_empty_block_and_could_not_look(team: Path) -> None:
    ran = run("-w", team, "recall", "--channel", "opss", "what did we decide")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "Nothing recalled: There is no channel 'opss'. Nearest: ops.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="privileges are given up as Linux does")
def test_an_unreadable_folder_is_reported_and_does_not_stop_the_rest(sample: Path) -> None:
    assert run("-w", sample, "index").code == 0
    (sample / "channels" / "ops").chmod(0)
    try:
        found = run_as_nobody(sample, "-w", sample, "search", "quartz inversion")
        missing = run_as_nobody(sample, "-w", sample, "search", "giraffes")
        named = run_as_nobody(sample, "-w", sample, "search", "x", "--channel", "ops")
        state = run_as_nobody(sample, "-w", sample, "status")
    finally:
        (sample / "channels" / "ops").chmod(0o755)
    assert found.code == 0
    assert "573 °C" in found.out
    assert (missing.code, missing.out) == (3, "")
    assert "'channels/ops'" in missing.err
    assert (named.code, named.out) == (3, "")
    assert "'ops'" in named.err
    assert state.code == 0
    assert "channels/ops" in state.out


# Asking


def test_a_search_prints_where_the_passage_stands_and_what_it_says(team: Path) -> None:
    ran = run("-w", team, "search", "--limit", "1", "--channel", "ops", "部署窗口")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "1. channels/ops/MEMORY.md:6  [m-de1af3cf]  ops · Decisions · decision · 2026-09-02\n"
        "   部署窗口改为北京时间周二 14:00，不再是周四晚上：周四夜里大多数窑正在烧高温。\n"
    )


def test_nothing_found_is_one_and_says_so_on_standard_error(team: Path) -> None:
    for query in ("giraffes", "长颈鹿罩"):
        ran = run("-w", team, "search", "--channel", "dm:imogen", query)
        assert (ran.code, ran.out, ran.err) == (1, "", "Nothing found.\n")
    ran = run("-w", team, "search", "--json", "giraffes")
    assert (ran.code, document(ran)["hits"]) == (1, [])


@pytest.mark.parametrize("query", ["", "   ", "?!", "。，！？", '""', "*** --- ()"])
def test_a_query_without_words_is_wrong_usage(team: Path, query: str) -> None:
    ran = run("-w", team, "search", "--", query)
    assert (ran.code, ran.out) == (2, "")
    assert "word" in ran.err
    assert ran.err.count("\n") == 1


def test_syntax_of_the_full_text_search_is_only_text(team: Path) -> None:
    for query in (
        'pgbouncer "',
        "pgbouncer NOT pool",
        "pgbouncer*:",
        "heading:pgbouncer",
        "pgbouncer) OR (",
        "pgbouncer\n^",
    ):
        ran = run("-w", team, "search", "--limit", "3", "--json", "--", query)
        assert ran.code == 0, ran.err
        assert any("pgbouncer" in hit["text"] for hit in document(ran)["hits"]), query


def test_text_may_come_from_standard_input(team: Path, notes: Path) -> None:
    searched = run("-w", team, "search", "-", "--json", stdin="部署窗口")
    assert document(searched)["query"] == "部署窗口"
    recalled = run("-w", team, "recall", "--channel", "ops", "-", stdin="上次部署窗口定在什么时候？\n")
    assert "m-de1af3cf" in recalled.out
    added = run("-w", notes, "add", "--channel", "ops", "-", stdin="备用钥匙在柜子里\nsecond line")
    assert added.code == 0
    text = (notes / "channels" / "ops" / "MEMORY.md").read_text(encoding="utf-8")
    assert "- 备用钥匙在柜子里\n  second line <!-- m-" in text


def test_text_that_begins_with_a_dash_works_after_two(team: Path, notes: Path) -> None:
    assert document(run("-w", team, "search", "--json", "--", "-w"))["query"] == "-w"
    assert run("-w", notes, "add", "--channel", "ops", "--", "--force is never used here").code == 0
    assert run("-w", notes, "search", "--", "--force").out.count("--force is never used here") == 1


def test_recall_gives_a_marked_block_with_references(team: Path) -> None:
    ran = run("-w", team, "recall", "--channel", "ops", "上次部署窗口定在什么时候？")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert lines[0] == '<pipimem-memory security="untrusted-context">'
    assert lines[-1] == "</pipimem-memory>"
    assert any(line.startswith("- [m-de1af3cf] 部署窗口改为北京时间周二 14:00") for line in lines)
    assert "m-47c58744" not in ran.out, "the decision it replaced"


def test_recall_that_is_not_needed_is_empty_and_done(team: Path) -> None:
    for text in ("hello", "/status", "写一首诗", "2+2"):
        ran = run("-w", team, "recall", "--all", text)
        assert (ran.code, ran.out) == (0, "")
        assert ran.err.startswith("Nothing recalled: not needed: ")


def test_a_secret_in_a_file_is_shown_redacted(sample: Path) -> None:
    secret = "ghp_" + "aB3dE5gH7j" * 3 + "k9mN1p"
    with (sample / "MEMORY.md").open("a", encoding="utf-8") as file:
        file.write(f"- The wombat token is {secret}\n")
    ran = run("-w", sample, "search", "wombat")
    assert ran.code == 0
    assert secret not in ran.out
    assert "[redacted:" in ran.out
    assert secret not in run("-w", sample, "recall", "--always", "--all", "wombat token").out


# Output


SUCCESSES = [
    ["search", "deploy"],
    ["recall", "--channel", "ops", "when is the deploy window now"],
    ["recall", "hello"],
    ["channel", "list"],
    ["channel", "path", CHINESE],
    ["index"],
    ["log"],
    ["status"],
    ["update", "--channel", GROUP, "--transcript", str(CHAT), "--dry-run"],
]
FAILURES = [
    ["serach"],
    ["search", "--nope"],
    ["search", "giraffes"],
    ["search", "x", "--channel", "nope"],
    ["recall", "what did we decide", "--channel", "nope"],
    ["channel", "path", "nope"],
    ["add", "--channel", "ops", ""],
    ["forget", "m-00000000"],
    ["update", "--channel", "ops", "--transcript", "nowhere.jsonl"],
    ["diff", "r-20260101-000000"],
    ["undo", "r-20260101-000000"],
    ["eval", "nowhere.jsonl"],
]


@pytest.mark.parametrize("arguments", SUCCESSES + FAILURES, ids=" ".join)
def test_json_is_exactly_one_document(team: Path, arguments: list[str]) -> None:
    ran = run("-w", team, *arguments, "--json")
    answer = document(ran)
    assert (ran.code == 0) == (arguments in SUCCESSES)
    if "error" in answer:
        assert answer["code"] == ran.code
        assert answer["error"].endswith(".")
        assert answer["hint"]


def test_output_is_utf8_whatever_the_locale(team: Path) -> None:
    foreign = {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    for options in ([], ["--json"]):
        ran = run("-w", team, "search", "--limit", "1", "部署窗口", "--channel", "ops", *options, env=foreign)
        assert ran.code == 0, ran.err
        assert "部署窗口改为北京时间周二" in ran.out
    ran = run("-w", team, "recall", "--channel", CHINESE, "上次怎么说的供应商", env=foreign)
    assert ran.code == 0, ran.err
    assert "贺知兰" in run("-w", team, "channel", "path", CHINESE, env=foreign).out


def test_a_reader_that_went_away_is_no_error(team: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pipimem", "-w", str(team), "search", "--limit", "1000", "kiln"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0


def test_an_interrupted_command_says_so() -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "pipimem", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    assert process.stdout is not None
    while b"Index it" not in process.stdout.readline():
        pass  # the command is at work now, and has seconds to go
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"Interrupted.\n")


def test_a_traceback_is_printed_only_for_debugging(team: Path) -> None:
    arguments = ("-w", team, "search", "x", "--channel", "nope")
    plain, debugged = run(*arguments), run(*arguments, env={"PIPIMEM_DEBUG": "1"})
    assert "Traceback" not in plain.err
    assert "Traceback" in debugged.err
    assert debugged.err.endswith(plain.err)
    assert plain.code == debugged.code == 3


# Nothing is lost


ASKING = [
    ["search", "--all", "部署窗口"],
    ["search", "giraffes"],
    ["recall", "--all", "上次部署窗口定在什么时候"],
    ["status"],
    ["log"],
    ["channel", "list"],
    ["update", "--channel", GROUP, "--transcript", str(CHAT), "--dry-run"],
    ["update", "--channel", "project:kilnwren", "--transcript", str(CLAUDE), "--dry-run"],
    ["forget", "m-de1af3cf", "--dry-run"],
    ["eval", "queries.jsonl"],
]


def test_asking_leaves_every_file_untouched(team: Path) -> None:
    before = snapshot(team)
    for arguments in ASKING:
        assert run(*arguments, cwd=team).code in (0, 1), arguments
        assert snapshot(team) == before, arguments
    status = subprocess.run(["git", "-C", str(team), "status", "--porcelain"], capture_output=True, check=True)
    assert b" M " not in status.stdout


def test_init_twice_changes_nothing(root: Path) -> None:
    first = document(run("init", root, "--git", "--json"))
    before = snapshot(root)
    second = document(run("init", root, "--git", "--json"))
    assert snapshot(root) == before
    assert (second["created"], second["kept"]) == ([], first["created"])


def test_init_in_a_folder_with_files_changes_no_byte_of_them(root: Path) -> None:
    own = {"MEMORY.md": "\ufeff# 我的\r\n\r\n* eins\r\n", "memory/2026-01-02.md": "a day", "USER.md": ""}
    write(root, dict(own))
    before = snapshot(root)
    answer = document(run("init", root, "--lang", "zh", "--json"))
    after = snapshot(root)
    assert {name: after[name] for name in own} == before
    assert answer["kept"] == ["MEMORY.md", "USER.md"]
    assert has_han((root / "SOUL.md").read_text(encoding="utf-8"))


def test_add_forget_and_update_are_taken_back_to_the_byte(sample: Path) -> None:
    in_git(sample)
    changes = (
        ["add", "--channel", CHINESE, "--kind", "preference", "周五下午不开会"],
        ["forget", "m-de1af3cf"],
        ["update", "--channel", GROUP, "--transcript", str(CHAT)],
        ["add", "--target", "memory", "The lab moved to the second floor"],
    )
    for arguments in changes:
        before = contents(sample)
        done = document(run("-w", sample, *arguments, "--json"))
        assert done["commit"], done["deferred"]
        assert contents(sample) != before
        undone = document(run("-w", sample, "undo", done["run"], "--json"))
        assert undone["commit"]
        assert contents(sample) == before, arguments


def test_what_a_dry_run_prints_is_what_the_run_does(sample: Path) -> None:
    in_git(sample)
    for arguments in (["forget", "m-1f22e0c0"], ["update", "--channel", GROUP, "--transcript", str(CHAT)]):
        shown = document(run("-w", sample, *arguments, "--dry-run", "--json"))
        printed = run("-w", sample, *arguments, "--dry-run").out
        done = document(run("-w", sample, *arguments, "--json"))
        assert unnamed(shown["changes"]) == unnamed(done["changes"])
        assert unnamed(shown["planned"]) == unnamed(done["applied"])
        assert (shown["applied"], done["planned"]) == ([], [])
        for change in done["changes"]:
            assert unnamed(change["diff"].rstrip("\n")) in unnamed(printed)
    run_name = done["run"]
    before = document(run("-w", sample, "undo", run_name, "--dry-run", "--json"))["changes"]
    assert document(run("-w", sample, "undo", run_name, "--json"))["changes"] == before


def unnamed(value: Any) -> str:
    """A value with the ids that are drawn anew for each run taken out."""
    known = set(re.findall(r"m-[0-9a-f]{8}", "".join(p.read_text("utf-8") for p in SAMPLE.rglob("*.md"))))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.sub(
        r"m-[0-9a-f]{8}|r-\d{8}-[0-9a-f]{6}", lambda m: m[0] if m[0] in known else "ID", text
    )  # fmt: skip


def test_an_update_from_a_claude_session_gives_one_commit_and_nothing_twice(sample: Path) -> None:
    in_git(sample)
    command = ("-w", sample, "update", "--channel", "project:kilnwren", "--transcript", CLAUDE, "--json")
    first, again = document(run(*command)), document(run(*command))
    assert first["origin"] == "offline"
    assert {op["path"].rpartition("/")[2] for op in first["applied"]} == {"MEMORY.md", "SESSION.md", "HISTORY.md"}
    assert (again["applied"], again["changes"], again["commit"]) == ([], [], "")
    assert {o["reason"] for o in again["rejected"]} == {"the memory says so already"}
    newest = document(run("-w", sample, "log", "--limit", "1", "--json"))["commits"][0]
    assert (newest["commit"], newest["run"], newest["actor"]) == (first["commit"], first["run"], "updater")
    assert "meter" in document(run("-w", sample, "diff", first["run"], "--json"))["diff"]


def test_refused_text_changes_nothing(notes: Path) -> None:
    secret = "sk-" + "proj-" + "Ab3dE5gH" * 6
    assert run("-w", notes, "add", "--channel", "ops", "Deploys need two people").code == 0
    before = contents(notes)
    for text in (f"the key is {secret}", "deploys need two people."):
        ran = run("-w", notes, "add", "--channel", "ops", text)
        assert (ran.code, ran.out) == (4, "")
        assert secret not in ran.err
    assert contents(notes) == before


# Bad files


def test_broken_front_matter_is_reported_and_its_text_found(sample: Path) -> None:
    write(sample, {"memory/broken.md": "---\nid: [half\n---\n\n# 半个\n\nThe wombat stays at home.\n"})
    before = snapshot(sample)
    assert run("-w", sample, "index").code == 0
    assert "The wombat stays at home." in run("-w", sample, "search", "wombat").out
    assert "memory/broken.md: front matter is no valid YAML" in run("-w", sample, "status").out
    assert snapshot(sample) == before


def test_a_binary_file_with_a_documents_name_is_skipped_and_reported(sample: Path) -> None:
    write(sample, {"memory/photo.md": b"\x89PNG\r\n\x1a\n\0\0wombat"})
    indexed = run("-w", sample, "index", "--json")
    assert indexed.code == 0
    assert document(indexed)["skipped"] == [{"path": "memory/photo.md", "reason": "binary, not Markdown"}]
    assert indexed.err == "pipimem: skipped 'memory/photo.md': binary, not Markdown\n"
    assert run("-w", sample, "search", "pgbouncer").code == 0, "one bad file does not stop the good ones"
    missing = run("-w", sample, "search", "wombat")
    assert (missing.code, missing.out) == (3, ""), "the answer may be in the file that cannot be read"
    assert "'memory/photo.md'" in missing.err


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# Channel Memory\n\0\0\n", "NUL bytes"),
        (b"# M\n\n<<<<<<< HEAD\n- one\n=======\n- two\n>>>>>>> theirs\n", "merge conflict in line 3"),
    ],
)
def test_a_damaged_document_is_refused_for_writing_and_stays(notes: Path, data: bytes, reason: str) -> None:
    write(notes, {"channels/ops/MEMORY.md": data})
    ran = run("-w", notes, "add", "--channel", "ops", "one more thing")
    assert (ran.code, ran.out) == (4, "")
    assert "'channels/ops/MEMORY.md'" in ran.err
    assert reason in ran.err
    assert (notes / "channels" / "ops" / "MEMORY.md").read_bytes() == data


@pytest.mark.parametrize(
    ("text", "code", "names"),
    [
        ("[recall\n", 3, "pipimem.toml"),
        ("[recall]\nbudgett = 1\n", 2, "recall.budgett"),
        ("[recall]\nbudget = 'much'\n", 2, "recall.budget"),
        ("[git]\nouter = true\n", 2, "config.toml"),
    ],
)
def test_wrong_settings_are_named_in_one_line(root: Path, text: str, code: int, names: str) -> None:
    write(root, {"pipimem.toml": text})
    ran = run("-w", root, "status")
    assert (ran.code, ran.out) == (code, "")
    assert names in ran.err
    assert ran.err.count("\n") == 1


def test_a_file_of_another_format_is_no_transcript(team: Path) -> None:
    ran = run("-w", team, "update", "--channel", "ops", "--transcript", team / "SOUL.md")
    assert (ran.code, ran.out) == (2, "")
    assert "'SOUL.md'" in ran.err


def test_history_without_git_could_not_be_looked_at(root: Path) -> None:
    assert run("init", root).code == 0
    for arguments in (["log"], ["diff", "abcdef1"], ["undo", "abcdef1"]):
        ran = run("-w", root, *arguments)
        assert (ran.code, ran.out) == (3, "")
        assert "no git history" in ran.err
        assert "pipimem init --git" in ran.err


# The fields programs rely on


def names(value: dict[str, Any]) -> set[str]:
    return set(value)


def test_the_json_of_asking_has_the_promised_fields(team: Path) -> None:
    found = document(run("-w", team, "search", "deploy window", "--json"))
    hit = "ref path heading line channel layer kind text score signals".split()
    assert names(found) >= {"query", "hits"}
    assert all(names(h) >= {*hit} for h in found["hits"])
    assert isinstance(found["hits"][0]["heading"], list)
    recalled = document(run("-w", team, "recall", "--channel", "ops", "when is the deploy window now", "--json"))
    assert names(recalled) >= {"recalled", "reason", "text", "tokens", "items", "omitted", "trace"}
    assert recalled["recalled"] == len(recalled["items"]) > 0
    assert all(names(i) >= {"ref", "path", "heading", "line", "score", "tokens"} for i in recalled["items"])
    assert all(names(o) == {"ref", "reason"} for o in recalled["omitted"])
    listed = document(run("-w", team, "channel", "list", "--json"))["channels"]
    assert all(names(c) == {"id", "kind", "path"} for c in listed)
    assert names(document(run("-w", team, "channel", "path", "ops", "--json"))) >= {"id", "path"}
    commits = document(run("-w", team, "log", "--json"))["commits"]
    assert names(commits[0]) >= {"commit", "time", "author", "actor", "subject", "run", "files"}
    state = document(run("-w", team, "status", "--json"))
    assert names(state) >= {"mode", "layers", "kinds", "always_on_tokens", "index", "git", "problems"}


def test_the_json_of_indexing_and_measuring_has_the_promised_fields(team: Path) -> None:
    indexed = document(run("-w", team, "index", "--json"))
    promised = "documents sections entries added changed removed skipped tokenizer seconds".split()
    assert names(indexed) >= {*promised}
    measured = document(run("-w", team, "eval", team / "queries.jsonl", "--json"))
    assert names(measured) >= {"recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10", "ms", "by"}
    assert names(measured["ms"]) == {"p50", "p95"}
    assert {"en", "zh"} <= names(measured["by"])
    below = run("-w", team, "eval", team / "queries.jsonl", "--min-recall", "1.01")
    assert below.code == 1


def test_the_json_of_changing_has_the_promised_fields(sample: Path) -> None:
    in_git(sample)
    assert names(document(run("-w", sample, "channel", "add", "dm:kay", "--json"))) >= {"id", "path"}
    added = document(run("-w", sample, "add", "--channel", "dm:kay", "Kay is away in May", "--json"))
    updated = document(run("-w", sample, "update", "--channel", GROUP, "--transcript", CHAT, "--json"))
    forgotten = document(run("-w", sample, "forget", added["applied"][0]["id"], "--json"))
    undone = document(run("-w", sample, "undo", updated["run"], "--json"))
    promised = "run origin applied proposed rejected changes tokens commit".split()
    for answer in (added, updated, forgotten, undone):
        assert names(answer) >= {*promised}
        assert answer["commit"]
        assert all(names(c) == {"path", "diff"} for c in answer["changes"])
    assert all(names(o) >= {"op", "reason"} for o in updated["rejected"] + updated["proposed"])
    assert updated["rejected"]
    assert updated["proposed"]
    assert "Kay" not in json.dumps(forgotten["applied"]), "what was forgotten is not said again"
