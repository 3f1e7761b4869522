"""Tries every leg a workspace stands on, for real, and mends what can be derived or belongs to pipimem alone.

`checks.py` reads the files; here locks are taken, files written below `.pipimem/`, words searched for, git asked.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipimem import forgetting
from pipimem.errors import Error, Refused
from pipimem.files import is_temporary, lives, locked, own_folder, reason, write_private
from pipimem.text import one_line, plural, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipimem.index import Hit
    from pipimem.memory import Memory

PROBE_WORDS = "部署窗口 deploy window"


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of trying one leg: `ok` false means something to do; `detail` says what was found."""

    name: str
    ok: bool
    detail: str


def examine(memory: Memory, *, fix: bool = False) -> list[Probe]:
    """Tries every leg, in order. With `fix`, first mends what it may: the index, the dictionary, what a killed process
    left, and commits that wait. Documents are never touched.
    """
    mended = list(_mend(memory)) if fix else []
    memory.patient = False  # each leg by itself: words first
    probes = [
        _try("files", _files, memory),
        _try("permissions", _permissions, memory),
        _try("write and lock", _write, memory),
        _try("left behind", _left_behind, memory),
        _try("index", _index, memory),
        _try("full text", _full_text, memory),
        _try("graph", _graph, memory),
        _try("Chinese", _chinese, memory),
        _try("git", _git, memory),
        _try("commits", _commits, memory),
        Probe("model", True, "none configured: the updater works by rules"),
    ]
    memory.patient = True
    probes += [_try("vectors", _vectors, memory), _try("reranker", _reranker, memory)]
    return mended + probes


def _try(name: str, act: Callable[[Memory], tuple[bool, str]], memory: Memory) -> Probe:
    try:
        ok, detail = act(memory)
    except Error as error:
        ok, detail = False, str(error)
    except OSError as error:
        ok, detail = False, reason(error)
    return Probe(name, ok, detail)


def _mend(memory: Memory) -> Iterator[Probe]:
    finished = []
    try:
        with memory.workspace.locks(["MEMORY.md"]):
            finished = memory.workspace.recover()
            for path in _stale_owners(memory):
                os.unlink(path)
    except Error as error:
        yield Probe("mend: left behind", False, str(error))
    else:
        yield Probe("mend: left behind", True, f"{plural(len(finished), 'file')} of an unfinished change put in place")
    if forgetting.unfinished(memory):
        told = forgetting.resume(memory)
        yield Probe(
            "mend: forgetting", True, f"what was broken off is finished: {', '.join(told) or 'nothing was left'}"
        )
    try:
        diff = memory.index(rebuild=not _try("index", _full_text, memory).ok)
    except Error as error:
        yield Probe("mend: index", False, str(error))
    else:
        yield Probe(
            "mend: index", True, f"{plural(diff.passages, 'passage')} from {plural(memory.documents, 'document')}"
        )
    memory.pack()
    if memory.pending():
        why = memory.commit_waiting()
        yield Probe("mend: commits", not memory.pending(), why or "made")


def _files(memory: Memory) -> tuple[bool, str]:
    found = memory.check()
    errors = sum(f.level == "error" for f in found)
    if not found:
        return True, "nothing is wrong with them"
    first = found[0]
    where = f"{printable(first.path)}:{first.line} {first.message}"
    return (
        not errors,
        f"{plural(errors, 'error')}, {plural(len(found) - errors, 'warning')} (first: {where}); see 'pipimem check'",
    )


def _permissions(memory: Memory) -> tuple[bool, str]:
    root, scan = memory.workspace.root, memory.workspace.scan()
    paths = [d.path for d in scan.documents]
    shut = [p for p in paths if not os.access(os.path.join(root, p), os.R_OK | os.W_OK)]
    if shut:
        return False, f"{plural(len(shut), 'document')} cannot be read and written, such as '{printable(shut[0])}'"
    return True, f"{plural(len(paths), 'document')} can be read and written"


def _write(memory: Memory) -> tuple[bool, str]:
    """Takes a lock, writes and renames a file of pipimem's own, reads it back, and takes it away."""
    memory.workspace.prepare()
    private = memory.workspace.private()
    path = os.path.join(own_folder(private, "state"), "doctor")
    with locked(own_folder(private, "locks"), ["doctor"]):
        data = os.urandom(16)
        write_private(path, data)
        with open(path, "rb") as file:
            same = file.read() == data
        os.unlink(path)
    if not same:
        raise Refused(f"'{path}' did not read back as it was written.", "Check the disk.")
    return True, "a file was locked, written, read back and removed"


