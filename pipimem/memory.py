"""One opened workspace and everything one can do with it: the only place that knows the order sync → act → commit.

Each verb reads what it needs, lets a pure module decide, and then writes, commits and indexes in that order. A
failed commit or sync never takes back a written file: it is noted and made up for by the next command.
"""

from __future__ import annotations

import os

from pipimem.errors import Error, NotFound, Refused, Unreadable, Usage
from pipimem.history import STONES, TOMBSTONES, write_beside
from pipimem.index import Hit, Scope
from pipimem.opened import Opened, own_message
from pipimem.text import one_line, printable
from pipimem.workspace import NO_DOCUMENT, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from pipimem.adopting import Adopted
    from pipimem.checks import Finding
    from pipimem.contradictions import Side
    from pipimem.forgetting import Forgotten
    from pipimem.git import Commit
    from pipimem.importing import Report
    from pipimem.index.graph import Linked
    from pipimem.index.sync import Diff
    from pipimem.lifecycle import Lifecycle, Step
    from pipimem.meaning import Embedded, Meaning
    from pipimem.recall import Recall
    from pipimem.recall.context import Context
    from pipimem.recall.offer import Skills
    from pipimem.references import Reference, Shown
    from pipimem.sessions import Conversation, Filter, Found
    from pipimem.skills import Skill
    from pipimem.standing import Standing
    from pipimem.transcript import Transcript
    from pipimem.turns import Recorded, Window
    from pipimem.update.plan import Applied, Plan
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


