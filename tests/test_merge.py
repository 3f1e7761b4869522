"""A plan onto files that moved on: the person's text wins, what no longer fits waits for a person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem import markdown
from pipimem.errors import Refused
from pipimem.memory import Memory
from pipimem.update import review
from pipimem.update.merge import merge
from pipimem.update.plan import Op, Plan
from tests.conftest import case
from tests.test_update import talk

PATH = "channels/ops/MEMORY.md"
BASE = """# Channel Memory

## Facts

- The pool is heron <!-- m-00000001 kind=fact -->
- 风扇在二楼 <!-- m-00000002 kind=fact -->
- typed by hand

Some prose about the pool.

## 决定

- 周四晚上部署 <!-- m-00000003 kind=decision -->
""".encode()
NEW = {"kind": "fact", "since": "2026-03-14"}


def plan(*ops: Op, actor: str = "updater", base: bytes | None = BASE) -> Plan:
    return Plan("r-20260314-abc123", "ops", "offline", actor, ops, {PATH: base})


def on(text: bytes | None) -> Callable[[str], bytes | None]:
    return lambda path: text if path == PATH else None


def test_an_empty_plan_changes_nothing() -> None:
    assert merge(plan(), on(BASE)).changes == []


def test_what_a_person_changed_elsewhere_stays() -> None:
    now = BASE.replace(b"typed by hand", "手写的".encode()) + b"\n## Mine\n\ntext\n"
    op = Op("add", PATH, "The door code is with Ines", "Facts", "m-00000009", facts=NEW)
    merged = merge(plan(op), on(now))
    assert [c.path for c in merged.changes] == [PATH]
    after = merged.changes[0].after or b""
    assert after.replace(b"- The door code is with Ines <!-- m-00000009 kind=fact since=2026-03-14 -->\n\n", b"") == now


@pytest.mark.parametrize(
    ("op", "edit", "why"),
    [
        (Op("supersede", PATH, "风扇在三楼", target="m-00000002", id="m-00000009", facts=NEW), ("二楼", "地下室"), "edited meanwhile"),
        (Op("supersede", PATH, "风扇在三楼", target="m-00000002", id="m-00000009", facts=NEW), ("- 风扇在二楼 <!-- m-00000002 kind=fact -->\n", ""), "is gone"),
        (Op("invalidate", PATH, target="m-00000001"), ("heron", "egret"), "edited meanwhile"),
        (Op("add", PATH, "周五冻结", "决定", "m-00000009", facts=NEW), ("\n## 决定\n\n- 周四晚上部署 <!-- m-00000003 kind=decision -->\n", ""), "taken out meanwhile"),
        (Op("section", PATH, "- 全新", "决定"), ("周四", "周五"), "edited meanwhile"),
        (Op("section", PATH, "- 全新", "决定"), ("## 决定", "## 决策"), "taken out meanwhile"),
    ],
)  # fmt: skip
def test_what_a_person_overtook_becomes_a_proposal_and_the_file_stays(op: Op, edit: tuple[str, str], why: str) -> None:
    now = BASE.decode().replace(*edit).encode()
    assert now != BASE
    merged = merge(plan(op), on(now))
    assert [c.path for c in merged.changes] == ["review/r-20260314-abc123-1.md"]
    waiting = review.read(merged.changes[0].path, merged.changes[0].after or b"")
    assert waiting.problem == ""
    assert (waiting.op, waiting.file, waiting.target) == (op.op, PATH, op.target)
    assert waiting.text == (op.text or "The pool is heron")
    assert why in waiting.why
    if op.op == "supersede":
        assert waiting.old == "风扇在二楼"
    assert [o.op for o in merged.proposed] == [op]


def test_a_persons_own_command_is_refused_instead() -> None:
    op = Op("forget", PATH, target="m-00000001")
    merged = merge(plan(op, actor="person"), on(BASE.replace(b"heron", b"egret")))
    assert merged.changes == []
    assert "edited meanwhile" in merged.refused[0].reason


def test_a_section_nobody_touched_is_rewritten_and_nothing_else() -> None:
    now = BASE.replace(b"typed by hand", b"typed again")
    merged = merge(plan(Op("section", PATH, "- 周五部署", "决定")), on(now))
    assert merged.changes[0].after == now.replace(
        "- 周四晚上部署 <!-- m-00000003 kind=decision -->".encode(), "- 周五部署".encode()
    )


def test_what_a_person_deleted_meanwhile_is_not_added_again() -> None:
    op = Op("add", PATH, "风扇在二楼。", "Facts", "m-00000009", facts=NEW)
    merged = merge(plan(op), on(BASE.replace("- 风扇在二楼 <!-- m-00000002 kind=fact -->\n".encode(), b"")))
    assert merged.changes == []
    assert "a person took it out" in merged.refused[0].reason


def test_proposals_never_take_the_name_of_one_that_waits() -> None:
    op = Op("invalidate", PATH, target="m-00000001")
    texts = {PATH: BASE.replace(b"heron", b"egret"), "review/r-20260314-abc123-1.md": b"another"}
    assert [c.path for c in merge(plan(op), texts.get).changes] == ["review/r-20260314-abc123-2.md"]


def test_a_file_in_conflict_takes_nothing() -> None:
    op = Op("add", PATH, "新的一条", "Facts", "m-00000009", facts=NEW)
    merged = merge(plan(op), on(case("G31-conflict.md")))
    assert merged.changes == []
    assert "line 5" in merged.refused[0].reason


LINES = BASE.decode().splitlines(keepends=True)
EDITS = st.lists(
    st.tuples(st.sampled_from(["drop", "change", "insert"]), st.integers(0, len(LINES) - 1), st.sampled_from(["- mine\n", "我的话\n", "- 另一条 <!-- m-0000000f kind=fact -->\n", "\n"])),
    max_size=4,
)  # fmt: skip
OPS = st.lists(
    st.one_of(
        st.builds(lambda t, h, n: Op("add", PATH, t, h, f"m-000001{n:02x}", facts=NEW), st.sampled_from(["Ines has the key", "钥匙在茵娜那里", "- odd"]), st.sampled_from(["Facts", "决定", "Elsewhere"]), st.integers(0, 255)),
        st.builds(lambda t: Op("supersede", PATH, "换了说法", target=t, id="m-000002aa", facts=NEW), st.sampled_from(["m-00000001", "m-00000002", "m-00000003", "m-0000dead"])),
        st.builds(lambda t: Op("invalidate", PATH, target=t), st.sampled_from(["m-00000001", "m-00000003"])),
        st.builds(lambda h: Op("section", PATH, "- 全新", h), st.sampled_from(["Facts", "决定"])),
    ),
    max_size=4, unique_by=lambda o: (o.op, o.target, o.text, o.heading),
)  # fmt: skip


def edited(edits: list[tuple[str, int, str]]) -> bytes:
    lines = list(LINES)
    for how, at, text in sorted(edits, key=lambda e: -e[1]):
        lines[at : at + (how != "insert")] = [] if how == "drop" else [text]
    return "".join(lines).encode()


@given(EDITS, OPS)
def test_whatever_both_do_the_persons_words_stay_and_every_operation_is_accounted_for(
    edits: list[tuple[str, int, str]], ops: list[Op]
) -> None:
    now = edited(edits)
    merged = merge(plan(*ops), on(now))
    told = [o for o in merged.done if o.op != "proposal"] + [o.op for o in merged.proposed + merged.refused]
    assert sorted(map(str, told)) == sorted(map(str, ops))
    after = next((c.after for c in merged.changes if c.path == PATH), now) or b""
    # A line the person wrote or left is gone only where an operation that was done acted on it as it stood in base.
    acted = {o.target for o in merged.done if o.target}
    sections = [o.heading for o in merged.done if o.op == "section"]
    base_lines = set(LINES)
    for line in now.decode().splitlines(keepends=True):
        if line.strip() and line not in base_lines:
            assert line.strip() in after.decode()
    for entry in markdown.parse(now).entries:
        if entry.id not in acted and not any(h in entry.trail for h in sections):
            assert entry.text in [e.text for e in markdown.parse(after).entries]
    # What the person took out does not come back.
    said_now = {e.text for e in markdown.parse(now).entries}
    said = {e.text for e in markdown.parse(after).entries}
    gone = {e.text for e in markdown.parse(BASE).entries} - said_now
    assert not gone & said


def test_an_editor_that_saves_between_compare_and_write_is_merged_anew(
    make: Callable[..., Memory], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make()
    memory.add_channel("dm:ines", kind="direct")
    made = memory.propose("dm:ines", talk("We decided to ship on Tuesdays."))
    path = memory.workspace.channel("dm:ines").path + "/MEMORY.md"
    full, saves = Path(memory.workspace.absolute(path)), iter([b"- one\n", "- 二\n".encode()])
    write = memory.workspace.write

    def save_first(changes: object) -> None:
        if (line := next(saves, None)) is not None:
            full.write_bytes(full.read_bytes() + line)
        write(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(memory.workspace, "write", save_first)
    memory.apply(made)
    text = full.read_text()
    assert "ship on Tuesdays" in text
    assert "- one\n" in text
    assert "- 二\n" in text


def test_an_editor_that_never_rests_is_refused_in_the_end(
    make: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make()
    memory.add_channel("dm:ines", kind="direct")
    made = memory.propose("dm:ines", talk("We decided to ship on Tuesdays."))
    full = Path(memory.workspace.absolute(memory.workspace.channel("dm:ines").path + "/MEMORY.md"))
    write = memory.workspace.write

    def save_first(changes: object) -> None:
        full.write_bytes(full.read_bytes() + b"- again\n")
        write(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(memory.workspace, "write", save_first)
    with pytest.raises(Refused, match="has changed since it was read"):
        memory.apply(made)
    assert "ship on Tuesdays" not in full.read_text()


def many(*texts: str, heading: str = "Facts") -> list[Op]:
    return [Op("add", PATH, text, heading, f"m-{n:08x}", facts=NEW) for n, text in enumerate(texts, 1000)]


def singly(ops: list[Op], base: bytes) -> bytes:
    for op in ops:
        made = merge(plan(op, base=base), on(base))
        base = made.changes[0].after or b"" if made.changes else base
    return base


TEXTS = st.lists(
    st.one_of(
        st.text(alphabet="ab 部署-*#>`1.=_\n<!", min_size=1, max_size=24),
        st.sampled_from(["**Zone**: UTC", "```", "~~~ x", "# no heading", "- nested", "---", "1. one", "<!-- x -->", "two\nlines", "> q", "[a]: b"]),
    ).filter(str.strip),
    min_size=8, max_size=14,
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    TEXTS,
    st.sampled_from(
        [BASE, BASE.replace(b"\n", b"\r\n"), BASE.rstrip(), b"one\n\xc2\xa7\ntwo\n", b"", b"# A\n\n- a\n\n- b\n"]
    ),
    st.booleans(),
)
def test_many_additions_at_once_say_what_they_say_one_by_one(texts: list[str], base: bytes, fresh: bool) -> None:
    ops = [o for n, text in enumerate(texts) for o in many(text, heading=f"New {n % 3}" if fresh else "Facts")[:1]]
    ops = [Op(o.op, o.path, o.text, o.heading, f"m-{n:08x}", facts=o.facts) for n, o in enumerate(ops, 4096)]
    made = merge(plan(*ops, base=base), on(base))
    after = made.changes[0].after or b"" if made.changes else base
    one, other = markdown.parse(after), markdown.parse(singly(ops, base))
    assert sorted((e.trail, e.text, e.id) for e in one.entries) == sorted(
        (e.trail, e.text, e.id) for e in other.entries
    )
    kept = [line for line in base.splitlines() if line.strip()]
    assert [line for line in after.splitlines() if line in kept][: len(kept)] == kept


def test_of_many_additions_the_known_and_the_repeated_are_refused() -> None:
    texts = ["The pool is heron", *(f"fact number {n}" for n in range(9)), "fact number 3"]
    made = merge(plan(*many(*texts)), on(BASE))
    assert [o.op.text for o in made.refused] == ["The pool is heron", "fact number 3"]
    assert len(made.done) == 9
