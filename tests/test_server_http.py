"""The MCP server on loopback HTTP: the official client, the token, and who may call it by which name."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from pipimem.errors import Refused
from pipimem.memory import Memory
from pipimem.server import http as loopback
from pipimem.server.served import Served
from tests.conftest import run
from tests.test_server_pipe import HELLO

TOKEN = "correct-horse-battery"


class Serving:
    """A server in a process of its own."""

    def __init__(self, root: Path, *options: str, env: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "pipimem", "-w", str(root), "mcp", "--http", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})  # fmt: skip
        assert self.process.stderr is not None
        self.url = self.process.stderr.readline().split()[-1]
        self.token = self.process.stderr.readline().split()[-1]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def post(self, headers: dict[str, str], path: str = "/mcp", body: bytes = json.dumps(HELLO).encode()) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", path, body, {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers,
            })  # fmt: skip
            return connection.getresponse().status
        finally:
            connection.close()

    def ends(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=30)
        assert out == ""
        return self.process.returncode


@pytest.fixture
def served(make: Callable[..., Memory], root: Path) -> Iterator[Serving]:
    text = "# Memory\n\n## Facts\n\n- 部署窗口是周四晚上 <!-- m-0000000a kind=fact by=updater -->\n"
    make({"channels/ops/MEMORY.md": text, "channels/ops/.channel": "ops\n"})
    serving = Serving(root, "--channel", "ops", "--write", env={"PIPIMEM_MCP_TOKEN": TOKEN})
    yield serving
    if serving.process.poll() is None:
        serving.process.kill()
        serving.process.communicate()


def test_only_a_local_caller_with_the_token_is_answered_by_the_official_client_in_both_generations(
    served: Serving,
) -> None:
    async def session(mode: str, number: int) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if mode == "invented":  # a session's id that the server never issued makes no session
            mode, headers["Mcp-Session-Id"] = "auto", f"fake{number}"
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as web,
            Client(streamable_http_client(served.url, http_client=web), mode=mode) as client,
        ):
            assert len((await client.list_tools()).tools) >= 10
            added = await client.call_tool("memory_add", {"text": f"Hall {number} is number {number}"})
            found = await client.call_tool("memory_search", {"query": "部署窗口"})
            assert found.structured_content["hits"][0]["ref"] == "m-0000000a"
            return added.structured_content["writes_left"]

    async def main() -> list[Any]:
        return [
            await session(mode, n)
            for n, mode in enumerate(("legacy", "legacy", "auto", "auto", "invented", "invented"))
        ]

    assert anyio.run(main) == [19, 19, 19, 18, 17, 16]
    mine = {"Authorization": f"Bearer {TOKEN}"}
    local = {"Host": f"localhost:{served.port}", "Origin": f"http://localhost:{served.port}"}
    assert served.post({**mine, **local}) == 200
    wrong = ("", "Bearer wrong", TOKEN, "Bearer 世".encode().decode("latin-1"))
    for headers in ({}, *({"Authorization": word} for word in wrong)):
        assert served.post(headers) == 401
    for host in ("evil.example", f"evil.example:{served.port}", "127.0.0.1:1", f"127.0.0.1.evil.example:{served.port}"):
        assert served.post({**mine, "Host": host}) == 421
    for origin in ("http://evil.example", "https://127.0.0.1", "null", f"http://127.0.0.1:{served.port}.evil.example"):
        assert served.post({**mine, "Origin": origin}) == 403
    assert served.post(mine, path="/") == 404
    assert served.post(mine, body=b"{" * 100) == 400
    assert served.post(mine, body=b" " * 5_000_000) == 413
    assert served.post(mine) == 200
    assert served.ends() == 0


def test_without_a_token_in_the_environment_one_is_made_and_said(
    make: Callable[..., Memory], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make({})
    serving = Serving(root)
    try:
        assert len(serving.token) > 40
        assert serving.post({"Authorization": f"Bearer {serving.token}"}) == 200
        assert serving.post({"Authorization": f"Bearer {TOKEN}"}) == 401
        taken = run("mcp", "-w", root, "--http", str(serving.port))
        assert (taken.code, taken.out) == (4, "")
        assert f"Port {serving.port} of 127.0.0.1 cannot be taken" in taken.err
    finally:
        assert serving.ends() == 0
    monkeypatch.setenv("PIPIMEM_MCP_TOKEN", "kumquat")
    with pytest.raises(Refused, match="fewer than 16") as refused:
        loopback.serve(Served(str(root)), 0)
    assert "kumquat" not in str(refused.value)
