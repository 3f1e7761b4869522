"""Writes that are killed, fail half way, or race: every file is wholly old or wholly new, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pipimem
from pipimem import files
from pipimem.errors import Refused
from pipimem.files import Journal, is_temporary
from pipimem.transcript import Message, Transcript
from pipimem.workspace import Change, Workspace
from tests.conftest import case, write

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir")
OLD = {"MEMORY.md": "# Ops\n\n- 旧的一条\n", "SESSION.md": "# Session\n\nold\n", "memory/new/day.md": None}
NEW = {"MEMORY.md": "# Ops\n\n- 新的一条，更长一些\n", "SESSION.md": None, "memory/new/day.md": "# Day\n\nnew\n"}


def lay(root: Path, texts: dict[str, str | None]) -> None:
    """Puts the channel's three files into a known state, as an editor would."""
    for name, text in texts.items():
        path = root / "channels/ops" / name
        if text is not None:
            write(root, {f"channels/ops/{name}": text})
        elif path.exists():
            path.unlink()
    for folder in ("memory/new", "memory"):
        if (root / "channels/ops" / folder).exists() and not any((root / "channels/ops" / folder).iterdir()):
            (root / "channels/ops" / folder).rmdir()
    (root / "channels/ops/MEMORY.md").chmod(0o600)


def there(root: Path) -> dict[str, str | None]:
    paths = {name: root / "channels/ops" / name for name in OLD}
    return {name: path.read_text("utf-8") if path.exists() else None for name, path in paths.items()}


def leftovers(root: Path) -> list[str]:
    found = [p for p in root.rglob("*") if is_temporary(p.name) or p.parent.name == "journal"]
    return sorted(str(p.relative_to(root)) for p in found)


def handles() -> int:
    return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


@pytest.fixture
def workspace(root: Path) -> Workspace:
    write(root, {"pipimem.toml": "[git]\ncommit = false\n", "USER.md": "# User\n"})
    lay(root, OLD)
    return Workspace(str(root))


def put(workspace: Workspace, texts: dict[str, bytes | None]) -> None:
    """One change of several files under its locks, on what they hold now."""
    with workspace.locks(texts):
        workspace.write([Change(path, workspace.read(path), after) for path, after in texts.items()])


def renew(workspace: Workspace) -> None:
    """The change under test: one file replaced, one made in a new folder, one removed."""
    put(workspace, {f"channels/ops/{name}": text.encode() if text is not None else None for name, text in NEW.items()})


def write_elsewhere(workspace: Workspace) -> None:
    """The next write: in another part of the workspace, under another lock."""
    put(workspace, {"USER.md": (workspace.read("USER.md") or b"") + b"- one more\n"})


