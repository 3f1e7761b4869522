"""Finished turns as they happened, recorded durably: what the updater's jobs work on, and how far each job has come.

One file a channel below `.pipimem/state/turns/`, one message a line; secrets and pipimem's own blocks are out before
a line is written. A job's cursor moves only when it is done.
"""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipimem import safety
from pipimem.channels import folder_name
from pipimem.errors import Refused
from pipimem.files import append_private, locked, own_folder, reason, write_private
from pipimem.pending import read_private
from pipimem.text import encode, printable, scrub
from pipimem.transcript import ROLES, Message, Transcript, content_text, reference, without_own_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pipimem.workspace import Workspace

ENGINE = "turn"
LOST = "older messages no job had worked on, dropped to make room: run 'pipimem update' more often"
MESSAGE_LIMIT = 50_000
FILE_LIMIT = 4 * 1024 * 1024
TAIL = 512 * 1024  # more than any one line
NAME_LIMIT, INPUT_LIMIT, INPUTS = 200, 2_000, 20_000
"""Characters kept of a speaker's name, of one command or file name, and of all those of a message."""
SOURCES = 500
"""Host transcripts of a channel whose place is remembered; of an older one the messages at hand are known."""
FILE_KEYS, COMMAND_KEYS = ("file_path", "path", "notebook_path"), ("command", "cmd")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one call recorded: how many messages, the number of the channel's last one, what was left out by reason."""

    recorded: int
    cursor: int
    skipped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Window:
    """The messages after a cursor: as a transcript, up to which number, in how many turns with how many tool calls.

    `left` counts those after `end`, for which there was no room.
    """

    transcript: Transcript
    end: int
    turns: int
    calls: int
    last: str
    left: int = 0


