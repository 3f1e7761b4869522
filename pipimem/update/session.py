"""SESSION.md under the updater's hand: nine sections of short items, bounded, and a place for whatever must leave.

An item the updater wrote ends in a comment like an entry's. Only such items ever leave, and none is dropped: one that
must give way goes up into MEMORY where its section stays (decisions, constraints, corrections), else into the archive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.text import clip, decode, one_line
from pipimem.update import ARCHIVE, SESSION_ITEM, SESSION_ITEMS, fresh_id, guards, heading_for, pairs
from pipimem.update.plan import Op, Outcome

if TYPE_CHECKING:
    from pipimem.update import Setting

SECTIONS = (
    "Session Title", "Current State", "User Intent", "Active Files", "Decisions", "Constraints", "Errors & Corrections",
    "Next Steps", "Worklog",
)  # fmt: skip
STICKY: Mapping[str, str] = {
    "Decisions": "decision", "Constraints": "constraint", "Errors & Corrections": "correction",
}  # fmt: skip
"""The sections whose items stay until they are resolved, and what kind of entry an item becomes in MEMORY."""
CHARACTERS = 6000
"""What SESSION.md holds in all, comments aside (design §3, as the items and their length)."""
VOICES = {
    "assistant": "only the assistant said it", "tool": "only a tool or a page said it",
    "unnamed": "nobody knows who said it",
}  # fmt: skip
YIELDING = ("Worklog", "Active Files", "Current State", "Next Steps", "User Intent", *STICKY)
"""The sections in the order in which they give up items while the whole is too long."""
BLOCK_TITLES = {"en": "Settled work", "zh": "已了结的工作"}
COMMENTS = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Item:
    """One item as it stands: `own` says that the updater wrote it, `facts` what its comment says, `raw` its lines."""

    id: str
    section: str
    text: str
    facts: Mapping[str, str]
    raw: str = ""
    own: bool = True

    @property
    def resolved(self) -> bool:
        """Whether it is marked as settled."""
        return bool(self.facts.get("until"))

    @property
    def age(self) -> str:
        """What the oldest item sorts first by."""
        return self.facts.get("since", "")


class Session:
    """One SESSION.md and what a run changes in it; `ops` is all of it as operations, sources and targets together."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._path = setting.path("SESSION.md")
        self.parsed = markdown.parse(setting.text("SESSION.md"))
        self.items = [self._read(i, e) for i, e in markdown.identified(self.parsed, setting.channel)]
        self._memory = markdown.parse(setting.text("MEMORY.md"))
        self._size = len(COMMENTS.sub("", decode(self.parsed.data)))
        self._archived: list[str] = []
        self._settled: list[Item] = []
        self._up: list[Op] = []
        self._changes: list[Op] = []
        self.proposed: list[Outcome] = []
        self.rejected: list[Outcome] = []

    def _read(self, identity: str, entry: markdown.Entry) -> Item:
        raw = decode(self.parsed.data[entry.start : entry.end]).rstrip("\r\n")
        own = bool(entry.id) and entry.facts.get("by") == "updater"
        return Item(identity, entry.trail[-1] if entry.trail else "", entry.text, entry.facts, raw, own)

    def of(self, section: str) -> list[Item]:
        """The items a section holds now."""
        return [item for item in self.items if item.section == section]

    def item(self, identity: str) -> Item | None:
        """The item of that id."""
        return next((item for item in self.items if item.id == identity), None)

    def add(self, section: str, text: str, facts: Mapping[str, str], reason: str = "the session's state") -> None:
        """One more item; the oldest of a full section gives way. What cannot be added is in `rejected`, with why."""
        line = clip(one_line(text), SESSION_ITEM)
        op = Op("note", self._path, line, section, reason=reason)
        if why := self._unwanted(section, line):
            self.rejected.append(Outcome(op, why))
            return
        if section == "Session Title":
            for old in self.of(section):
                self.leave(old, "another title")
        elif len(self.of(section)) >= SESSION_ITEMS:
            self._make_room(section)
        if section != "Session Title" and len(self.of(section)) >= SESSION_ITEMS:
            self.rejected.append(Outcome(op, f"'{section}' is full of what people wrote"))
            return
        item = Item(fresh_id(self._setting.taken), section, line, {**facts, "by": "updater"})
        self.items.append(item)
        self._size += len(line) + 3
        self._changes.append(replace(op, id=item.id, facts=item.facts))

    def _unwanted(self, section: str, line: str) -> str:
        if not line:
            return "its text is empty"
        if guards.duplicate(line, [item.text for item in self.items]):
            return "the session says so already"
        if section == "Session Title" and (self._has_prose(section) or any(not i.own for i in self.of(section))):
            return "a person gave the session its title"
        return guards.unsafe(line, self._setting.patterns, self._setting.allow)

    def _has_prose(self, title: str) -> bool:
        """Whether a section says something that is no item: a person's text."""
        section = next((s for s in self.parsed.sections if s.title == title), None)
        blocks = self.parsed.blocks_of(section) if section else []
        texts = [decode(self.parsed.data[b.start : b.end]) for b in blocks if not b.items]
        return any(COMMENTS.sub("", text).strip() for text in texts)

    def change(self, item: Item, text: str, facts: Mapping[str, str]) -> None:
        """Another text for one of the updater's own items; what it said goes to the archive."""
        line = clip(one_line(text), SESSION_ITEM)
        op = Op("supersede", self._path, line, id=item.id, target=item.id, reason="the session's state")
        others = [other.text for other in self.items if other.id != item.id]
        if not item.own or guards.duplicate(line, [item.text, *others]):
            why = "the session says so already" if item.own else "a person wrote it"
            self.rejected.append(Outcome(op, why))
            return
        if why := guards.unsafe(line, self._setting.patterns, self._setting.allow):
            self.rejected.append(Outcome(op, why))
            return
        self._keep(item)
        self._size += len(line) - len(item.text)
        new = replace(item, text=line, facts={**facts, "by": "updater"})
        self.items = [new if other.id == item.id else other for other in self.items]
        self._put(replace(op, facts=new.facts, needs=self._needs(item)))

    def resolve(self, item: Item) -> None:
        """Marks one of the updater's own items as settled: `promote` moves it to HISTORY."""
        if item.own and not item.resolved:
            facts = {**item.facts, "until": self._setting.today.isoformat()}
            new = replace(item, facts=facts)
            self.items = [new if other.id == item.id else other for other in self.items]
            self._put(Op("mark", self._path, item.text, id=item.id, target=item.id, facts=facts, reason="settled"))

    def leave(self, item: Item, reason: str) -> None:
        """One of the updater's own items goes, as it stood, into the archive."""
        self._keep(item)
        self._gone(item, reason, self._needs(item))

    def settle(self, item: Item) -> None:
        """One of the updater's own items goes into this run's block of HISTORY."""
        self._settled.append(item)
        self._gone(item, "settled", self._setting.path("HISTORY.md"))

    def promote(self, item: Item, kind: str, confidence: str = "", *, trial: str = "") -> None:
        """An item goes up into MEMORY, word for word and under its id; where MEMORY says so already it only leaves.

        A person's item stays where it is and the entry becomes a proposal.
        """
        facts = {
            "kind": kind, "since": item.age or self._setting.today.isoformat(), "src": item.facts.get("src", ""),
            "conf": confidence or item.facts.get("conf", ""), "trial": trial, "by": "updater",
        }  # fmt: skip
        heading = heading_for(kind, self._memory, self._setting.language)
        op = Op(
            "add", self._setting.path("MEMORY.md"), item.text, heading, item.id, facts=facts, reason="it stays true"
        )
        if why := self._unfit(op):
            self.rejected.append(Outcome(op, why))
            return
        voice = item.facts.get("voice", "")
        if voice and not (voice == "assistant" and kind in guards.ASSISTANTS_KINDS):
            self.proposed.append(Outcome(replace(op, id=""), VOICES.get(voice, VOICES["unnamed"])))
            return
        if not item.own:
            self.proposed.append(Outcome(replace(op, id=""), "a person wrote it into SESSION"))
            return
        if guards.duplicate(item.text, [e.text for e in self._memory.entries]):
            self.leave(item, "MEMORY says so already")
            return
        made, held = pairs.paired(op, self._memory, self._setting)
        self.proposed += [held] if held else []
        self._up += made
        if made:
            self._gone(item, "it stays true", op.path)

    def _unfit(self, op: Op) -> str:
        """Why an item may not become an entry; then it stays."""
        if guards.forgotten(self._setting.tombstones, self._setting.key, op.text, [op.facts["src"]]):
            return "it was forgotten before"
        if guards.rejected(self._setting.rejections, self._setting.key, op):
            return "a person rejected it before"
        if guards.duplicate(op.text, self._setting.waiting):
            return "it waits for review already"
        return guards.unsafe(op.text, self._setting.patterns, self._setting.allow)

    def fit(self) -> None:
        """Makes room until the whole is short enough, the least lasting sections first."""
        for section in YIELDING:
            while self._size > CHARACTERS and self._make_room(section):
                continue

    def _make_room(self, section: str) -> bool:
        """Whether one of the updater's items could give way: a settled one, else the oldest."""
        own = sorted((i for i in self.of(section) if i.own and i.raw), key=lambda i: (not i.resolved, i.age))
        if not own:
            return False
        before = len(self.items)
        if section in STICKY and not own[0].resolved:
            self.promote(own[0], STICKY[section])
        if len(self.items) == before:
            self.leave(own[0], "the section was full")
        return True

    def _keep(self, item: Item) -> None:
        if item.section != "Active Files":  # a path is nothing that was said
            self._archived.append(item.raw or markdown.item(item.text, markdown.comment(item.id, item.facts)))

    def _needs(self, item: Item) -> str:
        return "" if item.section == "Active Files" else self._setting.path(ARCHIVE)

    def _gone(self, item: Item, reason: str, needs: str) -> None:
        self.items.remove(item)
        self._size -= len(item.text) + 3
        self._put(Op("invalidate", self._path, target=item.id, reason=reason, needs=needs))

    def _put(self, op: Op) -> None:
        """The last word on an item: an earlier change of this run to it is not made."""
        self._changes = [other for other in self._changes if other.target != op.target]
        self._changes.append(op)

    def ops(self) -> list[Op]:
        """Everything this run changes: the archive, MEMORY and HISTORY first, so that nothing leaves unkept."""
        day, run = self._setting.today.isoformat(), self._setting.run
        found: list[Op] = []
        if self._archived:
            text = f"## {day} SESSION.md, {run}\n\n" + "\n".join(self._archived) + "\n"
            found.append(Op("append", self._setting.path(ARCHIVE), text, reason="what left the session"))
        found += self._up
        if self._settled:
            title = f"{day} {BLOCK_TITLES[self._setting.language if self._setting.language in BLOCK_TITLES else 'en']}"
            text = "\n".join(_settled_line(item) for item in self._settled)
            found.append(Op("block", self._setting.path("HISTORY.md"), text, title, reason="settled work"))
        return found + self._changes


def _settled_line(item: Item) -> str:
    facts = ", ".join(part for part in (item.age, item.facts.get("src", "")) if part)
    return f"- {item.text}" + (f" ({facts})" if facts else "")


def removable(items: Sequence[Item]) -> list[Item]:
    """The items that may leave without having been settled: the updater's own, outside the sections that stay."""
    return [item for item in items if item.own and item.section not in STICKY]
