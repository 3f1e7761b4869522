"""Search by meaning, measured: words alone against words with vectors, and both with a cross-encoder on top.

    python -m tests.bench.vectors sets --model fastembed:BAAI/bge-small-en-v1.5 [--weights 0.1,0.25] [SET …]
    python -m tests.bench.vectors rerank --reranker fastembed:Xenova/ms-marco-MiniLM-L-12-v2 [--most 400] [SET …]
    python -m tests.bench.vectors synonyms --model …
    python -m tests.bench.vectors scale [--vectors 100000] [--dimensions 384]

`--folder MODEL=DIR` names the files of a model where no hub can be reached, `--keep DIR` keeps workspaces and vectors
for the next run. The sets are those of `sets.py`; weights are compared on `--split dev`, `test` is reported.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pipimem
from pipimem.errors import Usage
from pipimem.index.fuse import by_likeness
from pipimem.memory import Memory
from tests.bench.sets import BENCH, PARITY, Places

ENGLISH = ["locomo", "lifebench-en", "memorybank-en", "scifact", "xquad-en"]
CHINESE = ["lifebench-zh", "memorybank-zh", "rgb-zh", "dureader", "drcd", "cmrc2018", "xquad-zh"]
ACROSS = ["xquad-zh-en", "xquad-en-zh"]
FIGURES = ("R@1", "R@5", "R@10", "nDCG@10")
DEPTH = 100
SYNONYMS = Path(__file__).parent / "synonyms.jsonl"


@contextmanager
def settings(options: argparse.Namespace, **index: object) -> Iterator[None]:
    """The user's own config for the time of a measurement."""
    folders = dict(pair.split("=", 1) for pair in options.folder)
    lines = ["[index]", *(f"{key} = {json.dumps(value)}" for key, value in index.items() if value)]
    lines += ["[index.folders]", *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in folders.items())]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "config.toml")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        before = os.environ.get("PIPIMEM_CONFIG")
        os.environ["PIPIMEM_CONFIG"] = str(path)
        try:
            yield
        finally:
            os.environ.pop("PIPIMEM_CONFIG") if before is None else os.environ.update(PIPIMEM_CONFIG=before)


def workspace(options: argparse.Namespace, name: str) -> Path:
    """The workspace of a set, made where it is missing."""
    root = Path(options.keep, name)
    if not (root / "queries.jsonl").exists():
        make = [sys.executable, str(options.bench / "to_workspace.py"), name, str(root), *PARITY.get(name, [])]
        subprocess.run(make, check=True, capture_output=True)
    (root / "pipimem.toml").touch()
    return root


