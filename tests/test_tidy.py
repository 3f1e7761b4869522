"""Files made shorter: originals archived in the same change, what is true still found, a person's lines never touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipimem import markdown
from pipimem.errors import Refused
from pipimem.memory import Memory
from tests.conftest import run

FOLDER = "channels/ops"


def entry(n: int, kind: str = "insight", by: str = "updater", more: str = "") -> str:
    text = f"第 {n} 号窑 okapi{n} note: " + ("the reading looked a bit odd to everybody who was there, " * 2)
    return f"- {text.strip(' ,')} <!-- m-{n:08x} kind={kind} since=2026-{1 + n % 9:02}-01 by={by}{more} -->\n"


@pytest.fixture
def ops(make: Callable[..., Memory]) -> Memory:
    lines = [entry(n) for n in range(1, 40)]
    lines[3] = entry(4, "decision")
    lines[5] = entry(6, by="person")
    lines[7] = "- typed by hand, okapi8\n"
    blocks = "".join(
        f"\n## 2026-0{n}-11 Block {n}\n\n- Task: 换 {n} 号窑的热电偶\n- decision: we decided on wire {n}\n- small talk\n"
        for n in range(1, 9)
    )
    memory = make(
        {
            f"{FOLDER}/MEMORY.md": "# M\n\n## Facts\n\n" + "".join(lines),
            f"{FOLDER}/HISTORY.md": "# H\n" + blocks,
            f"{FOLDER}/SESSION.md": "# Session\n",
        },
        git=True,
    )
    memory.add_channel("ops")
    return memory


def read(root: Path, name: str) -> str:
    return (root / FOLDER / name).read_text("utf-8")


def test_condensing_moves_what_is_worth_least_one_layer_down_and_loses_nothing(ops: Memory, root: Path) -> None:
    before = read(root, "MEMORY.md")
    steps = {s.name: s for s in ops.maintain("ops")["ops"]}
    assert steps["condense"].done
    after, archive, history = read(root, "MEMORY.md"), read(root, "HISTORY.archive.md"), read(root, "HISTORY.md")
    assert len(after) < len(before)
    assert len(after) >= 0.75 * len(before)
    ids = [e.id for e in markdown.parse(before.encode()).entries if e.id]
    assert [i for i in ids if i not in after and i not in archive] == []
    gone = [i for i in ids if i not in after]
    assert gone
    assert not {"m-00000004", "m-00000006"} & set(gone)
    assert "typed by hand, okapi8" in after
    number = int(gone[0][2:], 16)
    assert f"okapi{number} note" in history
    assert any(h.layer == "history" for h in ops.search(f"okapi{number}", "ops"))
    assert ops.search(f"okapi{number}", "ops", layers=["archive"])
    assert f"<!-- {gone[0]}" not in history


def test_folding_keeps_the_newest_and_every_decision_and_archives_the_blocks(ops: Memory, root: Path) -> None:
    before = read(root, "HISTORY.md")
    applied = ops.apply(ops.tidy("ops", "fold"))
    after, archive = read(root, "HISTORY.md"), read(root, "HISTORY.archive.md")
    assert all(f"## 2026-0{n}-11 Block {n}\n" in after for n in (6, 7, 8))
    assert all(f"## 2026-0{n}-11 Block {n}\n" not in after for n in range(1, 6))
    assert all(f"we decided on wire {n}" in after for n in range(1, 9))
    assert all(f"- Task: 换 {n} 号窑的热电偶" in archive for n in range(1, 6))
    assert ops.log("ops", limit=1)[0].sha == applied.commit
    ops.undo(applied.run)
    assert read(root, "HISTORY.md") == before
    assert not (root / FOLDER / "HISTORY.archive.md").exists()


def test_twenty_rounds_change_nothing_after_they_are_done(ops: Memory, root: Path) -> None:
    texts = []
    for _ in range(20):
        for job in ("condense", "fold"):
            plan = ops.tidy("ops", job)
            if plan.ops:
                ops.apply(plan)
        texts.append((read(root, "MEMORY.md"), read(root, "HISTORY.md")))
    assert texts[-1] == texts[-2] == texts[-5]
    everything = "".join(read(root, name) for name in ("MEMORY.md", "HISTORY.md", "HISTORY.archive.md"))
    assert all(f"okapi{n}" in everything for n in range(1, 40))


def test_a_save_in_between_stops_it_and_nothing_is_lost(ops: Memory, root: Path) -> None:
    plan = ops.tidy("ops", "condense")
    path = root / FOLDER / "MEMORY.md"
    path.write_text(path.read_text("utf-8") + "- 刚刚手写的\n", "utf-8")
    before = path.read_bytes()
    with pytest.raises(Refused, match="edited meanwhile"):
        ops.apply(plan)
    assert path.read_bytes() == before
    assert not (root / FOLDER / "HISTORY.archive.md").exists()


def test_short_files_are_left_alone(make: Callable[..., Memory], root: Path) -> None:
    memory = make({f"{FOLDER}/MEMORY.md": "# M\n\n" + entry(1), f"{FOLDER}/HISTORY.md": "# H\n"})
    assert memory.tidy("ops", "condense").ops == memory.tidy("ops", "fold").ops == ()
    done = run("-w", root, "update", "--channel", "ops", "--job", "fold")
    assert (done.code, done.out) == (0, "Nothing to change.\n")
