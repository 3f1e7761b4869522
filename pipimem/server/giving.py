"""Results of `Memory` → the answers of tools: bounded, with secrets out and what must not be given withheld.

What a model reads here is data from memory. A passage that holds hidden characters or reads like an order is named and
not shown; in mode `observe` no text of memory is given at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipimem import safety
from pipimem.index.alike import grouped
from pipimem.recall.context import guarded
from pipimem.recall.gate import WITHHELD
from pipimem.references import clipped
from pipimem.skills import Skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipimem.index import Hit
    from pipimem.recall import Recall
    from pipimem.recall.context import Context
    from pipimem.references import Shown
    from pipimem.server import answers
    from pipimem.server.served import Call
    from pipimem.update.plan import Applied, Op

OBSERVING = "mode is observe: memory is looked at, nothing of it is given"
HIT_LIMIT = 2000
"""Characters of one hit: a day's page can be a hundred times that."""
LAYERS = ("identity", "standing", "memory", "note", "skill", "session", "history")
"""The layers of a scope whose channel may not be given USER.md."""


def layers(call: Call) -> Sequence[str]:
    """The layers a search may look into: without USER.md in a group that is not allowed it."""
    if call.channel is None:
        return ()
    channel, config = call.memory.workspace.channel(call.channel), call.memory.workspace.config
    return () if channel.kind != "group" or channel.id in config["workspace.user_in_groups"] else LAYERS


def verdict(call: Call, text: str) -> str:
    """Why a text must not be given, as the scanner names it; "" when it may."""
    config = call.memory.workspace.config
    return str(safety.verdict(text, config["safety.patterns"], config["safety.allow"]))


def text(call: Call, words: str, found: str, where: str) -> str:
    """`words` as they may be given: redacted, bounded, nothing in them opening or closing one of our blocks."""
    if call.observing:
        return ""
    words = withheld(found, where) or guarded(call.memory.redacted(words))
    return clipped(words, HIT_LIMIT)


def name(call: Call, words: str) -> str:
    """A reference or path as it may be given: without what its own words would be withheld for.

    A channel's folder is an id, not words.
    """
    config, parts = call.memory.workspace.config, words.split("/")
    own = 2 if parts[0] == "channels" else 0

    def shown(part: str) -> str:
        return safety.named(part, config["safety.patterns"], config["safety.allow"])[0] if part else ""

    named = [".md".join(map(shown, part.split(".md"))) for part in parts[own:]]
    return guarded("/".join([*parts[:own], *named]))


def withheld(found: str, where: str) -> str:
    """What stands for a text with that verdict, "" where it may be given (secrets are redacted)."""
    reasons = [WITHHELD[v] for v in found.split(",") if v and v != "secret"]
    return f"(withheld: {', '.join(reasons)}; a person finds it at {where})" if reasons else ""


def meant(call: Call, path: str) -> bool:
    """Whether a document in scope is for this channel: not USER.md in a group, nor another channel's skill."""
    if path.rpartition("/")[2] == "USER.md":
        return not layers(call)
    if not path.startswith("skills/"):
        return True
    return Skill(path, call.memory.workspace.read(path) or b"").memory_scope in ("shared", call.channel)


def passages(call: Call, hits: Sequence[Hit]) -> list[answers.Passage]:
    """Hits in order, each with its text as it may be given."""
    hits = [hit for hit in hits if meant(call, hit.path)]
    groups = grouped(list(hits)) if len(hits) > 1 else [[hit] for hit in hits]
    leader = {id(hit): f"{group[0].path}:{group[0].line}" for group in groups for hit in group[1:]}
    return [
        {
            "ref": name(call, hit.ref) if hit.verdict else hit.ref,
            "path": name(call, hit.path) if hit.verdict else hit.path, "line": hit.line,
            "heading": [guarded(title) for title in hit.heading], "channel": hit.channel,
            "layer": hit.layer, "kind": hit.kind, "date": hit.date, "score": round(hit.score, 3),
            "text": text(call, hit.text, hit.verdict, f"{name(call, hit.path)}:{hit.line}"), "warning": hit.verdict,
            "alike": leader.get(id(hit), ""),
        }
        for hit in hits
    ]  # fmt: skip


