"""Whether a passage may be recalled: its validity, its safety, its evidence. Each refusal has a reason.

The thresholds stand in `score`, with what they were measured on.
"""

from __future__ import annotations

import time

from pipimem.recall.score import (
    ASIDE,
    FAINT,
    LEAST_CONFIDENCE,
    MANY,
    MOST,
    NEAR,
    ONE_WORD,
    OWN,
    STILL_OWN,
    TEXT_SHARE,
    Match,
    initials,
    units,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipimem.index import Hit
    from pipimem.recall.offer import Skills

NEVER = frozenset(["identity", "standing", "archive"])
WITHHELD = {"secret": "secret-like", "hidden": "hidden characters", "instruction": "instruction-like text"}


class Clock:
    """What day it is: `utc` (ISO) at once, the workspace's own only when a day next to it must be decided.

    Reading time zones costs a tenth of a whole recall, and no zone is more than a day away.
    """

    __slots__ = ("_local", "_near", "utc")

    def __init__(self, now: float, local: Callable[[], str]) -> None:
        day, *beside = (time.strftime("%Y-%m-%d", time.gmtime(now + d)) for d in (0, -86400, 86400))
        self.utc = day
        self._near = {day, *beside}
        self._local = local

    def past(self, day: str) -> bool:
        """Whether `day` is over where the workspace is."""
        return day < (self._local() if day[:10] in self._near else self.utc)


class Gate:
    """What may be recalled now. `threshold` is the least absolute evidence (`index/evidence.py`); `user_allowed` says
    whether USER.md may be given, and is only asked when some of it was found; so is `skills`.
    """

    __slots__ = ("_clock", "_known", "_skills", "_threshold", "_user_allowed")

    def __init__(
        self, *, clock: Clock, threshold: float, user_allowed: Callable[[], bool], skills: Callable[[], Skills]
    ) -> None:
        self._clock = clock
        self._threshold = threshold
        self._user_allowed = user_allowed
        self._skills = skills
        self._known: Skills | None = None

    @property
    def skills(self) -> Skills:
        """Which skills may be offered, for the first that was found."""
        self._known = self._known or self._skills()
        return self._known

    def judge(self, hits: Sequence[Hit], queries: Sequence[str], *, aside: bool = False) -> list[tuple[Hit, str]]:
        """Each hit of one sentence's queries with why it may not be recalled ("": it may).

        Evidence is absolute and, beside that, near the best of what these queries may recall; `aside` (the sentence
        only stands beside the question) asks for more of it. Sets each hit's signals to what counts here.
        """
        text = " ".join(queries)
        asked, names = units(text), initials(text)
        judged = [(hit, self._refused(hit)) for hit in hits]
        # Folding texts is the dearest step: what has little of the best text and of the best evidence cannot come near.
        likely, telling = (max((h.signals[name] for h in hits), default=0.0) * FAINT for name in ("text", "evidence"))
        for hit, reason in judged:
            if hit.layer == "skill" and not reason:
                hit.signals["evidence"] += self.skills.evidence(hit)
        matches = {
            id(hit): _weighed(hit, Match(asked, names, hit))
            for hit, reason in judged
            if not reason
            and (hit.signals["text"] >= likely or hit.signals["evidence"] >= max(telling, self._threshold))
        }
        least = max(self._threshold, ASIDE) if aside else self._threshold
        near = Near([h for h, _ in judged if id(h) in matches and h.signals["evidence"] >= least], matches)
        return [(hit, reason or self._weak(hit, least) or near.refused(hit)) for hit, reason in judged]

    def _refused(self, hit: Hit) -> str:
        if hit.layer in NEVER:
            return f"the {hit.layer} layer is never recalled"
        if hit.kind == "front" and hit.layer != "skill":
            return "front matter"
        if hit.layer == "user" and not self._user_allowed():
            return "USER.md is not given in groups"
        if hit.verdict:
            return ", ".join(WITHHELD[v] for v in hit.verdict.split(","))
        if hit.layer == "skill":
            return self.skills.refused(hit)
        if hit.until and self._clock.past(hit.until):
            return f"expired on {hit.until}"
        if hit.trial and self._clock.past(hit.trial):
            return f"its trial ended on {hit.trial}"
        if hit.superseded:
            return "superseded"
        for ref, end in hit.rivals:
            if not (end and self._clock.past(end)):
                return f"in conflict with {ref}, which a person has to settle"
        return f"confidence {hit.conf:.2f} is below {LEAST_CONFIDENCE}" if hit.conf < LEAST_CONFIDENCE else ""

    def _weak(self, hit: Hit, least: float) -> str:
        found = hit.signals["evidence"]
        return f"evidence {found:.2f} is below {least:.2f}" if found < least else ""


def _weighed(hit: Hit, match: Match) -> Match:
    """Sets the hit's signals to what counts here: with the extra evidence, and without what only the title of its
    document says ("Session" stands above every passage of a SESSION.md).
    """
    if match.titled:
        share = len(match.held) / (len(match.held) + len(match.titled))
        hit.signals["evidence"] *= share
        hit.signals["text"] *= share
    hit.signals["evidence"] = round(hit.signals["evidence"] + match.extra, 3)
    return match


class Near:
    """Which hits of a query stay beside the best: those near it, and few where a single word decided."""

    __slots__ = ("_best", "_chosen", "_evidence", "_own", "_text")

    def __init__(self, hits: Sequence[Hit], matches: Mapping[int, Match]) -> None:
        self._evidence = max((h.signals["evidence"] for h in hits), default=0.0) or 1.0
        self._text = max((h.signals["text"] for h in hits), default=0.0) or 1.0
        self._best = NEAR * max(map(self._share, hits), default=0.0)
        owned = max((self._share(hit) for hit in hits if hit.layer in OWN), default=0.0)
        self._own = NEAR * owned if owned >= STILL_OWN * self._best / NEAR else self._best
        near = [hit for hit in hits if self._share(hit) >= self._least(hit)]
        near.sort(key=lambda hit: (-self._share(hit), hit.path, hit.start))
        if self._evidence < ONE_WORD:
            near = _told_apart(near, matches)[:MOST]
        self._chosen = {(h.path, h.start) for h in near}

    def _least(self, hit: Hit) -> float:
        return min(self._own, self._best) if hit.layer in OWN else self._best

    def _share(self, hit: Hit) -> float:
        text, evidence = hit.signals["text"] / self._text, hit.signals["evidence"] / self._evidence
        return TEXT_SHARE * text + (1 - TEXT_SHARE) * evidence

    def refused(self, hit: Hit) -> str:
        """Why `hit`, which has enough evidence, is left out for better ones; "" when it is not."""
        if (hit.path, hit.start) in self._chosen:
            return ""
        share = self._share(hit)
        if share < self._least(hit):
            return f"its match of {share:.2f} is far behind the best ({self._least(hit):.2f} would do)"
        return "its one word stands in too many passages to tell them apart"


def _told_apart(near: Sequence[Hit], matches: Mapping[int, Match]) -> list[Hit]:
    """Without those that share their only words with more than two, the best of each such crowd aside: a correction
    before others, and what holds before what HISTORY tells.
    """
    crowds: dict[frozenset[str], list[Hit]] = {}
    for hit in sorted(near, key=lambda hit: (hit.kind != "correction", hit.layer not in OWN)):
        crowds.setdefault(matches[id(hit)].held, []).append(hit)
    return [hit for hit in near for crowd in [crowds[matches[id(hit)].held]] if len(crowd) <= MANY or hit is crowd[0]]
