"""Front matter: read without ever raising, edited in one value only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import front
from pipimem.errors import Refused, Usage
from tests.conftest import case


def test_a_file_that_starts_with_a_thematic_break_has_no_front_matter() -> None:
    data = case("G09-rules-in-body.md")
    assert front.front_matter(data) == (0, 0)
    assert front.read_front(data) == ({}, "")


def test_an_unfilled_template_is_text_with_a_note_not_a_crash() -> None:
    values, why = front.read_front(case("G08-placeholder.md"))
    assert values == {}
    assert "YAML" in why


def test_values_of_front_matter_are_read_and_never_raise() -> None:
    assert front.read_front("---\nowner: 顾念\n'1': x\n---\n".encode())[0] == {"owner": "顾念", "1": "x"}
    for hostile in (
        b"---\na: [\n---\n",
        b"---\na: !!python/object:x {}\n---\n",
        b"---\na: \xff\n---\n",
        b"---\na: b: c\n---\n",
    ):
        values, why = front.read_front(hostile)
        assert values == {}
        assert why


def changed_lines(before: bytes, after: bytes) -> list[bytes]:
    old = before.splitlines(keepends=True)
    return [line for line in after.splitlines(keepends=True) if line not in old]


def test_setting_one_value_changes_that_line_only() -> None:
    data = case("G06-date.md")
    new = front.set_value(data, "owner", "tobias")
    assert changed_lines(data, new) == [b"owner: tobias\n"]
    assert len(new.splitlines()) == len(data.splitlines())
    assert b"date: 2026-03-16" in new


@pytest.mark.parametrize("name", ["G07-custom-keys.md", "G08-hash-in-yaml.md", "G10-bom.md", "G11-crlf.md"])
def test_a_new_key_is_one_more_line_before_the_closing_fence(name: str) -> None:
    data = case(name)
    new = front.set_value(data, "owner_name", "顾念")
    added = changed_lines(data, new)
    assert [line.strip().decode() for line in added] == ["owner_name: 顾念"]
    assert len(new) == len(data) + len(added[0])
    assert new.startswith(data[:3])
    assert (b"\r\n" in added[0]) == (b"\r\n" in data)


def test_comments_quotes_and_order_stay() -> None:
    data = b"---\r\n# who\r\nb: \"x # y\"  # keep\r\na: 'old' # why\r\nc:\r\n---\r\nbody\r\n"
    new = front.set_value(data, "a", "new: value")
    assert new == data.replace(b"'old' # why", b'"new: value" # why')
    assert front.set_value(data, "c", 3) == data.replace(b"c:\r\n", b"c: 3\r\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no front matter\n", "no front matter"), (b"---\na: [\n---\n", "YAML"), (b"---\na: |\n  two\n  lines\n---\n", "more than one value"),
        (b"---\na: [1, 2]\n---\n", "more than one value"), (b"---\na: 1\na: 2\n---\n", "stands 2 times"), (b"---\na: {b: c}\n---\n", "more than one value"),
        (b"---\na: &x 1\nb: *x\n---\n", "alone"),
    ],
)  # fmt: skip
def test_what_cannot_be_edited_safely_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        front.set_value(data, "a", "z")


def test_a_strange_key_is_wrong_usage() -> None:
    with pytest.raises(Usage):
        front.set_value(b"---\na: 1\n---\n", "a: b", "x")


@given(st.one_of(st.text(max_size=30), st.integers(), st.booleans()), st.sampled_from(["a", "b", "new"]))
def test_any_value_is_read_back_and_the_rest_stays(value: str | int | bool, key: str) -> None:
    data = "---\n# 注释\na: 1 # one\nb: '二'\n---\n\n# 正文\n".encode()
    try:
        new = front.set_value(data, key, value)
    except Refused:
        return
    values, why = front.read_front(new)
    assert why == ""
    assert values == {"a": 1, "b": "二", key: value}
    assert new.endswith("---\n\n# 正文\n".encode())
    assert "# 注释".encode() in new
