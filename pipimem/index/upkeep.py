"""The index as a file that is written: whose turn it is, opening it, setting a damaged one aside, cleaning up.

What is written is `sync`'s; opening for asking, and telling a good file from a bad one, is `schema`'s.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager

from pipimem.index import schema
from pipimem.index.schema import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

UNUSED = 30 * 86400
PAUSE = 0.01


@contextmanager
def turn(folder: str, patience: float, name: str = "write.lock") -> Iterator[float]:
    """Waits for the other writers and healers of this folder, at most `patience` seconds; gives what is left of them.

    A file renamed or deleted under a writer would leave its log to the next one, so they take turns. Raises
    `TimeoutError`. Where the file system knows no locks, SQLite's own have to do.
    """
    until = time.monotonic() + patience
    handle = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _is_ours(handle):
            if time.monotonic() >= until:
                raise TimeoutError("another process is writing it")
            time.sleep(PAUSE)
        yield max(0.0, until - time.monotonic())
    finally:
        os.close(handle)


def _is_ours(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def writer(path: str, patience: float) -> sqlite3.Connection:
    """An open writer on the file at `path` (or `:memory:`), whether or not anything is built there yet.

    Write-ahead log, explicit transactions, `patience` seconds of waiting for another program's lock. Raises
    `Damaged` for a file to be made anew and `Refused` for another program's database.
    """
    db = sqlite3.connect(path, isolation_level=None, timeout=patience, check_same_thread=False)
    try:
        is_built(db, path)
        if path != ":memory:":
            db.execute("PRAGMA journal_mode=WAL")
        for pragma in ("temp_store=MEMORY", "synchronous=NORMAL", "secure_delete=ON", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("PRAGMA cache_size=-16384")
    except BaseException:
        db.close()
        raise
    return db


def is_built(db: sqlite3.Connection, path: str) -> bool:
    """Whether the tables are there, and were made there. Raises as `schema.check` does for anything else."""
    try:
        schema.check(db, path)
    except schema.Absent:
        return False
    return True


def build(db: sqlite3.Connection, path: str) -> None:
    """Makes every table anew, inside the caller's transaction; readers keep the old ones until it commits."""
    for table in schema.TABLE_NAMES:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in schema.TABLES.split(";\n"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO meta VALUES('inode', ?)", (schema.inode(path),))
    db.execute(f"PRAGMA application_id={schema.APPLICATION}")
    db.execute(f"PRAGMA user_version={schema.FORMAT}")


def set_aside(path: str, inode: str) -> str:
    """Moves the damaged file with that inode out of the way with its side files; returns its new name.

    "" when another process has done so already. The caller has the `turn`.
    """
    if not inode or schema.inode(path) != inode:
        return ""
    name = f"{path}.damaged-{os.urandom(3).hex()}"
    for old, new in zip(files(path), files(name), strict=True):
        if os.path.lexists(old):
            os.replace(old, new)
    return name


def files(path: str) -> tuple[str, str, str]:
    """The index at `path` with its side files."""
    return path, path + "-wal", path + "-shm"


def others(path: str) -> list[str]:
    """The indexes of other versions and the damaged ones beside `path`, with their side files."""
    folder = os.path.dirname(path)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [os.path.join(folder, name) for name in names if name.startswith("index-") and ".sqlite3" in name]
    return [other for other in found if other not in files(path)]


def sweep(path: str, now: float) -> None:
    """Deletes what `others` gives and nobody used for 30 days (`now` in seconds since the epoch)."""
    for other in others(path):
        try:
            found = os.stat(other)
        except OSError:
            continue
        if now - max(found.st_mtime, found.st_atime) > UNUSED:
            delete(other)


def delete(*paths: str) -> None:
    """Deletes files that may be deleted at any time, as far as that is possible."""
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            continue


def scrub(path: str, patience: float) -> bool:
    """Makes what was deleted unreadable in the file: merges the full text's segments and cuts the log.

    Deleted rows are overwritten already (`secure_delete`). False when a reader kept the log in use. The caller has
    the `turn`.
    """
    db = writer(path, patience)
    try:
        db.execute("INSERT INTO f(f) VALUES('optimize')")
        return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        db.close()
