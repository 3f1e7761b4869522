"""Text into words: one function for documents and queries; and a query into the expression SQLite is asked with.

Owns folding, the words and identifiers of spaced scripts, the character pairs of unspaced ones, dates, and stop words.
How a run of Chinese is cut into words comes from the caller (`chinese`).
"""

from __future__ import annotations

import os
from itertools import pairwise
from operator import add
from unicodedata import category, is_normalized, normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Cut = Callable[[Sequence[str]], list[list[str]]]

FORMAT = 2
"""Version of what `terms` gives, `simplified.txt` included, and of what `links` finds; an index is made for one."""

MAX_READ = 10_000
MAX_HAN = 400
MAX_TERMS = 64
MOST_PHRASES = 8
"""What a query may cost: characters read, unspaced characters among them, terms asked for, quoted
phrases among them."""

STOP = frozenset(
    (
        "a about above after again against all am an and any are as at be because been before being below between both"
        " but by can cannot could d did do does doing don down during each few for from further had has have having he"
        " her here hers him his how i if in into is it its just ll m me more most my no nor not now of off on once only"
        " or other our ours out over own re s same she should so some such t than that the their theirs them then there"
        " these they this those through to too under until up ve very was we were what when where which while who whom"
        " why will with would you your yours please tell"
        " 的 了 和 是 在 我 有 就 不 人 都 一 一个 上 也 很 到 说 要 去 你 会 着 没有 看 自己 这 那 他 她 它 们"
        " 我们 你们 他们 她们 它们 咱们 什么 怎么 怎样 怎么样 如何 为什么 为何 哪 哪个 哪些 哪里 哪儿 谁 何时 几"
        " 多少 吗 呢 吧 啊 呀 嘛 与 及 或 或者 还是 以及 而 而且 但 但是 因为 所以 如果 虽然 然后 于是 被 把 让"
        " 给 对 对于 关于 从 向 往 由 为 为了 以 于 之 其 其中 此 该 这个 那个 这些 那些 这里 那里 这样 那样 这么"
        " 那么 个 些 可以 可 能 能够 应该 需要 得 地 过 来 起来 出 里 中 下 用 请 请问 告诉 现在 还 又 再 才 只"
        " 更 最 太 已 已经 曾 曾经 正在 将 没 无 年 月 日 号 点 分 时 天 次 时候 是否 有没有 是不是 能不能 并"
        " 并且 等 等等 则 即 若 呗 哦 嗯"
    ).split()
)
"""Words that a query does without, unless it has no other."""

_LINKS = frozenset("的了是在吗呢么着过得和与就都也做")
_JOINERS = "-_./:\\@&~+#"
# Among what `_letters` leaves: ideographs, kana, hangul, Thai and so on, written without spaces (or rare). Latin with
# accents, Greek, Cyrillic, Arabic and the scripts of India are below or in the gap.
_RUN = "([^\0-\u0dff\u1e00-\u2e7f]+)"
_VOWEL_SIGNS = ((0x0900, 0x1AAF), (0xA800, 0xABFF), (0x11000, 0x1DFFF))
_NO_LETTERS_TO_SQLITE = frozenset([*range(0x19B0, 0x19CA), 0x1CF2, 0x1CF3])
_PRIVATE = 0xE000  # letters to SQLite; what a text has of them is dropped, so ours are never a text's
_DASH = chr(_PRIVATE + ord("-"))
_REMEMBERED = 50_000
_LONGEST_WHOLE = 80
_MOST_HUMPS = 6
_SHORT = 3
_LONGEST_PHRASE = 32
_QUOTES = {'"': '"', "“": "”", "「": "」", "『": "』"}
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct"
        "|november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}
_CHINESE_DATE = (
    r"(?:(\d{4})\s?年\s?)?(?<![\d一二三四五六七八九十])(\d\d?|[一二三四五六七八九十]{1,3})\s?月"
    r"(?:\s?(\d\d?|[一二三四五六七八九十]{1,3})\s?[日号號])?"
)
_ENGLISH_DATE = (
    r"\b(?:(\d\d?)(?:st|nd|rd|th)?\s+(?:of\s+)?"
    r"|(in|of|since|until|till|by|from|during|last|next|early|late|mid)[\s-]+)?"
    rf"({'|'.join(_MONTHS)})\b\.?(?:\s+(\d\d?)(?:st|nd|rd|th)?\b)?(?:,?\s+((?:19|20)\d\d)\b)?"
)


class _Table(dict[int, "int | str | None"]):
    """What becomes of each character in `str.translate`, worked out when it is first met."""

    def __init__(self, become: Callable[[int], int | str | None]) -> None:
        super().__init__()
        self._become = become

    def __missing__(self, code: int) -> int | str | None:
        value = self[code] = self._become(code)
        return value


