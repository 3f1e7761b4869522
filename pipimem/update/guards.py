"""What stands between a wanted operation and a file: pure checks, each with the reason people read.

A guard never invents a text: it lets an operation through, turns it into a proposal, or refuses it; a deletion that a
contradiction called for becomes a replacement in the speaker's own words. What a text may say is what its evidence
says: the messages and entries it cites, with their relative days as dates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipimem import safety
from pipimem.index.stems import stem
from pipimem.index.words import fold
from pipimem.text import encode, keyed_digest
from pipimem.update import dates
from pipimem.update.grounds import CALENDAR, DOUBTED, NOT, NUMBER, Evidence, open_ended, ungrounded, units, unsettled
from pipimem.update.window import SPLIT

if TYPE_CHECKING:
    from pipimem.markdown import Entry
    from pipimem.transcript import Message
    from pipimem.update.plan import Op

NEAR = 0.85
LEAST = 8  # characters from which nearly equal texts are the same
PLAIN = re.compile(r"[\W_]+")
STRETCH = re.compile(r"(turn:.+)\.(\d+)-(\d+)")
PLACES = frozenset(
    "over under above below before after in out on off up down with without from to inside outside".split()
)
VALUES = re.compile(
    r"[周期拜][一二三四五六日天]|[零一二两三四五六七八九十百千]{1,5}(?=[点号日月年天小个分秒万])"
    rf"|\b(?:{'|'.join(sorted(CALENDAR))})\b"
)


def plain(text: str) -> str:
    """`text` for comparing: folded, without punctuation and spaces; equal means said again."""
    return PLAIN.sub("", fold(text))


def same(one: str, other: str) -> bool:
    """Whether two entries say the same: equal when plain, or nearly so with the same numbers and denials.

    Nearly: character triples shared by at least 0.85 of their union. A different number or weekday is a different
    fact, and so is one with "not", or with another name or word in the place of one.
    """
    a, b = plain(one), plain(other)
    if a == b:
        return True
    if min(len(a), len(b)) < LEAST or NUMBER.findall(one) != NUMBER.findall(other):
        return False
    if bool(NOT.search(one)) != bool(NOT.search(other)):
        return False
    return _near(_triples(a), _triples(b)) and _same_values(one, other)


def _near(left: set[str], right: set[str]) -> bool:
    shared = len(left & right)
    return shared >= NEAR * (len(left) + len(right) - shared)


def _same_values(one: str, other: str) -> bool:
    """Whether weekdays, months and Han numerals are the same, in the same order, and no word stands for another."""
    if VALUES.findall(fold(one)) != VALUES.findall(fold(other)):
        return False
    left, right = _words(one), _words(other)
    return left <= right or right <= left


def _words(text: str) -> set[str]:
    """The content of a text, and the words that say where or when: over is not under."""
    return {stem(unit) for unit in units(text)} | (PLACES & set(re.findall(r"[a-z]+", fold(text))))


def _triples(text: str) -> set[str]:
    return {text[i : i + 3] for i in range(len(text) - 2)}


def duplicate(text: str, others: Iterable[str]) -> bool:
    """Whether one of `others` says the same."""
    return any(same(text, other) for other in others)


class Said:
    """Entries against which many texts are held: answers as `duplicate` does, each text folded once."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._plain: set[str] = set()
        self._alike: dict[tuple[tuple[str, ...], bool], list[tuple[set[str], str]]] = {}
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """One more entry."""
        found = plain(text)
        self._plain.add(found)
        if len(found) >= LEAST:
            self._alike.setdefault(self._kind(text), []).append((_triples(found), text))

    def holds(self, text: str) -> bool:
        """Whether an entry says the same; only those with the same numbers and denials are compared."""
        found = plain(text)
        if found in self._plain:
            return True
        mine = _triples(found) if len(found) >= LEAST else set()
        near = self._alike.get(self._kind(text), ()) if mine else ()
        return any(_near(mine, triples) and _same_values(text, other) for triples, other in near)

    def _kind(self, text: str) -> tuple[tuple[str, ...], bool]:
        return tuple(NUMBER.findall(text)), bool(NOT.search(text))


def unsafe(text: str, patterns: Sequence[str] = (), allow: Sequence[str] = ()) -> str:
    """Why `text` may not be written by a machine, "" when it may."""
    verdict = safety.verdict(text, patterns, allow)
    reasons = {
        "secret": "it holds a secret",
        "hidden": "it holds hidden characters",
        "instruction": "it reads like an order to the assistant",
    }
    return ", ".join(reasons[v] for v in verdict.split(",") if v)


FORGOTTEN_SHARE, SIGNATURE_LEAST = 0.8, 3


