"""Commits come in the order of the writes, whoever reaches git first, and outlive the process that owes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import pipimem
from pipimem import pending
from pipimem.memory import Memory

PATH = "channels/ops/MEMORY.md"


def add(root: str, who: int, count: int) -> None:
    with pipimem.open(root) as memory:
        for number in range(count):
            memory.add(f"Writer {who} 测得 value {who * 100 + number}", "ops")


def head(root: str, path: str = PATH) -> bytes:
    return subprocess.run(["git", "-C", root, "show", f"HEAD:{path}"], capture_output=True, check=True).stdout


@pytest.fixture
def ops(make: Callable[..., Memory]) -> Memory:
    memory = make(git=True)
    memory.add_channel("ops")
    return memory


def test_writers_at_once_give_one_commit_each_and_nobody_else_the_credit(ops: Memory) -> None:
    root = ops.workspace.root
    crew = [threading.Thread(target=add, args=(root, who, 5)) for who in range(1, 5)]
    for member in crew:
        member.start()
    for member in crew:
        member.join()
    commits = [c for c in ops.log("ops") if "Pipimem-Run" in c.trailers]
    said = sorted(c.subject.partition("“")[2].rstrip("”") for c in commits)
    assert said == sorted(f"Writer {who} 测得 value {who * 100 + n}" for who in range(1, 5) for n in range(5))
    assert [c.subject for c in ops.log("ops") if c not in commits] == ["ops: new channel"]
    assert head(root) == Path(root, PATH).read_bytes()
    assert ops.pending() == []


def killed_before_the_commit(root: str, text: str) -> None:
    code = (
        "import os, sys, pipimem\nfrom pipimem.history import History\nHistory.commit = lambda *a: os._exit(9)\n"
        "with pipimem.open(sys.argv[1]) as memory: memory.add(sys.argv[2], 'ops')"
    )
    assert subprocess.run([sys.executable, "-c", code, root, text], check=False).returncode == 9


def test_what_a_killed_process_owed_is_committed_by_the_next_command_in_its_own_words(ops: Memory) -> None:
    root = ops.workspace.root
    killed_before_the_commit(root, "部署窗口是周四晚上")
    assert [list(row["files"]) for row in ops.pending()] == [[PATH]]
    assert ops.status()["pending_commits"] == 1
    ops.add("The pool is heron", "ops")
    assert [c.subject for c in ops.log("ops")][:2] == [
        "ops: remember “The pool is heron”",
        "ops: remember “部署窗口是周四晚上”",
    ]
    assert ops.pending() == []


@pytest.mark.parametrize("later", ["", "第三条"])
def test_a_commit_that_waited_takes_along_the_lists_that_were_written_with_it(
    ops: Memory, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    monkeypatch.setattr("pipimem.git.LOCK_WAIT", 0.05)
    root = ops.workspace.root
    gone = [ops.add(text, "ops").plan.ops[0].id for text in ("部署窗口是周四晚上", "The pool is heron")]
    lock = Path(root, ".git/index.lock")
    lock.write_bytes(b"")
    runs = [ops.forget(identity).applied for identity in gone]
    assert all(applied.deferred for applied in runs)
    lock.unlink()
    if later:
        ops.add(later, "ops")
    assert ops.commit_waiting() == ""
    stones = Path(root, ".pipimem/tombstones.jsonl").read_bytes()
    assert len(stones.splitlines()) == 2
    assert head(root, ".pipimem/tombstones.jsonl") == stones
    shown = subprocess.run(["git", "-C", root, "status", "--porcelain"], capture_output=True, check=True)
    assert b".pipimem" not in shown.stdout
    first, last = (set(ops.commits.find(applied.run).files) for applied in runs)
    assert first == {".pipimem/tombstones.jsonl"}  # the file of then still held what the second one took out
    assert last == {PATH, ".pipimem/tombstones.jsonl"}


def test_a_rejection_that_waited_is_in_git_once_it_can_be(ops: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipimem import agents

    monkeypatch.setattr("pipimem.git.LOCK_WAIT", 0.05)
    root = ops.workspace.root
    agents.add(ops, "The build cache lives on host kestrel", target="memory")
    lock = Path(root, ".git/index.lock")
    lock.write_bytes(b"")
    ops.reject("1")
    lock.unlink()
    assert ops.commit_waiting() == ""
    assert head(root, ".pipimem/rejected.jsonl") == Path(root, ".pipimem/rejected.jsonl").read_bytes()


def test_a_persons_edit_after_a_killed_process_is_theirs_and_nothing_is_lost(ops: Memory) -> None:
    root = ops.workspace.root
    killed_before_the_commit(root, "The pool is heron")
    with open(os.path.join(root, PATH), "ab") as file:
        file.write("- 手写的一条\n".encode())
    ops.add("The gate closes at six", "ops")
    assert head(root) == Path(root, PATH).read_bytes()
    assert ops.log("ops")[1].subject == f"edit {PATH}"


def test_nobody_waits_for_ever_for_a_process_that_is_stuck(ops: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "TURN_WAIT", 0.05)
    row = {
        "ticket": "0",
        "pid": os.getppid(),
        "host": os.uname().nodename,
        "message": "stuck",
        "files": {PATH: {"before": None, "after": "x", "blob": None}},
    }
    path = Path(ops.workspace.private("state", "pending.jsonl"))
    path.write_text(json.dumps(row) + "\nnot a row\n")
    assert ops.add("The pool is heron", "ops").commit
    assert ops.pending() == []
    assert json.loads(path.read_text().splitlines()[0])["ticket"] == "0"


def test_another_channels_commit_is_not_waited_for(ops: Memory) -> None:
    ops.add_channel("dm:ines")
    other = "channels/dm%3Aines/MEMORY.md"
    row = {
        "ticket": "0",
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "message": "busy",
        "files": {other: {"before": None, "after": "x", "blob": None}},
    }
    Path(ops.workspace.private("state", "pending.jsonl")).write_text(json.dumps(row) + "\n")
    began = time.monotonic()
    assert ops.add("The pool is heron", "ops").commit
    assert time.monotonic() - began < pending.TURN_WAIT


def test_without_history_nothing_is_queued(make: Callable[..., Memory]) -> None:
    memory = make()
    memory.add_channel("ops")
    memory.add("The pool is heron", "ops")
    assert memory.pending() == []
    assert not os.path.exists(memory.workspace.private("state", "pending.jsonl"))
