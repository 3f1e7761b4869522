"""What agents write through tools: on trial where it is theirs to write, else a proposal for a person.

A tool writes only the MEMORY of the channel it works in, and changes only what a machine wrote there and nobody
touched. The shared memory, a person's entries, skills and text that reads like an order wait in `review/`; secrets,
hidden characters and what was forgotten or rejected before are refused. How many writes a session may make is the
server's to count.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pipimem import editing, markdown, update
from pipimem.errors import Error, NotFound, Refused
from pipimem.history import REJECTED, TOMBSTONES
from pipimem.index import Hit
from pipimem.opened import wording
from pipimem.skills import rewritten
from pipimem.text import printable
from pipimem.update import dates, guards, review
from pipimem.update.plan import Applied, Op, Outcome

if TYPE_CHECKING:
    from pipimem.opened import Opened

MACHINES = ("updater", "tool")
SHARED = "the shared memory is written by people only"
ODD_BREAK = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What some programs show as a line break and Markdown does not: steps that read one way and are followed another."""


def add(
    memory: Opened, text: str, channel: str | None = None, *, target: str = "", kind: str = "fact", heading: str = "",
) -> Applied:  # fmt: skip
    """One more entry in the channel's MEMORY, on trial; for a shared target, or without a channel, a proposal."""
    shared = target or ("memory" if channel is None else "")
    where, op, templates = editing.addition(memory, text, None if shared else channel, shared, kind, heading)
    op = replace(op, text=_dated(memory, op.text, kind), facts={**op.facts, **_on_trial(memory)})
    _refuse(memory, op)
    reason = _unsafe(memory, op.text) or _unsafe(memory, op.heading) or (SHARED if shared else "")
    return _settled(memory, where, op, templates, reason, said_in=channel)


def supersede(memory: Opened, ref: str, text: str, channel: str | None = None) -> Applied:
    """`text` in the place of an entry in scope, on trial; of an entry that is a person's, a proposal."""
    hit, facts = _found(memory, ref, channel)
    text = _dated(memory, markdown.clean(text), facts.get("kind", ""))
    facts |= {"since": memory.today(), **_on_trial(memory), "supersedes": hit.ref, "conf": "", "until": "", "src": ""}
    fresh = update.fresh_id(memory.taken)
    op = Op("supersede", hit.path, text, id=fresh, target=hit.ref, facts=facts, reason="a tool said so")
    _refuse(memory, op)
    reason = _unsafe(memory, text) or _persons(memory, hit)
    return _settled(memory, hit.channel, op, {}, reason, hit.text, channel)


def invalidate(memory: Opened, ref: str, channel: str | None = None) -> Applied:
    """Marks an entry in scope as no longer true; of an entry that is a person's, a proposal to take it out."""
    hit, facts = _found(memory, ref, channel)
    if facts.get("until", "9999") < memory.today():
        raise Refused(f"The entry '{hit.ref}' holds no longer already.", "Nothing was changed.")
    if reason := _persons(memory, hit):
        op = Op("invalidate", hit.path, target=hit.ref, reason="no longer true")
        _refuse_asked(memory, op, hit.text)
        return _settled(memory, hit.channel, op, {}, reason, hit.text, channel)
    facts["until"] = (memory.now().date() - timedelta(1)).isoformat()
    op = Op("supersede", hit.path, hit.text, id=hit.ref, target=hit.ref, facts=facts, reason="no longer true")
    return _settled(memory, hit.channel, op, {}, "")


def edit_skill(memory: Opened, name: str, text: str, channel: str | None = None) -> Applied:
    """Other steps for a skill, as a proposal: every channel follows a skill. Raises `NotFound`, and `Refused`."""
    found = editing.skill(memory, name)
    memory.refuse_secret(text)
    if ODD_BREAK.search(text) or "hidden" in _unsafe(memory, text):
        raise Refused("The text holds hidden characters.", "Nothing was changed.")
    if text.split() == found.text.split():
        raise Refused(f"The skill '{found.name}' says so already.", "Nothing was changed.")
    rewritten(found.path, memory.workspace.read(found.path) or b"", text)  # raises where it would not be valid
    op = Op("file", found.path, text.strip(), reason="other steps")
    _refuse_asked(memory, op, op.text)
    return _settled(memory, "", op, {}, "skills are followed in every channel", found.text, channel)


def _dated(memory: Opened, text: str, kind: str) -> str:
    """Relative days as dates, counted from today: a tool says a thing when it writes it."""
    return dates.anchored(text, memory.now().date(), coming=kind == "open-loop")


