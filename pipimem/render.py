"""Results → text for people or JSON for programs. Nothing here decides anything."""

from __future__ import annotations

import re

from pipimem.errors import Error
from pipimem.text import clip, one_line, plural, scrub

COMMANDING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069]|\r(?!\n)")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from pipimem.adopting import Adopted
    from pipimem.checks import Finding
    from pipimem.contradictions import Side
    from pipimem.forgetting import Forgotten
    from pipimem.git import Commit
    from pipimem.index import Hit
    from pipimem.index.graph import Linked, Node
    from pipimem.index.sync import Diff
    from pipimem.lifecycle import Step
    from pipimem.meaning import Embedded
    from pipimem.recall import Recall
    from pipimem.recall.context import Context
    from pipimem.references import Shown
    from pipimem.settings import Setting
    from pipimem.skills import Skill
    from pipimem.standing import Standing
    from pipimem.update.plan import Applied, Op, Outcome, Plan
    from pipimem.update.review import Proposal
    from pipimem.workspace import Change


def hits_json(hits: Sequence[Hit], groups: Sequence[Sequence[Hit]]) -> list[dict[str, Any]]:
    """Hits as `search --json` gives them, in order; one that says nearly what a better one says names it (`alike`)."""
    leader = {id(hit): f"{group[0].path}:{group[0].line}" for group in groups for hit in group[1:]}
    return [
        {
            "ref": hit.ref, "path": hit.path, "heading": hit.heading, "line": hit.line, "channel": hit.channel,
            "layer": hit.layer, "kind": hit.kind, "text": hit.text, "score": hit.score, "signals": hit.signals,
            "date": hit.date, "warning": hit.verdict, "alike": leader.get(id(hit), ""),
        }
        for hit in hits
    ]  # fmt: skip


def hits_text(groups: Sequence[Sequence[Hit]], *, explain: bool = False, colour: bool = False) -> str:
    """Ranked passages for a person: number, reference, where from, the text, and where nearly the same stands."""
    return "\n".join(_hit_lines(n, group, explain=explain, colour=colour) for n, group in enumerate(groups, 1))


def _hit_lines(number: int, group: Sequence[Hit], *, explain: bool, colour: bool) -> str:
    # what is printed here is scrubbed piece by piece: the colours are our own
    bold, dim, plain = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if colour else ("", "", "")
    hit, *others = group
    facts = " · ".join(x for x in (hit.channel or "shared", *hit.heading[-1:], hit.kind, hit.date) if x)
    path, ref, facts = (scrubbed(x) for x in (f"{hit.path}:{hit.line}", hit.ref, facts))
    head = f"{bold}{number}. {path}{plain}  {dim}[{ref}]  {facts}{plain}"
    warning = [f"   ! {hit.verdict}: never recalled automatically"] if hit.verdict else []
    body = ["   " + line for line in scrubbed(hit.text).splitlines()[:12]]
    signals = ["   " + "  ".join(f"{k} {v:.3f}" for k, v in hit.signals.items())] if explain else []
    also = scrubbed(", ".join(f"{h.path}:{h.line}" for h in others))
    alike = [f"   {dim}nearly the same: {also}{plain}"] if others else []
    return "\n".join([head, *warning, *body, *signals, *alike]) + "\n"


def diff_json(diff: Diff, tokenizer: str) -> dict[str, Any]:
    """A sync as `index --json` gives it."""
    return {
        "documents": len(diff.added) + len(diff.changed), "sections": diff.sections, "entries": diff.entries,
        "passages": diff.passages, "added": diff.added, "changed": diff.changed, "removed": diff.removed,
        "skipped": [{"path": p, "reason": r} for p, r in diff.skipped], "tokenizer": tokenizer,
        "seconds": round(diff.seconds, 3),
    }  # fmt: skip


def recall_json(result: Recall) -> dict[str, Any]:
    """A recall as `recall --json` gives it."""
    items = [
        {"ref": i.hit.ref, "path": i.hit.path, "heading": i.hit.heading, "line": i.hit.line, "score": i.hit.score,
         "tokens": i.tokens}
        for i in result.items
    ]  # fmt: skip
    return {
        "recalled": result.recalled, "reason": result.reason, "text": result.text, "tokens": result.tokens,
        "items": items, "omitted": [{"ref": ref, "reason": reason} for ref, reason in result.omitted],
        "trace": result.trace,
    }  # fmt: skip