class Turns:
    """The recorded turns of one channel."""

    def __init__(self, workspace: Workspace, channel: str) -> None:
        self._workspace = workspace
        self._channel = channel
        self._name = folder_name(channel)

    def record(self, rows: Iterable[object], now: str) -> Recorded:
        """Records one finished turn: rows with role, content, and if known name, timestamp, tool_calls.

        `now` (ISO 8601) stands in for a time a row does not say. Durable when it returns. Raises `Refused` with the
        reason when it cannot be written.
        """
        skipped: dict[str, int] = {}
        with self._held():
            start, turn = self._last()
            fresh: list[dict[str, Any]] = []
            for row in rows:
                made, why = self._row(row, now)
                if made is None:
                    skipped[why] = skipped.get(why, 0) + 1
                else:
                    fresh.append({"n": start + len(fresh) + 1, "turn": turn + 1, **made})
            if fresh and (lost := self._write(_lines(fresh))):
                skipped[LOST] = lost
        return Recorded(len(fresh), start + len(fresh), skipped)

    def _row(self, row: object, now: str) -> tuple[dict[str, Any] | None, str]:
        if not isinstance(row, dict):
            return None, "not a message"
        calls = [call for call in _items(row.get("tool_calls")) if isinstance(call, dict)]
        role = ROLES.get(str(row.get("role", "")).lower(), "")
        text = without_own_blocks(scrub(content_text(row.get("content", row.get("text")))))
        if len(text) > MESSAGE_LIMIT:
            return None, f"more than {MESSAGE_LIMIT:,} characters"
        if not role or not (text or calls):
            return None, f"role {printable(str(row.get('role')), 20)}" if not role else "no text"
        inputs = [_input(call) for call in calls]
        return {
            "role": role,
            "text": self._redacted(text),
            "name": self._redacted(scrub(str(row.get("name") or "")))[:NAME_LIMIT],
            "time": str(row.get("timestamp") or row.get("time") or now),
            "files": self._inputs(inputs, FILE_KEYS),
            "commands": self._inputs(inputs, COMMAND_KEYS),
            "calls": len(calls),
        }, ""

    def _inputs(self, inputs: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
        """What calls were given under those keys, redacted before it is cut; a here-document is no command's name."""
        kept: list[str] = []
        for text in (scrub(str(given[key])) for given in inputs for key in keys if given.get(key)):
            kept.append(self._redacted(text)[:INPUT_LIMIT])
            if sum(map(len, kept)) > INPUTS:
                return kept[:-1]
        return kept

    def _redacted(self, text: str) -> str:
        config = self._workspace.config
        return safety.redact(text, config["safety.patterns"], config["safety.allow"])

    def feed(self, transcript: Transcript, end: int, now: str) -> Recorded:
        """Records what a host's transcript says before its byte `end`, under the host's own references.

        What was recorded before is passed over, also after a crash in between, so that the same stretch may be fed
        again. `now` and errors as in `record`.
        """
        with self._held():
            sources = self._stored(self._source_path)
            begun = int(sources.pop(transcript.ref, 0))
            begun = begun if begun <= end else 0  # the file is another now
            known = {row["ref"] for row in self._rows() if "ref" in row}
            due = [m for m in transcript.messages if m.ref not in known and (m.at < 0 or begun <= m.at < end)]
            start, turn = self._last()
            fresh: list[dict[str, Any]] = []
            skipped: dict[str, int] = {}
            for message in due:
                made, why = self._row(_as_row(message), now)
                if made is None:
                    skipped[why] = skipped.get(why, 0) + 1
                    continue
                turn += message.role == "user" or not turn
                fresh.append({"n": start + len(fresh) + 1, "turn": turn, **made, "ref": message.ref})
            if fresh and (lost := self._write(_lines(fresh))):
                skipped[LOST] = lost
            kept = dict([*sources.items(), (transcript.ref, end)][-SOURCES:])
            write_private(self._source_path, encode(json.dumps(kept, ensure_ascii=False)))
        return Recorded(len(fresh), start + len(fresh), skipped)

    def fed(self) -> set[str]:
        """The conversations whose host's hooks have them recorded here, as references."""
        return set(self._stored(self._source_path))

    def since(self, cursor: int, limit: int | None = None) -> Window:
        """The messages after number `cursor`, oldest first; no more than fit in `limit` characters, but always one."""
        rows = [row for row in self._rows() if row["n"] > cursor and row.get("role")]
        sizes = itertools.accumulate(len(row["text"]) for row in rows)
        fit = len(rows) if limit is None else max(1, sum(size <= limit for size in sizes))
        rows, left = rows[:fit], len(rows[fit:])
        messages = tuple(
            Message(
                self._reference(row), row["role"], row["text"], row["name"], row["time"], tuple(row["files"]),
                tuple(row["commands"]),
            )
            for row in rows
        )  # fmt: skip
        end = rows[-1]["n"] if rows else cursor
        session = f"{self._name}.{rows[0]['n']}-{end}" if rows else self._name
        return Window(
            Transcript(ENGINE, session, messages), end, len({row["turn"] for row in rows}),
            sum(row["calls"] for row in rows), rows[-1]["time"] if rows else "", left,
        )  # fmt: skip

    def cursor(self, job: str) -> int:
        """The number of the last message a job has worked on; 0 before its first run."""
        return self._cursors().get(job, 0)

    def move(self, job: str, end: int) -> None:
        """The job is done up to message `end`; a cursor never moves back."""
        with self._held():
            cursors = self._cursors()
            cursors[job] = max(end, cursors.get(job, 0))
            write_private(self._cursor_path, encode(json.dumps(cursors)))

    def forget(self, meant: Callable[[str, str], bool], *, dry_run: bool = False) -> int:
        """Takes out every message whose text (what its tools were given included) and reference are `meant`; how many.

        Its number stays, so that no later message gets it. A line a crash left torn goes as well.
        """
        if not os.path.exists(self._path):
            return 0
        with self._held():
            rows = self._rows()
            gone = {row["n"] for row in rows if row.get("role") and self._is(row, meant)}
            if not dry_run and (gone or len(rows) < len((read_private(self._path) or b"").splitlines())):
                kept: list[dict[str, Any]] = [
                    {key: row[key] for key in ("n", "turn", "ref") if key in row} if row["n"] in gone else row
                    for row in rows
                ]
                write_private(self._path, encode(_lines(kept)))
        return len(gone)

    def holding(self, meant: Callable[[str, str], bool]) -> list[str]:
        """The references of the messages `forget` would take out."""
        return [self._reference(row) for row in self._rows() if row.get("role") and self._is(row, meant)]

    def _is(self, row: Mapping[str, Any], meant: Callable[[str, str], bool]) -> bool:
        text = "\n".join([row["text"], row["name"], *row["files"], *row["commands"]])
        return meant(text, self._reference(row))

    def text(self, ref: str) -> str:
        """What the message of that reference said, "" where it is not recorded here."""
        rows = (row for row in self._rows() if self._reference(row) == ref)
        return str(next((row["text"] for row in rows), ""))

    def _reference(self, row: Mapping[str, Any]) -> str:
        """A message's own reference: the host's, or that of its line."""
        return str(row.get("ref") or reference(ENGINE, self._name, str(row["n"])))

    def _write(self, lines: str) -> int:
        """Appends lines; a file grown too big loses the oldest that every job has done, then the oldest there are.

        Gives how many messages went that not every job had worked on.
        """
        size = os.path.getsize(self._path) if os.path.exists(self._path) else 0
        if size + len(encode(lines)) <= FILE_LIMIT:
            append_private(self._path, lines.rstrip("\n"), durable=True)
            return 0
        done = min(self._cursors().values(), default=0)
        kept = due = [row for row in self._rows() if row["n"] > done]
        while kept and len(encode(_lines(kept))) > FILE_LIMIT // 2:
            kept = kept[max(1, len(kept) // 4) :]
        write_private(self._path, encode(_lines(kept) + lines))
        return sum(1 for row in due[: len(due) - len(kept)] if row.get("role"))

    def _rows(self) -> list[dict[str, Any]]:
        """Every line that is whole; one cut off by a crash is none."""
        return [row for line in (read_private(self._path) or b"").splitlines() if (row := _row_of(line))]

    def _last(self) -> tuple[int, int]:
        """The number and the turn of the last message, without reading the whole file; (0, 0) before the first."""
        try:
            with open(self._path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
                rows = [row for line in file.read().splitlines() if (row := _row_of(line))] or self._rows()
        except FileNotFoundError:
            return 0, 0
        return (rows[-1]["n"], rows[-1]["turn"]) if rows else (0, 0)

    def _cursors(self) -> dict[str, int]:
        """How far each job has come; what is no number there is no job's work."""
        return {job: end for job, end in self._stored(self._cursor_path).items() if isinstance(end, int)}

    def _stored(self, path: str) -> dict[str, Any]:
        try:
            found = json.loads(read_private(path) or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def _path(self) -> str:
        return self._workspace.private("state", "turns", f"{self._name}.jsonl")

    @property
    def _cursor_path(self) -> str:
        return self._workspace.private("state", "turns", f"{self._name}.cursors.json")

    @property
    def _source_path(self) -> str:
        return self._workspace.private("state", "turns", f"{self._name}.sources.json")

    def _held(self) -> AbstractContextManager[None]:
        """The lock of this channel's turns, which no writer of files ever waits for. Raises `Refused`."""
        from contextlib import contextmanager

        @contextmanager
        def held() -> Any:
            try:
                self._workspace.prepare()
                os.makedirs(self._workspace.private("state", "turns"), mode=0o700, exist_ok=True)
                with locked(own_folder(self._workspace.private(), "locks"), [f"turns-{self._name[:100]}"]):
                    yield
            except OSError as error:
                raise Refused(
                    f"The turns of '{printable(self._channel)}' cannot be recorded: {reason(error)}.", ""
                ) from None

        return held()


def _row_of(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or not isinstance(row.get("n"), int) or not isinstance(row.get("turn"), int):
        return None
    return {"text": "", "name": "", "time": "", "files": [], "commands": [], "calls": 0, **row}


def _as_row(message: Message) -> dict[str, Any]:
    """A message as `record` takes it."""
    calls = [{"input": {FILE_KEYS[0]: file}} for file in message.files]
    calls += [{"input": {COMMAND_KEYS[0]: command}} for command in message.commands]
    return {
        "role": message.role, "content": message.text, "name": message.name, "timestamp": message.time,
        "tool_calls": calls,
    }  # fmt: skip


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _input(call: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call's arguments, as hosts name them: an object, or JSON in a string."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    given: object = next((inner[k] for k in ("input", "arguments", "args") if k in inner), {})
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {}
    return given if isinstance(given, dict) else {}
