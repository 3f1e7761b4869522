"""One Markdown file as bytes ↔ sections and entries; edits by byte range that re-read what they made.

markdown-it-py's block rules are the only splitter. Joined sections equal the file, and nothing here renders Markdown
anew: an edit splices bytes and is refused when the result does not read back as exactly what was asked.
Front matter is front.py's, files and channels are workspace.py's, meaning (kinds, validity) is update's.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from pipimem.errors import NotFound, Refused, Usage
from pipimem.front import BOM, front_matter
from pipimem.text import decode, digest, encode, nearest, quote, unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PIECE_LIMIT = 1600
ENTRY_LIMIT = 4000
COMMENT = re.compile(r"[ \t]*<!--\s*(?:id:)?(m-[0-9a-f]{8})((?:\s+[a-z][\w-]*=[^\s>]*)*)\s*-->[ \t]*")
ONLY_COMMENT = re.compile(r"(?:\s*<!--.*?-->)*\s*", re.DOTALL)
DATE = re.compile(r"[\[(*_]{0,4}(\d{4}(?:-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.|年\d{1,2}月)\d{1,2})(?!\d)")
CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127))

NO_TEXT = frozenset(("fence", "code_block", "html_block"))
"""The token types of blocks in which nothing is a person's sentence: code and HTML."""


class Section:
    """A heading with the text up to the next heading; `level` 0 and an empty trail before the first heading.

    `start`, `body` (first byte after the heading) and `end` are byte offsets; `line` counts from 1.
    """

    __slots__ = ("body", "end", "level", "line", "start", "title", "trail")

    def __init__(self, level: int, title: str, trail: tuple[str, ...], span: tuple[int, int, int], line: int) -> None:
        self.level = level
        self.title = title
        self.trail = trail
        self.start, self.body, self.end = span
        self.line = line

    @property
    def name(self) -> str:
        """The trail as people write it: `Channel Memory > Decisions`."""
        return " > ".join(self.trail)


class Entry:
    """One remembered item: its byte range with the marker, its text without marker and comment, what its comment says.

    `id` is "" for an entry a person typed. `end` is after the last line's ending. `listed` says whether it is a list
    item; else it is a whole `§` block or a dated paragraph.
    """

    __slots__ = ("end", "facts", "id", "line", "listed", "start", "text", "trail")

    def __init__(
        self, span: tuple[int, int], line: int, trail: tuple[str, ...], text: str, *, listed: bool = False
    ) -> None:
        self.start, self.end = span
        self.line = line
        self.listed = listed
        self.trail = trail
        self.text, self.id, self.facts = split_comment(text)


class Block:
    """A top-level block between headings: its token type, list marker and byte range (trailing blank lines out)."""

    __slots__ = ("end", "items", "kind", "line", "marker", "start")

    def __init__(self, kind: str, marker: str, span: tuple[int, int], line: int) -> None:
        self.kind = kind
        self.marker = marker
        self.start, self.end = span
        self.line = line
        self.items: list[tuple[int, int, int]] = []


class Parsed:
    """A file cut into sections and blocks. `front` is the byte range of the front matter, (0, 0) without one.

    `family` says how its entries stand: "listed" (list items), "separated" (`§` lines between them, no headings), or
    "dated" (no headings; paragraphs that begin with a date, besides list items). `nested` are the byte ranges of code
    and HTML blocks that stand within other blocks, in order; `targets` are those of reference links, by their label as
    CommonMark compares it (`label`).
    """

    __slots__ = ("blocks", "data", "entries", "family", "front", "nested", "newline", "offsets", "sections", "targets")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.newline = newline(data)
        self.front = front_matter(data)
        self.offsets: list[int] = []
        self.sections: list[Section] = []
        self.blocks: list[Block] = []
        self.nested: list[tuple[int, int]] = []
        self.targets: dict[str, str] = {}
        self.entries: list[Entry] = []
        self.family = "listed"

    def line_of(self, offset: int) -> int:
        """The line, from 1, that holds byte `offset`."""
        before = self.data.count(b"\n", 0, self.offsets[0]) + self.data.count(b"\r", 0, self.offsets[0])
        before -= self.data.count(b"\r\n", 0, self.offsets[0])
        return before + bisect_right(self.offsets, offset)

    def blocks_of(self, section: Section) -> list[Block]:
        """The blocks of one section, in order."""
        return [b for b in self.blocks if section.body <= b.start < section.end]


def label(text: str) -> str:
    """The label of a reference link as CommonMark compares it: white space and case make no difference."""
    return " ".join(text.split()).lower().upper()


