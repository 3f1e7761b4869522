"""Condensing without a model: what leaves a MEMORY section or a HISTORY goes to the archive whole, what stays is chosen
sentences of what was there.

Pure: bytes in, bytes and the archive's text out. Nothing is written in new words, decisions and constraints stay, and
running it on its own result changes nothing. When it is due, and whether a person must see it, is schedule's and
guards'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.text import decode, encode, has_han, one_line
from pipimem.update import guards
from pipimem.update.grounds import Evidence, names, numbers, ungrounded

if TYPE_CHECKING:
    from pipimem.markdown import Entry, Parsed, Section

PROTECTED = ("decision", "constraint", "preference", "correction", "convention")
WORTH = {"fact": 5, "failure": 4, "tool-quirk": 4, "lesson": 3, "insight": 2, "open-loop": 1}
LONG_ENTRY, FOLDED_LINE = 200, 300
BOUNDARY = re.compile(
    r"(?<=[。！？!?；])\s*|\n+"
    r"|(?<=[.;])(?<!\b[Nn]o\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bapprox\.)(?<!\b[SDM][trs]\.)\s+"
)
DECIDES = re.compile(
    r"\b(?:decided|decision|agreed|settled|chose|promised|must|never|always|only|not allowed|may not|required)\b"
    r"|\b(?:do not|don['’]t)\b"
    r"|决定|定了|敲定|同意|约定|必须|禁止|不得|不准|不许|不能|一律|统一|以后|之后都|承诺|严禁",
    re.IGNORECASE,
)
EXPLAINS = re.compile(
    r"\b(?:because|cause[ds]?|fix(?:ed)?|since then|now|instead)\b|原因|因为|根因|修复|改成|改为|解决", re.IGNORECASE
)
FOLDED = re.compile(r"(\d{4}-\d\d-\d\d) – (\d{4}-\d\d-\d\d)")


@dataclass(frozen=True, slots=True)
class Condensed:
    """What a file becomes: its new bytes, the pieces that leave it (verbatim, in order), and what became of each part.

    `fates` names every entry id (condense) or block title (fold): "kept", "shortened", "archived", "folded", with the
    reason after a colon. `over` is by how many characters the result is still above the budget, `written` what it says
    in new words, which was checked elsewhere.
    """

    data: bytes
    archived: tuple[str, ...] = ()
    fates: Mapping[str, str] = field(default_factory=dict)
    over: int = 0
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """Entries, by id, that one text stands for from now on."""

    ids: tuple[str, ...]
    text: str


def pieces(text: str) -> list[str]:
    """The sentences of a text, each as it stands there; joined by what stood between them they are the text."""
    return [part for part in BOUNDARY.split(text) if part.strip()]


def chosen(text: str, budget: int) -> str:
    """The sentences of `text` that matter most, unchanged and in order, within `budget` characters where that can be.

    Sentences that decide or forbid, and those with numbers, always stay; the first counts a little more than others.
    Chosen again with the same budget it is the same.
    """
    if len(text) <= budget:
        return text
    parts = pieces(text)
    ranked = sorted(range(len(parts)), key=lambda n: (-_worth(parts[n], first=n == 0), n))
    kept = {n for n in ranked if _stays(parts[n])}
    used = sum(len(parts[n]) + 1 for n in kept)
    for n in ranked:
        if n not in kept and used + len(parts[n]) < budget:
            kept.add(n)
            used += len(parts[n]) + 1
    kept = kept or {ranked[0]}
    return _joined(parts[n] for n in sorted(kept))


def _stays(sentence: str) -> bool:
    return bool(DECIDES.search(sentence) or numbers(sentence))


def _worth(sentence: str, *, first: bool = False) -> float:
    score = 3.0 * bool(DECIDES.search(sentence)) + 2.0 * bool(EXPLAINS.search(sentence)) + 0.5 * first
    return score + min(3, len(numbers(sentence))) + min(2, len(names(sentence))) - max(0, len(sentence) - 160) / 80


def _joined(parts: Iterator[str] | Sequence[str]) -> str:
    text = ""
    for part in parts:
        gap = (
            ""
            if not text or text[-1] in "。！？；"
            else " "
            if text[-1] in ".!?;:："
            else "；"
            if has_han(text)
            else "; "
        )
        text += gap + part.strip()
    return text


# MEMORY: entries


def condense(
    data: bytes, budget: int, today: date, heading: str = "", merges: Sequence[tuple[Merge, str]] = ()
) -> Condensed:  # fmt: skip
    """MEMORY within `budget` characters, or as near as its decisions, constraints and hand-written lines allow.

    `merges` come first, each with the id of the new entry; whoever gives them has checked what they say.

    In this order, each only while the file is above the budget: what another entry replaced, what is over, and what is
    said twice leaves; long entries keep their telling sentences; then the least worth leaves, oldest first (facts with
    numbers last). Protected kinds, entries a person wrote and those without an id stay as they are. With `heading`
    only that section is touched. An entry that leaves or is shortened is in `archived` as it stood.
    """
    state = _State(markdown.parse(data), heading)
    for merge, identity in merges:
        state.merge(merge, identity)
    for step in (_superseded, _past, _doubled, _long, _least):
        for entry, text, reason in step(state, today):
            if len(decode(state.parsed.data)) <= budget:
                break
            state.change(entry, text, reason)
    return state.result(budget)


@dataclass
class _State:
    parsed: Parsed
    heading: str
    archived: list[str] = field(default_factory=list)
    fates: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fates = {e.id: "kept" for e in self.parsed.entries if e.id}

    def mine(self) -> list[Entry]:
        """The entries that may be touched, in the file's order."""
        section = markdown.find_section(self.parsed, self.heading).trail if self.heading else ()
        own = (e for e in self.parsed.entries if e.id and e.facts.get("by") != "person" and e.listed)
        return [e for e in own if not section or e.trail == section]

    def change(self, entry: Entry, text: str, reason: str) -> None:
        """The entry says `text` ("": is gone) from now on; what it said goes to the archive once."""
        now = next((e for e in self.parsed.entries if e.id == entry.id), None)
        if now is None:
            return
        raw = decode(self.parsed.data[now.start : now.end]).rstrip("\r\n")
        if self.fates[entry.id] == "kept":
            self.archived.append(raw)
        note = markdown.comment(now.id, now.facts)
        new = markdown.replace_entry(self.parsed, now, text, note) if text else markdown.remove_entry(self.parsed, now)
        self.parsed = markdown.parse(new)
        self.fates[entry.id] = f"{'shortened' if text else 'archived'}: {reason}"

    def merge(self, merge: Merge, identity: str) -> None:
        """One entry in the place of several, with the newest day and the first source of theirs."""
        old = [e for e in self.parsed.entries if e.id in merge.ids]
        if len(old) < len(merge.ids):
            return
        facts = {
            **old[0].facts, "since": max(e.facts.get("since", "") for e in old), "supersedes": old[0].id,
            "conf": min((e.facts["conf"] for e in old if e.facts.get("conf")), default=""), "trial": "",
        }  # fmt: skip
        for entry in old[1:]:
            self.change(entry, "", f"{identity} stands for it")
        first = next(e for e in self.parsed.entries if e.id == old[0].id)
        self.archived.append(decode(self.parsed.data[first.start : first.end]).rstrip("\r\n"))
        self.parsed = markdown.parse(
            markdown.replace_entry(self.parsed, first, merge.text, markdown.comment(identity, facts))
        )
        self.fates[old[0].id] = f"archived: {identity} stands for it"
        self.fates[identity] = "kept"
        self.written.append(merge.text)

    def result(self, budget: int) -> Condensed:
        """What it has come to."""
        over = max(0, len(decode(self.parsed.data)) - budget)
        return Condensed(self.parsed.data, tuple(self.archived), self.fates, over, tuple(self.written))


