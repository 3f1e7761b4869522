"""Every weight and threshold of recall, with its reason and what it was measured on; the signals they weigh.

The order of what passed the gate is a sum of named signals. Text is BM25 (0 to about 40); the others break ties between
passages of like evidence. They follow design §5: SESSION over MEMORY over notes over HISTORY, corrections first, newer
before older.
"""

from __future__ import annotations

from itertools import pairwise

from pipimem.index.words import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.index import Hit

PRECEDENCE = {"session": 1.0, "memory": 0.8, "user": 0.6, "skill": 0.4, "note": 0.4, "history": 0.2}
KINDS = {"correction": 1.0, "failure": 0.6, "tool-quirk": 0.6, "convention": 0.5, "decision": 0.5, "constraint": 0.5,
         "preference": 0.4, "insight": 0.4}  # fmt: skip
WEIGHTS = {"text": 1.0, "evidence": 0.5, "precedence": 1.0, "kind": 0.5, "recency": 0.5, "confidence": 0.5,
           "graph": 0.2}  # fmt: skip
"""`graph` breaks ties only: no value from 0.1 to 2 changed any block of the sample workspace's 152 questions."""

# What is admitted. Measured on the messages of tests/golden/recall that need memory: "hit" are blocks that hold the
# labelled entry, "clean" those that hold nothing irrelevant. None is tuned to the third digit: BM25 may change under
# them.
LEAST_CONFIDENCE = 0.6
"""Design §5: what is less sure than that is searched, never recalled."""
EXTRA = 1.0
"""Evidence of two Chinese characters in a row that question and passage share (names the dictionary does not know), and
of a short name in capitals (DNS, VPN). Without it hit 0.933, with it 0.946."""
NEAR, TEXT_SHARE = 0.75, 0.5
"""A passage stays when its match is at least 0.75 of the best one's; half of a match is text (rare words, BM25), half
evidence. 0.65 to 0.8 change hit and clean by one in a hundred; text alone keeps what shares a rare chance word,
evidence alone what shares a common one."""
OWN, STILL_OWN = frozenset(("session", "memory", "user")), 0.5
"""The layers that say what holds. Their best passage stays beside a better match in HISTORY or a note, which tells the
same at more length, as long as it has half of that match."""
FAINT = 0.4
"""Below this share of the best text and of the best evidence a passage is not looked into: it could not come near."""
ONE_WORD, MANY, MOST = 4.5, 2, 3
"""Below this evidence one word decided. Then at most three passages are kept (with two, hit was 0.917 and clean 0.887;
with three, 0.925 and 0.883); and where more than two share the word, only the best of them, for the word does not tell
them apart: clean 0.89 → 0.92 for one hit in a hundred."""
ASIDE = 4.5
"""What a sentence beside the question must bring: two words, not one."""
ALIKE = 0.85
"""Two passages that share so much of their words say the same; the one that comes first is kept."""
EDGES = "\"'`“”()[],.;:!?，。；：！？（）/"
HAN = "\u2e80"
PARTED = dict.fromkeys(map(ord, "\t\n\r!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~"), " ")
LINKS = frozenset("的了是在吗呢么着过得和与就都也做有不我你他她它")


def signals(hit: Hit, newest: str) -> dict[str, float]:
    """Every signal's value for one hit; the score is their weighted sum.

    Recency is counted from the `newest` passage found, not from today: the same memory gives the same order.
    """
    return {
        "text": hit.signals["text"],
        "evidence": hit.signals["evidence"],
        "precedence": PRECEDENCE.get(hit.layer, 0.0),
        "kind": KINDS.get(hit.kind, 0.2),
        "recency": recency(hit.date, newest),
        "confidence": hit.conf if hit.entry else 0.5,
        "graph": nearness(hit),
    }


def score(values: dict[str, float]) -> float:
    """The weighted sum, rounded so that the order is the same on every machine."""
    return round(sum(WEIGHTS[name] * value for name, value in values.items()), 4)


def nearness(hit: Hit) -> float:
    """How near the passage is, in the graph, to a thing the message names: 1 by its own link, 0.5 by its document's."""
    return min(1.0, hit.signals.get("graph", 0.0))


def recency(day: str, newest: str) -> float:
    """1 for the newest day, a half 30 days before it (the half-life peers use), 0 without a date. Days are ISO."""
    if not day:
        return 0.0
    age = max(0, _ordinal(newest) - _ordinal(day))
    return float(0.5 ** (age / 30))


def _ordinal(day: str) -> int:
    """Days since an arbitrary start, near enough for a half-life: months count 30.44 days."""
    try:
        year, month, dayofmonth = (int(part) for part in day[:10].split("-"))
    except ValueError:
        return 0
    return int(year * 365.25 + month * 30.44 + dayofmonth)


def units(text: str) -> frozenset[str]:
    """What of a query is looked for in a passage: stems of Latin words, pairs of neighbouring Chinese characters."""
    folded = fold(text)
    latin = folded if folded.isascii() else "".join(c if c < HAN else " " for c in folded)
    words = (word for word in latin.translate(PARTED).split() if len(word) > 2)
    return pairs(folded) | {word[: max(4, len(word) - 3)] for word in words}


def pairs(folded: str) -> frozenset[str]:
    """Every two neighbouring Chinese characters, those with a particle left out."""
    if folded.isascii():
        return frozenset()
    return frozenset(a + b for a, b in pairwise(folded) if _telling(a) and _telling(b))


def _telling(char: str) -> bool:
    return "\u3400" <= char <= "\u9fff" and char not in LINKS


def initials(text: str) -> frozenset[str]:
    """The words of two to four letters in `text`, in capitals: what might be DNS or VPN."""
    words = (word.strip(EDGES) for word in text.split())
    return frozenset(word.upper() for word in words if 2 <= len(word) <= 4 and word.isascii() and word.isalpha())


class Match:
    """What a hit shares with a query: `held` units in its headings and text, `titled` those that only its document's
    title has, `extra` evidence for pairs of Chinese characters and for names in capitals.
    """

    __slots__ = ("extra", "held", "titled")

    def __init__(self, asked: frozenset[str], names: frozenset[str], hit: Hit) -> None:
        inner = " ".join([*hit.heading[1:], hit.text])
        text, title = fold(inner), fold(hit.heading[0]) if hit.heading else ""
        self.held = frozenset(unit for unit in asked if _begins(unit, text))
        self.titled = frozenset(unit for unit in asked - self.held if _begins(unit, title))
        capitals = names.intersection(word.strip(EDGES) for word in inner.split()) if names else ()
        self.extra = EXTRA * (sum(not unit.isascii() for unit in self.held) + len(capitals))


def _begins(unit: str, text: str) -> bool:
    """Whether `unit` stands in `text`, a Latin one at the beginning of a word."""
    at = text.find(unit)
    while at > 0 and unit.isascii() and text[at - 1].isalnum() and text[at - 1] < HAN:
        at = text.find(unit, at + 1)
    return at >= 0