def newline(data: bytes) -> bytes:
    """The line ending most lines of `data` have; `\\n` for a file without one."""
    crlf, lf, cr = data.count(b"\r\n"), data.count(b"\n"), data.count(b"\r")
    if crlf and crlf * 2 >= lf:
        return b"\r\n"
    return b"\r" if cr > crlf and not lf else b"\n"


def parser() -> MarkdownIt:
    """A CommonMark parser with the block rules only: finds structure at 5 MB/s and leaves inline text alone."""
    from markdown_it import MarkdownIt

    md = MarkdownIt("commonmark")
    md.core.ruler.enableOnly(["normalize", "block"])
    return md


def parse(data: bytes) -> Parsed:
    """Cuts `data` into sections, blocks and entries. Any bytes will do; joined sections equal what follows `front`."""
    parsed = Parsed(data)
    base = parsed.front[1] or (len(BOM) if data.startswith(BOM) else 0)
    lines = data[base:].splitlines(keepends=True)
    offsets = [base]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    parsed.offsets = offsets
    env: dict[str, Any] = {}
    found = parser().parse(decode(data[base:]), env)
    parsed.targets = {name: unquote(target["href"]) for name, target in env.get("references", {}).items()}
    before = parsed.line_of(base) - 1
    _collect_blocks(parsed, found, before)
    _collect_sections(parsed, found, before)
    parsed.family = _family(parsed)
    parsed.entries = _separated(parsed) if parsed.family == "separated" else _listed(parsed)
    return parsed


def _collect_blocks(parsed: Parsed, found: Sequence[Token], before: int) -> None:
    offsets = parsed.offsets
    for token in found:
        if token.map is None or token.nesting < 0:
            continue
        first, last = token.map[0], min(token.map[1], len(offsets) - 1)
        if token.level == 0 and token.type not in ("heading_open", "inline"):
            span = offsets[first], _trimmed(parsed.data, offsets[first], offsets[last])
            parsed.blocks.append(Block(token.type, token.markup, span, before + first + 1))
        elif token.level == 1 and token.type == "list_item_open":
            end = _trimmed(parsed.data, offsets[first], offsets[last])
            parsed.blocks[-1].items.append((offsets[first], end, before + first + 1))
        elif token.type in NO_TEXT:
            parsed.nested.append((offsets[first], offsets[last]))


def _trimmed(data: bytes, start: int, end: int) -> int:
    """`end` moved before trailing blank lines, the last line's own ending kept."""
    text = data[start:end]
    kept = start + len(text.rstrip(b" \t\r\n"))
    for ending in (b"\r\n", b"\n", b"\r"):
        at = data.find(ending, kept, end)
        if at >= 0 and not data[kept:at].strip(b" \t"):
            return at + len(ending)
    return end if kept == end else kept


def _collect_sections(parsed: Parsed, found: Sequence[Token], before: int) -> None:
    offsets, trail = parsed.offsets, [""] * 6
    heads = [(i, t) for i, t in enumerate(found) if t.type == "heading_open" and t.level == 0 and t.map]
    starts = [offsets[t.map[0]] for _, t in heads if t.map] + [offsets[-1]]
    if starts[0] > offsets[0] or not heads:
        parsed.sections.append(Section(0, "", (), (offsets[0], offsets[0], starts[0]), before + 1))
    for n, (i, token) in enumerate(heads):
        assert token.map is not None
        level, title = int(token.tag[1]), found[i + 1].content.strip()
        trail[level - 1 :] = [title] + [""] * (6 - level)
        span = starts[n], offsets[min(token.map[1], len(offsets) - 1)], starts[n + 1]
        names = tuple(t for t in trail[:level] if t)
        parsed.sections.append(Section(level, title, names, span, before + token.map[0] + 1))


def _family(parsed: Parsed) -> str:
    if any(s.level for s in parsed.sections):
        return "listed"
    if re.search(rb"(?m)^\xc2\xa7[ \t]*\r?$", parsed.data):
        return "separated"
    return "dated" if any(_is_dated(parsed, b) for b in parsed.blocks) else "listed"


def _is_dated(parsed: Parsed, block: Block) -> bool:
    return (
        block.kind == "paragraph_open" and DATE.match(decode(parsed.data[block.start : block.end]).lstrip()) is not None
    )


