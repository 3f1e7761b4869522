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
from pipimem.transcript import Message, Transcript
from pipimem.update.plan import Applied

NAME, SHARED = "channels/ops/MEMORY.md", "MEMORY.md"
FILES = (NAME, SHARED, "STANDING.md", "channels/ops/HISTORY.md", "channels/ops/SESSION.md")
SAYINGS = ("the gate of bay {} is red", "第 {} 号窑在周四检修", "value {} is right", "把 {} 号样品放进柜子")
COMMANDS = ("add", "supersede", "invalidate", "forget", "promote", "pin", "learn")
ACTS = (*COMMANDS, "by hand", "by hand", "undo", "undo")


class Edits:
    """One workspace under random edits. `wrote` holds, for each entry's id, the commit that wrote its lines last."""

    def __init__(self, root: str, seed: int) -> None:
        self.chance = random.Random(seed)
        init(root, git=True)
        self.memory: Memory = pipimem.open(root)
        self.memory.add_channel("ops", kind="direct")
        self.memory.add("What everybody may know", target="memory")
        self.memory.pin("Be kind.")
        self.path = Path(root, NAME)
        self.wrote: dict[str, str] = {}
        self.runs: list[str] = []
        self.count = self.refused = 0
        self.changed: set[str] = set()

    def entries(self) -> list[markdown.Entry]:
        """The channel's entries that pipimem wrote, as the file has them now."""
        return [e for e in markdown.parse(self.path.read_bytes()).entries if e.id]

    def lines(self) -> dict[str, tuple[str, bytes]]:
        """In which file each entry stands, and its lines there, by its id."""
        found = {}
        for name in (NAME, SHARED):
            data = self.memory.workspace.read(name) or b""
            found.update({e.id: (name, data[e.start : e.end]) for e in markdown.parse(data).entries if e.id})
        return found

    def text(self) -> str:
        """Something nobody said before."""
        self.count += 1
        return self.chance.choice(SAYINGS).format(self.count)

    def step(self) -> str:
        """One random edit; what it was."""
        act = self.chance.choice((*ACTS, "add", "add", "add"))
        self.act(act)
        return act

    def act(self, name: str) -> str:
        """One edit of that kind, of some entry; its run, "" where there was nothing to do."""
        known = self.entries()
        if name == "by hand" and known:
            return self.by_hand(self.chance.choice(known))
        if name == "undo":
            return self.undo(self.chance.choice(self.runs)) if self.runs else ""
        return self.command(name, self.chance.choice(known).id if known else "")

    def command(self, name: str, ref: str) -> str:
        """One command upon an entry (none: something is added); its run."""
        before, memory = self.lines(), self.memory
        if name == "supersede" and ref:
            applied = memory.supersede(ref, self.text())
        elif name == "invalidate" and ref:
            applied = memory.invalidate(ref)
        elif name == "forget" and ref:
            applied = memory.forget(ref).applied
        elif name == "promote" and ref:
            applied = memory.promote(ref)
        elif name == "pin" and len(memory.pinned().entries) < 10:
            applied = memory.pin(self.text())
        elif name == "learn":
            self.count += 1
            said = f"We decided to ship crate {self.count} on Tuesdays."
            message = Message(f"jsonl:s{self.count}#1", "user", said, "Ines", "2026-06-01T09:00:00+02:00")
            applied = memory.apply(memory.propose("ops", Transcript("jsonl", f"s{self.count}", (message,))))
        else:
            applied = memory.add(self.text(), "ops")
        return self.note(applied, before)

    def note(self, applied: Applied, before: dict[str, tuple[str, bytes]]) -> str:
        """Remembers whose lines are whose after an edit."""
        if not applied.commit:  # it was so already
            return ""
        self.changed = {ref for ref, line in self.lines().items() if before.get(ref) != line}
        self.wrote.update(dict.fromkeys(self.changed, applied.commit))
        self.runs.append(applied.run)
        return applied.run

    def by_hand(self, entry: markdown.Entry) -> str:
        """A person rewrites one entry, adds a line or takes one out, and the next command commits that as theirs."""
        before, data = self.lines(), self.path.read_bytes()
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
        theirs = self.lines()
        run = self.note(self.memory.add(self.text(), "ops"), theirs)
        commit = self.memory.log("ops", limit=2)[1].sha
        self.wrote.update({ref: commit for ref, line in theirs.items() if before.get(ref) != line})
        return run

    def undo(self, run: str) -> str:
        """Takes a run back, where later edits allow it; entries it brings back are written by it."""
        before = self.lines()
        try:
            applied = self.memory.undo(run)
        except Refused:
            self.refused += 1
            return ""
        return self.note(applied, before)

    def there_and_back(self, count: int) -> list[str]:
        """Does `count` commands upon different entries, undoes them in any order; the files that are not as they were."""
        start = self.texts()
        refs = [e.id for e in self.chance.sample(self.entries(), min(count, len(self.entries())))]
        left = [run for ref in refs if (run := self.command(self.chance.choice(COMMANDS), ref))]
        self.chance.shuffle(left)
        while left:
            again = [run for run in left if not self.undo(run)]
            if again == left:
                break
            left = again
        now = self.texts()
        return [name for name in FILES if now[name] != start[name]]

    def wrong(self, sample: int = 0) -> list[str]:
        """The entries whose blame names another commit than the one that wrote them: of those the last edit touched and
        `sample` random ones (0: of all).
        """
        known = [ref for ref in self.lines() if ref in self.wrote]
        if sample:
            known = [r for r in known if r in self.changed] + self.chance.sample(known, min(sample, len(known)))
        return [ref for ref in known if (c := self.memory.blame(ref)[1]) is None or c.sha != self.wrote[ref]]

    def texts(self) -> dict[str, bytes | None]:
        """Every file as it is."""
        return {name: self.memory.workspace.read(name) for name in FILES}

    def committed(self) -> bool:
        """Whether git has the files' text."""
        repository = self.memory.commits.repository()
        return all(repository.head(name) == text for name, text in self.texts().items())


def undo_everything(edits: Edits, count: int) -> tuple[int, int, bool]:
    """Adds `count` entries, undoes them in random order: (undone, refused, whether the file is as it was, to the byte)."""
    start = edits.path.read_bytes()
    runs = [edits.memory.add(edits.text(), "ops").run for _ in range(count)]
    edits.chance.shuffle(runs)
    undone = sum(bool(edits.undo(run)) for run in runs)
    return undone, count - undone, edits.path.read_bytes() == start


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
