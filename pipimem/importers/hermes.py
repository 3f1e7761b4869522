"""Hermes: `state.db`, whose columns grew over the versions, and the lines of `hermes sessions export`.

Both hold several sessions. Compacted messages are kept (they are inactive, but were said), rewound ones are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from pipimem.importers import chosen
from pipimem.importers.database import MAGIC, columns, database, rows, tables
from pipimem.importers.draft import Draft, clean, count, moment, parse, record, result_text, text_of
from pipimem.importers.pi import unwrapped
from pipimem.importers.reading import BOM, Lines, Part, head, walk
from pipimem.transcript import Session, Transcript, content_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

SESSION = (
    "id", "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "model_config",
    "parent_session_id", "started_at", "ended_at", "end_reason", "message_count", "title", "cwd", "git_branch",
    "git_repo_root", "profile_name", "archived", "hidden",
)  # fmt: skip
MESSAGE = (
    "id", "role", "content", "tool_calls", "tool_name", "timestamp", "active", "compacted", "_compressed_summary",
    "display_kind",
)  # fmt: skip
ENCODED = ("\x00json:", "\x01json:")
PARTS = ("text", "input_text", "output_text", "image", "image_url", "input_image", "audio", "input_audio", "file")
SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
REVIEW = "review the conversation above"
MARKERS = ("_branched_from", "_delegate_from", "_reset_from")
EXPORT_LIMIT = 32 * 1024 * 1024  # a whole session is one line
TOOL_LIMIT = 1024 * 1024
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the file is a `state.db`, or its first line a session with its messages."""
    if head.startswith(MAGIC):
        return {"sessions", "messages"} <= tables(path, head)
    first = head.removeprefix(BOM).lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"messages"' in first and (b'"started_at"' in first or b'"source"' in first)


def places(environ: Mapping[str, str]) -> list[str]:
    """The program's own folder: its database, and one for each profile below it."""
    return [environ.get("HERMES_HOME") or os.path.join(environ.get("HOME", ""), ".hermes")]


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """The databases below a folder."""
    return (path for path in walk(root, skipped) if os.path.basename(path) == "state.db")


def sessions(path: str) -> list[Session]:
    """Every session with why it is left alone by default, in the order the host keeps them."""
    with _store(path, {}) as store:
        return [_listed(row, store.opening(row)) for row in store.sessions()]


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """What was said in one session, in the order of the message ids."""
    skipped: dict[str, int] = {}
    with _store(path, skipped) as store:
        found = {text_of(row["id"]): row for row in store.sessions()}
        named = [found[session]] if session in found else list(found.values())
        about = chosen(path, [_listed(row, store.opening(row)) for row in named], session)
        draft = _draft(about, skipped, tools=tools)
        copied = _Copied(store, found[about.id], found.get(about.parent))
        return _taken(draft, copied, store.messages(about.id))


def each(path: str, skipped: dict[str, int], *, tools: bool = False) -> Iterator[Transcript]:
    """Every session that is not left alone, in one pass and one snapshot; the others are counted in `skipped`."""
    with _store(path, skipped) as store:
        found = {text_of(row["id"]): row for row in store.sessions()}
        for identity, messages in store.whole():
            about = _listed(found[identity], store.opening(found[identity]))
            if about.kind:
                count(skipped, about.kind)
            else:
                copied = _Copied(store, found[identity], found.get(about.parent))
                yield _taken(_draft(about, {}, tools=tools), copied, messages)


Messages = Iterator[tuple[int, dict[str, Any]]]


class _Backend(Protocol):
    """What a database and an export have in common; `sessions` goes over all of it and counts what is broken."""

    def sessions(self) -> Iterator[dict[str, Any]]: ...

    def opening(self, row: dict[str, Any]) -> str: ...

    def messages(self, session: str) -> Messages: ...

    def whole(self) -> Iterator[tuple[str, Messages]]: ...


@contextmanager
def _store(path: str, skipped: dict[str, int]) -> Iterator[_Backend]:
    if head(path).startswith(MAGIC):
        with database(path) as connection:
            yield _Database(connection)
    else:
        yield _Export(path, skipped)


