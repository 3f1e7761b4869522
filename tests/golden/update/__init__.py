"""The labelled update set: stretches of talk, the memory before, and what an updater should make of them.

One JSON line a window in windows.jsonl. `split` is `held` for an odd first byte of BLAKE2b(id), else `dev`: rules are
tuned on dev only. Everything is invented; a secret stands as `{{name}}` and is joined from parts when read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pipimem import markdown
from pipimem.text import encode
from pipimem.transcript import Message, Transcript

PATH = os.path.join(os.path.dirname(__file__), "windows.jsonl")
SECRETS = {"{{github}}": "gh" + "p_" + "A1b2" * 9}


@dataclass(frozen=True)
class Label:
    """What should come of a window: the text in substance, its kind, the messages it rests on (from 1).

    `target` is the entry it replaces or forgets, `why` the reason of what must not be written.
    """

    text: str
    cites: tuple[int, ...]
    kind: str = ""
    target: str = ""
    why: str = ""


@dataclass(frozen=True)
class Window:
    """One labelled stretch of conversation in a channel of `kind` (direct, group, project)."""

    id: str
    split: str
    lang: str
    kind: str
    messages: tuple[Message, ...]
    memory: str
    add: tuple[Label, ...]
    supersede: tuple[Label, ...]
    forget: tuple[Label, ...]
    propose: tuple[Label, ...]
    never: tuple[Label, ...]

    @property
    def transcript(self) -> Transcript:
        """The messages as an importer gives them."""
        return Transcript("jsonl", self.id, self.messages)

    @property
    def entries(self) -> list[markdown.Entry]:
        """The entries of the memory before."""
        return markdown.parse(encode(self.memory)).entries

    def cited(self, label: Label) -> list[Message]:
        """The messages a label rests on."""
        return [self.messages[n - 1] for n in label.cites]


def split_of(identity: str) -> str:
    """The half a window belongs to, by its id alone."""
    return "held" if blake2b(identity.encode(), digest_size=4).digest()[0] % 2 else "dev"


def load() -> list[Window]:
    """All windows, in the file's order."""
    with open(PATH, encoding="utf-8") as file:
        return [_window(json.loads(line)) for line in file]


def _window(row: dict[str, Any]) -> Window:
    messages = tuple(
        Message(f"jsonl:{row['id']}#{n}", m["role"], _joined(m["text"]), m["name"], m["time"])
        for n, m in enumerate(row["messages"], 1)
    )
    labels = {name: tuple(_label(x) for x in found) for name, found in row["labels"].items()}
    return Window(row["id"], row["split"], row["lang"], row["kind"], messages, row["memory"], **labels)


def _label(row: dict[str, Any]) -> Label:
    return Label(row["text"], tuple(row["cites"]), row.get("kind", ""), row.get("target", ""), row.get("why", ""))


def _joined(text: str) -> str:
    for name, secret in SECRETS.items():
        text = text.replace(name, secret)
    return text
