"""Everything a workspace holds in one stream: as Markdown, or one JSON row for each entry and section.

Secrets are redacted unless asked for: a stream leaves the workspace. Proposals and pipimem's own records stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pipimem import markdown, safety
from pipimem.errors import Error
from pipimem.text import decode, scrub

if TYPE_CHECKING:
    from pipimem.opened import Opened
    from pipimem.workspace import Document

ENTRY_LAYERS = ("memory", "user", "standing")


def documents(memory: Opened, channel: str | None, layers: Sequence[str]) -> Iterator[tuple[Document, bytes]]:
    """The documents of a channel with the shared layer (None: of everything), by path; one unreadable is noted."""
    channels = None if channel is None else [memory.workspace.channel(channel).id]
    scan = memory.workspace.scan(channels)
    memory.notes += [f"Not exported: '{path}' ({why})." for path, why in scan.skipped]
    for document in sorted(scan.documents, key=lambda d: d.path):
        if layers and document.layer not in layers:
            continue
        try:
            yield document, memory.workspace.read(document.path) or b""
        except Error as error:
            memory.notes.append(f"Not exported: {error.message}")


def rows(
    memory: Opened, channel: str | None = None, layers: Sequence[str] = (), *, secrets: bool = False
) -> Iterator[dict[str, Any]]:
    """One row for each entry and each text between, in the order of the files: ref, path, line, heading[], channel,
    layer, kind, facts{}, text, and what the scanner says of it (`verdict`: secret, hidden, instruction, or "").
    """
    config = memory.workspace.config
    memory.workspace.trust()
    for document, data in documents(memory, channel, layers):
        parsed = markdown.parse(data)
        listed = document.layer in ENTRY_LAYERS
        dated = document.layer == "history" and parsed.family == "dated"
        ids = {e.start: i for i, e in markdown.identified(parsed, document.channel)} if listed or dated else {}
        for piece in markdown.pieces(parsed, entries=listed, dated=dated):
            entry = piece.entry
            text = scrub(entry.text if entry else decode(data[piece.start : piece.end]).strip())
            facts = {key: scrub(value) for key, value in entry.facts.items()} if entry else {}
            kind = facts.get("kind", "") if piece.start >= parsed.front[1] else "front"
            heading = [scrub(title) for title in piece.trail]
            name = f"{document.path}#{' > '.join(heading)}" if heading else document.path
            yield {
                "ref": ids[piece.start] if entry else name, "path": document.path, "line": piece.line,
                "heading": heading, "channel": document.channel, "layer": document.layer, "kind": kind,
                "facts": facts, "text": text if secrets else memory.redacted(text),
                "verdict": safety.verdict(text, config["safety.patterns"], config["safety.allow"]),
            }  # fmt: skip


def markdown_of(
    memory: Opened, channel: str | None = None, layers: Sequence[str] = (), *, secrets: bool = False
) -> Iterator[str]:
    """Each document's text after a comment that names it; one blank line between."""
    for document, data in documents(memory, channel, layers):
        text = scrub(decode(data.removeprefix(b"\xef\xbb\xbf")).replace("\r\n", "\n").replace("\r", "\n"))
        body = text if secrets else memory.redacted(text)
        name = document.path.replace("--", "-\u2011")  # nothing may end the comment
        yield f"<!-- {name} ({document.layer}) -->\n\n{body.strip(chr(10))}\n\n"
