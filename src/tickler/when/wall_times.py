"""From wall times to instants: the two readings of a calendar, in a zone.

`WallTimes` is a set of wall-clock readings: what a cron expression or a weekly plan names. *Fixed* times happen once each, at
the first instant the wall clock has reached them. *Running* times happen at every real second whose wall clock matches.
"""

from __future__ import annotations

from typing import Protocol

from tickler.when.zones import DAY, Zone

# The calendar repeats within 40 years. What no clock has shown in a hundred (two o'clock on the last Sunday of March, in
# Berlin, is always in the gap) it will not show.
MAX_SEARCH_S = 100 * 366 * DAY
MAX_JUMP = 2 * DAY  # more than any clock has gone back, so that what is over by this much does not come again


class WallTimes(Protocol):
    """An ordered set of wall times, in seconds."""

    def next_from(self, wall: int) -> int | None:
        """The first member >= `wall`."""

    def last_until(self, wall: int) -> int | None:
        """The last member <= `wall`."""


def next_fixed(walls: WallTimes, zone: Zone, after: int) -> int | None:
    """The first instant > `after` at which a member is reached."""
    wall = walls.next_from(zone.highest_wall(after) + 1)
    while wall is not None:
        at = zone.first_at(wall)
        if at is not None:
            return at
        wall = walls.next_from(wall - wall % DAY + DAY)
    return None


def last_fixed(walls: WallTimes, zone: Zone, until: int) -> int | None:
    """The last instant <= `until` at which a member was reached."""
    wall = walls.last_until(zone.highest_wall(until))
    while wall is not None:
        at = zone.first_at(wall)
        if at is not None:
            return at
        wall = walls.last_until(wall - wall % DAY - 1)
    return None


def next_running(walls: WallTimes, zone: Zone, after: int) -> int | None:
    """The first instant > `after` whose wall clock is a member."""
    at = after + 1
    while at < after + MAX_SEARCH_S:
        span = zone.span(at)
        wall = walls.next_from(at + span.offset)
        if wall is None:
            latest = walls.last_until(at + span.offset)
            if latest is None or latest < at + span.offset - MAX_JUMP:
                return None
        elif wall - span.offset < span.end:
            return wall - span.offset
        at = span.end  # where the clock may go back, so that earlier readings match again
    return None


def last_running(walls: WallTimes, zone: Zone, until: int) -> int | None:
    """The last instant <= `until` whose wall clock is a member."""
    at = until
    while at > until - MAX_SEARCH_S:
        span = zone.span(at)
        wall = walls.last_until(at + span.offset)
        if wall is None:
            earliest = walls.next_from(at + span.offset)
            if earliest is None or earliest > at + span.offset + MAX_JUMP:
                return None
        elif wall - span.offset >= span.start:
            return wall - span.offset
        at = span.start - 1
    return None
