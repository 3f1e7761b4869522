"""The store of vectors is nobody's but the model's it is named after, and what is nearest is looked for in scope alone."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipimem.errors import ModelFailed, Refused
from pipimem.index import Scope, schema, vectors
from pipimem.index.fuse import by_likeness, by_place, fuse
from pipimem.index.rank import Ranked
from pipimem.index.vectors import Store
from pipimem.memory import Memory

np: Any = pytest.importorskip("numpy", reason="the vectors extra is not installed: vectors were not compared")

from pipimem.index.near import Near  # noqa: E402

DIMENSION = 16


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(str(tmp_path / "vectors-1.sqlite3"), write=True)
    yield opened
    opened.close()


def unit(random: Any, count: int, dimension: int = DIMENSION) -> Any:
    made = random.standard_normal((count, dimension)).astype("<f4")
    return made / np.linalg.norm(made, axis=1, keepdims=True)


# The store


def test_a_vector_is_kept_under_its_text_and_found_from_its_passage(store: Store) -> None:
    one, two = vectors.text_key("周四部署"), vectors.text_key("deploys on Thursday")
    store.add({one: b"\0\0\x80?" * 2, two: b""}, 2)
    places = {vectors.passage_key("A\x1fB", "11"): one, vectors.passage_key("C", "11"): one, b"3": two, b"4": b""}
    store.place(places)
    assert store.places(list(places)) == places
    assert (store.count(), store.dimension, store.have([one, b"?"])) == (2, 2, {one})
    numbers = store.numbers(list(places))
    assert len(numbers) == 2, "a text the model gave no vector for is like nothing"
    assert store.vectors(list(numbers.values())) == {min(numbers.values()): b"\0\0\x80?" * 2}
    again = Store(store.path)
    assert again.facts == store.facts
    again.close()


def test_another_dimension_deletes_nothing_until_the_store_is_emptied_on_purpose(store: Store) -> None:
    store.add({b"a": b"1234"}, 1)
    store.finish([], 1)
    with pytest.raises(ModelFailed, match=r"have 2 numbers, those of .* 1\. Run 'pipimem index --vectors'"):
        store.add({b"b": b"12345678"}, 2)
    assert (store.count(), store.dimension, store.facts["complete"]) == (1, 1, "1")
    store.empty()
    assert (store.count(), store.dimension, "complete" in store.facts) == (0, 0, False)
    store.add({b"b": b"12345678"}, 2)
    assert (store.count(), store.dimension) == (1, 2)


def test_a_store_that_came_with_a_strangers_folder_is_not_believed(store: Store, tmp_path: Path) -> None:
    store.add({b"a": b"1234"}, 1)
    store.close()
    copy = tmp_path / "vectors-2.sqlite3"
    shutil.copy(store.path, copy)
    with pytest.raises(schema.Absent):
        Store(str(copy))
    mine = Store(str(copy), write=True)
    assert mine.count() == 0
    mine.close()


def test_a_damaged_store_is_made_anew_and_another_programs_is_not_touched(tmp_path: Path) -> None:
    damaged = tmp_path / "vectors-3.sqlite3"
    damaged.write_bytes(b"no database" * 100)
    with pytest.raises(vectors.BROKEN):
        Store(str(damaged))
    store = Store(str(damaged), write=True)
    assert store.count() == 0
    store.close()
    foreign = tmp_path / "vectors-4.sqlite3"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE theirs(x)")
    db.close()
    before = foreign.read_bytes()
    for write in (False, True):
        with pytest.raises(Refused, match="another program"):
            Store(str(foreign), write=write)
    assert foreign.read_bytes() == before


def test_the_vector_of_a_text_that_is_gone_stays_thirty_days_for_an_undo(store: Store) -> None:
    store.add({b"here": b"1234", b"gone": b"5678"}, 1)
    store.place({b"1": b"here", b"2": b"gone"})
    store.finish([b"1"], 100)
    assert store.places([b"1", b"2"]) == {b"1": b"here"}
    store.finish([b"1"], 100 + vectors.KEEP)
    assert store.have([b"here", b"gone"]) == {b"here", b"gone"}
    store.place({b"2": b"gone"})
    store.finish([b"1", b"2"], 105)  # it came back: its time starts anew
    store.finish([b"1"], 120)
    store.finish([b"1"], 145)
    assert store.have([b"gone"]) == {b"gone"}
    store.finish([b"1"], 151)
    assert store.have([b"here", b"gone"]) == {b"here"}


def test_what_is_purged_is_not_in_the_file_any_more(store: Store) -> None:
    secret = bytes(range(1, 251)) * 4
    store.add({b"gone": secret, b"here": b"12345678" * 125}, 250)
    store.place({b"1": b"here", b"2": b"gone"})
    assert store.purge([b"1"])
    left = b"".join(path.read_bytes() for path in Path(store.path).parent.glob("vectors-1*"))
    assert secret[:40] not in left
    assert b"12345678" * 5 in left


def test_what_is_purged_while_a_run_goes_on_is_not_brought_back_by_it_and_may_be_by_the_next(store: Store) -> None:
    store.place({b"1": b"here", b"2": b"gone", b"3": b"here"})
    with vectors.alone(store.path):
        store.settle()
        Store(store.path, write=True).purge([b"1"])
        store.add({b"gone": b"1234", b"here": b"5678"}, 1)
    assert store.have([b"gone", b"here"]) == {b"here"}
    store.settle()
    store.add({b"gone": b"1234"}, 1)
    assert store.have([b"gone"]) == {b"gone"}


def test_one_process_at_a_time_embeds(store: Store) -> None:
    with vectors.alone(store.path) as first, vectors.alone(store.path) as second:
        assert (first, second) == (True, False)
    with vectors.alone(store.path) as again:
        assert again


def test_what_is_sent_is_the_heading_and_the_text_without_comments() -> None:
    assert vectors.meant(["Title", "部署", "窗口"], "每周四\n晚上 <!-- m-12345678 -->") == "部署 > 窗口\n每周四 晚上"
    assert vectors.meant(["Only"], "x <!-- a\nb -->y") == "Only\nx y"
    assert vectors.meant(["A", "B"], "<!-- nothing else -->") == ""
    assert vectors.CLIPPED - 2 < len(vectors.meant([], "长" * 9000)) <= vectors.CLIPPED


# Nearest


@pytest.fixture
def filled(make: Callable[..., Memory], store: Store) -> tuple[Memory, Store, dict[int, Any], dict[int, str]]:
    """Sixty entries in three channels and the shared layer, with random vectors; rows → vector, channel."""
    files = {f"channels/{c}/MEMORY.md": "## Facts\n" + "".join(f"- {c} 记 {n}\n" for n in range(15)) for c in "abc"}
    memory = make({**files, "MEMORY.md": "## Facts\n" + "".join(f"- shared {n}\n" for n in range(15))})
    memory.index()
    db = memory.passages.reader(None)
    sql = "SELECT p.id, h.trail, p.digest, d.channel FROM passages p JOIN texts t ON t.id = p.id JOIN heads h ON h.id = t.head"
    rows = db.execute(f"{sql} JOIN documents d ON d.id = p.id >> 24").fetchall()
    made = unit(np.random.default_rng(5), len(rows))
    keys = [vectors.passage_key(trail, mark) for _, trail, mark, _ in rows]
    store.place({key: key for key in keys})
    store.add({key: row.tobytes() for key, row in zip(keys, made, strict=True)}, DIMENSION)
    return memory, store, {r[0]: v for r, v in zip(rows, made, strict=True)}, {r[0]: r[3] for r in rows}


@pytest.mark.parametrize("channels", [None, [], ["a"], ["b", "c"]])
@pytest.mark.parametrize("exact", [1000, 10])
def test_the_nearest_are_those_of_the_scope_in_order(filled: Any, channels: list[str] | None, exact: int) -> None:
    memory, store, known, channel_of = filled
    near, db = Near(store, exact), memory.passages.reader(None)
    wanted = {r for r, c in channel_of.items() if channels is None or c in ("", *channels)}
    for query in unit(np.random.default_rng(6), 5):
        found = near.rank(db, query, Scope(channels), 7)
        assert [row for row, _ in found] == sorted(wanted, key=lambda row: -float(known[row] @ query))[:7]
        like = np.array([known[row] @ query for row in wanted])
        standing = [(float(known[row] @ query) - like.mean()) / like.std() for row, _ in found]
        assert [apart for _, apart in found] == pytest.approx(standing, abs=1e-3)
    assert len(near.rank(db, query, Scope(channels), 500)) == len(wanted)


def test_a_filter_on_kinds_narrows_what_is_compared(filled: Any) -> None:
    memory, store, known, _ = filled
    db = memory.passages.reader(None)
    assert Near(store).rank(db, known[min(known)], Scope(None, kinds=["decision"]), 9) == []
    ((row, _),) = Near(store).rank(db, known[min(known)], Scope(None, min_confidence=0.5), 1)
    assert row == min(known)
    assert Near(store).rank(db, known[min(known)], Scope(None, layers=["note"]), 9) == []


def test_a_changed_file_is_looked_at_again_and_what_has_no_vector_yet_is_left_out(filled: Any, root: Path) -> None:
    memory, store, *_ = filled
    near, scope = Near(store), Scope(["a"])
    query = unit(np.random.default_rng(7), 1)[0]
    before = near.rank(memory.passages.reader(None), query, scope, 99)
    path = root / "channels" / "a" / "MEMORY.md"
    path.write_text("- 新的\n" + path.read_text())
    memory.index()
    after = near.rank(memory.passages.reader(None), query, scope, 99)
    assert len(before) == len(after) == 30


def test_an_opened_store_that_lost_a_vector_or_was_emptied_is_not_believed(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipimem.index.near.LOOK", -1.0)
    _, store, *_ = filled
    near, other = Near(Store(store.path)), Store(store.path, write=True)
    assert not near.outdated()
    store.add({b"more": b"1234" * DIMENSION}, DIMENSION)
    assert not near.outdated()
    other.purge([])
    assert near.outdated()
    near = Near(Store(store.path))
    other.empty()
    other.add({b"other": b"1234"}, 1)
    assert near.outdated()


def test_by_bits_nearly_all_of_the_nearest_are_found(store: Store, make: Callable[..., Memory]) -> None:
    count, dimension = 4_000, 128
    memory = make({f"memory/n{f}.md": "".join(f"## h{n}\n\ntext {f} {n}\n\n" for n in range(200)) for f in range(20)})
    memory.index()
    db = memory.passages.reader(None)
    pieces = list(vectors.pieces(db))[:count]
    random = np.random.default_rng(8)
    centres = unit(random, 40, dimension) + 2 * unit(random, 1, dimension)  # crowded in a corner, as real models do
    made = (centres[random.integers(0, 40, len(pieces))] + 0.5 * unit(random, len(pieces), dimension)).astype("<f4")
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    store.place({p.key: p.key for p in pieces})
    store.add({p.key: row.tobytes() for p, row in zip(pieces, made, strict=True)}, dimension)
    exact, rough = Near(store), Near(store, 100)
    shared = 0
    for query in made[::80] + 0.2 * unit(random, 50, dimension)[: len(made[::80])]:
        query = (query / np.linalg.norm(query)).astype("<f4")
        (best, apart), (found, about) = (zip(*n.rank(db, query, Scope(None), 10), strict=True) for n in (exact, rough))
        assert found[0] == best[0]
        assert about[0] == pytest.approx(apart[0], rel=0.1)
        shared += len(set(best) & set(found))
    assert shared >= 0.95 * 10 * len(made[::80])
    assert rough.memory() * 20 < exact.memory()


# Together with words


def test_vectors_only_add_and_what_the_words_found_always_stands() -> None:
    ranked = [Ranked(row, (score, 0.0, 0.0), 1.0, score, alone=True) for row, score in ((1, 9.0), (2, 6.0), (3, 1.0))]
    fused = fuse(ranked, by_place([(3, 2.0), (7, 1.5), (1, 0.2)], 0.25))
    assert [f.row for f in fused] == [1, 2, 3, 7]
    assert {f.row: f.score > 0 and f.signals()["text"] > 0 for f in fused} == {1: True, 2: True, 3: True, 7: False}
    assert fused[0].score == pytest.approx(100 + 25 * 61 / 63)
    assert [f.row for f in fuse([], [(5, 0.1), (6, 0.05)])] == [5, 6]
    assert [f.row for f in fuse(ranked, [])] == [1, 2, 3]


def test_what_stands_out_has_a_share_that_falls_with_the_length_of_the_question() -> None:
    near = [(5, 3.5), (6, 1.75), (7, 0.0), (8, -1.0)]
    assert by_likeness(near, 0.3, 4) == [(5, 0.3), (6, 0.15)]
    assert by_likeness(near, 0.3, 0) == by_likeness(near, 0.3, 1) == by_likeness(near, 0.3, 4)
    assert by_likeness(near, 0.3, 8) == [(5, 0.15), (6, 0.075)]


def test_words_that_hold_little_of_the_question_count_for_less() -> None:
    weak, strong = ([Ranked(1, (9.0, 0.0, 0.0), covered, 9.0, alone=True)] for covered in (0.02, 0.6))
    assert [f.row for f in fuse(weak, [(7, 0.25)])] == [7, 1]
    assert [f.row for f in fuse(strong, [(7, 0.25)])] == [1, 7]
