"""Bytes of a host's file → JSON lines: read-only, streamed, bounded; compressed files through an optional package.

Every file a transcript comes from is opened here (databases: `database`). What a line means is the importers'.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import stat
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, BinaryIO

from pipimem.errors import Unreadable
from pipimem.importers.draft import count, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD = 64 * 1024
CHUNK = 1024 * 1024
LINE_LIMIT = 8 * 1024 * 1024  # of one line without the images in it
SIZE_LIMIT = 8 * 1024**3  # of one file, unpacked; rollouts of 2 GB have been met
BLOB_LIMIT = 512 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=_-]")
RUN = 256  # characters of base64 in a row that are no word
IMAGE = (b";base64,", b'"data":"', b'"data": "')
OVERLAP = max(map(len, IMAGE))
DEPTH = 12


class Part:
    """A stretch of whole lines: the bytes from `start` to `end`, and the number of its first line."""

    __slots__ = ("end", "line", "start")

    def __init__(self, start: int = 0, end: int = SIZE_LIMIT, line: int = 1) -> None:
        self.start, self.end, self.line = start, end, line


class Lines:
    """The JSON lines of a file: number, byte offset and value of each; bad, cut and over-long ones are counted.

    `peek` sees the first megabyte of a line and may take it (true) before it is parsed. After a full pass `digest`
    is that of all bytes. Base64 in a line over a megabyte is left out of it while it is read. With a `part` only its
    lines are read. `at` is where the line given last ends.
    """

    def __init__(
        self, path: str, skipped: dict[str, int], *, peek: Callable[[bytes], bool] | None = None,
        limit: int = LINE_LIMIT, part: Part | None = None,
    ) -> None:  # fmt: skip
        self.path, self.skipped, self.limit = path, skipped, limit
        self.part = part or Part()
        self._peek = peek
        self._hash = blake2b(digest_size=16)
        self._at = 0

    @property
    def at(self) -> int:
        """Where the line given last ends, in bytes of the (unpacked) file."""
        return self._at

    @property
    def digest(self) -> str:
        """BLAKE2b of what was read so far, 32 hex characters."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        self._at = self.part.start
        number = self.part.line - 1
        with opened(self.path) as file:
            if self._at:
                file.seek(self._at)
            while self._at < self.part.end and (raw := self._line(file)):
                number += 1
                start = self._at - len(raw)
                whole = raw.endswith(b"\n") or len(raw) < CHUNK
                if self._peek and self._peek(raw):
                    self._drain(file, whole)
                    continue
                text = raw if whole else self._long(file, raw)
                found, value = self._value(text)
                if found:
                    yield number, start, value

    def _value(self, raw: bytes) -> tuple[bool, Any]:
        text = raw.removeprefix(BOM).strip()
        if not text:
            return False, None
        try:
            return True, parse(text.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            count(self.skipped, "not JSON" if raw.endswith(b"\n") else "half a line")
            return False, None

    def _line(self, file: BinaryIO) -> bytes:
        try:
            raw = file.readline(CHUNK)
        except broken() as error:
            if isinstance(error, OSError):
                raise _unreadable(self.path, error) from None
            count(self.skipped, "damaged compression")
            return b""
        self._hash.update(raw)
        self._at += len(raw)
        if self._at > SIZE_LIMIT:
            count(self.skipped, "too long")
            return b""
        return raw

    def _drain(self, file: BinaryIO, whole: bool) -> None:
        while not whole:
            rest = self._line(file)
            whole = not rest or rest.endswith(b"\n")

    def _long(self, file: BinaryIO, raw: bytes) -> bytes:
        parts, size, carry, inside = list[bytes](), 0, raw, False
        while True:
            last = carry.endswith(b"\n")
            text, inside, carry = _shrunk(carry, inside, last)
            parts.append(text)
            size += len(text)
            if size > self.limit:
                count(self.skipped, "too long")
                self._drain(file, last)
                return b""
            rest = b"" if last else self._line(file)
            if not rest:
                return b"".join([*parts, carry])
            carry += rest


def _shrunk(data: bytes, inside: bool, last: bool) -> tuple[bytes, bool, bytes]:
    """`data` without long base64 runs; whether it ends within one; the end held back for the next chunk."""
    out, kept = list[bytes](), 0
    end = _run_end(data, 0) if inside else 0
    marks = {mark: data.find(mark, end) for mark in IMAGE}
    while end < len(data):
        kept = end if inside else kept
        ahead = [i + len(mark) for mark, i in marks.items() if i >= 0]
        if not ahead:
            hold = len(data) if last else max(kept, len(data) - OVERLAP)
            return b"".join([*out, data[kept:hold]]), False, data[hold:]
        start = min(ahead)
        end = _run_end(data, start)
        inside = end - start >= RUN or end == len(data)
        if inside:
            out.append(data[kept:start])
        marks = {mark: data.find(mark, end) if 0 <= i < end else i for mark, i in marks.items()}
    return b"".join(out), True, b""


def _run_end(data: bytes, start: int) -> int:
    found = NOT_BASE64.search(data, start)
    return found.start() if found else len(data)


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file for reading, unpacked where its name ends in `.zst`.

    Raises `Unreadable` for what is no regular file, over 8 GB, not readable, or compressed without the package for it.
    """
    try:
        check(path)
        file = unpacked(path) if path.endswith(".zst") else open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise _unreadable(path, error) from None
    with file:
        yield file


def check(path: str) -> None:
    """That `path` is a regular file of at most 8 GB; else `OSError` or `Unreadable`."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if found.st_size > SIZE_LIMIT:
        raise Unreadable(f"The transcript '{path}' is larger than 8 GB.", "Leave it out, or split it.")


def _unreadable(path: str, error: OSError) -> Unreadable:
    reason = (error.strerror or "unknown error").lower()
    return Unreadable(f"The transcript '{path}' cannot be read: {reason}.", "Check the path.")


def head(path: str) -> bytes:
    """The first 64 kB of a file, unpacked; less where it is damaged. Raises `Unreadable`."""
    with opened(path) as file:
        try:
            return file.read(HEAD)
        except broken() as error:
            if isinstance(error, OSError):
                raise _unreadable(path, error) from None
            return b""


def digest(path: str, size: int = SIZE_LIMIT) -> str:
    """BLAKE2b of the first `size` bytes of a file, unpacked: of the whole, what `Lines` gives after a full pass.

    So a grown file is known by its old beginning, and a packed rollout is the plain one.
    """
    found = blake2b(digest_size=16)
    with opened(path) as file:
        try:
            while size > 0 and (data := file.read(min(CHUNK, size))):
                found.update(data)
                size -= len(data)
        except broken() as error:
            if isinstance(error, OSError):
                raise _unreadable(path, error) from None
    return found.hexdigest()


def zstd() -> Any:
    """The module that unpacks Zstandard: Python's own since 3.14, else the `zstandard` package, else none."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def broken() -> tuple[type[Exception], ...]:
    """What reading a damaged file may raise."""
    module = zstd()
    return (OSError, EOFError, *([module.ZstdError] if module else []))


def unpacked(path: str) -> BinaryIO:
    """The content of a `.zst` file as a stream. Raises `Unreadable` where no package can unpack it."""
    module = zstd()
    if module is None:
        raise Unreadable(f"The transcript '{path}' is compressed.", "Run: pip install 'pipimem[zstd]'")
    if hasattr(module, "ZstdFile"):
        stream: BinaryIO = module.open(path, "rb")
        return stream
    raw = module.ZstdDecompressor().stream_reader(open(path, "rb"), read_across_frames=True)  # noqa: SIM115
    return io.BufferedReader(raw, CHUNK)


def ends(path: str) -> list[dict[str, Any]]:
    """The records in the first and the last 64 kB of a file of JSON lines (compressed: the first only).

    A first line that is longer is read to its end, at most 1 MB: headers hold whole instruction files.
    """
    with opened(path) as file:
        try:
            start = file.read(HEAD)
            start += file.readline(CHUNK) if b"\n" not in start else b""
            size = len(start) if path.endswith(".zst") else file.seek(0, os.SEEK_END)
            last = b""
            if size > len(start):
                file.seek(max(len(start), size - HEAD))
                last = file.read(HEAD)
        except broken() as error:
            if isinstance(error, OSError):
                raise _unreadable(path, error) from None
            return []
    return _rows(start.splitlines()) + _rows(last.splitlines()[1:])


def unpack(data: bytes, encoding: str) -> bytes | None:
    """A blob a host packed (`zstd`, or as it is), at most 512 MB of it; none where it cannot be unpacked."""
    if encoding != "zstd":
        return data
    module = zstd()
    if module is None:
        return None
    try:
        if hasattr(module, "ZstdFile"):
            with module.open(io.BytesIO(data), "rb") as stream:
                return bytes(stream.read(BLOB_LIMIT))
        with module.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as stream:
            return bytes(stream.read(BLOB_LIMIT))
    except broken():
        return None


def parsed(lines: list[bytes], skipped: dict[str, int]) -> Iterator[tuple[int, int, Any]]:
    """The JSON lines of a blob as `Lines` gives those of a file; the offset is the line's number."""
    for number, line in enumerate(lines, 1):
        try:
            yield number, number, parse(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            count(skipped, "not JSON")


def _rows(lines: list[bytes]) -> list[dict[str, Any]]:
    rows = []
    for line in lines:
        try:
            row = parse(line.removeprefix(BOM).decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        rows += [row] if isinstance(row, dict) else []
    return rows


def walk(root: str, skipped: dict[str, int]) -> Iterator[str]:
    """The files below `root` by name, at most 12 folders deep.

    Links are not followed: what they name inside `root` is met anyway, and what lies outside is counted.
    """
    return _walk(root, os.path.realpath(root), skipped, DEPTH)


def _walk(folder: str, top: str, skipped: dict[str, int], depth: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:
        count(skipped, "unreadable folder")
        return
    for entry in entries:
        if entry.is_symlink():
            if not (os.path.realpath(entry.path) + "/").startswith(top.rstrip("/") + "/"):
                count(skipped, "link out of the folder")
        elif entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _walk(entry.path, top, skipped, depth - 1)
        elif entry.is_file():
            yield entry.path
