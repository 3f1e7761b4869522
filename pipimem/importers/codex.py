"""Codex rollouts: the oldest flat lines, the enveloped ones, and the paginated ones (`item_completed`).

The same message may stand in a file up to three times, once a family (response item, event, completed item); it is
taken once. Rollouts grow to gigabytes of tool output and repeated compactions, which are passed over unparsed.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pipimem.importers import missing
from pipimem.importers.draft import (
    Draft,
    Said,
    called,
    clean,
    command,
    moment,
    patched,
    record,
    result_text,
    span,
    text_of,
    within,
)
from pipimem.importers.reading import Lines, Part, ends, walk, zstd
from pipimem.text import one_line, scrub
from pipimem.transcript import Session, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START = re.compile(
    rb'\s*\{\s*(?:"timestamp":\s*"[^"]{0,40}",\s*)?(?:"ordinal":\s*\d+,\s*)?"type":\s*"(\w+)",\s*'
    rb'(?:"ordinal":\s*\d+,\s*)?"payload":\s*\{\s*(?:"type":\s*"(\w+)")?'
)
PASSED_ITEMS = {
    b"function_call_output": "tool output", b"custom_tool_call_output": "tool output",
    b"tool_search_output": "tool output", b"reasoning": "reasoning", b"ghost_snapshot": "ghost snapshot",
}  # fmt: skip
PASSED_EVENTS = {
    b"token_count": "token count", b"agent_reasoning": "reasoning", b"agent_reasoning_raw_content": "reasoning",
    b"exec_command_end": "tool output", b"exec_command_output_delta": "tool output", b"patch_apply_end": "tool output",
    b"mcp_tool_call_end": "tool output", b"context_compacted": "compaction",
}  # fmt: skip
DELTAS = (b"exec_command_output_delta",)  # pieces of what is told whole at the end
EXIT_CODE = re.compile(
    rb'exited with code (\d+)|exit_?[cC]ode\\*":\s*(-?\d+)|"success\\*":\s*(false)|"isError\\*":\s*(true)'
)
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call")
PREAMBLE = re.compile(r"\A(?:# [^\n]*:[ \t]*\n(?s:.*?)\n)?## My request for Codex:[ \t]*(?:\n|\Z)")
WRAPPER = re.compile(
    r"\A\s*(?:<(environment_context|user_instructions|permissions [\w -]+|turn_aborted|subagent_notification|"
    r"user_shell_command|collaboration_mode|skills?(?=>\n<name>))>.*?</\1>|"
    r"# AGENTS\.md instructions[^\n]*\n\s*<INSTRUCTIONS>.*?</INSTRUCTIONS>)[ \t]*(?:\n|\Z)", re.DOTALL,
)  # fmt: skip
ROLLOUT = re.compile(r"rollout-.*?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?\.jsonl(\.zst)?")
INDEX = "session_index.jsonl"
COPY = timedelta(seconds=0.25)  # a fork writes its parent's history at once; what is its own comes after a pause
FAMILY_ITEM, FAMILY_EVENT, FAMILY_COMPLETED, FAMILY_END = "item", "event", "completed", "end"
TOOLS = True


def detects(path: str, head: bytes) -> bool:
    """Whether the file starts with a session header, enveloped or flat."""
    first = head.lstrip(b"\xef\xbb\xbf \r\n").split(b"\n", 1)[0]
    if re.search(rb'"type":\s*"session_meta"', first[:4096]) or START.match(first):
        return True
    flat = b'"id"' in first and b'"timestamp"' in first and b'"instructions"' in first
    return flat or (ROLLOUT.fullmatch(os.path.basename(path)) is not None and first.startswith(b"{"))


def places(environ: Mapping[str, str]) -> list[str]:
    """`sessions` and `archived_sessions` in the program's own folder."""
    home = environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", ""), ".codex")
    return [os.path.join(home, "sessions"), os.path.join(home, "archived_sessions")]


