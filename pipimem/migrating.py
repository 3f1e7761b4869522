"""Files brought to the current format: today format 1, whose older spelling of ids other tools still write.

`<!--id:m-xxxxxxxx-->` becomes `<!-- m-xxxxxxxx -->`, and nothing else changes: both are read the same. What a newer
pipimem wrote is refused, not guessed at.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.text import decode
from pipimem.update.plan import MIGRATED, Applied, Op

if TYPE_CHECKING:
    from pipimem.opened import Opened

OLD = re.compile(rb"<!--\s*id:(m-[0-9a-f]{8})((?:\s+[a-z][\w-]*=[^\s>]*)*)\s*-->")


def migrate(memory: Opened, *, dry_run: bool = False) -> Applied:
    """Rewrites what has an older form, in one commit that can be undone; no changes where nothing has.

    Raises `Refused` for a workspace of a newer format.
    """
    memory.workspace.trust()
    ops = []
    for document in memory.workspace.scan().documents:
        data = memory.workspace.read(document.path) or b""
        new = current(data)
        if new != data:
            ops.append(Op("file", document.path, decode(new), reason=MIGRATED))
    plan = replace(memory.planned("", ops, {}, "person"), whole=True)
    if dry_run or not ops:
        return Applied(plan, tuple(memory.preview(plan)))
    return memory.apply(plan)


def current(data: bytes) -> bytes:
    """A document in the current format: the comments of its entries in their present spelling.

    Left as it is where anything would read otherwise than before.
    """
    if not OLD.search(data):
        return data
    parsed = markdown.parse(data)
    new = data
    for entry in reversed([e for e in parsed.entries if e.id]):
        old = new[entry.start : entry.end]
        found = list(OLD.finditer(old))
        if found and found[-1][1].decode() == entry.id:
            last = found[-1]
            facts = b"".join(b" " + part for part in last[2].split())
            comment = b"<!-- " + last[1] + facts + b" -->"
            before = b"" if old[: last.start()].endswith((b" ", b"\t")) else b" "
            new = new[: entry.start] + old[: last.start()] + before + comment + old[last.end() :] + new[entry.end :]
    again = [(e.trail, e.text, e.id, e.facts) for e in markdown.parse(new).entries]
    return new if again == [(e.trail, e.text, e.id, e.facts) for e in parsed.entries] else data
