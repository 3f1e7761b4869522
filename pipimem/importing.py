"""Taking foreign conversations in: which of a host's are meant, their lines in the list of sources, their messages in
the index of sessions. Nothing of the host's is changed, and no text is kept.

Formats are the importers', where a conversation belongs is `scopes`', asking is `sessions`'.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from pipimem import importers
from pipimem import sources as listed
from pipimem.channels import same_id
from pipimem.errors import Error, NotFound, Refused, Unreadable, Usage
from pipimem.files import append_private
from pipimem.history import Beside
from pipimem.importers import reading
from pipimem.importers.draft import count, safe
from pipimem.opened import own_message
from pipimem.pending import read_private
from pipimem.scopes import Known, Scope, chat_ids, is_group, project_of, resolve, short
from pipimem.sources import PATH, Source, Sources
from pipimem.text import clip, digest, encode, one_line, plural, printable
from pipimem.update import dates

if TYPE_CHECKING:
    from pipimem.importers import Importer
    from pipimem.index.sessions import Talk
    from pipimem.opened import Opened
    from pipimem.transcript import Session, Transcript

HERE = ("state", "sources.here")
TITLE_LIMIT = 120
WITH_TOOLS = " tools"
PUT_AWAY = ("/archived_sessions/", ".jsonl.reset.", ".jsonl.deleted.")


@dataclass(frozen=True, slots=True)
class Wish:
    """What of a host is to be imported; `everything` leaves the project of the current folder (or of `project`).

    `channel` assigns what is imported; `force` takes anew what is known already.
    """

    host: str
    path: str = ""
    channel: str = ""
    project: str = ""
    session: str = ""
    everything: bool = False
    since: str = ""
    limit: int = 0
    platform: str = ""
    dry_run: bool = False
    force: bool = False


@dataclass(slots=True)
class Imported:
    """One conversation of an import: `status` is its state in the list (or `error` with the `reason`), `what` was done.

    `what` is new, grown, changed, moved, unchanged or failed; `messages` are in the index now, `kept` came with this
    import; `skipped` says by reason what of it was left out.
    """

    ref: str
    path: str
    what: str
    status: str = "indexed"
    messages: int = 0
    kept: int = 0
    project: str = ""
    channel: str = ""
    reason: str = ""
    skipped: dict[str, int] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """As `--json` gives it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Report:
    """What an import did, or would do: the conversations, and by reason how many were passed over unread."""

    sources: list[Imported] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    commit: str = ""
    deferred: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation that is meant: where it is and what a listing says of it; `renamed` where its id is `named`'s."""

    path: str
    about: Session
    alone: bool
    renamed: bool = False


def run(memory: Opened, wish: Wish) -> Report:
    """Imports what is wished. Raises `NotFound` where the host has nothing here, `Usage`, `Unreadable`, `Refused`."""
    memory.workspace.trust()
    importer = importers.importer(wish.host)
    if wish.channel:
        wish = replace(wish, channel=memory.workspace.channel(wish.channel).id)
    _since(wish)
    report = Report()
    found = _chosen(memory, importer, wish, report)
    work = _Import(memory, importer, wish, report)
    if wish.force and not wish.dry_run:
        for item in found:  # everything is read before anything is replaced
            work.read(item)
    for item in found:
        work.one(item)
    work.register()
    return report


def _since(wish: Wish) -> date | None:
    try:
        return date.fromisoformat(wish.since) if wish.since else None
    except ValueError:
        raise Usage(f"The date '{printable(wish.since)}' is none.", "Give it as 2026-11-30.") from None


