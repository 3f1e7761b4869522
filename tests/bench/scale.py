"""A mixed Chinese and English workspace of any size: building, asking, one changed file, and whether needles are found.

    python -m tests.bench.scale [SIZE] [--bench DIR] [--at DIR] [--keep-index] [--asked 1000]

Makes SIZE sections (default 100,000) with `make_scale.py` of `DIR` (default: `shared/bench` beside the checkout;
without it the run says so and ends) under `--at`, or takes what is there. Times are CPU of one process; the look at
the files' stamps is shown beside the searches, not inside.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pipimem
from pipimem import Memory
from tests.bench.sets import BENCH, Places

LATER = "\n## 2026-11-30 23:59 later\n\nThe zqxlater lantern was moved to shelf 31541. 灯笼移到了新架子。\n"


def peak() -> float:
    """The most memory this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def size_of(folder: Path) -> float:
    """All bytes under a folder in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def made(bench: Path, size: int, root: Path) -> None:
    """Makes the corpus at `root` unless it is there."""
    if not (root / "queries.jsonl").exists():
        make = [sys.executable, str(bench / "make_scale.py"), str(size), str(root), "--no-sections"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    (root / "pipimem.toml").touch()


def build(root: Path) -> None:
    """Builds the index from nothing and prints what it took."""
    shutil.rmtree(root / ".pipimem", ignore_errors=True)
    started = time.process_time()
    with pipimem.open(str(root)) as memory:
        found = memory.index()
    text, index = size_of(root / "channels"), size_of(root / ".pipimem")
    print(
        f"index of {found.passages:,} passages: {time.process_time() - started:.1f} s CPU, peak {peak():.0f} MB; "
        f"{index:.0f} MB for {text:.0f} MB of text ({index / text:.1f} times)",
        flush=True,
    )


def ask(memory: Memory, questions: list[tuple[str, str | None]]) -> tuple[list[float], list[list[tuple[str, int]]]]:
    """CPU milliseconds and places of the answers to each question in its channel (None: everywhere)."""
    times, found = [], []
    for text, channel in questions:
        started = time.process_time()
        hits = memory.search(text, channel, all_channels=channel is None)
        times.append((time.process_time() - started) * 1000)
        found.append([(hit.path, hit.line) for hit in hits])
    return times, found


def line_of(name: str, times: list[float]) -> str:
    """p50, p95 and p99 of some times."""
    ordered = sorted(times)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95, 0.99)]
    return f"{name}: p50 {at[0]:.1f}, p95 {at[1]:.1f}, p99 {at[2]:.1f}, most {ordered[-1]:.1f} ms CPU"


def found_share(queries: list[dict[str, object]], places: Places, found: list[list[tuple[str, int]]]) -> None:
    """Prints R@1 and R@10 of the needles by language."""
    for language in ("zh", "en"):
        first = ten = count = 0
        for query, hits in zip(queries, found, strict=True):
            if query["lang"] == language:
                wanted = set(query["relevant"])  # type: ignore[call-overload]
                ids = [places.section(path, line) for path, line in hits]
                count, first, ten = count + 1, first + bool(wanted & set(ids[:1])), ten + bool(wanted & set(ids))
        if count:
            print(f"needles {language}: R@1 {first / count:.3f}, R@10 {ten / count:.3f} of {count}")


def change(root: Path, memory: Memory) -> None:
    """One file changes: how long until it is found in its channel, and everywhere."""
    path = max((root / "channels").glob("*/memory/*.md"))
    channel = next(c.id for c in memory.workspace.channels() if path.is_relative_to(root / c.path))
    before = path.read_bytes()
    for name, where in (("in its channel", channel), ("everywhere", None)):
        path.write_bytes(before + LATER.encode())
        memory.passages._looks.clear()
        started = time.process_time()
        hits = memory.search("zqxlater lantern", where, all_channels=where is None, limit=3)
        seen = any("zqxlater" in hit.text for hit in hits)
        print(f"one changed file seen {name}: {seen}, {time.process_time() - started:.3f} s CPU")
        path.write_bytes(before)
        memory.passages._looks.clear()
        memory.search("lantern", where, all_channels=where is None, limit=1)


def main() -> int:
    """Prints the figures; 0 also when the generator is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("size", nargs="?", type=int, default=100_000)
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--at", type=Path)
    parser.add_argument("--keep-index", action="store_true")
    parser.add_argument("--asked", type=int, default=1000)
    options = parser.parse_args()
    if not (options.bench / "make_scale.py").exists():
        print(f"skipped: the generator is not in '{options.bench}'")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        root = options.at or Path(scratch, "scale")
        made(options.bench, options.size, root)
        if not options.keep_index:
            build(root)
        measure(root, options.asked)
    return 0


def measure(root: Path, asked: int) -> None:
    """Prints what asking costs and finds."""
    lines = (root / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    queries = queries[:: max(1, len(queries) // asked)]
    with pipimem.open(str(root)) as memory:
        started = time.process_time()
        memory.search("lantern", all_channels=True)
        print(f"first look at all files, and one search: {time.process_time() - started:.2f} s CPU")
        _trust(memory)
        times, found = ask(memory, [(query["query"], None) for query in queries])
        print(line_of("everything", times))
        found_share(queries, Places(root), found)
        names = [channel.id for channel in memory.workspace.channels()]
        step = max(1, len(names) // 50)
        memory.search("lantern", names[0])
        inside: list[tuple[str, str | None]] = [
            (query["query"], names[n * step % len(names)]) for n, query in enumerate(queries)
        ]
        for name in {name for _, name in inside}:
            memory.search("lantern", name)
        _trust(memory)
        print(line_of("within a channel", ask(memory, inside)[0]))
        change(root, memory)


def _trust(memory: Memory) -> None:
    """Makes the last looks last."""
    looks = memory.passages._looks
    looks.update({scope: (time.monotonic() + 1e6, *rest) for scope, (_, *rest) in looks.items()})  # type: ignore[misc]


if __name__ == "__main__":
    sys.exit(main())
