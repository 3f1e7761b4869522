"""What its author marked as private: `<private>…</private>`, also with one half cut off. Mentions of the tag stay."""

from __future__ import annotations

from pipimem.safety.views import rx

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from pipimem.safety.views import Span

_TAG = r"<(?P<close>/?)[Pp](?:rivate|RIVATE)(?:\s[^<>]{0,200})?>"
_JOINING = frozenset(("", "and", "or", "to", "...", "…", "和", "与", "或", "到"))


def find(text: str) -> list[Span]:
    """The spans with their tags. A tag without its other half hides all up to the end (or from the beginning) of the
    text: the other half may have been cut off.
    """
    spans: list[Span] = []
    start, done = -1, 0
    for tag in rx(_TAG).finditer(text):
        if _is_code(text, tag):
            continue
        if not tag["close"]:
            start = tag.start() if start < 0 else start
            continue
        begin = start if start >= 0 else done
        if not _is_mention(text[begin : tag.start()], whole=start >= 0):
            spans.append((begin, tag.end(), "private"))
        start, done = -1, tag.end()
    if start >= 0:
        spans.append((start, len(text), "private"))
    return spans


def _is_code(text: str, tag: re.Match[str]) -> bool:
    """Whether the tag stands in inline code: an odd number of backticks before it in its line, and one behind."""
    line = text.rfind("\n", 0, tag.start()) + 1
    end = text.find("\n", tag.end())
    behind = text.find("`", tag.end(), end if end >= 0 else len(text))
    return behind >= 0 and text.count("`", line, tag.start()) % 2 == 1


def _is_mention(text: str, *, whole: bool) -> bool:
    """Whether a pair of tags encloses nothing but a joining word: "between <private> and </private>"."""
    return whole and text.partition(">")[2].strip() in _JOINING
