"""What of a document can be forgotten by itself: entries, list items, sentences, headings, blocks; and cutting it out.

Pure. Which of them are meant is forgetting.py's; entries are taken out by the plan, everything else by `cut`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pipimem import markdown
from pipimem.errors import NotFound, Refused
from pipimem.text import decode, encode, one_line, printable

ENTRY_LAYERS = ("memory", "user", "standing")
EVIDENCE = re.compile(r"Evidence: ([a-z][a-z0-9_-]*:[^\s,]+)")
LABEL = re.compile(r"\A(?:Task|Evidence|[a-z]+(?:-[a-z]+)*): ")
SENTENCE_END = re.compile(r"(?<=[。！？；])|(?<=[.!?])(?=\s)")
DATED_TITLE = re.compile(r"\A(\d{4}-\d\d-\d\d)\s+\S")
MACHINES = ("updater", "tool")
PROSE = ("paragraph_open",)
MADE = re.compile(r"\d{4}-\d\d-\d\d (?:– \d{4}-\d\d-\d\d|Moved out of memory|移出记忆)")
"""Titles of the blocks in which `fold` and `condense` keep what they moved."""


@dataclass(frozen=True, slots=True)
class Place:
    """One piece of a document: what it is, where (`line` from 1, bytes `start` to `end`), and what it says.

    `ref` is an entry's id, `source` the message or conversation it rests on ("" unknown), `own` whether pipimem wrote
    or moved it there. `put` is what stays in its place when it goes; `sentences`: it may go sentence by sentence.
    """

    path: str
    channel: str
    what: str
    line: int
    start: int
    end: int
    text: str
    ref: str = ""
    source: str = ""
    own: bool = False
    put: bytes = b""
    sentences: bool = False

    @property
    def said(self) -> str:
        """Its words without the label that a HISTORY block puts before them."""
        return LABEL.sub("", self.text)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def places(path: str, channel: str, layer: str, data: bytes) -> list[Place]:
    """Every piece of a document, in its order; front matter is none."""
    parsed = markdown.parse(data)
    archive = layer == "archive"
    found: list[Place] = []
    ids = {e.start: (i, e) for i, e in markdown.identified(parsed, channel)}
    has_entries = layer in ENTRY_LAYERS or (layer == "history" and parsed.family == "dated")
    if parsed.family == "separated":
        return [_entry(path, channel, i, e) for i, e in ids.values()] if has_entries else _blocks(path, channel, parsed)
    for section in parsed.sections:
        source = _evidence(parsed, section) if layer in ("history", "archive") else ""
        own = archive or bool(source) or (layer == "history" and MADE.fullmatch(section.title) is not None)
        if section.level:
            found.append(_heading(path, channel, section, own=own, source=source))
        for block in parsed.blocks_of(section):
            for start, end, line in block.items or [(block.start, block.end, block.line)]:
                if has_entries and start in ids:
                    found.append(_entry(path, channel, *ids[start]))
                    continue
                text, identity, facts = markdown.split_comment(_plain(parsed, start, end, item=bool(block.items)))
                what = "item" if block.items else "text"
                found.append(
                    Place(
                        path, channel, what, line, start, end, text, identity, facts.get("src", "") or source,
                        own or facts.get("by", "") in MACHINES, sentences=block.kind in PROSE,
                    )
                )  # fmt: skip
    return found


def _blocks(path: str, channel: str, parsed: markdown.Parsed) -> list[Place]:
    return [Place(path, channel, "text", e.line, e.start, e.end, e.text, e.id) for e in parsed.entries]


def _entry(path: str, channel: str, identity: str, entry: markdown.Entry) -> Place:
    source, by = entry.facts.get("src", ""), entry.facts.get("by", "")
    return Place(
        path, channel, "entry", entry.line, entry.start, entry.end, entry.text, identity, source,
        bool(entry.id) and by in MACHINES,
    )  # fmt: skip


def _heading(path: str, channel: str, section: markdown.Section, *, own: bool, source: str) -> Place:
    dated = DATED_TITLE.match(section.title)
    put = encode(f"{'#' * section.level} {dated[1]}\n") if dated else b""
    text = section.title[len(dated[1]) :].strip() if dated else section.title
    return Place(path, channel, "heading", section.line, section.start, section.body, text, "", source, own, put)


def _evidence(parsed: markdown.Parsed, section: markdown.Section) -> str:
    """The conversation that a block of HISTORY says it is about; only those pipimem wrote say so."""
    found = EVIDENCE.search(decode(parsed.data[section.body : section.end]))
    return found[1] if found else ""


def _plain(parsed: markdown.Parsed, start: int, end: int, *, item: bool) -> str:
    text = decode(parsed.data[start:end])
    return re.sub(r"\A\s*(?:[-*+]|\d{1,9}[.)])[ \t]*", "", text).strip() if item else text.strip()


def at(found: Sequence[Place], line: int, path: str) -> Place:
    """The piece that stands in a line. Raises `NotFound`."""
    fits = [p for p in found if p.line <= line]
    if not fits or line > fits[-1].line + fits[-1].text.count("\n"):
        raise NotFound(f"There is no text in line {line} of '{printable(path)}'.", "See the file.")
    return fits[-1]


def block(found: Sequence[Place], data: bytes, heading: str, path: str, channel: str) -> Place:
    """A whole section, heading included."""
    section = markdown.find_section(markdown.parse(data), heading)
    inside = [p for p in found if section.start <= p.start < section.end]
    text = "\n".join(p.said for p in inside if p.what != "entry")
    source = next((p.source for p in inside if p.source), "")
    return Place(path, channel, "block", section.line, section.start, section.end, text, "", source, True)


def narrowed(place: Place, data: bytes, says: Callable[[str], bool]) -> list[Place]:
    """The sentences of a paragraph that say it, as pieces of their own; the piece itself where that is all of it."""
    if not place.sentences:
        return [place]
    raw = decode(data[place.start : place.end])
    spans = list(_sentences(raw))
    hit = [(a, b) for a, b in spans if says(one_line(raw[a:b]))]
    if not hit or len(hit) == len(spans):
        return [place]
    made = []
    for a, b in hit:
        start, end = place.start + len(encode(raw[:a])), place.start + len(encode(raw[:b]))
        line = place.line + raw[:a].count("\n")
        made.append(replace(place, what="sentence", line=line, start=start, end=end, text=raw[a:b].strip()))
    return made


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in SENTENCE_END.finditer(text):
        end = match.end()
        while end < len(text) and text[end] in " \t":
            end += 1
        if end > start:
            yield start, end
            start = end
    if start < len(text):
        yield start, len(text)


def cut(data: bytes, gone: Iterable[Place]) -> bytes:
    """The document without these pieces; what stays reads as before.

    A block of HISTORY of which nothing but its evidence and its task is left goes whole. Raises `Refused` where
    something else would change.
    """
    parsed = markdown.parse(data)
    cuts = _widened(parsed, sorted(gone, key=lambda p: p.start))
    result = data
    for place in reversed(cuts):
        result = _without(result, place)
    _check(parsed, cuts, result)
    return result


def _widened(parsed: markdown.Parsed, gone: list[Place]) -> list[Place]:
    """The pieces, with a block of HISTORY that loses all it says taken whole, and none inside another."""
    starts = {p.start for p in gone}
    for section in parsed.sections:
        if section.level != 2 or not _evidence(parsed, section):
            continue
        items = [i for b in parsed.blocks_of(section) for i in b.items]
        left = [s for s, e, _ in items if s not in starts]
        kept = [s for s in left if not _is_frame(parsed, s)]
        if not kept and len(left) < len(items):
            whole = replace(gone[0], what="block", line=section.line, start=section.start, end=section.end, put=b"")
            gone = [p for p in gone if not section.start <= p.start < section.end] + [whole]
    gone.sort(key=lambda p: (p.start, -p.end))
    made: list[Place] = []
    for place in gone:
        if not made or place.start >= made[-1].end:
            made.append(place)
    return made


def _is_frame(parsed: markdown.Parsed, start: int) -> bool:
    text = decode(parsed.data[start : start + 40])
    return bool(re.match(r"\s*[-*+][ \t]+(?:Task|Evidence): ", text))


def _without(data: bytes, place: Place) -> bytes:
    head, tail, put = data[: place.start], data[place.end :], place.put
    if place.what == "heading" and not put:
        raise Refused(f"The heading in line {place.line} of '{place.path}' holds it.", "Change it in an editor.")
    ending = markdown.newline(data)
    if place.what == "entry":
        parsed = markdown.parse(data)
        return markdown.remove_entry(parsed, next(e for e in parsed.entries if e.start == place.start))
    if place.what == "sentence":
        return head.rstrip(b" \t") + tail if not tail.strip(b" \t") or tail[:1] in b"\r\n" else head + tail
    if place.what == "block":
        return (head.rstrip(b"\r\n") + ending + (ending if tail.strip() else b"") if head.strip() else head) + tail
    if not put and head.endswith(ending * 2) and tail.startswith(ending):
        tail = tail[len(ending) :]
    return head + put.replace(b"\n", ending) + tail


def _check(parsed: markdown.Parsed, cuts: Sequence[Place], result: bytes) -> None:
    """Refuses where anything but the pieces reads otherwise than before."""
    spans = [(p.start, p.end) for p in cuts]

    def stays(start: int) -> bool:
        index = bisect_right(spans, (start, 1 << 60)) - 1
        return index < 0 or start >= spans[index][1]

    again = markdown.parse(result)
    blocks = [b for b in parsed.blocks if not b.items]
    whole = [decode(parsed.data[b.start : b.end]).strip() for b in blocks if not _touched(b.start, b.end, spans)]
    items = [e.text for e in parsed.entries if stays(e.start)]
    heads = [s.level for s in parsed.sections if s.level and (stays(s.start) or _keeps(cuts, s.start))]
    same = [e.text for e in again.entries] == items or parsed.family != again.family
    now = "\n".join(decode(again.data[b.start : b.end]).strip() for b in again.blocks if not b.items)
    if not same or [s.level for s in again.sections if s.level] != heads or any(text not in now for text in whole):
        raise Refused(f"'{cuts[0].path}' cannot lose line {cuts[0].line} alone.", "Take it out in an editor.")


def _touched(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(a < end and start < b for a, b in spans)


def _keeps(cuts: Sequence[Place], start: int) -> bool:
    return any(p.start == start and p.put for p in cuts)
