"""Relative days in a sentence → dates, from the message's own time and zone; English and Chinese."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

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
    "tomorrow": 1,
}  # fmt: skip
HAN_DAYS = {
    "大前天": -3, "前天": -2, "昨天": -1, "昨晚": -1, "今天": 0, "今晚": 0, "明天": 1, "明早": 1, "明晚": 1,
    "大后天": 3, "后天": 2,
}  # fmt: skip
HAN_NUMBER = "[零〇一二两三四五六七八九十]{1,3}|\\d{1,2}"


def when(stamp: str) -> datetime | None:
    """An ISO 8601 time with its own offset, None for anything else."""
    try:
        return datetime.fromisoformat(stamp.strip())
    except ValueError:
        return None


def resolve(text: str, said: date) -> str:
    """`text` with every relative day replaced by its ISO date, counted from the day it was said.

    Only days a calendar settles: "tomorrow", "in two days", "next Tuesday", 明天, 下周二, 上个月六号. "next Tuesday"
    and 下周二 are the Tuesday of the following Monday-to-Sunday week, "by Friday" and "this Friday" the first one from
    that day on; a weekday without such a word is left as it is.
    """
    for pattern, day in _RULES:
        text = pattern.sub(lambda m, day=day: _written(day(m, said), m), text)  # type: ignore[misc]
    return text


def _written(day: date | None, match: re.Match[str]) -> str:
    if day is None:
        return match[0]
    tail = {"昨晚": "晚", "今晚": "晚", "明晚": "晚", "明早": "早", "tonight": " night"}.get(match[0].lower(), "")
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
    return said + timedelta(_number(match["n"]) * (1 if match["way"] in "后" else -1))


def _rule(
    pattern: str, day: Callable[[re.Match[str], date], date | None]
) -> tuple[re.Pattern[str], Callable[[re.Match[str], date], date | None]]:
    return re.compile(pattern, re.IGNORECASE), day


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
    _rule(f"(?P<n>{HAN_NUMBER})天(?:之|以)?(?P<way>[后前])", _han_offset),
    _rule("|".join(HAN_DAYS), _han_day),
)
