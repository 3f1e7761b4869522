"""Condensing and folding by a model: one sentence for several only where it covers them all; the rest is the rules'."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipimem import markdown
from pipimem.memory import Memory
from tests.test_tidy import FOLDER, read

SAME = [
    "The gateway at gw-3.example timed out on the big import because the pool was full, Ines saw it in the log",
    "On gw-3.example the pool has 40 connections since the import timed out, as Tobias wrote to everybody",
]
HAN = [
    "窑 7 的热电偶接口松了，读数一直跳，沈工看过现场说要尽快换掉",
    "窑 7 的热电偶接口已经由沈工换成 M12 的，读数稳定下来了，大家都看到了",
]


@pytest.fixture
def ops(make: Callable[..., Memory]) -> Memory:
    def line(n: int, text: str, kind: str = "insight") -> str:
        return f"- {text} <!-- m-{n:08x} kind={kind} since=2026-03-{n % 28 + 1:02} src=jsonl:t#{n} conf=0.9 by=updater -->\n"

    filler = [
        line(n, f"第 {n} 号窑 okapi{n} note: " + "the reading looked a bit odd to everybody " * 4)
        for n in range(10, 40)
    ]
    facts = [*(line(n, t, "failure") for n, t in enumerate((*SAME, *HAN), 1)), line(5, "The pool is 40", "decision")]
    blocks = "".join(
        f"\n## 2026-0{n}-11 Block {n}\n\n- Task: 换 {n} 号窑的热电偶\n- We decided on wire K{n} for 1{n} kilns\n- small talk\n"
        for n in range(1, 7)
    )
    memory = make(
        {
            f"{FOLDER}/MEMORY.md": "# M\n\n## Lessons\n\n" + "".join(facts) + "\n## Facts\n\n" + "".join(filler),
            f"{FOLDER}/HISTORY.md": "# H\n" + blocks,
            f"{FOLDER}/SESSION.md": "# Session\n",
        },
        git=True,
    )
    memory.add_channel("ops")
    return memory


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    def written(*replies: Any) -> str:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(list(replies), ensure_ascii=False))
        return f"scripted:{path}"

    return written


def merge(text: str, *ids: int) -> dict[str, Any]:
    return {"ids": [f"m-{n:08x}" for n in ids], "text": text}


GOOD = merge(
    "The gateway gw-3.example timed out on the big import, the pool was full; Tobias wrote it has 40 connections since, Ines saw the log",
    1,
    2,
)
GOOD_HAN = merge("窑 7 的热电偶接口松了读数一直跳，沈工换成 M12 的才稳定下来了", 3, 4)


def test_one_sentence_stands_for_several_and_they_are_archived(
    ops: Memory, root: Path, script: Callable[..., str]
) -> None:
    plan = ops.tidy("ops", "condense", models=[script({"reply": {"merges": [GOOD, GOOD_HAN]}})])
    assert plan.origin.startswith("scripted:")
    ops.apply(plan)
    text, archive = read(root, "MEMORY.md"), read(root, "HISTORY.archive.md")
    for row, ids in ((GOOD, (1, 2)), (GOOD_HAN, (3, 4))):
        entry = next(e for e in markdown.parse(text.encode()).entries if e.text == row["text"])
        assert entry.facts["supersedes"] == f"m-{ids[0]:08x}"
        assert entry.facts["since"] == f"2026-03-{ids[1] + 1:02}"
        assert all(f"<!-- m-{n:08x} " in archive for n in ids)
    assert all(line in archive for line in (*SAME, *HAN))
    assert any(h.text == GOOD_HAN["text"] for h in ops.search("热电偶 M12", "ops"))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            merge("The gateway gw-3.example timed out on the big import, Tobias wrote; Ines saw the log", 1, 2),
            "number 40",
        ),
        (
            merge(
                "The gateway timed out on the big import, the pool has 40 connections, Tobias wrote, Ines saw the log of 3",
                1,
                2,
            ),
            "gw-3",
        ),
        (
            merge(
                "The gateway gw-3.example timed out at 23:15, the pool has 40 connections, Tobias and Ines wrote", 1, 2
            ),
            "23",
        ),
        (merge("窑 7 的接口松了，沈工换成 M12，稳定了；老板很生气，扣了奖金", 3, 4), ""),
        (merge("Kiln 7: the thermocouple connector is M12 now", 3, 4), ""),
        (merge("One", 1), ""),
        (merge("gw-3.example 40", 1, 99), "two entries of the list"),
        (merge("gw-3.example: the pool is 40, Ines and Tobias wrote", 1, 5), "two entries of the list"),
        (merge("x " * 190, 1, 2), ""),
    ],
)
def test_what_loses_or_adds_something_is_refused_and_the_rules_do_the_work(
    ops: Memory, root: Path, script: Callable[..., str], row: dict[str, Any], why: str
) -> None:
    reply = {"reply": {"merges": [row]}}
    plan = ops.tidy("ops", "condense", models=[script(reply, reply)])
    assert plan.origin == "offline"
    assert any(why in line for line in plan.fell)
    ops.apply(plan)
    everything = read(root, "MEMORY.md") + read(root, "HISTORY.archive.md")
    assert row["text"] not in everything
    assert all(line in everything for line in (*SAME, *HAN))


def test_a_good_merge_survives_its_bad_neighbour(ops: Memory, root: Path, script: Callable[..., str]) -> None:
    bad = merge("Kiln 7 is fine", 3, 4)
    plan = ops.tidy("ops", "condense", models=[script({"reply": {"merges": [bad, GOOD]}})])
    assert any("merges[0]" in o.reason for o in plan.rejected)
    ops.apply(plan)
    assert GOOD["text"] in read(root, "MEMORY.md")
    assert HAN[0] in read(root, "MEMORY.md") + read(root, "HISTORY.archive.md")


def test_blocks_are_folded_in_the_models_words_where_they_are_true(
    ops: Memory, root: Path, script: Callable[..., str]
) -> None:
    rows = [
        {"block": 1, "text": "We decided on wire K1 for 11 kilns"},
        {"block": 2, "text": "We decided on wire K2 for 99 kilns"},
        {"block": 3, "text": "We decided on a wire"},
        {"block": 9, "text": "nothing"},
    ]
    plan = ops.tidy("ops", "fold", models=[script({"reply": {"blocks": rows}})])
    assert plan.origin.startswith("scripted:")
    ops.apply(plan)
    history, archive = read(root, "HISTORY.md"), read(root, "HISTORY.archive.md")
    assert "- 2026-01-11 Block 1: We decided on wire K1 for 11 kilns\n" in history
    assert "99 kilns" not in history
    assert "We decided on wire K2 for 12 kilns" in history
    assert "We decided on wire K3 for 13 kilns" in history
    assert all(f"- Task: 换 {n} 号窑的热电偶" in archive for n in (1, 2, 3))
    assert len(plan.rejected) == 3
