"""The graph over an opened workspace: what is near a thing, how two hang together, and drawings of it all.

What a node and a link are is index/links.py's and index/graph.py's; here are scope, the words of a question, and the
three forms of an export, in which no name can be syntax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipimem.errors import Refused, Unreadable, Usage
from pipimem.index import graph
from pipimem.knowledge import LAYERS
from pipimem.text import clip, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.index.graph import Linked, Node
    from pipimem.opened import Opened

DIRECTIONS = ("in", "out", "both")
FORMS = ("mermaid", "dot", "json")
MOST = 1000
LABEL = 60
"""Characters of a name in a drawing."""


def neighbors(
    memory: Opened, node: str, channel: str | None, *, all_channels: bool, depth: int, relation: str, layer: str,
    direction: str, limit: int,
) -> Linked:  # fmt: skip
    """What is near a thing; see `Memory.graph_neighbors`. Raises `Usage` for a layer or direction nobody knows."""
    _known("layer", layer, ("", *LAYERS))
    _known("direction", direction, DIRECTIONS)
    scope = memory.scope(channel, all_channels=all_channels)
    most = max(2, min(MOST, limit))

    def ask(db: Any) -> Linked:
        which = graph.Which(db, scope, relation=relation, layer=layer, direction=direction)
        return graph.neighbours(db, which, graph.nodes_of(db, which, node), max(1, depth), most)

    return memory.passages.graph(scope, ask)


def path(memory: Opened, one: str, other: str, channel: str | None, *, all_channels: bool) -> Linked:
    """A shortest way between two things; see `Memory.graph_path`."""
    scope = memory.scope(channel, all_channels=all_channels)

    def ask(db: Any) -> Linked:
        which = graph.Which(db, scope)
        return graph.path(db, which, graph.nodes_of(db, which, one), graph.nodes_of(db, which, other))

    return memory.passages.graph(scope, ask)


def status(memory: Opened, channel: str | None, *, all_channels: bool) -> dict[str, Any]:
    """How much there is; see `Memory.graph_status`."""
    scope = memory.scope(channel, all_channels=all_channels)

    def ask(db: Any) -> dict[str, Any]:
        which = graph.Which(db, scope)
        nodes, edges = graph.counted(db, which)
        return {"nodes": nodes, "edges": edges, **graph.status(db, which)}

    return memory.passages.graph(scope, ask)


def size(memory: Opened) -> dict[str, int]:
    """How many nodes and links the whole workspace has; empty where there is no index to count them in."""
    scope = memory.scope(all_channels=True)
    try:
        nodes, edges = memory.passages.graph(scope, lambda db: graph.counted(db, graph.Which(db, scope)))
    except (Refused, Unreadable):
        return {}
    return {"nodes": nodes, "edges": edges}


def export(memory: Opened, form: str, channel: str | None, *, all_channels: bool, limit: int) -> tuple[str, bool]:
    """The links in scope, drawn; see `Memory.graph_export`. Raises `Usage` for a form nobody knows."""
    _known("form", form, FORMS)
    scope = memory.scope(channel, all_channels=all_channels)
    found = memory.passages.graph(
        scope, lambda db: graph.everything(db, graph.Which(db, scope), max(0, limit))
    )  # fmt: skip
    return drawn(found, form), found.more


def _known(what: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        named = ", ".join(filter(None, known))
        raise Usage(f"The {what} '{printable(word)}' is unknown.", f"One of: {named}.")


# Drawing


def drawn(found: Linked, form: str) -> str:
    """Nodes and links in one of `FORMS`, ending in a line break."""
    if form == "json":
        import json

        return json.dumps(as_json(found), ensure_ascii=False, indent=1) + "\n"
    return "".join(f"{line}\n" for line in (_mermaid(found) if form == "mermaid" else _dot(found)))


def as_json(found: Linked) -> dict[str, Any]:
    """Nodes and links as values for JSON."""
    nodes = [
        {"key": n.key, "kind": n.kind, "name": n.name, "depth": n.depth, "path": n.path, "line": n.line}
        for n in found.nodes
    ]
    edges = [
        {"from": e.source, "to": e.target, "relation": e.relation, "layer": e.layer, "weight": e.weight, "ref": e.ref,
         "path": e.path, "line": e.line}
        for e in found.edges
    ]  # fmt: skip
    return {"nodes": nodes, "edges": edges, "more": found.more}


def _mermaid(found: Linked) -> Iterator[str]:
    """A flowchart. Only letters, digits, spaces and a few harmless signs of a name stand for themselves."""
    numbers = {node.key: f"n{at}" for at, node in enumerate(found.nodes)}
    yield "flowchart LR"
    for node in found.nodes:
        yield f'  {numbers[node.key]}["{_escaped(_label(node))}"]'
    for edge in found.edges:
        yield f'  {numbers[edge.source]} -- "{_escaped(_clipped(edge.relation))}" --> {numbers[edge.target]}'


def _escaped(text: str) -> str:
    """Text within a Mermaid label: what might be markup, there or in HTML, as a character code."""
    return "".join(c if c.isalnum() or c in " .,_/-+·" else f"#{ord(c)};" for c in text)


def _dot(found: Linked) -> Iterator[str]:
    numbers = {node.key: f"n{at}" for at, node in enumerate(found.nodes)}
    yield "digraph memory {"
    yield "  rankdir=LR; node [shape=box];"
    for node in found.nodes:
        yield f"  {numbers[node.key]} [label={_quoted(_label(node))}];"
    for edge in found.edges:
        yield f"  {numbers[edge.source]} -> {numbers[edge.target]} [label={_quoted(_clipped(edge.relation))}];"
    yield "}"


def _quoted(text: str) -> str:
    """Text as a DOT string: backslashes and quotes escaped, so that neither ends it or is an escape of DOT's own."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _label(node: Node) -> str:
    return f"{_clipped(node.name)} · {node.kind}"


def _clipped(text: str) -> str:
    """A name on one line, without control and format characters, shortened."""
    return clip("".join(c for c in one_line(text) if c.isprintable()), LABEL)
