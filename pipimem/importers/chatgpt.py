"""ChatGPT's data export: `conversations.json`, one array of conversations, each a tree of messages.

The export has no published format; what is read here is what exports hold as of 2026: `mapping` (id → message,
parent), `current_node`, author roles, content types. The path to `current_node` is what the person last saw.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pipimem.importers import chosen, missing
from pipimem.importers.draft import Draft, clean, count, moment, record, result_text, text_of, whole
from pipimem.importers.reading import BOM, CHUNK, Part, opened, walk
from pipimem.transcript import ROLES, Session, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIMIT = 32 * 1024 * 1024  # characters of one conversation
NEXT = re.compile(r'\}\s*,\s*(?=\{\s*"(?:title|id|conversation_id|create_time)"\s*:)')
BETWEEN = re.compile(r"[\ufeff\s,\[\]]*")
NAME = re.compile(r"conversations(?:[-_]\d+)?\.json")
CITATION = re.compile("\ue200[^\ue201]*\ue201")
TALK = ("text", "multimodal_text")
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the file starts with a conversation that has a mapping, or is named like the export."""
    start = head.removeprefix(BOM).lstrip()
    if not start.startswith((b"[", b"{")):
        return False
    return (b'"mapping"' in start and b'"message"' in start) or NAME.fullmatch(os.path.basename(path)) is not None


def places(environ: Mapping[str, str]) -> list[str]:
    """Nowhere: the export is a file a person downloads."""
    return []


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """The exports below a folder, also those in numbered parts."""
    return (path for path in walk(root, skipped) if NAME.fullmatch(os.path.basename(path)))


def sessions(path: str) -> list[Session]:
    """Every conversation in the file."""
    return [_listed(found) for _, found, _ in _conversations(path, {})]


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """What was said in one conversation, on the way to its current node."""
    wanted = session or chosen(path, sessions(path), session).id
    skipped: dict[str, int] = {}
    for at, conversation, digest in _conversations(path, skipped):
        if _id(conversation) == wanted:
            return _transcript(at, conversation, digest, skipped, tools=tools)
    raise missing(path, wanted)


def each(path: str, skipped: dict[str, int], *, tools: bool = False) -> Iterator[Transcript]:
    """Every conversation that is not archived, in one pass; what is broken between them is counted in `skipped`."""
    for at, conversation, digest in _conversations(path, skipped):
        kind = _listed(conversation).kind
        if kind:
            count(skipped, kind)
        else:
            yield _transcript(at, conversation, digest, {}, tools=tools)


def _transcript(
    at: int, conversation: dict[str, Any], digest: str, skipped: dict[str, int], *, tools: bool
) -> Transcript:
    about = _listed(conversation)
    draft = Draft("chatgpt", about.id, skipped, tools=tools)
    draft.title, draft.kind, draft.facts = about.title, about.kind, dict(about.facts)
    mapping = {k: record(v) for k, v in record(conversation.get("mapping")).items()}
    seen = _path(mapping, text_of(conversation.get("current_node")))
    for identity in seen:
        _take(draft, identity, record(mapping[identity].get("message")), at)
    for identity in mapping.keys() - set(seen):
        if record(mapping[identity].get("message")):
            draft.skip("abandoned branch")
    return draft.done(digest)


