"""Keeps the index of one workspace fresh while its files change: the only module that knows file events.

An event is only a hint: what changed is the index's own look at the files to say. Folders are watched, never files,
each by itself, and only those in which documents stand: neither `.git` nor the index nor what a link leads to is
watched. Where there are no events, a clock gives the hints.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import datetime

from pipimem.errors import Error, Refused
from pipimem.memory import Memory
from pipimem.text import scrub
from pipimem.workspace import FOLDERS, MARK, PRIVATE, TAKEN, looks_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from types import FrameType, TracebackType
    from typing import Any

    from pipimem.index.sync import Diff
    from pipimem.workspace import Scan, Workspace

    Report = Callable[[dict[str, Any]], None]
    Identity = tuple[int, int] | None

TICK, STEP, BATCH = 100, 30, 200
"""Milliseconds: between looks whether the root is there, of quiet that ends a batch of events, of a batch at most."""

BULK, SETTLE, LONGEST = 30, 0.4, 5.0
"""From how many paths on it is a checkout or a copy; then the seconds without a new path, at most, that are waited."""

PAUSE, PAUSE_MOST, GROWTH, COST_MOST = 0.1, 3.0, 1.5, 5.0
"""Seconds between two syncs: more each time while something never rests, and then four times what the last one took."""

LOOK, LOOK_MOST, LOOK_SHARE = 5.0, 60.0, 200
POLL, POLL_MOST, POLL_SHARE = 1.0, 30.0, 20
"""Seconds between looks at all files, beside events and instead of them: so many times what a look takes."""

RETRY, RETRY_MOST, EVENTS_AGAIN, ABSENCE = 0.5, 5.0, 300.0, 0.25
"""Seconds: after a failed sync, doubled up to the second; until events are tried again; between looks for a root."""

LEAVE = 2.0
"""Seconds a sync is waited for when it is time to go."""

YOUNG = 2.5
"""Seconds within which a file may change twice under one stamp, on the coarsest file systems."""

SETTINGS = ("pipimem.toml", "lexicon.txt")
NETWORK = frozenset(
    """
    nfs nfs4 cifs smb2 smb3 smbfs 9p afs ceph coda gfs gfs2 glusterfs gpfs lustre beegfs ncpfs ocfs2 orangefs virtiofs
    vboxsf vmhgfs prl_fs drvfs davfs acfs fakeowner
    """.split()
)


def until_told(
    root: str, report: Report, *, poll: bool = False, wanted: Callable[[], bool] = lambda: True,
    beside: Callable[[Callable[[float], bool]], None] | None = None,
) -> None:  # fmt: skip
    """Watches until SIGTERM comes or nobody wants it any more; the main thread only.

    `beside` is work to do meanwhile: it is given a function that waits so many seconds and tells whether to end, and
    a signal ends it wherever it is. Raises `KeyboardInterrupt` for SIGINT, and what `report` raises.
    """
    watch = Watch(root, report, poll=poll, wanted=wanted)
    told: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        told.append(number)
        watch.stop()  # an exception in somebody's destructor is lost; this is not
        raise KeyboardInterrupt

    ended = [signal.SIGTERM] + [signal.SIGINT] * (signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    before = {number: signal.signal(number, end) for number in ended}
    try:
        if beside is None:
            watch.run()
        else:
            watch.accompany(beside)
    except KeyboardInterrupt:
        if not told:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in told:
        raise KeyboardInterrupt


class Watch:
    """Keeps one workspace's index fresh: in this thread by `run`, or in one of its own as a context manager.

    `report` is given each event, a mapping with `event` and `time` first, in the thread that watches. `poll` looks by
    the clock from the start; a folder on a network file system is polled in any case.
    """

    def __init__(
        self, root: str, report: Report | None = None, *, poll: bool = False,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        self.root = os.path.abspath(root)
        self._report_to, self._poll, self._wanted = report, poll, wanted
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._identity = _identity(self.root)
        self._cache = self._cache_folder()
        self._folders: dict[str, Identity] = {}
        self._pace = _Pace()
        self._signature: int | None = None
        self._look_at = 0.0
        self._polls = ""
        self._error, self._owed = "", True
        self._skipped: list[tuple[str, str]] = []
        self._healthy, self._beat, self._hinted = False, 0.0, time.monotonic()

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self.run, name="pipimem-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def accompany(self, beside: Callable[[Callable[[float], bool]], None]) -> None:
        """Watches in a thread while `beside` works in this one; when either ends, so does the other.

        A sync under way is waited for two seconds, then left to its end with the process.
        """
        failed: list[BaseException] = []

        def run() -> None:
            try:
                self.run()
            except BaseException as error:  # noqa: BLE001 - what `report` raises is raised here, below
                failed.append(error)
            finally:
                self._stop.set()

        thread = threading.Thread(target=run, name="pipimem-watch", daemon=True)
        thread.start()
        try:
            beside(self._stop.wait)
        finally:
            self._stop.set()
            thread.join(LEAVE)
        if failed:
            raise failed[0]

    def stop(self) -> None:
        """Ends the watch after the sync it is in; from any thread."""
        self._stop.set()

    def holds(self, since: float) -> bool:
        """Whether a look at files and index taken at `since` (`time.monotonic`) still holds: neither changed after it.

        False while nothing is sure: by polling, after a failed sync, without the root, when the watch has ended.
        """
        alive = time.monotonic() - self._beat < 10 * TICK / 1000
        return self._healthy and alive and since > self._hinted

    def run(self) -> None:
        """Indexes what is there, then what changes, until it is stopped."""
        self._say("started", workspace=self.root, pid=os.getpid())
        try:
            if self._is_there():
                self._sync(everything=True)
            while not self._stop.is_set():
                if self._is_there() or self._wait():
                    self._watch()
        finally:
            self._healthy = False
            self._say("stopped")

    def _say(self, event: str, **facts: Any) -> None:
        if self._report_to is not None:
            now = datetime.now().astimezone().isoformat(timespec="milliseconds")
            self._report_to({"event": event, "time": now, **facts})

    # The root

    def _is_there(self) -> bool:
        return self._identity is not None and _identity(self.root) == self._identity

    def _wait(self) -> bool:
        """Waits for a root that was renamed, unmounted or made anew; whether it came."""
        self._healthy = False
        self._say("waiting", reason="the workspace folder " + ("is another" if _identity(self.root) else "is gone"))
        while not (os.access(self.root, os.R_OK | os.X_OK) and looks_like(self.root)):
            if self._stop.wait(ABSENCE) or not self._still_wanted():
                return False
        self._identity = _identity(self.root)
        self._owed = True
        self._say("resumed")
        self._pace.hint({""}, time.monotonic(), bulk=True)
        return True

    # Hints

    def _watch(self) -> None:
        """Follows the hints until other folders have to be watched."""
        self._find_folders()
        watched, unseen = self._folders, {""}  # what changed before the first hint, no event told
        for paths in self._hints():
            if not (self._still_wanted() and self._is_there()):
                return
            self._take(paths | unseen)
            unseen = set()
            if any(os.path.isdir(path) or os.path.basename(path) in SETTINGS for path in paths):
                self._find_folders()
            # A folder made anew may even have the old one's number; what happened to it is what tells.
            if self._folders != watched or not paths.isdisjoint(watched):
                return

    def _find_folders(self) -> None:
        """Lists the folders to watch anew; without settings that can be read they stay as they are."""
        try:
            with Memory(self.root) as memory:
                self._folders = _folders(memory.workspace)
        except (Error, OSError):
            return

    def _still_wanted(self) -> bool:
        if not self._wanted():
            self._stop.set()
        return not self._stop.is_set()

    def _hints(self) -> Iterator[set[str]]:
        """Paths that may have changed, and an empty set now and then."""
        reason = "it was asked for" if self._poll else self._why_no_events()
        if not reason:
            try:
                yield from self._events(os.path.realpath(self.root))
                return
            except FileNotFoundError:  # a folder went away since it was listed
                self._stop.wait(TICK / 1000)
                return
            except (OSError, RuntimeError, UnicodeError) as error:  # the limit of watches, or a name that is no UTF-8
                reason = f"file events failed: {error}"
        yield from self._clock(reason)

    def _why_no_events(self) -> str:
        """Why the folders must be polled: "" unless one is on a file system that tells nothing of changes elsewhere."""
        devices = {identity and identity[0]: path for path, identity in self._folders.items()}
        mounts = _mounts()
        for path in devices.values():
            kind = mount_type(path, mounts)
            if kind in NETWORK or kind.startswith("fuse."):
                return f"'{path}' is on a network file system ({kind})"
        return ""

    def _events(self, root: str) -> Iterator[set[str]]:
        from watchfiles import watch

        def matters(change: object, path: str) -> bool:
            return _matters(path, root)

        for changes in watch(
            *(self._folders or [root]), recursive=False, watch_filter=matters, debounce=BATCH, step=STEP,
            rust_timeout=TICK, yield_on_timeout=True, stop_event=self._stop, force_polling=False,
        ):  # fmt: skip
            if self._polls:
                self._polls = ""
                self._say("watching")
            yield {path for _, path in changes}

    def _clock(self, reason: str) -> Iterator[set[str]]:
        self._healthy, self._look_at = False, 0.0
        if reason != self._polls:
            self._polls = reason
            self._say("polling", reason=reason)
        until = time.monotonic() + EVENTS_AGAIN
        while time.monotonic() < until and not self._stop.wait(TICK / 1000):
            yield set()

    def _take(self, paths: set[str]) -> None:
        """Notes what may have changed, and syncs once it is time."""
        now = self._beat = time.monotonic()
        if (cache := self._cache_folder()) != self._cache:
            self._cache, paths = cache, {*paths, ""}
        if now >= self._look_at and self._differs():
            paths = {*paths, ""}
            self._find_folders()
        if paths:
            self._hinted = now
            self._pace.hint(paths, now)
        if self._pace.is_due(now):
            self._sync()
            self._beat = time.monotonic()

    def _differs(self) -> bool:
        """Whether all the files look otherwise than at the last look, or are too young to tell."""
        began, before = time.monotonic(), self._signature
        try:
            with Memory(self.root) as memory:
                self._signature = _signature(self.root, memory.workspace.scan(), time.time())
        except (Error, OSError):
            self._signature = None
        took = time.monotonic() - began
        often = (POLL_SHARE, POLL, POLL_MOST) if self._polls else (LOOK_SHARE, LOOK, LOOK_MOST)
        self._look_at = time.monotonic() + min(max(often[0] * took, often[1]), often[2])
        return self._signature is None or self._signature != before

    # Syncs

    def _sync(self, *, everything: bool = False) -> None:
        began = time.monotonic()
        self._pace.begin(began)
        try:
            with Memory(self.root) as memory:
                diff = memory.index() if everything else memory.sync()
        except (Error, OSError) as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - one sync that goes wrong does not end the watch
            self._failed(error)
        else:
            self._done(diff, memory.notes, memory.documents)
        self._cache = self._cache_folder()

    def _done(self, diff: Diff, notes: Collection[str], documents: int) -> None:
        now = time.monotonic()
        self._pace.done(now)
        self._hinted = self._hinted if diff.empty else now
        news = self._owed or notes or not diff.empty or diff.skipped != self._skipped
        self._healthy, self._owed, self._error, self._skipped = not self._polls, False, "", diff.skipped
        if news:
            self._say(
                "indexed", added=diff.added, changed=diff.changed, removed=diff.removed, documents=documents,
                skipped=[{"path": path, "reason": reason} for path, reason in diff.skipped],
                seconds=round(diff.seconds, 3), notes=list(notes),
            )  # fmt: skip

    def _failed(self, error: Exception) -> None:
        self._healthy = False
        self._pace.failed(time.monotonic())
        if not self._is_there():
            return  # the root is what has to be spoken about
        if isinstance(error, Refused) and self._pace.failures == 1:
            return  # most likely another process's turn
        message, hint = (error.message, error.hint) if isinstance(error, Error) else (f"{error!r}", "")
        self._owed = True
        if message != self._error:
            self._error = message
            self._say("error", message=message, hint=hint)

    def _cache_folder(self) -> Identity:
        return _identity(os.path.join(self.root, PRIVATE, "cache"))


class _Pace:
    """When the next sync is due: at once after a quiet time, once for what comes together, seldom for what never rests.

    All times are given, in seconds.
    """

    def __init__(self) -> None:
        self.failures = 0
        self._paths: set[str] = set()
        self._before: frozenset[str] = frozenset()
        self._bulk = self._awaited = False
        self._first = self._last = self._began = self._next = 0.0
        self._pause = PAUSE

    def hint(self, paths: Iterable[str], now: float, *, bulk: bool = False) -> None:
        """Notes paths; only those not heard of since the last sync put a sync off."""
        if new := set(paths) - self._paths:
            self._first = self._first if self._paths else now
            self._last = now
            self._paths |= new
        self._bulk = self._bulk or bulk or len(self._paths) >= BULK

    def is_due(self, now: float) -> bool:
        """Whether there is something to sync, and it is time; a path that does not rest keeps no other waiting."""
        settled = not self._bulk or now - self._last >= SETTLE or now - self._first >= LONGEST
        return bool(self._paths) and settled and now >= self._due()

    def _due(self) -> float:
        return self._next + (self._pause - PAUSE if self._paths <= self._before else 0.0)

    def begin(self, now: float) -> None:
        """A sync begins: what was hinted until now is its to see."""
        self._awaited = self._first < self._due()
        self._pause = min(GROWTH * self._pause, PAUSE_MOST) if self._awaited else PAUSE
        self._before = frozenset(self._paths)
        self._paths.clear()
        self._bulk, self._began = False, now

    def done(self, now: float) -> None:
        """A sync ended well."""
        self.failures = 0
        rest = min(4 * (now - self._began), COST_MOST) if self._awaited else 0.0
        self._next = now + max(PAUSE, rest)

    def failed(self, now: float) -> None:
        """A sync failed: it is tried again."""
        self._next = now + min(RETRY * 2**self.failures, RETRY_MOST)
        self.failures = min(self.failures + 1, 30)
        self._before = frozenset()
        self.hint({""}, now)


def _folders(workspace: Workspace) -> dict[str, Identity]:
    """The folders in which documents stand or may appear, each with what tells it from another of that name."""
    root, channels = os.path.realpath(workspace.root), workspace.channels_folder
    found = [root]
    for folder in FOLDERS:
        found += _tree(os.path.join(root, folder))
    if workspace.notes_folder:
        found += _tree(os.path.normpath(os.path.join(root, workspace.notes_folder)))
    top = root
    for part in channels.split("/") if channels != "." else ():
        top = os.path.join(top, part)
        found.append(top)
    for folder in _inner(top):
        if top != root or os.path.basename(folder) not in TAKEN:
            found += [folder, *_tree(os.path.join(folder, "memory"))]
    good = [path for path in dict.fromkeys(found) if path == scrub(path) and not os.path.islink(path)]
    return {path: identity for path in good if (identity := _identity(path))}


def _tree(top: str) -> list[str]:
    """A folder and all below it that can be read; nothing hidden, nothing behind a link."""
    if os.path.islink(top):
        return []
    found = []
    for path, inner, _ in os.walk(top):
        inner[:] = [name for name in inner if not name.startswith(".")]
        found.append(path)
    return found


def _inner(top: str) -> list[str]:
    """The folders in a folder that is no link."""
    if os.path.islink(top):
        return []
    try:
        with os.scandir(top) as listing:
            found = [item for item in listing if item.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [item.path for item in found if not item.name.startswith(".") and os.access(item.path, os.R_OK)]


def _signature(root: str, scan: Scan, now: float) -> int | None:
    """What changes whenever a document or a setting does; None while one is so young that it may change unseen."""
    if any(abs(now - document.stat.st_ctime) < YOUNG for document in scan.documents):
        return None
    settings = [_stat(os.path.join(root, name)) for name in SETTINGS]
    stamps = [(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) for found in settings if found]
    return hash((tuple((d.path, d.channel, d.stamp) for d in scan.documents), tuple(scan.skipped), tuple(stamps)))


def _matters(path: str, root: str) -> bool:
    """Whether an event may be about a document, a setting or a channel's mark, or a folder there or gone."""
    name = os.path.basename(path)
    if name.startswith("."):
        return name == MARK
    if name.endswith(".md") or (name in SETTINGS and os.path.dirname(path) == root):
        return True
    return os.path.isdir(path) or not os.path.lexists(path)


def _mounts() -> str:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def mount_type(path: str, mounts: str) -> str:
    """The type of the file system `path` (absolute, without links) is on, by Linux's `mountinfo`; "" if unknown."""
    best, kind = -1, ""
    for line in mounts.split("\n"):
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = _unescaped(fields[4]).rstrip("/")
        if len(point) >= best and (path + "/").startswith(point + "/"):
            best, kind = len(point), right.split(" ")[0]
    return kind


def _unescaped(name: str) -> str:
    for code in ("040", "011", "012", "134"):
        name = name.replace("\\" + code, chr(int(code, 8)))
    return name


def _identity(path: str) -> Identity:
    found = _stat(path)
    return (found.st_dev, found.st_ino) if found else None


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
