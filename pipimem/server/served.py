"""One workspace as a server gives it: the scope it is bound to, an opened `Memory` for each call, the writes it allows.

The core is synchronous: a call runs in a thread and borrows a `Memory` that no other thread has meanwhile. Nothing
here knows the protocol.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from pipimem.config import remembered
from pipimem.errors import Refused
from pipimem.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.memory import Memory

WRITES = 20
"""Writes a session may make (design §6)."""
HOUR = 3600.0
"""Seconds after which a write over HTTP without a session (protocol 2026-07-28) no longer counts."""
MEMORIES = 8
"""Calls that work at once; the others wait. A model that thinks is the only thing worth more than one."""


SETTLE = 10.0
"""Seconds for which the end of a server waits for a write under way."""


class Cancelled(Refused):
    """The client took its call back before anything was written."""


class Served:
    """A workspace and the one channel (None: the shared layer alone) a server is bound to, for its whole life."""

    def __init__(self, root: str, channel: str | None = None, *, write: bool = False) -> None:
        workspace = Workspace(root, remembered(root, os.path.join(root, ".pipimem", "cache", "config.json")))
        self.channel = None if channel is None else workspace.channel(channel).id
        self.mode = str(workspace.config["recall.mode"])
        self.root = root
        self.write = write
        self._settings = os.path.join(root, "pipimem.toml")
        self._free: deque[tuple[object, Memory]] = deque()
        self._room = threading.BoundedSemaphore(MEMORIES)
        self._writing, self._updating = threading.Lock(), threading.Lock()
        self._written: dict[str, list[float]] = {}
        self._changes = 0
        self._closed = False

    def close(self) -> None:
        """Lets go of every opened workspace; one that is still in use lets go when it is handed back."""
        self._closed = True
        while self._free:
            self._free.pop()[1].close()

    def settled(self, patience: float) -> bool:
        """Whether no write is under way, after `patience` seconds at most; none begins any more."""
        return self._writing.acquire(timeout=patience)

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """An opened workspace for one call. It has seen what this server wrote, and the settings as they are."""
        from pipimem.memory import Memory  # not needed for a handshake

        with self._room:
            now = self._now()
            try:
                seen, memory = self._free.pop()
            except IndexError:
                seen, memory = now, Memory(self.root)
            if seen != now:
                memory.close()
                memory = Memory(self.root)
            try:
                yield memory
            finally:
                memory.notes.clear()
                self._free.append((now, memory))
                if self._closed:
                    self.close()

    def _now(self) -> object:
        """What tells whether an opened workspace may be behind: our writes, and the settings' file."""
        try:
            found = os.stat(self._settings)
            settings = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            settings = (0, 0, 0)
        return self._changes, settings

    def left(self, session: str) -> int:
        """How many writes a session still has. Without a session (""), those of the last hour count."""
        made = self._written.get(session, [])
        if not session:
            made[:] = [at for at in made if time.monotonic() - at < HOUR]
        return max(0, WRITES - len(made)) if self.write else 0

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Holds the one right to let a model think: it may take minutes. Raises `Refused` while another does."""
        if not self._updating.acquire(blocking=False):
            raise Refused("An update is under way already.", "Wait for its end.")
        try:
            yield
        finally:
            self._updating.release()

    def check_left(self, session: str) -> None:
        """Raises `Refused` where a session has made all of its writes."""
        if not self.left(session):
            raise Refused(f"This session has made its {WRITES} writes.", "A person can add more with 'pipimem add'.")

    @contextmanager
    def writing(self, session: str, cancelled: threading.Event) -> Iterator[None]:
        """Holds the one right to write, and counts the write when it was done. Raises `Refused` where none is left."""
        with self._writing:
            if cancelled.is_set():
                raise Cancelled("The call was taken back.", "Nothing was changed.")
            self.check_left(session)
            yield
            self._written.setdefault(session, []).append(time.monotonic())
            self._changes += 1


def leave(served: Served) -> None:
    """Ends the process once no write is under way: threads that wait for a model or a pipe are not waited for."""
    served.settled(SETTLE)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0)


class Call:
    """One call of a tool: the opened workspace, the scope, and what the client hears of it while it runs."""

    __slots__ = ("_served", "cancelled", "doing", "memory", "session")

    def __init__(self, served: Served, memory: Memory, session: str, cancelled: threading.Event) -> None:
        self._served = served
        self.memory = memory
        self.session = session
        self.cancelled = cancelled
        self.doing = ""

    @property
    def channel(self) -> str | None:
        """The channel the server is bound to; None for the shared layer alone."""
        return self._served.channel

    @property
    def writable(self) -> bool:
        """Whether the server was started with `--write`."""
        return self._served.write

    @property
    def mode(self) -> str:
        """The setting `recall.mode` as it is now."""
        return str(self.memory.workspace.config["recall.mode"])

    @property
    def observing(self) -> bool:
        """Whether nothing of memory's text may be given: everything else is answered, and traced."""
        return self.mode == "observe"

    @property
    def left(self) -> int:
        """How many writes the session still has."""
        return self._served.left(self.session)

    def check_left(self) -> None:
        """Raises `Refused` where the session has made all of its writes."""
        self._served.check_left(self.session)

    def updating(self) -> AbstractContextManager[None]:
        """Holds the one right to let a model think. Raises `Refused` while another call does."""
        return self._served.updating()

    def writing(self) -> AbstractContextManager[None]:
        """Holds the one right to write, and counts it when done. Raises `Refused`."""
        return self._served.writing(self.session, self.cancelled)
