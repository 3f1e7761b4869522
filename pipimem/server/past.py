"""What conversations and the graph hold → the answers of tools, as they may be given to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipimem.server import giving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.index.graph import Edge, Linked, Node
    from pipimem.server import answers
    from pipimem.server.served import Call
    from pipimem.sessions import Conversation, Found

NO_CHANNEL = "this server is bound to no channel, and conversations are a channel's"


def reason(call: Call, found: object, otherwise: str) -> str:
    """Why there is nothing, or no text; "" where there is."""
    if call.observing:
        return giving.OBSERVING
    if found:
        return ""
    return NO_CHANNEL if call.channel is None else otherwise


def messages(call: Call, found: Sequence[Found]) -> list[answers.Message]:
    """Messages with their texts as they may be given: what was said once is no more trusted than memory."""
    return [
        {
            "ref": one.ref, "role": one.role, "name": said(call, one.name, one.ref), "time": one.time,
            "text": said(call, one.text, one.ref), "engine": one.engine, "session": one.session,
            "project": one.project, "channel": one.channel, "there": one.there,
        }
        for one in found
    ]  # fmt: skip


def said(call: Call, words: str, where: str) -> str:
    """Words of a conversation, or of a name in the graph."""
    return giving.text(call, words, giving.verdict(call, words), where)


def talks(call: Call, found: Sequence[Conversation]) -> list[answers.Talk]:
    """Conversations, each with its title and the beginning of its last message."""
    return [
        {
            "ref": one.ref, "session": one.session, "engine": one.engine, "project": one.project,
            "channel": one.channel, "title": said(call, one.title, one.ref), "first": one.first, "last": one.last,
            "counts": dict(one.counts), "last_preview": said(call, one.last_preview, one.ref),
        }
        for one in found
    ]  # fmt: skip


def graph(call: Call, found: Linked, *, path: bool, nothing: str) -> answers.Graph:
    """Nodes and links that are this channel's to see, with names that may be given; in mode `observe` none."""
    nodes, edges = _meant(call, found)
    names = {node.key: node.key if said(call, node.name, node.key) == node.name else _numbered(n)
             for n, node in enumerate(nodes)}  # fmt: skip
    if call.observing:
        nodes, edges = [], []
    return {
        "nodes": [
            {"key": names[n.key], "kind": n.kind, "name": said(call, n.name, n.path or "its links"), "depth": n.depth,
             "path": n.path, "line": n.line}
            for n in nodes
        ],
        "edges": [
            {"source": names[e.source], "target": names[e.target], "relation": e.relation, "layer": e.layer,
             "weight": e.weight, "ref": e.ref, "path": e.path, "line": e.line}
            for e in edges
        ],
        "path": [names[n.key] for n in nodes] if path else [], "more": found.more,
        "reason": giving.OBSERVING if call.observing else "" if len(nodes) > 1 else nothing,
        "notes": giving.notes(call),
    }  # fmt: skip


def _numbered(number: int) -> str:
    """What stands for the key of a thing whose name is withheld."""
    return f"withheld-{number}"


def _meant(call: Call, found: Linked) -> tuple[list[Node], list[Edge]]:
    """What rests on documents this channel may be given: a thing only others name is not there."""
    seen: dict[str, bool] = {}

    def may(path: str) -> bool:
        if path not in seen:
            seen[path] = not path or giving.meant(call, path)
        return seen[path]

    nodes = [n for n in found.nodes if may(n.path)]
    keys = {n.key for n in nodes}
    edges = [e for e in found.edges if may(e.path) and {e.source, e.target} <= keys]
    if len(edges) == len(found.edges):
        return nodes, edges
    linked = {key for e in edges for key in (e.source, e.target)}
    return [n for n in nodes if n.key in linked or n.path], edges
