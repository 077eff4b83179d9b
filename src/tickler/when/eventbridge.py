"""EventBridge's cron expressions: `cron(minute hour day month weekday year)`, with `?` for one of the two day fields.

Weekdays are 1 (Sunday) to 7. Ranges may wrap around (`20-2`, `FRI-MON`), except for years. `L` is the last day of the month or of
the week, `6L` the last Friday, `3#2` the second Tuesday, `3W` the working day nearest to the third. None of these may be listed.
"""

from __future__ import annotations

import re

from tickler.errors import InvalidWhen
from tickler.when.cron_fields import EVERY_DAY, EVERY_WEEKDAY, LAST, LAST_WEEKDAY, CronFields, FieldValues

FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week", "year")

_ALLOWED = {
    "minute": range(60),
    "hour": range(24),
    "day-of-month": range(1, 32),
    "month": range(1, 13),
    "day-of-week": range(1, 8),
    "year": range(1970, 2200),
}
_NAMES = {
    "month": ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    "day-of-week": ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
}
_REMEDIES = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, or L, LW or 15W alone",
    "month": "1 to 12, or JAN to DEC",
    "day-of-week": "1 to 7 from Sunday on, or SUN to SAT, or L, 6L or 3#2 alone",
    "year": "1970 to 2199, and ranges upwards",
}
_ITEM = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(0*[1-9]\d{0,3}))?", re.ASCII)


def compile_eventbridge(body: str) -> CronFields:
    """Compile six upper-case fields. `InvalidWhen` names the one at fault."""
    parts = body.split()
    if len(parts) != len(FIELDS) or (parts[2] == "?") == (parts[4] == "?"):
        remedy = "write six fields, minute hour day month weekday year, with '?' for the day or for the weekday"
        raise InvalidWhen("expression", body, f"is not an EventBridge expression: {remedy}")
    minute, hour, day, month, weekday, year = parts
    days, nearest = (EVERY_DAY, None) if day == "?" else _days(day)
    values = FieldValues(
        seconds=frozenset({0}),
        minutes=_numbers("minute", minute),
        hours=_numbers("hour", hour),
        days=days,
        months=_numbers("month", month),
        weekdays=EVERY_WEEKDAY if weekday == "?" else _weekdays(weekday),
        both=True,
        nearest=nearest,
        years=None if year == "*" else _numbers("year", year),
    )
    return CronFields(values, running=minute.startswith("*") or hour.startswith("*"))


def _days(part: str) -> tuple[frozenset[int], int | None]:
    """Return the days of the month, and the day of an expression such as `15W`."""
    if part == "L":
        return frozenset({LAST}), None
    if part == "LW":
        return frozenset({LAST_WEEKDAY}), None
    if part.endswith("W"):
        return frozenset(), _value("day-of-month", part[:-1], part)
    return _numbers("day-of-month", part), None


def _weekdays(part: str) -> frozenset[int | tuple[int, int]]:
    """Return the weekdays, with Sunday as 0."""
    field = "day-of-week"
    if part == "L":
        return frozenset({6})
    if part.endswith("L"):
        return frozenset({(_value(field, part[:-1], part) - 1, LAST)})
    name, nth_of_month, nth = part.partition("#")
    if nth_of_month:
        if nth not in ("1", "2", "3", "4", "5"):
            raise _invalid(field, part)
        return frozenset({(_value(field, name, part) - 1, int(nth))})
    if "/" in part:
        raise _invalid(field, part)
    return frozenset(number - 1 for number in _numbers(field, part))


def _numbers(field: str, part: str) -> frozenset[int]:
    """Read a list of numbers, ranges and steps."""
    allowed, found = _ALLOWED[field], set[int]()
    for item in part.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _invalid(field, part)
        low, high, step = match.groups()
        if low == "*":
            if high is not None:
                raise _invalid(field, part)
            members = list(allowed)
        else:
            first = _value(field, low, part)
            last = first if high is None and step is None else allowed[-1] if high is None else _value(field, high, part)
            if last < first and field == "year":
                raise _invalid(field, part)
            members = [*range(first, last + 1)] if first <= last else [*range(first, allowed.stop), *range(allowed[0], last + 1)]
        found.update(members[:: int(step or 1)])
    return frozenset(found)


def _value(field: str, text: str, part: str) -> int:
    """Read one number or name. `part` is the whole field, which errors show."""
    names = _NAMES.get(field, ())
    if text in names:
        return names.index(text) + 1
    if not re.fullmatch(r"\d{1,4}", text, re.ASCII) or int(text) not in _ALLOWED[field]:
        raise _invalid(field, part)
    return int(text)


def _invalid(field: str, part: str) -> InvalidWhen:
    return InvalidWhen(field, part, f"{field} {part!r} is invalid in EventBridge's cron: write {_REMEDIES[field]}", inside=True)
