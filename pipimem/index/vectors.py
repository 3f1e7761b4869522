"""The vectors of one model, in a file of their own: what a rebuilt index, and no provider, is asked for again.

A text is kept by the digest of what was sent, so it is paid for once however often it stands; a passage is led to its
text by what the index says of it. Which model is asked is `meaning`'s, comparing vectors is `near`'s.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager

from pipimem.errors import ModelFailed, Refused
from pipimem.index import schema, upkeep
from pipimem.index.schema import PASSAGE_BITS, sqlite3
from pipimem.index.search import passage_text
from pipimem.text import digest, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

APPLICATION = 0x70695665
FORMAT = 1
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, vector BLOB NOT NULL, since INTEGER);
CREATE TABLE places(passage BLOB PRIMARY KEY, text BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX places_text ON places(text);
"""
PURGED = "CREATE TABLE IF NOT EXISTS purged(text BLOB PRIMARY KEY) WITHOUT ROWID"
"""Digests of texts that were forgotten while a run may still be embedding them."""
KEEP = 30
"""Days for which the vector of a text that stands nowhere any more is kept, for one that comes back by `undo`."""
CLIPPED = 1600
"""Characters of a passage that are sent: what a model of 512 tokens reads of English text."""
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
PATIENCE = 10.0
BROKEN = (sqlite3.Error, OSError)
"""What a store that cannot be read or written raises."""
_MANY = 2_000


class Piece:
    """One passage that may be embedded: where it stands, the heading above it, and its key."""

    __slots__ = ("digest", "end", "entry", "key", "path", "start", "trail")

    def __init__(self, row: tuple[str, int, int, int, str, str]) -> None:
        self.path, self.start, self.end, self.entry, self.digest, self.trail = row
        self.key = passage_key(self.trail, self.digest)

    def text(self, read: Callable[[str, int, int], bytes]) -> str:
        """What is to be embedded; "" where the file no longer says what was indexed."""
        raw = read(self.path, self.start, self.end)
        if digest(raw, 8) != self.digest:
            return ""
        return meant(self.trail.split("\x1f") if self.trail else [], passage_text(raw, entry=bool(self.entry)))


def passage_key(trail: str, mark: str) -> bytes:
    """What the index says of a passage's text: its headings and the digest of its bytes."""
    return bytes.fromhex(digest(encode(f"{trail}\0{mark}"), 12))


def text_key(text: str) -> bytes:
    """The digest under which the vector of exactly this text is kept."""
    return bytes.fromhex(digest(encode(text)))


def meant(trail: Sequence[str], text: str) -> str:
    """The words of a passage that carry its meaning: its headings below the title, its text without comments."""
    body = " ".join(COMMENT.sub(" ", text).split())
    return f"{' > '.join(trail[1:] or trail)}\n{body}"[:CLIPPED].strip() if body else ""


def pieces(db: sqlite3.Connection) -> Iterator[Piece]:
    """Every passage of the index that may be embedded, in the order of its rows.

    Left out: what holds a secret, hidden characters or orders, the archive, and front matter of anything but a skill.
    """
    sql = (
        "SELECT d.path, p.start, p.end, p.entry, p.digest, h.trail FROM passages p JOIN texts t ON t.id = p.id"
        f" JOIN heads h ON h.id = t.head JOIN documents d ON d.id = p.id >> {PASSAGE_BITS}"
        " WHERE p.verdict = '' AND d.layer <> 'archive' AND (p.kind <> 'front' OR d.layer = 'skill') ORDER BY p.id"
    )
    return (Piece(row) for row in db.execute(sql))


def withheld(db: sqlite3.Connection) -> int:
    """How many passages are kept from every model because of what they hold."""
    return int(db.execute("SELECT count(*) FROM passages WHERE verdict <> ''").fetchone()[0])


