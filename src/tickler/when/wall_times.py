"""From wall times to instants in a zone.

`WallTimes` is the set of wall times of a cron expression or a weekly plan. *Fixed* times fire once each, at the first instant at
which the wall clock has reached them. *Running* times fire at every real second at which the wall clock matches.
"""

from __future__ import annotations

from typing import Protocol

from tickler.when.zones import DAY, Zone

# The calendar repeats within 40 years. A wall time that has not occurred in a hundred never will: in Berlin, two o'clock on the
# last Sunday of March is always in the gap.
MAX_SEARCH_S = 100 * 366 * DAY
MAX_JUMP = 2 * DAY  # more than any clock was ever set back: wall times that passed longer ago do not recur


class WallTimes(Protocol):
    """An ordered set of wall times, in seconds."""

    def next_from(self, wall: int) -> int | None:
        """Return the first member >= `wall`."""

    def last_until(self, wall: int) -> int | None:
        """Return the last member <= `wall`."""


def next_fixed(walls: WallTimes, zone: Zone, after: int) -> int | None:
    """Return the first instant > `after` at which a member is reached."""
    wall = walls.next_from(zone.highest_wall(after) + 1)
    while wall is not None:
        at = zone.first_at(wall)
        if at is not None:
            return at
        wall = walls.next_from(wall - wall % DAY + DAY)
    return None


def last_fixed(walls: WallTimes, zone: Zone, until: int) -> int | None:
    """Return the last instant <= `until` at which a member was reached."""
    wall = walls.last_until(zone.highest_wall(until))
    while wall is not None:
        at = zone.first_at(wall)
        if at is not None:
            return at
        wall = walls.last_until(wall - wall % DAY - 1)
    return None


def next_running(walls: WallTimes, zone: Zone, after: int) -> int | None:
    """Return the first instant > `after` at which the wall clock shows a member."""
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
        at = span.end  # the clock may be set back here, so that earlier wall times recur
    return None


def last_running(walls: WallTimes, zone: Zone, until: int) -> int | None:
    """Return the last instant <= `until` at which the wall clock shows a member."""
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
