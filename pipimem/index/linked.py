"""Which found passages are linked to a thing that a message names: recall's graph signal.

On the path of every recall in a workspace that has links, and so light. Only passages that were found already are
looked at; nothing is found by a link alone.
"""

from __future__ import annotations

from pipimem.index.schema import CHANNEL_BITS, PASSAGE_BITS
from pipimem.index.words import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from pipimem.index.search import Hit

NEAR, FAR = 1.0, 0.5
"""What a link of the passage itself counts, and one of the document it is in, which is a step further."""
MOST = 200
"""Links looked at for one document."""
_CHANNEL = CHANNEL_BITS + PASSAGE_BITS


def weigh(db: sqlite3.Connection, hits: Sequence[Hit], text: str, channels: Sequence[str] | None) -> None:
    """Sets the `graph` signal, 0 to 1, of each hit of this index: how near it is to a thing that `text` names.

    A link of the passage to the thing is one step; one of its document, or of the thing's own page to that, is two.
    `channels` are those in scope besides the shared layer (None: all).
    """
    asked = f" {_spaced(fold(text))} "
    known: dict[int, list[tuple[int, str]]] = {}
    for hit in hits:
        document = hit.row >> PASSAGE_BITS
        if not hit.row:
            continue
        if document not in known:
            known[document] = [*_out(db, document), *_into(db, document, hit.channel, channels)]
        passage = hit.row - (document << PASSAGE_BITS)
        steps = [
            NEAR if at == passage else FAR for at, name in known[document] if at in (passage, -1) and _in(name, asked)
        ]
        hit.signals["graph"] = max(steps, default=0.0)


def _out(db: sqlite3.Connection, document: int) -> Iterator[tuple[int, str]]:
    """What a document links to: the passage a link stands in (-1: all of it), and the name."""
    first = document << PASSAGE_BITS
    sql = "SELECT passage, spelled FROM edges WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
    yield from db.execute(sql, (first, first + (1 << PASSAGE_BITS) - 1, MOST)).fetchall()


def _into(
    db: sqlite3.Connection, document: int, channel: str, channels: Sequence[str] | None
) -> Iterator[tuple[int, str]]:  # fmt: skip
    """The names of what links to a document, of the shared layer, its own channel, or for a shared one those asked."""
    sql = (
        "SELECT -1, s.spelled FROM names n JOIN edges e INDEXED BY edges_dst ON e.dst = n.node"
        " JOIN names s ON s.node = e.src AND s.name = s.node JOIN documents d ON d.id = s.id >> ?"
        " WHERE n.id = ? AND e.id >> ? = s.id >> ?"
    )
    values: list[object] = [PASSAGE_BITS, document << PASSAGE_BITS, _CHANNEL, _CHANNEL]
    if channels is not None:
        sql += f" AND d.channel IN ({','.join('?' * (len(channels) + 1))})"
        values += ["", *channels]
    yield from db.execute(f"{sql} ORDER BY e.kind, e.spelled, e.src LIMIT ?", (*values, MOST)).fetchall()


def _in(name: str, asked: str) -> bool:
    """Whether a name stands in the message: a Latin one as whole words, three signs at least, another anywhere."""
    folded = _spaced(fold(name))
    if folded.isascii():
        return len(folded) > 2 and f" {folded} " in asked
    return len(folded) > 1 and folded in asked


def _spaced(text: str) -> str:
    """Words between single spaces; signs inside a name stay, those around a word go."""
    if not text.isascii():
        text = "".join(c if c < "\u2e80" else f" {c} " if c.isalnum() else " " for c in text)
    return " ".join(word.strip(".,;:!?\"'`()[]{}<>“”‘’*") for word in text.split())
