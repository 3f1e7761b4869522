"""Taking something out for good: what is meant, where it stands, and every store that keeps text of its own.

What a person wrote goes only where it is what was named: an entry, a place, a source, or the one thing a text fits.
What pipimem made of it (HISTORY, archive, proposals, its records) goes along. A tombstone without text stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipimem import contradictions, references, sessions, traces
from pipimem import places as places_of
from pipimem.errors import Error, NotFound, Refused, Usage
from pipimem.files import lives, own_folder, write_private
from pipimem.history import TOMBSTONES
from pipimem.index import Hit, Scope
from pipimem.index.words import fold
from pipimem.pending import read_private
from pipimem.places import Place
from pipimem.text import decode, encode, one_line, plural, printable
from pipimem.transcript import REFERENCE
from pipimem.turns import Turns
from pipimem.update import guards
from pipimem.update.guards import plain
from pipimem.update.plan import Applied, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pipimem.opened import Opened
    from pipimem.update.plan import Plan

TELLING, HAN = 8, 4
"""Characters a text needs, folded and without punctuation, before a longer one that holds it is taken for the same:
eight, or four of Chinese, of which a word of another script counts for two."""
SOURCE = re.compile(r"[a-z][a-z0-9_-]*:[^#\s]+(?:#\S+)?")
LOOKED_AT = 256 * 1024 * 1024
DERIVED = os.path.join(".pipimem", "cache", "")


@dataclass(frozen=True, slots=True)
class Meant:
    """What is to be forgotten, for every store: ids, sources, and what the texts say. Pure questions only.

    A `channel` says that nothing of another channel is meant; `messages` are those of conversations that hold it.
    `anywhere` asks where the texts stand at all, also a short one inside another: for looking, never for taking out.
    """

    refs: frozenset[str]
    sources: frozenset[str]
    texts: tuple[str, ...]
    match: str = ""
    channel: str | None = None
    messages: frozenset[str] = frozenset()
    anywhere: bool = False

    def says(self, text: str) -> bool:
        """Whether a text holds what is forgotten: the match a person gave, or one of the texts (a short one: alone)."""
        if self.match and self.match in fold(one_line(text)):
            return True
        said, clipped = plain(text), text.rstrip().endswith("…")
        for own in filter(str.strip, self.texts):
            wanted = plain(own)
            if wanted == said and (said or own == text):
                return True
            if wanted in said and (self.anywhere or telling(own)) and _stands(own, text):
                return True
            if clipped and telling(text) and wanted.startswith(said):
                return True  # a title or line that was cut short
        return False

    def made(self, place: Place) -> bool:
        """Whether pipimem wrote a piece and it says what is forgotten: a short text inside it too, where both rest on
        the same message.
        """
        if not place.own:
            return False
        same = place.source and any(place.source == s or guards.within(s, place.source) for s in self.sources)
        return self.says(place.said) or bool(same and replace(self, anywhere=True).says(place.said))

    def rests(self, source: str) -> bool:
        """Whether a message or conversation is one of those named, or a message of one."""
        return source in self.sources or any(guards.within(source, whole) for whole in self.sources)

    def record(self, line: str) -> bool:
        """Whether a line of pipimem's own records names or says any of it."""
        named = (*self.refs, *(s for s in self.sources if s))
        return any(re.search(re.escape(name) + r"(?![\w.-])", line) for name in named) or self.says(line)

    def within(self, channel: str) -> bool:
        """Whether what a channel keeps may be meant at all."""
        return self.channel is None or channel == self.channel


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a `forget` did, or with a dry run would do.

    `places` went from the files, `records` from pipimem's own stores; `still` names where the same words stand yet: a
    person's own lines (`path:line`), stores and files, and files that could not be looked through (the reason stands in
    brackets). `proof` says what was looked through afterwards, "" where `still` names anything. `in_git` says whether
    an older version or a commit message in git has the text, or git took too long to tell.
    """

    applied: Applied
    places: tuple[Place, ...] = ()
    records: tuple[str, ...] = ()
    still: tuple[str, ...] = ()
    proof: str = ""
    in_git: bool = False


def telling(text: str) -> bool:
    """Whether a text says enough to be known inside a longer one."""
    folded = fold(text)
    count = len(re.findall(r"[\u3400-\u9fff]", folded)) + 2 * len(re.findall(r"[^\W_\u3400-\u9fff]+", folded))
    return len(plain(text)) >= TELLING or count >= HAN


def _stands(own: str, text: str) -> bool:
    """Whether a text whose letters a longer one has stands there: a short one by whole words, a sign as it is."""
    wanted = plain(own)
    if not wanted:
        return own.strip() in text
    if len(wanted) >= TELLING or not wanted.isascii():
        return True
    words = r"[\W_]*".join(map(re.escape, re.findall(r"[^\W_]+", fold(own))))
    return re.search(rf"(?<![a-z0-9]){words}(?![a-z0-9])", fold(text)) is not None


def matching(memory: Opened, text: str, channel: str | None = None) -> list[Hit]:
    """Every entry whose text holds `text`, folded; in file order."""
    wanted = fold(text)
    scope = memory.scope(channel, all_channels=channel is None)
    hits = memory.passages.search(text, scope, 1000)
    return [h for h in hits if h.entry and wanted in fold(h.text)]


def forget(
    memory: Opened, refs: Sequence[str] = (), *, source: str = "", match: str = "", channel: str | None = None,
    everything: bool = False, dry_run: bool = False, answering: str = "",
) -> Forgotten:  # fmt: skip
    """Takes what is named out of the files and of every store, and remembers, without its text, not to learn it again.

    Named are entries and places (`refs`), whatever rests on a `source`, or what holds the text of `match` (in
    `channel` only, where given). Where a match fits more than one thing a person wrote, `Usage` lists them;
    `everything` means all of them. `answering` is the proposal that asked for it, which goes along.
    """
    if sum(map(bool, (refs, source, match))) != 1:
        raise Usage("Say what to forget: entries or places, --source, or --match.", "One of them at a time.")
    memory.workspace.trust()
    if not dry_run:
        resume(memory)
    documents = Documents(memory)
    named = _named(memory, documents, refs, source, match, channel)
    meant = _meant(memory, named, source, match)
    if match and channel is not None:
        meant = replace(meant, channel=memory.workspace.channel(channel).id)
    if match and named and not everything:
        _refuse_several(named, match)
    if not named and not any(count for _, count in _swept(memory, meant, dry_run=True)):
        if match:
            raise NotFound(f"Nothing holds '{printable(match)}'.", "Find it with 'pipimem search'.")
        raise NotFound(f"Nothing rests on '{printable(source)}'.", "An entry's comment says its source: src=….")
    gone, left = _parted(documents, named, meant)
    if answering:
        gone = [p for p in gone if p.path != answering]
    plan = _plan(memory, documents, gone)
    if answering:
        answered = Op("remove", answering, reason="accepted")
        base = {**plan.base, answering: documents.data(answering)}
        plan = replace(plan, ops=(*plan.ops, answered), base=base)
    if dry_run:
        records = tuple(_told(_swept(memory, meant, dry_run=True)))
        changes = tuple(memory.preview(plan)) if plan.ops else ()
        return Forgotten(Applied(plan, changes), tuple(gone), records, tuple(map(str, left)))
    return _done(memory, plan, gone, meant)


def _done(memory: Opened, plan: Plan, gone: list[Place], meant: Meant) -> Forgotten:
    asked = [("", encode(name)) for name in (*meant.refs, *([meant.match] if not gone else [])) if name]
    in_git = memory.commits.knows([*((p.path, encode(p.text)) for p in gone), *asked])
    dropped, blobs = memory.commits.unsay(meant.says, {p.path for p in gone})
    meant = replace(meant, messages=frozenset([*_recorded(memory, meant), *_said(memory, meant, dry_run=True)]))
    stones = "\n".join(_stones(memory, gone, meant))
    path = _begin(memory, meant, stones, blobs)
    try:
        applied = memory.apply(plan, tombstone=stones, forgetting=dropped)
    except Error:
        _end(path)  # no file was changed
        raise
    records = _told(_swept(memory, meant, dry_run=False))
    kept = memory.commits.discard(blobs)
    _end(path)
    left = list(Documents(memory).holding(Meant(meant.refs, frozenset(), meant.texts, anywhere=True).says))
    found = [*map(str, left), *_found_again(memory, meant, left)]
    looked = f"search, the archive and {plural(_files(memory), 'file')}"
    proof = "" if found else f"Looked for it again in {looked}: it is gone."
    still = tuple(dict.fromkeys([*found, *(f"the git object {blob[:10]}" for blob in kept)]))
    return Forgotten(applied, tuple(gone), tuple(records), still, proof, in_git)


# One that is broken off. The list of what is to be swept is private, names its process, and goes when all is done


def _begin(memory: Opened, meant: Meant, stones: str, blobs: Sequence[str]) -> str:
    """Puts on record what is about to be forgotten, so that the stores are swept whatever becomes of this process."""
    memory.workspace.prepare()
    folder = own_folder(memory.workspace.private("state"), "forgetting")
    path = os.path.join(folder, f"{os.urandom(8).hex()}.json")
    _claim(path, {
        "refs": sorted(meant.refs), "sources": sorted(meant.sources), "texts": list(meant.texts), "match": meant.match,
        "channel": meant.channel, "messages": sorted(meant.messages), "stones": stones, "blobs": list(blobs),
    })  # fmt: skip
    return path


def _claim(path: str, row: Mapping[str, Any]) -> None:
    import json

    own = {**row, "pid": os.getpid(), "host": os.uname().nodename}
    write_private(path, encode(json.dumps(own, ensure_ascii=False)))


def _end(path: str) -> None:
    with suppress(OSError):  # somebody else finished it, or has one of their own
        os.unlink(path)
        os.rmdir(os.path.dirname(path))


def unfinished(memory: Opened) -> list[tuple[str, dict[str, Any]]]:
    """What processes that are gone were forgetting: the file that says so, and what it says."""
    import json

    folder, found = memory.workspace.private("state", "forgetting"), []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with suppress(ValueError, KeyError, TypeError):  # not one of ours
            row = json.loads(read_private(path := os.path.join(folder, name)) or b"{}")
            if not (row["host"] == os.uname().nodename and lives(row["pid"])):
                found.append((path, row))
    return found


def resume(memory: Opened) -> list[str]:
    """Finishes what killed processes were forgetting: every store is swept, what is not to be learned again is on
    its list. Returns what was taken out, as `records`. Text that had not left the files yet stays and is named.
    """
    told: list[str] = []
    for path, row in unfinished(memory):
        _claim(path, row)
        meant = Meant(
            frozenset(row["refs"]), frozenset(row["sources"]), tuple(row["texts"]), row["match"], row["channel"],
            frozenset(row["messages"]),
        )  # fmt: skip
        stones = [line for line in row["stones"].split("\n") if line not in memory.stones(TOMBSTONES)]
        if any(stones):
            memory.apply(memory.planned("", [], {}, "person"), tombstone="\n".join(stones))
        records = _told(_swept(memory, meant, dry_run=False))
        memory.commits.discard(row["blobs"])
        _end(path)
        left = [str(p) for p in Documents(memory).holding(meant.says)]
        memory.notes.append(f"A forget that was broken off is finished ({', '.join(records) or 'nothing was left'}).")
        memory.notes += [f"What it was to forget still stands in {', '.join(left)}: name it again."] if left else []
        told += records
    return told


# What it is about


class Documents:
    """The documents and proposals of a workspace, cut into what can be forgotten; each read and cut once."""

    def __init__(self, memory: Opened) -> None:
        self._memory = memory
        self._data: dict[str, bytes] = {}
        self._places: dict[str, list[Place]] = {}
        self.layers = {d.path: (d.channel, d.layer) for d in memory.workspace.scan().documents}
        self._proposals = {p.path: p for p in memory.proposals()}

    def data(self, path: str) -> bytes:
        """The bytes of one; b"" where it cannot be read."""
        if path not in self._data:
            try:
                self._data[path] = self._memory.workspace.read(path) or b""
            except Error:
                self._data[path] = b""
        return self._data[path]

    def places(self, path: str) -> list[Place]:
        """What of a document can be forgotten by itself; a proposal is one piece."""
        if path not in self._places:
            self._places[path] = self._cut(path)
        return self._places[path]

    def _cut(self, path: str) -> list[Place]:
        data = self.data(path)
        if path in self._proposals:
            p = self._proposals[path]
            text = decode(data) if p.problem else "\n".join(x for x in (p.text, p.old) if x)
            found = REFERENCE.search(p.evidence)
            source = found[0] if found else ""
            return [Place(path, p.channel, "proposal", 1, 0, len(data), text, p.target, source, True)]
        channel, layer = self.layers.get(path, ("", ""))
        return places_of.places(path, channel, layer, data)

    def holding(self, test: Callable[[str], bool], channel: str | None = None) -> Iterator[Place]:
        """The pieces for which `test` holds of the text, by path and line; paragraphs by their sentences."""
        for path in sorted({*self.layers, *self._proposals}):
            own = self.layers.get(path, ("", ""))[0] if path in self.layers else self._proposals[path].channel
            text = decode(self.data(path))
            if (channel is not None and own != channel) or not (test(text) or "…" in text):
                continue
            for place in self.places(path):
                if test(place.said):
                    yield from places_of.narrowed(place, self.data(path), test)

    def resting(self, rests: Callable[[str], bool]) -> Iterator[Place]:
        """The pieces that rest on a source: entries, blocks of HISTORY, proposals."""
        for path in sorted({*self.layers, *self._proposals}):
            if b":" in self.data(path):
                yield from (p for p in self.places(path) if p.source and rests(p.source))


def _named(
    memory: Opened, documents: Documents, refs: Sequence[str], source: str, match: str, channel: str | None
) -> list[Place]:
    if refs:
        return list(dict.fromkeys(_place(memory, documents, ref) for ref in refs))
    if source:
        if not SOURCE.fullmatch(source):
            raise Usage(f"'{printable(source)}' is no source.", "Give engine:session, or engine:session#message.")
        of = Meant(frozenset(), frozenset({source}), ())
        return list(documents.resting(of.rests))
    wanted = fold(one_line(match))
    if not plain(match):
        raise Usage("The text to forget holds no word.", "Give a word, a name or a number.")
    where = memory.workspace.channel(channel).id if channel is not None else None
    return list(documents.holding(lambda text: wanted in fold(one_line(text)), where))


def _place(memory: Opened, documents: Documents, ref: str) -> Place:
    """The piece that an id, `path:line` or `path#heading` names."""
    try:
        found = references.parse(ref)
    except Usage:
        found = references.Reference("id", name=ref)
    if found.form == "source":
        raise Usage(f"'{printable(ref)}' is a source.", f"Say 'pipimem forget --source {printable(ref)}'.")
    if found.form in ("line", "heading"):
        if found.path not in documents.layers:
            raise NotFound(f"There is no document '{printable(found.path)}'.", "See 'pipimem status'.")
        known = documents.places(found.path)
        if found.form == "line":
            return places_of.at(known, found.line, found.path)
        return places_of.block(
            known, documents.data(found.path), found.name, found.path, documents.layers[found.path][0]
        )
    if found.form == "path":
        raise Usage(f"'{printable(ref)}' is a whole file.", "Delete it, or name a line or heading of it.")
    hit = memory.entry(ref)
    return next(p for p in documents.places(hit.path) if p.what == "entry" and p.ref == hit.ref)


def _refuse_several(named: list[Place], match: str) -> None:
    """`Usage` with the list, where a match fits more than one thing: copies that pipimem made of one do not count."""
    mine = [p for p in named if p.what == "entry" or not p.own]
    base = mine or [min(named, key=lambda p: len(p.said))]
    copies = Meant(frozenset(), frozenset(), tuple(p.said for p in base))
    found = base + [p for p in named if p not in base and not copies.says(p.said)]
    if len(found) > 1:
        listed = "; ".join(f"{p.ref + ' ' if p.ref else ''}{p} ({p.what})" for p in found[:10])
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        raise Usage(
            f"{len(found)} things hold '{printable(match)}': {listed}{more}.",
            "Give one of these, or --everything for all of them.",
        )


def _meant(memory: Opened, named: Sequence[Place], source: str, match: str) -> Meant:
    texts = [p.said for p in named if p.what != "proposal"]
    if source.startswith("turn:") and "#" in source:
        turns = (Turns(memory.workspace, channel.id) for channel in memory.channels())
        texts += [text for t in turns if (text := t.text(source))]
    sources = {source} if source else {p.source for p in named if p.what == "entry" and p.source}
    refs = {p.ref for p in named if p.ref and p.what == "entry"}
    return Meant(frozenset(refs), frozenset(sources), tuple(texts), fold(one_line(match)) if match else "")


def _parted(documents: Documents, named: list[Place], meant: Meant) -> tuple[list[Place], list[Place]]:
    """What goes: what was named and what pipimem made of it; and what stays for a person to look at."""
    spans = {(p.path, p.start, p.end) for p in named}
    gone, left = list(named), list[Place]()
    copies = Meant(meant.refs, meant.sources, meant.texts, anywhere=True)
    strict = replace(copies, anywhere=False)
    for place in documents.holding(copies.says):
        inside = any(path == place.path and a <= place.start and place.end <= b for path, a, b in spans)
        if not inside:
            (gone if strict.made(place) else left).append(place)
    for path in documents.layers:  # an archived entry keeps its id, whatever was made of its words since
        if documents.layers[path][1] == "archive" and any(encode(ref) in documents.data(path) for ref in meant.refs):
            known = {(p.path, p.start) for p in gone}
            gone += [p for p in documents.places(path) if p.ref in meant.refs and (p.path, p.start) not in known]
    return gone, left


def _plan(memory: Opened, documents: Documents, gone: Sequence[Place]) -> Plan:
    """Entries by their id, proposals whole, everything else cut out of its file."""
    ops: list[Op] = []
    channels = {p.channel for p in gone}
    for path in dict.fromkeys(p.path for p in gone):
        mine = [p for p in gone if p.path == path]
        # An entry without a comment has an id only together with its channel, and a plan has one channel.
        apart = len(channels) == 1 and all(p.what == "entry" for p in mine)
        if mine[0].what == "proposal":
            ops.append(Op("remove", path, reason="forgotten"))
        elif apart:
            ops += [Op("forget", path, target=p.ref, reason="asked to forget") for p in mine]
        else:
            lines = ", ".join(dict.fromkeys(str(p.line) for p in mine))
            told = f"{plural(len(mine), 'piece')}, line {lines}"
            text = decode(places_of.cut(documents.data(path), mine))
            ops.append(Op("cut", path, text, target=told, reason="asked to forget"))
    refs = {p.ref for p in gone if p.what == "entry"}
    unmarked = [op for ref in refs for op in contradictions.renamed(memory, ref, "")]
    ops += [op for op in unmarked if op.target not in refs]
    channel = channels.pop() if len(channels) == 1 else ""
    templates = memory.templates(memory.workspace.channel(channel)) if channel else {}
    plan = memory.planned(channel, ops, templates, "person")
    base = {op.path: documents.data(op.path) or None for op in ops}
    return replace(plan, base=base, whole=True)


def _stones(memory: Opened, gone: Sequence[Place], meant: Meant) -> Iterator[str]:
    """A line for each thing that went, without its text; for a source, and for messages that held it, one that covers
    all that rests on them.
    """
    key = memory.key()
    for place in gone:
        if place.what in ("entry", "item", "sentence", "text") and plain(place.said):
            sources = [place.source] if place.what == "entry" and place.source else []
            yield guards.tombstone(key, place.ref, place.said, sources)
    whole = (meant.sources | meant.messages) - {p.source for p in gone if p.what == "entry"}
    if whole:
        yield guards.tombstone(b"", "", "", sorted(whole))
    if meant.match and not gone:
        yield guards.tombstone(key, "", meant.match, [])


# The stores that keep text of their own. One that is new adds its function here: it takes what is meant out of the
# store (with a dry run it only counts) and gives the store's name and how many rows that are.


def _turns(memory: Opened, meant: Meant, *, dry_run: bool) -> Iterator[tuple[str, int]]:
    for channel in (c for c in memory.channels() if meant.within(c.id)):
        turns = Turns(memory.workspace, channel.id)
        count = turns.forget(lambda text, ref: meant.rests(ref) or meant.says(text), dry_run=dry_run)
        yield f"recorded messages of {channel.id}", count


def _recorded(memory: Opened, meant: Meant) -> list[str]:
    """The references of the recorded messages that go."""
    turns = [Turns(memory.workspace, channel.id) for channel in memory.channels() if meant.within(channel.id)]
    return [ref for t in turns for ref in t.holding(lambda text, ref: meant.rests(ref) or meant.says(text))]


def _traces(memory: Opened, meant: Meant, *, dry_run: bool) -> Iterator[tuple[str, int]]:
    yield "explained recalls", traces.forget(memory.traces, meant.record, dry_run=dry_run)


def _runs(memory: Opened, meant: Meant, *, dry_run: bool) -> Iterator[tuple[str, int]]:
    """Run records hold ids and sources, and a reason may quote. What was forgotten stays on record as forgotten."""
    path = memory.workspace.private("state", "runs.jsonl")
    lines = (read_private(path) or b"").splitlines(keepends=True)
    kept = [_without(line, meant) for line in lines]
    if kept != lines and not dry_run:
        write_private(path, b"".join(kept))
    yield "run records", sum(new != old for new, old in zip(kept, lines, strict=True))


def _without(line: bytes, meant: Meant) -> bytes:
    """A run's record without what it says of the things forgotten; nothing of one that says their text."""
    import json

    try:
        row = json.loads(line)
        applied = list(row.get("applied", ()))
        left = [op for op in applied if op["op"] == "forget" or op["id"] not in meant.refs]
    except (ValueError, KeyError, TypeError, AttributeError):
        return b"" if meant.record(decode(line)) else line
    if meant.says(decode(line)) or meant.rests(str(row.get("source", ""))):
        return b""
    return encode(json.dumps({**row, "applied": left}, ensure_ascii=False) + "\n") if left != applied else line


