"""Git history of the files: commits of exact bytes, log, diff, blame. Nobody else knows git.

GitPython is a runner of git's plumbing here and nothing more, imported by the first call. When to commit, and
what a message says, is `memory.py`'s. Hooks and signing run only where asked for; nothing is fetched, no setting
changed.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock

from pipimem.errors import Error, NotFound, Refused, Unreadable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from git.cmd import Git

IDENTITY = ("pipimem", "pipimem@localhost")
RUN = "Pipimem-Run"
ACTOR = "Pipimem-Actor"
LIMIT = 10.0  # seconds one git process may take
LOCK_WAIT = 2.0  # seconds to wait for git's own lock
_TOLD, _QUOTED, _ASKED = 200, 79, 50  # characters a text is known by in files and in messages; texts asked at once
HOOK_LIMIT = 30.0
SAMPLED, LOOSE = "17", 6700
"""The folder of loose objects that git samples as well, and how many in all are enough to ask it (its `gc.auto`)."""

# Where the person's configuration lies is theirs to say; any other inherited GIT_ name (a hook's GIT_DIR or
# GIT_INDEX_FILE, say) would send our commands to another repository.
_KEPT = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
}
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "core.safecrlf": "false",  # it guards files git will rewrite; we never check out
    "i18n.commitEncoding": "UTF-8",
    "log.showRoot": "true",
    "log.follow": "false",
    "merge.conflictStyle": "merge",
}
_BUSY = {
    "MERGE_HEAD": "a merge is in progress",
    "CHERRY_PICK_HEAD": "a cherry-pick is in progress",
    "REVERT_HEAD": "a revert is in progress",
    "rebase-merge": "a rebase is in progress",
    "rebase-apply": "a rebase or am is in progress",
    "sequencer": "a cherry-pick or revert is in progress",
    "BISECT_LOG": "a bisect is in progress",
}
_REGULAR = frozenset({"100644", "100755"})
_NOTHING = ("", "")  # mode and blob of a file that is not there
_IMPORT = Lock()
_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
_ID = r"[0-9a-f]{7,64}"
_TRAILER_BLOCK = r"(?:[A-Za-z0-9-]+:.*(?:\n[ \t].*)*(?:\n|$))+"


class GitOff(Unreadable):
    """There is no git history here. `reason` says why in two or three words, the hint is the next step."""

    def __init__(self, reason: str, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.reason = reason


class Deferred(Error):
    """Git did not do it now; trying again is worth while. Nothing of the person's was changed.

    `reason` says why; `hooked` whether a hook or a signing program stood in the way. After a `commit`, `blobs` holds
    the ids of the changes stored so far (None: a deletion), which a later `commit` takes in place of the bytes; git
    keeps them for two weeks, unless told otherwise.
    """

    code = 4

    def __init__(self, where: str, reason: str, hint: str = "") -> None:
        super().__init__(f'Git did not finish in "{where}": {reason}.', hint or "It is tried again later.")
        self.reason = reason
        self.hooked = False
        self.blobs: dict[str, str | None] = {}


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `time` is ISO 8601 with offset; `files` are paths below the workspace (none for a merge).

    `actor` is the `Pipimem-Actor` trailer, else "person"; `body` is the message less subject and trailers.
    """

    sha: str
    time: str
    author: str
    actor: str
    subject: str
    body: str
    trailers: dict[str, str]
    files: tuple[str, ...]


def trailers(message: str) -> dict[str, str]:
    """The `Key: value` lines that end a message; values of a repeated key are joined by a newline."""
    return _parts(message)[2]


