"""The files: what a look finds and leaves out, what is read, and which writes are let through."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from pipimem.errors import Conflict, Refused, Unreadable, Usage
from pipimem.files import READ_LIMIT, append_private, is_temporary, write_private
from pipimem.workspace import APPEND_ONLY, Change, Scan, Workspace, find
from tests.conftest import NOBODY, Ran, case, run, run_as_nobody, snapshot, write

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture
def workspace(root: Path) -> Workspace:
    """A workspace with one channel and one note."""
    write(
        root,
        {
            "pipimem.toml": "",
            "MEMORY.md": "# Shared\n\n- 归雁 is the gateway\n",
            "memory/tools.md": "# Tools\n\n- 水阀是蓝色的\n",
            "channels/ops/MEMORY.md": "# Ops\n\n## Facts\n\n- Deploys on Thursday\n",
        },
    )
    return Workspace(str(root))


def put(workspace: Workspace, path: str, after: bytes | None) -> None:
    """One write under its lock, on what the file holds now."""
    with workspace.locks([path]):
        workspace.write([Change(path, workspace.read(path), after)])


def documents(scan: Scan) -> list[str]:
    return [d.path for d in scan.documents]


def leftovers(root: Path) -> list[str]:
    return [str(p.relative_to(root)) for p in root.rglob("*") if is_temporary(p.name) or p.parent.name == "journal"]


# Finding the workspace


def test_the_workspace_is_found_from_below_and_a_relative_path_will_do(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root / "channels/ops")
    assert find() == str(root)
    monkeypatch.chdir(root.parent)
    relative = Workspace(find("ws"))
    monkeypatch.chdir("/")
    assert relative.read("MEMORY.md") == workspace.read("MEMORY.md")


def test_a_path_through_a_link_and_back_up_is_the_one_the_system_means(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "deep/er")
    shutil.move(root, tmp_path / "deep/ws")
    assert Workspace(find(str(tmp_path / "link/../ws"))).read("MEMORY.md")


def test_what_is_no_workspace_is_could_not_look(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"MEMORY.md": "x"})
    (tmp_path / "empty").mkdir()
    for given in (root / "MEMORY.md", root / "nowhere", tmp_path / "empty"):
        with pytest.raises(Unreadable, match="workspace"):
            find(str(given))
    with pytest.raises(Usage):
        find("")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(Unreadable):
        find()


def test_a_workspace_behind_a_linked_parent_works_as_ever(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    shutil.move(root, tmp_path / "real/ws")
    (tmp_path / "parent").symlink_to(tmp_path / "real", target_is_directory=True)
    behind = Workspace(str(tmp_path / "parent/ws"))
    put(behind, "channels/ops/MEMORY.md", b"- changed\n")
    put(behind, "memory/new/deep.md", b"- new\n")
    assert (tmp_path / "real/ws/channels/ops/MEMORY.md").read_bytes() == b"- changed\n"
    assert documents(behind.scan()) == ["MEMORY.md", "memory/new/deep.md", "memory/tools.md", "channels/ops/MEMORY.md"]


@pytest.mark.parametrize("folder", ["../other", "/tmp/other", "a/../../b", ".git", "a/.b", "memory", "review/x"])
def test_a_channels_folder_outside_or_taken_is_wrong_usage(root: Path, folder: str) -> None:
    write(root, {"pipimem.toml": f'[workspace]\nchannels = "{folder}"\n'})
    with pytest.raises(Usage, match="channels folder"):
        Workspace(str(root))


@pytest.mark.parametrize("folder", ["rooms", "./rooms/", "data/rooms"])
def test_channels_may_live_in_another_folder(root: Path, folder: str) -> None:
    write(root, {"pipimem.toml": f'[workspace]\nchannels = "{folder}"\n', f"{folder}/群/MEMORY.md": "- 一\n"})
    scan = Workspace(str(root)).scan()
    assert documents(scan) == [f"{folder.strip('./')}/群/MEMORY.md"]


# Looking


def test_a_look_finds_exactly_the_documents(root: Path) -> None:
    named = "SESSION.md MEMORY.md HISTORY.md HISTORY.archive.md SOUL.md AGENTS.md USER.md".split()
    good = [
        "SOUL.md", "AGENTS.md", "STANDING.md", "MEMORY.md", "USER.md", "memory/a.md", "memory/深/b.md", "memories/c.md",
        "skills/tidy/SKILL.md", *(f"channels/ops/{n}" for n in named), "channels/ops/memory/2026-01-02.md",
    ]  # fmt: skip
    other = [
        "README.md", "SESSION.md", "channels/x.md", "channels/ops/notes.md", "channels/ops/deep/MEMORY.md", "skills/README.md",
        "skills/tidy/more.md", "skills/a/b/SKILL.md", "memories/deep/d.md", "review/p.md", ".pipimem/state/x.md",
        "memory/.hidden.md", "memory/.git/x.md", "memory/x.txt", "memory/.#a.md", "channels/.x/MEMORY.md",
    ]  # fmt: skip
    write(root, dict.fromkeys([*good, *other], "x"))
    scan = Workspace(str(root)).scan()
    assert sorted(documents(scan)) == sorted(good)
    assert scan.skipped == []
    assert [p for p, _ in scan.remarks] == [
        "README.md", "SESSION.md", "memories/deep/d.md", "skills/a/b/SKILL.md", "channels/ops/notes.md",
    ]  # fmt: skip


def test_a_look_at_one_channel_sees_it_and_the_shared_layer_only(workspace: Workspace, root: Path) -> None:
    write(root, {"channels/dev/MEMORY.md": "- x\n"})
    assert documents(workspace.scan(["ops"])) == ["MEMORY.md", "memory/tools.md", "channels/ops/MEMORY.md"]
    assert documents(workspace.scan([])) == ["MEMORY.md", "memory/tools.md"]


def test_two_spellings_are_two_files_and_the_documents_name_wins(workspace: Workspace, root: Path) -> None:
    write(root, {"memory.md": "- another\n", "channels/ops/Memory.md": "- 又一个\n"})
    scan = workspace.scan()
    assert "MEMORY.md" in documents(scan)
    assert "memory.md" not in documents(scan)
    assert [p for p, _ in scan.remarks] == ["memory.md", "channels/ops/Memory.md"]


def test_a_file_with_two_names_is_counted_once_and_refused_for_writing(workspace: Workspace, root: Path) -> None:
    os.link(root / "MEMORY.md", root / "memory/copy.md")
    os.link(root / "channels/ops/MEMORY.md", root / "channels/ops/copy.md")
    scan = workspace.scan()
    assert documents(scan) == ["MEMORY.md", "memory/tools.md", "channels/ops/MEMORY.md"]
    assert dict(scan.remarks) == {
        "memory/copy.md": "the same file as 'MEMORY.md'",
        "channels/ops/copy.md": "the same file as 'channels/ops/MEMORY.md'",
    }
    before = snapshot(root)
    for path in ("MEMORY.md", "memory/copy.md", "channels/ops/MEMORY.md"):
        with pytest.raises(Refused, match="hard link"):
            put(workspace, path, b"- split\n")
    assert snapshot(root) == before


def test_links_are_followed_to_files_inside_only_and_the_rest_is_reported(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"outside/secret.md": "- outside\n", "outside/MEMORY.md": "- outside\n"})
    write(root, {"docs/plan.md": "- planned\n", "review/p.md": "- waits\n", ".git/config": "[core]\n"})
    links = {
        "memory/in.md": root / "docs/plan.md", "memory/out.md": tmp_path / "outside/secret.md", "memory/gone.md": root / "nowhere",
        "memory/loop.md": root / "memory/loop.md", "memory/git.md": root / ".git/config", "memory/quarantine.md": root / "review/p.md",
        "memory/folder.md": root / "docs", "channels/linked": tmp_path / "outside", "channels/ops/memory": root / "memory",
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    scan = workspace.scan()
    assert documents(scan) == ["MEMORY.md", "memory/in.md", "memory/tools.md", "channels/ops/MEMORY.md"]
    assert sorted(p for p, _ in scan.skipped) == sorted(set(links) - {"memory/in.md"})
    before = snapshot(tmp_path)
    for path in (
        "memory/out.md",
        "memory/git.md",
        "memory/quarantine.md",
        "channels/linked/MEMORY.md",
        "channels/ops/memory/in.md",
    ):
        with pytest.raises(Unreadable, match="link"):
            workspace.read(path)
        with pytest.raises(Unreadable), workspace.locks([path]):
            workspace.write([Change(path, None, b"- mine\n")])
    assert snapshot(tmp_path) == before
    assert [c.id for c in workspace.channels()] == ["ops"]


def test_a_link_inside_is_written_through_to_its_target(workspace: Workspace, root: Path) -> None:
    write(root, {"docs/plan.md": "- planned\n"})
    (root / "memory/in.md").symlink_to("../docs/plan.md")
    put(workspace, "memory/in.md", b"- planned\n- \xe5\xb7\xb2\xe5\xae\x9a\n")
    assert (root / "memory/in.md").is_symlink()
    assert (root / "docs/plan.md").read_text("utf-8") == "- planned\n- 已定\n"
    (root / "memory/twin.md").symlink_to("../docs/plan.md")
    now = workspace.read("memory/in.md")
    with workspace.locks(["memory/in.md"]), pytest.raises(Refused, match="by a link"):
        workspace.write([Change("memory/in.md", now, b"a"), Change("memory/twin.md", now, b"b")])


def test_a_channels_folder_that_is_a_link_is_reported_and_nothing_is_made_behind_it(root: Path, tmp_path: Path) -> None:
    write(tmp_path, {"outside/ops/MEMORY.md": "- outside\n"})
    write(root, {"pipimem.toml": ""})
    (root / "channels").symlink_to(tmp_path / "outside")
    scan = Workspace(str(root)).scan()
    assert (documents(scan), scan.skipped) == ([], [("channels", "a link to a folder")])
    done = run("-w", root, "channel", "add", "dev")
    assert (done.code, sorted(os.listdir(tmp_path / "outside"))) == (3, ["ops"])
    assert "a link to a folder" in done.err


def test_conflict_copies_are_no_memory_and_are_reported(workspace: Workspace, root: Path) -> None:
    copies = [
        "MEMORY.sync-conflict-20260314-091500-ABCDEFG.md", "MEMORY (conflicted copy).md",
        "channels/ops/MEMORY (Ines's conflicted copy 2026-03-14).md", "channels/ops/MEMORY(冲突文件_贺知兰_2026).md",
        "memory/tools.sync-conflict-20260314-091500-ABCDEFG.md",
    ]  # fmt: skip
    write(root, dict.fromkeys(copies, "- 冲突\n"))
    scan = workspace.scan()
    assert documents(scan) == ["MEMORY.md", "memory/tools.md", "channels/ops/MEMORY.md"]
    assert dict(scan.remarks) == dict.fromkeys(copies, "a conflict copy")


def test_a_name_nobody_can_use_stops_only_itself(workspace: Workspace, root: Path) -> None:
    odd = [
        b"memory/a\\b.md",
        b"memory/a\nb.md",
        b"memory/caf\xe9.md",
        b"channels/caf\xe9/MEMORY.md",
        b"memory/de\\ep/x.md",
    ]
    for name in odd:
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(b"- x\n")
    scan = workspace.scan()
    assert documents(scan) == ["MEMORY.md", "memory/tools.md", "channels/ops/MEMORY.md"]
    assert {os.fsencode(p) for p, _ in scan.skipped} == {
        b"memory/a\\b.md", b"memory/a\nb.md", b"memory/caf\xe9.md", b"channels/caf\xe9", b"memory/de\\ep"
    }  # fmt: skip
    done = run("-w", root, "index", "--json")
    assert (done.code, done.json["documents"], len(done.json["skipped"])) == (0, 3, 5), done.err


def bad_files(root: Path) -> list[str]:
    """G28: one good file among five that cannot be used. Returns the five."""
    for name in ("good", "binary", "appledouble"):
        write(root, {f"memory/{'._MEMORY' if name == 'appledouble' else name}.md": case(f"G28-{name}.md")})
    write(root, {"memory/locked.md": "- 锁着的\n", "memory/closed/note.md": "- shut away\n"})
    os.mkfifo(root / "memory/pipe.md")
    return ["memory/._MEMORY.md", "memory/binary.md", "memory/closed", "memory/locked.md", "memory/pipe.md"]


def shut(root: Path, *, mode: int) -> None:
    for name in ("memory/locked.md", "memory/closed"):
        (root / name).chmod(mode | (0o111 if mode and name.endswith("closed") else 0))


def test_one_bad_file_never_stops_the_good_ones(root: Path) -> None:
    write(root, {"pipimem.toml": "", "MEMORY.md": "- 闸门在东侧\n"})
    bad = bad_files(root)
    first = run_as_nobody(root, "-w", root, "index", "--json")
    assert first.code == 0, first.err
    shut(root, mode=0)
    done = run_as_nobody(root, "-w", root, "index", "--json")
    assert done.code == 0, done.err
    assert sorted(s["path"] for s in done.json["skipped"]) == bad
    reasons = {s["path"]: s["reason"] for s in done.json["skipped"]}
    assert "permission" in reasons["memory/locked.md"]
    assert "permission" in reasons["memory/closed"]
    assert reasons["memory/pipe.md"] == "not a regular file"
    assert "binary" in reasons["memory/binary.md"]
    assert all(f"'{path}'" in done.err for path in bad)
    assert done.json["removed"] == []
    assert done.json["documents"] == first.json["documents"]
    assert run_as_nobody(root, "-w", root, "search", "闸门").code == 0
    assert run_as_nobody(root, "-w", root, "search", case("G28-good.md").split()[-1].decode()).code == 0
    assert run_as_nobody(root, "-w", root, "search", "kumquat").code == 3
    shut(root, mode=0o644)
    again = run_as_nobody(root, "-w", root, "index", "--json")
    assert len(again.json["skipped"]) == 3
    assert run_as_nobody(root, "-w", root, "search", "shut away").code == 0


def test_status_tells_what_a_look_left_out(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    write(
        root,
        {
            "MEMORY (conflicted copy).md": "- x\n",
            "memory.md": "- y\n",
            "memory/big.md": ("长" * 600 + "\n\n") * (APPEND_ONLY // 1800),
        },
    )
    (root / "memory/out.md").symlink_to(tmp_path)
    problems = {p["path"]: p["reason"] for p in run("-w", root, "status", "--json").json["problems"]}
    assert set(problems) == {"MEMORY (conflicted copy).md", "memory.md", "memory/big.md", "memory/out.md"}
    assert "2 MB" in problems["memory/big.md"]


def test_a_channels_folder_nobody_may_list_hides_no_shared_document(workspace: Workspace, root: Path) -> None:
    assert run("-w", root, "index").code == 0
    (root / "channels").chmod(0)
    done = run_as_nobody(root, "-w", root, "index", "--json")
    found = run_as_nobody(root, "-w", root, "search", "归雁")
    listed = run_as_nobody(root, "-w", root, "channel", "list")
    (root / "channels").chmod(0o755)
    assert (done.code, [s["path"] for s in done.json["skipped"]], done.json["removed"]) == (0, ["channels"], []), (
        done.err
    )
    assert (found.code, listed.code) == (0, 3)
    assert "归雁" in found.out
    assert "permission" in listed.err


# Reading


@pytest.mark.parametrize(
    "name", ["G18-blank.md", "G18-empty.md", "G18-no-newline.md", "G10-bom.md", "G11-crlf.md", "G28-binary.md"]
)
def test_bytes_are_read_as_they_are(workspace: Workspace, root: Path, name: str) -> None:
    write(root, {"memory/odd.md": case(name)})
    assert workspace.read("memory/odd.md") == case(name)


def test_a_missing_file_is_none_and_anything_else_is_could_not_look(workspace: Workspace, root: Path) -> None:
    assert workspace.read("memory/none.md") is None
    assert workspace.read("channels/none/MEMORY.md") is None
    (root / "memory/folder.md").mkdir()
    os.mkfifo(root / "memory/pipe.md")
    with (root / "memory/huge.md").open("wb") as file:
        file.truncate(51 * 1024 * 1024)
    for path in (
        "memory/folder.md",
        "memory/pipe.md",
        "memory/huge.md",
        "memory/tools.md/x.md",
        f"memory/{'x' * 300}.md",
    ):
        with pytest.raises(Unreadable):
            workspace.read(path)
    assert ("memory/huge.md", "larger than 50 MB") in workspace.scan().skipped


def test_a_proposal_nobody_can_read_stops_no_other(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    write(root, {"review/r-1.md": "- 一\n", "review/b\\c.md": "x", "review/.r.md": "x", "review/r.txt": "x"})
    os.mkfifo(root / "review/pipe.md")
    (root / "review/out.md").symlink_to(tmp_path)
    assert workspace.proposals() == ["review/r-1.md"]


# Writing


@pytest.mark.parametrize("name", ["G18-blank.md", "G18-empty.md", "G18-no-newline.md", "G10-bom.md", "G11-crlf.md"])
def test_what_is_written_is_what_is_there(workspace: Workspace, root: Path, name: str) -> None:
    put(workspace, "memory/new.md", case(name))
    assert (root / "memory/new.md").read_bytes() == case(name)
    put(workspace, "memory/new.md", case(name) + "- 三\n".encode())
    assert (root / "memory/new.md").read_bytes() == case(name) + "- 三\n".encode()
    put(workspace, "memory/new.md", None)
    assert not (root / "memory/new.md").exists()
    assert leftovers(root) == []


def test_a_write_succeeds_only_on_the_text_that_was_read(workspace: Workspace, root: Path) -> None:
    read = workspace.read("MEMORY.md")
    write(root, {"MEMORY.md": "- by hand\n"})
    before = snapshot(root)
    for change in (
        Change("MEMORY.md", read, b"- mine\n"),
        Change("MEMORY.md", None, b"- mine\n"),
        Change("MEMORY.md", read, None),
    ):
        with workspace.locks(["MEMORY.md", "memory/x.md"]), pytest.raises(Conflict, match=r"'MEMORY\.md' has changed"):
            workspace.write([Change("memory/x.md", None, b"- first\n"), change])
    assert snapshot(root) == before


def test_a_save_in_the_last_moment_wins(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person saves while the new text is being staged: after the comparison, before the rename."""
    put(workspace, "memory/tools.md", b"- first\n")
    read, sync = workspace.read("MEMORY.md"), os.fsync

    def saved_meanwhile(handle: int) -> None:
        sync(handle)
        if leftovers(root):
            write(root, {"MEMORY.md": "- by hand, 最后一刻\n"})

    monkeypatch.setattr(os, "fsync", saved_meanwhile)
    with workspace.locks(["MEMORY.md", "USER.md"]), pytest.raises(Conflict):
        workspace.write([Change("USER.md", None, b"- new\n"), Change("MEMORY.md", read, b"- mine\n")])
    assert workspace.read("MEMORY.md") == "- by hand, 最后一刻\n".encode()
    assert workspace.read("USER.md") is None
    assert leftovers(root) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o755])
