"""Which passages answer a query, and how well: rare words select, then every word, pair and neighbour ranks.

SQLite's full text gives the rows of a word and counts them. What ranks is counted in the words and runs beside it:
the full text's own ranking looks at every row of every word, and cannot tell whether two words stand together.
"""

from __future__ import annotations

from itertools import pairwise
from math import log

from pipimem.index import words
from pipimem.index.fresh import marks
from pipimem.index.schema import CHANNEL_BITS, PASSAGE_BITS, TITLE
from pipimem.index.stems import stems

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from typing import Any

    from pipimem.index.search import Scope

    Text = tuple[int, int, str, str, str, str]

HEADING, ABOVE, PAIR = 4.0, 3.0, 0.4
"""What a word counts in the own heading, in those above it, and a character pair, against a word in the text."""

K1, B = 1.0, 0.7
NEAR, COVERED, NEIGHBOUR = 0.3, 1.0, 0.3
"""What words that stand together as in the query add to their worth; how much all of the query counts against half of
it; the share of the passage before or after that is added. All chosen on dev splits (docs/decisions/0014)."""

COUNTED, COUNTED_SHARE = 10_000, 16
"""Rows up to which a word's are counted, and the share of all up to which they are; beyond, the word is common."""
DEPTH, PER_HIT = 140, 1
"""Passages that are ranked, and more for each hit asked for."""
SELECTED, ENOUGH, FEW, JUMP = 2_000, 5, 50, 8
"""Rows that the selecting words have together at most; the same in depths; too few to do without a commoner word; how
much commoner it may be than all rows so far."""

TOGETHER = 6
"""How many twos of common words are looked for."""

_REMEMBERED, _KEPT = 20_000, 4_000
_CHANNEL = CHANNEL_BITS + PASSAGE_BITS
_RANGES = 3
_INLINE = 500
_EDGE = 20
_SAME = 1e-9


class Known:
    """What was counted in one state of the index: rows of words, sizes of scopes. Forgotten when the index changes."""

    __slots__ = ("counts", "sizes", "texts", "version", "withins")

    def __init__(self) -> None:
        self.version = -1
        self.counts: dict[tuple[object, str], int] = {}
        self.sizes: dict[object, tuple[int, float]] = {}
        self.texts: dict[int, Text] = {}
        self.withins: dict[object, Within] = {}

    def refresh(self, db: sqlite3.Connection) -> None:
        """Forgets everything when another connection has changed the index, or when it is too much."""
        version = db.execute("PRAGMA data_version").fetchone()[0]
        if version != self.version or len(self.counts) > _REMEMBERED:
            self.version = version
            for part in (self.counts, self.sizes, self.texts, self.withins):
                part.clear()

    def count(self, db: sqlite3.Connection, within: Within, match: str, most: int) -> int:
        """How many rows match within a scope, up to `most`."""
        found = self.counts.get((within.key, match))
        if found is None:
            found = self.counts[within.key, match] = within.count(db, match, most)
        return found


class Within:
    """A scope as SQL over the full text `f`: a join, ranges of rows, a condition and its values."""

    __slots__ = ("condition", "join", "key", "ranges", "values")

    def __init__(self, db: sqlite3.Connection, scope: Scope) -> None:
        self.key = scope.key()
        parts: list[str] = []
        self.values: list[Any] = []
        self.ranges = [(0 if scope.shared else 1 << _CHANNEL, (1 << 63) - 1)]
        if scope.channels is not None:
            self.ranges = _ranges(db, [*scope.channels, *([""] if scope.shared else [])])
            if len(self.ranges) > _RANGES:
                parts.append(f"(f.rowid >> {_CHANNEL}) IN ({','.join(str(low >> _CHANNEL) for low, _ in self.ranges)})")
                self.ranges = [(self.ranges[0][0], self.ranges[-1][1])]
        layers, more = _layers(db, scope)
        passages, values = scope.passages()
        self.join = "JOIN passages p ON p.id = f.rowid" if passages else ""
        self.condition = "".join(f" AND {part}" for part in [*parts, layers, passages] if part)
        self.values = [*more, *values]

    def rows(self, db: sqlite3.Connection, what: str, match: str, limit: int) -> list[tuple[Any, ...]]:
        """`what` of the rows that match, at most `limit`."""
        sql = f"SELECT {what} FROM f {self.join} WHERE f MATCH ? AND f.rowid BETWEEN ? AND ?{self.condition} LIMIT ?"
        found: list[tuple[Any, ...]] = []
        for low, high in self.ranges:
            found += db.execute(sql, (match, low, high, *self.values, limit - len(found))).fetchall()
        return found

    def count(self, db: sqlite3.Connection, match: str, most: int) -> int:
        """How many rows match in each range, up to `most`."""
        sql = (
            f"SELECT count(*) FROM (SELECT 1 FROM f {self.join} WHERE f MATCH ? AND f.rowid BETWEEN ? AND ?"
            f"{self.condition} LIMIT ?)"
        )
        return sum(
            int(db.execute(sql, (match, low, high, *self.values, most)).fetchone()[0]) for low, high in self.ranges
        )


