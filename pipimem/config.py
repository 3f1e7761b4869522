"""`pipimem.toml` and the user's own config: one table of known keys, checked without a library.

Order: environment → workspace file → user's file → default. A workspace file travels with its folder and may come
from a stranger: keys marked `own` are read from the user's file only, and lists marked `adds` can only grow.
"""

from __future__ import annotations

import os
import stat

from pipimem.errors import Unreadable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "pipimem.toml"
FORMAT = 1


class Key:
    """One setting: its default (which fixes the type), the values or the range allowed, who may set it.

    `choices` bind the items of a list or table too; `own` means the user's file only; with `adds` the workspace's
    items come after the user's; of a key that `tightens` the value that stands last in its choices wins.
    """

    __slots__ = ("adds", "choices", "default", "doc", "own", "span", "tightens")

    def __init__(
        self, default: Any, doc: str, choices: tuple[str, ...] = (), *, span: tuple[float, float] | None = None,
        own: bool = False, adds: bool = False, tightens: bool = False,
    ) -> None:  # fmt: skip
        self.default = default
        self.doc = doc
        self.choices = choices
        self.span = span
        self.own = own
        self.adds = adds
        self.tightens = tightens


KEYS: dict[str, Key] = {
    "workspace.format": Key(FORMAT, "Version of the files' format; absent means 1.", span=(1, 1000)),
    "workspace.language": Key("en", "Language of new headings and templates.", ("en", "zh")),
    "workspace.channels": Key("channels", "Folder that holds the channels, relative to the workspace."),
    "workspace.notes": Key("", "Folder whose Markdown pages are notes, too; . means the whole workspace, empty none."),
    "workspace.timezone": Key("", "Zone of dates in files, such as Asia/Shanghai; empty means the machine's."),
    "workspace.kinds": Key(
        {}, "Channel id → direct, group or project, where the id does not say.", ("direct", "group", "project")
    ),
    "workspace.projects": Key({}, "Channel id → name of the project it belongs to."),
    "workspace.user_in_groups": Key([], "Ids of group channels in which USER.md may be given."),
    "workspace.file_limit": Key(0, "Most characters a file may grow to; 0 means 50 MB.", span=(0, 50_000_000)),
    "workspace.own": Key(
        "~/.pipimem/memory", "Folder of the user's own workspace, which --global asks as well.", own=True
    ),
    "index.vectors": Key(
        "", "Model for search by meaning, such as fastembed:BAAI/bge-small-en-v1.5; none means words only.", own=True
    ),
    "index.models": Key({}, "Folder of a workspace → its model, where it is another than `vectors`.", own=True),
    "index.vector_weight": Key(
        0.0,
        "Weight of meaning against 1 for words; 0: by the model, 0.3 where it was trained to retrieve, else 0.1.",
        span=(0, 1),
    ),
    "index.vector_languages": Key([], "Languages the model is asked in, as en or zh; none: by its name.", own=True),
    "index.reranker": Key(
        "", "Model that puts the best 20 in order, such as fastembed:Xenova/ms-marco-MiniLM-L-6-v2.", own=True
    ),
    "index.reranker_languages": Key([], "Languages the reranker is asked in; none: by its name.", own=True),
    "index.folders": Key({}, "Model that runs here → folder with its files, for machines without a hub.", own=True),
    "index.meaning": Key(
        "any",
        "Which models may see this workspace's texts; the strictest word of all settings counts.",
        ("any", "local", "off"),
        tightens=True,
    ),
    "recall.mode": Key("policy", "What hosts inject.", ("observe", "policy", "auto", "full")),
    "recall.policy": Key(
        "compact", "The policy's wording: short, long, your own, or none.", ("compact", "full", "custom", "none")
    ),
    "recall.policy_text": Key("", "Your own wording, for policy = custom."),
    "recall.budget": Key(1200, "Tokens of a recalled block, 100 to 1,500.", span=(100, 1500)),
    "recall.threshold": Key(1.5, "Least evidence for a passage to be recalled; one telling word is 3.", span=(0, 1000)),
    "update.models": Key([], "Models the updater asks, in order, such as ollama:qwen3; none means rules only."),
    "update.job_models": Key(
        {}, "Job (refresh, extract, promote, condense, fold) → the model it asks first, such as ollama:qwen3."
    ),
    "update.timeout": Key(60, "Seconds one model is waited for, 5 to 600.", span=(5, 600)),
    "update.refresh_timeout": Key(30, "Seconds for the job refresh, which runs during work, 5 to 600.", span=(5, 600)),
    "update.trial_days": Key(30, "Days a remembered item stays on trial, 0 to 3,650.", span=(0, 3650)),
    "import.tool_output": Key(
        False, "Whether import takes what tools returned, too, to be found with --role tool.", own=True
    ),
    "schedule.runs": Key(200, "Runs of the updater a day in the background, 0 to 10,000; 0: none.", span=(0, 10_000)),
    "schedule.tokens": Key(
        500_000, "Tokens of models a day after which none is run in the background any more.", span=(0, 1_000_000_000)
    ),
    "git.commit": Key(True, "Whether changes are committed."),
    "git.outer": Key(False, "Whether to commit into a repository above the workspace.", own=True),
    "git.hooks": Key(False, "Whether git's hooks run, and commits are signed where commit.gpgSign says so.", own=True),
    "git.hook_limit": Key(30, "Seconds one hook or signing program may take.", span=(1, 600), own=True),
    "git.author": Key("", "`Name <mail>` of pipimem's own commits.", own=True),
    "llm.servers": Key({}, "Name of a server → its base URL, for compatible:NAME/MODEL and others.", own=True),
    "safety.patterns": Key([], "Further regular expressions for secrets.", adds=True),
    "safety.allow": Key([], "Texts that are never taken for secrets.", own=True),
}