def _letter(code: int) -> int | str | None:
    """Letters, digits and joiners stay, in their compatible and simplified form; all else separates."""
    char = chr(code)
    if code < 128:
        return code if char.isalnum() or char in _JOINERS else 32
    form = normalize("NFKC", char)
    if form != char:
        return "".join(chr(part) for part in map(_letter, map(ord, form)) if isinstance(part, int))
    if not char.isalnum():
        return _mark(code)
    if code >= 0x3400:
        return _simplified().get(code, code)
    return _in_place_of(code) if code in _NO_LETTERS_TO_SQLITE else code


def _mark(code: int) -> int | None:
    """Accents and invisible characters go; a vowel sign of an Indian script is a letter of its word."""
    kind = category(chr(code))
    if kind == "Cf":
        return None
    if kind[0] == "M":
        return _in_place_of(code) if any(first <= code <= last for first, last in _VOWEL_SIGNS) else None
    return 32


def _in_place_of(code: int) -> int:
    """A rare letter, spaced or unspaced as its script is, for a character at which SQLite would end the word."""
    return 0x250 + code % 96 if code < 0xE00 else 0x1401 + code % 608


_letters = _Table(_letter)
_folded = _Table(lambda code: _simplified().get(code, code) if code >= 0x3400 else code)
_parted = _Table(lambda code: 32 if chr(code) in _JOINERS else code)
_segments = _Table(lambda code: 32 if chr(code) in _JOINERS and chr(code) not in "-_." else code)
_simple: dict[int, int] = {}
_patterns: list[re.Pattern[str]] = []


def _simplified() -> dict[int, int]:
    # Made by tests/test_words.py from the data of OpenCC 1.4.2 (Apache License 2.0): a line of traditional
    # characters, a line of the simplified ones.
    if not _simple:
        with open(os.path.join(os.path.dirname(__file__), "simplified.txt"), encoding="utf-8") as file:
            _simple.update(str.maketrans(*file.read().split()))
    return _simple


def _run() -> re.Pattern[str]:
    if not _patterns:
        from re import compile

        _patterns.append(compile(_RUN))
    return _patterns[0]


def fold(text: str) -> str:
    """`text` in the form in which the index compares: NFKC (half width is full width), case and script folded.

    Traditional characters become simplified ones one by one. For the index and comparisons, never for a file.
    """
    if text.isascii():
        return text.lower()
    return normalize("NFKC", normalize("NFKC", text).casefold()).translate(_folded)


def terms(text: str, cut: Cut) -> tuple[list[str], list[str]]:
    """The words and the character pairs of one text, in the spelling of the index.

    Words: those of spaced scripts, folded and unstemmed, in their order; then those of each unspaced run as `cut`
    gives them; then identifiers as a whole and by camel-case part, and dates. Joined by spaces, SQLite's
    `porter unicode61` takes each for one word. Pairs: every two neighbours of an unspaced run, and its last
    character, so that each single one begins a pair. Text without letters, digits and ideographs gives nothing.
    """
    words, runs = parts(text, cut)
    return words, pairs(runs)


def parts(text: str, cut: Cut) -> tuple[list[str], list[str]]:
    """The words of `terms`, and the unspaced runs its pairs are made of."""
    runs, rest = _split(text)
    return _words(text, runs, rest, cut), runs


def pairs(runs: Iterable[str]) -> list[str]:
    """The pairs of `terms`."""
    found: list[str] = []
    for run in runs:
        found += map(add, run, run[1:])
        found.append(run[-1])
    return found


def _split(text: str) -> tuple[list[str], str]:
    """The unspaced runs, and the rest of the text with all but letters, digits and joiners turned to spaces."""
    if text.isascii():
        return [], text.translate(_letters)
    # Character by character is as good as NFKC of the whole but for accents apart and half-width voiced kana.
    if not is_normalized("NFC", text) or "\uff9e" in text or "\uff9f" in text:
        text = normalize("NFKC", text)
    pieces = _run().split(text.translate(_letters))
    return pieces[1::2], " ".join(pieces[::2])


def _words(text: str, runs: list[str], rest: str, cut: Cut) -> list[str]:
    words = _plain(rest)
    if runs:
        for tokens in cut(runs):
            words += tokens
    odd = set(rest.split()).difference(_ordinary)
    for chunk in sorted(odd):
        words += _parts(chunk)
    if "月" in text:
        words += _chinese_dates(text)
    if not _MONTHS.keys().isdisjoint(map(str.casefold, odd)):
        words += _english_dates(text)
    return words


def _plain(rest: str) -> list[str]:
    text = rest.casefold()
    return (text if text.isascii() else normalize("NFKC", text)).translate(_parted).split()


