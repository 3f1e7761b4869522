"""A question → ranked passages: SQL limited to the scope, texts read from the files and checked.

Nothing here decides whether a passage may be given to a model; that is recall's gate.
"""

from __future__ import annotations

from pipimem.errors import Usage
from pipimem.index import words
from pipimem.index.fresh import marks
from pipimem.text import decode, digest, scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from typing import Any

WEIGHTS = (4.0, 1.0, 0.5)
OUTDATED = 0.5
"""What a superseded entry's score is worth: it may still be looked for, below what replaced it."""

ROWS = 24
"""A passage's row is its document's id, shifted by so many bits, plus its number: a file of 50 MB has fewer."""
SPARE = 20
"""Rows fetched above the limit: for texts that changed meanwhile, and for what quoted phrases bring up."""

LARGE, COMMON, ENOUGH, FEW = 50_000, 3_000, 300, 50
"""Passages from which on rare words select; rows from which on a word is common; rows that are enough to rank, and too
few. Measured on 100,000 sections: 31 ms a query become 6, and no fact of the benchmark is lost (docs/benchmarks.md)."""


class Scope:
    """Where to look. `channels` None means everywhere; else those channels and, with `shared`, the shared layer.

    `layers` and `kinds` empty mean all (the archive must be named); a filter never widens the channels.
    """

    __slots__ = ("channels", "kinds", "layers", "min_confidence", "shared")

    def __init__(
        self, channels: Sequence[str] | None = None, *, shared: bool = True, layers: Sequence[str] = (),
        kinds: Sequence[str] = (), min_confidence: float = 0.0,
    ) -> None:  # fmt: skip
        self.channels = None if channels is None else tuple(channels)
        self.shared = shared
        self.layers = tuple(layers)
        self.kinds = tuple(kinds)
        self.min_confidence = min_confidence

    def documents(self) -> tuple[str, list[Any]]:
        """The scope as SQL over documents `d`: its channels and layers."""
        parts: list[str] = []
        values: list[Any] = []
        if self.channels is not None:
            ids = [*self.channels, *([""] if self.shared else [])]
            parts.append(f"d.channel IN ({marks(ids)})")
            values += ids
        elif not self.shared:
            parts.append("d.channel <> ''")
        if self.layers:
            parts.append(f"d.layer IN ({marks(self.layers)})")
            values += self.layers
        else:
            parts.append("d.layer <> 'archive'")
        return " AND ".join(parts), values

    def passages(self) -> tuple[str, list[Any]]:
        """The scope as SQL over passages `p`: kinds and confidence; "" when every passage will do."""
        parts: list[str] = []
        values: list[Any] = []
        if self.kinds:
            parts.append(f"p.kind IN ({marks(self.kinds)})")
            values += self.kinds
        if self.min_confidence > 0:
            parts.append("p.conf >= ?")
            values.append(self.min_confidence)
        return " AND ".join(parts), values

    def covers(self, channel: str, layer: str) -> bool:
        """Whether a document of that channel ("" = shared) and layer is in scope; the same rule as `documents`."""
        near = self.shared if channel == "" else self.channels is None or channel in self.channels
        return near and (layer in self.layers if self.layers else layer != "archive")


class Hit:
    """A ranked passage: where it is, what it says, what its comment says, and why it stands where it does."""

    __slots__ = (
        "author",
        "channel",
        "conf",
        "date",
        "end",
        "entry",
        "heading",
        "kind",
        "layer",
        "line",
        "path",
        "ref",
        "score",
        "signals",
        "start",
        "superseded",
        "text",
        "trial",
        "until",
        "verdict",
    )  # fmt: skip

    def __init__(self, row: tuple[Any, ...]) -> None:
        (
            self.path, self.channel, self.layer, self.start, self.end, self.line, trail, self.ref, self.entry,
            self.kind, self.date, self.until, self.trial, self.author, self.conf, self.verdict, self.superseded,
        ) = row[:17]  # fmt: skip
        self.heading: list[str] = trail.split("\x1f") if trail else []
        self.text = ""
        self.score = 0.0
        self.signals: dict[str, float] = {}


def without_words() -> Usage:
    """The error for a query in which there is nothing to look for."""
    return Usage("The query holds no word to look for.", "Give a word, a name or a number.")


