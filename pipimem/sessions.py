"""Past conversations asked: listed, searched, told in order, opened at one message; from the hosts' own files.

The index says where a message stands; its text is read there, compared with what was indexed, and redacted. What is
gone is answered with what is still known of it. Taking conversations in is `importing`'s.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipimem import importers, importing
from pipimem.errors import Error, NotFound
from pipimem.importers import Pointer
from pipimem.importers.draft import safe
from pipimem.importing import import_here, keeps_tools, look, ready, transcript_of, trusted
from pipimem.index import Scope, words
from pipimem.index.sessions import Talk, mark_of
from pipimem.index.spoken import ROLES, Within
from pipimem.references import Shown, clipped
from pipimem.scopes import project_of
from pipimem.sources import file_of
from pipimem.text import clip, one_line, plural, printable
from pipimem.transcript import REFERENCE, Message, reference
from pipimem.turns import ENGINE, Turns

if TYPE_CHECKING:
    from pipimem.index import Hit
    from pipimem.index.sessions import Spoken
    from pipimem.opened import Opened
    from pipimem.sources import Source

PREVIEW, SNIPPET, BEFORE = 160, 700, 200
"""Characters of a preview, of a hit, and of a hit before the first word that was asked for."""
SPARE = 10
SHOWN_CITATIONS = 10


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation as it is listed; `there` is whether its file still is, `counts` messages, calls and errors."""

    ref: str
    session: str
    engine: str
    project: str
    channel: str
    agent: str
    title: str
    first: str
    last: str
    status: str
    path: str
    counts: dict[str, int]
    there: bool
    last_preview: str = ""

    def row(self) -> dict[str, Any]:
        """As `--json` gives it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Found:
    """A message that was found: reference, who, when, its text (redacted; "" where its file is gone: `there`)."""

    ref: str
    role: str
    time: str
    text: str
    session: str
    engine: str
    project: str
    channel: str
    path: str
    score: float = 0.0
    there: bool = True
    name: str = ""

    def row(self) -> dict[str, Any]:
        """As `--json` gives it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which conversations: `channels` None means every one, the unassigned too; else those of these channels only.

    `without` names sessions to be left out with the sessions they were started from (the running one).
    """

    channels: Sequence[str] | None = None
    project: str = ""
    session: str = ""
    without: Collection[str] = ()

    def sql(self, memory: Opened) -> tuple[str, list[Any]]:
        """The condition on the index's sources, and its values."""
        parts, values = list[str](), list[Any]()
        if self.channels is not None:
            parts.append(f"channel IN ({','.join('?' * len(self.channels))})")
            values += self.channels
        if self.project:
            folder = project_of(os.path.abspath(os.path.expanduser(self.project)))
            parts.append("(name = ? OR project = ? OR project = ?)")
            from pipimem.scopes import short

            values += [self.project, self.project, short(folder)]
        if self.session:
            engine, _, bare = self.session.partition(":")
            named = [t.id for t in memory.said.talks() if _is_named(t, self.session, engine, bare)]
            parts.append(f"id IN ({','.join(map(str, named))})")
        if self.without:
            parts.append(f"id NOT IN ({','.join(map(str, _left_out(memory.said.talks(), self.without)))})")
        return " AND ".join(parts), values


def _is_named(talk: Talk, given: str, engine: str, bare: str) -> bool:
    own = (talk.session, safe(talk.session))
    return (
        given in own or (engine == talk.engine and bare in own) or (len(given) >= 6 and talk.session.startswith(given))
    )


def _left_out(talks: Sequence[Talk], without: Collection[str]) -> list[int]:
    """The conversations named, and those they were started from, as far up as is known."""
    names = {name.rpartition(":")[2] if ":" in name else name for name in without} | set(without)
    gone: dict[int, None] = {}
    grown = True
    while grown:
        grown = False
        for talk in talks:
            if talk.id not in gone and names & {talk.session, safe(talk.session), f"{talk.engine}:{talk.session}"}:
                gone[talk.id] = None
                names |= {talk.parent} if talk.parent else set()
                grown = True
    return list(gone)


def conversations(memory: Opened, which: Filter, limit: int = 20, *, preview: bool = False) -> list[Conversation]:
    """The conversations, the last one first; with `preview` the beginning of the last message of each."""
    look(memory)
    if not memory.said.exists:
        return []
    where, values = which.sql(memory)
    return [_listed(memory, talk, preview=preview) for talk in memory.said.talks(where or "1", values, max(1, limit))]


