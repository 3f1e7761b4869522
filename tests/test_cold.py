"""What a cold search or recall loads: nothing that costs more than the answer (docs/benchmarks.md has the figures)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pipimem

FORBIDDEN = frozenset(
    """
    jieba rjieba pydantic pydantic_core dataclasses inspect git gitdb smmap markdown_it mdurl frontmatter yaml
    watchfiles mcp numpy rich pygments filelock pathlib typing tomllib logging asyncio subprocess tempfile
    importlib.metadata importlib.resources urllib urllib.parse hashlib zoneinfo unittest random secrets uuid socket ssl
    http email shutil glob textwrap difflib traceback ast dis tokenize platform threading concurrent multiprocessing
    ctypes decimal fractions statistics string pickle copy csv xml html zipfile tarfile gzip bz2 lzma
    pipimem.git pipimem.markdown pipimem.update pipimem.importers pipimem.index.sync pipimem.index.plain
    pipimem.index.upkeep pipimem.evaluate pipimem.demo
    """.split()
)
COMMANDS = {
    "search, English": ["search", "ramp limit"],
    "search, Chinese": ["search", "热电偶 接口"],
    "search in a channel": ["search", "--channel", "ops", "deploy window"],
    "search as JSON": ["search", "--json", "ramp limit"],
    "recall, English": ["recall", "--channel", "project:kilnwren", "Which host do the meter tests run against"],
    "recall, Chinese": ["recall", "--channel", "dingtalk:group:cidKq7/u+0kH//Zw==", "灰度发布从百分之几开始"],
    "recall of nothing": ["recall", "what is two plus two"],
}


def imported(*arguments: str) -> tuple[set[str], bytes]:
    """The modules a fresh interpreter loads for these arguments, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, check=True, env=dict(os.environ)
    )
    rows = [line.split("|") for line in done.stderr.decode().splitlines() if line.startswith("import time:")]
    return {row[2].strip() for row in rows if len(row) == 3}, done.stdout


@pytest.fixture(scope="module")
def bare() -> set[str]:
    """What an interpreter loads before it does anything, such as what an editable install hooks in."""
    return imported("-m", "this")[0]


@pytest.fixture
def fresh(sample: Path) -> Path:
    with pipimem.open(str(sample)) as memory:
        memory.index()
    while imported("-m", "pipimem", "-w", str(sample), "search", "ramp")[0] & {"pipimem.index.sync"}:
        pass  # files as young as these are compared once more
    return sample


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cold_command_loads_nothing_heavy(fresh: Path, bare: set[str], command: str) -> None:
    loaded, out = imported("-m", "pipimem", "-w", str(fresh), *COMMANDS[command])
    assert bool(out.strip()) == (command != "recall of nothing")
    assert sorted((loaded - bare) & FORBIDDEN) == []


def test_the_list_of_forbidden_modules_bites(sample: Path, bare: set[str]) -> None:
    loaded, _ = imported("-m", "pipimem", "-w", str(sample), "index")
    assert (loaded - bare) & FORBIDDEN >= {"markdown_it", "pipimem.index.sync"}


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["search", "--help"]])
def test_version_and_help_load_nothing_of_the_index(bare: set[str], arguments: list[str]) -> None:
    loaded = imported("-m", "pipimem", *arguments)[0] - bare
    assert loaded & FORBIDDEN <= {"textwrap"}  # argparse wraps its help with it
    assert not {name for name in loaded if name.startswith(("pipimem.index", "pipimem.memory", "sqlite3", "_sqlite3"))}


def test_importing_the_package_loads_no_other_module_of_it() -> None:
    loaded, _ = imported("-c", "import pipimem")
    assert {name for name in loaded if name.startswith("pipimem")} == {"pipimem"}


def test_changed_settings_cost_one_search_and_are_remembered(fresh: Path, bare: set[str]) -> None:
    (fresh / "pipimem.toml").write_text((fresh / "pipimem.toml").read_text() + "threshold = 1.25\n")
    first = imported("-m", "pipimem", "-w", str(fresh), "search", "ramp limit")[0] - bare
    second = imported("-m", "pipimem", "-w", str(fresh), "search", "ramp limit")[0] - bare
    assert "tomllib" in first
    assert second & FORBIDDEN == set()
