"""What documents say of things (`links`) → the rows of the graph, and which node each link leads to.

A node is a canonical name. A document adds names to a node: its own, its path, its aliases; a link goes to the node its
name leads to in the channel of the link, else in the shared layer, else to a node of that very name. So a channel's
documents decide where the links of that channel go, and nobody else's.
"""

from __future__ import annotations

from collections import Counter

from pipimem.index.links import CODES, OWN, Said, canonical
from pipimem.index.schema import CHANNEL_BITS, PASSAGE_BITS, key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    Name = tuple[int, int, int, int]  # channel, name, node, rank

CHANNEL = CHANNEL_BITS + PASSAGE_BITS


class Graph:
    """The graph of one sync: rows are added and dropped with their documents, and links settled once at the end."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.changed: Counter[Name] = Counter()
        self.new: set[int] = set()
        self._keys: dict[str, int] = {}

    def add(self, document: int, said: Said) -> None:
        """Stores what a document says under its number."""
        first = document << PASSAGE_BITS
        node = self.key(said.names[0][0])
        names = [(self.key(name), node, rank, CODES[said.kind], name) for name, rank in said.names]
        names += [(self.key(entry), self.key(entry), OWN, CODES[kind], entry) for entry, kind in said.entries.items()]
        rows = [(number, *name) for number, name in enumerate(names, first)]
        self.db.executemany("INSERT INTO names VALUES(?,?,?,?,?,?)", rows)
        self.changed.update((first >> CHANNEL, name, node, rank) for _, name, node, rank, _, _ in rows)
        edges = [
            (number, self.key(link.source), self.key(link.target), link.relation, link.layer, link.weight,
             CODES[link.kind], link.target, link.passage, link.line)
            for number, link in enumerate(said.links, first)
        ]  # fmt: skip
        if edges:
            self.db.executemany("INSERT INTO edges VALUES(?,?,?,0,?,?,?,?,?,?,?)", edges)
            self.new.update(edge[2] for edge in edges)

    def drop(self, document: int) -> None:
        """Deletes what a document said."""
        first = document << PASSAGE_BITS
        span = first, first + (1 << PASSAGE_BITS) - 1
        gone = self.db.execute("SELECT name, node, rank FROM names WHERE id BETWEEN ? AND ?", span).fetchall()
        self.changed.subtract((first >> CHANNEL, *row) for row in gone)
        for table in ("names", "edges"):
            self.db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)

    def settle(self) -> None:
        """Leads every link to the node its name means now: new links, and those whose name came, went or changed."""
        if self.db.execute("SELECT 1 FROM edges LIMIT 1").fetchone():
            for name in self.new.union(name for (_, name, _, _), count in self.changed.items() if count):
                self._lead(name)

    def _lead(self, name: int) -> None:
        ways = self.db.execute(f"SELECT id >> {CHANNEL}, node, rank FROM names WHERE name = ?", (name,)).fetchall()
        links = self.db.execute("SELECT id, dst FROM edges WHERE named = ? AND named <> 0", (name,)).fetchall()
        if any(node != name for _, node, _ in ways):
            links += self.db.execute("SELECT id, dst FROM edges WHERE dst = ? AND named = 0", (name,)).fetchall()
        for link, before in links:
            node = _best(ways, link >> CHANNEL, name)
            if node != before:
                self.db.execute("UPDATE edges SET dst=?, named=? WHERE id=?", (node, name if node != name else 0, link))

    def key(self, name: str) -> int:
        """The key of a name as it is spelled, remembered."""
        found = self._keys.get(name)
        if found is None:
            if len(self._keys) > 100_000:
                self._keys.clear()
            found = self._keys[name] = key(canonical(name))
        return found


def _best(ways: Sequence[tuple[int, int, int]], channel: int, name: int) -> int:
    """The node a name leads to from a channel: what is called so there or in the shared layer, by rank, own first."""
    near = [(rank, of != channel, node) for of, node, rank in ways if of in (channel, 0)]
    return min(near)[2] if near else name
