"""Embeddings over the network: OpenAI and everything that speaks its `/v1/embeddings`, Gemini among them.

Vectors come as base64 where the server knows it, else as numbers. One call is one request; where waiting helps it is
made again (`retry`'s rules), and a batch that is refused is halved until the text at fault stands alone.
"""

from __future__ import annotations

import base64
import re
import time
from array import array
from typing import TYPE_CHECKING, Any

from pipimem.errors import Usage
from pipimem.llm import Failed, base_url, services
from pipimem.llm.embedding import Prefixed, traits
from pipimem.llm.post import failed, post
from pipimem.llm.retry import AGAIN, ATTEMPTS, FIRST_WAIT, LONGEST_WAIT, Clock
from pipimem.text import printable, scrub

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.llm import Settings
    from pipimem.llm.services import Service

SECONDS = 60.0
QUERY_SECONDS = 3.0
REFUSED = frozenset(("rejected", "too-long"))
NUMBERS = 8192
"""Numbers a vector has at most; what a reply may hold follows from it."""
LOCAL = re.compile(r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/]|$)")
_PLAIN: set[str] = set()
"""Base URLs whose server does not take `encoding_format`."""


def openai(model: str, settings: Settings) -> Remote:
    """`openai:MODEL`, or `openai:MODEL@DIMENSIONS`; key in OPENAI_API_KEY."""
    url = base_url("openai", settings, "OPENAI_BASE_URL", "https://api.openai.com/v1")
    return _remote("openai", model, url, ("OPENAI_API_KEY",), settings, 256)


def gemini(model: str, settings: Settings) -> Remote:
    """`gemini:MODEL` through Google's OpenAI-compatible address; key in GEMINI_API_KEY or GOOGLE_API_KEY."""
    default = "https://generativelanguage.googleapis.com/v1beta/openai"
    url = base_url("gemini-embeddings", settings, "GEMINI_EMBEDDINGS_URL", default)
    return _remote("gemini", model, url, ("GEMINI_API_KEY", "GOOGLE_API_KEY"), settings, 100)


def ollama(model: str, settings: Settings) -> Remote:
    """`ollama:MODEL` at OLLAMA_BASE_URL, by default this machine; a key only where the server wants one."""
    url = base_url("ollama", settings, "OLLAMA_BASE_URL", "http://127.0.0.1:11434/v1")
    return _remote("ollama", model, url, ("OLLAMA_API_KEY",), settings, 32, open=True)


def compatible(model: str, settings: Settings) -> Remote:
    """Any server that speaks OpenAI's protocol: `compatible:SERVER/MODEL` for a server of the user's own config, else
    `compatible:MODEL` at PIPIMEM_LLM_URL; keys as in `services.compatible`, optional.
    """
    rest, url, variable = services.server_of(model, settings)
    return _remote("compatible", rest, url, (variable,), settings, 32, open=True, shown=model)


def _remote(
    name: str, model: str, url: str, keys: tuple[str, ...], settings: Settings, batch: int, *, open: bool = False,
    shown: str = "",
) -> Remote:  # fmt: skip
    bare, at, dimensions = model.rpartition("@")
    if at and not dimensions.isdecimal():
        bare, at = model, ""
    if at and not 0 < int(dimensions) <= NUMBERS:
        raise Usage(f"'{printable(model)}' names {dimensions} dimensions.", f"1 to {NUMBERS}.")
    service = services.Service("openai", bare if at else model, url, keys, open=open)
    return Remote(f"{name}:{shown or model}", service, settings, int(dimensions) if at else 0, batch)


class Remote(Prefixed):
    """A model behind a network service."""

    def __init__(self, model_id: str, service: Service, settings: Settings, dimensions: int, batch: int) -> None:
        super().__init__(model_id, traits(service.model))
        self.service = service
        self.settings = settings
        self.dimensions = dimensions
        self.batch_size = batch
        self.remote = not LOCAL.match(service.url)
        self.clock = Clock()

    def embed_queries(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each query within 3 seconds, asked once; else `Failed`."""
        return self._once([self.traits.query + text for text in texts], QUERY_SECONDS) if texts else []

    def _vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Raises `Failed`. A text that the service refuses by itself has an empty vector."""
        try:
            return self._patiently(texts)
        except Failed as refused:
            if refused.kind not in REFUSED:
                raise
        self._patiently(["a"])  # what refuses this as well refuses everything
        return self._halved(texts)

    def _halved(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if len(texts) > 1:
            half = len(texts) // 2
            parts = [texts[:half], texts[half:]]
            return [vector for part in parts for vector in self._tried(part)]
        return [()]

    def _tried(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            return self._patiently(texts)
        except Failed as refused:
            if refused.kind not in REFUSED:
                raise
        return self._halved(texts)

    def _patiently(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        for attempt in range(ATTEMPTS):
            try:
                return self._once(texts, SECONDS)
            except Failed as failure:
                own = FIRST_WAIT * 2**attempt * (0.5 + self.clock.chance())
                wait = own if failure.wait is None else failure.wait + own / 5
                if failure.kind not in AGAIN or attempt + 1 == ATTEMPTS or wait > LONGEST_WAIT:
                    raise
                self.clock.wait(wait, lambda: False)
        raise AssertionError("unreachable: the last attempt returns or raises")  # pragma: no cover

    def _once(self, texts: Sequence[str], seconds: float) -> Sequence[Sequence[float]]:
        end = time.monotonic() + seconds
        key = self.service.key(self.settings, self.model_id)
        body: dict[str, Any] = {"model": self.service.model, "input": [scrub(text) for text in texts]}
        if self.dimensions:
            body["dimensions"] = self.dimensions
        limit = 64 * 1024 + len(texts) * NUMBERS * 24
        url = f"{self.service.url}/embeddings"
        if self.service.url not in _PLAIN:
            try:
                said = post(
                    self.model_id, url, key, {**body, "encoding_format": "base64"}, seconds=seconds, limit=limit
                )
                return self._read(said, len(texts))
            except Failed as refused:
                if refused.kind != "rejected":
                    raise
        said = post(self.model_id, url, key, body, seconds=max(0.1, end - time.monotonic()), limit=limit)
        _PLAIN.add(self.service.url)
        return self._read(said, len(texts))

    def _read(self, said: Any, count: int) -> Sequence[Sequence[float]]:
        """The vectors of a reply, in the order of the texts."""
        try:
            rows = sorted(said["data"], key=lambda row: row.get("index", 0))
            vectors = [_vector(row["embedding"]) for row in rows]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise failed(self.model_id, "no-completion") from None
        if len(vectors) != count or len({len(vector) for vector in vectors}) > 1 or not len(vectors[0]):
            raise failed(self.model_id, "no-completion", f"{len(vectors)} for {count} texts")
        self.dim = len(vectors[0])
        return vectors


def _vector(value: Any) -> Sequence[float]:
    if isinstance(value, str):
        found = array("f")
        found.frombytes(base64.b64decode(value, validate=True))
        return found
    return [float(number) for number in value]