class Repository:
    """The git history of one workspace. Paths are POSIX, relative to the workspace root.

    A git process that takes longer than `limit` seconds is ended, with `Deferred`. With `hooks` a commit runs
    pre-commit, commit-msg and post-commit and is signed where the person's git does so, each within `hook_limit`.
    """

    __slots__ = ("_git_dir", "_prefix", "_top", "hook_limit", "hooks", "limit", "root")

    def __init__(self, root: str, top: str, git_dir: str) -> None:
        self.root = root
        self.limit = LIMIT
        self.hooks = False
        self.hook_limit = HOOK_LIMIT
        self._top = top
        self._git_dir = git_dir
        inside = os.path.relpath(os.path.realpath(root), top)
        self._prefix = "" if inside == "." else inside + "/"

    @classmethod
    def open(cls, root: str, *, outer_ok: bool = False) -> Repository:
        """The repository whose top level is `root`, linked worktrees and submodules included, else `GitOff`.

        With `outer_ok` a repository further up is taken as well.
        """
        questions = "--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--show-toplevel"
        said = _asked(root, *questions).split("\n")
        if said[:2] != ["false", "true"]:
            message = f'"{root}" is a git folder without files of its own.'
            raise GitOff("bare repository", message, "Choose a folder that git has checked out.")
        if len(said) > len(questions):  # one of the paths has a line ending
            said[2:] = [_asked(root, question) for question in questions[2:]]
        git_dir, top = map(os.path.realpath, said[2:])
        if top != os.path.realpath(root) and not outer_ok:
            raise GitOff(
                "outer repository",
                f'"{root}" lies in the repository of something else, "{top}".',
                'Run "pipimem init --git" for a history of its own, or allow the outer one in your config.',
            )
        return cls(root, top, git_dir)

    @staticmethod
    def init(root: str) -> Repository:
        """Makes `root` a repository, unless it is one; on `main`, unless the person configured a name."""
        try:
            return Repository.open(root)
        except GitOff as off:
            if off.reason not in ("no repository", "outer repository"):
                raise
        status, _, _ = _run(root, "config", "--get", "init.defaultBranch")
        branch = () if status == 0 else ("-c", "init.defaultBranch=main")
        status, _, words = _run(root, *branch, "init", "--quiet")
        if status:
            raise Refused(f'"{root}" did not become a repository: {_first(words)}.', "Check its permissions.")
        return Repository.open(root)

    def person(self) -> tuple[str, str] | None:
        """Name and address the person configured for their commits; None when either is missing."""
        out = self._git("config", "-z", "--get-regexp", r"^(user|author)\.(name|email)$", fine=(0, 1))
        found = dict(item.partition("\n")[::2] for item in _readable(out).split("\0") if item)
        name = found.get("author.name") or found.get("user.name", "")
        address = found.get("author.email") or found.get("user.email", "")
        # Git drops these at the ends of a name, and then refuses an empty one.
        dropped = " \t\r\n.,:;<>\"\\'"
        return (name, address) if name.strip(dropped) and address.strip(dropped) else None

    def ignored(self, paths: Collection[str]) -> dict[str, str]:
        """Those of the paths that `commit` leaves out, with the reason. What git tracks is not ignored."""
        out = {path: reason for path in paths if (reason := self._foreign(self._full(path)))}
        asked = {f"./{self._full(path)}": path for path in paths if path not in out}
        if asked:
            data = b"".join(os.fsencode(name) + b"\0" for name in asked)
            # check-ignore does not take literal pathspecs; a leading "./" has the same effect.
            env = {"GIT_LITERAL_PATHSPECS": "0"}
            found = self._git("check-ignore", "-z", "--stdin", data=data, env=env, fine=(0, 1))
            out |= {asked[_text(name)]: "git ignores it" for name in found.split(b"\0")[:-1]}
        return out

    def commit(
        self,
        changes: Mapping[str, bytes | str | None],
        message: str,
        *,
        author: tuple[str, str] | None = None,
        wait: float | None = None,
    ) -> str | None:
        """Commits exactly these contents on HEAD's branch and gives the new id; None if nothing would change.

        A content is bytes, a blob id from an earlier `Deferred`, or None for a deletion. What the person
        staged stays staged, in these very paths too; else their index follows. Paths in `ignored` are left
        out, `Refused` when no other is left. `wait` is how long to wait for git's own lock, in seconds (2);
        whatever else is in the way is `Deferred`.
        """
        blobs: dict[str, str | None] = {}
        try:
            for path, content in self._kept(changes).items():
                if isinstance(content, str):
                    self._check_blob(path, content)
                blobs[path] = self._blob(path, content) if isinstance(content, bytes) else content
            with _IndexLock(self.root, self._git_dir, LOCK_WAIT if wait is None else wait) as lock:
                return self._commit(lock, blobs, message, author or IDENTITY)
        except GitOff:
            raise
        except Deferred as deferred:
            deferred.blobs = {self._short(path): blob for path, blob in blobs.items()}
            raise
        except (Unreadable, OSError) as error:
            late = Deferred(self.root, _cause(error))
            late.blobs = {self._short(path): blob for path, blob in blobs.items()}
            raise late from error

    def discard(self, blobs: Sequence[str]) -> list[str]:
        """Deletes blobs that no commit, index or reflog reaches; those it is not sure of stay and are returned.

        Only loose objects, and nothing where other worktrees share them.
        """
        folder = _line(self._git("rev-parse", "--git-path", "objects"))
        folder = os.path.join(self._top, folder)
        if os.path.isdir(os.path.join(os.path.dirname(folder), "worktrees")):
            return list(blobs)
        listed = self._git("rev-list", "--objects", "--all", "--reflog", "--indexed-objects", "--no-object-names")
        reached = set(listed.decode("ascii").split())
        kept = []
        for blob in blobs:
            path = os.path.join(folder, blob[:2], blob[2:])
            if blob in reached:
                kept.append(blob)
                continue
            with suppress(FileNotFoundError):
                os.unlink(path)
            if self._try("cat-file", "-e", blob)[0] == 0:
                kept.append(blob)
        return kept

    def packed(self, limit: float) -> bool:
        """Lets git pack what has piled up, where its own `gc.auto` says it is time; whether there was a reason to ask.

        Plumbing never does so by itself. Only in the workspace's own repository, never where other worktrees share it;
        for at most `limit` seconds, after which git is ended, which leaves the objects as they are.
        """
        folder = os.path.join(self._top, _line(self._git("rev-parse", "--git-path", "objects")))
        if self._prefix or os.path.dirname(os.path.realpath(folder)) != self._git_dir:
            return False
        try:
            some = sum(len(name) >= 38 for name in os.listdir(os.path.join(folder, SAMPLED)))
        except FileNotFoundError:
            return False
        if some * 256 < LOOSE:
            return False
        settings = {**_SETTINGS, "gc.autoDetach": "false", "maintenance.autoDetach": "false"}
        quiet = ("maintenance", "run", "--auto", "--quiet", "--task=gc")
        _run(self._top, *quiet, env={"GIT_OPTIONAL_LOCKS": "1"}, limit=limit, settings=settings)
        return True

    def trial(self) -> str:
        """Tries what a commit needs, and says how far HEAD goes: it and all it holds are there, no lock is held, and an
        object is written, read back and taken away. Raises what stands in a commit's way.
        """
        self._check_idle()
        branch = _text(self._git("symbolic-ref", "HEAD")).strip()
        head = self._resolve("HEAD")
        if head is None and os.path.lexists(self._inside(branch)):
            raise Unreadable(f'HEAD of "{self.root}" names a commit that git cannot read.', 'Run "git fsck" there.')
        for name in ("HEAD", branch):
            _refuse_lock(self.root, self._inside(f"{name}.lock"))
        with _IndexLock(self.root, self._git_dir, LOCK_WAIT):
            self._git("ls-files", "--unmerged", "-z")
        if head:
            self._git("rev-list", "--quiet", head)
            self._git("rev-list", "--quiet", "--objects", "--exclude-promisor-objects", "--max-count=1", head)
        data = os.urandom(16).hex().encode("ascii")
        blob = _line(self._git("hash-object", "-w", "--stdin", data=data))
        path = self._inside(f"objects/{blob[:2]}/{blob[2:]}")
        try:
            same = self._git("cat-file", "blob", blob) == data
        finally:
            with suppress(OSError):  # the folder stays where another object is in it
                os.unlink(path)
                os.rmdir(os.path.dirname(path))
        if not same:
            raise Unreadable(f'An object in "{self.root}" did not read back as it was written.', "Check the disk.")
        return f"HEAD is at {head[:10]}" if head else "no commit yet"

    def _inside(self, name: str) -> str:
        """Where git keeps a file of its own."""
        return os.path.join(self._top, _text(self._git("rev-parse", "--git-path", name).removesuffix(b"\n")))

    def dirty(self, paths: Collection[str]) -> dict[str, bytes | None]:
        """The paths whose file differs from HEAD, seen through git's filters, with HEAD's bytes (None: new).

        Links, submodules, ignored files, and files a sparse checkout leaves out are never dirty.
        """
        full = {self._full(path): path for path in paths}
        head = self._entries(self._resolve("HEAD"), full)
        edited = [path for path in full if self._differs(path, head.get(path, _NOTHING))]
        left_out = self.ignored([full[path] for path in edited if path not in head])
        return {
            full[path]: self._smudged(path, head[path][1]) if path in head else None
            for path in edited
            if full[path] not in left_out
        }

    def head(self, path: str, rev: str = "HEAD") -> bytes | None:
        """The file at a revision as git would check it out; None when the revision has no such file."""
        commit = self._resolve(rev)
        if commit is None and rev != "HEAD":
            raise NotFound(f'Git knows no revision "{rev}".', 'Run "pipimem log" to see them.')
        full = self._full(path)
        mode, blob = self._entries(commit, [full]).get(full, _NOTHING)
        return self._smudged(full, blob) if mode in _REGULAR else None

    def log(self, paths: Collection[str] = (), limit: int = 50) -> list[Commit]:
        """The commits that touch one of the paths (files or folders; none: the workspace), newest first."""
        within = [self._full(path) for path in paths] or ([self._prefix[:-1]] if self._prefix else [])
        return self._log(f"-n{int(limit)}", paths=within)

    def find(self, name: str) -> Commit | None:
        """The commit with this id (from 7 hex digits), else the newest with a `Pipimem-Run: name` trailer."""
        if re.fullmatch(_ID, name) and (sha := self._resolve(name)):
            return next(iter(self._log("-n1", rev=sha)), None)
        if not name or not name.isprintable():
            return None
        likely = self._log("-n50", "--fixed-strings", f"--grep={RUN}: {name}")
        return next((commit for commit in likely if name in commit.trailers.get(RUN, "").split("\n")), None)

    def keeps(self, texts: Iterable[str]) -> bool:
        """Whether a commit of any branch ever added or took out one of the texts, told by its longest line, or has its
        beginning in the message; upper and lower case are one. `Deferred` where that takes too long.
        """
        lines = [max(text.split("\n"), key=len).strip()[:_TOLD] for text in texts if "\0" not in text]
        said = [" ".join(text.split())[:_QUOTED] for text in texts if "\0" not in text]
        which = ("log", "--all", "-n1", "-i", "--format=%H")
        deadline = time.monotonic() + self.limit
        for at in range(0, len(lines), _ASKED):
            some = "|".join(re.sub(r"[][\\^$.*+?(){}|]", r"\\\g<0>", x) for x in lines[at : at + _ASKED] if x)
            quoted = [f"--grep={x}" for x in said[at : at + _ASKED] if x]
            within = [self._prefix[:-1]] if self._prefix else []
            if some and (
                self._git(*which, "--fixed-strings", *quoted, "--")
                or self._git(*which, "-s", "--pickaxe-regex", f"-S{some}", "--", *within)
            ):
                return True
            if time.monotonic() > deadline:
                raise Deferred(self.root, f"git took longer than {self.limit:g} seconds")
        return False

    def diff(self, sha: str) -> str:
        """The unified diff of a commit against its first parent; undecodable bytes are surrogate escapes."""
        commit = self._resolve(sha) if re.fullmatch(_ID, sha) else None
        if commit is None:
            raise NotFound(f'Git knows no commit "{sha}".', 'Run "pipimem log" to see them.')
        parent = self._resolve(f"{commit}^1")
        trees = (parent, commit) if parent else ("--root", "--no-commit-id", commit)
        within = (f"--relative={self._prefix}",) if self._prefix else ()
        return _text(self._git("diff-tree", "-r", "-p", *_PLAIN_DIFF, *within, *trees, "--"))

    def blame(self, path: str, start: int, end: int) -> list[tuple[int, str]]:
        """(line, commit id) of lines `start` to `end` of the file on disk; "" for one not committed yet."""
        lines = f"-L{int(start)},{int(end)}"
        status, out, words = self._try("blame", "--porcelain", "--no-textconv", lines, "--", self._full(path))
        if status:
            kind = NotFound if "no such" in words or "has only" in words else Unreadable
            raise kind(f'Git cannot blame "{path}": {_first(words)}.', 'Run "git blame" there to see why.')
        # A line of content begins with a tab, its header with the id and the line's old and new number.
        heads = re.findall(rb"^([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?$", out, re.MULTILINE)
        return [(int(line), sha.decode() if sha.strip(b"0") else "") for sha, line in heads]

    def _kept(self, changes: Mapping[str, bytes | str | None]) -> dict[str, bytes | str | None]:
        left_out = self.ignored([path for path, content in changes.items() if content is not None])
        kept = {self._full(path): content for path, content in changes.items() if path not in left_out}
        if left_out and not kept:
            path, reason = next(iter(left_out.items()))
            raise Refused(
                f'"{path}" was not committed: {reason}.', "Git keeps plain files that .gitignore does not name."
            )
        return kept

    def _commit(
        self, lock: _IndexLock, blobs: Mapping[str, str | None], message: str, author: tuple[str, str]
    ) -> str | None:
        from tempfile import TemporaryDirectory

        self._check_idle()
        parent = self._resolve("HEAD")
        new = self._changed(parent, blobs)
        if not new:
            return None
        with TemporaryDirectory(prefix="pipimem-") as scratch:
            index = self._advanced(parent, new, lock.index, os.path.join(scratch, "index"))
            tree = self._tree(parent, new, os.path.join(scratch, "tree"))
            message = self._hooked(tree, message, author, scratch) if self.hooks else message
            sha = self._record(tree, parent, message, author)
            if index:
                lock.fill(index)
            # Compare and swap: git refuses when HEAD is no longer `parent` (all zeros: no commit yet).
            moved = ("HEAD", sha, parent or "0" * len(sha))
            self._git("update-ref", "-m", "pipimem", *moved, env=_signed(IDENTITY))
            if index:
                lock.publish()
            if self.hooks:
                with suppress(Deferred):  # what is committed is committed, whatever this one says
                    self._hook("post-commit", author, os.path.join(scratch, "tree"))
        return sha

    def _hooked(self, tree: str, message: str, author: tuple[str, str], scratch: str) -> str:
        """Asks the person's hooks; the message as commit-msg leaves it. `Deferred` where one refuses."""
        index, file = os.path.join(scratch, "tree"), os.path.join(scratch, "COMMIT_EDITMSG")
        self._hook("pre-commit", author, index)
        if _line(self._git("write-tree", "--missing-ok", env={"GIT_INDEX_FILE": index})) != tree:
            raise self._refused_by("pre-commit", "it changed what would be committed")
        with open(file, "w", encoding="utf-8", errors="replace") as handle:
            handle.write(message.strip("\n") + "\n")
        self._hook("commit-msg", author, index, file)
        with open(file, encoding="utf-8", errors="replace") as handle:
            return handle.read()

    def _hook(self, name: str, author: tuple[str, str], index: str, *arguments: str) -> None:
        # As people's own commits run them: none of our settings, and git's usual pathspecs and locks.
        usual = {"GIT_LITERAL_PATHSPECS": "0", "GIT_OPTIONAL_LOCKS": "1", "GIT_EDITOR": ":", "GIT_INDEX_FILE": index}
        command = ("hook", "run", "--ignore-missing", name, *(("--", *arguments) if arguments else ()))
        env = {**usual, **_signed(author)}
        try:
            status, out, words = _run(self._top, *command, env=env, limit=self.hook_limit, settings={})
        except Deferred:
            raise self._refused_by(name, f"it took longer than {self.hook_limit:g} seconds") from None
        if status:
            said = next((x.strip() for x in (words + _readable(out)).split("\n") if x.strip()), "it gave no reason")
            raise self._refused_by(name, said[:200].rstrip("."))

    def _refused_by(self, name: str, why: str) -> Deferred:
        deferred = Deferred(self.root, f'the hook "{name}" refused: {why}', "It is tried again in a minute.")
        deferred.hooked = True
        return deferred

    def _signs(self) -> bool:
        status, out, _ = self._try("config", "--type=bool", "--get", "commit.gpgSign")
        return self.hooks and status == 0 and out.strip() == b"true"

    def store(self, changes: Mapping[str, bytes | str | None]) -> dict[str, str | None]:
        """Git's ids of these contents, kept for a later `commit`; paths in `ignored` are left out."""
        kept = self._kept(changes)
        return {self._short(p): self._blob(p, c) if isinstance(c, bytes) else c for p, c in kept.items()}

    def _check_idle(self) -> None:
        for name, words in _BUSY.items():
            if os.path.lexists(os.path.join(self._git_dir, name)):
                raise Deferred(self.root, words, "It is tried again when you have finished that.")
        status, _, words = self._try("symbolic-ref", "--quiet", "HEAD")
        if status == 1:
            raise Deferred(self.root, "HEAD is detached", "Check out a branch; it is tried again then.")
        if status:
            raise Deferred(self.root, _first(words))

    def _changed(self, parent: str | None, blobs: Mapping[str, str | None]) -> dict[str, tuple[str, str]]:
        head = self._entries(parent, blobs)
        new = {}
        for path, blob in blobs.items():
            mode = head.get(path, ("100644", ""))[0]
            if mode not in _REGULAR:
                raise Deferred(self.root, f'"{self._short(path)}" is no plain file in git')
            entry = (mode, blob) if blob else _NOTHING
            if entry != head.get(path, _NOTHING):
                new[path] = entry
        return new

    def _advanced(self, parent: str | None, new: Mapping[str, tuple[str, str]], index: str, copy: str) -> str | None:
        from shutil import copy2

        if os.path.exists(index):
            copy2(index, copy)  # with its time, by which git knows whose entries it may trust
        env = {"GIT_INDEX_FILE": copy}
        if self._git("ls-files", "--unmerged", "-z", env=env):
            raise Deferred(self.root, "the index has conflicts", "It is tried again when they are resolved.")
        against = parent or _line(self._git("hash-object", "-t", "tree", "--stdin"))
        compare = ("diff-index", "--cached", "--raw", "-z", "--ita-invisible-in-index", "--no-renames")
        raw = self._git(*compare, against, "--", *new, env=env)
        staged = set(_raw_paths(raw.split(b"\0")))
        ours = {path: entry for path, entry in new.items() if path not in staged}
        if not ours:
            return None
        self._update(ours, env)
        # Notes the files' times, else plumbing that does not refresh would call them modified.
        look = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
        self._try(*look, "--", *ours, env={**env, "GIT_OPTIONAL_LOCKS": "1"})
        return copy

    def _tree(self, parent: str | None, new: Mapping[str, tuple[str, str]], index: str) -> str:
        env = {"GIT_INDEX_FILE": index}
        plain = ("-c", "core.splitIndex=false", "-c", "core.fsmonitor=false", "-c", "index.sparse=false")
        if parent:
            self._git(*plain, "read-tree", parent, env=env)
        self._update(new, env, plain)
        return _line(self._git(*plain, "write-tree", "--missing-ok", env=env))

    def _update(self, new: Mapping[str, tuple[str, str]], env: Mapping[str, str], settings: Sequence[str] = ()) -> None:
        put = [f"{mode},{blob},{path}" for path, (mode, blob) in new.items() if blob]
        gone = [path for path, (_, blob) in new.items() if not blob]
        added = [part for entry in put for part in ("--cacheinfo", entry)]
        self._git(*settings, "update-index", "--add", *added, "--force-remove", "--", *gone, env=env)

    def _record(self, tree: str, parent: str | None, message: str, author: tuple[str, str]) -> str:
        text = message.replace("\0", "\N{REPLACEMENT CHARACTER}").strip("\n") + "\n"
        after = ("-p", parent) if parent else ()
        data = text.encode("utf-8", "replace")
        if not self._signs():
            return _line(self._git("commit-tree", *after, tree, data=data, env=_signed(author)))
        signed = ("commit-tree", "-S", *after, tree)
        try:
            status, out, words = _run(self._top, *signed, data=data, env=_signed(author), limit=self.hook_limit)
        except Deferred:
            status, words = 1, f"signing took longer than {self.hook_limit:g} seconds"
        if status:
            deferred = Deferred(self.root, f"it could not be signed: {_first(words)}", "It is tried again in a minute.")
            deferred.hooked = True
            raise deferred
        return _line(out)

    def _blob(self, path: str, data: bytes, *, write: bool = True) -> str:
        as_it_is = b"\r\n" in data and self._keeps_crlf(path)
        how = "--no-filters" if as_it_is else f"--path={path}"
        return _line(self._git("hash-object", *(("-w",) if write else ()), "--stdin", how, data=data))

    def _check_blob(self, path: str, blob: str) -> None:
        status, kind, _ = self._try("cat-file", "-t", "--", blob) if re.fullmatch(_ID, blob) else (1, b"", "")
        if status or kind != b"blob\n":
            raise NotFound(f'Git no longer has the text of "{self._short(path)}".', "Commit the file as it is.")

    def _keeps_crlf(self, path: str) -> bool:
        # Git leaves CRLF alone where the committed version has it, unless an attribute says otherwise;
        # hash-object does not look at that version, so we do.
        status, blob, _ = self._try("cat-file", "blob", f"HEAD:{path}")
        if status or b"\r\n" not in blob:
            return False
        names = ("text", "crlf", "eol", "filter", "ident", "working-tree-encoding")
        values = self._git("check-attr", "-z", *names, "--", path).split(b"\0")[2::3]
        return values[0] in (b"unspecified", b"auto") and set(values[1:]) == {b"unspecified"}

    def _differs(self, path: str, head: tuple[str, str]) -> bool:
        mode, blob = head
        name = os.path.join(self._top, path)
        if self._foreign(path) or (mode and mode not in _REGULAR):
            return False
        if not os.path.lexists(name):
            return bool(blob) and not self._git("ls-files", "-t", "-z", "--", path).startswith(b"S ")
        if not os.path.isfile(name):
            return False
        try:
            with open(name, "rb") as file:
                data = file.read()
        except OSError as error:
            raise Unreadable(f'"{self._short(path)}" cannot be read: {error.strerror}.') from error
        return self._blob(path, data, write=False) != blob

    def _foreign(self, path: str) -> str:
        if os.path.islink(os.path.join(self._top, path)):
            return "it is a link"
        while path := os.path.dirname(path):
            folder = os.path.join(self._top, path)
            if os.path.islink(folder):
                return f'it lies behind the link "{self._short(path)}"'
            if os.path.lexists(os.path.join(folder, ".git")):
                return f'it belongs to another repository, "{self._short(path)}"'
        return ""

    def _entries(self, commit: str | None, paths: Iterable[str]) -> dict[str, tuple[str, str]]:
        names = list(paths)
        if commit is None or not names:
            return {}
        entries = {}
        for item in self._git("ls-tree", "-z", commit, "--", *names).split(b"\0")[:-1]:
            facts, _, name = item.partition(b"\t")
            mode, _, blob = facts.decode().split(" ")
            entries[_text(name)] = (mode, blob)
        return entries

    def _smudged(self, path: str, blob: str) -> bytes:
        return self._git("cat-file", "--filters", f"--path={path}", blob)

    def _resolve(self, rev: str) -> str | None:
        if not rev.isprintable():
            return None
        status, out, words = self._try("rev-parse", "--verify", "--end-of-options", f"{rev}^{{commit}}")
        if status and "short" in words and "ambiguous" in words:
            raise Refused(f'"{rev}" is the beginning of several ids.', "Give more digits.")
        return None if status else _line(out)

    def _log(self, *which: str, rev: str = "HEAD", paths: Sequence[str] = ()) -> list[Commit]:
        commit = self._resolve(rev)
        if commit is None:
            return []
        out = self._git(
            *("log", "-z", "--raw", "--full-diff", *_PLAIN_DIFF, "--no-abbrev", "--no-notes"),
            *("--no-show-signature", "--encoding=UTF-8", "--format=%H%x00%cI%x00%e%x00%an%x00%ae%x00%B"),
            *(*which, commit, "--", *paths),
        )
        return list(self._commits(out.split(b"\0")))

    def _commits(self, tokens: Sequence[bytes]) -> Iterator[Commit]:
        # Six fields, then two tokens for each file, the first of which begins with ":".
        place = 0
        while place + 6 <= len(tokens):
            sha, when, encoding = (_readable(token) for token in tokens[place : place + 3])
            name, address, message = (_readable(token, encoding) for token in tokens[place + 3 : place + 6])
            begin = place = place + 6
            while tokens[place : place + 1] and tokens[place].lstrip(b"\n").startswith(b":"):
                place += 2
            subject, body, found = _parts(message)
            yield Commit(
                sha=sha,
                time=when,
                author=f"{name} <{address}>",
                actor=found.get(ACTOR, "person"),
                subject=subject,
                body=body,
                trailers=found,
                files=tuple(
                    self._short(file) for file in _raw_paths(tokens[begin:place]) if file.startswith(self._prefix)
                ),
            )

    def _full(self, path: str) -> str:
        parts = path.lower().split("/")
        if {"", ".", "..", ".git"} & set(parts) or "\0" in path:
            raise Usage(f'"{path}" is no path of a file here.', "Give it relative to the workspace.")
        return self._prefix + path

    def _short(self, full: str) -> str:
        return full.removeprefix(self._prefix)

    def _try(self, *arguments: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> tuple[int, bytes, str]:
        # The ceiling keeps git from taking a repository further up, should this one vanish.
        own = {"GIT_CEILING_DIRECTORIES": os.path.dirname(self._top), **(env or {})}
        return _run(self._top, *arguments, data=data, env=own, limit=self.limit)

    def _git(
        self,
        *arguments: str,
        data: bytes = b"",
        env: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> bytes:
        status, out, words = self._try(*arguments, data=data, env=env)
        if status not in fine:
            raise Unreadable(f'Git failed in "{self.root}": {_first(words)}.', 'Run "git fsck" there.')
        return out


class _IndexLock:
    """Git's own `index.lock`: while we hold it no other git writes. One that is not ours is left alone."""

    __slots__ = ("_held", "_path", "_wait", "_where", "index")

    def __init__(self, where: str, git_dir: str, wait: float) -> None:
        self.index = os.path.realpath(os.path.join(git_dir, "index"))
        self._path = self.index + ".lock"
        self._where = where
        self._wait = wait
        self._held = False

    def __enter__(self) -> _IndexLock:
        deadline = time.monotonic() + self._wait
        while not self._held:
            try:
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                self._held = True
            except FileExistsError:
                if time.monotonic() >= deadline:
                    _refuse_lock(self._where, self._path)
                time.sleep(0.02)
        return self

    def __exit__(self, *error: object) -> None:
        if self._held:
            with suppress(FileNotFoundError):
                os.unlink(self._path)

    def fill(self, source: str) -> None:
        """Makes the lock file the next index, with the mode of the present one and the time of `source`."""
        from shutil import copyfile, copymode

        copyfile(source, self._path)
        if os.path.exists(self.index):
            copymode(self.index, self._path)
        written = os.stat(source)
        os.utime(self._path, ns=(written.st_atime_ns, written.st_mtime_ns))

    def publish(self) -> None:
        """Replaces the index and gives the lock up, in one step."""
        os.replace(self._path, self.index)
        self._held = False


def _refuse_lock(where: str, path: str) -> None:
    """Raises `Deferred` where git's lock at `path` is held, with whose it is and since when."""
    from pwd import getpwuid

    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    try:
        owner = getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = f"user {found.st_uid}"
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.st_mtime))
    hint = f'If no git is running there, remove "{path}" (of {owner}, since {since}).'
    raise Deferred(where, f"another git holds {os.path.basename(path)}", hint)