_ordinary: set[str] = set()
_known_parts: dict[str, list[str]] = {}


def _parts(chunk: str) -> list[str]:
    """What an identifier is found by besides its plain words; most chunks are none and are remembered as such."""
    found = _known_parts.get(chunk)
    if found is None:
        plain = set(_plain(chunk))
        found = [word for word in dict.fromkeys(_find_parts(chunk)) if word and word not in plain]
        if len(_ordinary) + len(_known_parts) >= _REMEMBERED:
            _ordinary.clear()
            _known_parts.clear()
        if found or not chunk.isalnum() or not _MONTHS.keys().isdisjoint(plain):
            _known_parts[chunk] = found
        else:
            _ordinary.add(chunk)
    return found


def _find_parts(chunk: str) -> Iterator[str]:
    stem = chunk.strip(_JOINERS)
    if not stem or len(stem) > _LONGEST_WHOLE:
        return
    start = chunk.index(stem)
    sign, after = chunk[:start][-1:], chunk[start + len(stem) :]
    pieces = stem.translate(_parted).split()
    if sign and sign in "@#":
        yield _whole(sign + pieces[0])
    name, plus, _ = chunk.partition("++")
    if plus and name.isalnum():
        yield _whole(name + plus)
    elif after.startswith(("+", "#")):
        yield _whole(pieces[-1] + after[0])
    if len(pieces) > 1:
        yield from _wholes(stem)
    yield from _date_words(*_iso(stem))
    for piece in pieces:
        yield from _humps(piece)


def _wholes(stem: str) -> Iterator[str]:
    """The identifier, its segments (of a path, an address, a name with colons) and the parts of dotted segments."""
    yield _whole(stem)
    for segment in stem.translate(_segments).split():
        yield _whole(segment)
        if segment[0] in "vV" and segment[1:2].isdigit():
            yield _whole(segment[1:])
        for part in segment.split("."):
            yield _whole(part)


def _whole(text: str) -> str:
    """An identifier as one word.

    `-` and `_` beside a letter are dropped, so that `row_id`, `row-id` and `rowId` are one; the other joiners become
    private characters, since SQLite's tokenizer would end the word at them.
    """
    text = fold(text.strip("-_."))
    whole = []
    for i, char in enumerate(text):
        if char.isalnum():
            whole.append(char)
        elif char not in "-_" or not (text[i - 1].isalpha() or text[i + 1].isalpha()):
            whole.append(chr(_PRIVATE + ord(char) % 0x1900))
    return "".join(whole)


def _humps(word: str) -> Iterator[str]:
    """The parts of `relayRetryLimit`, `HTTPServer` or `python3`; none of a digest, which has too many."""
    cuts = [0, *(i for i in range(1, len(word)) if _is_hump(word, i)), len(word)]
    if 2 < len(cuts) <= _MOST_HUMPS + 1:
        for start, end in pairwise(cuts):
            if end - start > 1:
                yield fold(word[start:end])


def _is_hump(word: str, i: int) -> bool:
    before, char, after = word[i - 1], word[i], word[i + 1 :]
    if before.isdigit() or char.isdigit():
        return before.isdigit() != char.isdigit()
    return char.isupper() and (before.islower() or (after[:1].islower() and after != "s"))


def _iso(stem: str) -> tuple[int, int, int]:
    """Year, month and day (0: none) of `2026-03-06`, `2026/3`, `2026.3.6` or `20260306T10`; zeros for no date."""
    mark = stem[4:5]
    if mark.isdigit():
        year, month, day = stem[:4], stem[4:6], stem[6:]
    elif mark and mark in "-/.":
        year, month, day = [*stem.split(mark, 2), ""][:3]
    else:
        return 0, 0, 0
    day = day[:2] if day[:2].isdecimal() else day[:1]
    if day == "" and mark in "-/":
        day = "0"
    whole = len(year) == 4 and len(month) <= 2 and all(part.isdecimal() for part in (year, month, day))
    return (int(year), int(month), int(day)) if whole else (0, 0, 0)


def _date_words(year: int, month: int, day: int) -> Iterator[str]:
    """The words a date is found by: the day, the month of the year, the day of any year, the month of any year."""
    if not 1 <= month <= 12 or day > 31 or (year and not 1900 <= year < 2100):
        return
    if year and day:
        yield f"{year}{_DASH}{month:02}{_DASH}{day:02}"
    if year:
        yield f"{year}{_DASH}{month:02}"
    if day:
        yield f"{_DASH}{month:02}{_DASH}{day:02}"
    yield f"{_DASH}{month:02}"


def _chinese_dates(text: str) -> Iterator[str]:
    """The words of 2026年3月6日, 3月6号, 三月六日 and 三月."""
    import re

    for year, month, day in re.findall(_CHINESE_DATE, text):
        yield from _date_words(int(year or 0), _number(month), _number(day))


