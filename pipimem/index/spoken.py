"""Which messages answer a query: rare words select, then every word and pair counts, shorter messages first.

A message is indexed by the set of its words and pairs, without order or count: what is kept is no copy of what was
said. Phrases are looked for by the caller, in the texts of the best. Opening the file and its rows are `sessions`'.
"""

from __future__ import annotations

import zlib
from math import log

from pipimem.index import words
from pipimem.index.stems import stems

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from typing import Any

    Cut = Callable[[Sequence[str]], list[list[str]]]

TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sources(
  id INTEGER PRIMARY KEY, engine TEXT NOT NULL, session TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL,
  stamp TEXT NOT NULL, size INTEGER NOT NULL, channel TEXT NOT NULL, project TEXT NOT NULL, name TEXT NOT NULL,
  agent TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL, parent TEXT NOT NULL,
  first TEXT NOT NULL, last TEXT NOT NULL, messages INTEGER NOT NULL, calls INTEGER NOT NULL,
  errors INTEGER NOT NULL, status TEXT NOT NULL, UNIQUE(engine, session, path));
CREATE TABLE messages(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, ident TEXT NOT NULL, time TEXT NOT NULL, at INTEGER NOT NULL,
  -- origin: of the host's id, role, time and what was said
  end INTEGER NOT NULL, digest BLOB NOT NULL, origin BLOB, size INTEGER NOT NULL, terms BLOB NOT NULL);
CREATE INDEX messages_size ON messages(size);
CREATE INDEX messages_name ON messages(name);
CREATE INDEX messages_origin ON messages(origin) WHERE origin IS NOT NULL;
CREATE VIRTUAL TABLE f USING fts5(
  words, pairs, content='', detail='column', tokenize='unicode61 remove_diacritics 2');
"""
SOURCE_BITS, ROLE_BITS = 24, 2
"""A message's row: its source's number, in so many bits its own (a session has fewer than four million), its role."""
ROLES = ("user", "assistant", "tool")
ROLE_MASK = (1 << ROLE_BITS) - 1

READ = 200_000
"""Characters of one message that are indexed: more is a file somebody pasted."""
CAP, LOOKED_AT = 1_000, 100
"""Rows up to which a word's are taken, the newest first, and messages whose whole set of words is looked at."""
PAIR, K1, B = 0.4, 1.0, 0.4
"""What a pair counts against a word, and BM25's two constants; with sets instead of counts a message's length tells
less, so `B` is lower than for passages."""


class Within:
    """A part of the messages as SQL over the full text: a condition on its rows, and its values.

    Without a `role` it is what was said: what tools returned is found only where it is asked for.
    """

    __slots__ = ("condition", "values")

    def __init__(self, sources: str = "", values: Sequence[Any] = (), role: str = "") -> None:
        parts = [f"(f.rowid >> {SOURCE_BITS}) IN (SELECT id FROM sources WHERE {sources})"] if sources else []
        if role:
            parts.append(f"f.rowid & {ROLE_MASK} = {ROLES.index(role)}")
        else:
            parts.append(f"f.rowid & {ROLE_MASK} <> {ROLES.index('tool')}")
        self.condition = "".join(f" AND {part}" for part in parts)
        self.values = tuple(values)


class Term:
    """A word's stem or a pair: how it is asked for, what stands for it in a set, its rows and what it is worth."""

    __slots__ = ("capped", "match", "needle", "pair", "rows", "worth")

    def __init__(self, needle: str, *, pair: bool) -> None:
        column, star = ("pairs", " *" if len(needle) == 1 else "") if pair else ("words", "")
        self.match = f"({column} : {words.quoted(needle)}{star})"
        self.needle, self.pair = needle, pair
        self.rows: list[int] = []
        self.capped = False
        self.worth = 0.0

    def stands(self, bag: tuple[str, str]) -> bool:
        """Whether a message with these words and pairs (each between spaces) holds it."""
        end = "" if self.pair and len(self.needle) == 1 else " "
        return f" {self.needle}{end}" in bag[self.pair]


def bag(text: str, cut: Cut) -> tuple[str, str]:
    """The set of a text's stems and that of its pairs, each sorted and joined by spaces."""
    found, runs = words.parts(text[:READ], cut)
    return " ".join(sorted(set(stems(found)))), " ".join(sorted(set(words.pairs(runs))))


def packed(terms: tuple[str, str]) -> bytes:
    """Both sets as they are kept with the message, so that they can be taken out of the full text again."""
    return zlib.compress("\n".join(terms).encode("utf-8"), 1)


def unpacked(data: bytes) -> tuple[str, str]:
    """The reverse of `packed`."""
    first, _, second = zlib.decompress(data).decode("utf-8").partition("\n")
    return first, second