def _stale_owners(memory: Memory) -> list[str]:
    folder = memory.workspace.private("locks")
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if name.endswith(".owner"):
            with open(path, encoding="utf-8", errors="replace") as file:
                words = file.read().split()
            here = len(words) == 3 and words[2] == os.uname().nodename
            if here and words[0].isdecimal() and not lives(int(words[0])):
                found.append(path)
    return found


def _left_behind(memory: Memory) -> tuple[bool, str]:
    root = memory.workspace.root
    temporary = [
        name for folder, names, files in os.walk(root) if ".git" not in folder for name in files if is_temporary(name)
    ]
    journal = memory.workspace.private("journal")
    changes = os.listdir(journal) if os.path.isdir(journal) else []
    dead = _stale_owners(memory)
    forgets = forgetting.unfinished(memory)
    if not (temporary or changes or dead or forgets):
        return True, "no killed process left anything"
    parts = [
        (len(changes), "unfinished change"),
        (len(forgets), "unfinished forget"),
        (len(temporary), "temporary file"),
        (len(dead), "lock of a dead process"),
    ]
    told = ", ".join(
        plural(n, what, what.replace("lock of", "locks of") if "lock" in what else "") for n, what in parts if n
    )
    return False, f"{told}; the next write, or 'doctor --fix', puts it right"


def _index(memory: Memory) -> tuple[bool, str]:
    memory.ready()
    state = "older than some files: run 'pipimem index'" if memory.stale else "up to date"
    return not memory.stale, state


def _full_text(memory: Memory) -> tuple[bool, str]:
    """Searches for the words of an entry that is there."""
    wanted = next(_entries(memory), None)
    if wanted is None:
        return True, "no entry to look for yet"
    hits = memory.search(wanted.text[:200], all_channels=True, limit=50)
    found = any((h.path, h.start) == (wanted.path, wanted.start) for h in hits)
    shown = one_line(wanted.text)[:40]
    return found, f"'{shown}' {'was found' if found else 'was not found: run doctor --fix'}"


def _entries(memory: Memory) -> Iterator[Hit]:
    from pipimem import markdown

    for document in memory.workspace.scan().documents:
        if document.layer not in ("memory", "user"):
            continue
        parsed = markdown.parse(memory.workspace.read(document.path) or b"")
        for identity, entry in markdown.identified(parsed, document.channel):
            if any(c.isalpha() for c in entry.text):
                try:
                    yield memory.entry(identity)
                except Error:
                    continue


def _graph(memory: Memory) -> tuple[bool, str]:
    """Counts, and looks around the thing with most links."""
    state = memory.graph_status(all_channels=True)
    told = f"{plural(state['nodes'], 'node')}, {plural(state['edges'], 'link')}"
    busiest = next(iter(state["busiest"]), "")
    if not busiest:
        return True, told
    near = memory.graph_neighbors(busiest, all_channels=True, depth=1, limit=2)
    return len(near.nodes) > 1, told


def _chinese(memory: Memory) -> tuple[bool, str]:
    memory.search(PROBE_WORDS, all_channels=True, limit=1)
    good = memory.cutter == "dictionary"
    return good, "words are cut by the dictionary" if good else f"cut by {memory.cutter}: run 'pipimem index'"


def _vectors(memory: Memory) -> tuple[bool, str]:
    """Asks the model for the meaning of a few words, for real."""
    if memory.meaning is None or not memory.meaning.wanted:
        why = "none is named" if memory.meaning is None else memory.meaning.off
        return True, f"off, {why}: search is by words"
    why = memory.meaning.probe() or memory.meaning.undone()
    return not why, why or f"'{memory.meaning.wanted}' answers"


def _reranker(memory: Memory) -> tuple[bool, str]:
    """Has the model put two texts in order, for real."""
    if memory.meaning is None or not memory.meaning.depth:
        return True, "off: none is named, or not allowed here"
    why = memory.meaning.probe_reranker()
    return not why, why or f"'{memory.workspace.config['index.reranker']}' answers"


def _git(memory: Memory) -> tuple[bool, str]:
    """Has git write an object and read it back, where commits are made; a history nobody asked for is no fault."""
    from pipimem.git import GitOff

    try:
        repository = memory.commits.repository()
    except GitOff as off:
        if os.path.lexists(os.path.join(memory.workspace.root, ".git")):
            return False, f"'.git' is there and git cannot use it ({off.reason}); run 'git status' there"
        return True, off.message
    if not memory.workspace.config["git.commit"]:
        return True, "commits are switched off"
    return True, f"{repository.root}: {repository.trial()}, an object was written and read back"


def _commits(memory: Memory) -> tuple[bool, str]:
    waiting = memory.pending()
    if not waiting:
        return True, "none waits"
    why = next((f" ({row['reason']})" for row in waiting if row.get("reason")), "")
    return False, f"{plural(len(waiting), 'commit')} waiting{why}; the next change, or 'doctor --fix', makes them"