def _chosen(memory: Opened, importer: Importer, wish: Wish, report: Report) -> list[Found]:
    """The conversations that are meant, oldest first; the others are counted by reason."""
    root = project_of(os.path.abspath(os.path.expanduser(wish.project or ".")))
    found, known = [], listed.read(memory.workspace.root)
    for path in _files(importer, wish, report.skipped):
        try:
            if not importer.detects(path, reading.head(path)):
                count(report.skipped, "another format")
                continue
            sessions = importer.sessions(path)
        except Error as error:
            if wish.force:
                raise
            report.sources.append(Imported(f"{wish.host}:", short(path), "failed", "error", reason=str(error)))
            continue
        given = os.path.abspath(os.path.expanduser(wish.path)) if wish.path else ""
        pointed = bool(given) and given in (os.path.abspath(path), _named_after(importer, path)[1])
        for about in sessions:
            name = named(known, importer, about.engine, about.id, path)
            item = Found(path, replace(about, id=name), len(sessions) == 1, name != about.id)
            reason = _passed_over(memory, item, wish, root, pointed)
            if reason:
                count(report.skipped, reason)
                continue
            found.append(item)
            source = Source(about.engine, name, path=short(os.path.abspath(path)))
            if source.key not in known.rows:
                known.take(source)  # its name is taken
    order = {id(f): n for n, f in enumerate(found)}
    found.sort(key=lambda f: (f.about.first or f.about.last, f.about.last, order[id(f)]))
    if wish.limit > 0 and len(found) > wish.limit:
        report.skipped["over the limit"] = len(found) - wish.limit
        found = found[-wish.limit :]
    if wish.session and not found and not report.sources:
        raise NotFound(f"There is no session '{printable(wish.session)}' of '{wish.host}' here.", "Try --all.")
    return found


def _files(importer: Importer, wish: Wish, skipped: dict[str, int]) -> Iterator[str]:
    roots = [os.path.abspath(os.path.expanduser(wish.path))] if wish.path else importer.places(os.environ)
    there = [root for root in roots if os.path.exists(root)]
    if not there:
        looked = ", ".join(f"'{short(root)}'" for root in roots) or "nowhere: it has no place of its own"
        raise NotFound(f"There are no transcripts of '{wish.host}' (looked in {looked}).", "Give the path.")
    for root in there:
        if os.path.isdir(root):
            yield from importer.files(root, skipped)
        else:
            yield root


def _passed_over(memory: Opened, item: Found, wish: Wish, root: str, pointed: bool) -> str:
    """Why a conversation is not meant, "" where it is; `pointed` is whether just its file was given."""
    about = item.about
    named = wish.session in (about.id, safe(about.id)) if wish.session else False
    if wish.session and not named:
        return "another session"
    if about.kind and not named:
        return about.kind
    if wish.platform and about.facts.get("platform") != wish.platform:
        return "another platform"
    since, last = _since(wish), dates.when(about.last)
    if since and last and last.date() < since:
        return f"before {wish.since}"
    is_chat = any(same_id(wish.channel, chat) for chat in chat_ids(about.facts)) if wish.channel else False
    if is_group(about.facts, memory.workspace.config["workspace.kinds"]) and not (named or pointed or is_chat):
        return "group chat, not named"
    project = project_of(about.facts.get("project", "") or about.cwd)
    other = wish.channel and about.facts.get("chat") and not (named or is_chat or (pointed and item.alone))
    if other and (project != root or memory.workspace.channel(wish.channel).kind != "project"):
        return "another chat"
    if wish.everything:
        return ""
    if project and os.path.isabs(project):
        return "" if project == root else "another project"
    return "" if wish.path or named or is_chat else "no project"


