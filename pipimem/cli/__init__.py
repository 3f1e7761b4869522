"""The command line: parse, one verb of `Memory`, render. Only the named command's module and parser are loaded.

stdout holds the result, stderr everything else; exit codes are those of `errors`.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

from pipimem.cli.common import print_json, silence
from pipimem.errors import Error, Refused, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Sequence
    from typing import Any

    from pipimem.options import Options as Namespace
    from pipimem.options import Parser

INTERRUPTED = 130
QUICK = ("recall", "search")
LEAN = (*QUICK, "hook")


class Command:
    """One command: what it does in a line, and the module of this package that has its arguments and its function."""

    __slots__ = ("does", "module")

    def __init__(self, module: str, does: str) -> None:
        self.module = module
        self.does = does


def _parts(name: str) -> tuple[Callable[[Parser], None], Callable[[Namespace], int]]:
    """How a command declares its arguments, and the function that gives its exit code."""
    found: tuple[Callable[[Parser], None], Callable[[Namespace], int]]
    found = import_module(f"pipimem.cli.{COMMANDS[name].module}").COMMANDS[name]
    return found


def run() -> None:
    """The console script. What only asked leaves at once: taking the interpreter down costs a tenth of a recall."""
    code = main()
    if not set(LEAN) & set(sys.argv[1:]) or os.environ.get("PIPIMEM_DEBUG"):
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
    if set(LEAN) & set(arguments):
        gc.disable()  # the process ends before there is garbage worth looking for
    _use_utf8()
    code = _coded(arguments)
    return 0 if _split(arguments)[1] == "hook" else code  # a hook never stops its host


def _coded(arguments: list[str]) -> int:
    try:
        return _main(arguments)
    except Error as error:
        return _fail(error, as_json="--json" in arguments)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; nothing is left to tell it, and flushing at exit would only fail once more.
        silence()
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
        print_json({"error": error.message, "hint": error.hint, "code": error.code})
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
    return _parts(name)[1](_read(name, [*before, *after]))


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
    _parts(name)[0](parser)


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


def _argument(text: str) -> str:
    """An argument as UTF-8, whatever the locale says; other bytes stay escaped, as file names need them."""
    try:
        return text.encode(sys.getfilesystemencoding(), "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text


COMMANDS = {
    "recall": Command("asking", "the few passages that matter for a prompt, as a block"),
    "search": Command("asking", "find passages, best first"),
    "why": Command("asking", "the last recall explained"),
    "context": Command("asking", "everything a session should be given"),
    "show": Command("asking", "open references: entries, sections, lines"),
    "demo": Command("keeping", "the main job on a copy of the sample workspace"),
    "init": Command("keeping", "create or complete a workspace; changes no existing byte"),
    "channel": Command("keeping", "add, list and find channels"),
    "index": Command("keeping", "bring the index up to date"),
    "add": Command("writing", "remember one thing"),
    "supersede": Command("writing", "put another text in an entry's place"),
    "invalidate": Command("writing", "mark an entry as no longer true"),
    "promote": Command("writing", "move an entry to the shared memory"),
    "note": Command("writing", "append to the page of today or of a topic; show one"),
    "pin": Command("writing", "what holds always: STANDING.md"),
    "skill": Command("writing", "procedures: list, show, add, edit, remove"),
    "forget": Command("writing", "remove an entry and do not learn it again"),
    "adopt": Command("adopting", "take over the memory of another system; nothing there is changed"),
    "import": Command("sessions", "take in a host's conversations, by pointer"),
    "sessions": Command("sessions", "past conversations: list, search, timeline"),
    "turn": Command("updating", "record one finished turn for the next update"),
    "update": Command("updating", "turn a finished conversation into checked edits"),
    "compact": Command("updating", "work memory up before a compaction; what must be kept"),
    "new-session": Command("updating", "work the old session up; what a new one is given"),
    "maintain": Command("updating", "run the jobs that are due, and say why others are not"),
    "review": Command("reviewing", "what waits for a person"),
    "resolve": Command("reviewing", "settle a contradiction: which entry holds; without one, the open ones"),
    "log": Command("reviewing", "the history of the files"),
    "history": Command("reviewing", "the commits in which an entry came, changed or went"),
    "blame": Command("reviewing", "which commit, run and message an entry is from"),
    "diff": Command("reviewing", "what a run or commit changed"),
    "undo": Command("reviewing", "take back a run or commit"),
    "graph": Command("graph", "what is linked to what: neighbors, path, status, export"),
    "hook": Command("hosts", "answer one event of an agent host: JSON in, JSON out"),
    "install": Command("hosts", "put hooks and the MCP server where a host looks for them; --remove"),
    "status": Command("keeping", "what is there, what is off, and why"),
    "doctor": Command("keeping", "try every leg for real; --fix mends what can be derived"),
    "check": Command("keeping", "what is wrong with the files, line by line; for CI and pre-commit"),
    "config": Command("settings", "settings: list, get, set, unset; comments in the file stay"),
    "export": Command("settings", "everything in one stream, as Markdown or JSON lines"),
    "migrate": Command("settings", "bring files to the current format; the diff first"),
    "watch": Command("updating", "keep the index fresh until stopped; events as JSON lines"),
    "mcp": Command("serving", "serve agents over the Model Context Protocol"),
    "eval": Command("keeping", "retrieval quality on judged queries"),
}
