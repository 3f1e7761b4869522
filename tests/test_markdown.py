"""Lossless editing: bytes stay, structure stays, what is added reads back as one entry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem import markdown
from pipimem.errors import NotFound, Refused, Usage
from pipimem.front import BOM
from tests.conftest import case

FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "# Title\n", "## 部署\n", "## Facts ##\n", "### A\n", "Setext\n===\n", "two\nlines\n---\n", "- one\n", "- two <!-- m-0000000a kind=fact -->\n",
            "  - nested\n", " - nested by one\n", "* star\n", "1. first\n", "text\n", "文字。\n", "\n", "\n\n", "```\n# no heading\n```\n", "```\nopen\n",
            "~~~~\nx\n~~~\n", "<!-- note -->\n", "<!-- open\n", "<div>\n## in html\n\n", "> # quoted\n", "    code\n", "|a|b|\n|-|-|\n", "§\n",
            "a\r\n", "- crlf\r\n", "\x0c\n", "a\u2028b\n", "\ufeff", "\t- tab\n", "- \n", "-\n", "- - -\n", "***\n", "[x]: /y\n", "  \n", "a\rb\r", "\x00", "👩\u200d🌾\n",
        ]
    ),
    max_size=14,
)  # fmt: skip
DATED = st.lists(
    st.sampled_from(["2026-03-14 到货\n", "[2026-03-14 10:00] fan\nsecond line\n", "2026年3月4日 换滤芯 <!-- m-0000000b kind=fact -->\n", "no date\n", "- item\n", "\n", "\n", "\r\n", "§x\n", "```\n2026-01-01 code\n```\n", "> 2026-01-01\n", "    2026-01-01\n"]),
    max_size=12,
)  # fmt: skip
DOCUMENTS = st.one_of(
    FRAGMENTS.map("".join).map(str.encode), DATED.map("".join).map(str.encode), st.binary(max_size=200)
)
TEXTS = st.one_of(
    st.text(min_size=1, max_size=60),
    st.sampled_from(["# heading", "- item", "1. one", "---", "- -", "```", "<!-- x", "-->", "> q", "a\n# b", "a\n===", "§", "[x]: y", "中文\n\n第二行", "*", "m-0000000a"]),
)  # fmt: skip


def prose(data: bytes) -> list[tuple[str, bytes]]:
    """The blocks of a file that hold no entry, as they read."""
    parsed = markdown.parse(data)
    starts = {e.start for e in parsed.entries}
    return [(b.kind, data[b.start : b.end].strip()) for b in parsed.blocks if not b.items and b.start not in starts]


@given(DOCUMENTS)
def test_joined_sections_equal_the_bytes(data: bytes) -> None:
    parsed = markdown.parse(data)
    assert data[: parsed.offsets[0]] + b"".join(data[s.start : s.end] for s in parsed.sections) == data
    assert all(s.start <= s.body <= s.end for s in parsed.sections)
    assert all(data[e.start : e.end].strip() for e in parsed.entries)


@settings(max_examples=300)
@given(DOCUMENTS, TEXTS, st.sampled_from(["Facts", "部署", "A"]))
def test_an_added_entry_is_read_back_as_one_and_nothing_else_changes(data: bytes, text: str, heading: str) -> None:
    before = markdown.parse(data)
    try:
        new = markdown.add_entry(before, heading, text, "<!-- m-12345678 kind=fact -->")
    except (Refused, Usage):
        return
    after = markdown.parse(new)
    added = [e for e in after.entries if e.id == "m-12345678"]
    assert len(added) == 1
    assert added[0].text.removeprefix("\\") == markdown.clean(text).removeprefix("\\")
    if before.family != "separated":
        assert prose(new) == prose(data)
    kept = [(e.trail, e.text) for e in after.entries if e is not added[0]]
    assert kept == [(e.trail, e.text) for e in before.entries]
    # Nothing of the old text is gone: it is the new text less one run of bytes.
    at = next((i for i, (a, b) in enumerate(zip(data, new, strict=False)) if a != b), min(len(data), len(new)))
    assert data[at:] == new[len(new) - len(data) + at :] or not data[at:].strip()


@given(DOCUMENTS, st.integers(0, 10), TEXTS)
def test_replacing_or_removing_an_entry_changes_its_own_lines_only(data: bytes, at: int, text: str) -> None:
    parsed = markdown.parse(data)
    if not parsed.entries:
        return
    entry = parsed.entries[at % len(parsed.entries)]
    try:
        new = markdown.replace_entry(parsed, entry, text, "")
        assert new.startswith(data[: entry.start])
        assert new.endswith(data[entry.end :])
    except (Refused, Usage):
        pass
    try:
        new = markdown.remove_entry(parsed, entry)
    except Refused:
        return
    if parsed.family != "separated":
        assert prose(new) == prose(data)
        assert new.startswith(data[: entry.start].rstrip(b"\r\n"))
        assert new.endswith(data[entry.end :].lstrip(b"\r\n"))
    if parsed.family == "separated":
        assert len(new) < len(data)
        return  # with its last separator gone it reads as an ordinary file
    assert len(markdown.parse(new).entries) == len(parsed.entries) - 1


def test_headings_in_fences_comments_and_quotes_are_no_sections() -> None:
    parsed = markdown.parse(case("G15-hash-in-fence.md"))
    assert [s.title for s in parsed.sections if s.level] == ["Install", "Real section"]
    new = markdown.add_entry(parsed, "Install", "restart the bench", "")
    lines = new.decode().splitlines()
    assert lines.index("- restart the bench") > lines.index("prose after the fence")
    assert lines.index("- restart the bench") < lines.index("## Real section")


def test_front_matter_with_a_bom_is_recognised_and_the_bom_stays_first() -> None:
    data = case("G10-bom.md")
    parsed = markdown.parse(data)
    assert parsed.front[1] > parsed.front[0] > 0
    assert parsed.sections[0].level == 1 or parsed.sections[1].level == 1
    new = markdown.add_entry(parsed, parsed.sections[-1].name, "苗圃在东院", "")
    assert new.startswith(BOM)
    assert new.count(BOM) == 1


def test_every_new_line_of_a_crlf_file_ends_in_crlf() -> None:
    parsed = markdown.parse(case("G11-crlf.md"))
    new = markdown.add_entry(parsed, parsed.sections[-1].name, "第一行\n第二行", "")
    assert new.replace(b"\r\n", b"").count(b"\n") == 0
    entry = next(e for e in markdown.parse(new).entries if not e.text.isascii())
    again = markdown.replace_entry(markdown.parse(new), entry, "换了", "")
    assert again.replace(b"\r\n", b"").count(b"\n") == 0


@pytest.mark.parametrize(
    "name",
    [
        "G06-date.md",
        "G07-custom-keys.md",
        "G08-hash-in-yaml.md",
        "G08-placeholder.md",
        "G09-rules-in-body.md",
    ],
)
def test_front_matter_survives_an_append_byte_for_byte(name: str) -> None:
    data = case(name)
    parsed = markdown.parse(data)
    new = markdown.add_entry(parsed, parsed.sections[-1].name or "Facts", "新的一条", "")
    assert data.rstrip() in new


def test_the_same_heading_twice_is_refused_with_both_places() -> None:
    parsed = markdown.parse(case("G16-same-headings.md"))
    with pytest.raises(Refused) as caught:
        markdown.find_section(parsed, "Notes")
    assert caught.value.message.count("line ") == 3
    with pytest.raises(Refused):
        markdown.find_section(parsed, "House > Downstairs > Notes")


def test_a_heading_that_is_not_there_names_the_nearest() -> None:
    parsed = markdown.parse(case("G17-heading-with-tags.md"))
    with pytest.raises(NotFound) as caught:
        markdown.find_section(parsed, "Shopping list")
    assert "Shopping list @weekly (Sat)" in caught.value.hint


@pytest.mark.parametrize("text", ["- bread\n- milk", "只剩一行", ""])
def test_a_section_is_replaced_and_every_other_byte_stays(text: str) -> None:
    data = case("G17-heading-with-tags.md")
    parsed = markdown.parse(data)
    section = markdown.find_section(parsed, "Shopping list @weekly (Sat)")
    new = markdown.replace_section(parsed, "Shopping list @weekly (Sat)", text)
    assert new.startswith(data[: section.body])
    assert new.endswith(data[section.end :])
    assert new[section.body : len(new) - len(data) + section.end].strip() == text.encode()


def test_a_replaced_section_is_named_exactly_and_takes_no_headings() -> None:
    parsed = markdown.parse(case("G17-heading-with-tags.md"))
    with pytest.raises(NotFound):
        markdown.replace_section(parsed, "Shopping list", "x")
    for text in ("a\n\n## Notes\n\nb", "Setext\n===", "```\nopen"):
        try:
            new = markdown.replace_section(parsed, "Shopping list @weekly (Sat)", text)
        except Refused:
            continue
        assert [s.trail for s in markdown.parse(new).sections] == [s.trail for s in parsed.sections]
        assert b"keep me" in new
    same = markdown.parse(case("G16-same-headings.md"))
    with pytest.raises(Refused):
        markdown.replace_section(same, "Notes", "x")


@given(DOCUMENTS, st.text(max_size=40))
def test_replacing_a_section_never_touches_another(data: bytes, text: str) -> None:
    parsed = markdown.parse(data)
    for section in parsed.sections:
        if not section.trail:
            continue
        try:
            new = markdown.replace_section(parsed, section.name, text)
        except (Refused, NotFound):
            continue
        assert new.startswith(data[: section.body])
        assert new.endswith(data[section.end :])


def test_an_append_to_a_file_without_final_newline_makes_two_lines() -> None:
    parsed = markdown.parse(case("G18-no-newline.md"))
    new = markdown.add_entry(parsed, parsed.entries[-1].trail[-1] if parsed.entries[-1].trail else "Facts", "three", "")
    assert b"- two\n" in new
    assert b"- three" in new
    assert not new.endswith(b"\n")


@pytest.mark.parametrize("name", ["G18-empty.md", "G18-blank.md"])
def test_an_append_to_an_empty_or_blank_file_does_not_crash(name: str) -> None:
    data = case(name)
    new = markdown.add_entry(markdown.parse(data), "事实", "第一条", "")
    assert new.startswith(data)
    assert [e.text for e in markdown.parse(new).entries] == ["第一条"]


def test_nothing_is_added_behind_a_fence_that_is_never_closed() -> None:
    data = case("G19-unclosed-fence.md")
    parsed = markdown.parse(data)
    with pytest.raises(Refused, match="The fence opened in line 9 is never closed"):
        markdown.add_entry(parsed, parsed.sections[-1].name, "x y z", "")


def test_a_comment_in_a_new_text_cannot_pose_as_an_id() -> None:
    parsed = markdown.parse(b"# M\n\n## Facts\n\n- a\n")
    new = markdown.add_entry(parsed, "Facts", "x <!-- m-0badc0de kind=decision --> y", "<!-- m-00000001 kind=fact -->")
    entry = markdown.parse(new).entries[-1]
    assert (entry.id, entry.facts) == ("m-00000001", {"kind": "fact"})
    assert entry.text == "x <!-- m-0badc0de kind=decision --> y"


def test_entry_comments_are_read_in_both_spellings_and_values_are_decoded() -> None:
    text, identity, facts = markdown.split_comment(
        "部署窗口 <!-- m-5f3a2c1b kind=decision src=claude:0b7e#msg_01 by=a%20b -->"
    )
    assert (text, identity) == ("部署窗口", "m-5f3a2c1b")
    assert facts == {"kind": "decision", "src": "claude:0b7e#msg_01", "by": "a b"}
    assert markdown.split_comment("Loves dumplings. <!--id:m-0000f00d-->")[:2] == (
        "Loves dumplings.",
        "m-0000f00d",
    )


@given(st.dictionaries(st.sampled_from(["kind", "src", "by"]), st.text(min_size=1, max_size=20), max_size=3))
def test_what_a_comment_says_is_read_back(facts: dict[str, str]) -> None:
    facts = {k: v.encode("utf-8", "replace").decode() for k, v in facts.items()}
    line = f"x {markdown.comment('m-00000001', facts)}"
    assert markdown.split_comment(line) == ("x", "m-00000001", facts)
    assert "--" not in line[6:-3]


def test_typed_entries_get_a_stable_id_and_equal_ones_differ() -> None:
    parsed = markdown.parse("# M\n\n## 事实\n\n- 一样\n- 一样\n- 不同\n".encode())
    ids = [i for i, _ in markdown.identified(parsed, "ops")]
    assert len(set(ids)) == 3
    moved = markdown.parse("# M\n\n\n## 事实\n\ntext\n\n- 一样\n- 一样\n- 不同\n".encode())
    assert [i for i, _ in markdown.identified(moved, "ops")] == ids
    assert [i for i, _ in markdown.identified(parsed, "dm")] != ids


def test_separated_files_have_entries_and_take_one_more() -> None:
    parsed = markdown.parse("喜欢茶\n§\nsecond\nline\n".encode())
    assert [e.text for e in parsed.entries] == ["喜欢茶", "second\nline"]
    new = markdown.add_entry(parsed, "ignored", "third", "")
    assert new.decode() == "喜欢茶\n§\nsecond\nline\n§\nthird\n"
    assert markdown.remove_entry(parsed, parsed.entries[0]).decode() == "second\nline\n"


HISTORY = "[2026-03-14 10:00] 风扇到货。\n放在二楼。\n\n2026-03-16 Filter changed. <!-- m-0000000b kind=fact -->\n\nno date here\n"


def test_dated_paragraphs_of_a_file_without_headings_are_entries() -> None:
    parsed = markdown.parse(HISTORY.encode())
    assert [(e.text, e.id) for e in parsed.entries] == [
        ("[2026-03-14 10:00] 风扇到货。\n放在二楼。", ""),
        ("2026-03-16 Filter changed.", "m-0000000b"),
    ]
    shown = markdown.pieces(parsed, entries=False, dated=True)
    assert [p.entry is not None for p in shown] == [True, True, False]
    assert all(p.entry is None for p in markdown.pieces(parsed, entries=False))
    headed = markdown.parse(b"# History\n\n" + HISTORY.encode())
    assert headed.entries == []


def test_a_file_of_dated_paragraphs_takes_one_more_and_gets_no_heading() -> None:
    parsed = markdown.parse(HISTORY.encode())
    note = markdown.comment("m-0000000c", {"kind": "fact", "since": "2026-03-18"})
    new = markdown.add_entry(parsed, "Facts", "换了滤芯", note)
    assert new.decode() == HISTORY + f"\n2026-03-18 换了滤芯 {note}\n"
    block = markdown.append_section(parsed, "2026-03-19 Moved", "- Task: 搬家\n- fact: done")
    assert block.decode() == HISTORY + "\n2026-03-19 Moved\nTask: 搬家\nfact: done\n"
    with pytest.raises(Refused, match="begin with a date"):
        markdown.add_entry(parsed, "Facts", "no day", "")
    first = parsed.entries[0]
    changed = markdown.replace_entry(parsed, first, "2026-03-15 风扇", "")
    assert changed.decode() == "2026-03-15 风扇\n" + HISTORY.split("\n", 2)[2]
    assert markdown.remove_entry(parsed, parsed.entries[1]).decode() == HISTORY.replace(
        HISTORY.split("\n")[3] + "\n\n", ""
    )


LONG = 10 * 1024 * 1024


@pytest.mark.parametrize(
    "line",
    ["x" * LONG, "- " + "好 " * (LONG // 4), "`" * LONG, "<!-- " + "- " * (LONG // 2), "# " + "# " * (LONG // 2)],
)
def test_a_line_of_ten_megabytes_is_read_and_kept(line: str) -> None:
    data = f"# 标题\n\n- one\n\n{line}".encode()
    parsed = markdown.parse(data)
    assert b"".join(data[s.start : s.end] for s in parsed.sections) == data
    assert parsed.entries[0].text == "one"
    new = markdown.replace_entry(parsed, parsed.entries[0], "一", "")
    assert new == data.replace(b"- one", "- 一".encode(), 1)


def test_an_entry_over_its_limit_is_refused_by_name() -> None:
    parsed = markdown.parse(b"# M\n\n- a\n")
    fits = "字" * markdown.ENTRY_LIMIT
    assert markdown.parse(markdown.add_entry(parsed, "M", fits, "")).entries[-1].text == fits
    with pytest.raises(Refused, match=r"'字字.*4,001 characters"):
        markdown.add_entry(parsed, "M", fits + "字", "")
    with pytest.raises(Refused, match=r"'字字.*4,001 characters"):
        markdown.replace_entry(parsed, parsed.entries[0], fits + "字", "")


def test_conflict_markers_are_found_with_their_line() -> None:
    assert markdown.conflict_line(case("G31-conflict.md")) == 5
    assert markdown.conflict_line("# 标题\n\n=======\n".encode()) == 0


def test_a_long_section_becomes_pieces_that_cover_it() -> None:
    data = ("# Notes\n\n" + "".join(f"段落{n} " + "字" * 200 + "\n\n" for n in range(20))).encode()
    pieces = markdown.pieces(markdown.parse(data), entries=False)
    assert len(pieces) > 5
    assert all(p.end - p.start <= markdown.PIECE_LIMIT for p in pieces)
    text = b"".join(data[p.start : p.end] for p in pieces)
    assert all(f"段落{n} ".encode() in text for n in range(20))


def test_replacing_one_of_twenty_eight_entries_is_a_one_line_diff() -> None:
    data = case("G04-28-entries.md")
    parsed = markdown.parse(data)
    entry = next(e for e in parsed.entries if e.text.startswith("Fact 07"))
    new = markdown.replace_entry(parsed, entry, "Fact 07: 货架 G7 放第 19 盘。", "")
    pairs = [(a, b) for a, b in zip(data.splitlines(), new.splitlines(), strict=True) if a != b]
    assert pairs == [(b"- Fact 07: shelf G7 holds tray 18.", "- Fact 07: 货架 G7 放第 19 盘。".encode())]
    assert len(markdown.parse(new).entries) == 28
