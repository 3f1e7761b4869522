"""The doctor tries each leg for real: what is broken is told, what may be mended is, and documents stay as they are."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipimem.doctor import examine
from pipimem.memory import Memory
from tests.conftest import run, run_as_nobody, snapshot

OPS = "channels/ops/MEMORY.md"


def told(memory: Memory, *, fix: bool = False) -> dict[str, tuple[bool, str]]:
    return {p.name: (p.ok, p.detail) for p in examine(memory, fix=fix)}


def test_a_sound_workspace_stands_on_every_leg(sample: Path) -> None:
    before = snapshot(sample)
    done = run("-w", sample, "doctor", "--json")
    assert [c for c in done.json["checks"] if not c["ok"]] == []
    assert done.code == 0
    assert {"files", "write and lock", "full text", "Chinese", "git", "index"} <= {
        c["name"] for c in done.json["checks"]
    }
    assert snapshot(sample) == before


def test_a_broken_index_is_told_or_heals_and_fix_makes_it_anew(make: Callable[..., Memory], root: Path) -> None:
    memory = make({OPS: "# M\n\n- 部署窗口是周四 <!-- m-00000001 kind=decision -->\n"})
    memory.index()
    memory.close()
    for path in (root / ".pipimem/cache").glob("index-*"):
        path.write_bytes(b"not a database at all" * 100)
    assert run("-w", root, "doctor", "--fix").code == 0
    assert run("-w", root, "search", "部署窗口").code == 0


def test_what_a_killed_process_left_is_told_and_mended(make: Callable[..., Memory], root: Path) -> None:
    memory = make({OPS: "# M\n\n- a fact\n"})
    code = "import os, sys; from pipimem.workspace import Workspace\nwith Workspace(sys.argv[1]).locks(['MEMORY.md']): os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, str(root)], check=False).returncode == 9
    ok, detail = told(memory)["left behind"]
    assert not ok
    assert "1 lock of a dead process" in detail
    assert told(memory, fix=True)["left behind"][0]


def test_commits_that_wait_are_told_and_made(make: Callable[..., Memory], root: Path) -> None:
    memory = make(git=True)
    memory.add_channel("ops")
    lock = root / ".git/index.lock"
    lock.write_text("")
    memory.add("The pool is heron", "ops")
    assert told(memory)["commits"] == (
        False,
        "1 commit waiting (another git holds index.lock); the next change, or 'doctor --fix', makes them",
    )
    lock.unlink()
    assert told(memory, fix=True)["mend: commits"] == (True, "made")
    assert memory.log(limit=1)[0].subject == "ops: remember “The pool is heron”"


def _emptied(git: Path) -> None:
    shutil.rmtree(git / "objects")
    (git / "objects").mkdir()


def _without_a_blob(git: Path) -> None:
    blob = subprocess.check_output(["git", "-C", git.parent, "rev-parse", f"HEAD:{OPS}"], text=True).strip()
    (git / "objects" / blob[:2] / blob[2:]).unlink()


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (_emptied, "names a commit that git cannot read"),
        (_without_a_blob, "missing blob"),
        (lambda git: (git / "HEAD").write_text("垃圾"), "git cannot use it"),
        (lambda git: (git / "refs/heads/main").write_text("垃圾"), "No such ref"),
        (lambda git: (git / "index").write_text("垃圾" * 40), "bad signature"),
        (lambda git: (git / "index.lock").touch(), "another git holds index.lock"),
        (lambda git: (git / "refs/heads/main.lock").touch(), "another git holds main.lock"),
        (lambda git: (git / "MERGE_HEAD").touch(), "a merge is in progress"),
    ],
)  # fmt: skip
def test_a_git_that_cannot_take_a_commit_is_told(
    make: Callable[..., Memory], root: Path, harm: Callable[[Path], object], says: str
) -> None:
    memory = make(git=True)
    assert "no commit yet" in told(memory)["git"][1]
    memory.add_channel("ops")
    memory.add("部署窗口是周四", "ops")
    before = snapshot(root / ".git")
    ok, detail = told(memory)["git"]
    assert (ok, "HEAD is at" in detail) == (True, True)
    assert snapshot(root / ".git") == before
    harm(root / ".git")
    ok, detail = told(memory)["git"]
    assert not ok
    assert says in detail
    assert not says.endswith(".lock") or f'{says.split()[-1]}" (of {getpass.getuser()}, since ' in detail


def test_faulty_files_are_told_and_never_touched(make: Callable[..., Memory], root: Path) -> None:
    memory = make({OPS: "# M\n\n- a <!-- m-00000001 kind=rumour -->\n", "MEMORY.md": "# 记忆\n\n- b\0\n"})
    before = snapshot(root)
    ok, detail = told(memory, fix=True)["files"]
    assert not ok
    assert "2 errors" in detail
    assert snapshot(root) == before


def test_where_nothing_can_be_written_that_is_told(make: Callable[..., Memory], root: Path) -> None:
    make({OPS: "# M\n\n- 部署窗口是周四 <!-- m-00000001 kind=decision -->\n"}).index()
    before = snapshot(root)
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            os.chmod(os.path.join(folder, name), 0o444)
        os.chmod(folder, 0o555)
    try:
        done = run_as_nobody(root, "-w", root, "doctor", "--json")
    finally:
        for folder, _, files in os.walk(root):
            os.chmod(folder, 0o755)
            for name in files:
                os.chmod(os.path.join(folder, name), 0o644)
    found = {c["name"]: (c["ok"], c["detail"]) for c in done.json["checks"]}
    assert done.code == 1
    assert "read-only" in found["write and lock"][1]
    assert not found["permissions"][0]
    assert found["full text"][0]
    assert snapshot(root) == before
