"""Commands that ask and change nothing: search, recall, why, context, show."""

from __future__ import annotations

import os
import sys

from pipimem.cli.common import close_all, given_text, opened, other_workspaces, print_json, say_notes, where_arguments
from pipimem.errors import NotFound, Refused, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.index import Hit
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser

LAYERS = "identity standing memory user note skill session history archive".split()
SPARE = 10
"""Hits asked for beyond those shown, for what may fall together."""


def _search_arguments(parser: Parser) -> None:
    parser.add_argument("query", nargs="+", metavar="QUERY", help="words, “phrases” in quotes; - reads standard input")
    where_arguments(parser)
    parser.add_argument("--target", default="", metavar="T", help="user, memory, project or failure")
    parser.add_argument("--project", default="", metavar="NAME", help="only the channels mapped to that project")
    parser.add_argument("--category", default="", metavar="C", help="failure, correction, insight, preference, …")
    parser.add_argument("--layer", action="append", default=[], choices=LAYERS, metavar="LAYER", help=", ".join(LAYERS))
    parser.add_argument("--kind", action="append", default=[], metavar="KIND", help="kind of entry, such as decision")
    parser.add_argument("--type", action="append", default=[], metavar="T", help="observation, entity, domain-summary")
    parser.add_argument("--domain", action="append", default=[], metavar="D", help="notes of that domain")
    parser.add_argument("--entity", action="append", default=[], metavar="E", help="what is linked to that thing")
    parser.add_argument("--min-confidence", type=float, default=0.0, metavar="X", help="least confidence, 0 to 1")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="passages at most (10)")
    parser.add_argument("--explain", action="store_true", help="with the value of every signal")


def _search(options: Namespace) -> int:
    from pipimem import render

    query, most = given_text(options.query), max(1, options.limit)
    with opened(options) as memory:
        others = other_workspaces(options, memory)
        hits = memory.search(
            query, options.channel, all_channels=options.channel is None, target=options.target,
            project=options.project, category=options.category, layers=options.layer, kinds=options.kind,
            min_confidence=options.min_confidence, types=options.type, domains=options.domain,
            entities=options.entity, limit=most if options.json else most + SPARE, also=others,
        )  # fmt: skip
        close_all(others)
        groups = _grouped(hits)[:most]
        say_notes(memory)
        if options.json:
            skipped = [{"path": path, "reason": reason} for path, reason in memory.skipped]
            rows, missing = render.hits_json(hits, groups), memory.missing
            print_json({"query": query, "hits": rows, "stale": memory.stale, "skipped": skipped, "missing": missing})
        else:
            colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
            print(render.hits_text(groups, explain=options.explain, colour=colour), end="")
        for path, reason in memory.skipped:
            print(f"pipimem: not searched: '{render.scrubbed(path)}': {reason}", file=sys.stderr)
        for what in (m for m in memory.missing if not hits or "does not read this language" not in m):
            print(f"pipimem: without {render.scrubbed(what)}", file=sys.stderr)
        if memory.stale:
            print("pipimem: the index is older than some files; run 'pipimem index'.", file=sys.stderr)
    if hits:
        return 0
    print("Nothing found.", file=sys.stderr)
    return NotFound.code


def _grouped(hits: list[Hit]) -> list[list[Hit]]:
    """Hits that say nearly the same stand together, so that ten answers are ten things."""
    if len(hits) < 2:
        return [[hit] for hit in hits]
    from pipimem.index.alike import grouped

    return grouped(hits)


def _recall_arguments(parser: Parser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="the prompt; - reads standard input")
    where_arguments(parser)
    parser.add_argument("--budget", type=int, default=0, metavar="N", help="tokens at most, 100 to 1,500 (1,200)")
    parser.add_argument("--error", action="append", default=[], metavar="TEXT", help="an error just met")
    parser.add_argument("--file", action="append", default=[], metavar="PATH", help="a file being worked on")
    parser.add_argument("--session", default="", metavar="S", help="leave out what this session was given before")
    parser.add_argument("--always", action="store_true", help="look even where the router would not")


