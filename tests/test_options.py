"""The quick reader of options: where it answers at all, argparse would have said the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import cli
from pipimem.errors import Usage
from pipimem.options import Reader, Unclear

WORDS = st.lists(
    st.sampled_from(
        [
            "-w", "dir", "--json", "--limit", "3", "x", "--limit=4", "--channel", "ops", "--all", "--kind", "decision", "--", "-", "--explain", "--layer",
            "memory", "nonsense", "--min-confidence", "0.5", "--lim", "-x", "--help", "查询", "--channel=组", "--budget", "--file", "--always", "", "--json=1",
        ]
    ),
    max_size=7,
)  # fmt: skip


def read(name: str, arguments: list[str]) -> dict[str, object] | None:
    reader = Reader()
    try:
        cli._declare(name, reader)
        return vars(reader.read(arguments))
    except Unclear:
        return None


@pytest.mark.parametrize("name", ["search", "recall", "index", "log", "update", "eval", "status", "demo"])
@given(arguments=WORDS)
def test_the_quick_reader_agrees_with_argparse_or_leaves_it_the_word(name: str, arguments: list[str]) -> None:
    quick = read(name, arguments)
    try:
        slow = vars(cli._parser(name).parse_args(arguments))
    except (Usage, SystemExit):
        # argparse wants all words of a query in one place; the quick reader does not mind.
        assert quick is None or "query" in quick or "text" in quick
        return
    assert quick is None or quick == slow


def test_a_plain_call_is_read_without_argparse() -> None:
    assert read("search", ["-w", "ws", "部署", "窗口", "--channel", "ops", "--limit", "5", "--kind", "decision", "--kind", "fact"]) == {
        "workspace": ["ws"], "global": False, "json": False, "query": ["部署", "窗口"], "channel": "ops", "all": False, "target": "", "project": "", "category": "", "layer": [], "kind": ["decision", "fact"],
        "type": [], "domain": [], "entity": [], "min_confidence": 0.0, "limit": 5, "explain": False,
    }  # fmt: skip
    assert read("recall", ["--", "-5 degrees"]) is not None
    assert read("search", ["x", "--channel", "a", "--all"]) is None
    assert read("search", ["x", "--layer", "nonsense"]) is None
    assert read("search", []) is None
