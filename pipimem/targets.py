"""What the words of a search filter mean: targets and categories → channels, layers and kinds of a scope.

A filter only ever narrows: what a scope does not hold, no filter brings in.
"""

from __future__ import annotations

from pipimem.errors import Usage
from pipimem.index import Scope
from pipimem.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TARGETS = ("user", "memory", "project", "failure")
CATEGORIES = ("failure", "correction", "insight", "preference", "convention", "tool-quirk")
FAILURES = tuple(c for c in CATEGORIES if c != "preference")


def narrowed(
    scope: Scope, projects: Mapping[str, str], target: str = "", project: str = "", category: str = ""
) -> Scope:
    """`scope` cut down to a target, a project (`projects` maps channel ids to names) and a category.

    Targets: user = USER.md; memory = the shared MEMORY.md and notes; project = channels mapped to a project;
    failure = the failure kinds. Raises `Usage` for a word nobody knows.
    """
    for word, known in ((target, TARGETS), (category, CATEGORIES)):
        if word and word not in known:
            raise Usage(f"The filter '{printable(word)}' is unknown.", f"One of: {', '.join(known)}.")
    channels: Sequence[str] | None = scope.channels
    shared = scope.shared
    layers, kinds = scope.layers, scope.kinds
    if project or target == "project":
        mapped = [c for c, name in projects.items() if name and project in ("", name)]
        channels, shared = [c for c in mapped if channels is None or c in channels], False
    if target == "memory":
        channels, layers = [], _within(layers, ("memory", "note"))
    if target == "user":
        layers = _within(layers, ("user",))
    if target == "failure":
        kinds = _within(kinds, FAILURES)
    if category:
        kinds = _within(kinds, (category,))
    return Scope(
        channels, shared=shared, layers=layers, kinds=kinds, min_confidence=scope.min_confidence, types=scope.types,
        domains=scope.domains, entities=scope.entities,
    )  # fmt: skip


def _within(had: Sequence[str], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Both filters at once; a word that nothing has where they exclude each other."""
    return tuple(w for w in wanted if not had or w in had) or ("-",)
