"""Files → index: what changed since the last look, parsed, scanned, cut into words, stored in one transaction.

Parsing Markdown is loaded here and only here, so a search on a fresh index never pays for it.
"""

from __future__ import annotations

import os
import re
import time

from pipimem import front, knowledge, markdown, safety
from pipimem.errors import Unreadable
from pipimem.index import links, notes, settle, upkeep, words
from pipimem.index.fresh import BINARY, EMPTY_ALARM, SKIPPED, emptied, look
from pipimem.index.outline import outline
from pipimem.index.schema import CHANNEL_BITS, PASSAGE_BITS, TITLE
from pipimem.index.stems import stems
from pipimem.text import decode, digest, scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from pipimem.index.chinese import Cutter
    from pipimem.knowledge import Knowledge
    from pipimem.markdown import Parsed, Piece
    from pipimem.workspace import Document, Scan, Workspace

    Cut = Callable[[Sequence[str]], list[list[str]]]
    Found = tuple[tuple[Any, ...], tuple[str, str], str]  # columns, the headings above and the own one, text

FLOWING = frozenset(["history", "archive", "note"])
"""Layers in which one section goes on with what the one before said; elsewhere each stands alone."""

ENTRY_LAYERS = frozenset(["memory", "user", "standing"])
DATE = re.compile(r"(?<!\d)(20\d\d)-(\d\d)-(\d\d)(?!\d)")
SOME = 500
"""Documents that are looked up one by one rather than all read."""

