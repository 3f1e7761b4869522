"""Foreign transcripts → `Transcript`. Each format is one module, found by the entry point group `pipimem.importers`.

An importer opens read-only, counts what it skips by reason, and never fails on a bad line. A session that is left
alone by default (a sub-agent's, an archived one: its `kind` says why) is read when it is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from pipimem.errors import NotFound, Usage
from pipimem.importers.draft import count as count
from pipimem.importers.reading import head
from pipimem.text import nearest, plural, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipimem.importers.reading import Part
    from pipimem.transcript import Message, Session, Transcript

GROUP = "pipimem.importers"
PART_LIMIT = 4 * 1024 * 1024  # bytes of lines that are read again for one message; beyond, the whole file is
BROKEN = ("not JSON", "half a line", "too long", "not a record", "not a message", "damaged compression")
LISTED = 10


class Pointer:
    """Where a message stands in its source: id and role, and the bytes `at` to `end` of the lines it is made of."""

    __slots__ = ("at", "end", "id", "role")

    def __init__(self, identity: str, role: str, at: int, end: int) -> None:
        self.id, self.role, self.at, self.end = identity, role, at, end


class Importer(Protocol):
    """What an importer module provides."""

    def detects(self, path: str, head: bytes) -> bool:
        """Whether the file, by its first 64 kB, is of this format."""

    def places(self, environ: Mapping[str, str]) -> list[str]:
        """Where the host keeps its transcripts (folders or files), whether or not they are there."""

    def files(self, root: str, skipped: dict[str, int]) -> Iterator[str]:
        """The transcripts below a folder, oldest names first; what is passed over is counted in `skipped`."""

    def sessions(self, path: str) -> list[Session]:
        """The conversations in a file, in its order, without reading it whole where that can be avoided."""

    def read(self, path: str, session: str = "", part: Part | None = None) -> Transcript:
        """One conversation of the file: its only one, or the one named; with a `part` what those lines alone give.

        Where a conversation is not kept in lines of its own, a part is not looked at. Raises `NotFound` for a session
        it does not hold, `Usage` where several could be meant, `Unreadable`.

        A module whose ids come from paths has `named_after(path)`: the id, and the path that the files of one
        conversation share ("" and "" where a file has an id of its own). `read` takes `ID~…` for it as well: so a
        second conversation of that id is known.

        A module that says `TOOLS = True` takes a keyword `tools` here and in `each`: with it what tools returned is
        among the messages, in role `tool`; the others are the same with and without.
        """


def load(path: str, session: str = "") -> Transcript:
    """The transcript in the file `path`, its format found by looking at it; of several sessions the one named.

    Raises `Unreadable` for a file that cannot be read and `Usage` for one no importer knows or that holds several
    sessions (it says which).
    """
    return recognised(path, importers()).read(path, session)


def recognised(path: str, among: Iterable[Importer]) -> Importer:
    """The first importer that knows the file. Raises `Unreadable`, or `Usage` where none does."""
    start = head(path)
    for importer in among:
        if importer.detects(path, start):
            return importer
    raise Usage(
        f"The transcript '{path.rpartition('/')[2]}' is of no known format.",
        "Give a session of a known host, or JSON lines with role and content.",
    )


def importers() -> list[Importer]:
    """Every installed importer, the particular formats before the plain one."""
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=GROUP), key=lambda e: (e.name == "jsonl", e.name))
    return [point.load() for point in found]


def importer(name: str) -> Importer:
    """The importer of that name. Raises `Usage` with the known names."""
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        close = ", ".join(nearest(name, found)) or ", ".join(sorted(found))
        raise Usage(f"There is no importer '{printable(name)}'.", f"Known: {close}.")
    loaded: Importer = found[name].load()
    return loaded


def with_tools(importer: Importer) -> Importer:
    """The importer as one that also gives what tools returned; itself where it cannot."""
    if not getattr(importer, "TOOLS", False):
        return importer
    from functools import partial
    from types import SimpleNamespace

    own: dict[str, Any] = {name: getattr(importer, name) for name in ("detects", "places", "files", "sessions")}
    own |= {name: getattr(importer, name) for name in ("named_after",) if hasattr(importer, name)}
    own |= {name: partial(getattr(importer, name), tools=True) for name in ("read", "each") if hasattr(importer, name)}
    found: Any = SimpleNamespace(**own)
    return cast("Importer", found)


def each(importer: Importer, path: str, skipped: dict[str, int]) -> Iterator[Transcript]:
    """Every conversation of a file that is not left alone, in as few passes as its format allows.

    An importer whose files hold many conversations has an `each(path, skipped)` of its own.
    What belongs to no conversation (broken lines of an export, sessions left alone) is counted in `skipped`.
    """
    many = getattr(importer, "each", None)
    if many is not None:
        yield from many(path, skipped)
        return
    for session in importer.sessions(path):
        if session.kind:
            count(skipped, session.kind)
        else:
            yield importer.read(path, session.id)


def without_repeats(transcripts: Iterable[Transcript]) -> Iterator[Transcript]:
    """Each transcript without the messages an earlier one of the same host holds word for word under the same id.

    Resumed and forked sessions copy what was said before into a new file. Give them oldest first. Messages without a
    time, and ids made from line numbers, say nothing across files and are never compared.
    """
    from dataclasses import replace

    seen: set[tuple[str, str, str]] = set()
    for transcript in transcripts:
        keys = [(transcript.engine, m.id, f"{m.role} {m.time} {m.text}") for m in transcript.messages]
        pairs = zip(transcript.messages, keys, strict=True)
        fresh = [m for m, key in pairs if key not in seen or not m.time or _by_line(m.id)]
        skipped = dict(transcript.skipped)
        if len(fresh) < len(keys):
            skipped["in an earlier session"] = len(keys) - len(fresh)
        seen.update(keys)
        yield replace(transcript, messages=tuple(fresh), skipped=skipped)


def chosen(path: str, sessions: Sequence[Session], session: str) -> Session:
    """The session named, else the only one that is not left alone. Raises `NotFound` or `Usage` with their names."""
    found = [s for s in sessions if s.id == session] if session else [s for s in sessions if not s.kind]
    if len(found) == 1 or (session and found):
        return found[0]
    name = path.rpartition("/")[2]
    if session:
        raise missing(path, session)
    if not sessions:
        raise NotFound(f"The file '{name}' holds no session.")
    listed = found or list(sessions)
    names = ", ".join(f"'{printable(s.id, 80)}'" + (f" ({s.kind})" if s.kind else "") for s in listed[:LISTED])
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    raise Usage(f"The file '{name}' holds {plural(len(listed), 'session')}: {names}{more}.", "Name one of them.")


def called(path: str, name: str, session: str) -> str:
    """`session` where that is `name`, or `NAME~…`; `name` where it is "". Raises `NotFound`."""
    if session and name not in (session, session.rpartition("~")[0]):
        raise missing(path, session)
    return session or name


def missing(path: str, session: str) -> NotFound:
    """That the file does not hold the session."""
    name = path.rpartition("/")[2]
    return NotFound(f"The file '{name}' holds no session '{printable(session)}'.", "Name one it holds.")


def opened(
    importer: Importer, path: str, session: str, pointers: Sequence[Pointer],
    same: Callable[[Pointer, Message], bool] = lambda pointer, message: True,
) -> dict[Pointer, Message]:  # fmt: skip
    """The messages that the pointers lead to and that are the `same` as what was there before; others are left out.

    Each is read from the lines it is made of; where these alone do not give it (it rests on lines before them, or the
    file was rewritten), the file is read whole, once. Raises `Unreadable` for a file that cannot be read.
    """
    found: dict[Pointer, Message] = {}
    for pointer in pointers:
        message = _part(importer, path, session, pointer)
        if message is not None and same(pointer, message):
            found[pointer] = message
    left = [pointer for pointer in pointers if pointer not in found]
    if left:
        try:
            named = {(m.id, m.role): m for m in importer.read(path, session).messages}
        except (NotFound, Usage):
            named = {}
        there = {p: named[p.id, p.role] for p in left if (p.id, p.role) in named}
        found.update((p, m) for p, m in there.items() if same(p, m))
    return found


def _part(importer: Importer, path: str, session: str, pointer: Pointer) -> Message | None:
    """What the lines alone give that a pointer names; none where there are no such lines, or too many."""
    from pipimem.importers.reading import Part

    if not (0 <= pointer.at < pointer.end <= pointer.at + PART_LIMIT) or path.endswith(".zst"):
        return None
    line = int(pointer.id[1:]) if _by_line(pointer.id) else 1
    try:
        messages = importer.read(path, session, Part(pointer.at, pointer.end, line)).messages
    except (NotFound, Usage):
        return None
    there = [m for m in messages if m.at == pointer.at and m.role == pointer.role]
    return next((m for m in there if m.id == pointer.id), there[0] if there else None)


def _by_line(identity: str) -> bool:
    return identity[:1] == "L" and identity[1:].isdigit()
