"""Proposals: written so that people can read them, read back whatever people do to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem.errors import NotFound
from pipimem.memory import Memory
from pipimem.text import scrub
from pipimem.update import review
from pipimem.update.plan import Op, Outcome
from tests.conftest import run, snapshot
from tests.test_update import talk


def held(text: str) -> Op:
    facts = {"kind": "fact", "src": "jsonl:chat#L3"}
    outcome = Outcome(Op("add", "channels/ops/MEMORY.md", text, "事实", facts=facts), "nobody knows who said it")
    return review.proposal(outcome, "r-20260314-abc123-1", '飞书:群:"研发"', date(2026, 3, 14))


@given(st.text(min_size=1, max_size=80).map(scrub).filter(lambda t: t.strip() == t and t.splitlines() == t.split("\n")))
def test_what_is_written_is_read_back(text: str) -> None:
    op = held(text)
    found = review.read(op.path, op.text.encode())
    assert found.problem == ""
    assert (found.text, found.old, found.answer) == (text, "", "")
    assert (found.id, found.op, found.channel) == ("r-20260314-abc123-1", "add", '飞书:群:"研发"')
    assert (found.file, found.kind, found.created) == ("channels/ops/MEMORY.md", "fact", "2026-03-14")
    assert found.why == "Held back because nobody knows who said it."
    assert found.evidence == "- jsonl:chat#L3"


@pytest.mark.parametrize(
    ("ticks", "answer"),
    [("- [x] accept\n- [ ] reject", "accept"), ("- [ ] accept\n- [X] reject", "reject"), ("- [x] accept\n- [x] reject", "both"), ("* [x] accept", "accept")],
)  # fmt: skip
def test_a_ticked_box_is_the_answer(ticks: str, answer: str) -> None:
    text = held("the office is closed").text.replace("- [ ] accept\n- [ ] reject", ticks)
    assert review.read("review/x.md", text.encode()).answer == answer


@pytest.mark.parametrize(
    "data", [b"", b"just prose\n", b"---\nop: [\n---\n", b"\xff\xfe\x00", b"---\nop: add\n---\n\n## What\n\nno quote\n"]
)
def test_a_file_that_is_no_proposal_says_so(data: bytes) -> None:
    found = review.read("review/odd.md", data)
    assert found.problem
    assert found.id == "odd"


def test_what_waits_is_listed_shown_and_never_searched(make: Callable[..., Memory], root: Path) -> None:
    memory = make()
    memory.add_channel("team:group:1")
    memory.apply(
        memory.propose("team:group:1", talk("Remember: the okapi feeds at noon.", "记住：霍加狓中午喂。", name=""))
    )
    before = snapshot(root)
    listed = run("-w", root, "review", "--json")
    assert listed.code == 0
    assert [p["text"] for p in listed.json["proposals"]] == ["The okapi feeds at noon", "霍加狓中午喂"]
    shown = run("-w", root, "review", "show", "2")
    assert "霍加狓中午喂" in shown.out
    assert "nobody knows who said it" in shown.out
    assert run("-w", root, "review", "show", listed.json["proposals"][0]["id"]).code == 0
    assert run("-w", root, "search", "okapi").code == 1
    assert snapshot(root) == before
    with pytest.raises(NotFound):
        memory.proposal("3")


def test_an_empty_queue_and_a_wrong_call_have_their_own_codes(make: Callable[..., Memory], root: Path) -> None:
    make()
    assert run("-w", root, "review").code == 1
    assert run("-w", root, "review", "show").code == 2
    assert run("-w", root, "review", "accept", "1").code == 2
