"""Tests of redaction on the evaluation set, and of private spans (pipimem/safety/marked.py)."""

from __future__ import annotations

import re

import pytest

from pipimem import safety
from tests.redaction import HALVES, measure, rows

LEAST = 0.97


@pytest.mark.parametrize("part", HALVES)
def test_secrets_go_and_ordinary_text_stays_with_precision_and_recall_of_097(part: str) -> None:
    figures = measure(part, safety.redact)
    assert figures.recall >= LEAST, figures.missed
    assert figures.precision >= LEAST, figures.alarms


def test_the_set_has_80_of_each_and_every_category_on_both_sides() -> None:
    secret = [row for part in HALVES for row in rows(part + "-secret")]
    plain = [row for part in HALVES for row in rows(part + "-plain")]
    assert min(len(secret), len(plain)) >= 80
    assert all(row.values for row in secret)
    assert len({row.category for row in secret} & {row.category for row in plain}) >= 12


def test_the_verdict_names_what_redaction_would_take_out() -> None:
    for part in HALVES:
        for row in rows(part + "-secret"):
            if safety.redact(row.text) != row.text:
                assert "secret" in safety.verdict(row.text), row
        for row in rows(part + "-plain"):
            assert "secret" not in safety.verdict(row.text), row


def test_redacting_twice_is_redacting_once() -> None:
    for row in (row for part in HALVES for row in rows(part + "-secret")):
        once = safety.redact(row.text)
        assert safety.redact(once) is once


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>b</private> c", "a [redacted:private] c"),
        ("<private>一</private>，<Private>二</PRIVATE>。", "[redacted:private]，[redacted:private]。"),
        ("a <private>b\n\n- c\n", "a [redacted:private]"),
        ("b\n- c</private> d", "[redacted:private] d"),
        ("<private>a <private>b</private> c", "[redacted:private] c"),
        ('<private reason="health">b</private>', "[redacted:private]"),
    ],
)
def test_a_private_span_goes_with_its_tags_and_a_cut_off_one_to_the_end(text: str, left: str) -> None:
    assert safety.redact(text) == left
    assert safety.verdict(text) == "secret"


@pytest.mark.parametrize(
    "text",
    [
        "wrap it in `<private>` and close it",
        "`<private>…</private>` 里的内容不会进索引",
        "between <private> and </private>",
        "a <privateKey> element, a <private-note/>",
        "private: no tag at all",
    ],
)
def test_a_mention_of_the_tag_is_no_private_span(text: str) -> None:
    assert safety.redact(text) is text


def test_a_private_span_is_no_credential_and_says_where_it_stands() -> None:
    text = "one\r\ntwo <private>three</private>"
    assert safety.secrets(text) == []
    assert [(found.kind, found.line) for found in safety.private(text)] == [("private", 2)]


def test_a_secret_inside_a_private_span_goes_with_it() -> None:
    text = "x <private>password: " + "tulip" + "s4ever</private> and the password is " + "tulip" + "s4ever"
    assert safety.redact(text) == "x [redacted:private] and the password is [redacted:password]"


def test_no_marked_value_of_the_set_stands_whole_in_its_file() -> None:
    from tests.redaction import FOLDER

    for part in HALVES:
        with open(f"{FOLDER}/{part}-secret.txt", encoding="utf-8") as file:
            marked = re.findall("⟦(.*?)⟧", file.read(), re.DOTALL)
        assert [value for value in marked if "¦" not in value and not value.lower().startswith("<private")] == []
