"""One opened workspace may be handed from thread to thread; several threads open one each."""

from __future__ import annotations

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


def test_threads_that_meet_at_a_table_of_words_all_find_it_whole() -> None:
    """In a process of its own, with a switch between threads at every step; the tables are emptied for each round."""
    code = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from pipimem.recall import look, query
def read(_):
    line.wait()
    return query.translated("deploy 部署 回滚 rollback"), query.spelled_out("k8s prod db"), look.look("please redo it", ())
tables = [query._short, query._english, query._chinese, look._english]
with ThreadPoolExecutor(4) as pool:
    line = threading.Barrier(1)
    alone = read(0)
    line = threading.Barrier(4)
    sys.setswitchinterval(1e-7)
    for _ in range(40):
        for table in tables:
            table.clear()
        assert list(pool.map(read, range(4))) == [alone] * 4
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_threads_with_a_workspace_each_find_what_one_alone_finds(sample: Path) -> None:
    with pipimem.open(str(sample)) as memory:
        alone = answers(memory)

    def work(_: int) -> list[object]:
        with pipimem.open(str(sample)) as own:
            return answers(own)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [alone] * 4


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