def _index(memory: Opened, meant: Meant, *, dry_run: bool) -> Iterator[tuple[str, int]]:
    """What was deleted from the index is overwritten, its log cut, and copies of other versions deleted."""
    if not dry_run:
        memory.passages.purge()
    yield from ()


def _sessions(memory: Opened, meant: Meant, *, dry_run: bool) -> Iterator[tuple[str, int]]:
    """Messages of past conversations: out of their index; the hosts' own files are not ours to change."""
    yield "messages of past conversations", len(_said(memory, meant, dry_run=dry_run))


def _said(memory: Opened, meant: Meant, *, dry_run: bool) -> list[str]:
    texts = [meant.match] if meant.match else [t for t in meant.texts if meant.anywhere or telling(t)]
    sources = [source for source in meant.sources if not source.startswith("turn:")]
    return sessions.forget(memory, sources, texts, meant.channel, dry_run=dry_run)


FORGETTERS = (_turns, _traces, _runs, _sessions, _index)


def _swept(memory: Opened, meant: Meant, *, dry_run: bool) -> list[tuple[str, int]]:
    return [row for forgetter in FORGETTERS for row in forgetter(memory, meant, dry_run=dry_run)]


def _told(rows: Sequence[tuple[str, int]]) -> list[str]:
    return [f"{name}: {count}" for name, count in rows if count]


