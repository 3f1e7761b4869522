"""The first command a newcomer runs."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import SAMPLE, run, snapshot


def test_the_demo_tells_the_whole_story_and_leaves_the_sample_alone(tmp_path: Path) -> None:
    before = snapshot(SAMPLE)
    done = run("demo")
    assert done.code == 0, done.err
    for word in (
        "Index it",
        "m-ffd69d0e",
        "灰度",
        "meter-lab.kilnwren.example",
        "supersedes",
        "先发检修单",
        "Committed as",
        "undo",
    ):
        assert word in done.out, word
    assert done.out.count("would change 0 files") == 2
    assert "collector.example" not in done.out
    assert done.err == ""
    assert snapshot(SAMPLE) == before


def test_the_demo_without_git_says_so_and_goes_on(tmp_path: Path) -> None:
    done = run("demo", env={"PATH": str(tmp_path)})
    assert done.code == 0, done.err
    assert "no history in this story" in done.out
    assert "先发检修单" in done.out


def test_a_kept_demo_is_a_workspace_and_an_existing_folder_is_refused(tmp_path: Path) -> None:
    assert run("demo", "--keep", tmp_path / "kept").code == 0
    assert run("-w", tmp_path / "kept", "search", "灰度").code == 0
    assert run("demo", "--keep", tmp_path / "kept").code == 4