RACY, COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds within which a file may change twice under one stamp: some ticks of a usual clock, and the two seconds
of the coarsest file systems."""


class Diff:
    """What a sync did: paths added, changed and removed, what was skipped, and the totals after it.

    The totals are counted only when everything was asked for.
    """

    __slots__ = ("added", "changed", "entries", "passages", "removed", "seconds", "sections", "skipped")

    def __init__(self) -> None:
        self.added: list[str] = []
        self.changed: list[str] = []
        self.removed: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self.seconds = 0.0
        self.sections = self.passages = self.entries = 0

    @property
    def empty(self) -> bool:
        """Whether the index already said what the files say."""
        return not (self.added or self.changed or self.removed)


class Wish:
    """How far a sync goes: the channels that were looked at (None: all), and three ways to do more than needed.

    `everything` compares digests, not only stamps; `rebuild` starts from nothing; `again` names documents whose rows
    are wrong although their stamps are right.
    """

    __slots__ = ("again", "channels", "everything", "rebuild")

    def __init__(
        self, channels: Sequence[str] | None = None, *, everything: bool = False, rebuild: bool = False,
        again: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.channels = channels
        self.everything = everything or rebuild
        self.rebuild = rebuild
        self.again = again


class Known:
    """What the index holds about a document."""

    __slots__ = ("channel", "digest", "id", "layer", "note", "stamp")

    def __init__(self, row: tuple[int, str, str, str, str, str]) -> None:
        self.id, self.digest, self.channel, self.layer, self.note, self.stamp = row


def sync(db: sqlite3.Connection, path: str, workspace: Workspace, scan: Scan, cut: Cut, wish: Wish) -> Diff:
    """Brings the index at `path` up to date with `scan` in one transaction, in which it is also built where it is not.

    Raises `Unreadable` when the workspace is suddenly empty: an unmounted folder is no mass deletion.
    """
    started, diff = time.perf_counter(), Diff()
    db.execute("BEGIN IMMEDIATE")
    try:
        if wish.rebuild or not upkeep.is_built(db, path):
            upkeep.build(db, path)
            if wish.channels is not None:  # what was looked at is a part; a new index holds the whole
                scan, wish = workspace.scan(), Wish()
        _Taking(db, workspace, cut, diff).all(scan, wish)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    diff.seconds = time.perf_counter() - started
    return diff


class Cutting:
    """Cuts the Chinese of one sync: from the dictionary database while it is little, with the fastest cutter beyond.

    All cut alike. Neither is loaded before the first Chinese character.
    """

    LITTLE = 20_000
    """Characters that the database cuts in the time the fastest cutter takes to load."""

    def __init__(self, dictionary: Callable[[], Cutter | None], bulk: Callable[[], Cutter]) -> None:
        self._load = dictionary, bulk
        self._cutter: Cutter | None = None
        self._left = self.LITTLE

    @property
    def sources(self) -> list[str]:
        """What cut last, for people to see; nothing where there was no Chinese to cut."""
        return [self._cutter.source] if self._cutter else []

    def cut(self, runs: Sequence[str]) -> list[list[str]]:
        """The words of each run."""
        dictionary, bulk = self._load
        before, self._left = self._left, self._left - sum(map(len, runs))
        if self._left <= 0 < before:
            self.close()
            self._cutter = bulk()
        self._cutter = self._cutter or dictionary() or bulk()
        try:
            return self._cutter.cut_many(runs)
        except Unreadable:  # the database turned out to be damaged
            self.close()
            self._cutter, self._left = bulk(), 0
            return self._cutter.cut_many(runs)

    def close(self) -> None:
        """Lets go of the database, if it is one that cuts."""
        if self._cutter is not None:
            self._cutter.close()


class _Taking:
    """One sync at work, inside its transaction."""

    def __init__(self, db: sqlite3.Connection, workspace: Workspace, cut: Cut, diff: Diff) -> None:
        self.db = db
        self.workspace = workspace
        self.cut = cut
        self.diff = diff
        self.graph = settle.Graph(db)
        self.skipped: dict[str, str] = {}
        self.last: dict[str, int] = {}

    def all(self, scan: Scan, wish: Wish) -> None:
        """Drops what is gone, takes what differs, counts."""
        found = look(self.db, scan, wish.channels, self.workspace.root)
        if not scan.documents and len(found.gone) >= EMPTY_ALARM:
            raise emptied(self.workspace.root, len(found.gone))
        self.skipped.update(found.skipped)
        todo = {d.path: d for d in (scan.documents if wish.everything else found.todo)}
        todo.update({d.path: d for d in scan.documents if d.path in wish.again})
        have = self.known([*found.gone, *todo])
        for path in found.gone:
            self.drop(have[path].id)
        self.diff.removed += found.gone
        for path, document in todo.items():
            self.take(document, have.get(path), anew=path in wish.again)
        self.graph.settle()
        self.diff.skipped = list(self.skipped.items())
        if wish.everything:
            self.count()

    def known(self, paths: Sequence[str]) -> dict[str, Known]:
        """What the index holds about these documents."""
        sql = "SELECT path, id, digest, channel, layer, note, stamp FROM documents"
        if len(paths) > SOME:
            rows = self.db.execute(sql).fetchall()
        else:
            rows = [row for path in paths for row in self.db.execute(f"{sql} WHERE path = ?", (path,))]
        return {row[0]: Known(row[1:]) for row in rows}

    def take(self, document: Document, row: Known | None, *, anew: bool) -> None:
        """Indexes one document as it stands now, unless it is indexed so already."""
        # The time is taken before the reading: what changes after that has a later stamp, or a marked one.
        stamp = _stamp(document, time.time_ns())
        try:
            data = self.workspace.read(document.path)
        except Unreadable as error:
            self.skip(document, row, stamp, error.message.rpartition(": ")[2].rstrip("."))
            return
        if data is None:
            return
        mark = digest(data)
        if row is not None and not anew and _is_same(row, document, mark, data):
            if stamp != row.stamp:
                self.db.execute("UPDATE documents SET stamp=? WHERE id=?", (stamp, row.id))
            self.say(document.path, row.note)
            return
        values, why = front.read_front(data)
        note, known = _note(data, why), knowledge.read(values)
        parsed: Parsed | None = None
        found: list[Found] = []
        if not note.startswith(SKIPPED):
            parsed = outline(data) or markdown.parse(data)
            found = list(passages(document, data, self.workspace, parsed, known))
            known = known if found and found[0][0][6] == "front" else None  # a private front matter says nothing
        if row is not None:
            self.drop(row.id)
        number = self.add(document, (stamp, mark, len(data), note), known)
        self.store(number, found, alone=document.layer not in FLOWING)
        if parsed is not None:
            self.graph.add(number, links.read(document, parsed, known, found))
        self.say(document.path, note)
        (self.diff.added if row is None else self.diff.changed).append(document.path)

    def say(self, path: str, note: str) -> None:
        if note.startswith(SKIPPED):
            self.skipped[path] = note.removeprefix(SKIPPED)

    def skip(self, document: Document, row: Known | None, stamp: str, reason: str) -> None:
        """Notes that a document could not be read; what was indexed of it stays."""
        self.skipped[document.path] = reason
        if row is None:
            self.add(document, (stamp, "", 0, SKIPPED + reason))
        else:
            self.db.execute("UPDATE documents SET stamp=?, note=? WHERE id=?", (stamp, SKIPPED + reason, row.id))

    def add(self, document: Document, rest: tuple[str, str, int, str], known: Knowledge | None = None) -> int:
        fields = (self.new_id(document.channel), document.path, document.channel, document.layer, *rest)
        facts = (notes.stored([known.type]), notes.stored(known.domains)) if known else ("", "")
        self.db.execute("INSERT INTO documents VALUES(?,?,?,?,?,?,?,?,0,0,?,?)", (*fields, *facts))
        return fields[0]

    def new_id(self, channel: str) -> int:
        """The next id of a document of that channel; a channel that has none yet gets the next number."""
        last = self.last.get(channel)
        if last is None:
            last = self.db.execute("SELECT max(id) FROM documents WHERE channel = ?", (channel,)).fetchone()[0]
        if last is None:
            most = self.db.execute("SELECT coalesce(max(id), 0) FROM documents").fetchone()[0]
            last = (most >> CHANNEL_BITS) + 1 << CHANNEL_BITS if channel else 0
        self.last[channel] = last + 1
        return last + 1

    def store(self, document: int, found: Sequence[Found], *, alone: bool) -> None:
        heads, rows, texts, full = [], [], [], []
        head, before, head_words, head_pairs = 0, None, "", list[str]()
        known: dict[str, tuple[str, list[str]]] = {}
        for number, (columns, headings, text) in enumerate(found, document << PASSAGE_BITS):
            start, end, line, trail, ref, entry, *rest = columns
            if (trail, headings) != before:
                head, before = number, (trail, headings)
                above, title = [known.get(part) or self.spelled(part, known) for part in headings]
                head_words, runs = f"{above[0]} {TITLE} {title[0]}", [*above[1], *title[1]]
                head_pairs = words.pairs(runs)
                heads.append((head, trail, head_words, " ".join(runs)))
            body, runs = self.spelled(text)
            rows.append((number, start, end, line, ref if entry else "", entry, *rest))
            texts.append((number, head, int(alone or bool(entry) or rest[0] == "front"), body, " ".join(runs)))
            full.append((number, head_words, body, " ".join([*head_pairs, *words.pairs(runs)])))
        for table, added in {"heads": heads, "passages": rows, "texts": texts}.items():
            if added:
                self.db.executemany(f"INSERT INTO {table} VALUES({','.join('?' * len(added[0]))})", added)
        self.db.executemany("INSERT INTO f(rowid,heading,body,pairs) VALUES(?,?,?,?)", full)
        length = sum(len(words) + len(runs) for *_, words, runs in texts)
        self.db.execute("UPDATE documents SET passages=?, length=? WHERE id=?", (len(rows), length, document))

    def spelled(self, text: str, known: dict[str, tuple[str, list[str]]] | None = None) -> tuple[str, list[str]]:
        """The stems of a text as they are stored, and its unspaced runs; remembered in `known`."""
        found, runs = words.parts(text, self.cut)
        spelled = " ".join(stems(found)), runs
        if known is not None:
            known[text] = spelled
        return spelled

    def drop(self, document: int) -> None:
        """Deletes a document's rows. The full text has no copy of its own: it is told what to forget, word for word."""
        first = document << PASSAGE_BITS
        span = first, first + (1 << PASSAGE_BITS) - 1
        kept = self.db.execute(
            "SELECT t.id, h.words, t.words, h.runs, t.runs FROM texts t JOIN heads h ON h.id = t.head"
            " WHERE t.id BETWEEN ? AND ?",
            span,
        ).fetchall()
        gone = [(n, h, b, " ".join(words.pairs([*hr.split(), *br.split()]))) for n, h, b, hr, br in kept]
        self.db.executemany("INSERT INTO f(f,rowid,heading,body,pairs) VALUES('delete',?,?,?,?)", gone)
        for table in ("texts", "passages", "heads"):
            self.db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)
        self.graph.drop(document)
        self.db.execute("DELETE FROM documents WHERE id=?", (document,))

    def count(self) -> None:
        sql = "SELECT count(*), coalesce(sum(entry), 0) FROM passages"
        self.diff.passages, self.diff.entries = self.db.execute(sql).fetchone()
        sections = f"SELECT count(*) FROM (SELECT DISTINCT id >> {PASSAGE_BITS}, trail FROM heads)"
        self.diff.sections = self.db.execute(sections).fetchone()[0]


