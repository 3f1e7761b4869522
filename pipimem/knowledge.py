"""What a note's front matter says of it as knowledge: typed, every key optional, nothing refused.

A value that cannot be used is left out and named in `problems`; one that is merely unknown is kept as it is written and
named there as well. Reading the YAML is front.py's; what becomes of it in the graph is index/links.py's.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from pipimem.text import one_line, printable, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TYPES = ("observation", "entity", "domain-summary")
ORIGINS = ("extracted", "agent-authored")
LAYERS = ("semantic", "temporal", "causal", "entity")
WEIGHT = 0.5
"""What a link weighs that does not say so: minimem's default."""

RELATION = 60
"""Characters of a relation."""

FAILURE = ("error", "fix", "tool", "file", "project")
"""The keys of a failure record, in front matter and in an entry's comment."""

KEYS = frozenset(
    "id type domain domains entities confidence source links created updated supersedes conflicts tags aliases".split()
).union(FAILURE)

Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Link:
    """One of the front matter's `links`: where it leads, what it means, and how much it weighs (0 to 1)."""

    target: str
    relation: str = "related-to"
    layer: str = "semantic"
    weight: float = WEIGHT


@dataclass(slots=True)
class Source:
    """Where a note comes from: how it came about, the sessions it rests on, the agent that wrote it."""

    origin: str = ""
    trajectories: tuple[str, ...] = ()
    agent: str = ""


@dataclass(slots=True)
class Knowledge:
    """A note's front matter, read. Lists hold each value once, in order; dates are as written, ISO where YAML read one.

    `failure` holds those of `FAILURE` that are given; `problems` are (key, what is wrong with its value).
    """

    id: str = ""
    type: str = ""
    domains: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    confidence: float = 1.0
    source: Source = field(default_factory=Source)
    links: tuple[Link, ...] = ()
    created: str = ""
    updated: str = ""
    supersedes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    failure: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read(values: Mapping[str, Any]) -> Knowledge | None:
    """The knowledge in a front matter's values, as `front.read_front` gives them; None without any of `KEYS`."""
    if KEYS.isdisjoint(values):
        return None
    found = Knowledge()
    reader = _Reader(values, found.problems)
    found.id = reader.text("id")
    found.type = reader.text("type", known=TYPES)
    found.domains = reader.texts("domain") + reader.texts("domains")
    found.entities = reader.texts("entities")
    found.confidence = reader.share("confidence", values.get("confidence"), 1.0)
    found.source = reader.source()
    found.links = tuple(reader.links())
    found.created, found.updated = reader.day("created"), reader.day("updated")
    found.supersedes, found.conflicts = reader.texts("supersedes"), reader.texts("conflicts")
    found.tags = tuple(dict.fromkeys(tag.lstrip("#") for tag in reader.texts("tags", parted=True)))
    found.aliases = reader.texts("aliases")
    found.failure = {key: said for key in FAILURE if (said := reader.texts(key))}
    return found


class _Reader:
    """Takes one value after another out of a front matter, and notes what is wrong."""

    def __init__(self, values: Mapping[str, Any], problems: list[Problem]) -> None:
        self.values = values
        self.problems = problems

    def text(self, key: str, known: Sequence[str] = ()) -> str:
        value = self.values.get(key)
        if value is None:
            return ""
        text = _plain(value)
        if not text:
            self.wrong(key, value, "is no text")
        elif known and text not in known:
            self.problems.append((key, f"the {key} '{printable(text)}' is unknown: {', '.join(known)}"))
        return text

    def texts(self, key: str, *, parted: bool = False) -> tuple[str, ...]:
        """A text or a list of texts; where `parted`, a text is a list with commas."""
        value = self.values.get(key)
        if value is None:
            return ()
        if parted and isinstance(value, str):
            value = value.split(",")
        items = value if isinstance(value, list) else [value]
        found = [text for item in items if (text := _plain(item))]
        if len(found) < sum(item is not None and item != "" for item in items):
            self.wrong(key, next(item for item in items if not _plain(item)), "is no text")
        return tuple(dict.fromkeys(found))

    def share(self, key: str, value: Any, otherwise: float) -> float:
        """A number from 0 to 1, in quotation marks too."""
        if value is None:
            return otherwise
        with suppress(ValueError):
            value = float(value) if isinstance(value, str) else value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        self.wrong(key, value, "is no number from 0 to 1")
        return otherwise

    def day(self, key: str) -> str:
        text = self.text(key)
        try:
            date.fromisoformat(text[:10] or "2026-01-01")
        except ValueError:
            self.wrong(key, text, "is no day such as 2026-03-14")
        return text

    def source(self) -> Source:
        value = self.values.get("source")
        if isinstance(value, str):
            return Source(origin=one_line(value))
        if not isinstance(value, dict):
            if value is not None:
                self.wrong("source", value, "is no mapping with origin, trajectories and agentId")
            return Source()
        inner = _Reader({str(k): v for k, v in value.items()}, self.problems)
        return Source(
            inner.text("origin", known=ORIGINS), inner.texts("trajectories"), inner.text("agentId")
        )  # fmt: skip

    def links(self) -> Iterator[Link]:
        value = self.values.get("links")
        for item in value if isinstance(value, list) else [] if value is None else [value]:
            if isinstance(item, str) and item.strip():
                yield Link(_plain(item))
                continue
            inner = {str(k): v for k, v in item.items()} if isinstance(item, dict) else {}
            target = _plain(inner.get("target"))
            if not target:
                self.wrong("links", item, "has no target")
                continue
            layer = _plain(inner.get("layer")) or "semantic"
            if layer not in LAYERS:
                self.problems.append(("links", f"the layer '{printable(layer)}' is unknown: {', '.join(LAYERS)}"))
            relation = _plain(inner.get("relation"))[:RELATION] or "related-to"
            yield Link(target, relation, layer, self.share("links", inner.get("weight"), WEIGHT))

    def wrong(self, key: str, value: Any, why: str) -> None:
        self.problems.append((key, f"'{key}: {printable(one_line(str(value)), 60)}' {why}"))


def _plain(value: Any) -> str:
    """A scalar as one line of text, "" for anything else. `[[x]]` is YAML for a list in a list: it is taken for `x`."""
    if isinstance(value, str):
        return scrub(one_line(value)).removeprefix("[[").removesuffix("]]").strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    nested = value
    while isinstance(nested, list) and len(nested) == 1:
        nested = nested[0]
    return _plain(nested) if isinstance(value, list) and isinstance(nested, str) else ""
