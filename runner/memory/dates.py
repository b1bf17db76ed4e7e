"""Dates as models and persons write them: which period a text names, and a moment as a text. No zone means UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = r"(?P<name>[a-z]{3,9})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_YEAR}(?:[-/.](?P<month>\d{{1,2}})(?:[-/.]{_DAY})?)?",
        rf"{_YEAR}(?P<month>\d{{2}})(?P<day>\d{{2}})",
        rf"{_YEAR}\s*年(?:\s*(?P<month>\d{{1,2}})\s*月(?:\s*(?P<day>\d{{1,2}})\s*[日号])?)?",
        rf"{_DAY}(?: of)?[\s-]{_MONTH},?[\s-]{_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
        rf"{_MONTH},? {_YEAR}",
    )
)
_TIME = re.compile(
    r"(?<![\d:+-])(?:(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*([ap]\.?m\.?)(?!\w)|(\d{1,2}):(\d{2})(?::(\d{2}))?(?![\d:]))"
)
_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b,?")
_EPOCH = re.compile(r"-?\d{9,11}(?:\.\d+)?")
_FILLER = re.compile(r"(?:^|\s)(?:on|at|the)(?=\s|$)|\s*(?:utc|gmt)$")
EXAMPLES = "2023-05-07, 2023-05, 2023, 2023-05-07T14:30:00Z, 7 May 2023"


class Period(NamedTuple):
    """From the first to the last moment, both in seconds since the epoch; of one moment both are the same."""

    start: float
    end: float


def period(text: str) -> Period:
    """The period that a text names: a moment, a day, a month or a year. Raises ValueError, with examples, for a text
    that names none, such as `yesterday`."""
    given = text.strip()
    try:
        found = _exact(given) or _written(given.lower())
    except (ValueError, OverflowError) as error:
        raise ValueError(f"'{given}' is no date ({error}); write it like {EXAMPLES}") from error
    if found is None:
        raise ValueError(f"'{given}' is no date; write it like {EXAMPLES}")
    return found


def moment(seconds: float) -> str:
    """A moment as a text, in UTC, to the minute; of midnight only the day; what no calendar has as a number."""
    at = _calendar(seconds)
    if at is None:
        return f"{seconds:.0f}"
    return f"{at:%Y-%m-%d}" if (at.hour, at.minute, at.second) == (0, 0, 0) else f"{at:%Y-%m-%d %H:%M}"


def stamp(seconds: float) -> str:
    """The same, always to the minute and with the weekday."""
    at = _calendar(seconds)
    return f"{seconds:.0f}" if at is None else f"{at:%A %Y-%m-%d %H:%M}"


def _calendar(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _exact(text: str) -> Period | None:
    """Seconds since the epoch, or ISO 8601 with a time of day."""
    if _EPOCH.fullmatch(text):
        return Period(float(text), float(text))
    if ":" not in text or not text[:1].isdigit():
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return _moment(at if at.tzinfo else at.replace(tzinfo=UTC))


def _written(text: str) -> Period | None:
    time = _TIME.search(text)
    rest = text if time is None else f"{text[: time.start()]} {text[time.end() :]}"
    rest = _FILLER.sub(" ", _WEEKDAY.sub(" ", rest))
    rest = " ".join(rest.split()).strip(" ,")
    for pattern in _DATES:
        found = pattern.fullmatch(rest)
        if found is not None:
            return _period(found.groupdict(), time)
    return None


def _period(parts: dict[str, str | None], time: re.Match[str] | None) -> Period | None:
    year = int(parts["year"] or 0)
    month = _month(parts)
    day = parts.get("day")
    if month is None:
        start = datetime(year, 1, 1, tzinfo=UTC)
        return None if time is not None else Period(start.timestamp(), _before(datetime(year + 1, 1, 1, tzinfo=UTC)))
    if not 1 <= month <= 12:
        return None
    if day is None:
        start = datetime(year, month, 1, tzinfo=UTC)
        after = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        return None if time is not None else Period(start.timestamp(), _before(after))
    start = datetime(year, month, int(day), tzinfo=UTC)
    if time is None:
        return Period(start.timestamp(), _before(start + timedelta(days=1)))
    hour, minute, second = (int(part or 0) for part in (time[1] or time[5], time[2] or time[6], time[3] or time[7]))
    if time[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if time[4].startswith("p") else 0)
    return _moment(start.replace(hour=hour, minute=minute, second=second))


def _month(parts: dict[str, str | None]) -> int | None:
    name, number = parts.get("name"), parts.get("month")
    if name is None:
        return None if number is None else int(number)
    return next((place for place, full in enumerate(_MONTHS, 1) if full.startswith(name)), 0)


def _moment(at: datetime) -> Period:
    return Period(at.timestamp(), at.timestamp())


def _before(at: datetime) -> float:
    return at.timestamp() - 0.001
