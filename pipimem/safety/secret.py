"""Secrets in a text: the scans by form, name and context together, the workspace's own patterns, what is allowed."""

from __future__ import annotations

import re

from pipimem.errors import Usage
from pipimem.safety import secret_contexts, secret_forms, secret_names
from pipimem.safety.views import UNSEEN, lowered, positions, rx, scanned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipimem.safety.views import Span

_PLACED = r"\[redacted:[a-z0-9-]{1,40}\]"
_UNSEEN_REST = f"(?:[{UNSEEN}]++[A-Za-z0-9_+/=.-]++)++"


def find(text: str, extra: Sequence[str], allow: Sequence[str]) -> list[Span]:
    """The places of secret values, in no order; those that several rules find more than once."""
    masked = _mask(text)

    def scan(view: str) -> list[Span]:
        # forms first: among findings that start together the first names the place
        low = lowered(view)
        found = (*secret_forms.find(view), *secret_names.find(view, low), *secret_contexts.find(view, low))
        return [*found, *_custom(view, extra)]

    spans = [_continued(text, span) for span in scanned(masked, scan)]
    if allow:
        spans = [span for span in spans if not _allowed(text[span[0] : span[1]], allow)]
    return [*spans, *_repeated(masked, spans)]


def _mask(text: str) -> str:
    """Placeholders become NULs of the same length, which no pattern crosses and no value begins with."""
    if "[redacted:" not in text:
        return text
    return rx(_PLACED).sub(lambda found: "\0" * len(found[0]), text)


def _custom(text: str, extra: Sequence[str]) -> Iterator[Span]:
    for source in extra:
        pattern = _custom_pattern(source)
        for found in pattern.finditer(text):
            start, end = found.span(1 if pattern.groups and found[1] is not None else 0)
            while start < end and text[start] == "\0":
                start += 1
            end = end if (stop := text.find("\0", start, end)) < 0 else stop
            if start < end:
                yield start, end, "custom"


def _custom_pattern(source: str) -> re.Pattern[str]:
    try:
        return rx(source)
    except re.error as error:
        raise Usage(
            f'The pattern "{source}" in [safety] patterns is not a regular expression: {error}.',
            "Correct it in pipimem.toml.",
        ) from None


def _continued(text: str, span: Span) -> Span:
    """The span, with what follows it in the same word behind unseen characters."""
    more = None if text.isascii() else rx(_UNSEEN_REST).match(text, span[1])
    return (span[0], more.end(), span[2]) if more else span


def _allowed(value: str, allow: Sequence[str]) -> bool:
    for entry in allow:
        if value == entry:
            return True
        try:
            if rx(entry).fullmatch(value):
                return True
        except re.error:  # written as a plain value, not as a pattern
            continue
    return False


def _repeated(text: str, spans: list[Span]) -> Iterator[Span]:
    """The other places of what was found, for the first 500 values that are no plain word or number."""
    values: dict[str, str] = {}
    for start, end, kind in spans:
        values.setdefault(text[start:end], kind)
    for value, kind in list(values.items())[:500]:
        if len(value) >= 8 and rx("[0-9]").search(value) and rx("[A-Za-z]").search(value):
            for at in positions(text, value):
                yield at, at + len(value), kind