class _Import:
    """One import at work."""

    def __init__(self, memory: Opened, importer: Importer, wish: Wish, report: Report) -> None:
        self.memory, self.wish, self.report = memory, wish, report
        self.tools = keeps_tools(memory)
        self.importer = importers.with_tools(importer) if self.tools else importer
        self.known = ready(memory) if not wish.dry_run else listed.read(memory.workspace.root)
        self.gone = {(s.engine, s.scope) for s in self.known if not s.there}
        self.channels = memory.channels()
        self.forgotten = forgotten(memory)
        self.index = memory.said.trial() if wish.dry_run else memory.said
        self.fresh: list[Source] = []
        self.opened: tuple[str, dict[str, Transcript]] = ("", {})

    def read(self, item: Found) -> Transcript:
        """The conversation; those of a file that holds many are read in one pass."""
        if item.alone:
            return self.importer.read(item.path, item.about.id if item.about.kind or item.renamed else "")
        if item.about.kind:
            return self.importer.read(item.path, item.about.id)
        if self.opened[0] != item.path:
            self.opened = item.path, {t.session: t for t in importers.each(self.importer, item.path, {})}
        found = self.opened[1].get(item.about.id)
        return found if found is not None else self.importer.read(item.path, item.about.id)

    def one(self, item: Found) -> None:
        """One conversation: read, indexed and reported; one that cannot be read stops no other."""
        path = short(os.path.abspath(item.path))
        try:
            done = self._one(item, path)
            if done is not None:
                self.report.sources.append(done)
            else:
                count(self.report.skipped, "nothing said")
        except (Unreadable, NotFound, Usage) as error:
            ref = f"{item.about.engine}:{safe(item.about.id)}"
            old = next((s for s in self.known.of(item.about.engine, item.about.id) if s.path == path), None)
            if old is not None and old.status != "error":
                self._keep(replace(old, status="error"))
            self.report.sources.append(Imported(ref, path, "failed", "error", reason=str(error)))

    def _one(self, item: Found, path: str) -> Imported | None:
        index, key = self.index, (item.about.engine, item.about.id, path)
        stamp = stamp_of(item.path, tools=self.tools)
        talk = index.talk(key)
        old = self.known.rows.get(key)
        same = talk is not None and talk.stamp == stamp
        if talk and old and (old.engine, old.scope) in self.gone and index.lacks(talk):
            same = False  # another session said it first, whose file is gone
        if old and talk and same and not self.wish.force and not self._moves(old):
            return self._reported(old, "unchanged", talk.messages, 0, {})
        transcript = self.read(item)
        if not transcript.talk and old is None:
            return None
        old = self.known.rows.get((transcript.engine, transcript.session, path))
        was = "" if old else self._moved_from(transcript, item.path)
        before = old or self.known.rows.get((transcript.engine, transcript.session, was))
        source = self._source(transcript, item.path, path, before, was)
        what = _what(before, source, was)
        if what == "unchanged" and talk and talk.stamp.endswith(WITH_TOOLS) != self.tools:
            what = "changed"  # the setting was: what tools returned comes in, or goes
        if item.alone and (other := self._named_before(source)):
            source = replace(source, instead=other)
            index.drop((source.engine, other, path))
        if not self.wish.dry_run:
            trust(self.memory, source)
        taken = index.take(
            columns(self.memory, source, stamp, transcript.title), transcript.messages, forgotten=self.forgotten,
            anew=self.wish.force, was=was,
        )  # fmt: skip
        self._keep(source)
        skipped = {**transcript.skipped, **taken.passed}
        kept = taken.added + taken.changed
        return self._reported(source, what, len(transcript.messages) - sum(taken.passed.values()), kept, skipped)

    def _named_before(self, source: Source) -> str:
        """The id under which the one session of a file was known when its beginning was still half written."""
        others = (s.session for s in self.known if (s.engine, s.path) == (source.engine, source.path))
        return next((session for session in others if session != source.session), "")

    def _moves(self, old: Source) -> bool:
        return bool(self.wish.channel) and old.scope != self.wish.channel

    def _moved_from(self, transcript: Transcript, path: str) -> str:
        """The path a session was known under whose file is gone from there: an archived or renamed one."""
        by_path = _named_after(self.importer, path)[0]
        rows = self.known.of(transcript.engine, transcript.session)
        return next((
            s.path for s in rows
            if not os.path.isfile(os.path.expanduser(s.path)) and (not by_path or _begins(path, s))
        ), "")  # fmt: skip

    def _source(self, transcript: Transcript, file: str, path: str, before: Source | None, was: str) -> Source:
        source = described(self.memory, transcript, file, path, self.channels, channel=self.wish.channel,
                           project="" if transcript.cwd else self.wish.project)  # fmt: skip
        if before is None:
            return source
        same = before.digest == source.digest and before.status != "error"
        return replace(
            source, scope=self.wish.channel or before.scope or source.scope, was=was, note=before.note,
            entries=before.entries, status=before.status if same else source.status,
        )  # fmt: skip

    def _keep(self, source: Source) -> None:
        if source.was or source.instead or not source.same(self.known.rows.get(source.key)):
            self.fresh.append(source)
            self.known.take(source)

    def _reported(self, source: Source, what: str, messages: int, kept: int, skipped: dict[str, int]) -> Imported:
        return Imported(
            source.ref, source.path, what, source.status, messages, kept, source.name, source.scope,
            skipped=dict(skipped),
        )  # fmt: skip

    def register(self) -> None:
        """Writes what is new to the list of sources and commits it; a dry run lets go of what it tried."""
        if self.wish.dry_run:
            self.index.close()
        elif self.fresh:
            what = f"import {self.wish.host}: {plural(len(self.fresh), 'session')}"
            self.report.commit, self.report.deferred = register(self.memory, self.fresh, what)


