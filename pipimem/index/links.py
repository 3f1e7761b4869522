"""What one document says of things and how they hang together: the names it goes by, and its links.

Links are `[[wiki links]]`, relative Markdown links (by reference too), `#tags`, the front matter's lists, and what an
entry's comment names. Nothing in code or in a comment is one. What a name means is settled in `sync`, asking is
`graph`'s.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import islice
from posixpath import dirname, normpath

from pipimem.index.schema import KINDS
from pipimem.index.words import fold
from pipimem.knowledge import FAILURE, WEIGHT
from pipimem.markdown import NO_TEXT, label
from pipimem.safety import private_ranges
from pipimem.text import decode, one_line, scrub, unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from pipimem.knowledge import Knowledge
    from pipimem.markdown import Parsed
    from pipimem.workspace import Document

    Found = tuple[tuple[Any, ...], tuple[str, str], str]

LONGEST = 200
"""Characters of a name; the rest is left out, so that a pasted error message is still a name."""
MOST = 50_000
"""Links in the text of one file; what is beyond that is no memory, and would cost some."""
WHOLE = -1
"""The passage of a link that the whole file makes: one of its front matter."""

CODES = {kind: code for code, kind in enumerate(KINDS)}
OWN, PLACE, ALIAS = 0, 1, 2
"""How a document is called, in the order in which a name is looked for: by its id (a note without one by its file's
name), by where it is, by another name it gives itself."""

FACTS = frozenset(("supersedes", "conflicts", *FAILURE))
_FAILED = {
    "error": ("triggered-by", "causal"),
    "fix": ("fixed-by", "causal"),
    "tool": ("uses", "entity"),
    "file": ("observed-in", "entity"),
    "project": ("belongs-to", "entity"),
}
"""The relation of a failure to each thing its record names, and the layer of that."""

_OPENS = re.compile(rb"\\[!-/:-@\[-`{}~]|`+|<!--")
_WIKI = re.compile(rb"\[\[([^\[\]\n|#]*)(#[^\[\]\n|]*)?(?:\|[^\[\]\n]*)?\]\]")
_PATH = re.compile(
    rb"(!?)\[(?:[^\[\]]|\[[^\[\]\n]*\]){0,500}\]\([ \t]*(?:<([^<>\n]+)>|([^\s()<>]+(?:\([^\s()]*\)[^\s()]*)*))"
    rb"(?:[ \t\n]+(?:\"[^\"\n]*\"|'[^'\n]*'))?[ \t]*\)"
)
_REFERRED = re.compile(rb"(?<![!\[])\[([^\[\]]{1,300})\](?:\[([^\[\]]{0,300})\])?+(?![\[(:])")
_TAG = re.compile(rb"#(?<![^\s(\x80-\xff]#)[A-Za-z_\x80-\xff][\w/\x80-\xff-]*")
_TAG_NAME = re.compile(r"#([\w/-]*\w)")
_COLOUR = re.compile(r"(?=.*\d)[0-9a-fA-F]{3,8}\Z")
_BEFORE_TAG = frozenset(" \t\r\n(（【「『《，。、；：！？…")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Mention:
    """A link as it is written: from a node (its spelling), to a name, in `passage` (a number, or `WHOLE`) on `line`.

    `form` is how it was made: wiki, path, tag, front or fact. `fragment` is the heading it names, without the sign.
    """

    __slots__ = ("form", "fragment", "kind", "layer", "line", "passage", "relation", "source", "target", "weight")

    def __init__(
        self, source: str, target: str, kind: str, meaning: tuple[str, str], place: tuple[int, int], form: str,
        *, weight: float = WEIGHT, fragment: str = "",
    ) -> None:  # fmt: skip
        self.source = source
        self.target = target
        self.kind = kind
        self.relation, self.layer = meaning
        self.passage, self.line = place
        self.form = form
        self.weight = weight
        self.fragment = fragment


class Said:
    """What a document says: how it is called (spelling, rank), what kind of thing it is, its links, each once.

    `entries` are those that link, by id, with their kind.
    """

    __slots__ = ("entries", "kind", "links", "names")

    def __init__(self, kind: str, names: list[tuple[str, int]]) -> None:
        self.kind = kind
        self.names = names
        self.links: list[Mention] = []
        self.entries: dict[str, str] = {}


def plain_name(text: str) -> tuple[str, str]:
    """The kind a name gives itself ("" for none) and the name: `tool:uv` is the tool uv. At most `LONGEST` characters.

    >>> plain_name("tool:uv"), plain_name(" Fallow  Street Clay")
    (('tool', 'uv'), ('', 'Fallow Street Clay'))
    """
    text = scrub(one_line(text))
    if not text.isprintable():
        text = "".join(c for c in text if c.isprintable())
    kind, colon, rest = text.partition(":")
    if colon and kind in CODES and rest.strip() and not rest.startswith("//"):
        return kind, rest.strip()[:LONGEST]
    return "", text[:LONGEST]


def canonical(name: str) -> str:
    """What makes two spellings one thing: case, width and traditional characters folded, percent escapes undone."""
    for _ in range(2 if "%" in name else 0):
        name = unquote(name)
    return one_line(fold(scrub(name)))


def read(document: Document, parsed: Parsed, knowledge: Knowledge | None, found: Sequence[Found]) -> Said:
    """What a document says. `found` are its passages in order; `knowledge` is None without a front matter.

    The archive says nothing, and what was found unsafe or is marked as private, be it a passage or the front matter,
    says nothing either.
    """
    if parsed.front[1] and not (found and found[0][0][6] == "front" and not found[0][0][-1]):
        knowledge = None  # it was found unsafe, or is no passage because it is private
    said = Said(_kind(document, knowledge), names(document, knowledge))
    if document.layer != "archive":
        _keep(said, mentions(document, parsed, knowledge, found), found)
    return said


def mentions(
    document: Document, parsed: Parsed, knowledge: Knowledge | None, found: Sequence[Found] = ()
) -> list[Mention]:  # fmt: skip
    """Every link of a document as it is written, also the same one twice, but what is marked as private.

    Without passages all rest on the document.
    """
    own = names(document, knowledge)[0][0]
    links: list[Mention] = []
    if knowledge is not None:
        links += _of_front(own, _kind(document, knowledge), knowledge, lines_of_front(parsed))
    hidden = private_ranges(parsed.data)
    at = _Places(parsed, found, hidden)
    links += _of_entries(parsed, at)
    links += islice(_of_text(document, parsed, own, at), MOST)
    return links


def _keep(said: Said, links: list[Mention], found: Sequence[Found]) -> None:
    """The links that rest on something safe, each once by source, target and relation, the heaviest first."""
    unsafe = {number for number, (columns, _, _) in enumerate(found) if columns[-1]}
    kinds = {columns[4]: columns[6] for columns, _, _ in found if columns[5]}
    seen = set()
    for link in sorted(links, key=lambda link: -link.weight):
        if link.passage in unsafe or not link.target:
            continue
        mark = (link.source, canonical(link.target), link.relation)
        if mark not in seen:
            seen.add(mark)
            said.links.append(link)
            if link.source in kinds:
                said.entries[link.source] = kinds[link.source] if kinds[link.source] in CODES else "note"


# What a document is called


def _kind(document: Document, knowledge: Knowledge | None) -> str:
    if document.layer == "note":
        return "entity" if knowledge and knowledge.type == "entity" else "note"
    return {"skill": "skill", "session": "session"}.get(document.layer, "file")


def names(document: Document, knowledge: Knowledge | None) -> list[tuple[str, int]]:
    """The names of a document with their rank, its own first."""
    path = document.path
    bare = path.removesuffix(".md")
    if document.layer == "note":
        inner = f"/{bare}".partition("/memory/")[2]
        stem = inner.rpartition("/")[2]
        own = plain_name(knowledge.id)[1] if knowledge and knowledge.id else stem
        found = [(own, OWN), (stem, PLACE), (path, PLACE), (bare, PLACE), (inner, PLACE)]
    elif document.layer == "skill":
        found = [(path.split("/")[1], OWN), (path, PLACE), (bare, PLACE)]
    else:
        found = [(path, OWN), (path.rpartition("/")[2], PLACE)]
    found += [(plain_name(alias)[1], ALIAS) for alias in (knowledge.aliases if knowledge else ())]
    once: dict[str, tuple[str, int]] = {}
    for name, rank in found:
        once.setdefault(canonical(name), (scrub(name), rank))
    return [named for folded, named in once.items() if folded]


# What the front matter says


class Lines:
    """The line of a word in the front matter, looked for from where its key stands."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def of(self, key: str, value: str = "") -> int:
        """The line, from 1, on which a key's value stands; that of the key where the value is not found as it is."""
        start = next((n for n, line in enumerate(self.lines) if line.lstrip("\ufeff").startswith(f"{key}:")), 0)
        for number, line in enumerate(self.lines[start:], start) if value else ():
            if number > start and line[:1].isalpha():
                break
            if value in line:
                return number + 1
        return start + 1


