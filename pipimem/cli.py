"""The command line: parse, one verb of `Memory`, render. Only the named command's parser is built.

stdout holds the result, stderr everything else; exit codes are those of `errors`.
"""

from __future__ import annotations

import gc
import os
import sys

from pipimem.errors import Error, ModelFailed, NotFound, Refused, Unreadable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Sequence
    from typing import Any

    from pipimem.index import Hit
    from pipimem.memory import Memory
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser
    from pipimem.skills import Skill
    from pipimem.update.plan import Applied, Plan
    from pipimem.workspace import Change

INTERRUPTED = 130
JOBS = ("all", "refresh", "extract", "condense", "fold")
REVIEW_ACTIONS = {"list": 0, "show": 1, "accept": 1, "reject": 1, "apply": 0}
SKILL_ACTIONS = ("list", "show", "add", "edit", "remove")
LAYERS = "identity standing memory user note skill session history archive".split()


class Command:
    """One command: what it does in a line, its arguments, and the function that gives the exit code."""

    __slots__ = ("arguments", "does", "run")

    def __init__(self, does: str, arguments: Callable[[Parser], None], run: Callable[[Namespace], int]) -> None:
        self.does = does
        self.arguments = arguments
        self.run = run


QUICK = ("recall", "search")
SPARE = 10
"""Hits asked for beyond those shown, for what may fall together."""


def run() -> None:
    """The console script. What only asked leaves at once: taking the interpreter down costs a tenth of a recall."""
    code = main()
    if not set(QUICK) & set(sys.argv[1:]) or os.environ.get("PIPIMEM_DEBUG"):
        sys.exit(code)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:  # as in `main`: the reader has gone
        code = 0
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Exit codes: 0 done, 1 nothing found, 2 usage, 3 could not look, 4 refused, 5 model."""
    arguments = [_argument(a) for a in (sys.argv[1:] if argv is None else argv)]
    if set(QUICK) & set(arguments):
        gc.disable()  # the process ends before there is garbage worth looking for
    _use_utf8()
    try:
        return _main(arguments)
    except Error as error:
        return _fail(error, as_json="--json" in arguments)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; nothing is left to tell it, and flushing at exit would only fail once more.
        _silence()
        return 0
    except OSError as error:
        return _fail(_refused(error), as_json="--json" in arguments)
    except Exception as error:  # noqa: BLE001 - a person gets a sentence; PIPIMEM_DEBUG=1 gives the traceback
        return _fail(_unexpected(error), as_json="--json" in arguments)


def _refused(error: OSError) -> Error:
    named = f"'{error.filename}': " if error.filename else ""
    words = (error.strerror or "an unknown error").lower()
    return Refused(f"{named}{words}.", "Check its permissions and the space on its disk.")


def _unexpected(error: Exception) -> Error:
    failed = Refused(f"pipimem failed: {type(error).__name__}: {error}.", "Set PIPIMEM_DEBUG=1 for the details.")
    failed.__cause__ = error
    return failed


def _use_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _fail(error: Error, *, as_json: bool) -> int:
    if os.environ.get("PIPIMEM_DEBUG"):
        import traceback

        traceback.print_exc()
    if as_json:
        _print_json({"error": error.message, "hint": error.hint, "code": error.code})
    print(f"pipimem: {error}", file=sys.stderr)
    return error.code


def _main(arguments: list[str]) -> int:
    before, name, after = _split(arguments)
    if "--version" in before:
        from pipimem import __version__

        print(f"pipimem {__version__}")
        return 0
    if name == "help" and after:
        name, after = after[0], ["--help"]
    if name == "help" or (not name and {"--help", "-h"} & set(before)):
        print(_overview(), end="")
        return 0
    if not name:
        raise Usage("No command was given.", "See 'pipimem --help'.")
    if name not in COMMANDS:
        from pipimem.text import nearest, printable

        near = nearest(name, COMMANDS)
        hint = f"Did you mean '{near[0]}'?" if near else "See 'pipimem --help'."
        raise Usage(f"There is no command '{printable(name)}'.", hint)
    return COMMANDS[name].run(_read(name, [*before, *after]))


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    """The options before the command, the command, and the rest."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in ("-w", "--workspace") else 1
    return arguments[:at], arguments[at] if at < len(arguments) else "", arguments[at + 1 :]


def _read(name: str, arguments: list[str]) -> Any:
    """The options of a command: read directly where they are plainly right, else by argparse."""
    from pipimem.options import Reader, Unclear

    try:
        reader = Reader()
        _declare(name, reader)
        return reader.read(arguments)
    except Unclear:
        parser = _parser(name)
    try:
        return parser.parse_intermixed_args(arguments)  # words may stand on both sides of an option
    except TypeError:  # a command with subcommands cannot be read so
        return parser.parse_args(arguments)


