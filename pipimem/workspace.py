"""The files: where a workspace is, its channels and documents, reading them, and which writes are let through.

A write succeeds only on the bytes that were read; how several files change together or not at all is files.py's,
channel ids and folder names are channels.py's. What the bytes mean is markdown.py's and update's; git is git.py's.
"""

from __future__ import annotations

import errno
import os
import stat
from unicodedata import normalize

from pipimem import safety
from pipimem.channels import MARK as MARK
from pipimem.channels import Channel as Channel
from pipimem.channels import channel_id, folder_name, kind_of, odd_character, read_mark, same_id
from pipimem.config import FORMAT, Config, load
from pipimem.errors import Conflict, Refused, Unreadable, Usage
from pipimem.files import (
    READ_LIMIT,
    locked,
    own_folder,
    read_regular,
    reason,
    recover,
    stamp,
    sweep,
    write_together,
)
from pipimem.files import Change as Change
from pipimem.files import append_private as append_private
from pipimem.files import write_private as write_private
from pipimem.text import decode, digest, encode, nearest, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

PRIVATE = ".pipimem"
APPEND_ONLY = 2 * 1024 * 1024
LAYERS = {
    "SOUL.md": "identity",
    "AGENTS.md": "identity",
    "STANDING.md": "standing",
    "MEMORY.md": "memory",
    "USER.md": "user",
    "SESSION.md": "session",
    "HISTORY.md": "history",
    "HISTORY.archive.md": "archive",
}
SHARED_FILES = ("SOUL.md", "AGENTS.md", "STANDING.md", "MEMORY.md", "USER.md")
CHANNEL_FILES = (
    "SESSION.md",
    "MEMORY.md",
    "HISTORY.md",
    "HISTORY.archive.md",
    "SOUL.md",
    "AGENTS.md",
    "USER.md",
)
FOLDERS = {"memory": "note", "memories": "memory", "skills": "skill"}
TAKEN = (*FOLDERS, "review")
INSIDE = {"memories/USER.md": "user", "memory/MEMORY.md": "memory", "memory/HISTORY.md": "history"}
OLDER = "memory.md"  # what minimem calls MEMORY.md, too
NO_DOCUMENT = "not one of the documents' names and places"
ODD_NAME = "its name holds a backslash, a control character or a byte that is no UTF-8"
FOLDER_LINK = "a link to a folder"
COPIES = (".sync-conflict-", "conflicted copy", "冲突")


class Document:
    """One Markdown file in scope: path relative to the workspace (`/`), channel id ("" = shared), layer, stat."""

    __slots__ = ("channel", "layer", "path", "stat")

    def __init__(self, path: str, channel: str, layer: str, found: os.stat_result) -> None:
        self.path = path
        self.channel = channel
        self.layer = layer
        self.stat = found

    @property
    def stamp(self) -> str:
        """What changes whenever the file does: size, both times, inode."""
        s = self.stat
        return f"{s.st_size}.{s.st_mtime_ns}.{s.st_ctime_ns}.{s.st_ino}"


class Scan:
    """What a look at the files found.

    `documents`; `skipped` (path, reason): what should be a document and cannot be read, so that an empty answer is no
    answer; `remarks` (path, what): what is there and is no document, or needs a word.
    """

    __slots__ = ("documents", "remarks", "seen", "skipped")

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.skipped: list[tuple[str, str]] = []
        self.remarks: list[tuple[str, str]] = []
        self.seen: dict[tuple[int, int], str] = {}


def looks_like(root: str) -> bool:
    """Whether a folder holds something of a workspace: settings, channels, or one of the memory files."""
    names = ("pipimem.toml", "channels", "MEMORY.md", "memory", "memories", "SOUL.md", "STANDING.md", OLDER)
    return any(os.path.exists(os.path.join(root, name)) for name in names) or bool(_root_channels(root))


def find(start: str | None = None) -> str:
    """The workspace root: `start` or `PIPIMEM_WORKSPACE` as given, else the nearest parent with a `pipimem.toml`,
    else the current folder if it looks like a workspace. Raises `Unreadable`.
    """
    if start == "":
        raise Usage("The workspace is given as an empty path.", "Check -w.")
    given = start or os.environ.get("PIPIMEM_WORKSPACE")
    return _given(given) if given else _nearest()


