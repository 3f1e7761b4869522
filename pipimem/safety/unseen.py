"""Characters that are there but not seen: of which kind, and where a script, an emoji or a terminal needs them."""

from __future__ import annotations

from pipimem.safety.views import UNSEEN, UNSEEN_RUN, rx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.safety.views import Span


def find(text: str) -> list[Span]:
    """The runs of hidden characters, and the terminal sequences that erase or conceal."""
    spans: list[Span] = []
    if "\x1b" in text or "\x08" in text:
        spans += [(*found.span(), "terminal") for found in rx(_TERMINAL).finditer(text)]
    if not text.isascii():
        for found in rx(UNSEEN_RUN).finditer(text):
            if not _is_normal(text, *found.span()):
                spans.append((*found.span(), _kind(found[0][0])))
    return spans


# backspaces, and terminal sequences other than colours and "clear to the end of the line", which grep prints: erase,
# move, conceal (8), titles, links
_TERMINAL = (
    r"\x08+|\x1b(?!\[(?:(?!8[;m])[0-9]{1,3}(?:;(?!8[;m])[0-9]{1,3}){0,6})?m|\[0?K)"
    r"(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b\n]{0,300})?"
)
_SIGN = (
    "#*0-9\u00a9\u00ae\u203c\u2049\u20e3\u2100-\u214f\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
)
# scripts in which joiners shape letters: Arabic to Mandaic, Indic to Khmer and Mongolian, Tai, Javanese, Arabic forms
_JOINING = (
    "\u0600-\u08ff\u0900-\u109f\u1780-\u18af\u1900-\u1aff\u1b00-\u1cff\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00011000-\U000119ff"
)
_SPACELESS = "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# what stands before, the unseen characters, what stands after
_NORMAL = (
    rf"(?:(?<=[{_SIGN}])[\ufe0e\ufe0f]?\u200d(?=[{_SIGN}])"
    rf"|(?<=[{_SIGN}])[\ufe00-\ufe02\ufe0e\ufe0f]"
    rf"|(?<=[{_JOINING}])[\u200c\u200d]"
    rf"|(?<=[{_SPACELESS}])[\u200b\u2060]"
    rf"|(?<=[{_IDEOGRAPH}])[\ufe00-\ufe02\U000e0100-\U000e01ef]"
    r"|(?<=[\u1800-\u18af])[\u180b-\u180f\u200c\u200d]{1,2}|(?<=[\u1000-\u109f\ua9e0-\uaa7f])\ufe00"
    r"|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
    r"|(?<=[^\W\d_])\u00ad(?=[^\W\d_])(?!.\u00ad)"
    r"|(?<=[\u1100-\u11ff\ua960-\ua97f])[\u115f\u1160]|[\u115f\u1160](?=[\u1100-\u11ff])"
    r"|(?<=[\u2801-\u28ff])\u2800+|\u2800+(?=[\u2801-\u28ff])|(?<=[\U0001d100-\U0001d1ff])[\U0001d173-\U0001d17a]"
    rf")(?![{UNSEEN}])"
)
_DIRECTION = "[\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069]{1,3}"
_KINDS = (
    ("bidi", "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"),
    ("tag", "\U000e0000-\U000e007f"),
    ("variation-selector", "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"),
    ("soft-hyphen", "\u00ad"),
    ("blank-letter", "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"),
)


def _is_normal(text: str, start: int, end: int) -> bool:
    if start == 0 and text[0] == "\ufeff":
        return end == 1
    if rx(_NORMAL).match(text, start):
        return True
    if rx(_DIRECTION).fullmatch(text, start, end):
        line = text.rfind("\n", max(0, start - 200), start) + 1 or max(0, start - 200)
        stop = text.find("\n", end, end + 200)
        return rx(f"[{_RIGHT_TO_LEFT}]").search(text, line, stop if stop >= 0 else end + 200) is not None
    return False


def _kind(char: str) -> str:
    return next((kind for kind, chars in _KINDS if rx(f"[{chars}]").match(char)), "zero-width")