def search(memory: Opened, query: str, which: Filter, *, role: str = "", limit: int = 10) -> list[Found]:
    """The messages that answer a query best, each with what it says now in its host's file.

    Raises `Usage` for a query without words.
    """
    look(memory)
    index = memory.said
    if not index.exists:
        return []
    where, values = which.sql(memory)
    limit = max(1, min(1000, limit))
    hits = index.search(query, Within(where, values, role), limit + SPARE)
    talks = {t.id: t for t in index.talks(f"id IN ({','.join(str(h.source) for h in hits)})")}
    asked = words.query(query, lambda runs: [list(run) for run in runs])
    found: list[Found] = []
    at, step = 0, len(hits) if asked.phrases else limit
    while at < len(hits) and len(found) < limit:
        for hit, message in _texts(memory, talks, hits[at : at + step]):
            if message is None and os.path.isfile(_file(talks[hit.source])):
                continue  # the file says something else there now; the next import puts it right
            found.append(_hit(memory, talks[hit.source], hit, message, asked))
        at += step
    found.sort(key=lambda f: -_phrases(f.text, asked) if asked.phrases else 0)
    return found[:limit]


def notes(memory: Opened, query: str, channel: str | None, *, all_channels: bool, limit: int = 5) -> list[Hit]:
    """The notes on conversations in HISTORY, archived ones too, that answer a query: by task, file or error."""
    scope = memory.scope(channel, all_channels=all_channels, layers=["history", "archive"])
    hits = memory.passages.search(query, scope, 5 * max(1, limit))
    found = [hit for hit in hits if REFERENCE.search(hit.text) or "Evidence" in hit.text][:limit]
    for hit in found:
        hit.text = memory.redacted(hit.text)
    return found


def timeline(
    memory: Opened, which: Filter, *, limit: int = 30, session_limit: int = 10
) -> tuple[list[Conversation], list[Found]]:
    """The last conversations, newest first, and their last messages (`limit` together), oldest first."""
    listed = conversations(memory, which, session_limit, preview=True)
    if not listed:
        return [], []
    where, values = which.sql(memory)
    talks = {t.id: t for t in memory.said.talks(where or "1", values, max(1, session_limit))}
    newest = [m for t in talks.values() for m in _said(memory.said.messages(t))[-max(1, limit) :]]
    newest = sorted(newest, key=lambda m: (m.time, m.row))[-max(1, limit) :]
    nothing = words.Query()
    texts = {hit.row: message for hit, message in _texts(memory, talks, newest)}
    return listed, [_hit(memory, talks[m.source], m, texts.get(m.row), nothing) for m in newest]


def recent(memory: Opened, channel: str | None, *, all_channels: bool, session: str = "", limit: int = 5) -> list[str]:
    """The last conversations of a scope, a line each: day, topic, counts, and the reference that opens more.

    `session` is the running one: it and those it was started from are left out.
    """
    channels = None if all_channels else [memory.workspace.channel(channel).id] if channel is not None else []
    lines = []
    which = Filter(channels, without=[session] if session else [])
    for talk in conversations(memory, which, limit, preview=True):
        topic = clip(one_line(talk.title or talk.last_preview or "(no title)"), 100)
        facts = ", ".join(x for x in (plural(talk.counts["messages"], "message"), talk.project) if x)
        lines.append(f"{talk.last[:10] or talk.first[:10]} {topic} ({facts}) [{talk.ref}]")
    return lines


def forget(
    memory: Opened, refs: Collection[str] = (), texts: Collection[str] = (), channel: str | None = None, *,
    dry_run: bool = False,
) -> list[str]:  # fmt: skip
    """Takes messages out of the index for good: those referred to (a whole session by `engine:session`), and those
    that hold one of the texts, folded (of `channel` only, where given). Returns the references of all of them.

    The hosts' files are not touched. The caller puts the references on the list of what was forgotten, or the next
    import takes the messages again. Of a transcript that is gone only references can be told.
    """
    known = ready(memory)
    index = memory.said
    if not index.exists:
        return []
    gone: dict[int, str] = {}
    for ref in refs:
        name = ref.strip().strip("[]").partition("#")[2]
        for source in known.named(ref):
            talk = index.talk(source.key)
            for message in (index.message(talk, name) if name else index.messages(talk)) if talk else ():
                gone[message.row] = f"{source.ref}#{message.name}"
    for message, ref in _holding(memory, [t for t in texts if t.strip()], channel):
        gone[message.row] = ref
    if not dry_run:
        index.forget(gone)
    return list(dict.fromkeys(gone.values()))