def above(folder: str) -> str:
    """The folder, or the nearest one above it, that has a `pipimem.toml`; "" where none has."""
    while not os.path.exists(os.path.join(folder, "pipimem.toml")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder


def _given(folder: str) -> str:
    if not os.path.isdir(folder):
        raise Unreadable(
            f"There is no workspace folder '{printable(folder)}'.", "Check -w, or make one with 'pipimem init'."
        )
    if not os.access(folder, os.R_OK | os.X_OK):
        raise Unreadable(f"The workspace '{printable(folder)}' cannot be read.", "Check its permissions.")
    if not looks_like(folder):
        raise Unreadable(
            f"The folder '{printable(folder)}' is no workspace: it has no pipimem.toml, channels or memory files.",
            "Make it one with 'pipimem init DIR', or check -w.",
        )
    # Without links `..` may be taken textually; behind one only the system knows where it leads.
    return os.path.realpath(folder) if ".." in folder.split("/") else folder


def _nearest() -> str:
    try:
        here = os.getcwd()
    except OSError:
        raise Unreadable("The current folder is gone.", "Change to another, or give one with -w DIR.") from None
    if root := above(here):
        return root
    if looks_like(here):
        return here
    raise Unreadable(
        f"No workspace was found in '{printable(here)}' or above it.",
        "Give one with -w DIR, or make one with 'pipimem init'.",
    )


def _root_channels(root: str) -> list[str]:
    """Channel folders that stand at the root, as pipiclaw keeps them: with a SESSION, or MEMORY and HISTORY."""
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return []
    found = []
    for name in names:
        folder = os.path.join(root, name)
        if name.startswith(".") or name in TAKEN or not os.path.isdir(folder):
            continue
        has = [os.path.exists(os.path.join(folder, f)) for f in ("SESSION.md", "MEMORY.md", "HISTORY.md")]
        if has[0] or (has[1] and has[2]):
            found.append(name)
    return found


class Workspace:
    """One workspace folder. Reading never writes; `write` is the only writer of documents."""

    def __init__(self, root: str, config: Config | None = None) -> None:
        self.root = os.path.abspath(root)
        self.config = config or load(self.root)
        folder = self._channels_setting()
        self.notes_folder = self._notes_setting(folder)
        at_root = folder == "channels" and not self.notes_folder and not os.path.isdir(os.path.join(self.root, folder))
        self.channels_folder = "." if at_root and _root_channels(self.root) else folder

    def _channels_setting(self) -> str:
        return _own_folder_of("channels", self.config["workspace.channels"])

    def _notes_setting(self, channels: str) -> str:
        """The folder of further notes, "." for the root, "" for none; never one in which channels are."""
        said = self.config["workspace.notes"]
        if not said:
            return ""
        folder = _own_folder_of("notes", said)
        apart = not f"{folder}/".startswith(f"{channels}/") and not f"{channels}/".startswith(f"{folder}/")
        if channels == "." or not apart:
            raise Usage(
                f"The notes folder '{printable(said)}' holds channels, or is one.", "Name a folder of their own."
            )
        return folder

    def trust(self) -> None:
        """Reads the settings from their files where they came from the cache; before anything is written."""
        if not self.config.trusted:
            self.config = load(self.root)
        version = self.config["workspace.format"]
        if version > FORMAT:
            raise Refused(
                f"The workspace '{self.root}' has format {version}; this pipimem knows {FORMAT}.",
                "Update pipimem.",
            )

    def private(self, *parts: str) -> str:
        """An absolute path below `.pipimem`."""
        return os.path.join(self.root, PRIVATE, *parts)

    def absolute(self, path: str) -> str:
        """The absolute path of a document's relative path. Raises `Refused` for any path that is no document."""
        if not self.is_document(path):
            raise Refused(f"'{printable(path)}' is no document of this workspace.", "See 'pipimem status'.")
        return os.path.join(self.root, *path.split("/"))

    def is_document(self, path: str) -> bool:
        """Whether a relative path names a document: by its form alone, whether or not the file exists."""
        parts = path.split("/")
        if any(p in ("", ".", "..") for p in parts) or _odd(path) or not path.endswith(".md"):
            return False
        inside = self.channels_folder.split("/") if self.channels_folder != "." else []
        if len(parts) > len(inside) + 1 and parts[: len(inside)] == inside and not parts[len(inside)].startswith("."):
            rest = parts[len(inside) + 1 :]
            if rest[0] == "memory" or (rest[0] in CHANNEL_FILES and len(rest) == 1):
                return True
        if len(parts) == 1 and parts[0] in (*SHARED_FILES, OLDER):
            return True
        if self._is_further_note(parts):
            return True
        return len(parts) > 1 and (
            parts[0] in ("memory", "review")
            or (parts[0] == "memories" and len(parts) == 2)
            or (parts[0] == "skills" and len(parts) == 3 and parts[2] == "SKILL.md")
        )

    def _is_further_note(self, parts: list[str]) -> bool:
        """Whether a path lies in the folder of further notes; at the root, where nothing else has its place."""
        if not self.notes_folder or any(part.startswith(".") for part in parts):
            return False
        if self.notes_folder == ".":
            return parts[0] not in (*TAKEN, self.channels_folder.split("/")[0], *CHANNEL_FILES)
        inside = self.notes_folder.split("/")
        return len(parts) > len(inside) and parts[: len(inside)] == inside

    def target(self, path: str) -> str:
        """Where a document really is: a link to a file is followed, if it stays among the workspace's own files.

        Raises `Unreadable` for a link that leads elsewhere, and for anything behind a link to a folder.
        """
        full, root = self.absolute(path), os.path.realpath(self.root)
        plain = os.path.join(root, *path.split("/"))
        if not self._meets_link(path):
            return plain
        real = os.path.realpath(full)
        if real == plain:
            return real
        if os.path.realpath(os.path.dirname(full)) != os.path.dirname(plain):
            raise Unreadable(f"'{printable(path)}' is behind a link to a folder.", "Such links are not followed.")
        if not _may_lead_to(real, root):
            raise Unreadable(f"The link '{printable(path)}' leads out of the workspace.", "It is not followed.")
        return real

    def _meets_link(self, path: str) -> bool:
        """Whether a document or one of the folders it is in is a link; a tenth of what `realpath` costs."""
        at = self.root
        for part in path.split("/"):
            at = f"{at}/{part}"
            try:
                if stat.S_ISLNK(os.lstat(at).st_mode):
                    return True
            except OSError:  # nothing is there, or nothing that could be opened
                return False
        return False

    def channels(self) -> list[Channel]:
        """Every channel, by id. Raises `Unreadable` when their folder cannot be listed."""
        try:
            return self._list_channels(Scan())
        except OSError as error:
            raise Unreadable(
                f"The folder '{self.channels_folder}' cannot be read: {reason(error, reading=True)}.",
                "Check its permissions.",
            ) from None

    def _list_channels(self, scan: Scan) -> list[Channel]:
        """The channels, one for each id; the folders that are none go into `scan`, with the reason."""
        found: list[Channel] = []
        for name in self._channel_names():
            path = self._channel_path(name)
            folder = f"{self.root}/{path}"
            if name.startswith(".") or not os.path.isdir(folder):
                continue
            if os.path.islink(folder):
                scan.skipped.append((path, FOLDER_LINK))
            elif _odd(name) or not name.strip():
                scan.skipped.append((path, ODD_NAME))
            else:
                found.append(self._channel(path, name))
        return _one_for_each(found, scan)

    def _channel_names(self) -> list[str]:
        if self.channels_folder == ".":
            return _root_channels(self.root)
        base = os.path.join(self.root, self.channels_folder)
        if os.path.islink(base):
            raise OSError(errno.ELOOP, FOLDER_LINK)
        try:
            return os.listdir(base)
        except FileNotFoundError:
            return []

    def _channel_path(self, name: str) -> str:
        return name if self.channels_folder == "." else f"{self.channels_folder}/{name}"

    def _channel(self, path: str, name: str) -> Channel:
        identity, said = read_mark(os.path.join(self.root, path))
        identity = identity or channel_id(name)
        return Channel(identity, kind_of(identity, self.config["workspace.kinds"], said), path)

    def channel(self, identity: str) -> Channel:
        """The channel with that id (NFC and NFD are one). Raises `Unreadable` with the nearest ids."""
        found = self._find_channel(identity)
        if found is None:
            near = nearest(identity, (c.id for c in self.channels()))
            hint = f"Nearest: {', '.join(near)}." if near else "See 'pipimem channel list'."
            raise Unreadable(f"There is no channel '{printable(identity)}'.", hint)
        if not os.access(os.path.join(self.root, found.path), os.R_OK | os.X_OK):
            raise Unreadable(f"The channel '{printable(identity)}' cannot be read.", "Check its permissions.")
        return found

    def _find_channel(self, identity: str) -> Channel | None:
        """The folder of that name first: then nothing else has to be looked at."""
        name = folder_name(identity)
        path = self._channel_path(name)
        folder = os.path.join(self.root, path)
        if os.path.isdir(folder) and path not in TAKEN and not self._behind_link(path):
            found = self._channel(path, name)
            if same_id(found.id, identity):
                return found
        return next((c for c in self.channels() if same_id(c.id, identity)), None)

    def _behind_link(self, path: str) -> bool:
        return os.path.realpath(os.path.join(self.root, path)) != os.path.join(os.path.realpath(self.root), path)

    def channel_path(self, identity: str) -> str:
        """Where the channel of that id is, or would be made. Raises `Refused` where its folder is another's."""
        found = self._find_channel(identity)
        if found is not None:
            return found.path
        path = self._channel_path(folder_name(identity))
        if path in TAKEN or read_mark(os.path.join(self.root, path))[0] or self._behind_link(path):
            raise Refused(f"The folder '{path}' has another use.", "Move it away, or give the channel another id.")
        return path

    def scan(self, channels: Sequence[str] | None = None) -> Scan:
        """A look at the documents of the shared layer and of the channels given (None: of all), by stat only.

        What cannot be read, or leads out of the workspace, is skipped with the reason. Raises `Unreadable` when the
        root itself cannot be read.
        """
        scan = Scan()
        try:
            names = os.listdir(self.root)
        except OSError as error:
            raise Unreadable(
                f"The workspace '{self.root}' cannot be read: {reason(error, reading=True)}.", "Check that it is there."
            ) from None
        self._look_at_named(scan, "", "", names)
        for folder, layer in FOLDERS.items():
            if folder in names:
                self._walk(scan, folder, "", layer)
        for folder in self._further_folders(names):
            self._walk(scan, folder, "", "note")
        for channel in self._scanned_channels(scan) if channels is None else [self.channel(c) for c in channels]:
            self._scan_channel(scan, channel)
        return scan

    def _further_folders(self, names: Sequence[str]) -> list[str]:
        """The folders of further notes, of those that the root holds."""
        if self.notes_folder != ".":
            return [self.notes_folder] if self.notes_folder.split("/")[0] in names else []
        found = [n for n in sorted(names) if self._is_further_note([n]) and not n.endswith(".md")]
        return [name for name in found if os.path.isdir(os.path.join(self.root, name))]

    def _scanned_channels(self, scan: Scan) -> list[Channel]:
        try:
            return self._list_channels(scan)
        except OSError as error:
            scan.skipped.append((self.channels_folder, reason(error, reading=True)))
            return []

    def _scan_channel(self, scan: Scan, channel: Channel) -> None:
        try:
            names = os.listdir(f"{self.root}/{channel.path}")
        except OSError as error:
            scan.skipped.append((channel.path, reason(error, reading=True)))
            return
        self._look_at_named(scan, channel.path + "/", channel.id, names)
        if "memory" in names:
            self._walk(scan, f"{channel.path}/memory", channel.id, "note")

    def _look_at_named(self, scan: Scan, prefix: str, channel: str, names: Sequence[str]) -> None:
        """The documents that have a fixed name; other Markdown beside them is worth a word.

        Where the file system folds case, a document may be listed under another spelling.
        """
        known = CHANNEL_FILES if prefix else SHARED_FILES
        others = [n for n in sorted(names) if n not in known and n.lower().endswith(".md") and not _hidden(n)]
        spelled = {n.casefold() for n in others}
        for name in known:
            if name in names or (name.casefold() in spelled and self._exists(prefix + name)):
                self._look(scan, prefix + name, channel, LAYERS[name])
        for name in others:
            if not prefix and name == OLDER and self.shared_path("MEMORY.md") == OLDER:
                self._look(scan, name, channel, "memory")
            elif not prefix and name != OLDER and self._is_further_note([name]):
                self._look(scan, name, channel, "note")
            else:
                scan.remarks.append((prefix + name, self._why_not(scan, prefix + name)))

    def shared_path(self, name: str) -> str:
        """The shared file of that name as this workspace spells it: minimem's folders may have a `memory.md`."""
        older = name == "MEMORY.md" and not self._exists(name) and self._exists(OLDER)
        return OLDER if older else name

    def _exists(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self.root, path))

    def _why_not(self, scan: Scan, path: str) -> str:
        if any(word in path for word in COPIES):
            return "a conflict copy"
        try:
            found = os.stat(os.path.join(self.root, path))
        except OSError:
            return NO_DOCUMENT
        first = scan.seen.get((found.st_dev, found.st_ino))
        return f"the same file as '{first}'" if first else NO_DOCUMENT

    def _walk(self, scan: Scan, folder: str, channel: str, layer: str) -> None:
        if os.path.islink(os.path.join(self.root, folder)):
            scan.skipped.append((folder, FOLDER_LINK))
            return
        try:
            with os.scandir(os.path.join(self.root, folder)) as listing:
                found = sorted(listing, key=lambda e: e.name)
        except NotADirectoryError:
            return
        except OSError as error:
            scan.skipped.append((folder, reason(error, reading=True)))
            return
        for item in found:
            path = f"{folder}/{item.name}"
            is_folder = item.is_dir(follow_symlinks=False)
            if _hidden(item.name) or not (is_folder or item.name.endswith(".md")):
                continue
            if _odd(item.name):
                scan.skipped.append((path, ODD_NAME))
            elif is_folder:
                self._walk(scan, path, channel, layer)
            elif any(word in item.name for word in COPIES):
                scan.remarks.append((path, "a conflict copy"))
            elif self.is_document(path):
                self._look(scan, path, channel, INSIDE.get(path, layer))
            elif layer != "skill" or item.name == "SKILL.md":
                scan.remarks.append((path, NO_DOCUMENT))

    def _look(self, scan: Scan, path: str, channel: str, layer: str) -> None:
        full = f"{self.root}/{path}"
        try:
            found = os.lstat(full)
            if stat.S_ISLNK(found.st_mode):
                found = os.stat(full)
                if not _may_lead_to(os.path.realpath(full), os.path.realpath(self.root)):
                    scan.skipped.append((path, "a link that leads out of the workspace"))
                    return
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            scan.skipped.append((path, "a link that leads nowhere" if gone else reason(error, reading=True)))
            return
        if not stat.S_ISREG(found.st_mode):
            scan.skipped.append((path, FOLDER_LINK if os.path.islink(full) else "not a regular file"))
        elif "._" in path and os.path.basename(path).startswith("._"):
            scan.skipped.append((path, "an AppleDouble file, not Markdown"))
        elif scan.seen.setdefault((found.st_dev, found.st_ino), path) != path:
            scan.remarks.append((path, f"the same file as '{scan.seen[found.st_dev, found.st_ino]}'"))
        elif found.st_size > READ_LIMIT:
            scan.skipped.append((path, f"larger than {READ_LIMIT // 1024 // 1024} MB"))
        else:
            scan.documents.append(Document(path, channel, layer, found))
            if found.st_size > APPEND_ONLY:
                scan.remarks.append((path, f"larger than {APPEND_ONLY // 1024 // 1024} MB: searched, only appended to"))

    def read(self, path: str) -> bytes | None:
        """A document's bytes, None where there is no such file. Raises `Unreadable` for anything else."""
        try:
            full = self.absolute(path)
            return read_regular(self.target(path) if self._meets_link(path) else full)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = reason(error, reading=True)
            raise Unreadable(f"'{printable(path)}' cannot be read: {why}.", "Check the file.") from None

    def proposals(self) -> list[str]:
        """The paths of the proposals that wait for a person, by name; one that cannot be read is left out."""
        try:
            names = sorted(os.listdir(os.path.join(self.root, "review")))
        except OSError:
            return []
        paths = [f"review/{name}" for name in names if not name.startswith(".")]
        return [path for path in paths if self.is_document(path) and self._readable(path)]

    def _readable(self, path: str) -> bool:
        full = os.path.join(self.root, path)
        return os.path.isfile(full) and not os.path.islink(full) and os.access(full, os.R_OK)

    def locks(self, paths: Iterable[str]) -> AbstractContextManager[None]:
        """The locks a change of these paths needs: one per channel, one for the shared layer, in one order.

        What a killed writer left half done is settled before anything is read under them. Raises `Refused` with the
        reason where they cannot be had, and for whatever the system refuses while they are held.
        """
        from contextlib import contextmanager

        names = sorted({self._lock_name(path) for path in paths})

        @contextmanager
        def held() -> Iterator[None]:
            hint = "Nothing was changed."
            try:
                self.prepare()
                with locked(own_folder(self.private(), "locks"), names):
                    self.recover()
                    hint = "What was written before it stays."
                    yield
            except OSError as error:
                name = printable(str(error.filename or self.root))
                raise Refused(f"'{name}' cannot be written: {reason(error)}.", hint) from None

        return held()

    def _lock_name(self, path: str) -> str:
        """Named after the real file, so that two links to one file are one lock."""
        real = os.path.realpath(os.path.join(self.root, path))
        path = os.path.relpath(real, os.path.realpath(self.root))
        inside = "" if self.channels_folder == "." else self.channels_folder + "/"
        rest = path[len(inside) :].split("/")
        if path.startswith(inside) and len(rest) > 1 and rest[0] not in TAKEN:
            return "channel-" + digest(encode(rest[0]), 8)
        return "shared"

    def recover(self) -> list[str]:
        """Settles what killed writers left; returns the paths that got their new text. A person's edit since stays."""
        for folder in (self.private(), self.private("cache"), self.private("state")):
            sweep(folder)
        return recover(self.private(), self.target)

    def write(self, changes: Iterable[Change]) -> None:
        """Writes all changes or none, each only on the bytes that were read, and reads every file back.

        The caller holds `locks`. Raises `Conflict` when a file changed since it was read, `Refused` or `Unreadable`
        with the true reason otherwise; then every file is as before, save one somebody saved right after the write.
        """
        self.trust()
        admitted = [self._admit(change) for change in changes if change.before != change.after]
        if not admitted:
            return
        targets = {target for _, target, _ in admitted}
        if len(targets) < len(admitted):
            raise Refused("Two of the files to write are one, by a link.", "Remove the link.")
        for folder in {os.path.dirname(target) for target in targets}:
            sweep(folder)
        self.prepare()
        write_together(admitted, self.private())
        for change, _, _ in admitted:
            if self.read(change.path) != change.after:
                raise Refused(f"'{change.path}' did not read back as it was written.", "Look at the file.")

    def _admit(self, change: Change) -> tuple[Change, str, object]:
        """The choke point every write passes: place, state of the file, and the safety of what is added."""
        target = self.target(change.path)
        seen = stamp(target)
        _check_state(change, os.stat(target).st_nlink if seen else 1)
        if change.after is not None:
            _check_text(change, self.config)
        if self.read(change.path) != change.before:
            raise Conflict(f"'{change.path}' has changed since it was read.", "Try again.")
        return change, target, seen

    def prepare(self) -> None:
        """Makes `.pipimem/` with its `.gitignore`, so that git never sees the cache or the state."""
        ignore = os.path.join(own_folder(self.root, PRIVATE, mode=0o777), ".gitignore")
        if not os.path.exists(ignore):
            write_private(ignore, read_data("templates/gitignore"), mode=0o644)