def _take(draft: Draft, identity: str, message: dict[str, Any], at: int) -> None:
    author, content = record(message.get("author")), record(message.get("content"))
    role, kind = text_of(author.get("role")), text_of(content.get("content_type"))
    recipient = text_of(message.get("recipient")) or "all"
    if not message:
        return
    if record(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        draft.skip("hidden")
    elif role == "tool":
        draft.errors += kind == "system_error"
        if draft.tools:
            text = _text(content.get("parts"), draft) or result_text(content)
            name = text_of(author.get("name"))
            draft.result(text, text_of(message.get("id")) or identity, message.get("create_time"), at, name)
        else:
            draft.skip("tool output")
    elif role not in ROLES or ROLES[role] != role:
        draft.skip(f"role {role}")
    elif role == "assistant" and recipient != "all":
        draft.calls += 1
        draft.skip("tool call")
    elif kind not in TALK:
        draft.skip(f"content {kind}")
    else:
        text = clean(CITATION.sub("", _text(content.get("parts"), draft)))
        said = draft.add(role, text, text_of(message.get("id")) or identity, message.get("create_time"), at)
        if said:
            said.name = clean(text_of(author.get("name")))


def _text(parts: object, draft: Draft) -> str:
    texts = []
    for part in parts if isinstance(parts, list) else []:
        text = part if isinstance(part, str) else text_of(record(part).get("text"))
        if not text and isinstance(part, dict):
            kind = text_of(part.get("content_type"))
            draft.skip("image" if "image" in kind else f"part {kind}")
        texts.append(text)
    return "\n".join(t for t in texts if t)


def _path(mapping: Mapping[str, dict[str, Any]], leaf: str) -> list[str]:
    """The nodes from the root to the current one; without one, to the message written last."""
    if leaf not in mapping:
        times = {k: moment(record(node.get("message")).get("create_time")) for k, node in mapping.items()}
        leaf = max(times, key=lambda k: times[k]) if times else ""
    path = dict[str, None]()
    while leaf in mapping and leaf not in path:
        path[leaf] = None
        leaf = text_of(mapping[leaf].get("parent"))
    return list(reversed(path))


def _conversations(path: str, skipped: dict[str, int]) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Each conversation with its place (its number in the array) and digest, streamed; broken ones are counted."""
    for number, (value, raw) in enumerate(_values(path, skipped)):
        if isinstance(value, dict) and isinstance(value.get("mapping"), dict):
            yield number, value, blake2b(raw.encode("utf-8", "replace"), digest_size=16).hexdigest()
        else:
            count(skipped, "not a record")


def _values(path: str, skipped: dict[str, int]) -> Iterator[tuple[Any, str]]:
    decoder, utf8 = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")("replace")
    with opened(path) as file:
        text, size, ended = "", CHUNK, False
        while not ended:
            data = file.read(size)
            ended = len(data) < size
            text += utf8.decode(data, ended)
            at, size = _start(text, 0), CHUNK
            while at < len(text):
                try:
                    value, end = decoder.raw_decode(text, at)
                except (ValueError, RecursionError):
                    if not ended and len(text) - at < LIMIT:
                        size = max(CHUNK, len(text) - at)  # doubling: a long conversation is tried a few times only
                        break
                    found = NEXT.search(text, at)
                    count(skipped, "not JSON" if found or not ended else "half a line")
                    at = found.end() if found else len(text)
                    continue
                raw = text[at:end]
                yield whole(value, raw), raw
                at = _start(text, end)
            text = text[at:]


def _start(text: str, at: int) -> int:
    found = BETWEEN.match(text, at)
    return found.end() if found else at


def _listed(conversation: dict[str, Any]) -> Session:
    facts = {"project": text_of(conversation.get("gizmo_id")) or text_of(conversation.get("conversation_template_id"))}
    return Session(
        "chatgpt", _id(conversation), text_of(conversation.get("title")), "", moment(conversation.get("create_time")),
        moment(conversation.get("update_time")), "", "archived" if conversation.get("is_archived") else "",
        _spoken(conversation["mapping"]), {k: v for k, v in facts.items() if v},
    )  # fmt: skip


def _spoken(mapping: dict[str, Any]) -> int:
    authors = (record(record(record(node).get("message")).get("author")) for node in mapping.values())
    return sum(author.get("role") in ("user", "assistant") for author in authors)


def _id(conversation: dict[str, Any]) -> str:
    return text_of(conversation.get("conversation_id")) or text_of(conversation.get("id")) or "conversation"
