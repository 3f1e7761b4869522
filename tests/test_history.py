"""What is committed, when, as whose — and taking a step back without disturbing its neighbours."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import pipimem
from pipimem.errors import Refused, Usage
from pipimem.history import cut_off, take_back
from pipimem.memory import Memory
from tests.bench.edits import ACTS, Edits

LINES = st.lists(
    st.sampled_from([b"- a\n", b"- b\n", "- 甲\n".encode(), b"\n", b"## H\n", b"- c <!-- m-00000001 -->\n"]), max_size=8
)
NEW = b"- new line that stands nowhere else\n"


@given(LINES, LINES)
def test_a_step_is_taken_back_whole_when_nothing_came_after(before: list[bytes], after: list[bytes]) -> None:
    old, new = b"".join(before), b"".join(after)
    assert take_back(new, old, new) == old


@given(
    LINES, st.integers(0, 8), st.lists(st.tuples(st.integers(0, 9), st.just("- 后来写的一行\n".encode())), max_size=3)
)
@example([b"- a\n"] * 3, 1, [(1, "- 后来写的一行\n".encode()), (3, "- 后来写的一行\n".encode())])
def test_an_added_line_goes_and_every_later_line_stays(
    lines: list[bytes], at: int, later: list[tuple[int, bytes]]
) -> None:
    before = b"".join(lines)
    after = [*lines[:at], NEW, *lines[at:]]
    now = list(after)
    for place, line in later:
        now.insert(place, line)
    result = take_back(b"".join(after), before, b"".join(now))
    assert result is not None
    assert NEW not in result
    assert sorted(result.splitlines()) == sorted(line.rstrip(b"\n") for line in now if line != NEW)


BASE = "一\n二\n三\n四\n五\n"
MERGES = [
    ("only ours", BASE.replace("一", "1"), BASE, BASE.replace("一", "1")),
    ("only theirs", BASE, BASE.replace("五", "5"), BASE.replace("五", "5")),
    ("both, apart", BASE.replace("一", "1"), BASE.replace("五", "5"), "1\n二\n三\n四\n5\n"),
    ("both, alike", BASE + "六\n", BASE + "六\n", BASE + "六\n"),
    ("no last newline", BASE.replace("一", "1"), BASE + "六", BASE.replace("一", "1") + "六"),
    ("both, here", BASE.replace("三", "3"), BASE.replace("三", "叁"),
     None),
]  # fmt: skip


@pytest.mark.parametrize(("now", "before", "result"), [row[1:] for row in MERGES], ids=[row[0] for row in MERGES])
def test_taking_back_is_a_three_way_merge(now: str, before: str, result: str | None) -> None:
    for end in ("\n", "\r\n"):
        after, old, current = (text.replace("\n", end).encode() for text in (BASE, before, now))
        assert take_back(after, old, current) == (None if result is None else result.replace("\n", end).encode())


def test_the_changed_line_itself_is_a_conflict() -> None:
    assert take_back(b"a\nnew\nb\n", b"a\nb\n", b"a\nnew and edited\nb\n") is None
    with pytest.raises(LookupError):  # nothing is left that says where it stood
        take_back(b"a\nb\n", b"a\nx\nb\n", b"q\n")


def test_a_removed_line_comes_back_next_to_its_neighbour() -> None:
    assert (
        take_back("甲\n丙\n".encode(), "甲\n乙\n丙\n".encode(), "甲\n丙\n丁\n".encode()) == "甲\n乙\n丙\n丁\n".encode()
    )


@given(st.permutations(range(5)), st.permutations(range(5)), st.integers(1, 5), st.booleans())
def test_what_went_one_by_one_comes_back_in_any_order_to_where_it_stood(
    gone: list[int], back: list[int], count: int, other: bool
) -> None:
    def text(numbers: list[int], more: str = "") -> bytes:
        lines = "".join(f"- 第{n}条 <!-- m-0000000{n} kind=fact -->\n" for n in numbers)
        return f"# M\n\n## Facts\n\n{lines}{more}\n## Other\n\n- x\n".encode()

    versions, steps = [text(list(range(5)))], {}
    for n in gone[:count]:
        after = text([m for m in range(5) if m not in gone[: gone.index(n) + 1]])
        steps[n] = (after, versions[-1])
        versions.append(after)
    late = "- 后来写的 <!-- m-000000ff -->\n" if other else ""
    versions.append(versions[-1].replace(b"\n\n## Other", f"\n{late}\n## Other".encode()))
    for n in (n for n in back if n in steps):
        result = take_back(*steps[n], versions[-1], lambda: reversed(versions))
        assert result is not None
        versions.append(result)
    assert versions[-1] == text(list(range(5)), late) or (other and count > 0)
    assert versions[-1].replace(late.encode(), b"") == text(list(range(5)))


def test_one_of_two_blocks_with_blank_lines_goes_after_the_other() -> None:
    start, one, other = b"# H\n", b"\n## A\n\n- a\n", "\n## 乙\n\n- b\n".encode()
    assert take_back(start + one, start, start + one + other) == start + other
    assert take_back(start + one + other, start + one, start + other) == start


def test_entries_that_went_in_any_order_come_back_to_their_lines_in_any_other(make: Callable[..., Memory]) -> None:
    from itertools import permutations

    memory = make(git=True)
    memory.add_channel("ops")
    ids = [memory.add(text, "ops").plan.ops[0].id for text in ("甲窑在周四检修", "The pool is heron", "丙", "The last")]
    path = Path(memory.workspace.absolute("channels/ops/MEMORY.md"))
    start = path.read_bytes()
    for order in list(permutations(range(3)))[1::2]:
        runs = [memory.promote(ids[1]).run, *(memory.forget(ids[n]).applied.run for n in (2, 0))]
        for n in order:
            memory.undo(runs[n])
        assert path.read_bytes() == start


def test_a_place_that_nothing_tells_any_more_is_a_refusal_that_says_so(make: Callable[..., Memory]) -> None:
    memory = make({"channels/ops/MEMORY.md": "# M\n\n## 一\n\n- a\n"}, git=True)
    run = memory.forget(memory.add("乙", "ops").plan.ops[0].id).applied.run
    path = Path(memory.workspace.absolute("channels/ops/MEMORY.md"))
    path.write_text("Something else altogether\n\n# N\n\n- z\n")
    with pytest.raises(Refused, match=r"Where it stood in 'channels/ops/MEMORY\.md' cannot be told any more"):
        memory.undo(run)
    assert path.read_text().endswith("- z\n")


def test_an_entrys_history_goes_on_through_a_correction_another_file_and_its_end(make: Callable[..., Memory]) -> None:
    memory = make({"channels/ops/MEMORY.md": "# M\n\n- 部署窗口是周四晚上\n"}, git=True)
    memory.add("The pool is heron", "ops")
    typed = memory.search("部署窗口", "ops")[0].ref
    runs = [memory.supersede(typed, "部署窗口是周五晚上")]
    entry = runs[0].plan.ops[0].id
    runs += [memory.promote(entry), memory.invalidate(entry)]
    steps = memory.history(entry)
    assert [c.sha for c, _ in steps][:3] == [run.commit for run in reversed(runs)]
    assert [said for _, said in steps] == ["部署窗口是周五晚上"] * 3 + ["部署窗口是周四晚上"]
    assert steps[-1][0].subject == "edit channels/ops/MEMORY.md"
    other = memory.add("手写", target="memory").plan.ops[0].id
    assert len(memory.history(other)) == 1


def test_an_entry_a_person_typed_keeps_its_history_when_it_gets_a_comment(make: Callable[..., Memory]) -> None:
    memory = make({"channels/ops/MEMORY.md": "# M\n\n- 手写的一条\n- another\n"}, git=True)
    memory.add("The pool is heron", "ops")
    memory.invalidate(memory.search("手写", "ops")[0].ref)
    assert len(memory.history(memory.search("手写", "ops")[0].ref)) == 2


def test_a_persons_correction_does_not_rest_on_the_message_that_said_otherwise(make: Callable[..., Memory]) -> None:
    from tests.test_update import talk

    memory = make(git=True)
    memory.add_channel("dm:ines", kind="direct")
    applied = memory.apply(memory.propose("dm:ines", talk("We decided to ship on Tuesdays.")))
    entry = next(op for op in applied.plan.ops if op.path.endswith("/MEMORY.md"))
    assert memory.blame(entry.id)[2] == entry.facts["src"] != ""
    new = memory.supersede(entry.id, "We ship on Fridays, never on Tuesdays.").plan.ops[0].id
    assert memory.blame(new)[2] == ""
    memory.forget(source=entry.facts["src"])
    assert memory.entry(new).text == "We ship on Fridays, never on Tuesdays."


def test_one_of_two_neighbouring_entries_can_be_taken_back(make: Callable[..., Memory]) -> None:
    memory = make(git=True)
    memory.add_channel("dm:ines")
    first = memory.add("The first of two neighbours", "dm:ines")
    memory.add("第二个邻居", "dm:ines")
    memory.undo(first.run)
    text = (memory.workspace.read(first.changes[0].path) or b"").decode()
    assert "first of two" not in text
    assert "第二个邻居" in text


def test_an_entry_is_never_put_back_beside_itself(make: Callable[..., Memory]) -> None:
    memory = make(git=True)
    memory.add_channel("ops")
    first = memory.add("第一条", "ops").plan.ops[0]
    memory.add("the second one", "ops")
    gone = memory.forget(first.id).applied
    memory.undo(gone.run)
    full = Path(memory.workspace.absolute(first.path))
    lines = full.read_text().splitlines(keepends=True)
    back = next(line for line in lines if first.id in line)
    lines.remove(back)
    full.write_text("".join([*lines, "\n## Elsewhere\n\n", back]))
    with pytest.raises(Refused, match="undone already"):
        memory.undo(gone.run)
    assert full.read_text().count(first.id) == 1
    full.write_text(full.read_text().replace("第一条", "改过的一条"))
    with pytest.raises(Refused, match="changed since"):
        memory.undo(gone.run)
    assert full.read_text().count(first.id) == 1


def test_blame_reaches_as_far_back_as_the_history_goes(
    make: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipimem.git import Repository

    memory = make(git=True)
    memory.add_channel("ops")
    first = memory.add("部署窗口是周四晚上", "ops")
    memory.add("a later one", "ops")
    monkeypatch.setattr(Repository, "log", lambda *a, **k: [])  # a history longer than any look at the newest commits
    _, commit, _ = memory.blame(first.plan.ops[0].id)
    assert commit is not None
    assert commit.sha == first.commit


def test_undoing_a_forget_lets_it_be_learned_again(make: Callable[..., Memory]) -> None:
    from tests.test_update import talk

    memory = make(git=True)
    memory.add_channel("dm:ines")
    entry = memory.add("The red gate code changes on Fridays", "dm:ines").plan.ops[0]
    applied = memory.forget(entry.id).applied
    stones = Path(memory.workspace.root, ".pipimem/tombstones.jsonl")
    assert entry.id in stones.read_text()
    memory.undo(applied.run)
    assert stones.read_text() == ""
    assert memory.search("red gate", "dm:ines")
    plan = memory.propose("dm:ines", talk("Remember: the red gate code changes on Fridays."))
    assert [o.reason for o in plan.rejected] == ["the memory says so already"]


def test_the_users_own_identity_for_pipimem_is_used_and_never_taken_from_a_workspace(
    make: Callable[..., Memory], tmp_path: Path
) -> None:
    config = tmp_path / "home" / ".config" / "pipimem" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[git]\nauthor = "Bot 小炭 <bot@larkfield.example>"\n', encoding="utf-8")
    memory = make(git=True)
    memory.add_channel("dm:ines")
    memory.add("A line by the bot", "dm:ines")
    done = subprocess.run(
        ["git", "-C", memory.workspace.root, "log", "-1", "--format=%an <%ae>"], capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "Bot 小炭 <bot@larkfield.example>"


def test_an_outer_repository_is_used_where_the_user_says_so(tmp_path: Path) -> None:
    config = tmp_path / "home" / ".config" / "pipimem" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[git]\nouter = true\n")
    outer = tmp_path / "outer"
    subprocess.run(["git", "init", "-q", "-b", "main", str(outer)], check=True)
    (outer / "theirs.txt").write_text("untouched\n")
    pipimem.init(str(outer / "notes"))
    with pipimem.open(str(outer / "notes")) as memory:
        memory.index()
        memory.add_channel("dm:ines")
        applied = memory.add("Inside another repository", "dm:ines")
        assert applied.commit
    with pipimem.open(str(outer / "notes")) as memory:
        assert memory.log(limit=1)[0].sha == applied.commit
        memory.undo(applied.run)
    done = subprocess.run(["git", "-C", str(outer), "status", "--porcelain"], capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == ["?? theirs.txt"]


GOOD = "# 记忆\n\n- 一条长一些的话\n- second line\n- third\n"


@pytest.mark.parametrize(
    ("now", "torn"),
    [("", True), (" \n", True), (GOOD[:12], True), (GOOD[:26], True), (GOOD, False), (GOOD + "- more", False), (GOOD[:-3], False), (GOOD[:-1], False), ("# 记忆\n\n- 一条长一些的话", False), ("# 记忆\n", False), ("- 别的", False)],
)  # fmt: skip
def test_a_file_cut_off_in_the_middle_is_told_from_one_a_person_shortened(now: str, torn: bool) -> None:
    assert cut_off(now.encode(), GOOD.encode()) is torn
    assert cut_off(now.encode(), b"") is False


@pytest.mark.parametrize("how", ["empty", "middle", "zeros"])
def test_a_damaged_file_takes_nothing_is_not_committed_and_its_last_good_version_is_named(
    make: Callable[..., Memory], how: str
) -> None:
    memory = make(git=True)
    memory.add_channel("ops")
    good = memory.add("部署窗口是周四晚上", "ops")
    memory.add("The pool is heron", "ops")
    path = "channels/ops/MEMORY.md"
    full = Path(memory.workspace.absolute(path))
    text = full.read_bytes()
    last = memory.log("ops")[0].sha
    cut = text.index(b"\n- The pool") - 40
    damaged = {"empty": b"", "middle": text[:cut], "zeros": text[:cut] + b"\0" * (len(text) - cut)}[how]
    full.write_bytes(damaged)
    with pytest.raises(Refused, match=f"last good version: 'git show {last[:10]}:./{path}'"):
        memory.add("Another fact", "ops")
    assert full.read_bytes() == damaged
    assert [p["reason"] for p in memory.status()["problems"] if p["path"] == path and last[:10] in p["reason"]]
    memory.add("Something shared", target="memory")
    assert memory.log("ops")[0].sha == last
    shown = subprocess.run(
        ["git", "-C", memory.workspace.root, "show", f"{last[:10]}:./{path}"], capture_output=True, check=True
    )
    assert shown.stdout == text
    full.write_bytes(text)
    memory.add("Another fact", "ops")
    assert good.commit in [c.sha for c in memory.log("ops")]


def test_a_person_who_empties_a_file_on_purpose_commits_it_and_goes_on(make: Callable[..., Memory]) -> None:
    memory = make(git=True)
    memory.add_channel("ops")
    memory.add("The pool is heron", "ops")
    full = Path(memory.workspace.absolute("channels/ops/MEMORY.md"))
    full.write_bytes(b"")
    with pytest.raises(Refused, match="is cut off"):
        memory.add("新的一条", "ops")
    subprocess.run(
        [
            "git",
            "-C",
            memory.workspace.root,
            "-c",
            "user.name=I",
            "-c",
            "user.email=i@example.org",
            "commit",
            "-qam",
            "start over",
        ],
        check=True,
    )
    memory.add("新的一条", "ops")
    assert "新的一条" in full.read_text()


def test_a_damaged_file_does_not_hold_up_the_plans_other_files(make: Callable[..., Memory]) -> None:
    from tests.test_update import talk

    memory = make(git=True)
    memory.add_channel("dm:ines", kind="direct")
    plan = memory.propose("dm:ines", talk("We decided to ship on Tuesdays."))
    folder = memory.workspace.channel("dm:ines").path
    full = Path(memory.workspace.absolute(f"{folder}/SESSION.md"))
    full.write_bytes(full.read_bytes()[:30] + b"\0\0")
    damaged = full.read_bytes()
    applied = memory.apply(plan)
    assert full.read_bytes() == damaged
    assert f"{folder}/MEMORY.md" in [c.path for c in applied.changes]
    assert any("NUL" in o.reason for o in applied.plan.rejected)


SEEDS = st.integers(0, 2**16)


class RandomEdits(RuleBasedStateMachine):
    """A person, commands, the updater and undo over one workspace with real git, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.edits = Edits(self.folder.name + "/ws", 0)
        for _ in range(4):
            self.edits.act("add")

    @rule(act=st.sampled_from(ACTS), seed=SEEDS)
    def edit(self, act: str, seed: int) -> None:
        """One edit; blame is asked of some entry and of each that the edit touched."""
        self.edits.chance.seed(seed)
        self.edits.act(act)
        assert self.edits.wrong(sample=1) == []

    @rule(seed=SEEDS)
    def there_and_back(self, seed: int) -> None:
        """What is undone in any order, and nobody touched since, is as it was, to the byte."""
        self.edits.chance.seed(seed)
        assert self.edits.there_and_back(3) == []

    @invariant()
    def git_has_every_text(self) -> None:
        """Git has every file's text."""
        assert self.edits.committed()

    def teardown(self) -> None:
        """Every entry's blame, once more."""
        wrong = self.edits.wrong()
        self.edits.memory.close()
        self.folder.cleanup()
        assert wrong == []


