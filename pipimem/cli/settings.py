"""Commands about the workspace as a whole: its settings, its format, and all of it in one stream."""

from __future__ import annotations

import sys

from pipimem.cli.common import dry_run_argument, opened, print_json, report, say_notes
from pipimem.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.options import Options as Namespace
    from pipimem.options import Parser


def _config_arguments(parser: Parser) -> None:
    actions = "list|get NAME|set NAME VALUE…|unset NAME"
    parser.add_argument("words", nargs="*", metavar=actions, help="a list takes several values, a table KEY=VALUE")
    parser.add_argument("--own", action="store_true", help="set it in the user's own file, for every workspace")
    dry_run_argument(parser)


def _config(options: Namespace) -> int:
    from pipimem import render, settings
    from pipimem.workspace import find

    action, *words = options.words or ["list"]
    least, most = {"list": (0, 0), "get": (1, 1), "set": (2, 1000), "unset": (1, 1)}.get(action, (1, 0))
    if not least <= len(words) <= most:
        raise Usage("Say 'config list', 'get NAME', 'set NAME VALUE' or 'unset NAME'.", "See 'pipimem config --help'.")
    root = find(options.workspace)
    if action in ("list", "get"):
        found = settings.listed(root) if action == "list" else [settings.one(root, words[0])]
        if options.json:
            print_json({"settings": [render.setting_json(s) for s in found]})
        else:
            print(render.scrubbed(render.settings_text(found, alone=action == "get")), end="")
        return 0
    change = settings.change(root, words[0], words[1:] if action == "set" else None, own=options.own)
    if not options.dry_run and change.before != change.after:
        settings.write(change)
    if options.json:
        print_json({"path": change.path, "changed": change.before != change.after, "diff": change.diff()})
    else:
        print(render.scrubbed(change.diff() or "Nothing to change.\n"), end="")
    return 0


def _migrate(options: Namespace) -> int:
    with opened(options) as memory:
        applied = memory.migrate(dry_run=True)
        if applied.changes and not options.dry_run:
            if not options.json:
                from pipimem import render

                print("".join(render.scrubbed(change.diff()) for change in applied.changes), end="")
            applied = memory.migrate()
            return report(options, memory, applied.plan, applied.changes, applied)
        return report(options, memory, applied.plan, applied.changes, None)


def _export_arguments(parser: Parser) -> None:
    parser.add_argument("--format", choices=("md", "jsonl"), default="md", help="md (default) or jsonl")
    parser.add_argument("--channel", metavar="ID", help="that channel and the shared layer only")
    parser.add_argument("--layer", action="append", default=[], metavar="L", help="only this layer (repeatable)")
    parser.add_argument("--with-secrets", action="store_true", help="do not redact secrets")


def _export(options: Namespace) -> int:
    import json

    from pipimem import exporting

    layers: Sequence[str] = options.layer
    with opened(options) as memory:
        if options.format == "jsonl" or options.json:
            rows = memory.export(options.channel, layers, secrets=options.with_secrets)
            if options.json:
                print_json({"rows": list(rows)})
            else:
                for row in rows:
                    sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
        else:
            for part in exporting.markdown_of(memory, options.channel, layers, secrets=options.with_secrets):
                sys.stdout.write(part)
        say_notes(memory)
    return 0


COMMANDS = {
    "config": (_config_arguments, _config),
    "migrate": (dry_run_argument, _migrate),
    "export": (_export_arguments, _export),
}