def _own_folder_of(what: str, said: str) -> str:
    """A folder named in the settings, "." for the root. Raises `Usage` for one outside, or that has another use."""
    parts = [part for part in said.split("/") if part not in ("", ".")]
    if os.path.isabs(said) or any(part.startswith(".") or odd_character(part) for part in parts):
        raise Usage(f"The {what} folder '{printable(said)}' is outside the workspace.", "Name a folder inside it.")
    if parts and parts[0] in TAKEN:
        raise Usage(f"The {what} folder '{printable(said)}' has another use.", "Name a folder of their own.")
    return "/".join(parts) or "."


def _one_for_each(found: Iterable[Channel], scan: Scan) -> list[Channel]:
    """A copied folder says it is the same channel: the one whose name says so too wins, the other is a copy."""
    chosen: dict[str, Channel] = {}
    for channel in sorted(found, key=lambda c: (not same_id(channel_id(os.path.basename(c.path)), c.id), c.path)):
        first = chosen.setdefault(normalize("NFC", channel.id), channel)
        if first is not channel:
            scan.remarks.append((channel.path, f"says it is the channel '{channel.id}', as '{first.path}' does"))
    return sorted(chosen.values(), key=lambda c: c.id)


def _check_state(change: Change, links: int) -> None:
    from pipimem.markdown import damage

    before = change.before or b""
    if why := damage(before):
        raise Refused(f"'{change.path}' {why}.", "Mend it first.")
    if links > 1:
        raise Refused(f"'{change.path}' has more than one hard link.", "Writing would split them; copy the file.")
    appended = change.after is None or change.after.startswith(before.rstrip())
    if len(before) > APPEND_ONLY and not appended:
        size = f"{APPEND_ONLY // 1024 // 1024} MB"
        raise Refused(f"'{change.path}' is larger than {size} and is only appended to.", "Move a part to another file.")