def lines_of_front(parsed: Parsed) -> Lines:
    """The lines of a file's front matter."""
    return Lines(decode(parsed.data[parsed.front[0] : parsed.front[1]]))


def _of_front(own: str, kind: str, knowledge: Knowledge, line: Lines) -> Iterator[Mention]:
    def mention(key: str, value: str, otherwise: str, meaning: tuple[str, str], weight: float = WEIGHT) -> Mention:
        given, name = plain_name(value)
        place = WHOLE, line.of(key, value)
        return Mention(own, name, given or otherwise, meaning, place, "front", weight=weight)

    for link in knowledge.links:
        otherwise = "entity" if link.layer == "entity" else "note"
        yield mention("links", link.target, otherwise, (link.relation, link.layer), link.weight)
    for entity in knowledge.entities:
        yield mention("entities", entity, "entity", ("mentions", "entity"))
    for tag in knowledge.tags:
        yield mention("tags", tag, "tag", ("belongs-to", "semantic"))
    for session in knowledge.source.trajectories:
        yield mention("source", session, "session", ("observed-in", "temporal"))
    for old in knowledge.supersedes:
        yield mention("supersedes", old, kind, ("supersedes", "temporal"))
    for other in knowledge.conflicts:
        yield mention("conflicts", other, kind, ("conflicts-with", "semantic"))
    for key, values in knowledge.failure.items():
        for value in values:
            yield mention(key, value, key, _FAILED[key])


