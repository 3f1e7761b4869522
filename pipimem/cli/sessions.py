"""Commands about past conversations: import, sessions."""

from __future__ import annotations

import sys

from pipimem.cli.common import given_text, opened, print_json, say_notes
from pipimem.errors import NotFound, Unreadable, Usage
from pipimem.text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipimem.importing import Report
    from pipimem.index import Hit
    from pipimem.options import Options as Namespace
    from pipimem.options import Parser
    from pipimem.sessions import Conversation, Found

HOSTS = "claude, codex, hermes, pipiclaw, pi, openclaw, chatgpt, jsonl"


def _import_arguments(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help=HOSTS)
    parser.add_argument("path", nargs="?", default="", metavar="PATH", help="file or folder (else the host's own)")
    parser.add_argument("--channel", default="", metavar="ID", help="the channel they belong to (else as settings say)")
    parser.add_argument("--project", default="", metavar="DIR", help="sessions of that project (else of this folder's)")
    parser.add_argument("--session", default="", metavar="ID", help="only that session; names a group chat, too")
    parser.add_argument("--all", action="store_true", help="of every project; group chats still only when named")
    parser.add_argument("--since", default="", metavar="DATE", help="only what was said on that day or later")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the newest N sessions at most")
    parser.add_argument("--platform", default="", metavar="P", help="only of that platform, such as telegram")
    parser.add_argument("--dry-run", action="store_true", help="read and report, and change nothing")
    parser.add_argument(
        "--force", action="store_true", help="take known sessions anew; all are read before any changes"
    )


def _import(options: Namespace) -> int:
    with opened(options) as memory:
        report = memory.import_sessions(
            options.source, options.path, channel=options.channel, project=options.project, session=options.session,
            everything=options.all, since=options.since, limit=options.limit, platform=options.platform,
            dry_run=options.dry_run, force=options.force,
        )  # fmt: skip
        waiting = {c: memory.waiting(c) for c in sorted({done.channel for done in report.sources if done.channel})}
        say_notes(memory)
    if options.json:
        rows = [done.row() for done in report.sources]
        print_json({"sources": rows, "skipped": report.skipped, "commit": report.commit, "dry_run": options.dry_run,
                    "waiting": waiting})  # fmt: skip
    else:
        _print_report(report, dry_run=options.dry_run)
        for channel, count in waiting.items():
            if count and not options.dry_run:
                print(
                    f"{plural(count, 'session')} of '{channel}' to be worked on: pipimem maintain --channel '{channel}'"
                )
    failed = [done for done in report.sources if done.what == "failed"]
    for done in failed:
        print(f"pipimem: not imported: {done.path}: {done.reason}", file=sys.stderr)
    if failed and len(failed) == len(report.sources):
        return Unreadable.code
    return 0 if report.sources else NotFound.code


def _print_report(report: Report, *, dry_run: bool) -> None:
    from pipimem.render import scrubbed, table

    rows = [
        (d.what, d.ref, d.channel or "unassigned", f"{d.messages} messages", f"{d.kept} new", _reasons(d.skipped))
        for d in report.sources
        if d.what != "unchanged"
    ]
    print(scrubbed(table(rows)), end="")
    same = sum(d.what == "unchanged" for d in report.sources)
    done = [d for d in report.sources if d.what not in ("unchanged", "failed")]
    verb = "Would import" if dry_run else "Imported"
    print(f"{verb} {plural(len(done), 'session')}, {plural(sum(d.kept for d in done), 'message')}; {same} unchanged.")
    if report.skipped:
        print(f"Passed over: {_reasons(report.skipped)}.")
    if "another project" in report.skipped:
        print("pipimem: --project DIR takes another project's, --all those of every project.", file=sys.stderr)
    if report.deferred:
        print(f"Not committed: {report.deferred}")


def _reasons(skipped: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(skipped.items(), key=lambda item: -item[1]))


def _sessions_arguments(parser: Parser) -> None:
    subs = parser.add_subparsers(dest="what", required=True, metavar="list|search|timeline")
    listed = subs.add_parser("list", help="past conversations, the last one first")
    _filters(listed)
    listed.add_argument("--limit", type=int, default=20, metavar="N", help="conversations at most (20)")
    search = subs.add_parser("search", help="the messages that answer a query")
    search.add_argument("query", nargs="+", metavar="QUERY", help="words; - reads standard input")
    _filters(search)
    search.add_argument("--role", default="", metavar="R", help="user or assistant; tool for what tools returned")
    search.add_argument("--limit", type=int, default=10, metavar="N", help="messages at most (10)")
    line = subs.add_parser("timeline", help="the last conversations with their last messages")
    _filters(line)
    line.add_argument("--limit", type=int, default=30, metavar="N", help="messages at most (30)")
    line.add_argument("--session-limit", type=int, default=10, metavar="N", help="conversations at most (10)")


