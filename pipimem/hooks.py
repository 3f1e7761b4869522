"""Agent hooks: one event of a host as JSON on standard input, what the host is to do as JSON on standard output.

Whatever happens the exit code is 0, and the answer is valid for that host and within its limit of characters; when
time is up it is empty. Events that only read stay on the cold path; those that write leave a line in the queue and
start one process apart (`spawn`), the only one of ours besides git's. Where hooks are put is installing.py's.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pipimem.memory import Memory
    from pipimem.options import Options
    from pipimem.recall.context import Context
    from pipimem.workspace import Workspace

HOSTS = ("claude", "codex")
EVENTS = (
    "SessionStart", "UserPromptSubmit", "SubagentStart", "PreCompact", "PostCompact", "Stop", "SubagentStop",
    "SessionEnd",
)  # fmt: skip
GIVING = {
    "claude": ("SessionStart", "UserPromptSubmit", "SubagentStart"),
    "codex": ("SessionStart", "UserPromptSubmit"),
}
"""The events in whose answer the host takes text for the model; Codex refuses an answer with a key it does not know."""
GUARD = "PIPIMEM_AT_WORK"
"""Set for everything our own background work starts: a hook that sees it does nothing, so that none fires itself."""
CHARACTERS = 9_500
"""UTF-16 units of a text given to a host: Claude Code cuts near 10,000."""
SECONDS, ENDING = 5.0, 1.2
"""How long a hook may take; at a session's end the host waits 1.5 seconds."""
TOKENS, SUBAGENT = 1_480, 345
"""Most tokens of a recalled block, and of a sub-agent's (2,200 characters): a token is at most 6.4 characters."""
INPUT = 8 * 1024 * 1024
SUMMARY = 49_000
"""Characters of a compaction's summary that are recorded; a longer message would be left out of the turns."""
TAIL = 64 * 1024
"""Bytes at the end of a transcript in which the last turn is looked at."""
FILES, ERRORS, ERROR = 5, 3, 400
"""Files and errors of the last turn that recall is told, and characters of an error."""
LOG_LIMIT = 256 * 1024
STALE_AGAIN = 60.0
"""Seconds after which another process is started for an index that is still out of date."""


