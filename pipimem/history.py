"""The history of a workspace's files: commits of what was written, a person's edits first, and taking one back.

`git.py` knows git, `pending.py` the order; here stands what is committed and as whose. Nothing here writes a document.
"""

from __future__ import annotations

import os
import re
import time

from pipimem.errors import Error, NotFound, Refused
from pipimem.files import reason, write_private
from pipimem.pending import Queue, beside_of, mark, read_private
from pipimem.text import decode, printable
from pipimem.workspace import PRIVATE, Change, Workspace

TOMBSTONES, REJECTED = ".pipimem/tombstones.jsonl", ".pipimem/rejected.jsonl"
STONES = (TOMBSTONES, REJECTED, ".pipimem/sources.jsonl")
"""Lists whose lines a commit added are taken off again when it is undone."""
PACK_LIMIT = 120.0  # seconds git may take to pack; 10,000 objects took 48 on two busy cores
HOOK_PAUSE = 60.0  # seconds in which a hook that refused is not asked again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from pipimem.git import Commit, Deferred, GitOff, Repository
    from pipimem.markdown import Entry
    from pipimem.workspace import Scan

    Contents = dict[str, bytes | str | None]


class History:
    """The git history of one workspace. `notes` collects what a person should hear about a commit that waited."""

    def __init__(self, workspace: Workspace, notes: list[str]) -> None:
        self.workspace = workspace
        self.notes = notes
        self._queue = Queue(workspace)

    def repository(self) -> Repository:
        """The workspace's repository, opened. Raises `Unreadable` (GitOff) with the reason where there is none."""
        from pipimem.git import Repository

        self.workspace.trust()
        config = self.workspace.config
        repository = Repository.open(self.workspace.root, outer_ok=config["git.outer"])
        repository.hooks, repository.hook_limit = config["git.hooks"], float(config["git.hook_limit"])
        return repository

    def enlist(
        self, changes: Sequence[Change], message: str, beside: Mapping[str, bytes],
        base: Mapping[str, str | None] | None = None,
    ) -> str:  # fmt: skip
        """Puts a change just written in its place among the commits that are due. The caller holds its locks.

        Returns the ticket `commit` takes, "" where nothing will be committed. `base` says of files whose waiting
        commits were dropped what git has of them.
        """
        if not (changes or beside) or not self.workspace.config["git.commit"]:
            return ""
        if not self.workspace.config["git.outer"] and not os.path.lexists(os.path.join(self.workspace.root, ".git")):
            return ""
        return self._queue.enlist(changes, beside, message, base or {})

    def commit(
        self, ticket: str, changes: Sequence[Change], message: str, beside: Mapping[str, bytes],
        forgetting: Mapping[str, str | None] | None = None,
    ) -> tuple[str, str]:  # fmt: skip
        """Commits exactly these changes and files: (commit, "") or ("", why it has to wait or cannot be).

        First come the commits of earlier writes and, as theirs, what a person changed in these files; where that holds
        a secret it stays out, and this change is committed without it. Never raises for git's sake: what was written
        stays written.
        """
        from pipimem.git import Deferred, GitOff

        if not self.workspace.config["git.commit"]:
            return "", "commits are switched off"
        files: Contents = {c.path: c.after for c in changes}
        files.update(beside)
        ignore = read_private(self.workspace.private(".gitignore"))
        if ignore is not None:
            files[f"{PRIVATE}/.gitignore"] = ignore
        try:
            repository = self.repository()
            with self._queue.turn(ticket):
                self._commit_waiting(repository, changes, files)
                held = self._without_secrets(repository, changes, forgetting, files, ticket)
                try:
                    self._commit_by_hand(repository, [c for c in changes if c.path not in held], forgetting, ticket)
                except Deferred as deferred:
                    deferred.blobs = self._stored(repository, files)
                    raise
                sha = repository.commit(files, message, author=self._author()) or ""
                self._off_the_queue(ticket)
            return sha, next((_held(path) for path in held if path not in files), "")
        except Deferred as deferred:
            self._off_the_queue(ticket, deferred.blobs, deferred)
            return "", deferred.message
        except GitOff as off:  # git may be back tomorrow, and whose change this was is still to be told then
            self._off_the_queue(ticket, {}, off)
            return "", str(off)
        except Error as error:
            self._off_the_queue(ticket)
            return "", str(error)

    def _off_the_queue(
        self, ticket: str, blobs: Mapping[str, str | None] | None = None, why: Deferred | GitOff | None = None
    ) -> None:
        """The change is committed, or cannot be; with `blobs` it waits for the next command."""
        from pipimem.git import Deferred

        try:
            if blobs is None:
                self._queue.remove(ticket)
            else:
                hooked = isinstance(why, Deferred) and why.hooked
                self._queue.postpone(ticket, blobs, why.reason if why else "", hooked=hooked)
        except (OSError, Error) as error:
            self.notes.append(f"The list of commits that wait could not be written: {error}")

    def _author(self) -> tuple[str, str] | None:
        """The identity the user set for pipimem's commits, None for pipimem's own."""
        name, _, address = self.workspace.config["git.author"].rpartition("<")
        return (name.strip(), address.strip(" >")) if name.strip() else None

    def _secret(self, head: bytes | None, data: bytes) -> bool:
        """Whether a text holds a secret that git does not have yet."""
        from pipimem import safety
        from pipimem.workspace import added

        config = self.workspace.config
        return bool(safety.secrets(added(head or b"", data), config["safety.patterns"], config["safety.allow"]))

    def _stored(self, repository: Repository, files: Contents) -> dict[str, str | None]:
        """Git's ids of what has to wait; a text with a secret is not given to git."""
        return repository.store({p: c for p, c in files.items() if not (isinstance(c, bytes) and self._secret(b"", c))})

    def _without_secrets(
        self, repository: Repository, changes: Sequence[Change], forgetting: Mapping[str, str | None] | None,
        files: Contents, ticket: str,
    ) -> list[str]:  # fmt: skip
        """The files in which a person left a secret; in `files` they get our change alone, upon what git has of them.

        Where ours cannot be told from theirs, the file is left out of `files`. `status` says what is held up.
        """
        held = []
        for change in changes:
            theirs, ours = change.before if forgetting is None else change.after, change.after
            head = repository.head(change.path)
            if theirs is None or head == change.before or not self._secret(head, theirs):
                continue
            held.append(change.path)
            try:
                alone = None if ours is None or change.before is None else take_back(change.before, ours, head or b"")
            except LookupError:
                alone = None
            for text in (alone, ours):
                if text is not None and not self._secret(head, text):
                    files[change.path] = text
                    break
            else:
                files.pop(change.path)
            if not any(change.path in row.get("held", ()) for row in self._queue.waiting()):
                line = {"message": f"edit {change.path}", "files": {}, "held": [change.path]}
                self._queue.precede(ticket, {**line, "reason": _held(change.path)})
            self.notes.append(_held(change.path))
        return held

    def _commit_by_hand(
        self, repository: Repository, changes: Sequence[Change], forgetting: Mapping[str, str | None] | None,
        ticket: str,
    ) -> None:  # fmt: skip
        """Commits what a person changed in these files and git does not have yet, first and as theirs.

        Where something is being forgotten, without it: what git never had it must not get now, and what it has goes
        with our commit. Where git does not take it, it waits in front of ours.
        """
        from pipimem.git import Deferred

        edited: Contents = {}
        marks: dict[str, dict[str, str | None]] = {}
        for change in changes:
            head = repository.head(change.path)
            if change.before is None or head == change.before or change.path in (forgetting or {}):
                continue
            theirs = change.before
            if forgetting is not None:
                if change.after is None:
                    continue
                theirs = without(head or b"", change.before, change.after)
                if theirs not in (change.before, change.after):
                    self._queue.rebase(ticket, {change.path: mark(theirs)})
            if theirs == head:
                continue
            edited[change.path] = theirs
            marks[change.path] = {"before": mark(head), "after": mark(theirs), "blob": None}
        if not edited:
            return
        message, author = f"edit {', '.join(sorted(edited))}\n\nPipimem-Actor: person\n", repository.person()
        try:
            repository.commit(edited, message, author=author)
        except Deferred as deferred:
            files = {path: {**row, "blob": deferred.blobs.get(path)} for path, row in marks.items()}
            line = {"message": message, "files": files, "author": list(author) if author else None}
            hooked = {"reason": deferred.reason, "hooked": int(time.time()) if deferred.hooked else 0}
            self._queue.precede(ticket, {**line, **hooked})
            raise

    def pack(self) -> str:
        """Lets git pack its loose objects, where it is time for that; why it could not, "" where nothing went wrong."""
        if not self.workspace.config["git.commit"]:
            return ""
        try:
            self.repository().packed(PACK_LIMIT)
        except Error as error:
            return error.message
        return ""

    # What is to be forgotten before git has it

    def knows(self, texts: Sequence[tuple[str, bytes]]) -> bool:
        """Whether git's history keeps one of the texts (path or "", words): the last commit in its file, an older one
        of any branch in any file, or a commit message. True as well where git took too long to tell.
        """
        from pipimem.git import Deferred

        try:
            repository = self.repository()
            there = any(path and words in (repository.head(path) or b"") for path, words in texts)
            return there or repository.keeps([decode(words) for _, words in texts])
        except Deferred:
            return True
        except Error:
            return False

    def unsay(self, says: Callable[[str], bool], paths: Collection[str]) -> tuple[dict[str, str | None], list[str]]:
        """Takes what is to be forgotten out of the commits that wait: files in `paths`, and words in their messages.

        Returns, for each file dropped from a waiting commit, the digest of what git has of it, and git's ids of the
        texts it was given already, for `discard`.
        """
        dropped: dict[str, str | None] = {}
        blobs: list[str] = []

        def without(row: dict[str, Any]) -> dict[str, Any]:
            files = dict(row["files"])
            for path in [p for p in files if p in paths]:
                marks = files.pop(path)
                dropped.setdefault(path, marks["before"])
                blobs.extend([marks["blob"]] if marks.get("blob") else [])
            lines = row["message"].split("\n")
            return {**row, "files": files, "message": "\n".join("(forgotten)" if says(x) else x for x in lines)}

        if self._queue.waiting():
            self._queue.rewrite(without)
        return dropped, blobs

    def discard(self, blobs: Sequence[str]) -> list[str]:
        """Deletes texts git was given for commits that were never made; those that something reaches are returned."""
        if not blobs:
            return []
        try:
            return self.repository().discard(blobs)
        except Error:
            return list(blobs)

    # Commits that have to wait

    def pending(self) -> list[dict[str, Any]]:
        """The commits that had to wait, oldest first."""
        return self._queue.waiting()

    def commit_waiting(self) -> str:
        """Makes the commits that wait, as far as git lets it; what stands in the way, "" for nothing."""
        try:
            repository = self.repository()
            with self._queue.turn(""):
                self._commit_waiting(repository, (), {})
        except Error as error:
            return str(error)
        return next((row["reason"] for row in self._queue.waiting() if row.get("held")), "")

    def _commit_waiting(self, repository: Repository, changes: Sequence[Change], ours: Contents) -> None:
        """Makes the commits that waited. One that still has to wait stops the rest; one overtaken is dropped.

        Where a hook refused one less than a minute ago, and where it does again, ours (`ours`) waits behind it unasked:
        `Deferred`. No command waits for a slow hook twice.
        """
        from pipimem.git import Deferred

        known = {mark(c.before): c.before for c in changes}
        skipped: dict[tuple[str, str | None], str | None] = {}
        runs = ""
        for row in self._queue.waiting():
            if any(self._secret(repository.head(p), self.workspace.read(p) or b"") for p in row.get("held", ())):
                continue
            if ours and row.get("hooked") and 0 <= time.time() - row["hooked"] < HOOK_PAUSE:
                again = Deferred(self.workspace.root, row.get("reason", ""), "It is tried again in a minute.")
                again.hooked, again.blobs = True, self._stored(repository, ours)
                raise again
            try:
                count = len(skipped)
                files = self._still_due(repository, row, known, skipped)
                if files:
                    repository.commit(files, row["message"] + runs, author=_named(row) or self._author())
                    runs = ""
                elif len(skipped) > count:
                    runs += "".join(re.findall(r"^Pipimem-Run: .*\n", row["message"], re.MULTILINE))
            except Deferred as deferred:
                if deferred.hooked:
                    self._off_the_queue(row.get("ticket", ""), row_blobs(row) | deferred.blobs, deferred)
                    deferred.blobs = self._stored(repository, ours)
                    raise
                return
            except Error as error:
                self.notes.append(f"A commit that waited could not be made: {error}")
            self._off_the_queue(row.get("ticket", ""))

    def _still_due(
        self,
        repository: Repository,
        row: Mapping[str, Any],
        known: Mapping[str | None, bytes | None],
        skipped: dict[tuple[str, str | None], str | None],
    ) -> Contents:
        """What of a waiting commit git still lacks: paths whose HEAD is as it was before, with the plan's own bytes.

        `known` holds texts by digest that the caller has at hand. A text nobody has any more is `skipped`: the commit
        of the next one takes its step as well. Of pipimem's own lists the order alone counts: git gets each text that
        is at hand, and the last one is the one on disk.
        """
        due: Contents = {}
        for path, marks in beside_of(row).items():
            now = read_private(os.path.join(self.workspace.root, *path.split("/")))
            if mark(now) == marks["after"]:
                due[path] = now
            elif marks["blob"] and repository.head(path) != now:
                due[path] = marks["blob"]
        for path, marks in row["files"].items():
            before = skipped.get((path, marks["before"]), marks["before"])
            if mark(repository.head(path)) != before:
                continue
            if marks["after"] in known:
                due[path] = known[marks["after"]]
            elif mark(now := self.workspace.read(path)) == marks["after"]:
                due[path] = now
            elif marks["blob"]:
                due[path] = marks["blob"]
            else:
                skipped[path, marks["after"]] = before
        return due

    # Looking and taking back

    def damage(self, path: str, data: bytes) -> str:
        """What makes a document unfit to be written, as words after its name with the last good version; else "".

        Besides conflict markers and NUL bytes that is a file cut off in the middle, which only git can tell.
        """
        from pipimem.markdown import damage

        why = damage(data)
        if not why and not _may_be_cut_off(data):
            return ""
        try:
            repository = self.repository()
            if not why and cut_off(data, repository.head(path) or b""):
                why = "is cut off: the last commit has more of it"
            good = next(
                (sha for sha, text in self._versions(repository, path) if text.strip() and not damage(text)), ""
            )
            return why + f" (the last good version: 'git show {good[:10]}:./{path}')" if why and good else why
        except Error:  # no history to compare with
            return why

    def damaged(self, scan: Scan) -> Iterator[tuple[str, str]]:
        """The documents a torn write left unfit, and why. Notes are too many to be read each time."""
        for document in scan.documents:
            if document.layer == "note":
                continue
            try:
                data = self.workspace.read(document.path)
            except Error:
                continue  # the scan says so
            if data is not None and (why := self.damage(document.path, data)):
                yield document.path, why

    def _versions(self, repository: Repository, path: str) -> Iterator[tuple[str, bytes]]:
        """The last twenty committed versions of a file, newest first."""
        for commit in repository.log([path], 20):
            yield commit.sha, repository.head(path, commit.sha) or b""

    def _texts(self, repository: Repository, path: str) -> Iterator[bytes]:
        """The last 200 committed versions of a file, newest first."""
        for commit in repository.log([path], 200):
            yield repository.head(path, commit.sha) or b""

    def log(self, paths: Sequence[str], limit: int) -> list[Commit]:
        """The commits that touched one of the paths (none: the workspace), newest first."""
        return self.repository().log(paths, limit)

    def diff(self, name: str) -> str:
        """The diff of a run or commit. Raises `NotFound`."""
        return self.repository().diff(self.find(name).sha)

    def find(self, name: str) -> Commit:
        """The commit of that name: an id, or a run. Raises `NotFound`."""
        commit = self.repository().find(name)
        if commit is None:
            raise NotFound(f"There is no run or commit '{printable(name)}'.", "See 'pipimem log'.")
        return commit

    def back(self, commit: Commit, paths: Sequence[str]) -> list[Change]:
        """The changes that take `commit` back and keep what was written since, merged by lines.

        Raises `Refused` naming the file where later edits touched the same lines, and when nothing is left to do.
        """
        repository = self.repository()
        made = [c for path in paths if (c := self._back(repository, commit.sha, path)) is not None]
        if not made:
            raise Refused(f"'{commit.sha[:10]}' is undone already.", "Nothing was changed.")
        return made

    def untombed(self, commit: Commit) -> dict[str, bytes]:
        """The lists of what was forgotten and rejected, without what `commit` put on them ({} where it did not)."""
        repository = self.repository()
        lists = {}
        for path in (p for p in STONES if p in commit.files):
            added = set((repository.head(path, commit.sha) or b"").splitlines())
            added -= set((_before(repository, path, commit.sha) or b"").splitlines())
            now = read_private(os.path.join(self.workspace.root, path)) or b""
            lists[path] = b"".join(line for line in now.splitlines(keepends=True) if line.rstrip() not in added)
        return lists

    def steps(
        self, path: str, channels: Mapping[str, str], identity: str, limit: int = 200
    ) -> list[tuple[Commit, str]]:  # fmt: skip
        """The commits in which an entry of a file came, changed or went, newest first, each with what it said then.

        "" is what it says where it went. Where it came in the place of another, under another id or from another file,
        the steps of that one follow. Looks at the last `limit` commits of a file; `channels` has the channel of each.
        """
        repository = self.repository()
        found: list[tuple[Commit, str]] = []
        commits = repository.log([path], limit)

        def entries(name: str, rev: str) -> dict[str, Entry]:
            from pipimem import markdown

            data = repository.head(name, rev) if rev else None
            return dict(markdown.identified(markdown.parse(data or b""), channels.get(name, "")))

        while commits:
            commit, *commits = commits
            now = entries(path, commit.sha).get(identity)
            earlier = entries(path, commits[0].sha if commits else "")
            before = earlier.get(identity)
            if _saying(now) == _saying(before):
                continue
            found.append((commit, now.text if now else ""))
            if now is None or before is not None:
                continue
            others = [name for name in commit.files if name in channels and name != path]
            for name in (path, *others):
                older = commits if name == path else _older(repository.log([name], limit), commit)
                left = entries(name, commit.sha)
                then = entries(name, older[0].sha if older else "")
                gone = {ref: entry for ref, entry in then.items() if ref not in left}
                known = [ref for ref in (identity, now.facts.get("supersedes", "")) if ref in gone]
                known += [ref for ref, entry in gone.items() if not entry.id and entry.text == now.text]
                if known:
                    path, commits, identity = name, older, known[0]
                    break
        return found

    def wrote(self, path: str, first: int, last: int) -> Commit | None:
        """The commit that last wrote the lines `first` to `last` of a file; None while one is not committed yet."""
        from datetime import datetime

        repository = self.repository()
        commits = {sha for _, sha in repository.blame(path, first, last)}
        if "" in commits:
            return None
        found = [c for sha in commits if (c := repository.find(sha)) is not None]
        return max(found, key=lambda c: datetime.fromisoformat(c.time), default=None)

    def _back(self, repository: Repository, sha: str, path: str) -> Change | None:
        after, now = repository.head(path, sha), self.workspace.read(path)
        before = _before(repository, path, sha)
        if now == before:
            return None
        if now == after:
            return Change(path, now, before)
        if now is None or before is None or after is None:
            raise Refused(f"'{path}' was changed since.", "Take it back in an editor.")
        try:
            merged = take_back(after, before, now, lambda: self._texts(repository, path))
        except LookupError:
            raise Refused(
                f"Where it stood in '{path}' cannot be told any more: what was around it has changed.",
                "Take it back in an editor.",
            ) from None
        if merged is None:
            raise Refused(f"The same lines of '{path}' were changed since.", "Take it back in an editor.")
        return Change(path, now, merged) if merged != now else None


