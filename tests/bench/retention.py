"""Two hundred turns of a channel, worked up and made shorter on the way: what of it does recall still find?

    python tests/bench/retention.py [--turns 200]

Every third turn says something that holds, the others are small talk. MEMORY is condensed and HISTORY folded whenever
they are due. Prints how many of the facts a question of other words finds, and whether doing it all once more changes
anything; exits 1 below 95 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta

import pipimem
from pipimem.memory import Memory, init

NAMES = ("Ines", "Dafydd", "林岚", "罗启铭", "Marit", "沈若溪")
TASKS = ("billing", "the label printer", "invoices", "photo uploads", "kiln alarms", "the price list", "stock counts",
         "door access", "the meter import", "night jobs", "customer mail", "test data", "the wiki", "release notes")  # fmt: skip
TOOLS = ("Postgres", "RabbitMQ", "Typst", "MinIO", "Grafana", "SQLite", "Meilisearch", "Zitadel", "Parquet", "cron",
         "Postfix", "Faker", "MkDocs", "towncrier")  # fmt: skip
THINGS = (
    "备用钥匙",
    "三号窑的探头",
    "样品标签机",
    "投影仪",
    "急救箱",
    "合同原件",
    "旧网关",
    "备用硬盘",
    "门禁卡",
    "相机",
    "梯子",
    "万用表",
    "热风枪",
    "账本",
)
PLACES = ("A 柜第一层", "B 柜第三层", "仓库东墙", "前台抽屉", "二楼茶水间", "财务保险柜", "机房 7 号架", "实验室窗边", "C 柜底层", "会议室柜子",
          "楼梯间", "工具墙左侧", "焊台旁边", "图书角")  # fmt: skip
TALK = ("早，今天有点冷", "haha nice one", "lunch at twelve?", "我先去开会", "ok thanks", "the coffee machine is making that noise again",
        "周末愉快", "brb", "这张图真好看", "anyone seen my cable?")  # fmt: skip


def facts() -> Iterator[tuple[str, str, str]]:
    """What is said, what is asked for it later, and what the answer must hold."""
    for n in range(14):
        yield (
            f"We decided to use {TOOLS[n]} for {TASKS[n]} from now on.",
            f"what did we decide to use for {TASKS[n]}?",
            TOOLS[n],
        )
        yield (f"记住：{THINGS[n]}放在{PLACES[n]}", f"上次说{THINGS[n]}放在哪里来着？", PLACES[n])
    for n, name in enumerate(NAMES):
        yield (
            f"Remember: {name} reviews every change of module m{n}x before it is merged.",
            f"who reviews module m{n}x again?",
            name,
        )
        yield (f"以后 {name} 负责的告警一律发到 #alarm-{n} 群", f"之前说 {name} 的告警发到哪个群？", f"alarm-{n}")


def live(memory: Memory, turns: int) -> list[tuple[str, str, str]]:
    """Lets the channel live through its turns; the facts that were said."""
    start, said, waiting = memory.now() - timedelta(days=60), [], list(facts())
    clock = [start]
    memory.now = lambda: clock[0]  # type: ignore[method-assign]
    for turn in range(turns):
        fact = waiting.pop(0) if turn % 3 == 0 and waiting else None
        said += [fact] if fact else []
        text = fact[0] if fact else TALK[turn % len(TALK)]
        stamp = clock[0].isoformat(timespec="seconds")
        memory.turn(
            "ops",
            [
                {"role": "user", "name": NAMES[turn % 6], "content": text, "timestamp": stamp},
                {"role": "assistant", "content": "ok", "timestamp": stamp},
            ],
        )
        clock[0] += timedelta(minutes=15)
        memory.maintain("ops")
        clock[0] += timedelta(hours=5)
    clock[0] += timedelta(hours=7)
    memory.maintain("ops")
    return said


def found(memory: Memory, said: list[tuple[str, str, str]]) -> list[str]:
    """The questions whose answer recall gives."""
    return [ask for _, ask, key in said if key in memory.recall(ask, "ops").text]


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as root:
        init(root)
        with pipimem.open(root) as memory:
            memory.add_channel("ops", kind="group")
            said = live(memory, turns)
            good = found(memory, said)
            sizes = {
                n: len((memory.workspace.read(f"channels/ops/{n}") or b"").decode())
                for n in ("MEMORY.md", "HISTORY.md", "HISTORY.archive.md")
            }
            lost = [ask for _, ask, _ in said if ask not in good]
            print(
                f"{turns} turns, {len(said)} facts: {len(good)} found by recall ({len(good) / len(said):.3f}); characters {sizes}"
            )
            print("lost:", lost)
    return int(len(good) < 0.95 * len(said))


if __name__ == "__main__":
    sys.exit(main())
