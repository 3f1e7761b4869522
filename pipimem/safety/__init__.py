"""Judges text: secrets, hidden characters, and instruction-like text. Pure functions over strings, no I/O.

Findings carry positions, never the text itself. What follows from one (refuse, redact, keep out of recall, name
the line) is the caller's. The rules are loaded when the first text is judged: `secret`, and for it `secret_forms`,
`secret_names`, `secret_contexts` and `secret_values`; `marked`; `unseen`; `orders`; all read the text through `views`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipimem.safety.views import Span

VERSION = 3
"""Raised whenever a verdict may change for some passage; part of the index fingerprint."""


class Finding:
    """One place in a text: `kind` ("secret:github-token", "hidden:bidi", "instruction"), `start` and `end` as
    character offsets into the text given, `line` counted from 1 as CommonMark does.
    """

    __slots__ = ("end", "kind", "line", "start")

    def __init__(self, kind: str, start: int, end: int, line: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.line = line

    def __repr__(self) -> str:
        return f"Finding({self.kind!r}, {self.start}, {self.end}, line={self.line})"


def verdict(text: str, extra: Sequence[str] = (), allow: Sequence[str] = ()) -> str:
    """ "" for clean text, else the sorted words of what it holds, joined by commas: hidden, instruction, secret.

    What is marked as private counts as a secret here: it is not to be recalled, nor shown.
    """
    withheld = private(text) or secrets(text, extra, allow)
    found = {"hidden": hidden(text), "instruction": instructions(text), "secret": withheld}
    return ",".join(word for word, findings in found.items() if findings)


def redact(text: str, extra: Sequence[str] = (), allow: Sequence[str] = ()) -> str:
    """The text with each secret value and private span replaced by "[redacted:KIND]"; the same object when there is
    none.

    Idempotent: it repeats until nothing is found, and a placeholder is never part of a secret, so each round
    leaves less to find.
    """
    text = without_private(text)
    while found := secrets(text, extra, allow):
        text = _without(text, found)
    return text


def named(text: str, extra: Sequence[str] = (), allow: Sequence[str] = ()) -> tuple[str, str]:
    """A heading or name as it may stand in a reference or label, and its verdict."""
    found = verdict(text, extra, allow)
    shown = redact(text, extra, allow) if found else text
    return "(withheld)" if found and verdict(shown, extra, allow) else shown, found


def without_private(text: str) -> str:
    """The text with each private span replaced by "[redacted:private]"; the same object when there is none."""
    return _without(text, private(text))


def _without(text: str, found: list[Finding]) -> str:
    if found:
        parts, at = [], 0
        for finding in found:
            parts += [text[at : finding.start], f"[redacted:{finding.kind.rpartition(':')[2]}]"]
            at = finding.end
        text = "".join(parts) + text[at:]
    return text


def secrets(text: str, extra: Sequence[str] = (), allow: Sequence[str] = ()) -> list[Finding]:
    """Credentials in reading order, not overlapping; each finding covers the secret value only. A value that was
    found in one place is found in every place, also where nothing announces it.

    `extra` are regular expressions of the workspace (kind "secret:custom"; group 1 is the value when there is
    one; Usage when one does not compile). `allow` are values that are none, as written or as a regular
    expression for the whole value.
    """
    from pipimem.safety.secret import find

    return _findings(text, find(text, extra, allow), "secret:")


def private(text: str) -> list[Finding]:
    """What its author marked with `<private>…</private>`, tags included; a tag without its other half hides all up to
    the end (or from the beginning) of the text. No credential: a person may keep such a line in a file of their own.
    """
    low = text.lower() if "<" in text else ""
    if "<private" not in low and "</private" not in low:
        return []
    from pipimem.safety.marked import find

    return _findings(text, find(text), "")


def private_ranges(data: bytes) -> list[tuple[int, int]]:
    """The byte ranges of a file that are marked as private; what lies wholly inside one is never shown or indexed."""
    if b"<" not in data or b"private" not in data.lower():
        return []
    from pipimem.text import decode, encode

    text = decode(data)
    return [(len(encode(text[: f.start])), len(encode(text[: f.end]))) for f in private(text)]


def withheld(data: bytes) -> bytes:
    """A file's bytes with each private span as "[redacted:private]", every line at its old number."""
    parts, at = [], 0
    for start, end in private_ranges(data):
        inside = data[start:end]
        ends = inside.count(b"\n") + inside.count(b"\r") - inside.count(b"\r\n")
        parts += [data[at:start], b"[redacted:private]", b"\n" * ends]
        at = end
    return b"".join([*parts, data[at:]]) if parts else data


def hidden(text: str) -> list[Finding]:
    """Characters that are there but not seen: zero-width, bidi, tags, smuggled variation selectors, blank letters,
    runs of soft hyphens, terminal sequences that erase or conceal. Neighbours are one finding.

    Joiners in emoji and in scripts that need them, a variation selector on a symbol or ideograph, direction marks
    in a line with right-to-left letters, single soft hyphens, and a BOM at offset 0 are normal text.
    """
    from pipimem.safety.unseen import find

    return _findings(text, find(text), "hidden:")


def instructions(text: str) -> list[Finding]:
    """Text that speaks to the assistant instead of informing it, in English and Chinese, and shell commands that
    only an attacker's text would ask for; in reading order, not overlapping.

    A mention counts like a use ("the page said: ignore previous instructions"): a scanner cannot tell them apart.
    A prohibition ("never run ...") does not count.
    """
    from pipimem.safety.orders import find

    return _findings(text, find(text), "")


def _findings(text: str, spans: Iterable[Span], prefix: str) -> list[Finding]:
    """Overlapping spans become one, named by the one that starts first, then by the more specific (earlier) rule."""
    found: list[Finding] = []
    line, at = 1, 0
    for start, end, kind in sorted(spans, key=lambda span: span[0]):
        if found and start < found[-1].end:
            found[-1].end = max(end, found[-1].end)
            continue
        passed = text[at:start]
        line += passed.count("\n") + passed.count("\r") - passed.count("\r\n")
        at = start
        found.append(Finding(prefix + kind, start, end, line))
    return found