# Blame stays right under random edits, and undoing them restores every byte.
TestRandomEdits = RandomEdits.TestCase
TestRandomEdits.settings = settings(
    max_examples=2, stateful_step_count=6, deadline=None, suppress_health_check=list(HealthCheck)
)


SECRET = "gh" + "p_" + "A1b2" * 9


def test_while_a_person_has_a_secret_in_a_file_every_other_edit_is_committed_as_whose_it_is(
    make: Callable[..., Memory], root: Path
) -> None:
    from tests.test_update import talk

    memory = make({"channels/ops/MEMORY.md": "# 记忆\n\n## Decisions\n\n- 第一条决定\n"}, git=True)
    memory.add("The gate opens at nine", "ops")
    path = root / "channels/ops/MEMORY.md"
    path.write_text(path.read_text().replace("# 记忆\n", f"# 记忆\n\nthe key is {SECRET}\n"))
    learned = memory.apply(memory.propose("ops", talk("We decided to use PostgreSQL 16 for the ledger.")))
    state = memory.status()
    assert (state["pending_commits"], "holds a secret" in state["pending_because"]) == (1, True)
    assert "holds a secret" in memory.commit_waiting()
    memory.add("窑在周四检修", "ops")
    path.write_text(path.read_text().replace(f"\n\nthe key is {SECRET}", "\n\nthe key is in the safe"))
    memory.add("The pool is heron", "ops")
    assert memory.pending() == []
    assert [(c.actor, c.author.split()[0]) for c in memory.log("ops", 4)] == [
        ("person", "pipimem"), ("person", "Ines"), ("person", "pipimem"), ("updater", "pipimem"),
    ]  # fmt: skip
    assert memory.log("ops", 4)[1].subject == "edit channels/ops/MEMORY.md"
    entry = next(op.id for op in learned.plan.ops if op.path.endswith("/MEMORY.md"))
    _, commit, _ = memory.blame(entry)
    assert (commit.sha if commit else "", learned.commit) == (learned.commit, learned.commit)
    assert memory.commits.repository().head("channels/ops/MEMORY.md") == path.read_bytes()
    memory.undo(learned.run)
    assert "PostgreSQL" not in path.read_text()
    everything = subprocess.run(
        ["git", "-C", str(root), "cat-file", "--batch-all-objects", "--batch"], capture_output=True, check=True
    )
    assert SECRET.encode() not in everything.stdout


