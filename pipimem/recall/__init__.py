"""A message → the few passages that matter, or nothing, and always why.

`router` decides whether to look, the index finds candidates, `gate` refuses, `score` orders, `pack` fits and writes
the block. Every step is pure; every decision is in the trace.
"""

from __future__ import annotations

from pipimem.errors import Usage
from pipimem.recall.gate import WITHHELD, Clock, Gate
from pipimem.recall.pack import Item, block, pack
from pipimem.recall.router import Group, Route, route
from pipimem.recall.score import ONE_WORD, score, signals
from pipimem.text import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pipimem.index import Hit
    from pipimem.recall.offer import Skills

CANDIDATES = 16
"""Hits looked at for each query: eight give the same blocks on tests/golden/recall, the rest is for those refused."""
WISHES = frozenset(("preference", "convention", "correction", "constraint", "decision"))
"""The kinds that say how a task is wanted. Beside what a sentence found, its task adds those alone: clean 0.876 → 0.886
on the dev messages of tests/golden/recall, no hit lost."""
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
    way: Route, search: Callable[[str, int], list[Hit]], *, clock: Clock, threshold: float,
    user_allowed: Callable[[], bool], skills: Callable[[], Skills], given: Callable[[Hit], bool] = lambda hit: False,
    order: Callable[[list[Hit]], list[Hit]] | None = None, linked: Callable[[Sequence[Hit]], None] = lambda hits: None,
) -> Recall:  # fmt: skip
    """Runs the pipeline for a route. `search(query, limit)` gives candidates in scope; `skills` which of those may be
    offered, asked when one was found; `given` says of a passage whether this session has it already; `linked` sets the
    `graph` signal of what may be recalled; `order` may put that in a better order, before the budget decides.
    """
    trace: dict[str, Any] = {"router": {"fire": way.fire, "reason": way.reason, "layers": way.layers}}
    if not way.fire:
        return Recall(f"not needed: {way.reason}", trace)
    gate = Gate(clock=clock, threshold=threshold, user_allowed=user_allowed, skills=skills)
    passed, refused = _admitted(way, search, gate)
    refused += [(hit.ref, f"its purpose holds {why}") for hit in passed if (why := _offered(hit, gate))]
    passed = [hit for hit in passed if not hit.verdict]
    refused += [(hit.ref, "already-given") for hit in passed if given(hit)]
    passed = [hit for hit in passed if not given(hit)]
    newest = max((hit.date for hit in passed), default="")
    linked(passed)
    for hit in passed:
        hit.signals = signals(hit, newest)
        hit.score = score(hit.signals)
    passed.sort(key=lambda h: (-h.score, h.path, h.start))
    passed = order(passed) if order else passed
    items, left_out = pack(passed, way.budget)
    result = Recall(way.reason if items else _why_nothing(passed, refused), trace)
    result.items, result.text = items, block(items)
    result.tokens = tokens(result.text)
    result.omitted = [(hit.ref, reason) for hit, reason in left_out] + refused
    trace.update(
        asked=way.queries, queries=len(way.queries), candidates=len(passed) + len(refused), budget=way.budget,
        tokens=result.tokens,
        gate=[{"ref": ref, "reason": reason} for ref, reason in refused],
        scores=[{"ref": h.ref, "score": h.score, "signals": h.signals} for h in passed],
        packed=[i.hit.ref for i in items],
    )  # fmt: skip
    return result


def _offered(hit: Hit, gate: Gate) -> str:
    """Makes the hit of a skill name the whole skill; gives why it may not be offered after all."""
    if hit.layer == "skill":
        hit.verdict = gate.skills.offer(hit)
    return ", ".join(WITHHELD[v] for v in hit.verdict.split(",") if v)


def _why_nothing(passed: Sequence[Hit], refused: Sequence[tuple[str, str]]) -> str:
    if passed:
        return "nothing fits the budget"
    reasons = {reason for _, reason in refused if not reason.startswith(("evidence", "its match", "its one word"))}
    return (
        f"what was found may not be recalled: {'; '.join(sorted(reasons))}" if reasons else "nothing in memory matches"
    )


def _admitted(
    way: Route, search: Callable[[str, int], list[Hit]], gate: Gate
) -> tuple[list[Hit], list[tuple[str, str]]]:
    """What the queries find and the gate lets through, each passage once with its best evidence; and what it refused.

    The queries of one sentence are judged together and apart from all others, so that one more sentence in a message
    takes nothing away. What stands beside the question needs less evidence where the question itself finds nothing.
    """
    best: dict[tuple[str, int], Hit] = {}
    reasons: dict[tuple[str, int], tuple[str, str]] = {}
    for groups in ([g for g in way.groups if not g.aside], [g for g in way.groups if g.aside]):
        nothing = not best
        for group in groups:
            for hit, reason in _judged(group, search, gate, aside=group.aside and not nothing):
                key = _key(hit)
                if reason:
                    reasons.setdefault(key, (hit.ref, reason))
                elif key not in best or hit.signals["text"] > best[key].signals["text"]:
                    best[key] = hit
    return list(best.values()), [reason for key, reason in reasons.items() if key not in best]


def _judged(group: Group, search: Callable[[str, int], list[Hit]], gate: Gate, *, aside: bool) -> list[tuple[Hit, str]]:
    """What one sentence's queries find, with why it may not be recalled.

    How a named task is wanted counts however well the rest of the sentence matches something else; and where one word
    decided, or nothing was found, the sentence is asked in the other language, which then has to bring more.
    """
    asked = [*group.queries, *group.tasks]
    judged = gate.judge(_found(asked, search), asked, aside=aside)
    given = {hit.ref for hit, reason in judged if not reason}
    for task in group.tasks:
        wanted = gate.judge(_found([task], search), [task], aside=aside)
        if given.isdisjoint(hit.ref for hit, reason in wanted if not reason):
            judged += [(hit, reason or _no_wish(hit)) for hit, reason in wanted] if given else wanted
    best = max((hit.signals["evidence"] for hit, reason in judged if not reason), default=0.0)
    other = group.other if best < ONE_WORD else ""
    if other and (not given or " " in other):  # one word cannot be more than one word
        judged += gate.judge(_found([other], search), [other], aside=aside or bool(given))
    return judged


def _no_wish(hit: Hit) -> str:
    return "" if hit.kind in WISHES else "it does not say how the task is wanted"


def _found(group: Sequence[str], search: Callable[[str, int], list[Hit]]) -> list[Hit]:
    """The hits of a sentence's queries, each passage once with its best text, and each skill, unsafe when any found
    passage of it is; a query without words finds nothing.
    """
    found: dict[tuple[str, int], Hit] = {}
    for query in group:
        try:
            hits = search(query, CANDIDATES)
        except Usage:
            continue
        for hit in hits:
            key = _key(hit)
            other = found.get(key, hit)
            if other.signals["text"] <= hit.signals["text"]:
                found[key] = hit
            found[key].verdict = found[key].verdict or other.verdict or hit.verdict
    return list(found.values())


def _key(hit: Hit) -> tuple[str, int]:
    """What is recalled once: a passage, a skill."""
    return hit.path, 0 if hit.layer == "skill" else hit.start
