"""The Inspector of the Model Context Protocol (npm) lists and calls the tools, as people try a server out by hand.

It runs where `PIPIMEM_INSPECTOR` names its program; `.ci/run` installs it where there is npm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pipimem.memory import Memory
from pipimem.server.tools import table
from tests.test_server import CALLS, FILES, TURNS

INSPECTOR = os.environ.get("PIPIMEM_INSPECTOR", "")
pytestmark = pytest.mark.skipif(not INSPECTOR, reason="the Inspector is not installed (PIPIMEM_INSPECTOR)")


def asked(root: Path, *arguments: str, options: Sequence[str] = ()) -> Any:
    server = [sys.executable, "-m", "pipimem", "mcp", "-w", str(root), "--write", "--channel", "ops", *options]
    done = subprocess.run([INSPECTOR, "--cli", *server, *arguments], capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)


def called(root: Path, name: str, *, chatgpt: bool) -> Any:
    arguments = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in CALLS[name].items()
        if value is not None
    ]
    given = ["--tool-arg", *arguments] if arguments else []
    options = ["--chatgpt"] if chatgpt else []
    return asked(root, "--method", "tools/call", "--tool-name", name, *given, options=options)


@pytest.mark.parametrize("chatgpt", [False, True])
def test_the_inspector_lists_and_calls_every_tool(make: Callable[..., Memory], root: Path, chatgpt: bool) -> None:
    make(dict(FILES)).turn("ops", TURNS)
    listed = asked(root, "--method", "tools/list", options=["--chatgpt"] if chatgpt else [])["tools"]
    names = list(table(write=True, chatgpt=chatgpt))
    assert [tool["name"] for tool in listed] == names
    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(names, pool.map(lambda name: called(root, name, chatgpt=chatgpt), names), strict=True))
    assert {name: a["content"] for name, a in answers.items() if a.get("isError")} == {}
    for tool in listed:
        jsonschema.validate(answers[tool["name"]]["structuredContent"], tool["outputSchema"])