def _what(before: Source | None, now: Source, was: str) -> str:
    if before is None:
        return "new"
    if before.digest == now.digest:
        return "moved" if was else "unchanged"
    return "grown" if now.size >= before.size else "changed"


def named(known: Sources, importer: Importer, engine: str, identity: str, path: str) -> str:
    """The id a conversation is known by, or is to be. One that only its path gives it may be another's, whose file is
    elsewhere and is not the beginning of this one: then it is `ID~…`."""
    name, place = _named_after(importer, path)
    if not name or name != identity:
        return identity
    own = short(os.path.abspath(path))
    rows = [s for s in known if s.engine == engine and name in (s.session, s.session.rpartition("~")[0])]
    here = [s for s in rows if s.path == own] or [s for s in rows if _named_after(importer, s.file)[1] == place]
    here = here or [s for s in rows if not s.there and _begins(path, s)]
    if here:
        return here[-1].session
    return f"{name}~{digest(encode(own), 3)}" if any(s.session == name for s in rows) else name


def _named_after(importer: Importer, path: str) -> tuple[str, str]:
    after = getattr(importer, "named_after", None)
    return after(path) if after else ("", "")


def _begins(path: str, source: Source) -> bool:
    """Whether a file begins with all that the source was when it was read: then that file has moved here."""
    try:
        return source.digest in (reading.digest(path, source.size), reading.digest(path))
    except Unreadable:
        return False


def load(memory: Opened, path: str, session: str = "") -> Transcript:
    """The transcript in the file `path` under the id it is known by, or is to be. Raises as `importers.load` does."""
    importer = importers.recognised(path, importers.importers())
    found = importer.read(path, session)
    name = named(listed.read(memory.workspace.root), importer, found.engine, found.session, path)
    return found if name == found.session else importer.read(path, name)


def described(
    memory: Opened, transcript: Transcript, file: str, path: str, channels: Sequence[Any], *, channel: str = "",
    project: str = "",
) -> Source:  # fmt: skip
    """The line of a conversation that was just read from `file`; `path` is how the list writes it."""
    known = Known(transcript.cwd, transcript.session, transcript.facts)
    scope: Scope = resolve(
        known, channels, memory.workspace.config["workspace.projects"], channel=channel, project=project
    )
    put_away = transcript.kind in ("archived", "deleted") or any(part in path for part in PUT_AWAY)
    return Source(
        transcript.engine, transcript.session, short(scope.project), scope.channel, scope.agent, short(transcript.cwd),
        path, transcript.digest, os.path.getsize(file), transcript.first, transcript.last, len(transcript.talk),
        transcript.calls, transcript.errors, "archived" if put_away else "indexed", transcript.kind, transcript.parent,
        memory.now().isoformat(timespec="seconds"), name=scope.name,
    )  # fmt: skip


def columns(memory: Opened, source: Source, stamp: str, title: str) -> dict[str, Any]:
    """A source as the index has it."""
    return {
        "engine": source.engine, "session": source.session, "path": source.path, "digest": source.digest,
        "stamp": stamp, "size": source.size, "channel": source.scope, "project": source.project, "name": source.name,
        "agent": source.agent, "cwd": source.cwd, "title": clip(memory.redacted(one_line(title)), TITLE_LIMIT),
        "kind": source.kind, "parent": source.parent, "first": source.first, "last": source.last,
        "messages": source.messages, "calls": source.calls, "errors": source.errors, "status": source.status,
    }  # fmt: skip


def keeps_tools(memory: Opened) -> bool:
    """Whether what tools returned is taken: for the user alone to say, as it is their hosts' files that are read."""
    memory.workspace.trust()
    return bool(memory.workspace.config["import.tool_output"])


def stamp_of(path: str, *, tools: bool = False) -> str:
    """What changes whenever a file does, or the log beside a database; or whether what `tools` returned is taken."""
    stamps = []
    for name in (path, path + "-wal"):
        try:
            found = os.stat(name)
        except OSError:
            continue
        stamps.append(f"{found.st_size}.{found.st_mtime_ns}.{found.st_ino}")
    return " ".join(stamps) + (WITH_TOOLS if tools and stamps else "")


