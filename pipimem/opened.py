"""One opened workspace: what every verb rests on, and the one way a plan is written.

`apply` is the only place that knows the order write → commit → index. A failed commit or sync never takes back a
written file: it is noted and made up for by the next command.
"""

from __future__ import annotations

import os

from pipimem.config import remembered
from pipimem.errors import Conflict, Error, NotFound, Refused, Usage
from pipimem.history import TOMBSTONES, Beside, History, write_beside
from pipimem.index import Hit, Index, Scope
from pipimem.pending import read_private
from pipimem.text import decode, digest, encode, printable
from pipimem.workspace import Workspace, append_private, read_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Any, Self

    from pipimem.index.sessions import Sessions
    from pipimem.index.sync import Diff
    from pipimem.update.merge import Merged
    from pipimem.update.plan import Applied, Op, Plan
    from pipimem.update.review import Proposal
    from pipimem.workspace import Change, Channel

MINIMAL = ("SESSION.md", "MEMORY.md", "HISTORY.md")
WRITE_TRIES = 5


class Opened:
    """One opened workspace. Use it as a context manager, or `close` it.

    Without a channel a verb sees the shared layer only; everything needs `all_channels=True`. `notes` collects what
    a person should hear about besides the answer. A thread may hand it on to another, but two must not use one at
    once: open one each, they take turns as processes do.
    """

    def __init__(self, root: str) -> None:
        root = os.path.abspath(root)
        cache = os.path.join(root, ".pipimem", "cache", "config.json")
        self.workspace = Workspace(root, remembered(root, cache))
        self.notes: list[str] = []
        self.passages = Index(self.workspace)
        self.commits = History(self.workspace, self.notes)
        self.passages.notes = self.notes
        self._said: Sessions | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the index."""
        self.passages.close()
        if self._said is not None:
            self._said.close()

    @property
    def said(self) -> Sessions:
        """The index of past conversations; nothing of it is loaded before it is asked for."""
        if self._said is None:
            from pipimem.index.sessions import Sessions

            self._said = Sessions(self.workspace, self.notes)
        return self._said

    @property
    def stale(self) -> bool:
        """Whether the last answer rests on an index older than some file in scope."""
        return self.passages.stale

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """The files in the last scope that could not be read, with the reason."""
        return self.passages.skipped

    @property
    def cutter(self) -> str:
        """How the last query's Chinese was cut: dictionary, vocabulary, or none."""
        return self.passages.cutter

    @property
    def tokenizer(self) -> str:
        """What cut the Chinese of the last sync, for people to see."""
        return self.passages.tokenizer

    @property
    def documents(self) -> int:
        """How many documents the index holds after the last sync."""
        return self.passages.documents

    @property
    def traces(self) -> str:
        """The file that keeps recalls to be explained later."""
        return self.workspace.private("state", "traces.jsonl")

    def index(self, *, rebuild: bool = False) -> Diff:
        """Brings the whole index up to date by digest, or makes it anew."""
        return self.passages.sync(everything=True, rebuild=rebuild)

    def sync(self) -> Diff:
        """Brings the whole index up to date by the files' stamps. Raises `Refused` when another is writing it."""
        return self.passages.sync()

    def believe(self, holds: Callable[[float], bool] | None) -> None:
        """Trusts a look at the files for as long as a watcher of them says so (`Watch.holds`); None ends that."""
        self.passages.holds = holds or (lambda since: False)

    def ready(self) -> None:
        """Brings what is asked next up to date. Raises `Unreadable` when the workspace cannot be looked through."""
        self.passages.facts()

    def scope(
        self, channel: str | None = None, *, all_channels: bool = False, target: str = "", project: str = "",
        category: str = "", layers: Sequence[str] = (), kinds: Sequence[str] = (), min_confidence: float = 0.0,
        types: Sequence[str] = (), domains: Sequence[str] = (), entities: Sequence[str] = (),
    ) -> Scope:  # fmt: skip
        """Where to look: a channel with the shared layer, everything, or the shared layer alone.

        `target` (user, memory, project or failure), `project`, `category` and the other filters only ever narrow that;
        `types`, `domains` and `entities` are what notes say of themselves in their front matter. Raises
        `Unreadable` for a channel that is not there, `Usage` for a filter nobody knows.
        """
        channels = None if all_channels else [self.workspace.channel(channel).id] if channel is not None else []
        scope = Scope(
            channels, layers=layers, kinds=kinds, min_confidence=min_confidence, types=types, domains=domains,
            entities=entities,
        )  # fmt: skip
        if not (target or project or category):
            return scope
        from pipimem.targets import narrowed

        return narrowed(scope, self.workspace.config["workspace.projects"], target, project, category)

    def redacted(self, text: str) -> str:
        """`text` with its secrets replaced by their kind."""
        from pipimem import safety

        self.workspace.trust()
        config = self.workspace.config
        return safety.redact(text, config["safety.patterns"], config["safety.allow"])

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

    def channels(self) -> list[Channel]:
        """Every channel of the workspace, by id."""
        return self.workspace.channels()

    def template(self, name: str) -> bytes:
        """The text a channel's file of that name starts with, in the workspace's language."""
        return read_data(f"templates/{self.workspace.config['workspace.language']}/channel/{name}")

    def templates(self, channel: Channel) -> dict[str, bytes]:
        """Path → the text it starts with, of a channel's three own files."""
        return {f"{channel.path}/{name}": self.template(name) for name in MINIMAL}

    def text_of(self, path: str, templates: Mapping[str, bytes]) -> bytes:
        """The bytes a file has, or starts with."""
        data = self.workspace.read(path)
        return templates.get(path, b"") if data is None else data

    def taken(self, identity: str) -> bool:
        """Whether some entry of the workspace has that id."""
        return bool(self.passages.lookup(identity, Scope(None)))

    def planned(self, channel: str, ops: Sequence[Op], templates: Mapping[str, bytes], actor: str) -> Plan:
        """A plan of these operations, made on the files as they are now."""
        from pipimem.update.plan import Plan, new_run

        base = {op.path: self.workspace.read(op.path) for op in ops}
        run = new_run(self.today())
        return Plan(run, channel, "person" if actor == "person" else actor, actor, tuple(ops), base, templates)

    def language_of(self, path: str) -> str:
        """The language new headings of a file are written in: its own where it shows, else the workspace's."""
        from pipimem import markdown
        from pipimem.text import has_han

        titles = [s.title for s in markdown.parse(self.workspace.read(path) or b"").sections]
        if any(titles):
            return "zh" if has_han("".join(titles)) else "en"
        return str(self.workspace.config["workspace.language"])

    def key(self) -> bytes:
        """The key of tombstone digests; made once, never in git."""
        path = self.workspace.private("state", "key")
        if read_private(path) is None:
            self.workspace.prepare()
            write_beside(self.workspace, {".pipimem/state/key": os.urandom(32)}, mode=0o600)
        return read_private(path) or b""

    def stones(self, path: str) -> list[str]:
        """The lines of a list without text: tombstones, rejections."""
        return decode(read_private(os.path.join(self.workspace.root, *path.split("/"))) or b"").splitlines()

    def entry(self, ref: str) -> Hit:
        """The one entry called `ref` (with or without brackets), anywhere.

        Raises `NotFound`, and `Refused` with the list when several entries share the id.
        """
        name = ref.strip().strip("[]")
        hits = [h for h in self.passages.lookup(name, Scope(None)) if h.entry]
        if not hits:
            raise NotFound(f"There is no entry '{printable(name)}'.", "Find it with 'pipimem search'.")
        if len(hits) > 1:
            places = ", ".join(f"{h.path}:{h.line}" for h in hits)
            raise Refused(f"The id '{name}' stands in several places: {places}.", "Give one of them another id.")
        return hits[0]

    def entry_facts(self, ref: str) -> tuple[Hit, dict[str, str]]:
        """An entry with what its comment says."""
        from pipimem import markdown

        hit = self.entry(ref)
        parsed = markdown.parse(self.workspace.read(hit.path) or b"")
        entry = markdown.entry_by_id(parsed, hit.channel, hit.ref)
        if entry is None:
            raise NotFound(f"The entry '{hit.ref}' is gone.", "Find it with 'pipimem search'.")
        hit.text = entry.text
        return hit, dict(entry.facts)

    def marked(self, hit: Hit) -> bool:
        """Whether an entry has a comment of its own; the id of one a person typed changes with its text and place."""
        from pipimem import markdown

        entry = markdown.entry_by_id(markdown.parse(self.workspace.read(hit.path) or b""), hit.channel, hit.ref)
        return entry is not None and bool(entry.id)

    def source_of(self, hit: Hit) -> str:
        """The message an entry rests on, "" where it names none."""
        from pipimem import markdown

        parsed = markdown.parse(self.workspace.read(hit.path) or b"")
        entry = markdown.entry_by_id(parsed, hit.channel, hit.ref)
        return entry.facts.get("src", "") if entry else ""

    def refuse_secret(self, text: str) -> None:
        """Raises `Refused` where `text` holds a secret."""
        from pipimem import safety

        self.workspace.trust()
        config = self.workspace.config
        found = safety.secrets(text, config["safety.patterns"], config["safety.allow"])
        if found:
            kind = found[0].kind.partition(":")[2]
            raise Refused(f"The text holds a secret ({kind}).", "Say where the secret is kept instead.")

    def preview(self, plan: Plan) -> list[Change]:
        """The changes `apply` would make now; the same function makes them."""
        from pipimem.update.merge import merge

        return merge(plan, self.workspace.read, self.commits.damage).changes

    def apply(
        self,
        plan: Plan,
        *,
        tombstone: str = "",
        into: str = TOMBSTONES,
        forgetting: Mapping[str, str | None] | None = None,
    ) -> Applied:
        """Writes a plan: all of its files or none, then commits exactly those, then indexes them.

        What a person saved since the plan was made stays: an operation that no longer fits is left out and named, and
        where a machine planned it, it waits in `review/`. Raises `Refused` when nothing could be written, with the
        reason; the files are then as before. `tombstone` is the line a `forget` or a rejection puts on
        the list `into` with it. `forgetting` (what `History.unsay` gave) keeps what goes out of git where git does
        not have it yet.
        """
        from pipimem.update.plan import Applied, message

        self.workspace.trust()
        with self.workspace.locks([*plan.paths, *([into] if tombstone else [])]):
            beside = {into: encode("\n".join([*self.stones(into), tombstone]) + "\n")} if tombstone else {}
            with Beside(self.workspace, beside):
                merged = self._write(plan)
            plan, made = merged.settled(plan), merged.changes
            words = message(plan, merged.done)
            ticket = self.commits.enlist(made, words, beside, forgetting or {})
        due = made or tombstone
        commit, deferred = self.commits.commit(ticket, made, words, beside, forgetting) if due else ("", "")
        self._catch_up()
        applied = Applied(plan, tuple(made), commit, deferred, tuple(self.notes))
        self._record(applied, merged.done)
        return applied

    def _write(self, plan: Plan) -> Merged:
        """Merges and writes. An editor takes no lock: what it saves in between is merged anew, a few times."""
        from pipimem.update.merge import merge

        for left in reversed(range(WRITE_TRIES)):
            merged = merge(plan, self.workspace.read, self.commits.damage)
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
            self.passages.sync()
        except (OSError, Error) as error:
            self.notes.append(f"The index is not up to date ({error}); the next look brings it there.")

    def note_run(self, plan: Plan) -> None:
        """Puts a run that changed nothing on record: what it cost counts for the day's budget."""
        from pipimem.update.plan import Applied

        self._record(Applied(plan, ()), ())

    def _record(self, applied: Applied, done: Sequence[Op]) -> None:
        import json

        plan = applied.plan
        row = {
            "run": plan.run, "time": self.now().isoformat(timespec="seconds"), "channel": plan.channel,
            "actor": plan.actor, "origin": plan.origin, "source": plan.source, "commit": applied.commit,
            "deferred": applied.deferred,
            "applied": [
                {"op": o.op, "id": o.id or o.target, "path": o.path} | ({"digest": wording(o.text)} if o.id else {})
                for o in done
            ],
            "proposed": [{"id": o.op.id, "reason": o.reason} for o in plan.proposed],
            "rejected": [{"op": o.op.op, "reason": o.reason} for o in plan.rejected],
            "tokens": plan.tokens, "fell": list(plan.fell),
        }  # fmt: skip
        try:
            append_private(self.workspace.private("state", "runs.jsonl"), json.dumps(row, ensure_ascii=False))
        except OSError as error:
            self.notes.append(f"The run could not be recorded: {error.strerror}.")

    def machines_words(self, identity: str) -> set[str]:
        """What machines wrote as the entry of that id, as a `wording` each, by the record of runs; empty: unknown."""
        import json

        found = set()
        for line in (read_private(self.workspace.private("state", "runs.jsonl")) or b"").splitlines():
            try:
                row = json.loads(line) if encode(identity) in line else {}
                done = row["applied"] if row and row["actor"] != "person" else ()
                found |= {op["digest"] for op in done if op["id"] == identity and "digest" in op}
            except (ValueError, KeyError, TypeError):  # a torn line
                continue
        return found

    def pending(self) -> list[dict[str, Any]]:
        """The commits that had to wait, oldest first; the next change makes them."""
        return self.commits.pending()

    def commit_waiting(self) -> str:
        """Makes the commits that wait, as far as git lets it; what stands in the way, "" for nothing."""
        return self.commits.commit_waiting()

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


def wording(text: str) -> str:
    """What a run's record keeps of an entry's text: enough to tell whether it still says so."""
    return digest(encode(" ".join(text.split())), 8)


def own_message(subject: str, trailers: str = "") -> str:
    """The commit message of what a person had done by a command of their own."""
    return f"{subject}\n\n{trailers}Pipimem-Actor: person\nPipimem-Origin: person\n"
