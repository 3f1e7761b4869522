"""Golden transcripts of every host: each case folder has the host's files and what must be read from them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pipimem.errors import Unreadable
from pipimem.importers import BROKEN, Importer, each, recognised, with_tools, without_repeats
from pipimem.importers.reading import digest, zstd
from pipimem.transcript import REFERENCE, Transcript

GOLDEN = Path(__file__).parent / "golden" / "transcripts"
ENGINES = ("chatgpt", "claude", "codex", "hermes", "openclaw", "pi", "pipiclaw", "jsonl")
CASES = sorted(str(p.parent.relative_to(GOLDEN)) for p in GOLDEN.rglob("expected.json"))


def module(engine: str) -> Importer:
    found: Any = import_module(f"pipimem.importers.{engine}")
    imported: Importer = found
    return imported


def packed(data: bytes) -> bytes:
    """A Zstandard frame that holds `data` as it is: written to the letter of the format, so no packer is needed."""
    blocks = [data[i : i + 65536] for i in range(0, len(data), 65536)] or [b""]
    heads = [struct.pack("<I", len(b) << 3 | (i == len(blocks) - 1))[:3] for i, b in enumerate(blocks)]
    frame = b"\x28\xb5\x2f\xfd" + b"\xa0" + struct.pack("<I", len(data))
    return frame + b"".join(head + block for head, block in zip(heads, blocks, strict=True))


def built(case: str, tmp_path: Path) -> Path:
    """A copy of the case with its databases made from SQL and its compressed files packed."""
    folder = tmp_path / "case"
    shutil.copytree(GOLDEN / case, folder)
    for path in folder.rglob("*.sql"):
        with closing(sqlite3.connect(path.with_suffix(""))) as connection:
            connection.executescript("PRAGMA synchronous = OFF; BEGIN;" + path.read_text(encoding="utf-8") + "COMMIT;")
    for path in folder.rglob("*.pack"):
        path.with_suffix("").write_bytes(packed(path.read_bytes()))
    return folder


def spec(case: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GOLDEN / case / "expected.json").read_text(encoding="utf-8"))
    return loaded


def compared(transcript: Transcript, wanted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was read and what is wanted, by the keys the case names; messages always with files, commands and name."""
    keys = [k for k in wanted if k not in ("file", "session", "messages", "new after the others")]
    got = {k: getattr(transcript, k) for k in keys}
    messages = []
    for found, want in zip(transcript.messages, wanted["messages"], strict=False):
        asked = {*want, "files", "commands", "name"} - {"at" if want.get("at", 0) is None else ""}
        value = {k: getattr(found, k) for k in asked}
        messages.append({k: list(v) if isinstance(v, tuple) else v for k, v in value.items()})
    filled = [{"files": [], "commands": [], "name": "", **w} for w in wanted["messages"]]
    filled = [{k: v for k, v in w.items() if not (k == "at" and v is None)} for w in filled]
    got["messages"] = messages + [m.text for m in transcript.messages[len(messages) :]]
    return got, {**{k: wanted[k] for k in keys}, "messages": filled}


@pytest.mark.parametrize("case", CASES)
def test_a_hosts_transcript_gives_the_expected_messages(case: str, tmp_path: Path) -> None:
    if case == "codex/packed" and zstd() is None:
        pytest.skip("no package unpacks Zstandard here")
    folder, importer = built(case, tmp_path), module(case.split("/", maxsplit=1)[0])
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    earlier: list[Transcript] = []
    for wanted in spec(case)["reads"]:
        found = importer.read(str(folder / wanted["file"]), wanted.get("session", ""))
        got, want = compared(found, wanted)
        assert got == want
        assert all(REFERENCE.fullmatch(m.ref) for m in found.messages)
        assert len({(m.ref, m.role) for m in found.messages}) == len(found.messages)
        earlier.append(found)
        if "new after the others" in wanted:
            last = list(without_repeats(earlier))[-1]
            assert [m.id for m in last.messages] == wanted["new after the others"]
            assert last.skipped["in an earlier session"] == len(found.messages) - len(last.messages)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before, "a host's folder was changed"


@pytest.mark.parametrize("case", [c for c in CASES if "with tools" in spec(c)])
def test_what_tools_returned_is_among_the_messages_where_it_is_wanted(case: str, tmp_path: Path) -> None:
    folder, importer = built(case, tmp_path), with_tools(module(case.split("/", maxsplit=1)[0]))
    for wanted in spec(case)["with tools"]:
        path = str(folder / wanted["file"])
        found = importer.read(path, wanted.get("session", ""))
        got, want = compared(found, wanted)
        assert got == want
        assert any(m.role == "tool" for m in found.messages)
        assert found.messages in [t.messages for t in each(importer, path, {})]