def _recall(options: Namespace) -> int:
    from pipimem import render
    from pipimem.recall import Recall

    try:
        with opened(options) as memory:
            result = memory.recall(
                given_text(options.text), options.channel, all_channels=options.all, budget=options.budget,
                always=options.always, errors=options.error, files=options.file, session=options.session,
                also=(others := other_workspaces(options, memory)),
            )  # fmt: skip
            close_all(others)
            say_notes(memory)
    except (Unreadable, Refused) as error:
        result = Recall(str(error), {}, failed=True)
    if options.json:
        print_json(render.recall_json(result))
    else:
        print(render.scrubbed(result.text), end="")
    if not result.items:
        print(f"Nothing recalled: {result.reason}", file=sys.stderr)
    return Unreadable.code if result.failed else 0


def _why_arguments(parser: Parser) -> None:
    parser.add_argument("trace", nargs="?", default="", metavar="TRACE", help="the id of a recall (the last one)")


def _why(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        row = memory.why(options.trace)
        refs = [*(s["ref"] for s in row.get("scores", ())), *(g["ref"] for g in row.get("gate", ()))]
        said = {s.ref: s.text for s in memory.show(refs[:60], all_channels=True, most=200) if not s.problem}
    if options.json:
        print_json(row)
    else:
        print(render.scrubbed(render.why_text(row, said)), end="")
    return 0


def _context_arguments(parser: Parser) -> None:
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the prompt, if there is one yet; - reads stdin")
    where_arguments(parser)
    parser.add_argument("--mode", default="", metavar="MODE", help="observe, policy, auto or full (recall.mode)")
    parser.add_argument("--preset", default="main", metavar="P", help="main, session-start, subagent, isolated (main)")
    parser.add_argument("--recent", action="store_true", help="with what happened lately and what is still open")
    parser.add_argument("--budget", type=int, default=0, metavar="N", help="tokens of what is recalled at most")
    parser.add_argument("--error", action="append", default=[], metavar="TEXT", help="an error just met")
    parser.add_argument("--file", action="append", default=[], metavar="PATH", help="a file being worked on")
    parser.add_argument(
        "--session", default="", metavar="S", help="the running one: leave it out, and what it was given before"
    )
    parser.add_argument("--budget-report", action="store_true", help="per part: in, cut or out, tokens, and why")


def _context(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        text = given_text(options.text) if options.text else ""
        result = memory.context(
            text, options.channel, all_channels=options.all, mode=options.mode, preset=options.preset,
            budget=options.budget, recent=options.recent, errors=options.error, files=options.file,
            session=options.session,
        )  # fmt: skip
        say_notes(memory)
    if options.json:
        print_json(render.context_json(result))
    elif options.budget_report:
        print(render.scrubbed(render.budget_text(result)), end="")
    else:
        print(render.scrubbed(result.text), end="")
    for note in result.notes:
        print(f"pipimem: {note}", file=sys.stderr)
    return Unreadable.code if result.failed else 0


def _show_arguments(parser: Parser) -> None:
    parser.add_argument("refs", nargs="+", metavar="REF", help="m-…, path#heading, path:line or engine:session#message")
    parser.add_argument("--channel", metavar="ID", help="that channel and the shared layer only (else everything)")
    parser.add_argument("--around", type=int, default=0, metavar="N", help="lines before and after (0)")
    parser.add_argument("--max-chars", type=int, default=500, metavar="N", help="characters of each at most (500)")


def _show(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        shown = memory.show(
            options.refs, options.channel, all_channels=options.channel is None, around=options.around,
            most=options.max_chars,
        )  # fmt: skip
        say_notes(memory)
    if options.json:
        print_json({"shown": [render.shown_json(s) for s in shown]})
    else:
        print(render.scrubbed(render.shown_text([s for s in shown if not s.problem])), end="")
    for problem in (s.problem for s in shown if s.problem):
        print(f"pipimem: {problem}", file=sys.stderr)
    return NotFound.code if any(s.problem for s in shown) else 0


COMMANDS = {
    "recall": (_recall_arguments, _recall),
    "search": (_search_arguments, _search),
    "why": (_why_arguments, _why),
    "context": (_context_arguments, _context),
    "show": (_show_arguments, _show),
}
