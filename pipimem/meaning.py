"""Search by meaning over an opened workspace: which model is asked, what it is sent, what is missing when it is not.

Everything here is an addition: without a model, with one that is down, slow or half done, words answer alone and
`missing` says why. Only the user's own config names a model; a workspace may forbid it (docs/decisions/0034).
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from pipimem import safety
from pipimem.errors import Error, Refused, Usage
from pipimem.index import schema, vectors
from pipimem.index.place import MEMORY
from pipimem.llm import Failed, Settings
from pipimem.llm.embed_local import called
from pipimem.llm.embedding import Embedder, embedder
from pipimem.llm.reranking import Reranker, checked, reranker
from pipimem.text import has_han, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from pipimem.index import Hit, Scope
    from pipimem.index.near import Near
    from pipimem.index.schema import sqlite3
    from pipimem.index.vectors import Piece, Store
    from pipimem.opened import Opened

    T = TypeVar("T")

SECONDS = 3.0
"""What an answer waits for a model at most, loading it included (design: bounded to 3 s, failing open)."""
SLOW, TIRED = 10.0, 60.0
"""Seconds for which a model that was too slow, or failed, is not asked again while answering."""
_TIRED: dict[str, tuple[float, str]] = {}
"""Until when a model is left alone and why, in all workspaces of this process."""
PROBE = "deploy window"
"""What a model is asked to see whether it answers."""
UNDONE = "run 'pipimem index --vectors'"
INSTALL = "Run: pip install 'pipimem[vectors]'"
NUMPY = f"numpy is missing. {INSTALL}"
NEAREST = 100
"""Passages that vectors name; what stands lower adds nothing to the first twenty."""
TOP = 20
"""Passages a reranker reads."""
RETRIEVAL, OTHER = 0.3, 0.1
"""Weights, chosen on the dev splits of the shared sets (docs/benchmarks.md): of models trained to retrieve, by how far
a passage stands out (`fuse.by_likeness`), of others by its place."""
FEW = 200
"""Texts that are embedded without being asked for: a day's edits, a cent or a few seconds."""
REMEMBERED = 64
BATCH_TOKENS = 100_000
"""Estimated tokens of one request; services take 300,000."""


class Embedded:
    """What embedding did, or with a dry run would do: texts and their tokens (an estimate), the texts there are, those
    that wait, and the passages that no model is shown (`skipped`).
    """

    __slots__ = ("model", "remote", "skipped", "texts", "tokens", "total", "waiting")

    def __init__(self, model: str, *, remote: bool) -> None:
        self.model = model
        self.remote = remote
        self.texts = self.tokens = self.total = self.waiting = self.skipped = 0


