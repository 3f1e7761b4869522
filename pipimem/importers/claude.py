"""Claude Code sessions: one JSON line a block; the blocks of one assistant message share `message.id`.

A file is a tree with copies in it: compaction replays lines under new ids, a resumed session begins with the lines of
the old one, and going back leaves a branch behind. What was said once is taken once, from the newest branch.
"""

from __future__ import annotations

import os
import re
from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pipimem.importers import missing
from pipimem.importers.draft import Draft, called, clean, moment, record, result_text, span, text_of
from pipimem.importers.reading import Lines, Part, ends, walk
from pipimem.text import scrub
from pipimem.transcript import Session, Transcript, content_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NOT_TALK = (
    "<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>",
    "<local-command-caveat>", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "<teammate-message",
    "<system-reminder>", "Caveat: The messages below were generated",
    "This session is being continued from a previous", "[Request interrupted by user",
)  # fmt: skip
CUT = re.compile(r"<(ide_opened_file|ide_selection|post-tool-use-hook|system-reminder)>.*?</\1>", re.DOTALL)
TYPED = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
TITLES = (("summary", "summary"), ("ai-title", "aiTitle"), ("custom-title", "customTitle"))
VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
ATTACHED = (2, 1, 101)  # since then a steering message is an attachment, and a removal may be a change of mind
MADE_UP = "<synthetic>"  # the model of messages the program writes itself
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the first lines carry Claude Code's record fields."""
    if b'"sessionId"' not in head or b'"type"' not in head:
        return False
    return b'"uuid"' in head or b'"leafUuid"' in head or b'"queue-operation"' in head or b'"aiTitle"' in head


def places(environ: Mapping[str, str]) -> list[str]:
    """`projects` in the program's own folder."""
    home = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", ""), ".claude")
    return [os.path.join(home, "projects")]


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """The sessions below a folder; those of sub-agents are passed over and counted."""
    for path in walk(root, skipped):
        if not path.endswith(".jsonl"):
            continue
        if _agent_file(path):
            skipped["sub-agent"] = skipped.get("sub-agent", 0) + 1
        else:
            yield path


def sessions(path: str) -> list[Session]:
    """The one session of a file, as its first and last 64 kB tell it."""
    draft = Draft("claude", _stem(path))
    titles: dict[str, str] = {}
    times, named = [], ""
    for row in ends(path):
        named = named or text_of(row.get("sessionId"))
        times.append(moment(row.get("timestamp")))
        _facts(draft, row, titles)
    draft.session, draft.parent, draft.kind = _identity(path, named, "")
    first, last = span(times)
    return [
        Session(
            "claude", draft.session, _title(titles), draft.cwd, first, last, draft.parent, draft.kind,
            facts=draft.facts,
        )
    ]  # fmt: skip


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """What the user typed and the assistant said, in order; a record seen twice (resume, replay) is taken once.

    A sub-agent's messages are read only where its session (`agent-…`, or its file's name) is named.
    """
    agent = session.removeprefix("agent-") if session.startswith("agent-") or _agent_file(path) else ""
    reader = _Reader(Draft("claude", _stem(path), tools=tools), agent, _agent_file(path))
    source = reader.draft.lines = Lines(path, reader.draft.skipped, part=part)
    for number, at, row in source:
        reader.take(number, at, row)
    reader.finish()
    draft = reader.draft
    draft.session, draft.parent, draft.kind = _identity(path, reader.named, agent)
    draft.parent = draft.parent or (reader.named if reader.named != draft.session else "")
    if session and session != draft.session and part is None:
        raise missing(path, session)
    return draft.done(source.digest)


