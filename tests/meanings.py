"""A deterministic model for tests: a text is the sum of the subjects its words belong to, in English and Chinese."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pipimem.meaning import PROBE
from pipimem.memory import Memory

SUBJECTS = [
    ("login", "sign in", "authentication", "登录", "认证", "鉴权"),
    ("deploy", "release", "ship", "部署", "上线", "发布"),
    ("billing", "invoice", "payment", "计费", "发票", "付款"),
    ("cache", "stale", "缓存", "过期"),
    ("allergy", "allergic", "peanut", "food", "过敏", "花生"),
    ("backup", "restore", "备份", "恢复"),
    ("holiday", "vacation", "leave", "休假", "请假"),
    ("oven", "kiln", "heat", "窑", "炉"),
]


def vector(text: str) -> list[float]:
    """One number a subject, and a last one so that no text is without."""
    lower = text.lower()
    return [float(any(word in lower for word in words)) for words in SUBJECTS] + [0.05]


def subjects(texts: Sequence[str]) -> list[list[float]]:
    """The vectors of texts; as a model for `python:tests.meanings:subjects`."""
    return [vector(text) for text in texts]


class Recorder:
    """The same model, which keeps what it was given; `stop` makes it fail after so many texts."""

    batch_size = 4
    seen: ClassVar[list[str]] = []
    asked: ClassVar[list[str]] = []
    stop = 10**9

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        if len(self.seen) + len(texts) > Recorder.stop:
            raise OSError("the model went away")
        self.seen.extend(text for text in texts if text != PROBE)
        return subjects(texts)

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.extend(texts)
        return subjects(texts)


class Heavy(Recorder):
    """Takes as long to be made as `hold` says."""

    hold = threading.Event()

    def __init__(self) -> None:
        self.hold.wait(20)


class Dying(Recorder):
    """Ends the whole process in the middle of its third batch, as a kill would; says on a file what it was given."""

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        path = os.environ["SEEN"]
        with open(path, "a+", encoding="utf-8") as file:
            file.seek(0)
            before = len(file.read().splitlines())
            if before == 8 and "DIE" in os.environ:
                os._exit(9)
            file.writelines(" ".join(text.split()) + "\n" for text in texts if text != PROBE)
        return subjects(texts)


class Odd:
    """Gives no numbers where the text says so."""

    def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [[float("nan")] * 9 if "odd" in t else [0.0] * 9 if "empty" in t else vector(t) for t in texts]

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        return subjects(texts)


def by_letters(query: str, texts: Sequence[str]) -> Iterator[float]:
    """A reranker: the more often a text says 'best', the better."""
    return (float(text.count("best")) for text in texts)


def refs(memory: Memory, query: str, **where: Any) -> list[str]:
    """What a search finds, by reference."""
    return [hit.ref for hit in memory.search(query, **where)]


def lacks(memory: Memory) -> str:
    """Why a model did not help with the last answer."""
    assert memory.meaning is not None
    return "; ".join(memory.meaning.missing)