Step = Iterator[tuple["Entry", str, str]]


def _superseded(state: _State, today: date) -> Step:
    gone = {e.facts["supersedes"]: e.id for e in state.parsed.entries if e.facts.get("supersedes")}
    yield from ((e, "", f"{gone[e.id]} replaced it") for e in state.mine() if e.id in gone)


def _past(state: _State, today: date) -> Step:
    ends = ((e, min(day for day in (e.facts.get("until"), e.facts.get("trial"), "9999") if day)) for e in state.mine())
    yield from ((e, "", "its time is over") for e, end in ends if end < today.isoformat())


def _doubled(state: _State, today: date) -> Step:
    """Of two that say the same the later one stays, and one that a person wrote always."""
    mine = {e.id for e in state.mine()}
    entries = sorted(state.parsed.entries, key=lambda e: (e.id not in mine, e.facts.get("since", ""), e.start))
    for at, entry in enumerate(entries):
        if entry.id in mine and (
            other := next((o for o in entries[at + 1 :] if guards.same(entry.text, o.text)), None)
        ):
            yield entry, "", f"{other.id or 'another entry'} says the same"


def _long(state: _State, today: date) -> Step:
    for entry in sorted(_leavable(state), key=lambda e: -len(e.text)):
        if len(entry.text) > LONG_ENTRY and "\n" not in entry.text:
            text = chosen(entry.text, LONG_ENTRY)
            if len(text) < len(entry.text):
                yield entry, text, "only its telling sentences stay"


