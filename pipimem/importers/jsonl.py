"""Plain JSON lines: one message a line with `role`, `content` (or `text`), and if known `name`, `timestamp`, `id`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipimem.importers import called
from pipimem.importers.draft import Draft, moment, span, text_of
from pipimem.importers.reading import BOM, Lines, Part, ends, walk
from pipimem.text import scrub
from pipimem.transcript import ROLES, Session, Transcript, content_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENDINGS = (".jsonl", ".jsonl.zst", ".ndjson")
TIMES = ("timestamp", "time", "created_at", "date")
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the first line is an object with a role and content."""
    first = head.removeprefix(BOM).lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"role"' in first and (b'"content"' in first or b'"text"' in first)


def places(environ: Mapping[str, str]) -> list[str]:
    """Nowhere: no host keeps plain lines in a place of its own."""
    return []


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """The files of JSON lines below a folder."""
    return (path for path in walk(root, skipped) if path.endswith(ENDINGS))


def sessions(path: str) -> list[Session]:
    """The one conversation, named after the file."""
    first, last = span(moment(_time(row)) for row in ends(path))
    return [Session("jsonl", _name(path), first=first, last=last)]


def named_after(path: str) -> tuple[str, str]:
    """The file's name, and the file whether or not it is packed."""
    return _name(path), os.path.abspath(path).removesuffix(".zst")


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """The messages of users and assistants; other roles are counted as skipped."""
    draft = Draft("jsonl", called(path, _name(path), session), tools=tools)
    source = draft.lines = Lines(path, draft.skipped, part=part)
    for number, at, row in source:
        if not isinstance(row, dict):
            draft.skip("not a message")
            continue
        role = ROLES.get(str(row.get("role", "")).lower(), "")
        tool = tools and row.get("role") == "tool"
        if not (role or tool):
            draft.skip(f"role {row.get('role')}")
            continue
        identity = row.get("id")
        identity = str(identity) if isinstance(identity, str | int) and str(identity).strip() else f"L{number}"
        text = content_text(row.get("content", row.get("text")))
        if tool:
            draft.result(text, identity, _time(row), at, text_of(row.get("name")))
            continue
        said = draft.add(role, text, identity, _time(row), at)
        if said:
            said.name = scrub(row["name"]) if isinstance(row.get("name"), str) else ""
            draft.called(said, row.get("tool_calls"))
    return draft.done(source.digest)


def _time(row: Mapping[str, object]) -> object:
    return next((row[k] for k in TIMES if row.get(k)), "")


def _name(path: str) -> str:
    name = os.path.basename(path).removesuffix(".zst")
    return os.path.splitext(name)[0]
