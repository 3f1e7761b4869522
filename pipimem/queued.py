"""Work that waits: one line for each moment at which a hook saw that something should be done.

`.pipimem/state/queue.jsonl` holds paths, ranges and times, no text. A line is durable before a hook returns, and
leaves when its work is done; one that failed too often stays a while, to be seen. What the work is, is
maintaining.py's.
"""

from __future__ import annotations

import os

from pipimem.files import append_private, locked, own_folder, sync_folder, write_private
from pipimem.pending import read_private
from pipimem.text import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from contextlib import AbstractContextManager
    from typing import Any

    from pipimem.workspace import Workspace

EVENTS = ("turn", "compact", "session-end", "stale")
BACKOFF = 30 * 60
"""Seconds until a line that failed is tried again; `update.schedule.BACKOFF`."""
TRIES = 5
FIELDS = ("id", "event", "channel", "transcript", "start", "end", "time", "tries", "after", "why")
SHOWN, SHOWN_FOR = 20, 30 * 86_400
"""Lines given up that stay to be seen, and for how many seconds."""
LIMIT = 256 * 1024
"""Bytes of the queue; a longer one is made shorter by joining the lines of one conversation."""


class Line:
    """One line: what happened (`event`), in which channel, and which bytes of which transcript it is about.

    `time` is when (ISO 8601), `tries` how often it failed, `after` the time (seconds) before which it is not tried
    again, `why` what it failed with last.
    """

    __slots__ = ("after", "channel", "end", "event", "id", "start", "time", "transcript", "tries", "why")

    def __init__(self, row: dict[str, Any]) -> None:
        self.id = str(row["id"])
        self.event = str(row["event"])
        self.channel = str(row.get("channel") or "")
        self.transcript = str(row.get("transcript") or "")
        self.start = int(row.get("start") or 0)
        self.end = int(row.get("end") or 0)
        self.time = str(row.get("time") or "")
        self.tries = int(row.get("tries") or 0)
        self.after = float(row.get("after") or 0)
        self.why = str(row.get("why") or "")

    @property
    def given_up(self) -> bool:
        """Whether it failed too often to be tried again."""
        return self.tries >= TRIES

    @property
    def about(self) -> tuple[str, str]:
        """The conversation: channel and transcript."""
        return self.channel, self.transcript

    def row(self) -> dict[str, Any]:
        """What stands in the file."""
        return {name: getattr(self, name) for name in FIELDS}


class Queue:
    """The lines of one workspace."""

    __slots__ = ("_workspace",)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def lines(self) -> list[Line]:
        """Every whole line, oldest first, those given up as well; one torn by a crash is none."""
        import json

        found = []
        for text in (read_private(self.path) or b"").splitlines():
            try:
                line = Line(json.loads(text))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if line.event in EVENTS:
                found.append(line)
        return found

    def due(self, now: float) -> list[Line]:
        """The lines to be worked on at `now` (seconds), oldest first."""
        return [line for line in self.lines() if not line.given_up and line.after <= now]

    def append(self, event: str, channel: str, transcript: str, time: str) -> Line:
        """One more line, durable when this returns. Its range ends where the transcript ends now.

        Raises `Refused` or `OSError` where it cannot be written.
        """
        import json

        end = os.path.getsize(transcript) if transcript else 0
        with self._lock():
            before = [line.end for line in self.lines() if line.about == (channel, transcript) and line.end <= end]
            line = Line({
                "id": "q-" + os.urandom(4).hex(), "event": event, "channel": channel, "transcript": transcript,
                "start": max(before, default=0), "end": end, "time": time,
            })  # fmt: skip
            fresh = not os.path.exists(self.path)
            append_private(self.path, json.dumps(line.row(), ensure_ascii=False), durable=True)
            if fresh:
                sync_folder(os.path.dirname(self.path))
            if os.path.getsize(self.path) > LIMIT:
                self._write(_joined(self.lines()))
        return line

    def done(self, ids: Collection[str]) -> None:
        """The work of these lines is done, and with it whatever was given up before on the same conversation."""

        def kept(lines: list[Line]) -> list[Line]:
            about = {line.about for line in lines if line.id in ids}
            return [n for n in lines if n.id not in ids and not (n.given_up and n.about in about)]

        self._rewrite(kept)

    def failed(self, identity: str, why: str, now: float) -> None:
        """The work of a line failed: it is tried again later, or given up after the fifth time."""

        def kept(lines: list[Line]) -> list[Line]:
            for line in lines:
                if line.id == identity:
                    line.tries, line.after, line.why = line.tries + 1, now + BACKOFF, why
            old = [n.id for n in lines if n.given_up and now - n.after > SHOWN_FOR]
            old += [n.id for n in lines if n.given_up][:-SHOWN]
            return [line for line in lines if line.id not in old]

        self._rewrite(kept)

    def _rewrite(self, change: Callable[[list[Line]], list[Line]]) -> None:
        with self._lock():
            self._write(change(self.lines()))

    def _write(self, lines: Iterable[Line]) -> None:
        import json

        write_private(self.path, encode("".join(json.dumps(n.row(), ensure_ascii=False) + "\n" for n in lines)))

    @property
    def path(self) -> str:
        """The file."""
        return self._workspace.private("state", "queue.jsonl")

    def _lock(self) -> AbstractContextManager[None]:
        """Held only while a line is written or taken out."""
        self._workspace.prepare()
        own_folder(self._workspace.private(), "state")
        return locked(own_folder(self._workspace.private(), "locks"), ["queue"])


def _joined(lines: list[Line]) -> list[Line]:
    """The lines that never failed, one for each conversation and event over its whole range, and the others."""
    joined: dict[tuple[str, str, str], Line] = {}
    kept = []
    for line in lines:
        first = joined.setdefault((line.event, *line.about), line) if not line.tries else line
        if first is line:
            kept.append(line)
        else:
            first.start, first.end = min(first.start, line.start), max(first.end, line.end)
    return kept
