"""What `check` says of links, ids and front matter: broken ones with path and line, and nothing of what is well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipimem.memory import Memory
from tests.conftest import SAMPLE, run, write

GOOD = {
    "memory/a.md": "---\nid: a\nentities: [mosquitto]\nlinks:\n  - {target: KW-E17, layer: entity}\n  - target: 窯\n---\n\n"
    "# A\n\n[[窑]] [[a#A]] [[b#^block]] [[m-00000001]] [[mosquitto]] [[tool:uv]] [[pic.png]] [[x/c]] [p](../MEMORY.md) #tag\n",
    "memory/窑.md": "# 窑\n\n## Ramp, and hold\n\n[[tag]] [up](a.md) [web](https://x.example/none.md) [here](#nowhere)\n",
    "memory/b.md": "[[窑#Ramp, and hold]] [k](%E7%AA%91.md#ramp-and-hold) `[[none]]`\n\n```\n[[none]]\n```\n",
    "memory/x/c.md": "---\nsupersedes: gone-for-good\n---\n\n[[A]]\n",
    "MEMORY.md": "# M\n\n- one <!-- m-00000001 kind=fact supersedes=m-0000000f -->\n",
    "channels/ops/memory/ops.md": "---\nid: ops\n---\n\n[[a]] [x](../../../memory/b.md) [s](../SESSION.md)\n",
    "channels/ops/SESSION.md": "# S\n\n[[ops]]\n",
}


def said(memory: Memory) -> list[str]:
    return [f"{f.path}:{f.line}: {f.level}: {f.message}" for f in memory.check()]


def test_what_is_well_is_not_mentioned(make: Callable[..., Memory]) -> None:
    assert said(make(GOOD)) == []


def test_a_link_that_leads_nowhere_is_named_with_its_line(make: Callable[..., Memory]) -> None:
    text = "# B\n\nsee [[gone]]\nand [this](../lost/x.md)\n\n[[a#Missing]]\n\n[[gone]]\n"
    front = "---\nlinks:\n  - {target: a}\n  - {target: 没有, relation: uses}\nconflicts: nothing-such\n---\n"
    memory = make({**GOOD, "memory/bad.md": text, "memory/worse.md": front})
    assert said(memory) == [
        "memory/bad.md:3: warning: a link to 'gone', and nothing is called that",
        "memory/bad.md:4: warning: a link to 'lost/x.md', which is not there",
        "memory/bad.md:6: warning: 'a' has no heading 'Missing'",
        "memory/bad.md:8: warning: a link to 'gone', and nothing is called that",
        "memory/worse.md:4: warning: a link to '没有', and nothing is called that",
        "memory/worse.md:5: warning: a link to 'nothing-such', and nothing is called that",
    ]
    write(Path(memory.workspace.root), {"memory/gone.md": "# Gone\n", "lost/x.md": "x\n"})
    assert len(said(memory)) == 3


def test_an_id_that_stands_twice_is_an_error_where_both_are_seen(make: Callable[..., Memory]) -> None:
    memory = make(
        {
            "memory/a.md": "---\ntype: entity\nid: Kiln\n---\n",
            "memory/b.md": "---\nid: ＫＩＬＮ\n---\n",
            "channels/ops/memory/c.md": "---\nid: 部署\n---\n",
            "channels/dm/memory/d.md": "---\nid: 部署\n---\n",
        }
    )
    assert said(memory) == [
        "channels/dm/memory/d.md:2: warning: the id '部署' stands also in channels/ops/memory/c.md:2",
        "channels/ops/memory/c.md:2: warning: the id '部署' stands also in channels/dm/memory/d.md:2",
        "memory/a.md:3: error: the id 'kiln' stands also in memory/b.md:2",
        "memory/b.md:2: error: the id 'kiln' stands also in memory/a.md:3",
    ]
    assert run("-w", memory.workspace.root, "check").code == 1


def test_odd_values_of_a_front_matter_are_named_with_their_line(make: Callable[..., Memory]) -> None:
    front = "---\nid: a\ntype: rumour\nconfidence: 7\nlinks: [{relation: uses}]\ncreated: 昨天\n---\n"
    assert said(make({"memory/a.md": front})) == [
        "memory/a.md:3: warning: the type 'rumour' is unknown: observation, entity, domain-summary",
        "memory/a.md:4: warning: 'confidence: 7' is no number from 0 to 1",
        "memory/a.md:5: warning: 'links: {'relation': 'uses'}' has no target",
        "memory/a.md:6: warning: 'created: 昨天' is no day such as 2026-03-14",
    ]


def test_nothing_is_wrong_with_the_sample_workspace() -> None:
    assert run("-w", SAMPLE, "check").out == "0 errors, 0 warnings\n"
