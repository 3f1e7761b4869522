"""Tests for pipimem/safety/unseen.py: hidden characters, and the same characters where they are text."""

from __future__ import annotations

import pytest

from pipimem import safety
from tests.conftest import case


def test_g14_joiners_are_text_and_hidden_characters_are_named_by_line() -> None:
    assert safety.hidden(case("G14-zwj.md").decode()) == []
    found = safety.hidden(case("G14-hidden.md").decode())
    assert [(finding.kind, finding.line) for finding in found] == [
        ("hidden:zero-width", 3),
        ("hidden:zero-width", 3),
        ("hidden:bidi", 3),
        ("hidden:bidi", 3),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff# Title",
        "👩\u200d🌾 🐈\u200d⬛ 🏳\ufe0f\u200d🌈 👨\u200d👩\u200d👧 🧑🏽\u200d💻",
        "❤\ufe0f ☎\ufe0e 1\ufe0f\u20e3 #\ufe0f\u20e3 ©\ufe0f ™\ufe0f ⚠\ufe0f注意",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "\u0915\u094d\u200d\u0937 and \u0928\u094d\u200c\u0928",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0e20\u0e32\u0e29\u0e32\u200b\u0e44\u0e17\u0e22",
        "\u05e9\u05dc\u05d5\u05dd C++\u200e, \u2067\u05d0\u05d1\u2069",
        "葛\U000e0100城 and 邉\ufe00",
        "Donau\u00addampf\u00adschiff",
        "plain \x1b[1;31mred\x1b[0m text",
        "tabs\tand\nlines\r\n",
    ],
)
def test_characters_a_script_or_an_emoji_needs_are_normal(text: str) -> None:
    assert safety.hidden(text) == []
    assert safety.verdict(text) == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("pay\u200bload", "zero-width"),
        ("目\u200b标", "zero-width"),
        ("a\u200db", "zero-width"),
        ("a\u2060b", "zero-width"),
        ("x\ufeffy", "zero-width"),
        ("\u0645\u200c\u200c\u200d\u0645", "zero-width"),
        ("right\u202eto left\u202c", "bidi"),
        ("if admin\u2066 // check\u2069", "bidi"),
        ("hi" + "".join(chr(0xE0000 + ord(char)) for char in "obey"), "tag"),
        ("😀" + "\ufe0f" * 3, "variation-selector"),
        ("a\ufe01\ufe04", "variation-selector"),
        ("ok\U000e0110\U000e0120", "variation-selector"),
        ("i\u00adg\u00adn\u00adore", "soft-hyphen"),
        ("a\u00ad\u00adb", "soft-hyphen"),
        ("name\u3164x", "blank-letter"),
        ("safe\x1b[8mhidden\x1b[0m", "terminal"),
        ("good\x08\x08\x08\x08evil", "terminal"),
        ("\x1b[2K\x1b[1Agone", "terminal"),
    ],
)
def test_hidden_characters_are_found_by_kind(text: str, kind: str) -> None:
    assert safety.hidden(text)[0].kind == f"hidden:{kind}"
    assert "hidden" in safety.verdict(text).split(",")


def test_neighbouring_hidden_characters_are_one_finding_with_its_line() -> None:
    found = safety.hidden("one\ntwo\u200b\u200b\u200b\nthree\u200b")
    assert [(finding.start, finding.end, finding.line) for finding in found] == [(7, 10, 2), (16, 17, 3)]


def test_a_hidden_character_inside_a_terminal_sequence_is_part_of_it() -> None:
    found = safety.hidden("\x1b]0;ti\u200btle\x07 and \u200b")
    assert [(finding.kind, finding.start, finding.end) for finding in found] == [
        ("hidden:terminal", 0, 10),
        ("hidden:zero-width", 16, 17),
    ]
