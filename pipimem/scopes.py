"""Where a conversation belongs: project, channel, agent, session, from whatever a host says of it.

An explicit word wins; worktrees of one repository are one project; where two answers are possible there is none, and
the session stays unassigned. Folders are looked at, nothing is run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipimem.channels import kind_of, same_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipimem.channels import Channel

GIT_FILE_LIMIT = 4096
GROUPS = frozenset(["group", "supergroup", "channel", "room", "thread", "forum"])
DIRECT = frozenset(["direct", "dm", "private", "p2p"])


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a conversation: its working folder, and what its host says of chat, agent and project."""

    cwd: str = ""
    session: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a conversation belongs; "" for what nobody knows. `project` is a folder, `reason` why no channel is named.

    `name` is what people call the project: the name its channel has in the settings, else the folder's own.
    """

    project: str = ""
    channel: str = ""
    agent: str = ""
    session: str = ""
    name: str = ""
    reason: str = ""


def resolve(
    known: Known, channels: Sequence[Channel], projects: Mapping[str, str], *, channel: str = "", project: str = ""
) -> Scope:
    """The scope of a conversation. `projects` maps channel ids to names or folders of projects.

    `channel` and `project` (a folder) are a person's explicit words and win. A chat is the channel of its own id; a
    working folder's project is the one channel mapped to it, or of several the one that is a project's.
    """
    root = project_of(project or known.facts.get("project", "") or known.cwd)
    mapped = [c for c in channels if _is_mapped(projects, c.id, root)]
    name = next((n for c in mapped if "/" not in (n := projects[_key(projects, c.id)])), os.path.basename(root))
    agent = known.facts.get("agent", "")
    if channel:
        return Scope(root, channel, agent, known.session, name)
    chats = [c for c in channels if any(same_id(c.id, chat) for chat in chat_ids(known.facts))]
    if chats:
        return _chosen(root, chats, agent, known.session, name)
    if len(mapped) > 1:
        mapped = [c for c in mapped if c.kind == "project"] or mapped
    return _chosen(root, mapped, agent, known.session, name)


def _chosen(root: str, found: Sequence[Channel], agent: str, session: str, name: str) -> Scope:
    if len(found) == 1:
        return Scope(root, found[0].id, agent, session, name)
    listed = ", ".join(f"'{c.id}'" for c in found[:3])
    reason = f"several channels could be meant: {listed}" if found else "no channel is mapped to it"
    return Scope(root, "", agent, session, name, reason)


def chat_ids(facts: Mapping[str, str]) -> list[str]:
    """The ids a chat's channel may have: the host's own key, platform with kind and peer, the bare chat."""
    platform, chat, kind = (facts.get(k, "") for k in ("platform", "chat", "chat_type"))
    parts = [facts.get("session_key", "")]
    if chat:
        parts += [f"{platform}:{kind}:{chat}"] if platform and kind else []
        parts += [f"{platform}:{chat}"] if platform else []
        parts.append(chat)
    return list(dict.fromkeys(p for p in parts if p))


def is_group(facts: Mapping[str, str], kinds: Mapping[str, str]) -> bool:
    """Whether a conversation is a chat of several people, by what its host says, else by the words of its id."""
    said = facts.get("chat_type", "").lower()
    if said in GROUPS or said in DIRECT:
        return said in GROUPS
    return any(kind_of(chat, kinds) == "group" for chat in chat_ids(facts)[:1])


def project_of(folder: str) -> str:
    """The folder of the project that `folder` (absolute, or with `~`) is part of; "" for none.

    That is the main checkout of the repository it lies in, so all worktrees are one project; outside a repository the
    folder itself. A repository in the home folder is no project for what lies below it.
    """
    if not folder:
        return ""
    path = os.path.expanduser(folder)
    if not os.path.isabs(path):
        return folder
    path = start = os.path.realpath(path)
    home = os.path.realpath(os.path.expanduser("~"))
    while path != os.path.dirname(path) and (path != home or path == start):
        git = os.path.join(path, ".git")
        if os.path.isdir(git):
            return path
        if os.path.isfile(git):
            return _main_checkout(git) or path
        path = os.path.dirname(path)
    return start


def _main_checkout(git: str) -> str:
    """The folder of the main checkout that a worktree's `.git` file leads to, "" where it is no worktree's."""
    line = _line(git)
    if not line.startswith("gitdir:"):
        return ""
    own = os.path.join(os.path.dirname(git), line.removeprefix("gitdir:").strip())
    common = _line(os.path.join(own, "commondir"))
    if not common:
        return ""
    shared = os.path.realpath(os.path.join(own, common))
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else shared


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(GIT_FILE_LIMIT).strip().split("\n")[0]
    except OSError:
        return ""


def _is_mapped(projects: Mapping[str, str], channel: str, root: str) -> bool:
    key = _key(projects, channel)
    name = projects.get(key, "") if key else ""
    if not name or not root:
        return False
    return project_of(name) == root if "/" in name else name == os.path.basename(root)


def _key(projects: Mapping[str, str], channel: str) -> str:
    return next((key for key in projects if same_id(key, channel)), "")


def short(path: str) -> str:
    """A path as it may travel: the home folder as `~`."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if home != "/" and (path == home or path.startswith(home + "/")) else path