def why_text(row: dict[str, Any], said: dict[str, str]) -> str:
    """A recall explained to a person who has not read the code; `said` holds what the passages say now."""
    router = row.get("router", {})
    lines = [
        f"{row['id']}  {row['time']}  {'channel ' + row['channel'] if row.get('channel') else 'the shared layer'}",
        "",
    ]
    if row.get("failed"):
        return "\n".join([*lines, f"It could not look: {row['reason']}", ""])
    if not router.get("fire"):
        return "\n".join(
            [*lines, f"Memory was not asked, because the message does not seem to need it: {router.get('reason')}.", ""]
        )
    asked = "; ".join(f"“{clip(one_line(q), 60)}”" for q in row.get("asked", ()))
    packed = set(row.get("packed", ()))
    lines += [f"Memory was asked, because the message shows {router['reason']}.", f"Looked for: {asked}.", ""]
    lines.append(
        f"{plural(len(packed), 'passage')} given, {row.get('tokens', 0)} of at most {row.get('budget', 0)} tokens:"
    )
    for scored in (s for s in row.get("scores", ()) if s["ref"] in packed):
        parts = ", ".join(f"{name} {value:g}" for name, value in scored["signals"].items() if value)
        lines += [f"  [{scored['ref']}] {_said(said, scored['ref'])}", f"      score {scored['score']:g}: {parts}"]
    out = [(g["ref"], g["reason"]) for g in row.get("gate", ())]
    out += [
        (s["ref"], "it did not fit, or says what another says") for s in row.get("scores", ()) if s["ref"] not in packed
    ]
    lines += ["", f"{plural(len(out), 'candidate')} left out:"] if out else []
    lines += [f"  [{ref}] {_said(said, ref)}\n      because {reason}" for ref, reason in out[:20]]
    lines += [f"  and {len(out) - 20} more"] if len(out) > 20 else []
    cut = {"dictionary": "; Chinese was cut by the dictionary", "vocabulary": "; Chinese was cut by the index's words"}
    state = "older than some files" if row.get("stale") else "up to date"
    end = f"The index was {state}{cut.get(row.get('cutter', ''), '')}; it took {row.get('ms', 0)} ms."
    return "\n".join([*lines, "", *(f"Without {what}" for what in row.get("missing", ())), end, ""])


def _said(said: dict[str, str], ref: str) -> str:
    return clip(one_line(said.get(ref, "(not there any more)")), 80)


def context_json(result: Context) -> dict[str, Any]:
    """A context as `context --json` gives it."""
    parts = [
        {"name": p.name, "path": p.path, "state": p.state, "tokens": p.tokens, "reason": p.reason} for p in result.parts
    ]
    return {
        "text": scrubbed(result.text), "tokens": result.tokens, "parts": parts, "budget": result.budget(),
        "notes": result.notes,
    }  # fmt: skip


def budget_text(result: Context) -> str:
    """What a context is made of, for a person: each part with its state, tokens and reason; then the sums."""
    rows = [(p.state, p.tokens, p.name, p.path if p.path != p.name else "", p.reason) for p in result.parts]
    sums = ", ".join(f"{sort} {count}" for sort, count in result.budget().items())
    return table([("", "tokens", "part", "from", ""), *rows]) + f"\nabout {result.tokens} tokens in all ({sums})\n"


def changes_json(changes: Iterable[Change]) -> list[dict[str, str]]:
    """Changes as `--json` gives them."""
    return [{"path": c.path, "diff": scrubbed(c.diff())} for c in changes]


def applied_json(plan: Plan, changes: Sequence[Change], applied: Applied | None = None) -> dict[str, Any]:
    """A plan, applied or not, as `update`, `add`, `forget` and `undo` give it with `--json`."""
    return {
        "run": plan.run if applied else "", "origin": plan.origin,
        "applied": [_op_json(o) for o in plan.ops if o.op != "proposal"] if applied else [],
        "planned": [] if applied else [_op_json(o) for o in plan.ops if o.op != "proposal"],
        "proposed": [_outcome_json(o) for o in plan.proposed], "rejected": [_outcome_json(o) for o in plan.rejected],
        "changes": changes_json(changes), "tokens": plan.tokens, "commit": applied.commit if applied else "",
        "deferred": applied.deferred if applied else "",
    }  # fmt: skip


