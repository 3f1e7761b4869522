"""The opened workspace: each verb end to end on real files and real git, isolation, secrets, undo."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import pipimem
from pipimem import markdown
from pipimem.errors import NotFound, Refused, Unreadable, Usage
from pipimem.memory import Memory
from tests.conftest import CASES, case, run, snapshot

MakeMemory = Callable[..., Memory]


def git(root: Path | str, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def body(memory: Memory, path: str) -> str:
    return (memory.workspace.read(path) or b"").decode("utf-8")


@pytest.fixture
def team(make: MakeMemory) -> Memory:
    """A workspace with its own history and two channels."""
    memory = make(git=True)
    memory.add_channel("team:group:1")
    memory.add_channel("dm:顾念")
    return memory


# init and channels


@pytest.mark.parametrize("language", ["en", "zh"])
def test_init_creates_what_is_missing_and_changes_no_existing_byte(root: Path, language: str) -> None:
    (root / "MEMORY.md").write_bytes("# 我的\r\n\r\n- 自己写的".encode())
    created, kept = pipimem.init(str(root), language=language, git=True)
    assert {"pipimem.toml", "SOUL.md", "AGENTS.md", "STANDING.md", "USER.md"} == set(created)
    assert kept == ["MEMORY.md"]
    before = snapshot(root)
    assert pipimem.init(str(root), language=language)[0] == []
    assert snapshot(root) == before
    assert (root / "MEMORY.md").read_bytes() == "# 我的\r\n\r\n- 自己写的".encode()
    assert git(root, "status", "--porcelain").split() == ["??", "MEMORY.md"]


def test_a_channel_is_found_again_by_the_id_as_given(team: Memory) -> None:
    for identity in json.loads(case("G32-channel-ids.json"))["valid"]:
        channel, created = team.add_channel(identity, minimal=True)
        assert channel.id == identity
        assert len(created) == 3
        team.add(f"A note for {identity}", identity)
        assert os.path.dirname(channel.path) == "channels"
    with pipimem.open(team.workspace.root) as again:
        known = {c.id for c in again.channels()}
        for identity in json.loads(case("G32-channel-ids.json"))["valid"]:
            assert identity in known
            assert any(identity in h.text for h in again.search(f"note {identity}", identity))


def test_the_kind_of_a_channel_can_be_set_by_hand_and_is_not_changed_behind_ones_back(team: Memory) -> None:
    channel, _ = team.add_channel("C0DEMO42", kind="project")
    assert channel.kind == "project"
    assert team.workspace.channel("C0DEMO42").kind == "project"
    with pytest.raises(Refused, match="another kind"):
        team.add_channel("C0DEMO42", kind="direct")


def test_adding_a_channel_twice_changes_nothing(team: Memory) -> None:
    before = snapshot(Path(team.workspace.root))
    assert team.add_channel("dm:顾念")[1] == []
    assert snapshot(Path(team.workspace.root)) == before


# add


def test_an_added_entry_is_in_the_file_the_index_and_the_history(team: Memory) -> None:
    applied = team.add("部署窗口定在周四晚上", "team:group:1", kind="decision")
    entry = applied.plan.ops[0]
    assert f"- 部署窗口定在周四晚上 <!-- {entry.id} kind=decision since=" in body(team, entry.path)
    assert team.search("部署窗口", "team:group:1")[0].ref == entry.id
    shown = git(team.workspace.root, "show", "--name-only", "--format=%an%n%B", applied.commit)
    assert "部署窗口定在周四晚上" in shown
    assert "Pipimem-Actor: person" in shown
    assert shown.splitlines()[-1].endswith("/MEMORY.md")


def test_a_duplicate_a_secret_and_an_unknown_kind_are_refused_and_nothing_changes(team: Memory) -> None:
    team.add("The pool is heron", "dm:顾念")
    before = snapshot(Path(team.workspace.root))
    with pytest.raises(Refused, match="says so already"):
        team.add("the pool is HERON.", "dm:顾念")
    with pytest.raises(Refused, match="secret"):
        team.add("token is " + "gh" + "p_" + "A1b2" * 9, "dm:顾念")
    with pytest.raises(Usage, match="kind"):
        team.add("x y z", "dm:顾念", kind="gossip")
    with pytest.raises(Usage):
        team.add("nowhere to go")
    with pytest.raises(Usage, match="empty"):
        team.add(" \n ", "dm:顾念")
    with pytest.raises(Unreadable, match="Nearest: dm:顾念"):
        team.add("x y z", "dm:顾恋")
    assert snapshot(Path(team.workspace.root)) == before


def test_shared_targets_take_an_entry_and_make_the_file_from_the_template(team: Memory) -> None:
    applied = team.add("Prefers tea over coffee", target="user", kind="preference")
    assert applied.changes[0].path == "USER.md"
    assert "Prefers tea over coffee" in body(team, "USER.md")
    assert [h.path for h in team.search("tea")] == ["USER.md"]


# G42: secrets, through every way in


def secrets() -> list[tuple[str, str]]:
    rows = json.loads(case("G42-secrets.json"))["entries"]
    return [("".join(row["parts"]), row["text"].format("".join(row["parts"]))) for row in rows]


@pytest.mark.parametrize(("value", "text"), secrets())
def test_no_secret_reaches_a_file_the_index_a_commit_or_an_error(team: Memory, value: str, text: str) -> None:
    hidden = value.split("：")[-1].removeprefix("密码是 ").removeprefix("Authorization: Bearer ")
    hidden = hidden.split("\n")[1] if "\n" in hidden else hidden
    root = Path(team.workspace.root)
    done = run("-w", root, "add", "--channel", "dm:顾念", "-", stdin=text)
    assert done.code == 4
    assert hidden not in done.out + done.err
    talk = json.dumps(
        {"role": "user", "name": "顾念", "content": f"记住：{text}", "timestamp": "2026-03-01T10:00:00+08:00"},
        ensure_ascii=False,
    )
    (root.parent / "talk.jsonl").write_text(talk + "\n", encoding="utf-8")
    updated = run("-w", root, "update", "--channel", "dm:顾念", "--transcript", root.parent / "talk.jsonl", "--json")
    assert updated.code == 0
    assert hidden not in updated.out + updated.err
    for path in root.rglob("*"):
        if path.is_file():
            assert hidden.encode() not in path.read_bytes(), path
    assert hidden not in git(root, "log", "-p", "--all")


@pytest.mark.parametrize("text", json.loads((CASES / "G42-secrets.json").read_text(encoding="utf-8"))["must_survive"])
def test_what_only_looks_like_a_secret_is_stored_unchanged(make: MakeMemory, text: str) -> None:
    memory = make()
    memory.add_channel("dm:ines")
    memory.add(text, "dm:ines")
    assert text in body(memory, "channels/dm%3Aines/MEMORY.md")


def test_a_secret_a_person_typed_is_neither_committed_nor_shown_nor_recalled(team: Memory) -> None:
    secret = "gh" + "p_" + "A1b2" * 9
    path = "channels/dm%3A顾念/MEMORY.md"
    full = team.workspace.absolute(path)
    with open(full, "ab") as file:
        file.write(f"\n- zebra key {secret}\n".encode())
    applied = team.add("The gate opens at nine", "dm:顾念")
    assert (applied.commit != "", applied.deferred) == (True, "")  # ours, without theirs
    assert any("secret" in note for note in applied.notes)
    assert secret not in "".join(applied.notes)
    assert "zebra" not in git(team.workspace.root, "show", "HEAD")
    assert secret not in git(team.workspace.root, "log", "-p", "--all")
    assert secret in body(team, path)
    found = run("-w", team.workspace.root, "search", "zebra key", "--json")
    assert found.json["hits"][0]["warning"] == "secret"
    assert secret not in found.out
    assert team.recall("zebra key", "dm:顾念", always=True).items == []


# G43: isolation


def test_one_channels_words_are_in_no_answer_for_another(team: Memory) -> None:
    team.add("The word is okapi, 暗号是霍加狓", "dm:顾念")
    team.add("The word is tapir, 暗号是貘貘", "team:group:1")
    team.add("The shared word is numbat", target="memory")
    for text in ("okapi", "霍加狓", "word 暗号"):
        assert not any("okapi" in h.text for h in team.search(text, "team:group:1"))
        assert not any("okapi" in h.text for h in team.search(text))
        assert "okapi" not in team.recall(text, "team:group:1", always=True).text
    assert team.search("numbat", "team:group:1")
    assert [h.channel for h in team.search("okapi", all_channels=True)] == ["dm:顾念"]
    seen = run("-w", team.workspace.root, "search", "okapi", "--channel", "team:group:1")
    assert (seen.code, "okapi" in seen.out) == (1, False)
    assert run("-w", team.workspace.root, "search", "okapi").code == 0


def test_a_missing_file_of_a_channel_is_made_again_by_the_next_write_and_asking_treats_it_as_empty(
    team: Memory,
) -> None:
    folder = Path(team.workspace.root, "channels/dm%3A顾念")
    for name in ("SESSION.md", "HISTORY.md"):
        (folder / name).unlink()
    assert team.search("anything at all", "dm:顾念") == []
    assert not (folder / "SESSION.md").exists()
    team.add("The lamp is green", "dm:顾念")
    assert (folder / "SESSION.md").exists()
    assert (folder / "HISTORY.md").exists()


# forget


def test_a_forgotten_entry_is_gone_from_file_index_and_answers_and_is_not_learned_again(team: Memory) -> None:
    kept = team.add("The blue gate code changes on Mondays", "dm:顾念").plan.ops[0]
    gone = team.add("The red gate code changes on Fridays", "dm:顾念").plan.ops[0]
    done = team.forget(gone.id)
    applied, still = done.applied, done.still
    assert still == ()
    assert "red gate" not in body(team, gone.path)
    for _ in range(2):
        hits = team.search("gate code changes", "dm:顾念")
        assert [h.ref for h in hits] == [kept.id]
        team.index(rebuild=True)
    stone = (Path(team.workspace.root) / ".pipimem/tombstones.jsonl").read_text()
    assert gone.id in stone
    assert "red gate" not in stone
    assert ".pipimem/tombstones.jsonl" in git(team.workspace.root, "show", "--name-only", applied.commit)
    assert "red" not in git(team.workspace.root, "show", "-s", "--format=%B", applied.commit)
    from tests.test_update import talk

    plan = team.propose("dm:顾念", talk("Remember: the red gate code changes on Fridays."))
    assert [o.reason for o in plan.rejected] == ["it was forgotten before"]


def test_forgetting_in_several_channels_at_once_loses_no_tombstone(make: MakeMemory) -> None:
    from concurrent.futures import ThreadPoolExecutor

    memory = make({"pipimem.toml": "[git]\ncommit = false\n"})
    ids = []
    for n in range(6):
        memory.add_channel(f"dm:人{n}", minimal=True)
        ids.append(memory.add(f"The gate code of house {n} is secret, 门牌{n}", f"dm:人{n}").plan.ops[0].id)

    def forget(identity: str) -> None:
        with pipimem.open(memory.workspace.root) as own:
            own.forget(identity)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(forget, ids))
    lines = Path(memory.workspace.root, ".pipimem/tombstones.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == sorted(ids)


def test_forgetting_names_the_places_where_the_words_still_stand(team: Memory) -> None:
    entry = team.add("The lamp in the shed is tuned to 98.5", "dm:顾念").plan.ops[0]
    with open(os.path.join(team.workspace.root, "channels/dm%3A顾念/HISTORY.md"), "ab") as file:
        file.write(b"\n## 2026-03-01\n\nThe lamp in the shed is tuned to 98.5, he said.\n")
    still = team.forget(entry.id).still
    assert [place.rpartition(":")[0] for place in still] == ["channels/dm%3A顾念/HISTORY.md"]


def test_a_dry_forget_changes_nothing_and_an_unknown_one_says_so(team: Memory) -> None:
    entry = team.add("The lamp is green", "dm:顾念").plan.ops[0]
    before = snapshot(Path(team.workspace.root))
    assert team.forget(entry.id, dry_run=True).applied.changes
    assert snapshot(Path(team.workspace.root)) == before
    with pytest.raises(NotFound):
        team.forget("m-ffffffff")


# history


def test_undo_restores_every_byte_and_is_itself_a_commit(team: Memory) -> None:
    before = snapshot(Path(team.workspace.root))
    applied = team.add("临时的事", "dm:顾念")
    undone = team.undo(applied.run)
    assert {k: v[0] for k, v in snapshot(Path(team.workspace.root)).items()} == {k: v[0] for k, v in before.items()}
    assert team.log(limit=1)[0].sha == undone.commit
    with pytest.raises(Refused, match="undone already"):
        team.undo(applied.commit)
    assert team.search("临时的事", "dm:顾念") == []


def test_undo_keeps_what_was_written_since_and_refuses_a_conflict(team: Memory) -> None:
    first = team.add("First fact of the day", "dm:顾念", heading="Facts")
    team.add("Second decision of the day", "dm:顾念", kind="decision")
    team.undo(first.run)
    text = body(team, first.changes[0].path)
    assert "First fact" not in text
    assert "Second decision" in text
    third = team.add("Third fact of the day", "dm:顾念", heading="Facts")
    full = team.workspace.absolute(third.changes[0].path)
    edited = body(team, third.changes[0].path).replace("Third fact", "Third and edited fact")
    Path(full).write_text(edited, encoding="utf-8")
    with pytest.raises(Refused, match="changed since"):
        team.undo(third.run)
    assert Path(full).read_text(encoding="utf-8") == edited


def test_a_persons_edit_is_committed_first_and_as_theirs(team: Memory) -> None:
    path = "channels/dm%3A顾念/MEMORY.md"
    team.add("One fact to begin with", "dm:顾念")
    with open(team.workspace.absolute(path), "ab") as file:
        file.write("\n- 手写的一条\n".encode())
    team.add("Another fact to go on", "dm:顾念")
    log = git(team.workspace.root, "log", "-3", "--format=%an|%cn|%s").splitlines()
    assert log[1].startswith("Ines Vale|pipimem|edit ")
    shown = git(team.workspace.root, "show", "HEAD~1")
    assert "+- 手写的一条" in shown
    assert "Another fact" not in shown


def test_without_git_everything_but_history_works(make: MakeMemory) -> None:
    memory = make()
    memory.add_channel("dm:ines")
    applied = memory.add("No history here", "dm:ines")
    assert applied.commit == ""
    assert applied.deferred
    assert memory.search("history here", "dm:ines")
    for verb in (memory.log, lambda: memory.undo("x1234567"), lambda: memory.diff("x1234567")):
        with pytest.raises(Unreadable):
            verb()


def test_a_busy_repository_delays_the_commit_not_the_write(team: Memory) -> None:
    root = Path(team.workspace.root)
    team.add("Before the rebase", "dm:顾念")
    (root / ".git/MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD"))
    applied = team.add("During the merge", "dm:顾念")
    assert (applied.commit, len(team.pending())) == ("", 1)
    assert "During the merge" in body(team, applied.changes[0].path)
    (root / ".git/MERGE_HEAD").unlink()
    team.add("After the merge", "dm:顾念")
    assert team.pending() == []
    assert [c.subject.split("“")[-1] for c in team.log(limit=2)] == ["After the merge”", "During the merge”"]
    assert git(root, "status", "--porcelain", "--untracked-files=no") == ""


def test_an_outer_repository_is_left_alone(tmp_path: Path) -> None:
    git_root = tmp_path / "outer"
    subprocess.run(["git", "init", "-q", str(git_root)], check=True)
    folder = git_root / "notes"
    pipimem.init(str(folder))
    with pipimem.open(str(folder)) as memory:
        memory.add_channel("dm:ines")
        applied = memory.add("Quiet as a mouse", "dm:ines")
        assert applied.commit == ""
        assert "outer" in applied.deferred or "something else" in applied.deferred
    done = subprocess.run(["git", "-C", str(git_root), "rev-parse", "HEAD"], capture_output=True, check=False)
    assert done.returncode != 0


# conflict markers


def test_a_file_with_conflict_markers_is_searched_but_never_written_or_committed(make: MakeMemory) -> None:
    memory = make(
        {
            "channels/ops/MEMORY.md": case("G31-conflict.md"),
            "channels/ops/MEMORY (conflicted copy).md": "# x\n\n- copy okapi\n",
        },
        git=True,
    )
    assert memory.search("heron pool", "ops")
    with pytest.raises(Refused, match="line 5"):
        memory.add("New window", "ops")
    assert memory.workspace.read("channels/ops/MEMORY.md") == case("G31-conflict.md")
    assert memory.search("okapi", all_channels=True) == []
    problems = {p["path"]: p["reason"] for p in memory.status()["problems"]}
    assert "merge conflict in line 5" in problems["channels/ops/MEMORY.md"]
    assert "channels/ops/MEMORY (conflicted copy).md" in problems


def test_status_says_what_is_there(sample: Path) -> None:
    with pipimem.open(str(sample)) as memory:
        state = memory.status()
    assert state["channels"] == 5
    assert state["layers"]["memory"]["documents"] == 6
    assert state["kinds"]["decision"] > 20
    assert state["pending_commits"] == 0


def test_entries_stay_findable_after_the_parser_reads_them_back(team: Memory) -> None:
    ids = [team.add(f"Fact number {n} about 仓库{n}", "dm:顾念").plan.ops[0].id for n in range(5)]
    parsed = markdown.parse(team.workspace.read("channels/dm%3A顾念/MEMORY.md") or b"")
    assert [e.id for e in parsed.entries] == ids


def test_a_new_workspace_recalls_by_itself_and_an_adopted_one_only_tells_about_memory(tmp_path: Path) -> None:
    pipimem.init(str(tmp_path / "new"))
    (tmp_path / "old").mkdir()
    (tmp_path / "old/MEMORY.md").write_text("# 记忆\n\n- 已有的一条\n")
    pipimem.init(str(tmp_path / "old"))
    modes = [pipimem.open(str(tmp_path / name)).workspace.config["recall.mode"] for name in ("new", "old")]
    assert modes == ["auto", "policy"]
