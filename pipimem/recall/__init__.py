"""A message → the few passages that matter, or nothing, and always why.

`router` decides whether to look, the index finds candidates, `gate` refuses, `score` orders, `pack` fits and writes
the block. Every step is pure; every decision is in the trace.
"""

from __future__ import annotations

from pipimem.errors import Usage
from pipimem.recall.gate import Clock, refusal
from pipimem.recall.pack import Item, block, pack
from pipimem.recall.router import Route, route
from pipimem.recall.score import score, signals
from pipimem.text import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pipimem.index import Hit

CANDIDATES = 30
# The least text score beside the best candidate's. On the sample workspace 0.4 halves what is recalled (7.0 → 3.6
# passages) and every judged answer is still there; it compares passages, so a long message loses nothing.
FAR_BEHIND = 0.4
__all__ = ["Clock", "Item", "Recall", "Route", "recall", "route"]


class Recall:
    """The answer: `text` is the block ("" when nothing is recalled), `reason` why, `trace` every decision.

    `failed` is true when it could not look: then the block is empty and the reason says what stood in the way.
    """

    __slots__ = ("failed", "items", "omitted", "reason", "text", "tokens", "trace")

    def __init__(self, reason: str, trace: dict[str, Any], *, failed: bool = False) -> None:
        self.reason = reason
        self.trace = trace
        self.failed = failed
        self.items: list[Item] = []
        self.omitted: list[tuple[str, str]] = []
        self.text = ""
        self.tokens = 0

    @property
    def recalled(self) -> int:
        """How many passages are in the block."""
        return len(self.items)


def recall(
    way: Route, search: Callable[[str, int], list[Hit]], *, clock: Clock, threshold: float, user_allowed: bool
) -> Recall:
    """Runs the pipeline for a route. `search(query, limit)` gives candidates in scope."""
    trace: dict[str, Any] = {"router": {"fire": way.fire, "reason": way.reason, "layers": way.layers}}
    if not way.fire:
        return Recall(f"not needed: {way.reason}", trace)
    candidates = _candidates(way, search)
    least = FAR_BEHIND * max((h.signals["text"] for h in candidates), default=0.0)
    passed, refused = [], []
    for hit in candidates:
        reason = refusal(hit, clock=clock, threshold=threshold, least=least, user_allowed=user_allowed)
        if reason:
            refused.append((hit.ref, reason))
        else:
            hit.signals = signals(hit, clock.utc)
            hit.score = score(hit.signals)
            passed.append(hit)
    passed.sort(key=lambda h: (-h.score, h.path, h.start))
    items, left_out = pack(passed, way.budget)
    result = Recall(way.reason if items else _why_nothing(passed, refused), trace)
    result.items, result.text = items, block(items)
    result.tokens = tokens(result.text)
    result.omitted = [(hit.ref, reason) for hit, reason in left_out] + refused
    trace.update(
        queries=len(way.queries), candidates=len(candidates), budget=way.budget, tokens=result.tokens,
        gate=[{"ref": ref, "reason": reason} for ref, reason in refused],
        scores=[{"ref": h.ref, "score": h.score, "signals": h.signals} for h in passed],
        packed=[i.hit.ref for i in items],
    )  # fmt: skip
    return result


def _why_nothing(passed: Sequence[Hit], refused: Sequence[tuple[str, str]]) -> str:
    if passed:
        return "nothing fits the budget"
    reasons = {reason for _, reason in refused if not reason.startswith(("evidence", "text"))}
    return (
        f"what was found may not be recalled: {'; '.join(sorted(reasons))}" if reasons else "nothing in memory matches"
    )


def _candidates(way: Route, search: Callable[[str, int], list[Hit]]) -> list[Hit]:
    """The hits of every query, each passage once with its best evidence; a query without words finds nothing."""
    best: dict[tuple[str, int], Hit] = {}
    for query in way.queries:
        try:
            found: Sequence[Hit] = search(query, CANDIDATES)
        except Usage:
            continue
        for hit in found:
            key = hit.path, hit.start
            if key not in best or hit.signals["text"] > best[key].signals["text"]:
                best[key] = hit
    return list(best.values())
