"""Upcoming instants with remarks on clock changes: gaps, folds, and dates that a zone skipped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from tickler.clock import datetime_ms
from tickler.errors import InvalidInput
from tickler.when.at import At
from tickler.when.calendar import Calendar
from tickler.when.describe_cron import clock, listed
from tickler.when.wall_times import WallTimes
from tickler.when.when import LAST_SHOWN_MS, When
from tickler.when.zones import DAY, Zone, load_zone

MAX_CLOCKS = 3  # more wall times are shown as a range

_EPOCH = datetime(1970, 1, 1)


class MarkedInstant(msgspec.Struct, frozen=True):
    """An instant in the zone of its when, with remarks on clock changes around it."""

    at: datetime
    marks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the instant in milliseconds, the local time with its offset, and the remarks."""
        timespec = "milliseconds" if self.at.microsecond else "seconds"
        return {"at": datetime_ms(self.at, "at"), "local": self.at.isoformat(timespec=timespec), "marks": list(self.marks)}


class _Jump(NamedTuple):
    """A change of the offset at the instant `at`. All values are in seconds."""

    at: int
    before: int
    after: int

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    def repeats(self, wall: int) -> bool:
        """Return whether the clock shows this time both before and after the jump."""
        return self.at + self.after <= wall < self.at + self.before


class _Plan(NamedTuple):
    """The wall times of a when in its zone."""

    zone: Zone
    tz: str
    walls: WallTimes
    running: bool


def marked(when: When, after_ms: int, n: int = 5, until_ms: int | None = None) -> list[MarkedInstant]:
    """Return the next `n` instants after `after_ms`, none later than `until_ms`. Pure, unlike `When.upcoming`."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidInput(f"n: {n!r} is not a number of instants: pass 0 or more")
    plan, zone = _plan_of(when), load_zone(when.tz).info
    found: list[MarkedInstant] = []
    last_ms = LAST_SHOWN_MS if until_ms is None else min(until_ms, LAST_SHOWN_MS)
    while len(found) < n and (at_ms := when.next_after(after_ms)) is not None and at_ms <= last_ms:
        there = datetime.fromtimestamp(at_ms // 1000, zone).replace(microsecond=at_ms % 1000 * 1000)
        marks = () if plan is None else tuple(_marks(plan, after_ms // 1000, at_ms // 1000))
        found.append(MarkedInstant(there, marks))
        after_ms = at_ms
    return found


def _plan_of(when: When) -> _Plan | None:
    """Return the wall times of a when, or None for intervals, which clock changes do not affect."""
    if isinstance(when, Calendar):
        return _Plan(load_zone(when.tz), when.tz, when.walls, when.running)
    if isinstance(when, At) and when.tz != "UTC":
        wall = (datetime.fromisoformat(str(when)[3:-1]) - _EPOCH).total_seconds()
        return _Plan(load_zone(when.tz), when.tz, _OneWall(int(wall)), running=False)
    return None


class _OneWall:
    """The wall time of a one-shot."""

    def __init__(self, wall: int) -> None:
        self._wall = wall

    def next_from(self, wall: int) -> int | None:
        return self._wall if self._wall >= wall else None

    def last_until(self, wall: int) -> int | None:
        return self._wall if self._wall <= wall else None


def _marks(plan: _Plan, after: int, at: int) -> Iterator[str]:
    """Yield the remarks on an instant, and on wall times that were skipped since the previous one."""
    for jump in _jumps(plan.zone, after, at):
        if jump.is_gap:
            yield from _lost(plan, jump, at)
    wall = at + plan.zone.span(at).offset
    if any(jump.repeats(wall) for jump in _jumps(plan.zone, at, at + DAY)):
        yield f"{_clock(wall)} comes twice: {'this is' if plan.running else 'fires'} the first time"
    elif any(jump.repeats(wall) for jump in _jumps(plan.zone, at - DAY, at)):
        yield f"{_clock(wall)} comes twice: this is the second time"


def _lost(plan: _Plan, gap: _Jump, at: int) -> Iterator[str]:
    """Yield a remark on the wall times in a gap, and whether they fire."""
    named = _named_between(plan.walls, gap.at + gap.before, gap.at + gap.after)
    if not named:
        return
    date = _date(named[0])
    if _covers_a_date(gap, named[0]):
        yield f"there is no {date} in {plan.tz}: nothing fires on it"
    elif plan.running:
        day = "that day" if date == _date(at + plan.zone.span(at).offset) else f"on {date}"
        yield f"{_listed(named)} {'does' if len(named) == 1 else 'do'} not exist {day}: nothing fires then"
    elif gap.at == at:
        once = "" if len(named) == 1 else " once,"
        also = ", for that time too" if plan.walls.next_from(gap.at + gap.after) == gap.at + gap.after else ""
        fires = f"fires{once} at {_clock(gap.at + gap.after)}{also}"
        yield f"{_listed(named)} {'does' if len(named) == 1 else 'do'} not exist that day: {fires}"


def _named_between(walls: WallTimes, low: int, high: int) -> list[int]:
    """Return the wall times with `low <= wall < high`; of many, the first few and the last."""
    named: list[int] = []
    wall = walls.next_from(low)
    while wall is not None and wall < high and len(named) <= MAX_CLOCKS:
        named.append(wall)
        wall = walls.next_from(wall + 1)
    if len(named) > MAX_CLOCKS and (last := walls.last_until(high - 1)) is not None:
        named[-1] = last
    return named


def _covers_a_date(gap: _Jump, wall: int) -> bool:
    midnight = wall - wall % DAY
    return gap.at + gap.before <= midnight and midnight + DAY <= gap.at + gap.after


def _jumps(zone: Zone, after: int, until: int) -> Iterator[_Jump]:
    """Yield the changes of the offset with `after < at <= until`."""
    span = zone.span(after)
    while span.end <= until:
        following = zone.span(span.end)
        if following.offset != span.offset:
            yield _Jump(span.end, span.offset, following.offset)
        span = following


def _listed(walls: list[int]) -> str:
    clocks = [_clock(wall) for wall in walls]
    return f"{clocks[0]} to {clocks[-1]}" if len(walls) > MAX_CLOCKS else listed(clocks)


def _clock(wall: int) -> str:
    return clock(wall % DAY)


def _date(wall: int) -> str:
    return f"{datetime.fromtimestamp(wall, UTC):%Y-%m-%d}"
