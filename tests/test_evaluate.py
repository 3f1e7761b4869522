"""Retrieval quality: the arithmetic on known lists, and the bar the sample workspace must hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pipimem
from pipimem.errors import Unreadable, Usage
from pipimem.evaluate import evaluate, load
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


def test_the_measures_are_those_of_the_books(make: object, sample: Path) -> None:
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


def test_the_command_fails_below_the_wanted_recall_only(sample: Path) -> None:
    queries = sample / "few.jsonl"
    lines = (sample / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:6]
    queries.write_text("\n".join(lines), encoding="utf-8")
    assert run("eval", queries, "--min-recall", "0.5").code == 0
    assert run("eval", queries, "--min-recall", "1.01", "--json").code == 1