class Event:
    """What a host says, read tolerantly: a field of another type is as if it were missing."""

    __slots__ = ("fields", "host", "name")

    def __init__(self, host: str, name: str, data: bytes) -> None:
        import json

        self.host = host
        self.name = name
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        self.fields: dict[str, Any] = found if isinstance(found, dict) else {}

    def text(self, key: str) -> str:
        """A field that is a text, else ""."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else ""

    @property
    def agent(self) -> str:
        """The sub-agent in which it happened, "" for the main one."""
        return self.text("agent_id") or ("agent" if self.name in ("SubagentStart", "SubagentStop") else "")

    @property
    def folder(self) -> str:
        """The folder it is about: where the host works, else where we are."""
        return os.path.abspath(self.text("cwd") or os.getcwd())

    @property
    def session(self) -> str:
        """Whose context it is: a sub-agent has one of its own."""
        agent = self.text("agent_id")
        return f"{self.text('session_id')}:{agent}" if agent else self.text("session_id")


class Answer:
    """Prints one answer; an empty one when time is up, and then ends the process. `note` is what the log will say."""

    __slots__ = ("_free", "note", "over")

    def __init__(self, seconds: float, note: dict[str, Any]) -> None:
        self.note = note
        self.over = False
        self._free = _thread.allocate_lock()
        _thread.start_new_thread(self._alarm, (seconds,))

    def _alarm(self, seconds: float) -> None:
        time.sleep(seconds)
        if self.over:
            return
        self.say({})
        _log({**self.note, "failed": f"it took more than {seconds:g} seconds"})
        os._exit(0)

    def say(self, answer: Mapping[str, object]) -> None:
        """Prints the answer unless one was printed."""
        import json

        if not self._free.acquire(blocking=False):
            return
        data = json.dumps(answer).encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(1, data) :]
        except OSError:
            return


def run(options: Options) -> int:
    """One hook as the command line starts it; always 0."""
    began = time.perf_counter()
    name = event_named(options.event[0])
    note: dict[str, Any] = {"host": options.host, "event": name}
    answer = Answer(ENDING if name == "SessionEnd" else SECONDS, note)
    if os.environ.get(GUARD) or not name or options.host not in HOSTS:
        answer.say({})
        answer.over = True
        return 0
    respond(options, Event(options.host, name, _input()), answer.say, note)
    note["ms"] = round((time.perf_counter() - began) * 1000, 1)
    _log(note)
    answer.over = True
    return 0


def respond(
    options: Options, event: Event, say: Callable[[dict[str, Any]], None], note: dict[str, Any]
) -> None:  # fmt: skip
    """Says what the host is to do, whatever happens, and then leaves what is to be worked on; `note` is for the log.

    Never raises. Only what is said first counts.
    """
    note["session"] = event.session
    try:
        if not event.fields:
            raise ValueError("the input is no JSON object")
        with _opened(options, event) as memory:
            memory.patient = False  # a model takes longer to load than a host waits for a hook: words answer
            note["workspace"] = memory.workspace.root
            given = options.channel or os.environ.get("PIPIMEM_CHANNEL")
            channel = memory.workspace.channel(given).id if given else channel_of(memory, event.folder)
            say(answered(memory, event, channel, note))
            if event.name == "UserPromptSubmit" and memory.stale:
                ask_for_index(memory, note)
            note["notes"] = list(memory.notes)
    except Exception as error:  # noqa: BLE001 - a hook never stops its host
        note["failed"] = str(error) or repr(error)
    say({})


def event_named(word: str) -> str:
    """The event called so, however it is written (`SessionStart`, `session-start`); "" for an unknown one."""
    plain = word.replace("-", "").replace("_", "").lower()
    return next((name for name in EVENTS if name.lower() == plain), "")


def _input() -> bytes:
    """What the host said; nothing where there is no standard input."""
    parts, left = [], INPUT
    try:
        while left > 0 and (part := os.read(0, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    except OSError:
        return b""
    return b"".join(parts)


def _opened(options: Options, event: Event) -> Memory:
    """The workspace named, else the nearest one above the event's folder that has settings. Raises `Unreadable`."""
    from pipimem.errors import Unreadable
    from pipimem.memory import open as open_memory

    given = options.workspace or os.environ.get("PIPIMEM_WORKSPACE")
    if given:
        return open_memory(given)
    folder = start = event.folder
    while not os.path.isfile(os.path.join(folder, "pipimem.toml")):
        if folder == os.path.dirname(folder):
            raise Unreadable(f"There is no workspace at or above '{start}'.", "Make one with 'pipimem init'.")
        folder = os.path.dirname(folder)
    return open_memory(folder)


def channel_of(memory: Memory, folder: str) -> str | None:
    """The channel of the project called like the folder or one above it; None where there is none.

    Of several with that project the only one of kind project. Raises `Unreadable` for one that is not there.
    """
    projects: dict[str, str] = memory.workspace.config["workspace.projects"]
    for part in reversed(os.path.abspath(folder).split(os.sep)):
        named = [memory.workspace.channel(n) for n, project in projects.items() if part and project == part]
        found = named if len(named) == 1 else [channel for channel in named if channel.kind == "project"]
        if len(found) == 1:
            return found[0].id
    return None


def answered(memory: Memory, event: Event, channel: str | None, note: dict[str, Any]) -> dict[str, Any]:
    """What the host is to do; `note` is told what was done."""
    from pipimem.text import scrub

    text = scrub(WORK[event.name](memory, event, channel, note))  # half a character is no JSON to the hosts
    if not text or event.name not in GIVING[event.host]:
        return {}
    note["characters"] = _units(text)
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


# Events that read


def _session_start(memory: Memory, event: Event, channel: str | None, note: dict[str, Any]) -> str:
    """Identity, policy, what is pinned, and by the mode memory; after a compaction nothing counts as given."""
    if event.text("source") in ("compact", "clear"):
        _clear(memory, event, channel)
    mode = memory.workspace.config["recall.mode"]
    preset = "subagent" if event.agent else "main" if mode == "full" else "session-start"
    return fitted(memory.context(channel=channel, preset=preset), note)


