"""OpenClaw: the database of an agent (since 2026.8.1) and the files before it; both hold Pi entries.

Sessions of cron, heartbeat, hooks and sub-agents, and deleted ones, are left alone unless named. What the host puts
around a person's message (who, when, which message) is taken off, the speaker's name kept.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pipimem.importers import chosen, pi
from pipimem.importers.database import MAGIC, columns, database, rows, tables
from pipimem.importers.draft import Draft, count, moment, parse, record, text_of
from pipimem.importers.reading import BOM, Part, head, parsed, unpack, walk
from pipimem.transcript import Session, Transcript

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping

WINDOW = ("session_id", "session_key", "previous_session_id", "reason", "chat_type", "channel", "account_id",
          "primary_conversation_id", "hook_external_content_source", "created_at")  # fmt: skip
NODE = ("session_key", "current_session_id", "entry_json", "created_via", "parent_session_key", "spawned_by", "label",
        "display_name", "archived_at")  # fmt: skip
ARCHIVE = ("session_id", "encoding", "archive_blob", "reason", "created_at")
DATABASE = "openclaw-agent.sqlite"
SESSION_FILE = re.compile(r".+\.jsonl(?:\.(reset|deleted)\..+)?")
IN_PLACE = re.compile(r"/agents/([^/]+)/(?:sessions|session-sqlite-import-archive|agent)/")
MIGRATED = "session-sqlite-import-archive"
LEFT_ALONE = {"cron": "cron", "heartbeat": "heartbeat", "hook": "hook", "subagent": "sub-agent"}
METADATA = re.compile(r"\A([^\n]{1,80}\(untrusted[^\n)]*\)):[ \t]*\n```(?:json)?\n(.*?)\n```\s*", re.DOTALL)
TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:Z| (?:[A-Z][\w+:-]*|[+-]\d[\d:]*))"
STAMP = re.compile(rf"\A\[[^\]\n]*\S {TIME}\][ \t]*")
EVENT = re.compile(rf"\ASystem: \[{TIME}\] [^\n]*(?:\n+|\Z)")
MESSAGE_ID = re.compile(r"(?:\A|\n)\s*\[message_id:[^\]\n]*\]\s*\Z")
REPLY_TAG = re.compile(r"\A(?:\[\[\s*reply_to(?:_current|:[^\]\n]*)\s*\]\]\s*)+")
PROMPTS = (
    (re.compile(r"Read HEARTBEAT\.md if it exists\b"), "heartbeat"),
    (re.compile(r"\[cron:\S+ [^\]\n]+\]"), "cron"),
)
INDEX_LIMIT = 64 * 1024 * 1024
SILENT = ("HEARTBEAT_OK", "NO_REPLY")
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the file is an agent's database, or a session file in an agent's folder."""
    if head.startswith(MAGIC):
        return "transcript_events" in tables(path, head)
    known = IN_PLACE.search(os.path.abspath(path)) or os.path.exists(_index_path(path))
    return bool(known) and pi.HEADER.match(head.removeprefix(BOM)) is not None


def places(environ: Mapping[str, str]) -> list[str]:
    """`agents` in the program's own folder."""
    home = environ.get("OPENCLAW_STATE_DIR") or os.path.join(environ.get("HOME", ""), ".openclaw")
    return [os.path.join(home, "agents")]


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """Databases and session files below a folder; the originals of what a database took over only without one."""
    found = [p for p in walk(root, skipped) if os.path.basename(p) == DATABASE or _session_file(p)]
    moved = {os.path.dirname(os.path.dirname(p)) for p in found if os.path.basename(p) == DATABASE}
    for path in found:
        if f"/{MIGRATED}/" in path and path.partition(f"/{MIGRATED}/")[0] in moved:
            skipped["moved to the database"] = skipped.get("moved to the database", 0) + 1
        else:
            yield path


def sessions(path: str) -> list[Session]:
    """The sessions of a database, archived ones too, or the one of a file with what `sessions.json` says of it."""
    if not head(path).startswith(MAGIC):
        return [_file_session(path)]
    with database(path) as connection:
        return _sessions(connection, path)


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """What was said in one session, on the way to its newest entry."""
    if not head(path).startswith(MAGIC):
        about = _file_session(path)
        draft = _draft(about, tools=tools)
        if about.kind and session != about.id:
            draft.skip(about.kind)
            return draft.done()
        return pi.read_file(draft, path, session, typed, part)
    with database(path) as connection:
        return _transcript(connection, chosen(path, _sessions(connection, path), session), tools=tools)