def _english_dates(text: str) -> Iterator[str]:
    """The words of March 6th, 6 Mar 2026, March 2026 and in March; a month's name alone may be a verb."""
    import re

    for before, preposition, month, after, year in re.findall(_ENGLISH_DATE, text.casefold()):
        if before or preposition or after or year:
            yield from _date_words(int(year or 0), _MONTHS[month], int(before or after or 0))


def _number(text: str) -> int:
    """A number below 100 in digits or as 二十一; 0 for none."""
    if not text or text.isdecimal():
        return int(text or 0)
    digits = "零一二三四五六七八九"
    tens, ten, ones = text.partition("十")
    if ten:
        return 10 * max(0, digits.find(tens or "一")) + max(0, digits.find(ones or "零"))
    return max(0, digits.find(text))


class Query:
    """What a question is looked for by: words without stop words, pairs, and what stood in quotation marks.

    Each phrase is a list of words, or of the characters of one unspaced run, that stand next to each other in the text.
    A query is false when it has neither word nor pair: there was no letter, digit or ideograph to look for.
    """

    __slots__ = ("pairs", "phrases", "words")

    def __init__(
        self, words: Iterable[str] = (), pairs: Iterable[str] = (), phrases: Iterable[list[str]] = ()
    ) -> None:  # fmt: skip
        self.words = list(words)
        self.pairs = list(pairs)
        self.phrases = list(phrases)

    def __bool__(self) -> bool:
        return bool(self.words or self.pairs)


def query(text: str, cut: Cut) -> Query:
    """What to look for when `text` is asked, each word once; a long text is read to the limits above."""
    text = text[:MAX_READ]
    runs, rest = _split(text)
    runs = list(_first(runs, MAX_HAN))
    words = _without_stop_words(_words(text, runs, rest, cut))
    pairs = [run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))]
    return Query(words, _telling_pairs(pairs, words), _phrases(normalize("NFKC", text)))


def _telling_pairs(pairs: list[str], words: list[str]) -> list[str]:
    """All pairs of a short query, of a longer one those that no word holds (else one word would count twice) and that
    have no particle in them: what is left may be a name the dictionary does not know.
    """
    if len(words) > _SHORT:
        inner = {word[i : i + 2] for word in words if "\u4e00" <= word[0] <= "\u9fff" for i in range(len(word) - 1)}
        pairs = [pair for pair in pairs if pair not in inner and _LINKS.isdisjoint(pair)]
    return _without_stop_words([pair for pair in pairs if not STOP.issuperset(pair)] or pairs)


def _without_stop_words(words: list[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word not in STOP] or list(dict.fromkeys(words))


def _first(runs: Iterable[str], limit: int) -> Iterator[str]:
    for run in runs:
        if limit <= 0:
            return
        yield run[:limit]
        limit -= len(run)


def _phrases(text: str) -> list[list[str]]:
    found: list[list[str]] = []
    for inner in _quoted_parts(text):
        runs, rest = _split(inner)
        found += [phrase for phrase in [_plain(rest), *map(list, runs)] if 1 < len(phrase) <= _LONGEST_PHRASE]
        if len(found) >= MOST_PHRASES:
            break
    return found[:MOST_PHRASES]


def _quoted_parts(text: str) -> Iterator[str]:
    at = 0
    while starts := [(start, mark) for mark in _QUOTES if (start := text.find(mark, at)) >= 0]:
        start, mark = min(starts)
        end = text.find(_QUOTES[mark], start + 1)
        at = (end if end > 0 else start) + 1
        if end > 0:
            yield text[start + 1 : end]


def chosen(query: Query) -> tuple[list[str], list[str]]:
    """The words and pairs to ask for: at most `MAX_TERMS` with the phrases, of a longer query the most telling."""
    room = MAX_TERMS - len(query.phrases[:MOST_PHRASES])
    words = _most_telling(query.words, max(room - len(query.pairs), room * 2 // 3))
    return words, query.pairs[: room - len(words)]


def is_unspaced(char: str) -> bool:
    """Whether a letter is of a script written without spaces."""
    return _run().match(char) is not None


def _most_telling(words: list[str], limit: int) -> list[str]:
    """Long words are rare, and so are those with a digit or sign; a Chinese character counts as three letters."""
    if len(words) <= limit:
        return words
    weight = {word: len(word.encode()) + 6 * (not word.isalpha()) for word in words}
    chosen = set(sorted(words, key=weight.__getitem__, reverse=True)[:limit])
    return [word for word in words if word in chosen]


def quoted(term: str) -> str:
    """A term as FTS5 takes it: nothing in it is syntax."""
    return '"' + term.replace('"', '""') + '"'