def _least(state: _State, today: date) -> Step:
    def worth(entry: Entry) -> tuple[bool, int, str, int]:
        telling = entry.facts.get("kind", "fact") == "fact" and bool(numbers(entry.text))
        return telling, WORTH.get(entry.facts.get("kind", ""), 5), entry.facts.get("since", "9999"), entry.start

    for entry in sorted(_leavable(state), key=worth):
        yield entry, "", "it was worth least"


def _leavable(state: _State) -> list[Entry]:
    return [e for e in state.mine() if e.facts.get("kind") not in PROTECTED and not DECIDES.search(e.text)]


def leavable(parsed: Parsed) -> list[Entry]:
    """The entries that may be shortened, merged or moved: the updater's own that decide nothing."""
    return _leavable(_State(parsed, ""))


# HISTORY: dated blocks


@dataclass(frozen=True, slots=True)
class Block:
    """One dated block of HISTORY, with its title, its day (ISO) and its bytes' place."""

    title: str
    day: str
    start: int
    end: int
    text: str


def decided(text: str) -> str:
    """The sentences of a text that decide or forbid."""
    return "\n".join(part for part in pieces(text) if DECIDES.search(part))


def foldable(data: bytes, keep: int = 3) -> list[Block]:
    """The blocks that `fold` would fold, oldest first."""
    plain = sorted(
        (b for b in _blocks(markdown.parse(data)) if not FOLDED.fullmatch(b.title)), key=lambda b: (b.day, b.start)
    )
    return plain[: max(0, len(plain) - keep)]


def fold(data: bytes, budget: int, keep: int = 3, said: Mapping[str, str] | None = None) -> Condensed:
    """HISTORY with all but its newest `keep` dated blocks folded into one, a line a block: title and telling sentences.

    The block is called by its first and last day. A line keeps what decides or forbids and grows to 300 characters;
    while the file is above `budget`, lines give up their other sentences, oldest first. Whatever is folded, and every
    folded line that is shortened, is in `archived` as it stood. Without enough dated blocks nothing changes. `said`
    holds lines in other words by block title; whoever gives them has checked them.
    """
    parsed = markdown.parse(data)
    blocks = _blocks(parsed)
    old = foldable(data, keep)
    if not old:
        return Condensed(data, (), {b.title: "kept" for b in blocks}, max(0, len(decode(data)) - budget))
    before = [b for b in blocks if FOLDED.fullmatch(b.title)]
    lines = [line for b in before for line in _lines(b.text)] + [_line(b, (said or {}).get(b.title, "")) for b in old]
    days = [day for b in before for day in b.title.split(" – ")] + [b.day for b in old]
    rest = len(decode(data)) - sum(len(b.text) for b in (*before, *old))
    head = f"## {min(days)} – {max(days)}\n\n"
    lines, shortened = _within(lines, budget - rest - len(head), _older(before))
    new = _spliced(parsed, [*before, *old], head + "\n".join(lines) + "\n\n")
    fates = {b.title: "folded" if b in old else "kept" for b in blocks if b not in before}
    archived = (*(b.text.rstrip() for b in old), *shortened)
    return Condensed(new, archived, fates, max(0, len(decode(new)) - budget), tuple((said or {}).values()))


def _older(before: list[Block]) -> set[str]:
    return {line for b in before for line in _lines(b.text)}


def _blocks(parsed: Parsed) -> list[Block]:
    """The sections whose title begins with a day, each with the deeper sections below it."""
    found: list[Block] = []
    sections = parsed.sections
    for at, section in enumerate(sections):
        match = markdown.DATE.match(section.title)
        if not section.level or not match or (found and section.start < found[-1].end):
            continue
        end = section.end
        for below in _below(sections, at):
            end = below.end
        day = _iso(match[1])
        if day:
            text = decode(parsed.data[section.start : end])
            found.append(Block(section.title, day, section.start, end, text))
    return found


def _below(sections: Sequence[Section], at: int) -> Iterator[Section]:
    for section in sections[at + 1 :]:
        if section.level <= sections[at].level:
            return
        yield section