class Config:
    """The effective settings of one workspace; `config["recall.budget"]` reads one.

    `trusted` is false for settings remembered in the cache: good for asking, read anew before anything is written.
    `models` says whether search asks a model at all; where it does, which one is read anew.
    """

    __slots__ = ("models", "trusted", "values")

    def __init__(self, values: Mapping[str, Any], *, trusted: bool = True, models: bool = False) -> None:
        self.values = {name: values.get(name, key.default) for name, key in KEYS.items()}
        self.trusted = trusted
        self.models = models or any(self.values[name] for name in ("index.vectors", "index.models", "index.reranker"))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def user_file() -> str:
    """Path of the user's own config: `PIPIMEM_CONFIG`, else `config.toml` in the XDG config folder."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.environ.get("PIPIMEM_CONFIG") or os.path.join(base, "pipimem", "config.toml")


def cache_folder() -> str:
    """The user's cache folder for what may be deleted at any time: `PIPIMEM_CACHE`, else the XDG one."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("PIPIMEM_CACHE") or os.path.join(base, "pipimem")


def signature(root: str) -> str:
    """What `load(root)` depends on, cheap to compute: the environment and the stamp of both files."""
    parts = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.lower() in ENVIRONMENT]
    for path in (os.path.join(root, FILE), user_file()):
        try:
            found = os.stat(path)
        except OSError:
            parts.append(f"{path}:-")
        else:
            parts.append(f"{path}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_ino}")
    return "\n".join(parts)


ENVIRONMENT = {f"pipimem_{name.replace('.', '_')}": name for name, key in KEYS.items() if not key.own}


