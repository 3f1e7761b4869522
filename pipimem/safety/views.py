"""What every scan shares: the text as it is read, places in it, and patterns, each compiled at its first use."""

from __future__ import annotations

import functools
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Span = tuple[int, int, str]  # start, end, kind

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that show nothing, as the inside of a character class."""

UNSEEN_RUN = f"[{UNSEEN}]+"
_INSIDE = f"(?<=[!-~\u4e00-\u9fff])[{UNSEEN}]++(?=[!-~\u4e00-\u9fff])"
_WIDE = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff"


@functools.cache
def rx(source: str) -> re.Pattern[str]:
    """The pattern, compiled once; re.error when it is none."""
    return re.compile(source)


def positions(text: str, word: str) -> Iterator[int]:
    """Where the word stands, occurrences not overlapping."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def lowered(text: str) -> str:
    """The text in lower case, every character at its old place."""
    return text.replace("İ", "I").lower()  # the one letter whose lower case is longer


def glued(text: str, at: int) -> bool:
    """Whether an ASCII letter or digit stands right before `at`."""
    before = text[at - 1 : at]  # empty at the start, and past the end
    return before.isascii() and before.isalnum()


def scanned(text: str, find: Callable[[str], Iterable[Span]]) -> list[Span]:
    """What `find` finds in any view of the text, placed in the text itself.

    The views: full-width and mathematical letters folded, and, where unseen characters stand inside words, the 400
    characters around once more without them. Both, because the same character hides a word's middle in one text and
    parts two words in another.
    """
    if text.isascii() or not rx(f"[{UNSEEN}{_WIDE}]").search(text):
        return list(find(text))
    if rx(f"[{_WIDE}]").search(text):
        text = text.translate(_wide())
    spans = list(find(text))
    bare, kept = _without_unseen(text)
    if bare:
        spans += [(kept[start], kept[end - 1] + 1, kind) for start, end, kind in find(bare)]
    return spans


def _without_unseen(text: str) -> tuple[str, list[int]]:
    """The surroundings of unseen characters without them, parted by NULs, and where each character came from."""
    parts: list[str] = []
    kept: list[int] = []
    unseen = rx(UNSEEN_RUN)
    for start, end in _windows(text):
        inside = [at for at in range(start, end) if text[at].isascii() or not unseen.match(text[at])]
        parts += [*(text[at] for at in inside), "\0"]
        kept += [*inside, end - 1]
    return "".join(parts), kept


def _windows(text: str) -> list[tuple[int, int]]:
    windows: list[tuple[int, int]] = []
    for found in rx(_INSIDE).finditer(text):
        start, end = max(0, found.start() - 400), min(len(text), found.end() + 400)
        if windows and start <= windows[-1][1]:
            start = windows.pop()[0]
        windows.append((start, end))
    return windows


@functools.cache
def _wide() -> dict[int, str]:
    # the full-width comma, colon, brackets, ! ? ; stay: in Chinese they end a value
    wide = {ord(char) + 0xFEE0: char for char in LETTERS + DIGITS + "-_.@=/+#$%&*"}
    wide |= {0x1D400 + n: LETTERS[n % 52] for n in range(13 * 52)}
    return wide | {0x1D7CE + n: DIGITS[n % 10] for n in range(50)}