def _prompt(memory: Memory, event: Event, channel: str | None, note: dict[str, Any]) -> str:
    """The block recalled for the prompt, in the modes that give one; what a host says to itself is no prompt."""
    mode = memory.workspace.config["recall.mode"]
    if mode == "policy" or event.text("source") not in ("", "user", "sdk"):
        return ""
    files, errors = last_turn(event.text("transcript_path"))
    most = SUBAGENT if event.agent else TOKENS
    recall = memory.recall(
        event.text("prompt"), channel, session=event.session, files=files, errors=errors,
        budget=min(most, memory.workspace.config["recall.budget"]),
    )  # fmt: skip
    note["reason"] = recall.reason
    if _units(recall.text) > CHARACTERS:  # only white space in great number, which no token counts
        note["reason"] = "more than the host takes"
        return ""
    return "" if mode == "observe" else recall.text


def _subagent(memory: Memory, event: Event, channel: str | None, note: dict[str, Any]) -> str:
    return fitted(memory.context(channel=channel, preset="subagent"), note)


def fitted(context: Context, note: dict[str, Any]) -> str:
    """The text of a context within the host's limit: memory is cut first, then identity; instructions last.

    Of memory HISTORY goes first and SESSION last (design §3). Whole lines go, and where the last of them went the text
    says that something is missing.
    """
    from pipimem.recall.context import Context as Whole

    order = ("memory", "identity", "instructions")
    parts = sorted(
        (p for p in context.parts if p.text and p.state != "out"),
        key=lambda p: (order.index(p.sort), LAST_CUT.index(p.name) if p.name in LAST_CUT else -1),
    )
    cut: list[str] = []
    for part in parts:
        over = _units(context.text) - CHARACTERS
        if over <= 0:
            break
        kept = part.text[: max(0, len(part.text) - over - len(CUT))]
        for other in parts[: len(cut)]:
            other.text = other.text.removesuffix(CUT)
        part.text = kept[: kept.rfind("\n") + 1] + CUT
        cut.append(part.name)
        context = Whole(context.parts, context.notes)
    if cut:
        note["cut"] = cut
    return context.text


def last_turn(transcript: str) -> tuple[list[str], list[str]]:
    """The files and errors of the tools since the last prompt, newest last, from the end of a host's transcript."""
    import json

    rows: list[dict[str, Any]] = []
    for line in _tail(transcript).split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows = [] if _is_prompt(row) else [*rows, row]
    files, errors = [], []
    for row in rows:
        for block in _blocks(row):
            files += _files(block)
            errors += _errors(block)
    return list(dict.fromkeys(files))[-FILES:], list(dict.fromkeys(errors))[-ERRORS:]