def _stamp(document: Document, now: int) -> str:
    """The stamp to store; one so young that the file may change again under it is marked, and compared again."""
    changed = document.stat.st_ctime_ns
    young = abs(now - changed) < (RACY if changed % 1_000_000_000 else COARSE)
    return document.stamp + ("~" if young else "")


def _is_same(row: Known, document: Document, mark: str, data: bytes) -> bool:
    if row.note.startswith(SKIPPED) and row.note != SKIPPED + BINARY:
        return False
    return (row.digest, row.channel, row.layer) == (mark, document.channel, document.layer)


def _note(data: bytes, why: str) -> str:
    """What is wrong with a file: "" for nothing, beginning with `SKIPPED` when it is not searched.

    `why` is what stands in the way of its front matter.
    """
    if b"\0" in data:
        return SKIPPED + BINARY
    note = scrub(why)
    if not note and (line := markdown.conflict_line(data)):
        note = f"an unresolved merge conflict in line {line}"
    return note


def passages(
    document: Document, data: bytes, workspace: Workspace, parsed: Parsed | None = None, known: Knowledge | None = None
) -> Iterator[Found]:
    """The passages of a file in order: the columns of the table from `start` on, the headings, and the text.

    What the front matter says of the confidence of a note (`known`) goes for every passage that is no entry. An unsafe
    heading counts for all below it, and is named without what makes it unsafe: references and labels are made of it.
    So does the name of a note for all of it.
    """
    parsed = parsed or outline(data) or markdown.parse(data)
    layer_entries = document.layer in ENTRY_LAYERS
    dated = document.layer == "history" and parsed.family == "dated"
    ids = {e.start: i for i, e in markdown.identified(parsed, document.channel)} if layer_entries or dated else {}
    days: dict[tuple[str, ...], str] = {}
    heads: dict[str, tuple[str, str]] = {}
    patterns, allow = workspace.config["safety.patterns"], workspace.config["safety.allow"]
    stem = os.path.basename(document.path).removesuffix(".md") if document.layer == "note" else ""
    private = safety.private_ranges(data)
    spoken = document.path.removesuffix(".md").split("/")[2 if document.channel else 0 :] if stem else ()
    unsafe = {word for part in spoken for word in safety.verdict(part, patterns, allow).split(",")}
    for piece in markdown.pieces(parsed, entries=layer_entries, dated=dated):
        raw = data[piece.start : piece.end]
        text = scrub(piece.entry.text if piece.entry else markdown.uncommented(decode(raw)))
        if any(start <= piece.start and piece.end <= end for start, end in private):
            continue
        trail, names = [scrub(t) for t in piece.trail], list[str]()
        day = days.get(piece.trail)
        if day is None:
            day = days[piece.trail] = _date(document, trail)
        found = unsafe.union(safety.verdict(text, patterns, allow).split(","))
        for title in trail:
            if title not in heads:
                heads[title] = safety.named(title, patterns, allow)
            names.append(heads[title][0])
            found.update(heads[title][1].split(","))
        name = f"{document.path}#{' > '.join(names)}" if names else document.path
        columns = (
            piece.start, piece.end, piece.line, "\x1f".join(names), ids[piece.entry.start] if piece.entry else name,
            int(piece.entry is not None), *_facts(parsed, piece, day, known), digest(raw, 8),
            ",".join(sorted(found - {""})),
        )  # fmt: skip
        text = safety.without_private(text) if private else text
        yield columns, (" ".join([stem, *trail[:-1]]).strip(), trail[-1] if trail else ""), text


def _facts(parsed: Parsed, piece: Piece, day: str, known: Knowledge | None) -> tuple[Any, ...]:
    """The columns from `kind` to `conflicts`."""
    facts = {key: scrub(value) for key, value in piece.entry.facts.items()} if piece.entry else {}
    kind = "front" if piece.start < parsed.front[1] else facts.get("kind", "")
    since = facts.get("since", "") or day
    until, trial, author = (facts.get(key, "") for key in ("until", "trial", "by"))
    others = facts.get("supersedes", ""), facts.get("conflicts", "")
    conf = known.confidence if known and not piece.entry else _confidence(facts.get("conf", ""))
    return kind, since, until, trial, author, conf, *others


def _date(document: Document, trail: Iterable[str]) -> str:
    """The day a passage speaks of: the last ISO date of its headings, else of its file's name."""
    for text in (*reversed(list(trail)), os.path.basename(document.path)):
        found = DATE.findall(text)
        if found:
            return "-".join(found[-1])
    return ""


def _confidence(value: str) -> float:
    try:
        return min(1.0, max(0.0, float(value)))
    except ValueError:
        return 1.0
