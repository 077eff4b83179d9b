"""A compiled cron expression: its wall times as bit masks."""

from __future__ import annotations

from calendar import isleap
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from tickler.when.zones import DAY

LAST, LAST_WEEKDAY = -1000, -1001  # used in `days` and with a weekday; the same numbers as cronsim's
EVERY_DAY = frozenset(range(1, 32))
EVERY_MONTH = frozenset(range(1, 13))
EVERY_WEEKDAY = frozenset(range(7))

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST_YEAR, _LAST_YEAR = 2, 9998
_FIRST_DAY = date(_FIRST_YEAR, 1, 1).toordinal() - _EPOCH_ORDINAL
_LAST_DAY = date(_LAST_YEAR, 12, 31).toordinal() - _EPOCH_ORDINAL
_GREGORIAN_CYCLE_MONTHS = 400 * 12
_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class FieldValues(NamedTuple):
    """The values of each field. `days` may have LAST and LAST_WEEKDAY; in `weekdays`, Sunday is 0, a pair is (weekday, nth)."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int | tuple[int, int]]
    both: bool  # whether day and weekday must both match; otherwise one of them is enough
    nearest: int | None = None  # in addition to `days`: the working day nearest to this day of the month
    years: frozenset[int] | None = None  # None: all of them


class CronFields:
    """The wall times of a cron expression. Implements `WallTimes`."""

    __slots__ = (
        "_any_day",
        "_hours",
        "_minutes",
        "_months",
        "_seconds",
        "_shapes",
        "_years",
        "first",
        "last",
        "running",
        "values",
    )

    def __init__(self, values: FieldValues, *, running: bool) -> None:
        self.values = values
        self.running = running
        self._seconds = _mask(values.seconds)
        self._minutes = _mask(values.minutes)
        self._hours = _mask(values.hours)
        self._months = _mask(values.months)
        self._years = values.years
        self._shapes: dict[tuple[int, int], int] = {}
        self.first = _lowest(self._hours) * 3600 + _lowest(self._minutes) * 60 + _lowest(self._seconds)
        self.last = _highest(self._hours) * 3600 + _highest(self._minutes) * 60 + _highest(self._seconds)
        self._any_day = (
            values.years is None
            and values.days >= EVERY_DAY
            and values.months >= EVERY_MONTH
            and values.weekdays >= EVERY_WEEKDAY
        )

    def next_from(self, wall: int) -> int | None:
        """Return the first matching wall time >= `wall`."""
        day, second = divmod(wall, DAY)
        if second <= self.last and self._matches(day):
            return day * DAY + self._time_from(second)
        found = self._day_from(day + 1)
        return None if found is None else found * DAY + self.first

    def last_until(self, wall: int) -> int | None:
        """Return the last matching wall time <= `wall`."""
        day, second = divmod(wall, DAY)
        if second >= self.first and self._matches(day):
            return day * DAY + self._time_until(second)
        found = self._day_until(day - 1)
        return None if found is None else found * DAY + self.last

    def shortest_interval(self) -> int:
        """Return the seconds between the two nearest times of day, including the first of the next day."""
        minutes = [hour * 60 + minute for hour in _members(self._hours) for minute in _members(self._minutes)]
        apart = min(later - earlier for earlier, later in zip(minutes, [*minutes[1:], minutes[0] + 1440], strict=True))
        seconds = _members(self._seconds)
        across = apart * 60 + seconds[0] - seconds[-1]  # from the last second of a minute to the first of the next one
        return min([across, *(later - earlier for earlier, later in pairwise(seconds))])

    def _time_from(self, second: int) -> int:
        """Return the first time of day >= `second`. The caller ensures that there is one."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        if self._hours >> hour & 1:
            if self._minutes >> minute & 1:
                seconds = self._seconds >> second
                if seconds:
                    return hour * 3600 + minute * 60 + second + _lowest(seconds)
            minutes = self._minutes >> minute + 1
            if minutes:
                return hour * 3600 + (minute + 1 + _lowest(minutes)) * 60 + _lowest(self._seconds)
        hour += 1 + _lowest(self._hours >> hour + 1)
        return hour * 3600 + self.first % 3600

    def _time_until(self, second: int) -> int:
        """Return the last time of day <= `second`. The caller ensures that there is one."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        if self._hours >> hour & 1:
            if self._minutes >> minute & 1:
                seconds = _up_to(self._seconds, second)
                if seconds:
                    return hour * 3600 + minute * 60 + _highest(seconds)
            minutes = _up_to(self._minutes, minute - 1)
            if minutes:
                return hour * 3600 + _highest(minutes) * 60 + _highest(self._seconds)
        hour = _highest(_up_to(self._hours, hour - 1))
        return hour * 3600 + self.last % 3600

    def _matches(self, day: int) -> bool:
        if self._any_day:
            return True
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return False
        year, month, number = self._month_of(day)
        return bool(self._days(year, month, day - number + 1) >> number & 1)

    def _day_from(self, day: int) -> int | None:
        """Return the first matching day >= `day`, in days since the epoch."""
        if day > _LAST_DAY:
            return None
        if self._any_day:
            return day
        day = max(day, _FIRST_DAY)
        year, month, number = self._month_of(day)
        first = day - number + 1
        rest = self._days(year, month, first) >> number
        if rest:
            return day + _lowest(rest)
        for _ in range(_GREGORIAN_CYCLE_MONTHS):
            first += _length(year, month)
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            if self._years is not None and year not in self._years:
                year, month = min((each for each in self._years if each > year), default=_LAST_YEAR + 1), 1
                first = date(year, month, 1).toordinal() - _EPOCH_ORDINAL
            if year > _LAST_YEAR:
                return None
            days = self._days(year, month, first)
            if days:
                return first + _lowest(days) - 1
        return None

    def _day_until(self, day: int) -> int | None:
        """Return the last matching day <= `day`, in days since the epoch."""
        if day < _FIRST_DAY:
            return None
        if self._any_day:
            return day
        day = min(day, _LAST_DAY)
        year, month, number = self._month_of(day)
        first = day - number + 1
        rest = _up_to(self._days(year, month, first), number)
        if rest:
            return first + _highest(rest) - 1
        for _ in range(_GREGORIAN_CYCLE_MONTHS):
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            first -= _length(year, month)
            if self._years is not None and year not in self._years:
                year, month = max((each for each in self._years if each < year), default=_FIRST_YEAR - 1), 12
                first = date(year, month, 1).toordinal() - _EPOCH_ORDINAL
            if year < _FIRST_YEAR:
                return None
            days = self._days(year, month, first)
            if days:
                return first + _highest(days) - 1
        return None

    @staticmethod
    def _month_of(day: int) -> tuple[int, int, int]:
        on = date.fromordinal(day + _EPOCH_ORDINAL)
        return on.year, on.month, on.day

    def _days(self, year: int, month: int, first_day: int) -> int:
        """Return the matching days of a month, bit n for day n. `first_day` is in days since the epoch."""
        if not self._months >> month & 1 or (self._years is not None and year not in self._years):
            return 0
        shape = ((first_day + 3) % 7, _length(year, month))
        days = self._shapes.get(shape)
        if days is None:
            days = self._shapes[shape] = self._days_of_shape(*shape)
        return days

    def _days_of_shape(self, weekday: int, length: int) -> int:
        """Return the matching days of a month with this first weekday and length. There are 28 such shapes."""
        days, weekdays = self.values.days, self.values.weekdays
        last_weekday = _nearest_weekday(length, weekday, length)
        nearest = None if self.values.nearest is None else _nearest_weekday(self.values.nearest, weekday, length)
        by_number = by_weekday = 0
        for number in range(1, length + 1):
            if (
                number in days
                or number == nearest
                or (number == length and LAST in days)
                or (number == last_weekday and LAST_WEEKDAY in days)
            ):
                by_number |= 1 << number
            name, nth = (weekday + number) % 7, (number + 6) // 7
            if name in weekdays or (name, nth) in weekdays or (number + 7 > length and (name, LAST) in weekdays):
                by_weekday |= 1 << number
        return by_number & by_weekday if self.values.both else by_number | by_weekday

    def has_a_date(self) -> bool:
        """Return whether any day of any year matches."""
        return self._day_from(_FIRST_DAY) is not None


def _nearest_weekday(number: int, weekday: int, length: int) -> int | None:
    """Return the working day of the month that is nearest to day `number`."""
    if number > length:
        return None
    match (weekday + number - 1) % 7:
        case 5:
            return number - 1 if number > 1 else 3
        case 6:
            return number + 1 if number < length else number - 2
    return number


def _length(year: int, month: int) -> int:
    return 29 if month == 2 and isleap(year) else _LENGTHS[month]


def _mask(numbers: frozenset[int]) -> int:
    return sum(1 << number for number in numbers)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _highest(mask: int) -> int:
    return mask.bit_length() - 1


def _up_to(mask: int, bit: int) -> int:
    return mask & ((2 << bit) - 1) if bit >= 0 else 0


def _members(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
