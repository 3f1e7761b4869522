"""`migrate`: the older spelling of ids becomes the present one, and not a byte more; shown first, undone like any run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipimem.errors import Refused
from pipimem.memory import Memory
from pipimem.migrating import current
from tests.conftest import run

OLD = (
    "\ufeff# Memory\r\n\r\n- 部署窗口是周四晚上 <!--id:m-5f3a2c1b-->\r\n"
    "* two\r\n  lines<!-- id:m-5f3a2c1c kind=fact  since=2026-01-02 -->\r\n"
    "- current <!-- m-5f3a2c1d kind=fact -->\r\n"
    "- speaks of <!--id:m-00000000--> in the middle <!-- m-5f3a2c1e -->\r\n"
    "\r\n```\r\n- code <!--id:m-5f3a2c1f-->\r\n```\r\n"
)
NEW = OLD.replace("<!--id:m-5f3a2c1b-->", "<!-- m-5f3a2c1b -->").replace(
    "lines<!-- id:m-5f3a2c1c kind=fact  since", "lines <!-- m-5f3a2c1c kind=fact since"
)


def test_only_the_comments_of_entries_change() -> None:
    assert current(OLD.encode()) == NEW.encode()
    assert current(NEW.encode()) == NEW.encode()
    separated = "one <!--id:m-00000001-->\n§\n二 <!--id:m-00000002-->"
    assert current(separated.encode()).decode() == "one <!-- m-00000001 -->\n§\n二 <!-- m-00000002 -->"


def test_it_is_one_commit_that_is_shown_first_and_can_be_undone(make: Callable[..., Memory], root: Path) -> None:
    memory = make({"channels/ops/MEMORY.md": OLD, "MEMORY.md": "- x <!--id:m-00000001-->\n"}, git=True)
    dry = run("-w", root, "migrate", "--dry-run")
    assert "+- 部署窗口是周四晚上 <!-- m-5f3a2c1b -->" in dry.out
    assert "Would write 2 files" in dry.out
    assert (root / "channels/ops/MEMORY.md").read_bytes() == OLD.encode()
    done = run("-w", root, "migrate")
    assert "+- 部署窗口是周四晚上 <!-- m-5f3a2c1b -->" in done.out
    assert (root / "channels/ops/MEMORY.md").read_bytes() == NEW.encode()
    first = memory.log(limit=1)[0]
    assert first.subject == "bring 2 files to the current format"
    again = run("-w", root, "migrate")
    assert (again.code, again.out) == (0, "Nothing to change.\n")
    memory.undo(first.sha)
    assert (root / "channels/ops/MEMORY.md").read_bytes() == OLD.encode()


def test_a_newer_format_is_refused(make: Callable[..., Memory]) -> None:
    memory = make({"pipimem.toml": "[workspace]\nformat = 2\n"})
    with pytest.raises(Refused, match="has format 2; this pipimem knows 1"):
        memory.migrate()