def _run(
    where: str,
    *arguments: str,
    data: bytes = b"",
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
    settings: Mapping[str, str] = _SETTINGS,
) -> tuple[int, bytes, str]:
    from shutil import which
    from subprocess import TimeoutExpired

    program = which("git")
    if program is None:
        raise GitOff("no git program", '"git" is not installed.', "Install git to have a history.")
    own = {**_ENVIRONMENT, **(env or {})}
    set_here = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [*_without(own), program, "-C", os.path.abspath(where), *set_here, *arguments]
    process = _started(command, own)
    try:
        out, err = process.communicate(data, timeout=limit)
    except BaseException as error:
        _kill(process)
        if isinstance(error, TimeoutExpired):
            raise Deferred(where, f"git took longer than {limit:g} seconds") from None
        raise
    return process.returncode, out, _readable(err)


def _started(command: list[str], env: Mapping[str, str]) -> Git.AutoInterrupt:
    from subprocess import PIPE

    git = _runner()
    from git.exc import GitCommandNotFound

    try:
        # A session of its own: a filter git started ends with it, and nothing can ask on the terminal.
        return git().execute(command, istream=PIPE, as_process=True, shell=False, env=env, start_new_session=True)
    except GitCommandNotFound:
        raise GitOff("no git program", f'"{command[0]}" cannot be run.', "Install git again.") from None
    except OSError as error:
        raise Unreadable(f'Git could not be started: "{error.strerror}".', "Try again later.") from error


