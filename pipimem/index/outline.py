"""A plain Markdown file → what `markdown.parse` makes of it, line by line and ten times as fast; anything else → None.

Plain is what pipimem writes and most notes are: headings, paragraphs, `- ` items and comments, nothing
nested. Whatever might be more is left to the parser, and tests hold both to the same result.
"""

from __future__ import annotations

import re

from pipimem.markdown import Block, Entry, Parsed, Section, parse
from pipimem.text import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ODD = re.compile(rb"[\0\r\x0b\x0c]|\xc2\xa7|\A\xef\xbb\xbf")
# How a line of a paragraph may begin so that it can be nothing else.
_TEXT = re.compile(
    rb"[A-Za-z!\"$%&'(),./:;?@\\\]^{|}\x80-\xff]|`(?!``)|\*{1,2}[A-Za-z0-9\x80-\xff]|_[A-Za-z0-9\x80-\xff]"
    rb"|(?!\d{1,9}[.)](?:[ \t\n]|\Z))\d|\[(?!.*\]:)"
)
_HEADING = re.compile(rb"(#{1,6})[ \t]+([^\n]*[^#\s])[ \t]*\n?\Z")


def read(data: bytes) -> Parsed:
    """`markdown.parse(data)`, without the parser where that can be."""
    return outline(data) or parse(data)


def outline(data: bytes) -> Parsed | None:
    """`markdown.parse(data)` for a plain file with headings, else None."""
    if _ODD.search(data):
        return None
    parsed = Parsed(data)
    base = parsed.front[1]
    lines = data[base:].splitlines(keepends=True)
    offsets = parsed.offsets = [base]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    reading = _Reading(parsed, lines, data.count(b"\n", 0, base))
    return parsed if reading.all() and reading.heads else None


class _Reading:
    """One file being read, line by line: what is open, and what was found."""

    __slots__ = ("before", "end", "heads", "is_list", "is_open", "lines", "parsed", "rest")

    def __init__(self, parsed: Parsed, lines: Sequence[bytes], before: int) -> None:
        self.parsed = parsed
        self.lines = lines
        self.rest = enumerate(lines)
        self.before = before
        self.heads: list[tuple[int, int, str]] = []
        self.is_open = False  # a paragraph, or the text of an item, that the next line may go on with
        self.is_list = False  # a list that the next item belongs to
        self.end = parsed.offsets[-1]
        if lines and not lines[-1].endswith(b"\n"):
            self.end -= len(lines[-1]) - len(lines[-1].rstrip(b" \t"))

    def all(self) -> bool:
        """Reads everything; false when a line is not plain."""
        text = _TEXT.match
        for number, line in self.rest:
            if text(line):
                if self.is_open:
                    self._goes_on(number)
                else:
                    self._begin("paragraph_open", "", number)
                    self.is_open, self.is_list = True, False
            elif line.isspace():
                self.is_open = False
            elif not self._other(number, line):
                return False
        self._cut()
        return True

    def _other(self, number: int, line: bytes) -> bool:
        if line.startswith(b"- ") and _TEXT.match(line, 2):
            self._item(number)
        elif line.startswith(b"  ") and self.is_open and self.is_list and _TEXT.match(line, 2):
            self._goes_on(number)
        elif heading := _HEADING.match(line):
            self.heads.append((number, len(heading[1]), decode(heading[2]).strip()))
            self.is_open = self.is_list = False
        elif line.startswith(b"<!--"):
            return self._comment(number, line)
        else:
            return line.strip(b"# \t\n") == b"" and self._bare(number, line)
        return True

    def _comment(self, number: int, line: bytes) -> bool:
        """A comment up to the line that ends it; one that is never ended is no plain file's."""
        self._begin("html_block", "", number)
        self.is_open = self.is_list = False
        while b"-->" not in line:
            number, line = next(self.rest, (number, b""))
            if not line:
                return False
        self.parsed.blocks[-1].end = self._end_of(number)
        return True

    def _bare(self, number: int, line: bytes) -> bool:
        """A heading without a title."""
        level = len(line.rstrip(b"\n"))
        if line[:1] != b"#" or level > 6 or b" " in line or b"\t" in line:
            return False
        self.heads.append((number, level, ""))
        self.is_open = self.is_list = False
        return True

    def _item(self, number: int) -> None:
        if not self.is_list:
            self._begin("bullet_list_open", "-", number)
        block = self.parsed.blocks[-1]
        block.end = self._end_of(number)
        block.items.append((self.parsed.offsets[number], block.end, self.before + number + 1))
        self.is_open = self.is_list = True

    def _goes_on(self, number: int) -> None:
        block = self.parsed.blocks[-1]
        block.end = self._end_of(number)
        if block.items:
            start, _, line = block.items[-1]
            block.items[-1] = start, block.end, line

    def _begin(self, kind: str, marker: str, number: int) -> None:
        span = self.parsed.offsets[number], self._end_of(number)
        self.parsed.blocks.append(Block(kind, marker, span, self.before + number + 1))

    def _end_of(self, number: int) -> int:
        return min(self.end, self.parsed.offsets[number + 1])

    def _cut(self) -> None:
        """The sections and entries of what was found."""
        offsets, found, trail = self.parsed.offsets, self.parsed.sections, [""] * 6
        starts = [offsets[number] for number, _, _ in self.heads] + [offsets[-1]]
        if starts[0] > offsets[0] or not self.heads:
            found.append(Section(0, "", (), (offsets[0], offsets[0], starts[0]), self.before + 1))
        for at, (number, level, title) in enumerate(self.heads):
            trail[level - 1 :] = [title] + [""] * (6 - level)
            names = tuple(part for part in trail[:level] if part)
            span = starts[at], offsets[number + 1], starts[at + 1]
            found.append(Section(level, title, names, span, self.before + number + 1))
        place = 0
        for block in self.parsed.blocks:
            if block.items:
                while block.start >= found[place].end:
                    place += 1
                for start, end, line in block.items:
                    text = _text_of(decode(self.parsed.data[start:end]))
                    self.parsed.entries.append(Entry((start, end), line, found[place].trail, text, listed=True))


def _text_of(item: str) -> str:
    first, *others = item[2:].split("\n")
    return "\n".join([first, *(line.removeprefix("  ") for line in others)]).strip()