def each(path: str, skipped: dict[str, int], *, tools: bool = False) -> Iterator[Transcript]:
    """Every session that is not left alone, those of a database in one snapshot; the others are counted."""
    if not head(path).startswith(MAGIC):
        found = _file_session(path)
        if found.kind:
            count(skipped, found.kind)
        else:
            yield read(path, found.id, tools=tools)
        return
    with database(path) as connection:
        for about in _sessions(connection, path):
            if about.kind:
                count(skipped, about.kind)
            else:
                yield _transcript(connection, about, tools=tools)


def _transcript(connection: sqlite3.Connection, about: Session, *, tools: bool) -> Transcript:
    draft, digest = _draft(about, tools=tools), blake2b(digest_size=16)
    pi.converse(draft, _entries(connection, about.id, draft.skipped, digest), typed)
    draft.session, draft.cwd = about.id, draft.cwd or about.cwd
    return draft.done(digest.hexdigest())


def typed(role: str, text: str) -> tuple[str, str, str]:
    """What was written without what the host put around it; a person's name; why it is left out, if it is."""
    if role != "user":
        text = REPLY_TAG.sub("", text).strip()
        return text, "", "silent reply" if text in SILENT else ""
    whole, name = text, ""
    text = pi.unwrapped(text)
    while found := METADATA.match(text):
        given = record(found[2])
        name = text_of(given.get("name")) or name or text_of(given.get("sender")) or text_of(given.get("label"))
        text = text[found.end() :]
    while found := EVENT.match(text):
        text = text[found.end() :]
    text = MESSAGE_ID.sub("", STAMP.sub("", text)).strip()
    why = next((reason for start, reason in PROMPTS if start.match(text)), "")
    return text, name, why or ("" if text or not whole else "host's own text")


def _draft(about: Session, *, tools: bool) -> Draft:
    draft = Draft("openclaw", about.id, tools=tools)
    draft.title, draft.parent, draft.kind, draft.facts = about.title, about.parent, about.kind, dict(about.facts)
    return draft


def _entries(
    connection: sqlite3.Connection, session: str, skipped: dict[str, int], digest: Any
) -> Iterator[tuple[int, int, object]]:
    found = False
    where = "WHERE session_id = ? ORDER BY seq"
    for row in rows(connection, "transcript_events", ("seq", "event_json"), where, (session,)):
        found = True
        line = row["event_json"] if isinstance(row["event_json"], bytes) else str(row["event_json"]).encode()
        digest.update(line)
        for _, _, value in parsed([line], skipped):
            yield row["seq"], row["seq"], value
    if found:
        return
    for row in rows(connection, "session_transcript_archives", ARCHIVE, "WHERE session_id = ?", (session,)):
        blob = row["archive_blob"]
        blob = blob.encode() if isinstance(blob, str) else blob or b""
        digest.update(blob)
        data = unpack(blob, str(row["encoding"] or "").lower())
        if data is None:
            skipped["compressed, needs pipimem[zstd]"] = skipped.get("compressed, needs pipimem[zstd]", 0) + 1
            continue
        yield from parsed(data.splitlines(), skipped)


