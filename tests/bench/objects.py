"""Loose objects that small commits leave in git, and what packing them costs.

    python tests/bench/objects.py [--commits 2000]

Makes so many commits of one line each in a workspace of its own, counts loose objects and their size, then calls the
same packing `maintain` does. Exits 1 when git's history is not the same afterwards.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipimem.git import Repository

NAME = "channels/ops/MEMORY.md"


def counted(root: str) -> dict[str, str]:
    """What `git count-objects -v` says."""
    done = subprocess.run(["git", "-C", root, "count-objects", "-v"], capture_output=True, text=True, check=True)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def main() -> int:
    """Commits, counts, packs, counts again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        repository = Repository.init(root)
        Path(root, NAME).parent.mkdir(parents=True)
        text, began = "# Memory\n", time.monotonic()
        for number in range(options.commits):
            text += f"- fact {number} 事实\n"
            Path(root, NAME).write_text(text, encoding="utf-8")
            repository.commit({NAME: text.encode()}, f"remember {number}\n")
        made = time.monotonic() - began
        before, head = counted(root), repository.log(limit=1)[0].sha
        began = time.monotonic()
        asked = repository.packed(120)
        packed = time.monotonic() - began
        after, same = counted(root), repository.log(limit=1)[0].sha == head
        began = time.monotonic()
        again = repository.packed(120)
        idle = time.monotonic() - began
    print(f"{options.commits} commits in {made:.0f} s: {before['count']} loose objects, {before['size']} kB")
    print(
        f"packed ({'asked' if asked else 'not due'}) in {packed:.2f} s: {after['count']} loose, {after['size-pack']} kB in packs"
    )
    print(f"asked again: {'due' if again else 'not due'}, {idle * 1000:.0f} ms")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
