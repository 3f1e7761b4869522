"""Asks one provider again where waiting helps: rate limits, servers that stumble, connections that break.

Bounded by the request's own time: no wait begins that would leave nothing for the answer.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipimem.llm import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipimem.llm import Provider, Reply, Request

AGAIN = frozenset({"rate-limited", "server", "reset", "unreachable"})
ATTEMPTS = 3
FIRST_WAIT = 0.5
"""Seconds before the second attempt, doubled for the third, each times 0.5 to 1.5 by chance."""
LONGEST_WAIT = 20.0
"""Seconds waited at most because a service said so; one that asks for more is left alone."""
TICK = 0.05


def pause(seconds: float, cancelled: Callable[[], bool]) -> None:
    """Waits `seconds`, or until `cancelled` says so (looked at every 50 ms)."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not cancelled():
        time.sleep(min(left, TICK))


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance, as arguments: `now` in seconds, `wait(seconds, cancelled)`, `chance` from 0 to 1."""

    now: Callable[[], float] = time.monotonic
    wait: Callable[[float, Callable[[], bool]], None] = pause
    chance: Callable[[], float] = random.random


def ask(provider: Provider, request: Request, clock: Clock | None = None) -> Reply:
    """The reply of one provider within `request.timeout`, tried at most three times.

    Raises `Failed` as the last attempt did; a wait the service asked for is kept when it is at most 20 s and leaves
    time to answer, else the failure is final.
    """
    clock = clock or Clock()
    end = clock.now() + request.timeout
    for attempt in range(ATTEMPTS):
        if request.cancelled():
            raise Failed("cancelled", f"The question to '{provider.name}' was called off.")
        left = end - clock.now()
        try:
            return provider.ask(replace(request, timeout=left))
        except Failed as failed:
            seconds = _wait(failed, attempt, clock)
            if seconds is None or clock.now() + seconds >= end:
                raise
            clock.wait(seconds, request.cancelled)
    raise AssertionError("unreachable: the last attempt returns or raises")  # pragma: no cover


def _wait(failed: Failed, attempt: int, clock: Clock) -> float | None:
    """Seconds until the next attempt; None where another one is of no use."""
    if failed.kind not in AGAIN or attempt + 1 == ATTEMPTS:
        return None
    own = float(FIRST_WAIT * 2**attempt * (0.5 + clock.chance()))
    if failed.wait is None:
        return own
    return max(failed.wait, 0.0) + own / 5 if failed.wait <= LONGEST_WAIT else None
