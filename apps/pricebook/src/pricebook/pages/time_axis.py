"""The axis of a drawn time line: midnights where a store is, hours, now, and days on which clocks change. Pure geometry."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from pricebook.editions.timing import midnight
from pricebook.pages.clock import DAYS, MONTHS, PageClock

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STEPS = tuple(timedelta(minutes=minutes) for minutes in (5, 10, 15, 30, 60, 120, 180, 360, 720))
LABEL_WIDTH = 46  # pixels between two times of day
DAY_LABEL_WIDTH = 60


class Tick(NamedTuple):
    x: float
    label: str
    kind: str  # midnight, or hour


class Band(NamedTuple):
    """A day as it lies between two midnights. `hours` is there on a day on which clocks change."""

    x: float
    width: float
    label: str
    hours: int | None
    is_even: bool


class ClockChange(NamedTuple):
    """A day that has more or fewer than 24 hours."""

    day: date
    hours: int


class TimeAxis(NamedTuple):
    """From `start` until `end` on the clock of a zone, between two places of the drawing."""

    start: datetime
    end: datetime
    clock: PageClock
    left: float
    right: float

    def x(self, at: datetime) -> float:
        """Return where an instant is; what lies outside is at the edge."""
        share = (at - self.start) / (self.end - self.start)
        return round(self.left + min(max(share, 0.0), 1.0) * (self.right - self.left), 1)

    @property
    def bands(self) -> list[Band]:
        edges = list(_midnights(self.start, self.end, self.clock.zone))
        found = []
        for day, begin, end in edges:
            x, to = self.x(begin), self.x(end)
            label = self._day_label(day, to - x)
            found.append(Band(x, round(to - x, 1), label, _odd_hours(begin, end), day.toordinal() % 2 == 0))
        return found

    @property
    def clock_changes(self) -> list[ClockChange]:
        days = _midnights(self.start, self.end, self.clock.zone)
        return [ClockChange(day, hours) for day, begin, end in days if (hours := _odd_hours(begin, end)) is not None]

    @property
    def ticks(self) -> list[Tick]:
        """Return midnights, and the hours between them where there is room."""
        step = self._step()
        found = []
        for _, begin, end in _midnights(self.start, self.end, self.clock.zone):
            if self.start < begin < self.end:
                found.append(Tick(self.x(begin), "", "midnight"))
            at = begin + step if step is not None else end
            while step is not None and at < end:
                if self.start < at < self.end:
                    found.append(Tick(self.x(at), f"{at.astimezone(self.clock.zone):%H:%M}", "hour"))
                at += step
        return found

    def _step(self) -> timedelta | None:
        """Return the time between two labels of hours; None if there is no room for any."""
        scale = (self.right - self.left) / (self.end - self.start).total_seconds()
        return next((step for step in STEPS if step.total_seconds() * scale >= LABEL_WIDTH), None)

    def _day_label(self, day: date, width: float) -> str:
        if width >= DAY_LABEL_WIDTH * 1.7:
            return self.clock.day(day)
        if width >= DAY_LABEL_WIDTH:
            return f"{DAYS[day.weekday()]} {day.day} {MONTHS[day.month]}"
        return f"{DAYS[day.weekday()][:2]} {day.day}" if width >= DAY_LABEL_WIDTH / 2 else str(day.day) if width >= 16 else ""


def _midnights(start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[tuple[date, datetime, datetime]]:
    """Yield each day that lies at least in part between two instants, with its beginning and its end."""
    day = start.astimezone(zone).date()
    begin = midnight(day, zone.key)
    while begin < end:
        following = midnight(day + DAY, zone.key)
        yield day, begin, following
        day, begin = day + DAY, following


def _odd_hours(begin: datetime, end: datetime) -> int | None:
    hours = round((end.astimezone(UTC) - begin.astimezone(UTC)) / HOUR)
    return None if hours == 24 else hours
