"""What a note's front matter says of it: every key optional, nothing refused, what is odd kept and named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipimem import knowledge
from pipimem.front import read_front
from pipimem.knowledge import KEYS, Knowledge, Link
from pipimem.memory import Memory

WHOLE = """---
id: broker-runbook
type: entity
domain: [ops, 运维]
entities: [mosquitto, cn-gw, mosquitto, 云坞陶社]
confidence: 0.85
source:
  origin: extracted
  trajectories: [s-1, s-2]
  agentId: soot
links:
  - {target: incident, relation: caused-by, layer: causal, weight: 0.9}
  - target: "[[glossary]]"
  - plain
created: 2026-10-14
updated: 2026-10-15T08:00:00+08:00
supersedes: old-runbook
conflicts: [other]
tags: [mqtt, "#证书"]
aliases: 代理手册
error: KW-E17
fix: [reload, renew the certificate]
---
""".encode()


def read(values: dict[str, Any]) -> Knowledge:
    found = knowledge.read(values)
    assert found is not None
    return found


def test_every_key_is_read() -> None:
    found = read(read_front(WHOLE)[0])
    assert (found.id, found.type, found.domains) == ("broker-runbook", "entity", ("ops", "运维"))
    assert found.entities == ("mosquitto", "cn-gw", "云坞陶社")
    assert found.confidence == 0.85
    assert (found.source.origin, found.source.trajectories, found.source.agent) == ("extracted", ("s-1", "s-2"), "soot")
    assert found.links == (
        Link("incident", "caused-by", "causal", 0.9), Link("glossary", "related-to", "semantic", 0.5), Link("plain"),
    )  # fmt: skip
    assert (found.created, found.updated[:10]) == ("2026-10-14", "2026-10-15")
    assert (found.supersedes, found.conflicts) == (("old-runbook",), ("other",))
    assert (found.tags, found.aliases) == (("mqtt", "证书"), ("代理手册",))
    assert found.failure == {"error": ("KW-E17",), "fix": ("reload", "renew the certificate")}
    assert found.problems == []


def test_a_front_matter_without_knowledge_is_none() -> None:
    assert knowledge.read({"title": "x", "layout": "post"}) is None
    assert knowledge.read({}) is None


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"type": "rumour"}, "type"),
        ({"confidence": "high"}, "confidence"),
        ({"confidence": 7}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"id": ["a", "b"]}, "id"),
        ({"entities": {"a": 1}}, "entities"),
        ({"links": [{"relation": "uses"}]}, "links"),
        ({"links": [{"target": "x", "layer": "spatial"}]}, "links"),
        ({"links": {"target": "x", "weight": 3}}, "links"),
        ({"source": [1]}, "source"),
        ({"source": {"origin": "dreamt"}}, "origin"),
        ({"created": "last week"}, "created"),
    ],
)
def test_an_odd_value_is_named_and_stops_nothing(values: dict[str, Any], key: str) -> None:
    found = read({**values, "tags": ["kept"]})
    assert [name for name, _ in found.problems] == [key]
    assert found.tags == ("kept",)


def test_an_unknown_type_layer_and_relation_are_kept() -> None:
    found = read({"type": "rumour", "links": [{"target": "x", "layer": "spatial", "relation": "smells-of"}]})
    assert found.type == "rumour"
    assert found.links == (Link("x", "smells-of", "spatial"),)


PLAIN = st.sampled_from([None, True, 0.5, -1, 7, "", " ", "窑", "a, b", "[[x]]", date(2026, 1, 1), float("nan")])
INNER = PLAIN | st.lists(PLAIN, max_size=2) | st.dictionaries(st.sampled_from(["target", "weight", "x"]), PLAIN)
VALUES = INNER | st.lists(INNER, max_size=3)


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), VALUES, max_size=6))
def test_no_value_breaks_the_reading(values: dict[str, Any]) -> None:
    found = knowledge.read(values)
    if found is not None:
        assert 0 <= found.confidence <= 1
        assert all(link.target and 0 <= link.weight <= 1 for link in found.links)


def test_a_note_that_another_supersedes_or_contradicts_is_not_recalled(make: Callable[..., Memory]) -> None:
    note = "---\nid: {}\n{}\n---\n\n# {}\n\nThe gateway timeout 网关超时 is {} seconds.\n"
    memory = make({
        "memory/old.md": note.format("k-old", "tags: [a]", "Old", 30),
        "memory/new.md": note.format("k-new", "supersedes: [k-old]", "New", 45),
        "memory/one.md": note.format("k-one", "conflicts: [k-two]", "One", 60).replace("gateway", "kiln"),
        "memory/two.md": note.format("k-two", "tags: [b]", "Two", 90).replace("gateway", "kiln"),
    })  # fmt: skip
    assert memory.search("gateway timeout")[0].path == "memory/new.md"
    assert {hit.path: hit.superseded for hit in memory.search("gateway timeout", limit=2)}["memory/new.md"] is False
    recall = memory.recall("what is the gateway timeout?", always=True)
    assert [item.hit.path for item in recall.items] == ["memory/new.md"]
    recall = memory.recall("what is the kiln timeout?", always=True)
    assert not {"memory/one.md", "memory/two.md"} & {item.hit.path for item in recall.items}
    assert any("in conflict with" in reason for reason in map(str, recall.trace.values()))


def test_a_confidence_in_quotation_marks_is_a_number() -> None:
    found = knowledge.read({"confidence": "0.4"})
    other = knowledge.read({"confidence": "高"})
    assert found
    assert other
    assert (found.confidence, found.problems) == (0.4, [])
    assert [key for key, _ in other.problems] == ["confidence"]
