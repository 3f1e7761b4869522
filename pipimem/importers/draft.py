"""One conversation while it is read: what importers collect before it is a `Transcript`, and how they name things.

Formats are the importers'; bytes and lines are `reading`'s.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pipimem.text import printable, scrub
from pipimem.transcript import Message, Transcript, reference, without_own_blocks, without_private

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipimem.importers.reading import Lines

FILE_KEYS = ("file_path", "path", "notebook_path", "filename")
COMMAND_KEYS = ("command", "cmd")
SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh"})
PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$")
MILLISECONDS, MICROSECONDS = 1e11, 1e14  # an epoch in seconds stays below 1e11 until the year 5138
RESULT_LIMIT, RESULT_EDGE = 8_000, 1_000
"""Characters of a tool's result that are kept, half of them from its end; a cut goes to a line's end this near."""
WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+=:@~%"
RESULT_KEYS = ("aggregated_output", "aggregatedOutput", "output", "content", "text", "result", "Ok", "Err", "message")
STREAMS = ("stdout", "stderr")
WRAPPING = {*RESULT_KEYS, *STREAMS, "error", "exit_code", "exitCode", "metadata", "success", "isError", "is_error"}
"""The keys of an object that a host put around a result; one with others is a result itself."""
REASONS = 100  # distinct reasons of one source; a damaged file must not fill the report
UNSAFE = re.compile(r"[\s#%]")


def count(skipped: dict[str, int], reason: str) -> None:
    """One more thing skipped for `reason`, which is made printable; over 100 reasons share `other`."""
    if reason not in skipped:
        reason = printable(scrub(reason), 60)
        reason = reason if reason in skipped or len(skipped) < REASONS else "other"
    skipped[reason] = skipped.get(reason, 0) + 1


class Said:
    """A message that may still grow."""

    __slots__ = ("at", "commands", "end", "files", "identity", "name", "role", "text", "time")

    def __init__(self, identity: str, role: str, text: str, time: str, at: int) -> None:
        self.identity, self.role, self.text, self.time, self.at, self.name = identity, role, text, time, at, ""
        self.end = -1
        self.files: list[str] = []
        self.commands: list[str] = []

    def named(self, files: Iterable[str], commands: Iterable[str]) -> None:
        """Adds the files and commands a tool call named."""
        self.files += files
        self.commands += commands


class Draft:
    """What is known so far of one session."""

    def __init__(
        self, engine: str, session: str = "", skipped: dict[str, int] | None = None, *, tools: bool = False
    ) -> None:
        self.engine, self.session, self.tools = engine, session, tools
        self.title = self.cwd = self.parent = self.kind = ""
        self.calls = self.errors = 0
        self.facts: dict[str, str] = {}
        self.skipped: dict[str, int] = {} if skipped is None else skipped
        self.said: dict[str, Said] = {}
        self.lines: Lines | None = None

    def grew(self, said: Said) -> None:
        """The line read last is the last one so far that the message is made of."""
        said.end = self.lines.at if self.lines is not None else -1

    def skip(self, reason: str) -> None:
        """Counts one thing left out."""
        count(self.skipped, reason)

    def add(self, role: str, text: str, identity: str, time: object = "", at: int = -1) -> Said | None:
        """A new message; none, and counted, when nothing but pipimem's own blocks is in it.

        Two messages with one id are two messages: the later one is told apart by `~2`, `~3`, ….
        """
        text = clean(text)
        if not text:
            self.skip("no text")
            return None
        return self.hold(role, text, identity, time, at)

    def hold(self, role: str, text: str, identity: str, time: object = "", at: int = -1) -> Said:
        """A new message that may be without text so far; without any in the end it is left out."""
        identity = scrub(identity)
        unique, number = identity, 1
        while unique in self.said:
            number += 1
            unique = f"{identity}~{number}"
        said = self.said[unique] = Said(unique, role, text, moment(time), at)
        self.grew(said)
        return said

    def result(self, text: str, identity: str, time: object = "", at: int = -1, name: str = "") -> Said | None:
        """What a tool returned, as a message of role `tool`, bounded; where nothing is in it, counted as left out."""
        text, cut = bounded(clean(text))
        if not text:
            self.skip("tool output")
            return None
        if cut:
            self.skip(CUT_SHORT)
        said = self.hold("tool", text, identity, time, at)
        said.name = clean(name)
        return said

    def last_said(self) -> Said | None:
        """The last message a person or the agent said."""
        return next((said for said in reversed(self.said.values()) if said.role != "tool"), None)

    def called(self, said: Said, calls: object) -> None:
        """Counts tool calls in the form of chat APIs; what they name belongs to the message."""
        for call in calls if isinstance(calls, list) else []:
            self.calls += 1
            function = record(record(call).get("function")) or record(call)
            said.named(*called(function.get("arguments", function.get("input")), self.cwd))

    def done(self, digest: str = "") -> Transcript:
        """The transcript; every string of it is valid UTF-8."""
        kept = tuple(self._message(s) for s in self.said.values() if s.text or s.files or s.commands)
        first, last = span(m.time for m in kept if m.role != "tool")
        facts = {k: scrub(v) for k, v in self.facts.items() if v}
        return Transcript(
            self.engine, scrub(self.session), kept, self.skipped, scrub(self.title).strip(), scrub(self.cwd), first,
            last, scrub(self.parent), self.kind, self.calls, self.errors, digest, facts,
        )  # fmt: skip

    def _message(self, s: Said) -> Message:
        ref = reference(self.engine, safe(scrub(self.session)), safe(s.identity))
        files, commands = tuple(dict.fromkeys(s.files)), tuple(dict.fromkeys(s.commands))
        return Message(ref, s.role, s.text, s.name, s.time, files, commands, s.identity, s.at, s.end)


def clean(text: str) -> str:
    """Text as it may be kept: valid UTF-8, without pipimem's own blocks, private spans and outer space."""
    return without_private(without_own_blocks(scrub(text))).strip()