class Meaning:
    """The models of one opened workspace. `missing` names what did not help with the last answer, "" where all did."""

    def __init__(self, memory: Opened) -> None:
        self.memory = memory
        memory.workspace.trust()
        self.config = memory.workspace.config
        self.missing: list[str] = []
        self.seconds = SECONDS
        self.wanted, self.off = _wanted(self.config, memory.workspace.root)
        servers, folders = self.config["llm.servers"], self.config["index.folders"]
        self.settings = Settings(servers=servers, folders=folders)
        self._embedders: dict[str, Embedder] = {}
        self._reranker: Reranker | None = None
        self._near: tuple[str, Near] | None = None
        self._queries: dict[tuple[str, str], Any] = {}

    def close(self) -> None:
        """Lets go of the vectors, in memory and on disk."""
        if self._near is not None:
            self._near[1].store.close()
            self._near = None

    @property
    def depth(self) -> int:
        """How many hits a search needs at least, for the reranker to have its 20."""
        return TOP if self.config["index.reranker"] and self.config["index.meaning"] != "off" else 0

    # Asking

    def near(self, db: sqlite3.Connection, text: str, words: int, scope: Scope) -> list[tuple[int, float]] | None:
        """The rows in scope that mean most nearly the same as `text`, with their share; None where words must do.

        `words` is the number of its telling words.
        """
        self.missing = [m for m in self.missing if m.startswith("reranker")]
        if not self.wanted:
            return None
        try:
            found = self._opened()
            if found is None:
                self.missing.append(f"vectors: {self._nothing()}")
                return None
            model, near = found
            asked = self._embedder(model)
            if not _reads(self._languages(asked), text):
                self.missing.append(f"vectors: '{model}' does not read this language")
                return None
            vector = self._query(asked, text)
            _same(model, len(vector), near.dimension)
            return self._shares(asked, near.rank(db, vector, scope, NEAREST), words)
        except ImportError:
            self.missing.append(f"vectors: {NUMPY}")
        except Error as error:
            self.missing.append(f"vectors: {error}")
        except vectors.BROKEN as error:
            self.close()
            self.missing.append(f"vectors: their store cannot be read ({error})")
        return None

    def _opened(self) -> tuple[str, Near] | None:
        """The model whose vectors answer, and they: the wanted one, or while it is not done the one before it."""
        from pipimem.index.near import Near

        path = self._choice()
        if path is None:
            return None
        if self._near is None or self._near[1].store.path != path or self._near[1].outdated():
            self.close()
            try:
                store = vectors.Store(path)
            except schema.Absent:
                return None
            self._near = store.facts["model"], Near(store)
        return self._near

    def _choice(self) -> str | None:
        """The store to answer from: the wanted model's once it is complete, else another complete one, else its."""
        own = self.path()
        if self._near is not None and self._near[1].store.path == own and self._near[1].store.facts.get("complete"):
            return own
        facts = {path: _facts(path) for path in vectors.stores(os.path.dirname(own))}
        if facts.get(own, {}).get("complete"):
            return own
        for path, known in facts.items():
            if path != own and known.get("complete") and self._may(known.get("model", "")):
                return path
        return own if facts.get(own, {}).get("dimension") else None

    def _may(self, model: str) -> bool:
        """Whether the model of an older store may still be asked: one of this machine, or of the service that is asked
        anyway; code of the user's own only where config names it.
        """
        if not model or model.startswith("python:"):
            return False
        try:
            old, new = self._embedder(model), self._embedder(self.wanted)
        except Error:
            return False
        return not old.remote or (new.remote and _service(old) == _service(new))

    def _nothing(self) -> str:
        """Why no vectors answer."""
        facts = [_facts(path) for path in vectors.stores(os.path.dirname(self.path()))]
        left = next((f["model"] for f in facts if f.get("complete") and f.get("model")), "")
        if not left:
            return f"nothing is embedded yet: {UNDONE}"
        left = f"'{left}', a service or code that the settings no longer name, is not asked"
        return f"nothing is embedded yet by '{self.wanted}', and {left}: {UNDONE}"

    def _embedder(self, model: str) -> Embedder:
        if model not in self._embedders:
            made = self._embedders[model] = embedder(model, self.settings)
            if self.config["index.meaning"] == "local" and made.remote:
                del self._embedders[model]
                raise Refused(f"'{model}' is not on this machine.", "'index.meaning' is 'local' here.")
        return self._embedders[model]

    def _languages(self, model: Embedder) -> Sequence[str]:
        if hasattr(model, "describe"):
            self._bounded(model.model_id, model.describe)
        return self.config["index.vector_languages"] or model.traits.languages

    def _shares(self, model: Embedder, near: Sequence[tuple[int, float]], words: int) -> list[tuple[int, float]]:
        from pipimem.index.fuse import by_likeness, by_place

        weight = float(self.config["index.vector_weight"])
        if model.traits.retrieval:
            return by_likeness(near, weight or RETRIEVAL, words)
        return by_place(near, weight or OTHER)

    def _query(self, model: Embedder, text: str) -> Any:
        """The vector of a query, with its secrets taken out before it is sent."""
        key = model.model_id, text
        if key not in self._queries:
            vector = self._asked(model, self.memory.redacted(text)[: vectors.CLIPPED])
            if len(self._queries) >= REMEMBERED:
                self._queries.clear()
            self._queries[key] = vector
        return self._queries[key]

    def _asked(self, model: Embedder, text: str) -> Any:
        """The vector of a query as it is sent, of length one."""
        import numpy  # noqa: F401 - where it is missing no model is asked

        return self._bounded(model.model_id, lambda: _one(model.model_id, model.embed_queries([text])))

    def _bounded(self, name: str, act: Callable[[], T]) -> T:
        """What `act` gives within 3 seconds. Raises `Failed`; a model that did is left alone for a while."""
        until, why = _TIRED.get(name, (0.0, ""))
        if time.monotonic() < until:
            raise Failed("cancelled", why)
        try:
            return within(self.seconds, name, act)
        except Failed as failure:
            slow = failure.kind == "timeout"  # a model that was loading answers soon
            _TIRED[name] = time.monotonic() + (SLOW if slow else TIRED), str(failure)
            raise

    # Reranking

    def reranked(self, query: str, hits: list[Hit]) -> list[Hit]:
        """The best 20 in the order in which a cross-encoder puts them, the others behind as they were.

        What holds a secret or speaks to the assistant is not sent, and keeps its place.
        """
        self.missing = [m for m in self.missing if not m.startswith("reranker")]
        name = str(self.config["index.reranker"])
        if not name or self.config["index.meaning"] == "off" or len(hits) < 2:
            return hits
        places = [n for n, hit in enumerate(hits[:TOP]) if not hit.verdict]
        try:
            model = self._rerank_model(name)
            read = self.config["index.reranker_languages"] or model.languages
            if not _reads(read, query):
                self.missing.append(f"reranker: '{name}' does not read this language")
                return hits
            sent = self.memory.redacted(query)
            texts = [vectors.meant(hits[n].heading, hits[n].text) for n in places]
            scores = self._scores(model, sent, texts)
        except Error as error:
            self.missing.append(f"reranker: {error}")
            return hits
        for place, score in zip(places, scores, strict=True):
            hits[place].signals["reranked"] = round(score, 4)
        order = sorted(range(len(places)), key=lambda n: (-scores[n], n))
        moved = dict(zip(places, (hits[places[n]] for n in order), strict=True))
        return [moved.get(n, hit) for n, hit in enumerate(hits)]

    def _rerank_model(self, name: str) -> Reranker:
        self._reranker = self._reranker or reranker(name, self.settings)
        if self.config["index.meaning"] == "local" and self._reranker.remote:
            raise Refused(f"'{name}' is not on this machine.", "'index.meaning' is 'local' here.")
        return self._reranker

    def _scores(self, model: Reranker, query: str, texts: Sequence[str]) -> Sequence[float]:
        name = str(self.config["index.reranker"])
        return self._bounded(f"reranker {name}", lambda: checked(name, model.scores(query, texts), len(texts)))

    # Trying

    def probe(self) -> str:
        """Has the wanted model, and the one that answers while it is not done, embed two words for real.

        "" when what comes can be compared, else why not. Each is waited for as long as an answer would wait.
        """
        try:
            own, used = self.path(), self._choice()
            known = {self.wanted: _facts(own)}
            if used not in (None, own):
                facts = _facts(str(used))
                known[facts["model"]] = facts
            for name, facts in known.items():
                _same(name, len(self._asked(self._embedder(name), PROBE)), int(facts.get("dimension", "0")))
        except ImportError:
            return NUMPY
        except (Error, *vectors.BROKEN) as error:
            return str(error)
        return ""

    def probe_reranker(self) -> str:
        """Has the reranker order two texts; "" when it does, else why not. Waits as `probe` does."""
        try:
            self._scores(self._rerank_model(str(self.config["index.reranker"])), PROBE, PROBE.split())
        except Error as error:
            return str(error)
        return ""

    # Embedding

    def path(self) -> str:
        """Where the wanted model's vectors are: beside the index."""
        at = self.memory.passages.path()
        if at == MEMORY:
            raise Refused("Vectors can be kept nowhere: neither the workspace nor the user's cache can be written.")
        model = self._embedder(self.wanted)
        return os.path.join(os.path.dirname(at), vectors.name_of(model.model_id, model.traits.scheme))

    def embed(
        self, *, dry_run: bool = False, most: int | None = None, said: Callable[[int, int], None] | None = None,
        before: Callable[[Embedded], None] | None = None, anew: bool = True,
    ) -> Embedded:  # fmt: skip
        """Brings the vectors up to date with the index, at most `most` texts of them; `dry_run` only counts.

        Each batch is kept at once, so what was killed goes on where it was. No lock is held while the model works, but
        a second process that wants the same is refused. `before` is told what is about to be sent (texts that wait,
        their tokens), `said(done, all)` of progress. The model is tried first: where it has another dimension than
        before, all is embedded anew, without `anew` nothing is. Raises `Failed`.
        """
        if not self.wanted:
            raise Usage(f"There is no model for vectors: {self.off}.", "Set 'index.vectors' in your own config.")
        self.memory.ready()
        model, path = self._embedder(self.wanted), self.path()
        if hasattr(model, "describe"):
            model.describe()
        done = Embedded(self.wanted, remote=model.remote)
        if dry_run:
            self._count(path, done)
            return done
        self.close()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with vectors.alone(path) as first:
            if not first:
                raise Refused("Another process is embedding this workspace.", "It keeps every batch; wait for it.")
            store = vectors.Store(path, write=True)
            try:
                store.settle()
                store.note({"model": self.wanted, "scheme": model.traits.scheme})
                self._try(store, model, anew=anew)
                self._fill(store, model, done, most, said or (lambda embedded, all_of_them: None), before)
                store.settle()
            finally:
                store.close()
        return done

    def keep_up(self, *, slices: bool) -> Embedded:
        """Embeds what is due by the way: a day's edits; with `slices` part of more, where nothing leaves the machine.

        Only in a workspace that was embedded before, by the wanted model or by another: the first time somebody asks
        for it, having seen what it costs. Else only counts. Raises as `embed` does.
        """
        due = self.embed(dry_run=True)
        before = any(_facts(path).get("complete") for path in vectors.stores(os.path.dirname(self.path())))
        if due.waiting and before and (due.waiting <= FEW or (slices and not due.remote)):
            return self.embed(most=FEW, anew=False)
        return due

    def _try(self, store: Store, model: Embedder, *, anew: bool) -> None:
        """Asks the model for one vector; with `anew` a store of another dimension is emptied. Raises `Failed`."""
        try:
            dimension = len(_one(self.wanted, called(self.wanted, model.embed_documents, [PROBE])))
        except ImportError:
            raise Failed("library", "Vectors need a library that is missing: numpy.", INSTALL) from None
        if anew and store.dimension not in (0, dimension):
            store.empty()
        _same(self.wanted, dimension, store.dimension)

    def _count(self, path: str, done: Embedded) -> None:
        try:
            store: Store | None = vectors.Store(path)
        except schema.Absent:
            store = None
        _, todo, _ = self._waiting(store, done)
        done.waiting = len(todo)
        done.tokens = self._tokens(todo.values())
        if store is not None:
            store.close()

    def _tokens(self, pieces: Iterable[Piece]) -> int:
        return sum(tokens(text) for piece in pieces if (text := self._safe(piece)))

    def _fill(
        self, store: Store, model: Embedder, done: Embedded, most: int | None, said: Callable[[int, int], None],
        before: Callable[[Embedded], None] | None,
    ) -> None:  # fmt: skip
        live, todo, places = self._waiting(store, done)
        store.place(places)
        chosen = sorted(todo.items(), key=lambda item: item[1].end - item[1].start)[:most]
        if before is not None:
            due = Embedded(self.wanted, remote=model.remote)
            due.total, due.waiting, due.tokens = done.total, len(chosen), self._tokens(piece for _, piece in chosen)
            before(due)
        at = 0
        while at < len(chosen):
            batch: list[tuple[bytes, str]] = []
            size = 0
            while at < len(chosen) and len(batch) < model.batch_size and size < BATCH_TOKENS:
                key, piece = chosen[at]
                text = self._safe(piece)
                at += 1
                if text and vectors.text_key(text) == key:
                    batch.append((key, text))
                    size += tokens(text)
            if batch:
                given = called(self.wanted, model.embed_documents, [text for _, text in batch])
                _add(store, self.wanted, [key for key, _ in batch], given)
                done.texts += len(batch)
                done.tokens += size
                said(done.texts, len(chosen))
        done.waiting = len(todo) - len(chosen)
        if not done.waiting:
            store.finish(live, int(time.time() // 86400))
            _sweep(store.path)

    def _waiting(
        self, store: Store | None, done: Embedded
    ) -> tuple[list[bytes], dict[bytes, Piece], dict[bytes, bytes]]:
        """Keys of all passages; texts without a vector, each with a passage of it; the texts of new passages."""
        db = self.memory.passages.reader(None)
        by_key = {piece.key: piece for piece in vectors.pieces(db)}
        live = list(by_key)
        known = store.places(live) if store else {}
        places: dict[bytes, bytes] = {}
        for key, piece in by_key.items():
            if key not in known:
                text = self._safe(piece)
                places[key] = vectors.text_key(text) if text else b""
        texts: dict[bytes, Piece] = {}
        for key, text_key in (*known.items(), *places.items()):
            if text_key:
                texts.setdefault(text_key, by_key[key])
        have = store.have(list(texts)) if store else set()
        done.total = len(texts)
        done.skipped = sum(not key for key in (*known.values(), *places.values())) + vectors.withheld(db)
        return live, {key: piece for key, piece in texts.items() if key not in have}, places

    def _safe(self, piece: Piece) -> str:
        """A passage's text as it may be sent: secrets taken out; "" where it gives orders or hides something."""
        text = piece.text(self.memory.passages._read)
        patterns, allow = self.config["safety.patterns"], self.config["safety.allow"]
        if text and safety.verdict(text, patterns, allow):  # judged once more, together with its headings
            text = safety.redact(text, patterns, allow)
            return "" if safety.verdict(text, patterns, allow) else text
        return text

    # State

    def state(self) -> dict[str, Any]:
        """What is on: models, vectors kept and bytes they take; for `status`. `missing` says in sentences what keeps
        them from helping, "" when nothing does: each model is asked for real, and waited for as an answer would.
        """
        found: dict[str, Any] = {"model": self.wanted, "off": self.off, "using": "", "texts": 0, "bytes": 0}
        found["reranker"] = str(self.config["index.reranker"]) if self.config["index.meaning"] != "off" else ""
        reasons = [self.probe(), self.undone(found)] if self.wanted else []
        if found["reranker"] and (why := self.probe_reranker()):
            reasons.append(f"reranker: {why}")
        found["missing"] = "; ".join(dict.fromkeys(reason.rstrip(".") for reason in reasons if reason))
        return found

    def undone(self, found: dict[str, Any] | None = None) -> str:
        """What of the wanted model's vectors is not done, "" when all is; `found` is told what the store that answers
        holds.
        """
        found = {} if found is None else found
        try:
            path, own = self._choice(), self.path()
            if path is None:
                return self._nothing()
            store = vectors.Store(path)
            found.update(using=store.facts["model"], texts=store.count(), dimension=store.dimension)
            found["bytes"] = sum(os.path.getsize(p) for p in (path, path + "-wal") if os.path.exists(p))
            done = Embedded(self.wanted, remote=False)
            whole = store if path == own else vectors.Store(own) if os.path.exists(own) else None
            waiting = len(self._waiting(whole, done)[1])
            for opened in {store, whole} - {None}:
                opened.close()  # type: ignore[union-attr]
            return f"{waiting} of {done.total} texts wait: {UNDONE}" if waiting else ""
        except schema.Absent:
            return f"nothing is embedded yet: {UNDONE}"
        except (Error, *vectors.BROKEN) as error:
            return str(error)


def within(seconds: float, name: str, act: Callable[[], T]) -> T:
    """What `act` gives, run in a thread of its own; `Failed` (timeout) once the seconds are over."""
    box: list[T | BaseException] = []

    def run() -> None:
        try:
            box.append(act())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            box.append(error)

    thread = threading.Thread(target=run, name="pipimem-meaning", daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise Failed("timeout", f"The model '{name}' did not answer within {seconds:g} s.")
    result = box[0]
    if isinstance(result, Error):
        raise result
    if isinstance(result, BaseException):
        raise Failed("no-completion", f"The model '{name}' failed: {type(result).__name__}.")
    return result


def _wanted(config: Any, root: str) -> tuple[str, str]:
    """The model this workspace's vectors come from, or "" and why there is none."""
    models = {os.path.realpath(os.path.expanduser(p)): name for p, name in config["index.models"].items()}
    name = str(models.get(os.path.realpath(root), config["index.vectors"]))
    if not name:
        return "", "none is named"
    if config["index.meaning"] == "off":
        return "", "'index.meaning' is off here"
    return name, ""


def _reads(languages: Sequence[str], text: str) -> bool:
    """Whether a model of these languages is asked this: Chinese by its characters, anything else as English."""
    return not languages or ("zh" if has_han(text) else "en") in languages


def _service(model: Embedder) -> tuple[str, str]:
    """Who is sent the texts: the provider, and its address where it has one."""
    return model.model_id.partition(":")[0], str(getattr(getattr(model, "service", None), "url", ""))


def _same(name: str, dimension: int, kept: int) -> None:
    """Raises `Failed` where a model's vectors cannot be compared with those that are kept (0: none yet)."""
    if kept not in (0, dimension):
        raise Failed(
            "no-completion", f"'{name}' gives {dimension} numbers now, its store holds {kept}.",
            "Run 'pipimem index --vectors'.",
        )  # fmt: skip


def _unit(vector: Any) -> Any:
    """A vector as an array of length one; None for what is no row of finite numbers, or all zeros."""
    import numpy as np

    try:
        found = np.asarray(vector, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    length = float(np.linalg.norm(found)) if found.ndim == 1 else 0.0
    return (found / length).astype("<f4") if length and np.isfinite(length) else None


def _one(name: str, given: Any) -> Any:
    """The one vector a model gave for one text. Raises `Failed`."""
    found = _listed(given)
    unit = _unit(found[0]) if len(found) == 1 else None
    if unit is None:
        raise Failed("no-completion", f"The model '{name}' gave no usable vector.", "Name another one.")
    return unit


def _listed(given: Any) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        return []


def _add(store: Store, name: str, keys: Sequence[bytes], given: Any) -> None:
    """Keeps a batch's vectors with length one; a text for which the model gave none, or no numbers, is kept as that.

    Raises `Failed` where none of them is usable, unless the model says that it has none for these texts.
    """
    found = _listed(given)
    if len(found) != len(keys):
        raise Failed("no-completion", f"The model '{name}' gave {len(found)} vectors for {len(keys)} texts.")
    units = [_unit(vector) for vector in found]
    lengths = {len(unit) for unit in units if unit is not None}
    if len(lengths) > 1:
        raise Failed("no-completion", f"The model '{name}' gave vectors of different lengths at once.")
    if not lengths and not all(isinstance(vector, tuple) and not vector for vector in found):
        raise Failed("no-completion", f"The model '{name}' gave no usable vector.", "Name another one.")
    dimension = lengths.pop() if lengths else 0
    if dimension:
        _same(name, dimension, store.dimension)
    store.add({k: b"" if unit is None else unit.tobytes() for k, unit in zip(keys, units, strict=True)}, dimension)


def _facts(path: str) -> dict[str, str]:
    try:
        store = vectors.Store(path)
    except (schema.Absent, Error, *vectors.BROKEN):
        return {}
    try:
        return store.facts
    finally:
        store.close()


def _sweep(path: str) -> None:
    """Deletes stores of other models that nobody wrote for 30 days; called once `path` is complete."""
    from pipimem.index import upkeep

    for other in vectors.stores(os.path.dirname(path)):
        if other != path and time.time() - os.path.getmtime(other) > vectors.KEEP * 86400:
            upkeep.delete(*upkeep.files(other))
