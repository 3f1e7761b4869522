"""The index of one workspace: asking it, keeping it fresh, healing it.

`place` knows where it lives, `schema` owns the file as it is read, `upkeep` as it is written, `fresh` the comparison
with the files, `sync` the rows, `search` the asking, `plain` the asking without an index, `words` and `chinese` what
a word is. All of it may be deleted at any time; that loses time, nothing else.
"""

from __future__ import annotations

import os
import time

from pipimem.errors import Refused, Unreadable
from pipimem.index import schema, words
from pipimem.index.fresh import EMPTY_ALARM, emptied, look
from pipimem.index.place import MEMORY, Place
from pipimem.index.rank import Known
from pipimem.index.schema import sqlite3
from pipimem.index.search import Hit, Scope, by_ref, frequencies, search, without_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import TypeVar

    from pipimem.index.chinese import Cutter
    from pipimem.index.fresh import Look
    from pipimem.index.plain import Files
    from pipimem.index.sync import Diff, Wish
    from pipimem.workspace import Scan, Workspace

    Cut = Callable[[Sequence[str]], list[list[str]]]
    Found = tuple[list[Hit], list[str]]
    Facts = tuple[dict[str, int], list[tuple[str, str]]]
    Skipped = list[tuple[str, str]]
    T = TypeVar("T")

TRUST = 2.0
"""Seconds for which an open index believes its last look at the files (design §4)."""

PATIENCE, PURGE_PATIENCE, SHORT_PATIENCE = 30.0, 5.0, 0.3
"""Seconds of waiting for another writer: where nothing can be done without, where the index may as well be made anew,
and where an answer can do without."""

NO_FULL_TEXT = "this Python's SQLite has no full text (FTS5)"
BUSY = "another process is writing it"
__all__ = ["Hit", "Index", "Scope"]


class _NoFullText(Unreadable):
    """There can be no index here."""


class _Unwritable(Unreadable):
    """The index cannot be written now, and why."""


