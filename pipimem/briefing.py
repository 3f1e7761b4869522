"""What a session of a channel is given: reads the files a context is made of and hands them to `recall.context`.

Which parts, follows from the mode and the preset; secrets are redacted and unsafe entries left out, as in recall.
"""

from __future__ import annotations

from pipimem import markdown, safety, standing
from pipimem.index import outline
from pipimem.recall import context
from pipimem.recall.context import INSTRUCTIONS, MEMORY, Context, Part, Remembered
from pipimem.text import clip, decode, encode, one_line, plural
from pipimem.workspace import read_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipimem.recall import Recall
    from pipimem.workspace import Channel, Document, Workspace

IDENTITY_FILES = ("SOUL.md", "AGENTS.md")
LEAST_CONFIDENCE = 0.6
RECENT_BLOCKS, RECENT_LOOPS = 5, 8
STARTERS = ("main", "session-start")


class Briefing:
    """The files of one channel (None: the shared layer alone) as a session may be given them on the day `today`."""

    def __init__(self, workspace: Workspace, channel: Channel | None, today: str, *, user_allowed: bool) -> None:
        self._workspace = workspace
        self._channel = channel
        self._today = today
        self._user_allowed = user_allowed
        self._notes: list[str] = []

    def context(
        self, mode: str, preset: str, recalled: Recall | None, *, recent: bool = False, talks: Sequence[str] = (),
    ) -> Context:  # fmt: skip
        """The context for a mode and a preset; `recalled` is what was recalled for the text, if one was given.

        `talks` are the last conversations, a line each, for `recent`.
        """
        if mode == "observe" or preset == "isolated":
            why = "mode is observe" if mode == "observe" else "an isolated sub-agent is given nothing"
            return Context([Part(n, MEMORY, state="out", reason=why) for n in ("identity", "policy", "memory")])
        parts: list[Part] = []
        if preset in STARTERS:
            parts += self._identity()
        if mode in ("policy", "auto"):
            parts.append(self._policy())
        parts.append(self._standing())
        if mode != "policy":
            parts += self._memory(mode, preset, recalled)
        if recent and mode != "policy":
            parts += self._recent(talks)
        return Context(parts, self._notes, failed=recalled is not None and recalled.failed)

    def retained(self) -> Context:
        """What must outlive a compaction: what is pinned, SESSION whole, and the newest entries that hold."""
        session = context.whole("the session", self._path("SESSION.md"), self._session(), context.FULL_TOKENS)
        session.text = self._redacted(session.text)
        return Context([self._standing(), session, self._newest()], self._notes)

    def _path(self, name: str) -> str:
        return f"{self._channel.path}/{name}" if self._channel else name

    def _memory(self, mode: str, preset: str, recalled: Recall | None) -> Iterator[Part]:
        if preset == "subagent":
            yield self._part("the session", "SESSION.md", context.handover(self._session()))
        if mode == "full" and preset == "main":
            yield from self._whole()
        elif preset == "session-start" or recalled is None:
            yield self._newest()
        if recalled is not None:
            if recalled.failed:
                self._notes.append(recalled.reason)
            state = "in" if recalled.items else "out"
            body = "".join(recalled.text.splitlines(keepends=True)[2:-1])
            yield Part("recall", MEMORY, body, state=state, reason="" if recalled.items else recalled.reason)

    def _read(self, path: str) -> bytes:
        return safety.withheld(self._workspace.read(path) or b"")

    def _own(self, name: str) -> bytes:
        return self._read(f"{self._channel.path}/{name}") if self._channel else b""

    def _session(self) -> bytes:
        """SESSION as a reader needs it: without what the comments of its items say."""
        return encode(markdown.uncommented(decode(self._own("SESSION.md"))))

    def _redacted(self, text: str) -> str:
        found = self._redacted_now(text)
        if found == text:
            return text
        self._workspace.trust()  # what the user allows is not among remembered settings
        return self._redacted_now(text)

    def _redacted_now(self, text: str) -> str:
        config = self._workspace.config
        return safety.redact(text, config["safety.patterns"], config["safety.allow"])

    def _part(self, name: str, path: str, text: str) -> Part:
        return Part(name, MEMORY, self._redacted(text), path=self._path(path))

    def _identity(self) -> Iterator[Part]:
        for name in IDENTITY_FILES:
            blank = [
                read_data(f"templates/{lang}/{kind}/{name}")
                for lang in ("en", "zh")
                for kind in ("workspace", "channel")
            ]
            for part in context.identity(name, self._read(name), self._own(name), blank):
                part.text = self._redacted(part.text)
                yield part

    def _policy(self) -> Part:
        config = self._workspace.config
        style = config["recall.policy"]
        if style == "none":
            return Part("policy", INSTRUCTIONS, state="out", reason="switched off (recall.policy)")
        if style == "custom":
            return Part("policy", INSTRUCTIONS, config["recall.policy_text"])
        return Part(
            "policy", INSTRUCTIONS, decode(read_data(f"templates/{config['workspace.language']}/policy/{style}.md"))
        )

    def _standing(self) -> Part:
        found = standing.read(self._read(standing.PATH))
        if found.note:
            self._notes.append(found.note)
        text = self._redacted(found.text())
        return Part(
            "pinned", INSTRUCTIONS, text, path=standing.PATH, state="cut" if found.note else "in", reason=found.note
        )

    def _documents(self, *layers: str) -> list[Document]:
        scan = self._workspace.scan([self._channel.id] if self._channel else [])
        return [d for d in scan.documents if d.layer in layers]

    def _newest(self) -> Part:
        text, out = context.newest(self._durable())
        reason = f"{plural(out, 'older entry', 'older entries')} left out" if out else ""
        return Part("newest", MEMORY, text, state="cut" if out and text else "in", reason=reason)

    def _durable(self, *kinds: str) -> list[Remembered]:
        """The entries that hold today, of MEMORY files, safe to be given; with `kinds` only those."""
        found, superseded, marks = [], set(), dict[str, str]()
        for document in self._documents("memory"):
            data = self._workspace.read(document.path) or b""
            private = safety.private_ranges(data)
            for identity, entry in markdown.identified(outline.read(data), document.channel):
                if any(start <= entry.start and entry.end <= end for start, end in private):
                    continue
                superseded.add(entry.facts.get("supersedes", ""))
                if self._current(entry):
                    marks[identity] = entry.facts.get("conflicts", "")
                if self._holds(entry) and (not kinds or entry.facts.get("kind") in kinds):
                    where = " · ".join([document.channel or "shared", *entry.trail[-1:]])
                    found.append(Remembered(identity, entry.text, where, entry.facts.get("since", "")))
        contested = {ref for pair in marks.items() if all(r in marks for r in pair) for ref in pair}
        return [entry for entry in found if entry.ref not in superseded | contested]

    def _current(self, entry: markdown.Entry) -> bool:
        return entry.facts.get("until", "") in ("", self._today) or entry.facts["until"] > self._today

    def _holds(self, entry: markdown.Entry) -> bool:
        facts = entry.facts
        ends = [day for day in (facts.get("until", ""), facts.get("trial", "")) if day]
        try:
            sure = float(facts.get("conf", "1")) >= LEAST_CONFIDENCE
        except ValueError:
            sure = False
        return sure and all(day >= self._today for day in ends) and all(map(self._safe, (entry.text, *entry.trail)))

    def _safe(self, text: str) -> bool:
        """Whether nothing in it is a secret, hidden or an order; asked again with what the user allows before a no."""
        if not self._workspace.config.trusted and self._verdict(text):
            self._workspace.trust()
        return not self._verdict(text)

    def _verdict(self, text: str) -> str:
        config = self._workspace.config
        return safety.verdict(text, config["safety.patterns"], config["safety.allow"])

    def _whole(self) -> Iterator[Part]:
        """Every memory file of the scope, for mode `full`, within its tokens; a file with unsafe text stays out."""
        left = context.FULL_TOKENS
        layers = ("session", "memory", "history", *(["user"] if self._user_allowed else []))
        for document in sorted(self._documents(*layers), key=lambda d: (layers.index(d.layer), d.path)):
            text = self._redacted(decode(self._read(document.path)))
            if self._unsafe(text):
                reason = "it holds hidden characters or instruction-like text"
                yield Part(document.layer, MEMORY, path=document.path, state="out", reason=reason)
                continue
            text = markdown.uncommented(text) if document.layer == "session" else text
            part = context.whole(document.layer, document.path, encode(text), left)
            left -= part.tokens
            yield part

    def _unsafe(self, text: str) -> bool:
        return any(safety.verdict(line) for line in text.splitlines())

    def _recent(self, talks: Sequence[str]) -> Iterator[Part]:
        """What happened lately: the last blocks of HISTORY by date and topic, conversations, the loops still open."""
        parsed = outline.read(self._own("HISTORY.md"))
        path = self._path("HISTORY.md")
        blocks = [s for s in parsed.sections if s.level == 2][-RECENT_BLOCKS:]
        lines = [
            f"- {clip(one_line(s.title), 120)} [{path}:{s.line}]\n"
            for s in reversed(blocks)
            if not self._unsafe(s.title)
        ]
        yield self._part("recent", "HISTORY.md", "## Recent\n" + "".join(lines) if lines else "")
        safe = "".join(f"- {line}\n" for line in talks if not self._unsafe(line))
        yield Part("sessions", MEMORY, self._redacted("## Last sessions\n" + safe) if safe else "")
        loops = sorted(self._durable("open-loop"), key=lambda e: (e.date, e.ref), reverse=True)[:RECENT_LOOPS]
        text = "".join(f"- [{e.ref}] {one_line(e.text)} ({e.date or e.where})\n" for e in loops)
        yield self._part("open loops", "MEMORY.md", "## Open loops\n" + text if text else "")


def checked(mode: str, preset: str) -> None:
    """Raises `Usage` for a mode or preset nobody knows."""
    from pipimem.errors import Usage
    from pipimem.text import printable

    for word, known in ((mode, context.MODES), (preset, context.PRESETS)):
        if word not in known:
            raise Usage(f"'{printable(word)}' is unknown.", f"One of: {', '.join(known)}.")
