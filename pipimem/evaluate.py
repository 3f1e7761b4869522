"""Quality on one's own workspace: judged queries in, recall, MRR and nDCG out; judged messages in, what recall gave."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pipimem.errors import Unreadable, Usage
from pipimem.index import Hit
from pipimem.recall import Recall


@dataclass(frozen=True, slots=True)
class Judged:
    """One query with the references that answer it (none: nothing should be found).

    `needs` set makes it a message for recall, said in `channel`: whether it needs memory. `also` are references that
    do no harm in its block, being about the same thing.
    """

    id: str
    query: str
    relevant: tuple[str, ...]
    groups: tuple[str, ...]
    needs: bool | None = None
    channel: str | None = None
    also: tuple[str, ...] = ()


Search = Callable[[str, int], list[Hit]]
Ask = Callable[[str, "str | None"], Recall]


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
        relevant, also, needs, channel = row["relevant"], row.get("also", []), row.get("needs"), row.get("channel")
        lists, kinds = (relevant, also), (type(needs) in (bool, type(None)), isinstance(channel, str | None))
        if not all(isinstance(x, list) for x in lists) or not isinstance(row["query"], str) or not all(kinds):
            raise TypeError
        if needs is not None and needs != bool(relevant):
            raise ValueError
        groups = tuple(str(row[k]) for k in ("lang", "category", "split") if row.get(k))
        return Judged(
            str(row["id"]), row["query"], tuple(map(str, relevant)), groups, needs, channel, tuple(map(str, also))
        )
    except (ValueError, KeyError, TypeError):
        raise Usage(
            f"Line {number} of '{path}' is no judged query.",
            'Write {"id": …, "query": …, "relevant": [ref, …]}; a message for recall has "needs": true with'
            ' references, or "needs": false without.',
        ) from None


def evaluate(queries: Sequence[Judged], search: Search, limit: int = 10, recall: Ask | None = None) -> dict[str, Any]:
    """Runs every query; means over those with an answer, per language and category, and what the others found.

    recall@k is the share of a query's relevant references in the first k hits; a `path#heading` reference is met by
    any passage under that heading. Lines with `needs` are asked of `recall` instead (where it is given), as a bot
    would ask, and measured under `messages`.
    """
    messages = [q for q in queries if q.needs is not None and recall]
    rows = []
    for judged in (q for q in queries if q not in messages):
        started = time.perf_counter()
        hits = _try(search, judged.query, max(limit, 10))
        rows.append((judged, _grades(judged, hits), len(hits), (time.perf_counter() - started) * 1000))
    answerable = [(j, g) for j, g, _, _ in rows if j.relevant]
    empty = [n for j, _, n, _ in rows if not j.relevant]
    groups = sorted({g for j, _ in answerable for g in j.groups})
    return {
        "queries": len(rows),
        **_means(answerable),
        "false_alarms": {"queries": len(empty), "with_hits": sum(n > 0 for n in empty)},
        "ms": _times(ms for *_, ms in rows),
        "by": {g: _means([(j, x) for j, x in answerable if g in j.groups]) for g in groups},
        "missed": [j.id for j, g in answerable if not any(g[:limit])],
        **({"messages": _messages(messages, recall)} if messages and recall else {}),
    }


def reached(result: dict[str, Any]) -> float:
    """What `--min-recall` is held against: recall@5 of queries, the hit rate of messages, the lower where both are."""
    shares = [result["recall@5"]] if result["n"] else []
    shares += [result["messages"]["hit"]] if result.get("messages", {}).get("needed") else []
    return float(min(shares, default=0.0))


def _try(search: Search, query: str, limit: int) -> list[Hit]:
    try:
        return search(query, limit)
    except (Usage, Unreadable):
        return []  # nothing found beside an unreadable file counts as nothing found; `ready` looked at the workspace


def _grades(judged: Judged, hits: Sequence[Hit]) -> list[frozenset[str]]:
    """For each rank, the relevant references its hit newly meets."""
    left, grades = set(judged.relevant), []
    for hit in hits:
        met = _met(hit, left)
        left -= met
        grades.append(met)
    return grades


def _met(hit: Hit, references: Iterable[str]) -> frozenset[str]:
    name = f"{hit.path}#{' > '.join(hit.heading)}"
    return frozenset(r for r in references if r in (hit.ref, name) or name.startswith(r + " > "))


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


class _Answer:
    """One message and what recall made of it."""

    def __init__(self, judged: Judged, recall: Ask) -> None:
        started = time.perf_counter()
        result = recall(judged.query, judged.channel)
        self.ms = (time.perf_counter() - started) * 1000
        self.judged = judged
        self.fired = bool(result.trace.get("router", {}).get("fire"))
        hits = [i.hit for i in result.items]
        self.hit = any(_met(h, judged.relevant) for h in hits)
        self.noise = sum(not _met(h, (*judged.relevant, *judged.also)) for h in hits)


def _messages(messages: Sequence[Judged], recall: Ask) -> dict[str, Any]:
    """The router and the block over judged messages, in all and by group, with the ids of what went wrong."""
    answers = [_Answer(m, recall) for m in messages]
    groups = sorted({g for m in messages for g in m.groups})
    needed, spared = [a for a in answers if a.judged.needs], [a for a in answers if not a.judged.needs]
    return {
        **_block_means(answers),
        "ms": _times(a.ms for a in answers),
        "by": {g: _block_means([a for a in answers if g in a.judged.groups]) for g in groups},
        "not_fired": [a.judged.id for a in needed if not a.fired],
        "fired_for_nothing": [a.judged.id for a in spared if a.fired],
        "missed": [a.judged.id for a in needed if not a.hit],
        "noisy": [a.judged.id for a in needed if a.noise],
    }


def _block_means(answers: Sequence[_Answer]) -> dict[str, float | int]:
    """`hit`: blocks with a labelled reference, `clean`: blocks with nothing irrelevant, both of the needed messages;
    `quiet`: messages without need that got no block.
    """
    needed, spared = [a for a in answers if a.judged.needs], [a for a in answers if not a.judged.needs]
    fired = [a for a in answers if a.fired]
    return {
        "n": len(answers),
        "needed": len(needed),
        "router_precision": _mean(float(bool(a.judged.needs)) for a in fired),
        "router_recall": _mean(float(a.fired) for a in needed),
        "hit": _mean(float(a.hit) for a in needed),
        "clean": _mean(float(not a.noise) for a in needed),
        "quiet": _mean(float(not a.noise) for a in spared),
    }


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return round(sum(found) / len(found), 4) if found else 0.0


def _times(values: Iterable[float]) -> dict[str, float]:
    found = sorted(values)
    return {"p50": _percentile(found, 0.5), "p95": _percentile(found, 0.95)}


def _percentile(values: Sequence[float], share: float) -> float:
    return round(values[min(len(values) - 1, int(len(values) * share))], 2) if values else 0.0
