"""The promotion job: SESSION items that proved durable go up into MEMORY, settled work becomes one block of HISTORY,
and what is stale leaves; source and target are in one plan.

No text is written here: an item moves word for word, with its id, its day and its source. A model only says which item
goes where, by id; what it does not mention stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pipimem.text import one_line
from pipimem.update import KINDS, Extracted, Setting
from pipimem.update.guards import REMOVED_SHARE
from pipimem.update.plan import Op, Outcome
from pipimem.update.session import STICKY, Item, Session, removable

if TYPE_CHECKING:
    from pipimem.update.question import Models

PROVEN, STALE = timedelta(2), timedelta(14)
"""Without a model: after how long an item of a lasting section counts as proven, and any other as stale."""
SETTLED = re.compile(
    r"^\s*(?:\[x\]|✅|☑)|\((?:done|resolved|settled|fixed)\)\s*$|[（(](?:已解决|已完成|已了结|搞定)[）)]\s*$",
    re.IGNORECASE,
)
MOST = 30
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["items"],
    "properties": {
        "items": {
            "type": "array",
            "maxItems": MOST,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "action", "kind", "confidence", "necessity"],
                "properties": {
                    "id": {"type": "string", "maxLength": 20},
                    "action": {"type": "string", "enum": ["promote", "settled", "stale", "keep"]},
                    "kind": {"type": "string", "enum": list(KINDS)},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "necessity": {"type": "string", "enum": ["high", "medium", "low"]},
                },
            },
        }
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of one item: `promote` as an entry of that kind, `settled`, or `stale`."""

    item: Item
    action: str
    kind: str = ""
    confidence: str = ""
    trial: bool = False


def promote(setting: Setting, models: Models | None) -> Extracted:
    """What moves out of SESSION now, by a model, else by rules."""
    session = Session(setting)
    origin, tokens, fell = "", 0, tuple[str, ...]()
    moves: Sequence[Move] = ()
    if models is not None and session.items and models.of("promote"):
        moves, origin, tokens, fell = _asked(models, session, setting)
    if not origin:
        moves = _by_rules(session, setting)
    _carry(moves, session, setting)
    ops = tuple(session.ops())
    return Extracted(ops, tuple(session.proposed), tuple(session.rejected), origin or "offline", tokens, fell)


def _by_rules(session: Session, setting: Setting) -> list[Move]:
    """Settled items by their mark, lasting ones after two days, others stale after two weeks."""
    moves = []
    proven, stale = (setting.today - PROVEN).isoformat(), (setting.today - STALE).isoformat()
    for item in session.items:
        if not item.own:
            continue
        if _settled(item):
            moves.append(Move(item, "settled"))
        elif item.section in STICKY and "" < item.age <= proven:
            moves.append(Move(item, "promote", STICKY[item.section]))
        elif item.section not in STICKY and "" < item.age <= stale:
            moves.append(Move(item, "stale"))
    return moves


def _settled(item: Item) -> bool:
    """Whether an item is marked as settled, by the refresh or in its own words."""
    return item.resolved or SETTLED.search(item.text) is not None


def _carry(moves: Sequence[Move], session: Session, setting: Setting) -> None:
    """Does the moves that are allowed; an item of a lasting section that is not marked as settled is neither that nor
    stale.
    """
    stale = [m for m in moves if m.action == "stale"]
    held = _too_many(stale, session)
    for move in moves:
        item = move.item
        if move.action == "promote":
            end = (setting.today + timedelta(setting.trial_days)).isoformat() if move.trial else ""
            session.promote(item, move.kind, move.confidence, trial=end)
        elif not item.own:
            session.rejected.append(_refused(move, setting, "a person wrote it"))
        elif move.action == "settled" and (item.section not in STICKY or _settled(item)):
            session.settle(item)
        elif item.section in STICKY:
            session.rejected.append(_refused(move, setting, f"'{item.section}' stays until it is settled"))
        elif item.age >= setting.today.isoformat() or held:
            session.rejected.append(_refused(move, setting, held or "it is of today"))
        else:
            session.leave(item, "stale")


def _too_many(stale: Sequence[Move], session: Session) -> str:
    """Why none of the stale ones may leave in this run: more at once than a run may take out of any file.

    What stood two weeks untouched is stale by the rules whatever its share.
    """
    free = [m for m in stale if m.confidence]
    most = max(1, REMOVED_SHARE * len(removable(session.items)))
    return "the run would take more than a fifth of the session" if len(free) > most else ""


def _refused(move: Move, setting: Setting, why: str) -> Outcome:
    op = Op("invalidate", setting.path("SESSION.md"), move.item.text, move.item.section, target=move.item.id)
    return Outcome(op, why)


def _asked(models: Models, session: Session, setting: Setting) -> tuple[list[Move], str, int, tuple[str, ...]]:
    from pipimem.update import question

    lines = [f"# Session on {setting.today.isoformat()}"]
    for item in session.items:
        settled = ", settled" if item.resolved else ""
        lines.append(f"[{item.id}] ({item.section}{settled}; {item.age or 'no date'}) {one_line(item.text)}")
    answer = question.ask("promote", models, setting, lines, SCHEMA, lambda value: _validated(value, session))
    session.rejected += question.left_out(answer, setting.path("SESSION.md"))
    return answer.value or [], answer.model if answer.usable else "", answer.tokens, answer.failures


def _validated(value: Any, session: Session) -> tuple[list[Move] | None, list[str]]:
    """The moves a reply is certain of: an item that is named twice with different actions stays."""
    from pipimem.llm.shape import fit
    from pipimem.update.asked import gate

    fitted, errors = fit(value, SCHEMA)
    if fitted is None:
        return None, errors
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in fitted.get("items", ()):
        rows.setdefault(row["id"].strip().strip("[]"), []).append(row)
    moves, trials = [], 0
    for identity, said in rows.items():
        item = session.item(identity)
        if item is None:
            errors.append(f"items: '{identity[:20]}' is no item of the session")
        elif len({row["action"] for row in said}) > 1:
            errors.append(f"items: '{identity}' is to go two ways; it stays")
        elif said[0]["action"] == "promote":
            trial = gate("add", said[0]["necessity"], said[0]["confidence"], trials)
            trials += bool(trial)
            if trial is not None:
                moves.append(Move(item, "promote", said[0]["kind"], f"{said[0]['confidence']:.2f}", trial))
        elif said[0]["action"] != "keep":
            moves.append(Move(item, said[0]["action"], confidence=f"{said[0]['confidence']:.2f}"))
    return (None if errors and not moves else moves), errors