COLUMNS = (
    "d.path, d.channel, d.layer, p.start, p.end, p.line, p.trail, p.ref, p.entry, p.kind, p.since, p.until, p.trial,"
    " p.author, p.conf, p.verdict, {superseded}, p.digest"
)


def _columns(scope: Scope) -> tuple[str, list[Any]]:
    """What a `Hit` is made of. Only an entry in scope supersedes: a channel cannot silence the shared layer."""
    where, values = Scope(scope.channels, shared=scope.shared).documents()
    superseded = (
        "EXISTS(SELECT 1 FROM passages s JOIN documents d ON d.id = s.document"
        f" WHERE s.supersedes = p.ref AND s.supersedes <> '' AND {where})"
    )
    return COLUMNS.format(superseded=superseded), values


def search(
    db: sqlite3.Connection,
    read: Callable[[str, int, int], bytes],
    query: words.Query,
    scope: Scope,
    limit: int,
) -> tuple[list[Hit], list[str]]:
    """The best `limit` passages for `query`, and the paths whose text is no longer what was indexed.

    The score is BM25 over heading, words and character pairs (weights 4, 1, 0.5: `docs/benchmarks.md`), halved for an
    entry that another one supersedes; more is better. Passages with a quoted phrase come first, and equals stand in
    the order of path and place. A passage is given only while its bytes have the digest that was scanned.
    """
    ranked: list[tuple[float, Hit]] = []
    changed, current = [], 0
    for row in _ranked(db, query, scope, limit):
        hit = Hit(row)
        score = -row[18] * (OUTDATED if hit.superseded else 1)
        hit.signals["text"], hit.score = round(-row[18], 4), round(score, 4)
        if not _fill(hit, read, row[17]):
            changed.append(hit.path)
            continue
        ranked.append((score, hit))
        current += not hit.superseded
        if current >= limit and not query.phrases:
            break
    ranked.sort(key=lambda pair: (-_phrases_in(pair[1], query) if query.phrases else 0, -pair[0]))
    return [hit for _, hit in ranked[:limit]], changed


def _ranked(db: sqlite3.Connection, query: words.Query, scope: Scope, limit: int) -> list[tuple[Any, ...]]:
    """The best rows and some more: ranked without looking at their columns, which would cost ten times as much."""
    match = _expression(db, query)
    if not match:
        return []
    columns, first = _columns(scope)
    inner, values = _ranking(scope)
    sql = (
        f"SELECT {columns}, t.s FROM ({inner}) t JOIN passages p ON p.id = t.id JOIN documents d ON d.id = p.document"
        " ORDER BY t.s, d.path, p.start LIMIT ?"
    )
    most = limit + SPARE
    rows = db.execute(sql, (*first, match, *values, most, most)).fetchall()
    # Which of equals at the edge are in was decided by row number, and so by the history of the index. Where one of
    # them may come up to the first `limit`, all are fetched and the files decide.
    if len(rows) == most and rows[-1][18] == rows[-1 if query.phrases else limit - 1][18]:
        rows = db.execute(sql, (*first, match, *values, -1, most)).fetchall()
    return rows


def _expression(db: sqlite3.Connection, query: words.Query) -> str:
    """What FTS5 is asked for: any word of the query. In a large index rare words select, and the common ones only rank.

    So the cost does not grow with the rows a common word matches. What selects counts twice, for FTS5 cannot do
    otherwise.
    """
    match = words.match(query)
    size = db.execute("SELECT value FROM meta WHERE key = 'passages'").fetchone()
    if not match or size is None or int(size[0]) < LARGE:
        return match
    terms = [words.Query([word]) for word in query.words] + [words.Query((), [pair]) for pair in query.pairs]
    asked = [words.match(term) for term in terms[: words.MAX_TERMS]]
    chosen, rows = [], 0
    for count, term in sorted((_rows(db, term), term) for term in asked):
        if count >= COMMON or rows >= ENOUGH:
            break
        chosen.append(term)
        rows += count
    return f"({' OR '.join(chosen)}) AND ({match})" if rows >= FEW else match


