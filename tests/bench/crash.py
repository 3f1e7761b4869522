"""Kills the writer of a three-file change at random moments, many times.

    python tests/bench/crash.py [--kills 500] [--seed 7]

The suite kills it at every file call in turn; this adds as many random moments as one has patience for. After every kill each file must
be wholly old or wholly new, and after the next writer's recovery all three of a change, or none. Prints the figures;
exits 1 when one file was torn or a change was left half done.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

NAMES = ("channels/ops/SESSION.md", "channels/ops/MEMORY.md", "channels/ops/HISTORY.md")
LONGEST = 0.05  # seconds; a whole change takes about 40 ms
CHILD = """
import sys
from pipimem.workspace import Change, Workspace
workspace = Workspace(sys.argv[1])
paths = sys.argv[2].split(",")
with workspace.locks(paths):
    changes = [Change(p, workspace.read(p), workspace.read(p) + "- 新的一行\\n".encode() * 200) for p in paths]
    print("ready", flush=True)
    workspace.write(changes)
"""


def fresh(root: Path) -> dict[str, bytes]:
    """A workspace with three files; their bytes."""
    shutil.rmtree(root, ignore_errors=True)
    texts = {name: f"# {name}\n\n".encode() + b"- old\n" * 20_000 for name in NAMES}
    for name, data in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "pipimem.toml").write_text("")
    return texts


def kill_once(root: Path, delay: float) -> str:
    """One kill `delay` seconds after the child begins to write: old, new, half (before recovery), or torn."""
    old = fresh(root)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), ",".join(NAMES)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    try:
        child.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    new = {name: data + "- 新的一行\n".encode() * 200 for name, data in old.items()}
    found = {name: (root / name).read_bytes() for name in NAMES}
    if any(found[n] not in (old[n], new[n]) for n in NAMES):
        return "torn"
    half = found != old and found != new
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from pipimem.workspace import Workspace\nw = Workspace(sys.argv[1])\n"
         "with w.locks(sys.argv[2].split(',')): pass", str(root), ",".join(NAMES)], check=False,
    )  # fmt: skip
    after = {name: (root / name).read_bytes() for name in NAMES}
    left = list(root.rglob(".pipimem-*"))
    if done.returncode or left or after not in (old, new):
        return "left half done"
    return ("half, then " if half else "") + ("new" if after == new else "old")


def main() -> int:
    """Runs the kills and prints how often each outcome was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = Counter(kill_once(Path(scratch, "ws"), chance.uniform(0, LONGEST)) for _ in range(options.kills))
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:5}  {outcome}")
    return int(bool(outcomes["torn"] or outcomes["left half done"]))


if __name__ == "__main__":
    sys.exit(main())
