"""Proposals: written so that people can read them, read back whatever people do to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import markdown
from pipimem.errors import NotFound, Refused
from pipimem.memory import Memory
from pipimem.text import scrub
from pipimem.update import review
from pipimem.update.plan import Op, Outcome
from tests.conftest import run, snapshot
from tests.test_update import talk


def held(text: str) -> Op:
    facts = {"kind": "fact", "src": "jsonl:chat#L3"}
    outcome = Outcome(Op("add", "channels/ops/MEMORY.md", text, "事实", facts=facts), "nobody knows who said it")
    return review.proposal(outcome, "r-20260314-abc123-1", '飞书:群:"研发"', date(2026, 3, 14))


ODD = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\u3000"
"""What Python takes for the end of a line, or for white space, and Markdown for text."""


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@given(st.text(st.one_of(st.characters(), st.sampled_from("\r\n #>-[x]记" + ODD)), min_size=1, max_size=80).map(scrub))
def test_what_is_written_is_read_back(ending: str, text: str) -> None:
    text = text.strip(" \t\r\n") or "记"
    op = held(text)
    found = review.read(op.path, op.text.replace("\n", ending).encode())
    assert found.problem == ""
    assert (found.text, found.old, found.answer) == (re.sub(r"\r\n?", "\n", text), "", "")
    assert (found.id, found.op, found.channel) == ("r-20260314-abc123-1", "add", '飞书:群:"研发"')
    assert (found.file, found.kind, found.created) == ("channels/ops/MEMORY.md", "fact", "2026-03-14")
    assert found.why == "Held back because nobody knows who said it."
    assert found.evidence == "- jsonl:chat#L3"


@given(st.text(min_size=1, max_size=20).map(scrub))
def test_the_facts_of_a_proposal_are_read_back_whatever_they_hold(name: str) -> None:
    op = Op("add", "MEMORY.md", "记", name)
    made = review.proposal(Outcome(op, "only a page said it"), "p1", name, date(2026, 3, 14))
    found = review.read(made.path, made.text.encode())
    assert (found.problem, found.channel, found.heading) == ("", name, name)


@pytest.mark.parametrize("odd", ODD)
def test_an_accepted_text_is_written_whole(make: Callable[..., Memory], root: Path, odd: str) -> None:
    memory = make({"MEMORY.md": "# 记忆\n"})
    (root / "review").mkdir()
    text = f"构建缓存在{odd}kestrel 九号"
    made = review.proposal(Outcome(Op("add", "MEMORY.md", text, "事实"), "a tool said so"), "p1", "", date(2026, 3, 14))
    (root / "review/p1.md").write_bytes(made.text.replace("\n", "\r\n").encode())
    memory.accept("p1")
    assert f"- {text.translate(markdown.CONTROL)} <!--" in (root / "MEMORY.md").read_bytes().decode()


def test_what_cannot_be_written_waits_on(make: Callable[..., Memory], root: Path) -> None:
    memory = waiting(make, "the okapi feeds at noon.")
    path = root / memory.proposals()[0].path
    path.write_text(path.read_text().replace("> The okapi feeds at noon", "> " + "霍加狓" * 2000))
    before = snapshot(root)
    with pytest.raises(Refused, match="4,000 at most"):
        memory.accept("1")
    assert snapshot(root) == before


@pytest.mark.parametrize(
    ("ticks", "answer"),
    [("- [x] accept\n- [ ] reject", "accept"), ("- [ ] accept\n- [X] reject", "reject"), ("- [x] accept\n- [x] reject", "both"), ("* [x] accept", "accept")],
)  # fmt: skip
def test_a_ticked_box_is_the_answer(ticks: str, answer: str) -> None:
    text = held("the office is closed").text.replace("- [ ] accept\n- [ ] reject", ticks)
    assert review.read("review/x.md", text.encode()).answer == answer


@pytest.mark.parametrize(
    "data", [b"", b"just prose\n", b"---\nop: [\n---\n", b"\xff\xfe\x00", b"---\nop: add\n---\n\n## What\n\nno quote\n"]
)
def test_a_file_that_is_no_proposal_says_so(data: bytes) -> None:
    found = review.read("review/odd.md", data)
    assert found.problem
    assert found.id == "odd"


def test_what_waits_is_listed_shown_and_never_searched(make: Callable[..., Memory], root: Path) -> None:
    memory = make()
    memory.add_channel("team:group:1")
    memory.apply(
        memory.propose("team:group:1", talk("Remember: the okapi feeds at noon.", "记住：霍加狓中午喂。", name=""))
    )
    before = snapshot(root)
    listed = run("-w", root, "review", "--json")
    assert listed.code == 0
    assert [p["text"] for p in listed.json["proposals"]] == ["The okapi feeds at noon", "霍加狓中午喂"]
    shown = run("-w", root, "review", "show", "2")
    assert "霍加狓中午喂" in shown.out
    assert "nobody knows who said it" in shown.out
    assert run("-w", root, "review", "show", listed.json["proposals"][0]["id"]).code == 0
    assert run("-w", root, "search", "okapi").code == 1
    assert snapshot(root) == before
    with pytest.raises(NotFound):
        memory.proposal("3")


def test_an_empty_queue_and_a_wrong_call_have_their_own_codes(make: Callable[..., Memory], root: Path) -> None:
    make()
    assert run("-w", root, "review").code == 1
    assert run("-w", root, "review", "show").code == 2
    assert run("-w", root, "review", "accept", "1").code == 1
    assert run("-w", root, "review", "apply").code == 1
    assert run("-w", root, "review", "dance").code == 2


def waiting(make: Callable[..., Memory], *texts: str) -> Memory:
    """A group with one proposal for each thing an unnamed voice said."""
    memory = make(git=True)
    memory.add_channel("team:group:1")
    memory.apply(memory.propose("team:group:1", talk(*(f"Remember: {t}" for t in texts), name="")))
    return memory


def test_an_accepted_proposal_is_in_memory_and_gone_from_review_in_one_commit(
    make: Callable[..., Memory], root: Path
) -> None:
    memory = waiting(make, "the okapi feeds at noon.")
    applied = memory.accept("1")
    assert [h.text for h in memory.search("okapi", "team:group:1")] == ["The okapi feeds at noon"]
    assert memory.proposals() == []
    commit = memory.log(limit=1)[0]
    assert commit.sha == applied.commit
    assert commit.subject == "accept: team:group:1: remember “The okapi feeds at noon”"
    assert sorted(p.split("/")[0] for p in commit.files) == ["channels", "review"]
    entry = memory.entry(memory.search("okapi", "team:group:1")[0].ref)
    assert (entry.kind, entry.author) == ("fact", "person")
    memory.undo(applied.run)
    assert memory.search("okapi", "team:group:1") == []
    assert len(memory.proposals()) == 1


def test_what_a_person_wrote_into_the_file_is_what_is_accepted(make: Callable[..., Memory], root: Path) -> None:
    memory = waiting(make, "the okapi feeds at noon.")
    path = root / memory.proposals()[0].path
    path.write_text(path.read_text().replace("> The okapi feeds at noon", "> 霍加狓下午一点喂"))
    memory.accept("1")
    assert [h.text for h in memory.search("霍加狓", "team:group:1")] == ["霍加狓下午一点喂"]


def test_a_rejected_one_is_gone_and_not_proposed_again_in_other_dress(make: Callable[..., Memory], root: Path) -> None:
    memory = waiting(make, "the okapi feeds at noon.", "the gate is red.")
    applied = memory.reject("1")
    assert memory.log(limit=1)[0].subject == "team:group:1: reject “The okapi feeds at noon”"
    assert [p.text for p in memory.proposals()] == ["The gate is red"]
    assert "okapi" not in (root / ".pipimem/rejected.jsonl").read_text()
    again = memory.propose(
        "team:group:1", talk("Remember: The  OKAPI feeds at noon!", "Remember: the okapi feeds at one.", name="")
    )
    assert [o.reason for o in again.rejected] == ["a person rejected it before"]
    assert [o.op.text for o in again.proposed] == ["The okapi feeds at one"]
    memory.undo(applied.run)
    assert (root / ".pipimem/rejected.jsonl").read_text() == ""
    assert len(memory.proposals()) == 2


def test_a_proposal_whose_entry_moved_on_is_out_of_date(make: Callable[..., Memory], root: Path) -> None:
    memory = make()
    memory.add_channel("ops")
    entry = memory.add("部署窗口是周四", "ops").plan.ops[0]
    op = Op("supersede", entry.path, "部署窗口是周五", target=entry.id, facts={"kind": "decision"})
    text = review.proposal(Outcome(op, "it changes a person's entry"), "p1", "ops", date(2026, 3, 14), "部署窗口是周三")
    (root / "review").mkdir()
    (root / "review/p1.md").write_text(text.text)
    with pytest.raises(Refused, match="says something else now"):
        memory.accept("p1")
    (root / "review/p1.md").write_text(text.text.replace("周三", "周四"))
    memory.accept("p1")
    assert [h.text for h in memory.search("部署窗口", "ops")] == ["部署窗口是周五"]
    (root / "review/p2.md").write_text(text.text.replace('"p1"', '"p2"'))
    with pytest.raises(Refused, match="is gone"):
        memory.accept("p2")
    assert len(memory.proposals()) == 1


def test_a_rejected_forgetting_is_not_asked_again_and_forbids_no_remembering(
    make: Callable[..., Memory], root: Path
) -> None:
    memory = make()
    memory.add_channel("dm:ines", kind="direct")
    memory.add("旧的门禁密码在抽屉里", "dm:ines")
    wanted = talk("忘掉旧的门禁密码在抽屉里")
    memory.apply(memory.propose("dm:ines", wanted))
    memory.reject("1")
    again = memory.propose("dm:ines", wanted)
    assert ([o.reason for o in again.rejected], again.proposed) == (["a person rejected it before"], ())
    (root / memory.search("门禁", "dm:ines")[0].path).write_text("# 记忆\n")
    said = memory.propose("dm:ines", talk("记住：旧的门禁密码在抽屉里"))
    assert [op.text for op in said.ops if op.op == "add"] == ["旧的门禁密码在抽屉里"]


def test_a_rejection_holds_for_its_file_in_other_order_and_for_no_other_day(make: Callable[..., Memory]) -> None:
    memory = waiting(make, "客户周五来工厂参观")
    memory.add_channel("dm:ines", kind="direct")
    memory.reject("1")
    assert [op.op for op in memory.propose("dm:ines", talk("记住：客户周五来工厂参观")).ops if op.op == "add"] == [
        "add"
    ]
    said = ("周五客户来工厂参观", "客户周六来工厂参观", "客户周五不来工厂参观")
    plan = memory.propose("team:group:1", talk(*(f"记住：{text}" for text in said), name=""))
    assert [o.op.text for o in plan.rejected] == ["周五客户来工厂参观"]
    assert [o.op.text for o in plan.proposed] == list(said[1:])


def test_what_is_out_of_date_is_shown_as_such(make: Callable[..., Memory], root: Path) -> None:
    memory = make()
    memory.add_channel("dm:ines", kind="direct")
    entry = memory.add("旧的门禁密码在抽屉里", "dm:ines").plan.ops[0]
    memory.apply(memory.propose("dm:ines", talk("忘掉旧的门禁密码在抽屉里")))
    shown = run("-w", root, "review", "show", "1").out
    assert "would forget: 旧的门禁密码在抽屉里" in shown
    assert "out of date" not in shown + run("-w", root, "review").out
    memory.supersede(entry.id, "新的门禁密码在柜子里")
    assert "[out of date]" in run("-w", root, "review").out
    assert "out of date: " in run("-w", root, "review", "show", "1").out
    assert run("-w", root, "review", "--json").json["proposals"][0]["overtaken"]
    refused = run("-w", root, "review", "accept", "1")
    assert (refused.code, "is out of date" in refused.err) == (4, True)


@pytest.mark.parametrize("file", ["../MEMORY.md", "pipimem.toml", "README.md"])
@pytest.mark.parametrize("op", ["add", "forget", "file"])
def test_a_proposal_for_no_document_is_listed_and_never_done(
    make: Callable[..., Memory], root: Path, op: str, file: str
) -> None:
    memory = make()
    (root / "review").mkdir()
    made = review.proposal(Outcome(Op(op, file, "记", "事实"), "x"), "p1", "", date(2026, 3, 14))
    (root / "review/p1.md").write_text(made.text)
    before = snapshot(root)
    assert "[out of date]" in run("-w", root, "review").out
    with pytest.raises(Refused, match="no document"):
        memory.accept("1")
    assert snapshot(root) == before


def test_forgetting_by_talk_is_done_when_a_person_accepts_it(make: Callable[..., Memory], root: Path) -> None:
    memory = make()
    memory.add_channel("dm:ines", kind="direct")
    memory.add("旧的门禁密码在抽屉里", "dm:ines")
    memory.apply(memory.propose("dm:ines", talk("忘掉旧的门禁密码在抽屉里")))
    assert memory.proposals()[0].op == "forget"
    memory.accept("1")
    assert memory.search("门禁", "dm:ines") == []
    assert (root / ".pipimem/tombstones.jsonl").exists()


def test_ticked_files_are_done_one_by_one_and_a_bad_one_stops_no_other(make: Callable[..., Memory], root: Path) -> None:
    memory = waiting(make, "the okapi feeds at noon.", "the gate is red.", "霍加狓中午十二点喂食。")
    paths = [root / p.path for p in memory.proposals()]
    ticks = ["- [x] accept\n- [x] reject", "- [ ] accept\n- [x] reject", "- [x] accept\n- [ ] reject"]
    for path, tick in zip(paths, ticks, strict=True):
        path.write_text(path.read_text().replace("- [ ] accept\n- [ ] reject", tick))
    done = run("-w", root, "review", "apply")
    assert done.code == 4
    assert "ticked twice" in done.err
    assert "rejected" in done.out
    assert "霍加狓中午十二点喂食" in done.out
    assert [p.text for p in memory.proposals()] == ["The okapi feeds at noon"]
    assert [h.text for h in memory.search("霍加狓", "team:group:1")] == ["霍加狓中午十二点喂食"]
