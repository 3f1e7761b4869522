"""The main job told as a story, on a copy of the sample workspace: no key, no network, no model.

It calls the same verbs as everyone; what it prints is what they gave.
"""

from __future__ import annotations

import os
import shutil
import sys
import time

from pipimem import render
from pipimem.errors import Refused
from pipimem.importers import load
from pipimem.memory import Memory
from pipimem.text import clip
from pipimem.workspace import data_path

WIDTH = 116
RECALLS = (
    ("project:kilnwren", "Which host do the meter hardware tests run against?"),
    ("dingtalk:group:cidKq7/u+0kH//Zw==", "灰度发布从百分之几开始？"),
)
UPDATES = (
    ("project:kilnwren", "claude-session.jsonl", "a Claude Code session"),
    ("dingtalk:group:cidKq7/u+0kH//Zw==", "chat-zh.jsonl", "a Chinese group chat"),
)


def run(keep: str | None = None) -> int:
    """Prints the whole story and gives the exit code; `keep` names a new folder that is left behind."""
    import tempfile

    if keep and os.path.lexists(keep):
        raise Refused(f"'{keep}' is there already.", "Name a new folder.")
    with tempfile.TemporaryDirectory(prefix="pipimem-demo-") as scratch:
        root = keep or os.path.join(scratch, "workspace")
        shutil.copytree(data_path("sample-workspace"), root, ignore=shutil.ignore_patterns("cache", "state", "locks"))
        _story(root)
    if keep:
        print(f"\nThe workspace is in '{keep}'.")
    return 0


def _story(root: str) -> None:
    _say("A team's memory is a folder of Markdown. This is a copy of one.")
    history = _start_history(root)
    with Memory(root) as memory:
        for channel in memory.channels():
            print(f"  {channel.kind:<8} {channel.id}")
        _say("1. Index it. The index can be deleted at any time; the files are the truth.")
        diff = memory.index()
        print(
            f"  {len(diff.added)} documents, {diff.sections} sections, {diff.entries} entries in {diff.seconds:.2f} s"
        )
        for number, (identity, question) in enumerate(RECALLS, 2):
            _recall(memory, number, identity, question)
        for number, (identity, name, what) in enumerate(UPDATES, 4):
            _update(memory, number, identity, os.path.join(root, "transcripts", name), what, history=history)
        if history:
            _history(memory)
    _say("Nothing left this folder: no key, no network, no model. Next: pipimem init, or docs/tutorial.md.")


def _say(line: str) -> None:
    print(f"\n{line}\n" if sys.stdout.isatty() else f"\n== {line}\n")


def _start_history(root: str) -> bool:
    """Commits the copy, so that the story has a history; false where there is no git."""
    from pipimem.git import GitOff, Repository

    try:
        repository = Repository.init(root)
    except (GitOff, Refused) as off:
        print(f"  (no history in this story: {off.message})")
        return False
    with Memory(root) as memory:
        scan = memory.workspace.scan()
        files: dict[str, bytes | str | None] = {}
        for document in scan.documents:
            files[document.path] = memory.workspace.read(document.path)
        repository.commit(files, "the team's memory so far\n\nPipimem-Actor: person\n")
    return True


def _recall(memory: Memory, number: int, channel: str, question: str) -> None:
    _say(f"{number}. Recall, in {channel}: “{question}”")
    started = time.perf_counter()
    result = memory.recall(question, channel)
    milliseconds = (time.perf_counter() - started) * 1000
    print("".join(f"  {line}\n" for line in result.text.splitlines()), end="")
    print(
        f"  ({result.recalled} of {result.trace['candidates']} candidates, {result.tokens} tokens, "
        f"{milliseconds:.1f} ms; looked because of {result.trace['router']['reason']})"
    )


def _update(memory: Memory, number: int, channel: str, path: str, what: str, *, history: bool) -> None:
    transcript = load(path)
    _say(f"{number}. Update from {what}: {len(transcript.messages)} messages; first what would change")
    plan = memory.propose(channel, transcript)
    for change in memory.preview(plan):
        lines = (clip(line, WIDTH) for line in change.diff().splitlines() if not line.startswith((" ", "@@", "---")))
        print("".join(f"  {line}\n" for line in lines), end="")
    applied = memory.apply(plan)
    print(render.applied_text(applied.plan, applied.changes, applied), end="")
    again = memory.preview(memory.propose(channel, transcript))
    print(f"The same conversation again would change {len(again)} files.")


def _history(memory: Memory) -> None:
    _say("6. Every change is a commit that says where it comes from")
    commits = memory.log(limit=5)
    print(render.commits_text(commits), end="")
    _say("7. And can be taken back")
    applied = memory.undo(commits[0].sha)
    print(render.applied_text(applied.plan, applied.changes, applied), end="")
    print(render.commits_text(memory.log(limit=1)), end="")
