"""Contradictions: two entries that say different things of one subject stand as a visible pair until a person decides.

Nothing is dropped and no date is changed: each of the two names the other in its comment (`conflicts=`), recall gives
neither, and `resolve` settles it. Where a person wrote the older one, the newer only becomes a proposal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.index.words import fold
from pipimem.update import guards
from pipimem.update.grounds import CALENDAR, HAN_NUMERAL, NOT, NUMBER
from pipimem.update.plan import Op, Outcome

if TYPE_CHECKING:
    from pipimem.markdown import Entry
    from pipimem.update import Setting

SAYS = re.compile(
    r"\b(?:is|are|was|were|be|at|on|every|until|from|by|in|uses?|runs|takes|costs?|allows?|means)\b|[:=]"
    r"|[是为在用到叫：]|改成|改为|设为|设成|定在|每",
    re.IGNORECASE,
)
"""Words after which a sentence says something of its subject: a value before the first of them names the subject."""
WEEKDAY = re.compile(r"(?:周|星期|礼拜)[一二三四五六日天]")
VALUE = re.compile(
    rf"{WEEKDAY.pattern}|{NUMBER.pattern}|{HAN_NUMERAL.pattern}|\b(?:{'|'.join(sorted(CALENDAR))})\b", re.IGNORECASE
)
LEAST_SUBJECT = 4
"""Letters a subject must have: shorter ones, such as "it is", name nothing."""


def contradicts(one: str, other: str) -> bool:
    """Whether two sentences say different things of the same subject.

    They do where they are the same but for a value (number, time, weekday) after the word that says it, for one name
    at the end, or for a denial. Sentences that differ in more are left to people.
    """
    if guards.same(one, other):
        return False
    left, right = fold(one), fold(other)
    return _other_values(left, right) or _other_name(one, other) or _denied(left, right)


def _other_values(one: str, other: str) -> bool:
    """The same words with other values, of which the first that differs stands after the word that says it."""
    if guards.plain(VALUE.sub(" VALUE ", one)) != guards.plain(VALUE.sub(" VALUE ", other)):
        return False
    for left, right in zip(VALUE.finditer(one), VALUE.finditer(other), strict=False):
        if left[0] != right[0]:
            return _names_a_subject(one[: left.start()])
    return False


def _names_a_subject(before: str) -> bool:
    said = SAYS.search(before)
    return said is not None and len(guards.plain(before[: said.start()])) >= _least(before)


def _least(text: str) -> int:
    return LEAST_SUBJECT // 2 if any(c >= "\u3400" for c in text) else LEAST_SUBJECT


def _other_name(one: str, other: str) -> bool:
    """The same up to the word that says it, and then one name each, such as `pnpm` and `yarn`."""
    for left, right in itertools.product(_cuts(one), _cuts(other)):
        if guards.plain(left[0]) == guards.plain(right[0]) and guards.plain(left[1]) != guards.plain(right[1]):
            return True
    return False


def _cuts(text: str) -> list[tuple[str, str]]:
    """The sentence before and after its last `is`, where what follows is a single name."""
    found = list(re.finditer(r"\b(?:is|are|uses?)\b|[是用]|[:：=]", text, re.IGNORECASE))
    if not found:
        return []
    before, after = text[: found[-1].end()], text[found[-1].end() :].strip(" `'\".。")
    name = re.fullmatch(r"[A-Za-z][\w.@/+-]*", after) is not None
    return [(before, after)] if name and _names_a_subject(before) else []


def _denied(one: str, other: str) -> bool:
    if bool(NOT.search(one)) == bool(NOT.search(other)):
        return False
    bare = [guards.plain(re.sub(r"\b(?:do|does|did|is|are|should)\b", "", NOT.sub("", text))) for text in (one, other)]
    return bare[0] == bare[1] and len(bare[0]) >= LEAST_SUBJECT


def contradicted(text: str, entries: Sequence[tuple[str, Entry]], today: str) -> tuple[str, Entry] | None:
    """The entry, with its id, that still holds and that `text` contradicts."""
    gone = {e.facts.get("supersedes", "") for _, e in entries}
    for identity, entry in reversed(entries):
        over = "" < entry.facts.get("until", "") < today
        if identity not in gone and not over and not entry.facts.get("conflicts") and contradicts(text, entry.text):
            return identity, entry
    return None


def paired(op: Op, memory: markdown.Parsed, setting: Setting) -> tuple[list[Op], Outcome | None]:
    """An addition as it is to be written: with both marks where it contradicts an entry, or as a proposal instead.

    One that replaces an entry by name (`supersedes`) is no contradiction.
    """
    entries = markdown.identified(memory, setting.channel)
    found = None if op.facts.get("supersedes") else contradicted(op.text, entries, setting.today.isoformat())
    if found is None:
        return [op], None
    identity, entry = found
    if not entry.id or entry.facts.get("by") == "person":
        held = replace(op, op="supersede", target=identity)
        return [], Outcome(held, f"it contradicts the entry '{identity}', which a person wrote")
    marked = Op(
        "mark", op.path, entry.text, id=entry.id, target=entry.id, facts={**entry.facts, "conflicts": op.id},
        reason=f"in conflict with {op.id}",
    )  # fmt: skip
    return [replace(op, facts={**op.facts, "conflicts": entry.id}), marked], None
