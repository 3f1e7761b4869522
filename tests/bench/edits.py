"""Random edits by a person, by commands and by undo, over one file with real git: does blame stay right, and undo exact?

    python tests/bench/edits.py [--edits 1000] [--seed 7]

After every edit each entry's blame must name the commit that wrote it last, and git's text must be the file's. At the
end every run is undone in random order: what no later edit touched must come back byte for byte. Exits 1 otherwise.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import pipimem
from pipimem import markdown
from pipimem.errors import Refused
from pipimem.memory import Memory, init

NAME = "channels/ops/MEMORY.md"
SAYINGS = ("the gate of bay {} is red", "第 {} 号窑在周四检修", "value {} is right", "把 {} 号样品放进柜子")


class Edits:
    """One workspace under random edits. `wrote` holds, for each entry's id, the commit that wrote it last."""

    def __init__(self, root: str, seed: int) -> None:
        self.chance = random.Random(seed)
        init(root, git=True)
        self.memory: Memory = pipimem.open(root)
        self.memory.add_channel("ops")
        self.path = Path(root, NAME)
        self.wrote: dict[str, str] = {}
        self.runs: list[str] = []
        self.count = self.refused = 0

    def entries(self) -> list[markdown.Entry]:
        """The entries pipimem wrote, as the file has them now."""
        return [e for e in markdown.parse(self.path.read_bytes()).entries if e.id]

    def text(self) -> str:
        """Something nobody said before."""
        self.count += 1
        return self.chance.choice(SAYINGS).format(self.count)

    def step(self) -> str:
        """One random edit; what it was."""
        known = self.entries()
        act = self.chance.choice(["add", "add", "add", "by hand", "by hand", "supersede", "forget", "undo"])
        if act == "add" or not known:
            applied = self.memory.add(self.text(), "ops")
            self.wrote[applied.plan.ops[0].id] = applied.commit
            self.runs.append(applied.run)
        elif act == "supersede":
            applied = self.memory.supersede(self.chance.choice(known).id, self.text())
            self.wrote[applied.plan.ops[0].id] = applied.commit
            self.runs.append(applied.run)
        elif act == "forget":
            applied = self.memory.forget(self.chance.choice(known).id).applied
            self.runs.append(applied.run)
        elif act == "by hand":
            self.by_hand(self.chance.choice(known))
        elif self.runs:
            self.undo(self.chance.choice(self.runs))
        return act

    def by_hand(self, entry: markdown.Entry) -> None:
        """A person rewrites one entry, adds a line or takes one out, and the next command commits that as theirs."""
        data = self.path.read_bytes()
        how = self.chance.choice(["change", "line", "drop"])
        if how == "change":
            old = data[entry.start : entry.end]
            new = old.replace(entry.text.encode(), self.text().encode())
            data = data[: entry.start] + new + data[entry.end :]
        elif how == "line":
            data = data[: entry.end] + f"- {self.text()}，手写\n".encode() + data[entry.end :]
        else:
            data = data[: entry.start] + data[entry.end :]
        self.path.write_bytes(data)
        applied = self.memory.add(self.text(), "ops")
        self.wrote[applied.plan.ops[0].id] = applied.commit
        if how == "change":
            self.wrote[entry.id] = self.memory.log("ops", limit=2)[1].sha
        self.runs.append(applied.run)

    def undo(self, run: str) -> None:
        """Takes a run back, where later edits allow it; entries it brings back are written by it."""
        before = {e.id: e.text for e in self.entries()}
        try:
            applied = self.memory.undo(run)
        except Refused:
            self.refused += 1
            return
        self.runs.append(applied.run)
        for entry in self.entries():
            if before.get(entry.id) != entry.text:
                self.wrote[entry.id] = applied.commit

    def wrong(self, sample: int = 0) -> list[str]:
        """The entries whose blame names another commit than the one that wrote them (of `sample` random ones; 0: all)."""
        known = self.entries()
        chosen = self.chance.sample(known, min(sample, len(known))) if sample else known
        found = []
        for entry in chosen:
            _, commit, _ = self.memory.blame(entry.id)
            if commit is None or commit.sha != self.wrote[entry.id]:
                found.append(entry.id)
        return found

    def committed(self) -> bool:
        """Whether git has the file's text."""
        return self.memory.commits.repository().head(NAME) == self.path.read_bytes()


def undo_everything(edits: Edits, count: int) -> tuple[int, int, bool]:
    """Adds `count` entries, undoes them in random order: (undone, refused, whether the file is as it was, to the byte)."""
    start = edits.path.read_bytes()
    runs = [edits.memory.add(edits.text(), "ops").run for _ in range(count)]
    edits.chance.shuffle(runs)
    undone = refused = 0
    for run in runs:
        try:
            edits.memory.undo(run)
            undone += 1
        except Refused:
            refused += 1
    return undone, refused, edits.path.read_bytes() == start


def main() -> int:
    """Runs the edits and prints what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    began, bad, acts = time.monotonic(), 0, dict[str, int]()
    with tempfile.TemporaryDirectory() as root:
        edits = Edits(root, options.seed)
        for number in range(options.edits):
            act = edits.step()
            acts[act] = acts.get(act, 0) + 1
            bad += len(edits.wrong(sample=0 if number % 100 == 99 else 2)) + (not edits.committed())
        undone, refused, same = undo_everything(edits, 100)
        edits.memory.close()
    print(
        f"{options.edits} edits ({', '.join(f'{n} {a}' for a, n in sorted(acts.items()))}), {edits.refused} undos refused"
    )
    print(f"{bad} wrong blames or uncommitted texts")
    print(
        f"100 additions undone in random order: {undone} undone, {refused} refused, {'the same bytes' if same else 'OTHER bytes'}"
    )
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(bad or not same))


if __name__ == "__main__":
    sys.exit(main())
