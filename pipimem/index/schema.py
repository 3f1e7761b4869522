"""The SQLite file: its tables, how it is opened for asking, and how one that is damaged, foreign or not built is told.

Everything that writes it is in `sync`.
"""

from __future__ import annotations

import os

from pipimem.errors import Refused
from pipimem.text import digest, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as sqlite3
else:
    try:  # the bare C module: the package around it loads `datetime` for converters, a tenth of a cold search
        import _sqlite3 as sqlite3
    except ImportError:  # pragma: no cover - an interpreter without the private module
        import sqlite3

APPLICATION = 0x70694D65
FORMAT = 4
CHANNEL_BITS, PASSAGE_BITS = 20, 24
"""A document's id is its channel's number and, in so many bits, its own; a passage's row is its document's id and, in
so many bits, its number (a file of 50 MB has fewer). So a channel is one range of rows; the shared layer is number 0.
"""

TITLE = "|"
"""What parts a heading's own words from those of the headings above it; no word holds it."""

KINDS = (
    "failure", "error", "fix", "decision", "preference", "correction", "user", "project", "repo", "file", "directory",
    "command", "tool", "package", "framework", "skill", "session", "entity", "note", "tag",
)  # fmt: skip
"""What a node of the graph can be (design §4), the telling before the vague: a thing that is called a tool here and an
entity there is a tool. In the tables a kind is its place in this list."""

TABLES = """
-- 1: the version of what counts as a link (links.py)
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, channel TEXT NOT NULL, layer TEXT NOT NULL,
  stamp TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, note TEXT NOT NULL,
  passages INTEGER NOT NULL, length INTEGER NOT NULL, type TEXT NOT NULL, domains TEXT NOT NULL);
CREATE INDEX documents_channel ON documents(channel);
CREATE INDEX documents_archive ON documents(layer) WHERE layer = 'archive';
CREATE TABLE heads(id INTEGER PRIMARY KEY, trail TEXT NOT NULL, words TEXT NOT NULL, runs TEXT NOT NULL);
CREATE TABLE passages(
  id INTEGER PRIMARY KEY, start INTEGER NOT NULL, end INTEGER NOT NULL, line INTEGER NOT NULL,
  ref TEXT NOT NULL, entry INTEGER NOT NULL, kind TEXT NOT NULL, since TEXT NOT NULL, until TEXT NOT NULL,
  trial TEXT NOT NULL, author TEXT NOT NULL, conf REAL NOT NULL, supersedes TEXT NOT NULL,
  conflicts TEXT NOT NULL,
  digest TEXT NOT NULL, verdict TEXT NOT NULL);
CREATE TABLE texts(
  id INTEGER PRIMARY KEY, head INTEGER NOT NULL, alone INTEGER NOT NULL, words TEXT NOT NULL, runs TEXT NOT NULL);
CREATE INDEX passages_ref ON passages(ref) WHERE ref <> '';
CREATE INDEX passages_supersedes ON passages(supersedes) WHERE supersedes <> '';
CREATE INDEX passages_conflicts ON passages(conflicts) WHERE conflicts <> '';
CREATE TABLE names(
  id INTEGER PRIMARY KEY, name INTEGER NOT NULL, node INTEGER NOT NULL, rank INTEGER NOT NULL, kind INTEGER NOT NULL,
  spelled TEXT NOT NULL);
CREATE INDEX names_name ON names(name, rank);
CREATE INDEX names_node ON names(node, rank, kind, spelled);
CREATE TABLE edges(
  id INTEGER PRIMARY KEY, src INTEGER NOT NULL, dst INTEGER NOT NULL, named INTEGER NOT NULL, relation TEXT NOT NULL,
  layer TEXT NOT NULL, weight REAL NOT NULL, kind INTEGER NOT NULL, spelled TEXT NOT NULL, passage INTEGER NOT NULL,
  line INTEGER NOT NULL);
CREATE INDEX edges_src ON edges(src, dst);
CREATE INDEX edges_dst ON edges(dst, kind, spelled, src);
CREATE INDEX edges_named ON edges(named) WHERE named <> 0;
CREATE VIRTUAL TABLE f USING fts5(
  heading, body, pairs, content='', tokenize='unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE v USING fts5vocab(f, 'col');
"""
TABLE_NAMES = ("v", "f", "edges", "names", "texts", "passages", "heads", "documents", "meta")
READ_PATIENCE = 1
"""Seconds a reader waits for a lock; in a write-ahead log only a recovery after a crash can make it wait."""


def key(name: str) -> int:
    """The number that stands for a canonical name in the graph's tables: 64 bits of its digest, as SQLite has them.

    The same in every index, so that the order of its rows is that of a rebuild.
    """
    return int.from_bytes(bytes.fromhex(digest(encode(name), 8)), "big", signed=True)


class Damaged(Exception):
    """The file is ours and of no use: no database, a torn page, another version, or a missing part."""


class Absent(Exception):
    """Nothing is built there yet, or what is there was copied from elsewhere; the text says which."""


def read(path: str, *, immutable: bool = False) -> sqlite3.Connection:
    """An open reader on the index at `path`: what it asks changes no table, log or time stamp.

    `immutable` is for a folder that cannot be written: no side file is made or looked at. Threads may hand the reader
    on, but not share it. Raises `Absent`, `Damaged`, `Refused` for another program's database, and `sqlite3.Error` for
    what may pass.
    """
    if not os.path.exists(path):
        raise Absent("is missing")
    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=ro"
    db = sqlite3.connect(
        uri + "&immutable=1" if immutable else uri, uri=True, isolation_level=None, timeout=READ_PATIENCE,
        check_same_thread=False,
    )  # fmt: skip
    try:
        db.execute("PRAGMA query_only=ON")
        check(db, path)
    except BaseException:
        db.close()
        raise
    return db


def check(db: sqlite3.Connection, path: str) -> None:
    """Raises `Absent`, `Damaged` or `Refused` unless `db` is an index of this version, made where it stands.

    A copied file is not believed: it may come with a stranger's workspace, and its safety verdicts with it.
    """
    try:
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        if owner != APPLICATION:
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise Refused(f"'{path}' is another program's database.", "It was not touched; move it away.")
            raise Absent("is missing")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != FORMAT:
            raise Damaged(f"version {version}")
        row = db.execute("SELECT value FROM meta WHERE key = 'inode'").fetchone()
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise Damaged(str(error)) from None
        raise
    if row is None or row[0] != inode(path):
        raise Absent("was made elsewhere")


def inode(path: str) -> str:
    """What tells the file at `path` from its copies, and from the one that takes its place; "" where there is none."""
    try:
        return str(os.stat(path).st_ino)
    except OSError:
        return ""


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process holds the database, which passes, as against damage, which does not."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file must be made anew: a torn or foreign page, or a table or column that is not there."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or (
        str(error).startswith(("no such table", "no such column")) or "malformed" in str(error)
    )


def lacks_full_text(error: sqlite3.Error) -> bool:
    """Whether this SQLite has no FTS5, or not its tokenizer; the index itself is then as good as before."""
    return str(error).startswith(("no such module", "no such tokenizer"))


def is_quiet(path: str) -> bool:
    """Whether there is a file at `path` without an unmerged log beside it, so that it may be read as immutable."""
    try:
        return os.path.isfile(path) and not (os.path.exists(path + "-wal") and os.path.getsize(path + "-wal"))
    except OSError:
        return False
