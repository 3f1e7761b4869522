"""Asking the graph: what is near a thing, how two things hang together, how much there is. Every answer is bounded.

A node is the key of a canonical name; its kind and spelling are what some document *in scope* says, so that nothing is
told of what only another channel knows. Rows stand in an order of their own keys, the same in every index.
"""

from __future__ import annotations

from itertools import pairwise

from pipimem.errors import NotFound
from pipimem.index.fresh import marks
from pipimem.index.links import canonical, plain_name
from pipimem.index.schema import CHANNEL_BITS, KINDS, PASSAGE_BITS, key
from pipimem.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Sequence

    from pipimem.index.search import Scope

DEPTH, HOPS = 6, 12
"""How far neighbours are looked for, and how long a path may be."""
LOOKED_AT, LEAST = 2_000, 20
"""Links looked at in one step of neighbours for all nodes of it together, in each direction; at least for each."""
READ = 20_000
"""Links read in one step of a path; one through more is not looked for."""
CHANNEL = CHANNEL_BITS + PASSAGE_BITS
_CHUNK = 400
_TELLING = f"(kind NOT IN ({KINDS.index('file')}, {KINDS.index('session')}) OR node IN (SELECT src FROM edges))"
"""Documents that are things by themselves: notes and skills, and of the files every workspace has those that link."""


class Node:
    """A thing: its canonical name (`key`), its kind and spelling as the scope has them, how far it is from the start.

    `path` and `line` are where it is described, "" and 0 for a thing that is only named.
    """

    __slots__ = ("depth", "key", "kind", "line", "name", "path")

    def __init__(self, name: str, kind: str, depth: int = 0, path: str = "", line: int = 0) -> None:
        self.key = canonical(name)
        self.name = name
        self.kind = kind
        self.depth = depth
        self.path = path
        self.line = line


class Edge:
    """A link between two nodes (by canonical name), what it means, and what it rests on: `ref` at `path:line`.

    `ref` is the entry's id, else the path.
    """

    __slots__ = ("layer", "line", "path", "ref", "relation", "source", "target", "weight")

    def __init__(
        self, source: str, target: str, meaning: tuple[str, str, float], place: tuple[str, str, int]
    ) -> None:  # fmt: skip
        self.source = source
        self.target = target
        self.relation, self.layer, self.weight = meaning
        self.ref, self.path, self.line = place


class Linked:
    """Nodes, nearest first, and the links between them; `more` says that there were more than were asked for."""

    __slots__ = ("edges", "more", "nodes")

    def __init__(self, nodes: Sequence[Node], edges: Sequence[Edge], *, more: bool = False) -> None:
        self.nodes = list(nodes)
        self.edges = list(edges)
        self.more = more


class Which:
    """Which links count: those of a scope, of some relation and layer, in a direction (in, out, both).

    `ways` are the directions as SQL: a node's links and their other ends, from `values` and how many at most.
    """

    __slots__ = ("_columns", "_numbers", "values", "ways")

    def __init__(
        self, db: sqlite3.Connection, scope: Scope, *, relation: str = "", layer: str = "", direction: str = "both"
    ) -> None:  # fmt: skip
        self._numbers = _numbers(db, scope)
        given = {column: value for column, value in (("relation", relation), ("layer", layer)) if value}
        self._columns = list(given)
        self.values = list(given.values())
        self.ways = _ways(self, direction)

    def within(self, table: str = "", before: str = " AND ") -> str:
        """The condition, after `before`, that a row of `table` is in scope; "" where everything is."""
        if self._numbers is None:
            return ""
        return f"{before}{_column(table, 'id')} >> {CHANNEL} IN ({','.join(map(str, self._numbers))})"

    def also(self, table: str = "") -> str:
        """The condition on a link of `table`, after another one; it takes `values`."""
        return self.within(table) + "".join(f" AND {_column(table, column)} = ?" for column in self._columns)


def _ways(which: Which, direction: str) -> list[str]:
    """Each direction as SQL with an index that holds all it needs, in the order of that index."""
    also = which.also()
    out = f"SELECT id, dst FROM edges INDEXED BY edges_src WHERE src = ? AND src <> dst{also} ORDER BY dst LIMIT ?"
    into = (
        f"SELECT id, src FROM edges INDEXED BY edges_dst WHERE dst = ? AND src <> dst{also}"
        " ORDER BY kind, spelled, src LIMIT ?"
    )
    return [sql for name, sql in (("out", out), ("in", into)) if direction in (name, "both")]


def _column(table: str, name: str) -> str:
    return f"{table}.{name}" if table else name