def tombstone(key: bytes, identity: str, text: str, sources: Sequence[str]) -> str:
    """The line that remembers a forgotten entry without its text: id, keyed digest and signature, source messages."""
    row = {
        "id": identity, "digest": keyed_digest(key, encode(plain(text))), "signature": sorted(signature(key, text)),
        "sources": list(sources),
    }  # fmt: skip
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def signature(key: bytes, text: str) -> set[str]:
    """Keyed digests (8 hex characters) of the folded words, numbers and Han pairs of `text`; empty without a key."""
    return {keyed_digest(key, encode(unit))[:8] for unit in units(text)} if key else set()


def forgotten(lines: Iterable[str], key: bytes, text: str, sources: Sequence[str]) -> bool:
    """Whether a candidate was forgotten before: the same words, at least 0.8 of them, or the same source message.

    The share is of the smaller of both signatures; one of fewer than three units counts only when it is equal. Lines
    without a signature (older ones) are compared by digest. Without the key only sources count.
    """
    return Forgotten(lines, key).covers(text, sources)


class Forgotten:
    """The tombstones of a workspace, read once: whether a text or its source was forgotten before.

    A tombstone that names a whole conversation (`engine:session`) covers each of its messages.
    """

    __slots__ = ("_digests", "_key", "_signatures", "_sources")

    def __init__(self, lines: Iterable[str], key: bytes) -> None:
        self._key = key
        self._digests: set[str] = set()
        self._signatures: list[set[str]] = []
        self._sources: set[str] = set()
        for row in _rows(lines):
            named, signs = row.get("sources"), row.get("signature")
            self._sources |= set(map(str, named)) if isinstance(named, list) else set()
            self._digests |= {str(row["digest"])} if row.get("digest") else set()
            self._signatures += [set(map(str, signs))] if isinstance(signs, list) and signs else []

    def __bool__(self) -> bool:
        return bool(self._digests or self._sources)

    def rests(self, source: str) -> bool:
        """Whether the message, or the conversation it belongs to, was forgotten."""
        return source in self._sources or any(within(source, known) for known in self._sources)

    def covers(self, text: str, sources: Sequence[str] = ()) -> bool:
        """Whether a text was forgotten: its own words, at least 0.8 of them, or its source."""
        if any(map(self.rests, sources)):
            return True
        if not self._key:
            return False
        if keyed_digest(self._key, encode(plain(text))) in self._digests:
            return True
        mine = signature(self._key, text)
        return any(_alike(mine, theirs) for theirs in self._signatures)


def within(source: str, whole: str) -> bool:
    """Whether a message (`engine:session#message`) belongs to a conversation (`engine:session`).

    Of recorded turns a conversation is a stretch, `turn:NAME.FIRST-LAST`, and its messages are `turn:NAME#NUMBER`.
    """
    session, mark, number = source.partition("#")
    if not mark or "#" in whole:
        return False
    if session == whole:
        return True
    stretch = STRETCH.fullmatch(whole)
    return bool(
        stretch and stretch[1] == session and number.isdecimal() and int(stretch[2]) <= int(number) <= int(stretch[3])
    )


FORGETTINGS = ("forget", "invalidate")
REORDERED_SHARE = 0.7  # of the words, where the letters are the same


def rejection(key: bytes, identity: str, op: Op, text: str) -> str:
    """The line that remembers, without its text, what a person rejected: as a tombstone, with the file it was for and
    whether it took something out, and with what tells another fact in nearly the same words.
    """
    row = json.loads(tombstone(key, identity, text, []))
    row |= {"file": op.path, "op": op.op, "values": _values(key, text), "letters": _letters(key, text)}
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def rejected(lines: Iterable[str], key: bytes, op: Op, said: str = "") -> bool:
    """Whether a person rejected the same before: to write this text (`said` where the operation has none) into that
    file, or to take it out of there.

    The same are equal words; also four fifths of them, or in another order, with the same numbers, days and denials.
    Of a whole file only equal words count. Lines without a file (older ones) count for every file.
    """
    text = op.text or said
    if not key:
        return False
    digest, mine = keyed_digest(key, encode(plain(text))), signature(key, text)
    values, letters = _values(key, text), _letters(key, text)
    for row in _rows(lines):
        if row.get("file", op.path) != op.path or (row.get("op") in FORGETTINGS) != (op.op in FORGETTINGS):
            continue
        if row.get("digest") == digest:
            return True
        signs = row.get("signature")
        theirs = set(map(str, signs)) if isinstance(signs, list) else set()
        if op.op == "file" or row.get("values", values) != values:
            continue
        if _alike(mine, theirs, REORDERED_SHARE if row.get("letters") == letters else FORGOTTEN_SHARE):
            return True
    return False


