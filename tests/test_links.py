"""What of a document counts as a link, and as what: the text as people write it, never code or comments."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipimem import knowledge, markdown
from pipimem.front import read_front
from pipimem.index.links import Mention, canonical, mentions, names, plain_name, visible
from pipimem.workspace import Document


def document(path: str = "memory/here.md", layer: str = "note", channel: str = "") -> Document:
    return Document(path, channel, layer, Path(__file__).stat())


def said(text: str, path: str = "memory/here.md", layer: str = "note") -> list[Mention]:
    data = text.encode()
    return mentions(document(path, layer), markdown.parse(data), knowledge.read(read_front(data)[0]))


def targets(text: str, path: str = "memory/here.md") -> list[str]:
    return [link.target for link in said(text, path)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("see [[kiln]]", ["kiln"]),
        ("see [[kiln|the oven]] and [[ 窑炉 ]]", ["kiln", "窑炉"]),
        ("[[kiln#Firing]] [[kiln#^block|x]] ![[kiln.png]] [[#here]] [[]]", ["kiln", "kiln", "kiln.png"]),
        ("[[deep/kiln.md]] [[../kiln]]", ["deep/kiln", "kiln"]),
        ("| a | [[kiln\\|oven]] |", ["kiln"]),
        ("# On [[kiln]]\n\nSetext [[oven]]\n===", ["kiln", "oven"]),
        ("> quoted [[kiln]]\n\n1. [[one]]\n   - [[two]]", ["kiln", "one", "two"]),
        ("[[tool:uv]] [[错误:x]] [[http://x]]", ["uv", "错误:x", "http://x"]),
        ("[a](kiln.md) [b](./kiln.md#h) [c](../MEMORY.md)", ["memory/kiln.md", "memory/kiln.md", "MEMORY.md"]),
        ("[a](<the kiln.md>) [b](窑炉.md 'x') [c](k%20n.md)", ["memory/the kiln.md", "memory/窑炉.md", "memory/k%20n.md"]),
        ("[a](https://x.example/y.md) [b](/etc/passwd) [c](#here) [d](mailto:a@b.example) ![i](pic.png)", []),
        ("[a](../../outside.md) [b](../..) [c]()", []),
        ("#kiln and (#窑炉/釉) #on-call. #a1", ["kiln", "窑炉/釉", "on-call", "a1"]),
        ("#1 #12-3 c# a#b x/#y #ff8800 #fff000 ## #", []),
        ("见#标签 标签#也不是，#是的。", ["是的"]),
    ],
)  # fmt: skip
def test_a_link_is_read_as_people_mean_it(text: str, wanted: list[str]) -> None:
    assert targets(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "`[[kiln]]` and ``[[a`b]] #tag``",
        "```\n[[kiln]] #tag [x](y.md)\n```",
        "~~~ sh\n[[kiln]]\n~~~",
        "    [[kiln]]",
        "- item\n\n  ```\n  [[kiln]]\n  ```\n",
        "> ```\n> [[kiln]]\n> ```",
        "<!-- [[kiln]] #tag -->",
        "- entry <!-- m-00000001 kind=fact src=x:y#z note=[[kiln]] -->",
        "text <!-- over\nlines [[kiln]]\n--> more",
        "<div>\n[[kiln]]\n</div>",
        "\\[[kiln]] \\#tag",
        "[[ki\nln]]",
        "- ```\n  [[kiln]]",
    ],
)
def test_nothing_in_code_or_comments_is_a_link(text: str) -> None:
    assert targets(text) == []
    assert targets(text + "\n\n[[after]]\n")[-1:] in ([], ["after"])


def test_what_only_looks_like_code_hides_nothing() -> None:
    assert targets("a ` b [[kiln]]") == ["kiln"]
    assert targets("``a` [[kiln]]") == ["kiln"]
    assert targets("a <!-- b [[kiln]]") == ["kiln"]
    assert targets("\\`[[kiln]]\\`") == ["kiln"]
    assert targets("`a\\` [[kiln]] `b`") == ["kiln"]


def test_a_link_says_its_line_and_what_it_is() -> None:
    text = "---\nid: here\nentities: [mosquitto]\nlinks:\n  - {target: x, relation: uses, layer: causal, weight: 0.9}\n---\n\n# T\n\none\ntwo [[kiln#Ramp]]\n#tag\n"
    found = {link.target: link for link in said(text)}
    assert {name: link.line for name, link in found.items()} == {"mosquitto": 3, "x": 5, "kiln": 11, "tag": 12}
    assert (found["x"].relation, found["x"].layer, found["x"].weight) == ("uses", "causal", 0.9)
    assert (found["mosquitto"].kind, found["mosquitto"].relation, found["mosquitto"].layer) == (
        "entity",
        "mentions",
        "entity",
    )
    assert (found["kiln"].fragment, found["kiln"].weight, found["tag"].kind) == ("Ramp", 0.5, "tag")
    assert all(link.source == "here" for link in found.values())


def test_a_failure_record_names_its_things() -> None:
    text = "---\nerror: KW-E17\nfix: renew the certificate\ntool: mosquitto\nfile: ops/broker.conf\nproject: kilnwren\n---\n"
    found = {link.target: (link.kind, link.relation, link.layer) for link in said(text)}
    assert found == {
        "KW-E17": ("error", "triggered-by", "causal"),
        "renew the certificate": ("fix", "fixed-by", "causal"),
        "mosquitto": ("tool", "uses", "entity"),
        "ops/broker.conf": ("file", "observed-in", "entity"),
        "kilnwren": ("project", "belongs-to", "entity"),
    }


def test_one_thing_has_one_canonical_name() -> None:
    assert canonical("窯爐 ＫＩＬＮ") == canonical("窑炉  kiln")
    assert canonical("channels/a%3Ab/memory/x.md") == canonical("channels/a:b/memory/x.md")
    assert canonical("channels/a%253Ab/x.md") == canonical("channels/a%3Ab/x.md")
    assert plain_name("package:numpy") == ("package", "numpy")
    assert plain_name("file://x") == ("", "file://x")
    assert len(plain_name("x" * 5000)[1]) == 200
    assert plain_name("a\x1b[31m\u202eb\n c") == ("", "a[31mb c")


def test_a_document_goes_by_its_id_its_file_and_its_aliases() -> None:
    known = knowledge.read({"id": "curve-format", "aliases": ["the format"]})
    found = names(document("channels/project%3Akilnwren/memory/deep/firing.md", channel="project:kilnwren"), known)
    assert [name for name, _ in found] == [
        "curve-format", "firing", "channels/project%3Akilnwren/memory/deep/firing.md",
        "channels/project%3Akilnwren/memory/deep/firing", "deep/firing", "the format",
    ]  # fmt: skip
    assert next(name for name, _ in names(document("skills/deploy-api/SKILL.md", "skill"), None)) == "deploy-api"
    assert [name for name, _ in names(document("channels/ops/MEMORY.md", "memory"), None)] == [
        "channels/ops/MEMORY.md", "MEMORY.md",
    ]  # fmt: skip


def inline(text: str) -> Iterator[str]:
    """The text of a file that a Markdown library takes for text: no code, no HTML, no escapes."""
    for token in MarkdownIt("commonmark").disable(["link", "image", "autolink", "entity"]).parse(text):
        for child in token.children or ():
            if child.type in ("text", "softbreak", "hardbreak"):
                yield child.content or "\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("see [the kiln][k].\n\n[k]: kiln.md#ramp 'title'\n", ["memory/kiln.md"]),
        ("[kiln][] and [Kiln]\n\n[kiln]: ../MEMORY.md\n", ["MEMORY.md", "MEMORY.md"]),
        ("- 见 [窑 炉]\n\n[窑  炉]: <窑 炉.md>\n", ["memory/窑 炉.md"]),
        ("[kiln][none] [x]: y ![kiln] `[kiln]` [[kiln]]\n\n[kiln]: a.md\n", ["kiln"]),
        ("[kiln]\n\n[kiln]: https://x.example/y.md\n", []),
        ("- [x] done\n- [ ] open\n\n[k]: kiln.md\n", []),
        ("[k]\n\n    [k]: kiln.md\n", []),
    ],
)
def test_a_reference_link_leads_where_its_definition_says(text: str, wanted: list[str]) -> None:
    assert targets(text) == wanted


REFERENCES = (
    "[a]|[b]|[A b][a]|[x][]|[a]: a.md\n\n|\n\n[B]: b.md\n|[x]: <x y.md>\n|`|\\|[[a]]| |!|\n|[|]|- |> |    |中".split(
        "|"
    )
)


@given(st.lists(st.sampled_from(REFERENCES), max_size=12))
def test_no_link_by_reference_is_made_up(pieces: list[str]) -> None:
    text = "".join(pieces)
    known = {
        child.attrs["href"]
        for token in MarkdownIt("commonmark").parse(text)
        for child in token.children or ()
        if child.type == "link_open"
    }
    found = {link.target.removeprefix("memory/").replace(" ", "%20") for link in said(text) if link.form == "path"}
    assert found <= known, text


PIECES = st.lists(
    st.sampled_from(
        [
            "[[a]]",
            "[[b|c]]",
            "`",
            "``",
            "```",
            "~~~",
            "\n",
            "\n\n",
            "<!--",
            "-->",
            " ",
            "x",
            "\\",
            "- ",
            "> ",
            "    ",
            "# ",
        ]
    ),
    max_size=14,
)


@given(PIECES)
@example(["- ", "    ", "[[a]]"])
@example(["\\", "\\", "`", "[[a]]", "`"])
@example(["> ", "    ", "[[a]]"])
@example(["- ", "<!--", "[[a]]"])
@example(["- ", "<!--", "x", "-->", "[[a]]", "\n", "[[a]]"])
@example(["> ", "- ", "- ", "    ", "[[a]]", "\n", "    ", "    ", "[[b|c]]"])
def test_what_a_markdown_library_takes_for_code_is_no_link(pieces: list[str]) -> None:
    text = "".join(pieces)
    known = re.findall(r"\[\[(a|b)", "".join(inline(text)))
    found = [link.target for link in said(text)]
    assert len(found) <= len(known), (text, found, known)


@example("\\``")
@given(st.text(alphabet="`\\<!->~ \na[]#|(", max_size=60))
def test_blanking_keeps_every_byte_in_its_place(text: str) -> None:
    data = text.encode()
    for nested in ([], [(0, len(data) // 2)]):
        shown = visible(data, nested)
        assert len(shown) == len(data)
        assert all(new == old or new == 32 for new, old in zip(shown, data, strict=True))
        assert shown.count(b"\n") == data.count(b"\n")


@pytest.mark.parametrize("sign", ["[", "`", "<!--", "`` ` ", "[[", "](", "#a", "\\", "[a](", "```\n", "- ", "- ```\n"])
def test_hostile_text_costs_no_more_than_its_length(sign: str) -> None:
    text = (sign * 200_000)[:200_000]
    started = time.process_time()
    said(text, layer="memory", path="MEMORY.md")
    assert time.process_time() - started < 3


def test_what_is_marked_as_private_is_no_link() -> None:
    assert targets("<private>[[kiln]] #tag</private> [[oven]]\n\n- a\n\n<private>\n\n[[gone]]\n") == ["oven"]
    text = "# M\n\n<private>\n\n- a <!-- m-00000001 kind=failure error=E1 -->\n\n</private>\n\n- b <!-- m-00000002 kind=fact -->\n"
    assert said(text, "MEMORY.md", "memory") == []
