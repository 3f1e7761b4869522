"""The offline updater over the labelled update set: how much of what was written is true, how much was found."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import markdown, safety
from pipimem.transcript import Message
from pipimem.update import dates, offline
from tests.golden.update import PATH, SECRETS, Window, load, split_of
from tests.golden.update.match import says
from tests.golden.update.measure import measure, read_offline, read_pipeline, table

SAID = "2026-11-03T10:00:00+08:00"


def talk(*texts: str, role: str = "user", names: tuple[str, ...] = ("顾念",), time: str = SAID) -> list[Message]:
    return [Message(f"jsonl:t#{n}", role, text, names[n % len(names)], time) for n, text in enumerate(texts)]


def read(
    *texts: str, memory: str = "", group: bool = False, names: tuple[str, ...] = ("顾念",), time: str = SAID
) -> dict[str, str]:
    entries = markdown.parse(memory.encode()).entries
    found = offline.read(talk(*texts, names=names, time=time), entries, group=group).memory
    return {f.text: f.target or f.kind for f in found if not f.hold}


def held() -> list[Window]:
    return [w for w in load() if w.split == "held"]


# The set itself


def test_the_set_has_enough_windows_of_each_language_kind_and_half() -> None:
    windows = load()
    assert len(windows) >= 70
    assert len({w.id for w in windows}) == len(windows)
    assert all(w.split == split_of(w.id) for w in windows)
    assert min(Counter(w.split for w in windows).values()) >= 0.4 * len(windows)
    langs = Counter(w.lang for w in windows)
    assert langs["zh"] >= 30
    assert langs["en"] >= 30
    assert langs["mixed"] >= 8
    assert {w.kind for w in windows} == {"direct", "group", "project"}
    why = Counter(label.why for w in windows for label in w.never)
    assert why.keys() >= set(
        "chit-chat hypothetical question joke quote tool code transient secret page repeat duplicate undated".split()
    )
    assert {label.why for w in windows for label in w.propose} == {"unnamed"}


def test_labels_name_messages_and_entries_that_are_there() -> None:
    for window in load():
        ids = {e.id for e in window.entries}
        for label in (*window.add, *window.supersede, *window.forget, *window.propose, *window.never):
            assert label.cites
            assert all(1 <= n <= len(window.messages) for n in label.cites), window.id
            assert not label.target or label.target in ids
        for label in (*window.add, *window.supersede):
            assert not any(
                says(label.text, other.text) for other in window.never if other.why not in ("question", "retracted")
            ), window.id


def test_no_secret_stands_in_the_file() -> None:
    with open(PATH, encoding="utf-8") as file:
        raw = file.read()
    assert not safety.secrets(raw)
    assert all(name in raw and secret not in raw for name, secret in SECRETS.items())
    assert any(secret in m.text for w in load() for m in w.messages for secret in SECRETS.values())
    assert all(json.loads(line)["id"] for line in raw.splitlines())


@pytest.mark.parametrize(
    ("entry", "label", "same"),
    [
        ("部署窗口改成每周三晚上九点", "部署窗口改成每周三晚上九点", True),
        ("好，那部署窗口就改成每周三晚上九点吧", "部署窗口改成每周三晚上九点", True),
        ("部署窗口改成每周四晚上八点", "部署窗口改成每周三晚上九点", False),
        ("网关监听 8080 端口，不是 18080", "网关监听 18080 端口，不是 8080", False),
        ("网关监听 18080 端口", "网关监听 8080 端口", False),
        ("用 npm，不用 pnpm", "用 pnpm，不用 npm", False),
        ("高峰期可以重启网关", "高峰期不可以重启网关", False),
        ("The spare key is with Tobias on floor 3", "the spare key is with Tobias on floor 3", True),
        ("The spare key is with Ines on floor 3", "the spare key is with Tobias on floor 3", False),
        ("The staging host is birch.example", "the staging host is birch.example now", True),
        ("The staging host is oak.example", "the staging host is birch.example now", False),
        ("Never restart the broker", "restart the broker", False),
        ("The contract call with Halden is 2026-11-18 at 15:00 (said 2026-11-17)", "the contract call with Halden is 2026-11-18 at 15:00", True),
        ("Releases go out on Wednesdays, and by the way the coffee machine on the second floor was repaired by a very friendly man", "releases go out on Wednesdays", False),
        ("ok", "releases go out on Wednesdays", False),
    ],
)  # fmt: skip
def test_the_matcher_knows_what_is_said(entry: str, label: str, *, same: bool) -> None:
    assert says(entry, label) is same


def test_every_label_says_itself_and_no_other_of_its_window() -> None:
    for window in load():
        labels = [*window.add, *window.supersede]
        for label in labels:
            assert [other.text for other in labels if says(label.text, other.text)] == [label.text]


# How well it reads


def test_on_the_held_back_half_nine_of_ten_are_true_and_six_of_ten_are_found() -> None:
    score = measure(held(), read_offline)
    assert score.precision >= 0.9, score.false
    assert score.recall >= 0.6, score.missed
    assert score.targets_found >= 0.7 * score.targets
    assert score.held_found >= 0.7 * score.held


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_no_language_is_left_behind(lang: str) -> None:
    score = measure([w for w in held() if w.lang == lang], read_offline)
    assert score.precision >= 0.85, score.false
    assert score.recall >= 0.6, score.missed


def test_what_propose_writes_is_true_as_well() -> None:
    score = measure(held(), read_pipeline)
    assert score.precision >= 0.85, score.false
    assert score.recall >= 0.5, score.missed


def test_no_secret_no_page_and_no_tool_text_is_ever_written() -> None:
    for window in load():
        for thing in read_offline(window):
            if thing.held:
                continue
            for label in window.never:
                if label.why in ("secret", "page", "tool", "quote", "code", "unnamed", "undated", "duplicate"):
                    assert not says(thing.text, label.text), (window.id, thing.text)
            assert not any(secret in thing.text for secret in SECRETS.values())


def test_the_table_shows_both_halves_and_every_kind() -> None:
    text = table(load(), read_offline)
    assert "| dev | all |" in text
    assert "| held | all |" in text
    assert "| held | open-loop |" in text


# Between the sentences


def test_a_value_that_is_corrected_at_once_is_written_once_and_right() -> None:
    assert read("记一下，牙医约在 11 月 20 号下午两点", "啊不对，是 11 月 21 号下午三点") == {
        "牙医约在 11 月 21 号下午三点": "fact"
    }
    assert read("Note: the dentist is on 20 November at 14:00", "sorry, it's 21 November at 15:00") == {
        "The dentist is on 21 November at 15:00": "fact"
    }


def test_what_is_taken_back_is_not_written() -> None:
    assert read("我们决定日志换成 Loki。", "算了，先不换了") == {}
    assert read("we're going with Loki for logs", "scratch that") == {}
    assert read("我们决定日志换成 Loki。", "算了", names=("顾念", "林溪")) != {}  # somebody else cannot take it back


def test_a_suggestion_counts_once_somebody_else_agrees() -> None:
    said = "那就先做安卓，iOS 排到三月"
    assert read(said, "好的 就这么定", names=("顾念", "林溪")) == {"先做安卓，iOS 排到三月": "decision"}
    assert read(said, "等等，我不同意", names=("顾念", "林溪")) == {}
    assert read(said, "好的") == {}  # nobody agrees with oneself


def test_a_cause_and_its_fix_become_one_entry() -> None:
    assert read("原因是连接池只有 10 个", "把 POOL_SIZE 改成 60 就好了") == {
        "原因是连接池只有 10 个。把 POOL_SIZE 改成 60 就好了": "failure"
    }
    found = read("the root cause was the report job holding 5 connections", "the fix was to raise pool_size to 40")
    assert list(found) == [
        "The root cause was the report job holding 5 connections. The fix was to raise pool_size to 40"
    ]


def test_a_pronoun_takes_the_sentence_before_it_along() -> None:
    assert list(read("I used to love dumplings. Since spring I can't stand them.")) == [
        "I used to love dumplings. Since spring I can't stand them"
    ]


MEMORY = """# M