def _check_text(change: Change, config: Config) -> None:
    from pipimem.markdown import conflict_line

    after = change.after or b""
    if len(after) > READ_LIMIT:
        limit = f"{READ_LIMIT // 1024 // 1024} MB"
        raise Refused(f"'{change.path}' would become larger than {limit}.", "It could no longer be read; split it.")
    most = config["workspace.file_limit"]
    if most and (size := len(decode(after))) > max(most, len(decode(change.before or b""))):
        raise Refused(
            f"'{change.path}' would have {size:,} characters; 'workspace.file_limit' is {most:,}.",
            "Condense it, or raise the limit.",
        )
    if b"\0" in after:
        raise Refused(f"The new text for '{change.path}' holds NUL bytes.", "Leave them out.")
    if line := conflict_line(after):
        raise Refused(f"The new text for '{change.path}' has conflict markers in line {line}.", "Leave them out.")
    found = safety.secrets(added(change.before or b"", after), config["safety.patterns"], config["safety.allow"])
    if found:
        kind = found[0].kind.partition(":")[2]
        raise Refused(f"The new text for '{change.path}' holds a secret ({kind}).", "Leave it out.")


def _may_lead_to(real: str, root: str) -> bool:
    """Whether a link may lead there: inside the workspace, but to nothing hidden and to no proposal."""
    base = root.rstrip("/") + "/"
    parts = real[len(base) :].split("/")
    return real.startswith(base) and parts[0] != "review" and not any(part.startswith(".") for part in parts)


def _odd(name: str) -> bool:
    return "\\" in name or odd_character(name)


def _hidden(name: str) -> bool:
    """Editors' own files; an AppleDouble file is reported instead, as it looks like a document to people."""
    return name.startswith(".") and not (name.startswith("._") and name.endswith(".md"))


def added(before: bytes, after: bytes) -> str:
    """The lines of `after` that `before` does not have: what a change adds."""
    old = set(before.splitlines())
    fresh = [line for line in after.splitlines() if line not in old]
    return decode(b"\n".join(fresh))


def read_data(name: str) -> bytes:
    """A file of `templates/` or `sample-workspace/`, from the wheel or from an editable install."""
    with open(data_path(name), "rb") as file:
        return file.read()


def data_path(name: str) -> str:
    """Where a shipped file or folder is: inside the wheel, or beside the package in a checkout."""
    package = os.path.dirname(os.path.abspath(__file__))
    for base in (os.path.join(package, "_data"), os.path.dirname(package)):
        path = os.path.join(base, *name.split("/"))
        if os.path.exists(path):
            return path
    raise Unreadable(f"The shipped file '{name}' is missing.", "Install pipimem anew.")
