"""Providers of vectors: found by name, sent what they should be sent, and every way a service can fail told by kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipimem.errors import Usage
from pipimem.llm import Failed, Settings, embed_wire
from pipimem.llm.embedding import KNOWN, Embedder, embedder, traits
from pipimem.llm.retry import Clock
from tests.loopback import Service, serving
from tests.meanings import vector

pytest.importorskip("httpx2", reason="the vectors extra is not installed: its client was not tried")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        yield running
    embed_wire._PLAIN.clear()


def asked(service: Service, model: str = "box/words", environ: dict[str, str] | None = None) -> Any:
    made = cast(Any, embedder(f"compatible:{model}", Settings({"box": service.url}, environ or {})))
    made.clock = replace(Clock(), wait=lambda seconds, cancelled: None)
    return made


def same(found: Any, wanted: list[list[float]]) -> None:
    assert [[round(float(x), 3) for x in row] for row in found] == wanted


# Names


def test_a_name_finds_its_provider_and_nothing_is_loaded_or_asked() -> None:
    before = set(sys.modules)
    names = ["openai:text-embedding-3-small", "gemini:gemini-embedding-001", "ollama:bge-m3", "fastembed:x/y",
             "model2vec:minishlab/potion-base-8M", "sentence-transformers:x", "python:nowhere:at_all"]  # fmt: skip
    for name in names:
        made: Embedder = embedder(name, Settings(environ={}))
        assert (made.model_id, made.dim) == (name, 0)
    assert not {"httpx2", "fastembed", "numpy", "torch"} & (set(sys.modules) - before)


@pytest.mark.parametrize("name", ["", "openai", "openai:", "nobody:x", "openai:m@0", "openai:m@99999"])
def test_a_name_that_is_none_is_a_usage_error(name: str) -> None:
    with pytest.raises(Usage):
        embedder(name, Settings(environ={}))


def test_the_model_says_what_stands_before_a_query_and_which_languages_it_reads() -> None:
    assert traits("intfloat/multilingual-e5-large").query == "query: "
    assert traits("BAAI/bge-small-en-v1.5").languages == ("en",)
    assert traits("BAAI/bge-small-zh-v1.5").query.startswith("为这个句子")
    assert (traits("text-embedding-3-large").max_tokens, traits("text-embedding-3-large").retrieval) == (8191, True)
    assert traits("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2").languages == ()
    assert (traits("who-knows").scheme, traits("who-knows").retrieval) == ("", False)
    assert all(t.max_tokens >= 128 for _, t in KNOWN)


def test_another_package_adds_a_provider_and_cannot_take_our_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gull_pkg.py").write_text(
        "class Gull:\n    def __init__(self, model): self.model_id = 'gull:' + model\n\n"
        "def opened(model, settings): return Gull(model)\n"
    )
    info = tmp_path / "gull-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gull\nVersion: 1\n")
    points = "gull = gull_pkg:opened\nopenai = gull_pkg:opened\n"
    (info / "entry_points.txt").write_text(f"[pipimem.embedders]\n{points}[pipimem.rerankers]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    from pipimem.llm.reranking import reranker

    assert embedder("gull:海鸥").model_id == "gull:海鸥"
    assert reranker("gull:海鸥").model_id == "gull:海鸥"
    assert type(embedder("openai:x", Settings(environ={}))).__name__ == "Remote"


# The wire


def test_vectors_come_in_the_order_of_the_texts_packed_or_as_numbers(service: Service) -> None:
    texts = ["a login", "请假 两天", "nothing"]
    for packed in (True, False):
        service.base64 = packed
        model = asked(service)
        same(model.embed_documents(texts), [vector(t) for t in texts])
        assert model.dim == 9
    formats = [body.get("encoding_format") for _, body, _ in service.requests]
    assert formats == ["base64", "base64", None]
    asked(service).embed_documents(texts)  # what the server does not know it is not asked again
    assert "encoding_format" not in service.requests[-1][1]


def test_an_empty_batch_is_not_sent(service: Service) -> None:
    assert list(asked(service).embed_documents([])) == []
    assert list(asked(service).embed_queries([])) == []
    assert service.requests == []


def test_the_key_comes_from_the_environment_and_goes_into_the_header_alone(service: Service) -> None:
    asked(service, environ={"BOX_API_KEY": "k-" + "1234"}).embed_documents(["x"])
    path, body, headers = service.requests[0]
    assert (path, body["model"], headers["Authorization"]) == ("/v1/embeddings", "words", "Bearer k-1234")
    with pytest.raises(Failed, match="Set OPENAI_API_KEY") as raised:
        embedder("openai:x", Settings({"openai": service.url}, {})).embed_documents(["x"])
    assert (raised.value.kind, len(service.requests)) == ("key", 1)


def test_prefixes_and_dimensions_are_sent_as_the_model_wants_them(service: Service) -> None:
    model = asked(service, "box/multilingual-e5-small@4")
    model.embed_documents(["窑炉"])
    model.embed_queries(["窑"])
    assert service.texts == ["passage: 窑炉", "query: 窑"]
    assert {body["dimensions"] for _, body, _ in service.requests} == {4}
    assert model.dim == 4


@pytest.mark.parametrize(
    ("script", "kind"),
    [([401], "key"), ([402], "quota"), ([404], "unknown-model"), ([302], "no-completion"), ([500] * 9, "server"),
     ([429] * 9, "rate-limited"), ([413] * 9, "too-long")],
)  # fmt: skip
def test_a_refusal_has_a_kind_and_repeats_nothing_the_service_said(
    service: Service, script: list[int], kind: str
) -> None:
    service.script = list(script)
    with pytest.raises(Failed) as raised:
        asked(service).embed_documents(["x"])
    assert raised.value.kind == kind
    assert "sk-key" not in str(raised.value)


def test_a_server_that_stumbles_is_asked_again(service: Service) -> None:
    service.script = [500, 429]
    same(asked(service).embed_documents(["login"]), [vector("login")])
    assert len(service.requests) == 3


def test_a_query_is_not_asked_twice_for_nobody_waits_that_long(service: Service) -> None:
    service.script = [500]
    with pytest.raises(Failed):
        asked(service).embed_queries(["login"])
    assert len(service.requests) == 1


def test_one_text_that_the_service_refuses_does_not_stop_the_others(service: Service) -> None:
    service.refuses = "坏"
    texts = ["login", "坏的", "deploy", "备份", "oven"]
    found = list(asked(service).embed_documents(texts))
    assert [len(row) for row in found] == [9, 0, 9, 9, 9]
    assert [round(x, 3) for x in found[3]] == vector("备份")


def test_a_service_that_refuses_everything_is_asked_a_few_times_only(service: Service) -> None:
    service.script = [400] * 100
    with pytest.raises(Failed, match="rejected"):
        asked(service).embed_documents([f"text {n}" for n in range(64)])
    assert len(service.requests) <= 4


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>", b"[]", b"{}", b'{"data": []}', b'{"data": [{"embedding": [1]}]}', b'{"data": [{"embedding": "?"}]}',
     b'{"data": [{"embedding": []}, {"embedding": []}]}', b'{"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}',
     b'{"data": [{"embedding": ["x"]}, {"embedding": [1]}]}'],
)  # fmt: skip
def test_an_answer_that_is_no_pair_of_vectors_is_a_failure(service: Service, raw: bytes) -> None:
    service.raw = raw
    with pytest.raises(Failed) as raised:
        asked(service).embed_documents(["a", "b"])
    assert raised.value.kind == "no-completion"


def test_more_than_an_answer_may_hold_is_cut_off(service: Service) -> None:
    service.raw = b" " * (64 * 1024 + 8192 * 24 + 1)
    with pytest.raises(Failed) as raised:
        asked(service).embed_documents(["a"])
    assert raised.value.kind == "too-big"


def test_a_server_that_is_not_there_is_unreachable() -> None:
    model = cast(Any, embedder("compatible:x", Settings({"compatible": "http://127.0.0.1:9/v1"}, {})))
    model.clock = replace(Clock(), wait=lambda seconds, cancelled: None)
    with pytest.raises(Failed) as raised:
        model.embed_documents(["a"])
    assert raised.value.kind == "unreachable"


@pytest.mark.parametrize(
    ("url", "remote"),
    [("http://127.0.0.1:8/v1", False), ("http://localhost/v1", False), ("http://[::1]:8/v1", False),
     ("http://localhost.example/v1", True), ("https://api.example/v1", True), ("http://127.0.0.1.example/v1", True)],
)  # fmt: skip
def test_texts_stay_on_this_machine_only_where_the_address_is_its_own(url: str, remote: bool) -> None:
    assert embedder("compatible:x", Settings({"compatible": url}, {})).remote is remote


# In this process


def test_a_function_of_the_users_own_is_a_model() -> None:
    model = embedder("python:tests.meanings:subjects")
    assert list(model.embed_documents(["备份"])) == list(model.embed_queries(["备份"])) == [vector("备份")]
    assert (model.dim, model.remote) == (9, False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("python:nowhere:f", "library"),
        ("python:tests.meanings:missing", "library"),
        ("python:json:loads", "no-completion"),
    ],
)
def test_code_that_is_not_there_or_breaks_is_a_failure_by_name(name: str, kind: str) -> None:
    with pytest.raises(Failed) as raised:
        embedder(name).embed_documents(["x"])
    assert raised.value.kind == kind


@pytest.mark.parametrize("provider", ["fastembed", "model2vec", "sentence-transformers"])
def test_a_missing_library_is_said_with_the_command_that_installs_it(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fastembed", "model2vec", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Failed, match="pip install") as raised:
        embedder(f"{provider}:some/model").embed_queries(["x"])
    assert raised.value.kind == "library"


def test_what_fastembed_writes_to_its_own_log_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silenced: list[str] = []
    log = SimpleNamespace(logger=SimpleNamespace(disable=silenced.append))
    monkeypatch.setitem(sys.modules, "loguru", cast(Any, log))
    with pytest.raises(Failed):
        embedder("fastembed:some/model", Settings(folders={"some/model": str(tmp_path)})).embed_queries(["x"])
    assert silenced == ["fastembed"]


def test_a_model_whose_files_are_nowhere_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "fastembed.py").write_text(
        "class TextEmbedding:\n    def __init__(self, *a, **k): raise ValueError('hub')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "fastembed", raising=False)
    with pytest.raises(Failed, match=r"cannot be opened \(ValueError\).*index.folders"):
        embedder("fastembed:some/model").embed_queries(["x"])
    monkeypatch.delitem(sys.modules, "fastembed", raising=False)
