"""Instants as people read them: ISO 8601 with the offset that the wall clock had."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tickler.when import When

_MS = timedelta(milliseconds=1)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def ms(moment: str) -> int:
    """Milliseconds of an instant such as 2025-03-30T03:00+02:00."""
    return (datetime.fromisoformat(moment) - _EPOCH) // _MS


def shown(at_ms: int | None, zone: str) -> str | None:
    """What the zone's clock shows at an instant, to the minute, or to the second where there are any."""
    if at_ms is None:
        return None
    local = (_EPOCH + at_ms * _MS).astimezone(ZoneInfo(zone))
    return local.isoformat(timespec="minutes" if local.second == 0 else "seconds")


def fires(when: When, after: str, n: int) -> list[str | None]:
    """The next `n` instants after one, as the zone's clock shows them."""
    found: list[str | None] = []
    at: int | None = ms(after)
    for _ in range(n):
        assert at is not None
        at = when.next_after(at)
        found.append(shown(at, when.tz))
        if at is None:
            break
    return found


def last(when: When, until: str) -> str | None:
    """The last instant up to one, as the zone's clock shows it."""
    return shown(when.last_before(ms(until)), when.tz)
