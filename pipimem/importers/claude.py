"""Claude Code sessions: one JSON line a block; the blocks of one assistant message share `message.id`."""

from __future__ import annotations

import os
import re
from typing import Any

from pipimem.importers import count, lines
from pipimem.text import scrub
from pipimem.transcript import Message, Transcript, content_text, reference, without_own_blocks

NOT_TALK = (
    "<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>",
    "<bash-stderr>", "<bash-input>", "<task-notification>", "<teammate-message>", "<system-reminder>",
    "Caveat: The messages below were generated", "This session is being continued from a previous",
)  # fmt: skip
CUT = re.compile(r"<(ide_opened_file|ide_selection|post-tool-use-hook|system-reminder)>.*?</\1>", re.DOTALL)


def detects(path: str, head: bytes) -> bool:
    """Whether the first lines carry Claude Code's record fields."""
    return b'"sessionId"' in head and b'"uuid"' in head and b'"message"' in head


def read(path: str) -> Transcript:
    """What the user typed and the assistant said, in order; a record seen twice (resume, replay) is taken once."""
    skipped: dict[str, int] = {}
    session = os.path.splitext(os.path.basename(path))[0]
    seen: set[object] = set()
    merged: dict[str, Message] = {}
    for number, row in lines(path, skipped):
        if not isinstance(row, dict):
            count(skipped, "not a record")
            continue
        identity = str(row.get("uuid") or f"L{number}")
        key = (row.get("parentUuid"), row.get("timestamp"), str(row.get("message"))[:2000])
        if identity in seen or key in seen:
            count(skipped, "seen before")
            continue
        seen.update((identity, key))
        session = str(row.get("sessionId") or session)
        _take(row, identity, session, merged, skipped)
    kept = tuple(m for m in merged.values() if m.text or m.files or m.commands)
    return Transcript("claude", session, kept, skipped)


def _take(
    row: dict[str, Any], identity: str, session: str, merged: dict[str, Message], skipped: dict[str, int]
) -> None:
    kind, message = row.get("type"), row.get("message")
    if kind not in ("user", "assistant") or not isinstance(message, dict):
        count(skipped, f"type {kind}")
    elif row.get("isMeta") or row.get("isSidechain"):
        count(skipped, "meta" if row.get("isMeta") else "sub-agent")
    elif kind == "user":
        _take_user(row, message, identity, session, merged, skipped)
    else:
        _take_assistant(row, message, identity, session, merged, skipped)


def _take_user(
    row: dict[str, Any], message: dict[str, Any], identity: str, session: str, merged: dict[str, Message],
    skipped: dict[str, int],
) -> None:  # fmt: skip
    content = message.get("content")
    if isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content):
        count(skipped, "tool output")
        return
    text = CUT.sub("", scrub(content_text(content))).strip()
    if text.startswith(NOT_TALK) or row.get("isCompactSummary"):
        count(skipped, "host's own text")
        return
    text = without_own_blocks(text)
    if text:
        ref = reference("claude", session, identity)
        merged[identity] = Message(ref, "user", text, time=str(row.get("timestamp") or ""))


def _take_assistant(
    row: dict[str, Any], message: dict[str, Any], identity: str, session: str, merged: dict[str, Message],
    skipped: dict[str, int],
) -> None:  # fmt: skip
    blocks = message.get("content")
    blocks = blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]
    texts, files, commands = [], list[str](), list[str]()
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            texts.append(scrub(str(block.get("text") or "")))
        elif kind == "tool_use":
            called = block.get("input") if isinstance(block.get("input"), dict) else {}
            named = [scrub(str(called[k])) for k in ("file_path", "path", "notebook_path") if called.get(k)]
            files += [_within(str(row.get("cwd") or ""), path) for path in named]
            commands += [scrub(str(called["command"]))] if called.get("command") else []
        else:
            count(skipped, str(kind))
    key = str(message.get("id") or identity)
    old = merged.get(key)
    before = old or Message(reference("claude", session, key), "assistant", "", time=str(row.get("timestamp") or ""))
    text = "\n".join(t for t in (before.text, without_own_blocks("\n".join(texts).strip())) if t)
    merged[key] = Message(
        before.ref, "assistant", text, time=before.time, files=(*before.files, *files),
        commands=(*before.commands, *commands),
    )  # fmt: skip


def _within(folder: str, path: str) -> str:
    """A path as the project knows it: relative to the session's working folder where it lies below."""
    return path.removeprefix(folder.rstrip("/") + "/") if folder else path
