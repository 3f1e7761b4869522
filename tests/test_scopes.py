"""Where a conversation belongs: explicit words, chats, projects and their worktrees; in doubt nowhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pipimem.channels import Channel
from pipimem.scopes import Known, chat_ids, is_group, project_of, resolve, short


def channels(*ids: str) -> list[Channel]:
    kinds = {"project": "project", "dm": "direct"}
    return [Channel(i, kinds.get(i.partition(":")[0], "group"), f"channels/{i}") for i in ids]


def git(*arguments: str | Path) -> None:
    subprocess.run(["git", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "src" / "窑炉"
    git("init", "-q", "-b", "main", folder)
    git("-C", folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_folder_belongs_to_the_repository_it_lies_in(checkout: Path) -> None:
    (checkout / "api" / "深").mkdir(parents=True)
    assert project_of(str(checkout / "api" / "深")) == str(checkout)
    assert project_of(str(checkout / "gone" / "since")) == str(checkout)


def test_worktrees_of_one_repository_are_one_project(checkout: Path, tmp_path: Path) -> None:
    tree = tmp_path / "trees" / "fix"
    git("-C", checkout, "worktree", "add", "-q", "-b", "fix", tree)
    (tree / "api").mkdir()
    assert project_of(str(tree)) == project_of(str(tree / "api")) == str(checkout)


def test_a_submodule_is_a_project_of_its_own(checkout: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    git("init", "-q", "-b", "main", outer)
    git("-C", outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", checkout, "part")
    assert project_of(str(outer / "part")) == str(outer / "part")


def test_a_repository_in_the_home_folder_is_no_project_for_what_lies_below_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    git("init", "-q", home)
    (home / "notes").mkdir()
    assert project_of("~/notes") == str(home / "notes")
    assert project_of("~") == str(home)


@pytest.mark.parametrize("text", ["", "not a gitdir line", "gitdir: /nowhere/at/all\n", "gitdir:", "\0\0\0"])
def test_a_damaged_git_file_makes_its_folder_the_project(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text(text)
    assert project_of(str(tmp_path / "odd")) == str(tmp_path / "odd")


def test_without_a_repository_the_folder_itself_is_the_project_and_nothing_is_none(tmp_path: Path) -> None:
    assert project_of(str(tmp_path / "plain")) == str(tmp_path / "plain")
    assert project_of("") == ""
    assert project_of("kilnwren") == "kilnwren"


def test_an_explicit_channel_wins_over_everything(checkout: Path) -> None:
    known = Known(str(checkout), "s1", {"session_key": "dm:ines"})
    found = resolve(known, channels("dm:ines", "project:窑炉"), {"project:窑炉": "窑炉"}, channel="ops")
    assert (found.channel, found.project, found.name) == ("ops", str(checkout), "窑炉")


def test_a_project_is_the_channel_that_is_mapped_to_it_by_name_or_by_folder(checkout: Path) -> None:
    known = Known(str(checkout / "api"), "s1")
    for name in ("窑炉", str(checkout), str(checkout / "api")):
        assert resolve(known, channels("project:kiln", "ops"), {"project:kiln": name}).channel == "project:kiln"
    assert resolve(known, channels("project:kiln"), {"project:kiln": "other"}).channel == ""
    assert resolve(known, channels("project:kiln"), {}).reason == "no channel is mapped to it"


def test_of_several_channels_of_a_project_its_own_is_meant_and_without_one_none(checkout: Path) -> None:
    both = {"project:kiln": "窑炉", "ops": "窑炉", "team": "窑炉"}
    known = Known(str(checkout))
    assert resolve(known, channels("ops", "project:kiln"), both).channel == "project:kiln"
    found = resolve(known, channels("ops", "team"), both)
    assert found.channel == ""
    assert found.reason == "several channels could be meant: 'ops', 'team'"


def test_a_chat_is_the_channel_of_its_own_id_and_never_one_that_is_only_like_it() -> None:
    facts = {"platform": "slack", "chat_type": "group", "chat": "C1", "session_key": "agent:main:slack:group:C1"}
    assert chat_ids(facts) == ["agent:main:slack:group:C1", "slack:group:C1", "slack:C1", "C1"]
    for own in chat_ids(facts):
        assert resolve(Known(facts=facts), channels(own, "C10", "slack:group:C2"), {}).channel == own
    assert resolve(Known(facts=facts), channels("C10", "c1"), {}).channel == ""
    assert resolve(Known(facts=facts), channels("C1", "slack:C1"), {}).reason.startswith("several channels")


def test_the_same_chat_in_another_unicode_form_is_the_same_channel() -> None:
    assert resolve(Known(facts={"chat": "cafe\u0301"}), channels("caf\u00e9"), {}).channel == "caf\u00e9"


@pytest.mark.parametrize(
    ("facts", "group"),
    [
        ({"chat_type": "group", "chat": "1"}, True), ({"chat_type": "supergroup"}, True), ({"chat_type": "direct"}, False),
        ({"chat_type": "private", "chat": "x:group:1"}, False), ({"chat": "dingtalk:group:cid1"}, True), ({"chat": "dm:ines"}, False),
        ({}, False), ({"session_key": "agent:main:telegram:direct:7"}, False), ({"chat": "C024"}, True), ({"chat": "产品群"}, True),
    ],
)  # fmt: skip
def test_a_chat_of_several_people_is_told_by_its_host_or_its_id(facts: dict[str, str], group: bool) -> None:
    assert is_group(facts, {}) is group


def test_settings_say_what_kind_a_chat_is() -> None:
    assert is_group({"chat": "C024"}, {"C024": "direct"}) is False


def test_the_home_folder_is_written_as_a_tilde(tmp_path: Path) -> None:
    assert short(str(tmp_path / "home" / "x.jsonl")) == "~/x.jsonl"
    assert short(str(tmp_path / "homes")) == str(tmp_path / "homes")
