"""What holds for every importer and every damage: cut anywhere, misshapen anywhere, grown since the last import."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipimem.errors import NotFound, Unreadable, Usage
from pipimem.importers import Importer, with_tools
from pipimem.importers.reading import zstd
from pipimem.transcript import Message, Transcript
from tests.test_importer_golden import CASES, built, module, spec

LEFT_OUT_LATER = ("abandoned branch", "rolled back")
ODD = st.sampled_from(
    [None, True, 0, -1, 1e400, 7, "", "x", "\ud800", [], [None], ["a", 1], {}, {"type": "text"}, {"text": 5}]
)
LINES = [
    (case, read["file"], read.get("session", ""))
    for case in CASES
    if not case.startswith(
        ("hermes/early", "hermes/now", "hermes/children", "hermes/tool", "openclaw/database", "codex/packed")
    )
    for read in spec(case)["reads"]
]
DATABASES = [c for c in CASES if c.startswith(("hermes/", "openclaw/database")) and c != "hermes/export"]
FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@cache
def unspoilt(case: str, tmp: Path) -> tuple[Path, dict[Path, bytes]]:
    folder = built(case, tmp / case)
    return folder, {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def source(case: str, file: str, tmp: Path) -> tuple[Path, bytes]:
    folder, files = unspoilt(case, tmp)
    return folder / file, files[folder / file]


def keyed(transcript: Transcript) -> dict[tuple[str, str], Message]:
    return {(m.ref, m.role): m for m in transcript.messages}


def reader(case: str, *, tools: bool) -> Importer:
    found = module(case.split("/", maxsplit=1)[0])
    return with_tools(found) if tools else found


def read(case: str, path: Path, session: str, *, tools: bool) -> Transcript | None:
    """The session, or none where the damaged file does not hold it (any more)."""
    try:
        return reader(case, tools=tools).read(str(path), session)
    except NotFound:
        return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("properties")


@FAST
@given(which=st.sampled_from(LINES), part=st.floats(0, 1), tools=st.booleans())
def test_any_prefix_is_read_and_what_it_gave_stays_when_the_file_grows(
    folder: Path, which: tuple[str, str, str], part: float, tools: bool
) -> None:
    case, file, session = which
    path, data = source(case, file, folder)
    path.write_bytes(data)
    whole = reader(case, tools=tools).read(str(path), session)
    path.write_bytes(data[: int(len(data) * part)])
    before = read(case, path, session, tools=tools)
    module(case.split("/", maxsplit=1)[0]).sessions(str(path))
    if before is None:
        return
    now, then = keyed(whole), keyed(before)
    left_out = sum(whole.skipped.get(reason, 0) for reason in LEFT_OUT_LATER)
    assert sum(key not in now for key in then) <= left_out
    assert [key for key in now if key in then] == [key for key in then if key in now]
    for key, message in then.items():
        later = now.get(key, message)
        assert (later.time, later.name, later.at) == (message.time, message.name, message.at)
        grown = later.text.startswith(message.text) or (case.startswith("codex/") and later.text in message.text)
        assert grown
    path.write_bytes(data)
    again = reader(case, tools=tools).read(str(path), session)
    assert (again.messages, again.skipped, again.digest) == (whole.messages, whole.skipped, whole.digest)


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a JSON value."""
    found = [here] if here else []
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += places(value[key], (*here, key))
    return found


@FAST
@given(which=st.sampled_from(LINES), data=st.data(), tools=st.booleans())
def test_a_record_misshapen_anywhere_stops_nothing(
    folder: Path, which: tuple[str, str, str], data: st.DataObject, tools: bool
) -> None:
    case, file, session = which
    path, whole = source(case, file, folder)
    lines = whole.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    try:
        row = json.loads(lines[number])
    except ValueError:
        return
    if not isinstance(row, dict | list) or not places(row):
        return
    way = data.draw(st.sampled_from(places(row)))
    inner = row
    for step in way[:-1]:
        inner = inner[step]
    inner[way[-1]] = data.draw(ODD)
    lines[number] = json.dumps(row)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        found = reader(case, tools=tools).read(str(path), session)
        module(case.split("/", maxsplit=1)[0]).sessions(str(path))
    except (NotFound, Usage):
        return  # the session's own id was changed, or doubled
    for message in found.messages:
        assert message.text.encode("utf-8").decode() == message.text
        assert all(
            isinstance(v, str) for v in (message.id, message.time, message.name, *message.files, *message.commands)
        )
        assert message.text or message.files or message.commands


@FAST
@given(case=st.sampled_from(DATABASES), part=st.floats(0, 1), flips=st.lists(st.floats(0, 1), max_size=4))
def test_a_cut_or_damaged_database_is_read_or_named_unreadable(
    folder: Path, case: str, part: float, flips: list[float]
) -> None:
    file = spec(case)["reads"][0]["file"]
    path, whole = source(case, file, folder)
    data = bytearray(whole if flips else whole[: int(len(whole) * part)])
    for flip in flips:
        data[int(flip * (len(data) - 1))] ^= 0x55
    path.write_bytes(data)
    importer = module(case.split("/", maxsplit=1)[0])
    for wanted in spec(case)["reads"]:
        try:
            importer.read(str(path), wanted.get("session", ""))
            importer.sessions(str(path))
        except (Unreadable, NotFound, Usage) as error:
            assert error.message  # noqa: PT017


@given(part=st.floats(0, 1))
@FAST
def test_a_cut_compressed_rollout_gives_what_can_be_unpacked(folder: Path, part: float) -> None:
    if zstd() is None:
        pytest.skip("no package unpacks Zstandard here")
    file = spec("codex/packed")["reads"][0]["file"]
    path, whole = source("codex/packed", file, folder)
    path.write_bytes(whole[: int(len(whole) * part)])
    found = module("codex").read(str(path))
    assert len(found.messages) <= 2
    assert all(m.text in ("压缩过的", "Still readable.") for m in found.messages)
