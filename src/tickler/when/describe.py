"""Describes a when in English: "at 02:00 every day". The caller adds the zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tickler.clock import to_datetime
from tickler.when.at import At
from tickler.when.cron import Cron, compile_cron
from tickler.when.describe_cron import MONTHS, clock, cron_in_words, listed, on_weekdays
from tickler.when.every import Every
from tickler.when.unreadable import Unreadable
from tickler.when.weekly import Weekly
from tickler.when.when import When
from tickler.when.zones import DAY

_UNITS = (("hour", 3_600_000), ("minute", 60_000), ("second", 1_000), ("millisecond", 1))
_DAY_MS = DAY * 1000


def in_words(when: When) -> str:
    """Describe `when` in one phrase."""
    match when:
        case Cron():
            return cron_in_words(compile_cron(str(when)).values)
        case Weekly():
            return _weekly(when.times)
        case At():
            return _once(when)
        case Every():
            return _every(when)
        case Unreadable():
            return f"unreadable: {when.reason}"
    return str(when)


def _weekly(times: Sequence[int]) -> str:
    """Describe a weekly plan, with days that have the same times grouped."""
    if not times:
        return "never: every day is off"
    by_day: dict[int, list[str]] = {}
    for second in times:
        by_day.setdefault(second // DAY, []).append(clock(second % DAY))
    by_times: dict[str, list[int]] = {}
    for day, clocks in by_day.items():
        by_times.setdefault(listed(clocks), []).append(day)
    return "; ".join(f"at {at} {'every day' if len(days) == 7 else on_weekdays(days)}" for at, days in by_times.items())


def _once(when: At) -> str:
    wall = datetime.fromisoformat(str(when)[3:-1])
    date = f"{wall.day} {MONTHS[wall.month - 1]} {wall.year}"
    if when.at_ms is None:
        return f"never: there is no {date} in {when.tz}"
    thousandths = f":{wall.second:02}.{wall.microsecond // 1000:03}" if wall.microsecond else ""
    return f"once, on {date} at {clock(wall.hour * 3600 + wall.minute * 60 + (0 if thousandths else wall.second))}{thousandths}"


def _every(when: Every) -> str:
    start = "" if when.start is None else f", counted from {_instant(when.start)}"
    return f"every {_interval(when.interval_ms)}{start}"


def _interval(ms: int) -> str:
    """Describe an interval. One day is "24 hours", since a calendar day may be longer or shorter."""
    if ms % _DAY_MS == 0 and ms > _DAY_MS:
        return f"{ms // _DAY_MS} days"
    parts: list[str] = []
    for unit, size in _UNITS:
        number, ms = divmod(ms, size)
        if number:
            parts.append(f"{number} {unit}{'' if number == 1 else 's'}")
    only = parts[0].removeprefix("1 ") if len(parts) == 1 else None
    return only or " ".join(parts)


def _instant(ms: int) -> str:
    moment = to_datetime(ms)
    thousandths = f".{ms % 1000:03}" if ms % 1000 else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{thousandths} UTC"
