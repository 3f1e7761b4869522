"""The refresh job: what is going on now, into SESSION.md. A model says what is new, other, or settled; files touched
and one line of work come from the transcript itself; without a model the rules give what they know.

A model names items by id and messages by number. Decisions, constraints and what a person wants rest on a person's
words; where the work stands and what comes next may rest on the assistant's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipimem.text import decode, one_line, plural
from pipimem.update import SESSION_ITEM, Extracted, Setting, dates, day_of, guards
from pipimem.update.plan import Op, Outcome
from pipimem.update.session import SECTIONS, STICKY, Item, Session
from pipimem.update.window import SPLIT

if TYPE_CHECKING:
    from pipimem.transcript import Message, Transcript
    from pipimem.update.question import Models

PLACES = {
    "open-loop": "Next Steps",
    "correction": "Errors & Corrections",
    "failure": "Errors & Corrections",
}
"""Where what the rules found goes."""
ASKED = tuple(s for s in SECTIONS if s not in ("Active Files", "Worklog"))
"""The sections a model may speak of; the two others are facts of the transcript."""
ASSISTANTS = ("Session Title", "Current State", "Errors & Corrections", "Next Steps")
"""The sections that may rest on the assistant's words alone."""
MOST_OPS, MOST_CITES = 16, 6
FILES, COMMANDS, COMMAND_LIMIT = 5, 3, 120
IDLE = re.compile(
    r"(?:cd|ls|cat|pwd|echo|head|tail|less|find|which|whoami|date|true|git (?:status|diff|log|show|add))\b"
)
"""Commands that only look around."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["ops"],
    "properties": {
        "ops": {
            "type": "array",
            "maxItems": MOST_OPS,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["op", "section", "text", "target", "cites"],
                "properties": {
                    "op": {"type": "string", "enum": ["add", "replace", "resolve"]},
                    "section": {"type": "string", "enum": list(ASKED)},
                    "text": {"type": "string", "maxLength": SESSION_ITEM},
                    "target": {"type": "string", "maxLength": 20, "description": "id of the item, empty for add"},
                    "cites": {
                        "type": "array", "minItems": 1, "maxItems": MOST_CITES, "items": {"type": "integer"},
                    },
                },
            },
        }
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """One operation of a reply, the messages it cites and the item it is about."""

    op: str
    section: str
    text: str
    cited: tuple[Message, ...]
    item: Item | None


def refresh(
    transcript: Transcript, window: Sequence[Message], found: Extracted | None, setting: Setting, models: Models | None
) -> Extracted:  # fmt: skip
    """What SESSION becomes. `found` is what the extraction of the same window gave, where it ran."""
    session = Session(setting)
    new = bool(window) and transcript.ref not in decode(session.parsed.data)
    origin, tokens, fell = "", 0, tuple[str, ...]()
    if models is not None and window and models.of("refresh"):
        origin, tokens, fell = _asked(models, window, session, setting)
    if not origin:
        _by_rules(window, found, session, setting)
    for line in (*_commands(window), *_files(window)):
        if not guards.unsafe(line, setting.patterns, setting.allow):
            session.add("Active Files", line, _facts(window[-1:], setting))
    if new:
        count = len([op for op in found.ops if op.op == "add"]) if found else 0
        remembered = f", {count} remembered" if found else ""
        line = f"{day_of(window)} {transcript.ref}: {plural(len(window), 'message')}{remembered}"
        session.add("Worklog", line, _facts(window[-1:], setting))
    session.fit()
    rejected = tuple(_telling(session.rejected))
    return Extracted(tuple(session.ops()), tuple(session.proposed), rejected, origin or "offline", tokens, fell)


def _telling(rejected: Sequence[Outcome]) -> list[Outcome]:
    """What was left out for another reason than that it stands there already, which is no news of a path."""
    return [o for o in rejected if o.reason != "the session says so already"]


def _by_rules(window: Sequence[Message], found: Extracted | None, session: Session, setting: Setting) -> None:
    """Open loops, corrections and failures, from what the extraction found or from what the rules find now."""
    if found is None:
        from pipimem.update import rules

        found = rules.extract(window, setting)
    by_ref = {m.ref: m for m in window}
    for op in found.ops:
        if op.op == "add" and op.kind in PLACES:
            message = by_ref.get(op.facts.get("src", ""))
            session.add(PLACES[op.kind], op.text, _said([message] if message else [], setting))


def _said(cited: Sequence[Message], setting: Setting) -> dict[str, str]:
    """The same, and whose word it is where no known person said it: such an item never becomes an entry by itself."""
    if not cited or not guards.unsure_voice(cited, "", group=setting.kind == "group"):
        return _facts(cited, setting)
    roles = {m.role for m in cited}
    voice = "unnamed" if "user" in roles else "tool" if "tool" in roles else "assistant"
    return {**_facts(cited, setting), "voice": voice}


def _facts(cited: Sequence[Message], setting: Setting) -> dict[str, str]:
    """Since when an item holds and which message it is from."""
    if not cited:
        return {"since": setting.today.isoformat()}
    first = next((m for m in cited if m.role == "user"), cited[0])
    stamps = [stamp for m in cited if (stamp := dates.when(m.time))]
    since = max(stamps).date() if stamps else setting.today
    return {"since": since.isoformat(), "src": first.ref}


def _files(window: Sequence[Message]) -> list[str]:
    """The last files the agent's tools named, newest last."""
    named = [os.path.normpath(f) for m in window for f in m.files]
    return list(dict.fromkeys(reversed(named)))[:FILES][::-1]


