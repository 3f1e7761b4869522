"""Commands that keep a workspace: create, index, look after, measure, show."""

from __future__ import annotations

import os
import sys

from pipimem.cli.common import kept_up, opened, print_json, say_notes
from pipimem.errors import Error, NotFound, Usage
from pipimem.text import plural, printable, scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.meaning import Embedded
    from pipimem.memory import Memory
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser


def _init_arguments(parser: Parser) -> None:
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the folder (the current one)")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the templates (en)")
    parser.add_argument("--git", action="store_true", help="make it a git repository if it is none")


def _init(options: Namespace) -> int:
    from pipimem.memory import init

    folder = options.folder or options.workspace or "."
    created, kept = init(folder, language=options.lang, git=options.git)
    if options.json:
        print_json({"created": created, "kept": kept})
    else:
        print("".join([*(f"created {n}\n" for n in created), *(f"kept    {n}\n" for n in kept)]), end="")
    return 0


def _channel_arguments(parser: Parser) -> None:
    from argparse import SUPPRESS

    actions = parser.add_subparsers(dest="action", required=True, metavar="add|list|path")
    adding = actions.add_parser("add", help="create a channel or what is missing of it")
    adding.add_argument("id", metavar="ID", help="the id the chat system uses")
    adding.add_argument("--kind", choices=("direct", "group", "project"), default="", help="else from the id")
    adding.add_argument("--minimal", action="store_true", help="only SESSION, MEMORY and HISTORY")
    actions.add_parser("list", help="every channel")
    actions.add_parser("path", help="the folder of a channel").add_argument("id", metavar="ID", help="the id")
    for action in actions.choices.values():
        action.add_argument("-w", "--workspace", metavar="DIR", default=SUPPRESS, help="the workspace")
        action.add_argument("--json", action="store_true", default=SUPPRESS, help="one JSON document")


