"""Proposals: operations that wait for a person, each a Markdown file in `review/` that people read and tick.

The form is fixed in docs/format.md; what is quoted there is data that nobody acts on until a person says so.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date

from pipimem import front
from pipimem.errors import Refused
from pipimem.text import clip, decode, one_line
from pipimem.transcript import REFERENCE
from pipimem.update.plan import Op, Outcome

SECTION = re.compile(r"(?m)^## (.+?)[ \t]*$")
QUOTED = re.compile(r"(?m)^>[ \t]?(.*)$")
TICKED = re.compile(r"(?mi)^[-*+] \[x\] (accept|reject)\b")
SAID_BY_TOOL = "an agent wrote it through a tool; it names no message"
LINE_END = re.compile(r"\r\n?|\n")  # Markdown's; what Python takes for one besides is text


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposal as its file says it. `answer` is accept, reject, "" (none yet) or "both" (ticked twice).

    `text` is what would be written or taken out, `old` what it would replace ("" where nothing), `said_in` the channel
    a tool worked in where it is for another place, `problem` why the file cannot be read as a proposal ("" where it
    can), `overtaken` why what it acts on is no longer what was meant ("" where it is, or nobody looked).
    """

    id: str
    path: str
    op: str = ""
    channel: str = ""
    file: str = ""
    heading: str = ""
    target: str = ""
    kind: str = ""
    created: str = ""
    text: str = ""
    old: str = ""
    why: str = ""
    evidence: str = ""
    answer: str = ""
    problem: str = ""
    said_in: str = ""
    overtaken: str = ""


def proposal(outcome: Outcome, name: str, channel: str, created: date, old: str = "", said_in: str = "") -> Op:
    """The operation that writes a held-back operation as a proposal file called `name`.

    `old` is the text it would replace or take out, as the plan saw it; `said_in` the channel it comes from.
    """
    op = outcome.op
    facts = {
        "id": name, "op": op.op, "channel": channel, "file": op.path, "heading": op.heading, "target": op.target,
        "kind": op.kind, "created": created.isoformat(), "said_in": said_in if said_in != channel else "",
    }  # fmt: skip
    head = [f"{key}: {_scalar(value)}" for key, value in facts.items() if value]
    text = op.text or old
    evidence = op.facts.get("src") or (SAID_BY_TOOL if op.facts.get("by") == "tool" else "none given")
    quotes = [*(_quoted("Instead of", old) if op.text and old else ()), *_quoted(f"{_verb(op)} in `{op.path}`", text)]
    lines = [
        "---", *head, "---", "", f"# {clip(one_line(text), 72) or 'Proposal'}", "", "## What", "", *quotes,
        "## Why", "", f"Held back because {_because(outcome.reason)}.", "", "## Evidence", "",
        f"- {evidence}", "", "## Your answer", "", "- [ ] accept", "- [ ] reject", "",
    ]  # fmt: skip
    return Op("proposal", f"review/{name}.md", "\n".join(lines), id=name, reason=outcome.reason)


def _verb(op: Op) -> str:
    return {"forget": "Forget", "invalidate": "Take out"}.get(op.op, "Write")


def _quoted(lead: str, text: str) -> list[str]:
    return [f"{lead}:", "", *(f"> {line}" for line in LINE_END.split(text)), ""]


def _scalar(value: str) -> str:
    """A value as YAML reads it back whole: what YAML would take for a line's end, or refuse, is escaped."""
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _because(reason: str) -> str:
    """A refusal's sentence, or a guard's words, as they follow "because"."""
    return reason[:1].lower() + reason[1:].rstrip(".")


def read(path: str, data: bytes) -> Proposal:
    """The proposal in a file. Never raises: what cannot be read is said in `problem`, the text is left alone."""
    values, why = front.read_front(data)
    name = path.rpartition("/")[2].removesuffix(".md")
    if why or not values.get("op"):
        return Proposal(name, path, problem=why or "it has no front matter with an op")
    facts = {
        key: str(values.get(key) or "")
        for key in ("op", "channel", "file", "heading", "target", "kind", "created", "said_in")
    }
    body = LINE_END.sub("\n", decode(data[front.front_matter(data)[1] :]))
    parts = _sections(body)
    quotes = _quotes(parts.get("What", ""))
    answers = {found.lower() for found in TICKED.findall(body)}
    return Proposal(
        id=str(values.get("id") or name), path=path, **facts, text=quotes[-1] if quotes else "",
        old=quotes[0] if len(quotes) > 1 else "", why=parts.get("Why", "").strip(),
        evidence=parts.get("Evidence", "").strip(), answer="both" if len(answers) > 1 else "".join(answers),
        problem="" if quotes else "nothing is quoted under 'What'",
    )  # fmt: skip


def accepted(proposal: Proposal, fresh: str) -> Op:
    """The operation a proposal stands for, as its file says it now; `fresh` is the id of an entry it makes.

    Raises `Refused` for a file that cannot be read as a proposal, or whose operation nobody knows.
    """
    known = ("add", "note", "section", "block", "supersede", "invalidate", "forget", "file")
    if proposal.problem or proposal.op not in known:
        why = proposal.problem or f"the operation '{proposal.op}' is unknown"
        raise Refused(f"The proposal '{proposal.id}' cannot be accepted: {why}.", "Mend the file, or reject it.")
    source = REFERENCE.search(proposal.evidence)
    facts = {
        "kind": proposal.kind or "fact",
        "since": proposal.created,
        "src": source[0] if source else "",
        "by": "person",
    }
    new = proposal.op in ("add", "supersede")
    return Op(
        proposal.op, proposal.file, proposal.text, proposal.heading, fresh if new else "", proposal.target,
        facts if new else {}, "accepted in review",
    )  # fmt: skip


def overtaken(proposal: Proposal, now: str | None) -> str:
    """Why the entry it acts on, which says `now` (None: it is gone), is no longer the one meant; "" when it is."""
    if proposal.op == "forget" and not proposal.target:
        return f"no entry of '{proposal.file}' says so" if now is None else ""
    if proposal.op == "file":
        same = now is not None and proposal.old.split() == now.split()
        return "" if same else f"the text of '{proposal.file}' is another now"
    if not proposal.target:
        return ""
    if now is None:
        return f"the entry '{proposal.target}' is gone"
    said = proposal.old or (proposal.text if proposal.op != "supersede" else "")
    return f"the entry '{proposal.target}' says something else now" if said and said.split() != now.split() else ""


def _sections(text: str) -> dict[str, str]:
    parts = SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _quotes(text: str) -> list[str]:
    """Each run of quoted lines as one text."""
    found: list[list[str]] = []
    quoting = False
    for line in text.split("\n"):
        match = QUOTED.match(line)
        if match and not quoting:
            found.append([])
        if match:
            found[-1].append(match[1])
        quoting = match is not None
    return ["\n".join(lines).strip(" \t\n") for lines in found]
