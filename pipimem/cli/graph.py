"""The graph command: what is near a thing, how two things hang together, how much there is, drawings."""

from __future__ import annotations

import sys

from pipimem.cli.common import opened, print_json, say_notes, where_arguments
from pipimem.errors import NotFound
from pipimem.knowledge import LAYERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.memory import Memory
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser

TOLD = 20
"""Entries whose text is shown to a person."""
FORMS, DIRECTIONS = ("mermaid", "dot", "json"), ("in", "out", "both")


def _arguments(parser: Parser) -> None:
    from argparse import SUPPRESS

    actions = parser.add_subparsers(dest="action", required=True, metavar="neighbors|path|status|export")
    near = actions.add_parser("neighbors", help="what is linked to a thing, nearest first")
    near.add_argument("node", metavar="NODE", help="a note, entity, tag, entry id or path, as a link names it")
    near.add_argument("--depth", type=int, default=2, metavar="N", help="links away at most, 1 to 6 (2)")
    near.add_argument("--relation", default="", metavar="R", help="only links of that relation, such as fixed-by")
    near.add_argument("--layer", default="", choices=("", *LAYERS), metavar="L", help=", ".join(LAYERS))
    near.add_argument("--direction", default="both", choices=DIRECTIONS, metavar="D", help="in, out or both (both)")
    near.add_argument("--limit", type=int, default=100, metavar="N", help="things at most (100)")
    way = actions.add_parser("path", help="a shortest way between two things")
    way.add_argument("node", metavar="A", help="where to start")
    way.add_argument("to", metavar="B", help="where to arrive")
    actions.add_parser("status", help="how much there is, and what has most links")
    export = actions.add_parser("export", help="all links, to look at")
    export.add_argument(
        "--format", default="mermaid", choices=FORMS, metavar="F", help="mermaid, dot or json (mermaid)"
    )
    export.add_argument("--limit", type=int, default=1000, metavar="N", help="links at most, 0 for all (1,000)")
    for action in actions.choices.values():
        where_arguments(action)
        action.add_argument("-w", "--workspace", metavar="DIR", default=SUPPRESS, help="the workspace")
        action.add_argument("--json", action="store_true", default=SUPPRESS, help="one JSON document")


def _graph(options: Namespace) -> int:
    with opened(options) as memory:
        code = {"neighbors": _neighbors, "path": _path, "status": _status, "export": _export}[options.action](
            options, memory
        )
        say_notes(memory)
        if memory.stale:
            print("pipimem: the index is older than some files; run 'pipimem index'.", file=sys.stderr)
    return code


def _neighbors(options: Namespace, memory: Memory) -> int:
    from pipimem import graph, render

    found = memory.graph_neighbors(
        options.node, options.channel, all_channels=options.all, depth=options.depth, relation=options.relation,
        layer=options.layer, direction=options.direction, limit=options.limit,
    )  # fmt: skip
    if options.json:
        print_json(graph.as_json(found))
    else:
        entries = [node.name for node in found.nodes if node.name.startswith("m-") and node.path][:TOLD]
        shown = memory.show(entries, options.channel, all_channels=options.all)
        said = {entry.ref: entry.text for entry in shown if not entry.problem}
        print(render.scrubbed(render.neighbors_text(found, said)), end="")
    if found.more:
        print("pipimem: there is more; ask with a smaller depth, a relation or a layer.", file=sys.stderr)
    if len(found.nodes) > 1:
        return 0
    print("Nothing is linked to it so.", file=sys.stderr)
    return NotFound.code


def _path(options: Namespace, memory: Memory) -> int:
    from pipimem import graph, render

    found = memory.graph_path(options.node, options.to, options.channel, all_channels=options.all)
    if options.json:
        print_json({**graph.as_json(found), "path": [node.key for node in found.nodes]})
    else:
        print(render.scrubbed(render.path_text(found)), end="")
    if found.nodes:
        return 0
    print(f"No way leads from one to the other{' that is short enough' if found.more else ''}.", file=sys.stderr)
    return NotFound.code


def _status(options: Namespace, memory: Memory) -> int:
    from pipimem import render

    state = memory.graph_status(options.channel, all_channels=options.all)
    if options.json:
        print_json(state)
    else:
        print(render.scrubbed(render.graph_status_text(state)), end="")
    return 0


def _export(options: Namespace, memory: Memory) -> int:
    from pipimem import render

    form = "json" if options.json else options.format
    drawn, more = memory.graph_export(form, options.channel, all_channels=options.all, limit=options.limit)
    print(render.scrubbed(drawn), end="")
    if more:
        print(f"pipimem: the first {options.limit} links; --limit 0 gives all.", file=sys.stderr)
    return 0


COMMANDS = {"graph": (_arguments, _graph)}