def _op_json(op: Op) -> dict[str, str]:
    return {"op": op.op, "id": op.id or op.target, "path": op.path, "heading": op.heading, "kind": op.kind,
            "text": "" if op.op == "cut" else op.text, "reason": op.reason}  # fmt: skip


def _outcome_json(outcome: Outcome) -> dict[str, str]:
    return {**_op_json(outcome.op), "reason": outcome.reason}


def applied_text(plan: Plan, changes: Sequence[Change], applied: Applied | None = None) -> str:
    """The same for a person: what was done, what was held back and why, where it is committed."""
    lines = [scrubbed(change.diff()).rstrip("\n") for change in changes] if applied is None else []
    if not changes:
        lines.append("Nothing to change.")
    elif applied is None:
        lines.append(f"Would write {plural(len(changes), 'file')} ({plan.origin}).")
    else:
        lines.append(f"Wrote {plural(len(changes), 'file')} (run {plan.run}, {plan.origin}).")
    lines += [f"  {_op_text(o)}" for o in plan.ops if o.op != "proposal"]
    lines += [f"  proposed{_quoted(o)}: {o.reason}" for o in plan.proposed]
    lines += [f"  left out{_quoted(o)}: {o.reason}" for o in plan.rejected]
    if applied is not None and applied.commit:
        lines.append(f"Committed as {applied.commit[:10]}; take it back with 'pipimem undo {plan.run}'.")
    elif applied is not None and changes:
        lines.append(f"Not committed: {applied.deferred}")
    return "\n".join(lines) + "\n"


def _op_text(op: Op) -> str:
    said = op.heading if op.op == "block" else op.target if op.op == "cut" else one_line(op.text) or op.target
    old = op.facts.get("supersedes", "")
    return f"{op.op:<8} {op.path}: {said}{f' (supersedes {old})' if old else ''}"


def _quoted(outcome: Outcome) -> str:
    text = " ".join(outcome.op.text.split())
    return f" “{text[:80]}{'…' if len(text) > 80 else ''}”" if text else ""


def adopted_json(found: Adopted) -> dict[str, Any]:
    """What an `adopt` took over, proposed and left out, with `--json`."""
    applied = found.applied
    return {
        "source": found.source, "path": scrub(found.path), "kept": dict(found.kept), "proposed": found.proposed,
        "skipped": found.skipped, "left": [{"place": scrub(p), "reason": scrub(why)} for p, why in found.left],
        "changes": changes_json(found.changes), "run": applied.run if applied else "",
        "commit": applied.commit if applied else "", "deferred": applied.deferred if applied else "",
    }  # fmt: skip


def adopted_text(found: Adopted) -> str:
    """The same for a person: the diff of a dry run, what is kept and skipped by reason, and each refused place."""
    applied = found.applied
    lines = [scrubbed(change.diff()).rstrip("\n") for change in found.changes] if applied is None else []
    kept = ", ".join(f"{name} {count}" for name, count in found.kept.items()) or "nothing"
    lines.append(f"{'Kept' if applied or not found.plan else 'Would keep'} from {found.source}: {kept}.")
    lines += [f"Waiting in review: {found.proposed}."] if found.proposed else []
    lines += [f"  skipped {count}: {why}" for why, count in sorted(found.skipped.items(), key=lambda p: (-p[1], p[0]))]
    named = [(place, why) for place, why in found.left if "secret" in why or "cannot be" in why or "hidden" in why]
    lines += [f"  left out {place}: {why}" for place, why in named[:20]]
    lines += [f"  … and {len(named) - 20} more"] if len(named) > 20 else []
    if applied is not None and applied.commit:
        lines.append(f"Committed as {applied.commit[:10]}; take it back with 'pipimem undo {applied.run}'.")
    elif applied is not None and found.changes:
        lines.append(f"Not committed: {applied.deferred}")
    return "\n".join(lines) + "\n"


def proposal_json(proposal: Proposal) -> dict[str, str]:
    """A proposal as `review --json` gives it."""
    return {name: scrubbed(getattr(proposal, name)) for name in proposal.__slots__}


def proposals_text(proposals: Sequence[Proposal]) -> str:
    """What waits for a person: number, id, where, what; how to answer."""
    rows = [
        (
            n,
            p.id,
            _place(p),
            p.op or "?",
            f"[{p.answer}]" if p.answer else "[out of date]" if p.overtaken else "",
            p.problem or clip(p.text, 60),
        )
        for n, p in enumerate(proposals, 1)
    ]
    return table(rows)


