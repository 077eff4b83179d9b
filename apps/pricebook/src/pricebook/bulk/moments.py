"""Instants and dates as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from pricebook.editions.timing import midnight
from pricebook.errors import InvalidField

Moment = datetime | date | None


def read_moment(field: str, text: str) -> Moment:
    """Read a date such as 2026-12-01, or an instant with its offset. An empty text is None."""
    if not text:
        return None
    try:
        if len(text) == len("2026-12-01"):
            return date.fromisoformat(text)
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidField(
            field, f"{text[:40]!r} is not a moment: write 2026-12-01, or an instant such as 2026-12-01T06:00:00+01:00"
        ) from None
    if at.utcoffset() is None:
        raise InvalidField(field, "has no time zone: write an offset, as in 2026-12-01T06:00:00+01:00")
    return at.astimezone(UTC)


def in_zone(moment: Moment, tz: str, now: datetime) -> datetime:
    """Return the instant that a moment is in a zone, not before now. None is now."""
    if moment is None:
        return now
    return max(now, moment if isinstance(moment, datetime) else midnight(moment, tz))
