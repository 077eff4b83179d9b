"""The only place that reads a clock, and how people's ways of saying an instant become milliseconds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from tickler.errors import InvalidInput

# Milliseconds below are 1973 and earlier, above are the year 5138 and later: another unit, not another time.
EARLIEST_PLAUSIBLE_MS = 100_000_000_000
LATEST_PLAUSIBLE_MS = 100_000_000_000_000
FIRST_MS, LAST_MS = -62_104_060_800_000, 253_370_764_800_000  # the years 2 to 9998: in every zone, datetime has a name for them

WARN_OFFSET_MS = 2_000
MAX_OFFSET_MS = 30_000  # a worker whose machine is further off does not claim

log = logging.getLogger("tickler.clock")


class Clock(Protocol):
    """Says what time it is, in milliseconds since the epoch, UTC."""

    def now_ms(self) -> int: ...


class SystemClock:
    """This machine's clock; from the first `follow` on, the store's, carried on by a steady clock that nobody sets.

    So a machine whose time is set while it works, forwards or backwards, claims nothing too early and nothing twice.
    """

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._ahead_ns: int | None = None  # the store's time less the steady clock's
        self.offset_ms = 0  # the store's time less this machine's, when it was last looked at

    def now_ms(self) -> int:
        return self._now_ns() // 1_000_000

    def follow(self, store_now_ms: int, asked_at: int, answered_at: int, within_ms: int = 1) -> int:
        """Take the store's answer as the time half-way between question and answer, both read off this clock.

        One that may have been given between them corrects nothing: it agrees with this clock, as well as a store that tells the
        time to `within_ms` can. By how much this clock was wrong, in milliseconds.
        """
        agrees = asked_at - within_ms <= store_now_ms <= answered_at + within_ms
        error_ms = 0 if agrees else store_now_ms - (asked_at + answered_at) // 2
        steady_ns, wall_ns = self._steady_ns(), self._wall_ns()
        now_ns = (wall_ns if self._ahead_ns is None else steady_ns + self._ahead_ns) + error_ms * 1_000_000
        self._ahead_ns = now_ns - steady_ns
        self.offset_ms = round((now_ns - wall_ns) / 1_000_000)
        if abs(self.offset_ms) > WARN_OFFSET_MS:
            log.warning(
                "this machine's clock is %+d ms off the store's; the store's is used: check time synchronisation here",
                -self.offset_ms,
            )
        return error_ms

    def _now_ns(self) -> int:
        return self._wall_ns() if self._ahead_ns is None else self._steady_ns() + self._ahead_ns


class ManualClock:
    """A clock that moves only when told to: for tests, yours included."""

    def __init__(self, start: int | datetime) -> None:
        self._now_ms = to_ms(start, "start")

    def now_ms(self) -> int:
        return self._now_ms

    def set(self, instant: int | datetime) -> None:
        self._now_ms = to_ms(instant, "instant")

    def advance(self, by: timedelta | float) -> None:
        """Move by a timedelta or by seconds; negative moves back."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self._now_ms += round(seconds * 1000)


def to_ms(instant: int | datetime, name: str, *, remedy: str = "") -> int:
    """Milliseconds of what a caller passed as `name`; refuses naive datetimes and other units by what they look like.

    `remedy` ends the message to who does mean an instant that looks like another unit.
    """
    ms = _milliseconds(instant, name)
    if EARLIEST_PLAUSIBLE_MS <= ms < LATEST_PLAUSIBLE_MS:
        return ms
    if isinstance(instant, datetime):
        reason = f"{instant.isoformat()} lies before 1974 or after 5137: leave it out if it means no bound"
    elif ms < EARLIEST_PLAUSIBLE_MS:
        looks = "seconds" if ms > 0 else "no time at all"
        reason = f"{ms} looks like {looks}: pass milliseconds since the epoch (seconds * 1000)"
    else:
        reason = f"{ms} looks like micro- or nanoseconds: pass milliseconds since the epoch"
    raise InvalidInput(f"{name}: {reason}{remedy}")


def to_any_ms(instant: int | datetime, name: str) -> int:
    """The same for who says that the unit is right: any instant of the years 2 to 9998."""
    ms = _milliseconds(instant, name)
    if not FIRST_MS <= ms < LAST_MS:
        raise InvalidInput(f"{name}: {instant} lies outside the years 2 to 9998: pass milliseconds since the epoch")
    return ms


def _milliseconds(instant: int | datetime, name: str) -> int:
    if isinstance(instant, datetime):
        return datetime_ms(instant, name)
    if isinstance(instant, bool) or not isinstance(instant, int):
        raise InvalidInput(
            f"{name}: {instant!r} is a {type(instant).__name__}: pass whole milliseconds since the epoch or an aware datetime"
        )
    return instant


def datetime_ms(moment: datetime, name: str) -> int:
    """Milliseconds of an aware datetime, whenever it is."""
    if moment.utcoffset() is None:
        raise InvalidInput(f"{name}: {moment.isoformat()} is a naive datetime: give it a tzinfo, such as datetime.UTC")
    return round(moment.timestamp() * 1000)


def to_datetime(ms: int) -> datetime:
    """The aware UTC datetime of an instant, exact to the millisecond."""
    return datetime.fromtimestamp(ms // 1000, UTC) + timedelta(milliseconds=ms % 1000)