def questions(options: argparse.Namespace, root: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (root / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [q for q in rows if q.get("split", options.split) == options.split and q.get("answerable", True)]
    step = max(1, len(rows) // options.most) if options.most else 1
    return rows[::step]


def ranked(memory: Memory, root: Path, queries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each query the ids of its best sections, asked in its own channel where it has one."""
    places, rows = Places(root), []
    for query in queries:
        scope = query.get("scope")
        channel = str(scope) if scope and (root / "channels" / str(scope)).is_dir() else None
        try:
            hits = memory.search(str(query["query"]), channel, all_channels=channel is None, limit=DEPTH)
        except Usage:
            hits = []
        ids = dict.fromkeys(places.section(h.path, h.line) for h in hits)
        rows.append({"id": query["id"], "ranked": [i for i in ids if i]})
    return rows


def scored(
    options: argparse.Namespace, queries: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]
) -> list[float]:
    """The figures by the sets' own scorer."""
    sys.path.insert(0, str(options.bench))
    score = importlib.import_module("score")

    by_id = {row["id"]: row["ranked"] for row in rows}
    totals = [[score.METRICS[figure](by_id[q["id"]], frozenset(q["relevant"])) for q in queries] for figure in FIGURES]
    return [sum(values) / len(values) for values in totals]


def line(*cells: object) -> None:
    print("| " + " | ".join(f"{c:.3f}" if isinstance(c, float) else str(c) for c in cells) + " |", flush=True)


def embedded(root: Path) -> None:
    with pipimem.open(str(root)) as memory:
        memory.index()
        started = time.process_time()
        done = memory.embed()
        if done.texts:
            print(f"{root.name}: {done.texts} texts, {time.process_time() - started:.0f} CPU s", file=sys.stderr)


def sets(options: argparse.Namespace) -> None:
    """Words alone against words with vectors, set by set."""
    line("set", "questions", "weight", *(f"{f} words" for f in FIGURES), *FIGURES, "nDCG@10 more")
    line(*["---"] * (4 + 2 * len(FIGURES)))
    gains: dict[str, list[float]] = {}
    for name in options.sets or [*ENGLISH, *CHINESE, *ACROSS]:
        root = workspace(options, name)
        queries = questions(options, root)
        with settings(options, vectors=options.model):
            embedded(root)
        if not queries:
            continue
        with pipimem.open(str(root)) as memory:
            memory.patient = False
            words = scored(options, queries, ranked(memory, root, queries))
        for weight in options.weights.split(","):
            with (
                settings(options, vectors=options.model, vector_weight=float(weight)),
                pipimem.open(str(root)) as memory,
            ):
                both = scored(options, queries, ranked(memory, root, queries))
                assert memory.meaning is not None
                assert not memory.meaning.missing, memory.meaning.missing
            gains.setdefault(weight, []).append(both[-1] - words[-1])
            line(name, len(queries), float(weight) or "by the model", *words, *both, both[-1] - words[-1])
    for weight, more in gains.items():
        print(f"weight {weight}: nDCG@10 {sum(more) / len(more):+.4f} in the mean, {min(more):+.4f} at worst")


def rerank(options: argparse.Namespace) -> None:
    """Words alone against the cross-encoder's order of their first 20."""
    line("set", "questions", *(f"{f} words" for f in FIGURES), *FIGURES, "CPU s a question")
    line(*["---"] * (3 + 2 * len(FIGURES)))
    for name in options.sets or ["locomo", "memorybank-en"]:
        root = workspace(options, name)
        queries = questions(options, root)
        with pipimem.open(str(root)) as memory:
            memory.index()
            memory.patient = False
            words = scored(options, queries, ranked(memory, root, queries))
        with settings(options, vectors=options.model, reranker=options.reranker), pipimem.open(str(root)) as memory:
            if options.model:
                embedded(root)
            assert memory.meaning is not None
            memory.meaning.seconds = options.seconds
            memory.search("warm", all_channels=True)
            started, late = time.process_time(), 0
            rows = []
            for query in queries:
                rows += ranked(memory, root, [query])
                late += bool(memory.meaning.missing)
            seconds = (time.process_time() - started) / len(queries)
        line(name, len(queries), *words, *scored(options, queries, rows), seconds)
        if late:
            print(f"{late} of {len(queries)} answers came without a model: {memory.meaning.missing}")


def synonyms(options: argparse.Namespace) -> None:
    """Questions that share no word with their answer, in both languages and across them: recall@5."""
    rows = [json.loads(text) for text in SYNONYMS.read_text(encoding="utf-8").splitlines()]
    notes = [row for row in rows if "note" in row]
    asked = [row for row in rows if "ask" in row]
    with tempfile.TemporaryDirectory() as scratch:
        body = "".join(f"- {row['note']} <!-- {row['id']} kind=fact -->\n" for row in notes)
        Path(scratch, "pipimem.toml").touch()
        Path(scratch, "MEMORY.md").write_text(f"# Memory\n\n## Facts\n\n{body}", encoding="utf-8")
        with settings(options, vectors=options.model):
            embedded(Path(scratch))
            line("questions", "n", "recall@1 words", "recall@5 words", "recall@1", "recall@5")
            line(*["---"] * 6)
            for group in dict.fromkeys(row["group"] for row in asked):
                chosen = [row for row in asked if row["group"] == group]
                with pipimem.open(scratch) as memory:
                    found = {}
                    for patient in (False, True):
                        memory.patient = patient
                        answers = [[h.ref for h in _asked(memory, row["ask"])] for row in chosen]
                        found[patient] = [
                            sum(row["id"] in refs[:k] for row, refs in zip(chosen, answers, strict=True)) / len(chosen)
                            for k in (1, 5)
                        ]
                line(group, len(chosen), *found[False], *found[True])


def _asked(memory: Memory, text: str) -> list[Any]:
    try:
        return memory.search(text, limit=5)
    except Usage:
        return []


def scale(options: argparse.Namespace) -> None:
    """Warm hybrid search over many vectors: random ones for the passages of the scale workspace, no model asked."""
    import numpy as np

    from pipimem.index import vectors
    from pipimem.index.near import Near
    from pipimem.index.search import Scope

    root = Path(options.keep, f"scale-{options.vectors}")
    if not (root / "pipimem.toml").exists():
        make = [sys.executable, str(options.bench / "make_scale.py"), str(options.vectors), str(root)]
        subprocess.run(make, check=True, capture_output=True)
        (root / "pipimem.toml").touch()
    random = np.random.default_rng(11)
    path = root / ".pipimem" / "cache" / vectors.name_of("random", "")
    with pipimem.open(str(root)) as memory:
        memory.index()
        _fill(memory, path, options, random)
        store = vectors.Store(str(path))
        near = Near(store)
        rows = [json.loads(text) for text in (root / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
        asked = (
            [str(row["query"]) for row in rows][:: max(1, len(rows) // options.most)]
            if options.most
            else [str(r["query"]) for r in rows]
        )
        before, started, cpu = _peak(), time.perf_counter(), time.process_time()
        queries = random.standard_normal((len(asked), options.dimensions)).astype(np.float32)
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        db = memory.passages.reader(None)
        near.rank(db, queries[0], Scope(None), 100)
        print(f"loading: {time.perf_counter() - started:.2f} s wall, {time.process_time() - cpu:.2f} s CPU, vectors in memory {near.memory() / 1e6:.0f} MB, "
              f"peak {before / 1024:.0f} -> {_peak() / 1024:.0f} MB")  # fmt: skip
        size = sum(p.stat().st_size for p in path.parent.glob(path.stem + "*"))
        print(f"on disk: {size / 1e6:.0f} MB of vectors, {store.count()} texts")
        for name, scope in (("everything", Scope(None)), ("a channel", Scope([memory.channels()[0].id]))):
            _timed(memory, near, asked, queries, scope, name)
        store.close()


def _fill(memory: Memory, path: Path, options: argparse.Namespace, random: Any) -> None:
    """Random vectors of length one for every passage, without asking a model."""
    import numpy as np

    from pipimem.index import vectors

    if path.exists():
        return
    pieces = list(vectors.pieces(memory.passages.reader(None)))[: options.vectors]
    store = vectors.Store(str(path), write=True)
    for at in range(0, len(pieces), 10_000):
        part = pieces[at : at + 10_000]
        made = random.standard_normal((len(part), options.dimensions)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        store.place({piece.key: piece.key for piece in part})
        store.add({piece.key: row.tobytes() for piece, row in zip(part, made, strict=True)}, options.dimensions)
    store.close()


def _timed(memory: Memory, near: Any, asked: Sequence[str], queries: Any, scope: Any, name: str) -> None:
    def one(number: int) -> None:
        memory.passages.search(
            asked[number],
            scope,
            10,
            near=lambda db, _, words, s: by_likeness(near.rank(db, queries[number], s, 100), 0.3, words),
        )

    for what, act in (("words", lambda n: memory.passages.search(asked[n], scope, 10)), ("hybrid", one)):
        walls, cpus = [], []
        for number in range(len(asked)):
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                act(number)
            except Usage:
                continue
            walls.append(1000 * (time.perf_counter() - wall))
            cpus.append(1000 * (time.process_time() - cpu))
        p50, p95 = ([sorted(values)[int(len(values) * share)] for values in (walls, cpus)] for share in (0.5, 0.95))
        print(f"{name}, {what}, {len(walls)} questions: wall p50 {p50[0]:.1f} / p95 {p95[0]:.1f} ms,"
              f" CPU p50 {p50[1]:.1f} / p95 {p95[1]:.1f} ms")  # fmt: skip


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    """Runs one measurement; 0 also when the sets are not there, with a clear word."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sets", "rerank", "synonyms", "scale"])
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--model", default="")
    parser.add_argument("--reranker", default="")
    parser.add_argument("--folder", action="append", default=[], metavar="MODEL=DIR")
    parser.add_argument("--weights", default="0")
    parser.add_argument("--most", type=int, default=0, help="questions of a set at most")
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--seconds", type=float, default=3.0, help="a model is waited for; more on a busy machine")
    parser.add_argument("--split", choices=("test", "dev"), default="test")
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--keep", default=str(Path(tempfile.gettempdir(), "pipimem-vectors")))
    options = parser.parse_intermixed_args()
    if options.what != "synonyms" and not (options.bench / "to_workspace.py").exists():
        print(f"skipped: the retrieval sets are not in '{options.bench}'")
        return 0
    {"sets": sets, "rerank": rerank, "synonyms": synonyms, "scale": scale}[options.what](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
