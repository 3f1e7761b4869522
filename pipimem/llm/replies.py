"""The one JSON value in what a model really sends, or the reason why there is none. Pure; knows no schema.

Fences, thoughts and talk around the value are normal. A reply is understood completely or refused completely: an
object that was cut off is never closed, and nothing in it is repaired.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from pipimem.errors import ModelFailed
from pipimem.llm import REPLY_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 32
"""Levels of nesting; our deepest schema has six."""
PIECES = 200
"""Bracketed pieces looked at; talk with footnotes has a dozen."""
OPEN = re.compile(r"[{\[]")
CLOSE = re.compile(r"[}\]]")
# A string that is never closed reaches to the end, so that no text is scanned twice.
TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
FENCE = re.compile(r"\A```[\w+-]*[ \t]*\r?\n(.*)\r?\n?[ \t]*```\Z", re.DOTALL)
THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|(\Z))", re.DOTALL)
PAGE = re.compile(r"<!doctype\s+html|<html\b|<head\b|<body\b", re.IGNORECASE)
CURLY = re.compile("[“”„‟＂「」]")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
BROKEN = re.compile("[\ud800-\udfff]")


class BadReply(ModelFailed):
    """A reply that holds no usable value; `reason` says why in one line and repeats nothing of the reply."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The model's reply is not usable: {reason}.", "Try again, or name another model.")
        self.reason = reason


class Nothing:
    """What `read` gives for a reply that says there is nothing to do; `reason` names how it said so."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def read(text: str) -> Any:
    """The object or list in a reply, or `Nothing` for an empty one (`[]`, `{}`).

    Raises `BadReply` for no text and `null`, which are no answer, for more than 256 kB, two different values, an
    object cut off, curly quotes, NaN, a key given twice, more than 32 levels, broken characters, a page of HTML, and
    for talk without a value.
    """
    if len(text) > REPLY_LIMIT or len(text.encode("utf-8", "replace")) > REPLY_LIMIT:
        raise BadReply(f"it is longer than {REPLY_LIMIT // 1024} kB")
    text = _answer(text.lstrip("\ufeff")).strip().lstrip("\ufeff")
    if fenced := FENCE.match(text):
        text = fenced[1].strip()
    if not text:
        raise BadReply("it is empty")
    if text == "null":
        raise BadReply("it is null")
    value = _stringified(text) if text[0] == '"' else _only(text)
    if value in ({}, []):
        return Nothing("the reply is an empty list" if value == [] else "the reply is an empty object")
    return value


def parse(text: str) -> Any:
    """JSON, stricter than Python's own: no NaN or infinity, no key twice, at most 32 levels, only whole characters.

    A line break or tab inside a string is taken as what it is. Raises `BadReply`.
    """
    _bounded(text)
    try:
        value = json.loads(
            text, strict=False, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_each_key_once
        )
    except json.JSONDecodeError as error:
        curly = CURLY.match(text, error.pos)
        said = "curly quotes stand for straight ones" if curly else error.msg[0].lower() + error.msg[1:]
        raise BadReply(f"it is not JSON at character {error.pos}: {said}") from None
    except (ValueError, RecursionError):
        raise BadReply("it holds a number of thousands of digits") from None
    _whole(value)
    return value


def _stringified(text: str) -> Any:
    inner = parse(text)
    text = inner.strip().lstrip("\ufeff") if isinstance(inner, str) else ""
    if text[:1] == '"':
        raise BadReply("it is a string inside a string")
    if not text:
        raise BadReply("it is empty")
    return _only(text)


def _answer(text: str) -> str:
    thoughts = THOUGHTS.match(text)
    if thoughts and thoughts[1] is not None:
        raise BadReply("its thoughts never end")
    return text[thoughts.end() :] if thoughts else text


def _only(text: str) -> Any:
    found = OPEN.search(text)
    before = text[: found.start()] if found else text
    if PAGE.search(before) or PAGE.match(text):
        raise BadReply("it is a page of HTML")
    values = [value for segment in _segments(text) if (value := _meant(segment, alone=segment == text)) is not None]
    if not values:
        raise BadReply("it is talk without a JSON object")
    if any(value != values[0] for value in values[1:]):
        raise BadReply(f"it holds {len(values)} different JSON values")
    return values[0]


def _segments(text: str) -> Iterator[str]:
    """Every bracketed piece of the text, outermost brackets only; one that is never closed refuses the reply."""
    at = count = 0
    while found := OPEN.search(text, at):
        count += 1
        if count > PIECES:
            raise BadReply(f"it holds more than {PIECES} bracketed pieces")
        _nothing_closes(text, at, found.start())
        at = _end(text, found.start())
        yield text[found.start() : at]
    _nothing_closes(text, at, len(text))


def _nothing_closes(text: str, start: int, end: int) -> None:
    if found := CLOSE.search(text, start, end):
        raise BadReply(f"what closes at character {found.start()} was never opened")


def _end(text: str, start: int) -> int:
    depth = 0
    for token in TOKEN.finditer(text, start):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return token.end()
    raise BadReply(f"it is cut off: what opens at character {start} is never closed")


def _meant(segment: str, *, alone: bool) -> Any:
    """The value of a bracketed piece; None for brackets that belong to the talk around, such as `[1]` or `{name}`."""
    plain = not re.search(r'[":“”]', segment)
    try:
        value = parse(segment)
    except BadReply:
        if plain and not alone and len(segment) <= 200:
            return None
        raise
    if not alone and isinstance(value, list) and value and not any(isinstance(item, dict | str) for item in value):
        return None
    return value


def _bounded(text: str) -> None:
    depth = 0
    for token in TOKEN.finditer(text):
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        if depth > DEPTH:
            raise BadReply(f"it is nested deeper than {DEPTH} levels")


def _no_number(name: str) -> NoReturn:
    raise BadReply(f"it holds {name}, which is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise BadReply("it holds a number beyond all bounds")
    return number


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadReply("it gives one key twice in one object")
    return found


def _whole(value: Any) -> None:
    if isinstance(value, str):
        if BROKEN.search(value):
            raise BadReply("it holds half a character (a lone surrogate)")
        if CONTROL.search(value):
            raise BadReply("it holds control characters")
    elif isinstance(value, dict):
        for key, item in value.items():
            _whole(key)
            _whole(item)
    elif isinstance(value, list):
        for item in value:
            _whole(item)
