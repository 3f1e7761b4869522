"""What is written by hand: entries, pinned instructions, notes, skills; each verb makes one plan and applies it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pipimem import contradictions, markdown, notes, standing, update
from pipimem.errors import NotFound, Refused, Usage
from pipimem.skills import Skill, path_of, rewritten, written
from pipimem.standing import Standing
from pipimem.text import decode, nearest, printable
from pipimem.update import guards
from pipimem.update.plan import Applied, Op
from pipimem.workspace import read_data

if TYPE_CHECKING:
    from pipimem.opened import Opened

TARGETS = {"user": "USER.md", "memory": "MEMORY.md"}


def add(
    memory: Opened, text: str, channel: str | None = None, *, target: str = "", kind: str = "fact", heading: str = "",
) -> Applied:  # fmt: skip
    """One more entry in the channel's MEMORY, or in the shared USER or MEMORY; durable at once, still scanned."""
    where, op, templates = addition(memory, text, channel, target, kind, heading)
    memory.refuse_secret(op.text)
    memory.refuse_secret(op.heading)
    if reason := guards.unsafe(op.text) or guards.unsafe(op.heading):
        memory.notes.append(f"It is stored and can be searched, but never recalled on its own: {reason}.")
    return memory.apply(memory.planned(where, [op], templates, "person"))


def addition(
    memory: Opened, text: str, channel: str | None, target: str, kind: str, heading: str
) -> tuple[str, Op, dict[str, bytes]]:
    """The operation that adds an entry, by a person: (channel's id, operation, what missing files start with)."""
    if kind not in update.KINDS:
        raise Usage(f"The kind '{printable(kind)}' is unknown.", f"One of: {', '.join(update.KINDS)}.")
    where, path, templates = _place(memory, channel, target)
    text = markdown.clean(text)
    parsed = markdown.parse(memory.text_of(path, templates))
    name = heading or update.heading_for(kind, parsed, memory.language_of(path))
    facts = {"kind": kind, "since": memory.today(), "by": "person"}
    return where, Op("add", path, text, name, update.fresh_id(memory.taken), facts=facts, reason="asked for"), templates


def pinned(memory: Opened) -> Standing:
    """What STANDING.md pins, and how much of its limits that takes."""
    return standing.read(memory.workspace.read(standing.PATH) or b"")


def pin(memory: Opened, text: str) -> Applied:
    """One more instruction that holds always; a person's to give. Raises `Refused` over the limits."""
    text = markdown.clean(text)
    memory.refuse_secret(text)
    template = f"templates/{memory.workspace.config['workspace.language']}/workspace/{standing.PATH}"
    templates = {standing.PATH: read_data(template)}
    data = memory.text_of(standing.PATH, templates)
    standing.check_room(standing.read(data), text)
    op = Op("note", standing.PATH, text, standing.heading(data), reason="pinned")
    return memory.apply(memory.planned("", [op], templates, "person"))


def unpin(memory: Opened, number: int) -> Applied:
    """Takes the pinned instruction of that number (from 1) out. Raises `NotFound`."""
    entry = standing.numbered(pinned(memory), number)
    known = markdown.identified(markdown.parse(memory.workspace.read(standing.PATH) or b""), "")
    target = next(identity for identity, found in known if found.start == entry.start)
    op = Op("invalidate", standing.PATH, target=target, reason="unpinned")
    return memory.apply(memory.planned("", [op], {}, "person"))


def supersede(memory: Opened, ref: str, text: str) -> Applied:
    """Puts `text` in the place of an entry, under a new id that names the old one. Git keeps the old text.

    The message the old text rested on says something else: the new one rests on none.
    """
    hit, facts = memory.entry_facts(ref)
    text = markdown.clean(text)
    memory.refuse_secret(text)
    facts.update({"since": memory.today(), "by": "person", "supersedes": hit.ref})
    facts.update(dict.fromkeys(("src", "conf", "trial", "until"), ""))
    fresh = update.fresh_id(memory.taken)
    op = Op("supersede", hit.path, text, id=fresh, target=hit.ref, facts=facts, reason="a person said so")
    ops = [op, *contradictions.renamed(memory, hit.ref, fresh)]
    return memory.apply(memory.planned(hit.channel, ops, {}, "person"))


def invalidate(memory: Opened, ref: str) -> Applied:
    """Marks an entry as no longer true: it stays in the file and is never recalled again."""
    hit, facts = memory.entry_facts(ref)
    facts["until"] = (memory.now().date() - timedelta(1)).isoformat()
    own = hit.ref if memory.marked(hit) else update.fresh_id(memory.taken)
    op = Op("mark", hit.path, hit.text, id=own, target=hit.ref, facts=facts, reason="no longer true")
    return memory.apply(memory.planned(hit.channel, [op], {}, "person"))


