"""What a person does to one entry: another text, no longer true, shared, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipimem.errors import NotFound, Refused
from pipimem.memory import Memory
from tests.conftest import run
from tests.test_update import talk

PATH = "channels/ops/MEMORY.md"


@pytest.fixture
def ops(make: Callable[..., Memory]) -> Memory:
    memory = make(git=True)
    memory.add_channel("ops")
    return memory


def test_another_text_takes_the_place_and_names_the_old_one(ops: Memory) -> None:
    old = ops.add("部署窗口是周四晚上", "ops", kind="decision").plan.ops[0]
    ops.supersede(old.id, "部署窗口改到周二下午")
    hit = ops.search("部署窗口", "ops")[0]
    assert (hit.text, hit.kind) == ("部署窗口改到周二下午", "decision")
    assert len(ops.search("部署窗口", "ops")) == 1
    assert f"supersedes={old.id}" in (ops.workspace.read(PATH) or b"").decode()
    with pytest.raises(NotFound):
        ops.supersede(old.id, "again")
    with pytest.raises(Refused, match="secret"):
        ops.supersede(hit.ref, "the token is " + "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd")


@pytest.mark.parametrize("typed", [False, True])
def test_what_is_no_longer_true_stays_in_the_file_and_is_not_recalled(ops: Memory, root: Path, typed: bool) -> None:
    if typed:
        path = root / PATH
        path.write_text(path.read_text() + "\n- the okapi gate opens at nine\n")
    else:
        ops.add("the okapi gate opens at nine", "ops")
    assert ops.recall("when does the okapi gate open again?", "ops").items
    ops.invalidate(ops.search("okapi gate", "ops")[0].ref)
    assert "the okapi gate opens at nine" in (root / PATH).read_text()
    assert not ops.recall("when does the okapi gate open again?", "ops").items
    assert ops.search("okapi gate", "ops")


@pytest.mark.parametrize("typed", [False, True])
def test_promoting_moves_an_entry_to_the_shared_memory_in_one_commit(ops: Memory, root: Path, typed: bool) -> None:
    ops.add_channel("dm:ines")
    if typed:
        path = root / PATH
        path.write_text(path.read_text() + "\n- 全公司都用 UTC\n")
    else:
        ops.add("全公司都用 UTC", "ops", kind="convention")
    assert ops.search("UTC", "dm:ines") == []
    before = ops.search("UTC", "ops")[0]
    applied = ops.promote(before.ref)
    found = ops.search("UTC", "dm:ines")
    assert [(h.path, h.text) for h in found] == [("MEMORY.md", "全公司都用 UTC")]
    assert (found[0].ref == before.ref) is not typed
    assert "UTC" not in (root / PATH).read_text()
    assert sorted(ops.log(limit=1)[0].files)[-2:] == ["MEMORY.md", PATH]
    ops.undo(applied.run)
    assert [h.path for h in ops.search("UTC", "ops")] == [PATH]


RICH = [
    "- 第一段  \n  有硬换行{}\n\n  a second paragraph <!-- 不要删 -->\n\n      code  here\n\n  - nested\\\n    item\n",
    "- first{}\n\n  ```sh\n  # - x\n\n  make\n  ```\n",
    "- 甲\n  乙{}\n    deeper  \n  end\n",
    "  - 缩进的{}\n    continued\n",
    "- ```\n  only code\n  ```\n\n  text{}\n",
    "10. numbered{}\n\n    second\n",
]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("raw", RICH)
def test_promoting_moves_the_bytes_of_whatever_a_person_wrote(
    ops: Memory, root: Path, raw: str, ending: str, marked: bool
) -> None:
    from textwrap import dedent

    from pipimem import markdown

    own = raw.replace("{}", " <!-- m-00000007 kind=fact -->" if marked else "").replace("\n", ending)
    path = root / PATH
    start = path.read_bytes()
    path.write_bytes(start + f"{ending}## Mine{ending}{ending}{own}{ending}## Other{ending}".encode())
    ops.add("已有的一条", target="memory")
    known = dict(markdown.identified(markdown.parse(path.read_bytes()), "ops"))
    ref, entry = next((i, e) for i, e in known.items() if e.trail[-1] == "Mine")
    before = path.read_bytes()
    applied = ops.promote(ref)
    moved = markdown.COMMENT.sub("", (root / "MEMORY.md").read_text()).replace("-   numbered", "10. numbered")
    assert dedent(markdown.COMMENT.sub("", own.replace("\r\n", "\n"))).rstrip() in moved
    found = markdown.parse((root / "MEMORY.md").read_bytes()).entries[-1]
    assert (found.text, found.facts["by"]) == (entry.text, "person")
    assert entry.text.split("\n")[0] not in path.read_text()
    ops.undo(applied.run)
    assert path.read_bytes() == before


def test_nothing_moves_when_the_shared_memory_says_so_already(ops: Memory, root: Path) -> None:
    ops.add("全公司都用 UTC 时间", target="memory")
    entry = ops.add("全公司都用 UTC 时间。", "ops").plan.ops[0]
    before = (root / PATH).read_bytes()
    with pytest.raises(Refused, match="says so already"):
        ops.promote(entry.id)
    assert (root / PATH).read_bytes() == before
    with pytest.raises(Refused, match="shared already"):
        ops.promote(ops.search("UTC")[0].ref)


def test_blame_leads_from_the_entry_to_the_run_and_the_message(make: Callable[..., Memory], root: Path) -> None:
    memory = make(git=True)
    memory.add_channel("dm:ines", kind="direct")
    applied = memory.apply(memory.propose("dm:ines", talk("Remember: the okapi feeds at noon.")))
    memory.add("别的一条", "dm:ines")
    hit = next(h for h in memory.search("okapi", "dm:ines") if h.entry)
    found, commit, source = memory.blame(hit.ref)
    assert commit is not None
    assert (found.text, commit.sha, commit.trailers["Pipimem-Run"], source) == (
        "The okapi feeds at noon",
        applied.commit,
        applied.run,
        "jsonl:talk#1",
    )
    shown = run("-w", root, "blame", hit.ref)
    assert applied.run in shown.out
    assert "jsonl:talk#1" in shown.out
    full = Path(memory.workspace.absolute(hit.path))
    full.write_text(full.read_text().replace("at noon", "at one"))
    assert memory.blame(hit.ref)[1] is None
    assert json.loads(run("-w", root, "blame", "--json", hit.ref).out)["commit"] is None


def test_the_history_of_an_entry_tells_what_it_said_and_when(ops: Memory, root: Path) -> None:
    entry = ops.add("The pool is heron", "ops").plan.ops[0]
    ops.add("旁边的一条", "ops")
    path = root / PATH
    path.write_text(path.read_text().replace("heron", "egret"))
    ops.add("and one more", "ops")
    assert [(c.actor, text) for c, text in ops.history(entry.id)] == [
        ("person", "The pool is egret"),
        ("person", "The pool is heron"),
    ]
    shown = run("-w", root, "history", entry.id)
    assert shown.code == 0
    assert shown.out.index("egret") < shown.out.index("heron")
    assert run("-w", root, "history", "m-00000bad").code == 1


def test_without_git_the_answer_is_could_not_look(make: Callable[..., Memory], root: Path) -> None:
    memory = make()
    memory.add_channel("ops")
    entry = memory.add("The pool is heron", "ops").plan.ops[0]
    for command in ("blame", "history"):
        done = run("-w", root, command, entry.id)
        assert done.code == 3
        assert "git" in done.err