class _Database:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def sessions(self) -> Iterator[dict[str, Any]]:
        order = "started_at, id" if "started_at" in columns(self.connection, "sessions") else "id"
        return rows(self.connection, "sessions", SESSION, f"ORDER BY {order}")

    def opening(self, row: dict[str, Any]) -> str:
        rest = "WHERE session_id = ? AND role = 'user' ORDER BY id LIMIT 1"
        found = list(rows(self.connection, "messages", ("content",), rest, (row["id"],)))
        return content(found[0]["content"]) if found else ""

    def messages(self, session: str) -> Messages:
        for row in rows(self.connection, "messages", MESSAGE, "WHERE session_id = ? ORDER BY id", (session,)):
            yield row["id"] if isinstance(row["id"], int) else -1, row

    def whole(self) -> Iterator[tuple[str, Messages]]:
        for row in self.sessions():
            yield text_of(row["id"]), self.messages(row["id"])


class _Export:
    def __init__(self, path: str, skipped: dict[str, int]) -> None:
        self.path, self.skipped = path, skipped

    def sessions(self) -> Iterator[dict[str, Any]]:
        for _, row in self._lines(self.skipped):
            first = next((record(m) for m in row["messages"] if record(m).get("role") == "user"), {})
            yield {**{k: row[k] for k in SESSION}, "opening": content(first.get("content"))}

    def opening(self, row: dict[str, Any]) -> str:
        return text_of(row.get("opening"))

    def messages(self, session: str) -> Messages:
        return next((messages for identity, messages in self.whole() if identity == session), iter(()))

    def whole(self) -> Iterator[tuple[str, Messages]]:
        for at, row in self._lines({}):
            yield row["id"], ((at, {**dict.fromkeys(MESSAGE), **record(m)}) for m in row["messages"])

    def _lines(self, skipped: dict[str, int]) -> Iterator[tuple[int, dict[str, Any]]]:
        seen = set[str]()
        for _, at, row in Lines(self.path, skipped, limit=EXPORT_LIMIT):
            identity = text_of(row.get("id")) if isinstance(row, dict) else ""
            if not identity or not isinstance(row.get("messages"), list):
                count(skipped, "not a record")
            elif identity not in seen:
                seen.add(identity)
                yield at, {**dict.fromkeys(SESSION), **row}


class _Copied:
    """What a session repeats of its parent: a branch its beginning, a compression child what it was started with."""

    def __init__(self, store: _Backend, row: dict[str, Any], parent: dict[str, Any] | None) -> None:
        self.known = set[bytes]()
        branch = "_branched_from" in record(row["model_config"])
        if parent is not None and (branch or text_of(parent["end_reason"]) == "compression"):
            self.known = {_mark(m) for _, m in store.messages(text_of(parent["id"]))}

    def holds(self, row: dict[str, Any]) -> bool:
        """Whether it is among the parent's; unlike `in`, it does not end what is repeated."""
        return bool(self.known) and _mark(row) in self.known

    def __contains__(self, row: dict[str, Any]) -> bool:
        if self.known and _mark(row) not in self.known:
            self.known = set()
        return bool(self.known)


def _draft(about: Session, skipped: dict[str, int], *, tools: bool) -> Draft:
    draft = Draft("hermes", about.id, skipped, tools=tools)
    draft.title, draft.cwd, draft.parent, draft.kind = about.title, about.cwd, about.parent, about.kind
    draft.facts = dict(about.facts)
    return draft


def _taken(draft: Draft, copied: _Copied, messages: Messages) -> Transcript:
    digest = blake2b(digest_size=16)
    for at, row in messages:
        digest.update(repr(row).encode("utf-8", "replace"))
        _take(draft, row, at, copied)
    return draft.done(digest.hexdigest())


def _mark(row: dict[str, Any]) -> bytes:
    said = f"{row['role']}\0{content(row['content'])}"
    return blake2b(said.encode("utf-8", "replace"), digest_size=16).digest()


