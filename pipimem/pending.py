"""The commits that are due, one line each, in the order in which their files were written.

A change is written under its locks and committed after them. Its line is made under the locks, so that commits come
in the order of the writes whoever is first to reach git; a line whose process is gone, or which git could not take,
waits for the next command. What is committed is history.py's.
"""

from __future__ import annotations

import os
import time

from pipimem.files import append_private, lives, locked, own_folder, write_private
from pipimem.text import digest, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from pipimem.workspace import Change, Workspace

    Row = dict[str, Any]

TURN_WAIT, TURN_POLL = 10.0, 0.005


class Queue:
    """The lines of `.pipimem/state/pending.jsonl`: digests and ids, no text."""

    __slots__ = ("_workspace",)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def rows(self) -> list[Row]:
        """Every line, oldest first. A line torn by a crash is none; its text is in the file and goes with the next."""
        import json

        rows = []
        for line in (read_private(self._path) or b"").splitlines():
            try:
                row = json.loads(line)
                if isinstance(row["message"], str) and isinstance(row["files"], dict):
                    rows.append(row)
            except (ValueError, KeyError, TypeError):
                continue
        return rows

    def waiting(self) -> list[Row]:
        """The lines that nobody is about to commit: git was busy, or their process is gone."""
        return [row for row in self.rows() if not _under_way(row)]

    def enlist(
        self, changes: Sequence[Change], beside: Mapping[str, bytes], message: str, base: Mapping[str, str | None]
    ) -> str:
        """One more line, for changes just written. The caller holds their locks.

        Returns its ticket, "" when it could not be made: the change is then committed out of turn. `base` are files of
        which git has another text than the change began with.
        """
        import json

        ticket = os.urandom(8).hex()
        before = {c.path: mark(c.before) for c in changes}
        before.update(base)
        files = {c.path: {"before": before[c.path], "after": mark(c.after), "blob": None} for c in changes}
        row = {
            "ticket": ticket, "pid": os.getpid(), "host": os.uname().nodename, "message": message, "files": files,
            "beside": {path: {"after": mark(beside[path]), "blob": None} for path in sorted(beside)},
        }  # fmt: skip
        try:
            with self._lock("pending"):
                append_private(self._path, json.dumps(row, ensure_ascii=False))
        except OSError:
            return ""
        return ticket

    def rewrite(self, change: Callable[[Row], Row]) -> None:
        """Other words for the lines that wait; one without files left is none."""

        def changed(row: Row) -> Row | None:
            if _under_way(row):
                return row
            new = change(row)
            return new if new["files"] or new.get("beside") else None

        self._rewrite(changed)

    def rebase(self, ticket: str, base: Mapping[str, str | None]) -> None:
        """The line begins with other texts of these files: a commit of a person's edit comes before it."""

        def on(row: Row) -> Row:
            files = {path: {**marks, "before": base.get(path, marks["before"])} for path, marks in row["files"].items()}
            return {**row, "files": files} if row.get("ticket") == ticket else row

        self._rewrite(on)

    def remove(self, ticket: str) -> None:
        """The line is done, or never will be."""
        self._rewrite(lambda row: None if row.get("ticket") == ticket else row)

    def postpone(self, ticket: str, blobs: Mapping[str, str | None], why: str = "", *, hooked: bool = False) -> None:
        """The line waits for the next command; `blobs` are git's ids of what it already has of the files.

        `why` is for `status`; `hooked` says that a hook refused it, which is not asked again at once.
        """

        def late(row: Row) -> Row:
            if row.get("ticket") != ticket:
                return row
            files, beside = (
                {path: {**marks, "blob": blobs.get(path)} for path, marks in rows.items()}
                for rows in (row["files"], beside_of(row))
            )
            return {
                **row,
                "files": files,
                "beside": beside,
                "pid": 0,
                "reason": why,
                "hooked": int(time.time()) if hooked else 0,
            }

        self._rewrite(late)

    def precede(self, ticket: str, line: Row) -> None:
        """One more line, before the one of that ticket: what a person edited, which waits as theirs."""
        import json

        row = {"ticket": os.urandom(8).hex(), "pid": 0, "host": "", "beside": {}, **line}
        with self._lock("pending"):
            rows = self.rows()
            at = next((n for n, other in enumerate(rows) if other.get("ticket") == ticket), len(rows))
            rows.insert(at, row)
            write_private(self._path, encode("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)))

    def turn(self, ticket: str) -> AbstractContextManager[None]:
        """Holds the right to commit, as soon as every earlier line that touches the same files is out of the way.

        One that is under way is waited for, ten seconds at most: then its process is taken for stuck.
        """
        from contextlib import contextmanager

        @contextmanager
        def held() -> Iterator[None]:
            deadline = time.monotonic() + TURN_WAIT
            while True:
                with self._lock("commit"):
                    if not self._ahead(ticket) or time.monotonic() > deadline:
                        yield
                        return
                time.sleep(TURN_POLL)

        return held()

    def _ahead(self, ticket: str) -> bool:
        rows = self.rows()
        at = next((n for n, row in enumerate(rows) if row.get("ticket") == ticket), len(rows))
        ours = _paths(rows[at]) if at < len(rows) else set()
        return any(_under_way(row) and _paths(row) & ours for row in rows[:at])

    def _rewrite(self, change: Callable[[Row], Row | None]) -> None:
        import json

        with self._lock("pending"):
            before = self.rows()
            rows = [new for row in before if (new := change(row)) is not None]
            if rows != before:
                write_private(self._path, encode("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)))

    @property
    def _path(self) -> str:
        return self._workspace.private("state", "pending.jsonl")

    def _lock(self, name: str) -> AbstractContextManager[None]:
        return locked(own_folder(self._workspace.private(), "locks"), [name])


def mark(data: bytes | None) -> str | None:
    """A file's text as a line remembers it: its digest, None for no file."""
    return None if data is None else digest(data)


def read_private(path: str) -> bytes | None:
    """One of pipimem's own files, None where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def beside_of(row: Mapping[str, Any]) -> dict[str, dict[str, str | None]]:
    """What a line says of pipimem's own files that go with the change."""
    beside = row.get("beside")
    return beside if isinstance(beside, dict) else {}


def _paths(row: Row) -> set[str]:
    return {*row["files"], *row.get("beside", ())}


def _under_way(row: Row) -> bool:
    """Whether the process that wrote the line is about to commit it. On another machine's word nobody waits."""
    return row.get("host") == os.uname().nodename and bool(row.get("pid")) and lives(row["pid"])
