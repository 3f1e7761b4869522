"""Tests of pipimem/adopting.py and pipimem/importers/memories: golden folders of every system, and what adopting guarantees."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pipimem
from pipimem import markdown
from pipimem.errors import NotFound, Unreadable, Usage
from pipimem.importers import memories
from pipimem.memory import Memory, init
from pipimem.text import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOLDEN = Path(__file__).parent / "golden" / "memories"
CASES = sorted(str(p.relative_to(GOLDEN)) for p in GOLDEN.glob("*/*") if p.is_dir())
TOKENS = {"{BOM}": "\ufeff", "{ZWSP}": "\u200b", "{ODD}": "\udcff", "{HUGE}": "a long line of words " * 250, "¦": ""}
WHEN = 1_767_250_800  # 2026-01-01, the files' time


def built(case: str, tmp_path: Path) -> Path:
    """The folder of a case with its tokens as the characters they stand for."""
    root = tmp_path / "theirs" / case
    for path in sorted((GOLDEN / case).rglob("*")):
        if path.is_dir():
            continue
        text = path.read_text(encoding="utf-8")
        for token, value in TOKENS.items():
            text = text.replace(token, value)
        if "{CRLF}" in text:
            text = text.replace("{CRLF}", "").replace("\n", "\r\n")
        made = root / path.relative_to(GOLDEN / case)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(encode(text))
        os.utime(made, (WHEN, WHEN))
    return root


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() + str(p.stat().st_mtime_ns)
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    init(str(root), git=True)
    with pipimem.open(str(root)) as memory:
        memory.add_channel("ops", minimal=True)
        yield memory


def result(memory: Memory, found: Any) -> dict[str, Any]:
    """What an adoption wrote, without what differs from run to run."""
    files: dict[str, Any] = {}
    for change in found.changes:
        if change.path.startswith("review/"):
            continue
        data = change.after or b""
        parsed = markdown.parse(data)
        if change.path.endswith(("MEMORY.md", "USER.md")):
            entries = [(e.trail[-1] if e.trail else "", e.text, e.facts) for e in parsed.entries if e.id]
            files[change.path] = [
                f"{head} | {facts['kind']} {facts['since']} {facts['src']} {facts['by']} | {text}" for head, text, facts in entries
            ]
        else:
            files[change.path] = data.decode("utf-8").splitlines()
    proposals = [f"{p.op} {p.file} | {p.text}" for p in memory.proposals()]
    return {
        "kept": dict(found.kept), "proposed": proposals, "left": [list(pair) for pair in found.left], "files": files,
    }  # fmt: skip


@pytest.mark.parametrize("where", ["ops", "shared"])
@pytest.mark.parametrize("case", CASES)
def test_the_golden_folders_are_taken_over_as_expected(case: str, where: str, memory: Memory, tmp_path: Path) -> None:
    theirs = built(case, tmp_path)
    before = fingerprint(theirs)
    place: dict[str, Any] = {"channel": "ops"} if where == "ops" else {"target": "memory"}
    found = memory.adopt(case.partition("/")[0], str(theirs), **place)
    got = result(memory, found)
    expected = GOLDEN / f"{case.replace('/', '-')}.{where}.json"
    if os.environ.get("WRITE_GOLDEN"):
        expected.write_text(json.dumps(got, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    assert got == json.loads(expected.read_text(encoding="utf-8"))
    assert fingerprint(theirs) == before


@pytest.mark.parametrize("case", CASES)
def test_the_same_again_changes_nothing(case: str, memory: Memory, root: Path, tmp_path: Path) -> None:
    theirs, source = built(case, tmp_path), case.partition("/")[0]
    first = memory.adopt(source, str(theirs), channel="ops")
    assert first.applied is not None
    assert first.applied.commit
    files = {p: p.read_bytes() for p in root.rglob("*.md")}
    again = memory.adopt(source, str(theirs), channel="ops")
    assert again.plan is None
    assert again.changes == ()
    assert {p: p.read_bytes() for p in root.rglob("*.md")} == files
