"""pipiclaw channels: `log.jsonl`, the visible chat with its speakers, and `context.jsonl`, Pi entries of the agent."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pipimem.importers import called, pi
from pipimem.importers.draft import Draft, clean, span, text_of, zoned
from pipimem.importers.reading import BOM, Lines, Part, ends, walk
from pipimem.text import scrub
from pipimem.transcript import Session, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOG = re.compile(r"log\.jsonl(?:\.\d+)?")
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the first line is a chat line, or the file a channel's context."""
    if os.path.basename(path) == "context.jsonl":
        return pi.HEADER.match(head.removeprefix(BOM)) is not None
    first = head.removeprefix(BOM).lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"isBot"' in first and b'"text"' in first


def places(environ: Mapping[str, str]) -> list[str]:
    """The workspace in the program's own folder."""
    home = environ.get("PIPICLAW_HOME") or os.path.join(environ.get("HOME", ""), ".pipiclaw")
    return [os.path.join(home, "workspace")]


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """Each channel's log, the rotated part first; its context only where there is no log."""
    found = list(walk(root, skipped))
    logged = {os.path.dirname(p) for p in found if LOG.fullmatch(os.path.basename(p))}
    for path in sorted(found, key=lambda p: (os.path.dirname(p), p.endswith("log.jsonl"))):
        name = os.path.basename(path)
        if LOG.fullmatch(name) or (name == "context.jsonl" and os.path.dirname(path) not in logged):
            yield path
        elif name == "context.jsonl":
            skipped["context of a logged channel"] = skipped.get("context of a logged channel", 0) + 1


def sessions(path: str) -> list[Session]:
    """The one conversation: a log is named after its channel's folder, a context by its header."""
    if os.path.basename(path) == "context.jsonl":
        return [pi.listed("pipiclaw", path)]
    first, last = span(_time(row) for row in ends(path))
    return [Session("pipiclaw", _channel(path), first=first, last=last, facts={"chat": _channel(path)})]


def named_after(path: str) -> tuple[str, str]:
    """The channel's folder for a log; a context has an id of its own."""
    is_log = LOG.fullmatch(os.path.basename(path)) is not None
    return (_channel(path), os.path.dirname(os.path.abspath(path))) if is_log else ("", "")


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """What people and the bot said, a line told twice taken once."""
    if os.path.basename(path) == "context.jsonl":
        draft = Draft("pipiclaw", _channel(path), tools=tools)
        draft.facts["chat"] = _channel(path)
        return pi.read_file(draft, path, session, part=part)
    draft = Draft("pipiclaw", called(path, _channel(path), session))
    draft.facts["chat"] = _channel(path)
    source = draft.lines = Lines(path, draft.skipped, part=part)
    seen = set[tuple[str, str, str]]()
    for number, at, row in source:
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            draft.skip("not a message")
            continue
        identity = str(row.get("ts") or row.get("date") or f"L{number}")
        key = (identity, text_of(row.get("user")), row["text"])
        if key in seen:
            draft.skip("seen before")
            continue
        seen.add(key)
        text = clean(pi.unwrapped(clean(row["text"])))
        said = draft.add("assistant" if row.get("isBot") else "user", text, identity, _time(row), at)
        if said:
            said.name = scrub(next((row[k] for k in ("displayName", "userName", "user") if text_of(row.get(k))), ""))
    return draft.done(source.digest)


def _time(row: dict[str, Any]) -> str:
    return zoned(row.get("date"), row.get("ts"))


def _channel(path: str) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(path)))
