"""Which conversations are known: `.pipimem/sources.jsonl`, one line for each state a source has been seen in.

Append-only and without any text, so that it travels with git; the home folder is written as `~`. The last line of a
source is what holds. What was said stays in the host's own files.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from pipimem.importers.draft import safe
from pipimem.pending import read_private
from pipimem.text import digest, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PATH = ".pipimem/sources.jsonl"
EMPTY = digest(b"")  # the mark of a list without lines
STATUSES = ("indexed", "summarized", "extracted", "error", "archived")
TEXT = ("engine", "session", "project", "scope", "agent", "cwd", "path", "digest", "first", "last", "status", "kind",
        "parent", "time", "was", "instead", "note", "name")  # fmt: skip
COUNTS = ("size", "messages", "calls", "errors")


@dataclass(frozen=True, slots=True)
class Source:
    """One conversation of a host and what is known about it without its text.

    `scope` is the channel it belongs to ("" unassigned), `project` the project's folder and `name` what people call it;
    `path` the file (a database for several), `digest` that of what was read; `first` and `last` the times of messages.
    `was` is the path it has moved from, `instead` the id its file gave for the session before; `note` the digest of the
    note in HISTORY as it was written; `entries` maps the ids of remembered entries to the message each rests on. `kind`
    is as in a `Session`, `time` when the line was made.
    """

    engine: str
    session: str
    project: str = ""
    scope: str = ""
    agent: str = ""
    cwd: str = ""
    path: str = ""
    digest: str = ""
    size: int = 0
    first: str = ""
    last: str = ""
    messages: int = 0
    calls: int = 0
    errors: int = 0
    status: str = "indexed"
    kind: str = ""
    parent: str = ""
    time: str = ""
    was: str = ""
    instead: str = ""
    note: str = ""
    name: str = ""
    entries: Mapping[str, str] = field(default_factory=dict)

    @property
    def ref(self) -> str:
        """`engine:session` as it stands in references."""
        return f"{self.engine}:{safe(self.session)}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others: a session may stand in several files (a rotated log)."""
        return self.engine, self.session, self.path

    @property
    def file(self) -> str:
        """Where its file is on this machine: see `file_of`."""
        return file_of(self.engine, self.path)

    @property
    def there(self) -> bool:
        """Whether its file still exists."""
        return os.path.isfile(self.file)

    def line(self) -> str:
        """The line that says all this; what is empty is left out."""
        return json.dumps({k: v for k, v in asdict(self).items() if v not in ("", 0, {})}, ensure_ascii=False)

    def same(self, other: Source | None) -> bool:
        """Whether another line says the same, apart from when it was written."""
        plain = {"time": "", "was": "", "instead": ""}
        return other is not None and replace(self, **plain) == replace(other, **plain)  # type: ignore[arg-type]


def file_of(engine: str, path: str) -> str:
    """Where the file of a source is now: at its path, or where its host puts the same one away, packed or archived."""
    file = os.path.expanduser(path)
    if os.path.isfile(file) or not file.endswith((".jsonl", ".jsonl.zst")):
        return file
    plain = file.removesuffix(".zst")
    home, _, dated = plain.partition("/sessions/") if engine == "codex" else ("", "", "")
    archived = [f"{home}/archived_sessions/{os.path.basename(plain)}"] if dated else []
    twins = [name + end for name in (plain, *archived) for end in ("", ".zst")]
    return next((name for name in twins if os.path.isfile(name)), file)


NAMES = frozenset(f.name for f in fields(Source))


class Sources:
    """Every source by its key, oldest first, as the lines of the list say it; a line that is none is left out."""

    def __init__(self, data: bytes = b"") -> None:
        self.rows: dict[tuple[str, str, str], Source] = {}
        self.mark = digest(data)
        for line in data.splitlines():
            source = _row(line)
            if source is not None:
                self.take(source)

    def take(self, source: Source) -> None:
        """One more line."""
        if source.was:
            self.rows.pop((source.engine, source.session, source.was), None)
        if source.instead:
            self.rows.pop((source.engine, source.instead, source.path), None)
        self.rows[source.key] = source

    def __iter__(self) -> Iterator[Source]:
        return iter(self.rows.values())

    def of(self, engine: str, session: str) -> list[Source]:
        """The files a session stands in; the one last seen comes last."""
        return [s for s in self if (s.engine, s.session) == (engine, session)]

    def named(self, ref: str) -> list[Source]:
        """The sources called `engine:session`, `engine:session#message`, or, of one engine, the start of its id."""
        bare = ref.strip().strip("[]").partition("#")[0]
        exact = [s for s in self if s.ref == bare or f"{s.engine}:{s.session}" == bare]
        if exact or len(bare.partition(":")[2]) < 4:
            return exact
        near = [s for s in self if s.ref.startswith(bare)]
        return near if len({s.ref for s in near}) == 1 else []


def read(root: str) -> Sources:
    """The sources a workspace knows."""
    return Sources(read_private(os.path.join(root, *PATH.split("/"))) or b"")


def appended(root: str, rows: Iterable[Source]) -> bytes:
    """The list with more lines; a last line that was cut off gets its end first."""
    data = read_private(os.path.join(root, *PATH.split("/"))) or b""
    if data and not data.endswith(b"\n"):
        data += b"\n"
    return data + encode("".join(row.line() + "\n" for row in rows))


def _row(line: bytes) -> Source | None:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    given = {k: v for k, v in value.items() if k in NAMES}
    if not all(isinstance(given.get(k, ""), str) for k in TEXT) or not given.get("engine") or not given.get("session"):
        return None
    if not all(isinstance(given.get(k, 0), int) for k in COUNTS):
        return None
    entries = given.get("entries", {})
    if not isinstance(entries, dict) or not all(isinstance(v, str) for v in entries.values()):
        return None
    return Source(**given)
