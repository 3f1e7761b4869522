"""Commands for agent hosts: one hook, and putting hooks and servers where a host looks for them."""

from __future__ import annotations

import os
import sys

from pipimem.cli.common import dry_run_argument, opened, print_json
from pipimem.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem import installing
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser


def _hook_arguments(parser: Parser) -> None:
    parser.add_argument("event", nargs="+", metavar="EVENT", help="the host's event, such as UserPromptSubmit")
    parser.add_argument("--host", default="claude", metavar="HOST", help="claude or codex (claude)")
    parser.add_argument("--channel", metavar="ID", help="the channel (else by the project's folder)")


def _hook(options: Namespace) -> int:
    from pipimem import hooks

    return hooks.run(options)


def _install_arguments(parser: Parser) -> None:
    parser.add_argument("host", choices=("claude", "codex", "cursor", "openclaw"), metavar="HOST", help=HOSTS)
    parser.add_argument("--user", action="store_true", help="for all of your projects (else for the current folder)")
    parser.add_argument("--channel", default="", metavar="ID", help="the channel (else by the project's folder)")
    parser.add_argument(
        "--update",
        choices=("session", "turn"),
        default="",
        help="also learn: at compactions and the end of a session, or of each turn too",
    )
    parser.add_argument("--remove", action="store_true", help="take out what was put in")
    dry_run_argument(parser)


def _install(options: Namespace) -> int:
    from pipimem import installing, render
    from pipimem.files import Change

    wish = _wish(options)
    found = installing.changes(wish, os.environ, remove=options.remove)
    diffs = [Change(c.path.lstrip("/"), c.before, c.after).diff() for c in found]
    if not options.json:
        print(render.scrubbed("".join(diffs)), end="")
    if not options.dry_run:
        installing.write(found)
    after = installing.NEXT[options.host] if found and not options.remove and not options.dry_run else ""
    if options.json:
        rows = [{"path": c.path, "diff": diff} for c, diff in zip(found, diffs, strict=True)]
        print_json({"host": options.host, "changes": rows, "written": not options.dry_run, "next": after})
        return 0
    if not found:
        print("Nothing to do.")
    if after:
        print(after, file=sys.stderr)
    return 0


def _wish(options: Namespace) -> installing.Wish:
    """What to install; the workspace stands in the commands where a host would not find it by its folder."""
    from pipimem.hooks import channel_of
    from pipimem.installing import Wish

    here = os.getcwd()
    if options.remove:
        return Wish(options.host, here, options.user)
    with opened(options) as memory:
        root = os.path.realpath(memory.workspace.root)
        channel = memory.workspace.channel(options.channel).id if options.channel else ""
        if options.update and not channel and (options.user or channel_of(memory, here) is None):
            raise Usage(
                "Hooks that write need a channel, and no project is called like this folder.",
                "Give --channel, or name the project under [workspace.projects].",
            )
        above = os.path.isfile(os.path.join(root, "pipimem.toml")) and f"{os.path.realpath(here)}/".startswith(
            f"{root}/"
        )
    everywhere = options.user or options.host == "openclaw"
    named = "" if above and not everywhere and not options.workspace else root
    return Wish(options.host, here, options.user, options.update, named, channel)


HOSTS = "claude, codex, cursor or openclaw"
COMMANDS = {"hook": (_hook_arguments, _hook), "install": (_install_arguments, _install)}
