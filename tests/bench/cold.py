"""The cold path against bare Python: median CPU of whole processes, each run paired with `python -c pass` in turn.

    python tests/bench/cold.py [--runs 20] [--check] [--sample DIR]

Run it with the interpreter pipimem is installed in (byte-compiled, as pip installs it). With `--check` it exits 1
when a search or recall costs more than 3.5 times bare Python (the target of docs/benchmarks.md).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

MOST = 3.5
SAMPLE = Path(__file__).parents[2] / "sample-workspace"
COMMANDS: dict[str, list[str]] = {
    "--version": ["--version"],
    "search, English": ["search", "ramp limit"],
    "search, Chinese": ["search", "热电偶 接口"],
    "recall, English": ["recall", "--channel", "project:kilnwren", "Which host do the meter tests run against"],
    "recall, Chinese": ["recall", "--channel", "dingtalk:group:cidKq7/u+0kH//Zw==", "灰度发布从百分之几开始"],
}


def cpu(command: list[str], environment: dict[str, str]) -> float:
    """User and system time of one process in milliseconds. Raises `RuntimeError` unless it exits 0."""
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    child = os.posix_spawn(command[0], command, environment, file_actions=quiet)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"{command} ended with status {os.waitstatus_to_exitcode(status)}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure(arguments: list[str], environment: dict[str, str], runs: int) -> tuple[float, float, float]:
    """Medians over `runs` pairs: bare Python and the command in ms CPU, and the ratio of each pair."""
    bare, command = [sys.executable, "-c", "pass"], [*_program(), *arguments]
    cpu(command, environment)
    pairs = [(cpu(bare, environment), cpu(command, environment)) for _ in range(runs)]
    return (
        statistics.median(b for b, _ in pairs),
        statistics.median(c for _, c in pairs),
        statistics.median(c / b for b, c in pairs),
    )


def _program() -> list[str]:
    script = Path(sys.executable).with_name("pipimem")
    return [str(script)] if script.exists() else [sys.executable, "-m", "pipimem"]


def main() -> int:
    """Prints a line per command; 1 with `--check` when one is over the target."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    options = parser.parse_args()
    over = False
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        shutil.copytree(options.sample, workspace, ignore=shutil.ignore_patterns("cache", "state", "locks"))
        environment = {**os.environ, "PIPIMEM_CACHE": str(Path(folder, "cache")), "PYTHONDONTWRITEBYTECODE": "1"}
        cpu([*_program(), "-w", str(workspace), "index"], environment)
        for name, arguments in COMMANDS.items():
            bare, command, ratio = measure(["-w", str(workspace), *arguments], environment, options.runs)
            print(f"{name:<16} {command:6.1f} ms   bare {bare:5.1f} ms   ratio {ratio:.2f}", flush=True)
            over = over or (name != "--version" and ratio > MOST)
    return int(options.check and over)


if __name__ == "__main__":
    sys.exit(main())
