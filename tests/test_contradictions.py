"""Contradictions: neither side is recalled until a person says which one holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipimem.errors import NotFound
from pipimem.memory import Memory
from tests.conftest import run

ONE, OTHER = "m-0000000a", "m-0000000b"
PAIR = (
    "# Memory\n\n## Facts\n\n"
    f"- The deploy window opens on Tuesday at noon <!-- {ONE} kind=fact since=2026-03-01 conflicts={OTHER} -->\n"
    f"- The deploy window opens on Friday at noon <!-- {OTHER} kind=fact since=2026-03-02 conflicts={ONE} -->\n"
    "- 茶水间在三楼 <!-- m-0000000c kind=constraint -->\n"
)
CN_PAIR = (
    "# 记忆\n\n## 事实\n\n- 备份在凌晨两点开始 <!-- m-0000000d kind=fact conflicts=m-0000000e -->\n"
    "- 备份在凌晨四点开始 <!-- m-0000000e kind=fact -->\n"
)
NAME = "channels/ops/MEMORY.md"
Make = Callable[..., Memory]


def recalled(memory: Memory, text: str = "when does the deploy window open?", channel: str | None = "ops") -> list[str]:
    return [item.hit.ref for item in memory.recall(text, channel, always=True).items]


def test_neither_side_is_recalled_and_the_reason_names_the_other(make: Make) -> None:
    memory = make({NAME: PAIR})
    found = memory.recall("when does the deploy window open?", "ops", always=True)
    assert not {ONE, OTHER} & {item.hit.ref for item in found.items}
    reasons = {g["ref"]: g["reason"] for g in found.trace["gate"]}
    assert reasons[ONE] == f"in conflict with {OTHER}, which a person has to settle"
    assert reasons[OTHER] == f"in conflict with {ONE}, which a person has to settle"
    assert {h.ref for h in memory.search("deploy window", "ops")} >= {ONE, OTHER}
    assert ONE not in memory.context(channel="ops", preset="session-start", mode="auto").text


def test_one_mark_is_enough_for_both_sides_also_without_an_index(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = make({NAME: CN_PAIR})
    assert recalled(memory, "备份几点开始") == []
    from pipimem.index.plain import Files
    from pipimem.index.search import Scope

    hits = Files(memory.workspace, memory.workspace.scan()).search("备份几点开始", Scope(None), 5)
    assert {h.ref: [r for r, _ in h.rivals] for h in hits} == {
        "m-0000000d": ["m-0000000e"],
        "m-0000000e": ["m-0000000d"],
    }


@pytest.mark.parametrize("how", ["the other is deleted", "the other has ended"])
def test_what_a_person_settles_in_the_editor_is_settled(make: Make, root: Path, how: str) -> None:
    memory = make({NAME: PAIR})
    assert recalled(memory) == []
    lines = PAIR.splitlines(keepends=True)
    if how == "the other is deleted":
        text = "".join(line for line in lines if f"<!-- {OTHER}" not in line)
    else:
        text = PAIR.replace("since=2026-03-02", "since=2026-03-02 until=2026-03-05")
    (root / NAME).write_text(text, encoding="utf-8")
    memory.index()
    assert recalled(memory) == [ONE]


def test_an_entry_of_one_channel_silences_nothing_in_another(make: Make) -> None:
    memory = make(
        {
            "MEMORY.md": "# M\n\n- The gate code is on the fridge door <!-- m-0000000a kind=fact -->\n",
            "channels/a/MEMORY.md": "- The gate code is in the safe <!-- m-0000000b conflicts=m-0000000a -->\n",
            "channels/b/MEMORY.md": "- nothing <!-- m-0000000c -->\n",
        }
    )
    assert recalled(memory, "where is the gate code?", "a") == []
    assert recalled(memory, "where is the gate code?", "b") == [ONE]
    assert recalled(memory, "where is the gate code?", None) == [ONE]


def test_resolve_keeps_one_and_leaves_the_other_in_the_file_in_one_commit(make: Make, root: Path) -> None:
    memory = make({NAME: PAIR}, git=True)
    assert [[side.ref for side in pair] for pair in memory.contradictions()] == [[ONE, OTHER]]
    applied = memory.resolve(OTHER)
    text = (root / NAME).read_text(encoding="utf-8")
    assert "conflicts" not in text
    assert "Tuesday" in text
    assert text.count("until=") == 1
    assert text.splitlines()[-1] == PAIR.splitlines()[-1]
    assert recalled(memory) == [OTHER]
    assert memory.contradictions() == []
    subject = memory.log(limit=1)[0].subject
    assert applied.commit
    assert subject == "ops: settle: keep “The deploy window opens on Friday at noon”"
    memory.undo(applied.run)
    assert (root / NAME).read_text(encoding="utf-8") == PAIR


def test_an_entry_without_an_open_contradiction_cannot_be_resolved(make: Make) -> None:
    memory = make({NAME: PAIR})
    with pytest.raises(NotFound, match="in no open contradiction"):
        memory.resolve("m-0000000c")
    with pytest.raises(NotFound):
        memory.resolve("m-ffffffff")


def test_superseding_one_side_keeps_the_contradiction_with_the_new_text(make: Make) -> None:
    memory = make({NAME: PAIR})
    new = memory.supersede(ONE, "The deploy window opens on Monday at noon").plan.ops[0].id
    ((left, right),) = memory.contradictions()
    assert {left.ref, right.ref} == {new, OTHER}
    assert not [f for f in memory.check() if "conflicts" in f.message]


def test_a_mark_that_names_nothing_is_reported_with_its_line(make: Make) -> None:
    memory = make({NAME: PAIR.replace(f"conflicts={OTHER}", "conflicts=m-00000001")})
    found = [(f.path, f.line, f.message) for f in memory.check() if "conflicts" in f.message]
    assert found == [(NAME, 5, "it conflicts with 'm-00000001', which is gone")]


def test_the_command_lists_both_sides_and_settles_them(make: Make, root: Path) -> None:
    make({NAME: PAIR})
    listed = run("-w", root, "resolve")
    assert listed.code == 0
    assert f"[{ONE}] {NAME}:5  (2026-03-01)\n   The deploy window opens on Tuesday at noon\n" in listed.out
    assert run("-w", root, "resolve", "--json").json["contradictions"][0][1]["ref"] == OTHER
    assert run("-w", root, "resolve", ONE).code == 0
    again = run("-w", root, "resolve")
    assert (again.code, again.err) == (1, "Nothing contradicts itself.\n")
