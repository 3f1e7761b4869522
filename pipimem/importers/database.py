"""Databases of hosts, opened read-only in one snapshot; columns are probed, never taken by position.

Which tables mean what is the importers'.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipimem.errors import Unreadable
from pipimem.importers.reading import check, opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAGIC = b"SQLite format 3\x00"
LOGGED = b"\x02\x02"  # bytes 18 and 19 of a database that writes ahead to a log
BATCH = 500


@contextmanager
def database(path: str) -> Iterator[sqlite3.Connection]:
    """The database in one read transaction; nothing beside it is created or changed.

    Opening a database with a write-ahead log creates the log's files where they are not there. Without a log all of
    it is in the main file, which is then read as it stands; that it stayed so is checked at the end. Raises
    `Unreadable`.
    """
    try:
        check(path)
        still = _complete(path)
        before = os.stat(path)
        uri = Path(path).absolute().as_uri() + ("?mode=ro&immutable=1" if still else "?mode=ro")
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.execute("PRAGMA query_only = 1")
            connection.execute("PRAGMA trusted_schema = 0")
            connection.execute("BEGIN")
            yield connection
        after = os.stat(path)
        if still and ((before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size) or _log(path)):
            raise Unreadable(f"The database '{path}' changed while it was read.", "Try again.")
    except sqlite3.Error as error:
        raise Unreadable(f"The database '{path}' cannot be read: {error}.", "Is it whole, and its folder?") from None
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise Unreadable(f"The database '{path}' cannot be read: {reason}.", "Check the path.") from None


def _complete(path: str) -> bool:
    with opened(path) as file:
        return file.read(20)[18:] == LOGGED and not _log(path)


def _log(path: str) -> bool:
    try:
        return os.path.getsize(path + "-wal") > 0
    except OSError:
        return False


def tables(path: str, head: bytes) -> set[str]:
    """The names of a database's tables; none for a file that is no database. Raises `Unreadable` for a damaged one."""
    if not head.startswith(MAGIC):
        return set()
    with database(path) as connection:
        return {str(name).lower() for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns a table has in this version of the host; empty for a table it does not have."""
    return {str(row[1]).lower() for row in connection.execute(f"PRAGMA table_info({table})")}


def rows(
    connection: sqlite3.Connection, table: str, wanted: Sequence[str], rest: str = "", values: Sequence[object] = ()
) -> Iterator[dict[str, Any]]:
    """Rows with the wanted columns by name, None for those this version lacks; `rest` is WHERE and ORDER BY."""
    have = columns(connection, table)
    if not have:
        return
    chosen = [c for c in wanted if c in have]
    cursor = connection.execute(f"SELECT {', '.join(chosen) or '1'} FROM {table} {rest}", tuple(values))
    missing = dict.fromkeys(wanted)
    while batch := cursor.fetchmany(BATCH):
        for row in batch:
            yield {**missing, **dict(zip(chosen, row, strict=False))}
