"""Relative days in a sentence → dates, from the message's own time and zone; English and Chinese."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from pipimem.text import has_han

if TYPE_CHECKING:
    from collections.abc import Callable

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10,
}  # fmt: skip
HAN_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
HAN_WEEK = {c: n for n, c in enumerate("一二三四五六")} | {"日": 6, "天": 6}
ENGLISH_DAYS = {
    "the day before yesterday": -2, "yesterday": -1, "today": 0, "tonight": 0, "the day after tomorrow": 2,
    "tomorrow": 1, "last night": -1,
}  # fmt: skip
HAN_DAYS = {
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "今天": 0, "今早": 0, "今晚": 0,
    "明天": 1, "明早": 1, "明晚": 1, "大后天": 3, "后天": 2,
}  # fmt: skip
PARTS = {
    "昨晚": "晚", "今晚": "晚", "明晚": "晚", "今早": "早", "明早": "早", "tonight": " night", "last night": " night",
}  # fmt: skip
HAN_NUMBER = "[零〇一二两三四五六七八九十]{1,3}|\\d{1,2}"


def when(stamp: str) -> datetime | None:
    """An ISO 8601 time with its own offset, None for anything else."""
    try:
        return datetime.fromisoformat(stamp.strip())
    except ValueError:
        return None


_SET_OFF = re.compile(r"(?<=[\u3400-\u9fff])(?=\d{4}-\d\d-\d\d)|(?<=\d{4}-\d\d-\d\d)(?=[\u3400-\u9fff])")


def resolve(text: str, said: date, *, coming: bool = False) -> str:
    """`text` with every relative day replaced by its ISO date, counted from the day it was said.

    Only days a calendar settles: "tomorrow", "in two days", "next Tuesday", 明天, 下周二, 上个月六号. "next Tuesday"
    and 下周二 are the Tuesday of the following Monday-to-Sunday week, "by Friday", "this Friday" and 周五前 the first
    one from that day on; a weekday without such a word is left as it is, unless `coming` says that it lies ahead. What
    stands in 《》 or quotation marks, or with a capital letter as a name does, is left too.
    """
    for pattern, day in (*_RULES, *(_COMING if coming else ())):
        text = pattern.sub(lambda m, day=day: m[0] if _is_name(m) else _written(day(m, said), m), text)
    return _SET_OFF.sub(" ", text)


def anchored(text: str, said: date, *, coming: bool = False) -> str:
    """`resolve`, and where vague words ("next week", 月底) remain, the day they were said at the end."""
    text = resolve(text, said, coming=coming)
    if not _VAGUE.search(text) or said.isoformat() in text:
        return text
    return f"{text}（{said.isoformat()} 说）" if has_han(text) else f"{text} (said {said.isoformat()})"


def relative(text: str) -> bool:
    """Whether `text` names a day that only its own day settles: "tomorrow", 下周二, "next week", 月底."""
    return bool(_VAGUE.search(text)) or any(pattern.search(text) for pattern, _ in _RULES)


_QUOTED = re.compile(r"《[^《》\n]*》|“[^“”\n]*”|「[^「」\n]*」|‘[^‘’\n]*’|\"[^\"\n]*\"|`[^`\n]*`")
_SENTENCE = re.compile(r"(?:^|[.!?;:。！？；：\n])\s*[\"'“‘(\-*]*\s*\Z")


def _is_name(match: re.Match[str]) -> bool:
    """Whether the words are a title or a name: quoted, or with a capital where no sentence begins or before another."""
    text, (start, end) = match.string, match.span()
    if any(m.start() < start and end < m.end() for m in _QUOTED.finditer(text)):
        return True
    if not match[0][0].isupper() or match[0].split()[0].lower() in WEEKDAYS:
        return False
    named = re.match(r"['’]?\s+(?!I\b)[A-Z][a-z]+", text[end:])
    return not _SENTENCE.search(text[:start]) or (named is not None and named[0].split()[-1].lower() not in WEEKDAYS)


def _written(day: date | None, match: re.Match[str]) -> str:
    if day is None:
        return match[0]
    tail = PARTS.get(match[0].lower(), "")
    own = match.groupdict().get("own") or ""
    return day.isoformat() + own + tail


def _number(word: str) -> int:
    if word.isdecimal():
        return int(word)
    if word.lower() in NUMBERS:
        return NUMBERS[word.lower()]
    if word == "十":
        return 10
    tens, ten, ones = word.partition("十")
    if ten:
        return (HAN_DIGITS.get(tens, 1) if tens else 1) * 10 + (HAN_DIGITS[ones] if ones else 0)
    return HAN_DIGITS.get(word, 0)


def _english_day(match: re.Match[str], said: date) -> date:
    return said + timedelta(ENGLISH_DAYS[match["day"].lower()])


def _han_day(match: re.Match[str], said: date) -> date:
    return said + timedelta(HAN_DAYS[match[0]])


def _in_days(match: re.Match[str], said: date) -> date:
    return said + timedelta(_number(match["n"]) * (7 if match["unit"].lower().startswith("w") else 1))


def _days_ago(match: re.Match[str], said: date) -> date:
    return said - timedelta(_number(match["n"]) * (7 if match["unit"].lower().startswith("w") else 1))


def _english_weekday(match: re.Match[str], said: date) -> date:
    weeks = 1 if match["which"].lower() == "next" else -1
    return said + timedelta(WEEKDAYS.index(match["day"].lower()) - said.weekday() + 7 * weeks)


def _han_coming(match: re.Match[str], said: date) -> date:
    return said + timedelta((HAN_WEEK[match["day"]] - said.weekday()) % 7)


def _coming_weekday(match: re.Match[str], said: date) -> date:
    return said + timedelta((WEEKDAYS.index(match["day"].lower()) - said.weekday()) % 7)


def _han_weekday(match: re.Match[str], said: date) -> date:
    weeks = {"下": 1, "上": -1, "这": 0, "本": 0}[match["which"][0]] * len(match["which"].replace("个", ""))
    return said + timedelta(HAN_WEEK[match["day"]] - said.weekday() + 7 * weeks)


def _han_month(match: re.Match[str], said: date) -> date | None:
    month = said.month - 1 + {"下": 1, "上": -1, "这": 0, "本": 0}[match["which"][0]]
    try:
        return date(said.year + month // 12, month % 12 + 1, _number(match["n"]))
    except ValueError:
        return None


def _han_offset(match: re.Match[str], said: date) -> date:
    days = 7 if match["unit"] != "天" else 1
    return said + timedelta(_number(match["n"]) * days * (1 if match["way"] == "后" else -1))


def _rule(
    pattern: str, day: Callable[[re.Match[str], date], date | None]
) -> tuple[re.Pattern[str], Callable[[re.Match[str], date], date | None]]:
    return re.compile(pattern, re.IGNORECASE), day


_WEEK = "(?<![上下这本每个隔])(?:周|星期|礼拜)"
_RULES = (
    _rule(rf"\b(?P<day>{'|'.join(ENGLISH_DAYS)})(?P<own>(?:'s)?)\b", _english_day),
    _rule(rf"\bin (?P<n>\d{{1,3}}|{'|'.join(NUMBERS)}) (?P<unit>days?|weeks?)\b", _in_days),
    _rule(rf"\b(?P<n>\d{{1,3}}|{'|'.join(NUMBERS)}) (?P<unit>days?|weeks?) ago\b", _days_ago),
    _rule(rf"\b(?P<which>next|last) (?P<day>{'|'.join(WEEKDAYS)})\b", _english_weekday),
    _rule(
        rf"(?:(?<=\bby )|(?<=\buntil )|(?<=\bbefore )|\bthis )(?P<day>{'|'.join(WEEKDAYS)})\b",
        _coming_weekday,
    ),
    _rule("(?P<which>下下|上上|下|上|这|本)个?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _han_weekday),
    _rule(f"(?P<which>上|下|这|本)个?月(?P<n>{HAN_NUMBER})[号日]", _han_month),
    _rule(f"(?P<n>{HAN_NUMBER})(?:个)?(?P<unit>天|周(?!年)|星期|礼拜)(?:之|以)?(?P<way>[后前])", _han_offset),
    _rule(f"(?:{_WEEK})(?P<day>[一二三四五六日天])(?=(?:下班|中午|晚上|上午|下午|早上)?(?:之|以)?前)", _han_coming),
    _rule("|".join(HAN_DAYS), _han_day),
)
_COMING = (
    _rule(f"(?:{_WEEK})(?P<day>[一二三四五六日天])(?![一二三四五六日天到至])", _han_coming),
    _rule(rf"(?<=\bon )(?P<day>{'|'.join(WEEKDAYS)})\b", _coming_weekday),
)
_VAGUE = re.compile(
    r"\b(?:(?:next|last|this) (?:week|month|year|quarter|weekend)|end of (?:the|this) (?:week|month|year)|recently)\b"
    "|(?:[上下]+|这|本)个?(?:周(?!年)|星期|礼拜|月)|[去今明后]年|[月年周]底|这周末",
    re.IGNORECASE,
)