class _Reader:
    """The state of one pass over a file."""

    def __init__(self, draft: Draft, agent: str, agent_file: bool) -> None:
        self.draft, self.agent, self.agent_file = draft, agent, agent_file
        self.named = ""
        self.titles: dict[str, str] = {}
        self.parents: dict[str, str] = {}
        self.alias: dict[str, str] = {}
        self.seen: dict[tuple[str, str, bytes], str] = {}
        self.through: dict[str, str] = {}
        self.rivals: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self.typed: set[str] = set()
        self.placed: dict[str, str] = {}
        self.tools: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.queue: deque[object] = deque(maxlen=100)
        self.steered: dict[str, str] = {}
        self.version: tuple[int, ...] = ()

    def take(self, number: int, at: int, row: object) -> None:
        """One line."""
        if not isinstance(row, dict):
            self.draft.skip("not a record")
            return
        self.named = self.named or text_of(row.get("sessionId"))
        if row.get("type") == "user":
            self.version = _version(row) or self.version
        _facts(self.draft, row, self.titles)
        identity = text_of(row.get("uuid")) or f"L{number}"
        if identity in self.parents or identity in self.alias or self._replayed(row, identity):
            self.draft.skip("seen before")
            return
        parent = text_of(row.get("parentUuid")) or text_of(row.get("logicalParentUuid"))
        self.parents[identity] = self.alias.get(parent, parent)
        kind = row.get("type")
        if kind not in ("user", "assistant") and row.get("subtype") != "compact_boundary":
            self.through[identity] = self.through.get(self.parents[identity], self.parents[identity])
        if bool(row.get("isSidechain")) != bool(self.agent) or not self._own(row):
            self.draft.skip("sub-agent" if row.get("isSidechain") else "not the sub-agent's")
        elif kind == "attachment":
            self._attachment(row, identity, at)
        elif kind == "queue-operation":
            self._queued(row, identity, at)
        elif kind not in ("user", "assistant") or not isinstance(row.get("message"), dict):
            self.draft.skip(f"type {kind}")
        elif row.get("isMeta"):
            self.draft.skip("meta")
        elif kind == "user":
            self._user(row, identity, at)
        else:
            self._assistant(row, identity, at)

    def _own(self, row: dict[str, Any]) -> bool:
        return not self.agent or self.agent_file or row.get("agentId") == self.agent

    def _replayed(self, row: dict[str, Any], identity: str) -> bool:
        time, message = text_of(row.get("timestamp")), row.get("message")
        if not time or message is None:
            return False
        parent = text_of(row.get("parentUuid"))
        said = _results(message) or str(message)
        content = blake2b(said.encode("utf-8", "replace"), digest_size=16).digest()
        key = (self.alias.get(parent, parent), time, content)
        first = self.seen.setdefault(key, identity)
        if first != identity:
            self.alias[identity] = first
        return first != identity

    def _user(self, row: dict[str, Any], identity: str, at: int) -> None:
        content = row["message"].get("content")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        results = [b for b in blocks if b.get("type") == "tool_result"]
        if results:
            self.failed |= {str(b.get("tool_use_id")): identity for b in results if b.get("is_error") is True}
            self._results(results, row, identity, at)
            return
        for block in blocks:
            if block.get("type") != "text":
                self.draft.skip(str(block.get("type")))
        told = record(row.get("origin")).get("kind") == "task-notification" or row.get("promptSource") == "system"
        if told or row.get("isCompactSummary") or row.get("isVisibleInTranscriptOnly"):
            self.draft.skip("host's own text")
            return
        if self._say(content, row, identity, at):
            self.typed.add(identity)
            self._rival("user", self._above(identity), row, identity)

    def _above(self, identity: str) -> str:
        """What a line follows, the program's own records between left out; "" at the root."""
        parent = self.parents[identity]
        return self.through.get(parent, parent) or parent

    def _rival(self, role: str, above: str, row: dict[str, Any], identity: str) -> None:
        """Two prompts after one line, two answers to one prompt, or two first prompts: one of them was gone back on."""
        if above in self.typed if role == "assistant" else above or row.get("parentUuid", "") is None:
            self.rivals.setdefault((role, above), []).append((text_of(row.get("timestamp")), identity))

    def _results(self, results: Iterable[dict[str, Any]], row: dict[str, Any], identity: str, at: int) -> None:
        if not self.draft.tools:
            self.draft.skip("tool output")
            return
        for block in results:
            text, name = result_text(block.get("content")), text_of(block.get("tool_use_id")) or identity
            said = self.draft.result(text, name, row.get("timestamp"), at)
            if said:
                self.placed[said.identity] = identity

    def _say(self, content: object, row: dict[str, Any], identity: str, at: int) -> bool:
        text = CUT.sub("", scrub(content_text(content))).strip()
        typed = TYPED.match(text)
        if typed:
            said = self.draft.hold("user", "", identity, row.get("timestamp"), at)
            said.commands.append(typed[1].strip())
        elif not text or text.startswith(NOT_TALK):
            self.draft.skip("host's own text")
            return False
        else:
            found = self.draft.add("user", text, identity, row.get("timestamp"), at)
            if found is None:
                return False
            said = found
        self.placed[said.identity] = identity
        return True

    def _attachment(self, row: dict[str, Any], identity: str, at: int) -> None:
        what = record(row.get("attachment"))
        if what.get("type") != "queued_command" or what.get("commandMode", "prompt") != "prompt":
            self.draft.skip(f"attachment {what.get('type')}")
        else:
            self._steer(what.get("prompt"), row, identity, at)

    def _queued(self, row: dict[str, Any], identity: str, at: int) -> None:
        step, content = row.get("operation"), row.get("content", row.get("prompt"))
        if step == "enqueue":
            self.queue.append(content)
        elif step in ("dequeue", "remove"):
            waiting = self.queue.popleft() if self.queue else None
            content = content or waiting
        elif step == "popAll":
            self.queue.clear()
        steering = self.version < ATTACHED or row.get("reason") == "absorbed_mid_turn"
        if step == "remove" and content and steering:
            self._steer(content, row, identity, at)
        else:
            self.draft.skip("type queue-operation")

    def _steer(self, content: object, row: dict[str, Any], identity: str, at: int) -> None:
        text, kind = clean(content_text(content)), str(row.get("type"))
        if self.steered.get(text, kind) != kind:  # told twice, once by each of the two ways
            del self.steered[text]
            self.draft.skip("seen before")
        elif self._say(content, row, identity, at):
            self.through.pop(identity, None)
            self.steered[text] = kind

    def _assistant(self, row: dict[str, Any], identity: str, at: int) -> None:
        message = row["message"]
        if row.get("isApiErrorMessage") or message.get("model") == MADE_UP:
            self.draft.skip("host's own text")
            return
        key = scrub(str(message.get("id") or identity))
        said = self.draft.said.get(key)
        if said is None or said.role != "assistant":
            said = self.draft.hold("assistant", "", key, row.get("timestamp"), at)
            self.placed[said.identity] = identity
            self._rival("assistant", self._above(identity), row, identity)
        blocks = message.get("content")
        texts = []
        for block in blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                texts.append(text_of(block.get("text")))
            elif kind == "tool_use":
                self.tools.setdefault(str(block.get("id") or f"{identity}.{len(self.tools)}"), identity)
                said.named(*called(block.get("input"), text_of(row.get("cwd"))))
            else:
                self.draft.skip(str(kind))
        said.text = "\n".join(t for t in (said.text, clean("\n".join(t for t in texts if t))) if t)
        self.draft.grew(said)

    def finish(self) -> None:
        """Leaves out what a branch that was gone back on holds, and counts the tools of the rest."""
        gone = self._abandoned()
        for key, place in self.placed.items():
            if place in gone:
                del self.draft.said[key]
                self.draft.skip("abandoned branch")
        self.draft.calls = sum(1 for place in self.tools.values() if place not in gone)
        self.draft.errors = sum(1 for place in self.failed.values() if place not in gone)
        self.draft.title = _title(self.titles)

    def _abandoned(self) -> set[str]:
        """Everything below a line that has a newer rival: the newest is the one with the last line below it."""
        rivals = [lines for lines in self.rivals.values() if len({time for time, _ in lines}) > 1]
        if not rivals:
            return set()
        order = list(self.parents)
        last = {identity: i for i, identity in enumerate(order)}
        for identity in reversed(order):
            parent = self.parents[identity]
            if parent in last:
                last[parent] = max(last[parent], last[identity])
        gone = set[str]()
        for lines in rivals:
            newest = max(lines, key=lambda line: last[line[1]])
            gone |= {identity for time, identity in lines if time != newest[0]}
        for identity in order:
            if self.parents[identity] in gone:
                gone.add(identity)
        return gone


