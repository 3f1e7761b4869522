"""A real small model, end to end over the real client: whatever it says, it is a value, nothing, or a failure by name.

Three calls of at most 600 prompt and 80 reply tokens. The model is far too small to be right; it is here to misbehave.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.small_model import WANTED, served

pytest.importorskip("xllamacpp", reason=WANTED)
pytest.importorskip("pydantic_ai", reason="the llm extra is not installed: the small model was not asked")

from pipimem import llm
from pipimem.llm import Message, Request, Settings
from pipimem.llm.ladder import Answer, climb
from pipimem.llm.shape import fit

pytestmark = pytest.mark.model

NOTES = {
    "en": "1. We decided to fire the kiln on Fridays.\n2. npm printed three warnings.\n3. The user likes short answers.",
    "zh": "1. 决定每周五开窑。\n2. npm 打印了三条警告。\n3. 用户喜欢简短的回答。",
}
SYSTEM = (
    "You sort numbered notes of a chat. Give the numbers of the notes that stay true for long.\n"
    'Example: notes "1. hello 2. we use tabs" give {"keep": [2]}'
)
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["keep"],
    "properties": {"keep": {"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 1, "maximum": 3}}},
}
ENDS = {"accepted", "nothing", "invalid", "unreadable", "length"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    try:
        with served() as url:
            yield url
    except ImportError as error:
        pytest.skip(str(error))


def asked(address: str, language: str, schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Answer:
    for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    model = llm.provider("compatible:smollm2", Settings({"compatible": address}, {}))
    messages = (Message("system", SYSTEM), Message("user", NOTES[language]))
    request = Request(messages, schema, "notes", max_tokens=80, timeout=60.0)

    def once(value: Any) -> tuple[Any, list[str]]:
        fitted, errors = fit(value, schema)
        return ("not of the shape" if fitted is None else fitted), errors  # no repair turn: the calls are counted

    return climb([model], request, once)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_real_model_held_to_a_schema_gives_ids_or_fails_by_name(
    address: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = asked(address, language, SCHEMA, monkeypatch)
    (first,) = answer.tries[:1]
    assert first.outcome in ENDS, answer.failures
    assert 0 < first.tokens_in <= 600
    assert 0 < first.tokens_out <= 80
    assert first.mode == "json_schema"
    if answer.value is not None:
        assert set(answer.value["keep"]) <= {1, 2, 3}
        assert answer.errors == ()


def test_a_real_model_that_may_write_text_is_cut_or_bounded(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = {
        "type": "array",
        "minItems": 3,
        "maxItems": 3,
        "items": {"type": "string", "minLength": 200, "maxLength": 400},
    }
    answer = asked(address, "en", {"type": "object", "required": ["keep"], "properties": {"keep": notes}}, monkeypatch)
    assert [t.outcome for t in answer.tries] == ["length"]
    assert (answer.value, answer.usable) == (None, False)
    assert answer.tries[0].tokens_out == 80