def _values(key: bytes, text: str) -> str:
    said = fold(text)
    return keyed_digest(key, encode(repr((NUMBER.findall(said), VALUES.findall(said), bool(NOT.search(text))))))


def _letters(key: bytes, text: str) -> str:
    return keyed_digest(key, encode("".join(sorted(plain(text)))))


def _rows(lines: Iterable[str]) -> Iterable[dict[str, object]]:
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _alike(mine: set[str], theirs: set[str], share: float = FORGOTTEN_SHARE) -> bool:
    least = min(len(mine), len(theirs))
    return least >= SIGNATURE_LEAST and len(mine & theirs) >= share * least


# Who said it, and what it does to the memory

ASSISTANTS_KINDS = ("failure", "lesson", "tool-quirk", "insight")
REMOVALS = ("forget", "invalidate", "supersede")
REMOVED_SHARE = 0.2
ASKED_TO_FORGET = re.compile(
    r"\b(?:forget|don['’]t remember|do not remember|delete|remove|erase)\b"
    r"|忘掉|忘记|忘了|别再记|不用再记|不要再记|删掉|删除|去掉",
    re.IGNORECASE,
)


def unsure_voice(cited: Sequence[Message], kind: str, *, group: bool) -> str:
    """Why what was cited is not enough for more than a proposal: tool or page text, a voice without a name in a group,
    the assistant's own words (but for what broke and why). "" where a person said it.
    """
    people = [m for m in cited if m.role == "user"]
    if any(m.name or not group for m in people):
        return ""
    if people:
        return "nobody knows who said it"
    if any(m.role == "assistant" for m in cited) and not any(m.role == "tool" for m in cited):
        return "" if kind in ASSISTANTS_KINDS else "only the assistant said it"
    return "only a tool or a page said it"


def in_place_of_removal(op: Op, entry: Entry, cited: Sequence[Message]) -> Op | None:
    """The replacement a contradiction calls for where `op` would delete: what a person said instead, word for word.

    None where somebody asked to forget, or nothing that was cited speaks of the entry for certain: then a person
    decides.
    """
    for message in cited:
        shared = units(message.text) & units(entry.text)
        if any(open_ended(part) for part in SPLIT.split(message.text)):
            continue
        if message.role != "user" or not shared or len(message.text) > 300 or ASKED_TO_FORGET.search(message.text):
            continue
        stamp = dates.when(message.time)
        text = " ".join(message.text.split()).rstrip("。. ")
        text = dates.anchored(text, stamp.date()) if stamp else text
        if stamp or not dates.relative(text):
            kind = op.kind or entry.facts.get("kind", "") or "correction"
            facts = {**op.facts, "kind": kind, "supersedes": op.target}
            return replace(op, op="supersede", text=text, facts=facts, reason="what was said in its place")
    return None


def removes_too_much(ops: Sequence[Op], entries: Sequence[Entry]) -> bool:
    """Whether a run's removals come to more than a fifth of the entries, or of their characters; one is always allowed.

    A replaced entry is one that is removed: recall does not give it again.
    """
    old = {e.id: len(e.text) for e in entries if e.id}
    gone = {op.target for op in ops if op.op in REMOVALS and op.target in old}
    lost, total = sum(old[identity] for identity in gone), sum(len(e.text) for e in entries)
    return len(gone) > 1 and (len(gone) > REMOVED_SHARE * len(entries) or lost > REMOVED_SHARE * total)


