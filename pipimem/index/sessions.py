"""The index of conversations: a file of its own beside the passages', by pointer; rows in and out of it.

What was said is never kept: for each message its id, time, place in the host's file, digest, and the set of its
words. `spoken` has the tables and the asking. All of it can be derived again from the list of sources.
"""

from __future__ import annotations

import os
import time as clock

from pipimem import safety
from pipimem.errors import Refused, Unreadable
from pipimem.index import chinese, schema, spoken, upkeep, words
from pipimem.index.place import MEMORY, Place
from pipimem.index.schema import sqlite3
from pipimem.index.search import without_words
from pipimem.index.spoken import ROLE_BITS, ROLE_MASK, ROLES, SOURCE_BITS, Within
from pipimem.index.sync import Cutting
from pipimem.text import digest, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from pipimem.index.chinese import Cutter
    from pipimem.transcript import Message
    from pipimem.workspace import Workspace

    Key = tuple[str, str, str]

APPLICATION, FORMAT = 0x70694D73, 1
COLUMNS = (
    "engine", "session", "path", "digest", "stamp", "size", "channel", "project", "name", "agent", "cwd", "title",
    "kind", "parent", "first", "last", "messages", "calls", "errors", "status",
)  # fmt: skip
COPYING = frozenset(["chatgpt", "claude", "codex", "openclaw", "pi"])
"""Hosts whose resumed and forked sessions repeat messages under ids that no other message has."""
LOCK = "sessions.lock"
PATIENCE = 30.0
BATCH = 500
_MESSAGE = "id, name, ident, time, at, end, digest"


class Taken:
    """What taking a conversation did: messages added, changed, removed, and passed over by reason."""

    __slots__ = ("added", "changed", "passed", "removed")

    def __init__(self) -> None:
        self.added = self.changed = self.removed = 0
        self.passed: dict[str, int] = {}


class Spoken:
    """A message as the index knows it: its source's number, id, role, time, where it stands, the digest of its text."""

    __slots__ = ("at", "digest", "end", "ident", "name", "role", "row", "score", "source", "time")

    def __init__(self, row: Sequence[Any], score: float = 0.0) -> None:
        self.row, self.name, self.ident, self.time, self.at, self.end, self.digest = row[:7]
        self.source = self.row >> SOURCE_BITS
        self.role = ROLES[self.row & ROLE_MASK]
        self.score = score


class Talk:
    """A conversation as the index knows it; the attributes are the columns."""

    __slots__ = ("id", *COLUMNS)

    if TYPE_CHECKING:
        engine: str
        session: str
        path: str
        digest: str
        stamp: str
        size: int
        channel: str
        project: str
        name: str
        agent: str
        cwd: str
        title: str
        kind: str
        parent: str
        first: str
        last: str
        messages: int
        calls: int
        errors: int
        status: str

    def __init__(self, row: Sequence[Any]) -> None:
        self.id = int(row[0])
        for column, value in zip(COLUMNS, row[1:], strict=True):
            setattr(self, column, value)