def _holding(memory: Opened, texts: Sequence[str], channel: str | None) -> Iterator[tuple[Spoken, str]]:
    """The messages that hold one of some texts, found by their words and told by what their files say."""
    index = memory.said
    for text in texts:
        hits = index.holding(text)
        talks = {t.id: t for t in index.talks()}
        for hit, message in _texts(memory, talks, hits):
            if message is not None and words.fold(text) in words.fold(message.text):
                talk = talks[hit.source]
                if channel is not None and talk.channel != channel:
                    continue
                yield hit, f"{talk.engine}:{safe(talk.session)}#{hit.name}"


# Opening


def show(memory: Opened, ref: str, name: str, scope: Scope, *, around: int, most: int) -> Shown:
    """What a message's reference opens, with `around` messages before and after it; a session's own: what is known.

    Raises `NotFound` for what is unknown or out of scope.
    """
    bare, _, message = name.partition("#")
    if bare.startswith(f"{ENGINE}:"):
        return _show_turn(memory, ref, bare, message, scope, around, most)
    known = [s for s in ready(memory).named(bare) if scope.channels is None or s.scope in scope.channels]
    if not known:
        raise NotFound(f"The conversation '{printable(bare)}' is not known here.", "Import it with 'pipimem import'.")
    if not message:
        return _show_session(memory, ref, known[-1], around, most)
    for source in reversed(known):
        shown = _show_message(memory, ref, source, message, around, most)
        if shown is not None:
            return shown
    return _show_gone(memory, ref, known[-1], message, most)


def _show_message(memory: Opened, ref: str, source: Source, name: str, around: int, most: int) -> Shown | None:
    """One message of one file, by its pointer or, where that leads nowhere, by reading all of the file."""
    if not source.there:
        return None
    talk = memory.said.talk(source.key)
    rows = _said(memory.said.messages(talk), name) if talk else []
    at = next((i for i, m in enumerate(rows) if m.name == name), None)
    if talk is not None and at is not None:
        near = rows[max(0, at - around) : at + around + 1]
        found = list(_texts(memory, {talk.id: talk}, near))
        if any(m.name == name and t is not None for m, t in found):
            said = [(m.name, t) for m, t in found if t is not None]
            return _shown(memory, ref, source, said, name, most)
    whole = _whole(memory, source)
    whole = [m for m in whole if m.role != "tool" or m.ref.partition("#")[2] == name]
    place = next((i for i, m in enumerate(whole) if m.ref.partition("#")[2] == name), None)
    if place is None:
        return None
    said = [(m.ref.partition("#")[2], m) for m in whole[max(0, place - around) : place + around + 1]]
    return _shown(memory, ref, source, said, name, most)


def _said(rows: Sequence[Spoken], name: str = "") -> list[Spoken]:
    """Messages without what tools returned, except for the one of that name."""
    return [row for row in rows if row.role != "tool" or row.name == name]


def _whole(memory: Opened, source: Source) -> Sequence[Message]:
    try:
        return transcript_of(source, trusted(memory), tools=keeps_tools(memory)).messages
    except Error:
        return ()


def _shown(
    memory: Opened, ref: str, source: Source, said: Sequence[tuple[str, Message]], name: str, most: int
) -> Shown:  # fmt: skip
    message = next(m for n, m in said if n == name)
    line = int(message.id[1:]) if message.id[:1] == "L" and message.id[1:].isdigit() else 0
    shown = Shown(ref, path=source.path, line=line)
    shown.channel, shown.date, shown.kind, shown.id = source.scope, message.time, message.role, name
    shown.source = f"{source.ref}#{name}"
    if len(said) == 1:
        shown.text = clipped(_told(memory, message), most)
    else:
        shown.text = "\n".join(
            f"{'>' if n == name else ' '} {m.role} {m.time}".rstrip() + f" [{n}]: {_set_in(memory, m, most)}"
            for n, m in said
        )
    return shown