def _facts(draft: Draft, row: dict[str, Any], titles: dict[str, str]) -> None:
    draft.cwd = draft.cwd or text_of(row.get("cwd"))
    branch = text_of(row.get("gitBranch"))
    if branch and "branch" not in draft.facts:
        draft.facts["branch"] = branch
    for kind, key in TITLES:
        if row.get("type") == kind and text_of(row.get(key)):
            titles[kind] = row[key]


def _results(message: object) -> str:
    """The ids of the tool results in a message; they stand for it, however long the results are."""
    content = record(message).get("content")
    blocks = [record(b) for b in content] if isinstance(content, list) else []
    return " ".join(str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result")


def _version(row: dict[str, Any]) -> tuple[int, ...]:
    found = VERSION.match(text_of(row.get("version")))
    return tuple(int(n) for n in found.groups()) if found else ()


def _title(titles: dict[str, str]) -> str:
    """What a person named it, else what the program did, else its summary; the last of each."""
    return scrub(next((titles[kind] for kind, _ in reversed(TITLES) if titles.get(kind)), ""))


def _identity(path: str, named: str, agent: str) -> tuple[str, str, str]:
    """The session's id, the one it belongs to, and its kind: a file named by a UUID is named by its session."""
    stem = _stem(path)
    if _agent_file(path):
        return stem, named, "sub-agent"
    own = stem if UUID.fullmatch(stem) or not named else named
    return (f"agent-{agent}", own, "sub-agent") if agent else (own, "", "")


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _agent_file(path: str) -> bool:
    return os.path.basename(path).startswith("agent-") or "/subagents/" in path