def files(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """The rollouts below a folder; the plain one of a pair wins, compressed ones need a package to unpack them."""
    for path in walk(root, skipped):
        if not ROLLOUT.fullmatch(os.path.basename(path)):
            continue
        if path.endswith(".zst") and os.path.exists(path.removesuffix(".zst")):
            reason = "compressed copy"
        elif path.endswith(".zst") and zstd() is None:
            reason = "compressed, needs pipimem[zstd]"
        else:
            yield path
            continue
        skipped[reason] = skipped.get(reason, 0) + 1


def sessions(path: str) -> list[Session]:
    """The one session of a rollout, as its first and last 64 kB tell it."""
    reader = _Reader(Draft("codex", _name(path)), "")
    times = []
    for row in ends(path):
        _, kind, payload = _envelope(row)
        times.append(moment(row.get("timestamp")))
        if kind == "session_meta":
            reader.meta(payload)
    draft = reader.draft
    first, last = span([*times, reader.started])
    title = _thread_name(path, draft.session)
    return [Session("codex", draft.session, title, draft.cwd, first, last, draft.parent, draft.kind, facts=draft.facts)]


def read(path: str, session: str = "", part: Part | None = None, *, tools: bool = False) -> Transcript:
    """What the user typed and the agent said; the thread of a sub-agent only where its session is named."""
    reader = _Reader(Draft("codex", _name(path), tools=tools), session)
    source = reader.draft.lines = Lines(path, reader.draft.skipped, peek=reader.peek, part=part)
    for number, at, row in source:
        reader.take(number, at, row)
    draft = reader.draft
    if session and session != draft.session and part is None:
        raise missing(path, session)
    reader.finish()
    draft.title = draft.title or ("" if part else _thread_name(path, draft.session))
    return draft.done(source.digest)


class _Recent:
    """A message just said, and the families that have told it."""

    __slots__ = ("families", "folded", "said")

    def __init__(self, said: Said, family: str) -> None:
        self.said, self.folded, self.families = said, one_line(said.text), {family}


class _Reader:
    """The state of one pass over a rollout."""

    def __init__(self, draft: Draft, session: str) -> None:
        self.draft, self.session = draft, session
        self.known = self.copying = self.counted = False
        self.started = ""
        self.written: datetime | None = None
        self.answer: _Recent | None = None
        self.recent: deque[_Recent] = deque(maxlen=16)
        self.turns: list[Said] = []
        self.speaker: Said | None = None
        self.waiting: tuple[list[str], list[str]] = ([], [])
        self.calls = {FAMILY_ITEM: 0, FAMILY_COMPLETED: 0}
        self.errors = {FAMILY_ITEM: 0, FAMILY_COMPLETED: 0}

    def peek(self, raw: bytes) -> bool:
        """Takes the lines that hold nothing to keep, before they are parsed."""
        self.counted = False
        copied = self.copying and self._copied(raw)
        found = START.match(raw)
        if not found:
            return False
        kind, inner = found[1], found[2] or b""
        if kind == b"compacted":
            reason = "compaction"
        else:
            table = PASSED_ITEMS if kind == b"response_item" else PASSED_EVENTS if kind == b"event_msg" else {}
            reason = table.get(inner, "")
        if reason == "tool output" and kind == b"response_item":
            self.errors[FAMILY_ITEM] += _failed(raw) and not copied
            self.counted = True
        if reason == "tool output" and self.draft.tools and inner not in DELTAS:
            return False
        if reason:
            self.draft.skip(reason)
        return bool(reason)

    def _copied(self, raw: bytes) -> bool:
        found = re.search(rb'"timestamp":\s*"([^"]{0,40})"', raw[:200])
        return found is not None and not self._own(found[1].decode("ascii", "replace"))

    def take(self, number: int, at: int, row: object) -> None:
        """One parsed line."""
        if not isinstance(row, dict) or not isinstance(row.get("payload", {}), dict):
            self.draft.skip("not a record")
            return
        time, kind, payload = _envelope(row)
        inner = text_of(payload.get("type"))
        if kind == "session_meta":
            self.meta(payload)
            self.written = _instant(time) or self.written
        elif self.draft.kind == "sub-agent" and self.session != self.draft.session:
            self.draft.skip("sub-agent")
        elif self.copying and not self._own(time):
            self.draft.skip("copy of the parent's history")
        elif kind == "response_item":
            self._item(payload, inner, f"L{number}", time, at)
        elif kind == "event_msg":
            self._event(payload, inner, f"L{number}", time, at)
        else:
            self.draft.skip(f"type {kind}")

    def meta(self, payload: dict[str, Any]) -> None:
        """A session header: the first owns identity; another one's begins a copy of that session's history."""
        identity = text_of(payload.get("id")) or text_of(payload.get("session_id"))
        if self.known:
            self.copying = self.copying or identity not in ("", self.draft.session)
            self.draft.skip("session header")
            return
        draft, source = self.draft, payload.get("source")
        self.known = True
        self.started = moment(payload.get("timestamp"))
        draft.session, draft.cwd = identity or draft.session, text_of(payload.get("cwd"))
        spawned = record(record(record(source).get("subagent")).get("thread_spawn"))
        thread = text_of(spawned.get("parent_thread_id")) or text_of(payload.get("parent_thread_id"))
        draft.parent = thread or text_of(payload.get("forked_from_id"))
        agent = isinstance(source, dict) and ("subagent" in source or "sub_agent" in source)
        draft.kind = "sub-agent" if agent or thread or payload.get("thread_source") == "subagent" else ""
        git = record(payload.get("git"))
        draft.facts = {
            "platform": text_of(source), "branch": text_of(git.get("branch")),
            "repository": text_of(git.get("repository_url")),
            "agent": text_of(payload.get("agent_role")) or text_of(payload.get("agent_nickname")),
        }  # fmt: skip
        draft.facts = {k: v for k, v in draft.facts.items() if v}

    def _own(self, time: str) -> bool:
        """Whether a line of a forked rollout was written after the history it was started with: from the first pause
        on, lines are its own."""
        now, before = _instant(time), self.written or _instant(self.started)
        if now is None or before is None or now - before > COPY:
            self.copying = False
            return True
        self.written = max(now, before)
        return False

    def _item(self, payload: dict[str, Any], inner: str, line: str, time: str, at: int) -> None:
        role = text_of(payload.get("role"))
        if inner == "message" and role in ("user", "assistant"):
            identity = text_of(payload.get("id")) or line
            self._say(FAMILY_ITEM, role, _parts(payload.get("content"), self.draft), (identity, time, at))
        elif inner == "message":
            self.draft.skip("system or developer text")
        elif inner in CALLS:
            self.calls[FAMILY_ITEM] += 1
            action = record(payload.get("action"))
            given = payload.get("arguments", payload.get("input"))
            named = called(given if isinstance(given, str) and given.lstrip().startswith("{") else {}, self.draft.cwd)
            given = given if isinstance(given, str) else ""
            self._named(named[0] + patched(given, self.draft.cwd), named[1] + _run(action.get("command")))
            self.draft.skip("tool call")
        else:
            reason = PASSED_ITEMS.get(inner.encode(), f"item {inner}")
            if reason == "tool output" and not self.counted:
                self.errors[FAMILY_ITEM] += _failed(json.dumps(payload.get("output")).encode())
            if reason == "tool output" and self.draft.tools:
                self._result(payload.get("call_id"), payload.get("output", payload.get("tools")), (line, time, at))
            else:
                self.draft.skip(reason)

    def _event(self, payload: dict[str, Any], inner: str, line: str, time: str, at: int) -> None:
        place = (line, time, at)
        if inner == "user_message":
            self._say(FAMILY_EVENT, "user", text_of(payload.get("message")), place)
        elif inner == "agent_message":
            self._say(FAMILY_EVENT, "assistant", text_of(payload.get("message")), place)
        elif inner == "item_completed":
            self._completed(record(payload.get("item")), place)
        elif inner in ("task_complete", "turn_complete"):
            text = text_of(payload.get("last_agent_message"))
            if text:
                self._say(FAMILY_END, "assistant", text, place)
        elif inner == "thread_rolled_back":
            turns = payload.get("num_turns")
            self._roll_back(turns if isinstance(turns, int) else 0)
        elif inner == "thread_name_updated":
            self.draft.title = text_of(payload.get("thread_name")) or self.draft.title
        elif self.draft.tools and PASSED_EVENTS.get(inner.encode()) == "tool output":
            self._result(payload.get("call_id"), payload, place)
        else:
            self.draft.skip(f"event {inner}")

    def _completed(self, item: dict[str, Any], place: tuple[str, str, int]) -> None:
        kind = re.sub(r"[^a-z]", "", text_of(item.get("type")).lower())
        place = (text_of(item.get("id")) or place[0], *place[1:])
        cwd = self.draft.cwd
        if kind in ("usermessage", "agentmessage"):
            text = _parts(item.get("content", item.get("text")), self.draft)
            self._say(FAMILY_COMPLETED, "user" if kind == "usermessage" else "assistant", text, place)
            return
        if kind == "commandexecution":
            self._named([], _run(item.get("command")))
        elif kind == "filechange":
            changes = item.get("changes")
            paths = list(changes) if isinstance(changes, dict) else [
                text_of(record(c).get("path")) for c in changes if record(c).get("path")
            ] if isinstance(changes, list) else []  # fmt: skip
            self._named([within(cwd, scrub(p)) for p in paths], [])
        elif kind == "mcptoolcall":
            self._named(*called(item.get("arguments"), cwd))
        elif kind != "websearch":
            self.draft.skip(f"item {text_of(item.get('type'))}")
            return
        self.draft.skip("tool call")
        self.calls[FAMILY_COMPLETED] += 1
        code, status = item.get("exit_code", item.get("exitCode")), text_of(item.get("status")).lower()
        error = item.get("error") or record(item.get("result")).get("isError") is True
        failed = code not in (None, 0) or bool(error) or status in ("failed", "declined")
        self.errors[FAMILY_COMPLETED] += failed
        if self.draft.tools and result_text(item):
            self._result(item.get("id"), item, place)

    def _result(self, call: object, value: object, place: tuple[str, str, int]) -> None:
        """What a call returned; of the families that tell it the first one is taken."""
        line, time, at = place
        identity = text_of(call) or line
        told = self.draft.said.get(scrub(identity))
        if told is not None and told.role == "tool":
            self.draft.skip("told twice")
        else:
            self.draft.result(result_text(value), identity, time, at)

    def _say(self, family: str, role: str, text: str, place: tuple[str, str, int]) -> None:
        text = typed(text) if role == "user" else clean(text)
        if not text:
            self.draft.skip("host's own text" if role == "user" else "no text")
            return
        told = self._told(family, role, text)
        if told:
            told.families.add(family)
            if len(text) < len(told.said.text):
                told.said.text = text  # the event has the prompt alone, the item what was put around it
                self.draft.grew(told.said)
            self.draft.skip("told twice")
            return
        identity, time, at = place
        said = self.draft.hold(role, text, identity, time, at)
        self.recent = deque((r for r in self.recent if r.said.role == role), maxlen=16)
        self.recent.append(_Recent(said, family))
        self.answer = self.recent[-1] if role == "assistant" else self.answer
        if role == "user":
            self.turns.append(said)
            self.speaker = None
        else:
            self.speaker = said
            said.named(*self.waiting)
            self.waiting = ([], [])

    def _told(self, family: str, role: str, text: str) -> _Recent | None:
        """The message another family has told already: the same text, or an item's with lines of the host's around it.

        What a turn ended with is the last answer, also where a person has steered since.
        """
        last = [self.answer] if family == FAMILY_END and self.answer else []
        other = [r for r in (*self.recent, *last) if r.said.role == role and family not in r.families]
        same = [r for r in other if r.folded == one_line(text)]
        if role != "user" or same:
            return same[0] if same else None
        if family == FAMILY_ITEM:
            same = [r for r in other if _lines(r.said.text) in _lines(text)]
        else:
            same = [r for r in other if r.families == {FAMILY_ITEM} and _lines(text) in _lines(r.said.text)]
        return same[0] if same else None

    def _named(self, files: list[str], commands: list[str]) -> None:
        if self.speaker:
            self.speaker.named(files, commands)
        else:
            self.waiting[0].extend(files)
            self.waiting[1].extend(commands)

    def _roll_back(self, turns: int) -> None:
        if turns <= 0 or not self.turns:
            return
        first = self.turns[-min(turns, len(self.turns))]
        identities = list(self.draft.said)
        for identity in identities[identities.index(first.identity) :]:
            del self.draft.said[identity]
            self.draft.skip("rolled back")
        self.turns = self.turns[: -min(turns, len(self.turns))]
        self.recent.clear()
        self.answer = None
        self.speaker, self.waiting = None, ([], [])

    def finish(self) -> None:
        """Gives the last message what was called after it, and settles the counts of two families telling the same."""
        last = self.draft.last_said() if any(self.waiting) else None
        if last:
            last.named(*self.waiting)
        self.draft.calls, self.draft.errors = max(self.calls.values()), max(self.errors.values())
        if self.draft.kind and self.session != self.draft.session:
            self.draft.calls = self.draft.errors = 0


def typed(text: str) -> str:
    """What the user typed, without the context the program put before it; "" where nothing else is there.

    Only what is whole and stands as the program writes it is the program's: a prompt may speak of its tags.
    """
    text = PREAMBLE.sub("", clean(text))
    while found := WRAPPER.match(text):
        text = text[found.end() :]
    return text.strip()


def _lines(text: str) -> str:
    return f"\n{text.strip()}\n"


def _instant(time: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _envelope(row: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Time, type and payload of a line; the oldest rollouts have the payload alone."""
    time, kind = text_of(row.get("timestamp")), text_of(row.get("type"))
    if isinstance(row.get("payload"), dict):
        return time, kind, row["payload"]
    if not kind and row.get("id") and time:
        return time, "session_meta", row
    known = kind == "message" or kind in CALLS or kind.encode() in PASSED_ITEMS
    return time, "response_item" if known else kind or text_of(row.get("record_type")), row


def _parts(content: object, draft: Draft) -> str:
    """The text of content parts in any of the three families; images are counted."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else []:
        kind = text_of(record(part).get("type")).lower()
        if kind in ("text", "input_text", "output_text"):
            texts.append(text_of(part.get("text")))
        else:
            draft.skip("image" if "image" in kind else f"part {kind}")
    return "\n".join(t for t in texts if t)


def _failed(raw: bytes) -> bool:
    """Whether a tool's output says so: the exit code stands in its first words or at its end."""
    code = EXIT_CODE.search(raw, 0, 4096) or EXIT_CODE.search(raw, max(0, len(raw) - 400))
    return code is not None and any(group not in (None, b"0") for group in code.groups())


def _run(value: object) -> list[str]:
    line = command(value)
    return [line] if line else []


def _thread_name(path: str, session: str) -> str:
    """The name the program's index beside the rollouts' folder has for a session; "" without one."""
    folder, name = os.path.abspath(path), ""
    for _ in range(6):
        folder = os.path.dirname(folder)
        index = os.path.join(folder, INDEX)
        if os.path.isfile(index):
            for _, _, row in Lines(index, {}):
                if isinstance(row, dict) and row.get("id") == session:
                    name = text_of(row.get("thread_name")) or name
            break
    return name


def _name(path: str) -> str:
    found = ROLLOUT.fullmatch(os.path.basename(path))
    return found[1] if found and found[1] else os.path.basename(path).removesuffix(".zst").removesuffix(".jsonl")
