"""What people and agents call a passage: an id, `path#heading`, `path:line`, or the source of a message.

Brackets and the prefixes `mem:` and `event:` may stand around any of them. Pure: nothing here looks anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pipimem import markdown, safety
from pipimem.errors import NotFound, Usage
from pipimem.text import clip, decode, printable
from pipimem.transcript import REFERENCE

ID = re.compile(r"m-[0-9a-f]{8}")
SHORT = re.compile(r"(?:m-)?[0-9a-f]{4,8}")
SESSION = re.compile(r"[a-z][a-z0-9_-]*:[^#\s]+")
LINE = re.compile(r"(.+\.md):(\d{1,9})")


class Reference:
    """One reference, taken apart. `form` is id, short, heading, line, path or source; `name` the heading or id."""

    __slots__ = ("form", "line", "name", "path")

    def __init__(self, form: str, *, path: str = "", name: str = "", line: int = 0) -> None:
        self.form = form
        self.path = path
        self.name = name
        self.line = line


def parse(ref: str) -> Reference:
    """Takes a reference apart. Raises `Usage` for what has none of the forms."""
    bare = ref.strip()
    while bare.startswith("[") and bare.endswith("]"):
        bare = bare[1:-1].strip()
    bare = re.sub(r"\A(?:mem|event):", "", bare)
    if ID.fullmatch(bare):
        return Reference("id", name=bare)
    if SHORT.fullmatch(bare):
        return Reference("short", name="m-" + bare.removeprefix("m-"))
    if found := LINE.fullmatch(bare):
        return Reference("line", path=found[1], line=int(found[2]))
    path, mark, heading = bare.partition("#")
    if path.endswith(".md"):
        return Reference("heading" if mark and heading.strip() else "path", path=path, name=heading.strip())
    if REFERENCE.fullmatch(bare) or SESSION.fullmatch(bare):
        return Reference("source", name=bare)
    raise Usage(
        f"'{printable(ref)}' is no reference.",
        "Give an entry's id, path#heading, path:line, engine:session or engine:session#message.",
    )


class Shown:
    """What a reference opens: `text` from `path` at `line` (from 1), the `source` it rests on, or the `problem`."""

    __slots__ = ("channel", "date", "id", "kind", "line", "path", "problem", "ref", "source", "text")

    def __init__(self, ref: str, *, path: str = "", line: int = 0, text: str = "", problem: str = "") -> None:
        self.ref = ref
        self.path = path
        self.line = line
        self.text = text
        self.problem = problem
        self.channel = self.date = self.id = self.kind = self.source = ""


def opened(
    ref: str, found: Reference, path: str, data: bytes, *, around: int, most: int, redacted: Callable[[str], str]
) -> Shown:  # fmt: skip
    """The passage of a file that a reference names, with `around` lines on both sides, `most` characters at most,
    cut only once it is `redacted`: half a secret is none any more that could be told.

    `found.line` or `found.name` (a heading) says which; without both it is the file's beginning. Raises `NotFound`.
    """
    data = safety.withheld(data)
    parsed = markdown.parse(data)
    if found.form == "heading":
        section = markdown.find_section(parsed, found.name)
        span, entry = (section.start, section.end), None
    elif found.form == "path":
        span, entry = (0, len(data)), None
    else:
        piece = next((p for p in _pieces(parsed) if p.line <= found.line <= _last(parsed, p)), None)
        if piece is None:
            raise NotFound(f"There is no text in line {found.line} of '{printable(path)}'.", "Give another line.")
        span, entry = (piece.start, piece.end), piece.entry
    shown = Shown(ref, path=path, line=parsed.line_of(span[0]) if span[0] >= parsed.offsets[0] else 1)
    text = entry.text if entry and not around else decode(_widened(data, span, around))
    shown.text = clipped(redacted(text.strip("\r\n")), most)
    if entry is not None:
        shown.id, shown.kind = entry.id, entry.facts.get("kind", "")
        shown.date, shown.source = entry.facts.get("since", ""), entry.facts.get("src", "")
    return shown


def clipped(text: str, most: int) -> str:
    """At most `most` characters, and how many more there are."""
    return text if len(text) <= most else f"{clip(text, most)} ({len(text) - most:,} more characters)"


def _pieces(parsed: markdown.Parsed) -> list[markdown.Piece]:
    heads = [markdown.Piece((s.start, s.body), s.line, s.trail) for s in parsed.sections if s.level]
    return markdown.pieces(parsed, entries=True) + heads


def _last(parsed: markdown.Parsed, piece: markdown.Piece) -> int:
    return piece.line + max(0, len(parsed.data[piece.start : piece.end].rstrip(b"\r\n").splitlines()) - 1)


def _widened(data: bytes, span: tuple[int, int], around: int) -> bytes:
    """The bytes of a span with `around` lines before and after it."""
    before, after = data[: span[0]].splitlines(keepends=True), data[span[1] :].splitlines(keepends=True)
    return (
        b"".join(before[len(before) - around :] if around else []) + data[span[0] : span[1]] + b"".join(after[:around])
    )