def _numbers(db: sqlite3.Connection, scope: Scope) -> list[int] | None:
    """The numbers of a scope's channels; None where that is all of them."""
    if scope.channels is None:
        if scope.shared:
            return None
        sql = f"SELECT DISTINCT id >> {CHANNEL_BITS} FROM documents WHERE channel <> '' ORDER BY 1"
        return [row[0] for row in db.execute(sql).fetchall()]
    ids = [*scope.channels, *([""] if scope.shared else [])]
    sql = f"SELECT DISTINCT id >> {CHANNEL_BITS} FROM documents WHERE channel IN ({marks(ids)}) ORDER BY 1"
    return [row[0] for row in db.execute(sql, ids).fetchall()]


# What a name means


def nodes_of(db: sqlite3.Connection, which: Which, name: str) -> list[int]:
    """The nodes called `name` in scope: what a document there is called so, else what links say. Raises `NotFound`."""
    wanted = key(canonical(plain_name(name.strip().removeprefix("[[").removesuffix("]]"))[1]))
    also = which.within()
    rows = db.execute(f"SELECT rank, node FROM names WHERE name = ?{also} ORDER BY rank, node", (wanted,)).fetchall()
    if rows:
        return list(dict.fromkeys(node for rank, node in rows if rank == rows[0][0]))
    if db.execute(f"SELECT 1 FROM edges WHERE dst = ?{also} LIMIT 1", (wanted,)).fetchone():
        return [wanted]
    raise NotFound(f"There is nothing called '{printable(name)}' in the graph of this scope.", _near(db, which, name))


def _near(db: sqlite3.Connection, which: Which, name: str) -> str:
    """What to do next: the names in scope that hold the word, or are most like it."""
    from pipimem.text import nearest

    also = which.within(before=" WHERE ")
    known = [
        spelled
        for table in ("names", "edges")
        for (spelled,) in db.execute(f"SELECT DISTINCT spelled FROM (SELECT spelled FROM {table}{also} LIMIT 5000)")
    ]
    asked = canonical(name)
    holding = sorted({k for k in known if asked and asked in canonical(k)}, key=lambda k: (len(k), k))
    near = holding[:5] or nearest(name, known)
    if near:
        return f"Did you mean {', '.join(repr(k) for k in near)}?"
    return "Another scope may know it (--channel, --all); 'pipimem graph status' says what this one has."


# Neighbours and paths


