"""Asking several workspaces at once: a project's, the user's own. One that cannot be read stops no other.

Scores of two indexes cannot be compared, for how rare a word is depends on what else is there; what can is how much of
the question a passage really holds (`index/evidence.py`). Each workspace keeps its own order, scaled by its best.
"""

from __future__ import annotations

import os

from pipimem.errors import Error

WHOLE = 100
"""The score of what words put first where vectors add to it (`index/fuse.py`)."""
ONE_WORD = 4.5
"""About the evidence of one telling word (`recall/score.py`): the scale where no workspace has any."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from pipimem.index import Hit

    Source = TypeVar("Source")


def asked(sources: Sequence[Source], ask: Callable[[Source], list[Hit]]) -> tuple[list[list[Hit]], list[Error]]:
    """What each source answers, in order, and what kept those from answering that could not."""
    answers, failed = [], []
    for source in sources:
        try:
            answers.append(ask(source))
        except Error as error:
            answers.append([])
            failed.append(error)
    return answers, failed


def merged(answers: Sequence[Sequence[Hit]]) -> list[Hit]:
    """All hits in one order, the first workspace's before another's where they hold as much of the question.

    Needs the `evidence` signal; sets `score` to what they are compared by. What vectors add to a score, a share of
    100, counts in every workspace as that share of the best evidence there is.
    """
    ranked = []
    most = max((h.signals["evidence"] for hits in answers for h in hits), default=0.0) or ONE_WORD
    for number, hits in enumerate(answers):
        best = max((h.signals["evidence"] for h in hits), default=0.0)
        near = [h.signals.get("vector", 0.0) for h in hits]
        worth = [max(0.0, h.score - share) for h, share in zip(hits, near, strict=True)]
        top = WHOLE if any("vector" in h.signals for h in hits) else max(worth, default=0.0) or 1.0
        for place, hit in enumerate(hits):
            hit.score = round(best * worth[place] / top + most * near[place] / WHOLE, 4)
            ranked.append((-hit.score, number, place, hit))
    return [hit for *_, hit in sorted(ranked, key=lambda row: row[:3])]


def scaled(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Hits of one workspace with their `text` signal on the scale of evidence, on which others' can be laid beside."""
    best = max((h.signals["evidence"] for h in hits), default=0.0)
    top = max((h.signals["text"] for h in hits), default=0.0) or 1.0
    for hit in hits:
        hit.signals["text"] = round(best * hit.signals["text"] / top, 4)
    return hits


def named(hits: Sequence[Hit], root: str) -> list[Hit]:
    """Hits of another workspace under paths that say which; an entry keeps its id, as that is unique anyway."""
    for hit in hits:
        old, hit.path = hit.path, os.path.join(root, hit.path)
        hit.row = 0  # a number of another index
        hit.ref = hit.ref if hit.entry else hit.ref.replace(old, hit.path, 1)
    return list(hits)