# What entries and text say


class _Places:
    """Which passage and line a byte is in, and whose link one there is."""

    def __init__(self, parsed: Parsed, found: Sequence[Found], hidden: Sequence[tuple[int, int]]) -> None:
        self.parsed = parsed
        self.hidden = hidden
        self.found = found
        self.ends = [columns[1] for columns, _, _ in found]

    def of(self, offset: int) -> tuple[int, int]:
        """The passage that holds a byte, or the next one (a heading is in none), and its line."""
        number = min(bisect_right(self.ends, offset), len(self.found) - 1)
        return (number if number >= 0 else WHOLE), self.parsed.line_of(offset)

    def shows(self, offset: int) -> bool:
        """Whether a byte is in no private span."""
        return not any(start <= offset < end for start, end in self.hidden)

    def source(self, passage: int, own: str) -> str:
        columns = self.found[passage][0] if passage >= 0 else None
        return columns[4] if columns and columns[5] else own


def _of_entries(parsed: Parsed, at: _Places) -> Iterator[Mention]:
    """What the comments of entries name besides the entry itself."""
    told = [entry for entry in parsed.entries if not FACTS.isdisjoint(entry.facts)]
    for entry in told:
        place = at.of(entry.start)
        own = at.source(place[0], "")
        if not own or not at.shows(entry.start):  # no entry of a layer that has entries, or nobody's business
            continue
        kind = entry.facts.get("kind", "")
        kind = kind if kind in CODES else "note"
        for name, meaning in (
            ("supersedes", ("supersedes", "temporal")),
            ("conflicts", ("conflicts-with", "semantic")),
        ):
            for value in entry.facts.get(name, "").split(","):
                if value.strip():
                    yield Mention(own, plain_name(value)[1], kind, meaning, place, "fact")
        for name in FAILURE:
            if entry.facts.get(name):
                yield Mention(own, plain_name(entry.facts[name])[1], name, _FAILED[name], place, "fact")


def _of_text(document: Document, parsed: Parsed, own: str, at: _Places) -> Iterator[Mention]:
    data = parsed.data
    if b"[[" not in data and b"](" not in data and not parsed.targets and not _TAG.search(data):
        return
    spans = [(block.start, block.end) for block in parsed.blocks if block.kind not in NO_TEXT]
    spans += [(section.start, section.body) for section in parsed.sections if section.level]
    for start, end in sorted(spans):
        part = data[start:end]
        if b"[" not in part and b"#" not in part:
            continue
        nested = parsed.nested[bisect_left(parsed.nested, (start, start)) : bisect_left(parsed.nested, (end, end))]
        text = visible(part, [(first - start, last - start) for first, last in nested])
        for offset, mention in _written(document, text, parsed.targets):
            if not at.shows(start + offset):
                continue
            passage, line = at.of(start + offset)
            mention.source, mention.passage, mention.line = at.source(passage, own), passage, line
            yield mention


