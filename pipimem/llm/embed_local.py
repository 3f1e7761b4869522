"""Models that run in this process: fastembed, model2vec, sentence-transformers, and a function of the user's own.

A library is loaded and a model opened when the first text comes. Where a model's files are missing and no hub can be
reached, that is a `Failed` with one sentence; the libraries' own lines about it are kept quiet.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipimem.errors import Error, Usage
from pipimem.llm import Failed
from pipimem.llm.embedding import Prefixed, Traits, traits
from pipimem.text import printable, scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipimem.llm import Settings

LOCAL = "Run: pip install 'pipimem[vectors,local]'"
_TORCH = "Run: pip install sentence-transformers"


def fastembed(model: str, settings: Settings) -> Local:
    """`fastembed:MODEL`, by the name in its list of models; ONNX on the processor."""
    folder = settings.folder("fastembed", model)

    def load() -> Callable[[Sequence[str]], Any]:
        library = importlib.import_module("fastembed")
        more = {"specific_model_path": folder} if folder else {}
        opened = library.TextEmbedding(model, **more)
        return lambda texts: list(opened.embed(list(texts), batch_size=len(texts)))

    return Local(f"fastembed:{model}", traits(model), load, LOCAL)


def model2vec(model: str, settings: Settings) -> Local:
    """`model2vec:MODEL`: static vectors, a table lookup."""
    folder = settings.folder("model2vec", model) or model

    def load() -> Callable[[Sequence[str]], Any]:
        opened = importlib.import_module("model2vec").StaticModel.from_pretrained(folder)
        return lambda texts: opened.encode(list(texts))

    return Local(f"model2vec:{model}", traits(model), load, LOCAL, batch=256)


def sentence_transformers(model: str, settings: Settings) -> Local:
    """`sentence-transformers:MODEL`; the library, which brings torch, is the user's to install."""
    folder = settings.folder("sentence-transformers", model) or model

    def load() -> Callable[[Sequence[str]], Any]:
        opened = importlib.import_module("sentence_transformers").SentenceTransformer(folder, trust_remote_code=False)
        return lambda texts: opened.encode(list(texts), show_progress_bar=False)

    return Local(f"sentence-transformers:{model}", traits(model), load, _TORCH)


def python(model: str, settings: Settings) -> Prefixed:
    """`python:MODULE:NAME`: a function of texts that gives one vector each, or an object with `embed_documents` and
    `embed_queries`; what else it says of itself (`languages`, `retrieval`, `batch_size`) is believed.

    Code of the user's own: named in their config only.
    """
    return Own(f"python:{model}", lambda: named(model))


def named(model: str) -> Any:
    """The object at `MODULE:NAME`. Raises `Failed`."""
    module, colon, name = model.partition(":")
    if not colon or not name.isidentifier():
        raise Usage(f"'{printable(model)}' names no function.", "Write python:MODULE:FUNCTION.")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Failed("library", f"'{printable(model)}' cannot be imported: {error}.", "Check the name.") from None


class Local(Prefixed):
    """A model of a library; `load` opens it and gives the function that embeds."""

    def __init__(
        self, model_id: str, known: Traits, load: Callable[[], Callable[[Sequence[str]], Any]], install: str,
        batch: int = 32,
    ) -> None:  # fmt: skip
        super().__init__(model_id, known)
        self.batch_size = batch
        self._load, self._install = load, install
        self._embed: Callable[[Sequence[str]], Any] | None = None
        self._lock = threading.Lock()

    def _vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with self._lock:  # the first question and the second wait for the same model
            self._embed = self._embed or opened(self.model_id, self._load, self._install)
        vectors: Sequence[Sequence[float]] = called(self.model_id, self._embed, [scrub(text) for text in texts])
        return vectors


def opened(name: str, load: Callable[[], Any], install: str) -> Any:
    """A model of a library, opened. Raises `Failed`."""
    try:
        with _quietly():
            return load()
    except ImportError:
        raise Failed("library", f"The model '{name}' needs a library that is missing.", install) from None
    except Failed:
        raise
    except Exception as error:  # noqa: BLE001 - libraries raise anything where files are missing or no hub answers
        raise Failed(
            "unknown-model", f"The model '{name}' cannot be opened ({type(error).__name__}).",
            "Check its name and the network, or give the folder with its files in 'index.folders' of your own config.",
        ) from None  # fmt: skip


def called(name: str, act: Callable[..., Any], *arguments: Any) -> Any:
    """What a library's or the user's function gives. Raises `Failed`."""
    try:
        return act(*arguments)
    except Error:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code; text search must not fall with it
        raise Failed("no-completion", f"The model '{name}' failed: {type(error).__name__}.") from None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without what libraries log about a hub that cannot be reached; fastembed, which has its own log, says nothing."""
    with contextlib.suppress(ImportError):
        importlib.import_module("loguru").logger.disable("fastembed")
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class Own(Prefixed):
    """The user's own function or object."""

    def __init__(self, model_id: str, find: Callable[[], Any]) -> None:
        super().__init__(model_id, traits(model_id))
        self._find, self._found = find, None

    def _object(self) -> Any:
        if self._found is None:
            self._found = found = self._find()
            if isinstance(found, type):
                self._found = found = opened(self.model_id, found, "")
            self.batch_size = int(getattr(found, "batch_size", self.batch_size))
        return self._found

    def describe(self) -> None:
        """Takes over what the object says of itself; imports it."""
        known = self.traits
        said = {name: getattr(self._object(), name, getattr(known, name)) for name in ("languages", "retrieval")}
        self.traits = replace(known, languages=tuple(said["languages"]), retrieval=bool(said["retrieval"]))

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in order; `Failed` where the object gives none."""
        return self._said(texts, "embed_documents", self.traits.document)

    def embed_queries(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each query, in order; `Failed` where the object gives none."""
        return self._said(texts, "embed_queries", self.traits.query)

    def _said(self, texts: Sequence[str], method: str, prefix: str) -> Sequence[Sequence[float]]:
        if not texts:
            return []
        found = self._object()
        act = getattr(found, method, None)
        given = [scrub(text) for text in texts] if act else [prefix + scrub(text) for text in texts]

        def measured() -> Sequence[Sequence[float]]:
            vectors = list((act or found)(given))
            self.dim = max(map(len, vectors), default=0) or self.dim
            return vectors

        vectors: Sequence[Sequence[float]] = called(self.model_id, measured)
        return vectors