def _rows(db: sqlite3.Connection, match: str) -> int:
    """How many rows match, counted until they are common."""
    return int(
        db.execute("SELECT count(*) FROM (SELECT 1 FROM f WHERE f MATCH ? LIMIT ?)", (match, COMMON)).fetchone()[0]
    )


def _ranking(scope: Scope) -> tuple[str, list[Any]]:
    where, values = scope.documents()
    within = "IN"
    if not values and scope.shared:  # everything: the few that are not in it are looked up faster
        within, where = "NOT IN", f"NOT ({where})"
    passages, more = scope.passages()
    join = "JOIN passages p ON p.id = f.rowid " if passages else ""
    return (
        f"SELECT f.rowid AS id, bm25(f, {', '.join(map(str, WEIGHTS))}) AS s FROM f {join}WHERE f MATCH ?"
        f" AND (f.rowid >> {ROWS}) {within} (SELECT d.id FROM documents d WHERE {where})"
        f"{' AND ' + passages if passages else ''} ORDER BY s LIMIT ?"
    ), [*values, *more]


def _phrases_in(hit: Hit, query: words.Query) -> int:
    """How many of the query's quoted phrases stand in the hit to the letter, spaces and case aside."""
    text = "".join(words.fold(" ".join([*hit.heading, hit.text])).split())
    return sum("".join(phrase) in text for phrase in query.phrases)


def _fill(hit: Hit, read: Callable[[str, int, int], bytes], mark: str) -> bool:
    """Reads the hit's text from its file; false when the bytes are not the ones that were indexed."""
    raw = read(hit.path, hit.start, hit.end)
    if digest(raw, 8) != mark:
        return False
    hit.text = passage_text(raw, entry=bool(hit.entry))
    return True


def passage_text(raw: bytes, *, entry: bool) -> str:
    """A passage as a person reads it; of an entry marker and comment are off, continuation lines as they stand."""
    text = scrub(decode(raw)).strip()
    return _without_comments(_without_marker(text)).strip() if entry else text


def _without_marker(text: str) -> str:
    digits = len(text) - len(text.lstrip("0123456789"))
    sign, space = text[digits : digits + 1], text[digits + 1 : digits + 2]
    if sign and sign in (".)" if digits else "-*+") and digits < 10 and space in (" ", "\t"):
        return text[digits + 1 :].lstrip(" \t")
    return text


def _without_comments(text: str) -> str:
    """Takes out the comments that hold an entry's facts; compiling a pattern would cost as much as the query."""
    at = text.find("<!--")
    while at >= 0:
        end = text.find(">", at)
        inner = text[at + 4 : end].lstrip().removeprefix("id:")
        if end > 0 and text[at:end].endswith("--") and inner[:2] == "m-" and _is_id(inner[2:10]):
            before = text[:at].rstrip(" \t")
            text, at = before + text[end + 1 :], len(before) - 4
        at = text.find("<!--", at + 4)
    return text


def _is_id(text: str) -> bool:
    return len(text) == 8 and not text.strip("0123456789abcdef")


def by_ref(
    db: sqlite3.Connection, read: Callable[[str, int, int], bytes], ref: str, scope: Scope
) -> tuple[list[Hit], list[str]]:
    """The passages called `ref`: an entry id, or `path#heading`; in file order. And the paths as in `search`."""
    columns, first = _columns(scope)
    where, values = scope.documents()
    passages, more = scope.passages()
    sql = (
        f"SELECT {columns} FROM passages p JOIN documents d ON d.id = p.document WHERE p.ref = ? AND {where}"
        f"{' AND ' + passages if passages else ''} ORDER BY d.path, p.start LIMIT 50"
    )
    found = [(Hit(row), row[17]) for row in db.execute(sql, (*first, ref, *values, *more)).fetchall()]
    hits = [hit for hit, mark in found if _fill(hit, read, mark)]
    return hits, [hit.path for hit, _ in found if hit not in hits]


def frequencies(db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """How often each term stands among the words (not the pairs) of the index: the cutter's last resort."""
    found = {}
    for term in terms:
        row = db.execute("SELECT sum(cnt) FROM v WHERE term = ? AND col IN ('heading', 'body')", (term,)).fetchone()
        if row[0]:
            found[term] = row[0]
    return found
