"""What a segment of a message holds: its cues, the shape of its names, how it begins and ends. Nothing is decided here.

English phrases are looked up as runs of one to four words, Chinese ones as substrings. No pattern is compiled and the
tables of `cues` are taken apart when first needed, each language by itself: this stands on the path of every message.
"""

from __future__ import annotations

from pipimem.recall import cues
from pipimem.recall.query import telling_word
from pipimem.recall.shape import EDGES, particular, shape
from pipimem.recall.signature import is_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Found = dict[str, tuple[float, str]]
    """Cues by name, each with its weight and the phrase that showed it."""

HAN = "\u2e80"
PARTED = dict.fromkeys(map(ord, '()[]{}<>,;:!?"`“”‘’*=|#…—'), " ")
GENERIC, THINGS, PARTICULAR = "a generic explanation", "a thing of work", "something particular"
FAILURE, REQUEST, QUESTION = "a failure", "a request", "a question"
QUESTIONS = frozenset((QUESTION, "a Chinese question of a thing", "a Chinese question"))
ASKS = frozenset((QUESTION, REQUEST, "a Chinese question of a thing"))
AUXILIARY = frozenset("can could is are does did has have was were will should may must".split())
OF_OURS = frozenset(
    "the our my your his her their this that these those left next wrong on in due missing still".split()
)
BETWEEN = frozenset("of for the in on to a an and".split())
POLITE = (
    "please ", "pls ", "could you please ", "can you please ", "could you ", "can you ", "can someone ",
    "hi, ", "hey, ",
)  # fmt: skip
DOING = ("改成", "记得", "给", "带", "写", "讲", "把", "用", "帮")
MOOD = frozenset(
    "了吧呀哈哦啊嗯呢吗嘛嘞啦真好太很我你您他她咱就也都快慢再换不没别死笑点可行对是在有去"
    "来谢辛苦乐早晚累困热冷说想看吃喝睡走撤哇赞"
)

# Filled in one step when first needed: threads may meet here.
_english: dict[str, int] = {}
_han: list[list[str]] = []


def look(part: str, near: Sequence[tuple[str, int]]) -> Found:
    """The cues of one segment; `near` are the Chinese phrases that may stand in it (`near_by`)."""
    found: Found = {}
    for run in runs(part):
        index = _cue_of(run)
        if index >= 0:
            _add(found, index, run)
    for phrase, index in near:
        if phrase in part:
            _add(found, index, phrase)
    weight, name = shape(part)
    if weight:
        found["an identifier"] = weight, name
    _look_at_the_form(part, found)
    if ASKS.isdisjoint(found):
        found.pop(PARTICULAR, None)
    elif PARTICULAR not in found and (name := particular(part)):
        found[PARTICULAR] = 1.0, name
    return found


def near_by(text: str) -> list[tuple[str, int]]:
    """The Chinese phrases that stand in `text`, each with the number of its cue."""
    if text.isascii():
        return []
    if not _han:
        _han.extend([han.split() for _, _, _, han in cues.CUES])
    return [(phrase, index) for index, phrases in enumerate(_han) for phrase in phrases if phrase in text]


def _cue_of(run: str) -> int:
    """The number of the cue a run of words belongs to, -1 for none; a single word also without its ending."""
    if not _english:
        rows = enumerate(cues.CUES)
        _english.update({phrase: index for index, (_, _, english, _) in rows for phrase in english.split("|")})
    found = _english.get(run, -1)
    if found < 0 and len(run) > 4 and " " not in run:
        return next((_english[form] for form in _forms(run) if form in _english), -1)
    return found


def _forms(word: str) -> Iterator[str]:
    for ending in ("s", "ed", "ing", "es", "d"):
        if word.endswith(ending):
            yield word.removesuffix(ending)
            yield word.removesuffix(ending) + "e"


def _add(found: Found, index: int, phrase: str) -> None:
    """A cue counts once; different things of work up to three times."""
    name, weight, _, _ = cues.CUES[index]
    if name not in found:
        found[name] = weight, phrase
    elif name == THINGS and phrase not in found[name][1].split(", "):
        value, phrases = found[name]
        found[name] = min(3.0, value + 1), f"{phrases}, {phrase}"


def runs(text: str) -> list[str]:
    """Every run of one to four Latin words of `text`, in the order of where it starts."""
    text = text.lower()
    if not text.isascii():
        text = "".join(c if c < HAN else " " for c in text.replace("’", "'"))
    words = [bare for word in text.translate(PARTED).split() for bare in [word.strip("'-/.;")] if bare]
    count = len(words)
    return [" ".join(words[i : i + n]) for i in range(count) for n in (1, 2, 3, 4) if i + n <= count]


# How a sentence begins and ends


def _look_at_the_form(part: str, found: Found) -> None:
    """A question without a question word, an order, a definition, the bare name of what is wanted, an error message."""
    lower, first = part.lower(), _first_word(part)
    marked = lower.endswith(("?", "？")) and (" " in part or (not part.isascii() and len(part) > 4))
    if first in AUXILIARY or marked:
        found.setdefault(QUESTION, (2.0, first or "?"))
    if _definition(part):
        found.setdefault(GENERIC, (cues.EXPLANATION, "what is"))
    if first and first in cues.IMPERATIVE[0].split():
        found.setdefault(REQUEST, (2.0, first))
    if not part.isascii():
        _look_at_the_chinese_form(part, found)
    if QUESTIONS.isdisjoint(found) and all(weight >= 0 for weight, _ in found.values()) and _fragment(part):
        found["the name of something"] = 3.0, part[:30]
    if is_error(part):
        found.setdefault(FAILURE, (3.0, "an error message"))


def _look_at_the_chinese_form(part: str, found: Found) -> None:
    if part.startswith(tuple(cues.IMPERATIVE[1].split())) and not part.startswith(tuple(cues.NO_ORDER.split())):
        found.setdefault(REQUEST, (2.0, part[:2]))
    if len(part) > 4 and part.rstrip("。.").endswith(tuple(cues.ASKED_FOR.split())):
        found.setdefault("a Chinese question", (3.0, part[-2:]))
    # 停不停, 去没去: a verb asked with its own denial
    if any(part[i] == part[i + 2] and part[i + 1] in "不没" and part[i] >= HAN for i in range(len(part) - 2)):
        found.setdefault("a Chinese question", (3.0, "A不A"))


def _first_word(part: str) -> str:
    lower = part.lower()
    asked = next((lower.removeprefix(polite) for polite in POLITE if lower.startswith(polite)), lower)
    word = asked.split(" ", 1)[0].strip(EDGES)
    return word if word.isascii() else ""


def _definition(part: str) -> bool:
    """ "What is dependency injection": asked of a thing without "the" or "our", which is no name either."""
    words = part.split(maxsplit=3)
    if [word.lower() for word in words[:2]] not in (["what", "is"], ["what", "are"]) or len(words) < 3:
        return False
    name = words[2].strip(EDGES)
    return name.isalpha() and name.islower() and name not in OF_OURS


def _fragment(part: str) -> bool:
    """A few words that only name something, as one types into a search box: no verb, no pronoun, no mood."""
    if part.isascii():
        names = [word for word in part.split() if word not in BETWEEN]
        return 2 <= len(names) <= 5 and part.replace(" ", "").isalnum() and "" not in map(telling_word, names)
    return 4 <= len(part) <= 14 and part.isalnum() and MOOD.isdisjoint(part) and not part.startswith(DOING)