def _set_in(memory: Opened, message: Message, most: int) -> str:
    """What a message says, no line of which can be taken for the beginning of another."""
    return "\n    ".join(clipped(_told(memory, message), most).splitlines())


def _told(memory: Opened, message: Message) -> str:
    """What a message says and names, secrets out: before anything of it is cut, or half of one would be left."""
    named = [*(f"[file] {f}" for f in message.files), *(f"[command] {c}" for c in message.commands)]
    return memory.redacted("\n".join([*([message.text] if message.text else []), *named]))


def _show_session(memory: Opened, ref: str, source: Source, around: int, most: int) -> Shown:
    shown = Shown(ref, path=source.path)
    shown.channel, shown.date, shown.source = source.scope, source.last, source.ref
    talk = memory.said.talk(source.key)
    rows = _said(memory.said.messages(talk)) if talk else []
    chosen = [*rows[: around + 1], *rows[max(around + 1, len(rows) - around - 1) :]]
    lines = [_facts(source, talk.title if talk else "")]
    if talk is not None and source.there:
        for m, message in _texts(memory, {talk.id: talk}, chosen):
            text = one_line(_told(memory, message)) if message else "(not what was imported here)"
            lines.append(f"{m.role}{' ' + m.time if m.time else ''} [{m.name}]: {clip(text, most)}")
    shown.text = "\n".join([*lines, *_citations(memory, source.ref, source.scope)])
    return shown


def _show_gone(memory: Opened, ref: str, source: Source, name: str, most: int) -> Shown:
    """What is still known of a message whose text can no longer be read."""
    talk = memory.said.talk(source.key)
    row = next(iter(memory.said.message(talk, name)), None) if talk else None
    cited = _citations(memory, f"{source.ref}#{name}", source.scope)
    foreign = importing.mark_of(source) not in trusted(memory)
    if row is None and source.there and not foreign:
        raise NotFound(
            f"The conversation '{source.ref}' holds no message '{printable(name)}'.", "See 'pipimem sessions'."
        )
    if row is None and not cited and source.messages == 0:
        raise NotFound(f"Nothing is known of the message '{printable(name)}'.", "See 'pipimem sessions list'.")
    shown = Shown(ref, path=source.path)
    shown.channel, shown.source, shown.id = source.scope, f"{source.ref}#{name}", name
    shown.date, shown.kind = (row.time, row.role) if row else ("", "")
    what = f"Its text is gone with the transcript '{source.path}'." if not source.there else "It is not there any more."
    if foreign:
        what = f"The conversation was not imported on this machine. {import_here(source)}"
    said = f"A message of the {row.role}{', ' + row.time if row.time else ''}." if row else "A message."
    shown.text = clip("\n".join([f"{said} {what}", _facts(source, talk.title if talk else ""), *cited]), max(most, 500))
    return shown


def _facts(source: Source, title: str) -> str:
    """A conversation in a line."""
    parts = [f"{source.ref}{': ' + title if title else ''}"]
    parts += [f"project {source.name or source.project}"] if source.project else []
    parts += [f"channel {source.scope}"] if source.scope else ["not assigned to a channel"]
    parts += [f"{source.first} – {source.last}"] if source.first else []
    counts = (source.messages, "message"), (source.calls, "tool call"), (source.errors, "error")
    parts.append(", ".join(plural(count, name) for count, name in counts))
    return "; ".join([*parts, source.status, *([] if source.there else ["gone"])])


def _citations(memory: Opened, ref: str, channel: str) -> list[str]:
    """The lines of the channel's files that rest on a conversation or message: entries, notes, archived ones too."""
    if not channel:
        return []
    lines = []
    try:
        folder = memory.workspace.channel(channel).path
    except Error:
        return []
    for name in ("MEMORY.md", "HISTORY.md", "HISTORY.archive.md"):
        text = (memory.workspace.read(f"{folder}/{name}") or b"").decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            if ref in line:
                lines.append(f"cited in {folder}/{name}:{number}")
    return lines[:SHOWN_CITATIONS]