CUT_SHORT = "tool output cut short"


def bounded(text: str) -> tuple[str, bool]:
    """A tool's result as it is kept, and whether it was cut: 8,000 characters, half from its beginning, half its end.

    A cut goes between lines where one ends near, never through a word or a key, of which half would be no secret any
    more to who looks for secrets.
    """
    if len(text) <= RESULT_LIMIT:
        return text, False
    half = RESULT_LIMIT // 2
    head, tail = text[:half], text[-half:]
    line = head.rfind("\n", half - RESULT_EDGE)
    head = head[:line] if line >= 0 else head.rstrip(WORD)
    line = tail.find("\n", 0, RESULT_EDGE)
    tail = tail[line + 1 :] if line >= 0 else tail.lstrip(WORD)
    begun, ended = head.rfind("-----BEGIN "), tail.find("-----END ")
    head = head[:begun] if begun > head.rfind("-----END ") else head
    if ended >= 0 and not 0 <= tail.find("-----BEGIN ") < ended:
        tail = tail[ended:].partition("\n")[2]
    return f"{head.rstrip()}\n[… {len(text) - len(head) - len(tail):,} characters …]\n{tail.lstrip()}".strip(), True


def result_text(value: object, depth: int = 8) -> str:
    """The text in a tool's result: plain, parts, an object with its output or its streams, or that object as JSON."""
    if isinstance(value, str):
        given = record(value) if value.lstrip().startswith("{") else {}
        told = depth and set(given) <= WRAPPING and any(k in given for k in (*RESULT_KEYS, *STREAMS, "error"))
        return result_text(given, depth - 1) if told else value
    if isinstance(value, list):
        return "\n".join(t for part in value if depth and (t := result_text(part, depth - 1)))
    if not isinstance(value, dict) or not depth or "image" in text_of(value.get("type")):
        return ""
    inner = next((t for key in RESULT_KEYS if (t := result_text(value.get(key), depth - 1))), "")
    streams = [] if inner else [text_of(value.get(key)) for key in STREAMS]
    error = value.get("error")
    wrong = result_text(error, depth - 1)
    return "\n".join(t for t in (inner, *streams, wrong if wrong != inner else "") if t)


