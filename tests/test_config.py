"""Settings: which of several wins, what is refused and how it is said, and what is remembered between runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipimem.config import ENVIRONMENT, KEYS, load, remember, remembered, user_file
from pipimem.errors import Unreadable, Usage
from pipimem.workspace import Workspace
from tests.conftest import run, write

OWN = [name for name, key in KEYS.items() if key.own]


def user(text: str) -> None:
    """Writes the user's own config."""
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def toml(values: Mapping[str, Any]) -> str:
    """Settings as a file says them; JSON's texts, numbers and lists are TOML's too."""
    lines = []
    for name, value in values.items():
        section, _, key = name.partition(".")
        said = (
            "{" + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()) + "}"
            if isinstance(value, dict)
            else json.dumps(value)
        )
        lines.append(f"[{section}]\n{key} = {said}\n")
    return "\n".join(lines)


def cache(root: Path) -> str:
    """Remembers the settings as an index run does; the file's path."""
    path = root / "config.json"
    path.write_bytes(remember(load(str(root)), str(root)))
    return str(path)


def test_without_any_file_every_setting_has_its_default(root: Path) -> None:
    config = load(str(root))
    assert {name: config[name] for name in KEYS} == {name: key.default for name, key in KEYS.items()}
    assert config.trusted


def test_the_environment_wins_over_the_workspace_and_that_over_the_user(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user("[recall]\nbudget = 300\nmode = 'observe'\nthreshold = 9\n[workspace]\ntimezone = 'Asia/Tokyo'\n")
    write(root, {"pipimem.toml": "[recall]\nbudget = 400\nmode = 'auto'\n"})
    monkeypatch.setenv("PIPIMEM_RECALL_BUDGET", "500")
    config = load(str(root))
    assert config["recall.budget"] == 500
    assert config["recall.mode"] == "auto"
    assert config["recall.threshold"] == 9.0
    assert config["workspace.timezone"] == "Asia/Tokyo"


def test_a_flag_wins_over_them_all(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("-w", sample, "index").code == 0
    asked = ("recall", "--always", "--json", "--channel", "ops", "部署窗口 deploy window broker")
    write(sample, {"pipimem.toml": '[recall]\nbudget = 1500\n[workspace.kinds]\nops = "group"\n'})
    wide = run("-w", sample, *asked).json["tokens"]
    monkeypatch.setenv("PIPIMEM_RECALL_BUDGET", "1400")
    narrow = run("-w", sample, *asked, "--budget", "100").json["tokens"]
    assert narrow <= 100 < wide


def test_the_user_file_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_file() == str(tmp_path / "home/.config/pipimem/config.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert user_file() == str(tmp_path / "xdg/pipimem/config.toml")
    monkeypatch.setenv("PIPIMEM_CONFIG", str(tmp_path / "own.toml"))
    assert user_file() == str(tmp_path / "own.toml")


@pytest.mark.parametrize(
    ("variable", "said", "name", "value"),
    [
        ("PIPIMEM_GIT_COMMIT", "0", "git.commit", False), ("PIPIMEM_GIT_COMMIT", "TRUE", "git.commit", True),
        ("PIPIMEM_RECALL_THRESHOLD", "2", "recall.threshold", 2.0), ("PIPIMEM_UPDATE_TRIAL_DAYS", "7", "update.trial_days", 7),
        ("PIPIMEM_WORKSPACE_LANGUAGE", "zh", "workspace.language", "zh"),
        ("PIPIMEM_WORKSPACE_CHANNELS", "频道", "workspace.channels", "频道"),
    ],
)  # fmt: skip
def test_the_environment_speaks_in_text(
    root: Path, monkeypatch: pytest.MonkeyPatch, variable: str, said: str, name: str, value: object
) -> None:
    monkeypatch.setenv(variable, said)
    assert load(str(root))[name] == value


@pytest.mark.parametrize(
    ("variable", "said"),
    [("PIPIMEM_GIT_COMMIT", "perhaps"), ("PIPIMEM_RECALL_BUDGET", "many"), ("PIPIMEM_RECALL_MODE", "loud"), ("PIPIMEM_RECALL_THRESHOLD", "nan")],
)  # fmt: skip
def test_a_wrong_word_in_the_environment_is_wrong_usage(
    root: Path, monkeypatch: pytest.MonkeyPatch, variable: str, said: str
) -> None:
    monkeypatch.setenv(variable, said)
    with pytest.raises(Usage, match=variable):
        load(str(root))


# What is refused


@pytest.mark.parametrize(
    "text", ["[recall]\nbugdet = 3\n", "[recal]\nbudget = 300\n", "budget = 300\n", "[git]\ncolour = true\n"]
)
def test_an_unknown_key_is_refused_with_the_known_ones(root: Path, text: str) -> None:
    write(root, {"pipimem.toml": text})
    done = run("-w", root, "search", "x")
    assert done.code == 2
    known = {name for name in KEYS if name not in OWN}
    assert all(name in done.err for name in known)
    assert str(root / "pipimem.toml") in done.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"[recall]\nbudget = 300\nmode = \n", "line 3"), (b"[recall]\nbudget = 300\n[recall]\n", "line 3"),
        (b"[recall]\nmode = 'auto", "line 2"), (b"[recall]\nmode = '''auto\n\n", "line 3"),
        ("[workspace]\n# 中文\ntimezone = '上海'\n".encode("gb18030"), "line 2"), (b"\xef\xbb\xbf[recall]\nbudget == 1\n", "line 2"),
    ],
)  # fmt: skip
def test_a_broken_file_is_could_not_look_and_names_the_line(root: Path, text: bytes, line: str) -> None:
    write(root, {"pipimem.toml": text})
    done = run("-w", root, "search", "x", "--json")
    assert done.code == 3, done.err
    assert line in done.err
    assert "pipimem.toml" in done.json["error"]


