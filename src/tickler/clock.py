"""The clocks that decide when something is due, and the conversion of instants to milliseconds.

No other module reads the time of day. Timeouts and rate limits elsewhere measure how long something took with `time.monotonic` or
the time of the event loop, neither of which says what time it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from tickler.errors import InvalidInput

# Numbers below mean 1973 and earlier, numbers above 5138 and later: most likely another unit than milliseconds.
EARLIEST_PLAUSIBLE_MS = 100_000_000_000
LATEST_PLAUSIBLE_MS = 100_000_000_000_000
FIRST_MS, LAST_MS = -62_104_060_800_000, 253_370_764_800_000  # the years 2 to 9998, which datetime can show in every zone

WARN_OFFSET_MS = 2_000
MAX_OFFSET_MS = 30_000  # a worker whose machine is further off does not claim

log = logging.getLogger("tickler.clock")


class Clock(Protocol):
    """Tells the time in milliseconds since the epoch, UTC."""

    def now_ms(self) -> int: ...


class SystemClock:
    """This machine's clock. After the first `follow` it tells the store's time, carried forward by the monotonic clock.

    Therefore a machine whose time is set forwards or backwards while it works claims nothing too early and nothing twice.
    """

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._ahead_ns: int | None = None  # the store's time minus the monotonic clock's
        self.offset_ms = 0  # the store's time minus this machine's, at the last `follow`

    def now_ms(self) -> int:
        return (self._wall_ns() if self._ahead_ns is None else self._steady_ns() + self._ahead_ns) // 1_000_000

    def follow(self, store_now_ms: int, asked_at: int, answered_at: int, within_ms: int = 1) -> int:
        """Adjust this clock to the store's answer, and return by how many milliseconds it was wrong.

        The answer counts as the time half-way between question and answer, both read from this clock. An answer that lies
        between them, give or take the resolution `within_ms` of the store's clock, agrees with this clock and adjusts nothing.
        """
        agrees = asked_at - within_ms <= store_now_ms <= answered_at + within_ms
        error_ms = 0 if agrees else store_now_ms - (asked_at + answered_at) // 2
        steady_ns, wall_ns = self._steady_ns(), self._wall_ns()
        now_ns = (wall_ns if self._ahead_ns is None else steady_ns + self._ahead_ns) + error_ms * 1_000_000
        self._ahead_ns = now_ns - steady_ns
        self.offset_ms = round((now_ns - wall_ns) / 1_000_000)
        if abs(self.offset_ms) > WARN_OFFSET_MS:
            log.warning(
                "this machine's clock is %+d ms off the store's, which is used instead: check time synchronisation here",
                -self.offset_ms,
            )
        return error_ms


class ManualClock:
    """A clock that moves only when it is set or advanced, for tests, including yours."""

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
    """Return the milliseconds of the instant that a caller passed as `name`.

    Naive datetimes are refused, and so are numbers that look like another unit; `remedy` is added to that message.
    """
    ms = _milliseconds(instant, name)
    if EARLIEST_PLAUSIBLE_MS <= ms < LATEST_PLAUSIBLE_MS:
        return ms
    if isinstance(instant, datetime):
        reason = f"{instant.isoformat()} is before 1974 or after 5137: leave it out if it means no bound"
    elif ms < EARLIEST_PLAUSIBLE_MS:
        looks = "seconds" if ms > 0 else "a missing value"
        reason = f"{ms} looks like {looks}: pass milliseconds since the epoch (seconds * 1000)"
    else:
        reason = f"{ms} looks like micro- or nanoseconds: pass milliseconds since the epoch"
    raise InvalidInput(f"{name}: {reason}{remedy}")


def to_any_ms(instant: int | datetime, name: str) -> int:
    """Like `to_ms`, but accept any instant of the years 2 to 9998: the caller is sure of the unit."""
    ms = _milliseconds(instant, name)
    if not FIRST_MS <= ms < LAST_MS:
        raise InvalidInput(f"{name}: {instant} is outside the years 2 to 9998: pass milliseconds since the epoch")
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
    """Return the milliseconds of an aware datetime, however far away it is."""
    if moment.utcoffset() is None:
        raise InvalidInput(f"{name}: {moment.isoformat()} is a naive datetime: give it a tzinfo, such as datetime.UTC")
    return round(moment.timestamp() * 1000)


def to_datetime(ms: int) -> datetime:
    """Return an instant as an aware UTC datetime, exact to the millisecond."""
    return datetime.fromtimestamp(ms // 1000, UTC) + timedelta(milliseconds=ms % 1000)