def neighbours(db: sqlite3.Connection, which: Which, starts: Sequence[int], depth: int, limit: int) -> Linked:
    """What is up to `depth` links away (`DEPTH` at most), breadth first, `limit` nodes at most.

    Of one distance those with most links to what was found before come first. The links are those that were followed;
    of a node with very many only a part is, the same in every index.
    """
    far = dict.fromkeys(starts, 0)
    followed: list[tuple[int, int, int]] = []
    frontier, more = list(starts), False
    for step in range(1, min(depth, DEPTH) + 1):
        most = max(LEAST, LOOKED_AT // max(1, len(frontier)))
        counts: dict[int, int] = {}
        for node in frontier:
            links = _links_of(db, which, node, most)
            more = more or len(links) >= most
            for link, other in links:
                followed.append((link, node, other))
                if other not in far:
                    counts[other] = counts.get(other, 0) + 1
        room = max(0, limit - len(far))
        more = more or len(counts) > room
        frontier = _first(counts, room)
        far.update(dict.fromkeys(frontier, step))
        if not frontier:
            break
    kept = {link for link, one, other in followed if one in far and other in far}
    return _shown(db, which, far, kept, more=more)


def _first(counts: dict[int, int], room: int) -> list[int]:
    """The `room` nodes with most links, equals by their keys."""
    if len(counts) <= room or not room:
        return sorted(counts)[:room]
    least = sorted(counts.values())[-room]
    above = [node for node, count in counts.items() if count > least]
    equal = sorted(node for node, count in counts.items() if count == least)
    return sorted(above) + equal[: room - len(above)]


def _links_of(db: sqlite3.Connection, which: Which, node: int, most: int) -> list[tuple[int, int]]:
    """Up to `most` links out of a node and as many into it: (link, the node at its other end)."""
    found: list[tuple[int, int]] = []
    for sql in which.ways:
        found += db.execute(sql, (node, *which.values, most)).fetchall()
    return found


def path(db: sqlite3.Connection, which: Which, starts: Sequence[int], ends: Sequence[int]) -> Linked:
    """A shortest way from one of `starts` to one of `ends`, along links in either direction; empty where there is none.

    Both ends are looked from in turn, the nearer crowd first; `more` says that too much was near them to look further.
    """
    before: dict[int, int] = dict.fromkeys(starts, 0)
    after: dict[int, int] = dict.fromkeys(ends, 0)
    met = next((node for node in starts if node in after), None)
    near, far = list(starts), list(ends)
    more = False
    for _ in range(HOPS):
        if met is not None or not near or not far or more:
            break
        forwards = len(near) <= len(far)
        seen, crowd, others = (before, near, after) if forwards else (after, far, before)
        found, more = _step(db, which, crowd, seen)
        met = next((node for node in found if node in others), None)
        near, far = (found, far) if forwards else (near, found)
    if met is None:
        return Linked([], [], more=more)
    way = [*reversed(_back(met, before)), *_back(met, after)[1:]]
    links = [_between(db, which, one, other) for one, other in pairwise(way)]
    return _shown(db, which, {node: at for at, node in enumerate(way)}, [link for link in links if link], more=False)


def _step(db: sqlite3.Connection, which: Which, crowd: Sequence[int], seen: dict[int, int]) -> tuple[list[int], bool]:
    """The nodes one link beyond a crowd, noted in `seen` with where they were come from; whether links were left."""
    found: list[int] = []
    left = READ
    for node in crowd:
        links = _links_of(db, which, node, left)
        for _, other in links:
            if other not in seen:
                seen[other] = node
                found.append(other)
        left -= len(links)
        if left <= 0:
            return found, True
    return found, False


def _back(node: int, seen: dict[int, int]) -> list[int]:
    """The way from a node back to where the looking began; 0 is before the beginning, and no key of a name."""
    way = [node]
    while seen[way[-1]]:
        way.append(seen[way[-1]])
    return way


def _between(db: sqlite3.Connection, which: Which, one: int, other: int) -> int:
    """The heaviest link between two nodes, in either direction."""
    sql = (
        "SELECT e.id FROM edges e JOIN documents d ON d.id = e.id >> ?"
        " WHERE ((src = ? AND dst = ?) OR (src = ? AND dst = ?))"
        f"{which.also('e')}"
        " ORDER BY weight DESC, d.path, e.line, relation LIMIT 1"
    )
    row = db.execute(sql, (PASSAGE_BITS, one, other, other, one, *which.values)).fetchone()
    return int(row[0]) if row else 0


# The whole


def everything(db: sqlite3.Connection, which: Which, limit: int) -> Linked:
    """The links in scope in the order of the files, `limit` at most (0: all), with the nodes they join."""
    sql = (
        "SELECT e.id, src, dst FROM edges e JOIN documents d ON d.id = e.id >> ? WHERE 1"
        f"{which.also('e')} ORDER BY d.path, e.line, e.id LIMIT ?"
    )
    rows = db.execute(sql, (PASSAGE_BITS, *which.values, limit + 1 if limit else -1)).fetchall()
    more = bool(limit) and len(rows) > limit
    rows = rows[:limit] if limit else rows
    far = dict.fromkeys((node for _, src, dst in rows for node in (src, dst)), 0)
    return _shown(db, which, far, [row[0] for row in rows], more=more)


def counted(db: sqlite3.Connection, which: Which) -> tuple[int, int]:
    """How many nodes and links there are in scope."""
    where = which.within(before=" WHERE ")
    nodes = (
        f"SELECT node FROM names WHERE {_TELLING}{which.within()}"
        f" UNION SELECT src FROM edges{where} UNION SELECT dst FROM edges{where}"
    )
    links = f"SELECT DISTINCT src, dst, relation, id >> {PASSAGE_BITS} FROM edges{where}"
    things, ways = (int(db.execute(f"SELECT count(*) FROM ({sql})").fetchone()[0]) for sql in (nodes, links))
    return things, ways


def status(db: sqlite3.Connection, which: Which, most: int = 10) -> dict[str, dict[str, int]]:
    """Counts by kind of node, by relation and by layer of link, and the nodes with most links."""
    where = which.within(before=" WHERE ")
    kinds = (
        "SELECT kind, count(*) FROM (SELECT node, min(kind) AS kind FROM"
        f" (SELECT node, rank * 100 + kind AS kind FROM names WHERE {_TELLING}{which.within()}"
        f" UNION ALL SELECT dst, 1000 + kind FROM edges{where}) GROUP BY node) GROUP BY kind"
    )
    counts: dict[str, int] = {}
    for code, count in db.execute(kinds).fetchall():
        counts[KINDS[code % 100]] = counts.get(KINDS[code % 100], 0) + count
    by = {
        column: dict(
            db.execute(f"SELECT {column}, count(*) FROM edges{where} GROUP BY 1 ORDER BY 2 DESC, 1").fetchall()
        )
        for column in ("relation", "layer")
    }
    ends = (
        f"SELECT node, count(*) AS n FROM (SELECT src AS node FROM edges{where} UNION ALL SELECT dst FROM edges{where})"
        " GROUP BY node ORDER BY n DESC, node LIMIT ?"
    )
    busiest = dict(db.execute(ends, (most,)).fetchall())
    named = _described(db, which, busiest)
    return {
        "kinds": dict(sorted(counts.items(), key=lambda row: (-row[1], row[0]))),
        "relations": by["relation"],
        "layers": by["layer"],
        "busiest": {named[node].name: count for node, count in busiest.items() if node in named},
    }


# Rows as people read them


def _shown(db: sqlite3.Connection, which: Which, far: dict[int, int], links: Iterable[int], *, more: bool) -> Linked:
    nodes = _described(db, which, far)
    for node, described in nodes.items():
        described.depth = far[node]
    ordered = sorted(nodes.values(), key=lambda node: (node.depth, node.key))
    edges = _edges(db, sorted(links), nodes)
    return Linked(ordered, edges, more=more)


def _edges(db: sqlite3.Connection, links: Sequence[int], nodes: dict[int, Node]) -> list[Edge]:
    """The links with these ids, each once by ends, relation and source, in the order of the files."""
    found: dict[tuple[object, ...], Edge] = {}
    for at in range(0, len(links), _CHUNK):
        sql = (
            "SELECT e.src, e.dst, e.relation, e.layer, e.weight, d.path, e.line FROM edges e JOIN documents d ON"
            f" d.id = e.id >> {PASSAGE_BITS} WHERE e.id IN ({','.join(map(str, links[at : at + _CHUNK]))})"
        )
        for src, dst, relation, layer, weight, place, line in db.execute(sql).fetchall():
            if src not in nodes or dst not in nodes:
                continue
            source, target = nodes[src], nodes[dst]
            ref = source.name if _is_id(source.name) else place
            edge = Edge(source.key, target.key, (relation, layer, weight), (ref, place, line))
            mark = (src, dst, relation, place)
            if mark not in found or (-edge.weight, edge.line) < (-found[mark].weight, found[mark].line):
                found[mark] = edge
    return sorted(found.values(), key=lambda e: (e.path, e.line, e.source, e.target, e.relation))


def _described(db: sqlite3.Connection, which: Which, nodes: Collection[int]) -> dict[int, Node]:
    """What the scope says of each node: by the names of its documents, else as its links spell it."""
    also = which.within("n")
    own = (
        "SELECT n.kind, n.spelled, d.path FROM names n INDEXED BY names_node JOIN documents d ON d.id = n.id >> ?"
        f" WHERE n.node = ? AND n.name = n.node{also} ORDER BY n.rank, n.kind, n.spelled LIMIT 1"
    )
    said = (
        f"SELECT n.kind, n.spelled FROM edges n INDEXED BY edges_dst WHERE n.dst = ?{also}"
        " ORDER BY n.kind, n.spelled LIMIT 1"
    )
    found = {}
    for node in nodes:
        row = db.execute(own, (PASSAGE_BITS, node)).fetchone()
        if row:
            found[node] = Node(row[1], KINDS[row[0]], path=row[2], line=1)
        elif row := db.execute(said, (node,)).fetchone():
            found[node] = Node(row[1], KINDS[row[0]])
        else:
            continue
        if _is_id(found[node].name):
            _place_entry(db, which, found[node])
    return found


def _place_entry(db: sqlite3.Connection, which: Which, node: Node) -> None:
    """An entry's kind and place, where it is in scope."""
    sql = (
        f"SELECT p.kind, d.path, p.line FROM passages p JOIN documents d ON d.id = p.id >> {PASSAGE_BITS}"
        f" WHERE p.ref = ? AND p.ref <> ''{which.within('p')} ORDER BY d.path, p.line LIMIT 1"
    )
    row = db.execute(sql, (node.name,)).fetchone()
    if row:
        node.kind = row[0] if row[0] in KINDS else "note"
        node.path, node.line = row[1], row[2]


def _is_id(name: str) -> bool:
    """Whether a name is an entry's id."""
    return len(name) == 10 and name.startswith("m-") and not name[2:].strip("0123456789abcdef")
