"""What the updater may look at: sentences of the people in a transcript, safe and bounded.

Code, quotes and pipimem's own blocks are out, secrets are redacted, and every sentence keeps its message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipimem import safety
from pipimem.text import has_han, one_line
from pipimem.transcript import Message, Transcript

FENCE = re.compile(r"(?ms)^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)")
QUOTE = re.compile(r"(?m)^[ \t]*>.*$")
URL_PAGE = re.compile(r"(?is)\A\s*(?:fwd:|转发|网页|引用|quoted?:|from the (?:page|site|web))")
SPLIT = re.compile(
    r"(?<=[。！？!?；])|(?<=[.])(?=\s+[A-Z\"'(`])|\n+"
    r"|(?<=[a-z0-9)]{2}\.)(?<!\bvs\.)(?<!\betc\.)(?<!\bapprox\.)(?<!\bincl\.)(?<!\bst\.)(?=\s+[a-z])"
)  # people who type fast begin a sentence small
WINDOW_LIMIT = 200_000
MESSAGE_LIMIT = 50_000


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence a person or the assistant wrote; `previous` is the text of the message before it."""

    text: str
    message: Message
    first: bool

    @property
    def chinese(self) -> bool:
        """Whether its rules are the Chinese ones."""
        return has_han(self.text)


def too_long(message: Message) -> bool:
    """Whether a single message has more than 50,000 characters: a file somebody pasted, no talk."""
    return len(message.text) > MESSAGE_LIMIT


def bounded(transcript: Transcript) -> tuple[Message, ...]:
    """The messages that fit in 200,000 characters: the head (a third) and the tail are kept, the middle is out.

    A message that is too long by itself is out.
    """
    messages = tuple(m for m in transcript.messages if not too_long(m))
    total = sum(len(m.text) for m in messages)
    if total <= WINDOW_LIMIT:
        return messages
    head, tail, used = [], [], 0
    for message in messages:
        used += len(message.text)
        if used > WINDOW_LIMIT // 3:
            break
        head.append(message)
    used = 0
    for message in reversed(messages[len(head) :]):
        used += len(message.text)
        if used > WINDOW_LIMIT * 2 // 3:
            break
        tail.append(message)
    return (*head, *reversed(tail))


def sentences(message: Message, patterns: tuple[str, ...] = (), allow: tuple[str, ...] = ()) -> list[Sentence]:
    """The sentences of one message that are its writer's own words, secrets redacted."""
    text = QUOTE.sub("", FENCE.sub("\n", message.text))
    if URL_PAGE.match(text):
        return []
    text = safety.redact(text, patterns, allow)
    parts = [one_line(part).strip(" -*•·") for part in SPLIT.split(text)]
    return [Sentence(part, message, i == 0) for i, part in enumerate(p for p in parts if p)]