def in_child(act: Callable[[], object]) -> int:
    """Runs `act` in a forked process; its wait status. A failure is printed and ends with 70."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        act()
    except BaseException:  # noqa: BLE001 - a child must not go on into pytest
        traceback.print_exc()
        os._exit(70)
    os._exit(0)


def killed_at(number: int, act: Callable[[], object]) -> bool:
    """Runs `act` in a process killed in its n-th file call (a write is cut in half); false when there are fewer."""
    count = 0

    def deadly(real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                if name == "write":
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    def doomed() -> None:
        for name in CALLS:
            setattr(os, name, deadly(getattr(os, name), name))
        act()

    status = in_child(doomed)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


FOUND: list[int] = []


def leave_half_done(workspace: Workspace, root: Path) -> None:
    """Kills the writer between its first rename and its last; where that is, is looked for once."""
    write_elsewhere(workspace)
    for number in [*FOUND, *range(20, 99)]:
        assert killed_at(number, lambda: renew(workspace))
        if there(root) not in (OLD, NEW):
            FOUND[:] = [number]
            return
        write_elsewhere(workspace)
        lay(root, OLD)
    raise AssertionError("the change is never half there")


# Killed


def test_a_write_killed_at_any_call_leaves_the_old_text_or_the_new(workspace: Workspace, root: Path) -> None:
    path, seen, number = root / "channels/ops/MEMORY.md", set(), 1
    while killed_at(number, lambda: put(workspace, {"channels/ops/MEMORY.md": (NEW["MEMORY.md"] or "").encode()})):
        text = path.read_text("utf-8")
        assert text in (OLD["MEMORY.md"], NEW["MEMORY.md"])
        assert path.stat().st_mode & 0o777 == 0o600
        assert {d.path for d in workspace.scan().documents} == {
            "USER.md",
            "channels/ops/MEMORY.md",
            "channels/ops/SESSION.md",
        }
        seen.add(text)
        write_elsewhere(workspace)
        assert leftovers(root) == []
        assert path.read_text("utf-8") == text
        lay(root, OLD)
        number += 1
    assert there(root)["MEMORY.md"] == NEW["MEMORY.md"]
    assert len(seen) == 2
    assert number > 12


def test_three_files_change_together_or_not_at_all_wherever_the_writer_is_killed(
    workspace: Workspace, root: Path
) -> None:
    number, seen = 1, set()
    while killed_at(number, lambda: renew(workspace)):
        now = there(root)
        assert all(now[name] in (OLD[name], NEW[name]) for name in OLD)
        seen.add("old" if now == OLD else "new" if now == NEW else "between")
        assert all(not is_temporary(Path(d.path).name) for d in workspace.scan().documents)
        write_elsewhere(workspace)
        assert there(root) in (OLD, NEW)
        assert there(root) == now or now not in (OLD, NEW) or there(root) == NEW
        assert leftovers(root) == []
        assert (root / "channels/ops/MEMORY.md").stat().st_mode & 0o777 == 0o600
        lay(root, OLD)
        number += 1
    assert there(root) == NEW
    assert seen == {"old", "between", "new"}
    assert number > 35


def test_a_killed_recovery_is_taken_up_by_the_next(workspace: Workspace, root: Path) -> None:
    """Killed between the first and the second rename, then again while the next writer puts that right."""
    leave_half_done(workspace, root)
    for number in range(1, 99, 3):
        if not killed_at(number, lambda: write_elsewhere(workspace)):
            break
        write_elsewhere(workspace)
        assert there(root) == NEW
        assert leftovers(root) == []
        lay(root, OLD)
        leave_half_done(workspace, root)
    assert there(root) == NEW
    assert number > 20


def test_what_a_person_saved_after_the_crash_stays(workspace: Workspace, root: Path) -> None:
    leave_half_done(workspace, root)
    by_hand = {"SESSION.md": "by hand, 手写\n", "memory/new/day.md": "# Mine\n"}
    write(root, {f"channels/ops/{name}": text for name, text in by_hand.items()})
    write_elsewhere(workspace)
    assert there(root) == {"MEMORY.md": NEW["MEMORY.md"], **by_hand}
    assert leftovers(root) == []


def test_a_change_whose_new_text_was_lost_is_taken_back_whole(workspace: Workspace, root: Path) -> None:
    """Half published, then a power cut took the text of the rest: none of it may stand."""
    leave_half_done(workspace, root)
    assert there(root)["MEMORY.md"] == NEW["MEMORY.md"]
    for lost in (root / "channels/ops/memory/new").glob(".pipimem-*.new.tmp"):
        lost.write_bytes(b"")
    write_elsewhere(workspace)
    assert there(root) == OLD
    assert leftovers(root) == []


def test_a_file_removed_by_a_finished_change_and_restored_by_hand_is_not_removed_again(
    workspace: Workspace, root: Path
) -> None:
    """Killed after all is done and before its record is gone; then a person wants the removed file back."""
    write_elsewhere(workspace)
    for number in range(30, 99):
        assert killed_at(number, lambda: renew(workspace))
        if any("done" in path.read_text() for path in (root / ".pipimem/journal").iterdir()):
            break
        write_elsewhere(workspace)
        lay(root, OLD)
    write(root, {"channels/ops/SESSION.md": OLD["SESSION.md"] or ""})
    write_elsewhere(workspace)
    assert there(root) == {**NEW, "SESSION.md": OLD["SESSION.md"]}
    assert leftovers(root) == []


def test_a_big_private_file_survives_kills_at_random_moments(workspace: Workspace, root: Path) -> None:
    path = root / "channels/ops/MEMORY.md"
    texts = [("- 第一版的一行\n" * 120_000).encode()[:2_000_000], ("- second version\n" * 120_000).encode()[:2_000_000]]
    write_elsewhere(workspace)
    dice = random.Random(3)
    for turn in range(20):
        old, new = texts[turn % 2], texts[1 - turn % 2]
        path.write_bytes(old)

        def act(new: bytes = new, delay: float = dice.uniform(0.0005, 0.03)) -> None:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, delay)
            put(workspace, {"channels/ops/MEMORY.md": new})

        status = in_child(act)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        assert path.read_bytes() in (old, new)
        assert path.stat().st_mode & 0o777 == 0o600
        assert "channels/ops/MEMORY.md" in [d.path for d in workspace.scan().documents]
        write_elsewhere(workspace)
        assert leftovers(root) == []


def test_a_journal_that_comes_with_a_strangers_workspace_reaches_nothing_else(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"outside.md": "kept", "ws/pipimem.txt": "kept"})
    (root / "memory").mkdir()
    (root / "memory/out.md").symlink_to(tmp_path / "outside.md")
    tag = "0123456789abcdef"
    rows = '[["../outside.md",null,null],["memory/out.md",null,"00"],["pipimem.txt",null,null],7,["USER.md"],[1,2,3]]'
    for name, text in {tag: rows + '\n"ready"\n', "f" * 16: "{", "e" * 16: "", "keep.json": rows}.items():
        write(root, {f".pipimem/journal/{name}": text})
    os.mkfifo(root / ".pipimem/journal" / ("d" * 16))
    write_elsewhere(workspace)
    assert (tmp_path / "outside.md").read_text() == "kept"
    assert (root / "pipimem.txt").read_text() == "kept"
    assert "keep.json" in os.listdir(root / ".pipimem/journal")
    assert tag not in os.listdir(root / ".pipimem/journal")


def test_what_a_power_cut_left_is_swept_when_old_and_kept_when_young(workspace: Workspace, root: Path) -> None:
    for folder in ("", "channels/ops/", ".pipimem/"):
        write(root, {f"{folder}.pipimem-{age}.tmp": "x" for age in ("old", "young")})
        os.utime(root / folder / ".pipimem-old.tmp", (0, 0))
    put(workspace, {"USER.md": b"- a\n", "channels/ops/MEMORY.md": b"- b\n"})
    assert leftovers(root) == [".pipimem-young.tmp", ".pipimem/.pipimem-young.tmp", "channels/ops/.pipimem-young.tmp"]


# Failing disks

WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "quota",
    errno.EIO: "the disk reports an error",
    errno.EACCES: "read-only",
    errno.EROFS: "read-only",
}


def refusal(act: Callable[[], object]) -> Refused | None:
    """What `act` was refused with, if it was."""
    try:
        act()
    except Refused as error:
        return error
    return None


class Failing:
    """Makes the n-th call of one os function fail (and all later ones, if `lasting`); counts what it refused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.monkeypatch, self.name, self.real = monkeypatch, name, getattr(os, name)

    @contextmanager
    def at(self, number: int, code: int, *, lasting: bool = False) -> Iterator[list[int]]:
        count, refused = 0, []

        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            if self.name != "open" or arguments[1] & os.O_CREAT:
                count += 1
                if count == number or (lasting and count > number):
                    refused.append(count)
                    raise OSError(code, os.strerror(code))
            return self.real(*arguments, **named)

        with self.monkeypatch.context() as patched:
            patched.setattr(os, self.name, call)
            yield refused


