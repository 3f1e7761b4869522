"""New workspaces and channels, from the templates."""

from __future__ import annotations

import os

from pipimem.errors import Refused
from pipimem.files import reason
from pipimem.git import Repository
from pipimem.history import write_beside
from pipimem.opened import Opened, own_message
from pipimem.text import one_line, printable
from pipimem.workspace import MARK, SHARED_FILES, Change, Channel, looks_like, read_data, write_private

MINIMAL = ("SESSION.md", "MEMORY.md", "HISTORY.md")
FULL = (*MINIMAL, "SOUL.md", "AGENTS.md")


def add_channel(memory: Opened, identity: str, *, kind: str = "", minimal: bool = False) -> tuple[Channel, list[str]]:
    """Creates what is missing of a channel from the templates; returns it and the files made."""
    memory.workspace.trust()
    path = memory.workspace.channel_path(identity)
    folder = os.path.join(memory.workspace.root, path)
    mark = os.path.join(folder, MARK)
    if kind and os.path.exists(mark) and memory.workspace.channel(identity).kind != kind:
        raise Refused(
            f"The channel '{printable(identity)}' is of another kind.",
            f'Write "{printable(identity)}" = "{kind}" under [workspace.kinds] in pipimem.toml.',
        )
    if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
        raise Refused(f"'{path}' is there and is no folder.", "Move it away.")
    names = MINIMAL if minimal else FULL
    lines = identity + "\n" + (f"kind: {kind}\n" if kind else "")
    beside = {} if os.path.exists(mark) else {f"{path}/{MARK}": lines.encode("utf-8")}
    with memory.workspace.locks([f"{path}/MEMORY.md"]):
        os.makedirs(folder, exist_ok=True)
        write_beside(memory.workspace, beside)
        changes = [c for n in names if (c := _missing(memory, path, n)) is not None]
        memory.workspace.write(changes)
        message = own_message(f"{one_line(identity)}: new channel")
        ticket = memory.commits.enlist(changes, message, beside)
    memory.commits.commit(ticket, changes, message, beside)
    return memory.workspace.channel(identity), [c.path for c in changes]


def _missing(memory: Opened, folder: str, name: str) -> Change | None:
    path = f"{folder}/{name}"
    return Change(path, None, memory.template(name)) if memory.workspace.read(path) is None else None


def init(folder: str, *, language: str = "en", git: bool = False) -> tuple[list[str], list[str]]:
    """Creates or completes a workspace in `folder`: (files created, files kept). No existing byte is changed.

    Raises `Refused` where it cannot be written.
    """
    created, kept = [], []
    root = os.path.abspath(folder)
    settings = os.path.join(root, "pipimem.toml")
    # A new bot workspace recalls by itself; one that somebody else's program also reads is told about first.
    mode = b"# " if looks_like(root) else b""
    data = read_data("templates/pipimem.toml").replace(b"{language}", language.encode()).replace(b"{mode}", mode)
    if os.path.exists(settings):
        kept.append("pipimem.toml")
    else:
        try:
            os.makedirs(root, exist_ok=True)
            write_private(settings, data, mode=0o644)
        except OSError as error:
            raise Refused(f"'{printable(root)}' cannot be written: {reason(error)}.", "Nothing was changed.") from None
        created.append("pipimem.toml")
    if git:
        Repository.init(root)
    with Opened(root) as memory:
        language = memory.workspace.config["workspace.language"]
        changes = []
        for name in SHARED_FILES:
            if memory.workspace.read(memory.workspace.shared_path(name)) is None:
                changes.append(Change(name, None, read_data(f"templates/{language}/workspace/{name}")))
            else:
                kept.append(name)
        with memory.workspace.locks(SHARED_FILES):
            memory.workspace.write(changes)
            beside = {"pipimem.toml": data} if "pipimem.toml" in created else {}
            ticket = memory.commits.enlist(changes, own_message("new workspace"), beside)
        created += [c.path for c in changes]
        memory.commits.commit(ticket, changes, own_message("new workspace"), beside)
        memory.index()
    return created, kept
