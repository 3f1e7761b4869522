"""Installing into hosts: what is theirs stays to the byte, twice is once, and what was put in comes out again."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pipimem
from pipimem import cli, hooks, installing
from pipimem.errors import Conflict, Unreadable
from pipimem.installing import HOSTS, Wish, changes
from tests.conftest import run, write

WISH = Wish("claude", "/project", channel="dm:顾念", update="turn")
OWN = '[recall]\nmode = "auto"\n[workspace.projects]\nops = "shop 店"\n'


class Done(NamedTuple):
    """What the command did."""

    code: int
    out: str
    err: str


Install = Callable[..., Done]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Install:
    """`pipimem install` in a folder, in this process."""

    def done(folder: Path, *arguments: str) -> Done:
        monkeypatch.chdir(folder)
        code = cli.main(["install", *arguments])
        return Done(code, *capsys.readouterr())

    return done


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop 店"
    write(folder, {"pipimem.toml": OWN, "channels/ops/MEMORY.md": "# M\n"})
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    """Files with their bytes, and folders; pipimem's own record of what it made aside."""
    found = {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*"))}
    return {name: p.read_bytes() if p.is_file() else b"/" for name, p in found.items() if ".config" not in name}


THEIRS = {
    ".claude/settings.json": '{\n    "permissions": {"allow": ["Bash(ls)"]},\n    "autoMemoryEnabled": true,\n'
    '    "hooks": {\n        "Stop": [{"hooks": [{"type": "command", "command": "say 好了"}]}],\n'
    '        "SessionStart": [\n            {"hooks": [{"type": "command", "command": "date"}]}\n        ]\n    }\n}\n',
    ".mcp.json": '\ufeff{"mcpServers":{"other":{"command":"x","args":[]}}}',
    ".codex/hooks.json": '{\r\n\t"hooks": {\r\n\t\t"Stop": []\r\n\t}\r\n}\r\n',
    ".codex/config.toml": '# 我的设置\nmodel = "gpt-5"   # fast\n\n[mcp_servers.other]\ncommand = "x"\n\n'
    "[features]\nhooks = true\n",
    ".cursor/mcp.json": '{\n "mcpServers": {}\n}\n',
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("theirs", [True, False], ids=["beside theirs", "alone"])
def test_what_is_put_in_comes_out_to_the_byte_and_twice_changes_nothing(
    install: Install, project: Path, host: str, theirs: bool, tmp_path: Path
) -> None:
    if theirs:
        write(project, {**THEIRS})
        write(tmp_path / "home", {".openclaw/openclaw.json": '{"memory": {"backend": "builtin"}}\n'})
    before = everything(project), everything(tmp_path / "home")
    shown = install(project, host, "--update", "turn", "--channel", "ops", "--dry-run")
    assert (shown.code, everything(project)) == (0, before[0])
    done = install(project, host, "--update", "turn", "--channel", "ops")
    assert (done.code, done.out) == (0, shown.out)
    assert "+" in done.out
    assert done.err == installing.NEXT[host] + "\n"
    between = everything(project), everything(tmp_path / "home")
    assert between != before
    again = install(project, host, "--update", "turn", "--channel", "ops")
    assert (again.code, again.out) == (0, "Nothing to do.\n")
    assert everything(project) == between[0]
    assert install(project, host, "--remove").code == 0
    assert (everything(project), everything(tmp_path / "home")) == before
    assert json.loads((tmp_path / "home/.config/pipimem/installed.json").read_text()) == {}
    assert install(project, host, "--remove").out == "Nothing to do.\n"


def test_a_remark_before_the_next_table_of_codex_stays(install: Install, project: Path) -> None:
    install(project, "codex")
    path, theirs = project / ".codex/config.toml", '\n# 关于检查服务器，别丢\n[mcp_servers.linter]\ncommand = "lint"\n'
    alone = path.read_text("utf-8")
    path.write_text(f"model = 'x'\n\n{alone}{theirs}", "utf-8")
    assert install(project, "codex", "--remove").code == 0
    assert path.read_text("utf-8") == f"model = 'x'\n{theirs}"


def test_what_a_person_added_to_our_table_of_codex_stays_when_it_is_written_again(
    install: Install, project: Path
) -> None:
    mine = (
        "# my remark\n[mcp_servers.pipimem]\n# slow disk\ncommand = 'old' # 旧的\nstartup_timeout_sec = 30\n\n"
        "[mcp_servers.pipimem.env]\nPIPIMEM_CONFIG = '/x/y.toml'\n\n# my other server, keep it\n[mcp_servers.other]\ncommand = 'x'\n"
    )
    write(project, {".codex/config.toml": mine})
    assert install(project, "codex").code == 0
    text = (project / ".codex/config.toml").read_text("utf-8")
    assert text.count("[mcp_servers.pipimem]") == 1
    assert set(re.findall(r"#.*", mine)) <= set(re.findall(r"#.*", text))
    ours = tomlkit.parse(text).unwrap()["mcp_servers"]["pipimem"]
    assert (ours["startup_timeout_sec"], ours["env"]) == (30, {"PIPIMEM_CONFIG": "/x/y.toml"})
    assert {"command": ours["command"], "args": ours["args"]} == installing.server(Wish("codex", str(project)))
    assert install(project, "codex").out == "Nothing to do.\n"
    assert install(project, "codex", "--remove").code == 0
    text = (project / ".codex/config.toml").read_text("utf-8")
    assert text == "# my remark\n\n# my other server, keep it\n[mcp_servers.other]\ncommand = 'x'\n"


def test_what_a_person_added_to_our_entries_in_json_stays(install: Install, project: Path) -> None:
    install(project, "claude")
    servers, settings = project / ".mcp.json", project / ".claude/settings.json"
    value = json.loads(servers.read_text("utf-8"))
    value["mcpServers"]["pipimem"] |= {"env": {"A": "值"}, "timeout": 60, "command": "old"}
    servers.write_text(json.dumps(value), "utf-8")
    groups = json.loads(settings.read_text("utf-8"))
    prompt = groups["hooks"]["UserPromptSubmit"][0]
    prompt["hooks"][0]["timeout"] = 3
    prompt["hooks"].append({"type": "command", "command": "my-own.sh"})
    groups["hooks"]["SessionStart"][0]["matcher"] = "startup"
    settings.write_text(json.dumps(groups), "utf-8")
    assert install(project, "claude", "--channel", "ops").code == 0
    ours = json.loads(servers.read_text("utf-8"))["mcpServers"]["pipimem"]
    assert (ours["env"], ours["timeout"], ours["command"]) == ({"A": "值"}, 60, installing.program()[0])
    now = json.loads(settings.read_text("utf-8"))["hooks"]
    (group,) = now["UserPromptSubmit"]
    assert [h["command"] for h in group["hooks"]][1:] == ["my-own.sh"]
    assert group["hooks"][0]["timeout"] == 3
    assert "--channel ops" in group["hooks"][0]["command"]
    assert now["SessionStart"][0]["matcher"] == "startup"
    assert install(project, "claude", "--remove").code == 0
    left = json.loads(settings.read_text("utf-8"))["hooks"]
    assert left == {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "my-own.sh"}]}]}


