"""How far ahead prices are decided, and how long they are kept side by side."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from pricebook.errors import InvalidField
from tickler import At

Now = Callable[[], datetime]

MILLISECOND = timedelta(milliseconds=1)


class Timing(Struct, frozen=True):
    """What readers and writers agree on.

    A reader at an instant T sees only what was decided before T, because every decision takes effect `margin` later at the
    earliest. So `margin` has to exceed how far clocks are apart, how long a write takes, and how far indexes of DynamoDB lag.
    """

    margin: timedelta = timedelta(seconds=2)
    buffer: timedelta = timedelta(seconds=60)  # a change that arrives too late for its date counts this much later
    fresh: timedelta = timedelta(seconds=60)  # rows are read consistently for so long after an edition was sealed
    retention: timedelta = timedelta(days=1)  # of former prices in rows, and so of cursors

    @property
    def longest_write(self) -> timedelta:
        """How long a write of a head may take before it is decided anew."""
        return max(self.margin / 2, timedelta(milliseconds=250))


def whole_milliseconds(at: datetime) -> datetime:
    """Return an instant in UTC without what is below a millisecond: the instants of prices are whole milliseconds."""
    if at.utcoffset() is None:
        raise InvalidField("at", "has no time zone: write an offset, as in 2026-03-15T00:00:00+01:00")
    utc = at.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def midnight(day: date, tz: str) -> datetime:
    """Return the instant at which a day begins in a zone. Where clocks skip midnight, that is the first instant after the gap."""
    before = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=2)
    (at,) = At(f"{day.isoformat()}T00:00:00", tz=tz).upcoming(1, after=before)
    return at.astimezone(UTC)
