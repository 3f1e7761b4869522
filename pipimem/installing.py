"""Putting hooks and the MCP server where an agent host looks for them, and taking them out again.

Only what is ours is added, changed or removed; every other byte of a host's files stays, comments of TOML included, and
JSON that is not plain is refused with what to write by hand. The host's own memory is never switched off. What a hook
answers is hooks.py's.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipimem import jsontext
from pipimem.config import user_file
from pipimem.errors import Conflict, Refused, Unreadable
from pipimem.files import Change, read_regular, reason, write_private
from pipimem.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NAME = "pipimem"
HOSTS = ("claude", "codex", "cursor", "openclaw")
READING = {
    "claude": ("SessionStart", "UserPromptSubmit", "SubagentStart"),
    "codex": ("SessionStart", "UserPromptSubmit"),
}
WRITING = {
    "session": {"claude": ("PreCompact", "PostCompact", "SessionEnd"), "codex": ("PreCompact",)},
    "turn": {"claude": ("PreCompact", "PostCompact", "Stop", "SessionEnd"), "codex": ("PreCompact", "Stop")},
}
TABLE = re.compile(r"[ \t]*\[")
OURS = re.compile(rf"[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*{NAME}[ \t]*(?:\.|\])")
MATCHERS = {"SessionStart": "startup|resume|clear|compact"}
TIMEOUT = 10
"""Seconds a host waits for a hook; one ends by itself after five."""
NEXT = {
    "claude": "Start a new session; '/hooks' and '/mcp' show what is there.",
    "codex": "Run 'codex features enable hooks', then start a new session.",
    "cursor": "Enable the server under Settings > MCP.",
    "openclaw": "Restart the gateway.",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What to install: for which host, for the project in `folder` or (`user`) for all, with which update.

    `workspace` ("" where the host finds it by its folder) and `channel` stand in every command.
    """

    host: str
    folder: str
    user: bool = False
    update: str = ""
    workspace: str = ""
    channel: str = ""


def changes(wish: Wish, environ: Mapping[str, str], *, remove: bool = False) -> list[Change]:
    """What would be written: whole texts of files, before and after; none where all is as wished.

    Raises `Refused` for a file that cannot be edited safely, with what to write by hand.
    """
    found = []
    for path, kind in _files(wish, environ):
        before = _read(path)
        after = _edited(wish, path, kind, before, remove=remove)
        if after != before:
            found.append(Change(path, before, after))
    return found


def write(found: Sequence[Change]) -> None:
    """Writes the changes, each only on the bytes that were read, and notes what was made for `remove`.

    Raises `Conflict` or `Refused`; what was written before it stays, and is what was shown.
    """
    for change in found:
        path = os.path.realpath(change.path)
        if _read(path) != change.before:
            raise Conflict(f"'{printable(change.path)}' has changed since it was read.", "Run the command again.")
        folder = os.path.dirname(path)
        fresh = not os.path.isdir(folder)
        try:
            if change.after is None:
                os.unlink(path)
            else:
                os.makedirs(folder, exist_ok=True)
                mode = stat.S_IMODE(os.stat(path).st_mode) if change.before is not None else 0o644
                write_private(path, change.after, mode)
        except OSError as error:
            raise Refused(f"'{printable(change.path)}' could not be written: {reason(error)}.", "") from None
        _note_made(path, change, fresh=fresh)


def commands(wish: Wish) -> dict[str, str]:
    """The command of every event the host is to tell us, in order."""
    events = (*READING.get(wish.host, ()), *WRITING.get(wish.update, {}).get(wish.host, ()))
    tail = ["--channel", wish.channel] if wish.channel else []
    before = ["-w", wish.workspace] if wish.workspace else []
    return {
        event: shlex.join([*program(), *before, "hook", event, "--host", wish.host, *tail]) for event in events
    }  # fmt: skip


