"""Plain JSON lines: one message a line with `role`, `content` (or `text`), and if known `name`, `timestamp`, `id`."""

from __future__ import annotations

import os

from pipimem.importers import count, lines
from pipimem.text import scrub
from pipimem.transcript import ROLES, Message, Transcript, content_text, reference, without_own_blocks


def detects(path: str, head: bytes) -> bool:
    """Whether the first line is an object with a role and content."""
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"role"' in first and (b'"content"' in first or b'"text"' in first)


def read(path: str) -> Transcript:
    """The messages of users and assistants; other roles are counted as skipped."""
    skipped: dict[str, int] = {}
    session = os.path.splitext(os.path.basename(path))[0]
    messages = []
    for number, row in lines(path, skipped):
        if not isinstance(row, dict):
            count(skipped, "not a message")
            continue
        role = ROLES.get(str(row.get("role", "")).lower(), "")
        text = without_own_blocks(scrub(content_text(row.get("content", row.get("text")))))
        if not role or not text:
            count(skipped, f"role {row.get('role')}" if not role else "no text")
            continue
        identity = str(row.get("id") or f"L{number}")
        time = str(row.get("timestamp") or row.get("time") or "")
        name = scrub(str(row.get("name") or ""))
        messages.append(Message(reference("jsonl", session, identity), role, text, name, time))
    return Transcript("jsonl", session, tuple(messages), skipped)