def _ranges(db: sqlite3.Connection, channels: Sequence[str]) -> list[tuple[int, int]]:
    sql = f"SELECT DISTINCT id >> {CHANNEL_BITS} FROM documents WHERE channel IN ({marks(channels)}) ORDER BY 1"
    return [(row[0] << _CHANNEL, (row[0] + 1 << _CHANNEL) - 1) for row in db.execute(sql, channels).fetchall()]


def _layers(db: sqlite3.Connection, scope: Scope) -> tuple[str, list[Any]]:
    """The condition on a row's layer; "" where nothing is to be left out."""
    document = f"(f.rowid >> {PASSAGE_BITS})"
    if scope.layers:
        where, values = scope.documents()
        return f"{document} IN (SELECT d.id FROM documents d WHERE {where})", values
    sql = "SELECT id FROM documents WHERE layer = 'archive'"
    archived = db.execute(f"{sql} LIMIT {_INLINE}").fetchall()
    if len(archived) == _INLINE:
        return f"{document} NOT IN ({sql})", []
    return f"{document} NOT IN ({','.join(str(row[0]) for row in archived)})" if archived else "", []


class Term:
    """Something a passage may hold: how it is asked for, what stands for it in a passage's words or runs, its worth."""

    __slots__ = ("is_pair", "match", "needle", "place", "rows", "worth")

    def __init__(self, match: str, needle: str, *, is_pair: bool = False) -> None:
        self.place = 0
        self.match = match
        self.needle = needle
        self.is_pair = is_pair
        self.rows = 0
        self.worth = 0.0


class Ranked:
    """A passage's row with its score and the signals it is the sum of; `beside` is what it lends its neighbours."""

    __slots__ = ("alone", "beside", "covered", "near", "neighbours", "pairs", "row", "score", "words")

    def __init__(self, row: int, parts: tuple[float, float, float], covered: float, own: float, *, alone: bool) -> None:
        self.row = row
        self.alone = alone
        self.words, self.pairs, self.near = parts
        self.covered = covered
        self.neighbours = 0.0
        share = (1 + COVERED * covered) / (1 + COVERED)
        self.score = sum(parts) * share
        self.beside = (own + self.pairs + self.near) * share

    def signals(self) -> dict[str, float]:
        """What the score is made of, by name; `text` is the score before anything outside the text counts."""
        parts = {"text": self.score, "words": self.words, "pairs": self.pairs, "near": self.near,
                 "covered": self.covered, "neighbours": self.neighbours}  # fmt: skip
        return {name: round(value, 4) for name, value in parts.items()}


def rank(db: sqlite3.Connection, query: words.Query, scope: Scope, limit: int, known: Known) -> list[Ranked]:
    """The best passages for `query` in scope, best first: `limit` and some more, equals at the end included."""
    known.refresh(db)
    within = known.withins.get(scope.key())
    if within is None:
        within = known.withins[scope.key()] = Within(db, scope)
    terms = _weighed(db, terms_of(query), within, _size(db, scope, known)[0], known)
    depth = DEPTH + PER_HIT * limit
    rows = _selected(db, terms, within, depth, known)
    found = _scored(query, terms, _texts(db, rows, known), _size(db, scope, known)[1])
    _neighbours(found)
    return sorted(found, key=lambda r: -r.score)


def _size(db: sqlite3.Connection, scope: Scope, known: Known) -> tuple[int, float]:
    """How many passages there are in scope, and how long one is on average."""
    size = known.sizes.get(scope.key())
    if size is None:
        where, values = scope.documents()
        sql = f"SELECT total(passages), total(length) FROM documents d WHERE {where}"
        passages, length = db.execute(sql, values).fetchone()
        size = known.sizes[scope.key()] = int(passages), length / max(1, passages)
    return size


