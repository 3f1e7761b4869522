"""What a person attaches in a host: files of the scope as `memory://channel/{id}/{file}` and `memory://shared/{file}`,
and the prompts `recall` and `remember`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipimem.errors import NotFound, Refused
from pipimem.recall.context import CLOSING, MEMORY, OPENINGS
from pipimem.server import giving
from pipimem.text import decode, printable, quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.memory import Memory
    from pipimem.server.served import Call
    from pipimem.workspace import Document

CHANNEL, SHARED = "memory://channel/", "memory://shared/"
TEMPLATES = (
    (CHANNEL + "{id}/{+file}", "A file of the channel", "The channel this server is bound to, by its id"),
    (SHARED + "{+file}", "A shared file", "A file all channels share"),
)


def address(memory: Memory, path: str, channel: str) -> str:
    """The address of a document, percent-encoded."""
    if not channel:
        return SHARED + _encoded(path)
    folder = memory.workspace.channel(channel).path
    return f"{CHANNEL}{_encoded(channel).replace('/', '%2F')}/{_encoded(path.removeprefix(folder + '/'))}"


def _encoded(text: str) -> str:
    return quote(text).replace("#", "%23")


def listed(call: Call) -> Iterator[tuple[str, Document]]:
    """Every document in scope that may be given, with its address."""
    memory = call.memory
    for document in _documents(call):
        yield address(memory, document.path, document.channel), document


def _documents(call: Call) -> list[Document]:
    scope = call.memory.scope(call.channel)
    found = call.memory.workspace.scan(scope.channels).documents
    given = [d for d in found if scope.covers(d.channel, d.layer) and giving.meant(call, d.path)]
    given = [d for d in given if giving.name(call, d.path) == d.path]
    return sorted(given, key=lambda d: (not d.channel, d.path))


def read(call: Call, uri: str) -> str:
    """A document as it may be given: marked as data, secrets out, lines that read like orders withheld.

    Raises `NotFound` for what is not in scope, and `Refused` in mode `observe`.
    """
    wanted = unquote(uri)
    document = next((d for at, d in listed(call) if wanted in (at, unquote(at))), None)
    if document is None:
        raise NotFound(f"There is no '{printable(uri)}' in scope.", "See resources/list.")
    if call.observing:
        raise Refused(f"'{printable(uri)}' is not given: {giving.OBSERVING}.")
    text = call.memory.redacted(decode(call.memory.workspace.read(document.path) or b""))
    return OPENINGS[MEMORY] + giving.lines(call, text, document.path).rstrip("\n") + "\n" + CLOSING


def recall_prompt(call: Call, text: str) -> str:
    """The prompt `recall`: what memory has on a text, for the model to use."""
    result = giving.recalled(call, call.memory.recall(text, call.channel, always=True))
    if not result["text"]:
        return f"Nothing is recalled for “{text}”: {result['reason']}."
    return f"{result['text']}\nUse what of it matters for: {text}"


def remember_prompt(call: Call, text: str) -> str:
    """The prompt `remember`: how a text is kept, by the tool where this server writes, else by a person."""
    if call.writable:
        return (
            f"Remember this: {text}\nSay it in one sentence that will still be true and clear in a year, without"
            " secrets, choose its kind, and call memory_add once. Then say what was written or proposed."
        )
    where = f"--channel {shlex.quote(call.channel)}" if call.channel is not None else "--target memory"
    return f"This server only reads. Tell the person to keep it with: pipimem add {where} -- {shlex.quote(text)}"


PROMPTS = {
    "recall": (recall_prompt, "What memory has on this", "What to recall for"),
    "remember": (remember_prompt, "Keep one thing in memory", "What to remember"),
}
