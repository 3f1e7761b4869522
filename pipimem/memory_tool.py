"""Anthropic's memory tool (`memory_20250818`) over one channel: its pages are what the model sees below `/memories`.

A page that a model made through the tool is the model's to change; one a person wrote or touched is never changed,
only added to at its end. Every write is a plan: checked, committed, undone like any other. The SDK's class around it
is in docs/adapters.md.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipimem import safety
from pipimem.errors import NotFound, Refused, Usage
from pipimem.files import own_folder, write_private
from pipimem.pending import read_private
from pipimem.text import decode, digest, encode, printable, scrub
from pipimem.update import review
from pipimem.update.plan import Op, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipimem.memory import Memory

ROOT = "/memories"
READ_ONLY = ("SESSION.md", "MEMORY.md", "HISTORY.md")
"""The channel's own files: shown, and never written through the tool."""
MOST = 20
"""Writes of one session (design §6)."""
CHARACTERS = 100_000
NUMBERS = 6
DEEP = 2


class MemoryTool:
    """The tool of one channel for one session. `call` takes a tool call's input and gives the text of its result."""

    def __init__(self, memory: Memory, channel: str) -> None:
        self._memory = memory
        self._channel = memory.workspace.channel(channel)
        self._writes = 0

    def call(self, command: Mapping[str, Any]) -> str:
        """One command of the tool. Raises `Usage`, `NotFound` or `Refused` in words for the model."""
        work = COMMANDS.get(str(command.get("command")))
        if work is None:
            raise Usage(f"The command '{printable(str(command.get('command')))}' is unknown.", f"One of: {KNOWN}.")
        return work(self, command)

    # Reading

    def _view(self, command: Mapping[str, Any]) -> str:
        path = _given(command, "path")
        name = _name(path)
        pages = self._pages()
        if name in pages:
            return self._text_of(path, pages[name], command.get("view_range"))
        inside = [page for page in pages if not name or page.startswith(name + "/")]
        if name and not inside:
            raise NotFound(f"The path {path} does not exist. Please provide a valid path.")
        rows = _listing(inside, name)
        top = f"{_size(sum(self._length(pages[page]) for page in inside))}\t{path}"
        sizes = {row: sum(self._length(pages[p]) for p in inside if f"{p}/".startswith(f"{row}/")) for row in rows}
        lines = [f"{_size(sizes[row])}\t{ROOT}/{row}{'' if row in pages else '/'}" for row in rows]
        head = f"Here're the files and directories up to {DEEP} levels deep in {path}, excluding hidden items:"
        return "\n".join([head, top, *lines])

    def _text_of(self, path: str, page: str, span: object) -> str:
        if self._memory.workspace.config["recall.mode"] == "observe":
            raise Refused(f"The text of {path} is not given: mode is observe.", "A person changes 'recall.mode'.")
        data = safety.withheld(self._memory.workspace.read(page) or b"")
        lines = self._memory.redacted(scrub(decode(data))).split("\n")
        first, last = 1, len(lines)
        if isinstance(span, list) and len(span) == 2 and all(isinstance(n, int) for n in span):
            first, last = max(1, span[0]), len(lines) if span[1] == -1 else span[1]
        return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"

    # Writing

    def _create(self, command: Mapping[str, Any]) -> str:
        path, text = _given(command, "path"), _given(command, "file_text")
        page = self._new(path)
        if self._memory.workspace.read(page) is not None:
            raise Refused(f"File {path} already exists")
        if held := self._held(page, text, "", text):
            return held
        self._write([Op("file", page, text, reason="a page of the memory tool")], {page: None})
        return f"File created successfully at: {path}"

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        path, old, new = _given(command, "path"), _given(command, "old_str"), str(command.get("new_str") or "")
        page, text = self._own(path)
        found = [at for at in range(len(text)) if text.startswith(old, at)] if old else []
        if not found:
            raise NotFound(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
        if len(found) > 1:
            lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in found)
            raise Refused(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                "Please ensure it is unique"
            )
        after = text.replace(old, new, 1)
        if held := self._held(page, new, text, after):
            return held
        self._write([Op("file", page, after, reason="edited by the memory tool")], {page: encode(text)})
        if self._memory.workspace.config["recall.mode"] == "observe":
            return f"The memory file {path} has been edited."
        at = text.count("\n", 0, found[0]) + 1
        shown = _numbered(after.split("\n"), max(1, at - 2), at + new.count("\n") + 2)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    def _insert(self, command: Mapping[str, Any]) -> str:
        path, said = _given(command, "path"), _given(command, "insert_text").rstrip("\n")
        page, text = self._there(path)
        lines = text.removesuffix("\n").split("\n") if text else []
        at = command.get("insert_line")
        if not isinstance(at, int) or not 0 <= at <= len(lines):
            raise Usage(
                f"Invalid `insert_line` parameter: {at}. It should be within the range of lines of the file: "
                f"[0, {len(lines)}]"
            )
        mine = self._is_own(page, encode(text))
        if not mine and at < len(lines):
            raise Refused(f"'{path}' holds a person's text: lines can only be added at its end, {len(lines)}.")
        after = "\n".join([*lines[:at], said, *lines[at:]]) + "\n"
        if held := self._held(page, said, text, after):
            return held
        op = Op("file", page, after, reason="added to by the memory tool")
        self._write([op], {page: encode(text)}, own=mine)
        return f"The file {path} has been edited."

    def _delete(self, command: Mapping[str, Any]) -> str:
        path = _given(command, "path")
        if not _name(path):
            raise Refused(f"The {ROOT} directory itself cannot be deleted.")
        gone = self._under(path)
        self._write([Op("remove", page, reason="deleted by the memory tool") for page in gone], gone)
        return f"Successfully deleted {path}"

    def _rename(self, command: Mapping[str, Any]) -> str:
        old, new = _given(command, "old_path"), _given(command, "new_path")
        if not _name(old) or not _name(new):
            raise Refused(f"The {ROOT} directory itself cannot be renamed.")
        moved, pages = self._under(old), self._pages()
        if any(page == _name(new) or page.startswith(_name(new) + "/") for page in pages):
            raise Refused(f"The destination {new} already exists")
        single = self._page(_name(old)) in moved
        places = {page: self._new(new if single else new + page[len(self._page(_name(old))) :]) for page in moved}
        ops = [Op("file", places[page], decode(data), reason="renamed by the memory tool")
               for page, data in moved.items()]  # fmt: skip
        ops += [Op("remove", page, reason="renamed by the memory tool") for page in moved]
        self._write(ops, {**moved, **dict.fromkeys(places.values())})
        return f"Successfully renamed {old} to {new}"

    # Pages

    def _pages(self) -> dict[str, str]:
        """What can be seen: the name below `/memories` → the document's path."""
        prefix = f"{self._channel.path}/memory/"
        scan = self._memory.workspace.scan([self._channel.id])
        own = {d.path for d in scan.documents if d.channel == self._channel.id}
        found = {name: f"{self._channel.path}/{name}" for name in READ_ONLY if f"{self._channel.path}/{name}" in own}
        return dict(sorted((found | {path[len(prefix) :]: path for path in own if path.startswith(prefix)}).items()))

    def _page(self, name: str) -> str:
        return f"{self._channel.path}/memory/{name}"

    def _place(self, path: str) -> str:
        """The document a page would be. Raises `Refused` for a name that cannot be one."""
        name = _name(path)
        page = self._page(name)
        if name in READ_ONLY:
            raise Refused(f"{path} is kept by pipimem and cannot be written.")
        if not name or not self._memory.workspace.is_document(page):
            raise Refused(f"{path} cannot be a page: pages are Markdown files such as {ROOT}/topic.md.")
        return page

    def _new(self, path: str) -> str:
        """The document a new page would be. Raises `Refused` too for a name that no text could hold: it is recalled."""
        for part in _name(path).removesuffix(".md").split("/"):
            self._memory.refuse_secret(part)
            if self._verdict(part):
                raise Refused("The name reads like an order or hides something.", "Give the page another name.")
        return self._place(path)

    def _there(self, path: str) -> tuple[str, str]:
        page = self._place(path)
        data = self._memory.workspace.read(page)
        if data is None:
            raise NotFound(f"The path {path} does not exist. Please provide a valid path.")
        return page, decode(data)

    def _own(self, path: str) -> tuple[str, str]:
        """A page of the model's, with its text. Raises `Refused` for one that holds a person's."""
        page, text = self._there(path)
        if not self._is_own(page, encode(text)):
            raise Refused(
                f"'{path}' holds a person's text, which only people change. Add to its end, or write your own."
            )
        return page, text

    def _under(self, path: str) -> dict[str, bytes]:
        """The page, or all pages of the folder, each the model's own; with their bytes."""
        name = _name(path)
        names = [page for page in self._pages() if page == name or page.startswith(name + "/")]
        if not names:
            raise NotFound(f"The path {path} does not exist")
        return {page: encode(text) for page, text in (self._own(f"{ROOT}/{n}") for n in names)}

    def _length(self, page: str) -> int:
        return len(self._memory.workspace.read(page) or b"")

    # What is written

    def _held(self, page: str, said: str, before: str, after: str) -> str:
        """Refuses what may not be written; leaves text that reads like an order to a person, and says so.

        Judged is what the page would say in the lines that differ, and whatever new stands over lines that do not: an
        order put together of harmless pieces is one.
        """
        if self._writes >= MOST:
            raise Refused(f"This session has written {MOST} times; more has to wait for the next one.")
        if len(said) > CHARACTERS:
            raise Refused(f"A page takes at most {CHARACTERS:,} characters at once.")
        text = _changed(before, after)
        self._memory.refuse_secret(text)
        why = self._verdict(text) or ("instruction" if _unsafe(after) - _unsafe(before) else "")
        if not why:
            return ""
        now = self._memory.now()
        outcome = Outcome(Op("block", page, text, f"{now:%Y-%m-%d %H:%M}"), f"it holds {why}")
        plan = self._memory.planned(self._channel.id, [], {}, "tool")
        op = review.proposal(outcome, f"{plan.run}-1", self._channel.id, now.date())
        self._memory.apply(replace(plan, ops=(op,), base={op.path: None}))
        self._writes += 1
        return f"Not written: it reads like an order or hides something. It waits for a person in {op.path}."

    def _verdict(self, text: str) -> str:
        config = self._memory.workspace.config
        return safety.verdict(text, config["safety.patterns"], config["safety.allow"])

    def _write(self, ops: Sequence[Op], base: Mapping[str, bytes | None], *, own: bool = True) -> None:
        """Applies the operations to exactly the bytes that were read, and notes which pages are the model's now."""
        if self._writes >= MOST:
            raise Refused(f"This session has written {MOST} times; more has to wait for the next one.")
        plan = self._memory.planned(self._channel.id, ops, {}, "tool")
        self._memory.apply(replace(plan, base=dict(base), whole=True))
        self._writes += 1
        marks = self._marks()
        for op in ops:
            marks.pop(op.path, None)
            if own and op.op == "file":
                marks[op.path] = digest(encode(op.text))
        own_folder(self._memory.workspace.private(), "state")
        write_private(self._record, encode(json.dumps(marks, ensure_ascii=False)))

    def _is_own(self, page: str, data: bytes) -> bool:
        """Whether the page is as the tool last wrote it: what a person touched is a person's."""
        return self._marks().get(page) == digest(data)

    def _marks(self) -> dict[str, str]:
        try:
            found = json.loads(read_private(self._record) or b"{}")
        except ValueError:
            return {}
        return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}

    @property
    def _record(self) -> str:
        return self._memory.workspace.private("state", "pages.json")