def _filters(parser: Parser) -> None:
    from argparse import SUPPRESS

    parser.add_argument("-w", "--workspace", metavar="DIR", default=SUPPRESS, help="the workspace")
    parser.add_argument("--json", action="store_true", default=SUPPRESS, help="one JSON document on stdout")
    parser.add_argument("--channel", metavar="ID", help="only of that channel (else all, the unassigned too)")
    parser.add_argument("--project", default="", metavar="NAME", help="only of that project, by name or folder")
    parser.add_argument("--session", default="", metavar="S", help="only that session")
    parser.add_argument(
        "--without", action="append", default=[], metavar="S", help="not that session, nor those it was started from"
    )


def _sessions(options: Namespace) -> int:
    return {"list": _list, "search": _search, "timeline": _timeline}[options.what](options)


def _list(options: Namespace) -> int:
    with opened(options) as memory:
        found = memory.sessions(
            options.channel, all_channels=options.channel is None, project=options.project, session=options.session,
            without=options.without, limit=options.limit,
        )  # fmt: skip
        say_notes(memory)
    if options.json:
        print_json({"sessions": [c.row() for c in found]})
    else:
        print(_conversations_text(found), end="")
    return _ended(bool(found), "There are no past conversations; 'pipimem import' takes them in.")


def _search(options: Namespace) -> int:
    query = given_text(options.query)
    if options.role and options.role not in ("user", "assistant", "tool"):
        raise Usage(f"The role '{options.role}' is unknown.", "One of: user, assistant, tool.")
    with opened(options) as memory:
        everywhere = options.channel is None
        hits = memory.session_search(
            query, options.channel, all_channels=everywhere, project=options.project, role=options.role,
            session=options.session, without=options.without, limit=options.limit,
        )  # fmt: skip
        alone = not (options.role or options.session or options.project)
        notes = memory.session_notes(query, options.channel, all_channels=everywhere) if alone else []
        say_notes(memory)
    if options.json:
        print_json({"query": query, "hits": [h.row() for h in hits], "notes": [_note_row(n) for n in notes]})
    else:
        print(_hits_text(hits, notes), end="")
    return _ended(bool(hits or notes), "Nothing found.")


def _timeline(options: Namespace) -> int:
    with opened(options) as memory:
        found, said = memory.timeline(
            options.limit, options.session_limit, options.channel, all_channels=options.channel is None,
            project=options.project, session=options.session, without=options.without,
        )  # fmt: skip
        say_notes(memory)
    if options.json:
        print_json({"sessions": [c.row() for c in found], "messages": [m.row() for m in said]})
    else:
        print(_conversations_text(found) + "\n" + _hits_text(said, []), end="")
    return _ended(bool(found), "There are no past conversations; 'pipimem import' takes them in.")


def _ended(found: bool, otherwise: str) -> int:
    if found:
        return 0
    print(otherwise, file=sys.stderr)
    return NotFound.code


def _note_row(hit: Hit) -> dict[str, object]:
    return {"ref": hit.ref, "path": hit.path, "line": hit.line, "channel": hit.channel, "heading": hit.heading,
            "text": hit.text}  # fmt: skip


def _conversations_text(found: Sequence[Conversation]) -> str:
    from pipimem.render import scrubbed, table
    from pipimem.text import clip

    rows = [
        (c.last[:16].replace("T", " "), c.ref, c.channel or "unassigned", c.project, f"{c.counts['messages']} messages",
         c.status if c.there else "gone", clip(c.title or c.last_preview, 60))
        for c in found
    ]  # fmt: skip
    return scrubbed(table(rows))


def _hits_text(hits: Sequence[Found], notes: Sequence[Hit]) -> str:
    from pipimem.render import scrubbed

    parts = []
    for hit in hits:
        facts = "  ".join(x for x in (hit.role, hit.time, hit.channel or "unassigned", hit.project) if x)
        body = hit.text if hit.there else "(its transcript is gone)"
        parts.append(f"[{hit.ref}]  {facts}\n" + "".join(f"   {line}\n" for line in body.splitlines()[:12]))
    for note in notes:
        body = "".join(f"   {line}\n" for line in note.text.splitlines()[:12])
        parts.append(f"{note.path}:{note.line}  {' > '.join(note.heading)}\n{body}")
    return scrubbed("\n".join(parts))


COMMANDS = {"import": (_import_arguments, _import), "sessions": (_sessions_arguments, _sessions)}
