"""The note a conversation leaves in HISTORY: title, keywords, task, outcome, what was remembered, files, errors, and
where it is from.

All of it in the conversation's own sentences; secrets are out, and messages that read like an order are, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pipimem import markdown
from pipimem.index import words
from pipimem.index.evidence import specificity
from pipimem.recall.signature import is_error, signature
from pipimem.text import clip, decode, digest, encode, has_han, one_line, plural
from pipimem.transcript import Message, Transcript
from pipimem.update import dates, day_of, guards, offline
from pipimem.update.plan import Op
from pipimem.update.window import FENCE, sentences

if TYPE_CHECKING:
    from pipimem.update import Setting

ITEM_LIMIT, TITLE_LIMIT, OUTCOME_LIMIT, ERROR_LIMIT = 300, 60, 200, 160
MOST_KEYWORDS, MOST_FILES, MOST_ERRORS, MOST_KINDS = 8, 5, 3, 8
LONGEST_ERROR, SHORT_HAN = 300, 3
PLACED = re.compile(r"\[redacted:[a-z0-9-]+\]")
"""What stands for a secret says nothing of what a conversation was about."""
TITLES = ("decision", "failure", "correction", "constraint", "fact")
COMMON = frozenset(
    (
        "also always back been better both call check come could done else even ever every fine first found from give"
        " going good great have hello help here idea just keep kind know last left less let's like little long look"
        " lots"
        " made make many maybe mean might more morning most much must need never next nice okay once only other over"
        " part place please point problem question quite rather ready really right said same second seem should show"
        " simple since some something soon still stuff such sure take tell thank thanks that then there these they"
        " thing"
        " things think this those three time today together told tomorrow took trying turn under until used uses using"
        " very want wants week well what when where which while will with without work working would write wrong"
        " yesterday year your remember forget decided prefer because about after again before"
        " 今天 明天 昨天 后天 前天 现在 刚才 上午 下午 晚上 记住 记得 记一下 以后 以前 大家 问题 事情 东西 知道 觉得"
        " 可能 应该 需要 开始 已经 还是 就是 不是 这样 那样 一下 一个 两个 几个 时候 地方 谢谢 好的 可以 直接 决定"
    ).split()
)
"""Words that say nothing about what a conversation was about."""


def standing(history: bytes, ref: str) -> markdown.Section | None:
    """The section of HISTORY that is the note on a conversation (its Evidence names it), None where there is none."""
    parsed = markdown.parse(history)
    for section in parsed.sections:
        own = decode(history[section.body : section.end])
        if section.level and any(_evidences(line, ref) for line in own.splitlines()):
            return section
    return None


def _evidences(line: str, ref: str) -> bool:
    said = line.strip().lstrip("-*+ ")
    return said.startswith("Evidence:") and f"{said.removeprefix('Evidence:').strip()},".startswith(f"{ref},")


def mark(text: str) -> str:
    """The digest by which a note is told to be the one that was written; line endings and outer space do not count."""
    return digest(encode("\n".join(line.rstrip() for line in text.strip().splitlines())))


def note(
    transcript: Transcript, window: Sequence[Message], adds: Sequence[Op], setting: Setting
) -> tuple[str, str] | None:
    """Title and text of the note, None where nothing was said that would be looked for again.

    Made again it names what stands in MEMORY of it, as it stands there now, before what is new.
    """
    said = [*_remembered(transcript, setting), *((op.kind, op.text) for op in adds)]
    everything, window = window, [m for m in window if not _orders(m.text)]
    task = next((m.text for m in window if m.role == "user" and len(m.text.strip()) >= _least(m.text)), "")
    outcome = _outcome(window, setting)
    if not window or not (adds or task or len(outcome) >= _least(outcome)):
        return None
    rows = [
        ("Keywords", ", ".join(_keywords(window, setting, words.fold(" ".join(text for _, text in said))))),
        ("Task", clip(one_line(_redacted(task, setting)), ITEM_LIMIT)),
        *((kind, clip(one_line(text), ITEM_LIMIT)) for kind, text in said[:MOST_KINDS]),
        ("Outcome", outcome),
        ("Files", ", ".join(f for f in _files(window) if not _unsafe(f, setting))),
        *(("Error", line) for line in _errors(window, setting)),
        ("Evidence", _evidence(transcript, everything, setting)),
    ]
    if transcript.engine == "turn":  # many a day: only what was asked and remembered
        rows = [row for row in rows if row[0] not in ("Keywords", "Outcome", "Files", "Error")]
    text = "\n".join(f"- {name}: {value}" for name, value in rows if value)
    title = _title(transcript, task or outcome, adds, setting)
    return f"{day_of(window) or setting.today.isoformat()} {title}".rstrip(), text


def _least(text: str) -> int:
    """How many characters say what a conversation is about: 修登录 does, "ok" and 好的 do not."""
    return SHORT_HAN if has_han(text) else offline.SHORT


def _remembered(transcript: Transcript, setting: Setting) -> list[tuple[str, str]]:
    """Kind and text of the entries that rest on the conversation already."""
    entries = markdown.parse(setting.text("MEMORY.md")).entries if setting.again else []
    return [
        (e.facts.get("kind", "fact"), e.text)
        for e in entries
        if e.facts.get("src", "").startswith(f"{transcript.ref}#") and not _unsafe(e.text, setting)
    ]


def _title(transcript: Transcript, task: str, adds: Sequence[Op], setting: Setting) -> str:
    """What was remembered says best what it was about; else the host's own title; else what was asked."""
    if adds:
        first = min(adds, key=lambda op: TITLES.index(op.kind) if op.kind in TITLES else len(TITLES))
        return clip(one_line(first.text), TITLE_LIMIT)
    for text in (transcript.title, task):
        title = clip(one_line(_redacted(text, setting)), TITLE_LIMIT)
        if title and not _unsafe(title, setting):
            return title
    return transcript.ref


