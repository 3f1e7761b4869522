"""Channel ids and the folders they live in: names both ways, the mark that keeps the id, the kind of a conversation.

Ids come from chat systems and may hold anything; which folders there are is workspace.py's.
"""

from __future__ import annotations

import os
import stat
from unicodedata import normalize

from pipimem.errors import Usage
from pipimem.text import decode, digest, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = ".channel"
MARK_LIMIT = 16 * 1024
ID_LIMIT = 2000
NAME_LIMIT = 200
NAME_KEPT = 150
RESERVED = frozenset(["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))])
FILLERS = "\u115f\u1160\u3164\uffa0"  # letters to Python, but nothing to a file system that folds case
KINDS = {
    "dm": "direct",
    "direct": "direct",
    "private": "direct",
    "group": "group",
    "channel": "group",
    "room": "group",
    "project": "project",
    "repo": "project",
}


class Channel:
    """One conversation's folder: its id as first given, its kind, its path relative to the workspace."""

    __slots__ = ("id", "kind", "path")

    def __init__(self, identity: str, kind: str, path: str) -> None:
        self.id = identity
        self.kind = kind
        self.path = path


def same_id(one: str, other: str) -> bool:
    """Whether two ids name one channel: equal after NFC, case and padding included."""
    return one == other or normalize("NFC", one) == normalize("NFC", other)


def odd_character(text: str) -> bool:
    """Whether `text` holds a control character (C0, DEL, C1) or a byte that is no UTF-8: fit for no id and no path."""
    if text.isascii():
        return not text.isprintable()
    return any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in text)


def folder_name(identity: str) -> str:
    """The folder of a channel id: reversible, at most 200 bytes, the same for NFC and NFD, safe where case folds.

    Lower-case letters, digits, `.`, `_` and `-` stand for themselves (not first, for `.` and `-`); every other
    character is `%XX` per UTF-8 byte. A longer name keeps 150 bytes + `~` + 32 hex of the id's digest.
    Raises `Usage` for an id that is blank, longer than 2,000 characters, or holds a control character.
    """
    given = normalize("NFC", identity)
    if not given.strip():
        raise Usage("The channel id is empty.", "Give the id the chat system uses.")
    if odd_character(given):
        raise Usage(f"The channel id '{printable(given)}' holds a control character.", "Give it without.")
    if len(identity) > ID_LIMIT:
        raise Usage(f"The channel id '{printable(given, 40)}' is longer than {ID_LIMIT} characters.", "Shorten it.")
    name = "".join(_kept(c, first=i == 0) for i, c in enumerate(given))
    if name.split(".")[0] in RESERVED:
        name = f"%{ord(name[0]):02X}" + name[1:]
    if name.endswith("."):
        name = name[:-1] + "%2E"
    raw = name.encode("utf-8")
    if len(raw) <= NAME_LIMIT:
        return name
    kept = raw[:NAME_KEPT].decode("utf-8", "ignore")
    cut = kept.rfind("%", len(kept) - 2)
    return (kept[:cut] if cut > 0 else kept) + "~" + digest(given.encode("utf-8"))


def _kept(c: str, *, first: bool) -> str:
    plain = c.upper().lower() == c and c not in FILLERS and (c.isalnum() or c in "._-")
    if plain and not (first and c in ".-"):
        return c
    return "".join(f"%{b:02X}" for b in c.encode("utf-8"))


def channel_id(name: str) -> str:
    """The id that `folder_name` encoded, read from the name alone; any other name stands for itself."""
    if "%" not in name or "~" in name:
        return name
    given = _decoded(name)
    try:
        return given if folder_name(given) == name else name
    except Usage:
        return name


def _decoded(name: str) -> str:
    head, *parts = name.encode("utf-8", "surrogateescape").split(b"%")
    out = bytearray(head)
    for part in parts:
        try:
            out += bytes.fromhex(part[:2].decode("ascii")) + part[2:]
        except ValueError:
            out += b"%" + part
    return out.decode("utf-8", "surrogateescape")


def read_mark(folder: str) -> tuple[str, str]:
    """What the mark in a channel's folder says: the id as first given, and the kind set by hand; "" for neither.

    A mark that is damaged, or no regular file, says nothing: the folder's name is there too.
    """
    try:
        handle = os.open(os.path.join(folder, MARK), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return "", ""
    try:
        data = os.read(handle, MARK_LIMIT) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
        first, *rest = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        identity = first.removesuffix(b"\r").decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return "", ""
    finally:
        os.close(handle)
    said = (line.partition(b":") for line in rest)
    kind = next((KINDS.get(decode(value.strip()), "") for key, _, value in said if key.strip() == b"kind"), "")
    return ("" if not identity.strip() or odd_character(identity) else identity), kind


def kind_of(identity: str, kinds: Mapping[str, str], said: str = "") -> str:
    """direct, group or project: from the settings, else as the mark said, else from the words of the id.

    Group, the strictest, wins where several words speak, and where none does.
    """
    for name, kind in kinds.items():
        if same_id(name, identity):
            return kind
    if said:
        return said
    words = identity.lower().replace("群", ":group:").replace("_", ":").replace("-", ":").split(":")
    spoken = [KINDS[word] for word in words if word in KINDS]
    return spoken[0] if spoken and "group" not in spoken else "group"
