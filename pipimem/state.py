"""What is there, in figures: files, entries, index, git, and what is off and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipimem import graph, maintaining, standing
from pipimem.editing import skills
from pipimem.git import GitOff
from pipimem.meaning import Meaning
from pipimem.text import decode, tokens

if TYPE_CHECKING:
    from pipimem.opened import Opened


def status(memory: Opened, models: Meaning | None) -> dict[str, Any]:
    """What is there: files and tokens by layer, entries by kind, the index, git, commits that wait, problems."""
    scan = memory.workspace.scan()
    kinds, notes = memory.passages.facts()
    damaged = dict(memory.commits.damaged(scan))
    broken = [(s.path, f"not a valid skill: {s.problem}") for s in skills(memory) if s.problem]
    notes = [(path, reason) for path, reason in notes if path not in damaged]
    waiting = memory.pending()
    layers: dict[str, dict[str, int]] = {}
    for document in scan.documents:
        row = layers.setdefault(document.layer, {"documents": 0, "bytes": 0})
        row["documents"] += 1
        row["bytes"] += document.stat.st_size
    always = [n for n in ("SOUL.md", "AGENTS.md", "STANDING.md") if memory.workspace.read(n) is not None]
    meaning = (models or Meaning(memory)).state()
    return {
        "workspace": memory.workspace.root,
        "mode": memory.workspace.config["recall.mode"],
        "channels": len(memory.channels()),
        "layers": layers,
        "kinds": {kind or "(none)": count for kind, count in kinds.items()},
        "always_on_tokens": sum(tokens(decode(memory.workspace.read(n) or b"")) for n in always),
        "index": {
            "path": memory.passages.path(),
            "stale": memory.stale,
            "dictionary": memory.passages.dictionary() or None,
        },
        "graph": graph.size(memory),
        "models": list(memory.workspace.config["update.models"]),
        "off": [
            *([] if memory.workspace.config["update.models"] else ["models: the updater works by rules"]),
            *([] if meaning["model"] else [f"vectors, {meaning['off']}: search is by words"]),
            *([] if meaning["reranker"] else ["reranker: none is named"]),
            "models in hooks: an answer there is by words, a model takes too long to start",
        ],
        "vectors": meaning,
        "limits": {
            "standing_items": standing.MOST,
            "standing_characters": standing.CHARACTERS,
            "file_characters": memory.workspace.config["workspace.file_limit"],
            "recall_tokens": memory.workspace.config["recall.budget"],
        },
        "git": history(memory),
        "pending_commits": len(waiting),
        "pending_because": next((row["reason"] for row in waiting if row.get("reason")), ""),
        "queue": maintaining.queue(memory),
        "today": maintaining.today(memory),
        "problems": [
            {"path": path, "reason": reason}
            for path, reason in sorted({*scan.skipped, *scan.remarks, *notes, *damaged.items(), *broken})
        ],
    }


def history(memory: Opened) -> str:
    """Where git keeps history, or why it does not."""
    try:
        return f"{memory.commits.repository().root}: history on"
    except GitOff as off:
        return off.message
