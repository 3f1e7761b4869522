"""How well an updater reads the labelled windows. `python -m tests.golden.update.measure [dev|held] [--pipeline]`
prints a table by language and kind, and what was written falsely; with `--missed` also what was not found.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date

from pipimem import update
from pipimem.text import encode
from pipimem.update import offline
from tests.golden.update import Label, Window, load
from tests.golden.update.match import says


@dataclass(frozen=True)
class Wrote:
    """One thing an updater wants: op (add, forget), text, the entry it replaces, its kind; held back or not."""

    op: str
    text: str
    target: str = ""
    kind: str = ""
    held: bool = False


Reader = Callable[[Window], list[Wrote]]


@dataclass
class Score:
    """Counts over windows: `true` of `wrote` entries say a label; `found` of `labels` were said by the right op."""

    windows: int = 0
    wrote: int = 0
    true: int = 0
    labels: int = 0
    found: int = 0
    kinds: int = 0
    targets: int = 0
    targets_found: int = 0
    held: int = 0
    held_found: int = 0
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    by_kind: dict[str, list[int]] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """The share of what was written that a label says; 1 where nothing was written."""
        return self.true / self.wrote if self.wrote else 1.0

    @property
    def recall(self) -> float:
        """The share of labels (add, supersede, forget) that were found."""
        return self.found / self.labels if self.labels else 1.0


def read_offline(window: Window) -> list[Wrote]:
    """What the offline rules read in a window."""
    found = offline.read(window.messages, window.entries, group=window.kind == "group")
    wrote = [Wrote("add", f.text, f.target, f.kind, bool(f.hold)) for f in found.memory]
    return wrote + [Wrote("forget", f.text, f.target, held=bool(f.hold)) for f in found.forget]


def read_pipeline(window: Window) -> list[Wrote]:
    """What `update.propose`, as it is wired now, makes of a window."""
    plan = update.propose(window.transcript, _setting(window))
    ops = [(op, False) for op in plan.ops if op.path == "c/MEMORY.md"]
    ops += [(o.op, o.op.op != "forget") for o in plan.proposed if o.op.path == "c/MEMORY.md"]
    return [
        Wrote(
            "forget" if op.op == "forget" else "add",
            op.text,
            op.target or op.facts.get("supersedes", ""),
            op.kind,
            held,
        )
        for op, held in ops
    ]


def _setting(window: Window) -> update.Setting:
    files = {"c/MEMORY.md": encode(window.memory or "# Channel Memory\n")}
    language = "en" if window.lang == "en" else "zh"
    return update.Setting(
        channel=window.id, kind=window.kind, folder="c", language=language, run="r-20261130-abcdef",
        today=date(2026, 11, 30), read=files.get, taken=lambda _: False,
    )  # fmt: skip


def measure(windows: Iterable[Window], read: Reader) -> Score:
    """The score of `read` over `windows`."""
    score = Score()
    for window in windows:
        _count(window, read(window), score)
    return score


def _count(window: Window, wrote: list[Wrote], score: Score) -> None:
    score.windows += 1
    open_labels = [*window.add, *window.supersede]
    for thing in (w for w in wrote if w.op == "add" and not w.held):
        score.wrote += 1
        said = _said(thing, open_labels)
        wrong = bool(thing.target) and thing.target not in {label.target for label in said}
        if not said or wrong:
            score.false.append(f"{window.id}: {thing.text!r} [{thing.kind}] {_why(window, thing, wrong=wrong)}")
            continue
        score.true += 1
        for label in said:
            open_labels.remove(label)
            if label.target and label.target != thing.target:
                score.missed.append(f"{window.id}: target {label.target} of {label.text!r}")
                continue
            score.targets_found += bool(label.target)
            _found(label, score)
            score.kinds += label.kind == thing.kind
    for label in open_labels:
        _missed(window, label, score)
    score.targets += len(window.supersede)
    score.labels += len(window.add) + len(window.supersede) + len(window.forget)
    _count_forgets(window, [w for w in wrote if w.op == "forget"], score)
    _count_held(window, [w for w in wrote if w.held], score)


def _found(label: Label, score: Score) -> None:
    score.found += 1
    score.by_kind.setdefault(label.kind or "forget", [0, 0])[0] += 1
    score.by_kind[label.kind or "forget"][1] += 1


def _missed(window: Window, label: Label, score: Score) -> None:
    score.missed.append(f"{window.id}: {label.text!r} [{label.kind or 'forget'}]")
    score.by_kind.setdefault(label.kind or "forget", [0, 0])[1] += 1


def _said(thing: Wrote, labels: list[Label]) -> list[Label]:
    """The label a text says, or the two neighbours (a cause and its fix) it says both; [] for none."""
    failures = [label for label in labels if label.kind == "failure"]
    for one, two in itertools.pairwise(failures):
        if says(thing.text, f"{one.text} {two.text}"):
            return [one, two]
    return next(([label] for label in labels if says(thing.text, label.text)), [])


def _why(window: Window, thing: Wrote, *, wrong: bool) -> str:
    if wrong:
        return f"replaces {thing.target}"
    return next((f"({x.why})" for x in window.never + window.propose if says(thing.text, x.text)), "")


def _count_forgets(window: Window, wrote: list[Wrote], score: Score) -> None:
    labels = list(window.forget)
    for thing in wrote:
        score.wrote += 1
        label = next(
            (x for x in labels if thing.target == x.target or (not thing.target and says(thing.text, x.text))), None
        )
        if label is None:
            score.false.append(f"{window.id}: forget {thing.text!r} {thing.target}")
            continue
        score.true += 1
        labels.remove(label)
        _found(label, score)
    for label in labels:
        _missed(window, label, score)


def _count_held(window: Window, wrote: list[Wrote], score: Score) -> None:
    score.held += len(window.propose)
    score.held_found += sum(any(says(thing.text, label.text) for thing in wrote) for label in window.propose)


def table(windows: list[Window], read: Reader) -> str:
    """Precision and recall by half and language, recall by kind, as a Markdown table."""
    lines = [
        "| half | lang | windows | precision | recall | same kind | targets | held |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for half in ("dev", "held"):
        for lang in ("zh", "en", "mixed", "all"):
            s = measure([w for w in windows if w.split == half and lang in (w.lang, "all")], read)
            lines.append(
                f"| {half} | {lang} | {s.windows} | {s.true}/{s.wrote} = {s.precision:.3f} | {s.found}/{s.labels} = {s.recall:.3f} "
                f"| {s.kinds}/{s.found} | {s.targets_found}/{s.targets} | {s.held_found}/{s.held} |"
            )  # fmt: skip
    lines += ["", "| half | kind | recall |", "|---|---|---|"]
    for half in ("dev", "held"):
        score = measure([w for w in windows if w.split == half], read)
        lines += [f"| {half} | {kind} | {a}/{b} |" for kind, (a, b) in sorted(score.by_kind.items())]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the table, and the false entries of the halves named (dev unless told)."""
    read = read_pipeline if "--pipeline" in arguments else read_offline
    windows = load()
    print(table(windows, read))
    for half in [a for a in arguments if a in ("dev", "held")] or ["dev"]:
        score = measure([w for w in windows if w.split == half], read)
        print(f"\nfalse in {half}:", *score.false, sep="\n  ")
        if "--missed" in arguments:
            print(f"\nmissed in {half}:", *score.missed, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
