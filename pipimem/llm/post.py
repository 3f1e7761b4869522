"""One JSON request to a service and its answer, bounded in time and size while it arrives; failures by kind.

For embeddings and reranking, which are one POST each; chat goes through a library (`wire`). What a service says about
an error stays here: bodies may repeat what was sent, even a key.
"""

from __future__ import annotations

import functools
import json
import time
from typing import TYPE_CHECKING, Any

from pipimem.llm import Failed
from pipimem.llm.wire import SAID

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECT = 5.0
INSTALL = "Run: pip install 'pipimem[vectors]'"
KINDS = {
    401: "key", 402: "quota", 403: "key", 404: "unknown-model", 408: "timeout", 413: "too-long", 429: "rate-limited",
}  # fmt: skip


def post(name: str, url: str, key: str, body: Mapping[str, Any], *, seconds: float, limit: int) -> Any:
    """The JSON that `url` answers `body` with, within `seconds` and `limit` bytes; no redirect is followed.

    Raises `Failed` naming the model `name`; its `kind` tells what happened.
    """
    try:
        import httpx2
    except ImportError:
        raise Failed("library", f"The model '{name}' needs a library that is missing.", INSTALL) from None
    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
    end = time.monotonic() + seconds
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT))
    kind, detail, wait = "", "", None
    try:
        asked = _client().stream("POST", url, json=dict(body), headers=headers, timeout=timeout)
        with asked as response:
            if response.status_code != 200:
                other = {3: "no-completion", 4: "rejected"}.get(response.status_code // 100, "server")
                kind = KINDS.get(response.status_code, other)
                detail, wait = f"HTTP {response.status_code}", _seconds(response.headers.get("Retry-After", ""))
            elif response.headers.get("Content-Encoding", "identity") != "identity":
                kind = "too-big"  # packed, its size cannot be known
            else:
                return json.loads(_bounded(response, end, limit))
    except _TooBig:
        kind = "too-big"
    except (httpx2.TimeoutException, TimeoutError) as error:
        kind = "unreachable" if isinstance(error, httpx2.ConnectTimeout) else "timeout"
    except httpx2.ConnectError:
        kind = "unreachable"
    except (httpx2.TransportError, OSError):
        kind = "reset"
    except ValueError:
        kind, detail = "no-completion", "no JSON"
    raise failed(name, kind, detail, wait)


@functools.cache
def _client() -> Any:
    """The one client: making another costs 50 ms for certificates, and a kept connection saves a round trip."""
    import httpx2

    return httpx2.Client(follow_redirects=False)


def failed(name: str, kind: str, detail: str = "", wait: float | None = None) -> Failed:
    """A `Failed` in words; `detail` is ours, never a service's text."""
    said, hint = SAID[kind]
    if kind == "no-completion":
        said = "answered with something else than was asked for"
    return Failed(kind, f"The model '{name}' {said}{f' ({detail})' if detail else ''}.", hint, wait=wait)


class _TooBig(Exception):
    """More came than may be held."""


def _bounded(response: Any, end: float, limit: int) -> bytes:
    parts, size = [], 0
    for part in response.iter_raw():
        size += len(part)
        if size > limit:
            raise _TooBig
        if time.monotonic() > end:
            raise TimeoutError
        parts.append(part)
    return b"".join(parts)


def _seconds(text: str) -> float | None:
    try:
        return max(0.0, float(text))
    except ValueError:
        return None
