"""Command-line options read without argparse where they are plainly right: importing it costs a tenth of a recall.

A command declares its arguments once, on argparse's own interface. What this reader does not understand at once
(help, abbreviations, sub-commands, anything wrong) it leaves to argparse, whose words people then read.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    class Parser(Protocol):
        """What a command declares its arguments on: argparse's parser, or `Reader`."""

        def add_argument(self, *names: str, **settings: Any) -> Any:
            """Declares one argument."""

        def add_mutually_exclusive_group(self, *, required: bool = False) -> Any:
            """A group of arguments of which one at most may be given."""

        def add_subparsers(self, **settings: Any) -> Any:
            """Sub-commands."""


class Options:
    """What was read, by attribute, as argparse's `Namespace`."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Unclear(Exception):
    """The arguments are for argparse to read."""


class Reader:
    """Takes the calls a command makes to declare its arguments, then reads a plain command line."""

    def __init__(self) -> None:
        self._flags: dict[str, tuple[str, dict[str, Any]]] = {}
        self._positional: tuple[str, dict[str, Any]] | None = None
        self._values: dict[str, Any] = {}
        self._exclusive: list[list[str]] = []
        self._group: list[str] | None = None

    def add_argument(self, *names: str, **settings: Any) -> None:
        """Declares one argument; `Unclear` for what only argparse knows."""
        if not names[0].startswith("-"):
            if self._positional is not None or settings.get("nargs") != "+":
                raise Unclear
            self._positional = names[0], settings
            return
        name = next(n for n in names if n.startswith("--"))[2:].replace("-", "_")
        if settings.get("action", "store") not in ("store", "store_true", "append") or settings.get("required"):
            raise Unclear
        default = settings.get("default", False if settings.get("action") == "store_true" else None)
        self._values[name] = list(default) if isinstance(default, list) else default
        for flag in names:
            self._flags[flag] = name, settings
        if self._group is not None:
            self._group.append(name)

    def add_mutually_exclusive_group(self, *, required: bool = False) -> Reader:
        """A group of which one at most may be given."""
        if required:
            raise Unclear
        self._exclusive.append([])
        return _Group(self)

    def add_subparsers(self, **settings: Any) -> None:
        """Sub-commands are argparse's."""
        raise Unclear

    def read(self, arguments: Sequence[str]) -> Options:
        """The options of a command line, or `Unclear`."""
        words, given = [], set()
        rest = list(arguments)
        while rest:
            word = rest.pop(0)
            if word == "--" and self._positional is not None:
                words += rest
                break
            if not word.startswith("-") or word == "-":
                words.append(word)
                continue
            flag, equals, value = word.partition("=")
            if flag not in self._flags:
                raise Unclear
            name, settings = self._flags[flag]
            given.add(name)
            if settings.get("action") == "store_true":
                if equals:
                    raise Unclear
                self._values[name] = True
                continue
            if not equals:
                if not rest or rest[0].startswith("-"):
                    raise Unclear
                value = rest.pop(0)
            self._take(name, settings, value)
        self._finish(words, given)
        return Options(self._values)

    def _take(self, name: str, settings: dict[str, Any], value: str) -> None:
        convert: Callable[[str], Any] = settings.get("type", str)
        try:
            taken = convert(value)
        except ValueError:
            raise Unclear from None
        if "choices" in settings and taken not in settings["choices"]:
            raise Unclear
        if settings.get("action") == "append":
            self._values[name].append(taken)
        else:
            self._values[name] = taken

    def _finish(self, words: list[str], given: set[str]) -> None:
        if (self._positional is None) != (not words):
            raise Unclear
        if self._positional is not None:
            self._values[self._positional[0]] = words
        if any(len(given & set(group)) > 1 for group in self._exclusive):
            raise Unclear


class _Group(Reader):
    """A group of exclusive options: hands each on to the reader, inside its group."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._members = reader._exclusive[-1]

    def add_argument(self, *names: str, **settings: Any) -> None:
        """Declares one member of the group."""
        self._reader._group = self._members
        self._reader.add_argument(*names, **settings)
        self._reader._group = None