def _keywords(window: Sequence[Message], setting: Setting, said: str) -> list[str]:
    """The telling words but those of what was remembered, which stands below and may be forgotten."""
    counts: dict[str, float] = {}
    for message in window:
        text = PLACED.sub(" ", _redacted(FENCE.sub(" ", message.text), setting))
        for word in words.terms(text, setting.cut or (lambda runs: []))[0]:
            if _is_keyword(word):
                counts[word] = counts.get(word, 0) + (2 if message.role == "user" else 1)
    for path in _files(window):
        name = os.path.basename(path)
        counts[name] = counts.get(name, 0) + 2
    chosen: list[str] = []
    for word in sorted(counts, key=lambda w: (-counts[w] * specificity(w), -len(w), w)):
        if len(chosen) < MOST_KEYWORDS and not any(word in c for c in [said, *chosen]) and not _unsafe(word, setting):
            chosen.append(word)
    return chosen


def _is_keyword(word: str) -> bool:
    if word in words.STOP or word in COMMON or not word.isprintable() or any("\ue000" <= c <= "\uf8ff" for c in word):
        return False
    return len(word) >= 2 if has_han(word) else len(word) >= 4 and not word[0].isdigit()


def _outcome(window: Sequence[Message], setting: Setting) -> str:
    """How it ended: the first sentences of the assistant's last words."""
    last = next((m for m in reversed(window) if m.role == "assistant" and m.text), None)
    if last is None:
        return ""
    kept, room = list[str](), OUTCOME_LIMIT
    for sentence in sentences(last, setting.patterns, setting.allow):
        if kept and len(sentence.text) > room:
            break
        kept.append(clip(sentence.text, room))
        room -= len(kept[-1]) + 1
        if room < 20:
            break
    return ("" if has_han("".join(kept)) else " ").join(kept)


def _files(window: Sequence[Message]) -> list[str]:
    """The last files the agent's tools named, newest last."""
    named = [os.path.normpath(f) for m in window for f in m.files]
    return list(dict.fromkeys(reversed(named)))[:MOST_FILES][::-1]


def _errors(window: Sequence[Message], setting: Setting) -> list[str]:
    """The errors people and the assistant quoted, each once whatever numbers and paths it came with."""
    found: dict[str, str] = {}
    for message in window:
        for line in message.text.splitlines():
            line = one_line(line).strip("`")
            if line and len(line) <= LONGEST_ERROR and is_error(line):
                line = clip(_redacted(line, setting), ERROR_LIMIT)
                if not _unsafe(line, setting):
                    found.setdefault(signature(line) or line, line)
    return list(found.values())[:MOST_ERRORS]


def _evidence(transcript: Transcript, window: Sequence[Message], setting: Setting) -> str:
    stamps = sorted(s for m in window if (s := dates.when(m.time)))
    parts = [transcript.ref, plural(len(window), "message")]
    if stamps:
        parts[-1] += f", {stamps[0]:%H:%M}–{stamps[-1]:%H:%M}"
        parts += [length] if (length := _duration(stamps[0], stamps[-1])) else []
    project = setting.project
    parts += [f"project {project}"] if project and not _unsafe(project, setting) else []
    parts += [plural(transcript.calls, "tool call")] if transcript.calls else []
    parts += [plural(transcript.errors, "error")] if transcript.errors else []
    return ", ".join(parts)


def _duration(first: datetime, last: datetime) -> str:
    minutes = round((last - first).total_seconds() / 60)
    if minutes < 1:
        return ""
    hours, rest = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{days} d" if days else "", f"{hours} h" if hours else "", f"{rest} min" if rest and not days else ""]
    return " ".join(p for p in parts if p)


def _redacted(text: str, setting: Setting) -> str:
    from pipimem import safety

    return safety.redact(text, setting.patterns, setting.allow)


def _unsafe(text: str, setting: Setting) -> str:
    return guards.unsafe(text, setting.patterns, setting.allow)


def _orders(text: str) -> bool:
    """Whether a message reads like an order to the assistant, or hides something: nothing of it is noted."""
    from pipimem import safety

    return bool(safety.instructions(text) or safety.hidden(text))
