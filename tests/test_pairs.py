"""Contradictions: the same subject with another claim stands as a visible pair, with both dates, until a person decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipimem import markdown
from pipimem.memory import Memory
from pipimem.update.pairs import contradicts
from tests.conftest import run
from tests.test_update import talk

FOLDER = "channels/dm%3Aines"
PAIRS = [
    ("The deploy window is Thursday evening", "The deploy window is Friday evening"),
    ("部署窗口是周四晚上", "部署窗口是周五晚上"),
    ("部署窗口定在周四晚上八点", "部署窗口定在周四晚上九点"),
    ("Standup is at 9:30", "Standup is at 10:00"),
    ("The package manager is pnpm", "The package manager is yarn"),
    ("包管理器用 pnpm", "包管理器用 yarn"),
    ("We use Redis for sessions", "We do not use Redis for sessions"),
    ("线上允许直接改表", "线上不允许直接改表"),
    ("The retry limit is 3", "The retry limit is 5"),
    ("库存服务的超时设为 30 秒", "库存服务的超时设为 60 秒"),
]
APART = [
    ("Server 1 runs Debian", "Server 2 runs Debian"),
    ("Sprint 12 is done on 2026-11-02", "Sprint 13 is done on 2026-11-16"),
    ("The deploy window is Thursday evening", "The deploy window is owned by Mara"),
    ("二号机房的温度是 21 度", "三号机房的温度是 21 度"),
    ("Mara is in Lisbon", "Ines is in Lisbon"),
    ("It is 5", "It is 6"),
    ("周会在三点", "周报在三点"),
    ("Mara prefers tea", "Mara prefers coffee and cake"),
    ("KW-E63 is a sensor error", "KW-E64 is a sensor error"),
    ("v1.2 was released on 2026-01-02", "v1.3 was released on 2026-02-02"),
    ("The retry limit is 3", "The retry limit is 3."),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_another_value_of_the_same_subject_contradicts(one: str, other: str) -> None:
    assert contradicts(one, other)
    assert contradicts(other, one)


@pytest.mark.parametrize(("one", "other"), APART)
def test_another_subject_does_not(one: str, other: str) -> None:
    assert not contradicts(one, other)
    assert not contradicts(other, one)


@pytest.fixture
def dm(make: Callable[..., Memory]) -> Memory:
    memory = make(git=True)
    memory.add_channel("dm:ines", kind="direct")
    return memory


def entries(root: Path) -> dict[str, markdown.Entry]:
    return {e.text: e for e in markdown.parse((root / FOLDER / "MEMORY.md").read_bytes()).entries}


def test_two_claims_stand_as_a_pair_with_their_own_days(dm: Memory, root: Path) -> None:
    said = "Remember that the retry limit is {}."
    dm.apply(dm.propose("dm:ines", talk(said.format(3), time="2026-03-01T10:00:00+08:00")))
    old = entries(root)["The retry limit is 3"]
    dm.apply(dm.propose("dm:ines", talk(said.format(5), time="2026-03-14T10:00:00+08:00")))
    found = entries(root)
    one, other = found["The retry limit is 3"], found["The retry limit is 5"]
    assert (one.id, one.facts["since"], other.facts["since"]) == (old.id, "2026-03-01", "2026-03-14")
    assert one.facts["conflicts"] == other.id
    assert other.facts["conflicts"] == one.id
    assert "retry limit" not in dm.context(channel="dm:ines", mode="auto").text


def test_a_person_who_wrote_the_older_one_is_asked_first(dm: Memory, root: Path) -> None:
    path = root / FOLDER / "MEMORY.md"
    path.write_text(path.read_text("utf-8") + "\n## 事实\n\n- 部署窗口是周四晚上\n", "utf-8")
    before = path.read_bytes()
    dm.apply(dm.propose("dm:ines", talk("记住：部署窗口是周五晚上")))
    assert path.read_bytes() == before
    (waiting,) = dm.proposals()
    assert (waiting.old, waiting.text) == ("部署窗口是周四晚上", "部署窗口是周五晚上")
    assert "contradicts" in waiting.why
    assert run("-w", root, "review", "accept", "1").code == 0
    assert list(entries(root)) == ["部署窗口是周五晚上"]


def test_a_correction_replaces_and_is_no_contradiction(dm: Memory, root: Path) -> None:
    dm.apply(dm.propose("dm:ines", talk("记住：评审是两点。")))
    dm.apply(dm.propose("dm:ines", talk("更正：评审是三点，不是两点。")))
    assert not any(e.facts.get("conflicts") for e in entries(root).values())
