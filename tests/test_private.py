"""Tests of what a person marks as private, end to end: it stays in the file, and is never found, recalled or shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pipimem
from pipimem.memory import Memory, init

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT = """# 备忘

- The staging cluster runs in Frankfurt
- 体检 <private>结果不太好</private> 已归档
- <private>salary is thirty two thousand</private>

<private>

## Divorce

- the lawyer is Weiss

</private>

## After

- Invoices go out on Mondays
"""


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    init(str(root), git=True)
    (root / "MEMORY.md").write_text(TEXT, encoding="utf-8")
    with pipimem.open(str(root)) as memory:
        memory.index()
        yield memory


@pytest.mark.parametrize("query", ["salary", "lawyer Weiss", "结果不太好", "divorce"])
def test_what_is_private_is_not_found_and_not_recalled(memory: Memory, query: str) -> None:
    hits = memory.search(query)
    assert not [h for h in hits if "结果" in h.text or "salary" in h.text or "Weiss" in h.text]
    assert "结果" not in memory.recall(query, always=True).text


def test_what_stands_around_it_is_found(memory: Memory) -> None:
    assert [h.text for h in memory.search("invoices")] == ["Invoices go out on Mondays"]
    assert [h.text for h in memory.search("体检")] == ["体检 [redacted:private] 已归档"]


def test_no_reference_and_no_context_opens_it(memory: Memory) -> None:
    shown = memory.show([f"MEMORY.md:{line}" for line in range(1, 19)])
    given = memory.context(mode="full").text + memory.context(preset="session-start", mode="auto").text
    whole = " ".join(s.text for s in shown) + memory.show(["MEMORY.md"], most=10_000)[0].text + given
    assert not [word for word in ("salary", "Weiss", "结果") if word in whole]
    assert "Invoices" in whole
    assert [s.text for s in shown if s.line == 17] == ["Invoices go out on Mondays"]


def test_the_file_stays_as_it_is_and_its_owner_may_commit_it(memory: Memory, root: Path) -> None:
    applied = memory.add("Backups run at three", target="memory")
    assert applied.commit
    assert "salary is thirty two thousand" in (root / "MEMORY.md").read_text(encoding="utf-8")
    assert [f.message for f in memory.check() if "secret" in f.message] == []
