"""`export`: everything in one stream, each entry and section once, secrets out unless asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pipimem.exporting import rows
from pipimem.memory import Memory
from tests.conftest import run

SECRET = "".join(["ghp", "_", "4Hq8", "Vx2Lr", "9Tn6Wb", "3Kd7Zs", "5Mc1Pf", "0Jy8Qa", "2E"])
FILES: dict[str, str | bytes] = {
    "SOUL.md": "Be kind.\n",
    "channels/ops/MEMORY.md": "# M\n\nSome words.\n\n## 决定\n\n- 周五不部署 <!-- m-0000000a kind=decision since=2026-01-02 -->\n- by hand\n",
    "channels/ops/HISTORY.archive.md": "# Old\n\nlong ago\n",
    "channels/dm/MEMORY.md": f"- the token is {SECRET} <!-- m-0000000b -->\n",
    "review/r-1.md": "waiting\n",
}


def test_each_entry_and_text_is_one_row(make: Callable[..., Memory]) -> None:
    memory = make(FILES)
    found = list(rows(memory))
    assert [r["text"] for r in found if "ops/MEMORY" in r["path"]] == ["Some words.", "周五不部署", "by hand"]
    assert len({r["ref"] for r in found}) == len(found)
    entry = next(r for r in found if r["ref"] == "m-0000000a")
    assert entry["facts"] == {"kind": "decision", "since": "2026-01-02"}
    assert (entry["kind"], entry["heading"], entry["channel"], entry["line"]) == ("decision", ["M", "决定"], "ops", 7)
    assert not [r for r in found if r["path"].startswith("review/")]
    assert {r["channel"] for r in rows(memory, "ops")} == {"", "ops"}
    assert {r["layer"] for r in rows(memory, layers=["archive"])} == {"archive"}


def test_secrets_are_redacted_unless_asked_for(make: Callable[..., Memory], root: Path) -> None:
    make(FILES)
    for form in ("md", "jsonl"):
        out = run("-w", root, "export", "--format", form)
        assert out.code == 0
        assert SECRET not in out.out
        assert "[redacted:" in out.out
        assert SECRET in run("-w", root, "export", "--format", form, "--with-secrets").out


def test_the_streams_are_whole_and_read_back(make: Callable[..., Memory], root: Path) -> None:
    make(FILES)
    lines = run("-w", root, "export", "--format", "jsonl").out.splitlines()
    assert len([json.loads(line) for line in lines]) == len(run("-w", root, "export", "--json").json["rows"]) == 6
    text = run("-w", root, "export").out
    assert "<!-- SOUL.md (identity) -->\n\nBe kind.\n\n" in text
    assert "<!-- m-0000000a kind=decision since=2026-01-02 -->" in text
    assert run("-w", root, "export", "--channel", "nobody").code == 3