# Looking for it again


def _found_again(memory: Opened, meant: Meant, known: Sequence[Place]) -> list[str]:
    """Where a search, a store of pipimem's, or a file outside .git still has what was forgotten, besides what is known.

    A short text is looked for inside others as well.
    """
    there, known_lines = {p.path for p in known}, {str(p) for p in known}
    found: list[str] = []
    for text in dict.fromkeys(meant.texts):
        again = Meant(frozenset(), frozenset(), (text,), anywhere=True)
        for layers in ([], ["archive"]):
            try:
                hits = memory.passages.search(text, Scope(None, layers=layers), 200)
            except (Usage, Refused):  # a text without words; an index that is being written
                continue
            found += [f"{h.path}:{h.line}" for h in hits if again.says(h.text)]
    places = [p for p in found if p not in known_lines and p.rpartition(":")[0] not in there]
    rows = _swept(memory, replace(meant, anywhere=True), dry_run=True)
    return [*places, *_told(rows), *_files_with(memory.workspace.root, meant, there)]


def _files_with(root: str, meant: Meant, there: Container[str]) -> Iterator[str]:
    """The files that have a line of a text byte for byte; short ones by whole words, and not in what is derived."""
    lines = dict.fromkeys(line.strip() for text in meant.texts for line in text.split("\n") if line.strip())
    long = [encode(line) for line in lines if telling(line)]
    words = [re.escape(encode(line)) for line in lines if not telling(line)]
    words = [rb"(?<!\w)" + word + rb"(?!\w)" if word.isascii() else word for word in words]
    short = re.compile(b"|".join(words)) if words else None
    for path in _all_files(root):
        name = os.path.relpath(path, root)
        if name not in there and (why := _holds(path, long, None if name.startswith(DERIVED) else short)) is not None:
            yield name + why


def _all_files(root: str) -> Iterator[str]:
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".git"]
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def _files(memory: Opened) -> int:
    return sum(1 for _ in _all_files(memory.workspace.root))


def _holds(path: str, long: Sequence[bytes], short: re.Pattern[bytes] | None) -> str | None:
    """Whether a file has one of them: None for no, else what is to be said after its name."""
    import mmap

    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > LOOKED_AT:
                return " (too big to be looked through)"
            if not size:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return "" if any(data.find(word) >= 0 for word in long) or (short and short.search(data)) else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return " (it could not be read)"
