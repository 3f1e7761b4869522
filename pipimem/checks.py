"""What is wrong with a workspace's files, line by line: for people, CI and pre-commit. Reads, and changes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from pipimem import front, markdown, safety, skills, standing
from pipimem.errors import Error
from pipimem.linking import Linking
from pipimem.text import decode, printable
from pipimem.update import KINDS
from pipimem.workspace import APPEND_ONLY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipimem.markdown import Parsed
    from pipimem.workspace import Document, Workspace

ERROR, WARNING = "error", "warning"
SESSION_ITEMS, SESSION_ITEM, SESSION_CHARACTERS = 12, 300, 6000
LOOKS_LIKE_ID = re.compile(r"<!--\s*(?:id:)?\s*m-[^>]*-->")
ENTRY_LAYERS = ("memory", "user", "standing")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong, at `line` of `path` (from 1; 0 where the whole file is meant)."""

    path: str
    line: int
    level: str
    message: str


def check(workspace: Workspace, paths: Collection[str] = ()) -> list[Finding]:
    """Everything wrong with the documents (those of `paths` only, when given), in order of path and line.

    Ids are compared over the whole workspace. Raises `Unreadable` when it cannot be looked through.
    """
    scan = workspace.scan()
    found: list[Finding] = []
    ids: dict[str, list[tuple[str, int]]] = {}
    superseded: list[tuple[str, int, str]] = []
    contested: list[tuple[str, int, str, str]] = []
    known: set[str] = set()
    linking = Linking(workspace.root)
    for document in scan.documents:
        try:
            data = workspace.read(document.path) or b""
        except Error as error:
            found.append(Finding(document.path, 0, ERROR, error.message))
            continue
        parsed = markdown.parse(data)
        found += _file(document, data, workspace)
        found += _headings(document.path, parsed)
        linking.take(document, parsed)
        if document.layer in ENTRY_LAYERS or parsed.family == "dated":
            for identity, entry in markdown.identified(parsed, document.channel):
                known.add(identity)
                if entry.facts.get("conflicts"):
                    contested.append((document.path, entry.line, identity, entry.facts["conflicts"]))
                if entry.id:
                    ids.setdefault(entry.id, []).append((document.path, entry.line))
                if entry.facts.get("supersedes"):
                    superseded.append((document.path, entry.line, entry.facts["supersedes"]))
            found += _entries(document.path, parsed)
        if document.layer == "session":
            found += _session(document.path, parsed)
    found += [Finding(path, 0, ERROR, why) for path, why in scan.skipped]
    found += [Finding(path, 0, WARNING, why) for path, why in scan.remarks]
    found += _twice(ids) + _loops(superseded, ids) + _unmatched(contested, known)
    found += [Finding(path, line, ERROR if error else WARNING, why) for path, line, error, why in linking.wrong()]
    return sorted({f for f in found if not paths or f.path in paths})


def _file(document: Document, data: bytes, workspace: Workspace) -> Iterator[Finding]:
    path = document.path
    if why := markdown.damage(data):
        yield Finding(path, markdown.conflict_line(data), ERROR, why)
    if why := front.read_front(data)[1]:
        yield Finding(path, 1, ERROR, why)
    text = decode(data)
    if any("\ud800" <= c <= "\udfff" for c in text):
        line = next(n for n, part in enumerate(text.split("\n"), 1) if re.search("[\ud800-\udfff]", part))
        yield Finding(path, line, WARNING, "a byte that is no UTF-8")
    if len(data) > APPEND_ONLY:
        yield Finding(path, 0, WARNING, "larger than 2 MB: only appended to")
    most = workspace.config["workspace.file_limit"]
    if most and len(text) > most:
        yield Finding(path, 0, ERROR, f"{len(text):,} characters; 'workspace.file_limit' is {most:,}")
    yield from _unsafe(path, text, workspace)
    if document.layer == "skill" and (why := skills.Skill(path, data).problem):
        yield Finding(path, 1, ERROR, f"not a valid skill: {why}")
    if document.layer == "standing" and (why := standing.read(data).note):
        yield Finding(path, 0, ERROR, why)