def _saying(entry: Entry | None) -> tuple[str, str] | None:
    """What an entry says, and until when."""
    return None if entry is None else (entry.text, entry.facts.get("until", ""))


def _older(commits: Sequence[Commit], than: Commit) -> list[Commit]:
    """The commits after one in a list that begins with the newest."""
    at = next((n for n, commit in enumerate(commits) if commit.sha == than.sha), len(commits))
    return list(commits[at + 1 :])


def _named(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The person whose edit a waiting commit is, None where it is pipimem's."""
    author = row.get("author")
    return (str(author[0]), str(author[1])) if isinstance(author, list) and len(author) == 2 else None


def _held(path: str) -> str:
    """Why what a person changed in a file is not committed yet."""
    return f"'{path}' holds a secret; what a person changed there is committed once it is out"


def row_blobs(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Git's ids of the files of a waiting commit, as far as it has them."""
    return {path: marks.get("blob") for path, marks in {**row["files"], **beside_of(row)}.items()}


def _may_be_cut_off(data: bytes) -> bool:
    return not data.strip() or not data.endswith((b"\n", b"\r"))


def cut_off(data: bytes, good: bytes) -> bool:
    """Whether `data` is what a torn write leaves of `good`: nothing, or its beginning up to the middle of a line.

    A person who shortens the last line, or takes out whole lines, leaves something else.
    """
    if not data.strip():
        return bool(good.strip())
    rest = good[len(data) :]
    torn = good.startswith(data) and bool(rest) and not rest.startswith((b"\n", b"\r"))
    return torn and len(rest.splitlines()) > 1


def without(head: bytes, before: bytes, after: bytes) -> bytes:
    """What a person made of `head` before something in it was forgotten: `before`, but for what git must not get.

    An entry that goes stands as git has it; where anything else goes that git has not line by line, it is `after`.
    """
    from pipimem import markdown

    gone = {e.id for e in markdown.parse(before).entries} - {e.id for e in markdown.parse(after).entries} - {""}
    known = {e.id: head[e.start : e.end] for e in markdown.parse(head).entries if e.id in gone}
    theirs = before
    for entry in reversed([e for e in markdown.parse(before).entries if e.id in gone]):
        if entry.id in known:
            rest = theirs[entry.end :]
            ending = markdown.newline(before) if rest and not known[entry.id].endswith((b"\n", b"\r")) else b""
            theirs = theirs[: entry.start] + known[entry.id] + ending + rest
        else:
            theirs = markdown.remove_entry(markdown.parse(theirs), entry)
    old, has = theirs.splitlines(), set(head.splitlines())
    lost = [line for tag, i1, i2, *_ in _steps(old, after.splitlines()) if tag != "equal" for line in old[i1:i2]]
    return theirs if has.issuperset(lost) else after


def take_back(
    after: bytes, before: bytes, now: bytes, versions: Callable[[], Iterable[bytes]] = tuple
) -> bytes | None:  # fmt: skip
    """`now` with the step from `before` to `after` taken back, None where the lines of that step were changed since.

    A three-way merge by lines in which neighbours do not disturb each other: two entries that stand side by side are
    two things, which git's own merge would call a conflict. What comes back stands between those of its neighbours
    that still stand, and to what was written there since as it stood in one of the `versions`; `LookupError` where
    that does not say its place.
    """
    old, new, current = (text.splitlines(keepends=True) for text in (after, before, now))
    place: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in _steps(old, current):
        if tag == "equal":
            place.update(zip(range(i1, i2), range(j1, j2), strict=True))
    fresh = set(range(len(current))).difference(place.values())
    since = _ids(current) - _ids(old)
    result, limit, orders = list(current), len(current), _Orders(versions)
    for tag, i1, i2, j1, j2 in reversed(_steps(old, new)):
        if tag == "equal":
            continue
        block = new[j1:j2]
        if _ids(block) & since:
            if i1 == i2 and _stands(block, current):
                continue  # back already, at another place
            return None
        if i1 == i2:
            start: int | None = _spot(block, old, current, place, i1, orders)
        else:
            start = next(
                (
                    s
                    for at in _slides(old, i1, i2, j1 == j2)
                    if (s := _run(place, old, current, at, i2 - i1)) is not None
                ),
                None,
            )
        if start is None:
            return None
        there = range(start, start + j2 - j1)
        if i1 == i2 and current[start : there.stop] == block and fresh.issuperset(there):
            continue  # somebody put the lines back already
        if start + i2 - i1 > limit:
            raise LookupError
        result[start : start + i2 - i1], limit = block, start
    return b"".join(result)


class _Orders:
    """In which order lines stood, as the versions of a file have them; read when first asked."""

    __slots__ = ("_known", "_versions")

    def __init__(self, versions: Callable[[], Iterable[bytes]]) -> None:
        self._versions = versions
        self._known: list[dict[bytes, int]] | None = None

    def first(self, line: bytes, block: Sequence[bytes]) -> bool | None:
        """Whether a line stood before a block; None where they never stood in one version."""
        if self._known is None:
            self._known = [_numbered(text.splitlines()) for text in self._versions()]
        names, others = _names(line), [name for own in block for name in _names(own)]
        for known in self._known:
            one, other = (next((known[n] for n in some if n in known), None) for some in (names, others))
            if one is not None and other is not None and one != other:
                return one < other
        return None


def _numbered(lines: Sequence[bytes]) -> dict[bytes, int]:
    """Where the lines of a text stand, by what they are called; what stands there twice says nothing."""
    found: dict[bytes, int] = {}
    twice = set()
    for number, line in enumerate(lines):
        for name in _names(line)[:1]:
            twice.update({name} & found.keys())
            found[name] = number
    return {name: number for name, number in found.items() if name not in twice}


def _names(line: bytes) -> list[bytes]:
    """What a line is called: the ids of its entry and of the one it superseded, else its words; nothing when blank."""
    own = sorted(_ids([line]))
    return own + re.findall(rb"\ssupersedes=(m-[0-9a-f]{8})", line) if own else [line.strip()] * bool(line.strip())


def _spot(
    block: Sequence[bytes], old: Sequence[bytes], current: Sequence[bytes], place: Mapping[int, int], at: int,
    orders: _Orders,
) -> int:  # fmt: skip
    """Where in the current text a block belongs that stood before line `at`. `LookupError` where nothing says so."""
    left = next((i for i in range(at - 1, -1, -1) if i in place), -1)
    right = next((i for i in range(at, len(old)) if i in place), len(old))
    low, high = place[left] + 1 if left >= 0 else 0, place[right] if right < len(old) else len(current)
    if _heading(old[left + 1 : at]) and not _heading(block):  # its own heading is gone, or is called otherwise
        renamed = _heading(current[low:high])
        if _heading(old[at:right]) or not (renamed or (right < len(old) and not _heading(old[right : right + 1]))):
            raise LookupError
        low = high
    elif _heading(old[at:right]):
        high = low
    first, last = low, high
    for n in (n for n in range(low, high) if current[n].strip()):
        known = orders.first(current[n], block)
        first = n + 1 if known else first
        last = min(last, n) if known is False else last
    if first > last:
        raise LookupError
    if first > low or last < high:
        return first if first > low else last
    if low < high and left != at - 1 and right != at and not _entries([*block, *current[low:high]]):
        raise LookupError  # entries that never met may stand in any order, other lines may say what stood here
    return high if left != at - 1 and right == at else low


def _entries(lines: Sequence[bytes]) -> bool:
    """Whether each line, blank ones aside, is an entry with an id."""
    return all(_ids([line]) for line in lines if line.strip())


def _heading(lines: Sequence[bytes]) -> bool:
    return any(line.startswith(b"#") for line in lines)


def _steps(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[str, int, int, int, int]]:
    """The steps of difflib from one text to the other. What both begin and end with is equal, else a line that was
    added between two like ones is taken for a change of both.
    """
    from difflib import SequenceMatcher

    least = min(len(old), len(new))
    head = next((i for i in range(least) if old[i] != new[i]), least)
    tail = next((i for i in range(least - head) if old[-1 - i] != new[-1 - i]), least - head)
    ends = len(old) - tail, len(new) - tail
    steps = SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]], autojunk=False).get_opcodes()
    between = [(tag, head + i1, head + i2, head + j1, head + j2) for tag, i1, i2, j1, j2 in steps]
    return [("equal", 0, head, 0, head), *between, ("equal", ends[0], len(old), ends[1], len(new))]


