"""A second opinion on when things fire, from nothing but a zone's clock read at every real minute.

It shares no code and no idea with `tickler.when`: it walks minutes, notes what the wall clock showed, and decides

- fixed wall times: each fires once, at the first real minute that shows it; if none shows it, at the first real minute
  after the gap; never when no real minute shows its whole date. Walls that land on one instant are one fire.
- running expressions (minute or hour begins with `*`): every real minute whose wall clock matches.

Slow and simple. Instants are seconds since the epoch; a wall minute is day ordinal * 1440 + minute of the day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from zoneinfo import ZoneInfo

MINUTES_A_DAY = 1440


class WallClock:
    """What the wall clock of a zone showed, minute by minute, at the instants `start <= at < end`."""

    def __init__(self, zone: str, start: int, end: int) -> None:
        info = ZoneInfo(zone)
        self.minutes = range(start - start % 60, end, 60)
        self.walls = [wall_minute(datetime.fromtimestamp(at, info)) for at in self.minutes]
        self.days = range(min(self.walls) // MINUTES_A_DAY, max(self.walls) // MINUTES_A_DAY + 1)
        self._shown_days = {wall // MINUTES_A_DAY for wall in self.walls}
        self._first_shown: dict[int, int] = {}
        self._after_gap: dict[int, int] = {}
        previous = self.walls[0]
        for at, wall in zip(self.minutes, self.walls, strict=True):
            self._first_shown.setdefault(wall, at)
            for missing in range(previous + 1, wall):
                self._after_gap.setdefault(missing, at)
            previous = wall

    def fires_of_walls(self, walls: Iterable[int]) -> list[int]:
        """The instants at which fixed wall times fire."""
        fires = {self._fire_of_wall(wall) for wall in walls}
        return sorted(at for at in fires if at is not None)

    def _fire_of_wall(self, wall: int) -> int | None:
        if wall in self._first_shown:
            return self._first_shown[wall]
        if wall // MINUTES_A_DAY not in self._shown_days:
            return None
        return self._after_gap.get(wall)  # None: before or after what this clock has seen

    def fires_of_cron(self, expr: str) -> list[int]:
        """The instants of a five-field expression of numbers, lists, ranges, steps and `*`."""
        minute, hour, day, month, weekday = expr.split()
        times = {h * 60 + m for h in numbers(hour, 0, 23) for m in numbers(minute, 0, 59)}
        days = {on for on in self.days if _matches_date(date.fromordinal(on), day, month, weekday)}
        if minute.startswith("*") or hour.startswith("*"):
            return [
                at
                for at, wall in zip(self.minutes, self.walls, strict=True)
                if wall % MINUTES_A_DAY in times and wall // MINUTES_A_DAY in days
            ]
        return self.fires_of_walls(on * MINUTES_A_DAY + time for on in days for time in times)

    def fires_of_weekly(self, plan: Mapping[str, list[str]]) -> list[int]:
        """The instants of times such as "09:00" by weekday, "mon" to "sun"."""
        names = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
        return self.fires_of_walls(
            on * MINUTES_A_DAY + int(time[:2]) * 60 + int(time[3:])
            for on in self.days
            for time in plan.get(names[date.fromordinal(on).weekday()], [])
        )

    def fires_of_at(self, moment: str) -> list[int]:
        """The instant of one wall time, "2026-03-15T00:00"."""
        return self.fires_of_walls([wall_minute(datetime.fromisoformat(moment))])


def wall_minute(local: datetime) -> int:
    return local.toordinal() * MINUTES_A_DAY + local.hour * 60 + local.minute


def numbers(field: str, low: int, high: int) -> set[int]:
    """The numbers a cron field names: `*`, `5`, `1-4`, each with `/step`, and lists of these."""
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            members = range(low, high + 1)
        elif dash:
            members = range(int(first), int(last) + 1)
        else:
            members = range(int(first), high + 1 if step else int(first) + 1)
        found.update(members[:: int(step or 1)])
    return found


def _matches_date(on: date, day: str, month: str, weekday: str) -> bool:
    """As Debian has it: a day and a weekday that are both given are alternatives, else both must match."""
    if on.month not in numbers(month, 1, 12):
        return False
    by_day = on.day in numbers(day, 1, 31)
    by_weekday = on.isoweekday() % 7 in {number % 7 for number in numbers(weekday, 0, 7)}
    if day.startswith("*") or weekday.startswith("*"):
        return by_day and by_weekday
    return by_day or by_weekday
