"""Pinned instructions: a person's, few, short, and never lost in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import standing
from pipimem.errors import NotFound, Refused
from pipimem.markdown import Entry
from pipimem.memory import Memory
from tests.conftest import run, snapshot


def test_what_is_pinned_is_in_the_file_listed_and_taken_out_again(make: Callable[..., Memory], root: Path) -> None:
    memory = make({"STANDING.md": "# Standing\r\n\r\n- answer in Chinese\r\n"}, git=True)
    before = (root / "STANDING.md").read_bytes()
    memory.pin("先说结论，再说理由")
    assert (root / "STANDING.md").read_bytes() == before + "- 先说结论，再说理由\r\n".encode()
    assert [e.text for e in memory.pinned().entries] == ["answer in Chinese", "先说结论，再说理由"]
    applied = memory.unpin(2)
    assert (root / "STANDING.md").read_bytes() == before
    memory.undo(applied.run)
    assert len(memory.pinned().entries) == 2
    with pytest.raises(NotFound, match="no item 3"):
        memory.unpin(3)


def test_pin_makes_the_file_where_it_is_missing(make: Callable[..., Memory], root: Path) -> None:
    memory = make()
    (root / "STANDING.md").unlink(missing_ok=True)
    memory.pin("Say it in one sentence")
    assert "- Say it in one sentence\n" in (root / "STANDING.md").read_text()


@pytest.mark.parametrize("items", [["x"] * 20, ["字" * 1000, "字" * 990]])
def test_over_the_limits_nothing_is_pinned(make: Callable[..., Memory], root: Path, items: list[str]) -> None:
    memory = make({"STANDING.md": "# 常设\n\n" + "".join(f"- {i}\n" for i in items)})
    before = snapshot(root)
    with pytest.raises(Refused, match="it holds 20 and 2,000"):
        memory.pin("one more of twenty")
    assert snapshot(root) == before


def test_a_secret_is_not_pinned(make: Callable[..., Memory]) -> None:
    with pytest.raises(Refused, match="secret"):
        make().pin("use the token " + "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd")


def test_the_command_tells_what_is_over(root: Path) -> None:
    (root / "pipimem.toml").write_text("")
    assert run("-w", root, "pin", "list").code == 1
    (root / "STANDING.md").write_text("# S\n\n" + "".join(f"- 第 {n} 条\n" for n in range(25)))
    done = run("-w", root, "pin", "--json", "list")
    assert json.loads(done.out)["budget"] == {
        "items": 25,
        "most_items": 20,
        "characters": 140,
        "most_characters": 2000,
        "given": 20,
    }
    assert "the last 5 items will not be given" in done.err
    assert run("-w", root, "pin", "remove", "25").code == 0
    assert run("-w", root, "pin", "remove", "25").code == 1
    assert len(run("-w", root, "pin").out.splitlines()) == 24


@given(st.lists(st.text(min_size=1, max_size=400), max_size=30))
def test_what_fits_is_within_both_limits_and_as_much_as_possible(texts: list[str]) -> None:
    found = standing.Standing([Entry((0, 0), 1, (), t) for t in texts])
    sizes = [len(e.text) for e in found.entries]
    assert found.fits <= standing.MOST
    assert sum(sizes[: found.fits]) <= standing.CHARACTERS
    more = found.fits + 1
    assert found.fits == len(sizes) or more > standing.MOST or sum(sizes[:more]) > standing.CHARACTERS
    assert bool(found.note) == (found.fits < len(sizes))