def _separated(parsed: Parsed) -> list[Entry]:
    found, start = [], parsed.offsets[0]
    for at, end in zip(parsed.offsets, [*parsed.offsets[1:], len(parsed.data)], strict=True):
        line = parsed.data[at:end]
        if line.strip() == b"\xc2\xa7" or at == len(parsed.data):
            text = decode(parsed.data[start:at])
            if text.strip():
                lead = len(text) - len(text.lstrip("\r\n"))
                found.append(Entry((start + lead, at), parsed.line_of(start + lead), (), text.strip()))
            start = end
    return found


def _listed(parsed: Parsed) -> list[Entry]:
    found, sections = [], iter(parsed.sections)
    section = next(sections)
    for block in parsed.blocks:
        while block.start >= section.end:
            following = next(sections, None)
            if following is None:
                break
            section = following
        for start, end, line in block.items:
            text = _item_text(decode(parsed.data[start:end]))
            found.append(Entry((start, end), line, section.trail, text, listed=True))
        if parsed.family == "dated" and _is_dated(parsed, block):
            text = decode(parsed.data[block.start : block.end])
            plain = "\n".join(line.strip(" \t") for line in re.split(r"\r\n|\n|\r", text))
            found.append(Entry((block.start, block.end), block.line, (), plain.strip()))
    return found


def _item_text(raw: str) -> str:
    """The text of a list item: marker off, continuation lines moved left by the marker's width."""
    marker = re.match(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]*", raw)
    width = marker.end() if marker else 0
    lines = re.split(r"\r\n|\n|\r", raw[width:])
    margin = re.compile(rf"[ \t]{{0,{max(width, 1)}}}")
    return "\n".join([lines[0], *(margin.sub("", line, count=1) for line in lines[1:])]).strip()


def split_comment(text: str) -> tuple[str, str, dict[str, str]]:
    """An entry's text without its own comment, its id and the facts in the comment ("" and {} without one)."""
    matches = list(COMMENT.finditer(text))
    if not matches:
        return text.replace("<\\!--", "<!--"), "", {}
    match = matches[-1]
    bare = (text[: match.start()] + text[match.end() :]).rstrip()
    pairs = (part.partition("=") for part in match[2].split())
    return bare.replace("<\\!--", "<!--"), match[1], {key: unquote(value) for key, _, value in pairs}


def uncommented(text: str) -> str:
    """`text` without the comments that hold an entry's id and facts."""
    return COMMENT.sub("", text) if "<!--" in text else text


def comment(identity: str, facts: Mapping[str, str]) -> str:
    """The HTML comment that ends one of pipimem's entries."""
    parts = [identity, *(f"{key}={quote(value)}" for key, value in facts.items() if value)]
    return f"<!-- {' '.join(parts)} -->"


def derived_id(channel: str, entry: Entry, ordinal: int) -> str:
    """The id of an entry a person typed: a hash of channel, heading trail, text and its ordinal among equals."""
    parts = (channel, *entry.trail, entry.text, str(ordinal))
    return "m-" + digest(encode("\0".join(parts)), 4)


def identified(parsed: Parsed, channel: str) -> list[tuple[str, Entry]]:
    """Every entry with its id, written or derived."""
    seen: dict[tuple[tuple[str, ...], str], int] = {}
    found = []
    for entry in parsed.entries:
        key = (entry.trail, entry.text)
        seen[key] = ordinal = seen.get(key, -1) + 1
        found.append((entry.id or derived_id(channel, entry, ordinal), entry))
    return found


class Piece:
    """A passage's place: byte range, first line, heading trail, and the entry it is, if it is one."""

    __slots__ = ("end", "entry", "line", "start", "trail")

    def __init__(self, span: tuple[int, int], line: int, trail: tuple[str, ...], entry: Entry | None = None) -> None:
        self.start, self.end = span
        self.line = line
        self.trail = trail
        self.entry = entry


def pieces(parsed: Parsed, *, entries: bool, dated: bool = False) -> list[Piece]:
    """The passages of a file in order: entries (where the layer has them) and the text between, in bounded pieces.

    `dated` alone makes entries of dated paragraphs only.

    Text is cut between blocks so that a piece stays near 1,600 bytes; a longer block is cut between lines. Empty
    text and text that is only comments is left out. The front matter is a piece with an empty trail.
    """
    found = []
    if parsed.front[1] > parsed.front[0]:
        found.append(Piece(parsed.front, 1, ()))
    if entries and parsed.family == "separated":
        return found + [Piece((e.start, e.end), e.line, (), e) for e in parsed.entries]
    by_start = {e.start: e for e in parsed.entries if entries or (dated and not e.listed)}
    for section in parsed.sections:
        run: list[tuple[int, int, int]] = []
        for block in parsed.blocks_of(section):
            spans = block.items or [(block.start, block.end, block.line)]
            if spans[0][0] in by_start:
                found += _joined(parsed, run, section)
                run = []
                found += [Piece((s, e), n, section.trail, by_start[s]) for s, e, n in spans]
            elif not _is_comment(parsed, block):
                run += _bounded(parsed, block)
        found += _joined(parsed, run, section)
    return found


