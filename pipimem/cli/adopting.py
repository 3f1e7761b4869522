"""The command with which the memory of another system is taken over."""

from __future__ import annotations

import sys

from pipimem.cli.common import dry_run_argument, opened, print_json, say_notes
from pipimem.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser


def _adopt_arguments(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="hermes, claude, openclaw, nanobot, minimem, basic-memory")
    parser.add_argument("path", metavar="PATH", help="its folder, or one file of it; nothing there is changed")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--channel", metavar="ID", help="the channel it goes to")
    place.add_argument("--target", choices=("memory",), default="", help="the shared MEMORY.md, USER.md and notes")
    dry_run_argument(parser)


def _adopt(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        found = memory.adopt(
            options.source, options.path, channel=options.channel, target=options.target, dry_run=options.dry_run
        )
        say_notes(memory)
    if options.json:
        print_json(render.adopted_json(found))
    else:
        print(render.scrubbed(render.adopted_text(found)), end="")
    if found.plan is not None:
        return 0
    print("pipimem: nothing new was found there.", file=sys.stderr)
    return 0 if found.left else NotFound.code


COMMANDS = {"adopt": (_adopt_arguments, _adopt)}
