"""What the tools give, as typed dictionaries; the output schemas are made from these."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class Passage(TypedDict):
    """One hit. `warning` names why its text is never recalled on its own; `alike` a better hit that says the same."""

    ref: str
    path: str
    line: int
    heading: list[str]
    channel: str
    layer: str
    kind: str
    date: str
    score: float
    text: str
    warning: str
    alike: str


class Skipped(TypedDict):
    """A file in scope that could not be read."""

    path: str
    reason: str


class Found(TypedDict):
    """What a search gives. No hits and nothing skipped: it is not there."""

    hits: list[Passage]
    reason: str
    stale: bool
    skipped: list[Skipped]
    notes: list[str]


class Item(TypedDict):
    """A passage in a block."""

    ref: str
    path: str
    line: int
    heading: list[str]
    score: float
    tokens: int


class Omitted(TypedDict):
    """A candidate that was left out, and why."""

    ref: str
    reason: str


class Recalled(TypedDict):
    """What a recall gives: the block, or "" and the reason. `failed`: it could not look."""

    recalled: int
    reason: str
    failed: bool
    text: str
    tokens: int
    items: list[Item]
    omitted: list[Omitted]
    trace: str
    notes: list[str]


class Part(TypedDict):
    """A part of a context: in, cut or out, its tokens, and why."""

    name: str
    path: str
    state: str
    tokens: int
    reason: str


class Given(TypedDict):
    """What a session should be given."""

    text: str
    tokens: int
    parts: list[Part]
    failed: bool
    notes: list[str]


class Opened(TypedDict):
    """What a reference opens, or the problem."""

    ref: str
    path: str
    line: int
    channel: str
    id: str
    kind: str
    date: str
    source: str
    text: str
    problem: str


class Shown(TypedDict):
    """The references in the order asked; `missing` counts those with a problem."""

    shown: list[Opened]
    missing: int
    notes: list[str]


class Message(TypedDict):
    """A message of a past conversation. `there`: its host's file still is; else only the reference is known."""

    ref: str
    role: str
    name: str
    time: str
    text: str
    engine: str
    session: str
    project: str
    channel: str
    there: bool


class Said(TypedDict):
    """What a search of past conversations gives."""

    hits: list[Message]
    reason: str
    notes: list[str]


class Talk(TypedDict):
    """A past conversation."""

    ref: str
    session: str
    engine: str
    project: str
    channel: str
    title: str
    first: str
    last: str
    counts: dict[str, int]
    last_preview: str


class Timeline(TypedDict):
    """The last conversations, newest first, and their last messages, oldest first."""

    sessions: list[Talk]
    messages: list[Message]
    reason: str
    notes: list[str]


class Node(TypedDict):
    """A thing: `path` and `line` are where it is described, "" and 0 for one that is only named."""

    key: str
    kind: str
    name: str
    depth: int
    path: str
    line: int


class Edge(TypedDict):
    """A link between two things, by key, and the entry or file it rests on."""

    source: str
    target: str
    relation: str
    layer: str
    weight: float
    ref: str
    path: str
    line: int


class Graph(TypedDict):
    """Things, nearest first or along a path, and the links between them; `more`: there were too many."""

    nodes: list[Node]
    edges: list[Edge]
    path: list[str]
    more: bool
    reason: str
    notes: list[str]


class WritesLeft(TypedDict):
    """Whether the server writes, and how often this session still may."""

    allowed: bool
    left: int


class State(TypedDict):
    """What there is in this server's scope."""

    channel: str
    kind: str
    mode: str
    writes: WritesLeft
    documents: dict[str, int]
    entries: dict[str, int]
    proposals: int
    skipped: list[Skipped]
    last_recall: dict[str, Any] | None
    notes: list[str]


class Applied(TypedDict):
    """One operation that was written."""

    op: str
    id: str
    path: str
    kind: str
    text: str


class Proposed(TypedDict):
    """One operation that waits for a person, as the proposal `id`."""

    id: str
    op: str
    path: str
    target: str
    text: str
    reason: str


class Left(TypedDict):
    """One operation that was left out, and why."""

    op: str
    text: str
    reason: str


class Written(TypedDict):
    """What a write did. `run` is what a person takes back with `pipimem undo`."""

    run: str
    commit: str
    origin: str
    applied: list[Applied]
    proposed: list[Proposed]
    rejected: list[Left]
    writes_left: int
    notes: list[str]


class Result(TypedDict):
    """A hit as ChatGPT's connectors take it."""

    id: str
    title: str
    url: str


class Results(TypedDict):
    """What `search` gives."""

    results: list[Result]


class Document(TypedDict):
    """What `fetch` gives."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]