def test_while_git_is_out_of_reach_nobody_elses_edit_becomes_a_persons(
    make: Callable[..., Memory], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipimem.git import GitOff, Repository

    memory = make(git=True)
    memory.add_channel("ops")

    def off(*args: object, **more: object) -> Repository:
        raise GitOff("no git program", '"git" is not installed.', "Install git to have a history.")

    with monkeypatch.context() as patch:
        patch.setattr(Repository, "open", off)
        first = memory.add("第一条", "ops")
        second = memory.add("the second one", "ops")
        assert memory.status()["pending_because"] == "no git program"
    memory.add("the third one", "ops")
    assert "edit channels/ops/MEMORY.md" not in [c.subject for c in memory.log("ops")]
    found = [memory.commits.find(run) for run in (first.run, second.run)]
    assert found[0] == found[1]  # nobody has the text in between any more
    assert memory.pending() == []


def hooks_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, script: str) -> Path:
    """The user's own config asks for hooks, and the repository has a pre-commit hook."""
    own = tmp_path / "own.toml"
    own.write_text("[git]\nhooks = true\nhook_limit = 5\n", encoding="utf-8")
    monkeypatch.setenv("PIPIMEM_CONFIG", str(own))
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho x >> '{tmp_path}/ran'\n{script}\n", encoding="utf-8")
    hook.chmod(0o755)
    return hook