@pytest.mark.parametrize("code", WORDS, ids=errno.errorcode.__getitem__)
@pytest.mark.parametrize("name", ["open", "write", "fsync", "replace", "mkdir", "unlink"])
def test_whatever_the_disk_refuses_the_old_files_stay_and_the_reason_is_true(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    write_elsewhere(workspace)
    failing, number, before = Failing(monkeypatch, name), 1, handles()
    while True:
        with failing.at(number, code) as refused:
            error = refusal(lambda: renew(workspace))
        if error is not None:
            assert WORDS[code] in error.message
            assert error.code == 4
            assert there(root) == OLD
            assert not (root / "channels/ops/memory").exists()
        else:
            # The last calls only tidy up: what they leave is removed by the next write.
            assert there(root) == NEW
            write_elsewhere(workspace)
            lay(root, OLD)
        assert leftovers(root) == []
        assert handles() == before
        if not refused:
            break
        number += 1
    assert number > 2


@pytest.mark.parametrize("lasting", [False, True])
def test_what_cannot_be_tidied_up_after_a_refusal_is_tidied_up_by_the_next_write(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, lasting: bool
) -> None:
    write_elsewhere(workspace)
    with (
        Failing(monkeypatch, "replace").at(1, errno.EIO),
        Failing(monkeypatch, "unlink").at(2, errno.EIO, lasting=lasting),
    ):
        assert refusal(lambda: renew(workspace))
    assert there(root) == OLD
    assert leftovers(root) != []
    write_elsewhere(workspace)
    assert there(root) == OLD
    assert leftovers(root) == []


@pytest.mark.parametrize("name", ["open", "write", "fsync"])
def test_a_disk_that_stays_broken_leaves_the_old_files_too(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_elsewhere(workspace)
    failing, number = Failing(monkeypatch, name), 1
    while True:
        with failing.at(number, errno.EIO, lasting=True) as refused:
            error = refusal(lambda: renew(workspace))
        assert there(root) == (NEW if error is None else OLD)
        assert error is None or "the disk reports an error" in error.message
        assert leftovers(root) == []
        lay(root, OLD)
        if not refused:
            break
        number += 1
    assert number > 4


def test_one_file_alone_is_taken_back_when_its_folder_cannot_be_made_durable(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename is done and its folder's fsync fails: not durable is not written, so the old text comes back."""
    write_elsewhere(workspace)
    folder, real = (root / "channels/ops").stat().st_ino, os.fsync

    def fsync(handle: int) -> None:
        if os.fstat(handle).st_ino == folder:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        with pytest.raises(Refused, match=r"'channels/ops/MEMORY\.md' could not be written: the disk reports an error"):
            put(workspace, {"channels/ops/MEMORY.md": b"- new\n"})
    assert there(root) == OLD
    assert (root / "channels/ops/MEMORY.md").stat().st_mode & 0o777 == 0o600
    assert leftovers(root) == []


def test_a_file_system_that_cannot_sync_folders_is_written_all_the_same(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    renew(workspace)
    assert there(root) == NEW


def test_what_cannot_even_be_taken_back_is_said_and_put_right_by_the_next_write(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file is in place, then no rename works any more, not even the one back."""
    write_elsewhere(workspace)
    with (
        Failing(monkeypatch, "replace").at(2, errno.EROFS, lasting=True),
        Failing(monkeypatch, "unlink").at(1, errno.EROFS, lasting=True),
        pytest.raises(Refused, match="read-only") as caught,
    ):
        renew(workspace)
    assert "The next write" in caught.value.hint
    assert there(root) not in (OLD, NEW)
    write_elsewhere(workspace)
    assert there(root) == OLD
    assert leftovers(root) == []


def test_a_writer_killed_while_it_takes_back_leaves_all_or_none(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second rename fails, and the process is killed at every call up to the end of putting that right."""
    write_elsewhere(workspace)
    number, killed = -1, True
    while killed:
        number += 2
        with Failing(monkeypatch, "replace").at(2, errno.EIO):
            killed = killed_at(number, lambda: refusal(lambda: renew(workspace)))
        write_elsewhere(workspace)
        assert there(root) in (OLD, NEW) if killed else there(root) == OLD
        assert leftovers(root) == []
        lay(root, OLD)
    assert number > 30


def test_a_change_there_is_no_room_for_is_not_begun(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(root)
    full = os.statvfs_result([*real[:4], 3, *real[5:]])
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    with pytest.raises(Refused, match="the disk is full"):
        renew(workspace)
    assert there(root) == OLD
    assert leftovers(root) == []


# Races


def append(workspace: Workspace, name: str, count: int) -> None:
    for number in range(count):
        with workspace.locks(["channels/ops/MEMORY.md"]):
            text = workspace.read("channels/ops/MEMORY.md") or b""
            line = f"- {name} 写下第 {number} 条\n".encode()
            workspace.write([Change("channels/ops/MEMORY.md", text, text + line)])


def forked(acts: list[Callable[[], object]]) -> None:
    """Runs every act in a process of its own, at once."""
    statuses: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        threads = [threading.Thread(target=lambda a: statuses.append(in_child(a)), args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0] * len(acts)


def test_four_processes_write_one_file_and_no_line_is_lost_torn_or_twice(workspace: Workspace, root: Path) -> None:
    forked([partial(append, Workspace(str(root)), name, 25) for name in "甲乙丙丁"])
    lines = (there(root)["MEMORY.md"] or "").splitlines()[3:]
    assert sorted(lines) == sorted(f"- {name} 写下第 {number} 条" for name in "甲乙丙丁" for number in range(25))
    assert leftovers(root) == []


def remember(root: Path, who: int, count: int) -> None:
    with pipimem.open(str(root)) as memory:
        for number in range(count):
            memory.add(f"Station {who} 测得 measured value {who * 1000 + number}", "ops")


def remembered(root: Path, who: int, count: int) -> list[int]:
    """How often each entry is in the file: each 1, if all is well."""
    text = there(root)["MEMORY.md"] or ""
    return [text.count(f"- Station {who} 测得 measured value {who * 1000 + n} <!-- m-") for n in range(count)]


@pytest.mark.parametrize("processes", [3])
def test_processes_that_remember_at_once_lose_nothing(workspace: Workspace, root: Path, processes: int) -> None:
    forked([partial(remember, root, who, 40) for who in range(processes)])
    assert [remembered(root, who, 40) for who in range(processes)] == [[1] * 40] * processes
    assert (there(root)["MEMORY.md"] or "").count("<!-- m-") == 40 * processes


def test_eight_threads_that_remember_at_once_lose_nothing(workspace: Workspace, root: Path) -> None:
    failures: list[BaseException] = []

    def act(who: int) -> None:
        try:
            remember(root, who, 12)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    threads = [threading.Thread(target=act, args=(who,)) for who in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [remembered(root, who, 12) for who in range(1, 9)] == [[1] * 12] * 8


def test_the_journal_of_a_living_process_is_left_alone(workspace: Workspace, root: Path) -> None:
    """A writer stands still between two renames; another writes elsewhere meanwhile; then the first goes on."""
    write_elsewhere(workspace)
    reached, go = os.pipe(), os.pipe()
    real, count = os.replace, 0

    def slow(source: str, target: str) -> None:
        nonlocal count
        count += 1
        if count == 2:
            os.write(reached[1], b".")
            os.read(go[0], 1)
        real(source, target)

    def writer() -> None:
        vars(os)["replace"] = slow
        renew(workspace)

    thread = threading.Thread(target=forked, args=([writer],))
    thread.start()
    os.read(reached[0], 1)
    try:
        half = there(root)
        put(workspace, {"USER.md": b"- meanwhile\n"})
        assert half == there(root) not in (OLD, NEW)
        assert leftovers(root) != []
    finally:
        os.write(go[1], b".")
        thread.join()
    assert there(root) == NEW
    assert leftovers(root) == []
    for handle in (*reached, *go):
        os.close(handle)


def test_a_journal_is_locked_while_it_is_open(root: Path) -> None:
    path = str(root / "0123456789abcdef")
    journal = Journal(path, os.O_CREAT | os.O_EXCL)
    with pytest.raises(BlockingIOError):
        Journal(path)
    journal.close(keep=True)
    Journal(path).close()
    assert not os.path.exists(path)


class Waiting(str):
    """A message's text whose reader waits: as slow as a model that thinks."""

    read: threading.Event
    done: threading.Event

    def __len__(self) -> int:
        self.read.set()
        assert self.done.wait(20)
        return super().__len__()


def test_remembering_does_not_wait_for_an_updater_that_thinks(workspace: Workspace, root: Path) -> None:
    """G02: the updater has read the file and thinks; another process adds; both facts are there, and at once."""
    lay(root, {"MEMORY.md": case("G02-memory.md").decode()})
    text = Waiting("Please remember that the staging host moved to stg-2.")
    text.read, text.done = threading.Event(), threading.Event()
    transcript = Transcript("test", "s1", (Message("test:s1#1", "user", text, "Ines", "2026-03-14T10:00:00Z"),))

    def think() -> None:
        with pipimem.open(str(root)) as memory:
            runs.append(memory.apply(memory.propose("ops", transcript)).run)

    runs: list[str] = []
    thread = threading.Thread(target=think)
    thread.start()
    assert text.read.wait(20)
    started = time.monotonic()
    with pipimem.open(str(root)) as memory:
        memory.add("Fan arrives 2026-03-20", "ops")
    took = time.monotonic() - started
    assert runs == []
    text.done.set()
    thread.join()
    now = there(root)["MEMORY.md"] or ""
    assert "Fan arrives 2026-03-20" in now
    assert "staging host moved to stg-2" in now
    assert len(runs) == 1
    assert took < 2


def test_who_holds_a_lock_is_named_and_so_is_one_that_is_gone(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LOCK_WAIT", 0.05)
    shown: list[str] = []

    def ask() -> None:
        with pytest.raises(Refused) as caught, Workspace(str(root)).locks(["channels/ops/MEMORY.md"]):
            pass
        shown.append(str(caught.value))

    with workspace.locks(["channels/ops/MEMORY.md"]):
        ask_in_a_thread = threading.Thread(target=ask)
        ask_in_a_thread.start()
        ask_in_a_thread.join()
        owner = next((root / ".pipimem" / "locks").glob("*.owner"))
        dead = in_child_pid()
        owner.write_text(owner.read_text().replace(str(os.getpid()), str(dead), 1))
        ask()
        owner.write_text("闲人\n")
        ask()
    assert f"process {os.getpid()} on" in shown[0]
    assert "Try again when it is done" in shown[0]
    assert f"process {dead} on" in shown[1]
    assert "which is gone" in shown[1]
    assert "Another process holds the lock" in shown[2]
    assert list((root / ".pipimem" / "locks").glob("*.owner")) == []


def in_child_pid() -> int:
    """The number of a process that is over."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_the_lock_of_a_killed_process_is_free_at_once(workspace: Workspace, root: Path) -> None:
    code = "import sys, time; from pipimem.workspace import Workspace\nwith Workspace(sys.argv[1]).locks(['MEMORY.md']): print('held', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.wait()
    child.stdout.close()
    owners = root / ".pipimem" / "locks"
    assert [f.read_text().split()[0] for f in owners.glob("*.owner")] == [str(child.pid)]
    put(workspace, {"MEMORY.md": "- 新的\n".encode()})
    assert list(owners.glob("*.owner")) == []