def register(memory: Opened, rows: Sequence[Source], subject: str) -> tuple[str, str]:
    """Appends lines to the list of sources and commits it: (commit, "") or ("", why not yet)."""
    root, index = memory.workspace.root, memory.said
    with memory.workspace.locks([PATH]):
        before = listed.read(root).mark
        beside = {PATH: listed.appended(root, rows)}
        with Beside(memory.workspace, beside):
            pass
        message = own_message(subject)
        ticket = memory.commits.enlist([], message, beside)
    if index.exists and (index.mark or listed.EMPTY) == before:
        index.mark = digest(beside[PATH])
    return memory.commits.commit(ticket, [], message, beside)


def adopt(memory: Opened, channel: str, transcript: Transcript, path: str) -> Source:
    """The source of a conversation that was read from `path` for a channel; taken in where it is new or has grown.

    Raises `Refused` for one that belongs to another channel.
    """
    source, news = meant(memory, channel, transcript, path)
    if news:
        ready(memory)
        _take(memory, source, transcript)
        register(memory, [source], f"{channel}: import {source.ref}")
    return source


def meant(memory: Opened, channel: str, transcript: Transcript, path: str) -> tuple[Source, bool]:
    """The line of a conversation read from `path` for a channel, and whether the list does not have it so yet."""
    known, file = listed.read(memory.workspace.root), os.path.abspath(path)
    key = (transcript.engine, transcript.session, short(file))
    before = known.rows.get(key)
    if before is not None and before.scope not in ("", channel):
        raise elsewhere(before, channel)
    source = described(memory, transcript, file, key[2], memory.channels(), channel=channel)
    trust(memory, source)
    if before is None:
        return source, True
    source = replace(source, note=before.note, entries=before.entries, status=before.status)
    return source, not source.same(before)


def elsewhere(source: Source, channel: str) -> Refused:
    """That a conversation belongs to another channel than the one it is to be worked on for."""
    return Refused(
        f"The conversation '{source.ref}' belongs to '{source.scope}', not to '{channel}'.",
        f"To move it: pipimem import {source.engine} --session {source.session} --channel …",
    )


def follow(memory: Opened, before: str, row: Source, transcript: Transcript | None = None) -> None:
    """Tells the index of a line that was appended to the list when its mark was `before`, and of what was said.

    An index that was behind already is brought up to date by the next look.
    """
    index = memory.said
    now = listed.read(memory.workspace.root).mark
    if (index.mark or listed.EMPTY) not in (before, now):
        return
    talk = index.talk(row.key)
    if transcript is not None and (talk is None or talk.digest != row.digest):
        _take(memory, row, transcript)
    elif talk is not None:
        index.describe(columns(memory, row, talk.stamp, talk.title))
    else:
        return
    index.mark = now


def _take(memory: Opened, source: Source, transcript: Transcript) -> None:
    """Indexes a conversation that was read as the updater reads it, without what tools returned."""
    tools = keeps_tools(memory)
    stamp = stamp_of(source.file, tools=tools)
    whole = _again(source, trusted(memory), tools=True) if tools else None
    if whole is not None and whole.digest == transcript.digest:
        transcript = whole
    memory.said.take(columns(memory, source, stamp, transcript.title), transcript.messages, forgotten=forgotten(memory))


# Bringing the index to what the list says


def ready(memory: Opened, *, rebuild: bool = False) -> Sources:
    """The list of sources, with the index of sessions brought to what it says from the files that still exist.

    With `rebuild` it is made anew.
    """
    known = listed.read(memory.workspace.root)
    index = memory.said
    if rebuild:
        index.discard()
    if (known.rows or index.exists) and index.mark != known.mark:
        derive(memory, known)
    index.seen = _list_stamp(memory)
    return known


def look(memory: Opened) -> None:
    """`ready` for who does not need the list: where its file has not changed since the last look, it is not read."""
    if not memory.said.exists or memory.said.seen != _list_stamp(memory):
        ready(memory)


def _list_stamp(memory: Opened) -> str:
    return stamp_of(os.path.join(memory.workspace.root, *PATH.split("/")))