@pytest.mark.parametrize("case", CASES)
def test_what_was_said_is_the_same_with_and_without_what_tools_returned(case: str, tmp_path: Path) -> None:
    if case == "codex/packed" and zstd() is None:
        pytest.skip("no package unpacks Zstandard here")
    folder, importer = built(case, tmp_path), module(case.split("/", maxsplit=1)[0])
    for wanted in spec(case)["reads"]:
        path, session = str(folder / wanted["file"]), wanted.get("session", "")
        without, whole = importer.read(path, session), with_tools(importer).read(path, session)
        assert whole.talk == without.messages
        assert all(m.role != "tool" for m in without.messages)
        assert len({m.ref for m in whole.messages}) >= len({m.ref for m in without.messages})
        for fact in ("session", "title", "digest", "calls", "errors", "first", "last", "parent", "kind", "facts"):
            assert getattr(whole, fact) == getattr(without, fact)


@pytest.mark.parametrize("case", [c for c in CASES if "sessions" in spec(c)])
def test_a_hosts_sessions_are_listed_with_why_they_are_left_alone(case: str, tmp_path: Path) -> None:
    folder, importer = built(case, tmp_path), module(case.split("/", maxsplit=1)[0])
    for file, wanted in spec(case)["sessions"].items():
        found = importer.sessions(str(folder / file))
        assert [{k: getattr(s, k) for k in w} for s, w in zip(found, wanted, strict=True)] == wanted


@pytest.mark.parametrize("case", CASES)
def test_a_file_is_recognised_as_its_hosts(case: str, tmp_path: Path) -> None:
    if case == "codex/packed" and zstd() is None:
        pytest.skip("no package unpacks Zstandard here")
    folder, engine = built(case, tmp_path), case.split("/", maxsplit=1)[0]
    for wanted in spec(case)["reads"]:
        found: Any = recognised(str(folder / wanted["file"]), [module(e) for e in ENGINES])
        assert found.__name__ == f"pipimem.importers.{engine}"


@pytest.mark.parametrize("case", CASES)
def test_all_conversations_of_a_file_are_read_in_one_go_but_those_left_alone(case: str, tmp_path: Path) -> None:
    if case == "codex/packed" and zstd() is None:
        pytest.skip("no package unpacks Zstandard here")
    folder, importer = built(case, tmp_path), module(case.split("/", maxsplit=1)[0])
    for file in {r["file"] for r in spec(case)["reads"]}:
        skipped: dict[str, int] = {}
        path = str(folder / file)
        found = {t.session: t for t in each(importer, path, skipped)}
        listed = importer.sessions(path)
        assert list(found) == [s.id for s in listed if not s.kind]
        assert sum(n for reason, n in skipped.items() if reason not in BROKEN) == sum(bool(s.kind) for s in listed)
        for name, transcript in found.items():
            alone = importer.read(path, name)
            assert (alone.messages, alone.digest) == (transcript.messages, transcript.digest)


def test_the_cases_cover_every_engine_and_enough_of_its_quirks() -> None:
    sources = [p for p in GOLDEN.rglob("*") if p.is_file() and p.name != "expected.json"]
    assert len(sources) >= 30
    assert {c.split("/", maxsplit=1)[0] for c in CASES} == set(ENGINES)
    text = "".join(p.read_text(encoding="utf-8", errors="replace") for p in sources)
    assert any("\u4e00" <= c <= "\u9fff" for c in text)
    assert all(spec(c)["why"] for c in CASES)


def test_a_packed_rollout_has_the_digest_and_the_messages_of_the_plain_one(tmp_path: Path) -> None:
    if zstd() is None:
        pytest.skip("no package unpacks Zstandard here")
    folder = built("codex/packed", tmp_path)
    file = next(folder.rglob("*.zst"))
    plain = file.with_suffix("")
    plain.write_bytes((folder / f"{file}.pack").read_bytes())
    before, after = module("codex").read(str(plain)), module("codex").read(str(file))
    assert before == after
    assert before.digest == digest(str(plain)) == digest(str(file))
    assert list(module("codex").files(str(folder), {})) == [str(plain)], "the plain one of a pair wins"


def test_a_grown_file_is_known_by_the_digest_of_its_old_beginning(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes('{"role":"user","content":"一"}\n'.encode())
    before, size = module("jsonl").read(str(path)), path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"role":"user","content":"two"}\n')
    assert digest(str(path), size) == before.digest != module("jsonl").read(str(path)).digest


def test_a_compressed_rollout_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = built("codex/packed", tmp_path)
    file = next(folder.rglob("*.zst"))
    for name in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(Unreadable, match=r"compressed\..*pipimem\[zstd\]"):
        module("codex").read(str(file))
    skipped: dict[str, int] = {}
    assert list(module("codex").files(str(folder), skipped)) == []
    assert skipped == {"compressed, needs pipimem[zstd]": 1}
