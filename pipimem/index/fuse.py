"""Two rankings as one: the words' score as a share of its best, the vectors' by reciprocal rank with a small weight.

No likeness of one model is ever compared with another's, or with a score of words. What the words found always stands;
what only the vectors found comes beside it (docs/decisions/0033).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.index.rank import Ranked

K = 60
"""The constant of reciprocal rank fusion, as published (Cormack, Clarke and Büttcher 2009)."""
WHOLE = 100
"""The score of the passage that the words put first, before the vectors add to it."""
BEST, COVERED = 3, 0.2
"""How many of the words' first are looked at for how much of the question they hold, and the share that is enough:
half costs LifeBench en a hundredth of nDCG@10, a fifth nothing anywhere."""
NOTHING = {"text": 0.0, "words": 0.0, "pairs": 0.0, "near": 0.0, "covered": 0.0, "neighbours": 0.0}


class Fused:
    """A passage's row with its score and signals; `text` and its parts are 0 where only the vectors found it."""

    __slots__ = ("_signals", "row", "score")

    def __init__(self, row: int, score: float, signals: dict[str, float]) -> None:
        self.row = row
        self.score = score
        self._signals = signals

    def signals(self) -> dict[str, float]:
        """What the score rests on, by name; `vector` is the share of it that came from the vectors."""
        return self._signals


def fuse(ranked: Sequence[Ranked], near: Sequence[int], weight: float) -> list[Fused]:
    """Both rankings in one, best first. `near` are rows, the nearest first; `weight` is theirs against 1 for words.

    Words that hold less than a fifth of the question count in proportion: then they are its common ones.
    """
    best = max((found.score for found in ranked), default=0.0) or 1.0
    sure = min(1.0, max((found.covered for found in ranked[:BEST]), default=0.0) / COVERED)
    scores = {found.row: WHOLE * sure * found.score / best for found in ranked}
    signals = {found.row: {**found.signals(), "vector": 0.0} for found in ranked}
    for place, row in enumerate(near, 1):
        share = WHOLE * weight * (K + 1) / (K + place)
        scores[row] = scores.get(row, 0.0) + share
        signals.setdefault(row, {**NOTHING})["vector"] = round(share, 4)
    return sorted((Fused(row, score, signals[row]) for row, score in scores.items()), key=lambda found: -found.score)
