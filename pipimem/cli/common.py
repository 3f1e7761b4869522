"""What the commands share: opening a workspace, reading text, printing results and notes."""

from __future__ import annotations

import os
import sys

from pipimem.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.meaning import Embedded
    from pipimem.memory import Memory
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser
    from pipimem.update.plan import Applied, Plan
    from pipimem.workspace import Change


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json_text(value))


def json_text(value: object) -> str:
    """A value as one JSON document that can always be printed."""
    import json

    # A lone surrogate (an odd byte of a file name) must not stop the answer: escapes are valid JSON.
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value)
    return text


def opened(options: Namespace, otherwise: str | None = None) -> Memory:
    """The workspace a command is for: the first `-w`, else as it is found from here."""
    from pipimem.memory import open as open_memory

    given = options.workspace
    return open_memory((given[0] if given else None) if isinstance(given, list) else given or otherwise)


def kept_up(memory: Memory, *, slices: bool) -> Embedded | None:
    """Embeds what is due by the way (`Meaning.keep_up`); a model that fails is named and stops nothing."""
    if memory.meaning is None or not memory.meaning.wanted:
        return None
    try:
        return memory.meaning.keep_up(slices=slices)
    except Error as error:
        print(f"pipimem: no vectors: {error}", file=sys.stderr)
        return None


def other_workspaces(options: Namespace, memory: Memory) -> list[Memory]:
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


def say_notes(memory: Memory) -> None:
    """What a person should hear about besides the answer, on standard error."""
    for note in memory.notes:
        print(f"pipimem: {note}", file=sys.stderr)
    memory.notes.clear()


def given_text(words: Sequence[str] | str) -> str:
    """An argument's text; `-` alone is standard input, so that prompts need not travel in process arguments."""
    text = words if isinstance(words, str) else " ".join(words)
    return str(sys.stdin.buffer.read(), "utf-8", "replace") if text == "-" else text


def where_arguments(parser: Parser) -> None:
    """`--channel` and `--all`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--channel", metavar="ID", help="that channel and the shared layer only")
    group.add_argument("--all", action="store_true", help="the shared layer and every channel")


def dry_run_argument(parser: Parser) -> None:
    """`--dry-run`."""
    parser.add_argument("--dry-run", action="store_true", help="show the diff and change nothing")


def report(options: Namespace, memory: Memory, plan: Plan, changes: Sequence[Change], applied: Applied | None) -> int:
    """Prints what a plan did, or with no `applied` would do; the exit code."""
    from pipimem import render

    say_notes(memory)
    if options.json:
        print_json(render.applied_json(plan, changes, applied))
    else:
        print(render.scrubbed(render.applied_text(plan, changes, applied)), end="")
    return 0


def entry_argument(parser: Parser) -> None:
    """The entry a command is about."""
    parser.add_argument("entry", metavar="ENTRY", help="the entry's id")


def close_all(memories: Sequence[Memory]) -> None:
    """Lets go of other workspaces."""
    for memory in memories:
        memory.close()


def silence() -> None:
    """Sends standard output nowhere."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
