"""Bytes on disk that nothing can tear: pipimem's own files, and changes of several files that happen together.

A change is staged beside its targets, recorded in a journal that its process keeps locked, and renamed into place.
What a killed process left half done is finished or cleared away by the next writer. Which paths are documents, and
whether a change may be made at all, is workspace.py's.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from pipimem.errors import Busy, Conflict, Error, Refused
from pipimem.text import decode, digest, encode, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

READ_LIMIT = 50 * 1024 * 1024
SPARE = 64 * 1024
ABANDONED = 600.0
TAG, HEX = 16, frozenset("0123456789abcdef")
LOCK_WAIT, LOCK_POLL = 30.0, 0.01
READY, UNDO, DONE = "ready", "undo", "done"
UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "the folder or file is read-only for this user (no permission)",
    errno.EPERM: "the folder or file is read-only for this user (not permitted)",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EIO: "the disk reports an error",
}


class Change:
    """A file's text before (None: it is new) and after (None: it goes)."""

    __slots__ = ("after", "before", "path")

    def __init__(self, path: str, before: bytes | None, after: bytes | None) -> None:
        self.path = path
        self.before = before
        self.after = after

    def diff(self) -> str:
        """The change as a unified diff, the same for a dry run and for the run."""
        import difflib

        old, new = ([decode(x) for x in (t or b"").splitlines(keepends=True)] for t in (self.before, self.after))
        name_old = f"a/{self.path}" if self.before is not None else "/dev/null"
        name_new = f"b/{self.path}" if self.after is not None else "/dev/null"
        lines = difflib.unified_diff(old, new, name_old, name_new)
        return "".join(x if x.endswith("\n") else x + "\n\\ No newline at end of file\n" for x in lines)


def reason(error: OSError, *, reading: bool = False) -> str:
    """Why the system refused a write (or, `reading`, a look), in words a person can act on."""
    if reading and isinstance(error, PermissionError):
        return "no permission to read it"
    return REASONS.get(error.errno or 0, (error.strerror or type(error).__name__).lower())


def read_regular(path: str) -> bytes:
    """The bytes of a regular file of at most 50 MB. `OSError` for anything else; a pipe is never waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if found.st_size > READ_LIMIT:
            raise OSError(errno.EFBIG, f"larger than {READ_LIMIT // 1024 // 1024} MB")
        parts = []
        while part := os.read(handle, max(found.st_size, 4096) + 1):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def write_private(path: str, data: bytes, mode: int = 0o600) -> None:
    """Writes one of pipimem's own files whole or not at all, durably; a link there is replaced, not followed."""
    folder = os.path.dirname(path)
    name = _temporary(folder, os.urandom(8).hex())
    try:
        _write_new(name, data, mode)
        os.replace(name, path)
    except BaseException:
        _remove(name)
        raise
    sync_folder(folder)


def append_private(path: str, line: str, *, durable: bool = False) -> None:
    """Appends one line to one of pipimem's own logs, in one write; a line cut off before it stays a line of its own.

    With `durable` it outlives a power cut. A link in its place is not followed: `OSError`.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        _write_all(handle, encode(("\n" if torn else "") + line.rstrip("\n") + "\n"))
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: str) -> None:
    """Makes renames in `folder` durable, where its file system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def locked(folder: str, names: Sequence[str], wait: float | None = None) -> AbstractContextManager[None]:
    """Holds the named locks of `folder` in the order given. Raises `Busy` after `wait` seconds (30; 0: at once).

    Where a lock cannot be taken at all, `Refused` says why at once.

    The system lets go of a dead process's lock. Who holds one stands beside it in `NAME.owner`, so that a refusal can
    name the process, and say when it is gone and only its network disk still believes in it.
    """
    from contextlib import ExitStack, contextmanager

    from filelock import FileLock, Timeout

    @contextmanager
    def held() -> Iterator[None]:
        with ExitStack() as stack:
            for name in names:
                path = os.path.join(folder, name + ".lock")
                try:
                    if os.path.islink(path):
                        raise Refused(f"The lock '{path}' is a link.", "Delete it and try again.")
                    stack.enter_context(FileLock(path).acquire(LOCK_WAIT if wait is None else wait, LOCK_POLL))
                except Timeout:
                    raise _taken(path) from None
                except OSError as error:
                    raise Refused(
                        f"The lock '{path}' cannot be taken: {reason(error)}.", "Nothing was changed."
                    ) from None
                stack.callback(_try, os.unlink, _owner_file(path))
                _try(_write_owner, _owner_file(path))
            yield

    return held()


