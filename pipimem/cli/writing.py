"""Commands with which a person writes memory by hand, and forgets."""

from __future__ import annotations

import sys

from pipimem.cli.common import dry_run_argument, entry_argument, given_text, opened, print_json, report, say_notes
from pipimem.errors import NotFound, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.memory import Memory
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser
    from pipimem.skills import Skill

SKILL_ACTIONS = ("list", "show", "add", "edit", "remove")


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to remember; - reads standard input")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--channel", metavar="ID", help="the channel it belongs to")
    place.add_argument("--target", choices=("user", "memory"), default="", help="USER.md or MEMORY.md, shared")
    parser.add_argument(
        "--kind", default="fact", metavar="KIND", help="fact, decision, preference, constraint, … (fact)"
    )
    parser.add_argument("--heading", default="", metavar="H", help="the section (else by kind)")


def _add(options: Namespace) -> int:
    with opened(options) as memory:
        applied = memory.add(
            given_text(options.text),
            options.channel,
            target=options.target,
            kind=options.kind,
            heading=options.heading,
        )
        return report(options, memory, applied.plan, applied.changes, applied)


def _supersede_arguments(parser: Parser) -> None:
    entry_argument(parser)
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what it says from now on; - reads standard input")


def _supersede(options: Namespace) -> int:
    with opened(options) as memory:
        applied = memory.supersede(options.entry, given_text(options.text))
        return report(options, memory, applied.plan, applied.changes, applied)


def _invalidate(options: Namespace) -> int:
    with opened(options) as memory:
        applied = memory.invalidate(options.entry)
        return report(options, memory, applied.plan, applied.changes, applied)


def _promote(options: Namespace) -> int:
    with opened(options) as memory:
        applied = memory.promote(options.entry)
        return report(options, memory, applied.plan, applied.changes, applied)


def _pin_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="TEXT|list|remove N", help="what holds always; - reads stdin")


def _pin(options: Namespace) -> int:
    words = options.words or ["list"]
    with opened(options) as memory:
        if words[0] == "remove" and len(words) == 2 and words[1].isdecimal():
            applied = memory.unpin(int(words[1]))
            return report(options, memory, applied.plan, applied.changes, applied)
        if words != ["list"]:
            applied = memory.pin(given_text(words))
            return report(options, memory, applied.plan, applied.changes, applied)
        return _pinned(options, memory)


def _pinned(options: Namespace, memory: Memory) -> int:
    from pipimem import render

    standing = memory.pinned()
    if options.json:
        print_json(render.standing_json(standing))
    else:
        print(render.scrubbed(render.standing_text(standing)), end="")
    if standing.note:
        print(f"pipimem: {standing.note}", file=sys.stderr)
    if standing.entries:
        return 0
    print("Nothing is pinned.", file=sys.stderr)
    return NotFound.code


def _note_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="+", metavar="add TEXT|show DATE|NAME", help="show today: this day's page")
    parser.add_argument("--channel", metavar="ID", help="the channel's notes (else the shared ones)")
    parser.add_argument("--topic", default="", metavar="NAME", help="add to a topic's page instead of the day's")


def _note(options: Namespace) -> int:
    action, *words = options.words
    if action not in ("add", "show") or not words or (action == "show" and len(words) > 1):
        raise Usage("Say 'note add TEXT' or 'note show DATE|NAME'.", "See 'pipimem note --help'.")
    with opened(options) as memory:
        if action == "show":
            path, text = memory.page(words[0], options.channel)
            print_json({"path": path, "text": text}) if options.json else print(text, end="")
            return 0
        _, path, line = memory.note(given_text(words), options.channel, topic=options.topic)
        say_notes(memory)
    print_json({"path": path, "line": line}) if options.json else print(f"{path}:{line}")
    return 0


def _skill_arguments(parser: Parser) -> None:
    actions = "list|show NAME|add NAME TEXT|edit NAME TEXT|remove NAME"
    parser.add_argument("words", nargs="*", metavar=actions, help="TEXT: the steps in Markdown; - reads stdin")
    parser.add_argument("--description", default="", metavar="D", help="what a new skill does, in a line")
    parser.add_argument("--when", default="", metavar="W", help="when a new skill is to be used, in a line")


def _skill(options: Namespace) -> int:
    action, *words = options.words or ["list"]
    name, text = (words[0] if words else ""), words[1:]
    if {"list": 0, "show": 1, "remove": 1}.get(action, 2) > len(words) or action not in SKILL_ACTIONS:
        raise Usage("Say 'skill list', 'show NAME', 'add NAME TEXT', 'edit NAME TEXT' or 'remove NAME'.", "")
    with opened(options) as memory:
        if action == "list":
            return _skills(options, memory.skills())
        if action == "show":
            return _skills(options, [memory.skill(name)], whole=True)
        if action == "add":
            applied = memory.add_skill(name, options.description, given_text(text), options.when)
        elif action == "edit":
            applied = memory.edit_skill(name, given_text(text))
        else:
            applied = memory.remove_skill(name)
        return report(options, memory, applied.plan, applied.changes, applied)


def _skills(options: Namespace, found: Sequence[Skill], *, whole: bool = False) -> int:
    from pipimem import render

    if options.json:
        print_json({"skills": [render.skill_json(s) for s in found]})
    else:
        print(render.scrubbed(render.skill_text(found[0]) if whole else render.skills_text(found)), end="")
    if found:
        return 0
    print("There are no skills.", file=sys.stderr)
    return NotFound.code


def _forget_arguments(parser: Parser) -> None:
    parser.add_argument("refs", nargs="*", metavar="REF", help="an entry's id, path:line, or path#heading")
    parser.add_argument("--source", default="", metavar="REF", help="all that rests on engine:session[#message]")
    parser.add_argument("--match", default="", metavar="TEXT", help="what holds this text")
    parser.add_argument("--everything", action="store_true", help="all that --match finds, not only one thing")
    parser.add_argument("--channel", metavar="ID", help="where --match looks")
    dry_run_argument(parser)


def _forget(options: Namespace) -> int:
    from pipimem import render

    with opened(options) as memory:
        try:
            done = memory.forget(
                *options.refs, source=options.source, match=options.match, channel=options.channel,
                everything=options.everything, dry_run=options.dry_run,
            )  # fmt: skip
        finally:  # a broken off one may have been finished
            say_notes(memory)
    if options.json:
        print_json(render.forgotten_json(done, dry_run=options.dry_run))
    else:
        print(render.scrubbed(render.forgotten_text(done, dry_run=options.dry_run)), end="")
    for place in done.still:
        may = "may" if place.endswith(")") else "still"  # a file that could not be looked through
        print(f"pipimem: the same words {may} stand in {render.scrubbed(place)}.", file=sys.stderr)
    if done.in_git:
        print("pipimem: git still has the old text; see 'Forgetting' in docs/operations.md.", file=sys.stderr)
    return 0


COMMANDS = {
    "add": (_add_arguments, _add),
    "supersede": (_supersede_arguments, _supersede),
    "invalidate": (entry_argument, _invalidate),
    "promote": (entry_argument, _promote),
    "note": (_note_arguments, _note),
    "pin": (_pin_arguments, _pin),
    "skill": (_skill_arguments, _skill),
    "forget": (_forget_arguments, _forget),
}
