"""The list of sources: the last line of each holds, damage costs a line, and no text is in it."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipimem.sources import EMPTY, PATH, Source, Sources, appended, read

ONE = Source("claude", "s-0001", path="~/a.jsonl", digest="d1", messages=3, status="indexed", time="t1")


def lines(*rows: Source) -> bytes:
    return "".join(row.line() + "\n" for row in rows).encode()


def test_the_last_line_of_a_source_holds() -> None:
    later = Source(
        "claude", "s-0001", path="~/a.jsonl", digest="d2", messages=5, status="extracted", entries={"m-1": "u1"}
    )
    other = Source("claude", "s-0002", path="~/b.jsonl", digest="d3")
    found = Sources(lines(ONE, other, later))
    assert list(found) == [later, other]
    assert found.of("claude", "s-0001") == [later]


def test_a_moved_source_is_one_source() -> None:
    moved = Source("codex", "s", path="~/archived/a.jsonl", digest="d", was="~/sessions/a.jsonl")
    found = Sources(lines(Source("codex", "s", path="~/sessions/a.jsonl", digest="d"), moved))
    assert [s.path for s in found] == ["~/archived/a.jsonl"]


def test_a_session_named_anew_takes_the_place_of_the_old_name() -> None:
    found = Sources(lines(ONE, Source("claude", "s-9", path="~/a.jsonl", instead="s-0001")))
    assert [s.session for s in found] == ["s-9"]


def test_what_is_no_line_of_the_list_is_left_out() -> None:
    bad = [
        "", "{", "[]", "null", '"x"', '{"engine": "claude"}', '{"engine": 1, "session": "s"}', "<<<<<<< ours",
        '{"engine":"a","session":"b","messages":"3"}', '{"engine":"a","session":"b","entries":[1]}',
        '{"engine":"a","session":"b","entries":{"m":1}}', "[" * 5000, '{"engine":"a","session":"b","path":null}',
    ]  # fmt: skip
    data = "\n".join([*bad, ONE.line(), *bad]).encode() + b"\n\xff\xfe\n"
    assert list(Sources(data)) == [ONE]


def test_an_unknown_field_of_a_later_version_does_no_harm() -> None:
    row = {**json.loads(ONE.line()), "weather": "rain"}
    assert list(Sources(json.dumps(row).encode())) == [ONE]


def test_a_line_cut_off_by_a_crash_gets_its_end_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / PATH
    path.parent.mkdir()
    path.write_bytes(lines(ONE) + b'{"engine": "cla')
    other = Source("pi", "会话", path="~/p.jsonl")
    path.write_bytes(appended(str(tmp_path), [other]))
    assert list(read(str(tmp_path))) == [ONE, other]


def test_a_missing_list_is_an_empty_one(tmp_path: Path) -> None:
    assert (list(read(str(tmp_path))), read(str(tmp_path)).mark) == ([], EMPTY)


def test_a_source_is_called_by_its_reference_whole_or_by_its_beginning() -> None:
    odd = Source("jsonl", "群 聊#1", path="~/c.jsonl")
    found = Sources(lines(ONE, Source("claude", "s-0002", path="~/b.jsonl"), odd))
    assert odd.ref == "jsonl:群%20聊%231"
    for ref in (odd.ref, f"[{odd.ref}]", f"{odd.ref}#L1", "jsonl:群"):
        assert found.named(ref) == ([odd] if len(ref) > 7 else [])
    assert found.named("claude:s-0001#u1") == [ONE]
    assert found.named("claude:s-00") == []
    assert found.named("codex:s-0001") == []


TEXT = st.text(max_size=12)


@given(st.lists(st.builds(Source, engine=st.sampled_from(["claude", "pi"]), session=TEXT.filter(bool), path=TEXT, digest=TEXT,
                          messages=st.integers(0, 9), entries=st.dictionaries(TEXT, TEXT, max_size=2)), max_size=6))  # fmt: skip
def test_what_is_written_is_read_back(rows: list[Source]) -> None:
    rows = [r for r in rows if r.session.isprintable()]
    expected = {r.key: r for r in rows}
    assert Sources(lines(*rows)).rows == expected