def _take(draft: Draft, row: dict[str, Any], at: int, copied: _Copied) -> None:
    role = text_of(row["role"])
    if role == "tool":
        draft.errors += _failed(row["content"])
        _result(draft, row, at, copied)
    elif role not in ("user", "assistant"):
        draft.skip(f"role {role}")
    elif row["active"] in (0, False) and not row["compacted"]:
        draft.skip("rewound")
    elif row["display_kind"] == "hidden":
        draft.skip("hidden")
    else:
        text = clean(content(row["content"], draft))
        if row["_compressed_summary"] or text.startswith(SUMMARY):
            draft.skip("host's own text")
        elif row in copied:
            draft.skip("copy of the parent's history")
        else:
            _say(draft, row, role, text, at)


def _result(draft: Draft, row: dict[str, Any], at: int, copied: _Copied) -> None:
    gone = row["active"] in (0, False) and not row["compacted"]
    if not draft.tools or gone or row["display_kind"] == "hidden" or copied.holds(row):
        draft.skip("tool output")
        return
    identity = str(row["id"] if row["id"] is not None else f"T{len(draft.said) + 1}")
    draft.result(result_text(_decoded(row["content"])), identity, row["timestamp"], at, text_of(row["tool_name"]))


def _say(draft: Draft, row: dict[str, Any], role: str, text: str, at: int) -> None:
    text = clean(unwrapped(text)) if role == "user" else text
    number = 1 + sum(said.role != "tool" for said in draft.said.values()) if row["id"] is None else 0
    said = draft.hold(role, text, str(row["id"] if row["id"] is not None else f"L{number}"), row["timestamp"], at)
    draft.called(said, _json(row["tool_calls"]))
    if not (text or said.files or said.commands):
        draft.skip("no text")


def content(value: object, draft: Draft | None = None) -> str:
    """The text of a message that is plain, a list of parts, an object, or any of these as JSON."""
    value = _decoded(value)
    if isinstance(value, dict):
        value = value.get("text", value.get("content", ""))
        return value.strip() if isinstance(value, str) else ""
    if isinstance(value, list) and draft is not None:
        for part in value:
            kind = text_of(record(part).get("type")) or "text"
            if kind != "text":
                draft.skip("image" if "image" in kind else f"part {kind}")
    return content_text(value)


def _decoded(value: object) -> object:
    """JSON text as its value: marked as such, or a list of typed parts; else the text itself, for it was written so."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return value
    marked = next((value[len(mark) :] for mark in ENCODED if value.startswith(mark)), None)
    if marked is None and not value.startswith("[{"):
        return value
    try:
        found: object = parse(marked if marked is not None else value)
    except (ValueError, RecursionError):
        return value if marked is None else marked
    parts = found if isinstance(found, list) else [found]
    typed = all(record(p).get("type") in PARTS for p in parts)
    return found if marked is not None or typed else value


def _json(value: object) -> object:
    try:
        return parse(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _failed(value: object) -> bool:
    if isinstance(value, str) and len(value) > TOOL_LIMIT:
        return False
    given = record(value)
    return bool(given.get("error")) or given.get("exit_code") not in (None, 0) or given.get("success") is False


def _listed(row: dict[str, Any], opening: str) -> Session:
    config = record(row["model_config"])
    parent = text_of(row["parent_session_id"]) or next((text_of(config.get(m)) for m in MARKERS if config.get(m)), "")
    count = row["message_count"]
    facts = {
        "platform": row["source"], "chat": row["chat_id"], "chat_type": row["chat_type"], "thread": row["thread_id"],
        "chat_name": row["display_name"], "branch": row["git_branch"], "project": row["git_repo_root"],
        "agent": row["profile_name"], "session_key": row["session_key"],
    }  # fmt: skip
    return Session(
        "hermes", text_of(row["id"]), text_of(row["title"]), text_of(row["cwd"]), moment(row["started_at"]),
        moment(row["ended_at"]), parent, _kind(row, config, opening), count if isinstance(count, int) else -1,
        {k: str(v) for k, v in facts.items() if v},
    )  # fmt: skip


def _kind(row: dict[str, Any], config: dict[str, Any], opening: str) -> str:
    source = text_of(row["source"]).lower()
    if source in ("subagent", "delegate") or config.get("_delegate_from"):
        return "sub-agent"
    if source == "cron":
        return "cron"
    if opening.lstrip().lower().startswith(REVIEW):
        return "review"
    return next((name for name in ("archived", "hidden") if row[name]), "")
