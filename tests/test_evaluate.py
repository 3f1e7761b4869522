"""Retrieval quality: the arithmetic on known lists, and the bar the sample workspace must hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import pipimem
from pipimem.errors import Unreadable, Usage
from pipimem.evaluate import evaluate, load, reached
from pipimem.memory import Memory
from tests.conftest import run


def test_the_sample_workspace_holds_the_bar_in_both_languages(sample: Path) -> None:
    with pipimem.open(str(sample)) as memory:
        result = evaluate(
            load(str(sample / "queries.jsonl")), lambda q, n: memory.search(q, all_channels=True, limit=n)
        )
    by = result["by"]
    assert isinstance(by, dict)
    assert by["en"]["n"] >= 40
    assert by["zh"]["n"] >= 40
    assert by["en"]["recall@5"] >= 0.95
    assert by["zh"]["recall@5"] >= 0.95
    alarms = result["false_alarms"]
    assert isinstance(alarms, dict)
    assert alarms["queries"] >= 12
    assert alarms["with_hits"] <= 2


def test_the_measures_are_those_of_the_books(sample: Path) -> None:
    with pipimem.open(str(sample)) as memory:
        hits = memory.search("deploy window", all_channels=True, limit=3)
    rows = [{"id": "q", "query": "x", "relevant": [hits[1].ref, "nowhere.md#X"], "lang": "en"}]
    path = sample / "judged.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in rows))
    result = evaluate(load(str(path)), lambda q, n: hits)
    assert result["recall@1"] == 0
    assert result["recall@5"] == 0.5
    assert result["mrr@10"] == 0.5
    assert result["ndcg@10"] == pytest.approx((1 / 1.58496) / (1 + 1 / 1.58496), abs=1e-4)


def test_a_bad_line_is_named_and_a_missing_file_could_not_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "a", "query": "好", "relevant": []}\n{"id": "b"}\n', encoding="utf-8")
    with pytest.raises(Usage, match="Line 2"):
        load(str(path))
    with pytest.raises(Unreadable):
        load(str(tmp_path / "none.jsonl"))


MESSAGES = [
    {"id": "m1", "query": "when did we say is the deploy window?", "channel": "ops", "needs": True, "relevant": ["m-00000001"], "lang": "en"},
    {"id": "m2", "query": "上次说的灰度从百分之几开始？", "channel": "ops", "needs": True, "relevant": ["m-00000009"], "also": ["m-00000002"], "lang": "zh"},
    {"id": "m3", "query": "thanks!", "channel": "ops", "needs": False, "relevant": [], "lang": "en"},
    {"id": "m4", "query": "what did we decide about lunch?", "channel": "ops", "needs": False, "relevant": [], "lang": "en"},
    {"id": "m5", "query": "tell me about it", "channel": "ops", "needs": True, "relevant": ["m-00000001"], "lang": "en"},
]  # fmt: skip
ENTRIES = """# Channel Memory

## Decisions

- The deploy window is Thursday evening <!-- m-00000001 kind=decision -->
- 灰度发布从 2% 开始 <!-- m-00000002 kind=decision -->
"""


def test_messages_are_asked_of_recall_as_a_bot_would_and_each_failure_is_named(
    make: Callable[..., Memory], root: Path
) -> None:
    memory = make({"channels/ops/MEMORY.md": ENTRIES, "channels/ops/.channel": "ops\n"})
    path = root / "messages.jsonl"
    rows = [*MESSAGES, {"id": "q", "query": "deploy window", "relevant": ["m-00000001"], "lang": "en"}]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    result = evaluate(load(str(path)), lambda q, n: memory.search(q, "ops", limit=n), recall=memory.recall)
    assert (result["queries"], result["recall@1"]) == (1, 1.0)
    said = result["messages"]
    assert (said["n"], said["needed"]) == (5, 3)
    assert said["not_fired"] == ["m5"]
    assert said["fired_for_nothing"] == ["m4"]
    assert said["missed"] == ["m2", "m5"]
    assert said["noisy"] == []
    assert said["router_precision"] == pytest.approx(2 / 3, abs=1e-4)
    assert said["router_recall"] == pytest.approx(2 / 3, abs=1e-4)
    assert said["hit"] == pytest.approx(1 / 3, abs=1e-4)
    assert (said["clean"], said["quiet"]) == (1.0, 1.0)
    assert said["by"]["zh"] == {"n": 1, "needed": 1, "router_precision": 1.0, "router_recall": 1.0, "hit": 0.0, "clean": 1.0, "quiet": 0.0}  # fmt: skip
    assert reached(result) == said["hit"]


def test_the_command_prints_both_tables_and_holds_messages_against_the_bar(
    make: Callable[..., Memory], root: Path
) -> None:
    make({"channels/ops/MEMORY.md": ENTRIES, "channels/ops/.channel": "ops\n"})
    path = root / "messages.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in MESSAGES), encoding="utf-8")
    done = run("eval", path)
    assert done.code == 0
    assert "router_precision" in done.out
    assert "recall@5" not in done.out
    assert "not looked for: m5" in done.out
    assert run("eval", path, "--min-recall", "0.9").code == 1
    assert run("eval", path, "--min-recall", "0.3", "--json").json["messages"]["needed"] == 3


@pytest.mark.parametrize(
    "row",
    [{"needs": True, "relevant": []}, {"needs": False, "relevant": ["m-1"]}, {"needs": "yes", "relevant": ["m-1"]}, {"needs": True, "relevant": ["m"], "channel": 3},
     {"needs": True, "relevant": ["m"], "also": "x"}],
)  # fmt: skip
def test_a_message_whose_labels_contradict_each_other_is_a_bad_line(tmp_path: Path, row: dict[str, object]) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"id": "a", "query": "好", **row}), encoding="utf-8")
    with pytest.raises(Usage, match="Line 1"):
        load(str(path))


def test_the_command_fails_below_the_wanted_recall_only(sample: Path) -> None:
    queries = sample / "few.jsonl"
    lines = (sample / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:6]
    queries.write_text("\n".join(lines), encoding="utf-8")
    assert run("eval", queries, "--min-recall", "0.5").code == 0
    assert run("eval", queries, "--min-recall", "1.01", "--json").code == 1