@cache
def _runner() -> type[Git]:
    # GitPython tries git when it is imported, and unless told so raises when that fails.
    with _IMPORT:
        before = os.environ.get("GIT_PYTHON_REFRESH")
        os.environ["GIT_PYTHON_REFRESH"] = "quiet"
        try:
            from git.cmd import Git
        finally:
            os.environ.pop("GIT_PYTHON_REFRESH")
            if before is not None:
                os.environ["GIT_PYTHON_REFRESH"] = before
    return Git


def _without(own: Mapping[str, str]) -> list[str]:
    # GitPython hands on the whole environment, and changing ours would reach the program that embeds us.
    foreign = [
        name
        for name in os.environ
        if name.startswith("GIT_") and not name.startswith("GIT_PYTHON_") and name not in {*_KEPT, *own}
    ]
    return ["env", *(part for name in foreign for part in ("-u", name))] if foreign else []


def _kill(process: Git.AutoInterrupt) -> None:
    from signal import SIGKILL, SIGTERM
    from subprocess import TimeoutExpired

    # First politely, so that git removes its lock files.
    for sign, patience in ((SIGTERM, 0.5), (SIGKILL, 1.0)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(TimeoutExpired):
            process.communicate(timeout=patience)
            return
    # Whatever left the session and holds the pipes is not ours to wait for; GitPython closes our ends.


def _asked(root: str, *questions: str) -> str:
    status, out, words = _run(root, "rev-parse", *questions)
    if status == 0 or "must be run in a work tree" in words:  # as it is said of the top of a bare one
        return _text(out.removesuffix(b"\n"))
    if "dubious ownership" in words or "unsafe repository" in words:
        raise GitOff(
            "dubious ownership",
            f'Git does not trust "{root}", which belongs to another user.',
            f'If you do, run: git config --global --add safe.directory "{os.path.realpath(root)}"',
        )
    if "not a git repository" in words:
        message = f'There is no git history in "{root}".'
        raise GitOff("no repository", message, 'Run "pipimem init --git" to begin one.')
    raise GitOff("git refused", f'Git cannot look at "{root}": {_first(words)}.', 'Run "git status" there.')


def _signed(author: tuple[str, str]) -> dict[str, str]:
    name, address = (_readable(part.encode("utf-8", "replace")).replace("\0", "") for part in author)
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": address,
        "GIT_COMMITTER_NAME": IDENTITY[0],
        "GIT_COMMITTER_EMAIL": IDENTITY[1],
    }


