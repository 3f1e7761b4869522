"""Runs of Chinese characters into words: the cuts of jieba's search mode without HMM, character for character.

Owns the dictionary database, made once from jieba's own `dict.txt` so that no query loads jieba, and the sources
of word frequencies. Which characters form a run, and what a word is elsewhere, is decided in `words`.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock
from itertools import chain
from math import log

from pipimem.errors import Refused, Unreadable
from pipimem.index.schema import sqlite3
from pipimem.text import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Rows = Iterable[tuple[str, int, int]]

FORMAT = 1
"""Version of the dictionary database; part of its name."""

KEPT_WHOLE = 13_000
"""Frequency of a lexicon word that is given none: above f² / total of jieba's most frequent word (了: 883,634 of
60,101,967, so 12,991) and so above every way to split it, yet too small to shift the cuts of other text."""

_APPLICATION = 0x7A686474
# `longest`: of the words that begin with these four characters, if it is more than four. `f` 0: no word itself.
_TABLES = f"""
PRAGMA application_id={_APPLICATION};
PRAGMA user_version={FORMAT};
PRAGMA journal_mode=OFF;
PRAGMA synchronous=OFF;
CREATE TABLE w(word TEXT PRIMARY KEY, f INTEGER NOT NULL, longest INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE m(total INTEGER NOT NULL, longest INTEGER NOT NULL);
"""
_REACH = 4  # longer words are rare: they are announced by their first four characters
_WINDOW = 2_000
_BATCH = 900  # SQLite before 3.32 takes 999 variables
_ASKED_AT_MOST = 200_000
_VOCABULARY_REACH = 8
_VOCABULARY_TOTAL = 1_000_000


class Cutter:
    """Cuts runs of Chinese characters (kana, hangul and the like come out one by one).

    `source` says whose frequencies decide: "dictionary", "memory" and "rjieba" cut alike, "vocabulary" nearly so.
    `close()` lets go of the database behind it, where there is one.
    """

    __slots__ = ("_cut_many", "close", "source")

    def __init__(
        self, source: str, cut_many: Callable[[Sequence[str]], list[list[str]]], close: Callable[[], None] | None = None
    ) -> None:
        self.source = source
        self._cut_many = cut_many
        self.close = close or (lambda: None)

    def cut(self, run: str) -> list[str]:
        """The words of one run, in the order of `jieba.lcut_for_search(run, HMM=False)`."""
        return self._cut_many([run])[0]

    def cut_many(self, runs: Sequence[str]) -> list[list[str]]:
        """The words of each run, however long. `Unreadable`: the dictionary is damaged."""
        return self._cut_many(runs)


def lexicon(text: str) -> dict[str, int]:
    """The words of a lexicon: one a line, then optionally its frequency (a whole number from 1); `#` for comments.

    They come back folded, as runs are before they are cut. What is not two or more Chinese characters is left out,
    for no cutter would meet it; a word without a frequency gets one that keeps it whole.
    """
    from pipimem.index.words import fold

    words: dict[str, int] = {}
    for line in text.removeprefix("\ufeff").replace("\r", "\n").split("\n"):
        word, frequency = [*fold(line.partition("#")[0]).split(), "", ""][:2]
        if len(word) > 1 and _is_chinese(word):
            given = int(frequency) if frequency.isdecimal() and len(frequency) < 10 else 0
            words[word] = given or KEPT_WHOLE
    return words


def dictionary_name() -> str:
    """The file name of the dictionary database that belongs to the installed jieba; under a millisecond.

    It hashes the size of `dict.txt` and eight samples of it, not its 5 MB: this is asked before every search.
    """
    path = _dict_txt()
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        parts = [f"{FORMAT} {size}".encode()]
        for at in range(0, size, size // 8 + 1):
            file.seek(at)
            parts.append(file.read(512))
    return f"zhdict-{digest(b''.join(parts), 8)}.sqlite3"


def build(path: str) -> None:
    """Makes the dictionary database at `path`, whose folder exists; 0.4 s.

    The file appears at once and complete, mode 0600; processes that build at the same time do no harm.
    `Unreadable`: jieba's dictionary is missing. `Refused`: the file cannot be written.
    """
    temporary = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _fill(temporary, *_read(_dict_txt()))
        _flush(temporary, os.O_RDWR)
        os.replace(temporary, path)
        _flush(os.path.dirname(path) or ".", os.O_RDONLY)
    except (OSError, sqlite3.Error) as error:
        raise Refused(f'The Chinese dictionary "{path}" cannot be written: {error}.', "Free its folder.") from error
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def is_sound(path: str) -> bool:
    """Whether `path` is a whole dictionary database that `dictionary_cutter` would take; reads all of it."""
    try:
        db, _, _ = _open(path)
    except Unreadable:
        return False
    try:
        return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:
        return False
    finally:
        db.close()


def dictionary_cutter(path: str, extra: Mapping[str, int] | None = None) -> Cutter:
    """The cutter for queries and small changes: looks words up in the database and loads nothing.

    `extra` is a lexicon. `Unreadable`: the file is missing, damaged, of another format or of another user.
    """
    db, total, longest = _open(path)

    def ask(words: list[str]) -> Rows:
        marks = ",".join("?" * len(words))
        try:
            return db.execute(f"SELECT word, f, longest FROM w WHERE word IN ({marks})", words).fetchall()
        except sqlite3.Error as error:
            raise _unusable(path, str(error)) from error

    return Cutter("dictionary", _Asked(_Words(total, extra or {}, ask, longest), ask).cut_many, db.close)


def bulk_cutter(extra: Mapping[str, int] | None = None) -> Cutter:
    """The fastest cutter for much text: rjieba where it is installed, else jieba's dictionary read into memory.

    Loading takes 0.2 or 0.6 s and 60 or 90 MB. No cache file is read or written, nothing is printed.
    """
    loaded = "rjieba" in sys.modules
    try:
        import rjieba
    except ImportError:
        return _memory_cutter(extra or {})
    # The import made one that nobody can have added words to yet; another takes 0.1 s.
    jieba = rjieba.Jieba() if loaded or extra else rjieba
    for word, frequency in (extra or {}).items():
        jieba.add_word(word, frequency, "")
    cut = jieba.cut_for_search
    return Cutter("rjieba", lambda runs: [cut(run, False) for run in runs])


def _memory_cutter(extra: Mapping[str, int]) -> Cutter:
    total, rows = _read(_dict_txt())
    before = {row[0]: row for row in rows if row[0] in extra} if extra else {}
    words = _Words(total, extra, lambda wanted: [before[word] for word in wanted if word in before])
    words.add(rows)
    return Cutter("memory", lambda runs: [words.cut(run) for run in runs])


def vocabulary_cutter(
    frequencies: Callable[[list[str]], Mapping[str, int]], extra: Mapping[str, int] | None = None
) -> Cutter:
    """A cutter that knows only what `frequencies` counts: for a query while there is no dictionary database.

    `frequencies` is given words and returns how often each stands among the words (not the pairs) of the index;
    words of up to eight characters are tried. Counts are remembered, so make a new cutter for each query.
    """

    def ask(words: list[str]) -> Rows:
        return [(word, count, 0) for word, count in frequencies(words).items()]

    words = _Words(_VOCABULARY_TOTAL, extra or {}, ask, _VOCABULARY_REACH, _VOCABULARY_REACH)
    return Cutter("vocabulary", _Asked(words, ask).cut_many)


class _Words:
    """Words with the logarithms of their probabilities, and jieba's way of choosing among them.

    The words of a lexicon are there from the start and win; as in jieba the total grows by what they add.
    `announced` says for the first `reach` characters of longer words how long the longest is.
    """

    __slots__ = ("announced", "log_total", "longest", "reach", "scores")

    def __init__(
        self,
        total: int,
        extra: Mapping[str, int],
        ask: Callable[[list[str]], Rows],
        longest: int = 0,
        reach: int = _REACH,
    ) -> None:
        self.scores: dict[str, float] = {}
        self.announced: dict[str, int] = {}
        self.reach = reach
        self.longest = max([longest, reach, *map(len, extra)])
        before = [row for batch in _batches(list(extra)) for row in ask(batch)]
        self.log_total = log(max(1, total + sum(extra.values()) - sum(frequency for _, frequency, _ in before)))
        self.add((word, frequency, 0) for word, frequency in extra.items())
        self.add((word[:reach], 0, len(word)) for word in extra)

    def add(self, rows: Rows) -> None:
        """Takes words with frequency and announced length, unless they are known."""
        scores, log_total, reach = self.scores, self.log_total, self.reach
        for word, frequency, longest in rows:
            if frequency and word not in scores:
                scores[word] = log(frequency) - log_total
            if longest > reach:
                self.announced[word] = max(longest, self.announced.get(word, 0))

    def cut(self, run: str) -> list[str]:
        """The most probable words of `run`, each after its shorter words, as in jieba's search mode."""
        ends, scores, words, start = self._best(run), self.scores, [], 0
        while start < len(run):
            end = ends[start]
            for size in (2, 3):
                if end - start > size:
                    inner = [run[i : i + size] for i in range(start, end - size + 1)]
                    words += [word for word in inner if word in scores]
            words.append(run[start:end])
            start = end
        return words

    def _best(self, run: str) -> list[int]:
        """Where the word at each place ends on the most probable way from there; the longer one of equals."""
        scores, announced, reach, size = self.scores, self.announced, self.reach, len(run)
        unknown = log(1) - self.log_total
        ends, rest = [0] * size, [0.0] * (size + 1)
        for start in range(size - 1, -1, -1):
            best, top = None, start + reach
            if top < size and (longest := announced.get(run[start:top])):
                top = start + longest
            for end in range(start + 1, min(top, size) + 1):
                score = scores.get(run[start:end])
                if score is not None:
                    score += rest[end]
                    if best is None or score >= best:
                        best, ends[start] = score, end
            if best is None:
                best, ends[start] = unknown + rest[start + 1], start + 1
            rest[start] = best
        return ends


class _Asked:
    """Words whose frequencies are asked for when they stand in a run; what is remembered is bounded."""

    __slots__ = ("_ask", "_asked", "_lock", "_words")

    def __init__(self, words: _Words, ask: Callable[[list[str]], Rows]) -> None:
        self._lock = allocate_lock()  # two threads in one prepared statement take each other's rows
        self._words = words
        self._ask = ask
        self._asked: set[str] = set()

    def cut_many(self, runs: Sequence[str]) -> list[list[str]]:
        """The words of each run."""
        with self._lock:
            self._learn(runs)
        return [self._words.cut(run) for run in runs]

    def _learn(self, runs: Sequence[str]) -> None:
        words, reach = self._words, self._words.reach
        wanted: set[str] = set()
        for piece in _windows(runs, words.longest):
            size = len(piece)
            wanted.update([piece[i:j] for i in range(size) for j in range(i + 1, min(i + reach, size) + 1)])
            if len(wanted) > _ASKED_AT_MOST // 4:
                self._look_up(wanted)
                wanted = set()
        self._look_up(wanted)
        if words.announced:
            self._look_up(set(_announced(_windows(runs, words.longest), words)))

    def _look_up(self, wanted: set[str]) -> None:
        if len(self._asked) > _ASKED_AT_MOST:
            self._asked = set()
        new = sorted(wanted - self._asked)
        for batch in _batches(new):
            self._words.add(self._ask(batch))
        self._asked.update(new)


def _announced(pieces: Iterable[str], words: _Words) -> Iterator[str]:
    reach, announced = words.reach, words.announced
    for piece in pieces:
        for start in range(len(piece) - reach):
            top = announced.get(piece[start : start + reach])
            if top:
                for end in range(start + reach + 1, min(start + top, len(piece)) + 1):
                    yield piece[start:end]


def _windows(runs: Iterable[str], longest: int) -> Iterator[str]:
    """The runs in pieces of bounded length that overlap so far that no word is split."""
    for run in runs:
        for at in range(0, len(run), _WINDOW):
            yield run[at : at + _WINDOW + longest - 1]


def _batches(words: list[str]) -> Iterator[list[str]]:
    return (words[at : at + _BATCH] for at in range(0, len(words), _BATCH))


def _is_chinese(word: str) -> bool:
    return min(word) >= "\u4e00" and max(word) <= "\u9fd5"


def _dict_txt() -> str:
    """Where jieba's dictionary is, found without importing jieba."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("jieba")
    path = os.path.join(os.path.dirname(spec.origin), "dict.txt") if spec and spec.origin else ""
    if not os.path.isfile(path):
        raise Unreadable('The dictionary of "jieba" is not installed.', "Install pipimem with its dependencies anew.")
    return path


def _read(path: str) -> tuple[int, list[tuple[str, int, int]]]:
    """The sum of all frequencies in a `dict.txt`, and its Chinese words, sorted, as rows of the database."""
    import re

    with open(path, encoding="utf-8") as file:
        text = file.read()
    total = sum(map(int, re.findall("(?m)^[^ ]+ ([0-9]+)", text)))
    counts: dict[str, str] = dict(re.findall("(?m)^([\u4e00-\u9fd5]+) ([0-9]+)", text))
    longest: dict[str, int] = {}
    for word in re.findall(f"(?m)^([\u4e00-\u9fd5]{{{_REACH + 1},}}) [0-9]", text):
        beginning = word[:_REACH]
        longest[beginning] = max(len(word), longest.get(beginning, 0))
    rows = [(beginning, int(counts.pop(beginning, 0)), size) for beginning, size in longest.items()]
    rows += [(word, int(count), 0) for word, count in counts.items()]
    rows.sort()  # the file nearly is
    return total, rows


def _fill(path: str, total: int, rows: list[tuple[str, int, int]]) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.executescript(_TABLES)
        db.execute("BEGIN")
        for at in range(0, len(rows), _BATCH // 3):  # many rows a statement: less than half the time
            part = rows[at : at + _BATCH // 3]
            db.execute(f"INSERT INTO w VALUES{','.join(['(?,?,?)'] * len(part))}", list(chain.from_iterable(part)))
        db.execute("INSERT INTO m VALUES(?,?)", (total, max(len(word) for word, _, _ in rows)))
        db.execute("COMMIT")
    finally:
        db.close()


def _flush(path: str, flags: int) -> None:
    number = os.open(path, flags)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _open(path: str) -> tuple[sqlite3.Connection, int, int]:
    """A connection that writes nothing, with the sum of frequencies and the length of the longest word."""
    db = None
    try:
        if os.stat(path).st_uid not in (0, os.geteuid()):
            raise _unusable(path, "it belongs to another user")
        uri = "file:" + "".join(f"%{byte:02x}" for byte in os.fsencode(path)) + "?mode=ro&immutable=1"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise _unusable(path, "it is something else")
        if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            raise _unusable(path, "it is of another version")
        total, longest = db.execute("SELECT total, longest FROM m").fetchone()
    except (OSError, sqlite3.Error, TypeError) as error:
        if db:
            db.close()
        raise _unusable(path, str(error)) from error
    except Unreadable:
        if db:
            db.close()
        raise
    return db, total, longest


def _unusable(path: str, why: str) -> Unreadable:
    return Unreadable(
        f'The Chinese dictionary "{path}" cannot be used: {why}.', 'Delete it; "pipimem index" makes it anew.'
    )
