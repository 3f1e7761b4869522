"""What every suite shares: an isolated machine (home, cache, git identity), workspaces, and the command line as people run it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import pipimem
from pipimem.memory import Memory

# The suite draws the same examples every time, so that a red run means the change at hand; `--hypothesis-profile deep`
# draws many new ones. Time is the benchmarks' matter.
settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile("deep", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs behind it so, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

CASES = Path(__file__).parent / "cases"
SAMPLE = Path(__file__).parents[1] / "sample-workspace"
NOBODY = 65534


class Ran:
    """What a command did."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8")
        self.err = done.stderr.decode("utf-8")

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One dictionary database for all tests: building it is a test of its own."""
    from pipimem.index import chinese

    folder = tmp_path_factory.mktemp("cache")
    chinese.build(str(folder / chinese.dictionary_name()))
    folder.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own settings is read or changed."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ines Vale\n\temail = ines@larkfield.example\n")
    cache = tmp_path / "cache"
    cache.mkdir()
    for path in shared_cache.glob("zhdict-*"):
        os.link(path, cache / path.name)
    for name in [n for n in os.environ if n.startswith(("GIT_", "PIPIMEM_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PIPIMEM_CACHE", str(cache))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # Nobody cuts the power here, and waiting for the disk is a tenth of the suite. Processes of their own do wait.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder for a workspace."""
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A copy of the sample workspace."""
    folder = tmp_path / "sample"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("cache", "state", "locks"))
    return folder


@pytest.fixture
def make(root: Path) -> Iterator[Callable[..., Memory]]:
    """Writes files below the root (text or bytes) and opens the workspace."""
    opened: list[Memory] = []

    def made(files: dict[str, str | bytes] | None = None, *, git: bool = False) -> Memory:
        write(root, {"pipimem.toml": "", **(files or {})})
        if git:
            subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        memory = pipimem.open(str(root))
        opened.append(memory)
        return memory

    yield made
    for memory in opened:
        memory.close()


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Puts files below `root`, text as UTF-8 to the letter."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)


def case(name: str) -> bytes:
    """An input of the collected cases."""
    return (CASES / name).read_bytes()


def run(
    *arguments: str | Path,
    stdin: str | bytes = b"",
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> Ran:
    """The command line in a process of its own."""
    data = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
    command = [sys.executable, "-W", "error::ResourceWarning", "-m", "pipimem", *map(str, arguments)]
    done = subprocess.run(
        command,
        input=data,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=60,
        check=False,
    )
    return Ran(done)


def run_as_nobody(root: Path, *arguments: str | Path) -> Ran:
    """The command line without any privilege over permissions, so that modes bite as they do for people.

    For root, whose interpreter may lie where no other user can reach it, the child gives up the capabilities that
    override permissions for good before it starts; it then is an ordinary owner of its files. `root` is the
    workspace, for tests that want to say whose permissions they are about.
    """
    if os.geteuid() != 0:
        return run(*arguments)
    done = subprocess.run(
        [sys.executable, "-m", "pipimem", *map(str, arguments)], capture_output=True, timeout=60, check=False,
        preexec_fn=_give_up_privileges, env=dict(os.environ),
    )  # fmt: skip
    return Ran(done)


def _give_up_privileges() -> None:
    import ctypes

    drop, override, read_search, owner = 24, 1, 2, 3
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (override, read_search, owner):
        if libc.prctl(drop, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def snapshot(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file outside `.pipimem/` and `.git/`: bytes, mode and modification time."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {".pipimem", ".git"} & set(path.relative_to(root).parts)
    }