def _channel(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        if options.action == "list":
            channels, root = memory.channels(), memory.workspace.root
            if options.json:
                rows = [{"id": c.id, "kind": c.kind, "path": os.path.join(root, c.path)} for c in channels]
                print_json({"channels": rows})
            else:
                print(render.scrubbed(render.table([(c.id, c.kind, c.path) for c in channels])), end="")
            return 0
        created: list[str] = []
        if options.action == "add":
            channel, created = memory.add_channel(options.id, kind=options.kind, minimal=options.minimal)
        else:
            channel = memory.workspace.channel(options.id)
        path = os.path.join(memory.workspace.root, channel.path)
        if options.json:
            print_json({"id": channel.id, "kind": channel.kind, "path": path, "created": created})
        else:
            print("".join([f"{path}\n", *(f"created {p}\n" for p in created)]), end="")
        say_notes(memory)
    return 0


def _index_arguments(parser: Parser) -> None:
    parser.add_argument("--rebuild", action="store_true", help="start afresh; also after the workspace was emptied")
    parser.add_argument("--vectors", action="store_true", help="embed whatever has no vector yet, however much it is")
    parser.add_argument("--dry-run", action="store_true", help="with --vectors: count texts and tokens, send nothing")


def _index(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        if options.dry_run and not options.vectors:
            raise Usage("'--dry-run' counts what '--vectors' would send.", "Give both.")
        diff = memory.index(rebuild=options.rebuild)
        say_notes(memory)
        answer = render.diff_json(diff, memory.tokenizer)
        answer["documents"] = memory.documents
        embedded = _embedded(memory, options)
        if embedded is not None:
            answer["vectors"] = render.embedded_json(embedded)
    if options.json:
        print_json(answer)
    else:
        print(
            f"{answer['documents']} documents, {diff.sections} sections, {diff.entries} entries: "
            f"{len(diff.added)} added, {len(diff.changed)} changed, {len(diff.removed)} removed, "
            f"in {diff.seconds:.2f} s"
        )
        if embedded is not None:
            print(render.scrubbed(render.embedded_text(embedded, dry_run=options.dry_run)), end="")
    for path, reason in diff.skipped:
        print(f"pipimem: skipped '{render.scrubbed(path)}': {reason}", file=sys.stderr)
    return 0


def _embedded(memory: Memory, options: Namespace) -> Embedded | None:
    """Brings vectors up to date: whatever is asked for outright, else a day's edits of a workspace that has them."""
    if options.vectors:
        return memory.embed(
            dry_run=options.dry_run, before=_before, said=_progress if sys.stderr.isatty() else lambda done, whole: None
        )
    return kept_up(memory, slices=False)  # where it fails, words are indexed; that is what was asked for


def _before(due: Embedded) -> None:
    """What leaves this machine is said before it does."""
    if due.remote and due.waiting:
        what = f"{plural(due.waiting, 'text')}, about {due.tokens} tokens"
        print(f"pipimem: sending {what}, to {printable(due.model)}", file=sys.stderr)


def _progress(done: int, whole: int) -> None:
    print(f"\r{done} of {whole} texts", end="" if done < whole else "\n", file=sys.stderr)


def _no_arguments(parser: Parser) -> None:
    """The command takes nothing of its own."""


def _status(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        state = memory.status()
        say_notes(memory)
    if options.json:
        print_json(state)
    else:
        print(render.scrubbed(render.status_text(state)), end="")
    return 0


def _doctor_arguments(parser: Parser) -> None:
    parser.add_argument("--fix", action="store_true", help="mend the index, what killed processes left, and commits")


def _doctor(options: Namespace) -> int:
    from pipimem import doctor, render

    with opened(options) as memory:
        probes = doctor.examine(memory, fix=options.fix)
        say_notes(memory)
    if options.json:
        print_json({"checks": [{"name": p.name, "ok": p.ok, "detail": scrub(p.detail)} for p in probes]})
    else:
        print(render.scrubbed(render.table([("ok" if p.ok else "!!", p.name, p.detail) for p in probes])), end="")
    return 0 if all(p.ok for p in probes) else NotFound.code


def _check_arguments(parser: Parser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only these documents; others are passed over")
    parser.add_argument("--strict", action="store_true", help="warnings fail the check as well")


def _check(options: Namespace) -> int:
    from dataclasses import replace

    from pipimem import render

    found = []
    for root, paths in _by_workspace(options).items():
        with opened(options, root or None) as memory:
            below = os.path.relpath(root) + "/" if root else ""
            below = "" if below.startswith(("./", "../")) else below
            found += [replace(f, path=below + f.path) for f in memory.check(paths)]
            say_notes(memory)
    if options.json:
        print_json(render.findings_json(found))
    else:
        print(render.scrubbed(render.findings_text(found)), end="")
    return NotFound.code if any(options.strict or f.level == "error" for f in found) else 0


def _by_workspace(options: Namespace) -> dict[str, list[str]]:
    """The files to check by the workspace they lie in, as a commit may name them all; "" is the one found from here.

    What lies in none is passed over, and said.
    """
    from pipimem.workspace import above, find

    if options.workspace or "PIPIMEM_WORKSPACE" in os.environ or not options.paths:
        return {"": options.paths}
    found: dict[str, list[str]] = {}
    for path in options.paths:
        found.setdefault(above(os.path.realpath(os.path.dirname(path))), []).append(path)
    try:
        find()
    except Error as error:
        over = found.pop("", [])
        if missing := next((p for p in over if not os.path.isfile(p)), ""):
            raise Usage(f"There is no file '{printable(missing)}'.", str(error)) from None
        if over:
            print(f"pipimem: Passed over: {plural(len(over), 'file')} in no workspace.", file=sys.stderr)
    return found


def _eval_arguments(parser: Parser) -> None:
    parser.add_argument(
        "queries", metavar="QUERIES.jsonl", help='lines {"id","query","relevant":[ref or path#heading]}'
    )
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="passages a query (10)")
    parser.add_argument("--min-recall", type=float, metavar="X", help="exit 1 when recall@5 is below")


def _eval(options: Namespace) -> int:
    from pipimem import evaluate, render

    queries = evaluate.load(options.queries)
    with opened(options, _beside(options.queries)) as memory:
        memory.ready()
        result = evaluate.evaluate(
            queries, lambda q, n: memory.search(q, all_channels=True, limit=n), options.limit, memory.recall
        )
        say_notes(memory)
    if options.json:
        print_json(result)
    else:
        print(render.evaluation_text(result), end="")
    reached = evaluate.reached(result)
    return NotFound.code if options.min_recall is not None and reached < options.min_recall else 0


def _beside(queries: str) -> str | None:
    """The workspace the queries stand in, where no other is named."""
    from pipimem.workspace import looks_like

    folder = os.path.dirname(os.path.abspath(queries))
    return folder if "PIPIMEM_WORKSPACE" not in os.environ and looks_like(folder) else None


def _demo_arguments(parser: Parser) -> None:
    parser.add_argument("--keep", metavar="DIR", help="keep the demo's workspace in this new folder")


def _demo(options: Namespace) -> int:
    from pipimem.demo import run

    return run(options.keep)


COMMANDS = {
    "demo": (_demo_arguments, _demo),
    "init": (_init_arguments, _init),
    "channel": (_channel_arguments, _channel),
    "index": (_index_arguments, _index),
    "status": (_no_arguments, _status),
    "doctor": (_doctor_arguments, _doctor),
    "check": (_check_arguments, _check),
    "eval": (_eval_arguments, _eval),
}
