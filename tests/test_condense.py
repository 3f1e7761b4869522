"""Condensing chooses sentences and never writes any: nothing new, nothing lost, and the second time nothing at all."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem import markdown
from pipimem.text import decode, encode
from pipimem.update import condense
from pipimem.update.condense import Condensed
from tests.conftest import SAMPLE

TODAY = date(2026, 11, 30)
MEMORY = """# Channel Memory

Prose that a person wrote stays.

## 决定

- 部署窗口是每周三晚上九点 <!-- m-00000001 kind=decision since=2026-09-01 -->
- 部署窗口是每周四晚上八点 <!-- m-00000002 kind=decision since=2026-03-01 -->

## Facts

- The build pool is heron. <!-- m-00000003 kind=fact since=2026-01-01 -->
- the build pool is HERON <!-- m-00000004 kind=fact since=2026-05-01 -->
- 打印机在走廊，旁边是茶水间 <!-- m-00000005 kind=fact since=2026-02-01 -->
- The lift holds eight people and smells of oil. <!-- m-00000006 kind=fact since=2026-02-02 by=person -->
- A line without an id about the garden.
- The trial server is on loan. <!-- m-00000007 kind=fact since=2026-02-01 until=2026-06-01 -->
- The gateway listens on port 18080. <!-- m-00000008 kind=fact since=2026-02-01 -->
- Somebody mentioned the office plants. <!-- m-00000009 kind=insight since=2026-02-01 -->
- 部署窗口改成每周三晚上九点 <!-- m-0000000a kind=correction since=2026-09-02 supersedes=m-00000002 -->
""".encode()
HISTORY = """# Channel History

Intro.

## 2026-06-01 Broker moved

We moved the broker to the new rack. It rained. We decided to keep one spare. The old rack was noisy and nobody missed it at all.

## 2026-07-02 换消息服务器

- 试了三周带集群的那一套
- 大家同意留在 Mosquitto
- 中午吃了面

## 2026-08-03 Certificate

All boxes lost the broker at once. The certificate had been made by hand.

## 2026-09-04 Window

Tuesday works better.

## 2026-10-05 Rounding

