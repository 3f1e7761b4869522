"""The command that serves agents: mcp."""

from __future__ import annotations

import sys

from pipimem.errors import Refused, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser


def _mcp_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", metavar="ID", help="that channel and the shared layer (else the shared layer)")
    parser.add_argument("--write", action="store_true", help="with the tools that write, on trial or as proposals")
    parser.add_argument("--http", type=int, metavar="PORT", help="on 127.0.0.1 instead of standard input and output")
    parser.add_argument(
        "--chatgpt", action="store_true", help="search and fetch alone, as ChatGPT's connectors look for"
    )


def _mcp(options: Namespace) -> int:
    from pipimem.server.served import Served
    from pipimem.workspace import find

    if options.http is not None and not 0 <= options.http < 65_536:
        raise Usage(f"{options.http} is no port.", "Name one from 1 to 65535, or 0 for any that is free.")
    if options.http is None and sys.stdin is None:
        raise Usage("There is no standard input to serve.", "Start it from an agent, or with --http PORT.")
    served = Served(find(options.workspace), options.channel, write=options.write)
    try:
        if options.http is None:
            from pipimem.server import stdio

            stdio.serve(served, chatgpt=options.chatgpt)
        else:
            from pipimem.server import http

            http.serve(served, options.http, chatgpt=options.chatgpt)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio", "uvicorn"):
            raise
        raise Refused("The MCP server needs the extra 'mcp'.", "Install it: pip install 'pipimem[mcp]'") from None
    return 0


COMMANDS = {"mcp": (_mcp_arguments, _mcp)}