def derive(memory: Opened, known: Sources) -> None:
    """Takes every source of the list whose file is here and is not indexed as the list has it; drops all others.

    Only what was imported on this machine is read: a list that came with a stranger's workspace must not make their
    channel out of somebody's private conversations.
    """
    index, own, skip = memory.said, trusted(memory), forgotten(memory)
    have = {(t.engine, t.session, t.path): t for t in index.talks()}
    tools = keeps_tools(memory)
    for source in sorted(known, key=lambda s: (s.first, s.last)):
        talk = have.pop(source.key, None)
        if talk is not None and talk.digest == source.digest:
            about = columns(memory, source, talk.stamp, talk.title)
            if any(getattr(talk, name) != value for name, value in about.items()):
                index.describe(about)
            continue
        transcript = _again(source, own, tools=tools)
        if transcript is None:
            index.describe(columns(memory, source, "", talk.title if talk else ""))
            continue
        stamp = stamp_of(source.file, tools=tools) if transcript.digest == source.digest else ""
        index.take(columns(memory, source, stamp, transcript.title), transcript.messages, forgotten=skip)
    for key in have:
        index.drop(key)
    index.mark = known.mark


def _again(source: Source, own: Collection[str], *, tools: bool) -> Transcript | None:
    if not source.there:
        return None
    try:
        return transcript_of(source, own, tools=tools)
    except Error:
        return None


def transcript_of(source: Source, own: Collection[str], *, tools: bool = False) -> Transcript:
    """A known conversation read from its file as it is now. Raises `Unreadable` and what importers raise.

    `own` are those imported on this machine (`trusted`): any other is refused unread, as whoever wrote the list could
    name any file of the user's. What `tools` returned is in it only where that is asked for: the updater learns from
    talk alone.
    """
    if mark_of(source) not in own:
        raise Refused(f"The conversation '{source.ref}' was not imported on this machine.", import_here(source))
    if not source.there:
        raise Unreadable(f"The transcript of '{source.ref}' is gone: '{source.path}'.", "See 'pipimem sessions list'.")
    importer = importers.importer(source.engine)
    importer = importers.with_tools(importer) if tools else importer
    if source.kind:
        return importer.read(source.file, source.session)
    try:
        found = importer.read(source.file)
    except Usage:  # it holds several
        return importer.read(source.file, source.session)
    return found if found.session == source.session else importer.read(source.file, source.session)


def reread(memory: Opened, ref: str, channel: str = "") -> Transcript:
    """The conversation called `ref`, read again; of one that stands in several files those of one channel."""
    found = listed.read(memory.workspace.root).named(ref)
    if not found:
        raise NotFound(f"There is no source '{printable(ref)}'.", "See 'pipimem sessions list', or import it.")
    mine = [s for s in found if not channel or s.scope in ("", memory.workspace.channel(channel).id)]
    if not mine:
        raise elsewhere(found[-1], channel)
    own = trusted(memory)
    mine = [s for s in mine if mark_of(s) in own] or mine
    found = [s for s in mine if s.scope == mine[-1].scope]
    parts = [transcript_of(source, own) for source in found if source.there] or [transcript_of(found[-1], own)]
    if len(parts) == 1:
        return parts[0]
    messages = {(m.ref, m.role): m for part in parts for m in part.messages}
    return replace(parts[-1], messages=tuple(sorted(messages.values(), key=lambda m: m.time)),
                   calls=sum(p.calls for p in parts), errors=sum(p.errors for p in parts))  # fmt: skip


def forgotten(memory: Opened) -> set[str]:
    """The references of messages that were forgotten: they are never taken again."""
    from pipimem.history import TOMBSTONES

    refs: set[str] = set()
    for line in memory.stones(TOMBSTONES):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        named = row.get("sources") if isinstance(row, dict) else None
        refs.update(r for r in named if isinstance(r, str)) if isinstance(named, list) else None
    return refs


def import_here(source: Source) -> str:
    """The next step for a conversation that was imported elsewhere."""
    return f"To read its file: pipimem import {source.engine} '{printable(source.path)}'"


def mark_of(source: Source | Talk) -> str:
    """What tells a source in the list of those imported on this machine."""
    return digest(encode("\0".join([source.engine, source.session, source.path])), 8)


def trusted(memory: Opened) -> set[str]:
    """The sources that were imported on this machine."""
    return set((read_private(memory.workspace.private(*HERE)) or b"").decode("ascii", "replace").split())


def trust(memory: Opened, source: Source) -> None:
    """Notes that a person imported this source here."""
    if mark_of(source) in trusted(memory):
        return
    path = memory.workspace.private(*HERE)
    try:
        memory.workspace.prepare()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        append_private(path, mark_of(source))
    except OSError as error:
        raise Refused(
            f"'{path}' cannot be written: {(error.strerror or 'error').lower()}.", "Free its folder."
        ) from None
