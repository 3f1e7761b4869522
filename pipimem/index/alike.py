"""Hits that say nearly the same, put together for whoever shows them: nothing is lost, the best keep their order."""

from __future__ import annotations

from pipimem.index.words import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.index.search import Hit

ALIKE = 0.8
"""The share of their character pairs that two texts have in common, from which on one stands for the other."""

MOST_COMPARED = 100


def grouped(hits: Sequence[Hit]) -> list[list[Hit]]:
    """The hits in groups, each led by its best; a hit joins the first of at most 100 groups whose leader it is like."""
    groups: list[list[Hit]] = []
    leaders: list[set[str]] = []
    for hit in hits:
        said = _pairs(hit.text)
        for group, leader in zip(groups[:MOST_COMPARED], leaders, strict=False):
            if _are_alike(said, leader):
                group.append(hit)
                break
        else:
            groups.append([hit])
            leaders.append(said)
    return groups


def _pairs(text: str) -> set[str]:
    """The neighbouring characters of a text; what is no letter or digit does not count."""
    plain = "".join(filter(str.isalnum, fold(text)))
    return {plain[at : at + 2] for at in range(max(1, len(plain) - 1))}


def _are_alike(one: set[str], other: set[str]) -> bool:
    fewer, more = sorted((len(one), len(other)))
    return fewer >= ALIKE * more and len(one & other) >= ALIKE * len(one | other)