def _given(command: Mapping[str, Any], key: str) -> str:
    value = command.get(key)
    if not isinstance(value, str):
        raise Usage(f"'{key}' is missing or no text.", f"Received: {', '.join(sorted(map(str, command)))}.")
    return value


def _name(path: str) -> str:
    """The name below `/memories`, "" for it. Raises `Refused` for a path that is not plainly inside."""
    inside = path.removeprefix(ROOT)
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise Refused(f"Path must start with {ROOT}, got: {printable(path)}")
    name = inside.strip("/")
    parts = name.split("/") if name else []
    if any(part.startswith(".") or not part or "\\" in part or not part.isprintable() for part in parts):
        raise Refused(f"Path {printable(path)} would escape {ROOT} directory or names something hidden.")
    return name


def _changed(before: str, after: str) -> str:
    """The lines of `after` between those it begins and ends with as `before` does."""
    old, new = before.split("\n"), after.split("\n")
    most = min(len(old), len(new))
    first = next((n for n in range(most) if old[n] != new[n]), most)
    last = next((n for n in range(most - first) if old[-1 - n] != new[-1 - n]), most - first)
    return "\n".join(new[first : len(new) - last])


def _unsafe(text: str) -> set[str]:
    """What in a text hides something or reads like an order, wherever it stands."""
    return {text[f.start : f.end] for f in (*safety.hidden(text), *safety.instructions(text))}


def _listing(pages: Sequence[str], folder: str) -> list[str]:
    """The pages and folders at most two levels below a folder."""
    depth = len(folder.split("/")) if folder else 0
    found: dict[str, None] = {}
    for page in pages:
        parts = page.split("/")
        for level in range(depth + 1, min(len(parts), depth + DEEP) + 1):
            found["/".join(parts[:level])] = None
    return sorted(found)


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{n:>{NUMBERS}}\t{lines[n - 1]}" for n in range(first, min(last, len(lines)) + 1))


def _size(count: int) -> str:
    return f"{count}B" if count < 1024 else f"{count / 1024:.1f}K"


COMMANDS: dict[str, Callable[[MemoryTool, Mapping[str, Any]], str]] = {
    "view": MemoryTool._view, "create": MemoryTool._create, "str_replace": MemoryTool._str_replace,
    "insert": MemoryTool._insert, "delete": MemoryTool._delete, "rename": MemoryTool._rename,
}  # fmt: skip
KNOWN = ", ".join(COMMANDS)
