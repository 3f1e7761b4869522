"""Channel ids and folders: every id has its own folder, comes back as given, and never leaves the workspace."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem.channels import channel_id, folder_name, kind_of, odd_character, read_mark, same_id
from pipimem.errors import Refused, Unreadable, Usage
from pipimem.workspace import Workspace
from tests.conftest import case, run, write

VALID = json.loads(case("G32-channel-ids.json"))["valid"]
NAMES = json.loads(case("G13-names.json"))
BAD = json.loads(case("G33-bad-ids.json"))["must_not_leave_the_workspace"]
HARD = [
    "..", ".", "...", "a..", "CON", "con", "nul.txt", "COM1", "com1.md", "~", "~root", "-rf", ".git", ".channel",
    "Ops", "ops", "OPS", "straße", "STRASSE", "ﬁ", "fi", "ſ", "s", "ı", "i", "İ", "I", "ς", "σ", "µ", "μ", "K", "k",
    "a\u3164", "a", "a\uffa0", "a\u200d", "a ", " a", "a%20", "a%2520", "%61", "%", "100%", "a~b", "🪴", "👩‍🌾",
    "群", "飞书:群:研发", "飞书：群：研发", "٣", "3", "²", "2", "x" * 300, "x" * 299 + "y", "x" * 299 + "Y",
    "é" * 300, "🪴" * 300, "飞" * 300, "%" * 300, "Café", "Cafe", "\u1100\u1161", "가각", "\u0958", "क", "Å", "å",
]  # fmt: skip
everything = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60),
    st.text("aAbB.-_~%:/+=éÉ飞🪴ßıİ\u0301\u200d\u3164 ", min_size=1, max_size=8),
    st.sampled_from([*HARD, *VALID]),
).filter(lambda text: bool(normalize("NFC", text).strip()))


def folded(name: str) -> str:
    """As a file system sees it that folds case and Unicode, and drops what it thinks is nothing."""
    plain = "".join(
        c for c in normalize("NFD", name) if c not in "\u200b\u200c\u200d\u2060\ufeff\u115f\u1160\u3164\uffa0"
    )
    return normalize("NFD", normalize("NFD", plain).casefold()).casefold()


@settings(max_examples=400, deadline=None)
@given(everything, everything)
def test_two_ids_never_share_a_folder_where_case_and_unicode_fold(one: str, other: str) -> None:
    shared = folded(folder_name(one)) == folded(folder_name(other))
    assert shared == same_id(one, other)


def test_no_two_of_the_hard_ids_share_a_folder() -> None:
    ids = [*HARD, *VALID, *(p["nfc"] for p in NAMES["pairs"]), *NAMES["no_letters"]]
    different = {normalize("NFC", identity) for identity in ids}
    assert len({folded(folder_name(identity)) for identity in ids}) == len(different)


def test_no_two_letters_anywhere_in_unicode_fold_onto_one_folder() -> None:
    letters = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isalnum() and normalize("NFC", c) == c]
    cased = [c for c in letters if {c.lower(), c.upper(), c.casefold(), normalize("NFD", c)} != {c}]
    names = [folder_name(c) for c in cased]
    assert len(cased) > 10_000
    for fold in (folded, lambda name: normalize("NFD", name).lower(), lambda name: normalize("NFD", name).upper()):
        assert len({fold(name) for name in names}) == len(names)


@pytest.mark.parametrize("identity", ["con", "CON", "nul", "aux.txt", "com1", "lpt9.md", "con."])
def test_no_folder_has_a_name_some_systems_keep_for_themselves(identity: str) -> None:
    assert folder_name(identity).split(".")[0] not in ("con", "nul", "aux", "com1", "lpt9")


@settings(max_examples=400, deadline=None)
@given(everything)
def test_a_folder_name_is_one_safe_name_and_reads_back(identity: str) -> None:
    name = folder_name(identity)
    assert len(name.encode("utf-8")) <= 200
    assert "/" not in name
    assert "\\" not in name
    assert name[0] not in ".-~"
    assert name[-1] not in ". "
    assert folder_name(normalize("NFD", identity)) == name == folder_name(normalize("NFC", identity))
    if "~" not in name:
        assert channel_id(name) == normalize("NFC", identity)


@pytest.mark.parametrize("name", ["%FF", "a%0Ab", "%61", "100%", "%zz", "%4", "a%4", "MEMORY", "x~y", "caf%C3"])
def test_a_folder_name_that_encodes_nothing_stands_for_itself(name: str) -> None:
    assert channel_id(name) == name


@pytest.mark.parametrize("identity", ["", " ", "\t", "a\0b", "a\nb", "a\x1b[2Jb", "a\x9bb", "a\ud800", "x" * 2001])
def test_an_id_that_cannot_be_one_is_refused_without_echoing_it(identity: str) -> None:
    with pytest.raises(Usage) as caught:
        folder_name(identity)
    assert not odd_character(str(caught.value))


@pytest.mark.parametrize("identity", [*VALID, *NAMES["no_letters"], *HARD])
def test_every_id_comes_back_as_given_after_a_restart(root: Path, identity: str) -> None:
    write(root, {"pipimem.toml": ""})
    path = Workspace(str(root)).channel_path(identity)
    write(root, {f"{path}/.channel": identity + "\n", f"{path}/MEMORY.md": "# 记忆\n"})
    again = Workspace(str(root))
    assert [c.id for c in again.channels()] == [identity]
    assert again.channel(identity).path == path
    assert Path(path).parent == Path("channels")


@pytest.mark.parametrize("pair", NAMES["pairs"], ids=[p["nfc"] for p in NAMES["pairs"]])
@pytest.mark.parametrize("first", ["nfc", "nfd"])
def test_two_normal_forms_of_one_id_are_one_channel(root: Path, pair: dict[str, str], first: str) -> None:
    made, asked = pair[first], pair["nfd" if first == "nfc" else "nfc"]
    write(root, {"pipimem.toml": ""})
    path = Workspace(str(root)).channel_path(made)
    write(root, {f"{path}/.channel": made + "\n"})
    workspace = Workspace(str(root))
    assert workspace.channel(asked).id == made
    assert workspace.channel_path(asked) == path
    assert len(workspace.channels()) == 1


def test_a_folder_people_named_themselves_is_found_and_kept(root: Path) -> None:
    """As other programs lay their channels out, raw names at the root, here in the normal form macOS gives."""
    name = normalize("NFD", "Café_Ünder")
    write(root, {f"{name}/SESSION.md": "", f"{name}/MEMORY.md": "- 部署窗口是周四\n"})
    workspace = Workspace(str(root))
    assert workspace.channel("Café_Ünder").path == name
    assert workspace.channel_path("Café_Ünder") == name
    assert [d.path for d in workspace.scan().documents] == [f"{name}/SESSION.md", f"{name}/MEMORY.md"]


def test_a_copied_folder_is_not_a_second_channel_and_does_not_answer_for_another_name(root: Path) -> None:
    for name in ("ops", "dev", "ops copy"):
        write(root, {f"channels/{name}/.channel": "ops\n", f"channels/{name}/MEMORY.md": f"- {name}\n"})
    workspace = Workspace(str(root))
    assert [(c.id, c.path) for c in workspace.channels()] == [("ops", "channels/ops")]
    with pytest.raises(Unreadable, match="no channel 'dev'"):
        workspace.channel("dev")
    with pytest.raises(Refused):
        workspace.channel_path("dev")
    scan = workspace.scan()
    assert [d.path for d in scan.documents] == ["channels/ops/MEMORY.md"]
    assert {path for path, _ in scan.remarks} == {"channels/dev", "channels/ops copy"}
    assert scan.skipped == []


@pytest.mark.parametrize("identity", ["ops", "飞书:群:研发", "x" * 300])
def test_a_folder_left_without_its_mark_is_completed(root: Path, identity: str) -> None:
    write(root, {"pipimem.toml": ""})
    path = Workspace(str(root)).channel_path(identity)
    (root / path).mkdir(parents=True)
    assert run("-w", root, "channel", "add", identity).code == 0
    assert [c.id for c in Workspace(str(root)).channels()] == [identity]


@pytest.mark.parametrize("name", ["memory", "memories", "skills", "review"])
def test_with_channels_at_the_root_no_channel_takes_the_workspaces_own_folders(root: Path, name: str) -> None:
    write(root, {"ops/SESSION.md": "", f"{name}/SESSION.md": "", f"{name}/HISTORY.md": "", f"{name}/MEMORY.md": ""})
    workspace = Workspace(str(root))
    assert [c.id for c in workspace.channels()] == ["ops"]
    with pytest.raises(Unreadable):
        workspace.channel(name)
    with pytest.raises(Refused):
        workspace.channel_path(name)


@pytest.mark.parametrize(
    ("mark", "identity", "kind"),
    [
        (b"Ops\n", "Ops", ""),
        (b"Ops\r\nkind: direct\r\n", "Ops", "direct"),
        (b"\xef\xbb\xbf\xe9\xa3\x9e\xe4\xb9\xa6\n# \xff\nkind:dm", "飞书", "direct"),
        (b"Ops\nkind: pirate\n", "Ops", ""),
        (b"\nkind: group\n", "", "group"),
        (b"a\0b\n", "", ""),
        (b"\xff\xfe\n", "", ""),
        (b"", "", ""),
        (b"x" * 200_000, "x" * 16384, ""),
    ],
)
def test_a_mark_is_read_as_people_and_tools_leave_it(root: Path, mark: bytes, identity: str, kind: str) -> None:
    (root / ".channel").write_bytes(mark)
    assert read_mark(str(root)) == (identity, kind)


def test_a_mark_that_is_a_pipe_a_folder_or_a_link_says_nothing_and_stops_nobody(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("elsewhere\n")
    for name in ("piped", "folded", "linked"):
        write(root, {f"channels/{name}/MEMORY.md": "- 一条\n"})
    os.mkfifo(root / "channels/piped/.channel")
    (root / "channels/folded/.channel").mkdir()
    (root / "channels/linked/.channel").symlink_to(tmp_path / "secret")
    assert [c.id for c in Workspace(str(root)).channels()] == ["folded", "linked", "piped"]


@pytest.mark.parametrize(
    ("identity", "kind"),
    [
        ("dingtalk:dm:cidB+/A==", "direct"), ("agent:main:slack:group:C1", "group"), ("飞书:群:研发", "group"),
        ("project:harbour", "project"), ("nothing said", "group"), ("dm-team-group", "group"), ("repo_pipimem", "project"),
    ],
)  # fmt: skip
def test_the_kind_follows_from_the_id_and_in_doubt_it_is_the_strictest(identity: str, kind: str) -> None:
    assert kind_of(identity, {}) == kind


def test_the_kind_set_by_hand_counts_in_either_normal_form() -> None:
    assert kind_of("Cafe\u0301-plan", {"Caf\u00e9-plan": "direct"}, "project") == "direct"
    assert kind_of("ops", {}, "project") == "project"


@pytest.mark.parametrize("identity", BAD, ids=lambda i: ascii(i[:20]))
def test_a_bad_id_as_channel_stays_one_folder_or_is_refused(root: Path, tmp_path: Path, identity: str) -> None:
    write(root, {"pipimem.toml": ""})
    before = sorted(p for p in tmp_path.rglob("*") if root not in p.parents)
    try:
        path = Workspace(str(root)).channel_path(identity)
    except Usage:
        return
    assert Path(path).parts[0] == "channels"
    assert len(Path(path).parts) == 2
    write(root, {f"{path}/.channel": identity + "\n"})
    assert Workspace(str(root)).channel(identity).id == identity
    assert sorted(p for p in tmp_path.rglob("*") if root not in p.parents) == before


@pytest.mark.parametrize("identity", BAD, ids=lambda i: ascii(i[:20]))
def test_a_bad_id_as_document_is_refused_without_control_characters(root: Path, tmp_path: Path, identity: str) -> None:
    write(tmp_path, {"evil": "outside", "evil.md": "outside", "outside/evil.md": "outside"})
    write(root, {"pipimem.toml": "", "channel/MEMORY.md": "", "memory/a.md": ""})
    workspace = Workspace(str(root))
    for path in (identity, identity + ".md", f"memory/{identity}", f"channels/{identity}/../../../evil.md"):
        with pytest.raises(Refused) as caught:
            workspace.absolute(path)
        assert not odd_character(str(caught.value))
        with pytest.raises(Refused):
            workspace.read(path)


@pytest.mark.parametrize(
    "path", ["../evil.md", "memory/../../evil.md", "/memory/a.md", "memory//a.md", "memory/./a.md", "channels/.x/MEMORY.md",
             "memory\\a.md", "memory/a\nb.md", "memory/a\x9b.md", "review", "MEMORY.md/", ".pipimem/state/key.md",
             "channels/MEMORY.md", "skills/a/b/SKILL.md", "notes.md", "channels/ops/notes.md", "memory/\udcff.md"],
)  # fmt: skip
def test_a_path_that_is_no_document_is_refused(root: Path, path: str) -> None:
    write(root, {"pipimem.toml": "", "channels/ops/MEMORY.md": ""})
    with pytest.raises(Refused, match="is no document"):
        Workspace(str(root)).absolute(path)


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory/a.md", "memory/深/层.md", "channels/ops/MEMORY.md", "channels/飞书%3Aa/memory/b/c.md",
             "skills/tidy/SKILL.md", "memories/MEMORY.md", "review/r-1.md"],
)  # fmt: skip
def test_a_path_that_is_a_document_is_not(root: Path, path: str) -> None:
    write(root, {"pipimem.toml": "", "channels/ops/MEMORY.md": ""})
    assert Workspace(str(root)).absolute(path) == str(root / path)


@pytest.mark.parametrize("identity", ["../evil", "..\\evil", "/outside/evil", "a/./../../evil"])
def test_a_bad_id_as_transcript_is_only_a_file_that_is_not_there(root: Path, tmp_path: Path, identity: str) -> None:
    write(root, {"pipimem.toml": "", "channels/ops/MEMORY.md": ""})
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    done = run("-w", root, "update", "--channel", "ops", "--offline", "--transcript", identity)
    assert done.code == 3, done.err
    assert "cannot be read" in done.err
    assert [p for p in sorted(str(p) for p in tmp_path.rglob("*")) if ".pipimem" not in p] == before