def _ids(lines: Sequence[bytes]) -> set[bytes]:
    """The ids of the entries in these lines: no entry may be put back beside itself."""
    return set(re.findall(rb"<!--\s*(?:id:)?(m-[0-9a-f]{8})", b"".join(lines)))


def _stands(block: Sequence[bytes], lines: Sequence[bytes]) -> bool:
    """Whether the lines of a block, blank ones around it aside, stand together among others."""
    wanted = b"".join(block).strip()
    return b"\n" + wanted + b"\n" in b"\n" + b"".join(lines).replace(b"\r\n", b"\n") + b"\n"


def _run(
    place: Mapping[int, int], old: Sequence[bytes], current: Sequence[bytes], at: int, size: int
) -> int | None:  # fmt: skip
    """Where the lines from `at` on stand in the current text, None when they no longer stand together.

    Which blank line is which nobody can tell: any will do.
    """
    told = [i for i in range(size) if old[at + i].strip()] or list(range(size))
    start = place.get(at + told[0], -1) - told[0]
    together = start >= 0 and all(place.get(at + i) == start + i for i in told)
    return start if together and current[start : start + size] == old[at : at + size] else None


def _slides(old: list[bytes], i1: int, i2: int, alone: bool) -> Iterator[int]:
    """The places at which lines to be dropped may be said to stand: `blank, item` and `item, blank` are the same."""
    yield i1
    up, down = i1, i1
    while alone and up > 0 and old[up - 1] == old[up + i2 - i1 - 1]:
        up -= 1
        yield up
    while alone and down + i2 - i1 < len(old) and old[down] == old[down + i2 - i1]:
        down += 1
        yield down