def _sessions(connection: sqlite3.Connection, path: str) -> list[Session]:
    nodes = {text_of(row["session_key"]): row for row in rows(connection, "session_nodes", NODE)}
    owners = {text_of(row["current_session_id"]): key for key, row in nodes.items()}
    gone = {text_of(r["session_id"]): text_of(r["reason"]) for r in
            rows(connection, "session_transcript_archives", ("session_id", "reason"))}  # fmt: skip
    spans = _spans(connection)
    found = {text_of(row["session_id"]): row for row in rows(connection, "session_windows", WINDOW)}
    for identity in (*spans, *gone):
        found.setdefault(identity, {**dict.fromkeys(WINDOW), "session_key": owners.get(identity, "")})
    listed = []
    for identity, row in found.items():
        key = text_of(row["session_key"])
        node = nodes.get(key) or dict.fromkeys(NODE)
        entry = {**record(node["entry_json"]), **{k: v for k, v in row.items() if v}}
        first, last, many = spans.get(identity, ("", "", 0))
        about = _about(identity, key, entry, str(node["created_via"] or ""), path)
        cwd = text_of(entry.get("spawnedCwd")) or text_of(entry.get("execCwd"))
        title = text_of(node["label"]) or text_of(node["display_name"]) or about.title
        archived = "archived" if node["archived_at"] and identity == node["current_session_id"] else ""
        deleted = "deleted" if gone.get(identity) == "deleted" else ""
        listed.append(Session("openclaw", identity, title, cwd, first, last, text_of(row["previous_session_id"]),
                              about.kind or deleted or archived, many, about.facts))  # fmt: skip
    return listed


def _spans(connection: sqlite3.Connection) -> dict[str, tuple[str, str, int]]:
    have = columns(connection, "transcript_events")
    if not {"session_id", "seq"} <= have:
        return {}
    times = "min(created_at), max(created_at)" if "created_at" in have else "NULL, NULL"
    found = connection.execute(
        f"SELECT session_id, {times}, count(*) FROM transcript_events GROUP BY session_id ORDER BY min(rowid)"
    )
    return {text_of(s): (moment(a), moment(b), n) for s, a, b, n in found}


def _about(identity: str, key: str, entry: dict[str, Any], made: str, path: str) -> Session:
    """What a session's key (`agent:<id>:<channel>:group:<peer>`) and index entry say about it."""
    parts = key.split(":")
    kind = next((LEFT_ALONE[p] for p in (*parts, made.lower()) if p in LEFT_ALONE), "")
    kind = kind or ("hook" if entry.get("hook_external_content_source") else "")
    at = next((i for i, p in enumerate(parts) if p in ("group", "direct", "channel", "dm")), 0)
    place = IN_PLACE.search(os.path.abspath(path))
    agent = parts[1] if parts[0] == "agent" and len(parts) > 1 else place[1] if place else ""
    facts = {
        "platform": text_of(entry.get("channel")) or (parts[at - 1] if at > 2 else ""),
        "chat_type": text_of(entry.get("chat_type")) or text_of(entry.get("chatType")) or (parts[at] if at else ""),
        "chat": ":".join(parts[at + 1 :]) if at else "", "agent": agent, "session_key": key,
    }  # fmt: skip
    title = text_of(entry.get("label")) or text_of(entry.get("displayName"))
    title = title or text_of(entry.get("subject")) or text_of(entry.get("autoLabel"))
    return Session("openclaw", identity, title, kind=kind, facts={k: v for k, v in facts.items() if v})


def _file_session(path: str) -> Session:
    found = pi.listed("openclaw", path)
    key, entry = _indexed(path, found.id)
    about = _about(found.id, key, entry, "", path)
    removed = SESSION_FILE.fullmatch(os.path.basename(path))
    kind = about.kind or ("deleted" if removed and removed[1] == "deleted" else "")
    topic = re.search(r"-topic-([^.]+)", os.path.basename(path))
    facts = {**about.facts, **({"thread": topic[1]} if topic else {})}
    return Session("openclaw", found.id, about.title or found.title, found.cwd, found.first, found.last, found.parent,
                   kind, facts=facts)  # fmt: skip


def _indexed(path: str, session: str) -> tuple[str, dict[str, Any]]:
    try:
        with open(_index_path(path), "rb") as file:
            index = parse(file.read(INDEX_LIMIT).decode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return "", {}
    entries = {k: record(v) for k, v in index.items()} if isinstance(index, dict) else {}
    for key, entry in entries.items():
        named = os.path.basename(text_of(entry.get("sessionFile")))
        if entry.get("sessionId") == session or (named and named == os.path.basename(path)):
            return key, entry
    return "", {}


def _index_path(path: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(path)), "sessions.json")


def _session_file(path: str) -> bool:
    named = SESSION_FILE.fullmatch(os.path.basename(path))
    return named is not None and IN_PLACE.search(os.path.abspath(path)) is not None
