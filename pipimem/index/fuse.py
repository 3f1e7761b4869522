"""Two rankings as one: the words' score as a share of its best, and a small share for what is near by meaning.

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
OUTSTANDING = 3.5
"""By how many standard deviations the nearest of a scope stands out, as a rule (seen on the dev splits: 2 to 7)."""
PLAIN = 4
"""Telling words up to which the weight is whole; a longer question says more in words (chosen on the dev splits)."""
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


def by_likeness(near: Sequence[tuple[int, float]], weight: float, words: int) -> list[tuple[int, float]]:
    """Rows with how far they stand out from their scope → rows with their share, for models trained to retrieve.

    `weight` goes to one that stands out as the nearest does as a rule, of a question of at most four `words` (its
    telling ones); twice as many halve it. What is no more like the question than the rest has no share.
    """
    weight *= min(1.0, PLAIN / max(1, words))
    return [(row, weight * apart / OUTSTANDING) for row, apart in near if apart > 0]


def by_place(near: Sequence[tuple[int, float]], weight: float) -> list[tuple[int, float]]:
    """Rows, the nearest first → rows with their share by reciprocal rank, where likeness itself says little."""
    return [(row, weight * (K + 1) / (K + place)) for place, (row, _) in enumerate(near, 1)]


def fuse(ranked: Sequence[Ranked], near: Sequence[tuple[int, float]]) -> list[Fused]:
    """Both rankings in one, best first. `near` are rows with their share against 1 for the words' best.

    Words that hold less than a fifth of the question count in proportion: then they are its common ones.
    """
    best = max((found.score for found in ranked), default=0.0) or 1.0
    sure = min(1.0, max((found.covered for found in ranked[:BEST]), default=0.0) / COVERED)
    scores = {found.row: WHOLE * sure * found.score / best for found in ranked}
    signals = {found.row: {**found.signals(), "vector": 0.0} for found in ranked}
    for row, share in near:
        scores[row] = scores.get(row, 0.0) + WHOLE * share
        signals.setdefault(row, {**NOTHING})["vector"] = round(WHOLE * share, 4)
    return sorted((Fused(row, score, signals[row]) for row, score in scores.items()), key=lambda found: -found.score)