def _before(repository: Repository, path: str, sha: str) -> bytes | None:
    """A file's text before a commit, None where it did not exist or the commit is the first one."""
    try:
        return repository.head(path, f"{sha}^")
    except NotFound:
        return None


def write_beside(workspace: Workspace, beside: Mapping[str, bytes], mode: int = 0o644) -> None:
    """Writes pipimem's own files that go with a change of documents. Raises `Refused` with the true reason."""
    for path, data in beside.items():
        try:
            name = os.path.join(workspace.root, *path.split("/"))
            os.makedirs(os.path.dirname(name), exist_ok=True)
            write_private(name, data, mode)
        except OSError as error:
            raise Refused(f"'{path}' could not be written: {reason(error)}.", "Free or unlock its folder.") from None


class Beside:
    """Writes pipimem's own files before the documents they go with, and puts them back when those are refused.

    A tombstone comes before the entry goes: a crash between the two leaves an entry, never a fact learned again.
    """

    __slots__ = ("_files", "_old", "_workspace")

    def __init__(self, workspace: Workspace, files: Mapping[str, bytes]) -> None:
        self._workspace = workspace
        self._files = files
        self._old: dict[str, bytes] = {}

    def __enter__(self) -> None:
        root = self._workspace.root
        self._old = {path: read_private(os.path.join(root, *path.split("/"))) or b"" for path in self._files}
        write_beside(self._workspace, self._files)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            write_beside(self._workspace, self._old)
