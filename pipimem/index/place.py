"""Where a workspace's index and the Chinese dictionary live, and what an index is called.

Its name says what decides how files become rows, so that another rule is another file. What it takes to find the
name out (the dictionary is far away) is remembered beside the settings for the next process.
"""

from __future__ import annotations

import os

from pipimem.config import cache_folder
from pipimem.errors import Refused
from pipimem.index import schema, words
from pipimem.text import digest, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pipimem.workspace import Workspace

MEMORY = ":memory:"
LEXICON_LIMIT = 1024 * 1024


class Place:
    """The places of one workspace. Nothing is kept open, and nothing is believed that may have changed since."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._memo: dict[str, Any] = {}
        self._config: object = None
        self._is_news = False

    def find(self, *, inside: bool = True) -> tuple[str, bool]:
        """Where the index is or would be made, and whether it can be written there.

        In the workspace, else in the user's cache, else `:memory:`; in a workspace that cannot be written only when no
        unmerged log lies beside it. With `inside=False` as if the workspace had no room for it.
        """
        name = self.name()
        here = self.workspace.private("cache", name)
        if inside and _can_write(here):
            return here, True
        mark = digest(encode(os.path.realpath(self.workspace.root)), 8)
        there = os.path.join(cache_folder(), "workspaces", mark, name)
        good = inside and schema.is_quiet(here) and is_ours(here)
        if _can_write(there) and (os.path.exists(there) or not good):
            return there, True
        return (here, False) if good else (MEMORY, True)

    def name(self) -> str:
        """The index's file name."""
        return str(self._known()["name"])

    def _known(self) -> dict[str, Any]:
        """The names of the index and of the dictionary database, and what they depend on."""
        if self._config is not self.workspace.config:
            self._memo, self._config = self._remembered(), self.workspace.config
        if not self._memo or self._memo["stamps"] != self._stamps(self._memo["source"]):
            from pipimem.index import chinese

            self.workspace.trust()
            self._config, source = self.workspace.config, chinese._dict_txt()
            stamps = self._stamps(source)
            name = f"index-{self.fingerprint()}.sqlite3"
            self._memo = {"name": name, "dictionary": chinese.dictionary_name(), "source": source, "stamps": stamps}
            self._is_news = True
        return self._memo

    def fingerprint(self) -> str:
        """What decides how files become rows: schema, word function, dictionary, user lexicon, safety rules."""
        from pipimem import safety
        from pipimem.index import chinese

        config = self.workspace.config
        rules = [*config["safety.patterns"], "", *config["safety.allow"]]
        parts = [schema.TABLES, str(words.FORMAT), chinese.dictionary_name(), str(safety.VERSION), *rules]
        return digest(encode("\0".join(parts)) + self.lexicon(), 6)

    def lexicon(self) -> bytes:
        """The user's lexicon as it stands now."""
        try:
            with open(self._lexicon_path(), "rb") as file:
                return file.read(LEXICON_LIMIT)
        except OSError:
            return b""

    def _lexicon_path(self) -> str:
        return os.path.join(self.workspace.root, "lexicon.txt")

    def _stamps(self, dictionary: str) -> list[str]:
        """What changes whenever the fingerprint does, except for the settings, which have a signature of their own."""
        here = os.path.dirname(__file__)
        code = (os.path.join(here, "chinese.py"), os.path.join(os.path.dirname(here), "safety", "__init__.py"))
        made = digest(f"{schema.TABLES}{words.FORMAT}".encode(), 6)
        return [made, *map(_stamp, (*code, dictionary, self._lexicon_path()))]

    def _memo_path(self) -> str:
        return self.workspace.private("cache", "config.json")

    def _remembered(self) -> dict[str, Any]:
        """The memo that belongs to remembered settings; none where the settings were read anew."""
        if self.workspace.config.trusted:
            return {}
        import json

        try:
            with open(self._memo_path(), "rb") as file:
                memo = json.load(file)["index"]
            names = [memo[key] for key in ("name", "dictionary", "source")]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        plain = all(isinstance(name, str) for name in names) and not any("/" in name for name in names[:2])
        return memo if plain and isinstance(memo.get("stamps"), list) else {}

    def remember(self, path: str) -> None:
        """Keeps what was found out about the index at `path` and the settings for the next process.

        A failure costs only time.
        """
        if not self._is_news or os.path.dirname(path) != os.path.dirname(self._memo_path()):
            return
        self._is_news = False
        import json

        from pipimem.config import remember
        from pipimem.workspace import write_private

        stored = json.loads(remember(self.workspace.config, self.workspace.root))
        data = json.dumps({**stored, "index": self._memo}, ensure_ascii=False).encode("utf-8")
        try:
            write_private(self._memo_path(), data)
        except OSError:
            return

    # The dictionary database

    def dictionary(self) -> str:
        """The path of a dictionary database that may be used, "" where there is none."""
        return next((path for path in self.dictionaries() if is_ours(path)), "")

    def dictionaries(self) -> list[str]:
        """Where it may be: in the user's cache, else in the workspace's."""
        name = self._known()["dictionary"]
        return [os.path.join(folder, name) for folder in (cache_folder(), self.workspace.private("cache"))]

    def make_dictionary(self, *, thorough: bool = False) -> None:
        """Makes the dictionary database where there is none; `thorough` reads all of it and replaces a damaged one."""
        from pipimem.index import chinese

        found = self.dictionary()
        if found and not (thorough and not chinese.is_sound(found)):
            return
        for path in self.dictionaries():
            if _can_make(os.path.dirname(path)):
                try:
                    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                    chinese.build(path)
                except (OSError, Refused):
                    continue
                return


def is_ours(path: str) -> bool:
    """Whether there is a readable file at `path` that belongs to this user or to root: no one else's is believed."""
    try:
        return os.stat(path).st_uid in (0, os.geteuid()) and os.access(path, os.R_OK)
    except OSError:
        return False


def _can_write(path: str) -> bool:
    """Whether the file at `path` may be written together with side files, or made where it is missing."""
    if not os.path.lexists(path):
        return _can_make(os.path.dirname(path))
    return is_ours(path) and os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def _can_make(folder: str) -> bool:
    """Whether files can be made in `folder`, which may not exist yet."""
    while not os.path.isdir(folder):
        parent = os.path.dirname(folder)
        if parent == folder or os.path.lexists(folder):
            return False
        folder = parent
    return os.access(folder, os.W_OK | os.X_OK)


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_ino}"
