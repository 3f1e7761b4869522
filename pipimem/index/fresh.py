"""Whether the index still says what the files say: stamps compared, nothing parsed, nothing written."""

from __future__ import annotations

import os

from pipimem.errors import Unreadable
from pipimem.text import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from pipimem.workspace import Document, Scan

SMALL_BYTES = 64 * 1024
SMALL_COUNT = 20
"""What is indexed at once when asked: a day's edits, 20 notes of a checkout; some 0.2 s."""

CHECK_BYTES = 4 * 1024 * 1024
CHECK_COUNT = 1_000
"""What is read at once to see whether it changed at all, as after a copy or `chmod`: some 20 ms."""

EMPTY_ALARM = 3
SKIPPED = "skipped: "
BINARY = "binary, not Markdown"


class Look:
    """The files beside the index: documents to take anew, indexed paths that are gone, and what could not be used."""

    __slots__ = ("_read", "digests", "gone", "skipped", "todo")

    def __init__(self, scan: Scan) -> None:
        self.todo: list[Document] = []
        self.gone: list[str] = []
        self.skipped: list[tuple[str, str]] = list(scan.skipped)
        self.digests: dict[str, str] = {}
        self._read: list[Document] | None = None

    @property
    def empty(self) -> bool:
        """Whether the index says what the files say."""
        return not (self.todo or self.gone)

    def is_small(self, read: Callable[[str], bytes | None]) -> bool:
        """Whether the difference is small enough to be indexed before an answer."""
        if _fits(self.todo, len(self.gone), SMALL_BYTES, SMALL_COUNT):
            return True
        changed = self._changed(read)
        return changed is not None and _fits(changed, len(self.gone), SMALL_BYTES, SMALL_COUNT)

    def is_behind(self, read: Callable[[str], bytes | None]) -> bool:
        """Whether the index says something else than the files, or may."""
        return bool(self.gone) or self._changed(read) != []

    def _changed(self, read: Callable[[str], bytes | None]) -> list[Document] | None:
        """Of `todo`, the documents whose bytes are not the indexed ones; None where it is too much to read them now."""
        if self._read is None and _fits(self.todo, 0, CHECK_BYTES, CHECK_COUNT):
            self._read = [d for d in self.todo if digest(read(d.path) or b"") != self.digests.get(d.path)]
        return self._read


def _fits(documents: Sequence[Document], more: int, size: int, count: int) -> bool:
    return len(documents) + more <= count and sum(d.stat.st_size for d in documents) <= size


def look(db: sqlite3.Connection, scan: Scan, channels: Sequence[str] | None, root: str) -> Look:
    """Compares what a scan of the shared layer and `channels` (None: all) found with what is indexed of them."""
    found = Look(scan)
    sql, within = "SELECT path, stamp, channel, layer, digest, note FROM documents", ("", *(channels or ()))
    rows = db.execute(sql) if channels is None else db.execute(f"{sql} WHERE channel IN ({marks(within)})", within)
    have = {row[0]: row for row in rows}
    for document in scan.documents:
        row = have.pop(document.path, None)
        if row is not None:
            same = row[2:4] == (document.channel, document.layer)
            found.digests[row[0]] = row[4] if same else ""
            if same and row[1] == document.stamp:
                if not row[5].startswith(SKIPPED):
                    continue
                if not _readable_now(row[5], os.path.join(root, row[0])):
                    found.skipped.append((row[0], row[5].removeprefix(SKIPPED)))
                    continue
        elif not _is_utf8(document.path + document.channel):
            found.skipped.append((document.path, "its name is not UTF-8"))
            continue
        found.todo.append(document)
    if have:
        hidden = [path for path, _ in scan.skipped if _is_hidden(os.path.join(root, path))]
        found.gone = [path for path in have if not any(path == h or path.startswith(h + "/") for h in hidden)]
    return found


def emptied(root: str, count: int) -> Unreadable:
    """The error for a workspace in which nothing is left of `count` documents."""
    return Unreadable(
        f"The workspace '{root}' is suddenly empty: {count} indexed documents are gone.",
        "Check that it is mounted; 'pipimem index --rebuild' accepts it as it is.",
    )


def marks(values: Sequence[object]) -> str:
    """As many question marks as there are values, for `IN (…)`."""
    return ",".join("?" * len(values))


def _is_hidden(path: str) -> bool:
    """Whether the system refuses a look at a skipped file or folder: there nothing indexed is known to be gone."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        if os.path.isdir(path):
            os.listdir(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _is_utf8(name: str) -> bool:
    try:
        return name.isascii() or bool(name.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _readable_now(note: str, path: str) -> bool:
    """Whether a file that could not be read, perhaps by another user, can be read after all."""
    return note != SKIPPED + BINARY and os.access(path, os.R_OK)