def _iso(text: str) -> str:
    year, month, day = (int(n) for n in re.findall(r"\d+", text)[:3])
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return ""


def _line(block: Block, said: str = "") -> str:
    """A block as one line: its title, and what is said for it, else the sentences of its body that fit."""
    colon = "：" if has_han(block.title) else ": "
    if said:
        return f"- {block.title}{colon}{said}"
    body = re.sub(r"(?m)^(?:#+[ \t].*|[ \t]*(?:```|~~~).*|={3,}|-{3,})$", "", block.text.split("\n", 1)[-1])
    body = "\n".join(re.sub(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+", "", line) for line in body.splitlines())
    paragraphs = [one_line(p) for p in re.split(r"\n\s*\n|\n(?=\S)", body) if p.strip()]
    text = chosen(_joined(paragraphs), FOLDED_LINE)
    return f"- {block.title}{colon}{text}" if text else f"- {block.title}"


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines()[1:] if line.strip()]


def _within(lines: list[str], room: int, known: set[str]) -> tuple[list[str], list[str]]:
    """The lines, the first ones cut back to their title and what decides while there is no room; and what was cut."""
    cut: list[str] = []
    for at, line in enumerate(lines):
        if sum(len(one) + 1 for one in lines) <= room:
            break
        parts = pieces(line)
        short = _joined([p for n, p in enumerate(parts) if n == 0 or DECIDES.search(p)])
        if len(short) < len(line):
            cut += [line] if line in known else []
            lines = [*lines[:at], short, *lines[at + 1 :]]
    return lines, cut


def _spliced(parsed: Parsed, blocks: list[Block], text: str) -> bytes:
    """The file with `text` where the first of the blocks stood, and without them; all else as it is."""
    ordered = sorted(blocks, key=lambda b: b.start)
    new = encode(text.replace("\n", decode(parsed.newline)))
    out, at = b"", 0
    for n, block in enumerate(ordered):
        out += parsed.data[at : block.start] + (new if n == 0 else b"")
        at = block.end
    tail = parsed.data[at:]
    return out + tail if tail.strip() else out.rstrip() + parsed.newline


# The proof a job asks for before anything is written


def unproven(before: bytes, after: Condensed) -> str:
    """What speaks against writing `after`: an id that is neither in the file nor in the archive, a sentence that was
    not there before. "" where nothing does.
    """
    source = decode(before)
    archive = "\n".join(after.archived)
    for entry in markdown.parse(before).entries:
        if entry.id and f"{entry.id}" not in decode(after.data) and f"{entry.id}" not in archive:
            return f"the entry '{entry.id}' is nowhere"
    plain = guards.plain(source)
    titles = [guards.plain(s.title) for s in markdown.parse(before).sections if s.level]
    for line in decode(after.data).splitlines():
        if any(text in line for text in after.written):
            continue
        for part in pieces(FOLDED.sub("", markdown.COMMENT.sub("", line))):
            said = guards.plain(part)
            rests = [said, *(said.removeprefix(title) for title in titles if said.startswith(title))]
            if not any(rest in plain for rest in rests):
                return f"'{part.strip()}' was not there before"
    return ""


def uncovered(entries: Sequence[Entry], merged: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """What speaks against a model's condensing: `merged` holds each new text with the ids it covers.

    Every id is covered once and known, and no text says more than the entries it covers; [] where all is well.
    """
    known = {e.id: e.text for e in entries if e.id}
    named = [identity for _, ids in merged for identity in ids]
    found = [f"the entry '{i}' is covered by nothing" for i in known if i not in named]
    found += [f"there is no entry '{i}'" for i in dict.fromkeys(named) if i not in known]
    found += [f"the entry '{i}' is covered twice" for i in dict.fromkeys(named) if named.count(i) > 1]
    for text, ids in merged:
        evidence = Evidence((), tuple(known[i] for i in ids if i in known))
        if reason := ungrounded(text, evidence):
            found.append(f"'{one_line(text)[:60]}': {reason}")
        if lost := {name for i in ids if i in known for name in names(known[i])} - names(text) - _spoken(text):
            found.append(f"the name '{min(lost)}' is lost")
        found += (
            [f"the number {n} of '{ids[0]}' is lost" for n in sorted(evidence.numbers - numbers(text))][:1]
            if ids
            else []
        )
    return found


def _spoken(text: str) -> set[str]:
    """The words of a text, folded: a name that begins it counts as said."""
    return set(re.findall(r"[\w.@/+-]*\w", text.casefold()))
