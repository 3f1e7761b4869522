"""Skills in a block: offered by name and what they are for, never as their text; who is offered which.

Front matter is read here line by line, since a YAML library costs more than a recall. What is not plain beyond doubt is
refused, so that this never reads a value differently from `pipimem.skills`, nor offers what that calls invalid.
"""

from __future__ import annotations

from pipimem.front import front_matter
from pipimem.skills import DESCRIPTION_LIMIT, MOMENTS, bad_name
from pipimem.text import decode, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipimem.index import Hit

    Value = str | list[str] | None

MATCHED = 3.0
"""Evidence that a file given by the caller adds to a skill whose `paths` name it: as much as one telling word."""
INVOLVED = "its front matter is too involved to be read here"
BLOCKS = frozenset((">", ">-", ">+", "|", "|-", "|+"))
NO_TEXT = frozenset(("yes", "no", "true", "false", "on", "off", "null", "y", "n"))
OPENING = "/(_"
"""What a plain value may begin with besides letters and digits."""


class NotPlain(Exception):
    """A front matter that only a YAML library could read."""


class Skill:
    """What a skill's front matter says of itself; `problem` is why it is not to be offered ("" when it is)."""

    __slots__ = ("memory_scope", "name", "paths", "problem", "purpose")

    def __init__(self, name: str, data: bytes | None) -> None:
        self.name = name
        self.purpose, self.memory_scope, self.paths = "", "shared", list[str]()
        if data is None:
            self.problem = "its file cannot be read"
            return
        end = front_matter(data)[1]
        try:
            values = plain_front(data[:end])
        except NotPlain:
            self.problem = INVOLVED
            return
        description = _line(values.get("description"))
        self.purpose = _line(values.get("when_to_use")) or description
        self.memory_scope = _line(values.get("memory_scope")) or "shared"
        self.paths = _list(values.get("paths"))
        self.problem = bad_name(name) or _problem(name, values, description) or _without_steps(data[end:])


class Skills:
    """Which of the skills found may be offered in one recall.

    `read` gives a file by the path of a hit, `channels` are those asked (None: all), `files` those the caller names;
    `unsafe` says what a text of a skill's front matter holds that may not be recalled, as verdicts do.
    """

    __slots__ = ("_channels", "_files", "_known", "_read", "_unsafe")

    def __init__(
        self, read: Callable[[str], bytes | None], channels: Sequence[str] | None, files: Sequence[str],
        unsafe: Callable[[str, str], str],
    ) -> None:  # fmt: skip
        self._read = read
        self._channels = channels
        self._files = [file.replace("\\", "/") for file in files]
        self._unsafe = unsafe
        self._known: dict[str, Skill] = {}

    def _skill(self, path: str) -> Skill:
        if path not in self._known:
            self._known[path] = Skill(path.replace("\\", "/").split("/")[-2], self._read(path))
        return self._known[path]

    def refused(self, hit: Hit) -> str:
        """Why the skill may not be offered here: it is not valid, or for another channel; "" when it may."""
        skill = self._skill(hit.path)
        if skill.problem:
            return f"not a valid skill: {skill.problem}"
        if self._channels is None or skill.memory_scope in ("shared", *self._channels):
            return ""
        return "a skill for another channel"

    def evidence(self, hit: Hit) -> float:
        """What the files given by the caller add to the skill's evidence."""
        paths = self._skill(hit.path).paths if self._files else ()
        return MATCHED if any(_matches(file, path) for path in paths for file in self._files) else 0.0

    def offer(self, hit: Hit) -> str:
        """Makes the hit name its whole skill and say what it is for. Gives why that may not be said, "" when it may."""
        skill = self._skill(hit.path)
        hit.ref, hit.heading, hit.text = hit.path, [skill.name], skill.purpose
        return self._unsafe(hit.path, skill.purpose)


def _problem(name: str, values: Mapping[str, Value], description: str) -> str:
    if values.get("name", name) != name:
        return "its front matter calls it something else"
    if not description:
        return "it has no description"
    if len(description) > DESCRIPTION_LIMIT:
        return "its description is too long"
    return "" if all(hook in MOMENTS for hook in _list(values.get("hooks"))) else "it names an unknown moment"


def _without_steps(text: bytes) -> str:
    return "" if decode(text).strip() else "it has no steps"


def _matches(file: str, glob: str) -> bool:
    """Whether a glob names the file: as it stands, or from any folder down when the file's path is longer."""
    from fnmatch import fnmatchcase

    glob = glob.removeprefix("./")
    globs = (glob, glob.replace("**/", "")) if "**/" in glob else (glob,)
    return any(fnmatchcase(file, form) or fnmatchcase(file, f"*/{form}") for form in globs)


def _line(value: Value) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _list(value: Value) -> list[str]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


