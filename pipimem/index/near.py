"""Which passages in scope mean most nearly the same as a query: exact to 100,000 vectors, approximate beyond.

Only rows of the scope are ever compared, so that no channel can be seen, or pushed aside, from another. Beyond the
bound a bit a number is kept in memory; the best by those are compared exactly, read from the store. Loads numpy.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pipimem.index.schema import PASSAGE_BITS
from pipimem.index.vectors import passage_key

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipimem.index.search import Scope
    from pipimem.index.vectors import Store

    Numbers = NDArray[np.int64]
    Floats = NDArray[np.float32]
    Bits = NDArray[np.uint64]

EXACT = 100_000
"""Vectors up to which every one in scope is compared as it is (design §4)."""
AGAIN = 1_000
"""Of more than that, how many of the best by their bits are compared exactly."""
SAMPLE = 20_000
LOOK = 5.0
"""Seconds after which an opened store is looked at for new vectors."""
_DOCUMENTS = 40
_CHUNK = 20_000


class Near:
    """The vectors of one store in memory, loaded document by document as scopes ask for them."""

    def __init__(self, store: Store, exact: int = EXACT) -> None:
        self.store = store
        self.exact = exact
        self.dimension = store.dimension
        self._documents: dict[tuple[int, str], tuple[Numbers, Numbers]] = {}
        self._slots: dict[int, int] = {}
        self._numbers: list[int] = []
        self._matrix: Floats = np.empty((0, self.dimension), np.float32)
        self._bits: Bits | None = None
        self._centre: Floats = np.zeros(self.dimension, np.float32)
        self._around: Floats = np.zeros((0, 0), np.float32)
        self._scopes: dict[object, tuple[int, Numbers, Numbers]] = {}
        self._version, self._looked = store.version(), time.monotonic()
        self._generation = store.generation

    def rank(self, db: sqlite3.Connection, query: Floats, scope: Scope, limit: int) -> list[tuple[int, float]]:
        """The rows in scope, nearest first, at most `limit`, each with how far it stands out; `query` has length one.

        That is how many standard deviations its likeness is above the mean of the scope, where only some of the scope
        are compared (beyond the bound) of the store; 1 where all are alike. A row without a vector is left out.
        """
        self._look()
        rows, slots = self._within(db, scope)
        if not len(rows):
            return []
        scale = self._scale(query) if self._bits is not None and len(rows) > AGAIN else None
        likeness, rows = self._likeness(query, rows, slots)
        mean, spread = scale or (float(likeness.mean()), float(likeness.std()))
        if len(rows) > limit:
            best = np.argpartition(-likeness, limit)[:limit]
            likeness, rows = likeness[best], rows[best]
        order = np.lexsort((rows, -np.round(likeness, 6)))
        apart = (likeness[order] - mean) / spread if spread > 1e-6 else np.ones(len(order))
        return list(zip(rows[order].tolist(), apart.tolist(), strict=True))

    def outdated(self) -> bool:
        """Whether vectors went from the store since it was opened, or have another dimension now."""
        self._look()
        return self.store.generation != self._generation

    def memory(self) -> int:
        """Bytes of vectors held in memory."""
        return int(self._matrix.nbytes + (0 if self._bits is None else self._bits.nbytes))

    def _look(self) -> None:
        """Forgets which passage has which vector when the store was written since, every few seconds at most."""
        if time.monotonic() - self._looked > LOOK:
            version, self._looked = self.store.version(), time.monotonic()
            if version != self._version:
                self._version = version
                self.store.read()
                self._documents.clear()
                self._scopes.clear()

    # What is in scope

    def _within(self, db: sqlite3.Connection, scope: Scope) -> tuple[Numbers, Numbers]:
        """The rows in scope that have a vector, and the slot of each."""
        version = db.execute("PRAGMA data_version").fetchone()[0]
        known = self._scopes.get(scope.key())
        if known and known[0] == version:
            return known[1], known[2]
        where, values = scope.documents()
        sql = f"SELECT d.id, d.digest FROM documents d WHERE {where} ORDER BY d.id"
        documents: list[tuple[int, str]] = db.execute(sql, values).fetchall()
        self._load(db, [d for d in documents if d not in self._documents])
        parts = [self._documents[d] for d in documents]
        rows = np.concatenate([p[0] for p in parts]) if parts else np.empty(0, np.int64)
        slots = np.concatenate([p[1] for p in parts]) if parts else np.empty(0, np.int64)
        condition, more = scope.passages()
        if condition:
            chosen = np.fromiter(
                (r[0] for r in db.execute(f"SELECT p.id FROM passages p WHERE {condition}", more)), np.int64
            )
            kept = np.isin(rows, chosen)
            rows, slots = rows[kept], slots[kept]
        self._scopes[scope.key()] = version, rows, slots
        return rows, slots

    def _load(self, db: sqlite3.Connection, documents: Sequence[tuple[int, str]]) -> None:
        """Finds the vectors of documents that were not asked for before."""
        if not documents:
            return
        wanted = {d[0] for d in documents}
        sql = "SELECT p.id, h.trail, p.digest FROM passages p JOIN texts t ON t.id = p.id JOIN heads h ON h.id = t.head"
        if len(wanted) > _DOCUMENTS:
            found = [r for r in db.execute(f"{sql} ORDER BY p.id") if r[0] >> PASSAGE_BITS in wanted]
        else:
            span = f"{sql} WHERE p.id BETWEEN ? AND ? ORDER BY p.id"
            found = [r for d in sorted(wanted) for r in db.execute(
                span, (d << PASSAGE_BITS, (d + 1 << PASSAGE_BITS) - 1))]  # fmt: skip
        keys = [passage_key(trail, mark) for _, trail, mark in found]
        numbers = self.store.numbers(keys)
        self._take(list(dict.fromkeys(n for key in keys if (n := numbers.get(key)) is not None)))
        of: dict[int, tuple[list[int], list[int]]] = {d: ([], []) for d in wanted}
        for (row, *_), key in zip(found, keys, strict=True):
            slot = self._slots.get(numbers.get(key, -1))
            if slot is not None:
                rows, slots = of[row >> PASSAGE_BITS]
                rows.append(row)
                slots.append(slot)
        for document in documents:
            rows, slots = of[document[0]]
            self._documents[document] = np.array(rows, np.int64), np.array(slots, np.int64)

    def _take(self, numbers: Sequence[int]) -> None:
        """Gives each text that is not in memory yet a slot there."""
        new = [n for n in numbers if n not in self._slots]
        if not new:
            return
        if self._bits is None and len(self._slots) + len(new) > self.exact:
            self._turn_to_bits(new)
        kept: list[Any] = [self._matrix if self._bits is None else self._bits]
        for at in range(0, len(new), _CHUNK):
            part = new[at : at + _CHUNK]
            vectors = self._read(part)
            kept.append(vectors if self._bits is None else self._as_bits(vectors))
            self._slots.update((n, len(self._numbers) + i) for i, n in enumerate(part))
            self._numbers += part
        if self._bits is None:
            self._matrix = np.concatenate(kept)
        else:
            self._bits = np.concatenate(kept)

    def _read(self, numbers: Sequence[int]) -> Floats:
        """Vectors from the store; one that has gone, or has another length, is zeros and like nothing."""
        size = self.dimension * 4
        found = self.store.vectors(numbers)
        empty = bytes(size)
        blobs = [v if len(v := found.get(n, empty)) == size else empty for n in numbers]
        return np.frombuffer(b"".join(blobs), np.float32).reshape(len(numbers), self.dimension)

    # Comparing

    def _likeness(self, query: Floats, rows: Numbers, slots: Numbers) -> tuple[Floats, Numbers]:
        if self._bits is None:
            return self._exactly(query, slots), rows
        if len(rows) > AGAIN:
            asked = self._as_bits(query.reshape(1, -1))[0]
            bits = self._bits if _follow(slots) and len(slots) == len(self._bits) else self._bits[slots]
            apart = np.bitwise_count(bits ^ asked).sum(axis=1, dtype=np.int32)
            best = np.sort(np.argpartition(apart, AGAIN)[:AGAIN])
            rows, slots = rows[best], slots[best]
        return self._read([self._numbers[s] for s in slots]) @ query, rows

    def _exactly(self, query: Floats, slots: Numbers) -> Floats:
        if _follow(slots):
            return self._matrix[slots[0] : slots[-1] + 1] @ query
        if len(slots) * 4 > len(self._matrix):  # copying so many costs more than comparing all
            return (self._matrix @ query)[slots]
        return self._matrix[slots] @ query

    def _turn_to_bits(self, coming: Sequence[int]) -> None:
        """From here on a bit a number is kept: whether it is above the mean, as models crowd into one corner."""
        every = [*self._numbers, *coming]
        step = max(1, len(every) // SAMPLE)
        sample = self._read(every[::step])
        self._centre, self._around = sample.mean(axis=0), np.cov(sample, rowvar=False, dtype=np.float32)
        self._bits = self._as_bits(self._matrix)
        self._matrix = np.empty((0, self.dimension), np.float32)

    def _scale(self, query: Floats) -> tuple[float, float]:
        """Mean and standard deviation of the likeness of a query to all of the store, from its vectors' moments."""
        return float(query @ self._centre), max(0.0, float(query @ self._around @ query)) ** 0.5

    def _as_bits(self, vectors: Floats) -> Bits:
        packed = np.packbits(vectors > self._centre, axis=1)
        padded = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
        padded[:, : packed.shape[1]] = packed
        return padded.view(np.uint64)


def _follow(slots: Numbers) -> bool:
    """Whether the slots are a run without gaps."""
    return bool(slots[-1] - slots[0] + 1 == len(slots) and (len(slots) == 1 or (np.diff(slots) == 1).all()))
