"""Starting the MCP server: process start to the answer of `initialize`, beside empty servers on the same SDK, taken in
turn; and to the answer of the first `memory_search`.

    python tests/bench/server.py [--runs 15] [--channel ops]

Prints the medians in milliseconds of wall time and of CPU, the ratio of `initialize` to the quickest empty server (the
median of each round's), and one JSON line; ends with 1 where the ratio is over 1.2 or a first search takes over two
seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EMPTY = {
    "empty, low level": (
        "import anyio\n"
        "from mcp.server.lowlevel import Server\n"
        "from mcp.server.stdio import stdio_server\n"
        "async def main():\n"
        "    server = Server('empty')\n"
        "    async with stdio_server() as (read, write):\n"
        "        await server.run(read, write, server.create_initialization_options())\n"
        "anyio.run(main)\n"
    ),
    "empty, MCPServer": "from mcp.server.mcpserver import MCPServer\nMCPServer('empty').run()\n",
}
HELLO = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
}  # fmt: skip
QUERIES = {"search": "deploy window", "search, Chinese": "热电偶 接口"}
MOST, LONGEST = 1.2, 2000.0


def ask(command: list[str], *requests: tuple[str, dict[str, Any]]) -> tuple[float, float]:
    """Milliseconds from the start of the process to the answer of the last request, and of CPU to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, (method, params) in enumerate(requests):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer, answer
            assert not answer["result"].get("isError"), answer
        took = (time.perf_counter() - started) * 1000
        process.stdin.close()
        process.wait(30)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--channel", default="ops")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        shutil.copytree(ROOT / "sample-workspace", workspace)
        subprocess.run(
            [sys.executable, "-m", "pipimem", "-w", str(workspace), "index"], check=True, stdout=subprocess.DEVNULL
        )
        return measured(options.runs, [
            sys.executable, "-m", "pipimem", "-w", str(workspace), "mcp", "--write", "--channel", options.channel,
        ])  # fmt: skip


def measured(runs: int, ours: list[str]) -> int:
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in (*EMPTY, "pipimem", *QUERIES)}
    for _ in range(runs):
        for name, code in EMPTY.items():
            rows[name].append(ask([sys.executable, "-c", code], ("initialize", HELLO)))
        rows["pipimem"].append(ask(ours, ("initialize", HELLO)))
        for name, query in QUERIES.items():
            call = {"name": "memory_search", "arguments": {"query": query}}
            rows[name].append(ask(ours, ("initialize", HELLO), ("tools/call", call)))
    medians = {name: [statistics.median(kind) for kind in zip(*times, strict=True)] for name, times in rows.items()}
    for name, (wall, cpu) in medians.items():
        print(f"{name:<20} {wall:7.0f} ms wall {cpu:7.0f} ms CPU")
    quickest = min(EMPTY, key=lambda name: medians[name][0])
    ratios = [
        statistics.median(mine[kind] / empty[kind] for mine, empty in zip(rows["pipimem"], rows[quickest], strict=True))
        for kind in (0, 1)
    ]
    print(f"initialize is {ratios[0]:.2f} times '{quickest}' by the clock, {ratios[1]:.2f} by CPU")
    figures = {name: [round(value, 1) for value in pair] for name, pair in medians.items()}
    print(json.dumps({"ratio": [round(value, 3) for value in ratios], **figures}, ensure_ascii=False))
    return int(ratios[0] > MOST or max(medians[name][0] for name in QUERIES) > LONGEST)


if __name__ == "__main__":
    sys.exit(main())