def find(
    db: sqlite3.Connection, query: words.Query, within: Within, limit: int, size: tuple[int, float]
) -> list[tuple[int, float]]:
    """The rows of the best messages with their scores, best first: `limit` at most; equals newest first.

    `size` is what `measured` says.
    """
    total, average = size
    terms = [t for t in (_filled(db, t, within, total) for t in _terms(query)) if t.rows]
    rows = _candidates(db, terms, within)
    best = sorted(rows, key=lambda row: (-rows[row], -row))[: max(LOOKED_AT, 2 * limit)]
    scored = _scored(db, best, terms, average)
    return sorted(scored, key=lambda found: (-round(found[1], 6), -found[0]))[:limit]


def holding(db: sqlite3.Connection, text: str) -> list[int]:
    """The rows of every message that may hold `text`: none that does, word by word, is missing.

    What stands at its edges may be part of a longer word; what is inside, and every pair, must be there.
    """
    inner = words.terms(" ".join(text.split()[1:-1]), lambda runs: [])[0]
    runs = words.terms(text, lambda runs: [])[1]
    needed = [Term(s, pair=False) for s in stems([w for w in inner if w.isalnum() and not _is_ours(w)])]
    needed += [Term(pair, pair=True) for pair in runs if len(pair) == 2]
    joiner = " AND "
    if not needed:
        needed, joiner = [Term(s, pair=False) for s in stems(words.terms(text, lambda runs: [])[0])], " OR "
        needed += [Term(pair, pair=True) for pair in runs]
    if not needed:
        return []
    asked = dict.fromkeys(term.match for term in needed)
    return [row for (row,) in db.execute("SELECT rowid FROM f WHERE f MATCH ?", (joiner.join(list(asked)[:200]),))]


def _is_ours(word: str) -> bool:
    """Whether a word is no text's own: a date's or an identifier's in the index's spelling."""
    return any("\ue000" <= c <= "\uf8ff" for c in word)


def measured(db: sqlite3.Connection) -> tuple[int, float]:
    """How many messages there are, and how many words and pairs one has on average."""
    total, average = db.execute("SELECT count(*), total(size) / max(1, count(*)) FROM messages").fetchone()
    return int(total), float(average)


def _terms(query: words.Query) -> list[Term]:
    chosen, pairs = words.chosen(query)
    quoted = [phrase for phrase in query.phrases if not words.is_unspaced(phrase[0])]
    stemmed = dict.fromkeys([*stems(chosen), *(s for phrase in quoted for s in stems(phrase))])
    return [Term(s, pair=False) for s in stemmed] + [Term(p, pair=True) for p in dict.fromkeys(pairs)]


def _filled(db: sqlite3.Connection, term: Term, within: Within, total: int) -> Term:
    term.rows = _rows(db, term.match, within)
    term.capped = len(term.rows) > CAP
    count = (CAP * max(CAP, total)) ** 0.5 if term.capped else len(term.rows)
    term.worth = log(1 + (max(total, count) - count + 0.5) / (count + 0.5)) * (PAIR if term.pair else 1.0)
    return term


def _rows(db: sqlite3.Connection, match: str, within: Within) -> list[int]:
    sql = f"SELECT f.rowid FROM f WHERE f MATCH ?{within.condition} ORDER BY f.rowid DESC LIMIT {CAP + 1}"
    return [row for (row,) in db.execute(sql, (match, *within.values))]


def _candidates(db: sqlite3.Connection, terms: Sequence[Term], within: Within) -> dict[int, float]:
    """Row → worth of the rare terms in it; where all terms are common, the newest rows that hold most of them."""
    worth: dict[int, float] = {}
    for term in terms:
        for row in term.rows if not term.capped else ():
            worth[row] = worth.get(row, 0.0) + term.worth
    common = sorted((t for t in terms if t.capped), key=lambda t: -t.worth)
    for count in range(len(common), 0, -1):
        if len(worth) >= LOOKED_AT:
            break
        match = " AND ".join(t.match for t in common[:count])
        together = common[0].rows if count == 1 else _rows(db, match, within)
        value = sum(t.worth for t in common[:count]) / 2
        for row in together:
            worth.setdefault(row, value)
    return worth


def _scored(
    db: sqlite3.Connection, rows: Sequence[int], terms: Sequence[Term], average: float
) -> list[tuple[int, float]]:
    """BM25 over the sets, times the share of the query's worth that is there."""
    whole = sum(t.worth for t in terms) or 1.0
    found = []
    sql = f"SELECT id, size, terms FROM messages WHERE id IN ({','.join(map(str, rows))})"
    for row, size, data in db.execute(sql).fetchall():
        first, second = unpacked(data)
        sets = f" {first} ", f" {second} "
        there = sum(t.worth for t in terms if t.stands(sets))
        length = 1 - B + B * size / max(1.0, average)
        found.append((row, there * (1 + K1) / (1 + K1 * length) * (1 + there / whole) / 2))
    return found