class Sessions:
    """The conversations of one workspace. It is opened when first asked, and made where it is missing.

    `mark` is what the list of sources was when everything in it was last taken, `seen` the stamp of its file at the
    last look. `notes` collects what a person should hear. Raises `Refused` for another program's database and where
    nobody else lets go of it.
    """

    def __init__(self, workspace: Workspace, notes: list[str]) -> None:
        self.workspace = workspace
        self.notes = notes
        self._place = Place(workspace)
        self._db: sqlite3.Connection | None = None
        self._at = MEMORY
        self.seen: str | None = None
        self._size: tuple[int, tuple[int, float]] | None = None
        self._cutting: Cutting | None = None
        self._asking: Cutter | None = None
        self._tried = False

    def trial(self) -> Sessions:
        """A copy in no place of the workspace, thrown away when closed: what it takes is counted as it would be here,
        and cannot be searched for."""
        copy = Sessions(self.workspace, self.notes)
        copy._tried, copy._db = True, sqlite3.connect("", isolation_level=None, check_same_thread=False)
        if self.exists:
            self.db().backup(copy._db)
        else:
            copy._build(copy._db)
        return copy

    def close(self) -> None:
        """Lets go of the file."""
        for part in (self._cutting, self._asking, self._db):
            if part is not None:
                part.close()
        self._cutting = self._asking = self._db = self.seen = None

    def path(self) -> str:
        """Where the index is or would be made: beside that of passages, under a name of its own."""
        at, _ = self._place.find()
        if at == MEMORY:
            return at
        name = os.path.basename(at).removeprefix("index-").removesuffix(".sqlite3")
        return os.path.join(os.path.dirname(at), f"sessions-{name}-{digest(encode(spoken.TABLES), 3)}.sqlite3")

    @property
    def exists(self) -> bool:
        """Whether there is anything to ask without making it first."""
        return self._db is not None or os.path.exists(self.path())

    def db(self) -> sqlite3.Connection:
        """The open file; one that is damaged is deleted and made anew, for everything in it can be derived."""
        if self._db is None:
            self._at = self.path()
            try:
                self._db = self._open()
            except (sqlite3.DatabaseError, schema.Damaged) as error:
                if not isinstance(error, schema.Damaged) and not schema.is_damage(error):
                    raise _busy(error) from None
                self.discard(str(error))
                self._db = self._open()
            except OSError as error:
                raise Unreadable(f"The index of sessions cannot be opened: {error}.", "Check its folder.") from None
        return self._db

    def _open(self) -> sqlite3.Connection:
        if self._at != MEMORY:
            os.makedirs(os.path.dirname(self._at), mode=0o700, exist_ok=True)
            if self._at.startswith(self.workspace.private()):
                self.workspace.prepare()
            if not os.access(os.path.dirname(self._at), os.W_OK) or (
                os.path.exists(self._at) and not os.access(self._at, os.W_OK)
            ):
                return self._read_only()
        db = sqlite3.connect(self._at, isolation_level=None, timeout=PATIENCE, check_same_thread=False)
        try:
            if not self._is_built(db):
                with self._turn():
                    self._build(db)
            for pragma in ("synchronous=NORMAL", "secure_delete=ON", "trusted_schema=OFF", "cache_size=-8192"):
                db.execute(f"PRAGMA {pragma}")
        except BaseException:
            db.close()
            raise
        return db

    def _read_only(self) -> sqlite3.Connection:
        if not schema.is_quiet(self._at):
            self._at = MEMORY
            return self._open()
        uri = "file:" + "".join(f"%{byte:02x}" for byte in os.fsencode(self._at)) + "?mode=ro&immutable=1"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        if not self._is_built(db):
            db.close()
            self._at = MEMORY
            return self._open()
        return db

    def _is_built(self, db: sqlite3.Connection) -> bool:
        """Whether the tables are there, made where they stand. Raises `Refused` for a stranger's database."""
        owner = db.execute("PRAGMA application_id").fetchone()[0]
        if owner != APPLICATION:
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise Refused(f"'{self._at}' is another program's database.", "It was not touched; move it away.")
            return False
        if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            raise schema.Damaged("another version")
        row = db.execute("SELECT value FROM meta WHERE key = 'inode'").fetchone()
        if self._at != MEMORY and (row is None or row[0] != schema.inode(self._at)):
            raise schema.Damaged("it was copied from elsewhere")
        return True

    def _build(self, db: sqlite3.Connection) -> None:
        if self._is_built(db):
            return  # another process was first
        if self._at != MEMORY:
            db.execute("PRAGMA journal_mode=WAL")
        db.execute("BEGIN IMMEDIATE")
        for statement in spoken.TABLES.split(";\n"):
            if statement.strip():
                db.execute(statement)
        db.execute("INSERT INTO meta VALUES('inode', ?)", (schema.inode(self._at),))
        db.execute(f"PRAGMA application_id={APPLICATION}")
        db.execute(f"PRAGMA user_version={FORMAT}")
        db.execute("COMMIT")
        self._sweep()

    def _turn(self) -> AbstractContextManager[object]:
        from contextlib import nullcontext

        return nullcontext() if self._at == MEMORY else upkeep.turn(os.path.dirname(self._at), PATIENCE, LOCK)

    def _sweep(self) -> None:
        """Deletes the files of other versions that nobody used for 30 days."""
        folder, own = os.path.dirname(self._at), os.path.basename(self._at)
        for name in os.listdir(folder) if self._at != MEMORY else ():
            if name.startswith("sessions-") and ".sqlite3" in name and not name.startswith(own):
                path = os.path.join(folder, name)
                if clock.time() - max(os.stat(path).st_mtime, os.stat(path).st_atime) > upkeep.UNUSED:
                    upkeep.delete(path)

    def discard(self, reason: str = "") -> None:
        """Deletes the file; what the hosts still have is taken again by the next look."""
        if reason:
            self.notes.append(f"The index of sessions was unusable ({reason}) and is made anew.")
        self.close()
        at = self.path()
        if at != MEMORY:
            upkeep.delete(*upkeep.files(at))

    # What is known

    @property
    def mark(self) -> str:
        """What the list of sources was when it was last taken whole."""
        row = self.db().execute("SELECT value FROM meta WHERE key = 'sources'").fetchone()
        return str(row[0]) if row else ""

    @mark.setter
    def mark(self, value: str) -> None:
        if self.mark != value:
            self._write(lambda db: db.execute("INSERT OR REPLACE INTO meta VALUES('sources', ?)", (value,)))

    def talks(self, where: str = "1", values: Sequence[Any] = (), limit: int = -1) -> list[Talk]:
        """The conversations under a condition, the last first."""
        sql = f"SELECT id, {', '.join(COLUMNS)} FROM sources WHERE {where} ORDER BY last DESC, id DESC LIMIT ?"
        return [Talk(row) for row in self.db().execute(sql, (*values, limit))]

    def talk(self, key: Key) -> Talk | None:
        """The conversation of that engine, session and path."""
        found = self.talks("engine = ? AND session = ? AND path = ?", key)
        return found[0] if found else None

    def search(self, text: str, within: Within, limit: int) -> list[Spoken]:
        """The best messages for a query, without their texts. Raises `Usage` for a query without words."""
        db = self.db()
        query = words.query(text, self._query_cut)
        if not query:
            raise without_words()
        found = spoken.find(db, query, within, limit, self._measured(db))
        scores = dict(found)
        rows = {s.row: s for s in self._messages(f"id IN ({','.join(str(row) for row, _ in found)})")}
        for row, message in rows.items():
            message.score = round(scores[row], 4)
        return [rows[row] for row, _ in found if row in rows]

    def holding(self, text: str) -> list[Spoken]:
        """Every message that may hold `text`; whether it does is for its file to say."""
        rows = spoken.holding(self.db(), text)
        parts = (rows[at : at + BATCH] for at in range(0, len(rows), BATCH))
        return [m for part in parts for m in self._messages(f"id IN ({','.join(map(str, part))})")]

    def _measured(self, db: sqlite3.Connection) -> tuple[int, float]:
        version = db.execute("PRAGMA data_version").fetchone()[0]
        if self._size is None or self._size[0] != version:
            self._size = version, spoken.measured(db)
        return self._size[1]

    def message(self, talk: Talk, name: str) -> list[Spoken]:
        """The messages of a conversation that are called so in references: one, or rarely two of different roles."""
        low, high = talk.id << SOURCE_BITS, (talk.id + 1 << SOURCE_BITS) - 1
        return self._messages("name = ? AND id BETWEEN ? AND ?", (name, low, high))

    def messages(self, talk: Talk) -> list[Spoken]:
        """The messages of a conversation in their order."""
        low, high = talk.id << SOURCE_BITS, (talk.id + 1 << SOURCE_BITS) - 1
        return self._messages("id BETWEEN ? AND ? ORDER BY at, id", (low, high))

    def lacks(self, talk: Talk) -> bool:
        """Whether messages of a conversation were passed over, as another session says them."""
        if talk.engine not in COPYING:
            return False
        low, high = talk.id << SOURCE_BITS, (talk.id + 1 << SOURCE_BITS) - 1
        sql = f"SELECT count(*) FROM messages WHERE id BETWEEN ? AND ? AND id & {ROLE_MASK} <> {ROLES.index('tool')}"
        return bool(self.db().execute(sql, (low, high)).fetchone()[0] < talk.messages)

    def last(self, talk: Talk) -> list[Spoken]:
        """The last message somebody said in a conversation, if there is one."""
        low, high = talk.id << SOURCE_BITS, (talk.id + 1 << SOURCE_BITS) - 1
        said = f"id & {ROLE_MASK} <> {ROLES.index('tool')}"
        return self._messages(f"id BETWEEN ? AND ? AND {said} ORDER BY at DESC, id DESC LIMIT 1", (low, high))

    def _messages(self, where: str, values: Sequence[Any] = ()) -> list[Spoken]:
        return [Spoken(row) for row in self.db().execute(f"SELECT {_MESSAGE} FROM messages WHERE {where}", values)]

    # Taking and dropping

    def take(
        self, about: Mapping[str, Any], messages: Sequence[Message], *, forgotten: Collection[str] = (),
        anew: bool = False, was: str = "",
    ) -> Taken:  # fmt: skip
        """Takes a conversation whole, in one transaction: what is new is added, what it no longer holds goes.

        A message is known by its id and role, and is new where its text changed. One that an earlier session of the
        same host and channel says word for word (a resumed one begins with a copy) is passed over while that one's file
        is there, and taken from a later one. So is one in `forgotten` (references) passed over.
        `anew` drops everything of it before; `was` is the path it has moved from.
        """
        taken = Taken()

        def write(db: sqlite3.Connection) -> None:
            number = self._source(db, about, was)
            if anew:
                self._drop_messages(db, number)
            _Taking(self, db, number, about, taken).all(messages, set(forgotten))

        self._write(write)
        return taken

    def describe(self, about: Mapping[str, Any], was: str = "") -> None:
        """Takes what is known of a conversation, and leaves its messages as they are."""
        self._write(lambda db: self._source(db, about, was))

    def drop(self, key: Key) -> None:
        """Forgets a conversation of this engine, session and path with all its messages."""
        talk = self.talk(key)
        if talk is None:
            return

        def write(db: sqlite3.Connection) -> None:
            self._drop_messages(db, talk.id)
            db.execute("DELETE FROM sources WHERE id = ?", (talk.id,))

        self._write(write)

    def forget(self, rows: Iterable[int]) -> int:
        """Takes messages out for good: rows and words, then also out of the file's bytes; how many that were.

        Whoever forgets must keep them from being taken again: see `take`.
        """
        gone = sorted(set(rows))

        def write(db: sqlite3.Connection) -> None:
            for at in range(0, len(gone), BATCH):
                self._delete(db, gone[at : at + BATCH])

        if gone:
            self._write(write)
            self.scrub()
        return len(gone)

    def scrub(self) -> None:
        """Makes what was deleted unreadable: merges the full text, cuts the log, deletes the files of other versions.

        A file that somebody else is reading is deleted, and derived again.
        """
        db = self.db()
        try:
            with self._turn():
                db.execute("INSERT INTO f(f) VALUES('optimize')")
                held = self._at != MEMORY and db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except (sqlite3.Error, TimeoutError):
            held = True
        folder, own = os.path.dirname(self._at), os.path.basename(self._at)
        for name in os.listdir(folder) if self._at != MEMORY else ():
            if name.startswith("sessions-") and ".sqlite3" in name and not name.startswith(own):
                upkeep.delete(os.path.join(folder, name))
        if held:
            self.discard()

    def _source(self, db: sqlite3.Connection, about: Mapping[str, Any], was: str) -> int:
        key = (about["engine"], about["session"])
        if was:
            sql = "UPDATE OR IGNORE sources SET path = ? WHERE engine = ? AND session = ? AND path = ?"
            db.execute(sql, (about["path"], *key, was))
        values = [about[column] for column in COLUMNS]
        changed = ", ".join(f"{c} = excluded.{c}" for c in COLUMNS[3:])
        db.execute(
            f"INSERT INTO sources({', '.join(COLUMNS)}) VALUES({','.join('?' * len(COLUMNS))})"
            f" ON CONFLICT(engine, session, path) DO UPDATE SET {changed}", values,
        )  # fmt: skip
        found = db.execute(
            "SELECT id FROM sources WHERE engine = ? AND session = ? AND path = ?", (*key, about["path"])
        )
        return int(found.fetchone()[0])

    def _drop_messages(self, db: sqlite3.Connection, number: int) -> None:
        low, high = number << SOURCE_BITS, (number + 1 << SOURCE_BITS) - 1
        rows = [row for (row,) in db.execute("SELECT id FROM messages WHERE id BETWEEN ? AND ?", (low, high))]
        for at in range(0, len(rows), BATCH):
            self._delete(db, rows[at : at + BATCH])

    def _delete(self, db: sqlite3.Connection, rows: Sequence[int]) -> None:
        marks = ",".join(map(str, rows))
        old = db.execute(f"SELECT id, terms FROM messages WHERE id IN ({marks})").fetchall()
        db.executemany(
            "INSERT INTO f(f, rowid, words, pairs) VALUES('delete', ?, ?, ?)",
            [(row, *spoken.unpacked(terms)) for row, terms in old],
        )
        db.execute(f"DELETE FROM messages WHERE id IN ({marks})")

    def _write(self, act: Callable[[sqlite3.Connection], object]) -> None:
        """One transaction, in its turn. Raises `Refused`."""
        db = self.db()
        self._size = None
        try:
            with self._turn():
                db.execute("BEGIN IMMEDIATE")
                try:
                    act(db)
                    db.execute("COMMIT")
                except BaseException:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    raise
        except (sqlite3.Error, OSError) as error:
            raise _busy(error) from None

    # Words

    def cut(self, runs: Sequence[str]) -> list[list[str]]:
        """The words of runs of Chinese that are to be indexed."""
        if self._cutting is None:
            self._cutting = Cutting(self._dictionary, lambda: chinese.bulk_cutter(self._lexicon()))
        return self._cutting.cut(runs)

    def _query_cut(self, runs: Sequence[str]) -> list[list[str]]:
        self._asking = self._asking or self._dictionary()
        return self._asking.cut_many(runs) if self._asking else self.cut(runs)

    def _dictionary(self) -> Cutter | None:
        self._place.make_dictionary()
        path = self._place.dictionary()
        try:
            return chinese.dictionary_cutter(path, self._lexicon()) if path else None
        except Unreadable:
            return None

    def _lexicon(self) -> dict[str, int]:
        return chinese.lexicon(self._place.lexicon().decode("utf-8", "replace"))

    def words_of(self, message: Message) -> tuple[str, str]:
        """The sets a message is found by: its text, and the files and commands it names, secrets out first."""
        if self._tried:
            return "", ""
        config = self.workspace.config
        parts = [*message.files, *message.commands, message.text]  # the text last: it is the one that is cut
        redacted = safety.redact("\n".join(parts), config["safety.patterns"], config["safety.allow"])
        return spoken.bag(redacted, self.cut)