def _tail(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        size = os.fstat(handle).st_size
        return os.pread(handle, TAIL, max(0, size - TAIL))
    except OSError:
        return b""
    finally:
        os.close(handle)


def _message(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a line says: Claude Code's `message`, Codex's `payload`."""
    found = row.get("message", row.get("payload"))
    return found if isinstance(found, dict) else {}


def _is_prompt(row: Mapping[str, Any]) -> bool:
    said = _message(row)
    if said.get("type") == "user_message" or (said.get("type") == "message" and said.get("role") == "user"):
        return True
    return row.get("type") == "user" and not any(b.get("type") == "tool_result" for b in _blocks(row))


def _blocks(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    said = _message(row)
    content = said.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else [said]


def _files(block: Mapping[str, Any]) -> list[str]:
    import json

    given = block.get("input", block.get("arguments"))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return []
    if not isinstance(given, dict):
        return []
    return [given[key] for key in ("file_path", "path", "notebook_path") if isinstance(given.get(key), str)]


def _errors(block: Mapping[str, Any]) -> list[str]:
    """The end of a failed tool's output: that is where a program says what went wrong."""
    output = block.get("content") if block.get("is_error") is True else block.get("output")
    if isinstance(output, list):
        output = "\n".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    if not isinstance(output, str):
        return []
    failed = block.get("is_error") is True or ("exited with code " in output and "exited with code 0" not in output)
    return [output.strip()[-ERROR:]] if failed and output.strip() else []


def ask_for_index(memory: Memory, note: dict[str, Any]) -> None:
    """Leaves a line for an index that is out of date, one at a time, and starts the work on it."""
    from pipimem.queued import Queue

    queue = Queue(memory.workspace)
    waiting = [line for line in queue.lines() if line.event == "stale" and not line.given_up]
    if waiting and time.time() - os.stat(queue.path).st_mtime < STALE_AGAIN:
        return
    if not waiting:
        queue.append("stale", "", "", _now())
    note["spawned"] = spawn(memory.workspace)


# Events that write


def _queue(memory: Memory, event: Event, channel: str | None, note: dict[str, Any]) -> str:
    """Leaves a line about the conversation as it is now, and starts the work on it."""
    from pipimem.queued import Queue

    if event.name == "PreCompact":
        _clear(memory, event, channel)
    if channel is None:
        note["reason"] = "no channel: give the hook --channel, or name the project in [workspace.projects]"
        return ""
    transcript = os.path.abspath(path) if (path := event.text("transcript_path")) else ""
    if transcript and not os.path.isfile(transcript):
        note["reason"] = "there is no transcript yet"
        return ""
    line = Queue(memory.workspace).append(QUEUED[event.name], channel, transcript, _now())
    note["queued"], note["spawned"] = line.id, spawn(memory.workspace)
    return ""


def _summary(memory: Memory, event: Event, channel: str | None, note: dict[str, Any]) -> str:
    """Records the host's summary of what it compacted, among the channel's turns."""
    text = event.text("compact_summary").strip()
    if not text or channel is None:
        note["reason"] = "no summary" if channel is not None else "no channel"
        return ""
    from pipimem.text import digest, encode, scrub
    from pipimem.transcript import Message, Transcript
    from pipimem.turns import Turns

    text = memory.redacted(scrub(text))[:SUMMARY]
    session = "".join(event.text("session_id").split()) or "unknown"
    ref = f"{event.host}:{session}#summary-{digest(encode(text), 4)}"
    said = Message(ref, "assistant", text, "compaction summary", _now())
    memory.workspace.trust()
    done = Turns(memory.workspace, channel).feed(Transcript(event.host, f"{session}.summary", (said,)), 0, _now())
    note["recorded"] = done.recorded
    return ""


def _nothing(memory: Memory, event: Event, channel: str | None, note: dict[str, Any]) -> str:
    """What a sub-agent said is its parent's to say again."""
    return ""


def _clear(memory: Memory, event: Event, channel: str | None) -> None:
    """What this session was given is gone from its context."""
    from pipimem import traces

    if event.session:
        traces.keep(memory.traces, {"id": "", "session": event.session, "channel": channel, "cleared": True})


LAST_CUT = ("user", "memory", "session")
"""The parts of memory that are cut after all others, in this order."""
CUT = "(cut here: more than the host takes)\n"
QUEUED = {"PreCompact": "compact", "Stop": "turn", "SessionEnd": "session-end"}
WORK: dict[str, Callable[[Memory, Event, str | None, dict[str, Any]], str]] = {
    "SessionStart": _session_start, "UserPromptSubmit": _prompt, "SubagentStart": _subagent, "PreCompact": _queue,
    "PostCompact": _summary, "Stop": _queue, "SubagentStop": _nothing, "SessionEnd": _queue,
}  # fmt: skip


def spawn(workspace: Workspace) -> int:
    """Starts one `pipimem maintain --queued` apart from this process and its terminal; its number.

    It outlives us, waits for nobody, and writes to `.pipimem/state/queue.log`. Where another one is at work it leaves
    at once. Raises `OSError` where no process can be started.
    """
    from pipimem.files import own_folder

    log = os.path.join(own_folder(workspace.private(), "state"), "queue.log")
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(handle).st_size > LOG_LIMIT:
            os.ftruncate(handle, 0)
        # -P: a folder named pipimem in the workspace must not be taken for us
        command = [sys.executable, "-P", "-m", "pipimem", "-w", workspace.root, "maintain", "--queued"]
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, handle, 1),
            (os.POSIX_SPAWN_DUP2, handle, 2),
        ]
        environment = {**os.environ, GUARD: "1"}
        return os.posix_spawn(sys.executable, command, environment, file_actions=files, setsid=True)
    finally:
        os.close(handle)


def _units(text: str) -> int:
    """Characters as the hosts count them: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _log(note: dict[str, Any]) -> None:
    """One line about what was done, without any text of the conversation or of memory; never an error."""
    from pipimem import traces
    from pipimem.config import cache_folder

    root = note.pop("workspace", "")
    folder = os.path.join(root, ".pipimem", "state") if root else cache_folder()
    traces.keep(os.path.join(folder, "hooks.log"), {"time": _now(), **note})