def test_a_file_keeps_its_mode(workspace: Workspace, root: Path, mode: int) -> None:
    (root / "MEMORY.md").chmod(mode)
    put(workspace, "MEMORY.md", b"- new\n")
    assert (root / "MEMORY.md").stat().st_mode & 0o7777 == mode


def test_a_new_file_gets_the_mode_the_user_wants(workspace: Workspace, root: Path) -> None:
    old = os.umask(0o027)
    try:
        put(workspace, "memory/a/b.md", b"- new\n")
    finally:
        os.umask(old)
    assert (root / "memory/a/b.md").stat().st_mode & 0o777 == 0o640
    assert (root / "memory/a").stat().st_mode & 0o777 == 0o750


@AS_ROOT
def test_a_file_keeps_its_owner(workspace: Workspace, root: Path) -> None:
    os.chown(root / "MEMORY.md", NOBODY, NOBODY)
    (root / "MEMORY.md").chmod(0o640)
    put(workspace, "MEMORY.md", b"- new\n")
    found = (root / "MEMORY.md").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (NOBODY, NOBODY, 0o640)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_a_file_keeps_its_extended_attributes(workspace: Workspace, root: Path) -> None:
    try:
        os.setxattr(root / "MEMORY.md", "user.tag", "蓝".encode())
    except OSError:
        pytest.skip("this file system has none")
    put(workspace, "MEMORY.md", b"- new\n")
    assert os.getxattr(root / "MEMORY.md", "user.tag").decode() == "蓝"


