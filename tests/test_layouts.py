"""Tests of folders of other systems opened as they are: found, recalled, counted, and not a byte of them changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pipimem
from pipimem.errors import Unreadable, Usage
from tests.test_adopting import built, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipimem.memory import Memory

LAYOUTS = [
    ("hermes/home", "", "staging cluster Frankfurt", "memories/MEMORY.md", "memory"),
    ("hermes/home", "", "先看结论", "memories/USER.md", "user"),
    ("hermes/home", "memories", "先看结论", "USER.md", "user"),
    ("hermes/pi-port", "", "缓存键必须带租户前缀", "MEMORY.md", "memory"),
    ("claude/project", "", "周四晚上发布", "memory/deploy.md", "note"),
    ("claude/project", "", "gateway strips X-Tenant header", "memory/MEMORY.md", "memory"),
    ("openclaw/workspace", "", "数据库连接数打满", "memory/2026-03-01.md", "note"),
    ("openclaw/workspace", "", "moved from Jenkins to Buildkite", "MEMORY.md", "memory"),
    ("nanobot/workspace", "", "主仓库 kiesel-app", "memory/MEMORY.md", "memory"),
    ("nanobot/older", "", "部署失败 磁盘满", "memory/HISTORY.md", "history"),
    ("minimem/folder", "", "会上决定先修登录", "memory/2026-04-01.md", "note"),
    ("minimem/lower", "", "lower case older name", "memory.md", "memory"),
]


@pytest.mark.parametrize(("case", "inside", "query", "path", "layer"), LAYOUTS)
def test_a_known_layout_opens_as_it_is(
    case: str, inside: str, query: str, path: str, layer: str, tmp_path: Path
) -> None:
    theirs = built(case, tmp_path) / inside
    before = fingerprint(theirs)
    with pipimem.open(str(theirs)) as memory:
        memory.index()
        hit = memory.search(query)[0]
        assert (hit.path, hit.layer) == (path, layer)
        assert path in {item.hit.path for item in memory.recall(query, always=True).items}
        assert layer in memory.status()["layers"]
    assert {p: d for p, d in fingerprint(theirs).items() if not p.startswith(".pipimem")} == before


@pytest.mark.parametrize(("case", "inside", "query", "path"), [
    ("basic-memory/project", "", "由他负责网络改造", "人物/王小明.md"),
    ("basic-memory/project", "", "beans from Larkfield", "notes/Coffee.md"),
    ("claude/project", "memory", "integration tests real database", "testing.md"),
])  # fmt: skip
def test_pages_anywhere_are_notes_where_the_settings_say_so(
    case: str, inside: str, query: str, path: str, tmp_path: Path
) -> None:
    theirs = built(case, tmp_path) / inside
    (theirs / "pipimem.toml").write_text('[workspace]\nnotes = "."\n', encoding="utf-8")
    with pipimem.open(str(theirs)) as memory:
        memory.index()
        assert (memory.search(query)[0].path, memory.search(query)[0].layer) == (path, "note")
        assert memory.workspace.scan().remarks == []
        assert memory.show([path])[0].problem == ""


def test_a_folder_of_further_notes_is_read_and_the_rest_is_not(make: Callable[..., Memory]) -> None:
    memory = make({
        "pipimem.toml": '[workspace]\nnotes = "docs/wiki"\n', "docs/wiki/deep/a.md": "the heron pool", "docs/other.md": "the heron pool",
    })  # fmt: skip
    memory.index()
    assert [h.path for h in memory.search("heron pool")] == ["docs/wiki/deep/a.md"]


def test_notes_everywhere_never_reach_into_channels_review_or_hidden_folders(make: Callable[..., Memory]) -> None:
    memory = make({
        "pipimem.toml": '[workspace]\nnotes = "."\n', "a/b.md": "heron one", "channels/ops/MEMORY.md": "- heron two\n",
        "channels/ops/x.md": "heron three", "review/r.md": "heron four", ".hidden/a.md": "heron five", "HISTORY.md": "heron six",
    })  # fmt: skip
    memory.index()
    assert [h.path for h in memory.search("heron")] == ["a/b.md"]
    assert {h.path for h in memory.search("heron", all_channels=True)} == {"a/b.md", "channels/ops/MEMORY.md"}


@pytest.mark.parametrize("settings", [
    'notes = "channels"', 'notes = "channels/ops"', 'notes = "../x"', 'notes = "/etc"', 'notes = "review"', 'notes = ".git"',
    'notes = "a"\nchannels = "a/b"', 'notes = "."\nchannels = "."',
])  # fmt: skip
def test_a_notes_folder_that_would_leak_is_refused(settings: str, make: Callable[..., Memory]) -> None:
    with pytest.raises(Usage, match="folder"):
        make({"pipimem.toml": f"[workspace]\n{settings}\n"})


def test_a_folder_that_is_none_says_how_to_make_it_one(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="is no workspace"):
        pipimem.open(str(built("basic-memory/project", tmp_path)))