@pytest.mark.parametrize("name", OWN)
def test_a_workspace_cannot_set_what_only_the_user_may(root: Path, name: str) -> None:
    value = KEYS[name].default if not isinstance(KEYS[name].default, list) else ["token"]
    write(root, {"pipimem.toml": toml({name: value})})
    with pytest.raises(Usage, match="only be set in the user's own config") as caught:
        load(str(root))
    assert user_file() in caught.value.hint
    write(root, {"pipimem.toml": ""})
    user(toml({name: value}))
    assert load(str(root))[name] == value
    assert f"pipimem_{name.replace('.', '_')}" not in ENVIRONMENT


@pytest.mark.parametrize(
    "values",
    [
        {"recall.budget": 99}, {"recall.budget": 1501}, {"recall.budget": 300.5}, {"recall.budget": True}, {"recall.budget": "300"},
        {"recall.threshold": -1}, {"update.trial_days": -1}, {"git.commit": 1}, {"git.commit": "yes"},
        {"recall.mode": "loud"}, {"workspace.language": "de"}, {"workspace.kinds": {"ops": "public"}}, {"workspace.kinds": ["ops"]},
        {"workspace.kinds": {"ops": 3}}, {"workspace.projects": {"ops": ["a"]}}, {"workspace.user_in_groups": [3]},
        {"safety.patterns": "one"}, {"safety.patterns": [["a"]]}, {"workspace.format": 0}, {"workspace.timezone": 8},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_a_wrong_value_is_wrong_usage_and_named(root: Path, values: dict[str, Any]) -> None:
    write(root, {"pipimem.toml": toml(values)})
    with pytest.raises(Usage, match=next(iter(values))):
        load(str(root))


def test_values_of_every_kind_are_taken_as_written(root: Path) -> None:
    values: dict[str, Any] = {
        "workspace.kinds": {"飞书:群:研发": "group", "dm": "direct"}, "workspace.projects": {"ops": "港口"}, "recall.threshold": 3,
        "workspace.user_in_groups": ["飞书:群:研发"], "git.commit": False, "workspace.format": 1,
    }  # fmt: skip
    for name, value in values.items():
        write(root, {"pipimem.toml": "\ufeff" + toml({name: value})})
        assert load(str(root))[name] == value


def test_a_workspace_adds_its_patterns_and_takes_none_of_the_users_away(root: Path) -> None:
    user('[safety]\npatterns = ["heron-\\\\d+"]\n')
    write(root, {"pipimem.toml": '[safety]\npatterns = ["鹭-\\\\d+"]\n'})
    assert load(str(root))["safety.patterns"] == [r"heron-\d+", r"鹭-\d+"]


def test_a_file_that_is_no_file_stops_nobody_for_ever(root: Path) -> None:
    os.mkfifo(root / "pipimem.toml")
    with pytest.raises(Unreadable, match="no regular file"):
        load(str(root))
    (root / "pipimem.toml").unlink()
    (root / "pipimem.toml").mkdir()
    with pytest.raises(Unreadable):
        load(str(root))


def test_a_format_from_the_future_is_read_and_never_written(root: Path) -> None:
    write(root, {"pipimem.toml": "[workspace]\nformat = 2\n", "channels/ops/MEMORY.md": "- 部署窗口\n"})
    assert Workspace(str(root)).read("channels/ops/MEMORY.md")
    done = run("-w", root, "add", "--channel", "ops", "Heron is the pool")
    assert done.code == 4
    assert "format 2" in done.err


# What is remembered


def test_what_is_remembered_is_what_would_be_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user("[recall]\nbudget = 300\n")
    write(root, {"pipimem.toml": '[workspace.kinds]\n"飞书:研发" = "group"\n'})
    monkeypatch.setenv("PIPIMEM_RECALL_MODE", "full")
    config = remembered(str(root), cache(root))
    assert not config.trusted
    assert config.values == load(str(root)).values


@pytest.mark.parametrize("what", ["workspace", "user", "environment", "unset", "appears", "goes", "another user file"])
def test_what_is_remembered_is_dropped_when_its_source_changes(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    write(root, {"pipimem.toml": "[recall]\nbudget = 300\n"})
    if what != "appears":
        user("[recall]\nthreshold = 1\n")
    monkeypatch.setenv("PIPIMEM_RECALL_MODE", "full")
    path = cache(root)
    assert not remembered(str(root), path).trusted
    stamp = (root / "pipimem.toml").stat()
    match what:
        case "workspace":
            write(root, {"pipimem.toml": "[recall]\nbudget = 400\n"})
            os.utime(root / "pipimem.toml", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        case "user" | "appears":
            user("[recall]\nthreshold = 2\n")
        case "environment":
            monkeypatch.setenv("PIPIMEM_RECALL_MODE", "observe")
        case "unset":
            monkeypatch.delenv("PIPIMEM_RECALL_MODE")
        case "goes":
            Path(user_file()).unlink()
        case _:
            monkeypatch.setenv("PIPIMEM_CONFIG", str(tmp_path / "other.toml"))
    config = remembered(str(root), path)
    assert config.trusted
    assert config.values == load(str(root)).values


def test_what_only_the_user_may_set_never_comes_from_the_cache(root: Path) -> None:
    user('[safety]\nallow = ["example-token"]\n[git]\nouter = true\nauthor = "Ines <i@x.example>"\n')
    path = Path(cache(root))
    stored = json.loads(path.read_bytes())
    assert not set(OWN) & set(stored["values"])
    stored["values"].update(
        {name: ["everything"] if isinstance(KEYS[name].default, list) else KEYS[name].default for name in OWN}
    )
    path.write_text(json.dumps(stored))
    config = remembered(str(root), str(path))
    assert {name: config[name] for name in OWN} == {name: KEYS[name].default for name in OWN}
    workspace = Workspace(str(root), config)
    workspace.trust()
    assert workspace.config["safety.allow"] == ["example-token"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", '{"signature": 3}', '{"signature": "x", "values": {}}', "\xff"]
)
def test_a_damaged_memory_of_the_settings_is_not_used(root: Path, text: str) -> None:
    write(root, {"pipimem.toml": "[recall]\nbudget = 400\n", "config.json": text.encode("latin-1")})
    config = remembered(str(root), str(root / "config.json"))
    assert config.trusted
    assert config["recall.budget"] == 400


def test_an_unknown_name_in_the_memory_of_the_settings_is_not_used(root: Path) -> None:
    path = Path(cache(root))
    stored = json.loads(path.read_bytes())
    stored["values"]["recall.volume"] = 11
    path.write_text(json.dumps(stored))
    assert remembered(str(root), str(path)).trusted