def terms_of(query: words.Query) -> list[Term]:
    """What to ask for: the chosen words and pairs of a query, and its phrases; nothing in them is syntax."""
    chosen, pairs = words.chosen(query)
    terms = [_word(stem) for stem in dict.fromkeys(stems(chosen))]
    terms += [_pair(pair) for pair in pairs]
    for phrase in query.phrases[: words.MOST_PHRASES]:
        if words.is_unspaced(phrase[0]):
            run = "".join(phrase)
            asked = " ".join(run[i : i + 2] for i in range(len(run) - 1))
            terms.append(Term(f"(pairs : {words.quoted(asked)})", run, is_pair=True))
        else:
            terms.append(_word(" ".join(stems(phrase))))
    return terms


def _word(stem: str) -> Term:
    return Term(f"({{heading body}} : {words.quoted(stem)})", f" {stem} ")


def _pair(pair: str) -> Term:
    return Term(f"(pairs : {words.quoted(pair)}{' *' * (len(pair) == 1)})", pair, is_pair=True)


def _weighed(
    db: sqlite3.Connection, terms: Iterable[Term], within: Within, size: int, known: Known
) -> list[Term]:  # fmt: skip
    """The terms that stand anywhere, rarest first, with their worth: the inverse document frequency of BM25.

    A word too common to be counted to the end is taken to have the mean of what was counted and of all rows, the
    geometric one.
    """
    there = []
    most = max(COUNTED, size // COUNTED_SHARE)
    for place, term in enumerate(terms):
        term.place = place
        term.rows = known.count(db, within, term.match, most)
        if term.rows >= most:
            term.rows = int((most * max(size, most)) ** 0.5)
        if term.rows:
            size = max(size, term.rows)
            term.worth = log(1 + (size - term.rows + 0.5) / (term.rows + 0.5)) * (PAIR if term.is_pair else 1)
            there.append(term)
    return sorted(there, key=lambda term: (term.rows, term.match))


def _selected(
    db: sqlite3.Connection, terms: Sequence[Term], within: Within, depth: int, known: Known
) -> list[int]:  # fmt: skip
    """The rows to rank: those in which most of the rare terms' worth stands, equals at the end included."""
    worth: dict[int, float] = {}
    asked: list[str] = []
    enough = ENOUGH * depth
    total = 0
    for term in terms:
        full = len(worth) >= enough or term.rows > JUMP * len(worth) or total + term.rows > SELECTED
        if term.rows > SELECTED or (full and len(worth) >= FEW):
            break
        asked.append(term.match)
        total += term.rows
        for (row,) in within.rows(db, "f.rowid", term.match, SELECTED):
            worth[row] = worth.get(row, 0.0) + term.worth
    left = terms[len(asked) :]
    least = _edge(worth, depth)
    for both, value in _together(left):
        if value > least and known.count(db, within, both, SELECTED) < min(SELECTED, JUMP * max(FEW, len(worth))):
            asked.append(f"({both})")
            for (row,) in within.rows(db, "f.rowid", both, SELECTED):
                worth[row] = worth.get(row, 0.0) + value
    if len(worth) < FEW and left:
        return list(worth.keys() | _common(db, left, within, depth))
    if len(worth) <= depth:
        return list(worth)
    edge = _edge(worth, depth)
    above = [row for row, value in worth.items() if value > edge + _SAME]
    equals = [row for row, value in worth.items() if abs(value - edge) <= _SAME]
    if len(above) + len(equals) <= 2 * depth:
        return above + equals
    if len(above) >= FEW:
        return above
    return _best(db, " OR ".join(asked), within, depth)


def _edge(worth: dict[int, float], depth: int) -> float:
    """What the last of the best `depth` rows is worth, 0 where there are fewer."""
    return sorted(worth.values())[-depth] if len(worth) >= depth else 0.0


def _together(common: Sequence[Term]) -> list[tuple[str, float]]:
    """Common words that follow each other in the query, as a name and a surname do: together they may be rare."""
    ordered = sorted(common, key=lambda term: term.place)
    found = [
        (one.rows + other.rows, f"{one.match} AND {other.match}", one.worth + other.worth)
        for one, other in pairwise(ordered)
        if other.place == one.place + 1 and other.is_pair == one.is_pair
    ]
    return [(match, worth) for _, match, worth in sorted(found)[:TOGETHER]]


def _common(db: sqlite3.Connection, terms: Sequence[Term], within: Within, depth: int) -> list[int]:
    """Rows where only common terms are left: such in which several of them stand, else those of the rarest."""
    for count in range(min(len(terms), 6), 1, -1):
        rows = within.rows(db, "f.rowid", " AND ".join(term.match for term in terms[:count]), SELECTED)
        if FEW <= len(rows) < SELECTED and len(rows) <= 4 * depth:
            return [row for (row,) in rows]
        if len(rows) > 4 * depth:
            break
    return _best(db, terms[0].match, within, depth)


def _best(db: sqlite3.Connection, match: str, within: Within, depth: int) -> list[int]:
    """The best rows by SQLite's own ranking; of equals at the end all or none, for their order is the index's own."""
    found: list[int] = []
    for low, high in within.ranges:
        sql = (
            f"SELECT bm25(f, {HEADING}, 1.0, {PAIR}) AS s, f.rowid FROM f {within.join} WHERE f MATCH ?"
            f" AND f.rowid BETWEEN ? AND ?{within.condition} ORDER BY s LIMIT ?"
        )
        values = (match, low, high, *within.values)
        rows = db.execute(sql, (*values, depth + _EDGE)).fetchall()
        if len(rows) == depth + _EDGE:
            edge = rows[-1][0]
            rows = [row for row in rows if row[0] < edge - _SAME] or [
                row for row in db.execute(sql, (*values, -1)).fetchall() if row[0] <= edge + _SAME
            ]
        found += [row for _, row in rows]
    return found


def _scored(query: words.Query, terms: Sequence[Term], texts: Iterable[Text], average: float) -> list[Ranked]:
    """The rows with their score: BM25 over words and pairs, what stands together, how much of the query is there."""
    single = [(term.needle, term.worth) for term in terms if not term.is_pair]
    pairs = [(term.needle, term.worth) for term in terms if term.is_pair]
    near = _nearby(query, {term.needle: term.worth for term in terms})
    whole = sum(term.worth for term in terms) or 1.0
    found = []
    for row, alone, head, head_runs, body, runs in texts:
        flat = K1 * (1 - B + B * (len(body) + len(runs)) / max(1.0, average))
        text, head = f" {body} ", f" {head} "
        above, _, title = head.partition(TITLE)
        by_words = by_pairs = together = covered = own = 0.0
        for needle, worth in single:
            count: float = text.count(needle)
            if needle in head:
                count += HEADING * title.count(needle)
                own += worth * count * (1 + K1) / (count + flat)
                count += ABOVE * above.count(needle)
                by_words += worth * count * (1 + K1) / (count + flat)
                covered += worth
            elif count:
                value = worth * count * (1 + K1) / (count + flat)
                own += value
                by_words += value
                covered += worth
        for needle, worth in pairs if runs or head_runs else ():
            count = runs.count(needle) + head_runs.count(needle)
            if count:
                by_pairs += worth * count * (1 + K1) / (count + flat)
                covered += worth
        for needle, worth in near:
            if needle in text:
                together += worth
        parts = by_words, by_pairs, NEAR * together
        found.append(Ranked(row, parts, covered / whole, own, alone=bool(alone)))
    return found


def _nearby(query: words.Query, worth: dict[str, float]) -> list[tuple[str, float]]:
    """Neighbours in the query that may be neighbours in a text, with the mean of their worth."""
    kept = [needle for needle in (f" {stem} " for stem in stems(query.words)) if needle in worth]
    return [
        (first[:-1] + second, (worth[first] + worth[second]) / 2)
        for first, second in pairwise(kept)
        if first.isascii() and second.isascii()
    ]


def _texts(db: sqlite3.Connection, rows: Sequence[int], known: Known) -> list[Text]:
    """Row, whether it stands alone, words and runs of the headings, words and runs of each passage."""
    if len(known.texts) > _KEPT:
        known.texts.clear()
    new = [row for row in rows if row not in known.texts]
    for at in range(0, len(new), _INLINE):
        sql = (
            "SELECT t.id, t.alone, h.words, h.runs, t.words, t.runs FROM texts t JOIN heads h ON h.id = t.head"
            f" WHERE t.id IN ({','.join(map(str, new[at : at + _INLINE]))})"
        )
        known.texts.update((text[0], text) for text in db.execute(sql).fetchall())
    return [known.texts[row] for row in rows if row in known.texts]


def _neighbours(found: Sequence[Ranked]) -> None:
    """Adds to running text a share of the better of the passages before and after it: an answer follows its question.

    Entries and front matter stand alone.
    """
    own = {ranked.row: ranked.beside for ranked in found if not ranked.alone}
    for ranked in found:
        if not ranked.alone:
            ranked.neighbours = NEIGHBOUR * max(own.get(ranked.row - 1, 0.0), own.get(ranked.row + 1, 0.0))
            ranked.score += ranked.neighbours
