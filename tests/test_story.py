"""One story: a fact goes from a turn to SESSION, MEMORY and HISTORY and back through recall, whatever happens between."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pipimem
from tests.conftest import run

CHANNEL = "dm:顾念"
FACT = "部署窗口是周四晚上八点"
SAID = [
    {"role": "user", "name": "顾念", "content": f"记住：{FACT}", "timestamp": "2026-03-14T10:00:00+08:00"},
    {
        "role": "assistant",
        "content": "好的",
        "timestamp": "2026-03-14T10:00:05+08:00",
        "tool_calls": [{"name": "Edit", "input": {"file_path": "ops/deploy.yml"}}],
    },
]
MODEL = {
    "reply": {
        "ops": [
            {
                "op": "add",
                "text": FACT,
                "kind": "decision",
                "target": "",
                "cites": [1],
                "confidence": 0.95,
                "necessity": "high",
                "reason": "asked",
            }
        ]
    }
}
NOTHING: dict[str, dict[str, list[str]]] = {"reply": {"ops": []}}
"""What the model says of SESSION."""
KILLED = """
import os, sys
from pipimem.history import History
History.commit = lambda *a: os._exit(9)
from pipimem.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("origin", ["offline", "scripted"])
def test_a_fact_survives_a_kill_a_compaction_and_a_new_session(root: Path, tmp_path: Path, origin: str) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([MODEL, NOTHING], ensure_ascii=False))
    how = ["--offline"] if origin == "offline" else ["--model", f"scripted:{script}"]
    assert run("init", root, "--git", "--lang", "zh").code == 0
    assert run("-w", root, "channel", "add", CHANNEL, "--kind", "direct").code == 0
    assert run("-w", root, "turn", "--channel", CHANNEL, stdin="\n".join(map(json.dumps, SAID))).code == 0

    # The updater is killed between writing and committing.
    arguments = ["-w", str(root), "update", "--channel", CHANNEL, *how]
    assert subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, capture_output=True).returncode == 9
    folder = root / "channels/dm%3A顾念"
    texts = {name: (folder / name).read_text("utf-8") for name in ("MEMORY.md", "SESSION.md", "HISTORY.md")}
    assert texts["MEMORY.md"].count(FACT) == 1
    assert "ops/deploy.yml" in texts["SESSION.md"]
    assert FACT in texts["HISTORY.md"]

    # The next update finds it said already; what the killed process owed is committed in its own words.
    script.write_text(json.dumps([MODEL, NOTHING], ensure_ascii=False))
    assert run("-w", root, "update", "--channel", CHANNEL, *how).code == 0
    assert (folder / "MEMORY.md").read_text("utf-8").count(FACT) == 1

    # A compaction keeps the session; recall, and a sub-agent, get the fact.
    kept = run("-w", root, "compact", "--channel", CHANNEL)
    assert "ops/deploy.yml" in kept.out
    ask = "上次定的部署窗口是什么时候？"
    assert FACT in run("-w", root, "recall", "--channel", CHANNEL, ask).out
    given = run("-w", root, "context", "--channel", CHANNEL, "--preset", "subagent", ask).out
    assert FACT in given
    assert "ops/deploy.yml" in given

    # A new session starts with it, and its origin is on record.
    assert FACT in run("-w", root, "new-session", "--channel", CHANNEL).out
    assert run("-w", root, "add", "--channel", CHANNEL, "别的一件事情").code == 0
    with pipimem.open(str(root)) as memory:
        hit = next(h for h in memory.search("部署窗口", CHANNEL, layers=["memory"]))
        _, commit, source = memory.blame(hit.ref)
        assert commit is not None
        assert commit.trailers["Pipimem-Origin"].partition(":")[0] == origin
        assert source.startswith("turn:")
        assert memory.pending() == []
        assert memory.check() == []