def test_claude_is_told_of_reading_events_and_with_update_of_writing_ones(install: Install, project: Path) -> None:
    def events() -> dict[str, list[str]]:
        table = json.loads((project / ".claude/settings.json").read_text("utf-8"))["hooks"]
        return {e: [h["command"] for g in groups for h in g["hooks"]] for e, groups in table.items()}

    write(project, {".claude/settings.json": THEIRS[".claude/settings.json"]})
    install(project, "claude")
    assert list(events()) == ["Stop", "SessionStart", "UserPromptSubmit", "SubagentStart"]
    install(project, "claude", "--update", "turn")
    assert list(events())[4:] == ["PreCompact", "PostCompact", "SessionEnd"]
    assert len(events()["Stop"]) == 2
    install(project, "claude", "--update", "session", "--channel", "ops")
    assert events()["Stop"] == ["say 好了"]
    assert events()["SessionStart"][0] == "date"
    assert len(events()["SessionStart"]) == 2
    for commands in events().values():
        for command in commands[-1:]:
            words = shlex.split(command)
            assert words[-2:] == ["--channel", "ops"] or command == "say 好了"
    settings = json.loads((project / ".claude/settings.json").read_text("utf-8"))
    assert settings["autoMemoryEnabled"] is True
    server = json.loads((project / ".mcp.json").read_text("utf-8"))["mcpServers"]["pipimem"]
    assert server["args"][-3:] == ["mcp", "--channel", "ops"]
    assert "--write" not in server["args"]


def test_every_event_installed_is_one_the_hook_command_knows_and_codex_gets_only_its_own() -> None:
    assert hooks.GIVING == installing.READING
    for host in ("claude", "codex"):
        for update in ("", "session", "turn"):
            found = installing.commands(Wish(host, "/p", update=update))
            assert set(found) <= set(hooks.EVENTS)
            assert all(shlex.split(c)[-4:] == ["hook", e, "--host", host] for e, c in found.items())
    known = {"SessionStart", "UserPromptSubmit", "PreCompact", "Stop"}
    assert set(installing.commands(Wish("codex", "/p", update="turn"))) == known