def skipped(pairs: Iterable[tuple[str, str]]) -> list[answers.Skipped]:
    """Files that could not be read."""
    return [{"path": path, "reason": reason} for path, reason in pairs]


def recalled(call: Call, result: Recall) -> answers.Recalled:
    """A recall as it may be given: in mode `observe` the decisions without the block."""
    quiet = call.observing
    return {
        "recalled": 0 if quiet else result.recalled, "reason": OBSERVING if quiet else result.reason,
        "failed": result.failed, "text": "" if quiet else result.text, "tokens": 0 if quiet else result.tokens,
        "items": [
            {"ref": i.hit.ref, "path": i.hit.path, "line": i.hit.line, "heading": i.hit.heading,
             "score": round(i.hit.score, 3), "tokens": i.tokens}
            for i in result.items
        ],
        "omitted": [{"ref": name(call, ref), "reason": reason} for ref, reason in result.omitted],
        "trace": str(result.trace.get("id", "")), "notes": notes(call),
    }  # fmt: skip


def context(call: Call, result: Context) -> answers.Given:
    """A context with what became of each part."""
    return {
        "text": result.text, "tokens": result.tokens,
        "parts": [
            {"name": p.name, "path": p.path, "state": p.state, "tokens": p.tokens, "reason": p.reason}
            for p in result.parts
        ],
        "failed": result.failed, "notes": [*result.notes, *notes(call)],
    }  # fmt: skip


def opened(call: Call, shown: Shown) -> answers.Opened:
    """An opened reference; what may not be given here is as good as missing."""
    if shown.path and not meant(call, shown.path):
        return _nothing(shown.ref, f"There is no document '{shown.path}' in scope. See memory_status.")
    return {
        "ref": shown.ref, "path": shown.path, "line": shown.line, "channel": shown.channel, "id": shown.id,
        "kind": shown.kind, "date": shown.date, "source": shown.source,
        "problem": lines(call, shown.problem, shown.ref),
        "text": "" if shown.problem or call.observing else lines(call, shown.text, shown.path),
    }  # fmt: skip


def lines(call: Call, words: str, where: str) -> str:
    """A longer text without the lines that must not be given; without all of it where no single line is the reason."""
    if not withheld(verdict(call, words), where):
        return guarded(words)
    judged = [(line, withheld(verdict(call, line), where)) for line in words.splitlines()]
    if not any(instead for _, instead in judged):
        return withheld(verdict(call, words), where)
    return "\n".join(instead or guarded(line) for line, instead in judged)


def _nothing(ref: str, problem: str) -> answers.Opened:
    return {
        "ref": ref, "path": "", "line": 0, "channel": "", "id": "", "kind": "", "date": "", "source": "", "text": "",
        "problem": problem,
    }  # fmt: skip


def written(call: Call, applied: Applied) -> answers.Written:
    """What a plan did. After an update the texts are others' words, and are given as any text of memory is."""

    def said(op: Op) -> str:
        words = op.text or op.heading
        return text(call, words, verdict(call, words), op.path)

    names = [op.id for op in applied.plan.ops if op.op == "proposal"]
    waiting = applied.plan.proposed
    return {
        "run": applied.run, "commit": applied.commit, "origin": applied.plan.origin,
        "applied": [
            {"op": op.op, "id": op.id or op.target, "path": op.path, "kind": op.kind, "text": said(op)}
            for op in applied.plan.ops
            if op.op != "proposal"
        ],
        "proposed": [
            {"id": name, "op": o.op.op, "path": o.op.path, "target": o.op.target, "text": said(o.op),
             "reason": o.reason}
            for name, o in zip(names, waiting, strict=False)
        ],
        "rejected": [{"op": o.op.op, "text": said(o.op), "reason": o.reason} for o in applied.plan.rejected],
        "writes_left": call.left, "notes": [*([applied.deferred] if applied.deferred else []), *notes(call)],
    }  # fmt: skip


def notes(call: Call) -> list[str]:
    """What a person should hear about besides the answer."""
    return list(call.memory.notes)


def last_recall(call: Call, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The newest trace of this scope: another channel's questions are its own."""
    own = [row for row in rows if row.get("channel") == call.channel and row.get("wide") is False]
    if not own:
        return None
    gate = [{**refused, "ref": name(call, str(refused.get("ref")))} for refused in own[-1].get("gate", ())]
    return {**own[-1], "gate": gate}
