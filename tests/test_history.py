"""What is committed, when, as whose — and taking a step back without disturbing its neighbours."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipimem
from pipimem.history import take_back
from pipimem.memory import Memory

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
        texts = [text.replace("\n", end).encode() for text in (BASE, before, now)]
        assert take_back(*texts) == (None if result is None else result.replace("\n", end).encode())


def test_the_changed_line_itself_is_a_conflict() -> None:
    assert take_back(b"a\nnew\nb\n", b"a\nb\n", b"a\nnew and edited\nb\n") is None
    assert take_back(b"a\nb\n", b"a\nx\nb\n", b"q\n") is None


def test_a_removed_line_comes_back_next_to_its_neighbour() -> None:
    assert (
        take_back("甲\n丙\n".encode(), "甲\n乙\n丙\n".encode(), "甲\n丙\n丁\n".encode()) == "甲\n乙\n丙\n丁\n".encode()
    )


def test_one_of_two_neighbouring_entries_can_be_taken_back(make: Callable[..., Memory]) -> None:
    memory = make(git=True)
    memory.add_channel("dm:ines")
    first = memory.add("The first of two neighbours", "dm:ines")
    memory.add("第二个邻居", "dm:ines")
    memory.undo(first.run)
    text = (memory.workspace.read(first.changes[0].path) or b"").decode()
    assert "first of two" not in text
    assert "第二个邻居" in text


def test_undoing_a_forget_lets_it_be_learned_again(make: Callable[..., Memory]) -> None:
    from tests.test_update import talk

    memory = make(git=True)
    memory.add_channel("dm:ines")
    entry = memory.add("The red gate code changes on Fridays", "dm:ines").plan.ops[0]
    applied, _ = memory.forget(entry.id)
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