def _is_comment(parsed: Parsed, block: Block) -> bool:
    if block.kind != "html_block":
        return False
    return ONLY_COMMENT.fullmatch(decode(parsed.data[block.start : block.end])) is not None


def _bounded(parsed: Parsed, block: Block) -> list[tuple[int, int, int]]:
    if block.end - block.start <= PIECE_LIMIT:
        return [(block.start, block.end, block.line)]
    parts, start, line, at = [], block.start, block.line, block.start
    for count, text in enumerate(parsed.data[block.start : block.end].splitlines(keepends=True)):
        if at + len(text) - start > PIECE_LIMIT and at > start:
            parts.append((start, at, line))
            start, line = at, block.line + count
        at += len(text)
    return [*parts, (start, block.end, line)]


def _joined(parsed: Parsed, run: list[tuple[int, int, int]], section: Section) -> Iterable[Piece]:
    while run:
        start, end, line = run.pop(0)
        while run and run[0][1] - start <= PIECE_LIMIT:
            end = run.pop(0)[1]
        if parsed.data[start:end].strip():
            yield Piece((start, end), line, section.trail)


def find_section(parsed: Parsed, name: str) -> Section:
    """The one section called `name`: a title, a whole trail, or the last parts of a trail joined by ` > `.

    Raises `NotFound` with the nearest headings, and `Refused` with the list where several fit.
    """
    wanted = tuple(part.strip() for part in name.split(" > "))
    fits = [s for s in parsed.sections if s.trail and s.trail[-len(wanted) :] == wanted]
    if len(fits) == 1:
        return fits[0]
    exact = [s for s in fits if s.trail == wanted]
    if len(exact) == 1:
        return exact[0]
    if fits:
        listed = ", ".join(f"'{s.name}' (line {s.line})" for s in fits)
        raise Refused(f"The heading '{name}' fits {len(fits)} sections: {listed}.", "Give the whole trail.")
    near = nearest(name, (s.title for s in parsed.sections if s.title))
    raise NotFound(f"There is no heading '{name}'.", f"Nearest: {', '.join(near)}." if near else "")


def conflict_line(data: bytes) -> int:
    """The line, from 1, of the first unresolved merge conflict; 0 when there is none."""
    if b"<<<<<<<" not in data:
        return 0
    lines, first = data.splitlines(), 0
    for number, line in enumerate(lines, 1):
        if line.startswith(b"<<<<<<< "):
            first = first or number
        elif line.startswith(b">>>>>>> ") and first:
            return first
    return 0


def damage(data: bytes) -> str:
    """What makes a file unfit to be written or committed, as words after its name; "" for a sound one."""
    if line := conflict_line(data):
        return f"has an unresolved merge conflict in line {line}"
    return "is damaged or binary: it holds NUL bytes" if b"\0" in data else ""


def clean(text: str) -> str:
    """A new entry's text: control characters out, lines trimmed, blank lines dropped.

    Raises `Usage` when empty, and `Refused` over 4,000 characters: a longer one would never fit into a recall.
    """
    lines = [line.strip() for line in re.split(r"\r\n|\n|\r", text.translate(CONTROL))]
    kept = "\n".join(line for line in lines if line)
    if not kept:
        raise Usage("The text is empty.", "Say what is to be remembered.")
    if len(kept) > ENTRY_LIMIT:
        raise Refused(
            f"The text '{kept[:40]}…' has {len(kept):,} characters; an entry holds {ENTRY_LIMIT:,} at most.",
            "Say it in several entries, or keep it as a note.",
        )
    return kept


def item(text: str, note: str, marker: str = "- ", ending: str = "\n") -> str:
    """One list item: `text` (lines after the first indented) with its comment, without a final line ending."""
    escaped = text.replace("<!--", "<\\!--")
    lines = escaped.split("\n")
    pad = " " * len(marker)
    return marker + (ending + pad).join(lines) + (f" {note}" if note else "")