def _on_trial(memory: Opened) -> dict[str, str]:
    ends = memory.now().date() + timedelta(memory.workspace.config["update.trial_days"])
    return {"by": "tool", "trial": ends.isoformat()}


def _found(memory: Opened, ref: str, channel: str | None) -> tuple[Hit, dict[str, str]]:
    """The one entry of that id in scope, with what its comment says; elsewhere it is as good as missing."""
    name = ref.strip().strip("[]").removeprefix("mem:")
    hits = [h for h in memory.passages.lookup(name, memory.scope(channel)) if h.entry]
    if not hits:
        raise NotFound(f"There is no entry '{printable(name)}' in scope.", "Find it with memory_search.")
    if len(hits) > 1:
        places = ", ".join(f"{h.path}:{h.line}" for h in hits)
        raise Refused(f"The id '{printable(name)}' stands in several places: {places}.", "A person must mend that.")
    parsed = markdown.parse(memory.workspace.read(hits[0].path) or b"")
    entry = markdown.entry_by_id(parsed, hits[0].channel, hits[0].ref)
    if entry is None:
        raise NotFound(f"The entry '{hits[0].ref}' is gone.", "Find it with memory_search.")
    hits[0].text = entry.text
    return hits[0], dict(entry.facts)


def _persons(memory: Opened, hit: Hit) -> str:
    """Why an entry is not a tool's to change; "" for what a machine wrote in the channel's MEMORY and still says so.

    Older entries of the updater name their source message and no author.
    """
    if not hit.channel:
        return SHARED
    if hit.layer != "memory" or not memory.marked(hit):
        return "a person wrote the entry"
    machine = hit.author in MACHINES or (not hit.author and bool(memory.source_of(hit)))
    if not machine:
        return "a person wrote the entry"
    return "" if _is_as_written(memory, hit) else "a person may have changed the entry"


def _is_as_written(memory: Opened, hit: Hit) -> bool:
    """Whether a machine wrote the very text: by the record of runs, and where that does not know it, by git."""
    if words := memory.machines_words(hit.ref):
        return wording(hit.text) in words
    try:
        commit = memory.commits.wrote(hit.path, hit.line, hit.line + hit.text.count("\n"))
    except Error:
        return False
    return commit is not None and commit.actor != "person"


def _unsafe(memory: Opened, text: str) -> str:
    config = memory.workspace.config
    return guards.unsafe(text, config["safety.patterns"], config["safety.allow"])


def _refuse(memory: Opened, op: Op) -> None:
    """Raises `Refused` for what no tool may write, nor propose."""
    for part in (op.text, op.heading):
        memory.refuse_secret(part)
        if "hidden" in _unsafe(memory, part):
            raise Refused("The text holds hidden characters.", "Nothing was changed.")
    stones = memory.stones(TOMBSTONES)
    if stones and guards.forgotten(stones, memory.key(), op.text, []):
        # Not why: it may have been forgotten in a channel that whoever asks here knows nothing of.
        raise Refused(f"No tool may note this: “{printable(op.text[:60])}”.", "Only a person can add it.")
    entries = markdown.parse(memory.workspace.read(op.path) or b"").entries
    if guards.duplicate(op.text, (e.text for e in entries)):
        raise Refused(f"'{op.path}' says so already.", "Nothing was changed.")
    _refuse_asked(memory, op, op.text)


def _refuse_asked(memory: Opened, op: Op, text: str) -> None:
    """Raises `Refused` where a person is asked the same already, or said no to it."""
    stones = memory.stones(REJECTED)
    if stones and guards.rejected(stones, memory.key(), op, text):
        raise Refused(f"A person rejected it before: “{printable(text[:60])}”.", "Only a person can do it now.")
    for known in memory.proposals():
        if known.file == op.path and known.target in ("", op.target) and guards.same(known.text, text):
            raise Refused(f"It waits for a person already, as proposal '{known.id}'.", "Nothing was changed.")


def _settled(
    memory: Opened, where: str, op: Op, templates: dict[str, bytes], reason: str, old: str = "",
    said_in: str | None = None,
) -> Applied:  # fmt: skip
    """Writes an operation, or with a `reason` the proposal of it; `old` is the text it acts on, `said_in` the channel
    the tool worked in.
    """
    if not reason:
        return memory.apply(memory.planned(where, [op], templates, "tool"))
    plan = memory.planned(where, [], {}, "tool")
    outcome = Outcome(replace(op, facts={**op.facts, "by": "tool"}), reason)
    made = review.proposal(outcome, f"{plan.run}-1", where, memory.now().date(), old, said_in or "")
    return memory.apply(replace(plan, ops=(made,), base={made.path: None}, proposed=(outcome,)))