def proposal_text(proposal: Proposal) -> str:
    """One proposal in full."""
    would = {"forget": "forget", "invalidate": "take out"}.get(proposal.op, "write")
    parts = [f"{proposal.id}  {proposal.op} in {_place(proposal)}  ({proposal.path})"]
    parts += [f"problem: {proposal.problem}"] if proposal.problem else []
    parts += [f"out of date: {proposal.overtaken}"] if proposal.overtaken else []
    parts += [f"instead of: {proposal.old}"] if proposal.old else []
    parts += [f"would {would}: {proposal.text}", f"why: {proposal.why}", f"evidence: {proposal.evidence}"]
    parts += [f"ticked: {proposal.answer}"] if proposal.answer else []
    return "\n".join(parts) + "\n"


def _place(proposal: Proposal) -> str:
    return (proposal.channel or "shared") + (f", from {proposal.said_in}" if proposal.said_in else "")


def setting_json(setting: Setting) -> dict[str, Any]:
    """A setting as `config --json` gives it."""
    return {"name": setting.name, "value": setting.value, "from": setting.origin, "default": setting.key.default,
            "own": setting.key.own, "doc": setting.key.doc}  # fmt: skip


def settings_text(settings: Sequence[Setting], *, alone: bool) -> str:
    """Settings for a person: name, value and where it is from; of one alone its value only."""
    import json

    def shown(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    if alone:
        return f"{shown(settings[0].value)}\n"
    return table([(s.name, shown(s.value) or '""', s.origin if s.origin != "default" else "") for s in settings])


def forgotten_json(done: Forgotten, *, dry_run: bool) -> dict[str, Any]:
    """What a `forget` did or would do: as any plan, with the places, the records, what still stands, and the proof."""
    plan = done.applied.plan
    return {
        **applied_json(plan, done.applied.changes, None if dry_run else done.applied),
        "places": [{"path": p.path, "line": p.line, "what": p.what, "ref": p.ref} for p in done.places],
        "records": list(done.records), "still": [scrubbed(place) for place in done.still], "proof": done.proof,
        "in_git": done.in_git,
    }  # fmt: skip


def forgotten_text(done: Forgotten, *, dry_run: bool) -> str:
    """The same for a person; a dry run shows what each place says. Of what stood in no file only the records tell."""
    changes = done.applied.changes
    text = applied_text(done.applied.plan, changes, None if dry_run else done.applied) if changes else ""
    lines = [f"  from {record}\n" for record in done.records]
    if dry_run:
        lines = [f"  {p.what:<8} {p}: {clip(one_line(p.text), 80)}\n" for p in done.places] + lines
    return text + "".join(lines) + (f"{done.proof}\n" if done.proof else "")


def side_json(side: Side) -> dict[str, Any]:
    """One side of a contradiction as `resolve --json` gives it."""
    return {"ref": side.ref, "channel": side.channel, "path": side.path, "line": side.line,
            "text": scrubbed(side.text), "facts": side.facts}  # fmt: skip


def contradictions_text(pairs: Sequence[tuple[Side, Side]]) -> str:
    """Open contradictions for a person: both sides of each, and what to say."""
    lines = []
    for pair in pairs:
        for side in pair:
            told = ", ".join(x for x in (side.facts.get("since", ""), side.facts.get("src", "")) if x)
            lines.append(f"[{side.ref}] {side.path}:{side.line}{f'  ({told})' if told else ''}")
            lines.append(f"   {one_line(side.text)}")
        lines += [f"Keep one with 'pipimem resolve {pair[0].ref}' or 'pipimem resolve {pair[1].ref}'.", ""]
    return "\n".join(lines[:-1]) + "\n" if lines else ""


def skill_json(skill: Skill) -> dict[str, Any]:
    """A skill as `skill --json` gives it."""
    return {name: getattr(skill, name) for name in skill.__slots__}


def skills_text(skills: Sequence[Skill]) -> str:
    """Skills for a person, one line each."""
    rows = [(s.name, f"! {s.problem}" if s.problem else clip(s.description, 90)) for s in skills]
    return table(rows)


def skill_text(skill: Skill) -> str:
    """One skill for a person: what its front matter says, then its steps."""
    facts = {
        "what": skill.description, "when": skill.when_to_use, "paths": ", ".join(skill.paths),
        "offered": ", ".join(skill.hooks), "memory": skill.memory_scope, "problem": skill.problem,
    }  # fmt: skip
    head = "".join(f"{key:<8} {value}\n" for key, value in facts.items() if value)
    return f"{skill.name}  {skill.path}\n{head}\n{skill.text}\n"


def shown_json(shown: Shown) -> dict[str, Any]:
    """An opened reference as `show --json` gives it: what is known of the passage, and nothing else of its comment."""
    return {name: getattr(shown, name) for name in shown.__slots__}


def shown_text(shown: Sequence[Shown]) -> str:
    """Opened references for a person: where each is, and its text."""
    return "\n".join(
        "  ".join(x for x in (f"{s.path}:{s.line}" if s.line else s.path, s.id, s.kind, s.date, s.source) if x)
        + "\n"
        + "".join(f"   {line}\n" for line in s.text.splitlines())
        for s in shown
    )


def standing_json(standing: Standing) -> dict[str, Any]:
    """What is pinned as `pin list --json` gives it."""
    from pipimem.standing import CHARACTERS, MOST

    return {
        "entries": [scrubbed(e.text) for e in standing.entries],
        "budget": {"items": len(standing.entries), "most_items": MOST, "characters": standing.characters,
                   "most_characters": CHARACTERS, "given": standing.fits},
    }  # fmt: skip


def standing_text(standing: Standing) -> str:
    """What is pinned, numbered, for a person."""
    return "".join(f"{n}. {one_line(e.text)}\n" for n, e in enumerate(standing.entries, 1))


def answer_json(proposal: Proposal, result: Applied | Error) -> dict[str, str]:
    """What came of one ticked proposal, as `review apply --json` gives it."""
    run, commit, problem = ("", "", str(result)) if isinstance(result, Error) else (result.run, result.commit, "")
    return {"id": proposal.id, "answer": proposal.answer, "run": run, "commit": commit, "problem": problem}


def commits_text(commits: Sequence[Commit]) -> str:
    """A log for a person, one line a commit."""
    return "".join(f"{c.sha[:10]}  {c.time[:16].replace('T', ' ')}  {c.actor:<8} {c.subject}\n" for c in commits)


def commit_json(commit: Commit) -> dict[str, Any]:
    """A commit as `log --json` gives it."""
    return {
        "commit": commit.sha, "time": commit.time, "author": commit.author, "actor": commit.actor,
        "subject": commit.subject, "run": commit.trailers.get("Pipimem-Run", ""), "files": list(commit.files),
    }  # fmt: skip


def steps_text(steps: Sequence[tuple[Commit, str]]) -> str:
    """The history of an entry for a person: each commit, and what the entry said then."""
    return "".join(f"{commits_text([c])}            {one_line(text) or '(gone)'}\n" for c, text in steps)


def blame_json(hit: Hit, commit: Commit | None, source: str) -> dict[str, Any]:
    """Where an entry is from, as `blame --json` gives it."""
    return {
        "ref": hit.ref, "path": hit.path, "line": hit.line, "text": scrubbed(hit.text), "source": source,
        "commit": commit_json(commit) if commit else None,
    }  # fmt: skip


def blame_text(hit: Hit, commit: Commit | None, source: str) -> str:
    """Where an entry is from, for a person."""
    lines = [f"{hit.path}:{hit.line}  [{hit.ref}]", f"   {one_line(hit.text)}"]
    lines.append("commit   " + commits_text([commit]).rstrip() if commit else "commit   not committed yet")
    run = commit.trailers.get("Pipimem-Run", "") if commit else ""
    lines += [f"run      {run}"] if run else []
    lines += [f"message  {source}"] if source else []
    return "\n".join(lines) + "\n"


def findings_json(found: Sequence[Finding]) -> dict[str, Any]:
    """What is wrong with the files, as `check --json` gives it."""
    rows = [{"name": f"{scrubbed(f.path)}:{f.line}", "ok": False, "level": f.level, "detail": f.message} for f in found]
    errors = sum(f.level == "error" for f in found)
    return {"checks": rows, "errors": errors, "warnings": len(found) - errors}


def findings_text(found: Sequence[Finding]) -> str:
    """What is wrong with the files, as compilers say it."""
    lines = [f"{f.path}:{f.line}: {f.level}: {f.message}\n" for f in found]
    errors = sum(f.level == "error" for f in found)
    return "".join(lines) + f"{plural(errors, 'error')}, {plural(len(found) - errors, 'warning')}\n"


def step_json(step: Step) -> dict[str, Any]:
    """One step of a boundary as `compact`, `new-session` and `maintain --json` give it."""
    return {"name": step.name, "done": step.done, "reason": step.reason, "run": step.run}


def step_text(step: Step) -> str:
    """One step of a boundary for a person."""
    return f"{step.name}: {step.reason or 'done'}{' ' + step.run if step.run else ''}"


def work_text(row: dict[str, Any]) -> str:
    """One step of background work for a person."""
    said = " ".join(word for word in (row["reason"] or "done", row["run"]) if word)
    return f"{row['channel'] or 'index'}  {row['event']}: {row['job']}: {said}\n"


def embedded_json(done: Embedded) -> dict[str, Any]:
    """What embedding did, or would do, as `index --json` gives it."""
    return {name: getattr(done, name) for name in sorted(done.__slots__)}


def embedded_text(done: Embedded, *, dry_run: bool) -> str:
    """What embedding did, or would do, for a person: how many texts, what they cost, where they go."""
    if dry_run:
        what = f"{plural(done.waiting, 'text')} of {done.total} would be {'sent to' if done.remote else 'read by'}"
        return f"{what} {done.model}: about {done.tokens} tokens\n"
    lines = []
    if done.texts:
        lines.append(f"{plural(done.texts, 'text')} embedded by {done.model}: about {done.tokens} tokens")
    if done.waiting:
        lines.append(f"{plural(done.waiting, 'text')} of {done.total} wait for 'pipimem index --vectors'")
    if not lines:
        lines.append(f"vectors of {plural(done.total, 'text')} by {done.model}: up to date")
    return "\n".join(lines) + "\n"


def status_text(state: dict[str, Any]) -> str:
    """`status` for a person."""
    layers = [
        (name, row["documents"], f"{row['bytes'] / 1024:.1f} kB") for name, row in sorted(state["layers"].items())
    ]
    kinds = ", ".join(f"{count} {kind}" for kind, count in state["kinds"].items())
    index = state["index"]
    lines = [
        f"workspace   {state['workspace']} ({plural(state['channels'], 'channel')}, mode {state['mode']})",
        f"entries     {kinds or 'none'}",
        f"always on   about {state['always_on_tokens']} tokens (SOUL, AGENTS, STANDING)",
        f"index       {index['path']}{' (stale)' if index['stale'] else ''}",
        f"Chinese     {index['dictionary'] or 'no dictionary: run pipimem index'}",
        f"models      {', '.join(state['models']) or 'none: the updater works by rules'}",
        f"meaning     {_meaning_text(state['vectors'])}",
        f"history     {state['git']}",
    ]
    if state["graph"].get("edges"):
        lines.append(
            f"graph       {plural(state['graph']['nodes'], 'node')}, {plural(state['graph']['edges'], 'link')}"
        )
    if state["pending_commits"]:
        why = state["pending_because"]
        waiting = plural(state["pending_commits"], "commit")
        lines.append(f"waiting     {waiting}, made by the next change{f' ({why})' if why else ''}")
    today, queue = state["today"], state["queue"]
    runs, tokens = (f"{today[name]} of {today[f'{name}_limit']} {name}" for name in ("runs", "tokens"))
    lines.append(f"today       {runs}, {tokens}")
    if queue["waiting"]:
        lines.append(f"queue       {plural(queue['waiting'], 'line')} waiting since {queue['since']}")
    lines += [
        f"given up    {row['event']} of {row['time']} in '{row['channel']}' after {row['tries']} tries: {row['reason']}"
        for row in queue["given_up"]
    ]
    lines += [f"problem     {p['path']}: {p['reason']}" for p in state["problems"]]
    return "\n".join(lines) + "\n\n" + table([("layer", "files", "size"), *layers])


def _meaning_text(found: dict[str, Any]) -> str:
    """Which models search goes by besides words, and what is missing."""
    if not found["model"]:
        said = f"off, {found['off']}: search is by words"
    else:
        said = f"{found['using'] or found['model']} ({plural(found['texts'], 'text')}, {found['bytes'] / 1e6:.1f} MB)"
        said += f"; {found['missing']}" if found["missing"] else ""
        said += f"; in the making: {found['model']}" if found["using"] not in ("", found["model"]) else ""
    return said + (f"; reranker {found['reranker']}" if found["reranker"] else "")


def neighbors_text(found: Linked, said: dict[str, str]) -> str:
    """What is near a thing, for a person: each with how many links away it is and where it is described; the links.

    `said` holds what entries say, by id.
    """
    names = {node.key: node.name for node in found.nodes}
    rows = [(node.depth, node.kind, clip(one_line(node.name), 60), _described(node, said)) for node in found.nodes]
    return table([("away", "kind", "name", "described in"), *rows]) + _edges_text(found, names)


def path_text(found: Linked) -> str:
    """A way between two things, for a person: what it passes, then what each step rests on."""
    names = {node.key: node.name for node in found.nodes}
    way = " — ".join(clip(one_line(node.name), 60) for node in found.nodes)
    return f"{way}\n{_edges_text(found, names)}" if found.nodes else ""


def _edges_text(found: Linked, names: dict[str, str]) -> str:
    rows = [
        (clip(one_line(names[e.source]), 40), e.relation, clip(one_line(names[e.target]), 40), f"{e.path}:{e.line}")
        for e in found.edges
    ]
    return f"\n{table([('from', 'relation', 'to', 'said in'), *rows])}" if rows else ""


def _described(node: Node, said: dict[str, str]) -> str:
    text = f"  {clip(one_line(said[node.name]), 60)}" if node.name in said else ""
    return f"{node.path}:{node.line}{text}" if node.path else ""


def graph_status_text(state: dict[str, Any]) -> str:
    """How much the graph holds, for a person."""
    parts = {"kinds": state["kinds"], "relations": state["relations"], "layers": state["layers"]}
    lines = [f"{plural(state['nodes'], 'node')}, {plural(state['edges'], 'link')}\n"]
    lines += [
        f"{name:<10} {', '.join(f'{n} {what}' for what, n in part.items())}\n" for name, part in parts.items() if part
    ]
    return "".join(lines) + (
        "\n" + table([("links", "of"), *((n, name) for name, n in state["busiest"].items())])
        if state["busiest"]
        else ""
    )


def evaluation_text(result: dict[str, Any]) -> str:
    """`eval` for a person: a row for everything and one for each language and category, of queries and of messages."""
    parts = [_queries_text(result)] if result["queries"] else []
    if "messages" in result:
        parts.append(_messages_text(result["messages"]))
    return "\n".join(parts) or "no queries\n"


def _queries_text(result: dict[str, Any]) -> str:
    names = ("n", "recall@1", "recall@5", "recall@10", "hit@5", "mrr@10", "ndcg@10")
    rows = [("all", *(result.get(n, "") for n in names))]
    rows += [(group, *(row[n] for n in names)) for group, row in result["by"].items()]
    alarms, ms = result["false_alarms"], result["ms"]
    return table([("", *names), *rows]) + (
        f"\n{alarms['with_hits']} of {alarms['queries']} queries without an answer found something; "
        f"{ms['p50']} ms median, {ms['p95']} ms at 95 %\n"
        + (f"nothing right in the first ten: {', '.join(result['missed'])}\n" if result["missed"] else "")
    )


def _messages_text(result: dict[str, Any]) -> str:
    """The router and the block: which messages needed memory, and whether it gave the right thing and nothing else."""
    names = ("n", "needed", "router_precision", "router_recall", "hit", "clean", "quiet")
    rows = [(group, *(row[n] for n in names)) for group, row in (("all", result), *result["by"].items())]
    wrong = {
        "not looked for": result["not_fired"], "looked for in vain": result["fired_for_nothing"],
        "answer not in the block": result["missed"], "something irrelevant in the block": result["noisy"],
    }  # fmt: skip
    lines = [f"{what}: {', '.join(ids)}\n" for what, ids in wrong.items() if ids]
    return table([("messages", *names), *rows]) + "\n" + "".join(lines)


def table(rows: Sequence[Sequence[object]]) -> str:
    """Rows as aligned columns; Han characters count two."""
    if not rows:
        return ""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(_width(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ("  ".join(c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=True)) for row in cells)
    return "".join(line.rstrip() + "\n" for line in lines)


def _width(text: str) -> int:
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def scrubbed(text: str) -> str:
    """Text fit for any terminal: lone surrogates replaced, and what moves its cursor, colours it, or turns the order of
    the characters around written out (`\\x1b`); lines and tabs stay."""
    return COMMANDING.sub(lambda found: ascii(found[0])[1:-1], scrub(text))