def promote(memory: Opened, ref: str) -> Applied:
    """Moves an entry of a channel to the shared MEMORY.md, byte for byte and under the same id; only ever by a person.

    Raises `Refused` where it would not read there as it does.
    """
    hit, facts = memory.entry_facts(ref)
    if not hit.channel:
        raise Refused(f"The entry '{hit.ref}' is shared already.", "Nothing was changed.")
    template = f"templates/{memory.workspace.config['workspace.language']}/workspace/MEMORY.md"
    path = memory.workspace.shared_path("MEMORY.md")
    templates = {path: read_data(template)}
    parsed = markdown.parse(memory.text_of(path, templates))
    heading = update.heading_for(facts.get("kind", "fact"), parsed, memory.language_of(path))
    own = hit.ref if memory.marked(hit) else update.fresh_id(memory.taken)
    facts = {"kind": "fact", **facts, "by": "person"}
    ops = [
        Op("add", path, hit.text, heading, own, hit.ref, facts, "promoted", needs=hit.path),
        Op("invalidate", hit.path, target=hit.ref, reason="moved to the shared memory"),
    ]
    return memory.apply(replace(memory.planned(hit.channel, ops, templates, "person"), whole=True))


def note(
    memory: Opened, text: str, channel: str | None = None, *, topic: str = "", at: datetime | None = None
) -> tuple[Applied, str, int]:
    """Appends to the page of today, or of a topic, in the channel's or the shared notes: (applied, path, line)."""
    now = memory.now() if at is None else at.astimezone(memory.now().tzinfo)
    name = topic or f"{now:%Y-%m-%d}"
    found = memory.workspace.channel(channel) if channel is not None else None
    path = notes.path_of(found.path if found else "", name)
    body = notes.body(text)
    for part in (name, body):
        memory.refuse_secret(part)
    if reason := guards.unsafe(name) or guards.unsafe(body):
        memory.notes.append(f"It is stored and can be searched, but never recalled on its own: {reason}.")
    op = Op("block", path, body, notes.heading(name, now), reason="noted")
    applied = memory.apply(memory.planned(found.id if found else "", [op], {path: notes.page(name)}, "person"))
    parsed = markdown.parse(memory.workspace.read(path) or b"")
    line = next((s.line for s in reversed(parsed.sections) if s.title == op.heading), 1)
    return applied, path, line


def page(memory: Opened, name: str, channel: str | None = None) -> tuple[str, str]:
    """The path and text of a note's page: a day (`today` for this one) or a topic. Raises `NotFound`."""
    found = memory.workspace.channel(channel) if channel is not None else None
    path = notes.path_of(found.path if found else "", memory.today() if name == "today" else name)
    data = memory.workspace.read(path)
    if data is None:
        raise NotFound(f"There is no note '{printable(name)}'.", f"It would be '{path}'.")
    return path, memory.redacted(decode(data))


def skills(memory: Opened) -> list[Skill]:
    """Every skill, by name; one that is not valid says why in its `problem`, and is never offered."""
    found = [d.path for d in memory.workspace.scan([]).documents if d.layer == "skill"]
    return [Skill(path, memory.workspace.read(path) or b"") for path in found]


def skill(memory: Opened, name: str) -> Skill:
    """The skill of that name. Raises `NotFound` with the nearest names."""
    known = {s.name: s for s in skills(memory)}
    if name not in known:
        near = ", ".join(nearest(name, known))
        raise NotFound(f"There is no skill '{printable(name)}'.", f"Nearest: {near}." if near else "")
    return known[name]


def add_skill(memory: Opened, name: str, description: str, text: str, when_to_use: str = "") -> Applied:
    """A new skill. Raises `Refused` where one of that name is there, or it would not be valid."""
    path = path_of(name)
    if memory.workspace.read(path) is not None:
        raise Refused(f"There is a skill '{name}' already.", "Change it with 'pipimem skill edit'.")
    return _write_file(memory, path, written(name, description, text, when_to_use), "a new skill")


def edit_skill(memory: Opened, name: str, text: str) -> Applied:
    """Other steps for a skill; its front matter stays byte for byte."""
    path = skill(memory, name).path
    return _write_file(memory, path, rewritten(path, memory.workspace.read(path) or b"", text), "other steps")


def remove_skill(memory: Opened, name: str) -> Applied:
    """Takes a skill out; `undo` brings it back."""
    op = Op("remove", skill(memory, name).path, reason="a person took the skill out")
    return memory.apply(memory.planned("", [op], {}, "person"))


def _write_file(memory: Opened, path: str, data: bytes, reason: str) -> Applied:
    memory.refuse_secret(decode(data))
    return memory.apply(memory.planned("", [Op("file", path, decode(data), reason=reason)], {}, "person"))


def _place(memory: Opened, channel: str | None, target: str) -> tuple[str, str, dict[str, bytes]]:
    """Channel id, path, and the text a missing file starts with, of where an `add` goes."""
    if target:
        if channel is not None or target not in TARGETS:
            raise Usage("Give either a channel or a target (user or memory).", "See 'pipimem add --help'.")
        template = f"templates/{memory.workspace.config['workspace.language']}/workspace/{TARGETS[target]}"
        path = memory.workspace.shared_path(TARGETS[target])
        return "", path, {path: read_data(template)}
    if channel is None:
        raise Usage("Say where it belongs.", "Give --channel ID or --target user|memory.")
    found = memory.workspace.channel(channel)
    return found.id, f"{found.path}/MEMORY.md", memory.templates(found)
