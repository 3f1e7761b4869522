"""The watcher as people run it: a process beside real files and real git, its events read line by line."""

from __future__ import annotations

import fcntl
import json
import os
import queue
import shutil
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import pipimem
from pipimem.text import digest
from pipimem.watch import BULK, LONGEST, PAUSE_MOST, SETTLE, Watch, _folders, _matters, _Pace, mount_type
from pipimem.workspace import Scan
from tests.conftest import _give_up_privileges, run, snapshot, write

PATIENCE = 15.0
"""Seconds after which something that has to happen will not happen."""

Event = dict[str, Any]


def eventually(what: Callable[[], bool]) -> None:
    """Waits until something holds."""
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, "it never came true"
        threading.Event().wait(0.01)


class Watcher:
    """`pipimem watch` in a process of its own; `seen` holds every event read so far."""

    def __init__(self, root: Path, *arguments: str, prefix: tuple[str, ...] = (), **settings: Any) -> None:
        command = [*prefix, sys.executable, "-m", "pipimem", "-w", str(root), "watch", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ), **settings
        )
        self.seen: list[Event] = []
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def next(self, patience: float = PATIENCE) -> Event:
        line = self._lines.get(timeout=patience)
        assert line, f"it has ended: {self.process.stderr and self.process.stderr.read()!r}"
        event: Event = json.loads(line.decode("utf-8"))
        self.seen.append(event)
        return event

    def until(self, name: str, holds: Callable[[Event], bool] = lambda event: True) -> Event:
        """The next event of that name for which `holds`."""
        deadline = time.monotonic() + PATIENCE
        while True:
            event = self.next(max(0.01, deadline - time.monotonic()))
            if event["event"] == name and holds(event):
                return event

    def indexed(self, path: str, how: str = "changed") -> Event:
        return self.until("indexed", lambda event: path in event[how])

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Ends it by a signal: exit code and standard error."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join()
        while self._lines.qsize() > 1:
            self.next()
        assert self.process.stderr
        return code, self.process.stderr.read().decode("utf-8")


def rows(root: Path) -> dict[str, str]:
    """What the index file itself says: digest by path. Asked directly, as a search would bring it up to date."""
    found = list((root / ".pipimem" / "cache").glob("index-*.sqlite3"))
    if len(found) != 1:
        return {}
    db = sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True, timeout=5)
    try:
        return dict(db.execute("SELECT path, digest FROM documents"))
    except sqlite3.OperationalError:
        return {}
    finally:
        db.close()


def on_disk(root: Path) -> dict[str, str]:
    return {name: digest(data) for name, (data, _, _) in snapshot(root).items() if name.endswith(".md")}


def is_fresh(root: Path) -> bool:
    return rows(root) == on_disk(root)