def test_a_file_with_conflict_markers_is_refused_with_the_line(workspace: Workspace, root: Path) -> None:
    write(root, {"channels/ops/MEMORY.md": case("G31-conflict.md")})
    before = snapshot(root)
    for after in (case("G31-conflict.md") + b"- more\n", b"- resolved, says a machine\n", None):
        with pytest.raises(Refused, match="merge conflict in line 5"):
            put(workspace, "channels/ops/MEMORY.md", after)
    with pytest.raises(Refused, match="conflict markers in line 5"):
        put(workspace, "memory/tools.md", case("G31-conflict.md"))
    assert snapshot(root) == before


def test_conflict_markers_stop_the_command_and_the_commit_but_not_the_reader(root: Path) -> None:
    write(root, {"pipimem.toml": "", "channels/ops/MEMORY.md": case("G31-conflict.md")})
    assert run("init", root, "--git").code == 0
    write(root, {"channels/ops/MEMORY.md": case("G31-conflict.md") + b"- by hand\n"})
    before = snapshot(root)
    done = run("-w", root, "add", "--channel", "ops", "Heron is the staging pool")
    assert done.code == 4
    assert "line 5" in done.err
    assert snapshot(root) == before
    assert run("-w", root, "add", "--target", "memory", "Heron is the staging pool").code == 0
    assert "channels/ops" not in run("-w", root, "diff", "HEAD").out
    assert run("-w", root, "search", "heron").code == 0
    assert "line 5" in run("-w", root, "status").out


