"""One opened workspace and everything one can do with it: the only place that knows the order sync → act → commit.

Each verb reads what it needs, lets a pure module decide, and then writes, commits and indexes in that order. A
failed commit or sync never takes back a written file: it is noted and made up for by the next command.
"""

from __future__ import annotations

import os

from pipimem.config import remembered
from pipimem.errors import Conflict, Error, NotFound, Refused, Unreadable, Usage
from pipimem.files import reason
from pipimem.history import REJECTED, STONES, TOMBSTONES, Beside, History, write_beside
from pipimem.index import Hit, Index, Scope
from pipimem.pending import read_private
from pipimem.text import decode, encode, one_line, printable
from pipimem.workspace import (
    MARK,
    SHARED_FILES,
    Change,
    Workspace,
    append_private,
    find,
    looks_like,
    read_data,
    write_private,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Any

    from pipimem.checks import Finding
    from pipimem.git import Commit
    from pipimem.index.sync import Diff
    from pipimem.lifecycle import Lifecycle, Step
    from pipimem.llm import Provider
    from pipimem.recall import Recall
    from pipimem.recall.context import Context
    from pipimem.recall.offer import Skills
    from pipimem.references import Reference, Shown
    from pipimem.skills import Skill
    from pipimem.standing import Standing
    from pipimem.transcript import Transcript
    from pipimem.turns import Recorded, Window
    from pipimem.update import Setting
    from pipimem.update.merge import Merged
    from pipimem.update.plan import Applied, Op, Plan
    from pipimem.update.review import Proposal
    from pipimem.workspace import Channel, Document

KINDS = ("direct", "group", "project")
MINIMAL = ("SESSION.md", "MEMORY.md", "HISTORY.md")
FULL = (*MINIMAL, "SOUL.md", "AGENTS.md")
WRITE_TRIES = 5
JOBS = ("extract", "refresh")
SUBAGENT_TOKENS = 345  # 2,200 characters: `text.tokens` counts at least one for 6.4
TARGETS = {"user": "USER.md", "memory": "MEMORY.md"}


def open(path: str | None = None) -> Memory:
    """The workspace at `path` (else found as the command line finds it), opened. Raises `Unreadable`."""
    return Memory(find(path))


class Memory:
    """One opened workspace. Use it as a context manager, or `close` it.

    Without a channel a verb sees the shared layer only; everything needs `all_channels=True`. `notes` collects what
    a person should hear about besides the answer.
    """

    def __init__(self, root: str) -> None:
        root = os.path.abspath(root)
        cache = os.path.join(root, ".pipimem", "cache", "config.json")
        self.workspace = Workspace(root, remembered(root, cache))
        self.notes: list[str] = []
        self._index = Index(self.workspace)
        self._history = History(self.workspace, self.notes)
        self._index.notes = self.notes

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the index."""
        self._index.close()

    @property
    def stale(self) -> bool:
        """Whether the last answer rests on an index older than some file in scope."""
        return self._index.stale

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """The files in the last scope that could not be read, with the reason."""
        return self._index.skipped

    @property
    def cutter(self) -> str:
        """How the last query's Chinese was cut: dictionary, vocabulary, or none."""
        return self._index.cutter

    @property
    def tokenizer(self) -> str:
        """What cut the Chinese of the last sync, for people to see."""
        return self._index.tokenizer

    @property
    def documents(self) -> int:
        """How many documents the index holds after the last sync."""
        return self._index.documents

    # Asking

    def index(self, *, rebuild: bool = False) -> Diff:
        """Brings the whole index up to date by digest, or makes it anew."""
        return self._index.sync(everything=True, rebuild=rebuild)

    def sync(self) -> Diff:
        """Brings the whole index up to date by the files' stamps. Raises `Refused` when another is writing it."""
        return self._index.sync()

    def believe(self, holds: Callable[[float], bool] | None) -> None:
        """Trusts a look at the files for as long as a watcher of them says so (`Watch.holds`); None ends that."""
        self._index.holds = holds or (lambda since: False)

    def ready(self) -> None:
        """Brings what is asked next up to date. Raises `Unreadable` when the workspace cannot be looked through."""
        self._index.facts()

    def scope(
        self, channel: str | None = None, *, all_channels: bool = False, target: str = "", project: str = "",
        category: str = "", layers: Sequence[str] = (), kinds: Sequence[str] = (), min_confidence: float = 0.0,
    ) -> Scope:  # fmt: skip
        """Where to look: a channel with the shared layer, everything, or the shared layer alone.

        `target` (user, memory, project or failure), `project` and `category` only ever narrow that. Raises
        `Unreadable` for a channel that is not there, `Usage` for a filter nobody knows.
        """
        channels = None if all_channels else [self.workspace.channel(channel).id] if channel is not None else []
        scope = Scope(channels, layers=layers, kinds=kinds, min_confidence=min_confidence)
        if not (target or project or category):
            return scope
        from pipimem.targets import narrowed

        return narrowed(scope, self.workspace.config["workspace.projects"], target, project, category)

    def search(
        self, query: str, channel: str | None = None, *, all_channels: bool = False, target: str = "",
        project: str = "", category: str = "", layers: Sequence[str] = (), kinds: Sequence[str] = (),
        min_confidence: float = 0.0, limit: int = 10, also: Sequence[Memory] = (),
    ) -> list[Hit]:  # fmt: skip
        """The best `limit` passages (at most 1,000) for a query in words; secrets in their text are redacted.

        `also` are other workspaces to ask: theirs come with absolute paths, and one that lacks the channel gives its
        shared layer. An empty list means that the scope was looked through. Raises `Usage` for a query without words
        and `Unreadable` when nothing was found while a file in scope could not be read.
        """

        def ask(memory: Memory) -> list[Hit]:
            return memory._found(
                query, memory._known_channel(channel) if also else channel, all_channels=all_channels, target=target,
                project=project, category=category, layers=layers, kinds=kinds, min_confidence=min_confidence,
                limit=limit, evidence=bool(also),
            )  # fmt: skip

        if not also:
            return ask(self)
        if channel is not None:
            self.workspace.channel(channel)
        from pipimem import several

        answers, failed = several.asked([self, *also], ask)
        others = [several.named(hits, m.workspace.root) for m, hits in zip(also, answers[1:], strict=True)]
        hits = several.merged([answers[0], *others])[: max(1, min(1000, limit))]
        if failed and not hits:
            raise failed[0]
        self.notes += [f"Not searched: {error}" for error in failed]
        return hits

    def _known_channel(self, channel: str | None) -> str | None:
        """The channel, where this workspace has it; else None, its shared layer alone."""
        try:
            return channel if channel is None else self.workspace.channel(channel).id
        except Unreadable:
            return None

    def _found(
        self, query: str, channel: str | None, *, all_channels: bool, target: str, project: str, category: str,
        layers: Sequence[str], kinds: Sequence[str], min_confidence: float, limit: int, evidence: bool,
    ) -> list[Hit]:  # fmt: skip
        scope = self.scope(
            channel, all_channels=all_channels, target=target, project=project, category=category, layers=layers,
            kinds=kinds, min_confidence=min_confidence,
        )  # fmt: skip
        hits = self._index.search(query, scope, max(1, min(1000, limit)), evidence=evidence)
        if not hits and self.skipped:
            raise Unreadable(
                f"Nothing was found, but {_skips(self.skipped)} could not be read.",
                "Mend that and search again.",
            )
        for hit in hits:
            if "secret" in hit.verdict:
                hit.text = self._redacted(hit.text)
        return hits

    def _redacted(self, text: str) -> str:
        from pipimem import safety

        self.workspace.trust()
        config = self.workspace.config
        return safety.redact(text, config["safety.patterns"], config["safety.allow"])

    def recall(
        self, text: str, channel: str | None = None, *, all_channels: bool = False, budget: int = 0,
        always: bool = False, errors: Sequence[str] = (), files: Sequence[str] = (), session: str = "",
        also: Sequence[Memory] = (),
    ) -> Recall:  # fmt: skip
        """The few passages that matter for a prompt, as a marked block of at most `budget` tokens; or nothing, and why.

        Never raises for the state of the files: an unreadable workspace gives an empty block with `failed` set. What a
        named session was given before is left out, until it changes or a compaction clears it. `also` are other
        workspaces to ask, as in `search`; one that cannot be read is left out and noted.
        """
        from time import perf_counter, time

        from pipimem.recall import Clock, Recall, recall, route

        started = perf_counter()
        config = self.workspace.config
        way = route(text, budget=budget or config["recall.budget"], always=always, errors=errors, files=files)
        try:
            scope = self.scope(channel, all_channels=all_channels, layers=way.layers)
            result = recall(
                way,
                self._searching(scope, way.layers, channel, all_channels=all_channels, also=also),
                clock=Clock(time(), self.today),
                threshold=config["recall.threshold"],
                user_allowed=lambda: self._user_allowed(channel),
                skills=lambda: self._skills(scope, files, also),
                given=self._given(session),
            )
        except (Unreadable, Refused) as error:
            return Recall(str(error), {"router": {"fire": way.fire, "reason": way.reason}}, failed=True)
        if way.fire and not result.items and self.skipped:
            result.failed, result.reason = True, f"could not look: {_skips(self.skipped)} could not be read"
        result.trace["stale"], result.trace["cutter"] = self.stale, self.cutter
        result.trace["ms"] = round((perf_counter() - started) * 1000, 1)
        self._keep(result, channel, session)
        return result

    def _searching(
        self, scope: Scope, layers: Sequence[str], channel: str | None, *, all_channels: bool, also: Sequence[Memory],
    ) -> Callable[[str, int], list[Hit]]:  # fmt: skip
        """How a recall asks: this index, and those of other workspaces in what they have of the scope."""
        if not also:
            return lambda query, limit: self._index.search(query, scope, limit, evidence=True)
        from pipimem import several

        scopes = {m: m.scope(m._known_channel(channel), all_channels=all_channels, layers=layers) for m in also}
        scopes[self] = scope

        def ask(memory: Memory, query: str, limit: int) -> list[Hit]:
            hits = memory._index.search(query, scopes[memory], limit, evidence=True)
            return hits if memory is self else several.named(hits, memory.workspace.root)

        def search(query: str, limit: int) -> list[Hit]:
            own = ask(self, query, limit)
            answers, failed = several.asked(also, lambda memory: ask(memory, query, limit))
            self.notes += [note for error in failed if (note := f"Not asked: {error}") not in self.notes]
            return [hit for hits in (own, *answers) for hit in several.scaled(hits)]

        return search

    def _skills(self, scope: Scope, files: Sequence[str], also: Sequence[Memory]) -> Skills:
        """Which skills a recall may offer, those of other workspaces under their own paths."""
        from pipimem.recall.offer import Skills

        fronts = Scope(scope.channels, layers=["skill"], kinds=["front"])

        def read(path: str) -> bytes | None:
            root = os.path.dirname(os.path.dirname(os.path.dirname(path)))
            owner = next((memory for memory in also if memory.workspace.root == root), self)
            try:
                return owner.workspace.read(path.removeprefix(root + os.sep) if root else path)
            except Unreadable:
                return None

        def unsafe(path: str, text: str) -> str:
            # The index judged the front matter already; judging a text anew takes a quarter of the whole recall, and
            # cutting Chinese a tenth.
            latin = "".join(c if c.isascii() else " " for c in text)
            try:
                for hit in self._index.search(latin if any(map(str.isalpha, latin)) else text, fronts, 8):
                    if hit.path == path and text in one_line(hit.text):
                        return str(hit.verdict)
            except Usage:
                pass
            from pipimem import safety

            config = self.workspace.config
            return safety.verdict(text, config["safety.patterns"], config["safety.allow"])

        return Skills(read, scope.channels, files, unsafe)

    def _given(self, session: str) -> Callable[[Hit], bool]:
        if not session:
            return lambda hit: False
        from pipimem import traces

        known = traces.given(self._traces, session)
        return lambda hit: traces.mark(hit) in known

    @property
    def _traces(self) -> str:
        return self.workspace.private("state", "traces.jsonl")

    def _keep(self, result: Recall, channel: str | None, session: str) -> None:
        """Keeps the decisions of a recall to be explained later, where they can be written."""
        from time import gmtime, strftime

        from pipimem import traces

        trace = {**result.trace, "asked": traces.without_secrets(result.trace.get("asked", ()), self._redacted)}
        row = {
            "id": "t-" + os.urandom(4).hex(), "time": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()), "channel": channel,
            "session": session, "reason": result.reason, "failed": result.failed, **trace,
            "given": [traces.mark(item.hit) for item in result.items] if session else [],
        }  # fmt: skip
        if traces.keep(self._traces, row):
            result.trace["id"] = row["id"]

    def why(self, name: str = "") -> dict[str, Any]:
        """The decisions of a past recall: the last one, or the one of that id. Raises `NotFound`."""
        from pipimem import traces

        found = [row for row in traces.rows(self._traces) if name in ("", row["id"])]
        if not found:
            shown = f" '{printable(name)}'" if name else ""
            raise NotFound(f"There is no recall{shown} to explain.", "Ask one with 'pipimem recall'.")
        return found[-1]

    def context(
        self, text: str = "", channel: str | None = None, *, all_channels: bool = False, mode: str = "",
        preset: str = "main", budget: int = 0, recent: bool = False, errors: Sequence[str] = (),
        files: Sequence[str] = (),
    ) -> Context:  # fmt: skip
        """Everything a session should be given: identity, policy, what is pinned, and memory, by mode and preset.

        Without a text there is nothing to recall for: then the newest entries that hold. Raises `Unreadable` when a
        file of it cannot be read.
        """
        from pipimem.briefing import Briefing, checked

        mode = mode or self.workspace.config["recall.mode"]
        checked(mode, preset)
        self.workspace.trust()
        recalled = None
        if text and mode != "policy" and preset != "isolated":
            most = SUBAGENT_TOKENS if preset == "subagent" else 0
            recalled = self.recall(
                text, channel, all_channels=all_channels, budget=budget or most, errors=errors, files=files
            )
        found = self.workspace.channel(channel) if channel is not None else None
        briefing = Briefing(self.workspace, found, self.today(), user_allowed=self._user_allowed(channel))
        return briefing.context(mode, preset, recalled, recent=recent)

    def _user_allowed(self, channel: str | None) -> bool:
        if channel is None:
            return True
        found = self.workspace.channel(channel)
        return found.kind != "group" or found.id in self.workspace.config["workspace.user_in_groups"]

    def today(self) -> str:
        """The day in the workspace's zone, ISO."""
        zone = self.workspace.config["workspace.timezone"]
        if not zone:
            from time import strftime

            return strftime("%Y-%m-%d")
        return self.now().date().isoformat()

    def now(self) -> datetime:
        """The time in the workspace's zone. Raises `Usage` for a zone nobody knows."""
        from datetime import datetime
        from zoneinfo import ZoneInfo

        zone = self.workspace.config["workspace.timezone"]
        try:
            return datetime.now(ZoneInfo(zone)) if zone else datetime.now().astimezone()
        except (KeyError, ValueError, OSError):
            raise Usage(f"The timezone '{printable(zone)}' is unknown.", "Name one such as Asia/Shanghai.") from None

    def show(
        self, refs: Sequence[str], channel: str | None = None, *, all_channels: bool = False, around: int = 0,
        most: int = 500,
    ) -> list[Shown]:  # fmt: skip
        """What each reference opens, in order, secrets redacted; one that is missing or out of scope says so."""
        return [self._show(ref, self.scope(channel, all_channels=all_channels), around, most) for ref in refs]

    def _show(self, ref: str, scope: Scope, around: int, most: int) -> Shown:
        from pipimem import references

        try:
            found = references.parse(ref)
            if found.form == "source":
                raise NotFound(f"The conversation of '{printable(found.name)}' is not at hand.", "")
            if found.form in ("id", "short"):
                hit = self._one(found, scope)
                found = references.Reference("line", path=hit.path, line=hit.line)
            document = self._in_scope(found.path, scope)
            data = self.workspace.read(document.path) or b""
            shown = references.opened(ref, found, document.path, data, around=max(0, around), most=max(1, most))
        except Error as error:
            return references.Shown(ref, problem=str(error))
        shown.channel, shown.text = document.channel, self._redacted(shown.text)
        return shown

    def _one(self, found: Reference, scope: Scope) -> Hit:
        hits = self._index.lookup(found.name, scope)
        if not hits:
            raise NotFound(f"There is no entry '{found.name}' in scope.", "Find it with 'pipimem search'.")
        if len(hits) > 1:
            places = ", ".join(f"{h.path}:{h.line}" for h in hits)
            raise Refused(f"'{found.name}' stands in several places: {places}.", "Give one of these.")
        return hits[0]

    def _in_scope(self, path: str, scope: Scope) -> Document:
        """The document of that path; one out of scope, and `review/`, is as good as missing."""
        channels = None if scope.channels is None else list(scope.channels)
        documents = {d.path: d for d in self.workspace.scan(channels).documents}
        if path not in documents or not scope.covers(documents[path].channel, documents[path].layer):
            raise NotFound(f"There is no document '{printable(path)}' in scope.", "See 'pipimem status'.")
        return documents[path]

    # Channels

    def channels(self) -> list[Channel]:
        """Every channel of the workspace, by id."""
        return self.workspace.channels()

    def add_channel(self, identity: str, *, kind: str = "", minimal: bool = False) -> tuple[Channel, list[str]]:
        """Creates what is missing of a channel from the templates; returns it and the files made.

        No existing byte is changed: an existing channel of another `kind` is refused with the line to write.
        """
        self.workspace.trust()
        path = self.workspace.channel_path(identity)
        folder = os.path.join(self.workspace.root, path)
        mark = os.path.join(folder, MARK)
        if kind and os.path.exists(mark) and self.workspace.channel(identity).kind != kind:
            raise Refused(
                f"The channel '{printable(identity)}' is of another kind.",
                f'Write "{printable(identity)}" = "{kind}" under [workspace.kinds] in pipimem.toml.',
            )
        if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
            raise Refused(f"'{path}' is there and is no folder.", "Move it away.")
        names = MINIMAL if minimal else FULL
        lines = identity + "\n" + (f"kind: {kind}\n" if kind else "")
        beside = {} if os.path.exists(mark) else {f"{path}/{MARK}": lines.encode("utf-8")}
        with self.workspace.locks([f"{path}/MEMORY.md"]):
            os.makedirs(folder, exist_ok=True)
            write_beside(self.workspace, beside)
            changes = [c for n in names if (c := self._missing(path, n)) is not None]
            self.workspace.write(changes)
            message = _own_message(f"{one_line(identity)}: new channel")
            ticket = self._history.enlist(changes, message, beside)
        self._history.commit(ticket, changes, message, beside)
        return self.workspace.channel(identity), [c.path for c in changes]

    def _missing(self, folder: str, name: str) -> Change | None:
        path = f"{folder}/{name}"
        return Change(path, None, self._template(name)) if self.workspace.read(path) is None else None

    def _template(self, name: str) -> bytes:
        return read_data(f"templates/{self.workspace.config['workspace.language']}/channel/{name}")

    # Writing

    def add(
        self, text: str, channel: str | None = None, *, target: str = "", kind: str = "fact", heading: str = "",
        actor: str = "person",
    ) -> Applied:  # fmt: skip
        """One more entry in the channel's MEMORY, or in the shared USER or MEMORY; durable at once, still scanned.

        Raises `Refused` for a secret, a duplicate, or a place that cannot take it.
        """
        from pipimem import markdown, update
        from pipimem.update import guards
        from pipimem.update.plan import Op

        if kind not in update.KINDS:
            raise Usage(f"The kind '{printable(kind)}' is unknown.", f"One of: {', '.join(update.KINDS)}.")
        where, path, templates = self._place(channel, target)
        text = markdown.clean(text)
        self._refuse_secret(text)
        if reason := guards.unsafe(text):
            self.notes.append(f"It is stored and can be searched, but never recalled on its own: {reason}.")
        parsed = markdown.parse(self._text(path, templates))
        name = heading or update.heading_for(kind, parsed, self._language(path))
        facts = {"kind": kind, "since": self.today(), "by": actor}
        op = Op("add", path, text, name, update.fresh_id(self._taken), facts=facts, reason="asked for")
        return self.apply(self._plan(where, [op], templates, actor))

    def pinned(self) -> Standing:
        """What STANDING.md pins, and how much of its limits that takes."""
        from pipimem import standing

        return standing.read(self.workspace.read(standing.PATH) or b"")

    def pin(self, text: str) -> Applied:
        """One more instruction that holds always; a person's to give. Raises `Refused` over the limits."""
        from pipimem import markdown, standing
        from pipimem.update.plan import Op

        text = markdown.clean(text)
        self._refuse_secret(text)
        template = f"templates/{self.workspace.config['workspace.language']}/workspace/{standing.PATH}"
        templates = {standing.PATH: read_data(template)}
        data = self._text(standing.PATH, templates)
        standing.check_room(standing.read(data), text)
        op = Op("note", standing.PATH, text, standing.heading(data), reason="pinned")
        return self.apply(self._plan("", [op], templates, "person"))

    def unpin(self, number: int) -> Applied:
        """Takes the pinned instruction of that number (from 1) out. Raises `NotFound`."""
        from pipimem import markdown, standing
        from pipimem.update.plan import Op

        entry = standing.numbered(self.pinned(), number)
        known = markdown.identified(markdown.parse(self.workspace.read(standing.PATH) or b""), "")
        target = next(identity for identity, found in known if found.start == entry.start)
        op = Op("invalidate", standing.PATH, target=target, reason="unpinned")
        return self.apply(self._plan("", [op], {}, "person"))

    def supersede(self, ref: str, text: str) -> Applied:
        """Puts `text` in the place of an entry, under a new id that names the old one. Git keeps the old text."""
        from pipimem import markdown, update
        from pipimem.update.plan import Op

        hit, facts = self._entry_facts(ref)
        text = markdown.clean(text)
        self._refuse_secret(text)
        facts.update(
            {"since": self.today(), "by": "person", "supersedes": hit.ref, "conf": "", "trial": "", "until": ""}
        )
        fresh = update.fresh_id(self._taken)
        op = Op("supersede", hit.path, text, id=fresh, target=hit.ref, facts=facts, reason="a person said so")
        return self.apply(self._plan(hit.channel, [op], {}, "person"))

    def invalidate(self, ref: str) -> Applied:
        """Marks an entry as no longer true: it stays in the file and is never recalled again."""
        from datetime import timedelta

        from pipimem import update
        from pipimem.update.plan import Op

        hit, facts = self._entry_facts(ref)
        facts["until"] = (self.now().date() - timedelta(1)).isoformat()
        own = hit.ref if self._marked(hit) else update.fresh_id(self._taken)
        op = Op("supersede", hit.path, hit.text, id=own, target=hit.ref, facts=facts, reason="no longer true")
        return self.apply(self._plan(hit.channel, [op], {}, "person"))

    def promote(self, ref: str) -> Applied:
        """Moves an entry of a channel to the shared MEMORY.md, under the same id; only ever by a person."""
        from dataclasses import replace

        from pipimem import markdown, update
        from pipimem.update.plan import Op

        hit, facts = self._entry_facts(ref)
        if not hit.channel:
            raise Refused(f"The entry '{hit.ref}' is shared already.", "Nothing was changed.")
        template = f"templates/{self.workspace.config['workspace.language']}/workspace/MEMORY.md"
        templates = {"MEMORY.md": read_data(template)}
        parsed = markdown.parse(self._text("MEMORY.md", templates))
        heading = update.heading_for(facts.get("kind", "fact"), parsed, self._language("MEMORY.md"))
        own = hit.ref if self._marked(hit) else update.fresh_id(self._taken)
        facts = {"kind": "fact", **facts, "by": "person"}
        ops = [
            Op("add", "MEMORY.md", hit.text, heading, own, facts=facts, reason="promoted"),
            Op("invalidate", hit.path, target=hit.ref, reason="moved to the shared memory"),
        ]
        return self.apply(replace(self._plan(hit.channel, ops, templates, "person"), whole=True))

    def _entry_facts(self, ref: str) -> tuple[Hit, dict[str, str]]:
        """An entry with what its comment says."""
        from pipimem import markdown

        hit = self.entry(ref)
        parsed = markdown.parse(self.workspace.read(hit.path) or b"")
        entry = markdown.entry_by_id(parsed, hit.channel, hit.ref)
        if entry is None:
            raise NotFound(f"The entry '{hit.ref}' is gone.", "Find it with 'pipimem search'.")
        hit.text = entry.text
        return hit, dict(entry.facts)

    def _marked(self, hit: Hit) -> bool:
        """Whether an entry has a comment of its own; the id of one a person typed changes with its text and place."""
        from pipimem import markdown

        entry = markdown.entry_by_id(markdown.parse(self.workspace.read(hit.path) or b""), hit.channel, hit.ref)
        return entry is not None and bool(entry.id)

    # Notes

    def note(
        self, text: str, channel: str | None = None, *, topic: str = "", at: datetime | None = None
    ) -> tuple[Applied, str, int]:
        """Appends to the page of today, or of a topic, in the channel's or the shared notes: (applied, path, line).

        The day is that of `at` (now) in the workspace's zone. Raises `Refused` for a secret.
        """
        from pipimem import markdown, notes
        from pipimem.update.plan import Op

        now = self.now() if at is None else at.astimezone(self.now().tzinfo)
        name = topic or f"{now:%Y-%m-%d}"
        found = self.workspace.channel(channel) if channel is not None else None
        path = notes.path_of(found.path if found else "", name)
        body = notes.body(text)
        self._refuse_secret(body)
        op = Op("block", path, body, notes.heading(name, now), reason="noted")
        applied = self.apply(self._plan(found.id if found else "", [op], {path: notes.page(name)}, "person"))
        parsed = markdown.parse(self.workspace.read(path) or b"")
        line = next((s.line for s in reversed(parsed.sections) if s.title == op.heading), 1)
        return applied, path, line

    def page(self, name: str, channel: str | None = None) -> tuple[str, str]:
        """The path and text of a note's page: a day (`today` for this one) or a topic. Raises `NotFound`."""
        from pipimem import notes

        found = self.workspace.channel(channel) if channel is not None else None
        path = notes.path_of(found.path if found else "", self.today() if name == "today" else name)
        data = self.workspace.read(path)
        if data is None:
            raise NotFound(f"There is no note '{printable(name)}'.", f"It would be '{path}'.")
        return path, self._redacted(decode(data))

    # Skills

    def skills(self) -> list[Skill]:
        """Every skill, by name; one that is not valid says why in its `problem`, and is never offered."""
        from pipimem.skills import Skill

        found = [d.path for d in self.workspace.scan([]).documents if d.layer == "skill"]
        return [Skill(path, self.workspace.read(path) or b"") for path in found]

    def skill(self, name: str) -> Skill:
        """The skill of that name. Raises `NotFound` with the nearest names."""
        from pipimem.text import nearest

        known = {s.name: s for s in self.skills()}
        if name not in known:
            near = ", ".join(nearest(name, known))
            raise NotFound(f"There is no skill '{printable(name)}'.", f"Nearest: {near}." if near else "")
        return known[name]

    def add_skill(self, name: str, description: str, text: str, when_to_use: str = "") -> Applied:
        """A new skill. Raises `Refused` where one of that name is there, or it would not be valid."""
        from pipimem import skills

        path = skills.path_of(name)
        if self.workspace.read(path) is not None:
            raise Refused(f"There is a skill '{name}' already.", "Change it with 'pipimem skill edit'.")
        return self._write_file(path, skills.written(name, description, text, when_to_use), "a new skill")

    def edit_skill(self, name: str, text: str) -> Applied:
        """Other steps for a skill; its front matter stays byte for byte."""
        from pipimem import skills

        path = self.skill(name).path
        return self._write_file(path, skills.rewritten(path, self.workspace.read(path) or b"", text), "other steps")

    def remove_skill(self, name: str) -> Applied:
        """Takes a skill out; `undo` brings it back."""
        from pipimem.update.plan import Op

        op = Op("remove", self.skill(name).path, reason="a person took the skill out")
        return self.apply(self._plan("", [op], {}, "person"))

    def _write_file(self, path: str, data: bytes, reason: str) -> Applied:
        from pipimem.update.plan import Op

        self._refuse_secret(decode(data))
        return self.apply(self._plan("", [Op("file", path, decode(data), reason=reason)], {}, "person"))

    def _refuse_secret(self, text: str) -> None:
        from pipimem import safety

        self.workspace.trust()
        config = self.workspace.config
        found = safety.secrets(text, config["safety.patterns"], config["safety.allow"])
        if found:
            kind = found[0].kind.partition(":")[2]
            raise Refused(f"The text holds a secret ({kind}).", "Say where the secret is kept instead.")

    def _place(self, channel: str | None, target: str) -> tuple[str, str, dict[str, bytes]]:
        """Channel id, path, and the text a missing file starts with, of where an `add` goes."""
        if target:
            if channel is not None or target not in TARGETS:
                raise Usage("Give either a channel or a target (user or memory).", "See 'pipimem add --help'.")
            template = f"templates/{self.workspace.config['workspace.language']}/workspace/{TARGETS[target]}"
            return "", TARGETS[target], {TARGETS[target]: read_data(template)}
        if channel is None:
            raise Usage("Say where it belongs.", "Give --channel ID or --target user|memory.")
        found = self.workspace.channel(channel)
        return found.id, f"{found.path}/MEMORY.md", self._templates(found)

    def _templates(self, channel: Channel) -> dict[str, bytes]:
        return {f"{channel.path}/{name}": self._template(name) for name in MINIMAL}

    def _text(self, path: str, templates: Mapping[str, bytes]) -> bytes:
        data = self.workspace.read(path)
        return templates.get(path, b"") if data is None else data

    def _taken(self, identity: str) -> bool:
        return bool(self._index.lookup(identity, Scope(None)))

    def _plan(self, channel: str, ops: Sequence[Op], templates: Mapping[str, bytes], actor: str) -> Plan:
        from pipimem.update.plan import Plan, new_run

        base = {op.path: self.workspace.read(op.path) for op in ops}
        run = new_run(self.today())
        return Plan(run, channel, "person" if actor == "person" else actor, actor, tuple(ops), base, templates)

    def entry(self, ref: str) -> Hit:
        """The one entry called `ref` (with or without brackets), anywhere.

        Raises `NotFound`, and `Refused` with the list when several entries share the id.
        """
        name = ref.strip().strip("[]")
        hits = [h for h in self._index.lookup(name, Scope(None)) if h.entry]
        if not hits:
            raise NotFound(f"There is no entry '{printable(name)}'.", "Find it with 'pipimem search'.")
        if len(hits) > 1:
            places = ", ".join(f"{h.path}:{h.line}" for h in hits)
            raise Refused(f"The id '{name}' stands in several places: {places}.", "Give one of them another id.")
        return hits[0]

    def matching(self, text: str, channel: str | None = None) -> list[Hit]:
        """Every entry whose text holds `text`, folded; in file order."""
        from pipimem.index.words import fold

        wanted = fold(text)
        scope = self.scope(channel, all_channels=channel is None)
        hits = self._index.search(text, scope, 1000)
        return [h for h in hits if h.entry and wanted in fold(h.text)]

    def forget(self, ref: str, *, dry_run: bool = False) -> tuple[Applied, list[str]]:
        """Removes an entry for good and remembers, without its text, not to learn it again.

        Returns what was done and the places (`path:line`) where the same words still stand, which are a person's to
        look at. Git keeps the old text; the index does not.
        """
        from pipimem.update import guards
        from pipimem.update.plan import Applied, Op

        hit = self.entry(ref)
        op = Op("forget", hit.path, target=hit.ref, reason="asked to forget")
        templates = self._templates(self.workspace.channel(hit.channel)) if hit.channel else {}
        plan = self._plan(hit.channel, [op], templates, "person")
        if dry_run:
            return Applied(plan, tuple(self.preview(plan))), self._still(hit)
        sources = [s for s in [self._source(hit)] if s]
        applied = self.apply(plan, tombstone=guards.tombstone(self._key(), hit.ref, hit.text, sources))
        self._index.purge()
        self._forget_records(hit, sources)
        return applied, self._still(hit)

    def _forget_records(self, hit: Hit, sources: Sequence[str]) -> None:
        """Takes a forgotten text out of pipimem's own records: recorded turns, and recalls kept to be explained."""
        from pipimem import traces
        from pipimem.turns import Turns

        traces.forget(self._traces, [hit.ref], [hit.text])
        if hit.channel:
            Turns(self.workspace, hit.channel).forget([hit.text], sources)

    def _source(self, hit: Hit) -> str:
        from pipimem import markdown

        parsed = markdown.parse(self.workspace.read(hit.path) or b"")
        entry = markdown.entry_by_id(parsed, hit.channel, hit.ref)
        return entry.facts.get("src", "") if entry else ""

    def _still(self, hit: Hit) -> list[str]:
        from pipimem.update.guards import plain

        wanted = plain(hit.text)
        try:
            found = self._index.search(hit.text, Scope(None), 200)
            found += self._index.search(hit.text, Scope(None, layers=["archive"]), 200)
        except Usage:  # a text without words can only be looked for in the proposals
            found = []
        places = [f"{h.path}:{h.line}" for h in found if wanted in plain(h.text) and h.ref != hit.ref]
        waiting = [p for p in self.workspace.proposals() if wanted in plain(decode(self.workspace.read(p) or b""))]
        return places + waiting

    def _key(self) -> bytes:
        """The key of tombstone digests; made once, never in git."""
        path = self.workspace.private("state", "key")
        if read_private(path) is None:
            self.workspace.prepare()
            write_beside(self.workspace, {".pipimem/state/key": os.urandom(32)}, mode=0o600)
        return read_private(path) or b""

    def _stones(self, path: str) -> list[str]:
        return decode(read_private(os.path.join(self.workspace.root, *path.split("/"))) or b"").splitlines()

    # Updating

    def turn(self, channel: str, messages: Sequence[object]) -> Recorded:
        """Records one finished turn for the next jobs, durably, and returns at once: no file, commit or index waits.

        Each message is a mapping with role, content, and if known name, timestamp (ISO 8601) and tool_calls.
        """
        from pipimem.turns import Turns

        found = self.workspace.channel(channel)
        self.workspace.trust()
        return Turns(self.workspace, found.id).record(messages, self.now().isoformat(timespec="seconds"))

    def recorded(self, channel: str) -> Window:
        """The recorded turns that no `update` has worked on yet."""
        from pipimem.turns import Turns

        turns = Turns(self.workspace, self.workspace.channel(channel).id)
        return turns.since(min(turns.cursor(job) for job in JOBS))

    def learned(self, channel: str, window: Window) -> None:
        """An `update` is done with these turns: the next begins after them."""
        from pipimem.turns import Turns

        turns = Turns(self.workspace, self.workspace.channel(channel).id)
        for job in JOBS:
            turns.move(job, window.end)

    def before_compact(self, channel: str, transcript: Transcript | None = None) -> tuple[list[Step], Context]:
        """Brings SESSION, then MEMORY and HISTORY up to date, and hands back what a compacted session must keep.

        Works on the transcript, or on the recorded turns. A step that fails stops no other, and what is kept always
        holds the latest SESSION there is.
        """
        steps = self._lifecycle(channel).boundary(transcript)
        self._clear(channel)
        return steps, self._retained(channel)

    def new_session(self, channel: str, transcript: Transcript | None = None) -> tuple[list[Step], Context]:
        """Works up the old session before a new one starts; SESSION survives. What the new one is given."""
        steps = self._lifecycle(channel).boundary(transcript)
        return steps, self.context(channel=channel, preset="session-start")

    def maintain(self, channel: str | None = None) -> dict[str, list[Step]]:
        """Runs the jobs that are due, of one channel or of each in turn; those that are not say why."""
        channels = [self.workspace.channel(channel)] if channel is not None else self.channels()
        return {c.id: self._lifecycle(c.id).maintain() for c in channels}

    def _clear(self, channel: str) -> None:
        """After a compaction no session of the channel has what it was given any more."""
        from pipimem import traces

        sessions = {r["session"] for r in traces.rows(self._traces) if r.get("session") and r.get("channel") == channel}
        for session in sorted(sessions):
            traces.keep(self._traces, {"id": "", "session": session, "channel": channel, "cleared": True})

    def _lifecycle(self, channel: str) -> Lifecycle:
        from pipimem.lifecycle import Lifecycle

        self.workspace.trust()
        return Lifecycle(self.workspace, self.workspace.channel(channel), self, self.now())

    def _retained(self, channel: str) -> Context:
        from pipimem.briefing import Briefing

        found = self.workspace.channel(channel)
        return Briefing(self.workspace, found, self.today(), user_allowed=self._user_allowed(channel)).retained()

    def propose(
        self, channel: str, transcript: Transcript, jobs: Sequence[str] = JOBS, *,
        models: Sequence[str] | None = None,
    ) -> Plan:  # fmt: skip
        """What should change in `channel` after `transcript`; writes nothing, and holds no lock while a model thinks.

        Of the jobs, `extract` gives MEMORY, HISTORY and proposals, `refresh` gives SESSION. `models` are asked in
        order (None: those of the settings; empty: none); where none helps, the rules do, and `origin` says so.
        """
        from pipimem import update

        setting = self._setting(self.workspace.channel(channel))
        timeout = float(self.workspace.config["update.timeout"])
        return update.propose(transcript, setting, jobs, self._models(models), timeout)

    def _setting(self, found: Channel) -> Setting:
        """What the updater needs to know of a channel and the moment."""
        from pipimem import update
        from pipimem.update.plan import new_run

        config, now = self.workspace.config, self.now()
        self.workspace.trust()
        key_file = self.workspace.private("state", "key")
        language = self._language(f"{found.path}/MEMORY.md")
        return update.Setting(
            channel=found.id, kind=found.kind, folder=found.path, language=language, today=now.date(),
            run=new_run(now.date().isoformat()), read=self.workspace.read, taken=self._taken,
            key=self._key() if os.path.exists(key_file) else b"", tombstones=self._stones(TOMBSTONES),
            rejections=self._stones(REJECTED), waiting=[p.text for p in self.proposals()],
            trial_days=config["update.trial_days"], patterns=tuple(config["safety.patterns"]),
            allow=tuple(config["safety.allow"]), templates=self._templates(found),
        )  # fmt: skip

    def tidy(self, channel: str, job: str) -> Plan:
        """What `condense` (MEMORY) or `fold` (HISTORY) would change now, by choosing and never by writing."""
        from pipimem.update import tidy

        return tidy.plan(job, self._setting(self.workspace.channel(channel)))

    def _models(self, names: Sequence[str] | None) -> list[Provider]:
        """The providers of the models named, or of the settings'. Raises `Usage` for a name that is none."""
        config = self.workspace.config
        asked = list(config["update.models"]) if names is None else list(names)
        if not asked:
            return []
        from pipimem import llm

        settings = llm.Settings(servers=config["llm.servers"], scripted=names is not None)
        return [llm.provider(name, settings) for name in asked]

    def _language(self, path: str) -> str:
        """The language new headings of a file are written in: its own where it shows, else the workspace's."""
        from pipimem import markdown
        from pipimem.text import has_han

        titles = [s.title for s in markdown.parse(self.workspace.read(path) or b"").sections]
        if any(titles):
            return "zh" if has_han("".join(titles)) else "en"
        return str(self.workspace.config["workspace.language"])

    def proposals(self) -> list[Proposal]:
        """What waits for a person in `review/`, by name; a file that is no proposal says so in its `problem`."""
        from pipimem.update import review

        return [review.read(path, self.workspace.read(path) or b"") for path in self.workspace.proposals()]

    def proposal(self, name: str) -> Proposal:
        """The proposal called `name`: its id, or its number in the list (from 1). Raises `NotFound`."""
        known = self.proposals()
        if name.isdecimal() and 1 <= int(name) <= len(known):
            return known[int(name) - 1]
        found = [p for p in known if name in (p.id, p.path)]
        if not found:
            raise NotFound(f"There is no proposal '{printable(name)}'.", "See 'pipimem review list'.")
        return found[0]

    def accept(self, name: str) -> Applied:
        """Does what a proposal says, as its file says it now, and takes the file out of `review/`; one commit.

        Raises `Refused` when what it acts on is gone or says something else now: then it waits on.
        """
        from pipimem import update
        from pipimem.update import guards, review
        from pipimem.update.plan import Op

        proposal = self.proposal(name)
        op = review.accepted(proposal, update.fresh_id(self._taken))
        found = self._target(proposal)
        if why := review.overtaken(proposal, found.text if found else None):
            raise Refused(f"The proposal '{proposal.id}' is out of date: {why}.", "Reject it, or edit its file.")
        stone = ""
        if op.op == "forget":
            if found is None:
                raise Refused(f"The proposal '{proposal.id}' names no entry.", "Forget it with 'pipimem forget'.")
            op = Op("forget", proposal.file, target=found.ref, reason=op.reason)
            stone = guards.tombstone(self._key(), found.ref, found.text, [s for s in [self._source(found)] if s])
        templates = self._templates(self.workspace.channel(proposal.channel)) if proposal.channel else {}
        answered = Op("remove", proposal.path, reason="accepted")
        applied = self.apply(self._plan(proposal.channel, [op, answered], templates, "person"), tombstone=stone)
        if stone:
            self._index.purge()
        return applied

    def _target(self, proposal: Proposal) -> Hit | None:
        """The entry a proposal acts on: the one it names, else the only one of its file that says the same."""
        from pipimem import markdown
        from pipimem.update import guards

        if proposal.target:
            hits = [h for h in self._index.lookup(proposal.target, Scope(None)) if h.path == proposal.file]
        elif proposal.op == "forget":
            known = markdown.identified(markdown.parse(self._text(proposal.file, {})), proposal.channel)
            same = [identity for identity, entry in known if guards.same(entry.text, proposal.text)]
            hits = [h for identity in same for h in self._index.lookup(identity, Scope(None))]
        else:
            return None
        return hits[0] if len(hits) == 1 else None

    def reject(self, name: str) -> Applied:
        """Takes a proposal out of `review/` and remembers, without its text, not to propose it again."""
        from pipimem.update import guards
        from pipimem.update.plan import Op

        proposal = self.proposal(name)
        op = Op("remove", proposal.path, proposal.text, reason="rejected")
        line = guards.tombstone(self._key(), proposal.id, proposal.text or proposal.old, [])
        return self.apply(self._plan(proposal.channel, [op], {}, "person"), tombstone=line, into=REJECTED)

    def answered(self) -> list[tuple[Proposal, Applied | Error]]:
        """Does what is ticked in `review/*.md`, file by file; one that cannot be done says why and waits on."""
        done: list[tuple[Proposal, Applied | Error]] = []
        for proposal in [p for p in self.proposals() if p.answer]:
            try:
                if proposal.answer == "both":
                    raise Refused(f"The proposal '{proposal.id}' is ticked twice.", "Leave one tick.")
                act = self.accept if proposal.answer == "accept" else self.reject
                done.append((proposal, act(proposal.id)))
            except Error as error:
                done.append((proposal, error))
        return done

    def preview(self, plan: Plan) -> list[Change]:
        """The changes `apply` would make now; the same function makes them."""
        from pipimem.update.merge import merge

        return merge(plan, self.workspace.read, self._history.damage).changes

    def apply(self, plan: Plan, *, tombstone: str = "", into: str = TOMBSTONES) -> Applied:
        """Writes a plan: all of its files or none, then commits exactly those, then indexes them.

        What a person saved since the plan was made stays: an operation that no longer fits is left out and named, and
        where a machine planned it, it waits in `review/`. Raises `Refused` when nothing could be written, with the
        reason; the files are then as before. `tombstone` is the line a `forget` or a rejection puts on
        the list `into` with it.
        """
        from pipimem.update.plan import Applied, message

        self.workspace.trust()
        with self.workspace.locks([*plan.paths, *([into] if tombstone else [])]):
            beside = {into: encode("\n".join([*self._stones(into), tombstone]) + "\n")} if tombstone else {}
            with Beside(self.workspace, beside):
                merged = self._write(plan)
            plan, made = merged.settled(plan), merged.changes
            words = message(plan, merged.done)
            ticket = self._history.enlist(made, words, beside)
        commit, deferred = self._history.commit(ticket, made, words, beside) if made else ("", "")
        self._catch_up()
        applied = Applied(plan, tuple(made), commit, deferred, tuple(self.notes))
        self._record(applied, merged.done)
        return applied

    def _write(self, plan: Plan) -> Merged:
        """Merges and writes. An editor takes no lock: what it saves in between is merged anew, a few times."""
        from pipimem.update.merge import merge

        for left in reversed(range(WRITE_TRIES)):
            merged = merge(plan, self.workspace.read, self._history.damage)
            if merged.refused and (plan.whole or not merged.done):
                raise Refused(merged.refused[0].reason, "Nothing was changed.")
            try:
                self.workspace.write(merged.changes)
            except Conflict:
                if not left:
                    raise
                continue
            break
        return merged

    def _catch_up(self) -> None:
        """Indexes what was written; a busy or broken index is caught up by the next look instead."""
        try:
            self._index.sync()
        except (OSError, Error) as error:
            self.notes.append(f"The index is not up to date ({error}); the next look brings it there.")

    def _record(self, applied: Applied, done: Sequence[Op]) -> None:
        import json

        plan = applied.plan
        row = {
            "run": plan.run, "time": self.now().isoformat(timespec="seconds"), "channel": plan.channel,
            "origin": plan.origin, "source": plan.source, "commit": applied.commit, "deferred": applied.deferred,
            "applied": [{"op": o.op, "id": o.id or o.target, "path": o.path} for o in done],
            "proposed": [{"id": o.op.id, "reason": o.reason} for o in plan.proposed],
            "rejected": [{"op": o.op.op, "reason": o.reason} for o in plan.rejected],
            "tokens": plan.tokens, "fell": list(plan.fell),
        }  # fmt: skip
        try:
            append_private(self.workspace.private("state", "runs.jsonl"), json.dumps(row, ensure_ascii=False))
        except OSError as error:
            self.notes.append(f"The run could not be recorded: {error.strerror}.")

    # History

    def pending(self) -> list[dict[str, Any]]:
        """The commits that had to wait, oldest first; the next change makes them."""
        return self._history.pending()

    def commit_waiting(self) -> str:
        """Makes the commits that wait, as far as git lets it; what stands in the way, "" for nothing."""
        return self._history.commit_waiting()

    def log(self, channel: str | None = None, limit: int = 50) -> list[Commit]:
        """The commits that touched the workspace or one channel, newest first. `Unreadable` without git history."""
        return self._history.log([self.workspace.channel(channel).path] if channel is not None else [], limit)

    def history(self, ref: str) -> list[tuple[Commit, str]]:
        """The commits in which an entry came, changed or went, newest first, each with what it said then."""
        hit = self.entry(ref)
        return self._history.steps(hit.path, hit.channel, hit.ref)

    def blame(self, ref: str) -> tuple[Hit, Commit | None, str]:
        """An entry, the commit that wrote it (None: not committed yet), and the message it rests on ("" unknown)."""
        hit, facts = self._entry_facts(ref)
        lines = hit.text.count("\n")
        return hit, self._history.wrote(hit.path, hit.line, hit.line + lines), facts.get("src", "")

    def diff(self, name: str) -> str:
        """The diff of a run or commit. Raises `NotFound`."""
        return self._history.diff(name)

    def undo(self, name: str, *, dry_run: bool = False) -> Applied:
        """Takes back one run or commit and keeps what was written since; itself a commit.

        Where later edits touched the same lines nothing is changed and `Refused` names the file. What a `forget`
        removed may be learned again once that is undone.
        """
        from pipimem.update.plan import Applied, Plan, new_run

        self.workspace.trust()
        commit = self._history.find(name)
        paths = [p for p in commit.files if self.workspace.is_document(p)]
        if not paths:
            raise Refused(f"'{printable(name)}' changed no document.", "Use git itself to take it back.")
        plan = Plan(new_run(self.today()), "", "person", "person", (), {}, source=commit.sha)
        if dry_run:
            return Applied(plan, tuple(self._history.back(commit, paths)))
        with self.workspace.locks([*paths, *(p for p in commit.files if p in STONES)]):
            made = self._history.back(commit, paths)
            self.workspace.write(made)
            beside = self._history.untombed(commit)
            write_beside(self.workspace, beside)
            run = f"Pipimem-Run: {plan.run}\n"
            message = f"{_own_message(f'undo “{commit.subject}”', run)}Pipimem-Undoes: {commit.sha}\n"
            ticket = self._history.enlist(made, message, beside)
        done = self._history.commit(ticket, made, message, beside)
        applied = Applied(plan, tuple(made), *done, tuple(self.notes))
        self._catch_up()
        self._record(applied, ())
        return applied

    # State

    def check(self, paths: Sequence[str] = ()) -> list[Finding]:
        """Everything that is wrong with the documents, or with those given (paths as the current folder has them).

        Raises `Usage` for a path that is no document of this workspace.
        """
        from pipimem import checks

        self.workspace.trust()
        names = [self._own_path(path) for path in paths]
        return checks.check(self.workspace, names)

    def _own_path(self, path: str) -> str:
        inside = [os.path.relpath(os.path.realpath(base), os.path.realpath(self.workspace.root)) for base in (
            path, os.path.join(self.workspace.root, path))]  # fmt: skip
        found = next((p for p in inside if self.workspace.is_document(p)), None)
        if found is None:
            raise Usage(f"'{printable(path)}' is no document of this workspace.", "See 'pipimem status'.")
        return found

    def status(self) -> dict[str, Any]:
        """What is there: files and tokens by layer, entries by kind, the index, git, commits that wait, problems."""
        from pipimem import standing
        from pipimem.git import GitOff
        from pipimem.text import tokens

        scan = self.workspace.scan()
        kinds, notes = self._index.facts()
        damaged = dict(self._history.damaged(scan))
        skills = [(s.path, f"not a valid skill: {s.problem}") for s in self.skills() if s.problem]
        notes = [(path, reason) for path, reason in notes if path not in damaged]
        layers: dict[str, dict[str, int]] = {}
        for document in scan.documents:
            row = layers.setdefault(document.layer, {"documents": 0, "bytes": 0})
            row["documents"] += 1
            row["bytes"] += document.stat.st_size
        always = [n for n in ("SOUL.md", "AGENTS.md", "STANDING.md") if self.workspace.read(n) is not None]
        try:
            git = f"{self._history.repository().root}: history on"
        except GitOff as off:
            git = off.message
        return {
            "workspace": self.workspace.root,
            "mode": self.workspace.config["recall.mode"],
            "channels": len(self.channels()),
            "layers": layers,
            "kinds": {kind or "(none)": count for kind, count in kinds.items()},
            "always_on_tokens": sum(tokens(decode(self.workspace.read(n) or b"")) for n in always),
            "index": {
                "path": self._index.path(),
                "stale": self.stale,
                "dictionary": self._index.dictionary() or None,
            },
            "models": list(self.workspace.config["update.models"]),
            "off": [
                *([] if self.workspace.config["update.models"] else ["models: the updater works by rules"]),
                "vectors: search is by words",
            ],
            "limits": {
                "standing_items": standing.MOST,
                "standing_characters": standing.CHARACTERS,
                "file_characters": self.workspace.config["workspace.file_limit"],
                "recall_tokens": self.workspace.config["recall.budget"],
            },
            "git": git,
            "pending_commits": len(self.pending()),
            "problems": [
                {"path": path, "reason": reason}
                for path, reason in sorted({*scan.skipped, *scan.remarks, *notes, *damaged.items(), *skills})
            ],
        }