def _unsafe(path: str, text: str, workspace: Workspace) -> Iterator[Finding]:
    config = workspace.config
    for secret in safety.secrets(text, config["safety.patterns"], config["safety.allow"]):
        kind = secret.kind.partition(":")[2]
        yield Finding(path, secret.line, ERROR, f"a secret ({kind})")
    for hidden in safety.hidden(text):
        yield Finding(path, hidden.line, WARNING, f"a hidden character ({hidden.kind.partition(':')[2]})")


def _headings(path: str, parsed: Parsed) -> Iterator[Finding]:
    """Headings that keep all below them from being recalled, and are no secret."""
    for section in parsed.sections:
        if safety.instructions(section.title):
            message = "a heading that reads like an order to the assistant: nothing below it is recalled"
            yield Finding(path, section.line, WARNING, message)


def _entries(path: str, parsed: Parsed) -> Iterator[Finding]:
    for entry in parsed.entries:
        facts, line = entry.facts, entry.line
        raw = decode(parsed.data[entry.start : entry.end])
        if not entry.id and LOOKS_LIKE_ID.search(raw):
            yield Finding(path, line, WARNING, "a comment that looks like an entry's, and cannot be read as one")
        if len(entry.text) > markdown.ENTRY_LIMIT:
            yield Finding(path, line, WARNING, f"{len(entry.text):,} characters, more than {markdown.ENTRY_LIMIT:,}")
        if facts.get("kind", "fact") not in KINDS:
            yield Finding(path, line, ERROR, f"the kind '{printable(facts['kind'])}' is unknown")
        for key in ("since", "until", "trial"):
            if facts.get(key) and not _is_day(facts[key]):
                yield Finding(path, line, ERROR, f"'{key}={printable(facts[key])}' is no day such as 2026-03-14")
        if facts.get("conf") and not re.fullmatch(r"0(\.\d+)?|1(\.0+)?", facts["conf"]):
            yield Finding(path, line, ERROR, f"'conf={printable(facts['conf'])}' is no number from 0 to 1")


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _session(path: str, parsed: Parsed) -> Iterator[Finding]:
    size = len(decode(parsed.data))
    if size > SESSION_CHARACTERS:
        yield Finding(path, 0, WARNING, f"{size:,} characters, more than {SESSION_CHARACTERS:,}")
    for section in parsed.sections:
        items = [e for e in parsed.entries if section.start <= e.start < section.end]
        if len(items) > SESSION_ITEMS:
            yield Finding(path, section.line, WARNING, f"{len(items)} items, more than {SESSION_ITEMS}")
        for entry in items:
            if len(entry.text) > SESSION_ITEM:
                yield Finding(
                    path, entry.line, WARNING, f"an item of {len(entry.text)} characters, more than {SESSION_ITEM}"
                )


def _twice(ids: dict[str, list[tuple[str, int]]]) -> list[Finding]:
    found = []
    for identity, places in ids.items():
        for path, line in places if len(places) > 1 else ():
            others = ", ".join(f"{p}:{n}" for p, n in places if (p, n) != (path, line))
            found.append(Finding(path, line, ERROR, f"the id '{identity}' stands also in {others}"))
    return found


def _loops(superseded: list[tuple[str, int, str]], ids: dict[str, list[tuple[str, int]]]) -> list[Finding]:
    """Entries that supersede themselves. One that is gone may be named: `supersede` takes the old entry's place."""
    return [
        Finding(path, line, ERROR, f"it supersedes itself ('{identity}')")
        for path, line, identity in superseded
        if (path, line) in ids.get(identity, ())
    ]


def _unmatched(contested: list[tuple[str, int, str, str]], known: Collection[str]) -> list[Finding]:
    """Entries marked as contradicting something that is not there: nothing is left to settle but the mark."""
    return [
        Finding(
            path,
            line,
            ERROR,
            f"it conflicts with {'itself' if own == other else f'{printable(other)!r}, which is gone'}",
        )
        for path, line, own, other in contested
        if own == other or other not in known
    ]
