"""Whether a text says only what its evidence says: numbers, names, content, language, denials and places.

The evidence is what an operation cites: messages, with their relative days as dates, and entries. guards.py decides
what becomes of an operation; nothing here knows one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from pipimem.index.words import fold
from pipimem.text import has_han
from pipimem.update import dates
from pipimem.update.window import SPLIT

if TYPE_CHECKING:
    from pipimem.transcript import Message

NUMBER = re.compile(r"\d+(?:[.:/-]\d+)*")
LATIN = re.compile(r"(?<![A-Za-z\d])[A-Za-z][\w.@/+-]*\w|(?<![A-Za-z\d])[A-Za-z]")
HAN_NUMERAL = re.compile(
    r"(?:(?<=[周第初])|(?<=星期)|(?<=礼拜))[一二三四五六七八九十日天]{1,3}"
    r"|[零〇一二两三四五六七八九十百千]{1,5}(?=\s?[号日点月年天周时分秒万亿块元倍层楼台名行届章岁%％]|小时|分钟|星期|礼拜|个月)"
    r"|[二两三四五六七八九十百千]{1,5}(?=\s?[个次人条件种份张家])"
)
HAN_VALUES = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
HAN_TENS = {"十": 10, "百": 100, "千": 1000}
NUMBER_WORDS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
CALENDAR = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september "
    "october november december".split()
)
QUOTED = re.compile(r"[「『《“\"]([^」』》”\"]{2,60})[」』》”\"]")
MONTH_DAY = re.compile(r"(\d{1,2}) ?月 ?(\d{1,2}) ?[号日]")
SENTENCE = re.compile(r"[。！？!?\n]+|\.(?=\s|$)")
CLAUSE = re.compile(r"[。！？!?；;，,：:、\n（）()]+|\.(?=\s|$)|\s[—–-]\s")
NOT = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|without|cannot|forbid\w*|ban(?:ned)?|prohibit\w*|stop)\b|n['’]t\b"
    r"|不(?![过仅同错断久论管])|[没禁勿]|(?<![级区特类分个性识])别(?![人的名处墅])|未(?!来)|无(?!论)|停止",
    re.IGNORECASE,
)
INSTEAD = re.compile(r"\s*\b(?:instead of|rather than)\b\s*", re.IGNORECASE)
LEAD_IN = re.compile(
    r"^\W*(?:(?:no|nope|wait|actually|sorry|correction|啊?不对|不是的)"
    r"(?: (?:no|wait|actually|sorry))*[，,:：!！.。]\s*)+",
    re.IGNORECASE,
)
COMMON = frozenset(
    "a an the and or but if so as at by for from in into of off on onto out over to up via with than then this "
    "that these those it its is are was were be been being am do does did has have had will would can could "
    "should may might shall must i me my mine we us our ours you your yours he him his she her hers they them "
    "their who whom whose which what when where while there here also too just only very really now ok okay "
    "yes please not no never s t d ll re ve m said".split()
)


def units(text: str) -> set[str]:
    """The content of a text: stems of folded Latin words without common ones, numbers, pairs of Han characters."""
    return set(_ordered(text))


def _ordered(text: str) -> list[str]:
    folded = fold(text)
    found = [(m.start(), _stem(m[0])) for m in re.finditer(r"[a-z][a-z0-9]*", folded) if m[0] not in COMMON]
    found += [(m.start(), m[0]) for m in re.finditer(r"\d+", folded)]
    pairs = enumerate(itertools.pairwise(folded))
    found += [(at, a + b) for at, (a, b) in pairs if a >= "\u3400" and b >= "\u3400" and (a + b).isalpha()]
    return [unit for _, unit in sorted(found)]


def _stem(word: str) -> str:
    for suffix in ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "ly", "s", "e", "y"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix)
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def numbers(text: str) -> set[str]:
    """The numbers and dates of a text, as digits; Han numerals and English number words by value, weekdays by name."""
    folded = fold(text.replace(",", "") if re.search(r"\d,\d{3}", text) else text)
    found = set(NUMBER.findall(folded))
    found |= {NUMBER_WORDS[w] for w in re.findall(r"[a-z]+", folded) if w in NUMBER_WORDS}
    for match in HAN_NUMERAL.finditer(folded):
        weekday = folded[max(0, match.start() - 1)] in "周期拜" and match.start() > 0
        found.add(f"周{match[0][0]}" if weekday else _han_value(match[0]))
    return found


def _han_value(text: str) -> str:
    total, digit = 0, 0
    for char in text:
        if char in HAN_TENS:
            total += (digit or 1) * HAN_TENS[char]
            digit = 0
        else:
            digit = digit * 10 + HAN_VALUES.get(char, 0)
    return str(total + digit)


def names(text: str) -> set[str]:
    """The names and identifiers of a text, folded: what is quoted in brackets, months and weekdays, Latin words inside
    Chinese, words with an inner capital, digit or joiner, capitalised words that begin no sentence.
    """
    chinese = has_han(text)
    found = {fold(q).strip() for q in QUOTED.findall(text)}
    for match in LATIN.finditer(text):
        word = re.sub(r"['’]s$", "", match[0]).rstrip(".-/")
        before = text[: match.start()].rstrip("\"'“‘(（「[*_` ")
        begins = not before or before[-1] in ".!?。！？:：\n"
        telling = any(c.isdigit() or c in "_./@+-" for c in word) or any(c.isupper() for c in word[1:])
        if chinese or telling or (word[:1].isupper() and not begins) or fold(word) in CALENDAR:
            found.add(fold(word))
    return {name for name in found if name not in COMMON}


HAN_COMMON = frozenset(
    "的了是在和与及或也都就还又再很太更最为以于从到向对由把被将给让使用会能可要应该须需已其该此这那并而且但则因所之者等中上下后前时"
    "个们"
)


@dataclass(frozen=True)
class Evidence:
    """What an operation rests on: the messages it cites, and the texts of the entries it cites."""

    messages: tuple[Message, ...]
    entries: tuple[str, ...] = ()

    @cached_property
    def by_source(self) -> list[str]:
        """What each entry and message says, in order: name, text, and the text with relative days as dates."""
        return [*self.entries, *("\n".join((m.name, *_with_dates(m))) for m in self.messages)]

    @cached_property
    def words(self) -> str:
        """All that was said."""
        return "\n".join(self.by_source)

    @cached_property
    def folded(self) -> str:
        """The words in the form in which they are compared."""
        return fold(self.words)

    @cached_property
    def numbers(self) -> set[str]:
        """Every number and date said."""
        return numbers(self.words)

    @cached_property
    def units(self) -> set[str]:
        """The content said."""
        return units(self.words)

    @cached_property
    def said(self) -> str:
        """The texts alone, without what was worked out from them."""
        return "\n".join([*self.entries, *(m.text for m in self.messages)])


def _with_dates(message: Message) -> list[str]:
    """The text, and if its day is known: its relative days as dates, its month days with a year, and the day itself."""
    stamp = dates.when(message.time)
    if not stamp:
        return [message.text]
    said = stamp.date()
    readings = {dates.resolve(message.text, said), dates.resolve(message.text, said, coming=True)} - {message.text}
    years = {said.year, (said + timedelta(180)).year}
    days = [f"{y}-{int(m):02}-{int(d):02}" for m, d in MONTH_DAY.findall(message.text) for y in sorted(years)]
    return [message.text, *sorted(readings), *days, said.isoformat()]


# What a text may not say beyond its evidence; each gives the reason, "" where there is none

NOBODYS = frozenset(
    "user users team everybody everyone somebody people all any every each one use prefers likes".split()
)
SENTENCE_COVERED, CLAUSE_COVERED, CLAUSE_LEAST = 0.7, 0.5, 3
ALIKE, WORD_FOR_WORD = 0.6, 0.9


def ungrounded(text: str, evidence: Evidence) -> str:
    """Why `text` says more or something else than its evidence, "" where it does not.

    Language, numbers, names, content, denial and the places of numbers and names are looked at, in that order.
    """
    checks = (_other_language, _new_numbers, _new_names, _new_words, _uncovered, _turned_round, _exchanged, _anothers)
    return next((reason for check in checks if (reason := check(text, evidence))), "")


ASKED = re.compile(r"[?？][\s」”\"')）]*$|[吗呢]$|是否|\bwhether\b", re.IGNORECASE)
REQUEST = re.compile(r"\b(?:(?:can|could|would|will) you|please|remember)\b|请|麻烦|帮|记住|记得|记一下", re.IGNORECASE)
DOUBTED = re.compile(
    r"\b(?:if|unless|in case|suspect\w*|maybe|perhaps|might|probably|possibly|not sure|unsure|wonder\w*|i guess)\b"
    r"|如果|要是|假如|假设|除非|的话|万一|怀疑|也许|或许|大概|说不定|不确定|不知道|(?<!不)可能(?!会)|好像|似乎|估计",
    re.IGNORECASE,
)
KEPT_OPEN = re.compile(
    rf"{DOUBTED.pattern}|\b(?:when|whenever|once|while|could)\b|[时若]|是否|可能|建议", re.IGNORECASE
)
AGREES = re.compile(r"\W*(?:yes|yeah|ok|okay|sure|right|agreed|let['’]s|好|行|对|是的|可以|没错|就这么)", re.IGNORECASE)


def open_ended(sentence: str) -> bool:
    """Whether a sentence asks, doubts, or says something for a case only."""
    asks = ASKED.search(sentence.strip()) is not None and not REQUEST.search(sentence)
    return asks or DOUBTED.search(sentence) is not None


def unsettled(text: str, evidence: Evidence) -> str:
    """Why `text` says for certain what was only asked, doubted or tied to a condition; "" where it does not.

    What somebody answered or agreed to afterwards is certain.
    """
    if ASKED.search(text.strip()):
        return "it is a question"
    if KEPT_OPEN.search(text):
        return ""
    said = [(units(entry), open_ended(entry)) for entry in evidence.entries]
    for at, message in enumerate(evidence.messages):
        later = [m for m in evidence.messages[at + 1 :] if m.role == "user"]
        parts = [part for part in SPLIT.split("\n".join(_with_dates(message)[:3])) if part.strip()]
        for number, part in enumerate(parts):
            mine, agreed = units(part), AGREES.match(" ".join(parts[number + 1 : number + 2]))
            answered = any(AGREES.match(m.text) or _short_yes(m.text) for m in later)
            said.append((mine, open_ended(part) and not (agreed or answered)))
    for part in SENTENCE.split(text):
        mine = units(part)
        best = max((len(mine & theirs) for theirs, _ in said), default=0)
        if mine and best and all(opened for theirs, opened in said if len(mine & theirs) == best):
            return "it was only asked, doubted, or said for a case"
    return ""


def _short_yes(text: str) -> bool:
    return len(units(text)) <= SHORT_ANSWER and not NOT.search(text) and not open_ended(text)


def _other_language(text: str, evidence: Evidence) -> str:
    if has_han(text) and not has_han(evidence.words):
        return "it is in another language than what was said"
    if has_han(text) or not has_han(evidence.said):
        return ""
    # a whole sentence without Han from a talk that has little else: only words that were said as they are
    latin = {w for w in re.findall(r"[a-z]{2,}", fold(text)) if w not in COMMON}
    new = latin - set(re.findall(r"[a-z]{2,}", evidence.folded))
    return "it is in another language than what was said" if len(new) > len(latin) * (1 - SENTENCE_COVERED) else ""


def _new_numbers(text: str, evidence: Evidence) -> str:
    new = sorted(numbers(text) - evidence.numbers)
    return f"the number {new[0]} was not said" if new else ""


def _new_names(text: str, evidence: Evidence) -> str:
    first = re.match(r"\W*([A-Z][A-Za-z'’]+)", text)
    if first and first[1].lower() not in COMMON | NOBODYS and not units(first[1]) <= evidence.units:
        return f"the name '{first[1]}' was not said"
    for name in sorted(names(text)):
        found = name in evidence.folded if not name.isascii() else _whole_word(name, evidence.folded)
        if not found and not all(_whole_word(p, evidence.folded) for p in re.split(r"[/.@+-]", name) if p):
            return f"the name '{name}' was not said"
    return ""


def _new_words(text: str, evidence: Evidence) -> str:
    """Two Han characters side by side that nobody said are a name or a matter of their own."""
    run = ""
    for char in HAN_FRAMES.sub(" ", fold(text)) + " ":
        if char >= "\u3400" and char.isalpha() and char not in HAN_COMMON and char not in evidence.folded:
            run += char
            continue
        if len(run) > 1:
            return f"'{run}' was not said"
        run = ""
    return ""


def _whole_word(word: str, text: str) -> bool:
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and _wordy(text[at - 1])) and not (end < len(text) and _wordy(text[end])):
            return True
        at = text.find(word, at + 1)
    return False


def _wordy(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


# How a report frames what was said ("The team decided to …", 用户…, …负责…): no claim of their own.
FRAMES = units("user team decided uses wants prefers needs plans fix root cause fact note")
HAN_FRAMES = re.compile("用户|团队|决定|使用|采用|统一|负责|完成|需要|希望|偏好|计划|原因|时间|不用|不要|不再|不能")


def _uncovered(text: str, evidence: Evidence) -> str:
    for pattern, least, share in ((SENTENCE, 1, SENTENCE_COVERED), (CLAUSE, CLAUSE_LEAST, CLAUSE_COVERED)):
        for part in pattern.split(text):
            mine = units(HAN_FRAMES.sub(" ", part)) - (FRAMES - evidence.units)
            if len(mine) >= least and len(mine & evidence.units) < share * len(mine):
                return "it says more than its evidence"
    return ""


def _turned_round(text: str, evidence: Evidence) -> str:
    """Each clause denies what the clause it comes from denies."""
    said = [(units(part), len(NOT.findall(part))) for part in _clauses(evidence.words)]
    for part in _clauses(text):
        mine, denials = units(part), len(NOT.findall(part))
        shares = [(len(mine & theirs), count) for theirs, count in said]
        best = max((n for n, _ in shares), default=0)
        aside = len(mine) == 1 and not denials and not has_han(part) and not names(part)  # "in this repo"
        if not mine or aside or best < ALIKE * len(mine):
            continue
        counts = {count for n, count in shares if n == best}
        fewer = not denials or best >= WORD_FOR_WORD * len(mine)
        if denials > max(counts) or (fewer and denials < min(counts)):
            return "it denies what was said, or says what was denied"
    return ""


def _clauses(text: str) -> list[str]:
    text = INSTEAD.sub(", not ", text)
    return [part for line in text.split("\n") for part in CLAUSE.split(LEAD_IN.sub("", line)) if part.strip()]


def _anothers(text: str, evidence: Evidence) -> str:
    """Whose it is: a name before a colon is the speaker's of what follows; a clause that names somebody rests on
    clauses that name them, or on what they said of themselves.
    """
    spoken = {m.name for m in evidence.messages if m.name}
    owner = OWNER.match(text)
    if owner and (name := owner[1] or owner[2]) in spoken:
        return _not_of(name, _clauses(text[owner.end() :]), _about(name, evidence, whole=True))
    for name in sorted(spoken | {name for m in evidence.messages for name in MENTION.findall(m.text)}):
        calls = _calls(name)
        named = [_without(part, calls) for part in _clauses(text) if any(call in part for call in calls)]
        if reason := _not_of(name, named, _about(name, evidence, whole=False)):
            return reason
    return ""


def _not_of(name: str, clauses: list[str], about: str) -> str:
    for part in clauses:
        mine = {unit for unit in units(part) if not unit.isdigit()}
        if len(mine & units(about)) < CLAUSE_COVERED * len(mine):
            return f"it was not said of '{name}'"
    return ""


OWNER = re.compile(r"([^\s:：，,。.]{1,24})[:：]\s*|([\u3400-\u9fff]{2,6})\s")
MYSELF = re.compile(r"\b(?:I|I['’](?:m|ll|d|ve)|my|me|mine)\b|我")
INTRODUCES = re.compile(r"\bmy name is\b|\bcall me\b|我叫|我的名字", re.IGNORECASE)
SHORT_ANSWER = 2  # units
MENTION = re.compile(r"@([^\s@，,。:：]{1,20})")


def _calls(name: str) -> list[str]:
    """How people call somebody: the whole name, and of a Chinese name of three characters the last two."""
    return [name, name[1:]] if has_han(name) and len(name) == 3 else [name]


def _without(part: str, calls: list[str]) -> str:
    for call in calls:
        part = part.replace(call, " ")
    return part


def _about(name: str, evidence: Evidence, *, whole: bool) -> str:
    """What one person said of themselves (all they said, with `whole`), with what a short answer of theirs answered,
    and every clause that names them.
    """
    lines = list(evidence.entries)
    sources = evidence.by_source[len(evidence.entries) :]
    for at, (message, source) in enumerate(zip(evidence.messages, sources, strict=True)):
        if message.name == name and (whole or INTRODUCES.search(message.text)):
            lines.append(source)
        elif message.name == name:
            lines += [part for part in _clauses(source) if MYSELF.search(part)]
        if message.name == name and at and _answers(message, evidence.messages[at - 1]):
            lines.append(sources[at - 1])
        lines += [part for part in _clauses(source) if any(call in part for call in _calls(name))]
    return "\n".join(lines)


def _answers(message: Message, before: Message) -> bool:
    """Whether a message of hardly a word answers a question, or what was asked of its speaker."""
    asked = "?" in before.text or "？" in before.text or f"@{message.name}" in before.text
    return asked and len(units(message.text)) <= SHORT_ANSWER


ANCHORS, MISPLACED, BY_MORE = 12, 3, 2


def _exchanged(text: str, evidence: Evidence) -> str:
    """Two numbers or names of the text stand where the evidence has the other one, or one where it has another.

    What a later message puts in the place of an earlier value is a correction and may stand there.
    """
    telling = names(text) | names(evidence.words)
    said = [_places(line, telling) for line in evidence.by_source]
    merged = _merged(itertools.chain(*said))
    here = [(name, around) for name, around in _places(text, telling) if name in merged]
    for name, around in here:
        last = max(at for at, places in enumerate(said) if any(n == name for n, _ in places))
        since = _merged(itertools.chain(*said[last:]))
        enough = max(MISPLACED, len(around & merged[name]) + BY_MORE)
        if any(len(around & them) >= enough for other, them in since.items() if other != name):
            return f"'{name}' stands in another's place"
    mine = _merged(here)
    for one, other in itertools.combinations(list(mine)[:ANCHORS], 2):
        straight = len(mine[one] & merged[one]) + len(mine[other] & merged[other])
        crossed = len(mine[one] & merged[other]) + len(mine[other] & merged[one])
        if crossed > straight:
            return f"'{one}' and '{other}' stand in each other's place"
    return ""


Around = set[tuple[int, str]]
PIECE = re.compile(
    r"\d+(?:[.:/-]\d+)*|[a-z][a-z0-9_.@/+-]*[a-z0-9]|[a-z]|[周期拜][一二三四五六日天]|[\u3400-\u9fff]|[^\s\w]"
)


def _places(text: str, telling: set[str]) -> list[tuple[str, Around]]:
    """Each number, weekday and name, with what stands around it: up to two pieces before (-1) and after (1)."""
    found = []
    for line in fold(text).split("\n"):
        pieces = PIECE.findall(line)
        for at, piece in enumerate(pieces):
            if piece[0].isdigit() or piece in telling or (len(piece) == 2 and piece[0] in "周期拜"):
                before, after = pieces[max(0, at - 2) : at], pieces[at + 1 : at + 3]
                found.append((piece, {(-1, p) for p in before} | {(1, p) for p in after}))
    return found


def _merged(places: Iterable[tuple[str, Around]]) -> dict[str, Around]:
    merged: dict[str, Around] = {}
    for name, around in places:
        merged[name] = merged.get(name, set()) | around
    return merged
