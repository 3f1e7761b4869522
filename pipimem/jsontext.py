"""JSON text edited in place: a value set, added or taken out; every other byte stays as it is.

Plain JSON only. Text with comments, trailing commas or a key twice is refused, since what it means, or where an edit
belongs, is not certain. Every edit is read back.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    Path = Sequence[str | int]

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODE = json.JSONDecoder().raw_decode
_INDENT = re.compile(r'\n([ \t]+)["\[{]')


class Node:
    """A value in the text: its span, and for an object or array its parts: (key or number, where it starts, value)."""

    __slots__ = ("end", "kind", "parts", "start")

    def __init__(self, kind: str, start: int) -> None:
        self.kind = kind
        self.start = start
        self.end = start
        self.parts: list[tuple[str | int, int, Node]] = []


def load(text: str) -> Any:
    """What the text says. Raises `ValueError` in words for people, with the line, for what is no plain JSON."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(found)
        if len(value) < len(found):
            keys = [key for key, _ in found]
            raise ValueError(f"the key '{next(k for k in keys if keys.count(k) > 1)}' stands twice")
        return value

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno} is no plain JSON ({error.msg.lower()})") from None


def put(text: str, path: Path, value: Any) -> str:
    """`text` with `value` at `path`: in the place of what is there, else as the last part; parents are made."""
    node = _node(text)
    for depth, key in enumerate(path):
        found = _part(node, key)
        if found is None:
            inner = value
            for name in reversed(path[depth + 1 :]):
                inner = {name: inner}
            return _checked(text, _added(text, node, key, inner), path, value)
        node = found[1]
    base = _base(text, node.start)
    return _checked(text, text[: node.start] + _dumped(text, value, base, node) + text[node.end :], path, value)


def drop(text: str, path: Path) -> str:
    """`text` without what stands at `path`, its comma and its line."""
    parent = _node(text)
    for key in path[:-1]:
        parent = _there(parent, key)
    at = next(i for i, (key, _, _) in enumerate(parent.parts) if key == path[-1])
    _, start, node = parent.parts[at]
    if len(parent.parts) == 1:
        cut = parent.start + 1, parent.end - 1
    elif at == len(parent.parts) - 1:
        cut = parent.parts[at - 1][2].end, node.end
    else:
        cut = start, parent.parts[at + 1][1]
    done = text[: cut[0]] + text[cut[1] :]
    wanted = load(text)
    inner = wanted
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    if load(done) != wanted:
        raise ValueError("it could not be edited safely")
    return done


def _checked(before: str, after: str, path: Path, value: Any) -> str:
    """The text after an edit, once it reads back as exactly that edit."""
    wanted = load(before)
    inner = wanted
    for key in path[:-1]:
        inner = inner[key] if isinstance(key, int) else inner.setdefault(key, {})
    if isinstance(inner, list) and path[-1] == len(inner):
        inner.append(value)
    else:
        inner[path[-1]] = value
    if load(after) != wanted:
        raise ValueError("it could not be edited safely")
    return after


def _node(text: str) -> Node:
    load(text)  # what follows relies on plain JSON
    return _read(text, _skip(text, 0))


def _read(text: str, at: int) -> Node:
    if text[at] in "{[":
        return _container(text, at)
    node = Node("scalar", at)
    _, node.end = _DECODE(text, at)
    return node


def _container(text: str, at: int) -> Node:
    node = Node("object" if text[at] == "{" else "array", at)
    place = _skip(text, at + 1)
    while text[place] not in "}]":
        start: int = place
        key: str | int = len(node.parts)
        if node.kind == "object":
            key, place = _DECODE(text, place)
            place = _skip(text, _skip(text, place) + 1)
        value = _read(text, place)
        node.parts.append((key, start, value))
        place = _skip(text, value.end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    node.end = place + 1
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _part(node: Node, key: str | int) -> tuple[int, Node] | None:
    return next(((start, value) for name, start, value in node.parts if name == key), None)


def _there(node: Node, key: str | int) -> Node:
    found = _part(node, key)
    if found is None:
        raise KeyError(key)
    return found[1]


def _added(text: str, node: Node, key: str | int, value: Any) -> str:
    """The text with one more part at the end of an object or array, laid out as the others are."""
    named = f"{json.dumps(key, ensure_ascii=False)}: " if node.kind == "object" else ""
    if node.parts:
        _, start, last = node.parts[-1]
        end = last.end
        before = node.parts[-2][2].end if len(node.parts) > 1 else node.start
        if "\n" in text[before:start] or "\n" in text[end : node.end]:
            indent = _base(text, start)
            piece = f",{_newline(text)}{indent}{named}{_dumped(text, value, indent, node)}"
        else:
            piece = f", {named}{json.dumps(value, ensure_ascii=False)}"
        return text[:end] + piece + text[end:]
    base = _base(text, node.start)
    indent = base + _unit(text)
    line = _newline(text)
    piece = f"{line}{indent}{named}{_dumped(text, value, indent, None)}{line}{base}"
    return text[: node.start + 1] + piece + text[node.end - 1 :]


def _dumped(text: str, value: Any, indent: str, beside: Node | None) -> str:
    """A value as text: over several lines unless what it stands beside is on one."""
    if beside is not None and beside.kind != "scalar" and "\n" not in text[beside.start : beside.end]:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_newline(text) + indent).join(lines)


def _base(text: str, at: int) -> str:
    """The white space at the start of the line in which `at` stands."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
