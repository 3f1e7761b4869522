"""Front matter: recognised on bytes, read by a library, edited in the one value that is named, never rendered anew."""

from __future__ import annotations

import re

from pipimem.errors import Refused, Usage
from pipimem.text import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

BOM = b"\xef\xbb\xbf"
FRONT_LIMIT = 64 * 1024
FRONT_LINE = re.compile(rb"(?:---|\.\.\.)[ \t]*\Z")
KEY = re.compile(r"[A-Za-z_][\w-]*\Z")


def front_matter(data: bytes) -> tuple[int, int]:
    """The byte range of the front matter with both fences, (0, 0) without one.

    It starts in the first line (a BOM may stand before), is closed by `---` or `...` within 64 kB, and its first
    line is neither blank nor prose: a file that begins with a thematic break has none.
    """
    start = len(BOM) if data.startswith(BOM) else 0
    lines = data[start : start + FRONT_LIMIT].splitlines(keepends=True)
    if not lines or lines[0].rstrip(b"\r\n \t") != b"---":
        return 0, 0
    at = start + len(lines[0])
    for index, line in enumerate(lines[1:]):
        at += len(line)
        if FRONT_LINE.match(line.rstrip(b"\r\n")):
            inner = lines[1 : index + 1]
            return (start, at) if _mapping_like(inner) else (0, 0)
    return 0, 0


def _mapping_like(lines: Sequence[bytes]) -> bool:
    """Whether the first line that says something is a `key:` line: what a YAML mapping must begin with."""
    for line in lines:
        stripped = line.strip()
        if stripped and not stripped.startswith(b"#"):
            return bool(re.match(rb"""["']?[^\s:{}\[\]][^:]*:(\s|$)""", stripped)) and not line[:1].isspace()
    return True


def read_front(data: bytes) -> tuple[dict[str, Any], str]:
    """The front matter's values and "" — or {} and why it cannot be read. Never raises, never changes a byte."""
    start, end = front_matter(data)
    if end == start:
        return {}, ""
    from frontmatter.default_handlers import YAMLHandler

    inner = decode(data[start:end]).strip("\ufeff").splitlines()[1:-1]
    try:
        values = YAMLHandler().load("\n".join(inner))
    except Exception as error:  # noqa: BLE001 - seven exception types were met, and any more must not stop a run
        return {}, f"front matter is no valid YAML: {' '.join(str(error).split())[:120]}"
    if values is None:
        return {}, ""
    if not isinstance(values, dict):
        return {}, "front matter is no mapping"
    return {str(k): v for k, v in values.items()}, ""


def set_value(data: bytes, key: str, value: str | int | float | bool) -> bytes:
    """The file with one front-matter value set: only that value's bytes differ, or one line is new at the end.

    Comments, quoting, order and line endings stay. Raises `Refused` where there is no front matter, where it is no
    valid YAML (with the library's words and line), and for a value that spans lines or a key that stands twice.
    """
    if not KEY.match(key):
        raise Usage(f"'{key}' cannot be a front matter key here.", "Use letters, digits, - and _.")
    start, end = front_matter(data)
    if start == end:
        raise Refused("The file has no front matter.", "Add a block of its own in an editor first.")
    values, why = read_front(data)
    if why:
        raise Refused(f"The front matter cannot be edited: {why}.", "Mend it in an editor first.")
    new = data[:start] + encode(_with_value(decode(data[start:end]), key, value)) + data[end:]
    if read_front(new) != ({**values, key: value}, ""):
        raise Refused(f"The front matter key '{key}' cannot be set alone.", "Change it in an editor.")
    return new


def _with_value(block: str, key: str, value: str | int | float | bool) -> str:
    first = re.match(r"[^\r\n]*(?:\r\n|\n|\r)", block)
    last = re.search(r"(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r)?\Z", block)
    assert first is not None
    assert last is not None
    head, inner, tail = block[: first.end()], block[first.end() : last.start()], block[last.start() :]
    span = _value_span(inner, key)
    if span is None:
        ending = head[len(head.rstrip("\r\n")) :]
        return f"{head}{inner}{key}: {_scalar(value)}{ending}{tail}"
    gap = "" if inner[span[0] - 1 : span[0]] in (" ", "\t") else " "
    return head + inner[: span[0]] + gap + _scalar(value) + inner[span[1] :] + tail


def _value_span(inner: str, key: str) -> tuple[int, int] | None:
    """The characters of a key's value in the YAML text, None where the key is missing."""
    import yaml

    root = yaml.compose(inner, Loader=yaml.SafeLoader)
    if root is None:
        return None
    found = [(k, v) for k, v in root.value if getattr(k, "value", None) == key]
    if not found:
        return None
    name, value = found[0]
    if len(found) > 1:
        raise Refused(f"The front matter key '{key}' stands {len(found)} times.", "Keep one of them.")
    if not isinstance(value, yaml.ScalarNode) or value.end_mark.line != name.start_mark.line:
        raise Refused(
            f"The front matter value of '{key}' is more than one value on one line.", "Change it in an editor."
        )
    return value.start_mark.index, value.end_mark.index


def _scalar(value: str | int | float | bool) -> str:
    """A value as YAML on one line: plain where YAML reads it back the same, else in double quotes."""
    import json

    import yaml

    if not isinstance(value, str):
        return json.dumps(value)
    try:
        plain = value == value.strip() and "\n" not in value and yaml.safe_load(f"a: {value} # b") == {"a": value}
    except yaml.YAMLError:
        plain = False
    return value if plain else json.dumps(value, ensure_ascii=False)