def remembered(root: str, cache: str) -> Config:
    """The settings as the file `cache` remembers them, where neither file nor the environment changed; else `load`.

    Reading TOML costs more than the rest of a search; what only the user may set is never taken from the cache.
    """
    import json

    try:
        with open(cache, "rb") as file:
            stored = json.load(file)
        if stored["signature"] == signature(root):
            values = {k: v for k, v in stored["values"].items() if not KEYS[k].own}
            return Config(values, trusted=False, models=bool(stored["models"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return load(root)


def remember(config: Config, root: str) -> bytes:
    """What `remembered` reads back."""
    import json

    values = {k: v for k, v in config.values.items() if not KEYS[k].own}
    stored = {"signature": signature(root), "values": values, "models": config.models}
    return json.dumps(stored, ensure_ascii=False).encode("utf-8")


def load(root: str) -> Config:
    """The effective settings of the workspace `root`.

    Raises `Unreadable` for a file that is no TOML (with its line) and `Usage` for an unknown key or a wrong value.
    """
    values: dict[str, Any] = {}
    values.update(_read(user_file(), own=True))
    for name, value in _read(os.path.join(root, FILE), own=False).items():
        values[name] = _over(KEYS[name], values.get(name), value)
    for variable, name in ENVIRONMENT.items():
        raw = os.environ.get(variable.upper())
        if raw is not None and not isinstance(KEYS[name].default, dict | list):
            value = _checked(name, _from_text(KEYS[name], raw), variable.upper())
            values[name] = _over(KEYS[name], values.get(name), value)
    return Config(values)


def _over(key: Key, before: Any, value: Any) -> Any:
    """What holds once a file or variable that comes later says `value`."""
    if before is None:
        return value
    if key.tightens:
        return max(before, value, key=key.choices.index)
    return [*before, *value] if key.adds else value


def _from_text(key: Key, raw: str) -> Any:
    if isinstance(key.default, bool):
        return {"1": True, "true": True, "0": False, "false": False}.get(raw.lower(), raw)
    for kind in (int, float):
        if isinstance(key.default, kind):
            try:
                return kind(raw)
            except ValueError:
                return raw
    return raw


def _read(path: str, *, own: bool) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable(f"The settings '{path}' are no regular file.", "Put a file there, or nothing.")
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Unreadable(f"The settings '{path}' cannot be read: {error.strerror}.", "Check the file.") from None
    return stated_in(data, path, own=own)


def stated(path: str, *, own: bool) -> dict[str, Any]:
    """What one settings file says, by name; `own` for the user's. Raises as `load` does."""
    return _read(path, own=own)


def checked(name: str, value: Any, where: str) -> Any:
    """`value` as the setting wants it. Raises `Usage` where it is none of its values."""
    return _checked(name, value, where)


def from_text(key: Key, raw: str) -> Any:
    """A value typed as text, in the type of the setting where it can be read so."""
    return _from_text(key, raw)


def stated_in(data: bytes, path: str, *, own: bool) -> dict[str, Any]:
    """What the text of a settings file says. Raises as `load` does."""
    import tomllib

    try:
        tree = tomllib.loads(data.removeprefix(b"\xef\xbb\xbf").decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"The settings '{path}' are not UTF-8 in line {line}.", "Save the file as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        why = str(error).replace("end of document", f"the end, line {len(data.splitlines())}")
        raise Unreadable(f"The settings '{path}' are not valid TOML: {why}.", "Mend that line.") from None
    return _flatten(tree, path, own=own)


def _flatten(tree: Mapping[str, Any], path: str, *, own: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for section, keys in tree.items():
        if not isinstance(keys, dict):
            raise _unknown(section, path, own=own)
        for key, value in keys.items():
            name = f"{section}.{key}"
            if name not in KEYS or (KEYS[name].own and not own):
                raise _unknown(name, path, own=own)
            values[name] = _checked(name, value, path)
    return values


def _unknown(name: str, path: str, *, own: bool) -> Usage:
    if name in KEYS:
        return Usage(
            f"The setting '{name}' in '{path}' may only be set in the user's own config.",
            f"Move it to '{user_file()}'.",
        )
    known = ", ".join(k for k, key in KEYS.items() if own or not key.own)
    return Usage(f"The setting '{name}' in '{path}' is unknown.", f"Known settings: {known}.")


def _checked(name: str, value: Any, where: str) -> Any:
    key = KEYS[name]
    wanted = type(key.default)
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise Usage(f"The setting '{name}' in '{where}' is not of type {wanted.__name__}.", key.doc)
    if key.span and not key.span[0] <= value <= key.span[1]:
        raise Usage(f"The setting '{name}' in '{where}' cannot be {value}.", f"{key.span[0]:g} to {key.span[1]:g}.")
    items = list(value.values()) if wanted is dict else value if wanted is list else [value]
    for item in items:
        if wanted in (dict, list) and not isinstance(item, str):
            raise Usage(f"The setting '{name}' in '{where}' holds '{item}', which is no text.", key.doc)
        if key.choices and item not in key.choices:
            raise Usage(f"The setting '{name}' in '{where}' cannot be '{item}'.", f"One of: {', '.join(key.choices)}.")
    return value
