"""A weekly plan: times by weekday, as in a form."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from tickler.errors import InvalidWhen
from tickler.when.calendar import Calendar
from tickler.when.describe_cron import clock
from tickler.when.zones import DAY

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

MAX_TIMES = 168  # one for each hour of the week

_FULL_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {name: number for names in (WEEKDAYS, _FULL_NAMES) for number, name in enumerate(names)}
_WEEK = 7 * DAY
_FIRST_MONDAY = 4 * DAY  # 5 January 1970, the first of the epoch
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)


class Weekly(Calendar):
    """The same times every week: `Weekly({"tue": "09:00", "thu": ["09:00", "17:30"], "mon": None}, tz="Europe/Paris")`.

    A day is on when it has a time. If every day is None, the plan has no instants.
    """

    __slots__ = ("times",)
    times: tuple[int, ...]  # seconds since Monday 00:00 on the wall clock, ascending

    def __init__(self, plan: Mapping[str, object], tz: str = "UTC") -> None:
        times = _read_plan(plan)
        text = ", ".join(f"{WEEKDAYS[second // DAY]} {clock(second % DAY)}" for second in times)
        object.__setattr__(self, "times", times)
        self._keep(f"weekly({text})", tz, _WeeklyTimes(times), running=False)

    def shortest_interval_ms(self) -> int | None:
        if not self.times:
            return None
        following = (*self.times[1:], self.times[0] + _WEEK)
        return min(b - a for a, b in zip(self.times, following, strict=True)) * 1000

    def days(self) -> dict[str, list[str]]:
        """Return the plan by weekday, without the days off."""
        plan: dict[str, list[str]] = {}
        for second in self.times:
            plan.setdefault(WEEKDAYS[second // DAY], []).append(clock(second % DAY))
        return plan

    def __repr__(self) -> str:
        return f"Weekly({self.days()!r}, tz={self.tz!r})"

    def __reduce__(self) -> tuple[type[Weekly], tuple[dict[str, list[str]], str]]:
        return Weekly, (self.days(), self.tz)


class _WeeklyTimes:
    """The wall times of a plan. Implements `WallTimes`."""

    __slots__ = ("_times",)

    def __init__(self, times: tuple[int, ...]) -> None:
        self._times = times

    def next_from(self, wall: int) -> int | None:
        if not self._times:
            return None
        week, second = divmod(wall - _FIRST_MONDAY, _WEEK)
        i = bisect_left(self._times, second)
        if i == len(self._times):
            week, i = week + 1, 0
        return _FIRST_MONDAY + week * _WEEK + self._times[i]

    def last_until(self, wall: int) -> int | None:
        if not self._times:
            return None
        week, second = divmod(wall - _FIRST_MONDAY, _WEEK)
        i = bisect_right(self._times, second) - 1
        if i < 0:
            week, i = week - 1, len(self._times) - 1
        return _FIRST_MONDAY + week * _WEEK + self._times[i]


def parse_weekly(body: str, tz: str | None = None) -> Weekly:
    """Read the part between the brackets of `weekly(tue 09:00, thu 09:00)`. Days may recur and have several times."""
    plan: dict[str, list[object]] = {}
    for entry in filter(None, (entry.split() for entry in body.split(","))):
        day, *times = entry
        if not times:
            raise InvalidWhen(day, f"weekly({body})", f"{day} has no time: write 'tue 09:00'", inside=True)
        number = _NUMBERS.get(day.lower())
        plan.setdefault(day if number is None else WEEKDAYS[number], []).extend(times)
    return Weekly(plan, tz="UTC" if tz is None else tz)


def _read_plan(plan: Mapping[str, object]) -> tuple[int, ...]:
    if not isinstance(plan, Mapping):
        raise InvalidWhen("plan", _short(plan), "is not a weekly plan: give weekdays with their times, such as {'tue': '09:00'}")
    times: set[int] = set()
    seen: set[int] = set()
    for name, day in plan.items():
        number = _NUMBERS.get(name.lower()) if isinstance(name, str) else None
        if number is None:
            raise _invalid(str(name), plan, f"{name!r} is not a weekday: use {', '.join(WEEKDAYS)}")
        if number in seen:
            raise _invalid(name, plan, f"{name!r} names a day a second time: give that day a list of times")
        seen.add(number)
        times.update(number * DAY + second for second in _read_day(name, day, plan))
    if len(times) > MAX_TIMES:
        raise InvalidWhen("plan", _short(plan), f"has {len(times)} times, more than {MAX_TIMES}: use Cron instead")
    return tuple(sorted(times))


def _read_day(name: str, day: object, plan: object) -> list[int]:
    if isinstance(day, Mapping):
        unknown = [str(key) for key in day if key != "time"]
        if unknown:
            field = f"{name}.{unknown[0]}"
            raise _invalid(
                field, plan, f"{field} is an unknown field: a day is on when it has a 'time', and off when that is null"
            )
        if "time" not in day:
            raise _invalid(name, plan, f"{name} has no 'time': give it one, or null for a day off")
        day = day["time"]
    if day is None:
        return []
    times = list(day) if isinstance(day, list | tuple) else [day]
    return [_read_time(name, time, plan) for time in times]


def _read_time(name: str, time: object, plan: object) -> int:
    match = _TIME.fullmatch(time) if isinstance(time, str) else None
    if match is None:
        raise _invalid(name, plan, f"{time!r} is not a time of day: write '09:00' or '17:30:15', or None for a day off")
    hour, minute, second = match.groups(default="0")
    return int(hour) * 3600 + int(minute) * 60 + int(second)


def _invalid(field: str, plan: object, reason: str) -> InvalidWhen:
    return InvalidWhen(field, _short(plan), reason, inside=True)


def _short(plan: object) -> str:
    text = str(plan)
    return text if len(text) <= 200 else text[:200] + "…"
