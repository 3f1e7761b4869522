"""Forgetting in full: a forgotten fact is in no file, no index, no search, no recall, and does not come back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipimem.errors import NotFound, Usage
from pipimem.git import Deferred
from pipimem.importers import load
from pipimem.memory import Memory
from tests.conftest import run, write

OPS = "channels/ops"
FACT = "The spare key of the kiln room hangs behind the blue boiler"
FAKT = "窑房的备用钥匙挂在蓝色锅炉后面"
Make = Callable[..., Memory]


def transcript(path: Path, *texts: str) -> Path:
    rows = [
        {"role": "user", "content": text, "timestamp": f"2026-11-20T09:{n:02}:00Z", "id": f"u{n}"}
        for n, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def left(root: Path, *words: str, but: tuple[str, ...] = ()) -> list[str]:
    """What `grep -r` finds in the whole workspace but .git, byte by byte."""
    found = []
    for word in words:
        done = subprocess.run(
            ["grep", "-rlaF", "--exclude-dir=.git", "--", word, str(root)], capture_output=True, check=False, text=True
        )
        found += [str(Path(line).relative_to(root)) for line in done.stdout.splitlines()]
    return [name for name in found if name not in but]


@pytest.mark.parametrize(
    ("fact", "said", "other", "word"),
    [
        (FACT, f"Remember that {FACT[0].lower()}{FACT[1:]}.", "We decided to fire the porcelain on Monday.", "boiler"),
        (FAKT, f"记住：{FAKT}。", "我们决定周一烧瓷器。", "备用钥匙"),
    ],
)
def test_a_forgotten_fact_is_nowhere_and_does_not_come_back(
    make: Make, root: Path, tmp_path: Path, fact: str, said: str, other: str, word: str
) -> None:
    memory = make({"pipimem.toml": "[workspace.kinds]\nops = 'direct'\n"}, git=True)
    memory.add_channel("ops")
    talk = transcript(tmp_path / "chat.jsonl", said, other)
    memory.apply(memory.propose("ops", load(str(talk))))
    memory.turn("ops", [{"role": "user", "content": said}, {"role": "assistant", "content": "noted"}])
    memory.recall(f"where is it again: {fact}?", "ops", session="s1")
    entry = next(h for h in memory.search(fact, "ops") if h.entry and word in h.text)
    write(
        root,
        {
            f"{OPS}/HISTORY.archive.md": f"# History archive\n\n## 2026-11-01 MEMORY.md\n\n- {fact} <!-- {entry.ref} -->\n",
            "review/r-20261101-aaaaaa-1.md": f'---\nid: "r-1"\nop: "add"\nchannel: "ops"\nfile: "{OPS}/MEMORY.md"\n'
            f'heading: "Facts"\n---\n\n# x\n\n## What\n\n> {fact}\n\n## Why\n\nHeld back.\n',
        },
    )
    assert len(left(root, word)) >= 6

    dry = memory.forget(entry.ref, dry_run=True)
    assert {p.path for p in dry.places} >= {
        f"{OPS}/MEMORY.md", f"{OPS}/HISTORY.md", f"{OPS}/HISTORY.archive.md", "review/r-20261101-aaaaaa-1.md",
    }  # fmt: skip
    assert dry.records[0] == "recorded messages of ops: 1"
    assert len(left(root, word)) >= 6

    done = memory.forget(entry.ref)

    assert left(root, word) == []
    assert done.still == ()
    assert done.proof.startswith("Looked for it again in search, the archive and ")
    assert not [h for h in memory.search(fact, all_channels=True) if word in h.text]
    assert word not in memory.recall(f"where is it again: {fact}?", "ops", always=True).text
    (root / ".pipimem/state/traces.jsonl").unlink()  # holds only what was asked since
    memory.index(rebuild=True)
    again = memory.propose("ops", load(str(talk)))
    assert not [op for op in again.ops if word in op.text]
    memory.apply(again)
    memory.turn("ops", [{"role": "user", "content": said}])
    window = memory.recorded("ops")
    memory.apply(memory.propose("ops", window.transcript))
    assert not [name for name in left(root, word) if not name.startswith(".pipimem/state/turns/")]
    assert memory.forget(match=word, channel="ops").records[0] == "recorded messages of ops: 1"
    with pytest.raises(NotFound):
        memory.forget(match=word, channel="ops")


@pytest.mark.parametrize(("said", "word"), [("记住：老王对花生过敏", "花生"), ("Remember: no eggs", "eggs")])
def test_a_short_fact_is_nowhere_either(make: Make, root: Path, said: str, word: str) -> None:
    memory = make({"pipimem.toml": "[workspace.kinds]\nops = 'direct'\n"}, git=True)
    memory.add_channel("ops")
    memory.turn("ops", [{"role": "user", "content": said}])
    memory.apply(memory.propose("ops", memory.recorded("ops").transcript))
    entry = next(iter(h for h in memory.search(word, "ops") if h.layer == "memory"), None)
    ref = entry.ref if entry else memory.add(said.partition(": ")[2], "ops").plan.ops[0].id
    memory.turn("ops", [{"role": "user", "content": f"{said} (again)"}])
    memory.recall(f"who was it again: {said}?", "ops", session="s1")
    done = memory.forget(ref)
    assert left(root, word) == []
    assert not done.still
    assert done.proof
    assert not memory.search(word, "ops")


def test_one_word_goes_where_the_message_made_it_and_is_named_elsewhere(make: Make, root: Path) -> None:
    block = "## 2026-03-0{n} Talk\n\n- fact: Bob is the new one\n- decision: other\n- Evidence: turn:ops.{n}-{n}, 1 message\n"
    memory = make(
        {
            f"{OPS}/MEMORY.md": "- Bob <!-- m-0000000a src=turn:ops#1 by=updater -->\n- Bobby is somebody else\n",
            f"{OPS}/HISTORY.md": "# H\n\n" + block.format(n=1) + "\n" + block.format(n=2),
            "memory/people.md": "# People\n\nAsk Bob.\n",
        }
    )
    memory.turn("ops", [{"role": "user", "content": "Bob it is"}])
    memory.turn("ops", [{"role": "user", "content": "what did Bob say"}])
    done = memory.forget("m-0000000a")
    assert (root / OPS / "MEMORY.md").read_text(encoding="utf-8") == "- Bobby is somebody else\n"
    history = (root / OPS / "HISTORY.md").read_text(encoding="utf-8")
    assert history == "# H\n\n" + block.format(n=1).replace("- fact: Bob is the new one\n", "") + "\n" + block.format(
        n=2
    )
    assert done.proof == ""
    assert set(done.still) == {
        f"{OPS}/HISTORY.md:10", "memory/people.md:3", "recorded messages of ops: 1", ".pipimem/state/turns/ops.jsonl",
    }  # fmt: skip


def test_by_source_everything_that_rests_on_a_conversation_goes(make: Make, root: Path, tmp_path: Path) -> None:
    memory = make({"pipimem.toml": "[workspace.kinds]\nops = 'direct'\n"}, git=True)
    memory.add_channel("ops")
    first = transcript(tmp_path / "walrus.jsonl", "Remember: the walrus pump runs at 40 bar.", "We decided on copper.")
    second = transcript(tmp_path / "heron.jsonl", "记住：苍鹭泵的压力是二十巴。")
    for talk in (first, second):
        memory.apply(memory.propose("ops", load(str(talk))))
    before = (root / OPS / "MEMORY.md").read_text(encoding="utf-8")
    assert "walrus" in before
    assert "copper" in before

    done = memory.forget(source="jsonl:walrus")

    assert {p.what for p in done.places} >= {"entry", "item"}
    assert left(root, "walrus pump", "copper") == []
    assert "苍鹭" in (root / OPS / "MEMORY.md").read_text(encoding="utf-8")
    assert "jsonl:heron" in (root / OPS / "HISTORY.md").read_text(encoding="utf-8")
    assert "jsonl:walrus" not in (root / OPS / "HISTORY.md").read_text(encoding="utf-8")
    assert not memory.propose("ops", load(str(first))).ops
    assert memory.propose("ops", load(str(second))).source == "jsonl:heron"
    with pytest.raises(NotFound, match="Nothing rests on 'jsonl:nobody'"):
        memory.forget(source="jsonl:nobody")
    with pytest.raises(Usage, match="is no source"):
        memory.forget(source="walrus")


def test_by_source_of_recorded_turns_a_message_and_a_stretch(make: Make, root: Path) -> None:
    memory = make({"pipimem.toml": "[workspace.kinds]\nops = 'direct'\n"})
    memory.add_channel("ops")
    memory.turn("ops", [{"role": "user", "content": "Remember: the badger relay sits in cabinet nine."}])
    memory.turn("ops", [{"role": "user", "content": "记住：獾继电器的编号是七十一。"}])
    memory.apply(memory.propose("ops", memory.recorded("ops").transcript))
    assert left(root, "badger")
    memory.forget(source="turn:ops#1")
    assert left(root, "badger") == []
    assert left(root, "编号是七十一")
    memory.forget(source="turn:ops.1-2")
    assert left(root, "编号是七十一") == []
    assert memory.recorded("ops").transcript.messages == ()


NOTES = (
    "# Depot\n\nThe crane was oiled. The otter valve leaks at night. Nobody was hurt.\n\n- the otter valve is red\n"
    "- 其他的事\n"
)


def test_a_match_takes_one_thing_a_person_wrote_and_lists_several(make: Make, root: Path) -> None:
    memory = make(
        {
            f"{OPS}/MEMORY.md": "# M\n\n- The pelican crane lifts nine tons\n- 别的\n",
            "memory/depot.md": NOTES,
        }
    )
    memory.forget(match="Pelican  CRANE")
    assert (root / OPS / "MEMORY.md").read_text(encoding="utf-8") == "# M\n\n- 别的\n"
    with pytest.raises(Usage) as several:
        memory.forget(match="otter valve")
    assert "memory/depot.md:3 (sentence); memory/depot.md:5 (item)" in several.value.message
    memory.forget("memory/depot.md:5")
    memory.forget(match="otter")
    assert (root / "memory/depot.md").read_text(encoding="utf-8") == (
        "# Depot\n\nThe crane was oiled. Nobody was hurt.\n\n- 其他的事\n"
    )
    assert left(root, "otter", "pelican") == []


@pytest.mark.parametrize(
    ("said", "match", "other"),
    [
        ("Remember: the heron lantern hangs in hall two.", "heron lantern", "We decided on copper pipes."),
        ("记住：苍鹭灯挂在二号大厅。", "苍鹭灯", "我们决定用铜管。"),
    ],
)
def test_a_match_reaches_what_was_only_said_yet(
    make: Make, root: Path, tmp_path: Path, said: str, match: str, other: str
) -> None:
    memory = make({"pipimem.toml": "[workspace.kinds]\nops = 'direct'\n"}, git=True)
    memory.add_channel("ops")
    talk = transcript(tmp_path / "chat.jsonl", said, other)
    memory.import_sessions("jsonl", str(talk), channel="ops")
    memory.turn("ops", [{"role": "user", "content": said}, {"role": "user", "content": other}])
    memory.recall(f"Tell me where it was: {said}", "ops", session="s1")
    assert memory.forget(match=match, dry_run=True).records[0] == "recorded messages of ops: 1"
    done = memory.forget(match=match)
    assert not done.places
    assert done.proof
    assert left(root, match) == []
    memory.turn("ops", [{"role": "user", "content": said}])
    told = run("-w", root, "forget", "--match", match)
    assert told.out.startswith("  from recorded messages of ops: 1\n")
    assert "undo" not in told.out
    memory.import_sessions("jsonl", str(talk), channel="ops", force=True)
    assert memory.session_search(match, "ops") == []
    assert memory.session_search(other, "ops")
    for plan in (memory.propose("ops", load(str(talk))), memory.propose("ops", memory.recorded("ops").transcript)):
        assert not [op for op in plan.ops if match in op.text]
    with pytest.raises(NotFound):
        memory.forget(match=match)


def test_a_match_that_fits_several_machine_entries_is_answered_with_the_list(make: Make, root: Path) -> None:
    text = "".join(f"- the newt pump {n} is {c} <!-- m-0000000{n} by=updater -->\n" for n, c in enumerate("abc"))
    memory = make({f"{OPS}/MEMORY.md": text, "channels/dm/MEMORY.md": "- newt pump, elsewhere\n"})
    with pytest.raises(Usage, match="3 things hold 'newt pump': m-00000000 "):
        memory.forget(match="newt pump", channel="ops")
    assert (root / OPS / "MEMORY.md").read_text(encoding="utf-8") == text
    memory.turn("dm", [{"role": "user", "content": "the newt pump again"}])
    memory.forget(match="newt pump", channel="ops", everything=True)
    still = [name for name in left(root, "newt pump") if "/cache/" not in name]  # the index has the other channel's
    assert sorted(still) == [".pipimem/state/turns/dm.jsonl", "channels/dm/MEMORY.md"]


def test_a_title_that_was_cut_short_goes_along(make: Make, root: Path) -> None:
    fact = "The emergency stop of the third kiln is the red handle left of the second door, not the yellow one"
    title = fact[:57].rstrip() + "…"
    history = f"# H\n\n## 2026-03-02 {title}\n\n- Task: x\n- fact: {fact}\n- decision: other\n- Evidence: jsonl:x, 3 messages\n"
    memory = make({f"{OPS}/MEMORY.md": f"- {fact} <!-- m-0000000a by=updater -->\n", f"{OPS}/HISTORY.md": history})
    memory.forget("m-0000000a")
    assert left(root, "emergency stop") == []
    assert "## 2026-03-02\n\n- Task: x\n- decision: other\n" in (root / OPS / "HISTORY.md").read_text(encoding="utf-8")


def test_everything_a_match_finds_goes_when_that_is_said(make: Make, root: Path) -> None:
    memory = make({"memory/depot.md": NOTES, "MEMORY.md": "- The otter valve costs ninety\n"}, git=True)
    done = memory.forget(match="otter valve", everything=True)
    assert left(root, "otter") == []
    assert {p.path for p in done.places} == {"MEMORY.md", "memory/depot.md"}
    assert memory.log(limit=1)[0].subject == "forget 3 things"


def test_what_a_person_wrote_elsewhere_is_named_and_stays(make: Make, root: Path) -> None:
    memory = make(
        {
            f"{OPS}/MEMORY.md": "- The ibis gate opens inwards <!-- m-0000000a by=updater -->\n",
            f"{OPS}/HISTORY.md": "# History\n\n## 2026-03-01 By hand\n\n- I told them: the ibis gate opens inwards\n",
            "memory/gates.md": "# Gates\n\nThe ibis gate opens inwards, sadly.\n",
        }
    )
    done = memory.forget("m-0000000a")
    assert set(done.still) == {f"{OPS}/HISTORY.md:5", "memory/gates.md:3"}
    assert done.proof == ""
    assert left(root, "ibis gate", but=(f"{OPS}/HISTORY.md", "memory/gates.md")) == []


HISTORY = (
    "# History\n\n## 2026-03-01 Before\n\n- calm\n\n## 2026-03-02 The lynx purrs\n\n"
    "- fact: the motor hums\n- Evidence: jsonl:x, 3 messages\n"
)


@pytest.mark.parametrize(
    ("ref", "rest"),
    [
        (f"{OPS}/HISTORY.md#2026-03-02 The lynx purrs", HISTORY[: HISTORY.index("\n## 2026-03-02")]),
        (f"{OPS}/HISTORY.md:7", HISTORY.replace(" The lynx purrs", "")),
        (f"{OPS}/HISTORY.md:5", HISTORY.replace("- calm\n\n", "")),
        (f"{OPS}/HISTORY.md:9", HISTORY[: HISTORY.index("\n## 2026-03-02")]),
    ],
    ids=["a block", "a heading", "an item", "all a block says"],
)
def test_a_block_a_heading_or_an_item_of_history_can_be_named(make: Make, root: Path, ref: str, rest: str) -> None:
    memory = make({f"{OPS}/HISTORY.md": HISTORY})
    memory.forget(ref)
    assert (root / OPS / "HISTORY.md").read_text(encoding="utf-8") == rest


def test_nothing_else_changes_by_a_byte(make: Make, root: Path) -> None:
    text = "\ufeff# 记\r\n\r\n第一句。水獭阀门漏水。第三句。\r\n\r\n* a\r\n* 水獭阀门\r\n  第二行\r\n* b\r\n\r\n```\ncode\n```\r\n\r\nend"
    memory = make({"memory/x.md": text})
    memory.forget(match="水獭阀门", everything=True)
    expected = "\ufeff# 记\r\n\r\n第一句。第三句。\r\n\r\n* a\r\n* b\r\n\r\n```\ncode\n```\r\n\r\nend"
    assert (root / "memory/x.md").read_bytes() == expected.encode()


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)
    return done.stdout.decode()


def everything_in_git(root: Path) -> str:
    """The text of every object git has, reachable or not, commit messages included."""
    names = git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)").split("\n")
    return "".join(git(root, "cat-file", "-p", n.split()[1]) for n in names if n and not n.startswith("tree"))


def test_what_git_never_had_it_does_not_get_by_forgetting(make: Make, root: Path) -> None:
    memory = make({f"{OPS}/MEMORY.md": "# M\n\n- first\n"}, git=True)
    memory.add("a second thing", "ops")
    (root / OPS / "MEMORY.md").write_text(
        (root / OPS / "MEMORY.md").read_text(encoding="utf-8") + "- the marten switch is live\n- 手写的\n",
        encoding="utf-8",
    )
    done = memory.forget(match="marten")
    assert not done.in_git
    assert "marten" not in everything_in_git(root)
    assert "手写的" in git(root, "show", f"HEAD:{OPS}/MEMORY.md")
    assert "Ines Vale" in git(root, "log", "-3", "--format=%an", "--", OPS)
    assert git(root, "status", "--porcelain") == "?? pipimem.toml\n"


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("beside", ["", "- 手写的\n"])
def test_an_entry_a_person_just_edited_goes_by_the_command_and_comes_back_by_undo(
    make: Make, root: Path, beside: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipimem.git.LOCK_WAIT", 0.1)
    memory = make({f"{OPS}/MEMORY.md": "# M\n\n- first\n"}, git=True)
    entry = memory.add("门禁密码写在蓝色本子里", "ops").plan.ops[0].id
    path = root / OPS / "MEMORY.md"
    had = path.read_text(encoding="utf-8")
    path.write_text(had.replace("蓝色本子", "红色本子的封底") + beside, encoding="utf-8")
    if late:
        (root / ".git/index.lock").write_bytes(b"")
    done = memory.forget(entry)
    if late:
        assert done.applied.deferred
        (root / ".git/index.lock").unlink()
        assert memory.commit_waiting() == ""
    assert done.in_git  # the entry, in other words
    assert "红色本子" not in everything_in_git(root)
    assert memory.log(limit=1)[0].subject == "ops: forget an entry"
    assert f"<!-- {entry}" in git(root, "show", f"HEAD^:{OPS}/MEMORY.md")
    who = git(root, "log", "-2", "--format=%an", "--", OPS).split("\n")
    assert who[:2] == (["pipimem", "Ines Vale"] if beside else ["pipimem", "pipimem"])
    assert path.read_text(encoding="utf-8") == git(root, "show", f"HEAD:{OPS}/MEMORY.md")
    memory.undo(done.applied.plan.run)
    assert path.read_text(encoding="utf-8") == had + beside


def test_edits_beside_what_is_forgotten_stay_the_persons(make: Make, root: Path) -> None:
    memory = make({f"{OPS}/MEMORY.md": "# M\n\n- first\n"}, git=True)
    memory.add("the quail pump is loud", "ops")
    path = root / OPS / "MEMORY.md"
    before = path.read_text(encoding="utf-8").replace("- first\n", "- first of all\n- 手写的\n")
    path.write_text(before, encoding="utf-8")
    run = memory.forget(match="quail pump").applied.plan.run
    assert git(root, "show", f"HEAD^:{OPS}/MEMORY.md") == before
    assert git(root, "log", "-2", "--format=%an", "--", OPS) == "pipimem\nInes Vale\n"
    memory.undo(run)
    assert path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("word", ["老王的备用灯 (二号) 坏了", "The gecko [lamp] is broken. Again?"])
def test_what_git_has_in_an_older_commit_or_in_a_message_is_said(
    make: Make, root: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make({f"{OPS}/MEMORY.md": "# M\n\n- first\n"}, git=True)
    memory.add("a second thing", "ops")
    path = root / OPS / "MEMORY.md"
    assert not memory.commits.knows([(f"{OPS}/MEMORY.md", word.encode())])
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}- {word}\n", encoding="utf-8")
    git(root, "commit", "-qam", "by hand")
    path.write_text(text, encoding="utf-8")
    git(root, "commit", "-qam", "and out again")
    path.write_text(f"{text}- {word}\n", encoding="utf-8")  # typed once more, which git does not have
    assert memory.forget(match=word).in_git
    git(root, "checkout", "-q", "--orphan", "new")
    git(root, "commit", "-qm", f"say “{word.upper()}”")
    git(root, "branch", "-D", "main")
    assert memory.commits.knows([("", word.encode())])
    git(root, "commit", "-q", "--amend", "-m", "say nothing")
    assert not memory.commits.knows([("", word.encode())])
    monkeypatch.setattr("pipimem.git.Repository.keeps", lambda *_: (_ for _ in ()).throw(Deferred(str(root), "slow")))
    assert memory.commits.knows([("", word.encode())])  # when in doubt


def test_a_commit_that_waits_loses_what_is_forgotten_with_its_blob(
    make: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipimem.git.LOCK_WAIT", 0.1)
    memory = make({f"{OPS}/MEMORY.md": "# M\n\n- first\n"}, git=True)
    memory.add("a second thing", "ops")
    (root / ".git/index.lock").write_bytes(b"")
    memory.add("the stoat fuse is blown", "ops")
    memory.add("还有别的", "ops")
    assert "stoat" in (root / ".pipimem/state/pending.jsonl").read_text(encoding="utf-8")
    assert "stoat" in everything_in_git(root)
    done = memory.forget(match="stoat fuse")
    assert done.applied.deferred
    assert left(root, "stoat") == []
    assert "stoat" not in everything_in_git(root)
    (root / ".git/index.lock").unlink()
    assert memory.commit_waiting() == ""
    memory.add("last", "ops")
    assert "stoat" not in everything_in_git(root)
    assert git(root, "show", f"HEAD:{OPS}/MEMORY.md") == (root / OPS / "MEMORY.md").read_text(encoding="utf-8")
    assert "还有别的" in git(root, "show", f"HEAD:{OPS}/MEMORY.md")


def test_the_command_shows_first_and_says_what_git_keeps(make: Make, root: Path) -> None:
    make({f"{OPS}/MEMORY.md": "# M\n"}, git=True)
    run("-w", root, "add", "--channel", "ops", "The ferret socket is wet")
    dry = run("-w", root, "forget", "--match", "ferret", "--dry-run")
    assert f"  entry    {OPS}/MEMORY.md:5: The ferret socket is wet\n" in dry.out
    done = run("-w", root, "forget", "--match", "ferret")
    assert done.code == 0
    assert "ferret" not in done.out
    assert "it is gone." in done.out
    assert "git still has the old text" in done.err
    assert run("-w", root, "forget").code == 2
    assert run("-w", root, "forget", "--match", "ferret").code == 1
    assert run("-w", root, "forget", "m-00000001", "--match", "x").code == 2


@pytest.mark.parametrize("at", ["apply", "enlist", "commit", "_swept"])
@pytest.mark.parametrize("then", ["add", "doctor", "forget"])
def test_one_that_is_killed_is_finished_by_the_next_command(make: Make, root: Path, at: str, then: str) -> None:
    memory = make({"pipimem.toml": "[workspace.kinds]\nops = 'direct'\n"}, git=True)
    memory.add_channel("ops")
    memory.turn("ops", [{"role": "user", "content": f"记住：{FAKT}。"}])
    memory.apply(memory.propose("ops", memory.recorded("ops").transcript))
    entry = next(h for h in memory.search(FAKT, "ops") if h.layer == "memory").ref
    memory.close()
    script = (
        "import os, sys, pipimem; from pipimem import forgetting, history, opened\n"
        "def die(*a, **k): k.get('dry_run') or os._exit(9)\n"
        "root, at, entry = sys.argv[1:]\n"
        "owner = {'apply': opened.Opened, '_swept': forgetting}.get(at, history.History)\n"
        "setattr(owner, at, die)\n"
        "pipimem.open(root).forget(entry)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(root), at, entry], check=False)
    assert done.returncode == 9
    assert "备用钥匙" in (root / ".pipimem/state/turns/ops.jsonl").read_text(encoding="utf-8")

    told = run("-w", root, "doctor")
    assert "unfinished forget" in told.out
    args = {
        "add": ["add", "--channel", "ops", "other"], "doctor": ["doctor", "--fix"], "forget": ["forget", entry],
    }  # fmt: skip
    ran = run("-w", root, *args[then])
    if then == "doctor":
        assert "what was broken off is finished: recorded messages of ops: 1" in ran.out
    else:
        assert "A forget that was broken off is finished (recorded messages of ops: 1" in ran.err
    assert not (root / ".pipimem/state/forgetting").exists()
    assert "unfinished forget" not in run("-w", root, "doctor").out
    stores = [name for name in left(root, "备用钥匙") if name.startswith(".pipimem/state")]
    assert stores == []
    if at == "apply" and then != "forget":  # nothing had left the files yet: that is said
        assert f"still stands in {OPS}/" in ran.err
    else:
        assert left(root, "备用钥匙") == []


# The ways to take it out of git's history, as docs/operations.md gives them


def purge_steps(needle: str) -> list[str]:
    """The shell fences of the page that hold `needle`, as they stand there."""
    page = (Path(__file__).parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
    return [part.partition("```")[0] for part in page.split("```sh\n")[1:] if needle in part.partition("```")[0]]


@pytest.mark.parametrize("way", ["git filter-repo", "rm -rf .git"])
def test_the_steps_that_purge_git_do_so_and_pipimem_goes_on(make: Make, root: Path, way: str) -> None:
    have = subprocess.run(["git", "filter-repo", "--version"], capture_output=True, check=False)
    if way == "git filter-repo" and have.returncode:
        pytest.skip("git filter-repo is not installed")
    memory = make({f"{OPS}/MEMORY.md": "# M\n\n- first\n"}, git=True)
    memory.add("The door code is kumquat", "ops")
    kept = memory.add("还有别的", "ops")
    assert memory.forget(match="kumquat").in_git
    assert "kumquat" in everything_in_git(root)
    (steps,) = purge_steps(way)
    subprocess.run(["sh", "-euc", steps], cwd=root, check=True, capture_output=True)
    assert "kumquat" not in everything_in_git(root)
    assert not (root.parent / "words.txt").exists()
    assert "还有别的" in git(root, "show", f"HEAD:{OPS}/MEMORY.md")
    memory.add("goes on", "ops")
    assert git(root, "fsck", "--strict") == ""
    if way == "git filter-repo":
        assert memory.undo(kept.run).changes


def test_a_forgotten_fact_is_in_no_past_conversation_and_the_next_import_does_not_bring_it_back(
    make: Callable[..., Memory], tmp_path: Path
) -> None:
    memory = make(git=True)
    memory.add_channel("dm:ines", kind="direct")
    chat = tmp_path / "chat.jsonl"
    said = ["记住：备用钥匙放在顾念那里的红色抽屉里。", "The gate closes at six."]
    rows = [
        {"role": "user", "content": text, "timestamp": f"2026-03-14T10:0{n}:00+08:00"} for n, text in enumerate(said)
    ]
    chat.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    memory.import_sessions("jsonl", str(chat), channel="dm:ines")
    assert memory.session_search("红色抽屉", "dm:ines")
    entry = memory.add("备用钥匙放在顾念那里的红色抽屉里", "dm:ines").plan.ops[0].id
    done = memory.forget(entry)
    assert "messages of past conversations: 1" in done.records
    assert memory.session_search("红色抽屉", "dm:ines") == []
    memory.import_sessions("jsonl", str(chat), channel="dm:ines", force=True)
    assert memory.session_search("红色抽屉", "dm:ines") == []
    assert memory.session_search("gate closes", "dm:ines")