def init(folder: str, *, language: str = "en", git: bool = False) -> tuple[list[str], list[str]]:
    """Creates or completes a workspace in `folder`: (files created, files kept). No existing byte is changed.

    Raises `Refused` where it cannot be written.
    """
    from pipimem.git import Repository

    created, kept = [], []
    root = os.path.abspath(folder)
    settings = os.path.join(root, "pipimem.toml")
    # A new bot workspace recalls by itself; one that somebody else's program also reads is told about first.
    mode = b"# " if looks_like(root) else b""
    data = read_data("templates/pipimem.toml").replace(b"{language}", language.encode()).replace(b"{mode}", mode)
    if os.path.exists(settings):
        kept.append("pipimem.toml")
    else:
        try:
            os.makedirs(root, exist_ok=True)
            write_private(settings, data, mode=0o644)
        except OSError as error:
            raise Refused(f"'{printable(root)}' cannot be written: {reason(error)}.", "Nothing was changed.") from None
        created.append("pipimem.toml")
    if git:
        Repository.init(root)
    with Memory(root) as memory:
        language = memory.workspace.config["workspace.language"]
        changes = []
        for name in SHARED_FILES:
            if memory.workspace.read(name) is None:
                changes.append(Change(name, None, read_data(f"templates/{language}/workspace/{name}")))
            else:
                kept.append(name)
        with memory.workspace.locks(SHARED_FILES):
            memory.workspace.write(changes)
            beside = {"pipimem.toml": data} if "pipimem.toml" in created else {}
            ticket = memory._history.enlist(changes, _own_message("new workspace"), beside)
        created += [c.path for c in changes]
        memory._history.commit(ticket, changes, _own_message("new workspace"), beside)
        memory.index()
    return created, kept


def _own_message(subject: str, trailers: str = "") -> str:
    """The commit message of what a person had done by a command of their own."""
    return f"{subject}\n\n{trailers}Pipimem-Actor: person\nPipimem-Origin: person\n"


def _skips(skipped: Sequence[tuple[str, str]]) -> str:
    path, reason = skipped[0]
    more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
    return f"'{printable(path)}' ({reason}){more}"
