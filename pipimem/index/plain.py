"""The files searched without an index: where SQLite has no full text, or the index is not to be had just now.

The same scope, passages and safety verdicts as `sync` and `search`; the score is the number of words and character
pairs that match, unstemmed. Every ask reads every file in scope: correct, not quick.
"""

from __future__ import annotations

from pipimem import front, knowledge, markdown
from pipimem.errors import Unreadable
from pipimem.index import links, notes, words
from pipimem.index.fresh import BINARY
from pipimem.index.outline import outline
from pipimem.index.search import OUTDATED, Hit, Scope, passage_text, without_words
from pipimem.index.sync import passages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipimem.workspace import Document, Scan, Workspace


class Files:
    """The documents of a scan, to be asked like an index. `skipped` says which could not be read, and why."""

    def __init__(self, workspace: Workspace, scan: Scan) -> None:
        self.workspace = workspace
        self.documents = scan.documents
        self.skipped = list(scan.skipped)

    def search(self, text: str, scope: Scope, limit: int) -> list[Hit]:
        """The best `limit` passages in scope. Raises `Usage` for a query without words."""
        query = words.query(text, uncut)
        if not query:
            raise without_words()
        hits = []
        for hit, heading in self._hits(scope):
            matched = _score(query, f"{heading}\n{hit.text}")
            hit.score = matched * (OUTDATED if hit.superseded else 1)
            hit.signals = {"text": matched, "evidence": matched}
            if hit.score:
                hits.append(hit)
        return sorted(hits, key=lambda hit: (-hit.score, hit.path, hit.start))[:limit]

    def by_ref(self, ref: str, scope: Scope) -> list[Hit]:
        """The passages called `ref` in scope, in file order."""
        return [hit for hit, _ in self._hits(scope) if hit.ref == ref]

    def entries(self) -> list[Hit]:
        """Every entry of the scan."""
        return [hit for hit, _ in self._hits(Scope()) if hit.entry]

    def _hits(self, scope: Scope) -> list[tuple[Hit, str]]:
        """Every passage in scope with its heading."""
        found, superseding = [], set()
        rivals: dict[str, list[tuple[str, str]]] = {}
        ends: dict[str, str] = {}
        for document in sorted(self.documents, key=lambda d: d.path):
            within = scope.covers(document.channel, document.layer)
            if not within and not Scope(scope.channels, shared=scope.shared).covers(document.channel, document.layer):
                continue
            for hit, supersedes, conflicts, heading, wanted in self._passages(document, scope):
                superseding.add(supersedes)
                ends[hit.ref] = hit.until
                if conflicts and conflicts != hit.ref:
                    rivals.setdefault(conflicts, []).append((hit.ref, hit.until))
                    hit.rivals = [(conflicts, "")]
                if within and wanted and _is_wanted(hit, scope):
                    found.append((hit, heading))
        for hit, _ in found:
            hit.superseded = hit.ref in superseding
            named = [(ref, ends[ref]) for ref, _ in hit.rivals if ref in ends]
            hit.rivals = named + (rivals.get(hit.ref, []) if hit.entry else [])
        return found

    def _passages(self, document: Document, scope: Scope) -> Iterator[tuple[Hit, str, str, str, bool]]:
        """Every passage with what it supersedes and contradicts, its headings, and whether the filters on notes let it
        through.
        """
        try:
            data = self.workspace.read(document.path) or b""
        except Unreadable as error:
            self.skipped.append((document.path, error.message.rpartition(": ")[2].rstrip(".")))
            return
        if b"\0" in data:
            self.skipped.append((document.path, BINARY))
            return
        known = knowledge.read(front.read_front(data)[0])
        parsed = outline(data) or markdown.parse(data)
        found = list(passages(document, data, self.workspace, parsed, known))
        said = links.read(document, parsed, known, found) if scope.of_notes else None
        for number, (columns, heading, _) in enumerate(found):
            *shown, supersedes, conflicts, _, verdict = columns
            hit = Hit((document.path, document.channel, document.layer, *shown, verdict, False))
            hit.text = passage_text(data[hit.start : hit.end], entry=bool(hit.entry))
            wanted = said is None or notes.matches(scope, known, said, number)
            yield hit, supersedes, conflicts, " ".join(heading), wanted


def uncut(runs: Sequence[str]) -> list[list[str]]:
    """The cutter that leaves Chinese to its character pairs."""
    return [[] for _ in runs]


def _is_wanted(hit: Hit, scope: Scope) -> bool:
    return (not scope.kinds or hit.kind in scope.kinds) and hit.conf >= scope.min_confidence


def _score(query: words.Query, text: str) -> float:
    found, pairs = map(set, words.terms(text, uncut))
    single = {pair[0] for pair in pairs}
    return float(
        sum(word in found for word in query.words) + sum(p in (pairs if len(p) > 1 else single) for p in query.pairs)
    )
