"""Offset transitions of a zone, found by looking at its clock once a day and closing in on each change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

DAY = 86_400
FIRST_YEAR, LAST_YEAR = 1990, 2040
ZONES = sorted(available_timezones() - {"localtime"})  # which is another zone on every machine

_SECOND = timedelta(seconds=1)


class Transition(NamedTuple):
    """At the instant `at` the clock goes from one offset to another. All in seconds."""

    at: int
    before: int
    after: int

    @property
    def jump(self) -> int:
        """How far the wall clock jumps forward; negative when it goes back."""
        return self.after - self.before

    @property
    def edges(self) -> tuple[int, int]:
        """The wall times between which readings are missing or shown twice, in seconds since the epoch."""
        low, high = sorted((self.before, self.after))
        return self.at + low, self.at + high


def transitions(name: str) -> list[Transition]:
    """Every change of offset from the beginning of 1990 to the end of 2040."""
    zone = ZoneInfo(name)
    start = int(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp())
    found: list[Transition] = []
    offset = _offset(zone, start)
    for day in range(start, end, DAY):
        at = day
        while _offset(zone, day + DAY) != offset:
            at = _change(zone, at, day + DAY, offset)
            following = _offset(zone, at)
            found.append(Transition(at, offset // _SECOND, following // _SECOND))
            offset = following
    return found


def _change(zone: ZoneInfo, same: int, other: int, offset: timedelta) -> int:
    """The first second after `same` at which the offset is another."""
    while other - same > 1:
        middle = (same + other) // 2
        if _offset(zone, middle) == offset:
            same = middle
        else:
            other = middle
    return other


def _offset(zone: ZoneInfo, at: int) -> timedelta:
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    assert offset is not None
    return offset