def test_a_workspace_elsewhere_stands_in_the_commands_and_user_settings_are_the_hosts_own(
    install: Install, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "code"
    other.mkdir()
    assert install(other, "claude").code == 3
    done = run("-w", project, "install", "claude", "--user", "--channel", "ops", cwd=other)
    assert done.code == 0
    home = tmp_path / "home"
    command = json.loads((home / ".claude/settings.json").read_text("utf-8"))["hooks"]["SessionStart"][0]["hooks"][0]
    assert shlex.split(command["command"])[-8:] == [
        "-w", str(project), "hook", "SessionStart", "--host", "claude", "--channel", "ops",
    ]  # fmt: skip
    assert json.loads((home / ".claude.json").read_text("utf-8"))["mcpServers"]["pipimem"]["args"][-4:-2] == [
        str(project), "mcp",
    ]  # fmt: skip
    assert list(other.iterdir()) == []
    given = run("hook", "SessionStart", stdin='{"source": "startup"}', cwd=other)
    assert given.out == "{}\n"


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        (".claude/settings.json", '{\n  // 注释\n  "hooks": {}\n}\n', "line 2 is no plain JSON"),
        (".claude/settings.json", '{"hooks": []}', "'hooks' is no object of lists"),
        (".claude/settings.json", '{"hooks": {"Stop": {}}}', "'hooks' is no object of lists"),
        (".claude/settings.json", "[]", "no JSON object"),
        (".claude/settings.json", '{"a": 1, "a": 2}', "the key 'a' stands twice"),
        (".mcp.json", '{"mcpServers": 5}', "'mcpServers' is no object"),
        (".codex/config.toml", "a = \n", "no valid TOML"),
        (".codex/config.toml", "mcp_servers = 5\n", "'mcp_servers' is no table"),
        (".codex/config.toml", 'mcp_servers = {other = {command = "x"}}\n', "is left as it is"),
        (".mcp.json", "\udcff", "is left as it is"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_and_what_to_write_is_shown(
    install: Install, project: Path, path: str, text: str, why: str
) -> None:
    data = text.encode("utf-8", "surrogateescape")
    write(project, {path: data})
    done = install(project, "codex" if "codex" in path else "claude")
    assert done.code == 4
    assert why in done.err
    assert "Write this into it yourself:" in done.err
    assert '"pipimem"' in done.err or "SessionStart" in done.err
    assert (project / path).read_bytes() == data
    assert not (project / ".claude/settings.json").exists() or "settings" in path


def test_comments_order_and_odd_layout_of_toml_stay(install: Install, project: Path) -> None:
    text = THEIRS[".codex/config.toml"] + "\n# 结尾\n"
    write(project, {".codex/config.toml": text})
    install(project, "codex")
    after = (project / ".codex/config.toml").read_text("utf-8")
    assert after.startswith(text)
    assert tomlkit.parse(after).unwrap()["mcp_servers"]["pipimem"]["args"][-1] == "mcp"
    moved = after.replace("[mcp_servers.other]", "[mcp_servers.before]\ncommand = 'y' # 留\n\n[mcp_servers.other]")
    write(project, {".codex/config.toml": moved + "\n[later]\nx = 1 # 后\n"})
    install(project, "codex", "--remove")
    left = (project / ".codex/config.toml").read_text("utf-8")
    assert "pipimem" not in left
    assert all(word in left for word in ("# 我的设置", "# 留", "# 后", "# 结尾", "# fast"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["Stop", "SessionStart", "别的"]), st.lists(st.sampled_from(
        [{"hooks": [{"type": "command", "command": "date"}]}, {"matcher": "x", "hooks": []}, {}, 5, "pipimem hook"]
    ), min_size=1, max_size=3), max_size=3),
    st.sampled_from([None, 2, 4]), st.sampled_from(["", "session", "turn"]),
)  # fmt: skip
def test_whatever_hooks_others_have_are_theirs_after_installing_and_removing(
    tmp_path: Path, theirs: dict[str, Any], indent: int | None, update: str
) -> None:
    folder = tmp_path / "p"
    text = json.dumps({"a": 1, **({"hooks": theirs} if theirs else {})}, indent=indent, ensure_ascii=False)
    write(folder, {".claude/settings.json": text})
    wish = Wish("claude", str(folder), update=update, channel="ops")
    installing.write(changes(wish, os.environ))
    assert changes(wish, os.environ) == []
    table = json.loads((folder / ".claude/settings.json").read_text("utf-8"))["hooks"]
    assert {k: v[: len(theirs[k])] for k, v in table.items() if k in theirs} == theirs
    installing.write(changes(wish, os.environ, remove=True))
    assert (folder / ".claude/settings.json").read_text("utf-8") == text
    assert not (folder / ".mcp.json").exists()


def test_a_file_changed_since_it_was_read_is_not_overwritten(tmp_path: Path) -> None:
    found = changes(Wish("cursor", str(tmp_path)), os.environ)
    write(tmp_path, {".cursor/mcp.json": "{}"})
    with pytest.raises(Conflict, match="has changed"):
        installing.write(found)
    assert (tmp_path / ".cursor/mcp.json").read_text() == "{}"


def test_a_link_is_written_through_and_the_mode_stays(tmp_path: Path) -> None:
    write(tmp_path, {"dotfiles/mcp.json": "{}\n"})
    (tmp_path / "dotfiles/mcp.json").chmod(0o600)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").symlink_to(tmp_path / "dotfiles/mcp.json")
    installing.write(changes(Wish("cursor", str(tmp_path)), os.environ))
    assert (tmp_path / ".cursor/mcp.json").is_symlink()
    assert "pipimem" in (tmp_path / "dotfiles/mcp.json").read_text()
    assert stat.S_IMODE((tmp_path / "dotfiles/mcp.json").stat().st_mode) == 0o600


def test_without_the_record_of_what_was_made_only_ours_goes(tmp_path: Path) -> None:
    wish = Wish("claude", str(tmp_path))
    installing.write(changes(wish, os.environ))
    (tmp_path / "home/.config/pipimem/installed.json").unlink()
    installing.write(changes(wish, os.environ, remove=True))
    assert "pipimem" not in (tmp_path / ".mcp.json").read_text()
    assert set(json.loads((tmp_path / ".claude/settings.json").read_text())) <= {"hooks"}


def test_hooks_that_write_need_a_channel_and_a_channel_that_is_there(install: Install, project: Path) -> None:
    write(project, {"pipimem.toml": OWN.replace("shop 店", "else")})
    done = install(project, "claude", "--update", "session")
    assert done.code == 2
    assert "--channel" in done.err
    assert install(project, "claude", "--channel", "nowhere").code == 3
    assert not (project / ".claude").exists()


def test_a_place_that_cannot_be_read_or_written_says_why(tmp_path: Path) -> None:
    write(tmp_path, {"a/.cursor": "no folder\n", "b/.cursor/mcp.json/inner": ""})
    for name in "ab":
        with pytest.raises(Unreadable, match=r"\.cursor/mcp\.json' cannot be read"):
            changes(Wish("cursor", str(tmp_path / name)), os.environ)


PLUGINS = Path(__file__).parents[1] / "templates" / "hosts"


def test_the_plug_ins_hold_what_install_writes_and_name_files_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "program", lambda: ["pipimem"])
    for host, place in (("claude", "claude/hooks/hooks.json"), ("codex", "codex/hooks.json")):
        wish = Wish(host, "")
        table = json.loads((PLUGINS / place).read_text())["hooks"]
        assert table == {event: [group] for event, group in installing.hooks(wish).items()}
        assert json.loads((PLUGINS / host / ".mcp.json").read_text()) == {
            "mcpServers": {"pipimem": installing.server(wish)}
        }
        manifest = json.loads((PLUGINS / host / f".{host}-plugin/plugin.json").read_text())
        assert (manifest["name"], manifest["version"]) == ("pipimem", pipimem.__version__)
        for value in manifest.values():
            assert not (isinstance(value, str) and value.startswith("./")) or (PLUGINS / host / value).exists()
    for name in (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"):
        (plugin,) = json.loads((PLUGINS / name).read_text())["plugins"]
        source = plugin["source"] if isinstance(plugin["source"], str) else plugin["source"]["path"]
        assert (PLUGINS / source).is_dir()


def test_the_skill_and_the_commands_name_only_commands_and_options_there_are() -> None:
    from pipimem.cli import COMMANDS

    pages = sorted(PLUGINS.rglob("*.md"))
    assert len(pages) == 4
    assert len({p.read_bytes() for p in pages if p.name == "SKILL.md"}) == 1
    for page in pages:
        text = page.read_text("utf-8")
        assert text.startswith("---\n")
        named = set(re.findall(r"pipimem ([a-z][a-z-]*)(?=[ :`])", text.replace("`pipimem`", "")))
        assert named
        assert named <= {*COMMANDS}, page


def test_a_host_without_a_project_folder_is_told_the_workspace(install: Install, project: Path, tmp_path: Path) -> None:
    assert install(project, "openclaw").code == 0
    server = json.loads((tmp_path / "home/.openclaw/openclaw.json").read_text("utf-8"))["mcp"]["servers"]["pipimem"]
    assert server["args"][-3:] == ["-w", str(project), "mcp"]