def _show_turn(
    memory: Opened, ref: str, bare: str, name: str, scope: Scope, around: int, most: int
) -> Shown:  # fmt: skip
    """A recorded turn, opened by its number."""
    from pipimem.channels import folder_name

    channel = next((c for c in memory.channels() if reference(ENGINE, folder_name(c.id), "") == f"{bare}#"), None)
    if channel is None or (scope.channels is not None and channel.id not in scope.channels):
        raise NotFound(f"The turns of '{printable(bare)}' are not known here.", "See 'pipimem channel list'.")
    messages = Turns(memory.workspace, channel.id).since(0).transcript.messages
    at = next((i for i, m in enumerate(messages) if m.ref == f"{bare}#{name}"), None)
    if at is None:
        cited = _citations(memory, f"{bare}#{name}", channel.id)
        raise NotFound(f"The turn '{printable(name)}' is no longer kept. {' '.join(cited)}".strip(), "")
    from pipimem.sources import Source as Row

    source = Row(ENGINE, folder_name(channel.id), scope=channel.id, path=f"{ENGINE}s")
    said = [(m.ref.partition("#")[2], m) for m in messages[max(0, at - around) : at + around + 1]]
    return _shown(memory, ref, source, said, name, most)


# Texts by pointer


def _texts(memory: Opened, talks: dict[int, Talk], hits: Sequence[Spoken]) -> Iterator[tuple[Spoken, Message | None]]:
    """Each message with what its file says there now; None where that is not what was indexed."""
    by_source: dict[int, list[Spoken]] = {}
    for hit in hits:
        by_source.setdefault(hit.source, []).append(hit)
    found: dict[int, Message] = {}
    own = trusted(memory) if hits else ()
    for number, rows in by_source.items():
        talk = talks[number]
        if importing.mark_of(talk) not in own:
            continue  # the index came with a stranger's workspace
        pointers = {Pointer(r.ident, r.role, r.at, r.end): r for r in rows}

        def same(pointer: Pointer, message: Message, of: dict[Pointer, Spoken] = pointers) -> bool:
            return bool(mark_of(message.text, message.files, message.commands) == of[pointer].digest)

        try:
            importer = _importer(talk.engine)
            importer = importers.with_tools(importer) if any(r.role == "tool" for r in rows) else importer
            read = importers.opened(importer, _file(talk), talk.session, list(pointers), same)
        except Error:
            continue
        found.update((pointers[pointer].row, message) for pointer, message in read.items())
    for hit in hits:
        yield hit, found.get(hit.row)


_loaded: dict[str, Any] = {}


def _importer(name: str) -> Any:
    """Looking through the installed packages for an importer takes longer than a search."""
    if name not in _loaded:
        _loaded[name] = importers.importer(name)
    return _loaded[name]


def _file(talk: Talk) -> str:
    return file_of(talk.engine, talk.path)


def _listed(memory: Opened, talk: Talk, *, preview: bool) -> Conversation:
    there = os.path.isfile(_file(talk))
    last = ""
    if preview and there:
        for _, message in _texts(memory, {talk.id: talk}, memory.said.last(talk)):
            last = clip(one_line(memory.redacted(message.text) or _told(memory, message)), PREVIEW) if message else ""
    counts = {"messages": talk.messages, "calls": talk.calls, "errors": talk.errors}
    return Conversation(
        f"{talk.engine}:{safe(talk.session)}", talk.session, talk.engine, talk.name or talk.project, talk.channel,
        talk.agent, talk.title, talk.first, talk.last, talk.status, talk.path, counts, there, last,
    )  # fmt: skip


def _hit(memory: Opened, talk: Talk, hit: Spoken, message: Message | None, asked: words.Query) -> Found:
    text = _snippet(_told(memory, message), asked) if message is not None else ""
    return Found(
        f"{talk.engine}:{safe(talk.session)}#{hit.name}", hit.role, hit.time, text, talk.session, talk.engine,
        talk.name or talk.project, talk.channel, talk.path, hit.score, message is not None,
        message.name if message else "",
    )  # fmt: skip


def _snippet(text: str, asked: words.Query) -> str:
    """The part of a long text around the first word that was asked for."""
    if len(text) <= SNIPPET:
        return text
    lower = text.lower()
    places = [at for word in [*asked.words, *asked.pairs] if len(word) > 1 and (at := lower.find(word)) >= 0]
    start = max(0, min(places, default=0) - BEFORE)
    return ("…" if start else "") + clip(text[start:], SNIPPET)


def _phrases(text: str, asked: words.Query) -> int:
    folded = "".join(words.fold(text).split())
    return sum("".join(phrase) in folded for phrase in asked.phrases)


def roles() -> tuple[str, ...]:
    """The roles a search may be limited to."""
    return ROLES
