"""git.py against real repositories: what is committed, what of the person's stays, what is left for later."""

from __future__ import annotations

import ast
import json
import os
import select
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import pipimem.git
from pipimem.errors import NotFound, Refused, Unreadable, Usage
from pipimem.git import Commit, Deferred, GitOff, Repository, trailers

OURS = "channels/ops/MEMORY.md"
OLD = "# 频道记忆\n\n- 部署窗口是周四晚上\n"
NEW = OLD + "- 周五不部署\n"
MESSAGE = "ops: 记住一条决定\n\n1 entry added.\n\nPipimem-Run: r-0001\nPipimem-Actor: updater\n"
LINES = "".join(f"line {number}\n" for number in range(1, 31))
CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Work:
    """A workspace folder, and git as the person runs it there."""

    root: Path

    def git(self, *arguments: str, data: bytes = b"", fine: tuple[int, ...] = (0,)) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        assert done.returncode in fine, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def open(self) -> Repository:
        return Repository.open(str(self.root))

    def commit(self, text: str = NEW, path: str = OURS) -> str | None:
        self.write(path, text)
        return self.open().commit({path: text.encode()}, MESSAGE, wait=10)

    def files(self, rev: str = "HEAD") -> list[str]:
        out = self.git("show", "--format=", "--name-only", "--no-renames", "-z", rev)
        return [name for name in out.split("\0") if name]

    def git_dir(self) -> Path:
        return Path(self.git("rev-parse", "--absolute-git-dir").strip())

    def beside(self, path: str = OURS) -> dict[str, object]:
        """All that git and the disk say about everything but `path`, and about what is staged anywhere."""
        status = self.git("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames")
        return {
            "status": [line for line in status.split("\0") if line and not line.endswith(path)],
            "staged": self.git("diff", "--cached", "--no-renames"),
            "edited": self.git("diff", "--no-renames", "--", f":(exclude,literal){path}"),
            "flags": [line for line in self.git("ls-files", "-v", "-z").split("\0") if not line.endswith(path)],
            "files": {
                str(file.relative_to(self.root)): file.read_bytes()
                for file in sorted(self.root.rglob("*"))
                if file.is_file() and ".git" not in file.parts and not str(file).endswith(path)
            },
            "config": (self.git_dir() / "config").exists() and (self.git_dir() / "config").read_bytes(),
        }


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("GIT_") or name in ("XDG_CONFIG_HOME", "SUDO_UID"):
            monkeypatch.delenv(name)
    home = tmp_path / "person"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = 王小明\n\temail = ming@example.invalid\n[init]\n\tdefaultBranch = trunk\n"
        '[protocol "file"]\n\tallow = always\n[core]\n\tfsync = none\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def begin(root: Path, *options: str) -> Work:
    root.mkdir(parents=True)
    work = Work(root)
    work.git("init", "--quiet", *options)
    work.write(OURS, OLD)
    work.write("MEMORY.md", "- shared\n")
    work.write("code.py", LINES)
    work.git("add", ".")
    work.git("commit", "--quiet", "-m", "begin")
    return work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return begin(tmp_path / "工作区")


# Each of these is a state in which a commit goes through, and leaves everything else as it was.


def clean(work: Work) -> None:
    assert work.git("status", "--porcelain") == ""


def staged_file(work: Work) -> None:
    work.write("notes.txt", "staged\n")
    work.git("add", "notes.txt")


def half_staged_hunk(work: Work) -> None:
    work.write("code.py", LINES.replace("line 2\n", "line two\n").replace("line 29\n", "line last\n"))
    # What `git add -p` does: the first hunk only.
    half = LINES.replace("line 2\n", "line two\n").encode()
    blob = work.git("hash-object", "-w", "--stdin", data=half).strip()
    work.git("update-index", "--cacheinfo", f"100644,{blob},code.py")


def unstaged_edit(work: Work) -> None:
    work.write("MEMORY.md", "- shared\n- mine, not added yet\n")


def many_untracked(work: Work) -> None:
    for number in range(50):
        work.write(f"草稿/{number}.txt", f"{number}\n")


def g49(work: Work) -> None:
    for prepare in (staged_file, half_staged_hunk, unstaged_edit, many_untracked):
        prepare(work)


def staged_deletion(work: Work) -> None:
    work.git("rm", "--quiet", "MEMORY.md")


def staged_rename(work: Work) -> None:
    work.git("mv", "code.py", "新名字.py")


def intent_to_add(work: Work) -> None:
    work.write("later.txt", "later\n")
    work.git("add", "--intent-to-add", "later.txt")


def executable(work: Work) -> None:
    (work.root / OURS).chmod(0o755)
    work.git("commit", "--quiet", "-am", "mode")


def autocrlf(work: Work) -> None:
    work.git("config", "core.autocrlf", "true")


def safecrlf(work: Work) -> None:
    autocrlf(work)
    work.git("config", "core.safecrlf", "true")


def split_index(work: Work) -> None:
    work.git("config", "core.splitIndex", "true")
    work.git("update-index", "--split-index")
    staged_file(work)


def sparse_checkout(work: Work) -> None:
    work.write("docs/far.txt", "far\n")
    work.git("add", "docs")
    work.git("commit", "--quiet", "-m", "docs")
    work.git("sparse-checkout", "set", "--cone", "channels")
    assert not (work.root / "docs").exists()


def sparse_index(work: Work) -> None:
    sparse_checkout(work)
    work.git("sparse-checkout", "init", "--cone", "--sparse-index")


def untracked_cache(work: Work) -> None:
    work.git("update-index", "--force-untracked-cache")
    many_untracked(work)


def hidden_edits(work: Work) -> None:
    work.git("update-index", "--assume-unchanged", "code.py")
    work.git("update-index", "--skip-worktree", "MEMORY.md")
    work.write("code.py", "hidden\n")


def signing(work: Work) -> None:
    program = work.git_dir() / "signer"
    program.write_text('#!/bin/sh\ncase "$*" in *--verify*) echo noise >&2; exit 1 ;; esac\nexec sleep 100\n')
    program.chmod(0o755)
    for name, value in (
        ("commit.gpgsign", "true"),
        ("gpg.program", str(program)),
        ("log.showSignature", "true"),
    ):
        work.git("config", name, value)
    lines = work.git("cat-file", "commit", "HEAD").split("\n")
    place = lines.index("")
    signature = ["gpgsig -----BEGIN PGP SIGNATURE-----", " ", " -----END PGP SIGNATURE-----"]
    data = "\n".join([*lines[:place], *signature, *lines[place:]]).encode()
    signed = work.git("hash-object", "-t", "commit", "-w", "--stdin", data=data).strip()
    work.git("update-ref", "HEAD", signed)


def failing_hooks(work: Work) -> None:
    folder = work.git_dir() / "hooks"
    folder.mkdir(exist_ok=True)
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"):
        (folder / name).write_text(f"#!/bin/sh\ntouch '{folder}/ran'\nexit 1\n")
        (folder / name).chmod(0o755)
    work.git("commit", "--quiet", "--allow-empty", "-m", "refused", fine=(1,))
    assert (folder / "ran").exists()


