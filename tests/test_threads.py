"""One opened workspace may be handed from thread to thread; several threads open one each."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pipimem
from pipimem.memory import Memory

QUERIES = ["ramp limit", "热电偶 接口", "pool of pgbouncer", "灰度发布", "deploy window", "k8s prod db"]
PROMPTS = [
    "上次的热电偶接口怎么定的？",
    "why did we pin the pool of pgbouncer",
    "fix the ramp limit in prod",
    "之前灰度发布从百分之几开始",
]


def answers(memory: Memory) -> list[object]:
    found: list[object] = [[h.path for h in memory.search(q, all_channels=True)] for q in QUERIES]
    return found + [memory.recall(p, all_channels=True).text for p in PROMPTS]


def test_a_thread_may_hand_an_opened_workspace_on(sample: Path) -> None:
    with pipimem.open(str(sample)) as memory, ThreadPoolExecutor(1) as other:
        here = answers(memory)
        assert other.submit(answers, memory).result() == here
        other.submit(memory.close).result()
        assert answers(memory) == here


def test_threads_that_start_together_find_what_one_alone_finds(sample: Path) -> None:
    """In a process of its own: the tables of words are made at the first question, by all of them at once."""
    with pipimem.open(str(sample)) as memory:
        memory.index()
        alone = answers(memory)
    code = f"""
import json, sys, threading
sys.path[:0] = {sys.path!r}
sys.setswitchinterval(1e-6)
import pipimem
from tests.test_threads import answers
line = threading.Barrier(6)
found = [None] * 6
def work(n):
    with pipimem.open({str(sample)!r}) as memory:
        line.wait()
        found[n] = answers(memory)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [json.loads(json.dumps(alone))] * 6


def test_threads_that_write_at_once_lose_nothing(make: Callable[..., Memory], root: Path) -> None:
    make({"channels/ops/MEMORY.md": "# Memory\n\n## Facts\n\n- 起点\n", "channels/ops/.channel": "ops\n"}, git=True)
    line = threading.Barrier(4)

    def work(number: int) -> None:
        with pipimem.open(str(root)) as memory:
            line.wait()
            for step in range(3):
                memory.add(f"Boiler {number} was serviced by crew {step}-{number}", "ops", actor="tool")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    text = (root / "channels/ops/MEMORY.md").read_text()
    assert sum("Boiler" in row and "by=tool" in row for row in text.splitlines()) == 12
    log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True, check=True, text=True).stdout
    assert log.count("Boiler") == 12
    with pipimem.open(str(root)) as memory:
        assert memory.pending() == []
        assert len(memory.search("boiler", "ops", limit=50)) == 12
