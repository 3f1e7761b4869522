"""The server on a pipe: what was asked before the client closed it is answered, then the process ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from pipimem.server.protocol import build
from pipimem.server.served import Served, leave

GRACE = 30.0
"""Seconds a call may still take once standard input is closed: the first one may have to make the index."""

Item = SessionMessage | Exception


def serve(served: Served, *, chatgpt: bool = False) -> None:
    """Serves standard input and output until the input is closed or nobody reads the output, and ends the process.

    A call that is only reading then ends with it; a write under way is finished.
    """
    server = build(served, chatgpt=chatgpt)
    with suppress(KeyboardInterrupt):
        anyio.run(_serve, server, served)
    leave(served)


async def _serve(server: Server[Any], served: Served) -> None:
    async with stdio_server() as (read, write):
        try:
            async with _Waiting().relayed(read, write) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        except BaseException:  # nobody reads any more; the thread that waits for input would keep us here
            leave(served)
            raise


class _Waiting:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._none = anyio.Event()

    @asynccontextmanager
    async def relayed(self, read: Any, write: Any) -> AsyncIterator[tuple[Any, Any]]:
        """The two streams, the first of which ends only when what came in was answered, or `GRACE` is over."""
        incoming, read_by_server = anyio.create_memory_object_stream[Item](0)
        written_by_server, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

        async def bring() -> None:
            async with read, incoming:
                async for item in read:
                    self._asked(item)
                    await incoming.send(item)
                with anyio.move_on_after(GRACE):
                    await self._all_answered()

        async def take() -> None:
            async with write, outgoing:
                async for message in outgoing:
                    await write.send(message)
                    self._answered(message)

        async with anyio.create_task_group() as group:
            group.start_soon(bring)
            group.start_soon(take)
            yield read_by_server, written_by_server
            await written_by_server.aclose()

    def _asked(self, item: Item) -> None:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            identity = (message.params or {}).get("requestId")
            if type(identity) in (str, int):  # params are as they came: any JSON
                self._done(identity)

    def _answered(self, item: SessionMessage) -> None:
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._done(item.message.id)

    def _done(self, identity: Any) -> None:
        self._ids.discard(identity)
        if not self._ids:
            self._none.set()
            self._none = anyio.Event()

    async def _all_answered(self) -> None:
        while self._ids:
            await self._none.wait()
