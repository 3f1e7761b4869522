"""References: every form opens its passage, whatever stands around it, and nothing out of scope."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem.errors import Usage
from pipimem.memory import Memory
from pipimem.references import parse
from tests.conftest import run, snapshot

OPS = "channels/ops/MEMORY.md"
FILES = {
    "pipimem.toml": "",
    "MEMORY.md": "# Memory\n\n- shared fact <!-- m-0000000a kind=fact since=2026-03-01 src=claude:s1#m1 -->\n",
    OPS: "---\ntitle: x\n---\n# 记忆\n\n## 决定\n\n- 部署窗口是周四 <!-- m-0000000b kind=decision since=2026-03-02 -->\n- typed\n  in two lines\n\n## Notes\n\nprose one\nprose two\n",
    "channels/dm/MEMORY.md": "# M\n\n- private <!-- m-0000000c kind=fact -->\n",
    "review/r-1.md": "---\nop: add\n---\n\n## What\n\n> hidden proposal\n",
}


@pytest.mark.parametrize(
    ("ref", "path", "line", "text"),
    [
        ("m-0000000a", "MEMORY.md", 3, "shared fact"),
        ("[m-0000000b]", OPS, 8, "部署窗口是周四"),
        ("mem:m-0000000b", OPS, 8, "部署窗口是周四"),
        ("[event:m-0000000b]", OPS, 8, "部署窗口是周四"),
        (f"{OPS}:10", OPS, 9, "typed\nin two lines"),
        (f"{OPS}:6", OPS, 6, "## 决定"),
        (f"{OPS}:15", OPS, 14, "prose one\nprose two"),
        (f"{OPS}#Notes", OPS, 12, "## Notes\n\nprose one\nprose two"),
        (f"{OPS}#记忆 > Notes", OPS, 12, "## Notes\n\nprose one\nprose two"),
        (f"{OPS}:2", OPS, 1, "---\ntitle: x\n---"),
    ],
)
def test_every_form_opens_its_passage(make: Callable[..., Memory], ref: str, path: str, line: int, text: str) -> None:
    shown = make(FILES).show([ref], all_channels=True)[0]
    assert (shown.problem, shown.path, shown.line, shown.text) == ("", path, line, text)


def test_what_is_known_of_an_entry_is_given_and_nothing_else(root: Path, make: Callable[..., Memory]) -> None:
    make(FILES)
    done = run("-w", root, "show", "--json", "m-0000000a")
    assert json.loads(done.out)["shown"] == [
        {
            "channel": "",
            "date": "2026-03-01",
            "id": "m-0000000a",
            "kind": "fact",
            "line": 3,
            "path": "MEMORY.md",
            "problem": "",
            "ref": "m-0000000a",
            "source": "claude:s1#m1",
            "text": "shared fact",
        }
    ]


@pytest.mark.parametrize(
    "ref",
    [
        "m-0000000c",
        "channels/dm/MEMORY.md:3",
        "channels/dm/MEMORY.md#M",
        "review/r-1.md",
        "pipimem.toml",
        "../MEMORY.md",
        "channels/../MEMORY.md",
        "/etc/passwd.md",
        "MEMORY.md:99",
        "MEMORY.md#Nothing",
        "m-00000bad",
        "claude:s1#m1",
        "什么",
        "",
    ],
)
def test_what_is_missing_or_out_of_scope_is_named_and_stops_no_other(make: Callable[..., Memory], ref: str) -> None:
    memory = make(FILES)
    gone, here = memory.show([ref, "m-0000000b"], "ops")
    assert gone.problem
    assert gone.text == ""
    assert here.text == "部署窗口是周四"


def test_neighbours_and_length(make: Callable[..., Memory]) -> None:
    memory = make(FILES)
    shown = memory.show(["m-0000000b"], "ops", around=1)[0]
    assert shown.text.splitlines()[-1] == "- typed"
    short = memory.show([f"{OPS}#Notes"], "ops", most=12)[0]
    assert short.text == "## Notes\n\np… (17 more characters)"


def test_a_secret_a_person_typed_is_not_shown(make: Callable[..., Memory]) -> None:
    secret = "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd"
    memory = make({"MEMORY.md": f"# M\n\n- key {secret}\n"})
    shown = memory.show(["MEMORY.md:3"])[0]
    assert secret not in shown.text
    assert "redacted" in shown.text


def test_asking_changes_nothing(root: Path, make: Callable[..., Memory]) -> None:
    make(FILES)
    before = snapshot(root)
    done = run("-w", root, "show", "m-0000000b", "m-00000bad")
    assert done.code == 1
    assert "部署窗口是周四" in done.out
    assert "m-00000bad" in done.err
    assert snapshot(root) == before


@given(st.text(max_size=40))
def test_any_text_is_a_reference_or_wrong_usage(text: str) -> None:
    try:
        found = parse(text)
    except Usage:
        return
    assert found.form in ("id", "short", "heading", "line", "path", "source")
