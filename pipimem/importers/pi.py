"""Pi sessions: a header, then entries that form a tree; what is said is the path to the newest leaf.

The same entries stand in pipiclaw's `context.jsonl` and in both eras of OpenClaw: `converse` reads them for all.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pipimem.importers import missing
from pipimem.importers.draft import (
    CUT_SHORT,
    Draft,
    bounded,
    called,
    clean,
    command,
    moment,
    record,
    result_text,
    span,
    text_of,
    within,
)
from pipimem.importers.reading import BOM, Lines, Part, ends, walk
from pipimem.transcript import Session, Transcript, content_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Typed = Callable[[str, str], tuple[str, str, str]]

HEADER = re.compile(rb'\s*\{[^\n]{0,2000}?"type":\s*"session"')
BLOCK = (
    r"<(?P<tag>runtime_context|runtime_turn_context|durable_memory_snapshot|task_agenda|memory-context)(?: [^>\n]*)?>"
    r"(?s:.*?)</(?P=tag)>"
)
BEFORE = re.compile(rf"\A\s*{BLOCK}[ \t]*(?:\n|\Z|(?=<user_message>))")
AFTER = re.compile(r"\n\s*<memory-context>\s*\[System note:(?s:.*)</memory-context>\s*\Z")
WRAPPED = re.compile(r"\A\s*<user_message(?: [^>\n]*)?>(?s:(.*))</user_message>\s*\Z")
MIRROR = "delivery-mirror"
RESULTS = ("toolResult", "tool")
FILE = re.compile(r".*_([0-9a-fA-F-]{36})\.jsonl")
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the file starts with a session header."""
    return HEADER.match(head.removeprefix(BOM)) is not None and os.path.basename(path) != "context.jsonl"


def places(environ: Mapping[str, str]) -> list[str]:
    """`sessions` of the program's agent folder."""
    home = environ.get("PI_CODING_AGENT_DIR") or os.path.join(environ.get("HOME", ""), ".pi", "agent")
    return [os.path.join(home, "sessions")]


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """The sessions below a folder."""
    return (path for path in walk(root, skipped) if path.endswith(".jsonl"))


def sessions(path: str) -> list[Session]:
    """The one session of a file, as its first and last 64 kB tell it."""
    return [listed("pi", path)]


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """What was said on the way to the newest leaf."""
    return read_file(Draft("pi", stem(path), tools=tools), path, session, part=part)


def read_file(
    draft: Draft, path: str, session: str, typed: Typed | None = None, part: Part | None = None
) -> Transcript:
    """The entries of a file of lines, for every host that writes them."""
    source = draft.lines = Lines(path, draft.skipped, part=part)
    converse(draft, source, typed or plain)
    if session and session != draft.session and part is None:
        raise missing(path, session)
    return draft.done(source.digest)


def listed(engine: str, path: str) -> Session:
    """A file's session without reading it whole."""
    draft = Draft(engine, stem(path))
    times = []
    for row in ends(path):
        times.append(moment(row.get("timestamp")))
        _facts(draft, row)
    first, last = span(times)
    return Session(engine, draft.session, draft.title, draft.cwd, first, last, draft.parent)


def converse(draft: Draft, rows: Iterable[tuple[int, int, object]], typed: Typed) -> None:
    """Takes the entries, then says those on the path to the newest leaf in their order.

    The newest leaf is the last entry, unless an entry of type `leaf` after it points back to another one.
    """
    nodes: dict[str, _Node] = {}
    last = leaf = ""
    for number, at, row in rows:
        if not isinstance(row, dict):
            draft.skip("not a record")
            continue
        _facts(draft, row)
        kind = text_of(row.get("type"))
        if kind == "session":
            continue
        identity = text_of(row.get("id")) or f"L{number}"
        if identity in nodes:
            draft.skip("seen before")
            continue
        parent = row.get("parentId", last) if row.get("id") else last
        nodes[identity] = _Node(identity, text_of(parent), last, at, row, typed, tools=draft.tools)
        nodes[identity].end = draft.lines.at if draft.lines is not None else -1
        last = identity
        target = text_of(row.get("targetId")) if kind == "leaf" else ""
        leaf = target if target in nodes else identity
    path = _path(draft, nodes, leaf)
    for identity, node in nodes.items():
        if identity in path or not node.talk:
            node.say(draft)
        else:
            draft.skip("abandoned branch")


def _path(draft: Draft, nodes: Mapping[str, _Node], leaf: str) -> set[str]:
    """The entries from the root to the leaf; where a parent is lost, the entry before takes its place."""
    path = set[str]()
    while leaf and leaf not in path:
        path.add(leaf)
        node = nodes[leaf]
        lost = bool(node.parent) and node.parent not in nodes
        if lost:
            draft.skip("lost parent")
        leaf = node.before if lost else node.parent
    return path