def add_entry(parsed: Parsed, heading: str, text: str, note: str) -> bytes:
    """The file with one more entry at the end of the section `heading` (created at the end of the file if missing).

    Everything else stays byte for byte. `Refused` when the place cannot take a list item, such as an open fence.
    """
    text = clean(text)
    if parsed.family == "dated":
        text = _with_date(text, note)
    section = _section_or_none(parsed, heading) if parsed.family == "listed" else None
    for attempt in [text] if text[0] not in "-*+_=#>`~" else [text, "\\" + text]:
        if parsed.family == "separated":
            data, sections = _append_separated(parsed, attempt, note), 0
        elif parsed.family == "dated":
            data, sections = append_text(parsed, _marked(attempt, note) + "\n"), 0
        elif section is None:
            data, sections = _new_section(parsed, heading, item(attempt, note)), 1
        else:
            data, sections = _insert(parsed, section, attempt, note), 0
        if _adds_one(parsed, data, attempt, sections):
            return data
    raise _unsafe(parsed, section or parsed.sections[-1])


def move_entry(parsed: Parsed, heading: str, source: Parsed, entry: Entry, note: str) -> bytes:
    """The file with an entry of another file at the end of the section `heading`: its very bytes, with `note`.

    Only its bullet and line endings become this file's. `Refused` where it would not read as it did: between lists and
    other kinds of files only what is nothing but lines of text can be moved.
    """
    if not entry.listed or parsed.family != "listed":
        if clean(entry.text) != entry.text or "<!--" in entry.text:
            raise Refused(f"The entry in line {entry.line} is more than lines of text.", "Move it in an editor.")
        return add_entry(parsed, heading, entry.text, note)
    section = _section_or_none(parsed, heading)
    at, bullet, gap = _end_of(parsed, section) if section else (0, "-", "")
    for raw in _carried(source, entry, note):
        mark = re.match(r"([ \t]*)([-*+]|\d{1,9}[.)])", raw)
        lead, width = (len(mark[1]), len(mark[2])) if mark else (0, 0)
        lines = [re.sub(rf"^ {{0,{lead}}}", "", line) for line in raw.split("\n")]
        lines[0] = bullet.strip().ljust(width) + lines[0][width:]
        if section is None:
            data = _new_section(parsed, heading, "\n".join(lines))
        else:
            own = decode(parsed.newline).join(" " * (len(bullet) - len(bullet.lstrip())) * bool(x) + x for x in lines)
            data = _splice_line(parsed, at, encode(gap), encode(own))
        if _adds_one(parsed, data, entry.text, int(section is None)):
            return data
    raise Refused(f"The entry in line {entry.line} would not read there as it does.", "Move it in an editor.")


def _carried(source: Parsed, entry: Entry, note: str) -> Iterable[str]:
    """The text of an item as it stands, with `note` for its comment; without one, wherever that can stand unseen."""

    def even(raw: bytes) -> str:
        return re.sub(r"\r\n|\r", "\n", decode(raw))

    raw = source.data[entry.start : entry.end].rstrip(b"\r\n")
    if entry.id:
        text = even(raw)
        last = list(COMMENT.finditer(text))[-1]
        own = last[0].strip()
        at = text.index(own, last.start())
        yield text[:at] + note + text[at + len(own) :]
        return
    starts = [entry.start + m.start() for m in re.finditer(rb"(?m)^.*\S.*$", raw)]
    for start in reversed(starts):
        if any(first <= start < last for first, last in source.nested):
            continue
        end = re.compile(rb"\r|\n|\Z").search(raw, start - entry.start)
        at = end.start() if end else len(raw)
        yield f"{even(raw[:at])} {note}{even(raw[at:])}"


def add_entries(parsed: Parsed, wanted: Sequence[tuple[str, str, str]]) -> bytes | None:
    """The file with many entries (heading, text, note) as `add_entry` would add them one by one, read back once.

    None where they cannot be added together: then they are to be added singly.
    """
    if parsed.family != "listed" or not wanted:
        return None
    groups: dict[str, list[tuple[str, str]]] = {}
    for heading, text, note in wanted:
        groups.setdefault(heading, []).append((clean(text), note))
    now, fresh = parsed, dict[str, list[tuple[str, str]]]()
    for heading, group in groups.items():
        if _section_or_none(now, heading) is None:
            fresh[heading] = group
            continue
        now = parse(add_entry(now, heading, *group[0]))
        now = _with_more(now, group)
    data = _with_sections(now, fresh) if fresh else now.data
    texts = sorted(text for group in groups.values() for text, _ in group)
    return data if _adds_all(parsed, parse(data), texts, len(fresh)) else None


