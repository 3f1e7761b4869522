"""Notes: a page for each day or topic below `memory/`, to which people append what is longer than an entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.errors import Refused, Usage
from pipimem.text import printable

if TYPE_CHECKING:
    from datetime import datetime

DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
PASSES = 20
"""How often headings are looked for again after those that were seen are escaped."""
COMMENT = re.compile(r"<!--(?=\s*(?:id:)?m-[0-9a-f]{8})")


def path_of(folder: str, name: str) -> str:
    """Where a page stands, below a channel's folder ("" = shared). Raises `Usage` for a name that cannot be one."""
    odd = any(c in "/\\" or not c.isprintable() for c in name)
    if not name or odd or name.startswith(".") or name.endswith(".md"):
        raise Usage(f"'{printable(name)}' cannot be a note's name.", "Give a plain name, without a path or ending.")
    return f"{folder}/memory/{name}.md".removeprefix("/")


def page(name: str) -> bytes:
    """The beginning of a new page."""
    return f"# {name}\n".encode()


def heading(name: str, now: datetime) -> str:
    """The heading of one more note: the time on a day's page, day and time on a topic's."""
    return f"{now:%H:%M}" if DAY.fullmatch(name) else f"{now:%Y-%m-%d %H:%M}"


def body(text: str) -> str:
    """A note's text as it stands under its heading: headings, and what could pose as an entry's comment, are escaped.

    Raises `Usage` when it is empty, `Refused` when it would swallow what is written after it.
    """
    text = COMMENT.sub("<\\\\!--", text.translate(markdown.CONTROL)).strip("\r\n")
    text = re.sub(r"\r\n|\r", "\n", text)
    if not text.strip():
        raise Usage("The text is empty.", "Say what is to be noted.")
    data = text.encode("utf-8", "surrogateescape")
    heads = _heads(data)
    for _ in range(PASSES):  # an escaped heading is text, and may stand over an underline
        for section in reversed(heads):
            lines = data[section.start : section.body].rstrip(b" \t\n")
            sign = lines if lines.lstrip(b" ").startswith(b"#") else lines[lines.rfind(b"\n") + 1 :]
            at = section.start + len(lines) - len(sign.lstrip(b" "))
            data = data[:at] + b"\\" + data[at:]
        heads = _heads(data)
        if not heads:
            break
    after = _heads(data + b"\n\n## After\n")
    if not after or after[-1].title != "After":
        raise Refused("The note opens a fence or comment that is never closed.", "Close it, and note it again.")
    if heads:
        raise Refused(
            "The note has lines of = or - that make headings of one another.", "Put blank lines between them."
        )
    return data.decode("utf-8", "surrogateescape")


def _heads(data: bytes) -> list[markdown.Section]:
    return [section for section in markdown.parse(data).sections if section.level]
