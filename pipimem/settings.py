"""Settings for a person: what they are and where from, and one of them changed in its file, all else as it stands.

What keys there are, and which values they take, is config.py's. The file is edited by tomlkit, and read back: nothing
but the one setting may say anything else afterwards.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipimem import config
from pipimem.config import FILE, KEYS, Key
from pipimem.errors import Conflict, Refused, Usage
from pipimem.files import Change, reason, write_private
from pipimem.text import nearest, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its value in effect, and where that is from (default, user, workspace, both, or environment)."""

    name: str
    value: Any
    origin: str
    key: Key


def listed(root: str) -> list[Setting]:
    """Every setting of a workspace, in the order of the reference."""
    values = config.load(root)
    theirs, ours = config.stated(config.user_file(), own=True), config.stated(os.path.join(root, FILE), own=False)
    named = {name for variable, name in config.ENVIRONMENT.items() if variable.upper() in os.environ}
    return [Setting(name, values[name], _origin(name, theirs, ours, named), key) for name, key in KEYS.items()]


def _origin(name: str, theirs: Mapping[str, Any], ours: Mapping[str, Any], named: set[str]) -> str:
    if name in named:
        return "environment"
    if KEYS[name].adds and name in ours and name in theirs:
        return "both"
    return "workspace" if name in ours else "user" if name in theirs else "default"


def one(root: str, name: str) -> Setting:
    """The setting of that name. Raises `Usage` with the nearest ones."""
    known(name)
    return next(s for s in listed(root) if s.name == name)


def known(name: str) -> str:
    """`name`, where it is a setting. Raises `Usage` with the nearest ones."""
    if name not in KEYS:
        near = nearest(name, KEYS)
        raise Usage(f"There is no setting '{printable(name)}'.", f"Nearest: {', '.join(near)}." if near else "")
    return name


def change(root: str, name: str, words: Sequence[str] | None, *, own: bool = False) -> Change:
    """The settings file with one setting changed (`words` None: taken out), ready to `write`.

    A setting only the user may make goes to the user's own file, others to the workspace's unless `own`. A list takes
    each word as an item, a table `KEY=VALUE` words; `TABLE.KEY` names one item of a table. Raises `Usage` for a value
    that is none of the setting's.
    """
    table = next((n for n, key in KEYS.items() if isinstance(key.default, dict) and name.startswith(n + ".")), "")
    item = name[len(table) + 1 :] if table else ""
    setting = known(table or name)
    key = KEYS[setting]
    path = config.user_file() if own or key.own else os.path.join(root, FILE)
    before = _bytes(path)
    old = config.stated(path, own=own or key.own)
    value = _wanted(setting, item, words, old.get(setting))
    new = {n: v for n, v in {**old, setting: value}.items() if v is not None}
    if value is not None:
        new[setting] = config.checked(setting, value, "the command line")
    after = _edited(before, setting, item, new.get(setting))
    change = Change(path, before, after)
    if config.stated_in(after, path, own=own or key.own) != new:
        raise Refused(f"'{path}' is written in a way that cannot be edited safely.", "Change it in an editor.")
    return change


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _wanted(setting: str, item: str, words: Sequence[str] | None, old: Any) -> Any:
    """The new value of a setting: the whole of it, or of a table with one item changed."""
    default = KEYS[setting].default
    if item:
        table = {k: v for k, v in (old or {}).items() if k != item}
        return {**table, item: " ".join(words)} if words is not None else table or None
    if words is None:
        return None
    if isinstance(default, list):
        return list(words)
    if isinstance(default, dict):
        pairs = [word.partition("=") for word in words]
        if not all(mark for _, mark, _ in pairs):
            raise Usage(f"'{setting}' is a table.", "Give KEY=VALUE for each item.")
        return {name: value for name, _, value in pairs}
    if len(words) != 1:
        raise Usage(f"'{setting}' takes one value.", KEYS[setting].doc)
    return config.from_text(KEYS[setting], words[0])


def _edited(before: bytes | None, setting: str, item: str, value: Any) -> bytes:
    import tomlkit

    data = before or b""
    mark = BOM if data.startswith(BOM) else b""
    document = tomlkit.parse(data[len(mark) :].decode("utf-8"))
    section, name = setting.split(".")
    if value is None:
        if section in document:
            document[section].pop(name, None)
    elif item and section in document and name in document[section]:
        table = document[section][name]
        if item in value:
            table[item] = value[item]
        else:
            table.pop(item)
    else:
        if section not in document:
            document[section] = tomlkit.table()
        document[section][name] = value
    return mark + tomlkit.dumps(document).encode("utf-8")


def write(change: Change) -> None:
    """Writes an edited settings file whole or not at all; its mode stays, and a link is written through.

    Raises `Conflict` where somebody saved it meanwhile, `Refused` with the true reason.
    """
    path = os.path.realpath(change.path)
    if _bytes(path) != change.before:
        raise Conflict(f"'{change.path}' has changed since it was read.", "Try again.")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mode = stat.S_IMODE(os.stat(path).st_mode) if change.before is not None else 0o644
        write_private(path, change.after or b"", mode)
    except OSError as error:
        raise Refused(f"'{change.path}' could not be written: {reason(error)}.", "Nothing was changed.") from None