def save(path: Path, text: str) -> None:
    """As an editor does: beside it, then over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + "~new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


@pytest.fixture
def notes(root: Path) -> Path:
    """A small workspace: a channel and notes, English and Chinese."""
    write(
        root,
        {
            "pipimem.toml": "",
            "MEMORY.md": "# Memory\n\n- The fleet has eleven buses\n",
            "memory/ferry.md": "# Ferry\n\nIt leaves at nine.\n",
            "memory/渡口.md": "# 渡口\n\n渡船每天九点开。\n",
            "channels/ops/MEMORY.md": "# Channel Memory\n\n## Facts\n\n- The depot gate is blue\n",
            "channels/ops/SESSION.md": "# Session\n",
        },
    )
    return root


# Starting and stopping


def test_what_was_there_before_the_start_is_indexed(notes: Path) -> None:
    with pipimem.open(str(notes)) as memory:
        memory.index()
    save(notes / "memory" / "ferry.md", "# Ferry\n\nIt leaves at ten.\n")
    with pipimem.open(str(notes)) as memory:
        assert memory.search("ten")
    write(notes, {"memory/buoys.md": "# Buoys\n", "channels/ops/memory/浮标.md": "# 浮标\n\n红色浮标在左。\n"})
    with Watcher(notes) as watcher:
        started, first = watcher.next(), watcher.next()
        assert started["event"] == "started"
        assert started["workspace"] == str(notes)
        assert started["pid"] == watcher.process.pid
        assert (first["added"], first["changed"], first["removed"], first["skipped"]) == (
            ["memory/buoys.md", "channels/ops/memory/浮标.md"], [], [], [],
        )  # fmt: skip
        assert first["documents"] == len(on_disk(notes))
        assert first["seconds"] >= 0
        assert datetime.fromisoformat(first["time"]).tzinfo is not None
        assert is_fresh(notes)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_cleanly(notes: Path, number: signal.Signals, code: int) -> None:
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        ended, said = watcher.end(number)
        assert ended == code
        assert said in ("", "Interrupted.\n")
        assert watcher.seen[-1]["event"] == "stopped"


def test_it_ends_when_nobody_reads_its_events_any_more(notes: Path) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "pipimem", "-w", str(notes), "watch"]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, env=dict(os.environ)) as process:
        os.close(writing)
        assert b'"started"' in os.read(reading, 20)
        os.close(reading)
        assert process.wait(PATIENCE) == 0
        assert process.stderr
        assert process.stderr.read() == b""


def test_a_reader_that_reads_nothing_does_not_keep_it_from_ending(notes: Path) -> None:
    write(notes, {f"memory/{n:03}{'长' * 80}.md": "# x\n" for n in range(300)})
    command = [sys.executable, "-m", "pipimem", "-w", str(notes), "watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)) as process:
        assert process.stdout
        pipe = process.stdout.fileno()
        # It tells of 300 long names, which is more than a pipe holds.
        eventually(lambda: int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder) > 4096)
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr
        assert process.stderr.read() == b""


def test_without_a_workspace_it_does_not_start(tmp_path: Path) -> None:
    done = run("-w", tmp_path / "nowhere", "watch")
    assert done.code == 3
    assert "nowhere" in done.err
    assert done.out == ""


# Changes


def test_atomic_saves_new_files_and_renamed_folders_are_followed(notes: Path) -> None:
    memory = notes / "channels" / "ops" / "MEMORY.md"
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        for version in ("一号船坞", "二号船坞", "三号船坞"):
            save(memory, f"# Channel Memory\n\n## Facts\n\n- 缆绳放在{version}\n")
            watcher.indexed("channels/ops/MEMORY.md")
            assert is_fresh(notes)
        memory.unlink()
        watcher.indexed("channels/ops/MEMORY.md", "removed")
        memory.write_text("# Channel Memory\n\n- 缆绳放在四号船坞\n", encoding="utf-8")
        watcher.indexed("channels/ops/MEMORY.md", "added")
        (notes / "channels" / "ops").rename(notes / "channels" / "港务")
        watcher.indexed("channels/港务/MEMORY.md", "added")
        eventually(lambda: is_fresh(notes))
        assert "channels/ops/MEMORY.md" not in rows(notes)
        save(notes / "MEMORY.md", "# Memory\n\n- 车队有十二辆车\n")
        watcher.indexed("MEMORY.md")


def test_folders_that_appear_go_and_come_back_are_followed(root: Path) -> None:
    write(root, {"pipimem.toml": "", "MEMORY.md": "# Memory\n"})
    with Watcher(root) as watcher:
        watcher.until("indexed")
        for name in ("memory/a.md", "skills/钓鱼/SKILL.md", "channels/c/MEMORY.md"):
            write(root, {name: "# One\n"})
            watcher.indexed(name, "added")
        shutil.rmtree(root / "memory")
        watcher.indexed("memory/a.md", "removed")
        write(root, {"memory/a.md": "# Back\n"})
        watcher.indexed("memory/a.md", "added")
        save(root / "memory" / "a.md", "# 回来了\n")
        watcher.indexed("memory/a.md")
        assert is_fresh(root)


def test_a_folder_made_anew_at_once_is_followed(notes: Path) -> None:
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        for round_ in range(2):
            shutil.rmtree(notes / "memory")
            write(notes, {"memory/渡口.md": f"# {round_}\n"})
            eventually(lambda: is_fresh(notes))
            began = time.monotonic()
            save(notes / "memory" / "渡口.md", f"# 第{round_}次\n")
            eventually(lambda: is_fresh(notes))
            assert time.monotonic() - began < 4, "only the look at all files found it"


def test_channels_at_the_root_are_followed(root: Path) -> None:
    write(root, {"dm_alice/SESSION.md": "# Session\n", "dm_alice/MEMORY.md": "# M\n", "MEMORY.md": "# Shared\n"})
    with Watcher(root) as watcher:
        assert watcher.until("indexed")["documents"] == 3
        save(root / "dm_alice" / "SESSION.md", "# 会话\n\n靠岸\n")
        watcher.indexed("dm_alice/SESSION.md")
        write(root, {"dm_bob/SESSION.md": "# Session\n"})
        watcher.indexed("dm_bob/SESSION.md", "added")
        save(root / "dm_bob" / "SESSION.md", "# Session two\n")
        watcher.indexed("dm_bob/SESSION.md")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


def two_branches(root: Path, count: int) -> None:
    """`main` and `other` (checked out): half of the notes with another text, half with another name."""
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text(".pipimem/\n")
    for branch in ("main", "other"):
        if branch == "other":
            git(root, "checkout", "-q", "-b", branch)
            shutil.rmtree(root / "memory")
        write(
            root,
            {
                f"memory/{'笔记' if n % 2 else branch}/{n}.md": f"# {n}\n\n在 {branch} 分支上是 {n * n}。\n"
                for n in range(count)
            },
        )
        git(root, "add", ".")
        git(root, "commit", "-qm", branch)


@pytest.mark.parametrize(("count", "switches"), [(20, ["main", "other"]), (300, ["main"])])
def test_a_branch_switch_takes_few_syncs_and_never_empties_the_index(
    root: Path, count: int, switches: list[str]
) -> None:
    write(root, {"pipimem.toml": ""})
    two_branches(root, count)
    with Watcher(root) as watcher:
        assert watcher.until("indexed")["documents"] == count
        before = len(watcher.seen)
        for branch in switches:
            git(root, "checkout", "-q", branch)
            while not is_fresh(root):
                assert watcher.until("indexed")["documents"] >= count / 2
        watcher.end()
        events = watcher.seen[before:-1]
        assert {event["event"] for event in events} == {"indexed"}
        assert len(events) <= 4 * len(switches)
        with pipimem.open(str(root)) as memory:
            assert f"在 {switches[-1]} 分支" in memory.search(f"分支上是 {(count - 1) ** 2}")[0].text


def test_reading_and_what_is_no_document_wake_nothing(notes: Path) -> None:
    git(notes, "init", "-q", "-b", "main")
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        with pipimem.open(str(notes)) as memory:
            assert memory.add("The winch is oiled on Mondays", channel="ops").commit
            assert memory.search("winch", channel="ops")
        snapshot(notes)
        write(
            notes,
            {
                ".git/notes.md": "x",
                ".pipimem/cache/x.md": "x",
                "memory/.ferry.md.swp": "x",
                "src/main.md": "x",
                "channels/ops/log.jsonl": "{}",
                "channels/ops/.draft/MEMORY.md": "x",
            },
        )
        save(notes / "memory" / "渡口.md", "# 渡口\n\n渡船停开。\n")
        watcher.indexed("memory/渡口.md")
        watcher.end()
        told = {path for e in watcher.seen[2:-1] for how in ("added", "changed", "removed") for path in e[how]}
        # What `add` wrote it has indexed itself; a look in between may find it first.
        assert told <= {"memory/渡口.md", "channels/ops/MEMORY.md", "channels/ops/HISTORY.md"}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("memory/a.md", True), ("channels/运维/MEMORY.md", True), ("channels/x/.channel", True), ("memory/folder", True),
        ("memory/gone", True), ("channels/x/photo.png", False), ("memory/.a.md.swp", False), (".git", False),
        ("pipimem.toml", True), ("lexicon.txt", True), ("memory/lexicon.txt", False), ("setup.cfg", False),
    ],
)  # fmt: skip
def test_an_event_matters_where_a_document_may_be(root: Path, path: str, answer: bool) -> None:
    there = ("memory/folder/x.md", "channels/x/photo.png", ".git/x", "memory/lexicon.txt", "setup.cfg")
    write(root, dict.fromkeys(there, ""))
    assert _matters(str(root / path), str(root)) is answer


def test_only_folders_that_hold_documents_are_watched_and_nothing_behind_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    names = (
        "MEMORY.md", "memory/深/更深/a.md", "skills/s/SKILL.md", "channels/c/memory/d/a.md", "channels/c/repo/src/x.py",
        "channels/空/MEMORY.md", "src/x.py", ".git/x", ".pipimem/cache/x", "memory/.trash/x.md", "review/r.md",
    )  # fmt: skip
    write(root, dict.fromkeys(names, "x"))
    for link in ("memory/link", "channels/link", "skills/link"):
        (root / link).symlink_to(tmp_path / "elsewhere")
    with pipimem.open(str(root)) as memory:
        watched = {str(Path(path).relative_to(root)) for path in _folders(memory.workspace)}
    assert watched == {
        ".", "memory", "memory/深", "memory/深/更深", "skills", "skills/s", "channels", "channels/c",
        "channels/c/memory", "channels/c/memory/d", "channels/空",
    }  # fmt: skip


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_file_that_never_rests_starves_nothing_and_burns_no_time(notes: Path) -> None:
    done = threading.Event()

    def scribble() -> None:
        with open(notes / "channels" / "ops" / "SESSION.md", "a", encoding="utf-8") as file:
            while not done.wait(0.05):
                file.write("- 又一行\n")
                file.flush()

    writer = threading.Thread(target=scribble)
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        writer.start()
        try:
            for _ in range(2):
                watcher.indexed("channels/ops/SESSION.md")
            began, used = time.monotonic(), cpu_seconds(watcher.process.pid)
            save(notes / "memory" / "ferry.md", "# Ferry\n\nIt leaves at noon.\n")
            watcher.indexed("memory/ferry.md")
            assert time.monotonic() - began < 3
            watcher.indexed("channels/ops/SESSION.md")
            assert cpu_seconds(watcher.process.pid) - used < 0.4 * (time.monotonic() - began)
        finally:
            done.set()
            writer.join()
        eventually(lambda: is_fresh(notes))


# Pace


def test_a_single_save_is_synced_at_once() -> None:
    pace = _Pace()
    assert not pace.is_due(100.0)
    pace.hint({"a.md"}, 100.0)
    assert pace.is_due(100.0)
    pace.begin(100.0)
    assert not pace.is_due(101.0)


def test_many_paths_are_synced_once_they_settle() -> None:
    pace, now = _Pace(), 100.0
    for n in range(BULK):
        pace.hint({f"{n}.md"}, now)
    assert not pace.is_due(now)
    pace.hint({"0.md"}, now + SETTLE)
    assert pace.is_due(now + SETTLE)
    pace.hint({"new.md"}, now + SETTLE)
    assert not pace.is_due(now + SETTLE)
    for n in range(100):
        pace.hint({f"more{n}.md"}, now + n * LONGEST / 100)
    assert pace.is_due(now + LONGEST)


def test_a_restless_path_is_synced_ever_more_seldom_and_keeps_no_other_waiting() -> None:
    pace, now, times = _Pace(), 100.0, []
    while now < 130.0:
        pace.hint({"log.md"}, now)
        if pace.is_due(now):
            times.append(now)
            pace.begin(now)
            pace.done(now + 0.01)
        now += 0.05
    assert len(times) < 20
    assert times[-1] - times[-2] == pytest.approx(PAUSE_MOST, abs=0.2)
    late = times[-1] + 0.5
    pace.hint({"log.md"}, late)
    assert not pace.is_due(late)
    pace.hint({"other.md"}, late)
    assert pace.is_due(late)


def test_long_syncs_without_an_end_leave_the_machine_some_rest() -> None:
    pace = _Pace()
    pace.hint({"a.md"}, 100.0)
    pace.begin(100.0)
    pace.hint({"b.md"}, 100.5)
    pace.done(101.0)
    assert pace.is_due(101.1)
    pace.begin(101.1)
    pace.hint({"c.md"}, 101.5)
    pace.done(102.1)
    assert not pace.is_due(106.0)
    assert pace.is_due(106.1)


def test_a_failed_sync_is_tried_again_ever_later() -> None:
    pace = _Pace()
    pace.hint({"a.md"}, 105.0)
    tried = 105.0
    for rest in (0.5, 1.0, 2.0, 4.0, 5.0, 5.0):
        pace.begin(tried)
        pace.failed(tried)
        assert not pace.is_due(tried + rest - 0.01)
        tried += rest
        assert pace.is_due(tried)


# When things go wrong


def test_a_root_that_goes_away_is_waited_for_and_nothing_is_forgotten(notes: Path) -> None:
    away, copy = notes.with_name("away"), notes.with_name("copy")
    shutil.copytree(notes, copy)
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        known = rows(notes)
        notes.rename(away)
        assert "gone" in watcher.until("waiting")["reason"]
        notes.mkdir()  # as the empty folder of a mount
        assert rows(away) == known
        notes.rmdir()
        away.rename(notes)
        watcher.until("resumed")
        first = watcher.until("indexed")
        assert (first["removed"], first["documents"]) == ([], len(known))
        save(notes / "memory" / "渡口.md", "# 渡口\n\n渡船十点开。\n")
        watcher.indexed("memory/渡口.md")
        assert is_fresh(notes)
        notes.rename(away)
        copy.rename(notes)
        watcher.until("resumed")
        eventually(lambda: is_fresh(notes))
        save(notes / "channels" / "ops" / "MEMORY.md", "# 记忆\n\n- 新的一条\n")
        watcher.indexed("channels/ops/MEMORY.md")


def test_a_workspace_that_is_suddenly_empty_is_an_error_and_keeps_its_index(notes: Path, tmp_path: Path) -> None:
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        known = rows(notes)
        for name in ("memory", "channels", "MEMORY.md"):
            (notes / name).rename(tmp_path / name)
        error = watcher.until("error")
        assert "suddenly empty" in error["message"]
        assert error["hint"]
        gone = set(known) - set(rows(notes))
        for name in ("MEMORY.md", "channels", "memory"):
            (tmp_path / name).rename(notes / name)
        eventually(lambda: is_fresh(notes))
        assert len(gone) < len(known)


def test_one_failed_sync_is_told_once_and_does_not_end_the_watch(notes: Path) -> None:
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        save(notes / "pipimem.toml", "[workspace\n")
        assert "pipimem.toml" in watcher.until("error")["message"]
        save(notes / "memory" / "渡口.md", "# 渡口\n\n渡船十一点开。\n")
        save(notes / "pipimem.toml", "")
        watcher.indexed("memory/渡口.md")
        assert [event["event"] for event in watcher.seen].count("error") == 1
        write(notes, {"谈话/ops/MEMORY.md": "# M\n", "pipimem.toml": '[workspace]\nchannels = "谈话"\n'})
        watcher.indexed("谈话/ops/MEMORY.md", "added")


def test_a_name_that_is_no_utf8_ends_nothing(notes: Path) -> None:
    odd = os.fsencode(notes / "memory") + b"/\xff"
    try:
        os.mkdir(odd)
    except OSError:
        pytest.skip("this file system takes no such name")
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        Path(os.fsdecode(odd + b".md")).write_text("# Odd\n")
        save(notes / "memory" / "渡口.md", "# 渡口\n\n渡船三点开。\n")
        watcher.indexed("memory/渡口.md")
        assert watcher.end() == (0, "")


def test_a_file_that_cannot_be_read_is_named_and_stops_nothing(notes: Path) -> None:
    write(notes, {"memory/locked/a.md": "# A\n", "memory/封存.md": "# B\n"})
    (notes / "memory" / "locked").chmod(0)
    (notes / "memory" / "封存.md").chmod(0)
    nobody: dict[str, Any] = {"preexec_fn": _give_up_privileges} if os.geteuid() == 0 else {}
    with Watcher(notes, **nobody) as watcher:
        first = watcher.until("indexed")
        assert {row["path"] for row in first["skipped"]} == {"memory/locked", "memory/封存.md"}
        save(notes / "memory" / "ferry.md", "# Ferry\n\nIt leaves at one.\n")
        watcher.indexed("memory/ferry.md")
        (notes / "memory" / "封存.md").chmod(0o644)
        assert watcher.until("indexed")["skipped"] == [{"path": "memory/locked", "reason": "no permission to read it"}]
        (notes / "memory" / "locked").chmod(0o755)
        assert all(event["event"] != "polling" for event in watcher.seen)


def test_an_index_deleted_meanwhile_is_made_again(notes: Path) -> None:
    with Watcher(notes) as watcher:
        watcher.until("indexed")
        shutil.rmtree(notes / ".pipimem" / "cache")
        watcher.indexed("memory/渡口.md", "added")
        assert is_fresh(notes)


def test_two_watchers_do_not_harm_each_other(notes: Path) -> None:
    with Watcher(notes) as one, Watcher(notes) as two:
        for watcher in (one, two):
            watcher.until("indexed")
        for n in range(25):
            save(notes / "memory" / f"第{n}页.md", f"# {n}\n\n第 {n} 条航线\n")
        eventually(lambda: is_fresh(notes))
        shutil.rmtree(notes / "channels")
        save(notes / "memory" / "ferry.md", "# Ferry\n\nIt has sunk.\n")
        eventually(lambda: is_fresh(notes))
        for watcher in (one, two):
            assert watcher.end() == (0, "")
            assert {event["event"] for event in watcher.seen} == {"started", "indexed", "stopped"}
    db = sqlite3.connect(next((notes / ".pipimem" / "cache").glob("index-*.sqlite3")))
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    with pipimem.open(str(notes)) as memory:
        assert len(memory.search("航线", limit=30)) == 25


# Polling


def test_polling_on_request_finds_what_changes(notes: Path) -> None:
    with Watcher(notes, "--poll") as watcher:
        watcher.until("indexed")
        assert "asked" in watcher.until("polling")["reason"]
        save(notes / "channels" / "ops" / "MEMORY.md", "# 记忆\n\n- 闸门三点关\n")
        save(notes / "MEMORY.md", "# Memory\n\n- The fleet has nine buses\n")
        eventually(lambda: is_fresh(notes))
        (notes / "memory" / "ferry.md").unlink()
        watcher.indexed("memory/ferry.md", "removed")
        assert watcher.end() == (0, "")


MOUNTS = r"""
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 22 0:40 / /srv/team rw - nfs4 files.larkfield.example:/team rw,vers=4.2
41 22 0:41 / /home/岚/my\040notes rw shared:3 - fuse.sshfs lan@larkfield.example: rw
42 40 0:42 / /srv/team/scratch rw - tmpfs tmpfs rw
43 22 0:43 / /mnt rw - cifs //larkfield/share rw
44 22 254:2 / /mnt rw - xfs /dev/vdb rw
a line that is none
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"), ("/srv", "ext4"), ("/srv/team", "nfs4"), ("/srv/team/notes", "nfs4"), ("/srv/teams", "ext4"),
        ("/srv/team/scratch/x", "tmpfs"), ("/home/岚/my notes/w", "fuse.sshfs"), ("/home/岚", "ext4"), ("/mnt/a", "xfs"),
    ],
)  # fmt: skip
def test_the_file_system_of_a_folder_is_that_of_the_innermost_and_latest_mount(path: str, kind: str) -> None:
    assert mount_type(path, MOUNTS) == kind
    assert mount_type(path, "") == ""