def _owner_file(path: str) -> str:
    return path.removesuffix(".lock") + ".owner"


def _write_owner(path: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        _write_all(handle, encode(f"{os.getpid()} {int(time.time())} {os.uname().nodename}\n"))
    finally:
        os.close(handle)


def _taken(path: str) -> Busy:
    """What to say of a lock that is not let go: whose it is, as far as that is known."""
    try:
        words = decode(read_regular(_owner_file(path))).split()
        pid, since, host = int(words[0]), time.strftime("%H:%M:%S", time.localtime(int(words[1]))), words[2]
    except (OSError, ValueError, IndexError):
        return Busy(f"Another process holds the lock '{path}'.", "Try again in a moment.")
    who = f"process {pid} on '{printable(host)}'"
    if host != os.uname().nodename or lives(pid):
        return Busy(f"The lock '{path}' is held by {who} since {since}.", "Try again when it is done.")
    return Busy(f"The lock '{path}' was taken by {who}, which is gone.", "Delete the lock and try again.")


def lives(pid: int) -> bool:
    """Whether a process of that number runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def stamp(path: str) -> tuple[int, int, int] | None:
    """What changes when anybody saves the file: inode, size, time of change. None where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class Step:
    """One file of a change on disk: where it really is, the digests before and after, its two temporary names.

    `fresh` will hold the new text and `backup` the old one, both beside the target; None as a digest means no file.
    """

    __slots__ = ("after", "backup", "before", "fresh", "path", "target")

    def __init__(self, path: str, target: str, digests: tuple[str | None, str | None], tag: str) -> None:
        self.path = path
        self.target = target
        self.before, self.after = digests
        self.fresh = _temporary(os.path.dirname(target), tag + ".new")
        self.backup = _temporary(os.path.dirname(target), tag + ".old")

    def stage(self, change: Change) -> None:
        """Both texts on disk beside the target, with its mode and owner. Nothing that matters has changed yet."""
        if os.path.exists(self.target) and not os.access(self.target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        for name, data in ((self.fresh, change.after), (self.backup, change.before)):
            if data is not None:
                _write_new(name, data, like=self.target)

    def publish(self) -> None:
        """The new text takes the place of the old one, durably."""
        if self.after is None:
            os.unlink(self.target)
        else:
            os.replace(self.fresh, self.target)
        sync_folder(os.path.dirname(self.target))

    def take_back(self) -> None:
        """The old text takes its place again, unless somebody saved something else there."""
        if self.before == self.after or _digest_of(self.target) != self.after:
            return
        if self.before is None:
            os.unlink(self.target)
        elif os.path.exists(self.backup):
            os.replace(self.backup, self.target)

    def due(self) -> bool:
        """Whether the target still holds the old text."""
        return _digest_of(self.target) == self.before

    def staged(self) -> bool:
        """Whether the new text is there to be published."""
        return self.after is None or _digest_of(self.fresh) == self.after

    def clear(self) -> bool:
        """Removes both temporary files; whether they are gone."""
        return all([_remove(self.fresh), _remove(self.backup)])


class Journal:
    """The record of one change on disk, one JSON value a line: its rows, then how far it came.

    Its file stays locked while its process lives, so one that can be locked belongs to a dead process. To make or to
    judge one, the lock "journal" is held.
    """

    __slots__ = ("handle", "path", "tag")

    def __init__(self, path: str, flags: int = 0) -> None:
        import fcntl

        self.path = path
        self.tag = os.path.basename(path)
        self.handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | flags, 0o600)
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self.handle)
            raise

    def note(self, value: object, *, durable: bool = False) -> None:
        """One more line; with `durable` all lines so far outlive a power cut."""
        import json

        _write_all(self.handle, json.dumps(value).encode("ascii") + b"\n")
        if durable:
            os.fsync(self.handle)
            sync_folder(os.path.dirname(self.path))

    def read(self) -> tuple[list[Any], str]:
        """The rows and the last whole word. Rows that were cut off are none: nothing was staged by then."""
        import json

        first, *rest = os.pread(self.handle, READ_LIMIT, 0).decode("ascii", "replace").split("\n")
        words = [word for line in rest for word in (READY, UNDO, DONE) if line == json.dumps(word)]
        try:
            rows = json.loads(first)
        except ValueError:
            rows = []
        return rows if isinstance(rows, list) else [], words[-1] if words else ""

    def close(self, *, keep: bool = False) -> None:
        """Lets go of the record, and removes it unless the next writer has to see it."""
        if not keep:
            _remove(self.path)
        os.close(self.handle)


