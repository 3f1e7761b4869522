"""A question → ranked passages: SQL limited to the scope, texts read from the files and checked.

Nothing here decides whether a passage may be given to a model; that is recall's gate.
"""

from __future__ import annotations

from pipimem.errors import Usage
from pipimem.index import words
from pipimem.index.fresh import marks
from pipimem.index.rank import rank
from pipimem.index.schema import PASSAGE_BITS
from pipimem.text import decode, digest, scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from pipimem.index.fuse import Fused
    from pipimem.index.rank import Known, Ranked

OUTDATED = 0.5
"""What a superseded entry's score is worth: it may still be looked for, below what replaced it."""

SPARE, FIRST = 20, 3
"""Passages looked at above the limit: for texts that changed meanwhile and what quoted phrases bring up; how many of
them at once."""


class Scope:
    """Where to look. `channels` None means everywhere; else those channels and, with `shared`, the shared layer.

    `layers` and `kinds` empty mean all (the archive must be named), and so do `types` and `domains` (a note's own
    front matter) and `entities` (a passage, or its note, links to one of them). A filter never widens the channels.
    """

    __slots__ = ("channels", "domains", "entities", "kinds", "layers", "min_confidence", "shared", "types")

    def __init__(
        self, channels: Sequence[str] | None = None, *, shared: bool = True, layers: Sequence[str] = (),
        kinds: Sequence[str] = (), min_confidence: float = 0.0, types: Sequence[str] = (),
        domains: Sequence[str] = (), entities: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.channels = None if channels is None else tuple(channels)
        self.shared = shared
        self.layers = tuple(layers)
        self.kinds = tuple(kinds)
        self.min_confidence = min_confidence
        self.types = tuple(types)
        self.domains = tuple(domains)
        self.entities = tuple(entities)

    @property
    def of_notes(self) -> bool:
        """Whether something is asked that only a note's front matter and links can say."""
        return bool(self.types or self.domains or self.entities)

    def key(self) -> object:
        """What tells this scope from another."""
        notes = self.types, self.domains, self.entities
        return self.channels, self.shared, self.layers, self.kinds, self.min_confidence, notes

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
        if self.of_notes:
            from pipimem.index import notes

            for part, more in notes.conditions(self):
                parts.append(part)
                values += more
        return " AND ".join(parts), values

    def covers(self, channel: str, layer: str) -> bool:
        """Whether a document of that channel ("" = shared) and layer is in scope; the same rule as `documents`."""
        near = self.shared if channel == "" else self.channels is None or channel in self.channels
        return near and (layer in self.layers if self.layers else layer != "archive")


class Hit:
    """A ranked passage: where it is, what it says, what its comment says, and why it stands where it does.

    `rivals` are the entries in scope that it is marked as contradicting, or that are marked as contradicting it, each
    with its last day ("" for none). `row` is its number in the index it comes from, 0 for one that was found without.
    """

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
        "rivals",
        "row",
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
        self.row: int = row[18] if len(row) > 18 else 0
        self.heading: list[str] = trail.split("\x1f") if trail else []
        if not self.ref:
            self.ref = f"{self.path}#{' > '.join(self.heading)}" if trail else self.path
        self.text = ""
        self.rivals: list[tuple[str, str]] = [(r[:10], r[11:]) for r in row[19:] if r]
        self.score = 0.0
        self.signals: dict[str, float] = {}


def without_words() -> Usage:
    """The error for a query in which there is nothing to look for."""
    return Usage("The query holds no word to look for.", "Give a word, a name or a number.")


COLUMNS = (
    "d.path, d.channel, d.layer, p.start, p.end, p.line, h.trail, p.ref, p.entry, p.kind, p.since, p.until, p.trial,"
    " p.author, p.conf, p.verdict, {superseded}, p.digest, p.id, {named}, {naming}"
)
TABLES = (
    "passages p JOIN texts t ON t.id = p.id JOIN heads h ON h.id = t.head"
    f" JOIN documents d ON d.id = p.id >> {PASSAGE_BITS}"
)


def _columns(scope: Scope) -> tuple[str, list[Any]]:
    """What a `Hit` is made of. Only an entry in scope supersedes: a channel cannot silence the shared layer."""
    where, values = Scope(scope.channels, shared=scope.shared).documents()
    superseded = (
        f"EXISTS(SELECT 1 FROM passages s JOIN documents d ON d.id = s.id >> {PASSAGE_BITS}"
        f" WHERE p.ref <> '' AND s.supersedes = p.ref AND s.supersedes <> '' AND {where})"
    )
    rival = (
        "coalesce((SELECT s.ref || ' ' || s.until FROM passages s JOIN documents d"
        f" ON d.id = s.id >> {PASSAGE_BITS} WHERE {{}} AND s.ref <> p.ref AND {where}"
        " ORDER BY s.until = '' DESC, s.until DESC LIMIT 1), '')"
    )
    named = rival.format("p.conflicts <> '' AND s.ref = p.conflicts AND s.ref <> ''")
    naming = rival.format("p.ref <> '' AND s.conflicts = p.ref AND s.conflicts <> ''")
    return COLUMNS.format(superseded=superseded, named=named, naming=naming), [*values, *values, *values]


def search(
    db: sqlite3.Connection,
    read: Callable[[str, int, int], bytes],
    query: words.Query,
    scope: Scope,
    limit: int,
    known: Known,
    near: Sequence[tuple[int, float]] | None = None,
) -> tuple[list[Hit], list[str]]:
    """The best `limit` passages for `query`, and the paths whose text is no longer what was indexed.

    The score is `rank`'s, halved for an entry or a note that another one supersedes; more is better. Passages with a
    quoted phrase come first, and equals stand in the order of path and place. A passage is given only while its bytes
    have the digest that was scanned. `known` remembers counts between searches. `near` are rows that vectors found in
    scope, with their share: then the score is `fuse`'s.
    """
    found: list[Hit] = []
    changed, current = [], 0
    for hit, mark in _hits(db, query, scope, limit, known, near):
        if not _fill(hit, read, mark):
            changed.append(hit.path)
            continue
        found.append(hit)
        current += not hit.superseded
        if current >= limit and not query.phrases:
            break
    found.sort(key=lambda hit: (-_phrases_in(hit, query) if query.phrases else 0, -hit.score))
    return found[:limit], changed


def _hits(
    db: sqlite3.Connection, query: words.Query, scope: Scope, limit: int, known: Known,
    near: Sequence[tuple[int, float]] | None,
) -> Iterator[tuple[Hit, str]]:  # fmt: skip
    """The best passages and some more, without their texts, each with the digest its text must have."""
    ranked: Sequence[Ranked | Fused] = rank(db, query, scope, limit, known)
    if near:
        from pipimem.index.fuse import fuse

        ranked = fuse(ranked, near)  # type: ignore[arg-type]
    columns, values = _columns(scope)
    at, most = 0, limit + SPARE
    while at < min(most, len(ranked)):
        end = min(len(ranked), most if query.phrases else at + limit + FIRST)
        while end < len(ranked) and ranked[end].score > ranked[end - 1].score - 1e-6:
            end += 1  # equals stand in the order of the files
        chosen = {r.row: r for r in ranked[at:end]}
        sql = f"SELECT {columns} FROM {TABLES} WHERE p.id IN ({','.join(map(str, chosen))})"
        rows = [(chosen[row[18]], Hit(row), row[17]) for row in db.execute(sql, values).fetchall()]
        _told_by_notes(db, [hit for _, hit, _ in rows if hit.layer == "note" and not hit.entry], scope)
        for place, hit, mark in sorted(rows, key=lambda r: (-round(r[0].score, 4), r[1].path, r[1].start)):
            hit.signals = place.signals()
            hit.score = round(place.score * (OUTDATED if hit.superseded else 1), 4)
            yield hit, mark
        at = end


def _told_by_notes(db: sqlite3.Connection, hits: Sequence[Hit], scope: Scope) -> None:
    """Marks passages of a note that another in scope supersedes, or stands in conflict with, by its front matter."""
    where, values = Scope(scope.channels, shared=scope.shared).documents()
    known: dict[int, tuple[bool, list[tuple[str, str]]]] = {}
    for hit in hits:
        document = hit.row >> PASSAGE_BITS
        if document not in known:
            first = document << PASSAGE_BITS
            told = db.execute(
                "SELECT e.relation, d.path FROM names n JOIN edges e INDEXED BY edges_dst ON e.dst = n.node"
                f" JOIN documents d ON d.id = e.id >> {PASSAGE_BITS} WHERE n.id = ? AND e.passage = -1"
                f" AND e.relation IN ('supersedes', 'conflicts-with') AND d.id <> ? AND {where}",
                (first, document, *values),
            ).fetchall()
            telling = db.execute(
                "SELECT d.path FROM edges e JOIN names n ON n.node = e.dst"
                f" JOIN documents d ON d.id = n.id >> {PASSAGE_BITS} WHERE e.id BETWEEN ? AND ? AND e.passage = -1"
                f" AND e.relation = 'conflicts-with' AND d.id <> ? AND {where}",
                (first, first + (1 << PASSAGE_BITS) - 1, document, *values),
            ).fetchall()
            rivals = [path for relation, path in told if relation == "conflicts-with"] + [path for (path,) in telling]
            outdated = any(relation == "supersedes" for relation, _ in told)
            known[document] = outdated, [(path, "") for path in dict.fromkeys(rivals)]
        hit.superseded = hit.superseded or known[document][0]
        hit.rivals += known[document][1]


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
    """A passage as a person reads it: comments with facts are off, and of an entry the marker.

    Continuation lines are as they stand.
    """
    text = scrub(decode(raw)).strip()
    return _without_comments(_without_marker(text) if entry else text).strip()


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
    found = []
    for named, name in _named(ref):
        sql = (
            f"SELECT {columns} FROM {TABLES} WHERE {named} AND {where}"
            f"{' AND ' + passages if passages else ''} ORDER BY d.path, p.start LIMIT 50"
        )
        found += [(Hit(row), row[17]) for row in db.execute(sql, (*first, *name, *values, *more)).fetchall()]
    hits = [hit for hit, mark in found if _fill(hit, read, mark)]
    return hits, [hit.path for hit, _ in found if hit not in hits]


def _named(ref: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The conditions under which a passage is called `ref`: a path may hold the sign that ends it."""
    yield "p.ref = ? AND p.ref <> ''", (ref,)
    of = f"p.id BETWEEN d.id << {PASSAGE_BITS} AND (d.id + 1 << {PASSAGE_BITS}) - 1 AND NOT p.entry AND d.path = ?"
    yield f"{of} AND h.trail = ''", (ref,)
    at = ref.find("#")
    while at >= 0:
        yield f"{of} AND replace(h.trail, char(31), ' > ') = ?", (ref[:at], ref[at + 1 :])
        at = ref.find("#", at + 1)


def frequencies(db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """In how many passages each term stands among the words (not the pairs): the cutter's last resort."""
    found = {}
    for term in terms:
        row = db.execute("SELECT sum(cnt) FROM v WHERE term = ? AND col IN ('heading', 'body')", (term,)).fetchone()
        if row[0]:
            found[term] = row[0]
    return found