def _commands(window: Sequence[Message]) -> list[str]:
    """The last commands the agent ran that do more than look around, newest last."""
    run = [one_line(c) for m in window for c in m.commands]
    telling = [f"`{c}`" for c in run if len(c) <= COMMAND_LIMIT and "`" not in c and not IDLE.match(c)]
    return list(dict.fromkeys(reversed(telling)))[:COMMANDS][::-1]


# By a model


def _asked(
    models: Models, window: Sequence[Message], session: Session, setting: Setting
) -> tuple[str, int, tuple[str, ...]]:
    """Does what the first usable reply says: the model's name ("" for none), tokens, and what fell."""
    from pipimem.update import question

    shown = question.newest(window)
    parts = ["# Session now", *_lines(session), "", *question.talk(shown, setting)]
    answer = question.ask("refresh", models, setting, parts, SCHEMA, lambda value: _validated(value, shown, session))
    session.rejected += question.left_out(answer, setting.path("SESSION.md"))
    if answer.usable and (older := len(question.told(window)) - len(shown)):
        why = f"{plural(older, 'older message')} of the conversation did not fit what a model is shown of it"
        session.rejected.append(Outcome(Op("note", setting.path("SESSION.md")), why))
    for wanted in answer.value or ():
        _do(wanted, session, setting)
    return answer.model if answer.usable else "", answer.tokens, answer.failures


def _lines(session: Session) -> list[str]:
    """The sections a model may speak of, each item with its id and whose it is."""
    lines = []
    for section in ASKED:
        lines.append(f"## {section}")
        for item in session.of(section):
            mark = " (written by a person)" if not item.own else " (settled)" if item.resolved else ""
            lines.append(f"[{item.id}]{mark} {one_line(item.text)}")
    return lines


def _validated(value: Any, shown: Sequence[Message], session: Session) -> tuple[list[Wanted] | None, list[str]]:
    """The operations of a reply that mean something certain, and what is wrong with the others."""
    from pipimem.llm.shape import fit

    fitted, errors = fit(value, SCHEMA)
    if fitted is None:
        return None, errors
    wanted = []
    for number, row in enumerate(fitted.get("ops", ())):
        try:
            wanted.append(_wanted(row, shown, session))
        except ValueError as wrong:
            errors.append(f"ops[{number}]: {wrong}")
    return (None if errors and not wanted else wanted), errors


def _wanted(row: Mapping[str, Any], shown: Sequence[Message], session: Session) -> Wanted:
    from pipimem.update import question

    cited = question.cited(row["cites"], shown)
    item = None if row["op"] == "add" else session.item(row["target"].strip().strip("[]"))
    if row["op"] != "add" and item is None:
        raise ValueError("its target is no item of the session")
    if row["op"] != "resolve" and not row["text"].strip():
        raise ValueError("its text is empty")
    return Wanted(row["op"], item.section if item else row["section"], row["text"], cited, item)


def _do(wanted: Wanted, session: Session, setting: Setting) -> None:
    """One operation past the guards; what may not be done is in the session's `rejected`."""
    section, item = wanted.section, wanted.item
    if wanted.op == "resolve" and item is not None:
        why = _not_settled(wanted, setting) if item.own else "a person wrote it"
        if why:
            session.rejected.append(Outcome(_op(wanted, setting), why))
        else:
            session.resolve(item)
        return
    text, why = _checked(wanted, session, setting)
    if why:
        session.rejected.append(Outcome(_op(wanted, setting), why))
    elif item is not None:
        session.change(item, text, _said(wanted.cited, setting))
    else:
        session.add(section, text, _said(wanted.cited, setting))


def _op(wanted: Wanted, setting: Setting) -> Op:
    names = {"add": "note", "replace": "supersede", "resolve": "invalidate"}
    target = wanted.item.id if wanted.item else ""
    return Op(names[wanted.op], setting.path("SESSION.md"), one_line(wanted.text), wanted.section, target=target)


def _not_settled(wanted: Wanted, setting: Setting) -> str:
    """Why what is cited does not settle an item: nobody who may say so spoke of it."""
    from pipimem.update.grounds import units

    assert wanted.item is not None
    spoken = [m for m in wanted.cited if units(m.text) & units(wanted.item.text)]
    if not spoken or not _speaks_of(wanted):
        return "nothing that is cited speaks of it"
    kind = "insight" if wanted.section in ASSISTANTS else ""
    return guards.unsure_voice(spoken, kind, group=setting.kind == "group")


def _speaks_of(wanted: Wanted) -> bool:
    """Whether one sentence that is cited shares enough words with the item: of an item that stays until it is settled
    at least two, of any other one.
    """
    from pipimem.update.grounds import units

    assert wanted.item is not None
    mine = units(wanted.item.text)
    least = min(len(mine), 2) if wanted.section in STICKY else 1
    return any(len(units(part) & mine) >= least for m in wanted.cited for part in SPLIT.split(m.text))


def _checked(wanted: Wanted, session: Session, setting: Setting) -> tuple[str, str]:
    """The text with its days as dates, and why it may not stand ("" when it may).

    What takes the place of a lasting item must be all in the cited messages, of any other in them and in the item.
    """
    facts = {"kind": "insight" if wanted.section in ASSISTANTS else "fact"}
    op = Op("add", setting.path("SESSION.md"), one_line(wanted.text), wanted.section, facts=facts)
    known = guards.Known(
        tombstones=tuple(setting.tombstones), key=setting.key, group=setting.kind == "group",
        patterns=setting.patterns, allow=setting.allow, present=wanted.section not in STICKY,
    )  # fmt: skip
    if wanted.item and wanted.section in STICKY and not _speaks_of(wanted):
        return op.text, "nothing that is cited speaks of it"
    old = [wanted.item.text] if wanted.item and wanted.section not in STICKY else []
    verdict = guards.check(op, wanted.cited, known, old)
    return verdict.op.text, "" if verdict.outcome == "write" else verdict.reason