def _declare(name: str, parser: Any) -> None:
    if name in QUICK:
        parser.add_argument(
            "-w", "--workspace", action="append", default=[], metavar="DIR", help="the workspace, or several"
        )
        parser.add_argument("--global", action="store_true", help="the user's own workspace as well (workspace.own)")
    else:
        parser.add_argument("-w", "--workspace", metavar="DIR", help="the workspace (else found from here)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    COMMANDS[name].arguments(parser)


def _parser(name: str) -> ArgumentParser:
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> Any:
            raise Usage(f"'pipimem {name}': {message}.", f"See 'pipimem {name} --help'.")

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.HelpFormatter(prog, width=100)  # asking the terminal for its width costs an import

    parser = Parser(
        prog=f"pipimem {name}", description=COMMANDS[name].does, allow_abbrev=False, formatter_class=formatter
    )
    _declare(name, parser)
    return parser


def _overview() -> str:
    width = max(map(len, COMMANDS))
    rows = "".join(f"  {name:<{width}}  {command.does}\n" for name, command in COMMANDS.items())
    return f"usage: pipimem [-w DIR] COMMAND … [--json]\n\n{rows}\n'pipimem COMMAND --help' says more.\n"


def _print_json(value: object) -> None:
    import json

    # A lone surrogate (an odd byte of a file name) must not stop the answer: escapes are valid JSON.
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value)
    print(text)


def _open(options: Namespace, otherwise: str | None = None) -> Memory:
    from pipimem.memory import open as open_memory

    given = options.workspace
    return open_memory((given[0] if given else None) if isinstance(given, list) else given or otherwise)


def _others(options: Namespace, memory: Memory) -> list[Memory]:
    """The other workspaces a command names, opened: `-w` after the first, and with `--global` the user's own.

    One that is not there is noted, and stops nothing.
    """
    own = []
    if vars(options)["global"]:
        memory.workspace.trust()  # the user's own settings are not remembered beside the index
        own = [os.path.expanduser(memory.workspace.config["workspace.own"])]
    found = []
    for path in [*options.workspace[1:], *own]:
        if os.path.realpath(path) == os.path.realpath(memory.workspace.root):
            continue
        from pipimem.memory import open as open_memory

        try:
            found.append(open_memory(path))
        except Error as error:
            memory.notes.append(f"Not asked: {error}")
    return found


def _notes(memory: Memory) -> None:
    for note in memory.notes:
        print(f"pipimem: {note}", file=sys.stderr)
    memory.notes.clear()


def _text(words: Sequence[str] | str) -> str:
    """An argument's text; `-` alone is standard input, so that prompts need not travel in process arguments."""
    text = words if isinstance(words, str) else " ".join(words)
    return str(sys.stdin.buffer.read(), "utf-8", "replace") if text == "-" else text


