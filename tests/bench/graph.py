"""A graph of a million links from real files: building it, neighbours, paths, hubs, disk.

    python -m tests.bench.graph [--notes 20000] [--links 50] [--asked 1000] [--at DIR] [--keep-index]

Each note links to others, half of them near it and half anywhere, and one link in ten goes to one of ten hubs (10,000
links each at the default size), Chinese names among them; there are cycles, self-links and links to notes that are not there.
Times are CPU of one process, in one opened workspace; the look at the files is beside the questions, not inside.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import pipimem
from pipimem import Memory
from tests.bench.scale import line_of, peak, size_of

HUBS = [f"枢纽-{n}" if n % 2 else f"hub-{n}" for n in range(10)]


def made(root: Path, notes: int, links: int) -> None:
    """Writes the notes, unless they are there."""
    (root / "pipimem.toml").touch()
    if (root / "memory").exists():
        return
    chance = random.Random(7)
    for number in range(notes):
        folder = root / "memory" / f"{number // 500:03}"
        folder.mkdir(parents=True, exist_ok=True)
        targets = [_target(chance, number, notes) for _ in range(links)]
        lines = "".join(
            f"见 [[{one}]] and [[{other}]].\n" for one, other in zip(targets[::2], targets[1::2], strict=True)
        )
        (folder / f"note-{number}.md").write_text(f"# Note {number}\n\n{lines}", encoding="utf-8")


def _target(chance: random.Random, number: int, notes: int) -> str:
    roll = chance.random()
    if roll < 0.1:
        return chance.choice(HUBS)
    if roll < 0.12:
        return f"missing-{chance.randrange(notes)}"
    if roll < 0.13:
        return f"note-{number}"
    near = roll < 0.56
    return f"note-{(number + chance.randrange(1, 200)) % notes if near else chance.randrange(notes)}"


def build(root: Path) -> None:
    """Builds the index from nothing and prints what it took."""
    started = time.process_time()
    with pipimem.open(str(root)) as memory:
        found = memory.index(rebuild=True)
        took = time.process_time() - started
        began = time.process_time()
        state = memory.graph_status()
        counted = time.process_time() - began
    print(
        f"{state['nodes']:,} nodes and {state['edges']:,} links from {len(found.added):,} notes: {took:.1f} s CPU,"
        f" peak {peak():.0f} MB, index {size_of(root / '.pipimem'):.0f} MB for {size_of(root / 'memory'):.0f} MB of text;"
        f" status {counted:.2f} s",
        flush=True,
    )


def ask(memory: Memory, notes: int, asked: int) -> None:
    """Prints what neighbours and paths cost."""
    chance = random.Random(11)
    memory.graph_neighbors("note-0")
    memory.passages.holds = lambda since: True
    names = [f"note-{chance.randrange(notes)}" for _ in range(asked)]
    for depth in (1, 2, 3):
        print(line_of(f"neighbours to depth {depth}", [timed(memory, n, depth) for n in names]))
    print(line_of("neighbours of a hub to depth 2", [timed(memory, h, 2) for h in HUBS * 5]))
    times, lengths = [], []
    for one, other in zip(names[::2], names[1::2], strict=False):
        began = time.process_time()
        lengths.append(len(memory.graph_path(one, other).nodes))
        times.append((time.process_time() - began) * 1000)
    print(line_of("path between two notes", times), f"({min(lengths)} to {max(lengths)} nodes)")
    before = time.process_time()
    drawn, _ = memory.graph_export("dot")
    print(f"export of the first 1,000 links: {time.process_time() - before:.2f} s CPU, {len(drawn) / 1000:.0f} kB")


def timed(memory: Memory, name: str, depth: int) -> float:
    """Milliseconds of one question."""
    began = time.process_time()
    memory.graph_neighbors(name, depth=depth)
    return (time.process_time() - began) * 1000


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--notes", type=int, default=20_000)
    parser.add_argument("--links", type=int, default=50)
    parser.add_argument("--asked", type=int, default=1000)
    parser.add_argument("--at", type=Path)
    parser.add_argument("--keep-index", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = options.at or Path(scratch)
        made(root, options.notes, options.links)
        if not options.keep_index:
            build(root)
        with pipimem.open(str(root)) as memory:
            ask(memory, options.notes, options.asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