def safe(part: str) -> str:
    """A session or message id as it may stand in a reference: white space, `#` and `%` percent-encoded."""
    return UNSAFE.sub(lambda m: "".join(f"%{b:02X}" for b in m[0].encode()), part)


def moment(value: object) -> str:
    """A host's time as ISO 8601: epoch seconds, milli- or microseconds in UTC; text as it stands; else ""."""
    if isinstance(value, str):
        text = value.strip()
        if _parsed(text):
            return text
        try:
            value = float(text)
        except ValueError:
            return ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return ""
    seconds = value / (1e6 if value > MICROSECONDS else 1e3 if value > MILLISECONDS else 1)
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return ""


def zoned(local: object, instant: object) -> str:
    """A local time without zone, its zone found from the same instant as an epoch; else the better of the two."""
    here, there = _parsed(moment(local)), _parsed(moment(instant))
    if here is None or there is None or here.tzinfo:
        return moment(local) if here else moment(instant)
    quarters = round((here - there.replace(tzinfo=None)) / timedelta(minutes=15))
    offset = timedelta(minutes=15) * quarters
    if abs(offset) > timedelta(hours=14) or abs(here - offset - there.replace(tzinfo=None)) > timedelta(minutes=2):
        return moment(instant)
    sign, minutes = "-" if quarters < 0 else "+", abs(quarters) * 15
    return f"{moment(local)}{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def span(times: Iterable[str]) -> tuple[str, str]:
    """The earliest and the latest of some ISO times, "" and "" without any; one without a zone counts as UTC."""
    found = [(p if p.tzinfo else p.replace(tzinfo=UTC), t) for t in times if (p := _parsed(t))]
    return (min(found)[1], max(found)[1]) if found else ("", "")


def _parsed(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if len(text) >= 16 else None
    except ValueError:
        return None


def parse(text: str) -> Any:
    """The value of JSON text, every string in it valid UTF-8. Raises `ValueError` or `RecursionError`."""
    return whole(json.loads(text), text)


def whole(value: Any, text: str) -> Any:
    """`value`, read from the JSON `text`, with its lone surrogates replaced; they come from escapes only."""
    if "\\ud" not in text and "\\uD" not in text:
        return value
    return json.loads(scrub(json.dumps(value, ensure_ascii=False)))


def text_of(value: object) -> str:
    """A value that should be text: text itself, else nothing."""
    return value if isinstance(value, str) else ""


def record(value: object) -> dict[str, Any]:
    """A value that should be an object: itself, the object its JSON text holds, else an empty one."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = parse(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def called(arguments: object, cwd: str = "") -> tuple[list[str], list[str]]:
    """The files (relative to `cwd` where below it) and commands that the arguments of a tool call name."""
    given = record(arguments)
    files = [within(cwd, scrub(v)) for k in FILE_KEYS if isinstance(v := given.get(k), str) and v]
    commands = [c for k in COMMAND_KEYS if (c := command(given.get(k)))]
    patch = next((given[k] for k in ("input", "patch") if isinstance(given.get(k), str)), "")
    return files + patched(patch, cwd), commands


def patched(patch: str, cwd: str = "") -> list[str]:
    """The files a patch in the `*** Update File:` form names."""
    return [within(cwd, scrub(path.strip())) for path in PATCHED.findall(patch)]


def command(value: object) -> str:
    """A command line from text or a list of words; the shell around it is left out."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        inner = len(value) == 3 and value[0] in SHELLS and value[1] in ("-c", "-lc")
        value = value[2] if inner else shlex.join(value)
    return scrub(value).strip() if isinstance(value, str) else ""


def within(folder: str, path: str) -> str:
    """A path as the project knows it: relative to the session's working folder where it lies below."""
    return path.removeprefix(folder.rstrip("/") + "/") if folder else path