Rounding up to 0.1 kWh was the cause.
""".encode()


def texts(data: bytes) -> list[str]:
    return [e.text for e in markdown.parse(data).entries]


# MEMORY


def test_what_is_under_the_budget_is_not_touched() -> None:
    result = condense.condense(MEMORY, len(decode(MEMORY)), TODAY)
    assert result.data == MEMORY
    assert result.archived == ()
    assert set(result.fates.values()) == {"kept"}


def test_first_goes_what_was_replaced_then_what_is_over_then_what_is_said_twice() -> None:
    result = condense.condense(MEMORY, len(decode(MEMORY)) - 200, TODAY)
    fates = {i: f for i, f in result.fates.items() if f != "kept"}
    assert fates == {
        "m-00000002": "archived: m-0000000a replaced it", "m-00000007": "archived: its time is over", "m-00000003": "archived: m-00000004 says the same",
    }  # fmt: skip
    assert [a.partition(" <!--")[0] for a in result.archived] == [
        "- 部署窗口是每周四晚上八点",
        "- The trial server is on loan.",
        "- The build pool is heron.",
    ]


def test_decisions_numbers_and_a_persons_lines_stay_longest() -> None:
    result = condense.condense(MEMORY, 10, TODAY)
    left = texts(result.data)
    assert "部署窗口是每周三晚上九点" in left
    assert "The lift holds eight people and smells of oil." in left
    assert "A line without an id about the garden." in left
    assert b"Prose that a person wrote stays." in result.data
    assert result.over > 0
    assert condense.unproven(MEMORY, result) == ""
    tighter = [condense.condense(MEMORY, size, TODAY) for size in range(1000, 300, -20)]
    gone = [
        i
        for i, _ in sorted(
            ((i, n) for n, c in enumerate(tighter) for i, f in c.fates.items() if f != "kept"), key=lambda x: x[1]
        )
    ]
    assert gone.index("m-00000009") < gone.index("m-00000005") < gone.index("m-00000008")


def test_a_long_entry_keeps_what_it_decides_and_its_numbers() -> None:
    long = (
        "The pond was warm that day. We decided to feed it at 18:30. Ducks came by. "
        + "Nothing else happened there. " * 12
    )
    data = encode(
        f"# M\n\n- {long}<!-- m-00000001 kind=fact since=2026-01-01 -->\n- Short. <!-- m-00000002 kind=decision -->\n"
    )
    plain = encode(
        f"# M\n\n- {long.replace('We decided to feed it', 'It gets fed')}<!-- m-00000001 kind=fact since=2026-01-01 -->\n"
    )
    assert condense.condense(data, 100, TODAY).fates["m-00000001"] == "kept"  # it decides something: it stays whole
    result = condense.condense(plain, 320, TODAY)
    assert result.fates["m-00000001"].startswith("shortened")
    assert "It gets fed at 18:30." in texts(result.data)[0]
    assert len(texts(result.data)[0]) <= condense.LONG_ENTRY
    assert result.archived[0].startswith("- The pond was warm")


def test_only_the_named_section_is_touched() -> None:
    result = condense.condense(MEMORY, 10, TODAY, "Channel Memory > Facts")
    assert result.fates["m-00000002"] == "kept"
    assert result.fates["m-00000005"] != "kept"


KINDS = st.sampled_from(
    ["fact", "decision", "constraint", "preference", "failure", "insight", "open-loop", "correction", ""]
)
WORDS = "部署 窗口 周三 heron pool 8080 2026-05-01 must 决定 the gateway 不得 broke because 缓存 , 。 . ; fix".split()
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=2, max_size=14).map(lambda w: " ".join(w).strip(" .,;") + ".")


@st.composite
def memories(draw: st.DrawFn) -> bytes:
    lines = ["# Channel Memory", ""]
    for n in range(draw(st.integers(1, 9))):
        if draw(st.booleans()) and n:
            lines += ["", f"## Part {n}", ""]
        facts = {"kind": draw(KINDS), "since": draw(st.sampled_from(["", "2026-01-01", "2026-06-01", "2026-11-01"]))}
        facts["by"] = draw(st.sampled_from(["", "", "updater", "person"]))
        facts["until"] = draw(st.sampled_from(["", "", "2026-02-01", "2027-01-01"]))
        facts["supersedes"] = draw(st.sampled_from(["", "", "m-00000001"])) if n > 1 else ""
        text = " ".join(draw(st.lists(SENTENCES, min_size=1, max_size=6)))
        note = markdown.comment(f"m-{n:08x}", facts) if draw(st.integers(0, 4)) else ""
        lines.append(f"- {text} {note}".rstrip())
    return encode("\n".join(lines) + draw(st.sampled_from(["\n", "\r\n", ""])))


@given(memories(), st.integers(0, 900))
@settings(max_examples=60, deadline=None)
def test_nothing_is_invented_nothing_is_lost_and_the_second_time_changes_nothing(data: bytes, budget: int) -> None:
    result = condense.condense(data, budget, TODAY)
    check_condensed(data, result)
    again = condense.condense(result.data, budget, TODAY)
    assert (again.data, again.archived) == (result.data, ())
    if len(decode(data)) <= budget:
        assert result.data == data
    assert result.over == max(0, len(decode(result.data)) - budget)


def check_condensed(data: bytes, result: Condensed) -> None:
    before, after = markdown.parse(data), markdown.parse(result.data)
    assert condense.unproven(data, result) == ""
    known = {e.id: e for e in before.entries if e.id}
    assert set(result.fates) == set(known)
    left = {e.id: e for e in after.entries if e.id}
    for identity, entry in known.items():
        fate = result.fates[identity].partition(":")[0]
        if fate == "kept":
            assert left[identity].text == entry.text
        else:
            assert any(identity in piece for piece in result.archived)
            assert (identity in left) == (fate == "shortened")
            assert entry.facts.get("by") != "person"
        if entry.facts.get("kind") in condense.PROTECTED and fate != "kept":
            assert result.fates[identity].split(": ")[1].split()[-1] in ("it", "over", "same")
    assert [e.text for e in before.entries if not e.id] == [e.text for e in after.entries if not e.id]
    assert [s.trail for s in before.sections] == [s.trail for s in after.sections]


# HISTORY


def test_old_blocks_become_one_with_a_line_each_and_the_newest_stay() -> None:
    result = condense.fold(HISTORY, 4000, 2)
    text = decode(result.data)
    assert text == (
        "# Channel History\n\nIntro.\n\n## 2026-06-01 – 2026-08-03\n\n"
        "- 2026-06-01 Broker moved: We moved the broker to the new rack. It rained. We decided to keep one spare. The old rack was noisy and nobody missed it at all.\n"
        "- 2026-07-02 换消息服务器：试了三周带集群的那一套；大家同意留在 Mosquitto；中午吃了面\n"
        "- 2026-08-03 Certificate: All boxes lost the broker at once. The certificate had been made by hand.\n\n"
        "## 2026-09-04 Window\n\nTuesday works better.\n\n## 2026-10-05 Rounding\n\nRounding up to 0.1 kWh was the cause.\n"
    )
    assert [a.split("\n")[0] for a in result.archived] == [
        "## 2026-06-01 Broker moved",
        "## 2026-07-02 换消息服务器",
        "## 2026-08-03 Certificate",
    ]
    assert result.fates["2026-06-01 Broker moved"] == "folded"
    assert condense.unproven(HISTORY, result) == ""


def test_under_a_tight_budget_what_was_decided_stays() -> None:
    result = condense.fold(HISTORY, 300, 1)
    text = decode(result.data)
    assert "We decided to keep one spare." in text
    assert "大家同意留在 Mosquitto" in text
    assert "It rained" not in text
    assert "吃了面" not in text
    assert any("It rained" in a for a in result.archived)
    assert condense.unproven(HISTORY, result) == ""


def test_a_later_fold_takes_the_earlier_one_along() -> None:
    first = condense.fold(HISTORY, 4000, 3).data
    grown = first + "\n## 2026-11-06 新的一天\n\n今天换了风扇。\n".encode()
    second = condense.fold(grown, 4000, 3)
    assert decode(second.data).count(" – ") == 1
    assert "## 2026-06-01 – 2026-08-03" in decode(second.data)
    assert "- 2026-06-01 Broker moved: We moved the broker" in decode(second.data)
    assert [a.split("\n")[0] for a in second.archived] == ["## 2026-08-03 Certificate"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Channel History\n",
        "2026-01-01 a dated paragraph\n\n2026-02-01 another\n",
        "## Notes\n\nno day\n",
        "## 2026-13-45 no day\n\nx\n",
    ],
)
def test_a_history_without_dated_blocks_stays_as_it_is(text: str) -> None:
    assert condense.fold(text.encode(), 1, 0).data == text.encode()


@st.composite
def histories(draw: st.DrawFn) -> bytes:
    parts = [draw(st.sampled_from(["", "# Channel History\n\n", "# 频道历史\n\n开头的话。\n\n"]))]
    for n in range(draw(st.integers(0, 8))):
        day = f"2026-{draw(st.integers(1, 12)):02}-{draw(st.integers(1, 28)):02}"
        body = draw(st.lists(SENTENCES, min_size=0, max_size=8))
        form = draw(st.sampled_from(["prose", "list", "deeper"]))
        lines = " ".join(body) if form == "prose" else "\n".join(f"- {s}" for s in body)
        deeper = f"### Part {n}\n\n{lines}" if form == "deeper" else lines
        parts.append(f"## {day} {draw(st.sampled_from(['Broker', '换服务器', 'v2.1']))} {n}\n\n{deeper}\n\n")
    return encode("".join(parts).replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"]))))


@given(histories(), st.integers(0, 1500), st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_folding_invents_nothing_keeps_everything_somewhere_and_does_it_once(
    data: bytes, budget: int, keep: int
) -> None:
    result = condense.fold(data, budget, keep)
    assert condense.unproven(data, result) == ""
    again = condense.fold(result.data, budget, keep)
    assert (again.data, again.archived) == (result.data, ())
    everything = decode(result.data) + "\n".join(result.archived)
    for section in markdown.parse(data).sections:
        body = decode(data[section.body : section.end]).strip()
        assert section.title in everything
        assert not body or body in everything


def test_the_proof_finds_what_was_invented_or_lost() -> None:
    good = condense.condense(MEMORY, 500, TODAY)
    assert "not there before" in condense.unproven(
        MEMORY, Condensed(good.data + b"- The pool is egret.\n", good.archived)
    )
    assert "nowhere" in condense.unproven(MEMORY, Condensed(good.data, ()))


def test_a_models_condensing_must_cover_every_id_once_and_say_no_more() -> None:
    entries = markdown.parse(MEMORY).entries
    ids = [e.id for e in entries if e.id]
    whole = [(e.text, [e.id]) for e in entries if e.id]
    assert condense.uncovered(entries, whole) == []
    assert any("covered by nothing" in r for r in condense.uncovered(entries, whole[1:]))
    assert any("covered twice" in r for r in condense.uncovered(entries, [*whole, whole[0]]))
    assert any("no entry" in r for r in condense.uncovered(entries, [*whole, ("The lift", ["m-0badf00d"])]))
    merged = [("The build pool is heron.", [ids[2], ids[3]]), *(w for w in whole if w[1][0] not in ids[2:4])]
    assert condense.uncovered(entries, merged) == []
    assert condense.uncovered(entries, [("The build pool is egret.", [ids[2], ids[3]]), *merged[1:]]) != []
    port = next(w for w in whole if "18080" in w[0])
    assert any(
        "lost" in r
        for r in condense.uncovered(entries, [("The gateway listens.", port[1]), *(w for w in whole if w != port)])
    )


def test_the_sample_workspace_condenses_and_proves_itself() -> None:
    for path in sorted(SAMPLE.glob("channels/*/*.md")):
        data = path.read_bytes()
        if path.name == "HISTORY.md":
            result = condense.fold(data, 500, 1)
            assert condense.fold(result.data, 500, 1).data == result.data
        elif path.name == "MEMORY.md":
            result = condense.condense(data, len(decode(data)) * 9 // 10, TODAY)
            check_condensed(data, result)
            assert result.over == 0
        else:
            continue
        assert condense.unproven(data, result) == "", path
