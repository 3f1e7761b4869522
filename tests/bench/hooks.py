"""Hooks that read, cold, with a fresh index: medians of whole processes, each run paired with `python -c pass`.

    python tests/bench/hooks.py [--runs 20] [--check] [--sample DIR]

Run it with the interpreter pipimem is installed in (byte-compiled, as pip installs it). Wall time is what the host
waits; CPU is what it costs where others use the machine as well. With `--check` it exits 1 when a hook takes 150 ms of
wall time or more.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MOST = 150.0
SAMPLE = Path(__file__).parents[2] / "sample-workspace"
PROJECT = "project:kilnwren"
EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "prompt, English": ("UserPromptSubmit", {"prompt": "Which host do the meter tests run against?"}),
    "prompt, Chinese": ("UserPromptSubmit", {"prompt": "上次三相电表的测试是在哪台机器上跑的？"}),
    "prompt, nothing to recall": ("UserPromptSubmit", {"prompt": "thanks!"}),
    "session start": ("SessionStart", {"source": "startup"}),
}


def timed(command: list[str], data: bytes, environment: dict[str, str]) -> tuple[float, float, bytes]:
    """One process: wall time and CPU in milliseconds, and what it printed. Raises unless it exits 0."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, env=environment, check=True)
    took = time.perf_counter() - began
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took * 1000, (now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime) * 1000, done.stdout


def measure(command: list[str], fields: dict[str, Any], environment: dict[str, str], runs: int) -> tuple[float, ...]:
    """Medians over `runs` pairs: the hook's wall time in ms and its ratio, the same of CPU; and characters given."""
    bare = [sys.executable, "-c", "pass"]
    pairs, given = [], 0
    for number in range(runs + 1):
        data = json.dumps({**fields, "session_id": f"s{number}"}).encode()
        base = timed(bare, b"", environment)
        took = timed(command, data, environment)
        pairs.append((base, took))
        given = len(json.loads(took[2]).get("hookSpecificOutput", {}).get("additionalContext", ""))
    pairs = pairs[1:]
    wall = statistics.median(t[0] for _, t in pairs), statistics.median(t[0] / b[0] for b, t in pairs)
    cpu = statistics.median(t[1] for _, t in pairs), statistics.median(t[1] / b[1] for b, t in pairs)
    return (*wall, *cpu, given)


def _program() -> list[str]:
    script = Path(sys.executable).with_name("pipimem")
    return [str(script)] if script.exists() else [sys.executable, "-m", "pipimem"]


def main() -> int:
    """Prints a line per event; 1 with `--check` when one takes too long."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    options = parser.parse_args()
    over = False
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "workspace")
        shutil.copytree(options.sample, root, ignore=shutil.ignore_patterns("cache", "state", "locks"))
        environment = {**os.environ, "PIPIMEM_CACHE": str(Path(folder, "cache"))}
        timed([*_program(), "-w", str(root), "index"], b"", environment)
        time.sleep(3)  # files as young as these are compared once more
        timed([*_program(), "-w", str(root), "search", "ramp"], b"", environment)
        for name, (event, fields) in EVENTS.items():
            command = [*_program(), "hook", event, "--host", "claude", "--channel", PROJECT]
            told = {"cwd": str(root), "hook_event_name": event, **fields}
            wall, times, cpu, cpu_times, given = measure(command, told, environment, options.runs)
            figures = f"wall {wall:6.1f} ms ({times:.1f} x bare)   CPU {cpu:6.1f} ms ({cpu_times:.1f} x bare)"
            print(f"{name:<26} {figures}   {given:,} characters", flush=True)
            over = over or wall >= MOST
    return int(options.check and over)


if __name__ == "__main__":
    sys.exit(main())
