"""Memories of other systems, taken over: items → one plan, with what is left out and why. Their files only get read.

What each system's files hold is importers/memories'; the plan goes the way of every plan.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipimem import markdown, notes, safety, update
from pipimem.errors import Refused, Usage
from pipimem.history import REJECTED, TOMBSTONES
from pipimem.importers import memories
from pipimem.text import clip, decode, one_line, printable
from pipimem.update import guards, review
from pipimem.update.plan import Op, Outcome
from pipimem.workspace import read_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipimem.importers.memories import Item
    from pipimem.opened import Opened
    from pipimem.update.plan import Applied, Plan
    from pipimem.workspace import Change, Channel

STAMP = re.compile(r"\A[\[(*_]{0,4}\d{4}-\d\d-\d\d[ T]?[\d:.Z+]*[\])*_]{0,4}[ \t]*[:：–-]?[ \t]*")
SAID = "the memory says so already"
PRIVATE = "[redacted:private]"
HEADING = 80  # characters of a heading that is taken over


@dataclass(frozen=True, slots=True)
class Adopted:
    """What came of it. `kept` counts what is written (memory, user, history, note), `proposed` what waits in review/.

    `left` names each thing that is not taken: (its place there, why). `applied` is None where nothing was written.
    """

    source: str
    path: str
    plan: Plan | None
    changes: tuple[Change, ...]
    applied: Applied | None
    kept: Mapping[str, int]
    proposed: int
    left: Sequence[tuple[str, str]]

    @property
    def skipped(self) -> dict[str, int]:
        """How many things are not taken, by reason."""
        counts: dict[str, int] = {}
        for _, why in self.left:
            counts[why] = counts.get(why, 0) + 1
        return counts


def adopt(
    memory: Opened, source: str, path: str, *, channel: str | None = None, target: str = "", dry_run: bool = False
) -> Adopted:
    """Takes the memory of another system over into a channel, or with `target="memory"` into the shared layer."""
    if (channel is None) == (not target) or target not in ("", "memory"):
        raise Usage("Say where it belongs.", "Give --channel ID or --target memory.")
    memory.workspace.trust()
    folder = memories.opened(path)
    if os.path.realpath(folder.root) == os.path.realpath(memory.workspace.root):
        raise Usage(f"'{printable(path)}' is this workspace itself.", "Its files are read as they stand.")
    taking = _Taking(memory, source, memory.workspace.channel(channel) if channel is not None else None)
    for item in memories.named(source).read(folder):
        taking.take(item)
    taking.close()
    plan = taking.plan(os.path.basename(folder.root))
    left = [*folder.left, *taking.left]
    if not plan.ops:
        return Adopted(source, path, None, (), None, {}, 0, left)
    if dry_run:
        return _report(source, path, plan, memory.preview(plan), None, taking, left)
    applied = memory.apply(plan)
    return _report(source, path, applied.plan, applied.changes, applied, taking, left)


def _report(
    source: str, path: str, plan: Plan, changes: Sequence[Change], applied: Applied | None, taking: _Taking,
    left: list[tuple[str, str]],
) -> Adopted:  # fmt: skip
    refused = [(o.op.facts.get("src", "") or o.op.path, _because(o.reason)) for o in plan.rejected]
    kept: dict[str, int] = {}
    for op in plan.ops:
        if op.op != "proposal":
            layer, count = taking.counted[op.path, op.heading, op.text]
            kept[layer] = kept.get(layer, 0) + count
    proposed = sum(op.op == "proposal" for op in plan.ops)
    return Adopted(source, path, plan, tuple(changes), applied, kept, proposed, [*left, *refused])


def _because(reason: str) -> str:
    return reason.rstrip(".")


class _Taking:
    """Items one by one into operations; what may not be written is named in `left`."""

    def __init__(self, memory: Opened, source: str, channel: Channel | None) -> None:
        self.memory = memory
        self.source = source
        self.channel = channel
        self.left: list[tuple[str, str]] = []
        self.ops: list[Op] = []
        self.held: list[Outcome] = []
        self.counted: dict[tuple[str, str, str], tuple[str, int]] = {}
        self._pages: dict[str, list[Item]] = {}
        config = memory.workspace.config
        self._patterns, self._allow = config["safety.patterns"], config["safety.allow"]
        self._templates = self._shared() if channel is None else dict(memory.templates(channel))
        key_file = memory.workspace.private("state", "key")
        self._key = memory.key() if os.path.exists(key_file) else b""
        self._stones, self._rejected = memory.stones(TOMBSTONES), memory.stones(REJECTED)
        self._waiting = _Said(p.text for p in memory.proposals())
        self._said: dict[str, _Said] = {}
        self._languages: dict[str, str] = {}
        self._parsed: dict[str, markdown.Parsed] = {}

    def _shared(self) -> dict[str, bytes]:
        language = self.memory.workspace.config["workspace.language"]
        names = ("MEMORY.md", "USER.md")
        return {self._file(name): read_data(f"templates/{language}/workspace/{name}") for name in names}

    def take(self, item: Item) -> None:
        """One item: a part of a page waits for the others, anything else is an operation at once, or left."""
        why = self._unwanted(item)
        if why:
            self.left.append((item.place, why))
        elif item.layer == "note":
            self._pages.setdefault(item.page, []).append(item)
        elif item.layer == "history":
            self._event(item)
        else:
            self._entry(item)

    def close(self) -> None:
        """The pages, each as one operation with the parts that are not there yet."""
        for name, items in self._pages.items():
            self._page(name, items)

    def _unwanted(self, item: Item) -> str:
        """Why it may not be taken at all."""
        text = f"{item.front}\n{item.heading}\n{item.text}"
        if not item.text.strip():
            return "it is empty"
        if PRIVATE in item.text and item.layer != "note":
            return "it is marked as private"
        if found := safety.secrets(text, self._patterns, self._allow):
            return f"it holds a secret ({found[0].kind.partition(':')[2]})"
        if safety.hidden(text):
            return "it holds hidden characters"
        if markdown.conflict_line(item.text.encode("utf-8", "replace")):
            return "it has conflict markers"
        return self._unwelcome(item)

    def _unwelcome(self, item: Item) -> str:
        """Why a person does not want it, or need not see it again."""
        sources = [] if self._key else [self._src(item)]
        if guards.forgotten(self._stones, self._key, item.text, sources):
            return "it was forgotten before"
        path = self._file("USER.md" if item.layer == "user" else "MEMORY.md")
        if guards.rejected(self._rejected, self._key, Op("add", path, item.text)):
            return "a person rejected it before"
        return "it waits for review already" if self._waiting.holds(item.text) else ""

    def _src(self, item: Item) -> str:
        return f"{self.source}:{item.place}"

    def _entry(self, item: Item) -> None:
        path = self._file("USER.md" if item.layer == "user" else "MEMORY.md")  # which groups are not given
        try:
            text = markdown.clean(item.text)
        except Refused:
            self.left.append((item.place, f"it has more than {markdown.ENTRY_LIMIT:,} characters"))
            return
        if self._known(path).holds(text):
            self.left.append((item.place, SAID))
            return
        self._known(path).add(text)
        heading, kind = self._placed(path, item)
        facts = {"kind": kind, "since": min(item.day or "9", self.memory.today()), "src": self._src(item), "by": "tool"}
        identity = update.fresh_id(self.memory.taken)
        self._put(Op("add", path, text, heading, identity, facts=facts, reason=f"adopted from {self.source}"), item)

    def _placed(self, path: str, item: Item) -> tuple[str, str]:
        """The section and the kind of an entry: its own heading where that can be used, else the kind's."""
        parsed = self._parse(path)
        named = next((k for k, titles in update.HEADINGS.items() if item.heading in titles), "")
        kind = item.kind if item.kind in update.KINDS else named or "fact"
        usual = update.heading_for(kind, parsed, self._language(path))
        heading = clip(one_line(item.heading), HEADING).strip("# ")
        fits = [s for s in parsed.sections if s.title == heading]
        return (heading if heading and not named and len(fits) < 2 and " > " not in heading else usual), kind

    def _language(self, path: str) -> str:
        if path not in self._languages:
            self._languages[path] = self.memory.language_of(path)
        return self._languages[path]

    def _event(self, item: Item) -> None:
        """A block of HISTORY; the shared layer has none, so there it is a part of that day's page."""
        day = min(item.day or self.memory.today(), self.memory.today())
        title = item.heading or f"{day} {clip(one_line(STAMP.sub('', item.text)), 60)}"
        path = self._file("HISTORY.md") if self.channel else notes.path_of("", day)
        if self.channel is None:
            self._templates.setdefault(path, notes.page(day))
        if self._known(path).within(item.text):
            self.left.append((item.place, SAID))
            return
        self._known(path).append(item.text)
        lines = item.text if item.text.lstrip().startswith(("-", "*", "+")) else f"- {one_line(item.text)}"
        text = f"{lines}\n- Evidence: {self._src(item)}"
        self._put(Op("block", path, text, title, reason=f"adopted from {self.source}"), item)

    def _page(self, name: str, items: Sequence[Item]) -> None:
        path = f"{self.channel.path}/memory/{name}.md" if self.channel else f"memory/{name}.md"
        if not self.memory.workspace.is_document(path):
            self.left += [(item.place, "its name cannot be a note's") for item in items]
            return
        fresh = []
        for item in items:
            if self._known(path).within(item.text):
                self.left.append((item.place, SAID))
            elif safety.instructions(item.text):
                _, _, body = item.text.partition("\n") if item.heading else ("", "", item.text)
                self._put(Op("block", path, body.strip(), item.heading or name, facts={"src": self._src(item)}), item)
            else:
                fresh.append(item)
        if not fresh:
            return
        new = self.memory.workspace.read(path) is None
        text = (fresh[0].front if new else "") + "\n\n".join(item.text for item in fresh) + "\n"
        op = Op("append", path, text, reason=f"adopted from {self.source}")
        self.ops.append(op)
        self.counted[op.path, op.heading, op.text] = "note", len(fresh)

    def _put(self, op: Op, item: Item) -> None:
        """Into the plan, or where it reads like an order, into review."""
        if safety.instructions(f"{op.heading}\n{op.text}"):
            self.held.append(Outcome(op, "it reads like an order to the assistant"))
            self._waiting.add(item.text)
            return
        self.ops.append(op)
        self.counted[op.path, op.heading, op.text] = item.layer, 1

    def _file(self, name: str) -> str:
        return f"{self.channel.path}/{name}" if self.channel else self.memory.workspace.shared_path(name)

    def _parse(self, path: str) -> markdown.Parsed:
        if path not in self._parsed:
            self._parsed[path] = markdown.parse(self.memory.text_of(path, self._templates))
        return self._parsed[path]

    def _known(self, path: str) -> _Said:
        if path not in self._said:
            data = self.memory.text_of(path, self._templates)
            self._said[path] = _Said((e.text for e in self._parse(path).entries), decode(data))
        return self._said[path]

    def plan(self, name: str) -> Plan:
        """All of it as one plan, what is held back as proposals."""
        today, where = self.memory.now().date(), self.channel.id if self.channel else ""
        used = {op.path for op in self.ops}
        templates = {p: t for p, t in self._templates.items() if self.channel is not None or p in used}
        plan = self.memory.planned(where, self.ops, templates, "person")
        held = [review.proposal(o, f"{plan.run}-{n}", where, today) for n, o in enumerate(self.held, 1)]
        base = {**plan.base, **{op.path: None for op in held}}
        return replace(
            plan, origin=self.source, ops=(*plan.ops, *held), base=base, proposed=tuple(self.held),
            source=f"{self.source}:{one_line(name)}",
        )  # fmt: skip


class _Said:
    """What a file says already: its entries, and its text."""

    def __init__(self, texts: Iterable[str], whole: str = "") -> None:
        self._entries = guards.Said(texts)
        self.holds, self.add = self._entries.holds, self._entries.add
        self._whole = _flat(whole)

    def append(self, text: str) -> None:
        """More text at the file's end."""
        self._whole += "\0" + _flat(text)

    def within(self, text: str) -> bool:
        """Whether the file has the text, white space apart."""
        return _flat(text) in self._whole


def _flat(text: str) -> str:
    return "".join(text.split())
