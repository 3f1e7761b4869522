"""Whether a passage may be recalled: its validity, its safety, its evidence. Each refusal has a reason."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pipimem.index import Hit

LEAST_CONFIDENCE = 0.6
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


def refusal(hit: Hit, *, clock: Clock, threshold: float, least: float, user_allowed: bool) -> str:
    """Why `hit` may not be recalled now, "" when it may.

    `threshold` is absolute evidence (`index/evidence.py`): a long message must not recall less than a short one.
    """
    if hit.layer in NEVER:
        return f"the {hit.layer} layer is never recalled"
    if hit.kind == "front":
        return "front matter"
    if hit.layer == "user" and not user_allowed:
        return "USER.md is not given in groups"
    if hit.verdict:
        return ", ".join(WITHHELD[v] for v in hit.verdict.split(","))
    if hit.until and clock.past(hit.until):
        return f"expired on {hit.until}"
    if hit.trial and clock.past(hit.trial):
        return f"its trial ended on {hit.trial}"
    if hit.superseded:
        return "superseded"
    if hit.conf < LEAST_CONFIDENCE:
        return f"confidence {hit.conf:.2f} is below {LEAST_CONFIDENCE}"
    if hit.signals["evidence"] < threshold:
        return f"evidence {hit.signals['evidence']:.2f} is below {threshold:.2f}"
    if hit.signals["text"] < least:
        return f"text {hit.signals['text']:.2f} is far behind the best ({least:.2f} would do)"
    return ""
