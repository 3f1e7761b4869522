"""The order of what passed the gate: a sum of named signals, each one function and one weight.

The text signal is BM25 (0 to about 40); the others break ties between passages of like evidence. Weights follow
design §5: SESSION over MEMORY over notes over HISTORY, corrections first, newer before older.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.index import Hit

PRECEDENCE = {"session": 1.0, "memory": 0.8, "user": 0.6, "skill": 0.4, "note": 0.4, "history": 0.2}
KINDS = {"correction": 1.0, "failure": 0.6, "tool-quirk": 0.6, "convention": 0.5, "decision": 0.5, "constraint": 0.5,
         "preference": 0.4, "insight": 0.4}  # fmt: skip
WEIGHTS = {"text": 1.0, "evidence": 0.5, "precedence": 1.0, "kind": 0.5, "recency": 0.5, "confidence": 0.5}


def signals(hit: Hit, today: str) -> dict[str, float]:
    """Every signal's value for one hit; the score is their weighted sum."""
    return {
        "text": hit.signals["text"],
        "evidence": hit.signals["evidence"],
        "precedence": PRECEDENCE.get(hit.layer, 0.0),
        "kind": KINDS.get(hit.kind, 0.2),
        "recency": recency(hit.date, today),
        "confidence": hit.conf if hit.entry else 0.5,
    }


def score(values: dict[str, float]) -> float:
    """The weighted sum, rounded so that the order is the same on every machine."""
    return round(sum(WEIGHTS[name] * value for name, value in values.items()), 4)


def recency(day: str, today: str) -> float:
    """1 for today, a half after 30 days, 0 for a passage without a date (ISO days; the half-life peers use)."""
    if not day:
        return 0.0
    age = max(0, _ordinal(today) - _ordinal(day))
    return float(0.5 ** (age / 30))


def _ordinal(day: str) -> int:
    """Days since an arbitrary start, near enough for a half-life: months count 30.44 days."""
    try:
        year, month, dayofmonth = (int(part) for part in day[:10].split("-"))
    except ValueError:
        return 0
    return int(year * 365.25 + month * 30.44 + dayofmonth)