def hooks(wish: Wish) -> dict[str, dict[str, Any]]:
    """Event → the group that stands in the host's list of hooks."""
    return {
        event: {
            **({"matcher": MATCHERS[event]} if event in MATCHERS else {}),
            "hooks": [{"type": "command", "command": command, "timeout": TIMEOUT}],
        }
        for event, command in commands(wish).items()
    }


def server(wish: Wish) -> dict[str, Any]:
    """How the host starts the MCP server, which only reads."""
    first, *rest = program()
    before = ["-w", wish.workspace] if wish.workspace else []
    tail = ["--channel", wish.channel] if wish.channel else []
    return {"command": first, "args": [*rest, *before, "mcp", *tail]}


def program() -> list[str]:
    """How pipimem is started: by its name where the shell finds it, else by this interpreter.

    With -P no file of the project's folder is taken for a module.
    """
    return [NAME] if shutil.which(NAME) else [sys.executable, "-P", "-m", NAME]


def by_hand(wish: Wish, kind: str) -> str:
    """What to write into a file of that kind oneself, in its own notation."""
    if kind == "toml":
        return "\n".join(_block(server(wish)))
    value: dict[str, Any] = {NAME: server(wish)}
    for key in reversed(kind.split("/")):
        value = {key: value}
    if kind == "hooks":
        value = {"hooks": {event: [group] for event, group in hooks(wish).items()}}
    return json.dumps(value, indent=2, ensure_ascii=False)


# Which files


