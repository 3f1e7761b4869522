"""Plain functions over strings."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipimem
from pipimem import text


@given(st.binary(max_size=100))
def test_any_bytes_survive_decoding_and_encoding(data: bytes) -> None:
    assert text.encode(text.decode(data)) == data


@given(st.text(max_size=60))
def test_a_quoted_value_is_safe_in_a_comment_and_read_back(value: str) -> None:
    value = text.scrub(value)
    quoted = text.quote(value)
    assert text.unquote(quoted) == value
    assert "--" not in quoted
    assert not set(quoted) & set(" <>\"'\n")


@given(st.text(max_size=300), st.integers(2, 100))
def test_a_clipped_text_is_never_longer(value: str, limit: int) -> None:
    assert len(text.clip(value, limit)) <= limit
    assert text.clip(value, len(value) + 1) == value


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("hello world", 2, 4), ("部署窗口是周四晚上", 9, 13), ("", 0, 0), ("2026-11-02 v1.2.3", 8, 16)],
)
def test_token_estimates_are_near_what_tokenizers_count(value: str, least: int, most: int) -> None:
    assert least <= text.tokens(value) <= most


def test_control_characters_are_not_echoed() -> None:
    assert "\x1b" not in text.printable("a\x1b[31mb\n")
    assert text.printable("好" * 300).endswith("…")


def test_public_names_resolve_and_importing_the_package_loads_nothing() -> None:
    for name in pipimem.__all__:
        assert getattr(pipimem, name) is not None
    with pytest.raises(AttributeError):
        _ = pipimem.nonsense
    code = "import sys, pipimem; print(sorted(m for m in sys.modules if m.startswith('pipimem.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
