"""The MCP server on a pipe, as hosts start it: what it prints, what it survives, when it ends."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from pipimem.memory import Memory
from tests.conftest import run, snapshot

Make = Callable[..., Memory]
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def asked(number: Any, name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def command(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-W", "error::ResourceWarning", "-m", "pipimem", "-w", str(root), "mcp", *options]


def lines(*messages: dict[str, Any] | bytes) -> bytes:
    return b"".join(m if isinstance(m, bytes) else json.dumps(m, ensure_ascii=False).encode() + b"\n" for m in messages)


def served(root: Path, *messages: dict[str, Any] | bytes, env: dict[str, str] | None = None, write: bool = True) -> Any:
    """What a server answers to these and no more, by id; every line of its output is protocol."""
    options = ["--channel", "ops", *(["--write"] if write else [])]
    done = subprocess.run(
        command(root, *options), input=lines(HELLO, READY, *messages), capture_output=True, timeout=60, check=True,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    return {answer.get("id"): answer.get("result", answer.get("error")) for answer in answers}, done.stderr.decode()


@pytest.fixture
def workspace(make: Make, root: Path) -> Path:
    text = "# Memory\n\n## Facts\n\n- 部署窗口是周四晚上 <!-- m-0000000a kind=fact by=updater -->\n"
    make({"channels/ops/MEMORY.md": text, "channels/ops/.channel": "ops\n"})
    return root


def test_what_came_before_the_input_was_closed_is_answered_in_utf8_whatever_the_locale(workspace: Path) -> None:
    """The index is made meanwhile: what is printed on the way must not meet the protocol."""
    answers, _ = served(
        workspace, asked(1, "memory_add", text="灰度从百分之五开始"), asked("二", "memory_search", query="部署窗口"),
        env={"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )  # fmt: skip
    assert answers[0]["serverInfo"]["name"] == "pipimem"
    assert answers["二"]["structuredContent"]["hits"][0]["text"] == "部署窗口是周四晚上"
    assert "灰度从百分之五开始" in (workspace / "channels/ops/MEMORY.md").read_text("utf-8")


def test_the_official_client_lists_and_calls_over_a_pipe(workspace: Path) -> None:
    async def main() -> Any:
        parameters = StdioServerParameters(command=sys.executable, args=command(workspace)[1:], env=dict(os.environ))
        async with Client(parameters) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("memory_status", {})
            return listed, found.structured_content

    listed, state = anyio.run(main)
    assert "memory_search" in listed
    assert "memory_add" not in listed
    assert state["channel"] == ""


def test_the_process_ends_when_nobody_reads(workspace: Path) -> None:
    with subprocess.Popen(command(workspace), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(lines(HELLO, READY, asked(1, "memory_status")))
        process.stdin.flush()
        assert process.wait(30) == 0
        with suppress(BrokenPipeError):
            process.stdin.close()


def test_rubbish_harms_neither_the_files_nor_the_server(workspace: Path) -> None:
    dice = random.Random(20261130)
    asks: list[tuple[str, dict[str, Any]]] = [
        ("memory_search", {"query": "部署"}), ("memory_get", {"refs": ["m-0000000a"]}), ("memory_status", {}),
    ]  # fmt: skip
    good = [lines(asked(100 + n, name, **given)).rstrip(b"\n") for n, (name, given) in enumerate(asks * 8)]
    rubbish = [
        b"", b"{", b"null", b"[]", b"42", b'"text"', b"\x00\xff\xfe", b"{" * 5000, b"[" * 100_000, b"\xe9\x83",
        b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"id":true,"method":7,"params":"x"}',
        b'{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":"\\ud800","arguments":{"query":"\\udfff"}}}',
        b'{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"name":["a"],"arguments":7}}',
        b'{"jsonrpc":"2.0","id":902,"method":"tools/call"}', b'{"jsonrpc":"2.0","id":903,"method":"../../etc/passwd"}',
        b'{"jsonrpc":"2.0","id":904,"result":{}}', b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', b'{"jsonrpc":"2.0","method":"notifications/none"}',
        *(
            b'{"jsonrpc":"2.0","method":"%s","params":{"requestId":%s,"progressToken":%s,"progress":%s}}'
            % (method, odd, odd, odd)
            for method in (b"notifications/cancelled", b"notifications/progress")
            for odd in (b"[]", b"{}", b'{"a":1}', b"null", b"1.5", b"true", b"[[1]]")
        ),
        b'{"jsonrpc":"2.0","id":905,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
        lines(asked(906, "memory_add", text="x" * 3_000_000)).rstrip(b"\n"),
        lines(asked(907, "memory_search", query="部署 " * 200_000)).rstrip(b"\n"),
        lines(asked(908, "memory_add", text={"a": [None] * 1000}, kind=[[]])).rstrip(b"\n"),
    ]  # fmt: skip
    for message in good:
        torn = bytearray(message)
        for _ in range(dice.randrange(1, 6)):
            torn[dice.randrange(len(torn))] = dice.randrange(256)
        rubbish += [bytes(torn).replace(b"\n", b" "), message[: dice.randrange(len(message))], message * 2]
    mixed = [*good, *rubbish]
    dice.shuffle(mixed)
    before = snapshot(workspace)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "taken back"}}
    answers, errors = served(
        workspace, *(m + b"\n" for m in mixed), asked("taken back", "memory_search", query="部署"), cancel,
        asked("last", "memory_search", query="部署窗口"),
    )  # fmt: skip
    assert snapshot(workspace) == before
    assert answers["last"]["structuredContent"]["hits"][0]["ref"] == "m-0000000a"
    assert "error" not in answers.get("taken back", {})  # it may be done before the word that takes it back is read
    assert {100 + n for n in range(len(good))} <= set(answers)
    assert "Traceback" not in errors
    for number in (906, 907, 908):
        assert answers[number]["isError"]
        assert "Wanted" in answers[number]["content"][0]["text"]


def test_several_servers_write_to_one_workspace_at_once(workspace: Path) -> None:
    def messages(server: int) -> bytes:
        adds = (asked(n, "memory_add", text=f"Hall {server}{n} was painted by crew {n}{server}") for n in range(1, 5))
        return lines(HELLO, READY, *adds)

    processes = []
    for server in range(2):
        process = subprocess.Popen(
            command(workspace, "--channel", "ops", "--write"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(messages(server))
        process.stdin.flush()
        processes.append(process)
    for process in processes:
        out, _ = process.communicate(timeout=60)
        answers = [json.loads(line) for line in out.splitlines()]
        assert [a["result"]["content"] for a in answers if a["result"].get("isError")] == []
        assert len(answers) == 5
    assert (workspace / "channels/ops/MEMORY.md").read_text().count("by=tool") == 8


def test_what_cannot_be_served_is_said_at_the_start(workspace: Path, tmp_path: Path) -> None:
    assert run("mcp", "--channel", "nobody", "-w", workspace).code == 3
    assert run("mcp", "-w", tmp_path / "nowhere").code == 3
    lacking = tmp_path / "lacking/mcp"
    lacking.mkdir(parents=True)
    (lacking / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')\n")
    paths = os.pathsep.join([str(lacking.parent), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    done = run("mcp", "-w", workspace, env={"PYTHONPATH": paths})
    assert done.code == 4
    assert "pip install 'pipimem[mcp]'" in done.err
    assert done.out == ""
