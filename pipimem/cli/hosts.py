"""Commands for agent hosts: one hook, and putting hooks and servers where a host looks for them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser


def _hook_arguments(parser: Parser) -> None:
    parser.add_argument("event", nargs="+", metavar="EVENT", help="the host's event, such as UserPromptSubmit")
    parser.add_argument("--host", default="claude", metavar="HOST", help="claude or codex (claude)")
    parser.add_argument("--channel", metavar="ID", help="the channel (else by the project's folder)")


def _hook(options: Namespace) -> int:
    from pipimem import hooks

    return hooks.run(options)


COMMANDS = {"hook": (_hook_arguments, _hook)}