- 部署窗口是每周四晚上八点 <!-- m-00000001 kind=decision -->
- 值班手册放在 ops/oncall.md <!-- m-00000002 kind=fact -->
- API client timeout is 10 seconds <!-- m-00000003 kind=fact -->
- Upload client timeout is 120 seconds <!-- m-00000004 kind=fact -->
- 手写的评审时间是两点
"""


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("部署窗口改到周三晚上九点了", "m-00000001"), ("更正：值班手册移到 docs/oncall.md 了", "m-00000002"),
        ("no, the API client timeout is 15 seconds", "m-00000003"), ("correction: upload client timeout is 90 seconds now", "m-00000004"),
        ("更正：评审时间是三点", ""), ("client timeout is 5 seconds now", ""), ("部署真难", ""),
    ],
)  # fmt: skip
def test_a_change_replaces_the_one_entry_it_speaks_of(text: str, target: str) -> None:
    entries = markdown.parse(MEMORY.encode()).entries
    found = offline.read(talk(text), entries).memory
    assert [f.target for f in found if f.target] == ([target] if target else [])


def test_forgetting_is_held_for_a_person_and_names_its_entry() -> None:
    entries = markdown.parse(MEMORY.encode()).entries
    found = offline.read(talk("忘掉值班手册放在哪那条", "please forget the upload client timeout"), entries)
    assert [(f.target, bool(f.hold)) for f in found.forget] == [("m-00000002", True), ("m-00000004", True)]
    assert found.memory == []


def test_in_a_group_an_i_gets_a_name_and_a_voice_without_one_only_proposes() -> None:
    assert read("周五前我来弄归雁的接口文档", group=True) == {"顾念：2026-11-06 前我来弄归雁的接口文档": "open-loop"}
    found = offline.read(talk("记住：密码每月一号换", names=("",)), group=True).memory
    assert [(f.text, f.hold) for f in found] == [("密码每月一号换", "nobody knows who said it")]


def test_a_relative_day_without_a_date_is_held_back_and_a_vague_one_keeps_its_day() -> None:
    assert read("记住：明天上午十点交房租", time="") == {}
    assert read("记住：房租下个月开始涨到 4600") == {"房租下个月开始涨到 4600（2026-11-03 说）": "fact"}
    assert read("remember: the rent goes up next month to 1460") == {
        "The rent goes up next month to 1460 (said 2026-11-03)": "fact"
    }


def test_the_assistant_reports_what_broke_and_decides_nothing() -> None:
    words = ["我决定用指数退避，以后都用 5 次。", "问题是 orders 表的 user_id 没有索引，导致全表扫描。"]
    found = offline.read(talk(*words, role="assistant")).memory
    assert [f.kind for f in found] == ["failure"]


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("周五前我来弄", "2026-03-20 前我来弄"), ("周三下班之前给", "2026-03-18 下班之前给"), ("本周五之前", "2026-03-13 之前"),
        ("两周后上线", "2026-03-28 上线"), ("今早的事", "2026-03-14 早的事"), ("昨日", "2026-03-13"), ("last night it broke", "2026-03-13 night it broke"),
        ("每周五前交周报", "每周五前交周报"), ("周四例会", "周四例会"),
    ],
)  # fmt: skip
def test_days_before_which_something_is_due_become_dates(text: str, resolved: str) -> None:
    assert dates.resolve(text, date(2026, 3, 14)) == resolved


def test_a_weekday_that_lies_ahead_is_settled_only_when_asked() -> None:
    day = date(2026, 3, 14)
    assert dates.resolve("我周四发", day, coming=True) == "我 2026-03-19 发"
    assert dates.resolve("done on Monday", day, coming=True) == "done on 2026-03-16"
    assert dates.anchored("月底前搞定", day) == "月底前搞定（2026-03-14 说）"
    assert dates.anchored("by the end of the month", day) == "by the end of the month (said 2026-03-14)"
    assert dates.anchored("明天", day) == "2026-03-15"
    assert [dates.relative(t) for t in ("明天", "next week", "2026-03-15", "周四例会")] == [True, True, False, False]


# Safety of the rules themselves


@given(st.lists(st.text(max_size=120), max_size=6), st.booleans())
def test_no_talk_breaks_the_rules(texts: list[str], group: bool) -> None:
    entries = markdown.parse(MEMORY.encode()).entries
    found = offline.read(talk(*texts, names=("顾念", "")), entries, group=group)
    said = " ".join(texts)
    for one in found.memory:
        assert 0 < one.confidence <= 1
        assert one.kind
        assert one.cites
        assert one.target in ("", *(e.id for e in entries))
    assert said or not found.memory


@pytest.mark.parametrize(
    "piece",
    [
        "以后都",
        "报错因为",
        "我来弄周五前，",
        "if we must never ",
        "no, actually ",
        "remember: ",
        "@顾念 ",
        "把把把改成",
    ],
)
def test_the_cost_is_linear_in_the_length(piece: str) -> None:
    def cost(size: int) -> float:
        started = time.process_time()
        offline.read(talk(piece * size, f"{piece * size}。" * 2))
        return time.process_time() - started

    cost(10)
    small, large = max(cost(1_000), 0.004), cost(10_000)
    assert large < 40 * small


def test_a_long_talk_is_read_in_a_blink() -> None:
    texts = [m.text for w in load() for m in w.messages]
    started = time.process_time()
    offline.read(talk(*texts, names=("顾念", "林溪", "Ines")))
    assert time.process_time() - started < 0.004 * len(texts)


def test_what_the_rules_write_rests_on_what_they_cite() -> None:
    from pipimem.update.grounds import Evidence, ungrounded

    for window in load():
        for found in offline.read(window.messages, window.entries, group=window.kind == "group").memory:
            assert ungrounded(found.text, Evidence(found.cites)) == "", (window.id, found.text)


def test_read_again_over_its_own_memory_the_talk_gives_nothing_new() -> None:
    for window in load():
        found = offline.read(window.messages, group=window.kind == "group").memory
        lines = "".join(f"- {f.text} <!-- m-{n:08x} src={f.sentence.message.ref} -->\n" for n, f in enumerate(found))
        entries = markdown.parse(f"# M\n\n{lines}".encode()).entries
        again = offline.read(window.messages, entries, group=window.kind == "group").memory
        assert {f.text for f in again} <= {f.text for f in found}, window.id
        assert [f.text for f in again if not f.target] == [], window.id


@pytest.mark.parametrize(
    ("said", "kept"),
    [("记住：周五不部署", "周五不部署"), ("记一下，周五不发", "周五不发"), ("记住：好的", ""), ("Remember: ok", "")],
)
def test_what_somebody_asks_outright_to_remember_may_be_short_in_chinese(said: str, kept: str) -> None:
    found = offline.read([Message("x:y#1", "user", said, "林岚", "2026-11-30T10:00:00+08:00")])
    assert [f.text for f in found.memory] == ([kept] if kept else [])
