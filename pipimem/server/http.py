"""The server on loopback HTTP: one address, the names a local client may call it by, and a token."""

from __future__ import annotations

import hmac
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from pipimem.errors import Refused
from pipimem.server.protocol import build
from pipimem.server.served import Served, leave

HOST, PATH, TOKEN = "127.0.0.1", "/mcp", "PIPIMEM_MCP_TOKEN"
LEAST_TOKEN = 16

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def serve(served: Served, port: int, *, chatgpt: bool = False) -> None:
    """Serves `http://127.0.0.1:PORT/mcp` until it is interrupted; port 0 takes a free one.

    A request needs `Authorization: Bearer TOKEN`, a Host of this machine, and no Origin of another. The token is the
    environment's `PIPIMEM_MCP_TOKEN`, else a new one, which stands on standard error with the address. Raises
    `Refused` for a port that is taken.
    """
    token = os.environ.get(TOKEN, "")
    if token and len(token) < LEAST_TOKEN:
        raise Refused(f"The token in '{TOKEN}' has fewer than {LEAST_TOKEN} characters.", "Give a longer one.")
    made = "" if token else secrets.token_urlsafe(32)
    config = uvicorn.Config(_nothing, host=HOST, port=port, log_level="critical", access_log=False, lifespan="on")
    try:
        socket = config.bind_socket()
    except SystemExit:
        raise Refused(f"Port {port} of {HOST} cannot be taken.", "Choose another, or 0 for any free one.") from None
    socket.listen()  # who reads the address may call it at once
    bound = int(socket.getsockname()[1])
    config.app = application(served, token or made, bound, chatgpt=chatgpt)
    print(f"pipimem: serving http://{HOST}:{bound}{PATH}", file=sys.stderr)
    print(f"pipimem: the token is {made}" if made else f"pipimem: the token is that of {TOKEN}", file=sys.stderr)
    sys.stderr.flush()
    # uvicorn lets requests end, then raises the signal that stopped it once more, for whoever was there before it.
    signal.signal(signal.SIGTERM, lambda number, frame: leave(served))
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[socket])
    leave(served)


def application(served: Served, token: str, port: int, *, chatgpt: bool = False) -> App:
    """The server as an ASGI application for that port, behind its token."""
    names = [f"{name}:{port}" for name in (HOST, "localhost")]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    inner = build(served, chatgpt=chatgpt).streamable_http_app(
        streamable_http_path=PATH, transport_security=security, host=HOST
    )
    return _guarded(inner, token)


def _guarded(inner: App, token: str) -> App:
    wanted = f"Bearer {token}".encode()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = next((v for k, v in scope["headers"] if k == b"authorization"), b"")
            if not hmac.compare_digest(given, wanted):
                await _unauthorized(send)
                return
        await inner(scope, receive, send)

    return app


async def _unauthorized(send: Send) -> None:
    headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"A token is needed: Authorization: Bearer TOKEN\n"})


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands in until the port, which the application must know, is bound."""