def _files(wish: Wish, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The files of a host, and what stands in each: hooks, or the table of servers at that path."""
    home = environ.get("HOME") or os.path.expanduser("~")
    here = wish.folder
    if wish.host == "claude":
        own = environ.get("CLAUDE_CONFIG_DIR")
        settings = os.path.join(own or os.path.join(home, ".claude"), "settings.json")
        servers = os.path.join(own or home, ".claude.json")
        if not wish.user:
            settings, servers = os.path.join(here, ".claude", "settings.json"), os.path.join(here, ".mcp.json")
        return [(settings, "hooks"), (servers, "mcpServers")]
    if wish.host == "codex":
        base = (
            (environ.get("CODEX_HOME") or os.path.join(home, ".codex")) if wish.user else os.path.join(here, ".codex")
        )
        return [(os.path.join(base, "hooks.json"), "hooks"), (os.path.join(base, "config.toml"), "toml")]
    if wish.host == "cursor":
        return [(os.path.join(home if wish.user else here, ".cursor", "mcp.json"), "mcpServers")]
    base = environ.get("OPENCLAW_STATE_DIR") or os.path.join(home, ".openclaw")
    return [(environ.get("OPENCLAW_CONFIG_PATH") or os.path.join(base, "openclaw.json"), "mcp/servers")]


def _read(path: str) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = reason(error, reading=True)
        raise Unreadable(f"'{printable(path)}' cannot be read: {why}.", "Check the file.") from None


# What stands in them


def _edited(wish: Wish, path: str, kind: str, before: bytes | None, *, remove: bool) -> bytes | None:
    if before is None and remove:
        return None
    try:
        text = (before or b"").decode("utf-8")
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = text[len(mark) :]
        made = _made(path) if remove else []
        toml = kind == "toml"
        text = _toml(text, wish, remove=remove) if toml else _json(text, kind, wish, made, remove=remove)
    except (ValueError, RecursionError) as error:
        told = "Take ours out yourself." if remove else f"Write this into it yourself:\n{by_hand(wish, kind)}"
        raise Refused(f"'{printable(path)}' is left as it is: {error}.", told) from None
    if remove and [] in made and text.strip() in ("", "{}"):
        return None  # the file itself was ours
    return (mark + text).encode("utf-8")


def _json(text: str, kind: str, wish: Wish, made: list[list[str]], *, remove: bool) -> str:
    done = text if text.strip() else "{}\n"
    value = jsontext.load(done)
    if not isinstance(value, dict):
        raise ValueError("it holds no JSON object")
    if kind == "hooks":
        done = _set_hooks(done, {} if remove else hooks(wish))
    else:
        done = _set_server(done, kind.split("/"), None if remove else server(wish))
    for path in sorted(made, key=len, reverse=True):
        if path and _at(jsontext.load(done), path) in ({}, []):
            done = jsontext.drop(done, path)
    return text if jsontext.load(done) == value and text.strip() else done


def _set_server(text: str, path: list[str], wanted: dict[str, Any] | None) -> str:
    value = jsontext.load(text)
    table = _at(value, path)
    if table is not None and not isinstance(table, dict):
        raise ValueError(f"'{'.'.join(path)}' is no object")
    there = (table or {}).get(NAME)
    if wanted is None:
        return text if there is None else jsontext.drop(text, [*path, NAME])
    if not isinstance(there, dict):
        return jsontext.put(text, [*path, NAME], wanted)
    for key in (key for key in wanted if there.get(key) != wanted[key]):  # what else stands there is the person's
        text = jsontext.put(text, [*path, NAME, key], wanted[key])
    return text


def _set_hooks(text: str, wanted: dict[str, dict[str, Any]]) -> str:
    """The hooks wished for, each event's command in the place of ours; ours of other events go.

    What a person made of a group of ours, another matcher or time or a hook beside it, stays.
    """
    table = jsontext.load(text).get("hooks", {})
    if not isinstance(table, dict) or not all(isinstance(groups, list) for groups in table.values()):
        raise ValueError("'hooks' is no object of lists")
    for event in dict.fromkeys([*table, *wanted]):
        groups = table.get(event, [])
        ours = [(n, at) for n, group in enumerate(groups) for at in _ours(group)]
        for n, at in reversed(ours[1:] if event in wanted else ours):
            alone = len(_at(jsontext.load(text), ["hooks", event])[n]["hooks"]) == 1
            text = jsontext.drop(text, ["hooks", event, n] if alone else ["hooks", event, n, "hooks", at])
        if event not in wanted:
            continue
        if not ours and event in table:
            text = jsontext.put(text, ["hooks", event, len(groups)], wanted[event])
        elif not ours:
            text = jsontext.put(text, ["hooks", event], [wanted[event]])
        else:
            n, at = ours[0]
            command = wanted[event]["hooks"][0]["command"]
            if groups[n]["hooks"][at]["command"] != command:
                text = jsontext.put(text, ["hooks", event, n, "hooks", at, "command"], command)
    return text


def _ours(group: object) -> list[int]:
    """Which hooks of a group are ours."""
    found = group.get("hooks") if isinstance(group, dict) else None
    hooks = found if isinstance(found, list) else []
    return [n for n, hook in enumerate(hooks) if isinstance(hook, dict) and _is_our_command(hook.get("command"))]


def _is_our_command(command: object) -> bool:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    before = words[: words.index("hook")] if "hook" in words else []
    return "--host" in words and any(os.path.basename(word) == NAME for word in before)


def _at(value: Any, path: Iterable[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _toml(text: str, wish: Wish, *, remove: bool) -> str:
    """Codex's table of servers: ours is one block of text, put at the end and cut out again.

    Of a table that is there already only our own keys are set.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        value = tomlkit.parse(text).unwrap()
    except TOMLKitError as error:
        raise ValueError(f"it is no valid TOML ({str(error).rstrip('.')})") from None
    table = value.get("mcp_servers", {})
    if not isinstance(table, dict):
        raise ValueError("'mcp_servers' is no table")
    wanted = None if remove else server(wish)
    there = table.get(NAME)
    if there is None and wanted is None:
        return text
    if wanted is None:
        done = _without_table(text)
    elif isinstance(there, dict):
        wanted = {**there, **wanted}
        document: Any = tomlkit.parse(text)
        for key in (key for key in wanted if there.get(key) != wanted[key]):
            document["mcp_servers"][NAME][key] = wanted[key]
        done = document.as_string()
    else:
        line = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text.strip() else line if text.endswith("\n") else line * 2
        done = text + gap + line.join(_block(wanted))
    _check_toml(value, done, wanted)
    return done


def _block(wanted: Mapping[str, Any]) -> list[str]:
    """The lines of our table, the last one empty."""
    words = ", ".join(json.dumps(word, ensure_ascii=False) for word in wanted["args"])
    return [f"[mcp_servers.{NAME}]", f"command = {json.dumps(wanted['command'])}", f"args = [{words}]", ""]


def _without_table(text: str) -> str:
    """The text without our table and those below it, to the byte as it was where we put it.

    Comments that stand before the next table are that one's.
    """
    rows = text.splitlines(keepends=True)
    heads = [n for n, row in enumerate(rows) if TABLE.match(row)]
    for start, end in reversed(list(pairwise([*heads, len(rows)]))):
        if OURS.match(rows[start]):
            last = max(n for n in range(start, end) if rows[n].strip() and not rows[n].lstrip().startswith("#"))
            apart = start > 0 and not rows[start - 1].strip() and not "".join(rows[last + 1 : last + 2]).strip()
            del rows[start - apart : last + 1]
    return "".join(rows)


def _check_toml(before: dict[str, Any], after: str, wanted: dict[str, Any] | None) -> None:
    """Raises `ValueError` unless nothing but our table differs."""
    import tomlkit

    others = {k: v for k, v in before.get("mcp_servers", {}).items() if k != NAME}
    found = tomlkit.parse(after).unwrap()
    servers = found.pop("mcp_servers", {})
    rest = {k: v for k, v in before.items() if k != "mcp_servers"}
    if servers.pop(NAME, None) != wanted or servers != others or found != rest:
        raise ValueError("it could not be edited safely")


# What was made, so that it can be taken out again


def _record() -> str:
    return os.path.join(os.path.dirname(user_file()), "installed.json")


def _made_all() -> dict[str, Any]:
    try:
        with open(_record(), "rb") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _made(path: str) -> list[list[str]]:
    """The objects and lists that were made in a file (an empty path: the file itself)."""
    found = _made_all().get(os.path.realpath(path), [])
    return [p for p in found if isinstance(p, list) and all(isinstance(key, str) for key in p)]


def _note_made(path: str, change: Change, *, fresh: bool) -> None:
    """Remembers what of a file, or its folder (`fresh`), had not been there; forgets it once that is gone again."""
    known = _made_all()
    folder = os.path.dirname(path)
    if fresh:
        known[folder] = [[]]
    elif change.after is None and folder in known and not os.listdir(folder):
        os.rmdir(folder)
        del known[folder]
    made = known.get(path, [])
    if change.before is None:
        made = [[]]
    if change.after is not None and path.endswith(".json"):
        old = jsontext.load((change.before or b"{}").decode("utf-8-sig") or "{}")
        new = jsontext.load(change.after.decode("utf-8-sig"))
        made = [p for p in [*made, *(p for p in _containers(new) if _at(old, p) is None)] if _at(new, p) is not None]
    known[path] = list({tuple(p): p for p in made}.values())
    if change.after is None or not known[path]:
        del known[path]
    try:
        os.makedirs(os.path.dirname(_record()), exist_ok=True)
        write_private(_record(), json.dumps(known, ensure_ascii=False, indent=1).encode("utf-8"))
    except OSError:
        return  # then an empty object may stay when ours is taken out


def _containers(value: dict[str, Any]) -> list[list[str]]:
    """The paths of objects and lists in which ours may stand."""
    table = value.get("hooks")
    events = [["hooks", event] for event in table] if isinstance(table, dict) else []
    found = [["hooks"], *events, ["mcpServers"], ["mcp"], ["mcp", "servers"]]
    return [path for path in found if isinstance(_at(value, path), dict | list)]
