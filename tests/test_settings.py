"""`config`: settings shown with their origin, and one changed in its file with every other byte as it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipimem import settings
from pipimem.config import load
from pipimem.errors import Conflict, Usage
from tests.conftest import run

FILE = (
    '# 我们的设置\n[workspace]   # keep\nlanguage = "zh"\n\n[workspace.kinds]\n"dm:顾念" = \'direct\'   # 私聊\n\n'
    "[recall]\nbudget=800 # tokens\n"
)


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setenv("PIPIMEM_CONFIG", str(tmp_path / "own" / "config.toml"))
    (root / "pipimem.toml").write_text(FILE, encoding="utf-8")


def change(root: Path, name: str, *words: str, own: bool = False) -> str:
    settings.write(settings.change(str(root), name, words or None, own=own))
    return (root / "pipimem.toml").read_text(encoding="utf-8")


def test_one_value_changes_and_every_other_byte_stays(root: Path) -> None:
    assert change(root, "recall.budget", "900") == FILE.replace("budget=800", "budget=900")
    assert load(str(root))["recall.budget"] == 900


def test_new_sections_lists_tables_and_items_of_tables(root: Path) -> None:
    change(root, "update.models", "ollama:qwen3", "openai:gpt-5-mini")
    change(root, "workspace.kinds.ops:main", "group")
    text = change(root, "workspace.projects", "ops:main=kiln", "dm:顾念=窑")
    assert "# 我们的设置\n[workspace]   # keep\n" in text
    assert "\"dm:顾念\" = 'direct'   # 私聊\n" in text
    values = load(str(root))
    assert values["update.models"] == ["ollama:qwen3", "openai:gpt-5-mini"]
    assert values["workspace.kinds"] == {"dm:顾念": "direct", "ops:main": "group"}
    assert values["workspace.projects"] == {"ops:main": "kiln", "dm:顾念": "窑"}


def test_what_is_unset_is_gone_and_has_its_default(root: Path) -> None:
    text = change(root, "recall.budget")
    assert "budget" not in text
    assert load(str(root))["recall.budget"] == 1200
    change(root, "workspace.kinds.dm:顾念")
    assert load(str(root))["workspace.kinds"] == {}


def test_crlf_and_a_byte_order_mark_stay(root: Path) -> None:
    data = b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()
    (root / "pipimem.toml").write_bytes(data)
    settings.write(settings.change(str(root), "recall.budget", ["900"]))
    assert (root / "pipimem.toml").read_bytes() == data.replace(b"budget=800", b"budget=900")


@pytest.mark.parametrize(
    ("name", "words", "error"),
    [
        ("recall.budgett", ["900"], "There is no setting 'recall.budgett'. Nearest: recall.budget"),
        ("recall.budget", ["many"], "is not of type int"),
        ("recall.budget", ["9000"], "cannot be 9000. 100 to 1500"),
        ("recall.budget", ["1", "2"], "takes one value"),
        ("recall.mode", ["loud"], "One of: observe, policy, auto, full"),
        ("workspace.kinds", ["ops"], "Give KEY=VALUE"),
        ("workspace.kinds.ops", ["club"], "One of: direct, group, project"),
    ],
)
def test_a_wrong_name_or_value_is_refused_and_nothing_is_written(
    root: Path, name: str, words: list[str], error: str
) -> None:
    with pytest.raises(Usage) as caught:
        settings.change(str(root), name, words)
    assert error in str(caught.value)
    assert (root / "pipimem.toml").read_text(encoding="utf-8") == FILE


def test_what_only_the_user_may_set_goes_to_their_own_file_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "dotfiles.toml").write_text("# mine\n", encoding="utf-8")
    (tmp_path / "dotfiles.toml").chmod(0o600)
    (tmp_path / "own" / "config.toml").symlink_to(tmp_path / "dotfiles.toml")
    assert change(root, "git.hooks", "true") == FILE
    assert (tmp_path / "dotfiles.toml").read_text() == "# mine\n\n[git]\nhooks = true\n"
    assert (tmp_path / "dotfiles.toml").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "own" / "config.toml").is_symlink()
    change(root, "recall.budget", "700", own=True)
    found = {s.name: (s.value, s.origin) for s in settings.listed(str(root))}
    assert found["git.hooks"] == (True, "user")
    assert found["recall.budget"] == (800, "workspace")
    assert found["recall.mode"] == ("policy", "default")


def test_a_file_somebody_saved_meanwhile_is_not_overwritten(root: Path) -> None:
    made = settings.change(str(root), "recall.budget", ["900"])
    (root / "pipimem.toml").write_text(FILE + "# more\n", encoding="utf-8")
    with pytest.raises(Conflict):
        settings.write(made)
    assert (root / "pipimem.toml").read_text(encoding="utf-8") == FILE + "# more\n"


def test_the_command(root: Path) -> None:
    assert run("-w", root, "config", "get", "recall.budget").out == "800\n"
    dry = run("-w", root, "config", "set", "recall.budget", "900", "--dry-run")
    assert "-budget=800 # tokens\n+budget=900 # tokens\n" in dry.out
    assert (root / "pipimem.toml").read_text(encoding="utf-8") == FILE
    assert run("-w", root, "config", "set", "recall.budget", "900").code == 0
    env = {"PIPIMEM_RECALL_MODE": "auto"}
    rows = {row["name"]: row for row in run("-w", root, "config", "--json", env=env).json["settings"]}
    assert (rows["recall.budget"]["value"], rows["recall.budget"]["from"]) == (900, "workspace")
    assert (rows["recall.mode"]["value"], rows["recall.mode"]["from"]) == ("auto", "environment")
    assert run("-w", root, "config", "set", "recall.budget").code == 2
    assert run("-w", root, "config", "get", "nothing").code == 2
    assert json.loads(run("-w", root, "config", "unset", "recall.budget", "--json").out)["changed"]
    assert os.path.exists(root / "pipimem.toml")