class Index:
    """The index of one workspace. Asking opens it read-only; what changes it takes turns with other processes.

    After an ask, `stale` says that some files are newer than what was searched, `skipped` which could not be read,
    `notes` what a person should hear (a healed file, a first build), `cutter` how the query's Chinese was cut.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.place = Place(workspace)
        self.stale = False
        self.skipped: Skipped = []
        self.notes: list[str] = []
        self.cutter = "none"
        self.tokenizer = ""
        self.documents = 0
        self.patience = PATIENCE
        self.holds: Callable[[float], bool] = lambda since: False
        self._db: sqlite3.Connection | None = None
        self._at, self._writable, self._inode = "", True, ""
        self._inside, self._in_memory, self._healed = True, False, False
        self._said: set[str] = set()
        self._looks: dict[tuple[str, ...] | None, tuple[float, bool, Skipped]] = {}
        self._dictionary: Cutter | None = None
        self._known = Known()

    def close(self) -> None:
        """Lets go of the file and of the last look; the next ask opens it again."""
        self._looks.clear()
        self._known = Known()
        self._forget_dictionary()
        if self._db is not None:
            self._db.close()
            self._db = None

    def _forget_dictionary(self) -> None:
        if self._dictionary is not None:
            self._dictionary.close()
            self._dictionary = None

    def path(self) -> str:
        """Where the index is, or would be made."""
        return self.place.find()[0]

    def dictionary(self) -> str:
        """The path of the dictionary database, "" where there is none."""
        return self.place.dictionary()

    def _say(self, note: str) -> None:
        if note not in self._said:
            self._said.add(note)
            self.notes.append(note)

    # Asking

    def search(
        self, text: str, scope: Scope, limit: int, *, evidence: bool = False, fresh: bool = False,
        near: Callable[[sqlite3.Connection, str, int, Scope], Sequence[tuple[int, float]] | None] | None = None,
    ) -> list[Hit]:  # fmt: skip
        """The best `limit` passages in scope, with their `evidence` signal where asked for.

        `fresh` looks at the files even when that was done just now. `near` finds rows by meaning, with their share,
        given the text and how many telling words it has. Raises `Usage` for a query without words, else `Unreadable` or
        `Refused`.
        """

        def ask(db: sqlite3.Connection) -> Found:
            query = self._query(text, db)
            found = near(db, text, len(query.words), scope) if near else None
            hits, wrong = search(db, self._read, query, scope, limit, self._known, found)
            if evidence and hits:
                from pipimem.index.evidence import weigh

                weigh(db, query, hits)
            return hits, wrong

        return self._ask(scope, ask, lambda files: files.search(text, scope, limit), fresh=fresh)

    def lookup(self, ref: str, scope: Scope) -> list[Hit]:
        """The passages called `ref` in scope: a step of writing, and so beside another program's database as well."""

        def ask(db: sqlite3.Connection) -> Found:
            return by_ref(db, self._read, ref, scope)

        def plainly(files: Files) -> list[Hit]:
            return files.by_ref(ref, scope)

        try:
            return self._ask(scope, ask, plainly)
        except Refused:
            return self._plainly(plainly, scope, "")

    def graph(self, scope: Scope, ask: Callable[[sqlite3.Connection], T]) -> T:
        """What `ask` (of `index.graph`) finds. Raises `Unreadable` without an index: files alone are no graph."""

        def plainly(files: Files) -> T:
            raise Unreadable("The graph needs the index, which is not to be had now.", "Run 'pipimem doctor'.")

        return self._ask(scope, lambda db: (ask(db), []), plainly)

    def weigh(self, hits: Sequence[Hit], text: str, scope: Scope) -> None:
        """Sets the `graph` signal of hits of this index that are linked to a thing `text` names; looks at no file."""
        if self._db is None:
            return
        try:
            if not self._db.execute("SELECT 1 FROM edges LIMIT 1").fetchone():
                return
            from pipimem.index.linked import weigh

            weigh(self._db, hits, text, scope.channels)
        except sqlite3.Error:
            return  # damage is the next ask's to heal: without the signal the order is as good as it was

    def facts(self) -> Facts:
        """How many entries there are of each kind, and what is wrong with which document."""

        def ask(db: sqlite3.Connection) -> tuple[Facts, list[str]]:
            counts = db.execute("SELECT kind, count(*) FROM passages WHERE entry GROUP BY kind ORDER BY 2 DESC, 1")
            notes = db.execute("SELECT path, note FROM documents WHERE note <> '' ORDER BY path").fetchall()
            unsafe = db.execute(
                "SELECT d.path || ':' || p.line, p.verdict || ': never recalled on its own' FROM passages p"
                f" JOIN documents d ON d.id = p.id >> {schema.PASSAGE_BITS} WHERE p.verdict <> '' ORDER BY 1"
            )
            return (dict(counts.fetchall()), notes + unsafe.fetchall()), []

        def plainly(files: Files) -> Facts:
            kinds = [hit.kind for hit in files.entries()]
            return {kind: kinds.count(kind) for kind in kinds}, files.skipped

        try:
            return self._ask(Scope(), ask, plainly)
        except Refused as refused:
            return self._plainly(plainly, Scope(), refused.message.rstrip("."))

    def kinds(self, scope: Scope) -> dict[str, int]:
        """How many entries of each kind there are in scope, most first."""

        def ask(db: sqlite3.Connection) -> tuple[dict[str, int], list[str]]:
            where, values = scope.documents()
            counts = db.execute(
                f"SELECT p.kind, count(*) FROM passages p JOIN documents d ON d.id = p.id >> {schema.PASSAGE_BITS}"
                f" WHERE p.entry AND {where} GROUP BY p.kind ORDER BY 2 DESC, 1",
                values,
            )
            return dict(counts.fetchall()), []

        def plainly(files: Files) -> dict[str, int]:
            kinds = [hit.kind for hit in files.entries() if scope.covers(hit.channel, hit.layer)]
            return {kind: kinds.count(kind) for kind in kinds}

        return self._ask(scope, ask, plainly)

    def _ask(
        self, scope: Scope, ask: Callable[[sqlite3.Connection], tuple[T, list[str]]], plainly: Callable[[Files], T], *,
        fresh: bool = False,
    ) -> T:  # fmt: skip
        """What `ask` finds: once more where a text was not the indexed one or the index is damaged, else `plainly`."""
        wrong: list[str] = []
        for again in (False, True):
            try:
                answer, wrong = ask(self.reader(scope.channels, fresh=fresh or again, again=wrong))
                if again or not wrong:
                    break
            except sqlite3.Error as error:
                if schema.lacks_full_text(error) or schema.is_busy(error):
                    return self._plainly(plainly, scope, str(_translated(error)))
                if again or not schema.is_damage(error):
                    raise Unreadable(f"The index cannot be asked: {error}.", "Try again in a moment.") from None
                self._heal(str(error))
            except (_NoFullText, _Unwritable) as error:
                return self._plainly(plainly, scope, str(error))
        self.stale = self.stale or bool(wrong)
        return answer

    def _plainly(self, plainly: Callable[[Files], T], scope: Scope, reason: str) -> T:
        from pipimem.index.plain import Files

        if reason:
            self._say(f"There is no index ({reason}); the files were read instead, without ranking.")
        self.close()
        files = Files(self.workspace, self.workspace.scan(scope.channels))
        answer = plainly(files)
        self.stale, self.skipped, self.cutter = False, files.skipped, "none"
        return answer

    def _query(self, text: str, db: sqlite3.Connection) -> words.Query:
        try:
            query = words.query(text, self._query_cut(db))
        except Unreadable as damage:
            self._say(f"{damage.message} 'pipimem index --rebuild' makes it anew.")
            self._forget_dictionary()
            self.cutter = "vocabulary"
            query = words.query(text, self._vocabulary_cut(db))
        if not query:
            raise without_words()
        return query

    def _query_cut(self, db: sqlite3.Connection) -> Cut:
        """A cutter that looks for a dictionary only once there is something to cut."""
        self.cutter = "none"

        def cut(runs: Sequence[str]) -> list[list[str]]:
            self._dictionary = self._dictionary or self._dictionary_cutter()
            self.cutter = "dictionary" if self._dictionary else "vocabulary"
            return self._dictionary.cut_many(runs) if self._dictionary else self._vocabulary_cut(db)(runs)

        return cut

    def _dictionary_cutter(self) -> Cutter | None:
        from pipimem.index import chinese

        for path in self.place.dictionaries():
            if os.path.exists(path):
                try:
                    return chinese.dictionary_cutter(path, self._lexicon())
                except Unreadable:
                    continue
        return None

    def _vocabulary_cut(self, db: sqlite3.Connection) -> Cut:
        from pipimem.index import chinese

        return chinese.vocabulary_cutter(lambda terms: frequencies(db, terms), self._lexicon()).cut_many

    def _lexicon(self) -> dict[str, int]:
        from pipimem.index import chinese

        return chinese.lexicon(self.place.lexicon().decode("utf-8", "replace"))

    def _read(self, path: str, start: int, end: int) -> bytes:
        try:
            handle = os.open(self.workspace.absolute(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                return os.pread(handle, end - start, start)
            finally:
                os.close(handle)
        except (FileNotFoundError, Refused):
            return b""
        except OSError as error:
            reason = (path, (error.strerror or "unreadable").lower())
            if reason not in self.skipped:
                self.skipped.append(reason)
            return b""

    # Freshness

    def reader(
        self, channels: Sequence[str] | None, *, fresh: bool = False, again: Collection[str] = ()
    ) -> sqlite3.Connection:
        """An open reader that says what the files in scope say — or `stale` is true.

        A missing index is built, a damaged one made anew, a small difference indexed at once; more is left to the
        next `index`. `again` names documents that are indexed wrongly. Raises `Unreadable` where the workspace cannot
        be read or is suddenly empty, `Refused` for another program's database.
        """
        key = None if channels is None else tuple(channels)
        now, last = time.monotonic(), self._looks.get(key)
        if last and self._db is not None and not fresh and (now - last[0] < TRUST or self.holds(last[0])):
            _, self.stale, self.skipped = last
            return self._db
        scan = self.workspace.scan(channels)
        db = self._opened()
        found = look(db, scan, channels, self.workspace.root)
        self.stale, self.skipped = False, found.skipped
        if again or not found.empty:
            self._catch_up(scan, channels, found, again)
        self._looks[key] = now, self.stale, self.skipped
        return self._db or self._opened()

    def _opened(self) -> sqlite3.Connection:
        at = (MEMORY, True) if self._in_memory else self.place.find(inside=self._inside)
        if at != (self._at, self._writable):
            self.close()
            self._at, self._writable = at
        if self._db is None:
            self._db = self._open()
            if self._writable:
                self.place.remember(self._at)
        return self._db

    def _open(self) -> sqlite3.Connection:
        """A reader where `_at` says, or where the index can be built instead."""
        if self._at != MEMORY:
            try:
                return self._read_only()
            except schema.Absent as absent:
                if not self._healed:
                    self._say(f"The index {absent}; building it.")
            except schema.Damaged as damage:
                self._heal(str(damage))
        self._build()
        return self._db or self._read_only()

    def _read_only(self) -> sqlite3.Connection:
        self._inode = schema.inode(self._at)
        try:
            return schema.read(self._at, immutable=not self._writable)
        except sqlite3.Error as error:
            if schema.is_busy(error) or not self._writable or not schema.is_quiet(self._at):
                raise
            # No side file can be made, as on a full disk; without an unmerged log none is needed.
            return schema.read(self._at, immutable=True)

    def _build(self) -> None:
        """Builds the index where it belongs, else in the next place that takes it."""
        from pipimem.index.sync import Wish

        if not self._writable:
            self._turn_away()
        while True:
            self.place.make_dictionary()
            if self._at == MEMORY:
                self._say("The index can be written nowhere; it was made in memory.")
            try:
                self._write(self.workspace.scan(), Wish(), self.patience)
                return
            except _Unwritable as error:
                if str(error) == BUSY or self._at == MEMORY:
                    raise
                self._say(f"The index '{self._at}' could not be written: {error}.")
                self._discard()
                self._turn_away()

    def _turn_away(self) -> None:
        """Goes from a place that cannot be used to the next: workspace, user's cache, memory."""
        self._in_memory = not self._inside
        self._inside = False
        self._at, self._writable = (MEMORY, True) if self._in_memory else self.place.find(inside=False)

    def _discard(self) -> None:
        from pipimem.index import upkeep

        upkeep.delete(*upkeep.files(self._at))

    def _catch_up(self, scan: Scan, channels: Sequence[str] | None, found: Look, again: Collection[str]) -> None:
        """Indexes a small difference at once; else, or where that is not possible now, says whether there is one."""
        if not scan.documents and len(found.gone) >= EMPTY_ALARM:
            raise emptied(self.workspace.root, len(found.gone))
        if not (self._writable and found.is_small(self._bytes) and self._take(scan, channels, again)):
            self.stale = bool(again) or found.is_behind(self._bytes)

    def _take(self, scan: Scan, channels: Sequence[str] | None, again: Collection[str]) -> bool:
        from pipimem.index.sync import Wish

        if self._at != MEMORY and self._db is not None:
            self._db.close()
            self._db = None
        self._known = Known()
        try:
            self.skipped = self._write(scan, Wish(channels, again=again), SHORT_PATIENCE).skipped
        except (Unreadable, Refused):
            return False
        return True

    def _bytes(self, path: str) -> bytes | None:
        try:
            return self.workspace.read(path)
        except Unreadable:
            return None

    def _heal(self, reason: str) -> None:
        """Sets the damaged file that was opened last aside, or turns away from it where that cannot be."""
        from pipimem.index import upkeep

        self.close()
        if not self._writable:
            self._say(f"The index '{self._at}' is unusable ({reason}) and cannot be mended there; another is used.")
            self._turn_away()
            return
        try:
            with upkeep.turn(os.path.dirname(self._at), self.patience):
                self._set_aside(self._inode, reason)
        except OSError as error:
            raise Unreadable(f"The index '{self._at}' is damaged: {error}.", "Delete '.pipimem/cache'.") from None

    # Writing

    def sync(self, *, everything: bool = False, rebuild: bool = False) -> Diff:
        """Brings the whole index up to date; makes the dictionary database and the file where they are missing.

        `everything` compares digests, not only stamps, and is patient with other writers. Raises `Unreadable` when the
        workspace cannot be read or is suddenly empty, `Refused` when the index cannot be written.
        """
        from pipimem.index.sync import Diff, Wish

        self.close()
        scan = self.workspace.scan()
        self.workspace.trust()
        self._inside, self._in_memory = True, False
        self._at, self._writable = self.place.find()
        if not self._writable:
            self._at, self._writable = self.place.find(inside=False)
        if self._at == MEMORY:
            raise Refused(
                "The index cannot be kept: neither the workspace nor the user's cache can be written.",
                "Check their permissions; searching works without.",
            )
        self.place.make_dictionary(thorough=rebuild)
        patience = self.patience if everything or rebuild else SHORT_PATIENCE
        try:
            return self._write(scan, Wish(everything=everything, rebuild=rebuild), patience)
        except _NoFullText:
            self._say(f"There is no index ({NO_FULL_TEXT}); searching reads the files instead.")
            return Diff()
        except _Unwritable as error:
            raise Refused(f"The index '{self._at}' could not be written: {error}.", "Try again later.") from None

    def _write(self, scan: Scan, wish: Wish, patience: float) -> Diff:
        """One sync where `_at` says, in its turn. Raises `_NoFullText` and `_Unwritable`."""
        from pipimem.index import upkeep

        self.workspace.trust()
        try:
            if self._at == MEMORY:
                self._db = self._db or upkeep.writer(MEMORY, patience)
                return self._sync(self._db, scan, wish)
            os.makedirs(os.path.dirname(self._at), mode=0o700, exist_ok=True)
            if self._at.startswith(self.workspace.private()):
                self.workspace.prepare()
            with upkeep.turn(os.path.dirname(self._at), patience) as left:
                return self._write_in_turn(scan, wish, left)
        except (OSError, sqlite3.Error, schema.Damaged) as error:
            raise _translated(error) from None

    def _write_in_turn(self, scan: Scan, wish: Wish, patience: float) -> Diff:
        try:
            diff = self._write_once(scan, wish, patience)
        except (schema.Damaged, sqlite3.DatabaseError) as error:
            if not isinstance(error, schema.Damaged) and not schema.is_damage(error):
                raise
            self._set_aside(schema.inode(self._at), str(error))
            diff = self._write_once(scan, wish, patience)
        self.place.remember(self._at)
        return diff

    def _write_once(self, scan: Scan, wish: Wish, patience: float) -> Diff:
        from pipimem.index import upkeep

        db = upkeep.writer(self._at, patience)
        try:
            diff = self._sync(db, scan, wish)
        finally:
            db.close()
        upkeep.sweep(self._at, time.time())
        return diff

    def _sync(self, db: sqlite3.Connection, scan: Scan, wish: Wish) -> Diff:
        from pipimem.index.sync import Cutting, sync

        cutting = Cutting(self._dictionary_cutter, self._bulk_cutter)
        try:
            diff = sync(db, self._at, self.workspace, scan, cutting.cut, wish)
        finally:
            cutting.close()
        self.tokenizer = " + ".join(["porter", *cutting.sources])
        self.documents = db.execute("SELECT count(*) FROM documents").fetchone()[0]
        return diff

    def _bulk_cutter(self) -> Cutter:
        from pipimem.index import chinese

        return chinese.bulk_cutter(self._lexicon())

    def _set_aside(self, inode: str, reason: str) -> None:
        """Moves a damaged file out of the way and says so; the caller has the turn."""
        from pipimem.index import upkeep

        self._healed = True
        name = upkeep.set_aside(self._at, inode)
        if name:
            self._say(f"The index was unusable ({reason}) and is made anew; the old file is '{name}'.")

    def purge(self) -> None:
        """Makes what was deleted unreadable in every index file and vector store, not only unreachable.

        Files of other versions and places and damaged ones are deleted, and whatever cannot be cleaned now.
        """
        from pipimem.index import upkeep

        self.close()
        self._at, self._writable = self.place.find()
        if self._writable and os.path.exists(self._at) and not self._clean():
            self._discard()
        for path in {self._at, self.place.find(inside=False)[0]} - {MEMORY}:
            upkeep.delete(*upkeep.others(path))
            if path != self._at:
                upkeep.delete(*upkeep.files(path))
        self._purge_vectors()

    def _purge_vectors(self) -> None:
        from pipimem.index import upkeep, vectors

        here = {self.workspace.private("cache"), os.path.dirname(self.place.find(inside=False)[0])} - {""}
        paths = [path for folder in here for path in vectors.stores(folder)]
        if not paths:
            return
        live = {piece.key for piece in vectors.pieces(self.reader(None))}
        for path in paths:
            try:
                store = vectors.Store(path, write=True)
                try:
                    clean = store.purge(live)
                finally:
                    store.close()
            except (Refused, OSError, sqlite3.Error):
                clean = False
            if not clean:
                upkeep.delete(*upkeep.files(path))

    def _clean(self) -> bool:
        from pipimem.index import upkeep
        from pipimem.index.sync import Wish

        patience = min(self.patience, PURGE_PATIENCE)
        try:
            self._write(self.workspace.scan(), Wish(), patience)
            with upkeep.turn(os.path.dirname(self._at), patience) as left:
                return upkeep.scrub(self._at, left)
        except Refused:
            return True  # another program's file holds nothing of ours
        except (Unreadable, OSError, sqlite3.Error, schema.Damaged):
            return False


def _translated(error: Exception) -> Exception:
    if isinstance(error, sqlite3.Error):
        if schema.lacks_full_text(error):
            return _NoFullText(NO_FULL_TEXT)
        return _Unwritable(BUSY if schema.is_busy(error) else str(error))
    if isinstance(error, TimeoutError):
        return _Unwritable(BUSY)
    return _Unwritable(getattr(error, "strerror", "") or str(error))