class Store:
    """The file of one model. Opened for reading unless `write`; `facts` says which model, prefixes and dimension."""

    def __init__(self, path: str, *, write: bool = False) -> None:
        self.path = path
        self.db = _writer(path) if write else _reader(path)
        self.read()

    def read(self) -> None:
        """Looks at the facts again, which another process may have changed."""
        self.facts: dict[str, str] = dict(self.db.execute("SELECT key, value FROM meta").fetchall())

    def close(self) -> None:
        """Lets go of the file."""
        self.db.close()

    @property
    def dimension(self) -> int:
        """How many numbers a vector has; 0 before the first."""
        return int(self.facts.get("dimension", "0"))

    @property
    def generation(self) -> tuple[int, str]:
        """Another value once vectors went, or have another dimension: what was read of them before is void."""
        return self.dimension, self.facts.get("generation", "0")

    def count(self) -> int:
        """How many texts have a vector."""
        return int(self.db.execute("SELECT count(*) FROM texts").fetchone()[0])

    def version(self) -> int:
        """Another number once another process has written."""
        return int(self.db.execute("PRAGMA data_version").fetchone()[0])

    def places(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Of these passages, those whose text is known: key → digest of the text."""
        return dict(self._some("SELECT passage, text FROM places", "passage", keys))

    def have(self, texts: Sequence[bytes]) -> set[bytes]:
        """Of these texts, those that were embedded."""
        return {row[0] for row in self._some("SELECT digest FROM texts", "digest", texts)}

    def numbers(self, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Of these passages, those with a vector: key → the number of the text in this file."""
        sql = "SELECT p.passage, t.id FROM places p JOIN texts t ON t.digest = p.text WHERE length(t.vector) > 0"
        return dict(self._some(sql, "p.passage", keys))

    def vectors(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Number → float32 bytes, of length one."""
        if len(numbers) <= _MANY:
            return dict(self._some("SELECT id, vector FROM texts", "id", numbers))
        wanted = frozenset(numbers)
        span = self.db.execute("SELECT id, vector FROM texts WHERE id BETWEEN ? AND ?", (min(wanted), max(wanted)))
        return {number: vector for number, vector in span if number in wanted}

    def _some(self, sql: str, column: str, keys: Sequence[Any]) -> list[tuple[Any, Any]]:
        if len(keys) > _MANY:  # one pass over the table costs less than so many look-ups
            wanted = frozenset(keys)
            return [row for row in self.db.execute(sql) if row[0] in wanted]
        found: list[tuple[Any, Any]] = []
        join = "AND" if " WHERE " in sql else "WHERE"
        for at in range(0, len(keys), 500):
            part = keys[at : at + 500]
            found += self.db.execute(f"{sql} {join} {column} IN ({','.join('?' * len(part))})", part).fetchall()
        return found

    # Writing

    def place(self, found: Mapping[bytes, bytes]) -> None:
        """Notes which text stands in which passage."""
        with self._transaction():
            self.db.executemany("INSERT OR REPLACE INTO places VALUES(?, ?)", found.items())

    def add(self, vectors: Mapping[bytes, bytes], dimension: int) -> None:
        """Keeps vectors (float32, length one; empty where the model gave none) by the digests of their texts.

        What was purged since the run began is left out. Raises `ModelFailed` for another dimension than before.
        """
        if dimension and self.dimension not in (0, dimension):
            raise ModelFailed(
                f"These vectors have {dimension} numbers, those of '{self.path}' {self.dimension}.",
                "Run 'pipimem index --vectors'.",
            )
        with self._transaction():
            if dimension and not self.dimension:
                self._note("dimension", str(dimension))
            self.db.executemany(
                "INSERT OR REPLACE INTO texts(digest, vector) SELECT ?1, ?2"
                " WHERE NOT EXISTS (SELECT 1 FROM purged WHERE text = ?1)",
                vectors.items(),
            )

    def settle(self) -> None:
        """At the start and the end of a run: what was purged before may be embedded again where it stands again."""
        with self._transaction():
            self.db.execute("DELETE FROM purged")

    def empty(self) -> None:
        """Forgets every vector, for a model that gives another dimension now under the same name."""
        with self._transaction():
            self._delete("1")
            self.db.execute("DELETE FROM meta WHERE key IN ('complete', 'dimension')")
        self.read()

    def finish(self, live: Iterable[bytes], today: int) -> None:
        """Every passage that is there has its vector: forgets those that are gone, their texts after 30 days.

        `live` are the keys of all passages, `today` a number of days.
        """
        with self._transaction():
            self._note("complete", "1")
            self._orphans(live)
            gone = "digest NOT IN (SELECT text FROM places)"
            self._delete(f"since < ? AND {gone}", today - KEEP)
            self.db.execute(f"UPDATE texts SET since = CASE WHEN {gone} THEN coalesce(since, ?) END", (today,))

    def purge(self, live: Iterable[bytes]) -> bool:
        """Makes the vector of every text that stands nowhere any more unreadable; false when a reader is in the way.

        A run that is embedding one of them just then does not bring it back: it is left the digests.
        """
        with alone(self.path) as idle, self._transaction():
            self._orphans(live, keep_digests=not idle)
            self._delete("digest NOT IN (SELECT text FROM places)")
            self.db.execute("DELETE FROM purged WHERE text IN (SELECT text FROM places)")
        return not self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

    def _delete(self, where: str, *values: int) -> None:
        if self.db.execute(f"DELETE FROM texts WHERE {where}", values).rowcount:
            sql = "INSERT INTO meta VALUES('generation', '1') ON CONFLICT(key) DO UPDATE SET value = value + 1"
            self.db.execute(sql)

    def _orphans(self, live: Iterable[bytes], *, keep_digests: bool = False) -> None:
        self.db.execute("CREATE TEMP TABLE IF NOT EXISTS live(passage BLOB PRIMARY KEY) WITHOUT ROWID")
        self.db.execute("DELETE FROM live")
        self.db.executemany("INSERT OR IGNORE INTO live VALUES(?)", ((key,) for key in live))
        gone = "FROM places WHERE passage NOT IN (SELECT passage FROM live)"
        if keep_digests:
            self.db.execute(f"INSERT OR IGNORE INTO purged SELECT text {gone}")
        self.db.execute(f"DELETE {gone}")

    def note(self, facts: Mapping[str, str]) -> None:
        """Keeps what is known of the model."""
        with self._transaction():
            for key, value in facts.items():
                self._note(key, value)

    def _note(self, key: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))
        self.facts[key] = value

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise


def name_of(model: str, scheme: str) -> str:
    """The file's name for a model with its prefix scheme."""
    return f"vectors-{digest(encode(f'{FORMAT}/{model}/{scheme}'), 6)}.sqlite3"


def stores(folder: str) -> list[str]:
    """The vector files in `folder`, the one written last first."""
    try:
        names = [n for n in os.listdir(folder) if n.startswith("vectors-") and n.endswith(".sqlite3")]
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names]
    return sorted(paths, key=lambda path: (-_time(path), path))


def _time(path: str) -> float:
    return max((os.stat(p).st_mtime for p in upkeep.files(path)[:2] if os.path.exists(p)), default=0.0)


@contextmanager
def alone(path: str) -> Iterator[bool]:
    """Whether nobody else embeds into the file at `path`; held until the end, also when the process is killed."""
    handle = os.open(path.removesuffix(".sqlite3") + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            pass
        yield True
    finally:
        os.close(handle)


def _reader(path: str) -> sqlite3.Connection:
    """Raises `schema.Absent` where there is none of ours, made where it stands."""
    if not os.path.exists(path):
        raise schema.Absent("is missing")
    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
    folder_is_ours = os.access(os.path.dirname(path), os.W_OK)
    db = sqlite3.connect(
        uri if folder_is_ours else uri + "&immutable=1",
        uri=True,
        isolation_level=None,
        timeout=1,
        check_same_thread=False,
    )
    try:
        db.execute("PRAGMA query_only=ON")
        if not _is_built(db, path):
            raise schema.Absent("is missing or was made elsewhere")
    except BaseException:
        db.close()
        raise
    return db


def _writer(path: str) -> sqlite3.Connection:
    """Makes the file where there is none; one that is damaged or was copied from elsewhere is made anew."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    for again in (False, True):
        db = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE, check_same_thread=False)
        try:
            built = _is_built(db, path)
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON", "temp_store=MEMORY"):
                db.execute(f"PRAGMA {pragma}")
            if not built:
                _build(db, path)
            db.execute(PURGED)
            return db
        except sqlite3.DatabaseError as error:
            db.close()
            if again or not schema.is_damage(error):
                raise
            upkeep.delete(*upkeep.files(path))
        except BaseException:
            db.close()
            raise
    raise AssertionError("unreachable: the second try returns or raises")  # pragma: no cover


def _is_built(db: sqlite3.Connection, path: str) -> bool:
    """Whether the tables are there and were made there. Raises `Refused` for another program's database."""
    owner = db.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION:
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise Refused(f"'{path}' is another program's database.", "It was not touched; move it away.")
        return False
    if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
        return False
    row = db.execute("SELECT value FROM meta WHERE key = 'inode'").fetchone()
    return row is not None and row[0] == schema.inode(path)


def _build(db: sqlite3.Connection, path: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    for table in ("places", "texts", "meta", "purged"):
        db.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in TABLES.split(";\n"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO meta VALUES('inode', ?)", (schema.inode(path),))
    db.execute(f"PRAGMA application_id={APPLICATION}")
    db.execute(f"PRAGMA user_version={FORMAT}")
    db.execute("COMMIT")