def _argument(text: str) -> str:
    """An argument as UTF-8, whatever the locale says; other bytes stay escaped, as file names need them."""
    try:
        return text.encode(sys.getfilesystemencoding(), "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text


def _where(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--channel", metavar="ID", help="that channel and the shared layer only")
    group.add_argument("--all", action="store_true", help="the shared layer and every channel")


def _dry_run(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the diff and change nothing")


# search


def _search_arguments(parser: Parser) -> None:
    parser.add_argument("query", nargs="+", metavar="QUERY", help="words, “phrases” in quotes; - reads standard input")
    _where(parser)
    parser.add_argument("--target", default="", metavar="T", help="user, memory, project or failure")
    parser.add_argument("--project", default="", metavar="NAME", help="only the channels mapped to that project")
    parser.add_argument("--category", default="", metavar="C", help="failure, correction, insight, preference, …")
    parser.add_argument("--layer", action="append", default=[], choices=LAYERS, metavar="LAYER", help=", ".join(LAYERS))
    parser.add_argument("--kind", action="append", default=[], metavar="KIND", help="kind of entry, such as decision")
    parser.add_argument("--min-confidence", type=float, default=0.0, metavar="X", help="least confidence, 0 to 1")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="passages at most (10)")
    parser.add_argument("--explain", action="store_true", help="with the value of every signal")


def _search(options: Namespace) -> int:
    from pipimem import render

    query, most = _text(options.query), max(1, options.limit)
    with _open(options) as memory:
        others = _others(options, memory)
        hits = memory.search(
            query, options.channel, all_channels=options.channel is None, target=options.target,
            project=options.project, category=options.category, layers=options.layer, kinds=options.kind,
            min_confidence=options.min_confidence, limit=most if options.json else most + SPARE, also=others,
        )  # fmt: skip
        _close(others)
        groups = _grouped(hits)[:most]
        _notes(memory)
        if options.json:
            skipped = [{"path": path, "reason": reason} for path, reason in memory.skipped]
            rows = render.hits_json(hits, groups)
            _print_json({"query": query, "hits": rows, "stale": memory.stale, "skipped": skipped})
        else:
            colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
            print(render.hits_text(groups, explain=options.explain, colour=colour), end="")
        for path, reason in memory.skipped:
            print(f"pipimem: not searched: '{render.scrubbed(path)}': {reason}", file=sys.stderr)
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


def _close(memories: Sequence[Memory]) -> None:
    for memory in memories:
        memory.close()


# recall


def _recall_arguments(parser: Parser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="the prompt; - reads standard input")
    _where(parser)
    parser.add_argument("--budget", type=int, default=0, metavar="N", help="tokens at most, 100 to 1,500 (1,200)")
    parser.add_argument("--error", action="append", default=[], metavar="TEXT", help="an error just met")
    parser.add_argument("--file", action="append", default=[], metavar="PATH", help="a file being worked on")
    parser.add_argument("--session", default="", metavar="S", help="leave out what this session was given before")
    parser.add_argument("--always", action="store_true", help="look even where the router would not")


def _recall(options: Namespace) -> int:
    from pipimem import render
    from pipimem.recall import Recall

    try:
        with _open(options) as memory:
            result = memory.recall(
                _text(options.text), options.channel, all_channels=options.all, budget=options.budget,
                always=options.always, errors=options.error, files=options.file, session=options.session,
                also=(others := _others(options, memory)),
            )  # fmt: skip
            _close(others)
            _notes(memory)
    except (Unreadable, Refused) as error:
        result = Recall(str(error), {}, failed=True)
    if options.json:
        _print_json(render.recall_json(result))
    else:
        print(render.scrubbed(result.text), end="")
    if not result.items:
        print(f"Nothing recalled: {result.reason}", file=sys.stderr)
    return Unreadable.code if result.failed else 0


# why


def _why_arguments(parser: Parser) -> None:
    parser.add_argument("trace", nargs="?", default="", metavar="TRACE", help="the id of a recall (the last one)")


def _why(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        row = memory.why(options.trace)
        refs = [*(s["ref"] for s in row.get("scores", ())), *(g["ref"] for g in row.get("gate", ()))]
        said = {s.ref: s.text for s in memory.show(refs[:60], all_channels=True, most=200) if not s.problem}
    if options.json:
        _print_json(row)
    else:
        print(render.scrubbed(render.why_text(row, said)), end="")
    return 0


# context


def _context_arguments(parser: Parser) -> None:
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the prompt, if there is one yet; - reads stdin")
    _where(parser)
    parser.add_argument("--mode", default="", metavar="MODE", help="observe, policy, auto or full (recall.mode)")
    parser.add_argument("--preset", default="main", metavar="P", help="main, session-start, subagent, isolated (main)")
    parser.add_argument("--recent", action="store_true", help="with what happened lately and what is still open")
    parser.add_argument("--budget", type=int, default=0, metavar="N", help="tokens of what is recalled at most")
    parser.add_argument("--error", action="append", default=[], metavar="TEXT", help="an error just met")
    parser.add_argument("--file", action="append", default=[], metavar="PATH", help="a file being worked on")
    parser.add_argument("--budget-report", action="store_true", help="per part: in, cut or out, tokens, and why")


def _context(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        text = _text(options.text) if options.text else ""
        result = memory.context(
            text, options.channel, all_channels=options.all, mode=options.mode, preset=options.preset,
            budget=options.budget, recent=options.recent, errors=options.error, files=options.file,
        )  # fmt: skip
        _notes(memory)
    if options.json:
        _print_json(render.context_json(result))
    elif options.budget_report:
        print(render.scrubbed(render.budget_text(result)), end="")
    else:
        print(render.scrubbed(result.text), end="")
    for note in result.notes:
        print(f"pipimem: {note}", file=sys.stderr)
    return Unreadable.code if result.failed else 0


# show


def _show_arguments(parser: Parser) -> None:
    parser.add_argument("refs", nargs="+", metavar="REF", help="m-…, path#heading, path:line or engine:session#message")
    parser.add_argument("--channel", metavar="ID", help="that channel and the shared layer only (else everything)")
    parser.add_argument("--around", type=int, default=0, metavar="N", help="lines before and after (0)")
    parser.add_argument("--max-chars", type=int, default=500, metavar="N", help="characters of each at most (500)")


def _show(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        shown = memory.show(
            options.refs, options.channel, all_channels=options.channel is None, around=options.around,
            most=options.max_chars,
        )  # fmt: skip
        _notes(memory)
    if options.json:
        _print_json({"shown": [render.shown_json(s) for s in shown]})
    else:
        print(render.scrubbed(render.shown_text([s for s in shown if not s.problem])), end="")
    for problem in (s.problem for s in shown if s.problem):
        print(f"pipimem: {problem}", file=sys.stderr)
    return NotFound.code if any(s.problem for s in shown) else 0


# init, channel, index


def _init_arguments(parser: Parser) -> None:
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the folder (the current one)")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the templates (en)")
    parser.add_argument("--git", action="store_true", help="make it a git repository if it is none")


def _init(options: Namespace) -> int:
    from pipimem.memory import init

    folder = options.folder or options.workspace or "."
    created, kept = init(folder, language=options.lang, git=options.git)
    if options.json:
        _print_json({"created": created, "kept": kept})
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

    with _open(options) as memory:
        if options.action == "list":
            channels, root = memory.channels(), memory.workspace.root
            if options.json:
                rows = [{"id": c.id, "kind": c.kind, "path": os.path.join(root, c.path)} for c in channels]
                _print_json({"channels": rows})
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
            _print_json({"id": channel.id, "kind": channel.kind, "path": path, "created": created})
        else:
            print("".join([f"{path}\n", *(f"created {p}\n" for p in created)]), end="")
        _notes(memory)
    return 0


def _index_arguments(parser: Parser) -> None:
    parser.add_argument("--rebuild", action="store_true", help="start afresh; also after the workspace was emptied")


def _index(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        diff = memory.index(rebuild=options.rebuild)
        _notes(memory)
        answer = render.diff_json(diff, memory.tokenizer)
        answer["documents"] = memory.documents
    if options.json:
        _print_json(answer)
    else:
        print(
            f"{answer['documents']} documents, {diff.sections} sections, {diff.entries} entries: "
            f"{len(diff.added)} added, {len(diff.changed)} changed, {len(diff.removed)} removed, "
            f"in {diff.seconds:.2f} s"
        )
    for path, reason in diff.skipped:
        print(f"pipimem: skipped '{render.scrubbed(path)}': {reason}", file=sys.stderr)
    return 0


# add, forget, update


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to remember; - reads standard input")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--channel", metavar="ID", help="the channel it belongs to")
    place.add_argument("--target", choices=("user", "memory"), default="", help="USER.md or MEMORY.md, shared")
    parser.add_argument(
        "--kind", default="fact", metavar="KIND", help="fact, decision, preference, constraint, … (fact)"
    )
    parser.add_argument("--heading", default="", metavar="H", help="the section (else by kind)")


def _add(options: Namespace) -> int:
    with _open(options) as memory:
        applied = memory.add(
            _text(options.text),
            options.channel,
            target=options.target,
            kind=options.kind,
            heading=options.heading,
        )
        return _report(options, memory, applied.plan, applied.changes, applied)


def _supersede_arguments(parser: Parser) -> None:
    _entry_argument(parser)
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what it says from now on; - reads standard input")


def _entry_argument(parser: Parser) -> None:
    parser.add_argument("entry", metavar="ENTRY", help="the entry's id")


def _supersede(options: Namespace) -> int:
    with _open(options) as memory:
        applied = memory.supersede(options.entry, _text(options.text))
        return _report(options, memory, applied.plan, applied.changes, applied)


def _invalidate(options: Namespace) -> int:
    with _open(options) as memory:
        applied = memory.invalidate(options.entry)
        return _report(options, memory, applied.plan, applied.changes, applied)


def _promote(options: Namespace) -> int:
    with _open(options) as memory:
        applied = memory.promote(options.entry)
        return _report(options, memory, applied.plan, applied.changes, applied)


def _pin_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="TEXT|list|remove N", help="what holds always; - reads stdin")


def _pin(options: Namespace) -> int:
    words = options.words or ["list"]
    with _open(options) as memory:
        if words[0] == "remove" and len(words) == 2 and words[1].isdecimal():
            applied = memory.unpin(int(words[1]))
            return _report(options, memory, applied.plan, applied.changes, applied)
        if words != ["list"]:
            applied = memory.pin(_text(words))
            return _report(options, memory, applied.plan, applied.changes, applied)
        return _pinned(options, memory)


def _pinned(options: Namespace, memory: Memory) -> int:
    from pipimem import render

    standing = memory.pinned()
    if options.json:
        _print_json(render.standing_json(standing))
    else:
        print(render.scrubbed(render.standing_text(standing)), end="")
    if standing.note:
        print(f"pipimem: {standing.note}", file=sys.stderr)
    if standing.entries:
        return 0
    print("Nothing is pinned.", file=sys.stderr)
    return NotFound.code


def _note_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="+", metavar="add TEXT|show DATE|NAME", help="show today: this day's page")
    parser.add_argument("--channel", metavar="ID", help="the channel's notes (else the shared ones)")
    parser.add_argument("--topic", default="", metavar="NAME", help="add to a topic's page instead of the day's")


def _note(options: Namespace) -> int:
    action, *words = options.words
    if action not in ("add", "show") or not words or (action == "show" and len(words) > 1):
        raise Usage("Say 'note add TEXT' or 'note show DATE|NAME'.", "See 'pipimem note --help'.")
    with _open(options) as memory:
        if action == "show":
            path, text = memory.page(words[0], options.channel)
            _print_json({"path": path, "text": text}) if options.json else print(text, end="")
            return 0
        _, path, line = memory.note(_text(words), options.channel, topic=options.topic)
        _notes(memory)
    _print_json({"path": path, "line": line}) if options.json else print(f"{path}:{line}")
    return 0


def _skill_arguments(parser: Parser) -> None:
    actions = "list|show NAME|add NAME TEXT|edit NAME TEXT|remove NAME"
    parser.add_argument("words", nargs="*", metavar=actions, help="TEXT: the steps in Markdown; - reads stdin")
    parser.add_argument("--description", default="", metavar="D", help="what a new skill does, in a line")
    parser.add_argument("--when", default="", metavar="W", help="when a new skill is to be used, in a line")


def _skill(options: Namespace) -> int:
    action, *words = options.words or ["list"]
    name, text = (words[0] if words else ""), words[1:]
    if {"list": 0, "show": 1, "remove": 1}.get(action, 2) > len(words) or action not in SKILL_ACTIONS:
        raise Usage("Say 'skill list', 'show NAME', 'add NAME TEXT', 'edit NAME TEXT' or 'remove NAME'.", "")
    with _open(options) as memory:
        if action == "list":
            return _skills(options, memory.skills())
        if action == "show":
            return _skills(options, [memory.skill(name)], whole=True)
        if action == "add":
            applied = memory.add_skill(name, options.description, _text(text), options.when)
        elif action == "edit":
            applied = memory.edit_skill(name, _text(text))
        else:
            applied = memory.remove_skill(name)
        return _report(options, memory, applied.plan, applied.changes, applied)


def _skills(options: Namespace, found: Sequence[Skill], *, whole: bool = False) -> int:
    from pipimem import render

    if options.json:
        _print_json({"skills": [render.skill_json(s) for s in found]})
    else:
        print(render.scrubbed(render.skill_text(found[0]) if whole else render.skills_text(found)), end="")
    if found:
        return 0
    print("There are no skills.", file=sys.stderr)
    return NotFound.code


def _forget_arguments(parser: Parser) -> None:
    parser.add_argument("entry", nargs="?", metavar="ENTRY", help="the entry's id")
    parser.add_argument("--match", metavar="TEXT", help="the one entry that holds this text")
    parser.add_argument("--channel", metavar="ID", help="where --match looks")
    _dry_run(parser)


def _forget(options: Namespace) -> int:
    if bool(options.entry) == bool(options.match):
        raise Usage("Give either an entry or --match.", "See 'pipimem forget --help'.")
    with _open(options) as memory:
        ref = options.entry or _only(memory, options.match, options.channel)
        applied, still = memory.forget(ref, dry_run=options.dry_run)
        code = _report(options, memory, applied.plan, applied.changes, None if options.dry_run else applied)
        for place in still:
            print(f"pipimem: the same words still stand in {place}.", file=sys.stderr)
        if not options.dry_run and applied.commit:
            print(
                "pipimem: git still has the old text; see 'Forgetting' in docs/operations.md.",
                file=sys.stderr,
            )
    return code


def _only(memory: Memory, text: str, channel: str | None) -> str:
    hits = memory.matching(text, channel)
    if len(hits) == 1:
        return str(hits[0].ref)
    if not hits:
        raise NotFound(f"No entry holds '{text}'.", "Find it with 'pipimem search'.")
    listed = "; ".join(f"{h.ref} {h.path}:{h.line}" for h in hits[:10])
    raise Usage(f"{len(hits)} entries hold '{text}': {listed}.", "Give one of these ids.")


def _update_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", required=True, metavar="ID", help="the channel the conversation belongs to")
    parser.add_argument(
        "--transcript", metavar="FILE", help="a session of a known host, or JSON lines (else the recorded turns)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--offline", action="store_true", help="rules only, no model")
    which.add_argument("--model", metavar="NAME", help="ask this one, such as ollama:qwen3 (else update.models)")
    parser.add_argument("--session", default="", metavar="ID", help="which session, of a file that holds several")
    parser.add_argument("--job", choices=JOBS, default="all", help="all: extract and refresh")
    _dry_run(parser)


def _update(options: Namespace) -> int:
    from pipimem import render
    from pipimem.importers import BROKEN, load

    with _open(options) as memory:
        memory.workspace.channel(options.channel)
        window = None if options.transcript else memory.recorded(options.channel)
        transcript = load(options.transcript, options.session) if window is None else window.transcript
        unread = {reason: n for reason, n in transcript.skipped.items() if reason in BROKEN}
        if unread:
            listed = ", ".join(f"{n} {reason}" for reason, n in unread.items())
            print(f"pipimem: lines of the transcript that could not be read: {listed}.", file=sys.stderr)
        models = [] if options.offline else [options.model] if options.model else None
        jobs = ["extract", "refresh"] if options.job == "all" else [options.job]
        tidy = options.job in ("condense", "fold")
        if tidy:
            plan = memory.tidy(options.channel, options.job)
        else:
            plan = memory.propose(options.channel, transcript, jobs, models=models)
        if options.model and plan.origin == "offline" and plan.fell:
            why = plan.fell[-1].rstrip(".")
            raise ModelFailed(f"The model '{options.model}' gave no usable reply: {why}.", "Nothing was changed.")
        for line in plan.fell:
            print(f"pipimem: {render.scrubbed(line)}", file=sys.stderr)
        if options.dry_run:
            return _report(options, memory, plan, memory.preview(plan), None)
        applied = memory.apply(plan)
        if window is not None and options.job == "all":
            memory.learned(options.channel, window)
        return _report(options, memory, applied.plan, applied.changes, applied)


def _boundary_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", required=True, metavar="ID", help="the channel")
    parser.add_argument("--transcript", metavar="FILE", help="the conversation (else the recorded turns)")


def _compact(options: Namespace) -> int:
    return _boundary(options, "before_compact")


def _new_session(options: Namespace) -> int:
    return _boundary(options, "new_session")


def _boundary(options: Namespace, verb: str) -> int:
    from pipimem import render
    from pipimem.importers import load

    with _open(options) as memory:
        memory.workspace.channel(options.channel)
        transcript = load(options.transcript) if options.transcript else None
        steps, kept = getattr(memory, verb)(options.channel, transcript)
        _notes(memory)
    if options.json:
        _print_json({"steps": [render.step_json(s) for s in steps], "context": render.scrubbed(kept.text)})
    else:
        print(render.scrubbed(kept.text), end="")
    for step in steps:
        if not step.done or not options.json:
            print(f"pipimem: {render.step_text(step)}", file=sys.stderr)
    return 0


def _maintain_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", metavar="ID", help="only that channel (else each in turn)")


def _maintain(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        done = memory.maintain(options.channel)
        _notes(memory)
    if options.json:
        rows = [{"channel": channel, **render.step_json(s)} for channel, steps in done.items() for s in steps]
        _print_json({"steps": rows})
    else:
        for channel, steps in done.items():
            print(render.scrubbed("".join(f"{channel}  {render.step_text(s)}\n" for s in steps)), end="")
    return 0


def _turn_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", required=True, metavar="ID", help="the channel the turn belongs to")


def _turn(options: Namespace) -> int:
    import json

    rows: list[object] = []
    for line in sys.stdin.buffer.read().splitlines():
        try:
            rows += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError):
            rows.append(None)
    with _open(options) as memory:
        done = memory.turn(options.channel, rows)
    if options.json:
        _print_json({"recorded": done.recorded, "cursor": done.cursor, "skipped": dict(done.skipped)})
    else:
        print(f"{done.recorded} recorded, up to {done.cursor}")
    for reason, count in done.skipped.items():
        print(f"pipimem: left out: {count} ({reason})", file=sys.stderr)
    return 0 if done.recorded or not rows else Usage.code


def _report(options: Namespace, memory: Memory, plan: Plan, changes: Sequence[Change], applied: Applied | None) -> int:
    from pipimem import render

    _notes(memory)
    if options.json:
        _print_json(render.applied_json(plan, changes, applied))
    else:
        print(render.scrubbed(render.applied_text(plan, changes, applied)), end="")
    return 0


def _review_arguments(parser: Parser) -> None:
    actions = "list|show N|accept N|reject N|apply"
    parser.add_argument("what", nargs="*", metavar=actions, help="N: a number or an id; apply: what is ticked")


def _review(options: Namespace) -> int:
    from pipimem import render

    action, *names = options.what or ["list"]
    if REVIEW_ACTIONS.get(action) != len(names):
        raise Usage("Say 'review list', 'show N', 'accept N', 'reject N' or 'apply'.", "")
    with _open(options) as memory:
        if action == "apply":
            return _review_apply(options, memory)
        if action in ("accept", "reject"):
            applied = memory.accept(names[0]) if action == "accept" else memory.reject(names[0])
            return _report(options, memory, applied.plan, applied.changes, applied)
        found = memory.proposals() if action == "list" else [memory.proposal(names[0])]
    if options.json:
        _print_json({"proposals": [render.proposal_json(p) for p in found]})
    elif action == "show":
        print(render.scrubbed(render.proposal_text(found[0])), end="")
    else:
        print(render.scrubbed(render.proposals_text(found)), end="")
    if found:
        return 0
    print("Nothing waits for review.", file=sys.stderr)
    return NotFound.code


def _review_apply(options: Namespace, memory: Memory) -> int:
    from pipimem import render

    done = memory.answered()
    _notes(memory)
    if options.json:
        _print_json({"proposals": [render.answer_json(p, result) for p, result in done]})
    for proposal, result in done:
        if isinstance(result, Error):
            print(f"pipimem: {proposal.id}: {result}", file=sys.stderr)
        elif not options.json:
            print(render.scrubbed(f"{proposal.answer}ed  {proposal.id}  {proposal.text or proposal.old}"))
    if not done:
        print("Nothing is ticked.", file=sys.stderr)
    return Refused.code if any(isinstance(result, Error) for _, result in done) else 0 if done else NotFound.code


# log, diff, undo


def _log_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", metavar="ID", help="only what touched this channel")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="commits at most (20)")


def _log(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        commits = memory.log(options.channel, max(1, options.limit))
    if options.json:
        _print_json({"commits": [render.commit_json(c) for c in commits]})
    else:
        print(render.scrubbed(render.commits_text(commits)), end="")
    if commits:
        return 0
    print("No commits yet.", file=sys.stderr)
    return NotFound.code


def _history(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        steps = memory.history(options.entry)
    if options.json:
        _print_json({"commits": [{**render.commit_json(c), "text": render.scrubbed(text)} for c, text in steps]})
    else:
        print(render.scrubbed(render.steps_text(steps)), end="")
    if steps:
        return 0
    print("Git does not have this entry yet.", file=sys.stderr)
    return NotFound.code


def _blame(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        hit, commit, source = memory.blame(options.entry)
    if options.json:
        _print_json(render.blame_json(hit, commit, source))
    else:
        print(render.scrubbed(render.blame_text(hit, commit, source)), end="")
    return 0


def _name_argument(parser: Parser) -> None:
    parser.add_argument("name", metavar="RUN|COMMIT", help="a run (r-…) or a commit")


def _diff(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        text = render.scrubbed(memory.diff(options.name))
    if options.json:
        _print_json({"name": options.name, "diff": text})
    else:
        print(text, end="")
    return 0


def _undo_arguments(parser: Parser) -> None:
    _name_argument(parser)
    _dry_run(parser)


def _undo(options: Namespace) -> int:
    with _open(options) as memory:
        applied = memory.undo(options.name, dry_run=options.dry_run)
        return _report(options, memory, applied.plan, applied.changes, None if options.dry_run else applied)


# status, eval, demo


def _no_arguments(parser: Parser) -> None:
    """The command takes nothing of its own."""


def _status(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        state = memory.status()
        _notes(memory)
    if options.json:
        _print_json(state)
    else:
        print(render.scrubbed(render.status_text(state)), end="")
    return 0


def _doctor_arguments(parser: Parser) -> None:
    parser.add_argument("--fix", action="store_true", help="mend the index, what killed processes left, and commits")


def _doctor(options: Namespace) -> int:
    from pipimem import doctor, render

    with _open(options) as memory:
        probes = doctor.examine(memory, fix=options.fix)
        _notes(memory)
    if options.json:
        _print_json({"checks": [{"name": p.name, "ok": p.ok, "detail": render.scrubbed(p.detail)} for p in probes]})
    else:
        print(render.scrubbed(render.table([("ok" if p.ok else "!!", p.name, p.detail) for p in probes])), end="")
    return 0 if all(p.ok for p in probes) else NotFound.code


def _check_arguments(parser: Parser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only these documents; others are passed over")
    parser.add_argument("--strict", action="store_true", help="warnings fail the check as well")


def _check(options: Namespace) -> int:
    from pipimem import render

    with _open(options) as memory:
        found = memory.check(options.paths)
    if options.json:
        _print_json(render.findings_json(found))
    else:
        print(render.scrubbed(render.findings_text(found)), end="")
    return NotFound.code if any(options.strict or f.level == "error" for f in found) else 0


def _eval_arguments(parser: Parser) -> None:
    parser.add_argument(
        "queries", metavar="QUERIES.jsonl", help='lines {"id","query","relevant":[ref or path#heading]}'
    )
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="passages a query (10)")
    parser.add_argument("--min-recall", type=float, metavar="X", help="exit 1 when recall@5 is below")


def _eval(options: Namespace) -> int:
    from pipimem import evaluate, render

    queries = evaluate.load(options.queries)
    with _open(options, _beside(options.queries)) as memory:
        memory.ready()
        result = evaluate.evaluate(
            queries, lambda q, n: memory.search(q, all_channels=True, limit=n), options.limit, memory.recall
        )
        _notes(memory)
    if options.json:
        _print_json(result)
    else:
        print(render.evaluation_text(result), end="")
    reached = evaluate.reached(result)
    return NotFound.code if options.min_recall is not None and reached < options.min_recall else 0


def _beside(queries: str) -> str | None:
    """The workspace the queries stand in, where no other is named."""
    from pipimem.workspace import looks_like

    folder = os.path.dirname(os.path.abspath(queries))
    return folder if "PIPIMEM_WORKSPACE" not in os.environ and looks_like(folder) else None


def _watch_arguments(parser: Parser) -> None:
    parser.add_argument("--poll", action="store_true", help="look by the clock, as on a network folder")


def _watch(options: Namespace) -> int:
    from pipimem import watch

    with _open(options) as memory:
        root = memory.workspace.root
    watch.until_told(root, _print_event, poll=options.poll, wanted=_is_read)
    return 0


def _print_event(event: dict[str, Any]) -> None:
    import select

    if event["event"] == "stopped" and not _output_is(select.POLLOUT):
        _silence()  # a full pipe that nobody reads must not keep us from ending
    _print_json(event)
    if sys.stdout is not None:
        sys.stdout.flush()


def _is_read() -> bool:
    import select

    return not _output_is(select.POLLERR | select.POLLHUP)


def _output_is(state: int) -> bool:
    """Whether standard output is in one of these states of `select.poll`."""
    import select

    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout, state)
    return any(flags & state for _, flags in poll.poll(0))


def _silence() -> None:
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _demo_arguments(parser: Parser) -> None:
    parser.add_argument("--keep", metavar="DIR", help="keep the demo's workspace in this new folder")


def _demo(options: Namespace) -> int:
    from pipimem.demo import run

    return run(options.keep)


COMMANDS = {
    "recall": Command("the few passages that matter for a prompt, as a block", _recall_arguments, _recall),
    "search": Command("find passages, best first", _search_arguments, _search),
    "why": Command("the last recall explained", _why_arguments, _why),
    "context": Command("everything a session should be given", _context_arguments, _context),
    "show": Command("open references: entries, sections, lines", _show_arguments, _show),
    "demo": Command("the main job on a copy of the sample workspace", _demo_arguments, _demo),
    "init": Command("create or complete a workspace; changes no existing byte", _init_arguments, _init),
    "channel": Command("add, list and find channels", _channel_arguments, _channel),
    "index": Command("bring the index up to date", _index_arguments, _index),
    "add": Command("remember one thing", _add_arguments, _add),
    "supersede": Command("put another text in an entry's place", _supersede_arguments, _supersede),
    "invalidate": Command("mark an entry as no longer true", _entry_argument, _invalidate),
    "promote": Command("move an entry to the shared memory", _entry_argument, _promote),
    "note": Command("append to the page of today or of a topic; show one", _note_arguments, _note),
    "pin": Command("what holds always: STANDING.md", _pin_arguments, _pin),
    "skill": Command("procedures: list, show, add, edit, remove", _skill_arguments, _skill),
    "forget": Command("remove an entry and do not learn it again", _forget_arguments, _forget),
    "turn": Command("record one finished turn for the next update", _turn_arguments, _turn),
    "update": Command("turn a finished conversation into checked edits", _update_arguments, _update),
    "compact": Command("work memory up before a compaction; what must be kept", _boundary_arguments, _compact),
    "new-session": Command("work the old session up; what a new one is given", _boundary_arguments, _new_session),
    "maintain": Command("run the jobs that are due, and say why others are not", _maintain_arguments, _maintain),
    "review": Command("what waits for a person", _review_arguments, _review),
    "log": Command("the history of the files", _log_arguments, _log),
    "history": Command("the commits in which an entry came, changed or went", _entry_argument, _history),
    "blame": Command("which commit, run and message an entry is from", _entry_argument, _blame),
    "diff": Command("what a run or commit changed", _name_argument, _diff),
    "undo": Command("take back a run or commit", _undo_arguments, _undo),
    "status": Command("what is there, what is off, and why", _no_arguments, _status),
    "doctor": Command("try every leg for real; --fix mends what can be derived", _doctor_arguments, _doctor),
    "check": Command("what is wrong with the files, line by line; for CI and pre-commit", _check_arguments, _check),
    "watch": Command("keep the index fresh until stopped; events as JSON lines", _watch_arguments, _watch),
    "eval": Command("retrieval quality on judged queries", _eval_arguments, _eval),
}
