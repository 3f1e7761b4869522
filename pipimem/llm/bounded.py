"""The HTTP client under `wire`: what a server may send is bounded while it arrives, before anything holds it whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
from pydantic_ai.models import create_async_httpx2_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONNECT = 5.0
"""Seconds for a connection to open; the libraries' own figure."""


class TooBig(Exception):
    """The server sent more than the limit, or packed so that its size cannot be known."""


class _Counted(httpx2.AsyncByteStream):
    """A response's bytes, of which at most `limit` pass."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self.inner = inner
        self.left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self.inner:
            self.left -= len(piece)
            if self.left < 0:
                raise TooBig
            yield piece

    async def aclose(self) -> None:
        """Closes the connection's stream."""
        await self.inner.aclose()


def client(seconds: float, limit: int, *, ours: bool) -> httpx2.AsyncClient:
    """A client that gives up a phase after `seconds` and a body after `limit` bytes, and follows no redirect.

    Bodies come unpacked, so that the limit counts what will be held. Unless `ours`, the headers that name an OpenAI
    account in the environment are left out.
    """

    async def before(request: httpx2.Request) -> None:
        request.headers["Accept-Encoding"] = "identity"
        if not ours:
            for header in ("OpenAI-Organization", "OpenAI-Project"):
                request.headers.pop(header, None)

    async def after(response: httpx2.Response) -> None:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise TooBig
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Counted(response.stream, limit)

    made = create_async_httpx2_client(timeout=httpx2.Timeout(seconds, connect=min(seconds, CONNECT)))
    made.event_hooks["request"].append(before)
    made.event_hooks["response"].append(after)
    return made