def _parts(message: str) -> tuple[str, str, dict[str, str]]:
    first, *rest = re.split(r"\n[ \t]*\n\s*", message.replace("\r\n", "\n").strip("\n"))
    found: dict[str, str] = {}
    if rest and re.fullmatch(_TRAILER_BLOCK, rest[-1].rstrip()):
        for line in re.sub(r"\n[ \t]+", " ", rest.pop().rstrip()).split("\n"):
            key, _, value = line.partition(":")
            found[key] = f"{found[key]}\n{value.strip()}" if key in found else value.strip()
    return first.replace("\n", " ").strip(), "\n\n".join(rest).strip("\n"), found


def _raw_paths(tokens: Sequence[bytes]) -> list[str]:
    return [_text(name) for name in tokens[1::2]]  # each follows its ":modes ids status"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _readable(data: bytes, encoding: str = "") -> str:
    # Git converts a message only if the whole commit fits; a name in UTF-8 over a message in GBK is common.
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        with suppress(LookupError):
            return data.decode(encoding or "utf-8", "replace")
    return data.decode("utf-8", "replace")


def _line(data: bytes) -> str:
    return data.decode("ascii").strip()


def _first(words: str) -> str:
    lines = words.split("\n")
    said = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
    return re.sub(r"^(?:fatal|error): ", "", said).strip().rstrip(".") or "it gave no reason"


def _cause(error: Unreadable | OSError) -> str:
    if isinstance(error, OSError):
        return f'"{error.filename}": {error.strerror}' if error.filename else str(error.strerror)
    return error.message.rstrip(".")