def _with_more(parsed: Parsed, group: Sequence[tuple[str, str]]) -> Parsed:
    """The file with the rest of `group` right behind its first, which is there."""
    identity = split_comment(group[0][1])[1]
    entry = next(e for e in parsed.entries if e.id == identity)
    ending = decode(parsed.newline)
    raw = decode(parsed.data[entry.start : entry.end])
    mark = re.match(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+", raw)
    gap = ending if parsed.data[: entry.start].endswith(parsed.newline * 2) and _is_loose(parsed, entry) else ""
    lines = [gap + item(text, note, mark[0] if mark else "- ", ending) + ending for text, note in group[1:]]
    head, tail = parsed.data[: entry.end], parsed.data[entry.end :]
    if lines and not head.endswith((b"\n", b"\r")):
        lines = [ending + line.removesuffix(ending) for line in lines]
    return parse(head + encode("".join(lines)) + tail)


def _is_loose(parsed: Parsed, entry: Entry) -> bool:
    return any(e.end < entry.start and e.trail == entry.trail for e in parsed.entries)


def _with_sections(parsed: Parsed, fresh: Mapping[str, Sequence[tuple[str, str]]]) -> bytes:
    blocks = []
    for heading, group in fresh.items():
        title = clean(heading).replace("\n", " ").strip("# ")
        lines = "\n".join(item(text, note) for text, note in group)
        blocks.append(f"## {title}\n\n{lines}\n")
    return append_text(parsed, "\n".join(blocks).replace("\n", decode(parsed.newline)))


def _adds_all(parsed: Parsed, again: Parsed, texts: Sequence[str], sections: int) -> bool:
    """Whether `again` is `parsed` with exactly these entries more (in any place) and that many sections."""
    old = {e.id or e.text for e in parsed.entries}
    kept = [(e.trail, e.text, e.id) for e in again.entries if (e.id or e.text) in old]
    added = sorted(e.text for e in again.entries if (e.id or e.text) not in old)
    if kept != [(e.trail, e.text, e.id) for e in parsed.entries] or added != texts:
        return False
    if len(again.sections) != len(parsed.sections) + sections and parsed.data.strip():
        return False
    return _prose(again) == _prose(parsed)


def _with_date(text: str, note: str) -> str:
    """`text` beginning with a date, as every entry of such a file does: its own, else the day in its comment."""
    if DATE.match(text):
        return text
    since = split_comment(note)[2].get("since", "")
    if not DATE.match(since):
        raise Refused("The entries of this file begin with a date, and none is given.", "Begin the text with one.")
    return f"{since} {text}"


def _marked(text: str, note: str) -> str:
    return text.replace("<!--", "<\\!--") + (f" {note}" if note else "")


def _section_or_none(parsed: Parsed, heading: str) -> Section | None:
    try:
        return find_section(parsed, heading)
    except NotFound:
        return None


def _adds_one(parsed: Parsed, data: bytes, text: str, sections: int) -> bool:
    """Whether `data` reads as `parsed` plus exactly one entry with `text` and that many sections."""
    again = parse(data)
    if len(again.sections) != len(parsed.sections) + sections and parsed.data.strip():
        return False
    before = [(e.trail, e.text, e.id) for e in parsed.entries]
    after = [(e.trail, e.text, e.id) for e in again.entries]
    if len(after) != len(before) + 1:
        return False
    if parsed.family != "separated" and _prose(again) != _prose(parsed):
        return False
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
    return after[at][1] == text and before[at:] == after[at + 1 :] and before[:at] == after[:at]


def _unsafe(parsed: Parsed, section: Section) -> Refused:
    fence = next((b for b in parsed.blocks_of(section) if b.kind == "fence" and _open_fence(parsed, b)), None)
    if fence is not None:
        return Refused(
            f"The fence opened in line {fence.line} is never closed.",
            "Close it; text added here would become code.",
        )
    name = section.name or "the file"
    return Refused(f"Nothing can be added to '{name}' without changing what stands there.", "Add it in an editor.")


def _open_fence(parsed: Parsed, block: Block) -> bool:
    lines = parsed.data[block.start : block.end].split()
    return len(lines) < 2 or not lines[-1].startswith(encode(block.marker))


def _insert(parsed: Parsed, section: Section, text: str, note: str) -> bytes:
    at, bullet, gap = _end_of(parsed, section)
    return _splice_line(parsed, at, encode(gap), encode(item(text, note, f"{bullet} ", decode(parsed.newline))))


def _end_of(parsed: Parsed, section: Section) -> tuple[int, str, str]:
    """Where one more item of a section goes, its bullet with the space before it, and what stands between."""
    data, ending = parsed.data, decode(parsed.newline)
    blocks = parsed.blocks_of(section)
    last = blocks[-1] if blocks else None
    if last is not None and last.kind == "bullet_list_open":
        start, at, _ = last.items[-1]
        lead = " " * (len(data[start : start + 4]) - len(data[start : start + 4].lstrip(b" ")))
        apart = len(last.items) > 1 and _blank_between(data, last.items[-2][1], start)
        return at, lead + last.marker, ending if apart else ""
    at = last.end if last else _trimmed(data, section.start, section.body)
    return at, "-", "" if last is None and _tight_headings(parsed) else ending


def _splice_line(parsed: Parsed, at: int, gap: bytes, line: bytes) -> bytes:
    """Puts `line` on a line of its own at `at`; a file without a final line ending stays without one."""
    data, ending = parsed.data, parsed.newline
    head, tail = data[:at], data[at:]
    if head and not head.endswith((b"\n", b"\r")):
        return head + ending + gap + line + (tail if tail.strip() else b"")
    if tail and tail.strip() and not tail.startswith((b"\n", b"\r")):
        return head + gap + line + ending + ending + tail
    return head + gap + line + ending + tail


def _blank_between(data: bytes, start: int, end: int) -> bool:
    return end > start and not data[start:end].strip()


def _tight_headings(parsed: Parsed) -> bool:
    """Whether this file's headings are followed by text at once: the habit a new first item keeps."""
    bodies = [parsed.data[s.body : s.end] for s in parsed.sections if s.level and parsed.blocks_of(s)]
    return bool(bodies) and not any(body.startswith((b"\n", b"\r")) for body in bodies)


def _new_section(parsed: Parsed, heading: str, text: str) -> bytes:
    title = clean(heading).replace("\n", " ").strip("# ")
    block = f"## {title}\n\n{text}\n".replace("\n", decode(parsed.newline))
    return append_text(parsed, block)


def replace_section(parsed: Parsed, name: str, text: str) -> bytes:
    """The file with the own text of one section replaced: heading, blank line after it, and all else stay.

    `NotFound` with the nearest headings, `Refused` where several sections fit or the text would make headings.
    """
    section = find_section(parsed, name)
    own = parsed.data[section.body : section.end]
    ending = parsed.newline
    lead = ending if own.startswith((b"\n", b"\r")) or not own.strip() else b""
    kept = own[len(own.rstrip(b" \t\r\n")) :] if own.strip() else own[len(ending) :] if lead else b""
    body = encode("\n".join(re.split(r"\r\n|\n|\r", text.translate(CONTROL).strip("\r\n"))))
    head = parsed.data[: section.body]
    gap = b"" if head.endswith((b"\n", b"\r")) or not head else ending
    data = head + gap + lead + body.replace(b"\n", ending) + (kept or ending) + parsed.data[section.end :]
    again = parse(data)
    if [(s.trail, s.level) for s in again.sections] != [(s.trail, s.level) for s in parsed.sections]:
        raise Refused(f"The new text of '{section.name}' would change the headings of the file.", "Leave headings out.")
    return data


def append_text(parsed: Parsed, text: str) -> bytes:
    """The file with `text` after it, one blank line between; a missing final line ending stays missing.

    Refused when an open fence or comment at the end would swallow it.
    """
    data, ending = parsed.data, parsed.newline
    kept = data.rstrip(b" \t\r\n")
    final = data.endswith((b"\n", b"\r")) or not kept
    body = encode(text.replace("\r\n", "\n").replace("\n", decode(ending)))
    if kept in (b"", BOM):
        return data + (b"" if data in (b"", BOM) or data.endswith((b"\n", b"\r")) else ending) + body
    gap = b"" if final else ending
    blank = b"" if final and len(data) - len(kept) > len(ending) else ending
    new = data + gap + blank + (body if final else body.rstrip(b"\r\n"))
    old = [(s.trail, s.level) for s in parsed.sections]
    if [(s.trail, s.level) for s in parse(new).sections][: len(old)] != old:
        raise _unsafe(parsed, parsed.sections[-1])
    return new


def append_section(parsed: Parsed, title: str, text: str) -> bytes:
    """The file with one more H2 section at its end, read back as exactly one.

    A file of dated paragraphs gets one more of those instead: a heading would make it another kind of file.
    """
    title = clean(title).replace("\n", " ")
    if parsed.family == "dated":
        return add_entry(parsed, "", title + "\n" + re.sub(r"(?m)^[ \t]*[-*+][ \t]+", "", text), "")
    data = append_text(parsed, f"## {title}\n\n{text.strip()}\n")
    again = parse(data)
    if len([s for s in again.sections if s.level]) != len([s for s in parsed.sections if s.level]) + 1:
        raise _unsafe(parsed, parsed.sections[-1])
    return data


def _append_separated(parsed: Parsed, text: str, note: str) -> bytes:
    lines = _marked(text, note)
    lead = "§\n" if parsed.entries else ""
    data = parsed.data
    gap = b"" if not data or data.endswith((b"\n", b"\r")) else parsed.newline
    body = encode((lead + lines).replace("\n", decode(parsed.newline)))
    return data + gap + body + (b"" if gap else parsed.newline)


def entry_by_id(parsed: Parsed, channel: str, identity: str) -> Entry | None:
    """The entry with that id, written or derived. `Refused` when two entries of the file share it."""
    fits = [entry for found, entry in identified(parsed, channel) if found == identity]
    if len(fits) > 1:
        lines = ", ".join(str(e.line) for e in fits)
        raise Refused(f"The id '{identity}' stands in lines {lines}.", "Give one of them another id.")
    return fits[0] if fits else None


def replace_entry(parsed: Parsed, entry: Entry, text: str, note: str) -> bytes:
    """The file with `entry` saying `text`; only its own lines change, and it reads back as that one entry."""
    text = clean(text)
    raw = decode(parsed.data[entry.start : entry.end])
    body = raw.rstrip("\r\n")
    mark = re.match(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+", raw)
    if not entry.listed:
        new = _marked(text, note).replace("\n", decode(parsed.newline))
    else:
        new = item(text, note, mark[0] if mark else "- ", decode(parsed.newline))
    data = parsed.data[: entry.start] + encode(new + raw[len(body) :]) + parsed.data[entry.end :]
    _verify(parsed, data, entry, text)
    return data


def remove_entry(parsed: Parsed, entry: Entry) -> bytes:
    """The file without `entry`'s lines (and without the blank line that would be left twice)."""
    head, tail = parsed.data[: entry.start], parsed.data[entry.end :]
    ending = parsed.newline
    if parsed.family == "separated":
        mark = re.compile(rb"\xc2\xa7[ \t]*(?:\r\n|\n|\r|\Z)")
        found = mark.match(tail)
        if found:
            tail = tail[found.end() :]
        else:
            head = re.sub(rb"(?:\r\n|\n|\r)?\xc2\xa7[ \t]*(?:\r\n|\n|\r)\Z", ending, head)
    elif head.endswith(ending * 2) and tail.startswith(ending):
        tail = tail[len(ending) :]
    if not tail and head and not parsed.data.endswith((b"\n", b"\r")):
        head = head.removesuffix(ending)
    data = head + tail
    if not _differs_alone(parsed, data, entry, None):
        data = head + ending + tail  # what stood on both sides must not become one
    _verify(parsed, data, entry, None)
    return data


def _verify(parsed: Parsed, data: bytes, entry: Entry, text: str | None) -> None:
    if not _differs_alone(parsed, data, entry, text):
        raise Refused(f"The entry in line {entry.line} cannot be changed alone.", "Change it in an editor.")


def _differs_alone(parsed: Parsed, data: bytes, entry: Entry, text: str | None) -> bool:
    """Whether `data` reads as `parsed` but for that one entry, which says `text` now (None: is gone)."""
    wanted = [(e.trail, e.text) for e in parsed.entries if e.start < entry.start]
    wanted += [(entry.trail, text)] if text is not None else []
    wanted += [(e.trail, e.text) for e in parsed.entries if e.start > entry.start]
    again = parse(data)
    # With its last separator gone a `§` file no longer looks like one; its entries are still counted as such.
    entries = _separated(again) if parsed.family == "separated" else again.entries
    same = [s.trail for s in again.sections] == [s.trail for s in parsed.sections]
    same = same and (parsed.family == "separated" or _prose(again) == _prose(parsed))
    return same and [(e.trail, e.text) for e in entries] == wanted


def _prose(parsed: Parsed) -> list[tuple[str, bytes]]:
    """The blocks that hold no entry: what an edit of an entry must leave as it reads."""
    starts = {e.start for e in parsed.entries}
    blocks = (b for b in parsed.blocks if not b.items and b.start not in starts)
    return [(b.kind, parsed.data[b.start : b.end].strip()) for b in blocks]
