"""JSON text edited in place: the edit and nothing else, and taken out again it is the text that was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem.jsontext import drop, load, put

KEYS = st.sampled_from(["hooks", "mcp", "窑", "a b", 'q"', "x\\"])
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.sampled_from([None, 1, 2, 4, "\t"]),
    st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n"]), VALUES,
)  # fmt: skip
def test_an_edit_says_what_was_asked_and_taking_it_out_gives_the_same_bytes(
    value: dict[str, Any], indent: int | str | None, newline: str, end: str, added: Any
) -> None:
    text = (json.dumps(value, indent=indent, ensure_ascii=False) + end).replace("\n", newline)
    done = put(text, ["pipimem"], added)
    assert load(done) == {**value, "pipimem": added}
    assert drop(done, ["pipimem"]) == text
    assert load(put(done, ["pipimem"], {"x": 1}))["pipimem"] == {"x": 1}
    deep = put(text, ["new", "deep", "er"], added)
    assert load(deep) == {**value, "new": {"deep": {"er": added}}}
    assert drop(deep, ["new"]) == text
    for key, part in value.items():
        assert load(drop(text, [key])) == {k: v for k, v in value.items() if k != key}
        if isinstance(part, list):
            grown = put(text, [key, len(part)], added)
            assert load(grown)[key] == [*part, added]
            assert drop(grown, [key, len(part)]) == text or not part


def test_what_is_added_is_laid_out_as_the_rest_is() -> None:
    assert put('{\n\t"a": 1\n}\n', ["b"], [1]) == '{\n\t"a": 1,\n\t"b": [\n\t\t1\n\t]\n}\n'
    assert put('{"a": 1}', ["b"], [1]) == '{"a": 1, "b": [1]}'
    assert put('{ "窑": {} }', ["窑", "b"], 1) == '{ "窑": {\n  "b": 1\n} }'
    assert put("{}\n", ["a"], True) == '{\n  "a": true\n}\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{\n  // note\n  "a": 1\n}', "line 2 is no plain JSON"),
        ('{"a": 1,}', "line 1 is no plain JSON"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ("{'a': 1}", "line 1"),
        ("", "line 1"),
    ],
)
def test_what_is_no_plain_json_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        put(text, ["b"], 1)
