"""Retrieval quality on one's own workspace: judged queries in, recall, MRR and nDCG out."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pipimem.errors import Unreadable, Usage
from pipimem.index import Hit


@dataclass(frozen=True, slots=True)
class Judged:
    """One query with the references that answer it (none: nothing should be found)."""

    id: str
    query: str
    relevant: tuple[str, ...]
    groups: tuple[str, ...]


def load(path: str) -> list[Judged]:
    """The judged queries of a JSON lines file. `Unreadable` for a missing file, `Usage` naming a bad line."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            rows = [(n, line) for n, line in enumerate(file, 1) if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"The queries '{path}' cannot be read: {_reason(error)}.", "Check the path.") from None
    return [_judged(path, number, line) for number, line in rows]


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or "it is no UTF-8 text").lower()


def _judged(path: str, number: int, line: str) -> Judged:
    try:
        row = json.loads(line)
        relevant = row["relevant"]
        groups = [row[k] for k in ("lang", "category") if row.get(k)]
        if not isinstance(relevant, list) or not isinstance(row["query"], str):
            raise TypeError
        return Judged(str(row["id"]), row["query"], tuple(map(str, relevant)), tuple(map(str, groups)))
    except (ValueError, KeyError, TypeError):
        raise Usage(
            f"Line {number} of '{path}' is no judged query.",
            'Write {"id": …, "query": …, "relevant": [ref, …]}.',
        ) from None


def evaluate(queries: Sequence[Judged], search: Callable[[str, int], list[Hit]], limit: int = 10) -> dict[str, object]:
    """Runs every query; means over those with an answer, per language and category, and what the others found.

    recall@k is the share of a query's relevant references in the first k hits; a `path#heading` reference is met by
    any passage under that heading.
    """
    rows = []
    for judged in queries:
        started = time.perf_counter()
        hits = _try(search, judged.query, max(limit, 10))
        rows.append((judged, _grades(judged, hits), len(hits), (time.perf_counter() - started) * 1000))
    answerable = [(j, g) for j, g, _, _ in rows if j.relevant]
    empty = [n for j, _, n, _ in rows if not j.relevant]
    times = sorted(ms for *_, ms in rows)
    groups = sorted({g for j, _ in answerable for g in j.groups})
    return {
        "queries": len(rows),
        **_means(answerable),
        "false_alarms": {"queries": len(empty), "with_hits": sum(n > 0 for n in empty)},
        "ms": {"p50": _percentile(times, 0.5), "p95": _percentile(times, 0.95)},
        "by": {g: _means([(j, x) for j, x in answerable if g in j.groups]) for g in groups},
        "missed": [j.id for j, g in answerable if not any(g[:limit])],
    }


def _try(search: Callable[[str, int], list[Hit]], query: str, limit: int) -> list[Hit]:
    try:
        return search(query, limit)
    except (Usage, Unreadable):
        return []  # nothing found beside an unreadable file counts as nothing found; `ready` looked at the workspace


def _grades(judged: Judged, hits: Sequence[Hit]) -> list[frozenset[str]]:
    """For each rank, the relevant references its hit newly meets."""
    left, grades = set(judged.relevant), []
    for hit in hits:
        name = f"{hit.path}#{' > '.join(hit.heading)}"
        met = frozenset(r for r in left if r in (hit.ref, name) or name.startswith(r + " > "))
        left -= met
        grades.append(met)
    return grades


def _means(rows: Sequence[tuple[Judged, list[frozenset[str]]]]) -> dict[str, float | int]:
    if not rows:
        return {"n": 0}
    return {
        "n": len(rows),
        **{f"recall@{k}": _mean(_recall(j, g, k) for j, g in rows) for k in (1, 5, 10)},
        "hit@5": _mean(float(any(g[:5])) for _, g in rows),
        "mrr@10": _mean(next((1 / n for n, met in enumerate(g[:10], 1) if met), 0.0) for _, g in rows),
        "ndcg@10": _mean(_ndcg(j, g) for j, g in rows),
    }


def _recall(judged: Judged, grades: Sequence[frozenset[str]], k: int) -> float:
    return sum(len(met) for met in grades[:k]) / len(judged.relevant)


def _ndcg(judged: Judged, grades: Sequence[frozenset[str]]) -> float:
    gain = sum(bool(met) / math.log2(rank + 1) for rank, met in enumerate(grades[:10], 1))
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(judged.relevant)) + 1))
    return gain / best


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return round(sum(found) / len(found), 4)


def _percentile(values: Sequence[float], share: float) -> float:
    return round(values[min(len(values) - 1, int(len(values) * share))], 2) if values else 0.0
