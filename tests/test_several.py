"""Several workspaces asked at once: one order, each hit named with its workspace, and a bad one stops no other."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipimem
from pipimem.errors import Unreadable
from tests.conftest import run, snapshot, write

PROJECT: dict[str, str | bytes] = {
    "pipimem.toml": "",
    "MEMORY.md": "# Memory\n\n- the deploy window is Thursday evening <!-- m-0000000a kind=decision since=2026-03-01 -->\n",
    "channels/ops/MEMORY.md": "# M\n\n- okapi gateway restarts at noon <!-- m-0000000b kind=fact -->\n",
}
OWN: dict[str, str | bytes] = {
    "pipimem.toml": "",
    "MEMORY.md": "# Memory\n\n- 部署前先通知大家，部署窗口之外不部署 <!-- m-0000000c kind=preference since=2026-03-02 -->\n- the deploy window of my own server is Sunday night <!-- m-0000000d kind=fact -->\n",
    "memory/tools.md": "# Tools\n\nokapi gateway cheat sheet\n",
    "channels/dm/MEMORY.md": "# M\n\n- private okapi gateway password hint <!-- m-0000000e kind=fact -->\n",
}


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    roots = tmp_path / "project", tmp_path / "own"
    for root, files in zip(roots, (PROJECT, OWN), strict=True):
        root.mkdir()
        write(root, files)
    return roots


def test_hits_of_all_workspaces_come_in_one_order_and_say_where_from(two: tuple[Path, Path]) -> None:
    project, own = two
    done = run("-w", project, "-w", own, "search", "--json", "deploy window")
    paths = [h["path"] for h in done.json["hits"]]
    assert sorted(paths[:2]) == sorted(["MEMORY.md", str(own / "MEMORY.md")])
    assert done.json["hits"][0]["score"] >= done.json["hits"][-1]["score"]
    chinese = run("-w", project, "-w", own, "search", "--json", "部署窗口").json["hits"]
    assert [(h["ref"], h["path"]) for h in chinese] == [("m-0000000c", str(own / "MEMORY.md"))]
    note = run("-w", project, "-w", own, "search", "--json", "cheat sheet").json["hits"][0]
    assert note["ref"] == f"{own}/memory/tools.md#Tools"


def test_the_users_own_workspace_joins_with_global(two: tuple[Path, Path], tmp_path: Path) -> None:
    project, own = two
    config = tmp_path / "home/.config/pipimem/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[workspace]\nown = "{own}"\n')
    assert run("-w", project, "search", "部署窗口").code == 1
    assert run("-w", project, "search", "--global", "部署窗口").code == 0
    before = snapshot(own)
    block = run("-w", project, "recall", "--global", "what did we decide about the deploy window last time?")
    assert "Thursday evening" in block.out
    assert snapshot(own) == before
    config.write_text('[workspace]\nown = "/nowhere/at/all"\n')
    done = run("-w", project, "search", "--global", "deploy window")
    assert done.code == 0
    assert "Not asked" in done.err


def test_a_channel_stays_its_own_in_every_workspace(two: tuple[Path, Path]) -> None:
    project, own = two
    done = run("-w", project, "-w", own, "search", "--json", "--channel", "ops", "okapi gateway")
    assert {h["path"] for h in done.json["hits"]} == {"channels/ops/MEMORY.md", str(own / "memory/tools.md")}
    with pipimem.open(str(project)) as first, pipimem.open(str(own)) as second:
        assert "private" not in first.recall("what do we know about the okapi gateway?", "ops", also=[second]).text
        with pytest.raises(Unreadable):
            first.search("okapi", "nowhere", also=[second])


def test_one_that_cannot_be_read_stops_no_other(two: tuple[Path, Path], tmp_path: Path) -> None:
    project, _ = two
    done = run("-w", project, "-w", tmp_path / "nothing", "search", "deploy window")
    assert done.code == 0
    assert "nothing" in done.err
    assert run("-w", tmp_path / "nothing", "-w", project, "search", "deploy window").code == 3


def test_the_same_workspace_twice_is_asked_once(two: tuple[Path, Path]) -> None:
    project, _ = two
    assert len(run("-w", project, "-w", f"{project}/", "search", "--json", "okapi").json["hits"]) == 1


def test_nearly_the_same_answers_stand_together(tmp_path: Path) -> None:
    lines = "".join(
        f"- the okapi gateway restarts every night at noon sharp, said person{n} <!-- m-{n:08x} kind=fact -->\n"
        for n in range(1, 4)
    )
    write(
        tmp_path,
        {"pipimem.toml": "", "MEMORY.md": f"# M\n\n{lines}- okapi 网关中午重启 <!-- m-0000000f kind=fact -->\n"},
    )
    found = run("-w", tmp_path, "search", "--json", "okapi").json["hits"]
    assert [bool(h["alike"]) for h in found].count(True) == 2
    assert len(found) == 4
    shown = run("-w", tmp_path, "search", "okapi").out
    assert shown.count("nearly the same: MEMORY.md:") == 1
