"""pipimem beside bare floors over one planted corpus: the shared perf harness, all channels searched.

    python tests/bench/perf.py [--bench DIR] [--sizes 1000,10000] [--reps 3] [--only floor:fts5-rjieba,pipimem]

`DIR` is the folder with `run.py` (default: `shared/bench/perf` beside the checkout); without it the run says so and
ends. The floors need a Python of their own under `$PEERS_DIR/floor` (see its README). The harness is copied and one
word of it changed: its worker asks without a channel, which by the interface is the shared layer only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = Path(__file__).parents[3] / "shared" / "bench" / "perf"
WORKER, ASKED, ASKS = "peer_pipimem.py", "memory.search(q, limit=k)", "memory.search(q, limit=k, all_channels=True)"


def main() -> int:
    """Prints the harness's tables; its exit code, or 0 with a clear word where it is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--reps", default="3")
    parser.add_argument("--only", default="floor:python,floor:fts5,pipimem")
    options = parser.parse_args()
    if not (options.bench / "run.py").exists():
        print(f"skipped: the perf harness is not in '{options.bench}'")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        harness = Path(scratch, "perf")
        shutil.copytree(options.bench, harness, ignore=shutil.ignore_patterns("__pycache__"))
        worker = (harness / WORKER).read_text(encoding="utf-8")
        if ASKED not in worker and ASKS not in worker:
            print(f"'{options.bench / WORKER}' asks in a way this script does not know")
            return 1
        (harness / WORKER).write_text(worker.replace(ASKED, ASKS), encoding="utf-8")
        environment = {"PERF_WORK": str(Path(scratch, "work")), "PIPIMEM_PYTHON": sys.executable, **os.environ}
        asked = ["--sizes", options.sizes, "--reps", options.reps, "--only", options.only]
        return subprocess.run(
            [sys.executable, str(harness / "run.py"), *asked], env=environment, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
