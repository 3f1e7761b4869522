"""The filters of a search: each means what the manual says, and none ever widens a scope."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem.errors import Usage
from pipimem.index import Scope
from pipimem.memory import Memory
from pipimem.targets import CATEGORIES, TARGETS, narrowed
from tests.conftest import run

LAYERS = ("memory", "user", "note", "session", "history", "identity", "standing", "skill", "archive")
PROJECTS = {"ops": "heron", "dm:1": "heron", "dev": "egret", "odd": ""}
FILES = {
    "pipimem.toml": '[workspace.projects]\n"ops" = "heron"\n',
    "USER.md": "# User\n\n- okapi likes tea\n",
    "MEMORY.md": "# Memory\n\n- okapi shared fact\n",
    "memory/tools.md": "# Tools\n\nokapi in a note\n",
    "channels/ops/MEMORY.md": "# M\n\n- okapi project fact <!-- m-00000001 kind=fact -->\n- okapi 部署失败 <!-- m-00000002 kind=failure -->\n- okapi 惯例 <!-- m-00000003 kind=convention -->\n",
    "channels/dm/MEMORY.md": "# M\n\n- okapi private preference <!-- m-00000004 kind=preference -->\n",
}


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"target": "user"}, ["okapi likes tea"]),
        ({"target": "memory"}, ["okapi in a note", "okapi shared fact"]),
        ({"target": "project"}, ["okapi project fact", "okapi 惯例", "okapi 部署失败"]),
        ({"target": "failure"}, ["okapi 惯例", "okapi 部署失败"]),
        ({"project": "heron", "category": "failure"}, ["okapi 部署失败"]),
        ({"project": "nothing"}, []),
        ({"category": "preference"}, ["okapi private preference"]),
        ({"target": "failure", "category": "preference"}, []),
        ({"target": "user", "layers": ["memory"]}, []),
        ({"target": "failure", "kinds": ["convention"]}, ["okapi 惯例"]),
    ],
)
def test_a_filter_finds_what_it_says(make: Callable[..., Memory], filters: dict[str, str], found: list[str]) -> None:
    memory = make(FILES)
    assert sorted(h.text for h in memory.search("okapi", all_channels=True, **filters)) == found  # type: ignore[arg-type]


def test_a_bound_scope_stays_bound(make: Callable[..., Memory]) -> None:
    memory = make(FILES)
    assert memory.search("okapi", "dm", target="project") == []
    assert [h.text for h in memory.search("okapi", "dm", category="preference")] == ["okapi private preference"]
    assert memory.search("okapi", "ops", category="preference") == []


def test_an_unknown_word_is_wrong_usage(make: Callable[..., Memory]) -> None:
    root = make(FILES).workspace.root
    for option in ("--target", "--category"):
        done = run("-w", root, "search", option, "everything", "okapi")
        assert done.code == 2
        assert "'everything'" in done.err
    assert run("-w", root, "search", "--target", "failure", "部署").code == 0
    with pytest.raises(Usage):
        narrowed(Scope(None), {}, target="众人")


subsets = st.lists(st.sampled_from(LAYERS), unique=True)
channels = st.one_of(st.none(), st.lists(st.sampled_from([*PROJECTS, "other"]), unique=True))


@given(
    channels,
    subsets,
    st.booleans(),
    st.sampled_from(["", *TARGETS]),
    st.sampled_from(["", "heron", "none"]),
    st.sampled_from(["", *CATEGORIES]),
)
def test_no_filter_widens(
    where: list[str] | None, layers: list[str], shared: bool, target: str, project: str, category: str
) -> None:
    scope = Scope(where, shared=shared, layers=layers)
    cut = narrowed(scope, PROJECTS, target, project, category)
    for channel in ("", *PROJECTS, "other"):
        for layer in LAYERS:
            assert scope.covers(channel, layer) or not cut.covers(channel, layer)