def no_identity(work: Work) -> None:
    Path(os.environ["HOME"], ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")


def other_encoding(work: Work) -> None:
    work.git("config", "i18n.commitEncoding", "GBK")
    work.git("config", "i18n.logOutputEncoding", "ISO-8859-1")


def loud_configuration(work: Work) -> None:
    for name, value in {
        "color.ui": "always",
        "diff.external": "false",
        "diff.noprefix": "true",
        "diff.renames": "copies",
        "log.decorate": "full",
        "log.follow": "true",
        "status.showUntrackedFiles": "no",
        "core.quotePath": "true",
        "core.pager": "false",
        "format.pretty": "oneline",
    }.items():
        work.git("config", name, value)


def head_is_a_link(work: Work) -> None:
    head = work.git_dir() / "HEAD"
    target = head.read_text().removeprefix("ref: ").strip()
    head.unlink()
    head.symlink_to(target)


def index_is_a_link(work: Work) -> None:
    (work.git_dir() / "index").rename(work.git_dir() / "true-index")
    (work.git_dir() / "index").symlink_to("true-index")


def packed(work: Work) -> None:
    work.git("gc", "--quiet")


def unborn(work: Work) -> None:
    work.git("checkout", "--quiet", "--orphan", "fresh")
    work.git("rm", "-r", "--quiet", "--cached", ".")


def unborn_with_staged(work: Work) -> None:
    unborn(work)
    work.git("add", "code.py")


def our_intent_to_add(work: Work) -> None:
    work.git("rm", "--quiet", "--cached", OURS)
    work.git("commit", "--quiet", "-m", "not tracked")
    work.git("add", "--intent-to-add", OURS)


COMMITS = [
    clean, staged_file, half_staged_hunk, unstaged_edit, many_untracked, g49, staged_deletion, staged_rename,
    intent_to_add, our_intent_to_add, executable, autocrlf, safecrlf, split_index, sparse_checkout,
    sparse_index, untracked_cache, hidden_edits, signing, failing_hooks, no_identity, other_encoding,
    loud_configuration, head_is_a_link, index_is_a_link, packed, unborn, unborn_with_staged,
]  # fmt: skip


@pytest.mark.parametrize("prepare", COMMITS, ids=lambda prepare: prepare.__name__)
def test_a_commit_holds_our_file_and_leaves_the_rest_alone(work: Work, prepare: Callable[[Work], None]) -> None:
    prepare(work)
    mode = stat.S_IMODE((work.root / OURS).stat().st_mode)
    home = Path(os.environ["HOME"], ".gitconfig").read_bytes()
    before = work.beside()
    ran = work.git_dir() / "hooks" / "ran"
    ran.unlink(missing_ok=True)
    shared = len(list(work.git_dir().glob("sharedindex.*")))
    linked = (work.git_dir() / "index").is_symlink()

    sha = work.commit()

    assert sha is not None
    assert not ran.exists()
    assert work.git("diff-files", "--name-only", "--", OURS) == ""
    assert len(list(work.git_dir().glob("sharedindex.*"))) == shared
    assert work.beside() == before
    assert work.files() == [OURS]
    assert work.git("cat-file", "blob", f"HEAD:{OURS}") == NEW
    assert work.git("status", "--porcelain", "--", OURS) == ""
    assert "\nencoding " not in work.git("cat-file", "commit", "HEAD")
    assert work.git("ls-tree", "HEAD", "--", OURS)[:6] == ("100755" if mode & 0o100 else "100644")
    assert work.git("log", "-1", "--encoding=UTF-8", "--no-show-signature", "--format=%cn <%ce> %B").startswith(
        "pipimem <pipimem@localhost> ops: 记住一条决定"
    )
    assert [commit.sha for commit in work.open().log()] == work.git("rev-list", "HEAD").split()
    assert work.open().log(limit=1)[0].subject == "ops: 记住一条决定"
    assert not list(work.git_dir().glob("*.lock"))
    assert (work.git_dir() / "index").is_symlink() == linked
    assert Path(os.environ["HOME"], ".gitconfig").read_bytes() == home
    work.git("fsck", "--strict")


def a_conflict(work: Work) -> None:
    work.git("branch", "side")
    work.write("code.py", "ours\n")
    work.git("commit", "--quiet", "-am", "ours")
    work.git("checkout", "--quiet", "side")
    work.write("code.py", "theirs\n")
    work.git("commit", "--quiet", "-am", "theirs")
    work.git("checkout", "--quiet", "trunk")


def detached(work: Work) -> None:
    work.git("checkout", "--quiet", "--detach")


def merging(work: Work) -> None:
    a_conflict(work)
    work.git("merge", "side", fine=(1,))


def merge_resolved(work: Work) -> None:
    merging(work)
    work.git("add", "code.py")


def rebasing(work: Work) -> None:
    a_conflict(work)
    work.git("rebase", "side", fine=(1,))


def applying(work: Work) -> None:
    a_conflict(work)
    patch = work.git("format-patch", "--stdout", "-1", "side")
    work.git("am", data=patch.encode(), fine=(128,))


def picking(work: Work) -> None:
    a_conflict(work)
    work.git("cherry-pick", "side", fine=(1,))


def reverting(work: Work) -> None:
    a_conflict(work)
    work.write("code.py", "again\n")
    work.git("commit", "--quiet", "-am", "again")
    work.git("revert", "--no-edit", "HEAD~1", fine=(1,))


def bisecting(work: Work) -> None:
    work.git("bisect", "start")


def conflicted_stash(work: Work) -> None:
    work.write("code.py", "stashed\n")
    work.git("stash", "--quiet")
    work.write("code.py", "committed\n")
    work.git("commit", "--quiet", "-am", "committed")
    work.git("stash", "pop", fine=(1,))


def lock_held(work: Work) -> None:
    (work.git_dir() / "index.lock").write_bytes(b"somebody's")


WAITS = [
    (detached, "HEAD is detached"),
    (merging, "a merge is in progress"),
    (merge_resolved, "a merge is in progress"),
    (rebasing, "a rebase is in progress"),
    (applying, "a rebase or am is in progress"),
    (picking, "a cherry-pick is in progress"),
    (reverting, "a revert is in progress"),
    (bisecting, "a bisect is in progress"),
    (conflicted_stash, "the index has conflicts"),
    (lock_held, "another git holds index.lock"),
]


@pytest.mark.parametrize(("prepare", "reason"), WAITS, ids=[prepare.__name__ for prepare, _ in WAITS])
def test_a_busy_repository_defers_the_commit_and_is_not_touched(
    work: Work, prepare: Callable[[Work], None], reason: str
) -> None:
    prepare(work)
    work.write(OURS, NEW)
    before = (work.beside(), work.git("rev-parse", "HEAD"), sorted(os.listdir(work.git_dir())))

    with pytest.raises(Deferred) as caught:
        work.open().commit({OURS: NEW.encode()}, MESSAGE, wait=0)

    assert caught.value.reason == reason
    assert str(work.root) in caught.value.message
    assert caught.value.code == 4
    assert (work.beside(), work.git("rev-parse", "HEAD"), sorted(os.listdir(work.git_dir()))) == before
    assert work.read(OURS) == NEW.encode()
    if prepare is lock_held:
        assert (work.git_dir() / "index.lock").read_bytes() == b"somebody's"


def test_a_deferred_commit_is_made_later_from_its_blobs(work: Work) -> None:
    detached(work)
    with pytest.raises(Deferred) as caught:
        work.open().commit({OURS: NEW.encode(), "MEMORY.md": None}, MESSAGE)
    assert set(caught.value.blobs) == {OURS, "MEMORY.md"}
    assert caught.value.blobs["MEMORY.md"] is None

    work.git("checkout", "--quiet", "trunk")
    work.write(OURS, NEW + "- edited since\n")
    assert work.open().commit(caught.value.blobs, MESSAGE)

    assert work.open().head(OURS) == NEW.encode()
    assert work.open().head("MEMORY.md") is None
    assert work.open().dirty([OURS]) == {OURS: NEW.encode()}


def test_a_blob_git_no_longer_has_is_not_committed(work: Work) -> None:
    head = work.git("rev-parse", "HEAD").strip()
    for blob in ("1" * 40, head, "HEAD", "", "--help"):
        with pytest.raises(NotFound):
            work.open().commit({OURS: blob}, MESSAGE)
    assert work.git("rev-parse", "HEAD").strip() == head


# Kinds of repository.


@pytest.mark.parametrize("name", ["-dash", "a:b", "new\nline", " 空格 ", "$HOME", "~", "*"])
def test_the_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    work = begin(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    repository = Repository.open(name)
    assert repository.commit({OURS: NEW.encode()}, MESSAGE)
    assert repository.head(OURS) == NEW.encode()
    assert work.files() == [OURS]


def test_a_folder_behind_a_link_is_its_own_repository(work: Work, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(work.root)
    assert Repository.open(str(tmp_path / "link")).commit({OURS: NEW.encode()}, MESSAGE)
    assert work.files() == [OURS]


def test_a_linked_worktree_gets_commits_on_its_own_branch(work: Work, tmp_path: Path) -> None:
    work.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    linked = Work(tmp_path / "linked")
    head = work.git("rev-parse", "HEAD")
    staged_file(work)
    before = work.beside()

    assert linked.commit()

    assert linked.git("log", "--format=%s", "-1", "other").strip() == "ops: 记住一条决定"
    assert linked.git("status", "--porcelain") == ""
    assert work.git("rev-parse", "HEAD") == head
    assert work.beside() == before
    work.git("fsck", "--strict")


def test_a_submodule_is_its_own_repository(work: Work, tmp_path: Path) -> None:
    begin(tmp_path / "inner")
    work.git("submodule", "--quiet", "add", str(tmp_path / "inner"), "记忆")
    work.git("commit", "--quiet", "-m", "submodule")
    inner = Work(work.root / "记忆")
    assert inner.commit()
    assert inner.git("status", "--porcelain") == ""
    assert inner.files() == [OURS]
    assert work.git("log", "-1", "--format=%s").strip() == "submodule"


def test_in_a_partial_clone_nothing_is_fetched(work: Work, tmp_path: Path) -> None:
    work.git("config", "uploadpack.allowFilter", "true")
    work.git("clone", "--quiet", "--filter=blob:none", "--sparse", f"file://{work.root}", str(tmp_path / "part"))
    part = Work(tmp_path / "part")
    assert not (part.root / "channels").exists()
    part.git("config", "remote.origin.url", f"file://{tmp_path}/gone")
    path = "MEMORY.md"
    assert part.commit("- shared\n- more\n", path)
    assert part.files() == [path]
    assert part.git("status", "--porcelain") == ""
    assert part.open().dirty([path, OURS]) == {}
    with pytest.raises(Unreadable):
        part.open().head(OURS)


def test_a_sha256_repository_works(tmp_path: Path) -> None:
    try:
        work = begin(tmp_path / "long", "--object-format=sha256")
    except AssertionError:
        pytest.skip("this git has no SHA-256")
    sha = work.commit()
    assert sha is not None
    assert len(sha) == 64
    found = work.open().find(sha[:12])
    assert found is not None
    assert found.files == (OURS,)
    assert work.open().blame(OURS, 4, 4) == [(4, sha)]
    assert "+- 周五不部署" in work.open().diff(sha)
    work.git("fsck", "--strict")


def test_a_repository_without_any_commit_gets_its_first(tmp_path: Path) -> None:
    repository = Repository.init(str(tmp_path))
    assert repository.log() == []
    assert repository.find("r-0001") is None
    assert repository.head(OURS) is None
    work = Work(tmp_path)
    work.write(OURS, OLD)
    assert repository.dirty([OURS]) == {OURS: None}
    sha = work.commit(OLD)
    assert sha is not None
    assert [commit.files for commit in repository.log()] == [(OURS,)]
    assert "+- 部署窗口是周四晚上" in repository.diff(sha)


def test_init_follows_the_configured_branch_name_and_else_takes_main(tmp_path: Path) -> None:
    for folder, branch in (("one", "trunk"), ("two", "main")):
        (tmp_path / folder).mkdir()
        Repository.init(str(tmp_path / folder))
        assert Work(tmp_path / folder).git("symbolic-ref", "--short", "HEAD").strip() == branch
        Path(os.environ["HOME"], ".gitconfig").write_text("")


def test_init_leaves_a_repository_as_it_is(work: Work) -> None:
    before = work.beside()
    Repository.init(str(work.root)).log()
    assert work.beside() == before


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_an_outer_repository_is_refused_and_untouched(work: Work) -> None:
    inner = work.root / "channels"
    before = everything(work.root)
    with pytest.raises(GitOff) as caught:
        Repository.open(str(inner))
    assert caught.value.reason == "outer repository"
    assert caught.value.code == 3
    assert str(work.root) in caught.value.message
    assert "init --git" in caught.value.hint
    assert everything(work.root) == before


def test_an_allowed_outer_repository_shows_only_the_workspace(work: Work) -> None:
    g49(work)
    work.write(".gitignore", "*.tmp.md\n")
    work.git("commit", "--quiet", "-m", "outside", "--only", "MEMORY.md")
    work.write(OURS, OLD + "- 人写的\n")
    work.write("MEMORY.md", "- both\n")
    work.git("commit", "--quiet", "-m", "both", "--only", "MEMORY.md", OURS)
    before = work.beside()
    repository = Repository.open(str(work.root / "channels"), outer_ok=True)

    work.write(OURS, NEW)
    sha = repository.commit({"ops/MEMORY.md": NEW.encode()}, MESSAGE)

    assert sha is not None
    assert work.beside() == before
    assert work.files() == [OURS]
    log = repository.log()
    assert [(commit.subject, commit.files) for commit in log] == [
        ("ops: 记住一条决定", ("ops/MEMORY.md",)),
        ("both", ("ops/MEMORY.md",)),
        ("begin", ("ops/MEMORY.md",)),
    ]
    assert "shared" not in repository.diff(log[1].sha)
    assert "a/ops/MEMORY.md" in repository.diff(log[1].sha)
    assert set(repository.ignored(["ops/a.tmp.md", "ops/a.md"])) == {"ops/a.tmp.md"}
    assert repository.head("ops/MEMORY.md") == NEW.encode()


def test_a_repository_that_vanishes_is_not_replaced_by_one_further_up(work: Work) -> None:
    (work.root / "inner").mkdir()
    repository = Repository.init(str(work.root / "inner"))
    shutil.rmtree(work.root / "inner" / ".git")
    before = everything(work.root)
    with pytest.raises(Deferred, match="not a git repository"):
        repository.commit({"MEMORY.md": b"x\n"}, MESSAGE)
    assert everything(work.root) == before


def program(folder: Path, script: str) -> str:
    """Puts a `git` into `folder` that runs `script` and then the real one; the PATH that finds it."""
    real = shutil.which("git")
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nreal="{real}"\n{script}\nexec "$real" "$@"\n')
    (folder / "git").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def no_program(work: Work, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PATH", "")


def no_repository(work: Work, patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(work.root / ".git")


def bare(work: Work, patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(work.root)
    work.root.mkdir()
    work.git("init", "--quiet", "--bare")


def inside_git_dir(work: Work, patch: pytest.MonkeyPatch) -> None:
    git_dir = work.root / ".git"
    for item in [*work.root.iterdir()]:
        if item != git_dir:
            shutil.rmtree(item) if item.is_dir() else item.unlink()
    for item in [*git_dir.iterdir()]:
        item.rename(work.root / item.name)
    git_dir.rmdir()


def somebody_elses(work: Work, patch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        for path in (work.root, work.root / ".git"):
            os.chown(path, 12345, 12345)
    else:
        patch.setenv("PATH", program(work.root.parent / "bin", "export GIT_TEST_ASSUME_DIFFERENT_OWNER=1"))


def broken_config(work: Work, patch: pytest.MonkeyPatch) -> None:
    (work.root / ".git" / "config").write_text("[core\n")


OFF = [
    (no_program, "no git program"),
    (no_repository, "no repository"),
    (bare, "bare repository"),
    (inside_git_dir, "bare repository"),
    (somebody_elses, "dubious ownership"),
    (broken_config, "git refused"),
]


@pytest.mark.parametrize(("prepare", "reason"), OFF, ids=[prepare.__name__ for prepare, _ in OFF])
def test_without_a_usable_repository_history_is_off_with_a_next_step(
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Work, pytest.MonkeyPatch], None],
    reason: str,
) -> None:
    prepare(work, monkeypatch)
    home = Path(os.environ["HOME"], ".gitconfig").read_bytes()
    with pytest.raises(GitOff) as caught:
        work.open()
    assert caught.value.reason == reason
    assert isinstance(caught.value, Unreadable)
    assert '"' in caught.value.message
    assert caught.value.hint
    assert Path(os.environ["HOME"], ".gitconfig").read_bytes() == home


# The same path in the person's hands.


def staged_other_text(work: Work) -> None:
    work.write(OURS, OLD + "- 我正在写的\n")
    work.git("add", OURS)


def staged_removal(work: Work) -> None:
    work.git("rm", "--quiet", "--cached", OURS)


def staged_mode(work: Work) -> None:
    work.git("update-index", "--chmod=+x", OURS)


@pytest.mark.parametrize("prepare", [staged_other_text, staged_removal, staged_mode])
def test_what_a_person_staged_in_our_own_file_stays_staged(work: Work, prepare: Callable[[Work], None]) -> None:
    prepare(work)
    before = work.git("ls-files", "--stage", "-z")
    index = (work.git_dir() / "index").read_bytes()
    assert work.commit()
    assert work.git("ls-files", "--stage", "-z") == before
    assert (work.git_dir() / "index").read_bytes() == index
    assert work.git("cat-file", "blob", f"HEAD:{OURS}") == NEW


def test_a_repository_that_lost_its_index_gets_no_new_one(work: Work) -> None:
    (work.git_dir() / "index").unlink()
    assert work.commit()
    assert work.files() == [OURS]
    assert not (work.git_dir() / "index").exists()


def test_an_edit_git_can_only_just_see_is_still_seen_afterwards(work: Work) -> None:
    # Same size, same times: git finds the edit only because the index is no younger than the file.
    work.git("config", "core.trustctime", "false")
    os.utime(work.root / "code.py", (1_700_000_000, 1_700_000_000))
    work.git("update-index", "--refresh")
    with (work.root / "code.py").open("r+b") as file:
        file.write(b"LINE")
    for path in (work.root / "code.py", work.git_dir() / "index"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert work.commit()
    assert work.git("status", "--porcelain") == " M code.py\n"


def test_the_bytes_of_the_plan_are_committed_even_when_the_file_was_saved_again(work: Work) -> None:
    work.write(OURS, NEW + "- saved a moment later\n")
    assert work.open().commit({OURS: NEW.encode()}, MESSAGE)
    assert work.open().head(OURS) == NEW.encode()
    assert work.git("diff", "--name-only", "-z") == f"{OURS}\0"
    assert work.git("diff", "--cached", "--name-only") == ""


def test_a_deletion_is_committed_and_leaves_the_index(work: Work) -> None:
    g49(work)
    before = work.beside()
    (work.root / OURS).unlink()
    assert work.open().commit({OURS: None}, MESSAGE)
    assert work.files() == [OURS]
    assert work.open().head(OURS) is None
    assert work.git("ls-files", "--", OURS) == ""
    assert work.beside() == before
    work.git("fsck", "--strict")


def test_when_nothing_would_change_nothing_is_committed(work: Work) -> None:
    head = work.git("rev-parse", "HEAD")
    index = (work.git_dir() / "index").read_bytes()
    assert work.open().commit({OURS: OLD.encode(), "channels/ops/SESSION.md": None}, MESSAGE) is None
    assert work.open().commit({}, MESSAGE) is None
    assert work.git("rev-parse", "HEAD") == head
    assert (work.git_dir() / "index").read_bytes() == index


def test_several_changes_are_one_commit(work: Work) -> None:
    changes = {OURS: NEW.encode(), "channels/新频道/MEMORY.md": b"- new\n", "MEMORY.md": None}
    for path, data in changes.items():
        if data is None:
            (work.root / path).unlink()
        else:
            work.write(path, data.decode())
    assert work.open().commit(changes, MESSAGE)
    assert set(work.files()) == set(changes)
    work.git("config", "log.follow", "true")
    assert set(work.open().log([OURS])[0].files) == set(changes)
    assert work.git("status", "--porcelain") == ""


def test_ignored_paths_are_left_out_and_named(work: Work) -> None:
    work.write(".gitignore", "*.tmp.md\nchannels/ops/\n")
    work.git("add", ".gitignore")
    work.git("commit", "--quiet", "-m", "ignore")
    repository = work.open()
    fresh = "channels/new.tmp.md"
    assert repository.ignored([OURS, fresh, "channels/dev/MEMORY.md"]) == {fresh: "git ignores it"}
    with pytest.raises(Refused, match="git ignores it"):
        repository.commit({fresh: b"x\n"}, MESSAGE)
    # A tracked file is committed although a pattern covers it, and the good paths of a commit go in.
    assert repository.commit({OURS: NEW.encode(), fresh: b"x\n"}, MESSAGE)
    assert work.files() == [OURS]


def test_links_and_nested_repositories_are_left_out(work: Work, tmp_path: Path) -> None:
    begin(work.root / "channels" / "nested")
    (tmp_path / "far").mkdir()
    (work.root / "channels" / "link").symlink_to(tmp_path / "far")
    (work.root / "channels" / "alias.md").symlink_to("ops/MEMORY.md")
    reasons = work.open().ignored(["channels/nested/MEMORY.md", "channels/link/MEMORY.md", "channels/alias.md", OURS])
    assert reasons == {
        "channels/nested/MEMORY.md": 'it belongs to another repository, "channels/nested"',
        "channels/link/MEMORY.md": 'it lies behind the link "channels/link"',
        "channels/alias.md": "it is a link",
    }
    assert work.open().dirty([*reasons, OURS]) == {}


def test_a_file_where_git_has_a_link_or_a_folder_waits_for_the_person(work: Work) -> None:
    (work.root / "linked.md").symlink_to(OURS)
    work.git("add", "linked.md")
    work.git("commit", "--quiet", "-m", "link")
    (work.root / "linked.md").unlink()
    head = work.git("rev-parse", "HEAD")
    for path in ("linked.md", "channels", "code.py/MEMORY.md"):
        with pytest.raises(Deferred):
            work.open().commit({path: b"x\n"}, MESSAGE)
    assert work.git("rev-parse", "HEAD") == head
    assert not list(work.git_dir().glob("*.lock"))


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../up.md", "a//b.md", "a/./b.md", ".git/config", "a/.GIT/x", "a\0b"]
)
def test_a_path_that_leads_elsewhere_is_wrong_usage(work: Work, path: str) -> None:
    with pytest.raises(Usage):
        work.open().commit({path: b"x"}, MESSAGE)
    with pytest.raises(Usage):
        work.open().head(path)


# Names, text and line ends.


def names() -> list[str]:
    listed: list[str] = json.loads((CASES / "G52-names.json").read_text(encoding="utf-8"))
    return [
        *listed,
        "新\nline/MEMORY.md",
        ":(glob)**/MEMORY.md",
        "*.md",
        "a,b/MEMORY.md",
        "\udce9/MEMORY.md",
        "--output=x",
    ]


def test_every_name_can_be_committed_found_and_restored(work: Work) -> None:
    if sys.platform == "darwin":
        pytest.skip("this system refuses some of the names")
    repository = work.open()
    for path in names():
        work.write(path, "one\n")
    assert repository.dirty(names()) == dict.fromkeys(names())
    first = repository.commit(dict.fromkeys(names(), b"one\n"), MESSAGE)
    assert first is not None
    assert repository.dirty(names()) == {}
    for path in names():
        work.write(path, "two 二\n")
        assert repository.dirty(names()) == {path: b"one\n"}
        second = repository.commit({path: "two 二\n".encode()}, "change")
        assert second is not None
        assert [commit.files for commit in repository.log([path])] == [
            (path,),
            tuple(sorted(names(), key=os.fsencode)),
        ]
        assert "+two 二" in repository.diff(second)
        assert repository.head(path, first) == b"one\n"
        assert repository.blame(path, 1, 1) == [(1, second)]
        assert repository.commit({path: repository.head(path, first)}, "undo")
        work.write(path, "one\n")
    assert work.git("status", "--porcelain") == ""
    assert work.git("rev-parse", f"{first}^{{tree}}") == work.git("rev-parse", "HEAD^{tree}")
    assert not (work.root / "x").exists()
    work.git("fsck", "--strict")


def test_with_autocrlf_git_stores_lf_and_gives_back_crlf(work: Work) -> None:
    autocrlf(work)
    text = NEW.replace("\n", "\r\n")
    assert work.commit(text)
    assert work.git("cat-file", "blob", f"HEAD:{OURS}") == NEW
    assert work.read(OURS) == text.encode()
    assert work.open().head(OURS) == text.encode()
    assert work.open().dirty([OURS]) == {}
    assert work.git("status", "--porcelain") == ""


@pytest.mark.parametrize("value", ["input", "true"])
def test_a_file_committed_with_crlf_keeps_it_and_is_not_dirty(work: Work, value: str) -> None:
    text = OLD.replace("\n", "\r\n")
    assert work.commit(text)
    work.git("config", "core.autocrlf", value)
    assert work.open().dirty([OURS]) == {}
    assert work.commit(text + "- 四\r\n")
    changed = work.git("diff", "--numstat", "HEAD~1", "HEAD").split()
    assert changed[:2] == ["1", "0"]
    assert work.git("status", "--porcelain") == ""
    # Where an attribute asks for LF, git's answer stands.
    work.write(".gitattributes", "*.md text\n")
    assert work.open().dirty([OURS]) == {OURS: (text + "- 四\r\n").encode()}


def test_filters_of_the_person_apply(work: Work) -> None:
    work.git("config", "filter.upper.clean", "tr a-z A-Z")
    work.git("config", "filter.upper.smudge", "tr A-Z a-z")
    work.write(".gitattributes", "*.md filter=upper\n")
    assert work.commit("- abc\n")
    assert work.git("cat-file", "blob", f"HEAD:{OURS}") == "- ABC\n"
    assert work.open().head(OURS) == b"- abc\n"
    assert work.open().dirty([OURS]) == {}


def test_a_filter_that_hangs_is_ended_with_all_it_started(work: Work, tmp_path: Path) -> None:
    # The filter ignores SIGTERM and holds a named pipe open: the pipe ends when the last of them is gone.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    work.git("config", "filter.slow.clean", f"trap '' TERM; exec 9>'{pipe}'; sleep 100; cat")
    work.write(".gitattributes", f"{OURS} filter=slow\n")
    repository = work.open()
    repository.limit = 0.5
    before = work.git("rev-parse", "HEAD"), (work.git_dir() / "index").read_bytes()
    with pytest.raises(Deferred, match="longer than"):
        repository.commit({OURS: NEW.encode()}, MESSAGE)
    ended, _, _ = select.select([reader], [], [], 10)
    assert ended
    assert os.read(reader, 1) == b""
    os.close(reader)
    assert (work.git("rev-parse", "HEAD"), (work.git_dir() / "index").read_bytes()) == before


def test_dirty_tells_edits_from_what_only_looks_like_one(work: Work) -> None:
    work.write(".gitignore", "*.tmp.md\n")
    work.write(OURS, NEW)
    (work.root / "MEMORY.md").unlink()
    work.write("channels/新/MEMORY.md", "- new\n")
    work.write("channels/a.tmp.md", "ignored\n")
    (work.root / "code.py").chmod(0o755)
    os.utime(work.root / "code.py", (1, 1))
    paths = [OURS, "MEMORY.md", "channels/新/MEMORY.md", "channels/a.tmp.md", "code.py", "channels/none.md"]
    index = (work.git_dir() / "index").read_bytes()
    assert work.open().dirty(paths) == {
        OURS: OLD.encode(),
        "MEMORY.md": b"- shared\n",
        "channels/新/MEMORY.md": None,
    }
    assert (work.git_dir() / "index").read_bytes() == index


def test_a_file_left_out_by_a_sparse_checkout_is_not_dirty(work: Work) -> None:
    sparse_checkout(work)
    assert work.open().dirty(["docs/far.txt", OURS]) == {}


def test_a_persons_edit_is_committed_in_their_name(work: Work) -> None:
    work.write(OURS, OLD + "- 手写\n")
    repository = work.open()
    assert repository.person() == ("王小明", "ming@example.invalid")
    sha = repository.commit({OURS: work.read(OURS)}, "ops: edited by hand", author=repository.person())
    assert sha is not None
    who = work.git("log", "-1", "--format=%an <%ae>, %cn <%ce>").strip()
    assert who == "王小明 <ming@example.invalid>, pipimem <pipimem@localhost>"
    commit = repository.log(limit=1)[0]
    assert (commit.author, commit.actor) == ("王小明 <ming@example.invalid>", "person")


@pytest.mark.parametrize(
    ("config", "person"),
    [
        ("", None),
        ("[user]\n\tname = 王\n", None),
        ("[user]\n\temail = a@example.invalid\n", None),
        ("[user]\n\tname = ...\n\temail = a@example.invalid\n", None),
        ("[user]\n\tname = 王\n\temail = a@example.invalid\n", ("王", "a@example.invalid")),
        (
            "[user]\n\tname = 王\n\temail = a@example.invalid\n[author]\n\tname = 李\n",
            ("李", "a@example.invalid"),
        ),
    ],
)
def test_a_person_is_who_their_configuration_says(work: Work, config: str, person: tuple[str, str] | None) -> None:
    Path(os.environ["HOME"], ".gitconfig").write_text(config, encoding="utf-8")
    assert work.open().person() == person


def test_inherited_git_variables_lead_nowhere(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = begin(tmp_path / "other")
    before = everything(other.root)
    poison = {
        "GIT_DIR": str(other.root / ".git"),
        "GIT_WORK_TREE": str(other.root),
        "GIT_INDEX_FILE": str(other.root / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other.root / ".git" / "objects"),
        "GIT_COMMON_DIR": str(other.root / ".git"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_PREFIX": "channels/",
        "GIT_AUTHOR_NAME": "somebody",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
        "GIT_COMMITTER_NAME": "somebody",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "somebody",
        "GIT_CONFIG_PARAMETERS": "'user.name'='somebody'",
        "GIT_GLOB_PATHSPECS": "1",
        "GIT_PYTHON_REFRESH": "raise",
        "GIT_PYTHON_GIT_EXECUTABLE": str(tmp_path / "no-such-git"),
    }
    with monkeypatch.context() as patch:
        for name, value in poison.items():
            patch.setenv(name, value)
        environment = dict(os.environ)
        repository = work.open()
        assert repository.person() == ("王小明", "ming@example.invalid")
        sha = repository.commit({OURS: NEW.encode()}, MESSAGE)
        assert sha is not None
        assert "+- 周五不部署" in repository.diff(sha)
        assert dict(os.environ) == environment
    assert everything(other.root) == before
    assert work.files() == [OURS]
    assert work.git("log", "-1", "--format=%an %ad", "--date=format:%Y").strip() != "somebody 2001"
    assert "2001" not in work.git("log", "-1", "--format=%ad")
    assert work.git("log", "-1", "--format=%an %cn").strip() == "pipimem pipimem"


def test_the_first_import_survives_a_hostile_environment(work: Work) -> None:
    code = (
        "import sys, pipimem.git\n"
        "heavy = {'git', 'subprocess', 'tempfile', 'shutil', 'logging', 'typing'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "subject = pipimem.git.Repository.open(sys.argv[1]).log()[0].subject\n"
        "import os\nprint(subject, os.environ['GIT_PYTHON_REFRESH'])\n"
    )
    environment = {**os.environ, "GIT_PYTHON_REFRESH": "raise", "GIT_PYTHON_GIT_EXECUTABLE": "/no/such/git"}
    environment["PYTHONPATH"] = str(Path(pipimem.git.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import site; site.main()\n" + code, str(work.root)],
        env=environment, capture_output=True, check=False, cwd=work.root,
    )  # fmt: skip
    assert done.stdout.decode().strip() == "begin raise", done.stderr.decode()


def test_racing_commits_all_land(work: Work) -> None:
    staged_file(work)
    errors: list[BaseException] = []

    def five(name: str) -> None:
        try:
            for number in range(5):
                path = f"channels/{name}/{number}.md"
                work.write(path, f"- {name} {number}\n")
                assert work.open().commit({path: f"- {name} {number}\n".encode()}, path, wait=60)
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            errors.append(error)

    threads = [threading.Thread(target=five, args=(name,)) for name in ("甲", "乙", "丙")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert work.git("rev-list", "--count", "HEAD").strip() == "16"
    assert len(work.git("ls-tree", "-r", "--name-only", "-z", "HEAD", "channels/").split("\0")) == 17
    assert work.git("status", "--porcelain") == "A  notes.txt\n"
    work.git("fsck", "--strict")


def test_a_head_that_moves_meanwhile_is_not_overwritten(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = work.git("commit-tree", "-p", "HEAD", "-m", "theirs", "HEAD^{tree}").strip()
    index = (work.git_dir() / "index").read_bytes()
    script = f'case "$*" in *commit-tree*) "$real" -C "{work.root}" update-ref HEAD {theirs} ;; esac'
    with monkeypatch.context() as patch:
        patch.setenv("PATH", program(tmp_path / "bin", script))
        with pytest.raises(Deferred) as caught:
            work.open().commit({OURS: NEW.encode()}, MESSAGE)
    assert set(caught.value.blobs) == {OURS}
    assert work.git("rev-parse", "HEAD").strip() == theirs
    assert (work.git_dir() / "index").read_bytes() == index
    assert not list(work.git_dir().glob("*.lock"))
    assert work.open().commit(caught.value.blobs, MESSAGE)
    assert work.git("log", "--format=%s").split("\n")[:3] == ["ops: 记住一条决定", "theirs", "begin"]


# Reading.


def test_log_reads_subject_body_trailers_files_and_time(work: Work) -> None:
    sha = work.commit()
    assert sha is not None
    assert work.open().log()[0] == Commit(
        sha=sha,
        time=work.git("log", "-1", "--format=%cI").strip(),
        author="pipimem <pipimem@localhost>",
        actor="updater",
        subject="ops: 记住一条决定",
        body="1 entry added.",
        trailers={"Pipimem-Run": "r-0001", "Pipimem-Actor": "updater"},
        files=(OURS,),
    )


def test_log_takes_paths_and_a_limit(work: Work) -> None:
    for number in range(4):
        assert work.commit(OLD + f"- {number}\n", f"channels/{number % 2}/MEMORY.md")
    repository = work.open()
    assert len(repository.log()) == 5
    assert len(repository.log(limit=2)) == 2
    assert [commit.files for commit in repository.log(["channels/1"])] == [("channels/1/MEMORY.md",)] * 2
    assert len(repository.log(["channels/0/MEMORY.md", "MEMORY.md"])) == 3
    assert repository.log(["channels/9"]) == []


def test_log_reads_merges_empty_commits_and_other_encodings(work: Work) -> None:
    other_encoding(work)
    work.git("commit", "--quiet", "--allow-empty", "-F", "-", data="空的提交\n".encode("gbk"))
    work.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    work.write("side.md", "side\n")
    work.git("add", "side.md")
    work.git("commit", "--quiet", "-m", "side")
    work.git("checkout", "--quiet", "trunk")
    work.git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    log = work.open().log()
    assert {commit.subject: commit.files for commit in log} == {
        "merge": (),
        "side": ("side.md",),
        "空的提交": (),
        "begin": ("MEMORY.md", OURS, "code.py"),
    }
    assert "+side" in work.open().diff(log[0].sha)


def test_find_takes_ids_and_run_names(work: Work) -> None:
    sha = work.commit()
    assert sha is not None
    work.git("commit", "--quiet", "--allow-empty", "-m", "talks about Pipimem-Run: r-0001 only\n\nmore\n")
    repository = work.open()
    for name in (sha, sha[:7], "r-0001"):
        found = repository.find(name)
        assert found is not None
        assert found.sha == sha
    for name in ("r-000", "r-00011", "0" * 40, "abcdef1", "", "--output=x", "HEAD", "r-0001\nr-0001", ".*"):
        assert repository.find(name) is None
    # A run's name may look like an id.
    assert repository.commit({OURS: OLD.encode()}, "undo\n\nPipimem-Run: deadbeef01\n")
    found = repository.find("deadbeef01")
    assert found is not None
    assert found.subject == "undo"


def test_user_text_is_never_taken_as_an_option(work: Work) -> None:
    repository = work.open()
    target = work.root / "written"
    assert repository.log([f"--output={target}"[2:]]) == []
    for text in (f"--output={target}", f"--output={target}^", "-h", "HEAD\nx"):
        with pytest.raises(NotFound):
            repository.diff(text)
        with pytest.raises(NotFound):
            repository.head(OURS, text)
    assert not target.exists()
    with pytest.raises(NotFound):
        repository.diff("HEAD")


def test_head_reads_any_revision(work: Work) -> None:
    assert work.commit()
    repository = work.open()
    assert repository.head(OURS) == NEW.encode()
    assert repository.head(OURS, "HEAD~1") == OLD.encode()
    assert repository.head("channels/none.md") is None
    assert repository.head("channels") is None


def test_diff_is_plain_under_any_configuration(work: Work) -> None:
    loud_configuration(work)
    work.write(".gitattributes", "*.md diff=shout\n")
    work.git("config", "diff.shout.textconv", "tr a-z A-Z <")
    work.git("config", "diff.shout.command", "false")
    sha = work.commit()
    assert sha is not None
    root = work.git("rev-list", "--max-parents=0", "HEAD").strip()
    assert work.open().diff(sha[:10]).split("\n")[-6:] == [
        "@@ -1,3 +1,4 @@",
        " # 频道记忆",
        " ",
        " - 部署窗口是周四晚上",
        "+- 周五不部署",
        "",
    ]
    assert "+- shared" in work.open().diff(root)
    assert work.open().blame(OURS, 3, 4) == [(3, root), (4, sha)]
    assert "diff --git a/channels/ops/MEMORY.md b/channels/ops/MEMORY.md" in work.open().diff(sha)
    binary = work.open().commit({"图.bin": b"\0\1\xff", "旧.txt": "旧\n".encode("gbk")}, "binary")
    assert binary is not None
    diff = work.open().diff(binary)
    assert "Binary files /dev/null and b/图.bin differ" in diff
    assert "旧\n".encode("gbk") in diff.encode("utf-8", "surrogateescape")


def test_blame_names_the_commit_of_each_line_as_the_file_lies_there(work: Work) -> None:
    first = work.git("rev-parse", "HEAD").strip()
    second = work.commit()
    work.write(OURS, "\tnew first line\n" + NEW)
    repository = work.open()
    assert repository.blame(OURS, 1, 5) == [(1, ""), (2, first), (3, first), (4, first), (5, second)]
    with pytest.raises(NotFound):
        repository.blame(OURS, 6, 9)
    with pytest.raises(NotFound):
        repository.blame("channels/none.md", 1, 1)
    work.git("config", "blame.ignoreRevsFile", "no-such-file")
    with pytest.raises(Unreadable, match="no-such-file"):
        repository.blame(OURS, 1, 1)


TRAILERS: list[tuple[str, dict[str, str]]] = [
    ("subject", {}),
    ("fix: subject only", {}),
    ("subject\n\nPipimem-Run: r-1", {"Pipimem-Run": "r-1"}),
    ("subject\n\nbody\n\nA: 1\nB: 二\n", {"A": "1", "B": "二"}),
    ("subject\n\nbody\nA: 1\n", {}),
    ("subject\n\nA: 1\n\nbody\n", {}),
    ("subject\n\nA: 1\nA: 2\n", {"A": "1\n2"}),
    ("subject\n\nA: one\n  more\nB:\n", {"A": "one more", "B": ""}),
    ("subject\r\n\r\nA: 1\r\nB: 2\r\n", {"A": "1", "B": "2"}),
    ("subject\n\nhttp://example.invalid\n", {"http": "//example.invalid"}),
    ("", {}),
]


@pytest.mark.parametrize(("message", "expected"), TRAILERS)
def test_trailers_are_the_last_paragraph_of_key_and_value(message: str, expected: dict[str, str]) -> None:
    assert trailers(message) == expected


@pytest.mark.parametrize("message", ["行\0尾", "bad \udce9 byte", "-m\n", "--help\n\n# not a comment\n"])
def test_odd_messages_are_committed_as_text(work: Work, message: str) -> None:
    work.write(OURS, NEW)
    assert work.open().commit({OURS: NEW.encode()}, message)
    kept = message.replace("\0", "\N{REPLACEMENT CHARACTER}").replace("\udce9", "?")
    assert work.git("log", "-1", "--format=%B").strip() == kept.strip()
    work.git("fsck", "--strict")


# What the module may do at all.


def test_only_plumbing_that_neither_fetches_nor_configures_is_run() -> None:
    tree = ast.parse(Path(pipimem.git.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module} | {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert {name for name in imported if name.split(".")[0] == "git"} == {"git.cmd", "git.exc"}
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    forbidden = {
        "add",
        "commit",
        "clone",
        "fetch",
        "pull",
        "push",
        "remote",
        "checkout",
        "reset",
        "stash",
        "gc",
        "clean",
    }
    assert not words & forbidden
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"Repo", "config_writer", "clone_from", "clone", "remotes", "run", "system"}
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "shell" and getattr(node.value, "value", True) is not False
    ]


# Hooks and signing, where the person asked for them.


def with_hooks(work: Work, hooks: dict[str, str], limit: float = 20.0) -> Repository:
    folder = work.git_dir() / "hooks"
    folder.mkdir(exist_ok=True)
    for name, script in hooks.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    repository = work.open()
    repository.hooks, repository.hook_limit = True, limit
    return repository


def test_hooks_see_exactly_the_commit_and_may_word_its_message(work: Work, tmp_path: Path) -> None:
    g49(work)
    before = work.beside()
    seen = tmp_path / "seen"
    repository = with_hooks(
        work,
        {
            "pre-commit": f"git -c core.quotePath=false diff --cached --name-only > {seen}",
            "commit-msg": "echo 'Reviewed-by: 王小明' >> \"$1\"",
            "post-commit": "exit 1",
        },
    )
    work.write(OURS, NEW)
    assert repository.commit({OURS: NEW.encode()}, MESSAGE)
    assert seen.read_text().split() == [OURS]
    assert repository.log(limit=1)[0].trailers["Reviewed-by"] == "王小明"
    assert work.files() == [OURS]
    assert work.beside() == before


REFUSALS = {
    "failing": ({"pre-commit": "echo '格式不对' >&2; exit 1"}, 'the hook "pre-commit" refused: 格式不对'),
    "silent": ({"commit-msg": "exit 3"}, 'the hook "commit-msg" refused: it gave no reason'),
    "hanging": ({"pre-commit": "sleep 100"}, 'the hook "pre-commit" refused: it took longer than 0.3 seconds'),
    "meddling": ({"pre-commit": "git add -A"}, 'the hook "pre-commit" refused: it changed what would be committed'),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_hook_that_refuses_defers_the_commit_and_nothing_else_changes(work: Work, what: str) -> None:
    hooks, reason = REFUSALS[what]
    g49(work)
    repository = with_hooks(work, hooks, 0.3 if what == "hanging" else 20.0)
    work.write(OURS, NEW)
    before, head = work.beside(), work.git("rev-parse", "HEAD")
    with pytest.raises(Deferred) as caught:
        repository.commit({OURS: NEW.encode()}, MESSAGE)
    assert caught.value.reason == reason
    assert caught.value.hooked
    assert (work.beside(), work.git("rev-parse", "HEAD")) == (before, head)
    assert work.read(OURS) == NEW.encode()
    repository.hooks = False
    assert repository.commit(caught.value.blobs, MESSAGE)
    assert work.files() == [OURS]


@pytest.mark.parametrize("works", [True, False])
def test_commits_are_signed_where_git_signs_and_hooks_are_on(work: Work, works: bool) -> None:
    program = work.git_dir() / "signer"
    signed = "-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----"
    good = f"cat > /dev/null; printf '%b\\n' '{signed}'; printf '[GNUPG:] BEGIN\\n[GNUPG:] SIG_CREATED x\\n' >&2"
    program.write_text(f"#!/bin/sh\n{good if works else 'exec sleep 100'}\n")
    program.chmod(0o755)
    work.git("config", "commit.gpgSign", "true")
    work.git("config", "gpg.program", str(program))
    repository = with_hooks(work, {}, 10 if works else 0.3)
    work.write(OURS, NEW)
    if works:
        sha = repository.commit({OURS: NEW.encode()}, MESSAGE)
        assert sha is not None
        assert "\ngpgsig -----BEGIN PGP SIGNATURE-----" in work.git("cat-file", "commit", sha)
        return
    with pytest.raises(Deferred, match=r"could not be signed: signing took longer than 0\.3 seconds"):
        repository.commit({OURS: NEW.encode()}, MESSAGE)
    assert not list(work.git_dir().glob("*.lock"))


# Further situations in which a commit goes through.


def long_names(work: Work) -> None:
    work.write("memory/" + "长" * 70 + "/" + "n" * 240 + ".md", "x\n")


def attributes(work: Work) -> None:
    work.git("config", "filter.lfs.clean", "sed s/^/pointer:/")
    work.git("config", "filter.lfs.smudge", "sed s/^pointer://")
    work.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n*.py text eol=crlf\n")
    work.git("add", ".gitattributes")


def ignored_neighbours(work: Work) -> None:
    work.write(".gitignore", "*.log\n/build/\n")
    work.write("build/out.log", "x\n")


def grafted_commit_graph(work: Work) -> None:
    work.git("commit-graph", "write", "--reachable")
    work.git("config", "core.fsmonitor", "true")
    work.git("config", "index.threads", "true")


def separate_git_dir(work: Work) -> None:
    work.git("init", "--quiet", "--separate-git-dir", str(work.root.parent / "elsewhere.git"))
    assert (work.root / ".git").is_file()


def linked_git_dir(work: Work) -> None:
    (work.root / ".git").rename(work.root.parent / "moved.git")
    (work.root / ".git").symlink_to(work.root.parent / "moved.git")


def index_version_4(work: Work) -> None:
    work.git("update-index", "--index-version", "4")


MORE = [
    long_names,
    attributes,
    ignored_neighbours,
    grafted_commit_graph,
    separate_git_dir,
    linked_git_dir,
    index_version_4,
]


@pytest.mark.parametrize("prepare", MORE, ids=lambda prepare: prepare.__name__)
def test_in_further_situations_a_commit_holds_our_file_alone(work: Work, prepare: Callable[[Work], None]) -> None:
    prepare(work)
    g49(work)
    before = work.beside()
    assert work.commit()
    assert work.files() == [OURS]
    assert work.git("cat-file", "blob", f"HEAD:{OURS}") == NEW
    assert work.beside() == before


def test_a_reftable_repository_works_where_git_knows_it(tmp_path: Path) -> None:
    probe = subprocess.run(
        ["git", "init", "-q", "--ref-format=reftable", str(tmp_path / "probe")], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("this git has no reftable")
    work = begin(tmp_path / "work", "--ref-format=reftable")
    assert work.commit()
    assert work.files() == [OURS]


def test_an_ignored_workspace_is_written_and_says_that_git_ignores_it(work: Work) -> None:
    work.write(".gitignore", "channels/\n")
    work.git("rm", "-r", "--quiet", "--cached", "channels")
    work.git("commit", "--quiet", "-m", "not ours")
    before = work.beside()
    with pytest.raises(Refused, match="git ignores it"):
        work.open().commit({OURS: NEW.encode()}, MESSAGE)
    assert work.beside() == before


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="nothing is read-only for this user")
def test_a_read_only_git_folder_defers_with_its_reason(work: Work) -> None:
    work.write(OURS, NEW)
    code = (
        "import sys; from pipimem.git import Deferred, Repository\n"
        f"try: Repository.open('.').commit({{{OURS!r}: b'x'}}, 'm', wait=0)\n"
        "except Deferred as d: print(d.reason)"
    )
    for folder, _, _ in os.walk(work.root / ".git"):
        Path(folder).chmod(0o555)
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all"]
    command = [*(drop if os.geteuid() == 0 else []), sys.executable, "-c", code]
    done = subprocess.run(command, cwd=work.root, capture_output=True, text=True, check=False, env=dict(os.environ))
    for folder, _, _ in os.walk(work.root / ".git"):
        Path(folder).chmod(0o755)
    assert "ermission" in done.stdout, done.stderr
    assert work.git("log", "--format=%s") == "begin\n"


# Loose objects.


def test_loose_objects_are_packed_when_there_are_many_and_only_in_the_own_repository(work: Work) -> None:
    assert not work.open().packed(60)
    folder = work.git_dir() / "objects" / "17"
    blobs = [f"{n}".encode() for n in range(9000)]
    names = "\n".join(f"blob\nmark :{n}\ndata {len(b)}\n{b.decode()}" for n, b in enumerate(blobs, 1))
    work.git("-c", "fastimport.unpackLimit=100000", "fast-import", "--quiet", data=(names + "\n").encode())
    assert len(list(folder.iterdir())) > 20
    outer = Repository.open(str(work.root / "channels"), outer_ok=True)
    assert not outer.packed(60)
    before = work.beside()
    work.git("config", "gc.pruneExpire", "now")
    before["config"] = (work.git_dir() / "config").read_bytes()
    assert work.open().packed(60)
    assert not folder.exists() or len(list(folder.iterdir())) < 5
    assert work.beside() == before
    assert work.commit()
    work.git("fsck", "--strict")
