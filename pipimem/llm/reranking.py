"""Models that read a query and a passage together and say how well one answers the other (cross-encoders).

As in `embedding`: a name finds its provider, nothing is loaded before it is asked. Which languages a model reads
decides whether it is asked at all: an English one puts Chinese in a worse order than it found it.
"""

from __future__ import annotations

import importlib
import re
import threading
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

from pipimem.llm import Failed, Settings, services
from pipimem.llm.embed_local import LOCAL, called, named, opened
from pipimem.llm.embed_wire import LOCAL as HERE
from pipimem.llm.embedding import found
from pipimem.llm.post import failed, post
from pipimem.text import scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipimem.llm.services import Service

GROUP = "pipimem.rerankers"
OWN = {
    "fastembed": "pipimem.llm.reranking:fastembed",
    "compatible": "pipimem.llm.reranking:compatible",
    "python": "pipimem.llm.reranking:python",
}
LANGUAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"reranker-v2-m3|multilingual|qwen3-reranker|gte-.*multi|mmarco", ()),
    (r"bge-reranker-(base|large)", ("en", "zh")),
    (r"ms-marco|jina-reranker-v1|mxbai-rerank-(xsmall|base|large)-v1|\ben\b", ("en",)),
)
"""By the models' own cards, () for any; the first pattern found in the name counts. Of an unknown one English is
believed, and nothing else."""
SECONDS = 3.0
LIMIT = 256 * 1024


class Reranker(Protocol):
    """One model that puts passages in order."""

    model_id: str
    languages: tuple[str, ...]
    """The languages it reads; none means any."""
    remote: bool
    """Whether texts leave this machine."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, more is better, in order; else `Failed`."""


def reranker(name: str, settings: Settings | None = None) -> Reranker:
    """The provider for a model such as `fastembed:Xenova/ms-marco-MiniLM-L-6-v2`; nothing is loaded or asked yet.

    Other packages add providers with the entry point group `pipimem.rerankers`. Raises `Usage` for a name that is none.
    """
    made: Reranker = found(name, OWN, GROUP)(name.partition(":")[2].strip(), settings or Settings())
    return made


def languages(model: str) -> tuple[str, ...]:
    """The languages a model reads, by its name."""
    name = model.lower()
    return next((said for pattern, said in LANGUAGES if re.search(pattern, name)), ("en",))


def fastembed(model: str, settings: Settings) -> Local:
    """`fastembed:MODEL`, by the name in its list of cross-encoders."""
    folder = settings.folder("fastembed", model)

    def load() -> Callable[[str, Sequence[str]], Sequence[float]]:
        library = importlib.import_module("fastembed.rerank.cross_encoder")
        more = {"specific_model_path": folder} if folder else {}
        encoder = library.TextCrossEncoder(model, **more)
        return lambda query, texts: list(encoder.rerank(query, list(texts)))

    return Local(f"fastembed:{model}", languages(model), load)


def python(model: str, settings: Settings) -> Local:
    """`python:MODULE:NAME`: a function of a query and texts that gives one number each; the user's own code."""
    return Local(f"python:{model}", (), lambda: named(model))


def compatible(model: str, settings: Settings) -> Remote:
    """Any server with `/v1/rerank` (Cohere's and Jina's form; llama.cpp, vLLM, SiliconFlow): named as in `llm`."""
    rest, url, variable = services.server_of(model, settings)
    service = services.Service("rerank", rest, url, (variable,), open=True)
    return Remote(f"compatible:{model}", service, settings)


class Local:
    """A model in this process."""

    remote = False

    def __init__(self, model_id: str, read: tuple[str, ...], load: Callable[[], Any]) -> None:
        self.model_id = model_id
        self.languages = read
        self._load = load
        self._scores: Any = None
        self._lock = threading.Lock()

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, in order; else `Failed`."""
        with self._lock:
            self._scores = self._scores or opened(self.model_id, self._load, LOCAL)
        given = called(self.model_id, self._scores, scrub(query), [scrub(text) for text in texts])
        return checked(self.model_id, given, len(texts))


class Remote:
    """A model behind a network service."""

    def __init__(self, model_id: str, service: Service, settings: Settings) -> None:
        self.model_id = model_id
        self.languages = languages(service.model)
        self.service = service
        self.settings = settings
        self.remote = not HERE.match(service.url)

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query, in order, within 3 seconds; else `Failed`."""
        body = {"model": self.service.model, "query": scrub(query), "documents": [scrub(t) for t in texts],
                "top_n": len(texts), "return_documents": False}  # fmt: skip
        key = self.service.key(self.settings, self.model_id)
        said = post(self.model_id, f"{self.service.url}/rerank", key, body, seconds=SECONDS, limit=LIMIT)
        try:
            by_place = {int(row["index"]): float(row["relevance_score"]) for row in said["results"]}
            given = [by_place[place] for place in range(len(texts))]
        except (KeyError, TypeError, ValueError):
            raise failed(self.model_id, "no-completion") from None
        return checked(self.model_id, given, len(texts))


def checked(name: str, given: Any, count: int) -> Sequence[float]:
    """As many numbers as there are texts, none infinite; else `Failed`."""
    try:
        scores = [float(number) for number in given]
    except (TypeError, ValueError, OverflowError):
        scores = []
    if len(scores) != count or not all(map(isfinite, scores)):
        raise Failed("no-completion", f"The model '{name}' gave no order.", "Name another one.")
    return scores