def test_nul_bytes_are_refused_before_and_after(workspace: Workspace, root: Path) -> None:
    write(root, {"memory/damaged.md": b"- a\0\0\0\n"})
    before = snapshot(root)
    with pytest.raises(Refused, match="NUL"):
        put(workspace, "memory/damaged.md", b"- mended\n")
    with pytest.raises(Refused, match="NUL"):
        put(workspace, "memory/tools.md", b"- a\0b\n")
    assert snapshot(root) == before


def test_a_secret_is_refused_where_it_is_new_and_never_shown(workspace: Workspace, root: Path) -> None:
    secret = "ghp" + "_" + "0123456789abcdefABCDEF0123456789abcd"
    with pytest.raises(Refused, match="secret") as caught:
        put(workspace, "memory/tools.md", b"# Tools\n\n- token: " + secret.encode() + b"\n")
    assert secret not in str(caught.value)
    write(root, {"memory/tools.md": f"- token: {secret}\n"})
    put(workspace, "memory/tools.md", f"- token: {secret}\n- 新的一行\n".encode())
    assert leftovers(root) == []


def test_above_two_megabytes_a_file_is_only_appended_to(workspace: Workspace, root: Path) -> None:
    line = "- 记录一条\n".encode()
    big = line * (APPEND_ONLY // len(line) + 1)
    write(root, {"memory/big.md": big, "memory/fits.md": big[:APPEND_ONLY]})
    for after in (b"- new first\n" + big, big[len(line) :], big[: -len(line)] + b"- last\n"):
        with pytest.raises(Refused, match="2 MB"):
            put(workspace, "memory/big.md", after)
    put(workspace, "memory/big.md", big + b"- appended\n")
    put(workspace, "memory/fits.md", b"- replaced\n")
    assert workspace.read("memory/big.md") == big + b"- appended\n"


def test_a_file_over_its_limit_is_refused_by_name(workspace: Workspace, root: Path) -> None:
    write(root, {"memory/big.md": b"- a\n"})
    before = snapshot(root)
    with pytest.raises(Refused, match=r"'memory/big\.md' would become larger than 50 MB"):
        put(workspace, "memory/big.md", b"- a\n" + b"x" * READ_LIMIT)
    assert snapshot(root) == before


def test_a_character_limit_refuses_growth_and_never_makes_room_by_dropping(root: Path) -> None:
    text = case("G04-28-entries.md").decode()
    write(root, {"pipimem.toml": f"[workspace]\nfile_limit = {len(text) - 1}\n", "channels/ops/MEMORY.md": text})
    done = run("-w", root, "add", "--channel", "ops", "第二十九条")
    assert done.code == 4
    assert f"'workspace.file_limit' is {len(text) - 1:,}" in done.err
    assert (root / "channels/ops/MEMORY.md").read_text("utf-8") == text
    put(Workspace(str(root)), "channels/ops/MEMORY.md", text.replace("tray 18", "tray 9").encode())


def test_a_change_that_changes_nothing_touches_nothing(workspace: Workspace, root: Path) -> None:
    before = snapshot(root)
    text = workspace.read("MEMORY.md")
    with workspace.locks(["MEMORY.md"]):
        workspace.write([Change("MEMORY.md", text, text), Change("memory/none.md", None, None)])
        workspace.write([])
    assert snapshot(root) == before


# Read-only places


def read_only(root: Path, *arguments: str) -> Ran:
    """The command on a workspace its user may read and not write."""
    modes = {path: path.stat().st_mode for path in [root, *root.rglob("*")]}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        return run_as_nobody(root, "-w", str(root), *arguments)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_in_a_read_only_workspace_one_can_search_and_an_append_says_read_only(root: Path) -> None:
    write(root, {"pipimem.toml": "", "channels/ops/MEMORY.md": "# Ops\n\n- 部署窗口是周四\n"})
    for indexed in (False, True):
        if indexed:
            assert run("-w", root, "index").code == 0
        before = snapshot(root), sorted(root.rglob("*"))
        assert read_only(root, "search", "部署窗口").code == 0
        started = time.monotonic()
        done = read_only(root, "add", "--channel", "ops", "Heron is the pool")
        assert time.monotonic() - started < 5
        assert done.code == 4, done.err
        assert "read-only" in done.err
        assert "Traceback" not in done.err
        assert (snapshot(root), sorted(root.rglob("*"))) == before


@pytest.mark.parametrize("shut", ["channels/ops", "channels/ops/MEMORY.md"])
def test_one_read_only_folder_or_file_is_refused_with_that_reason(root: Path, shut: str) -> None:
    write(root, {"pipimem.toml": "", "channels/ops/MEMORY.md": "# Ops\n\n- 部署窗口是周四\n"})
    assert run_as_nobody(root, "-w", root, "index").code == 0
    before = snapshot(root)
    (root / shut).chmod((root / shut).stat().st_mode & ~0o222)
    done = run_as_nobody(root, "-w", str(root), "add", "--channel", "ops", "Heron is the pool")
    (root / shut).chmod((root / shut).stat().st_mode | 0o200)
    assert done.code == 4, done.err
    assert "channels/ops/MEMORY.md" in done.err
    assert "read-only" in done.err
    assert {n: s[0] for n, s in snapshot(root).items()} == {n: s[0] for n, s in before.items()}
    assert leftovers(root) == []


def test_a_workspace_cannot_be_made_in_a_read_only_place_and_that_is_said(root: Path) -> None:
    root.chmod(0o555)
    done = run_as_nobody(root, "init", root)
    deeper = run_as_nobody(root, "init", root / "deeper")
    root.chmod(0o755)
    assert (done.code, deeper.code, os.listdir(root)) == (4, 4, [])
    assert all("read-only" in d.err and "Error" not in d.err for d in (done, deeper))
    write(root, {"file": "x"})
    assert run("init", root / "file").code == 4


# pipimem's own folder


@pytest.mark.parametrize(
    ("what", "place"),
    [
        *(
            ("a link", place)
            for place in (".pipimem", ".pipimem/locks", ".pipimem/journal", ".pipimem/locks/shared.lock")
        ),
        *(("a file", place) for place in (".pipimem", ".pipimem/locks", ".pipimem/journal")),
    ],
)
def test_what_stands_in_for_pipimems_own_folder_is_refused(
    workspace: Workspace, root: Path, tmp_path: Path, what: str, place: str
) -> None:
    (tmp_path / "outside").mkdir()
    write(tmp_path, {"outside/precious": "kept"})
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    if what == "a file":
        write(root, {place: "a person's own"})
    else:
        (root / place).symlink_to(tmp_path / ("outside/precious" if place.endswith(".lock") else "outside"))
    before = snapshot(tmp_path)
    with pytest.raises(Refused, match="is a link"):
        put(workspace, "MEMORY.md", b"- new\n")
    assert snapshot(tmp_path) == before


def test_own_files_are_whole_and_a_link_in_their_place_is_replaced(root: Path, tmp_path: Path) -> None:
    write(tmp_path, {"precious": "kept"})
    (root / "log").symlink_to(tmp_path / "precious")
    (root / "own").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic link"):
        append_private(str(root / "log"), "{}")
    write_private(str(root / "own"), b"mine")
    assert (tmp_path / "precious").read_text() == "kept"
    assert (root / "own").read_bytes() == b"mine"
    assert (root / "own").stat().st_mode & 0o777 == 0o600


def test_a_torn_line_of_a_log_does_not_swallow_the_next(root: Path) -> None:
    path = str(root / "state/runs.jsonl")
    append_private(path, '{"run": "第一"}')
    with Path(path).open("ab") as file:
        file.write(b'{"run": "cut o')
    append_private(path, '{"run": "third"}')
    assert Path(path).read_text("utf-8").splitlines() == ['{"run": "第一"}', '{"run": "cut o', '{"run": "third"}']
