"""Commands of a bot's life: turns, updates, boundaries, maintenance, watching."""

from __future__ import annotations

import sys
import threading

from pipimem.cli.common import dry_run_argument, json_text, kept_up, opened, print_json, report, say_notes, silence
from pipimem.errors import ModelFailed, Usage
from pipimem.text import plural, scrub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pipimem.options import Options as Namespace
    from pipimem.options import Parser

PRINTING = threading.Lock()
TIDY = ("promote", "condense", "fold")
JOBS = ("all", "refresh", "extract", *TIDY)


def _update_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", required=True, metavar="ID", help="the channel the conversation belongs to")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--transcript", metavar="FILE", help="a session of a known host, or JSON lines (else the recorded turns)"
    )
    where.add_argument("--source", metavar="REF", help="a conversation that was imported, such as claude:SESSION")
    parser.add_argument("--again", action="store_true", help="make the note on the conversation anew")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--offline", action="store_true", help="rules only, no model")
    which.add_argument("--model", metavar="NAME", help="ask this one, such as ollama:qwen3 (else update.models)")
    parser.add_argument("--session", default="", metavar="ID", help="which session, of a file that holds several")
    parser.add_argument("--job", choices=JOBS, default="all", help="all: extract and refresh")
    dry_run_argument(parser)


def _update(options: Namespace) -> int:
    from pipimem import render
    from pipimem.importers import BROKEN

    with opened(options) as memory:
        memory.workspace.channel(options.channel)
        window = None if options.transcript or options.source else memory.recorded(options.channel)
        if window is not None:
            transcript = window.transcript
        elif options.source:
            transcript = memory.source(options.source, options.channel)
        else:
            transcript = memory.transcript(options.transcript, options.session)
        unread = {reason: n for reason, n in transcript.skipped.items() if reason in BROKEN}
        if unread:
            listed = ", ".join(f"{n} {reason}" for reason, n in unread.items())
            print(f"pipimem: lines of the transcript that could not be read: {listed}.", file=sys.stderr)
        models = [] if options.offline else [options.model] if options.model else None
        jobs = ["extract", "refresh"] if options.job == "all" else [options.job]
        if options.job in TIDY:
            plan = memory.tidy(options.channel, options.job, models=models)
        else:
            plan = memory.propose(options.channel, transcript, jobs, models=models, again=options.again)
        if options.model and "offline" in plan.origin.split(", ") and plan.fell:
            why = plan.fell[0].rstrip(".")
            raise ModelFailed(f"The model '{options.model}' gave no usable reply: {why}.", "Nothing was changed.")
        for line in plan.fell:
            print(f"pipimem: {render.scrubbed(line)}", file=sys.stderr)
        if options.dry_run:
            return report(options, memory, plan, memory.preview(plan), None)
        if options.job in TIDY or window is not None:
            applied = memory.apply(plan)
        else:
            applied = memory.learn(options.channel, transcript, plan, options.transcript or "")
        if window is not None and options.job == "all":
            memory.learned(options.channel, window)
            if window.left:
                left = plural(window.left, "recorded message")
                print(f"pipimem: {left} did not fit in this run and are left for the next.", file=sys.stderr)
        return report(options, memory, applied.plan, applied.changes, applied)


def _boundary_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", required=True, metavar="ID", help="the channel")
    parser.add_argument("--transcript", metavar="FILE", help="the conversation (else the recorded turns)")


def _compact(options: Namespace) -> int:
    return _boundary(options, "before_compact")


def _new_session(options: Namespace) -> int:
    return _boundary(options, "new_session")


def _boundary(options: Namespace, verb: str) -> int:
    from pipimem import render

    with opened(options) as memory:
        memory.workspace.channel(options.channel)
        transcript = memory.transcript(options.transcript) if options.transcript else None
        if transcript is not None:
            memory.take_in(options.channel, transcript, options.transcript)
        steps, kept = getattr(memory, verb)(options.channel, transcript)
        say_notes(memory)
    if options.json:
        print_json({"steps": [render.step_json(s) for s in steps], "context": scrub(kept.text)})
    else:
        print(render.scrubbed(kept.text), end="")
    for step in steps:
        if not step.done or not options.json:
            print(f"pipimem: {render.step_text(step)}", file=sys.stderr)
    return 0


