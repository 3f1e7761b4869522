"""Skills: written so that agents can read them, changed without touching their front matter, never half valid."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import skills
from pipimem.errors import NotFound, Refused, Usage
from pipimem.memory import Memory
from tests.conftest import run, snapshot


def test_a_skill_is_added_listed_shown_changed_and_removed(make: Callable[..., Memory], root: Path) -> None:
    memory = make(git=True)
    memory.add_skill(
        "release-notes", "Writes release notes: 中英文", "1. Read the log\n2. 写一行", "when a tag is made"
    )
    path = root / "skills/release-notes/SKILL.md"
    assert path.read_text("utf-8") == (
        '---\nname: release-notes\ndescription: "Writes release notes: 中英文"\nwhen_to_use: when a tag is made\n---\n'
        "\n1. Read the log\n2. 写一行\n"
    )
    found = memory.skill("release-notes")
    assert (found.problem, found.description, found.when_to_use) == (
        "",
        "Writes release notes: 中英文",
        "when a tag is made",
    )
    applied = memory.edit_skill("release-notes", "1. 只有一步")
    assert path.read_text("utf-8").endswith("---\n\n1. 只有一步\n")
    memory.undo(applied.run)
    assert "Read the log" in path.read_text("utf-8")
    gone = memory.remove_skill("release-notes")
    assert not path.exists()
    assert memory.skills() == []
    memory.undo(gone.run)
    assert memory.skill("release-notes").text == "1. Read the log\n2. 写一行"


def test_an_edit_keeps_the_front_matter_and_the_line_endings(make: Callable[..., Memory], root: Path) -> None:
    head = "---\r\nname: deploy\r\n# why\r\ndescription:   'x'\r\nx-mine: 1\r\n---\r\n"
    memory = make({"skills/deploy/SKILL.md": head + "\r\nold\r\n"})
    memory.edit_skill("deploy", "new\n第二行")
    assert (root / "skills/deploy/SKILL.md").read_bytes() == (head + "\r\nnew\r\n第二行\r\n").encode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no front matter", "no description"),
        ("---\nname: other\ndescription: x\n---\nsteps\n", "calls it 'other'"),
        ("---\nname: [\n---\nsteps\n", "no valid YAML"),
        ("---\ndescription: x\n---\n", "no steps"),
        ("---\ndescription: x\nhooks: [at-midnight]\n---\nsteps\n", "unknown moment 'at-midnight'"),
        ("---\ndescription: " + "x" * 1025 + "\n---\nsteps\n", "1,025 characters"),
    ],
)
def test_what_is_not_valid_is_listed_with_the_reason(make: Callable[..., Memory], text: str, why: str) -> None:
    memory = make({"skills/deploy/SKILL.md": text})
    assert why in memory.skill("deploy").problem
    assert any(why in p["reason"] for p in memory.status()["problems"])
    assert why in run("-w", memory.workspace.root, "skill", "list").out


@pytest.mark.parametrize("name", ["", "Release", "a_b", "a--b", "-a", "../x", "发布", "a" * 65, "a/b"])
def test_a_bad_name_is_wrong_usage_and_nothing_is_made(make: Callable[..., Memory], root: Path, name: str) -> None:
    memory = make()
    before = snapshot(root)
    with pytest.raises(Usage):
        memory.add_skill(name, "x", "steps")
    assert snapshot(root) == before


def test_an_existing_one_a_missing_one_and_an_empty_one_are_refused(make: Callable[..., Memory]) -> None:
    memory = make()
    memory.add_skill("deploy", "x", "steps")
    with pytest.raises(Refused, match="already"):
        memory.add_skill("deploy", "x", "steps")
    with pytest.raises(NotFound, match="deplo"):
        memory.skill("deplo")
    with pytest.raises(Refused, match="no steps"):
        memory.edit_skill("deploy", "  ")
    with pytest.raises(Refused, match="no description"):
        memory.add_skill("other", "", "steps")
    with pytest.raises(Refused, match="secret"):
        memory.edit_skill("deploy", "use " + "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd")


def test_the_command(root: Path) -> None:
    (root / "pipimem.toml").write_text("")
    assert run("-w", root, "skill", "list").code == 1
    assert run("-w", root, "skill", "add", "deploy", "--description", "部署", "1.", "go").code == 0
    assert json.loads(run("-w", root, "skill", "--json").out)["skills"][0]["description"] == "部署"
    assert "1. go" in run("-w", root, "skill", "show", "deploy").out
    assert run("-w", root, "skill", "show", "nothing").code == 1
    assert run("-w", root, "skill", "dance").code == 2
    assert run("-w", root, "skill", "edit", "deploy").code == 2
    assert run("-w", root, "skill", "remove", "deploy").code == 0


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=80))
def test_whatever_is_written_is_read_back(description: str, text: str) -> None:
    try:
        data = skills.written("deploy", description, text)
    except Refused:
        return
    found = skills.Skill("skills/deploy/SKILL.md", data)
    assert (found.problem, found.name) == ("", "deploy")
    assert found.description == " ".join(description.split())
