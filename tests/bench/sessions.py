"""Past conversations at size: a huge rollout imported in bounded memory, and a hundred thousand messages searched.

    python -m tests.bench.sessions rollout [--mb 1024] [--kept 16]
    python -m tests.bench.sessions messages [--count 100000]
    python -m tests.bench.sessions grown [--mb 256]

Everything is invented and made in a temporary folder. CPU seconds and peak memory are those of the command's own
process; times of searches are CPU in one opened workspace, each query asked once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipimem.memory import Memory, init

WORDS = (
    "gateway retry webhook deploy timeout ledger invoice parser kiln sensor relay buffer socket migration index schema"
    " rollback latency firmware thermostat payload scheduler replica queue token handler fixture pipeline branch merge"
).split()
HAN = "部署 窗口 网关 重试 回调 超时 账本 发票 解析 传感器 继电器 缓冲 迁移 索引 回滚 延迟 固件 队列 令牌 流水线 分支 合并 热电偶 温度".split()
QUERIES = [
    "webhook retry timeout", "ledger rollback", "firmware thermostat relay", "queue handler", "网关 重试",
    "热电偶 温度", "部署窗口 回滚", "invoice parser fixture 4711", "src/relay/buffer_17.py", "固件 延迟", "socket",
    "RelayError: buffer 12 overflow",
]  # fmt: skip
ONE = 1024 * 1024


def said(random_: random.Random, size: int) -> str:
    """Some sentences of about `size` characters, one in three Chinese."""
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        if random_.random() < 0.33:
            parts.append("，".join("".join(random_.choices(HAN, k=4)) for _ in range(3)) + "。")
        else:
            parts.append(" ".join(random_.choices(WORDS, k=12)) + f" {random_.randrange(9999)}.")
    return " ".join(parts)


def line(kind: str, payload: dict[str, object], second: int) -> bytes:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_790_000_000 + second))
    return json.dumps({"timestamp": stamp, "type": kind, "payload": payload}, ensure_ascii=False).encode() + b"\n"


def rollout(path: Path, total: int, kept: int) -> tuple[int, int]:
    """A Codex rollout of about `total` bytes in which users and the agent say about `kept`; (size, kept) as made."""
    random_ = random.Random(7)
    output = "\n".join(said(random_, 400) for _ in range(600))[: 200 * 1024]
    image = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 40_000
    size = talk = number = 0
    with path.open("wb") as file:
        file.write(line("session_meta", {"id": "0199f0aa-0000-7000-8000-00000000cafe", "cwd": str(path.parent),
                                         "timestamp": "2026-09-21T00:00:00Z"}, 0))  # fmt: skip
        while size < total:
            number += 1
            if talk <= kept * size / total:
                text = said(random_, 1500)
                role, what = ("user", "input_text") if number % 2 else ("assistant", "output_text")
                data = line("response_item", {"type": "message", "role": role,
                                              "content": [{"type": what, "text": text}]}, number)  # fmt: skip
                talk += len(text.encode())
            elif number % 7 == 0:
                data = line("compacted", {"message": "", "replacement_history": [output] * 4}, number)
            elif number % 11 == 0:
                data = line("response_item", {"type": "function_call_output", "call_id": f"c{number}",
                                              "output": [{"type": "input_image", "image_url": image}]}, number)  # fmt: skip
            else:
                data = line("response_item", {"type": "function_call_output", "call_id": f"c{number}",
                                              "output": output}, number)  # fmt: skip
            size += file.write(data)
    return size, talk


def claude(folder: Path, count: int, each: int = 200) -> None:
    """Claude Code sessions of `each` messages, `count` in all."""
    random_ = random.Random(11)
    for session in range(count // each):
        identity = f"{session:08x}-1111-4222-8333-444444444444"
        rows, parent = [], None
        for n in range(each):
            uuid = f"{session:08x}-{n:04x}-4222-8333-555555555555"
            role = "assistant" if n % 2 else "user"
            text = said(random_, random_.choice((80, 200, 600)))
            text += f" see src/{random_.choice(WORDS)}/{random_.choice(WORDS)}_{random_.randrange(40)}.py"
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_780_000_000 + session * 9000 + n * 20))
            message: dict[str, object] = {
                "role": role,
                "content": text if role == "user" else [{"type": "text", "text": text}],
            }
            if role == "assistant":
                message["id"] = f"msg_{session:06x}{n:06x}"
            rows.append(json.dumps({
                "type": role, "uuid": uuid, "parentUuid": parent, "sessionId": identity, "timestamp": stamp,
                "cwd": str(folder), "message": message,
            }, ensure_ascii=False))  # fmt: skip
            parent = uuid
        (folder / f"{identity}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")


def measured(*arguments: str) -> tuple[float, float, str]:
    """CPU seconds, peak memory in MB and output of one command in a process of its own."""
    code = (
        "import resource, sys; from pipimem.cli import main; code = main(sys.argv[1:]);"
        "r = resource.getrusage(resource.RUSAGE_SELF);"
        "print(f'{r.ru_utime + r.ru_stime} {r.ru_maxrss / 1024}', file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    cpu, peak = done.stderr.split()[-2:]
    return float(cpu), float(peak), done.stdout


def bench_rollout(root: Path, megabytes: int, kept: int) -> None:
    sizes = {}
    for name, share in (("skipped only", 0), ("with talk", kept)):
        folder = root / name.replace(" ", "-")
        folder.mkdir()
        path = folder / "rollout-2026-09-21T00-00-00-0199f0aa-0000-7000-8000-00000000cafe.jsonl"
        size, talk = rollout(path, megabytes * ONE, share * ONE)
        workspace = folder / "ws"
        init(str(workspace))
        cpu, peak, _ = measured("-w", str(workspace), "import", "codex", str(path), "--all")
        sizes[name] = cpu, talk
        print(f"{name}: {size / ONE:.0f} MB, {talk / ONE:.1f} MB of talk: {cpu:.1f} s CPU, peak {peak:.0f} MB; "
              f"{size / ONE / cpu:.0f} MB/s")  # fmt: skip
        again = measured("-w", str(workspace), "import", "codex", str(path), "--all")
        print(f"  again: {again[0]:.2f} s CPU: {again[2].splitlines()[-1]}")
        found = measured("-w", str(workspace), "sessions", "search", "webhook retry timeout", "--json")
        print(f"  a search from a cold start: {found[0]:.2f} s CPU, {len(json.loads(found[2])['hits'])} hits")
        path.unlink()
    cost = sizes["with talk"][0] - sizes["skipped only"][0]
    print(f"kept text: {sizes['with talk'][1] / ONE / max(cost, 0.01):.1f} MB/s redacted and indexed")


def bench_messages(root: Path, count: int) -> None:
    folder = root / "sessions"
    folder.mkdir()
    claude(folder, count)
    workspace = root / "ws"
    init(str(workspace))
    cpu, peak, _ = measured("-w", str(workspace), "import", "claude", str(folder), "--all")
    kept = sum(p.stat().st_size for p in folder.iterdir())
    index = sum(p.stat().st_size for p in (workspace / ".pipimem" / "cache").glob("sessions-*"))
    print(f"{count:,} messages, {kept / ONE:.0f} MB: {cpu:.1f} s CPU, peak {peak:.0f} MB, index {index / ONE:.0f} MB")
    clocks = []
    with Memory(str(workspace)) as memory:
        for query in ["warm up", *QUERIES, *(f"{a} {b}" for a, b in zip(WORDS, reversed(WORDS), strict=True))]:
            started = time.process_time()
            hits = memory.session_search(query, all_channels=True)
            clocks.append((time.process_time() - started) * 1000)
            if query in QUERIES:
                print(f"  {clocks[-1]:6.1f} ms  {len(hits):2} hits  {query}")
    clocks = sorted(clocks[1:])
    print(
        f"p50 {clocks[len(clocks) // 2]:.1f} ms, p95 {clocks[int(len(clocks) * 0.95)]:.1f} ms warm, {len(clocks)} queries"
    )


def bench_grown(root: Path, megabytes: int) -> None:
    path = root / "rollout-2026-09-21T00-00-00-0199f0aa-0000-7000-8000-00000000cafe.jsonl"
    rollout(path, megabytes * ONE, 4 * ONE)
    workspace = root / "ws"
    init(str(workspace))
    first = measured("-w", str(workspace), "import", "codex", str(path), "--all")
    with path.open("ab") as file:
        for n in range(10):
            content = [{"type": "input_text", "text": f"one more {n} about the relay"}]
            file.write(line("response_item", {"type": "message", "role": "user", "content": content}, 10**6 + n))
    grown = measured("-w", str(workspace), "import", "codex", str(path), "--all")
    print(f"{megabytes} MB: {first[0]:.2f} s CPU, peak {first[1]:.0f} MB; ten messages more: {grown[0]:.2f} s CPU")
    print("  " + grown[2].splitlines()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["rollout", "messages", "grown"])
    parser.add_argument("--mb", type=int, default=1024)
    parser.add_argument("--kept", type=int, default=16)
    parser.add_argument("--count", type=int, default=100_000)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        root = Path(folder)
        if options.what == "rollout":
            bench_rollout(root, options.mb, options.kept)
        elif options.what == "messages":
            bench_messages(root, options.count)
        else:
            bench_grown(root, min(options.mb, 256))


if __name__ == "__main__":
    main()