def _written(document: Document, text: bytes, targets: Mapping[str, str]) -> Iterator[tuple[int, Mention]]:
    """The links in a text without code, each with its offset; source and place are the caller's to fill in.

    `targets` are those of reference links, by label.
    """
    for match in _WIKI.finditer(text):
        name = decode(match[1]).rstrip("\\").strip()
        if name:
            kind, name = plain_name(name)
            name = _from_here(document, name) if name.startswith(("./", "../")) else name.removesuffix(".md") or name
            name = f"{name}.md" if f"{name}.md" in _FIXED else name
            fragment = scrub(decode(match[2] or b"")[1:].strip())
            yield (
                match.start(),
                Mention("", name, kind or _kind_of(name), ("mentions", "semantic"), (0, 0), "wiki", fragment=fragment),
            )
    paths = [(m.start(), decode(m[2] or m[3])) for m in _PATH.finditer(text) if not m[1]]
    if targets:
        referred = [(m.start(), targets.get(label(decode(m[2] or m[1])))) for m in _REFERRED.finditer(text)]
        paths += [(start, path) for start, path in referred if path]
    for start, path in paths:
        if target := _relative(document, path):
            name, fragment = target
            yield start, Mention("", name, _kind_of(name), ("mentions", "semantic"), (0, 0), "path", fragment=fragment)
    for match in _TAG.finditer(text):
        if tag := _tag(text, match):
            yield match.start(), Mention("", tag, "tag", ("belongs-to", "semantic"), (0, 0), "tag")


_FIXED = frozenset("SOUL.md AGENTS.md STANDING.md MEMORY.md USER.md SESSION.md HISTORY.md".split())


def _kind_of(name: str) -> str:
    """What a link's target is, by its spelling, until a document of that name says more."""
    if name.endswith("/"):
        return "directory"
    last = name.rpartition("/")[2]
    stem, dot, ending = last.rpartition(".")
    return "file" if dot and stem and ending.isascii() and ending.isalpha() and ending != "md" else "note"


def _relative(document: Document, target: str) -> tuple[str, str] | None:
    """The path, from the workspace, of a relative link's target, and its fragment; None for any other link."""
    path, _, fragment = target.partition("#")
    path = path.partition("?")[0]
    if not path or path.startswith(("/", "\\", "~")) or _SCHEME.match(path):
        return None
    found = _from_here(document, path)
    return (found, scrub(unquote(fragment))) if found else None


def _from_here(document: Document, path: str) -> str:
    """A path seen from a document as one from the workspace; "" for one that leads out of it."""
    found = normpath(f"{dirname(document.path) or '.'}/{path}")
    if found == "." or found.startswith("../") or found == "..":
        return ""
    return scrub(found + "/" * path.endswith("/"))[:LONGEST]


def _tag(text: bytes, match: re.Match[bytes]) -> str:
    """The name of a tag, "" where the sign only looks like one: within a word, before a colour (`#ff8800`)."""
    before = decode(text[max(0, match.start() - 4) : match.start()])[-1:]
    found = _TAG_NAME.match(decode(match[0]))
    if not found or (before and before not in _BEFORE_TAG) or text[max(0, match.start() - 2) : match.start()] == b"](":
        return ""
    name = found[1]
    return "" if not any(c.isalpha() for c in name) or _COLOUR.match(name) else name[:LONGEST]


# What is no text


def visible(part: bytes, nested: Sequence[tuple[int, int]] = ()) -> bytes:
    """A block with `nested` ranges, code spans, comments and escaped signs blanked; every byte stays in its place."""
    if nested:
        whole = bytearray(part)
        for start, end in nested:
            whole[start:end] = _blank(part[start:end])
        part = bytes(whole)
    match = _OPENS.search(part)
    if match is None:
        return part
    ends: dict[bytes, list[int]] = {b"<!--": [m.end() for m in re.finditer(b"-->", part)]}
    for run in re.finditer(b"`+", part):
        ends.setdefault(run[0], []).append(run.end())
    out = bytearray(part)
    while match is not None:
        end = match.end()
        if part[match.start()] != ord("\\"):
            closers = ends.get(match[0], [])
            place = bisect_right(closers, end)
            end = closers[place] if place < len(closers) else 0  # nothing closes it, and so nothing is opened
        if end:
            out[match.start() : end] = _blank(part[match.start() : end])
        match = _OPENS.search(part, end or match.end())
    return bytes(out)


def _blank(part: bytes) -> bytes:
    return re.sub(rb"[^\r\n]", b" ", part)
