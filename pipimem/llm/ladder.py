"""One question climbs the ladder: each model in turn gets a first try and one repair turn, and every fall is named.

Knows no job: what a value must be is the caller's `validate`. What follows when no model helped (the rules, a queued
retry) is the caller's too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipimem.errors import Error
from pipimem.llm import Failed, Message, Reply
from pipimem.llm.replies import BadReply, Nothing, read
from pipimem.llm.retry import Clock
from pipimem.llm.retry import ask as ask_one

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipimem.llm import Provider, Request

    Validate = Callable[[Any], tuple[Any, Sequence[str]]]

QUOTED = 8_000
"""Characters of a bad reply that its repair turn shows the model."""
LINES = 12
"""Errors that a repair turn quotes."""
TOLD = 300
FINISHES = {
    "length": "cut off at the token limit",
    "refused": "refused by the model",
}


@dataclass(frozen=True, slots=True)
class Try:
    """One question and what came of it, fit for a run record: no text of the request or reply.

    `turn` is first or repair; `outcome` is accepted, nothing, invalid, unreadable, length, refused, other, not-tried
    or the kind of a `Failed`; `detail` says it in one line.
    """

    model: str
    turn: str
    outcome: str
    detail: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the ladder gave: `value` as validated, or None; `nothing` says how a model said there is nothing to do.

    `model` and `turn` name the rung; `errors` what was left out of an accepted value; `tries` is everything in order.
    """

    value: Any = None
    nothing: str = ""
    model: str = ""
    turn: str = ""
    errors: tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether a model's word counts: a value, or that there is nothing to do."""
        return self.value is not None or bool(self.nothing)

    @property
    def tokens(self) -> int:
        """Tokens of all tries, both ways, as the services counted them."""
        return sum(each.tokens_in + each.tokens_out for each in self.tries)

    @property
    def failures(self) -> tuple[str, ...]:
        """Each try that gave no value, in a line with the model's name."""
        bad = [each for each in self.tries if each.outcome not in ("accepted", "nothing")]
        return tuple(f"{each.model} ({each.turn}): {each.detail or each.outcome}" for each in bad)


def climb(
    models: Sequence[Provider], request: Request, validate: Validate, *,
    limit: float | None = None, clock: Clock | None = None,
) -> Answer:  # fmt: skip
    """The first valid answer, models tried in order; never raises for what a model or provider does.

    `validate(value)` gives the value to use and what is wrong, one line each; None as the value asks for a repair turn
    (a part of it that is good is accepted with its errors). A finish other than stop is refused whole, without a
    repair turn. `limit` bounds the whole climb in seconds, `request.timeout` each turn.
    """
    clock = clock or Clock()
    end = None if limit is None else clock.now() + limit
    tries: list[Try] = []
    for number, model in enumerate(models):
        stop = _stop(request, end, clock)
        if stop:
            tries += [Try(each.name, "first", "not-tried", stop) for each in models[number:]]
            break
        answer = _rung(model, request, validate, tries, (end, clock))
        if answer is not None:
            return replace(answer, tries=tuple(tries))
    return Answer(tries=tuple(tries))


def _rung(
    model: Provider, request: Request, validate: Validate, tries: list[Try], until: tuple[float | None, Clock]
) -> Answer | None:
    """A model's first try and its repair turn."""
    wanted = request
    for turn in ("first", "repair"):
        end, clock = until
        if turn == "repair" and (stop := _stop(request, end, clock)):
            tries.append(Try(model.name, turn, "not-tried", stop))
            return None
        began = clock.now()
        reply, failed = _asked(model, wanted, end, clock)
        answer, said, errors = _judged(reply, failed, validate)
        tries.append(
            Try(
                model.name, turn, said, errors[0][:TOLD] if errors else "", reply.tokens_in, reply.tokens_out,
                round(clock.now() - began, 3), reply.mode if failed is None else "",
            )
        )  # fmt: skip
        if answer is not None:
            return replace(answer, model=model.name, turn=turn)
        if said not in ("invalid", "unreadable"):
            return None
        wanted = replace(request, messages=(*request.messages, *_repair(reply.text, errors)))
    return None


def _asked(model: Provider, request: Request, end: float | None, clock: Clock) -> tuple[Reply, Error | None]:
    left = request.timeout if end is None else min(request.timeout, end - clock.now())
    try:
        reply = ask_one(model, replace(request, timeout=left), clock)
        if isinstance(reply, Reply) and isinstance(reply.text, str):
            return reply, None
        return Reply(""), Failed("no-completion", f"The provider of '{model.name}' gave no reply.")
    except Error as error:
        return Reply(""), error
    except Exception as error:  # noqa: BLE001 - a provider is foreign code; its defect must not stop the next model
        return Reply(""), Failed("no-completion", f"The provider of '{model.name}' failed: {type(error).__name__}.")


def _judged(reply: Reply, failed: Error | None, validate: Validate) -> tuple[Answer | None, str, tuple[str, ...]]:
    """The answer in a reply, the outcome's name, and what is wrong."""
    if failed is not None:
        return None, getattr(failed, "kind", "failed"), (str(failed),)
    if reply.finish != "stop":
        finish = reply.finish if reply.finish in FINISHES else "other"
        return None, finish, (FINISHES.get(finish, "ended for an unknown reason"),)
    try:
        value = read(reply.text)
    except BadReply as bad:
        return None, "unreadable", (bad.reason,)
    if isinstance(value, Nothing):
        return Answer(nothing=value.reason), "nothing", (value.reason,)
    valid, wrong = validate(value)
    errors = tuple(wrong)
    if valid is None:
        return None, "invalid", errors or ("not of the wanted shape",)
    return Answer(valid, errors=errors), "accepted", errors


def _repair(said: str, errors: Sequence[str]) -> tuple[Message, Message]:
    lines = "\n".join(f"- {error}" for error in errors[:LINES])
    return (
        Message("assistant", said[:QUOTED] or "(nothing)"),
        Message(
            "user",
            f"That reply cannot be used:\n{lines}\n\nGive the whole reply again, corrected: one JSON object of the "
            "wanted shape and nothing else. Keep every text in its own language; add nothing new.",
        ),
    )


def _stop(request: Request, end: float | None, clock: Clock) -> str:
    if request.cancelled():
        return "called off"
    return "no time was left" if end is not None and clock.now() >= end else ""
