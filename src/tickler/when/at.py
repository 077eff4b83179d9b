"""One-shot: a single instant."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tickler.clock import to_datetime
from tickler.errors import InvalidWhen
from tickler.when.when import When, not_ms
from tickler.when.zones import load_zone

FIRST_YEAR, LAST_YEAR = 2, 9998  # one year inside datetime's limits, so that adding a zone's offset never overflows

_ISO = re.compile(r"[\d:.,+TWZ -]+", re.ASCII)  # datetime itself accepts any character between date and time
_EPOCH = datetime(1970, 1, 1)
_MS = timedelta(milliseconds=1)


class At(When):
    """One instant: a wall time in a zone, `At("2026-03-15T00:00:00", tz="America/Chicago")`, or a time with its own offset.

    A wall time in a gap fires right after the gap, one in a fold fires the first time. On a date that the zone skipped it never
    fires.
    """

    __slots__ = ("at_ms",)
    at_ms: int | None  # None on a date that the zone skipped

    def __init__(self, moment: str | datetime, tz: str | None = None) -> None:
        wall = _read(moment, tz)
        if wall.tzinfo is not None and tz not in (None, "UTC"):
            raise InvalidWhen("tz", str(moment), f"the offset conflicts with tz={tz!r}: leave out one of them", inside=True)
        if FIRST_YEAR <= wall.year <= LAST_YEAR and wall.tzinfo is not None:
            wall = wall.astimezone(UTC).replace(tzinfo=None)
        if not FIRST_YEAR <= wall.year <= LAST_YEAR:
            raise InvalidWhen("moment", str(moment), f"is outside the years {FIRST_YEAR} to {LAST_YEAR}")
        wall = wall.replace(microsecond=wall.microsecond // 1000 * 1000, fold=0)
        zone_name = "UTC" if tz is None else tz
        text = _iso(wall) + ("Z" if zone_name == "UTC" else "")
        self._freeze(f"at({text})", zone_name, at_ms=_instant(wall, zone_name))

    def next_after(self, after_ms: int) -> int | None:
        if type(after_ms) is not int:
            raise not_ms(after_ms)
        return self.at_ms if self.at_ms is not None and self.at_ms > after_ms else None

    def last_before(self, until_ms: int) -> int | None:
        if type(until_ms) is not int:
            raise not_ms(until_ms)
        return self.at_ms if self.at_ms is not None and self.at_ms <= until_ms else None

    def shortest_interval_ms(self) -> int | None:
        return None

    def __repr__(self) -> str:
        return f"At({self._text[3:-1]!r}, tz={self.tz!r})"

    def __reduce__(self) -> tuple[type[At], tuple[str, str]]:
        return At, (self._text[3:-1], self.tz)


def iso_utc(ms: int) -> str:
    """Format an instant as ISO 8601 in UTC, with milliseconds only if they are not 0."""
    return _iso(to_datetime(ms).replace(tzinfo=None)) + "Z"


def read_instant(text: str, name: str) -> datetime:
    """Read ISO 8601 text with an offset. `name` is the field that errors mention."""
    try:
        moment = datetime.fromisoformat(text) if _ISO.fullmatch(text) else datetime.min
    except ValueError:
        moment = datetime.min
    if moment.tzinfo is None:
        raise InvalidWhen(name, text, "is not an instant: write '2026-01-01T00:00:00Z'")
    return moment


def _read(moment: object, tz: str | None) -> datetime:
    if isinstance(moment, datetime):
        if moment.tzinfo is None and tz is None:
            raise InvalidWhen("moment", moment.isoformat(), "is a naive datetime: give it a tzinfo, or pass tz= with its zone")
        return moment
    if not isinstance(moment, str):
        raise InvalidWhen("moment", str(moment), f"is a {type(moment).__name__}: pass ISO 8601 text or a datetime")
    try:
        if _ISO.fullmatch(moment) is None:
            raise ValueError
        return datetime.fromisoformat(moment.strip())
    except ValueError:
        raise InvalidWhen("moment", moment, "is not a date and time: write '2026-03-15T00:00:00'") from None


def _instant(moment: datetime, tz: str) -> int | None:
    zone = load_zone(tz)
    wall, rest_ms = divmod((moment - _EPOCH) // _MS, 1000)
    at = zone.first_at(wall)
    if at is None:
        return None
    in_gap = at + zone.span(at).offset != wall
    return at * 1000 + (0 if in_gap else rest_ms)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