def test_a_failing_hook_never_blocks_a_write_and_status_says_why(
    make: Callable[..., Memory], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make({"channels/ops/MEMORY.md": "# M\n\n- 甲\n"}, git=True)
    hook = hooks_on(tmp_path, monkeypatch, root, "echo 'lint: line 3 is too long' >&2; exit 1")
    memory = Memory(str(root))
    first = memory.add("乙", "ops")
    assert "乙" in (root / "channels/ops/MEMORY.md").read_text(encoding="utf-8")
    assert first.commit == ""
    assert 'the hook "pre-commit" refused: lint: line 3 is too long' in first.deferred
    memory.add("丙", "ops")
    assert len((tmp_path / "ran").read_text().split()) == 1  # not asked again within a minute
    state = memory.status()
    assert state["pending_commits"] == 3  # the person's own text first
    assert state["pending_because"] == 'the hook "pre-commit" refused: lint: line 3 is too long'
    hook.write_text("#!/bin/sh\nexit 0\n")
    assert memory.commit_waiting() == ""
    assert memory.pending() == []
    assert [c.subject for c in memory.log()] == [
        "ops: remember “丙”", "ops: remember “乙”", "edit channels/ops/MEMORY.md",
    ]  # fmt: skip
    assert memory.log()[-1].author == "Ines Vale <ines@larkfield.example>"
    memory.close()


def test_a_workspace_cannot_turn_hooks_on_and_without_them_none_runs(
    make: Callable[..., Memory], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make({"channels/ops/MEMORY.md": "# M\n"}, git=True)
    hooks_on(tmp_path, monkeypatch, root, "exit 1")
    monkeypatch.delenv("PIPIMEM_CONFIG")
    assert memory.add("甲", "ops").commit
    assert not (tmp_path / "ran").exists()
    (root / "pipimem.toml").write_text("[git]\nhooks = true\n")
    with pytest.raises(Usage, match="may only be set in the user's own config"):
        Memory(str(root))