class _Taking:
    """One conversation being taken, inside its transaction."""

    def __init__(
        self, index: Sessions, db: sqlite3.Connection, number: int, about: Mapping[str, Any], taken: Taken
    ) -> None:
        self.index, self.db, self.number, self.about, self.taken = index, db, number, about, taken
        low, high = number << SOURCE_BITS, (number + 1 << SOURCE_BITS) - 1
        rows = db.execute("SELECT id, name, digest, at, end FROM messages WHERE id BETWEEN ? AND ?", (low, high))
        self.have = {(row[1], row[0] & ROLE_MASK): row for row in rows.fetchall()}
        self.next = max((row[0] >> ROLE_BITS for row in self.have.values()), default=low >> ROLE_BITS) + 1
        self.beside = self._beside()
        self.elsewhere = self._elsewhere()

    def all(self, messages: Iterable[Message], forgotten: set[str]) -> None:
        """Takes every message in order, then drops what is no longer there."""
        batch: list[tuple[Any, ...]] = []
        for message in messages:
            row = self._row(message, forgotten)
            if row is not None:
                batch.append(row)
            if len(batch) >= BATCH:
                self._insert(batch)
                batch = []
        self._insert(batch)
        left = [row[0] for row in self.have.values()]
        self.taken.removed += len(left)
        for at in range(0, len(left), BATCH):
            self.index._delete(self.db, left[at : at + BATCH])

    def _beside(self) -> dict[tuple[str, int], tuple[int, bytes]]:
        """The messages that other files of this session hold, as a log that was rotated; those of its channel."""
        sql = "SELECT id FROM sources WHERE engine = ? AND session = ? AND channel = ? AND id <> ?"
        found: dict[tuple[str, int], tuple[int, bytes]] = {}
        about = self.about
        values = (about["engine"], about["session"], about["channel"], self.number)
        for (other,) in self.db.execute(sql, values).fetchall():
            low, high = other << SOURCE_BITS, (other + 1 << SOURCE_BITS) - 1
            rows = self.db.execute("SELECT id, name, digest FROM messages WHERE id BETWEEN ? AND ?", (low, high))
            found.update({(row[1], row[0] & ROLE_MASK): (row[0], row[2]) for row in rows})
        return found

    def _elsewhere(self) -> bool:
        """Whether the host has other sessions, so that a message may have been said in one of them first."""
        sql = "SELECT 1 FROM sources WHERE engine = ? AND session <> ? LIMIT 1"
        return self.db.execute(sql, (self.about["engine"], self.about["session"])).fetchone() is not None

    def _row(self, message: Message, forgotten: set[str]) -> tuple[Any, ...] | None:
        """The columns of a message that is to be inserted, None where there is nothing to do."""
        role = ROLES.index(message.role) if message.role in ROLES else 0
        name = message.ref.partition("#")[2]
        if message.ref in forgotten:
            self._pass("forgotten")
            return None
        mark, old = _mark(message), self.have.pop((name, role), None)
        if old is not None and old[2] == mark:
            if old[3:] != (message.at, message.end):
                self.db.execute("UPDATE messages SET at = ?, end = ? WHERE id = ?", (message.at, message.end, old[0]))
            return None
        origin = _origin(self.about["engine"], message, mark)
        if old is None and origin is not None and self.elsewhere and self._said_before(origin):
            self._pass("in an earlier session")
            return None
        beside = self.beside.get((name, role))
        if old is not None or (beside is not None and beside[1] == mark):
            self.index._delete(self.db, [old[0] if old is not None else beside[0]])  # type: ignore[index]
        self.taken.changed += old is not None
        self.taken.added += old is None and beside is None
        terms = self.index.words_of(message)
        number = self.next << ROLE_BITS | role
        self.next += 1
        size = terms[0].count(" ") + terms[1].count(" ") + 2
        return (
            number, name, message.id, message.time, message.at, message.end, mark, origin, size,
            spoken.packed(terms), terms,
        )  # fmt: skip

    def _pass(self, reason: str) -> None:
        self.taken.passed[reason] = self.taken.passed.get(reason, 0) + 1

    def _said_before(self, origin: bytes) -> bool:
        """Whether an earlier session of the channel says it, whose file is there; another one's copy goes."""
        sql = (
            f"SELECT m.id, s.path, s.first, s.last FROM messages m JOIN sources s ON s.id = m.id >> {SOURCE_BITS}"
            " WHERE m.origin = ? AND s.session <> ? AND s.channel = ?"
        )
        about, copies = self.about, list[int]()
        for row, path, *span in self.db.execute(sql, (origin, about["session"], about["channel"])).fetchall():
            if span <= [about["first"], about["last"]] and os.path.isfile(os.path.expanduser(path)):
                return True
            copies.append(row)
        self.index._delete(self.db, copies)
        return False

    def _insert(self, batch: Sequence[tuple[Any, ...]]) -> None:
        self.db.executemany("INSERT INTO messages VALUES(?,?,?,?,?,?,?,?,?,?)", [row[:10] for row in batch])
        self.db.executemany("INSERT INTO f(rowid, words, pairs) VALUES(?, ?, ?)", [(row[0], *row[10]) for row in batch])


def _mark(message: Message) -> bytes:
    return mark_of(message.text, message.files, message.commands)


def mark_of(text: str, files: Sequence[str] = (), commands: Sequence[str] = ()) -> bytes:
    """The digest by which a text read again is told to be the one that was indexed."""
    return bytes.fromhex(digest(encode("\0".join([text, *files, "", *commands])), 8))


def _origin(engine: str, message: Message, mark: bytes) -> bytes | None:
    """What tells a message in whatever session it stands; None where its id or time says nothing across files."""
    by_line = message.id[:1] == "L" and message.id[1:].isdigit()
    if not message.time or by_line or not message.id or engine not in COPYING:
        return None
    parts = [engine, message.id, message.role, message.time, mark.hex()]
    return bytes.fromhex(digest(encode("\0".join(parts)), 8))


def _busy(error: Exception) -> Exception:
    if isinstance(error, TimeoutError) or (isinstance(error, sqlite3.Error) and schema.is_busy(error)):
        return Refused("The index of sessions is being written by another process.", "Try again in a moment.")
    return Refused(f"The index of sessions cannot be used: {error}.", "Delete '.pipimem/cache' and try again.")
