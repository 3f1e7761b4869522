"""Commands of review and history: what waits, what happened, and taking it back."""

from __future__ import annotations

import sys

from pipimem.cli.common import dry_run_argument, entry_argument, opened, print_json, report, say_notes
from pipimem.errors import Error, NotFound, Refused, Usage
from pipimem.text import scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.memory import Memory
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser

REVIEW_ACTIONS = {"list": 0, "show": 1, "accept": 1, "reject": 1, "apply": 0}


def _review_arguments(parser: Parser) -> None:
    actions = "list|show N|accept N|reject N|apply"
    parser.add_argument("what", nargs="*", metavar=actions, help="N: a number or an id; apply: what is ticked")


def _review(options: Namespace) -> int:
    from dataclasses import replace

    from pipimem import render

    action, *names = options.what or ["list"]
    if REVIEW_ACTIONS.get(action) != len(names):
        raise Usage("Say 'review list', 'show N', 'accept N', 'reject N' or 'apply'.", "")
    with opened(options) as memory:
        if action == "apply":
            return _review_apply(options, memory)
        if action in ("accept", "reject"):
            applied = memory.accept(names[0]) if action == "accept" else memory.reject(names[0])
            return report(options, memory, applied.plan, applied.changes, applied)
        found = memory.proposals() if action == "list" else [memory.proposal(names[0])]
        found = [replace(p, overtaken=memory.overtaken(p)) for p in found]
    if options.json:
        print_json({"proposals": [render.proposal_json(p) for p in found]})
    elif action == "show":
        print(render.scrubbed(render.proposal_text(found[0])), end="")
    else:
        print(render.scrubbed(render.proposals_text(found)), end="")
    if found:
        return 0
    print("Nothing waits for review.", file=sys.stderr)
    return NotFound.code


def _review_apply(options: Namespace, memory: Memory) -> int:
    from pipimem import render

    done = memory.answered()
    say_notes(memory)
    if options.json:
        print_json({"proposals": [render.answer_json(p, result) for p, result in done]})
    for proposal, result in done:
        if isinstance(result, Error):
            print(f"pipimem: {proposal.id}: {result}", file=sys.stderr)
        elif not options.json:
            print(render.scrubbed(f"{proposal.answer}ed  {proposal.id}  {proposal.text or proposal.old}"))
    if not done:
        print("Nothing is ticked.", file=sys.stderr)
    return Refused.code if any(isinstance(result, Error) for _, result in done) else 0 if done else NotFound.code


def _resolve_arguments(parser: Parser) -> None:
    parser.add_argument("entry", nargs="?", metavar="ENTRY", help="the entry that holds; without one, what is open")


def _resolve(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        if options.entry:
            applied = memory.resolve(options.entry)
            return report(options, memory, applied.plan, applied.changes, applied)
        pairs = memory.contradictions()
    if options.json:
        print_json({"contradictions": [[render.side_json(side) for side in pair] for pair in pairs]})
    else:
        print(render.scrubbed(render.contradictions_text(pairs)), end="")
    if pairs:
        return 0
    print("Nothing contradicts itself.", file=sys.stderr)
    return NotFound.code


def _log_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", metavar="ID", help="only what touched this channel")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="commits at most (20)")


def _log(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        commits = memory.log(options.channel, max(1, options.limit))
    if options.json:
        print_json({"commits": [render.commit_json(c) for c in commits]})
    else:
        print(render.scrubbed(render.commits_text(commits)), end="")
    if commits:
        return 0
    print("No commits yet.", file=sys.stderr)
    return NotFound.code


def _history(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        steps = memory.history(options.entry)
    if options.json:
        print_json({"commits": [{**render.commit_json(c), "text": scrub(text)} for c, text in steps]})
    else:
        print(render.scrubbed(render.steps_text(steps)), end="")
    if steps:
        return 0
    print("Git does not have this entry yet.", file=sys.stderr)
    return NotFound.code


def _blame(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        hit, commit, source = memory.blame(options.entry)
    if options.json:
        print_json(render.blame_json(hit, commit, source))
    else:
        print(render.scrubbed(render.blame_text(hit, commit, source)), end="")
    return 0


def _name_argument(parser: Parser) -> None:
    parser.add_argument("name", metavar="RUN|COMMIT", help="a run (r-…) or a commit")


def _diff(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        text = memory.diff(options.name)
    if options.json:
        print_json({"name": options.name, "diff": scrub(text)})
    else:
        print(render.scrubbed(text), end="")
    return 0


def _undo_arguments(parser: Parser) -> None:
    _name_argument(parser)
    dry_run_argument(parser)


def _undo(options: Namespace) -> int:
    with opened(options) as memory:
        applied = memory.undo(options.name, dry_run=options.dry_run)
        return report(options, memory, applied.plan, applied.changes, None if options.dry_run else applied)


COMMANDS = {
    "review": (_review_arguments, _review),
    "resolve": (_resolve_arguments, _resolve),
    "log": (_log_arguments, _log),
    "history": (entry_argument, _history),
    "blame": (entry_argument, _blame),
    "diff": (_name_argument, _diff),
    "undo": (_undo_arguments, _undo),
}