LIMIT = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"'


def can_limit() -> bool:
    """Whether this machine lets us have a limit of our own on file events."""
    trial = ["unshare", "-Ur", "sh", "-c", LIMIT, "sh", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(trial, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_limit(), reason="needs a user namespace")
def test_without_room_for_file_events_it_polls_and_says_so(notes: Path) -> None:
    with Watcher(notes, prefix=("unshare", "-Ur", "sh", "-c", LIMIT, "sh")) as watcher:
        watcher.until("indexed")
        assert "Too many open files" in watcher.until("polling")["reason"]
        save(notes / "memory" / "渡口.md", "# 渡口\n\n渡船一点开。\n")
        watcher.indexed("memory/渡口.md")
        assert watcher.end() == (0, "")


# The library


class Told:
    """Collects events from the watching thread."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def names(self) -> list[str]:
        return [event["event"] for event in self.events]


def test_the_limit_of_watched_folders_is_no_end_either(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*paths: str, **settings: Any) -> Iterator[set[tuple[int, str]]]:
        raise OSError("OS file watch limit reached.")
        yield set()

    monkeypatch.setattr("watchfiles.watch", full)
    told = Told()
    with Watch(str(notes), told):
        eventually(lambda: "polling" in told.names())
        save(notes / "memory" / "渡口.md", "# 渡口\n\n渡船两点开。\n")
        eventually(lambda: is_fresh(notes))
    assert "limit reached" in next(e["reason"] for e in told.events if e["event"] == "polling")
    assert told.names()[-1] == "stopped"


def test_an_opened_memory_can_ask_whether_its_last_look_still_holds(notes: Path) -> None:
    watch = Watch(str(notes))
    assert not watch.holds(time.monotonic())
    with watch, pipimem.open(str(notes)) as memory:
        eventually(lambda: watch.holds(time.monotonic()))
        look = time.monotonic()
        assert memory.search("ferry")
        eventually(lambda: watch.holds(look))
        save(notes / "memory" / "渡口.md", "# 渡口\n\n末班渡船\n")
        eventually(lambda: not watch.holds(look))
        eventually(lambda: is_fresh(notes))
        eventually(lambda: watch.holds(time.monotonic()))
        notes.rename(notes.with_name("away"))
        eventually(lambda: not watch.holds(time.monotonic()))
    assert not watch.holds(time.monotonic())


def test_a_memory_that_believes_its_watcher_looks_again_only_when_something_changed(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipimem.index.TRUST", 0.0)
    with Watch(str(notes)) as watch, pipimem.open(str(notes)) as memory:
        eventually(lambda: watch.holds(time.monotonic()))
        memory.believe(watch.holds)
        assert memory.search("ferry")
        scans = 0
        scan = memory.workspace.scan

        def counted(channels: Sequence[str] | None = None) -> Scan:
            nonlocal scans
            scans += 1
            return scan(channels)

        monkeypatch.setattr(memory.workspace, "scan", counted)
        assert memory.search("ferry")
        assert scans == 0
        save(notes / "memory" / "渡口.md", "# 渡口\n\n末班渡船\n")
        eventually(lambda: any(h.path == "memory/渡口.md" for h in memory.search("渡口 ferry", limit=50)))
        assert scans > 0
        memory.believe(None)
        seen = scans
        memory.search("ferry")
        assert scans == seen + 1
