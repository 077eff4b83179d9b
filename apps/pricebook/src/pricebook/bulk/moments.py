"""Instants and dates as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from pricebook.editions.timing import midnight
from pricebook.errors import InvalidField

Moment = datetime | date | None

MIN_YEAR, MAX_YEAR = 1970, 9_000  # with room for time zones at both ends of the calendar


def read_moment(field: str, text: str) -> Moment:
    """Read a date such as 2026-12-01, or an instant with its offset. An empty text is None."""
    if not text:
        return None
    try:
        at = date.fromisoformat(text) if len(text) == len("2026-12-01") else datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or not MIN_YEAR <= at.year <= MAX_YEAR:
        raise InvalidField(
            field, f"{text[:40]!r} is not a moment: write 2026-12-01, or an instant such as 2026-12-01T06:00:00+01:00"
        )
    if not isinstance(at, datetime):
        return at
    if at.utcoffset() is None:
        raise InvalidField(field, "has no time zone: write an offset, as in 2026-12-01T06:00:00+01:00")
    return at.astimezone(UTC)


def in_zone(moment: Moment, tz: str, now: datetime) -> datetime:
    """Return the instant that a moment is in a zone, not before now. None is now."""
    if moment is None:
        return now
    return max(now, moment if isinstance(moment, datetime) else midnight(moment, tz))