class _Node:
    """An entry, reduced to what may be said of it."""

    __slots__ = ("at", "before", "calls", "commands", "end", "failed", "files", "identity", "mirror", "name",
                 "parent", "reason", "role", "skips", "talk", "text", "time")  # fmt: skip

    def __init__(
        self, identity: str, parent: str, before: str, at: int, row: dict[str, Any], typed: Typed, *, tools: bool
    ) -> None:
        self.identity, self.parent, self.before, self.at, self.end = identity, parent, before, at, -1
        self.role = self.text = self.name = self.reason = ""
        self.calls, self.failed, self.talk, self.mirror = 0, False, False, False
        self.files: list[str] = []
        self.commands: list[str] = []
        self.skips: list[str] = []
        message = record(row.get("message"))
        self.time = moment(row.get("timestamp")) or moment(message.get("timestamp"))
        if row.get("type") != "message":
            self.reason = f"type {row.get('type')}"
            return
        role = text_of(message.get("role"))
        if tools and role in RESULTS:
            self._result(message)
        else:
            self._message(message, role, typed)

    def _result(self, message: dict[str, Any]) -> None:
        self.text, cut = bounded(clean(result_text(message.get("content"))))
        self.role, self.name, self.talk = "tool", clean(text_of(message.get("toolName"))), True
        self.reason, self.failed = "" if self.text else "tool output", message.get("isError") is True
        self.skips += [CUT_SHORT] if cut else []

    def _message(self, message: dict[str, Any], role: str, typed: Typed) -> None:
        content = message.get("content")
        if role in RESULTS:
            self.reason, self.failed, self.talk = "tool output", message.get("isError") is True, True
        elif role == "bashExecution":
            self.role, self.talk = "user", True
            self.commands = [c for c in [command(message.get("command"))] if c]
        elif role == "user":
            self.role, self.talk = role, True
            self.text, self.name, self.reason = typed(role, clean(content_text(content)))
        elif role == "assistant":
            self.role, self.talk = role, True
            self.text, self.name, self.reason = typed(role, clean(content_text(content)))
            self.mirror = message.get("model") == MIRROR
        else:
            self.reason = f"role {role}"
        for part in content if isinstance(content, list) and self.role else []:
            self._part(record(part))

    def _part(self, part: dict[str, Any]) -> None:
        kind = text_of(part.get("type")) or "text"
        if kind in ("toolCall", "tool_use", "toolUse"):
            self.calls += 1
            files, commands = called(part.get("arguments", part.get("input")))
            self.files += files
            self.commands += commands
        elif kind != "text":
            self.skips.append(kind)

    def say(self, draft: Draft) -> None:
        """Hands the entry to the draft, or counts why not."""
        draft.calls += self.calls
        draft.errors += self.failed
        for kind in self.skips:
            draft.skip(kind)
        before = draft.last_said() if self.mirror else None
        if before and before.role == self.role and before.text == self.text:
            draft.skip("told twice")
        elif self.reason or not self.role:
            draft.skip(self.reason)
        elif self.text or self.files or self.commands:
            said = draft.hold(self.role, clean(self.text), self.identity, self.time, self.at)
            said.name, said.end = self.name, self.end
            said.named([within(draft.cwd, f) for f in self.files], self.commands)
        else:
            draft.skip("no text")


def _facts(draft: Draft, row: dict[str, Any]) -> None:
    kind = row.get("type")
    if kind == "session" and not draft.cwd:
        draft.session = text_of(row.get("id")) or draft.session
        draft.cwd = text_of(row.get("cwd"))
        parent = text_of(row.get("parentSession"))
        found = FILE.fullmatch(os.path.basename(parent))
        draft.parent = (found[1] if found else os.path.splitext(os.path.basename(parent))[0]) or draft.parent
    elif kind == "session_info" and text_of(row.get("name")):
        draft.title = row["name"]


def plain(role: str, text: str) -> tuple[str, str, str]:
    """What was said, with no name and no reason to leave it out but that nothing is left."""
    found = unwrapped(text) if role == "user" else text
    return found, "", "" if found or not text else "host's own text"


def unwrapped(text: str) -> str:
    """A prompt without the context blocks the host puts before it, and out of the tag it puts around it.

    Only what is whole and stands there is the host's: a prompt may speak of its tags.
    """
    if "<" not in text:
        return text
    while found := BEFORE.match(text):
        text = text[found.end() :]
    wrapped = WRAPPED.match(AFTER.sub("", text))
    return (wrapped[1] if wrapped else AFTER.sub("", text)).strip()


def stem(path: str) -> str:
    """The session's id as the file's name tells it: `<time>_<uuid>.jsonl`, or `<id>.jsonl` and what follows it."""
    name = os.path.basename(path)
    found = FILE.fullmatch(name)
    return found[1] if found else name.partition(".jsonl")[0]