def _maintain_arguments(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--channel", metavar="ID", help="only that channel (else each in turn)")
    which.add_argument("--queued", action="store_true", help="what hooks left to be done, within the day's budget")


def _maintain(options: Namespace) -> int:
    from pipimem import render

    if options.queued:
        return _queued(options)
    with opened(options) as memory:
        done = memory.maintain(options.channel)
        embedded = None if options.channel else kept_up(memory, slices=True)
        say_notes(memory)
    if options.json:
        rows = [{"channel": channel, **render.step_json(s)} for channel, steps in done.items() for s in steps]
        print_json({"steps": rows, **({"vectors": render.embedded_json(embedded)} if embedded else {})})
    else:
        for channel, steps in done.items():
            print(render.scrubbed("".join(f"{channel}  {render.step_text(s)}\n" for s in steps)), end="")
        if embedded is not None and (embedded.texts or embedded.waiting):
            print(render.scrubbed(render.embedded_text(embedded, dry_run=False)), end="")
    return 0


def _queued(options: Namespace) -> int:
    from pipimem import render

    rows: list[dict[str, Any]] = []
    with opened(options) as memory:
        stopped = memory.work_off(rows.append)
        left = memory.queue()
        say_notes(memory)
    if options.json:
        print_json({"steps": rows, "stopped": stopped, "queue": left})
        return 0
    for row in rows:
        print(render.scrubbed(render.work_text(row)), end="")
    if stopped:
        print(f"pipimem: stopped: {stopped}", file=sys.stderr)
    print(f"{left['waiting']} waiting, {len(left['given_up'])} given up")
    return 0


def _turn_arguments(parser: Parser) -> None:
    parser.add_argument("--channel", required=True, metavar="ID", help="the channel the turn belongs to")


def _turn(options: Namespace) -> int:
    import json

    rows: list[object] = []
    for line in sys.stdin.buffer.read().splitlines():
        try:
            rows += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError):
            rows.append(None)
    with opened(options) as memory:
        done = memory.turn(options.channel, rows)
    if options.json:
        print_json({"recorded": done.recorded, "cursor": done.cursor, "skipped": dict(done.skipped)})
    else:
        print(f"{done.recorded} recorded, up to {done.cursor}")
    for reason, count in done.skipped.items():
        print(f"pipimem: left out: {count} ({reason})", file=sys.stderr)
    return 0 if done.recorded or not rows else Usage.code


def _watch_arguments(parser: Parser) -> None:
    parser.add_argument("--poll", action="store_true", help="look by the clock, as on a network folder")
    parser.add_argument(
        "--maintain", action="store_true", help="also run the jobs that are due and what hooks left to be done"
    )


def _watch(options: Namespace) -> int:
    from pipimem import rounds, watch

    with opened(options) as memory:
        root = memory.workspace.root
    beside = rounds.Rounds(root, _print_event).run if options.maintain else None
    watch.until_told(root, _print_event, poll=options.poll, wanted=_is_read, beside=beside)
    return 0


def _print_event(event: dict[str, Any]) -> None:
    import select

    with PRINTING:  # a watch and the rounds beside it
        if event["event"] == "stopped" and not _output_is(select.POLLOUT):
            silence()  # a full pipe that nobody reads must not keep us from ending
        if sys.stdout is not None:
            sys.stdout.write(json_text(event) + "\n")  # in one piece: a signal may end us between two
            sys.stdout.flush()


def _is_read() -> bool:
    import select

    return not _output_is(select.POLLERR | select.POLLHUP)


def _output_is(state: int) -> bool:
    """Whether standard output is in one of these states of `select.poll`."""
    import select

    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout, state)
    return any(flags & state for _, flags in poll.poll(0))


COMMANDS = {
    "turn": (_turn_arguments, _turn),
    "update": (_update_arguments, _update),
    "compact": (_boundary_arguments, _compact),
    "new-session": (_boundary_arguments, _new_session),
    "maintain": (_maintain_arguments, _maintain),
    "watch": (_watch_arguments, _watch),
}