@dataclass(frozen=True, slots=True)
class Known:
    """What an operation is held against: the memory's entries, what was recalled into the talk, what waits in review,
    what was forgotten (`tombstones`, `key`), the kind of channel, and the scanner's own patterns. `present` says that
    it is for what is going on, which may be a question or a doubt.
    """

    entries: Sequence[Entry] = ()
    recalled: Sequence[str] = ()
    waiting: Sequence[str] = ()
    tombstones: Sequence[str] = ()
    key: bytes = b""
    group: bool = False
    present: bool = False
    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of an operation: `write`, `review` or `refuse`, and why ("" when it is simply written).

    `op` is the operation to go on with: the one given, or the replacement that took a deletion's place.
    """

    outcome: str
    reason: str
    op: Op


def check(op: Op, cited: Sequence[Message], known: Known, also: Sequence[str] = ()) -> Verdict:
    """The verdict on one operation (add, supersede, invalidate, forget) of a reply, by the messages it cites.

    `also` holds the texts of the entries it cites, where a job may rest on entries (promotion).

    Pure; the order of the checks is fixed: what may never be written first, what a person must see after it.
    """
    targets = {e.id: e for e in known.entries if e.id}
    if op.op != "add" and op.target not in targets:
        return Verdict("refuse", f"there is no entry '{op.target}'", op)
    if not cited:
        return Verdict("refuse", "it cites no message", op)
    if op.op in ("forget", "invalidate"):
        return _check_removal(op, targets[op.target], cited, known)
    op = _dated(op, cited)
    if reason := _never(op, cited, known, also):
        return Verdict("refuse", reason, op)
    reason = unsure_voice(cited, op.kind, group=known.group)
    reason = unsafe(op.text, known.patterns, known.allow) or reason or _persons(op, targets)
    reason = reason or (_another(op, targets) if op.op == "supersede" else "")
    if not known.present and op.kind != "open-loop":
        reason = reason or unsettled(op.text, Evidence(tuple(cited), tuple(also)))
    return Verdict("review" if reason else "write", reason, op)


def _dated(op: Op, cited: Sequence[Message]) -> Op:
    """Relative days as dates, counted from the last cited message a person wrote."""
    stamps = [stamp for m in cited if m.role == "user" and (stamp := dates.when(m.time))]
    if not stamps:
        return op
    return replace(op, text=dates.anchored(op.text, stamps[-1].date(), coming=op.kind == "open-loop"))


def _check_removal(op: Op, entry: Entry, cited: Sequence[Message], known: Known) -> Verdict:
    instead = in_place_of_removal(op, entry, cited)
    if instead is None:
        return Verdict("review", "nothing stands in its place", op)
    return check(instead, cited, known)


def _persons(op: Op, targets: dict[str, Entry]) -> str:
    by = targets[op.target].facts.get("by", "") if op.op == "supersede" else ""
    return "a person wrote the entry" if by == "person" else ""


def _another(op: Op, targets: dict[str, Entry]) -> str:
    """Why a replacement is not of its target: it shares no word with it, or more with another entry."""
    mine, triples = units(op.text), _triples(plain(op.text))

    def shared(entry: Entry) -> tuple[int, int]:
        return len(mine & units(entry.text)), len(triples & _triples(plain(entry.text)))

    own = shared(targets[op.target])
    if not own[0]:
        return "it does not speak of the entry"
    if DOUBTED.search(op.text) and not DOUBTED.search(targets[op.target].text):
        return "it is less certain than the entry"
    return "it speaks of another entry" if any(shared(entry) > own for entry in targets.values()) else ""


def _never(op: Op, cited: Sequence[Message], known: Known, also: Sequence[str]) -> str:
    """Why the text of an operation may not be written at all."""
    text = op.text
    others = [e.text for e in known.entries if e.id != op.target or op.op != "supersede"]
    verdict = safety.verdict(text, known.patterns, known.allow)
    if "secret" in verdict or "[redacted:" in text:
        return "it held a secret"
    if "hidden" in verdict:
        return "it holds hidden characters"
    if forgotten(known.tombstones, known.key, text, [m.ref for m in cited]):
        return "it was forgotten before"
    if duplicate(text, [*others, *(e.text for e in known.entries)]):
        return "the memory says so already"
    if duplicate(text, known.recalled):
        return "it repeats what was recalled"
    if duplicate(text, known.waiting):
        return "it waits for review already"
    return ungrounded(text, Evidence(tuple(cited), tuple(also))) or _undated(text)


def _undated(text: str) -> str:
    """A relative day may stand only beside the day it was said."""
    return "a relative day without a date" if dates.relative(text) and not re.search(r"\d{4}-\d\d-\d\d", text) else ""


def check_run(wanted: Sequence[tuple[Op, Sequence[Message]]], known: Known) -> list[Verdict]:
    """The verdicts on all operations of one reply, in order: each by itself, then what they come to together.

    A text said twice in one reply is written once; where the removals come to more than a fifth, all of them wait.
    """
    verdicts: list[Verdict] = []
    written: list[str] = []
    for op, cited in wanted:
        verdict = check(op, cited, known)
        if verdict.outcome == "write" and duplicate(verdict.op.text, written):
            verdict = Verdict("refuse", "the same reply says so already", op)
        if verdict.outcome == "write":
            written.append(verdict.op.text)
        verdicts.append(verdict)
    if not removes_too_much([op for op, _ in wanted], known.entries):
        return verdicts
    return [_held(v, op) for v, (op, _) in zip(verdicts, wanted, strict=True)]


def _held(verdict: Verdict, op: Op) -> Verdict:
    takes = op.op in REMOVALS and verdict.outcome != "refuse"
    return Verdict("review", "the run would remove more than a fifth of the memory", op) if takes else verdict
