"""What writing costs, and that a crowd loses nothing: the figures of issue "files that nothing can lose".

    python tests/bench/writing.py [--entries 200] [--writers 8]

Prints one line a figure. CPU is this process's own (user and system); exits 1 when an entry was lost, torn or doubled.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import pipimem
from pipimem import markdown
from pipimem.memory import init
from pipimem.transcript import Message, Transcript

MEGABYTE = 1024 * 1024


class Slow(str):
    """A message's text that takes five seconds to look at: as slow as a model that thinks."""

    def __len__(self) -> int:
        time.sleep(5)
        return super().__len__()


def workspace(folder: str, *, git: bool) -> Path:
    """A fresh workspace with the channel `ops`."""
    init(folder, git=git)
    with pipimem.open(folder) as memory:
        memory.add_channel("ops")
    return Path(folder, "channels/ops/MEMORY.md")


def add_many(folder: str, who: int, count: int) -> None:
    """Adds `count` entries of one writer, each by a library call of its own."""
    with pipimem.open(folder) as memory:
        for number in range(count):
            memory.add(f"Writer {who} 测得 value {who * 100_000 + number}", "ops")


def crowd(kind: str, writers: int, count: int) -> bool:
    """Lets all writers add at once to one file; whether every entry is there exactly once."""
    start = multiprocessing.Process if kind == "processes" else threading.Thread
    with tempfile.TemporaryDirectory() as folder:
        path = workspace(folder, git=True)
        crew = [start(target=add_many, args=(folder, who, count)) for who in range(1, writers + 1)]
        began = time.monotonic()
        for member in crew:
            member.start()
        for member in crew:
            member.join()
        took = time.monotonic() - began
        found = [e.text for e in markdown.parse(path.read_bytes()).entries if e.text.startswith("Writer")]
        wanted = [f"Writer {w} 测得 value {w * 100_000 + n}" for w in range(1, writers + 1) for n in range(count)]
        with pipimem.open(folder) as memory:
            commits = len(memory.log("ops", limit=100_000))
            waiting = len(memory.pending())
    whole = sorted(found) == sorted(wanted)
    print(
        f"{writers} {kind} x {count} adds: {len(found)} entries, {'all once' if whole else 'NOT all once'}, "
        f"{commits} commits, {waiting} waiting, {took:.0f} s"
    )
    return whole


def big_file() -> None:
    """One replace in a file of 2 MB with 5,000 entries, and how fast such a file is cut into sections."""
    lines = [
        f"- 第{n}条 the value of row {n} is {n * 7} "
        + "以及一些说明文字 and words " * 9
        + f"<!-- m-{n:08x} kind=fact -->\n"
        for n in range(5000)
    ]
    head = "".join(f"\n## Part {n // 50}\n\n{line}" if n % 50 == 0 else line for n, line in enumerate(lines))
    data = ("# Memory\n" + head).encode()[: 2 * MEGABYTE - 1]
    data = data[: data.rindex(b"\n") + 1]
    with tempfile.TemporaryDirectory() as folder:
        path = workspace(folder, git=False)
        path.write_bytes(data)
        with pipimem.open(folder) as memory:
            workspace_ = memory.workspace
            name = "channels/ops/MEMORY.md"
            began = time.process_time()
            with workspace_.locks([name]):
                before = workspace_.read(name) or b""
                parsed = markdown.parse(before)
                entry = parsed.entries[len(parsed.entries) // 2]
                after = markdown.replace_entry(parsed, entry, "换成别的", "")
                workspace_.write([pipimem.workspace.Change(name, before, after)])
            took = time.process_time() - began
        parse = []
        for _ in range(5):
            began = time.process_time()
            markdown.parse(data)
            parse.append(time.process_time() - began)
    print(f"replace in {len(data) / 1e6:.2f} MB, {len(parsed.entries)} entries: {took:.2f} s CPU, read back")
    print(f"sectioning: {len(data) / 1e6 / statistics.median(parse):.1f} MB/s CPU")


def think(folder: str, ready: object) -> None:
    """An updater that reads the files and then thinks for five seconds."""
    text = Slow("Please remember that the staging host moved to stg-2.")
    message = Message("bench:s1#1", "user", text, "Ines", "2026-03-14T10:00:00Z")
    with pipimem.open(folder) as memory:
        ready.set()  # type: ignore[attr-defined]
        memory.apply(memory.propose("ops", Transcript("bench", "s1", (message,))))


def meanwhile() -> bool:
    """How long an add takes while an updater thinks; whether both facts are there afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = workspace(folder, git=False)
        ready = multiprocessing.Event()
        thinker = multiprocessing.Process(target=think, args=(folder, ready))
        with pipimem.open(folder) as memory:
            memory.add("The first one pays for the imports", "ops")
            thinker.start()
            ready.wait()
            times = []
            for number in range(20):
                began = time.monotonic()
                memory.add(f"Fan {number} arrives 2026-03-{number + 1:02}", "ops")
                times.append((time.monotonic() - began) * 1000)
            busy = thinker.is_alive()
            thinker.join()
        text = path.read_text()
    both = busy and "stg-2" in text and all(f"Fan {n} arrives" in text for n in range(20))
    print(
        f"add while an updater thinks: median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms (20 calls); "
        f"{'both facts there' if both else 'NOT both there'}"
    )
    return both


def main() -> int:
    """Prints all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--writers", type=int, default=8)
    options = parser.parse_args()
    os.environ.setdefault("GIT_CONFIG_NOSYSTEM", "1")
    good = [meanwhile()]
    big_file()
    good += [crowd(kind, options.writers, options.entries) for kind in ("processes", "threads")]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
