"""A conversation as pipimem sees it: messages with their source references, pipimem's own blocks taken out.

Formats of hosts are the importers'; what is worth keeping is update's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipimem.text import BLOCK

OWN_BLOCK = re.compile(rf"<{BLOCK}\b[^>]*>.*?(?:</{BLOCK}>|\Z)", re.DOTALL)
PRIVATE = re.compile(r"<(private|no-memory)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
ROLES = {"user": "user", "human": "user", "assistant": "assistant", "bot": "assistant", "ai": "assistant"}
REFERENCE = re.compile(r"([a-z][a-z0-9_-]*):([^#\s]+)#(\S+)")


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `ref` (`engine:session#message`), role (user, assistant or tool), speaker's name or "", text.

    `time` is ISO 8601 with its zone, "" where the host gave none. `files` and `commands` are what a tool call named.
    `id` is the message's id as the host gives it (`L` and the line's number where it gives none); `at` is where the
    record stands in its source: a byte offset in the (unpacked) file, a row number in a database, -1 if unknown; `end`
    is the offset after the last line it is made of, -1 where it is not made of lines.
    """

    ref: str
    role: str
    text: str
    name: str = ""
    time: str = ""
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    id: str = ""
    at: int = -1
    end: int = -1


@dataclass(frozen=True, slots=True)
class Transcript:
    """A finished stretch of conversation and what was left out of it, by reason.

    What follows `skipped` is provenance, as far as the host says it: title, working folder, first and last time of a
    message, the session it came from, its `kind` ("" for an ordinary conversation), tool calls and failed ones, the
    digest of the source (of the session's rows in a database), and `facts` such as platform, chat, chat_type, agent.
    """

    engine: str
    session: str
    messages: tuple[Message, ...]
    skipped: dict[str, int] = field(default_factory=dict)
    title: str = ""
    cwd: str = ""
    first: str = ""
    last: str = ""
    parent: str = ""
    kind: str = ""
    calls: int = 0
    errors: int = 0
    digest: str = ""
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def talk(self) -> tuple[Message, ...]:
        """The messages without what tools returned."""
        return tuple(message for message in self.messages if message.role != "tool")

    @property
    def ref(self) -> str:
        """`engine:session`, the name of the whole conversation."""
        return f"{self.engine}:{self.session}"


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation in a source, as a listing shows it without reading it whole.

    `kind` is "" for an ordinary conversation, else why it is left alone unless named (`sub-agent`, `cron`, `archived`,
    …); `messages` is the host's own count, -1 where it keeps none.
    """

    engine: str
    id: str
    title: str = ""
    cwd: str = ""
    first: str = ""
    last: str = ""
    parent: str = ""
    kind: str = ""
    messages: int = -1
    facts: dict[str, str] = field(default_factory=dict)


def reference(engine: str, session: str, message: str) -> str:
    """The source reference of one message."""
    return f"{engine}:{session}#{message}"


def content_text(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, list):
        parts = (p.get("text", "") if isinstance(p, dict) and p.get("type", "text") == "text" else "" for p in content)
        return "\n".join(p for p in parts if isinstance(p, str) and p).strip()
    return ""


def without_own_blocks(text: str) -> str:
    """`text` without blocks pipimem injected: memory is not learned again from its own recall."""
    return OWN_BLOCK.sub("", text).strip() if f"<{BLOCK}" in text else text


def without_private(text: str) -> str:
    """`text` without what a person marked as private: `<private>…</private>`, to the end where nothing closes it."""
    return PRIVATE.sub("", text) if "<" in text else text