class _Naming:
    """Turns what the system says about one file into a refusal that names it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            message = f"'{printable(self.path)}' could not be written: {reason(error)}."
            raise Refused(message, "Nothing was changed.") from None


def write_together(changes: Sequence[tuple[Change, str, object]], private: str) -> None:
    """Writes every (change, its real target, the target's `stamp` when it was read), or none of them.

    `private` is the workspace's `.pipimem`. Raises `Conflict` when a file is no longer the one that was read, else
    `Refused` with the true reason. Then every file is as before; where even taking back failed, the error says so
    and the next `recover` does it. A folder whose names cannot be made durable counts as a failed write.
    """
    tag = os.urandom(TAG // 2).hex()
    steps = [
        Step(c.path, target, (_digest(c.before), _digest(c.after)), f"{tag}-{number}")
        for number, (c, target, _) in enumerate(changes)
    ]
    with _Naming(steps[0].path):
        _check_room(private, sum(len(c.before or b"") + len(c.after or b"") for c, _, _ in changes))
        journal = _begin(private, tag, [[s.path, s.before, s.after] for s in steps])
    folders: list[str] = []
    published: list[Step] = []
    try:
        _stage(steps, changes, folders)
        if len(steps) > 1:
            with _Naming(steps[0].path):
                journal.note(READY, durable=True)
        _publish(steps, changes, published)
    except BaseException:
        _try(journal.note, UNDO, durable=True)  # read only if we are killed now, or cannot tidy up
        _take_back(published, journal)
        journal.close(keep=not _clear(steps, folders))
        raise
    _try(journal.note, DONE)
    journal.close(keep=not _clear(steps))


def _stage(steps: Sequence[Step], changes: Sequence[tuple[Change, str, object]], folders: list[str]) -> None:
    for step, (change, _, _) in zip(steps, changes, strict=True):
        with _Naming(step.path):
            _make_folders(os.path.dirname(step.target), folders)
            step.stage(change)


def _publish(steps: Sequence[Step], changes: Sequence[tuple[Change, str, object]], published: list[Step]) -> None:
    for step, (_, _, seen) in zip(steps, changes, strict=True):
        with _Naming(step.path):
            if stamp(step.target) != seen:
                raise Conflict(f"'{printable(step.path)}' has changed since it was read.", "Try again.")
            published.append(step)
            step.publish()


def _check_room(private: str, size: int) -> None:
    found = os.statvfs(private)
    if found.f_blocks and found.f_bavail * found.f_frsize < size + SPARE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _begin(private: str, tag: str, rows: list[list[str | None]]) -> Journal:
    folder = own_folder(private, "journal")
    with locked(own_folder(private, "locks"), ["journal"]):
        journal = Journal(os.path.join(folder, tag), os.O_CREAT | os.O_EXCL)
        try:
            journal.note(rows)
        except BaseException:
            journal.close()
            raise
    return journal


def _take_back(published: Sequence[Step], journal: Journal) -> None:
    """Puts the old texts back, last first. Raises `Refused` when the disk allows not even that."""
    try:
        for step in reversed(published):
            step.take_back()
    except OSError as error:
        journal.close(keep=True)
        raise Refused(
            f"'{printable(published[0].path)}' could not be written, and not be put back: {reason(error)}.",
            "The next write puts it back.",
        ) from None
    for step in published:
        _try(sync_folder, os.path.dirname(step.target))


def _clear(steps: Sequence[Step], folders: Sequence[str] = ()) -> bool:
    cleared = [step.clear() for step in steps]
    for folder in reversed(folders):
        _try(os.rmdir, folder)
    return all(cleared)


def recover(private: str, resolve: Callable[[str], str]) -> list[str]:
    """Settles what killed processes left half done; returns the paths of the files that got their new text.

    A change that was ready is finished, any other is cleared away; a file somebody saved since is left as it is.
    `resolve` gives a document's real target, or raises `Error`. The caller holds the locks of what it goes on to read.
    """
    folder = own_folder(private, "journal")
    names = sorted(name for name in os.listdir(folder) if len(name) == TAG and set(name) <= HEX)
    finished: list[str] = []
    with locked(own_folder(private, "locks"), ["journal"] if names else []):
        for name in names:
            try:
                journal = Journal(os.path.join(folder, name))
            except OSError:  # its process lives, or it is gone
                continue
            finished += _settle(journal, resolve)
    return finished


def _settle(journal: Journal, resolve: Callable[[str], str]) -> list[str]:
    finished: list[str] = []
    try:
        rows, word = journal.read()
        steps = list(_steps(rows, journal.tag, resolve))
        if word == READY and all(step.staged() for step in steps if step.due()):
            for step in steps:
                if step.due():
                    step.publish()
                    finished.append(step.path)
        elif word in (READY, UNDO):
            for step in reversed(steps):
                step.take_back()
        cleared = _clear(steps)
    except OSError:  # not now: the next writer tries again
        cleared = False
    journal.close(keep=not cleared)
    return finished


def _steps(rows: Sequence[Any], tag: str, resolve: Callable[[str], str]) -> Iterator[Step]:
    """The steps of a journal. What it names beside them follows from its own name, so it can reach nothing else."""
    for number, row in enumerate(rows):
        match row:
            case [str(path), None | str() as before, None | str() as after]:
                try:
                    yield Step(path, resolve(path), (before, after), f"{tag}-{number}")
                except Error:
                    continue


def own_folder(base: str, name: str, mode: int = 0o700) -> str:
    """A folder of pipimem's own, made where it is missing. Raises `Refused` where something else has its place."""
    folder = os.path.join(base, name)
    if os.path.islink(folder) or (os.path.lexists(folder) and not os.path.isdir(folder)):
        raise Refused(f"'{folder}' is a link or no folder.", "Move it away; pipimem makes its own.")
    os.makedirs(folder, mode=mode, exist_ok=True)
    return folder


def sweep(folder: str) -> None:
    """Removes temporary files no journal knows any more: those older than ten minutes, from before a power cut."""
    try:
        found = [os.path.join(folder, name) for name in os.listdir(folder) if is_temporary(name)]
        old = [path for path in found if time.time() - os.lstat(path).st_mtime > ABANDONED]
    except OSError:
        return
    for path in old:
        _remove(path)


def is_temporary(name: str) -> bool:
    """Whether a file name is one of those a write gives to what it has not published yet."""
    return name.startswith(".pipimem-") and name.endswith(".tmp")


def _temporary(folder: str, tag: str) -> str:
    return os.path.join(folder, f".pipimem-{tag}.tmp")


def _make_folders(folder: str, made: list[str]) -> None:
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folders(parent, made)
    os.mkdir(folder)
    made.append(folder)
    sync_folder(parent)


def _write_new(name: str, data: bytes, mode: int = 0o666, like: str = "") -> None:
    """A new file with these bytes, synced; `like` a file whose mode and owner it takes over, where there is one."""
    model = os.stat(like) if like and os.path.exists(like) else None
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode if model is None else 0o600)
    try:
        _write_all(handle, data)
        if model is not None:
            _take_over(handle, like, model)
        os.fsync(handle)
    finally:
        os.close(handle)


def _take_over(handle: int, like: str, model: os.stat_result) -> None:
    """Owner and extended attributes stay where we may set them, as with any editor; the mode always does."""
    if (model.st_uid, model.st_gid) != (os.geteuid(), os.getegid()):
        _try(os.fchown, handle, model.st_uid, model.st_gid)
    os.fchmod(handle, stat.S_IMODE(model.st_mode))
    if hasattr(os, "listxattr"):
        try:
            for name in os.listxattr(like):
                os.setxattr(handle, name, os.getxattr(like, name))
        except OSError:
            return


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _digest(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def _digest_of(path: str) -> str | None:
    try:
        return digest(read_regular(path))
    except FileNotFoundError:
        return None


def _remove(path: str) -> bool:
    return _try(os.unlink, path) or not os.path.lexists(path)


def _try(act: Callable[..., object], *arguments: object, **named: object) -> bool:
    """Whether it could be done: what is only tidying, or may be impossible here, must not stop the rest."""
    try:
        act(*arguments, **named)
    except OSError:
        return False
    return True