# Front matter without a YAML library


def plain_front(block: bytes) -> dict[str, Value]:
    """The values of a front matter with its fences: texts, lists of texts, None for anything else.

    Raises `NotPlain` wherever a YAML library might read something else, or nothing.
    """
    lines = decode(block).strip("\ufeff").splitlines()[1:-1]
    if not all(line.replace("\u3000", " ").isprintable() for line in lines):
        raise NotPlain
    values: dict[str, Value] = {}
    for key, rest, below in _keys(lines):
        if key in values or not key.replace("-", "").replace("_", "").isalnum() or not key.isascii():
            raise NotPlain
        if not key[0].isalpha() or key.lower() in NO_TEXT:
            raise NotPlain
        values[key] = _value(rest, below)
    return values


def _keys(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Each key of the mapping with what stands beside it and the lines below it."""
    key, rest, below, noted = "", "", list[str](), False
    for line in lines:
        if line[:1] in ("", " ") or line.startswith("- "):
            if noted and rest and line.strip():  # a comment ends a text
                raise NotPlain
            below.append(line)
            continue
        if line.startswith("#"):
            if rest in BLOCKS:
                raise NotPlain
            noted = True
            continue
        if key or any(map(str.strip, below)):
            yield key, rest, below
        key, colon, rest = line.partition(":")
        if not key or not colon or rest[:1] not in ("", " "):
            raise NotPlain
        rest, below, noted = rest.strip(" "), [], False
    if key or any(map(str.strip, below)):
        yield key, rest, below


def _value(rest: str, below: Sequence[str]) -> Value:
    said = [line for line in below if line.strip()]
    if rest in BLOCKS:
        return _block(below, said)
    if rest:
        if rest[0] == "[" and rest[-1] == "]" and not said:
            return _flow(rest[1:-1])
        if not said:
            return _scalar(rest)
        # A plain text may go on in the lines below; joined it must still be plain.
        if rest[0] in "\"'" or not all(line[0] == " " and _goes_on(line.strip()) for line in said):
            raise NotPlain
        return _scalar(" ".join([rest, *map(str.strip, said)]))
    return _nested(said)


def _block(below: Sequence[str], said: Sequence[str]) -> str:
    """The text of `>` and `|`; how its lines are joined makes no difference once it is one line."""
    indent = len(said[0]) - len(said[0].lstrip(" ")) if said else 0
    even = all(line[:indent].isspace() for line in said) and not any(line.isspace() for line in below)
    if not said or not indent or not even:
        raise NotPlain
    return " ".join(line.strip() for line in said)


def _nested(said: Sequence[str]) -> Value:
    """A list of texts, one a line; a mapping of simple values counts as nothing."""
    if not said:
        return None
    if len({len(line) - len(line.lstrip(" ")) for line in said}) > 1:
        raise NotPlain
    items = [line.strip() for line in said]
    if all(item.startswith("- ") for item in items):
        return [_text(item[2:].strip()) for item in items]
    if said[0][0] != " ":
        raise NotPlain
    names = [item.partition(": ") for item in items]
    if len({name for name, _, _ in names}) < len(names) or not all(n.isidentifier() and v for n, _, v in names):
        raise NotPlain
    for _, _, value in names:
        _scalar(value.strip())
    return None


def _flow(inner: str) -> list[str]:
    items = [item.strip() for item in inner.split(",")] if inner.strip() else []
    if any(sign in inner for sign in "[]{}#:&!|>%@`\\?"):
        raise NotPlain
    return [_text(item) for item in items]


def _text(value: str) -> str:
    found = _scalar(value)
    if found is None:
        raise NotPlain
    return found


def _scalar(value: str) -> str | None:
    """The text of a value on one line; None for a number, a day, yes and no."""
    if not value:
        raise NotPlain
    if value[0] in "\"'":
        inner = value[1:-1]
        if len(value) < 2 or value[-1] != value[0] or value[0] in inner or "\\" in inner:
            raise NotPlain
        return inner
    if value.lower() in NO_TEXT or not set(value) - set("0123456789."):
        return None
    if len(value) == 10 and value[4] == value[7] == "-" and value.replace("-", "").isdigit() and value.isascii():
        if 1 <= int(value[5:7]) <= 12 and 1 <= int(value[8:]) <= 28 and value[0] != "0":
            return None
        raise NotPlain
    worded = value[0].isalpha() or any(word.isalpha() and len(word) > 2 for word in value.split())
    if not (value[0].isalnum() or value[0] in OPENING) or not worded or not _goes_on(value):
        raise NotPlain
    return value


def _goes_on(text: str) -> bool:
    """Whether nothing in a plain text ends it: no comment, no key of its own."""
    return ": " not in text and " #" not in text and text[0] != "#" and text[-1] != ":"
