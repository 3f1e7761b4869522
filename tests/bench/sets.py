"""pipimem over the shared retrieval sets: one table, test split, scored by the sets' own scorer.

    python tests/bench/sets.py [--bench DIR] [--split test|dev] [SET …]

`DIR` is the folder with `to_workspace.py` and `score.py` (default: `shared/bench` beside the checkout). Without it the
run says so and ends: nothing in the repository depends on the sets.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pipimem
from pipimem.errors import Usage

BENCH = Path(__file__).parents[3] / "shared" / "bench"
SETS = ["locomo", "lifebench-en", "memorybank-en", "scifact", "xquad-en", "lifebench-zh", "memorybank-zh", "rgb-zh", "dureader",
        "drcd", "cmrc2018", "xquad-zh"]  # fmt: skip
PARITY = {"lifebench-zh": ["--people", "leimingxuan,lumingqiang,sunyuwei"]}
SESSIONS = {"locomo-sessions": ["--granularity", "session"],
            "locomo-sessions-one": ["--granularity", "session", "--audit"]}  # fmt: skip
"""Protocols of others: whole sessions, every question of both splits, adversarial ones included; the second in one
index over all conversations, with corrected evidence."""

FIGURES = ("R@1", "R@5", "R@10", "nDCG@10", "Hit@10", "MRR@10")
MARK = re.compile(r"<!-- id: (.+?) -->")
DEPTH = 100


class Places:
    """Which section each line of each file belongs to, by the id comment under its heading."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, list[tuple[int, str]]] = {}

    def section(self, path: str, line: int) -> str:
        """The id of the section that holds `line`, "" where none does."""
        if path not in self._files:
            lines = (self._root / path).read_text(encoding="utf-8").split("\n")
            self._files[path] = [(n, m[1]) for n, text in enumerate(lines, 1) if (m := MARK.search(text))]
        return next((name for at, name in reversed(self._files[path]) if at <= line + 1), "")


def rank(root: Path, queries: list[dict[str, object]], *, as_one: bool = False) -> list[dict[str, object]]:
    """For each query the ids of its best sections, each once; looked for in its own channel or `as_one`."""
    places, rows = Places(root), []
    with pipimem.open(str(root)) as memory:
        memory.index()
        for query in queries:
            scope = query.get("scope")
            own = not as_one and scope and (root / "channels" / str(scope)).is_dir()
            channel = str(scope) if own else None
            try:
                hits = memory.search(str(query["query"]), channel, all_channels=channel is None, limit=DEPTH)
            except Usage:
                hits = []
            ids = dict.fromkeys(places.section(h.path, h.line) for h in hits)
            rows.append({"id": query["id"], "ranked": [i for i in ids if i]})
    return rows


def run(bench: Path, name: str, split: str) -> str:
    """One row of the table."""
    whole = name in SESSIONS
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, name)
        options = [*PARITY.get(name, []), *SESSIONS.get(name, [])]
        make = [sys.executable, str(bench / "to_workspace.py"), "locomo" if whole else name, str(root), *options]
        subprocess.run(make, check=True, capture_output=True)
        (root / "pipimem.toml").write_text("")
        queries = [json.loads(line) for line in (root / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
        wanted = [q for q in queries if whole or (q.get("split", split) == split and q.get("answerable", True))]
        started = time.process_time()
        rows = rank(root, wanted, as_one=name.endswith("-one"))
        seconds = time.process_time() - started
        results = Path(scratch, "results.jsonl")
        results.write_text("\n".join(json.dumps(r, ensure_ascii=False) for r in rows), encoding="utf-8")
        means = Path(scratch, "means.json")
        which = ["--include-unanswerable"] if whole else ["--split", split]
        score = [sys.executable, str(bench / "score.py"), str(root / "queries.jsonl"), str(results), *which]
        subprocess.run([*score, "--json", str(means)], check=True, capture_output=True)
        return f"| {name} | {len(wanted)} | {line_of(json.loads(means.read_text()))} | {seconds:.1f} |"


def line_of(found: dict[str, object]) -> str:
    """The figures of a scorer's answer."""
    means = found["overall"]
    assert isinstance(means, dict)
    return " | ".join(f"{means[name]:.3f}" for name in FIGURES)


def main() -> int:
    """Prints the table; 0 also when the sets are not there, with a clear word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*SETS, *SESSIONS])
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--split", choices=("test", "dev"), default="test")
    options = parser.parse_args()
    if not (options.bench / "to_workspace.py").exists():
        print(f"skipped: the retrieval sets are not in '{options.bench}'")
        return 0
    print(f"| set | questions | {' | '.join(FIGURES)} | CPU s |\n|---|{'---:|' * (len(FIGURES) + 2)}")
    for name in options.sets:
        print(run(options.bench, name, options.split), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
