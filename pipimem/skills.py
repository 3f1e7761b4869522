"""Skills: procedures in `skills/<name>/SKILL.md`, what makes one valid, and the text of a new or changed one.

The form is the one agents share: front matter with `name` and `description`, then the steps in Markdown. pipimem also
reads `when_to_use`, `paths`, `memory_scope` and `hooks`; the last name moments at which a skill is offered, and never
run anything.
"""

from __future__ import annotations

import re

from pipimem import front
from pipimem.errors import Refused, Usage
from pipimem.text import decode, encode, one_line, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
NAME_LIMIT, DESCRIPTION_LIMIT = 64, 1024
MOMENTS = ("session-start", "before-prompt", "after-response", "before-compact", "after-subagent")


class Skill:
    """One skill. `problem` says why it is not valid ("" when it is): it is then never offered, only listed.

    `memory_scope` is the id of the one channel it is for, or "shared".
    """

    __slots__ = ("description", "hooks", "memory_scope", "name", "path", "paths", "problem", "text", "when_to_use")

    def __init__(self, path: str, data: bytes) -> None:
        values, why = front.read_front(data)
        self.path = path
        self.name = path.split("/")[1]
        self.description = _line(values.get("description"))
        self.when_to_use = _line(values.get("when_to_use"))
        self.paths = _list(values.get("paths"))
        self.hooks = _list(values.get("hooks"))
        self.memory_scope = _line(values.get("memory_scope")) or "shared"
        self.text = decode(data[front.front_matter(data)[1] :]).strip()
        self.problem = why or self._problem(values)

    def _problem(self, values: dict[str, Any]) -> str:
        if why := bad_name(self.name):
            return why
        if values.get("name", self.name) != self.name:
            return f"its front matter calls it '{printable(str(values['name']))}'"
        if not self.description:
            return "it has no description"
        if len(self.description) > DESCRIPTION_LIMIT:
            return f"its description has {len(self.description):,} characters, more than {DESCRIPTION_LIMIT:,}"
        if unknown := [h for h in self.hooks if h not in MOMENTS]:
            return f"it names an unknown moment '{printable(unknown[0])}' (known: {', '.join(MOMENTS)})"
        return "" if self.text else "it has no steps"


def bad_name(name: str) -> str:
    """What is wrong with a skill's name, "" for a good one: small letters, digits and single hyphens, 64 at most."""
    if NAME.fullmatch(name) and len(name) <= NAME_LIMIT:
        return ""
    return f"the name '{printable(name)}' is not made of small letters, digits and hyphens ({NAME_LIMIT} at most)"


def path_of(name: str) -> str:
    """Where a skill of that name stands. Raises `Usage` for a bad name."""
    if why := bad_name(name):
        raise Usage(f"{why[:1].upper()}{why[1:]}.", "Choose another, such as 'release-notes'.")
    return f"skills/{name}/SKILL.md"


def written(name: str, description: str, text: str, when_to_use: str = "") -> bytes:
    """A new skill's file. Raises `Refused` where it would not be valid."""
    values = {"name": name, "description": one_line(description), "when_to_use": one_line(when_to_use)}
    data = b"---\nname: x\n---\n"
    for key, value in values.items():
        if value:
            data = front.set_value(data, key, value)
    return _checked(path_of(name), data + encode(f"\n{text.strip()}\n"))


def rewritten(path: str, data: bytes, text: str) -> bytes:
    """A skill's file with other steps; its front matter stays byte for byte."""
    end = front.front_matter(data)[1]
    ending = b"\r\n" if data[:end].endswith(b"\r\n") else b"\n"
    return _checked(path, data[:end] + ending + encode(text.strip() + "\n").replace(b"\n", ending))


def _checked(path: str, data: bytes) -> bytes:
    if why := Skill(path, data).problem:
        raise Refused(f"The skill '{path}' would not be valid: {why}.", "Nothing was changed.")
    return data


def _line(value: Any) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _list(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return [str(item) for item in items]