class Memory(Opened):
    """One opened workspace with every verb: asking stands here, the others in the module of their subject.

    With `patient` false no answer waits for a model: words only, as in a hook.
    """

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.patient = True
        self._meaning: Meaning | None = None

    def close(self) -> None:
        """Lets go of the index, and of the vectors."""
        super().close()
        if self._meaning is not None:
            self._meaning.close()
            self._meaning = None

    def apply(
        self,
        plan: Plan,
        *,
        tombstone: str = "",
        into: str = TOMBSTONES,
        forgetting: Mapping[str, str | None] | None = None,
    ) -> Applied:
        """Writes a plan: all of its files or none, then commits exactly those, then indexes them.

        See `Opened.apply`. A `forget` that was broken off is finished first; `notes` say so.
        """
        if os.path.isdir(self.workspace.private("state", "forgetting")):
            from pipimem import forgetting as forgets

            forgets.resume(self)
        return super().apply(plan, tombstone=tombstone, into=into, forgetting=forgetting)

    @property
    def meaning(self) -> Meaning | None:
        """Search by meaning, where the user's own config names a model and an answer may wait for it."""
        if not self.patient or not self.workspace.config.models:
            return None
        if self._meaning is None:
            from pipimem.meaning import Meaning

            self._meaning = Meaning(self)
        return self._meaning

    @property
    def missing(self) -> list[str]:
        """Which model did not help with the last answer, and why; empty where none is named or all did."""
        return list(self._meaning.missing) if self._meaning is not None else []

    # Asking

    def search(
        self, query: str, channel: str | None = None, *, all_channels: bool = False, target: str = "",
        project: str = "", category: str = "", layers: Sequence[str] = (), kinds: Sequence[str] = (),
        min_confidence: float = 0.0, types: Sequence[str] = (), domains: Sequence[str] = (),
        entities: Sequence[str] = (), limit: int = 10, also: Sequence[Memory] = (),
    ) -> list[Hit]:  # fmt: skip
        """The best `limit` passages (at most 1,000) for a query in words; secrets in their text are redacted.

        `types` and `domains` are those of a note's front matter; `entities` are things a passage or its note links to.
        `also` are other workspaces to ask: theirs come with absolute paths, and one that lacks the channel gives its
        shared layer. An empty list means that the scope was looked through. Raises `Usage` for a query without words
        and `Unreadable` when nothing was found while a file in scope could not be read.
        """

        def ask(memory: Memory) -> list[Hit]:
            return memory._found(
                query, memory._known_channel(channel) if also else channel, all_channels=all_channels, target=target,
                project=project, category=category, layers=layers, kinds=kinds, min_confidence=min_confidence,
                types=types, domains=domains, entities=entities, limit=limit, evidence=bool(also),
            )  # fmt: skip

        if not also:
            return self._reranked(query, ask(self), limit)
        if channel is not None:
            self.workspace.channel(channel)
        from pipimem import several

        answers, failed = several.asked([self, *also], ask)
        others = [several.named(hits, m.workspace.root) for m, hits in zip(also, answers[1:], strict=True)]
        hits = self._reranked(query, several.merged([answers[0], *others]), limit)
        if failed and not hits:
            raise failed[0]
        self.notes += [f"Not searched: {error}" for error in failed]
        return hits

    def _reranked(self, query: str, hits: list[Hit], limit: int) -> list[Hit]:
        """The best `limit`, put in order by a cross-encoder where one is named."""
        if self.meaning is not None:
            hits = self.meaning.reranked(query, hits)
        return hits[: max(1, min(1000, limit))]

    def _known_channel(self, channel: str | None) -> str | None:
        """The channel, where this workspace has it; else None, its shared layer alone."""
        try:
            return channel if channel is None else self.workspace.channel(channel).id
        except Unreadable:
            return None

    def _found(
        self, query: str, channel: str | None, *, all_channels: bool, target: str, project: str, category: str,
        layers: Sequence[str], kinds: Sequence[str], min_confidence: float, types: Sequence[str],
        domains: Sequence[str], entities: Sequence[str], limit: int, evidence: bool,
    ) -> list[Hit]:  # fmt: skip
        scope = self.scope(
            channel, all_channels=all_channels, target=target, project=project, category=category, layers=layers,
            kinds=kinds, min_confidence=min_confidence, types=types, domains=domains, entities=entities,
        )  # fmt: skip
        meaning, most = self.meaning, max(1, min(1000, limit))
        if meaning is not None:
            most = max(most, meaning.depth)
        hits = self.passages.search(query, scope, most, evidence=evidence, near=meaning.near if meaning else None)
        if not hits and self.skipped:
            raise Unreadable(
                f"Nothing was found, but {_skips(self.skipped)} could not be read.",
                "Mend that and search again.",
            )
        for hit in hits:
            if "secret" in hit.verdict:
                hit.text = self.redacted(hit.text)
        return hits

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
                order=self._order(text),
                linked=lambda hits: self.passages.weigh(hits, text, scope),
            )
        except (Unreadable, Refused) as error:
            return Recall(str(error), {"router": {"fire": way.fire, "reason": way.reason}}, failed=True)
        if way.fire and not result.items and self.skipped:
            result.failed, result.reason = True, f"could not look: {_skips(self.skipped)} could not be read"
        result.trace["stale"], result.trace["cutter"] = self.stale, self.cutter
        if self.missing:
            result.trace["missing"] = self.missing
        result.trace["ms"] = round((perf_counter() - started) * 1000, 1)
        self._keep(result, channel, session, wide=all_channels or bool(also))
        return result

    def _searching(
        self, scope: Scope, layers: Sequence[str], channel: str | None, *, all_channels: bool, also: Sequence[Memory],
    ) -> Callable[[str, int], list[Hit]]:  # fmt: skip
        """How a recall asks: this index, and those of other workspaces in what they have of the scope.

        In words alone: the gate wants evidence in words, so that no model of vectors need be sent a prompt
        (docs/decisions/0033).
        """
        if not also:
            return lambda query, limit: self.passages.search(query, scope, limit, evidence=True)
        from pipimem import several

        scopes = {m: m.scope(m._known_channel(channel), all_channels=all_channels, layers=layers) for m in also}
        scopes[self] = scope

        def ask(memory: Memory, query: str, limit: int) -> list[Hit]:
            hits = memory.passages.search(query, scopes[memory], limit, evidence=True)
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
                for hit in self.passages.search(latin if any(map(str.isalpha, latin)) else text, fronts, 8):
                    if hit.path == path and text in one_line(hit.text):
                        return str(hit.verdict)
            except Usage:
                pass
            from pipimem import safety

            config = self.workspace.config
            return safety.verdict(text, config["safety.patterns"], config["safety.allow"])

        return Skills(read, scope.channels, files, unsafe)

    def _order(self, text: str) -> Callable[[list[Hit]], list[Hit]] | None:
        """How a reranker orders what may be recalled; None where none is asked."""
        meaning = self.meaning
        return None if meaning is None else lambda hits: meaning.reranked(text, hits)

    def _given(self, session: str) -> Callable[[Hit], bool]:
        if not session:
            return lambda hit: False
        from pipimem import traces

        known = traces.given(self.traces, session)
        return lambda hit: traces.mark(hit) in known

    def _keep(self, result: Recall, channel: str | None, session: str, *, wide: bool) -> None:
        """Keeps the decisions of a recall to be explained later, where they can be written.

        `wide`: it looked beyond one channel and the shared layer, and is not for an agent's eyes.
        """
        from time import gmtime, strftime

        from pipimem import traces

        trace = {**result.trace, "asked": traces.without_secrets(result.trace.get("asked", ()), self.redacted)}
        row = {
            "id": "t-" + os.urandom(4).hex(), "time": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()), "channel": channel,
            "session": session, "wide": wide, "reason": result.reason, "failed": result.failed, **trace,
            "given": [traces.mark(item.hit) for item in result.items] if session else [],
        }  # fmt: skip
        if traces.keep(self.traces, row):
            result.trace["id"] = row["id"]

    def why(self, name: str = "") -> dict[str, Any]:
        """The decisions of a past recall: the last one, or the one of that id. Raises `NotFound`."""
        from pipimem import traces

        found = [row for row in traces.rows(self.traces) if name in ("", row["id"])]
        if not found:
            shown = f" '{printable(name)}'" if name else ""
            raise NotFound(f"There is no recall{shown} to explain.", "Ask one with 'pipimem recall'.")
        return found[-1]

    def context(
        self, text: str = "", channel: str | None = None, *, all_channels: bool = False, mode: str = "",
        preset: str = "main", budget: int = 0, recent: bool = False, errors: Sequence[str] = (),
        files: Sequence[str] = (), session: str = "",
    ) -> Context:  # fmt: skip
        """Everything a session should be given: identity, policy, what is pinned, and memory, by mode and preset.

        Without a text there is nothing to recall for: then the newest entries that hold. What `session` (the running
        one) was given before is not recalled, and it is not among the last sessions. Raises `Unreadable` when a file
        of it cannot be read.
        """
        from pipimem.briefing import Briefing, checked

        mode = mode or self.workspace.config["recall.mode"]
        checked(mode, preset)
        recalled = None
        if text and mode != "policy" and preset != "isolated":
            most = SUBAGENT_TOKENS if preset == "subagent" else 0
            recalled = self.recall(
                text, channel, all_channels=all_channels, budget=budget or most, errors=errors, files=files,
                session=session,
            )  # fmt: skip
        found = self.workspace.channel(channel) if channel is not None else None
        briefing = Briefing(self.workspace, found, self.today(), user_allowed=self._user_allowed(channel))
        talks: Sequence[str] = ()
        if recent:
            from pipimem import sessions

            talks = sessions.recent(self, channel, all_channels=all_channels, session=session)
        return briefing.context(mode, preset, recalled, recent=recent, talks=talks)

    def _user_allowed(self, channel: str | None) -> bool:
        if channel is None:
            return True
        found = self.workspace.channel(channel)
        return found.kind != "group" or found.id in self.workspace.config["workspace.user_in_groups"]

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
                from pipimem import sessions

                shown = sessions.show(self, ref, found.name, scope, around=max(0, around), most=max(1, most))
                shown.text = self.redacted(shown.text)
                return shown
            if found.form in ("id", "short"):
                hit = self._one(found, scope)
                found = references.Reference("line", path=hit.path, line=hit.line)
            document = self._in_scope(found.path, scope)
            data = self.workspace.read(document.path) or b""
            shown = references.opened(
                ref, found, document.path, data, around=max(0, around), most=max(1, most), redacted=self.redacted
            )
        except Error as error:
            return references.Shown(ref, problem=self.redacted(str(error)))
        shown.channel = document.channel
        return shown

    def _one(self, found: Reference, scope: Scope) -> Hit:
        hits = self.passages.lookup(found.name, scope)
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

    # Meaning

    def embed(
        self, *, dry_run: bool = False, most: int | None = None, said: Callable[[int, int], None] | None = None,
        before: Callable[[Embedded], None] | None = None,
    ) -> Embedded:  # fmt: skip
        """Brings the vectors up to date with the index, at most `most` texts of them; `dry_run` only counts.

        Each batch is kept at once, so what was killed goes on where it was. The model is tried first, and where it has
        another dimension than before, all is embedded anew. `before` is told how many texts and tokens are about to be
        sent, `said(done, all)` of progress.
        Raises `Usage` where no model is named, `Refused` while another process embeds, and `Failed` by the model.
        """
        from pipimem.meaning import Meaning

        self._meaning = self._meaning or Meaning(self)
        return self._meaning.embed(dry_run=dry_run, most=most, said=said, before=before)

    # Past conversations

    def index(self, *, rebuild: bool = False) -> Diff:
        """Brings the whole index up to date by digest, or makes it anew; that of past conversations as well."""
        diff = super().index(rebuild=rebuild)
        if os.path.exists(self.workspace.private("sources.jsonl")):
            from pipimem import importing

            importing.ready(self, rebuild=rebuild)
        return diff

    def import_sessions(
        self, source: str, path: str = "", *, channel: str = "", project: str = "", session: str = "",
        everything: bool = False, since: str = "", limit: int = 0, platform: str = "", dry_run: bool = False,
        force: bool = False,
    ) -> Report:  # fmt: skip
        """Takes a host's conversations into the list of sources and the index of sessions; no text is kept.

        `path` is a file or folder (else where the host keeps them). Without `everything` only those of the current
        folder's project (or of the folder `project`); group chats only when named. `channel` assigns them; else they
        belong where the settings and their ids say, or to no channel. The same import twice changes nothing; `force`
        reads everything before it replaces anything. Raises `NotFound` where the host has nothing there.
        """
        from pipimem import importing

        wish = importing.Wish(
            source, path, channel, project, session, everything, since, limit, platform, dry_run, force
        )
        return importing.run(self, wish)

    def sessions(
        self, channel: str | None = None, *, all_channels: bool = False, project: str = "", session: str = "",
        without: Sequence[str] = (), limit: int = 20, preview: bool = False,
    ) -> list[Conversation]:  # fmt: skip
        """Past conversations of a channel, the last one first; of no channel there are none but with `all_channels`.

        `without` names running sessions: they and those they were started from are left out. One whose transcript is
        gone is listed as such (`there`).
        """
        from pipimem import sessions

        which = self._which(channel, all_channels, project, session, without)
        return sessions.conversations(self, which, limit, preview=preview)

    def session_search(
        self, query: str, channel: str | None = None, *, all_channels: bool = False, project: str = "",
        role: str = "", session: str = "", without: Sequence[str] = (), limit: int = 10,
    ) -> list[Found]:  # fmt: skip
        """The messages of past conversations that answer a query best, secrets redacted; `role` limits it.

        Each text is read from its host's file and given only while it is what was indexed; where the file is gone it is
        empty. Raises `Usage` for a query without words or an unknown role.
        """
        from pipimem import sessions

        if role and role not in sessions.roles():
            raise Usage(f"The role '{printable(role)}' is unknown.", f"One of: {', '.join(sessions.roles())}.")
        which = self._which(channel, all_channels, project, session, without)
        return sessions.search(self, query, which, role=role, limit=limit)

    def session_notes(
        self, query: str, channel: str | None = None, *, all_channels: bool = False, limit: int = 5
    ) -> list[Hit]:  # fmt: skip
        """The notes on past conversations in HISTORY and its archive that answer a query: by task, file or error."""
        from pipimem import sessions

        return sessions.notes(self, query, channel, all_channels=all_channels, limit=limit)

    def timeline(
        self, limit: int = 30, session_limit: int = 10, channel: str | None = None, *, all_channels: bool = False,
        project: str = "", session: str = "", without: Sequence[str] = (),
    ) -> tuple[list[Conversation], list[Found]]:  # fmt: skip
        """The last `session_limit` conversations, newest first, and their last `limit` messages, oldest first."""
        from pipimem import sessions

        which = self._which(channel, all_channels, project, session, without)
        return sessions.timeline(self, which, limit=limit, session_limit=session_limit)

    def forget_messages(
        self, refs: Sequence[str] = (), texts: Sequence[str] = (), *, dry_run: bool = False
    ) -> list[str]:
        """Takes messages out of the index of sessions for good, by reference (or whole session) and by text held.

        Returns the references; the caller puts them among the sources of a tombstone, which keeps them out. The hosts'
        own files are not touched.
        """
        from pipimem import sessions

        return sessions.forget(self, refs, texts, dry_run=dry_run)

    def _which(
        self, channel: str | None, all_channels: bool, project: str, session: str, without: Sequence[str]
    ) -> Filter:
        from pipimem.sessions import Filter

        self.workspace.trust()
        channels = None if all_channels else [self.workspace.channel(channel).id] if channel is not None else []
        return Filter(channels, project, session, tuple(without))

    # Channels

    def add_channel(self, identity: str, *, kind: str = "", minimal: bool = False) -> tuple[Channel, list[str]]:
        """Creates what is missing of a channel from the templates; returns it and the files made.

        No existing byte is changed: an existing channel of another `kind` is refused with the line to write.
        """
        from pipimem import starting

        return starting.add_channel(self, identity, kind=kind, minimal=minimal)

    # Writing

    def add(
        self, text: str, channel: str | None = None, *, target: str = "", kind: str = "fact", heading: str = "",
        actor: str = "person",
    ) -> Applied:  # fmt: skip
        """One more entry in the channel's MEMORY, or in the shared USER or MEMORY; durable at once, still scanned.

        An `actor` that is no person ("tool") writes on trial, and only the channel's: a shared target or text that
        reads like an order becomes a proposal. Raises `Refused` for a secret, a duplicate, or a place that cannot
        take it.
        """
        from pipimem import agents, editing

        if actor == "person":
            return editing.add(self, text, channel, target=target, kind=kind, heading=heading)
        return agents.add(self, text, channel, target=target, kind=kind, heading=heading)

    def pinned(self) -> Standing:
        """What STANDING.md pins, and how much of its limits that takes."""
        from pipimem import editing

        return editing.pinned(self)

    def pin(self, text: str) -> Applied:
        """One more instruction that holds always; a person's to give. Raises `Refused` over the limits."""
        from pipimem import editing

        return editing.pin(self, text)

    def unpin(self, number: int) -> Applied:
        """Takes the pinned instruction of that number (from 1) out. Raises `NotFound`."""
        from pipimem import editing

        return editing.unpin(self, number)

    def supersede(self, ref: str, text: str, channel: str | None = None, *, actor: str = "person") -> Applied:
        """Puts `text` in the place of an entry, under a new id that names the old one. Git keeps the old text.

        A tool finds only what `channel` and the shared layer hold, and proposes where the entry is a person's.
        """
        from pipimem import agents, editing

        if actor == "person":
            return editing.supersede(self, ref, text)
        return agents.supersede(self, ref, text, channel)

    def invalidate(self, ref: str, channel: str | None = None, *, actor: str = "person") -> Applied:
        """Marks an entry as no longer true: it stays in the file and is never recalled again. A tool: as above."""
        from pipimem import agents, editing

        return editing.invalidate(self, ref) if actor == "person" else agents.invalidate(self, ref, channel)

    def promote(self, ref: str) -> Applied:
        """Moves an entry of a channel to the shared MEMORY.md, under the same id; only ever by a person."""
        from pipimem import editing

        return editing.promote(self, ref)

    def contradictions(self) -> list[tuple[Side, Side]]:
        """The pairs of entries marked as contradicting each other, while both hold; in the order of the files."""
        from pipimem import contradictions

        return contradictions.contradictions(self)

    def resolve(self, ref: str) -> Applied:
        """Keeps one entry of a contradiction; the others stay in the file, no longer true. Only ever by a person.

        Raises `NotFound` for an entry that is in no open contradiction.
        """
        from pipimem import contradictions

        return contradictions.resolve(self, ref)

    def export(
        self, channel: str | None = None, layers: Sequence[str] = (), *, secrets: bool = False
    ) -> Iterator[dict[str, Any]]:
        """One row for each entry and each text between, of a channel with the shared layer, or (None) of everything.

        Fields: ref, path, line, heading[], channel, layer, kind, facts{}, text, verdict. Secrets are redacted unless
        `secrets`; what could not be read is noted.
        """
        from pipimem import exporting

        return exporting.rows(self, channel, layers, secrets=secrets)

    def migrate(self, *, dry_run: bool = False) -> Applied:
        """Brings files to the current format, in one commit that can be undone. Raises `Refused` for a newer one."""
        from pipimem import migrating

        return migrating.migrate(self, dry_run=dry_run)

    def adopt(
        self, source: str, path: str, *, channel: str | None = None, target: str = "", dry_run: bool = False
    ) -> Adopted:
        """Takes the memory that another system keeps at `path` over into a channel, or with `target="memory"` into
        the shared layer, as one plan and one commit; their files are only read.

        `source` names the format (hermes, claude, openclaw, nanobot, minimem, basic-memory). Entries name where they
        are from (`src`) and keep their day. What is a secret, hidden, known, forgotten or too long is left out and
        named; what reads like an order to the assistant waits in `review/`. The same again changes nothing. Raises
        `Usage` for a format nobody knows or a folder of another one, `Unreadable` for a path that is not there.
        """
        from pipimem import adopting

        return adopting.adopt(self, source, path, channel=channel, target=target, dry_run=dry_run)

    # Notes

    def note(
        self, text: str, channel: str | None = None, *, topic: str = "", at: datetime | None = None
    ) -> tuple[Applied, str, int]:
        """Appends to the page of today, or of a topic, in the channel's or the shared notes: (applied, path, line).

        The day is that of `at` (now) in the workspace's zone. Raises `Refused` for a secret.
        """
        from pipimem import editing

        return editing.note(self, text, channel, topic=topic, at=at)

    def page(self, name: str, channel: str | None = None) -> tuple[str, str]:
        """The path and text of a note's page: a day (`today` for this one) or a topic. Raises `NotFound`."""
        from pipimem import editing

        return editing.page(self, name, channel)

    # Skills

    def skills(self) -> list[Skill]:
        """Every skill, by name; one that is not valid says why in its `problem`, and is never offered."""
        from pipimem import editing

        return editing.skills(self)

    def skill(self, name: str) -> Skill:
        """The skill of that name. Raises `NotFound` with the nearest names."""
        from pipimem import editing

        return editing.skill(self, name)

    def add_skill(self, name: str, description: str, text: str, when_to_use: str = "") -> Applied:
        """A new skill. Raises `Refused` where one of that name is there, or it would not be valid."""
        from pipimem import editing

        return editing.add_skill(self, name, description, text, when_to_use)

    def edit_skill(self, name: str, text: str, channel: str | None = None, *, actor: str = "person") -> Applied:
        """Other steps for a skill; its front matter stays byte for byte. A tool (of a `channel`) only proposes them."""
        from pipimem import agents, editing

        if actor == "person":
            return editing.edit_skill(self, name, text)
        return agents.edit_skill(self, name, text, channel)

    def remove_skill(self, name: str) -> Applied:
        """Takes a skill out; `undo` brings it back."""
        from pipimem import editing

        return editing.remove_skill(self, name)

    def matching(self, text: str, channel: str | None = None) -> list[Hit]:
        """Every entry whose text holds `text`, folded; in file order."""
        from pipimem import forgetting

        return forgetting.matching(self, text, channel)

    def forget(
        self, *refs: str, source: str = "", match: str = "", channel: str | None = None, everything: bool = False,
        dry_run: bool = False,
    ) -> Forgotten:  # fmt: skip
        """Takes something out for good, of the files and of every store, and remembers, without text, not to learn it.

        One of: `refs` (entries, `path:line`, `path#heading`), `source` (all that rests on a message or a
        conversation), `match` (what holds a text, what was only said yet too; in `channel` only where given).
        What a person wrote goes only where it is what was named: a match that fits several such things is `Usage` with
        the list, unless `everything`. `still` names where the same words stand yet. Git keeps old versions; `in_git`
        says whether it has one. One that is broken off is finished by the next change.
        """
        from pipimem import forgetting

        if self._meaning is not None and not dry_run:
            self._meaning.close()
        return forgetting.forget(
            self, refs, source=source, match=match, channel=channel, everything=everything, dry_run=dry_run
        )

    # Updating

    def turn(self, channel: str, messages: Sequence[object]) -> Recorded:
        """Records one finished turn for the next jobs, durably, and returns at once: no file, commit or index waits.

        Each message is a mapping with role, content, and if known name, timestamp (ISO 8601) and tool_calls.
        """
        from pipimem import updating

        return updating.turn(self, channel, messages)

    def recorded(self, channel: str) -> Window:
        """The recorded turns that no `update` has worked on yet."""
        from pipimem import updating

        return updating.recorded(self, channel)

    def learned(self, channel: str, window: Window) -> None:
        """An `update` is done with these turns: the next begins after them."""
        from pipimem import updating

        return updating.learned(self, channel, window)

    def before_compact(self, channel: str, transcript: Transcript | None = None) -> tuple[list[Step], Context]:
        """Brings SESSION, then MEMORY and HISTORY up to date, and hands back what a compacted session must keep.

        Works on the transcript, or on the recorded turns. A step that fails stops no other, and what is kept always
        holds the latest SESSION there is.
        """
        from pipimem.lifecycle import RETAINING

        steps = self._lifecycle(channel).boundary(transcript, RETAINING)
        self._clear(channel)
        return steps, self._retained(channel)

    def new_session(self, channel: str, transcript: Transcript | None = None) -> tuple[list[Step], Context]:
        """Works up the old session before a new one starts; SESSION survives. What the new one is given."""
        steps = self._lifecycle(channel).boundary(transcript)
        return steps, self.context(channel=channel, preset="session-start")

    def maintain(self, channel: str | None = None) -> dict[str, list[Step]]:
        """Runs the jobs that are due, of one channel or of each in turn; those that are not say why.

        Then the oldest five imported conversations of each that wait are worked on: each leaves its note in HISTORY.
        """
        from pipimem import maintaining

        channels = [self.workspace.channel(channel)] if channel is not None else self.channels()
        steps = {c.id: [*self._lifecycle(c.id).maintain(), *maintaining.catch_up(self, c.id)] for c in channels}
        self.pack()
        return steps

    def pack(self) -> None:
        """Lets git pack what many small commits left, where that is due; what stood in the way is noted."""
        why = self.commits.pack()
        self.notes += [f"Git did not pack its objects: {why}"] if why and "no git history" not in why else []

    def work_off(self, report: Callable[[dict[str, Any]], None]) -> str:
        """Works off what hooks left in the queue, oldest first, within the day's budget; why it stopped, "" when done.

        `report` is told each step. One process at a time does this; a second one leaves at once.
        """
        from pipimem import maintaining

        return maintaining.work_off(self, self._lifecycle, report)

    def waiting(self, channel: str) -> int:
        """How many imported conversations of a channel `maintain` has yet to work on."""
        from pipimem import maintaining

        return len(maintaining.imported(self, self.workspace.channel(channel).id))

    def queue(self) -> dict[str, Any]:
        """What hooks left to be done: how many lines wait, since when, and those given up with their reason."""
        from pipimem import maintaining

        return maintaining.queue(self)

    def _clear(self, channel: str) -> None:
        """After a compaction no session of the channel has what it was given any more."""
        from pipimem import traces

        sessions = {r["session"] for r in traces.rows(self.traces) if r.get("session") and r.get("channel") == channel}
        for session in sorted(sessions):
            traces.keep(self.traces, {"id": "", "session": session, "channel": channel, "cleared": True})

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
        models: Sequence[str] | None = None, again: bool = False,
    ) -> Plan:  # fmt: skip
        """What should change in `channel` after `transcript`; writes nothing, and holds no lock while a model thinks.

        Of the jobs, `extract` gives MEMORY, HISTORY and proposals, `refresh` gives SESSION. `models` are asked in
        order (None: those of the settings; empty: none); where none helps, the rules do, and `origin` says so. What a
        message gave before is not given again; with `again` the note on the conversation is made anew.
        """
        from pipimem import updating

        return updating.propose(self, channel, transcript, jobs, models=models, again=again)

    def learn(self, channel: str, transcript: Transcript, plan: Plan, path: str = "") -> Applied:
        """Applies a plan made from a host's conversation and notes in the list of sources what came of it: one commit.

        A conversation that is not known yet is taken in from the file `path`, as one of the channel, so that what is
        remembered of it can be opened at its message. Raises `Refused` where it belongs to another channel.
        """
        from pipimem import updating

        return updating.learn(self, channel, transcript, plan, path)

    def source(self, ref: str, channel: str = "") -> Transcript:
        """A known conversation, read again from its host's file. Raises `NotFound`, `Unreadable` where it is gone.

        With a `channel` one that belongs to another is refused.
        """
        from pipimem import importing

        return importing.reread(self, ref, channel)

    def transcript(self, path: str, session: str = "") -> Transcript:
        """The conversation in the file `path`, of several the one named, under the id it is known by here.

        Raises `Unreadable`, and `Usage` for a file no importer knows or that holds several.
        """
        from pipimem import importing

        return importing.load(self, path, session)

    def take_in(self, channel: str, transcript: Transcript, path: str) -> None:
        """Takes the conversation that was read from the file `path` in as one of the channel, unless it is known."""
        from pipimem import importing

        self.workspace.trust()
        importing.adopt(self, self.workspace.channel(channel).id, transcript, path)

    def tidy(self, channel: str, job: str, *, models: Sequence[str] | None = None) -> Plan:
        """What `promote` (SESSION), `condense` (MEMORY) or `fold` (HISTORY) would change now; writes nothing.

        `models` as in `propose`.
        """
        from pipimem import updating

        return updating.tidy(self, channel, job, models=models)

    def accept(self, name: str) -> Applied:
        """Does what a proposal says, as its file says it now, and takes the file out of `review/`; one commit.

        Raises `Refused` when what it acts on is gone or says something else now: then it waits on.
        """
        from pipimem import reviewing

        return reviewing.accept(self, name)

    def reject(self, name: str) -> Applied:
        """Takes a proposal out of `review/` and remembers, without its text, not to propose it again."""
        from pipimem import reviewing

        return reviewing.reject(self, name)

    def overtaken(self, proposal: Proposal) -> str:
        """Why what a proposal acts on is gone or says something else now; "" where it can be accepted."""
        from pipimem import reviewing

        return reviewing.overtaken(self, proposal)

    def answered(self) -> list[tuple[Proposal, Applied | Error]]:
        """Does what is ticked in `review/*.md`, file by file; one that cannot be done says why and waits on."""
        from pipimem import reviewing

        return reviewing.answered(self)

    # History

    def log(self, channel: str | None = None, limit: int = 50) -> list[Commit]:
        """The commits that touched the workspace or one channel, newest first. `Unreadable` without git history."""
        return self.commits.log([self.workspace.channel(channel).path] if channel is not None else [], limit)

    def history(self, ref: str) -> list[tuple[Commit, str]]:
        """The commits in which an entry came, changed or went, newest first, each with what it said then.

        It is followed through other ids and files: to the entry it superseded and to the channel it was promoted from.
        """
        hit = self.entry(ref)
        return self.commits.steps(hit.path, {d.path: d.channel for d in self.workspace.scan().documents}, hit.ref)

    def blame(self, ref: str) -> tuple[Hit, Commit | None, str]:
        """An entry, the commit that wrote it (None: not committed yet), and the message it rests on ("" unknown)."""
        hit, facts = self.entry_facts(ref)
        lines = hit.text.count("\n")
        return hit, self.commits.wrote(hit.path, hit.line, hit.line + lines), facts.get("src", "")

    def diff(self, name: str) -> str:
        """The diff of a run or commit. Raises `NotFound`."""
        return self.commits.diff(name)

    def undo(self, name: str, *, dry_run: bool = False) -> Applied:
        """Takes back one run or commit and keeps what was written since; itself a commit.

        Where later edits touched the same lines nothing is changed and `Refused` names the file. What a `forget`
        removed may be learned again once that is undone.
        """
        from pipimem.update.plan import Applied, Plan, new_run

        self.workspace.trust()
        commit = self.commits.find(name)
        paths = [p for p in commit.files if self.workspace.is_document(p)]
        if not paths:
            raise Refused(f"'{printable(name)}' changed no document.", "Use git itself to take it back.")
        plan = Plan(new_run(self.today()), "", "person", "person", (), {}, source=commit.sha)
        if dry_run:
            return Applied(plan, tuple(self.commits.back(commit, paths)))
        with self.workspace.locks([*paths, *(p for p in commit.files if p in STONES)]):
            made = self.commits.back(commit, paths)
            self.workspace.write(made)
            beside = self.commits.untombed(commit)
            write_beside(self.workspace, beside)
            run = f"Pipimem-Run: {plan.run}\n"
            message = f"{own_message(f'undo “{commit.subject}”', run)}Pipimem-Undoes: {commit.sha}\n"
            ticket = self.commits.enlist(made, message, beside)
        done = self.commits.commit(ticket, made, message, beside)
        applied = Applied(plan, tuple(made), *done, tuple(self.notes))
        self._catch_up()
        self._record(applied, ())
        return applied

    # Graph

    def graph_neighbors(
        self, node: str, channel: str | None = None, *, all_channels: bool = False, depth: int = 2,
        relation: str = "", layer: str = "", direction: str = "both", limit: int = 100,
    ) -> Linked:  # fmt: skip
        """What is up to `depth` links (6 at most) from a thing, nearest first, with those links; `limit` nodes at most.

        A thing is named as in a link, in any spelling. Raises `NotFound` for what nothing in scope speaks of.
        """
        from pipimem import graph

        return graph.neighbors(
            self, node, channel, all_channels=all_channels, depth=depth, relation=relation, layer=layer,
            direction=direction, limit=limit,
        )  # fmt: skip

    def graph_path(self, one: str, other: str, channel: str | None = None, *, all_channels: bool = False) -> Linked:
        """A shortest way between two things, along links in either direction; no nodes where there is none."""
        from pipimem import graph

        return graph.path(self, one, other, channel, all_channels=all_channels)

    def graph_status(self, channel: str | None = None, *, all_channels: bool = False) -> dict[str, Any]:
        """How many nodes and links there are in scope, by kind, relation and layer, and what has most links."""
        from pipimem import graph

        return graph.status(self, channel, all_channels=all_channels)

    def graph_export(
        self, form: str = "mermaid", channel: str | None = None, *, all_channels: bool = False, limit: int = 1000
    ) -> tuple[str, bool]:
        """The links in scope as mermaid, dot or json, in the order of the files, and whether there are more than these.

        `limit` links at most (0: all).
        """
        from pipimem import graph

        return graph.export(self, form, channel, all_channels=all_channels, limit=limit)

    # State

    def check(self, paths: Sequence[str] = ()) -> list[Finding]:
        """Everything that is wrong with the documents, or with those given (paths as the current folder has them).

        A file that is no document of this workspace is passed over, with a note. Raises `Usage` where there is no file.
        """
        from pipimem import checks

        self.workspace.trust()
        meant = {path: self._own_paths(path) for path in paths}
        found = checks.check(self.workspace, {name for names in meant.values() for name in names})
        found = [f for f in found if not paths or f.message != NO_DOCUMENT]
        known = {f.path for f in found}
        over = [p for p, names in meant.items() if not any(n in known or self.workspace.is_document(n) for n in names)]
        self.notes += [f"Passed over: {_skips([(p, 'no document of this workspace') for p in over])}."] if over else []
        return found

    def _own_paths(self, path: str) -> list[str]:
        """What a file may be called here: as seen from the current folder, and from the workspace. Links stay links."""
        root = self.workspace.root
        there = [p for p in (path, os.path.join(root, path)) if os.path.lexists(p) and not os.path.isdir(p)]
        if not there:
            raise Usage(f"There is no file '{printable(path)}'.", "Name documents, or nothing to check them all.")
        inside = (os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in there)
        return [os.path.relpath(p, os.path.realpath(root)) for p in inside]

    def status(self) -> dict[str, Any]:
        """What is there: files and tokens by layer, entries by kind, the index, git, commits that wait, problems."""
        from pipimem import state

        return state.status(self, self.meaning)


def init(folder: str, *, language: str = "en", git: bool = False) -> tuple[list[str], list[str]]:
    """Creates or completes a workspace in `folder`: (files created, files kept). No existing byte is changed.

    Raises `Refused` where it cannot be written.
    """
    from pipimem import starting

    return starting.init(folder, language=language, git=git)


def _skips(skipped: Sequence[tuple[str, str]]) -> str:
    path, reason = skipped[0]
    more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
    return f"'{printable(path)}' ({reason}){more}"
