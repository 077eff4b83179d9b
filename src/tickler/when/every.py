"""A fixed interval, counted from an anchor."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta

from tickler.clock import LATEST_PLAUSIBLE_MS, datetime_ms, to_ms
from tickler.errors import InvalidInput, InvalidWhen
from tickler.when.at import iso_utc, read_instant
from tickler.when.when import When, not_ms
from tickler.when.zones import load_zone

MIN_MS = 1_000
MAX_MS = 100 * 365 * 86_400_000

_UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(ms|[wdhms])", re.ASCII)
_EVERY = re.compile(r"@every\s+(\S+)(?:\s+from\s+(\S+))?", re.ASCII | re.IGNORECASE)
_RATE = re.compile(r"(\d+)\s+(week|day|hour|minute|second)s?", re.ASCII | re.IGNORECASE)


class Every(When):
    """A fixed interval: `Every(minutes=5, start=ms)`. Its instants are start, start + interval, and so on, without drift.

    Without `start` it counts from the epoch. The first `schedules.put` sets `start` to the time of the put, and later puts of
    the same interval keep it. It has no zone: an hour is an hour through every DST change.
    """

    __slots__ = ("interval_ms", "start")
    interval_ms: int
    start: int | None

    def __init__(
        self,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        start: int | datetime | None = None,
    ) -> None:
        parts = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        for name, part in parts.items():
            if isinstance(part, bool) or not isinstance(part, int | float) or not 0 <= part < math.inf:
                raise InvalidWhen(name, repr(part), "must be a number, 0 or more")
        try:
            interval_ms = timedelta(**parts) // timedelta(milliseconds=1)
        except OverflowError:
            interval_ms = MAX_MS + 1
        given = " ".join(f"{name}={part if part < 1e15 else 'huge'}" for name, part in parts.items() if part) or "0"
        if not MIN_MS <= interval_ms <= MAX_MS:
            remedy = "" if any(parts.values()) else ": give hours=, minutes= or seconds="
            raise InvalidWhen("interval", given, f"must be between one second and a hundred years{remedy}")
        start_ms = None if start is None else _start(start)
        text = f"@every {_amount(interval_ms)}" + ("" if start_ms is None else f" from {iso_utc(start_ms)}")
        self._freeze(text, "UTC", interval_ms=interval_ms, start=start_ms)

    def next_after(self, after_ms: int) -> int | None:
        if type(after_ms) is not int:
            raise not_ms(after_ms)
        start = self.start or 0
        if after_ms < start:
            return start
        return start + ((after_ms - start) // self.interval_ms + 1) * self.interval_ms

    def last_before(self, until_ms: int) -> int | None:
        if type(until_ms) is not int:
            raise not_ms(until_ms)
        start = self.start or 0
        if until_ms < start:
            return None
        return start + (until_ms - start) // self.interval_ms * self.interval_ms

    def shortest_interval_ms(self) -> int | None:
        return self.interval_ms

    def starting(self, start: int) -> Every:
        """Return the same interval, counted from `start`."""
        return Every(seconds=self.interval_ms / 1000, start=start)

    def __repr__(self) -> str:
        start = "" if self.start is None else f", start={self.start}"
        seconds = self.interval_ms / 1000
        return f"Every(seconds={int(seconds) if seconds.is_integer() else seconds}{start})"

    def __reduce__(self) -> tuple[Callable[[str], Every], tuple[str]]:
        return parse_every, (self._text,)


def parse_every(text: str, tz: str | None = None) -> Every:
    """Read `@every 1h30m`, optionally with `from 2026-01-01T00:00:00Z`. The zone has no effect, but must exist."""
    load_zone("UTC" if tz is None else tz)
    match = _EVERY.fullmatch(text.strip())
    if match is None:
        raise InvalidWhen(
            "interval", text, "is not an interval: write '@every 1h30m', or '@every 1h30m from 2026-01-01T00:00:00Z'"
        )
    amount, start = match.groups()
    parts = _AMOUNT.findall(amount)
    if "".join(number + unit for number, unit in parts) != amount:
        raise InvalidWhen("interval", text, f"{amount!r} is not a duration: write '90s', '5m', '1h30m' or '2d'", inside=True)
    seconds = sum(float(number) * _UNITS_MS[unit] for number, unit in parts) / 1000
    if seconds * 1000 < MIN_MS:
        raise InvalidWhen("interval", text, f"{amount} is too short: the shortest is '@every 1s'", inside=True)
    return Every(seconds=seconds, start=None if start is None else read_instant(start, "start"))


def parse_rate(body: str, tz: str | None = None) -> Every:
    """Read the part between the brackets of `rate(5 minutes)`. The zone has no effect, but must exist."""
    load_zone("UTC" if tz is None else tz)
    match = _RATE.fullmatch(body.strip())
    if match is None:
        raise InvalidWhen("rate", f"rate({body})", "is not a rate: write a number and a unit, such as rate(5 minutes)")
    number, unit = match.groups()
    if len(number) > 15:
        raise InvalidWhen("rate", f"rate({body[:40]}…)", "must be between one second and a hundred years")
    return Every(**{unit.lower() + "s": int(number)})


def _start(start: int | datetime) -> int:
    if type(start) is int and 0 <= start < MIN_MS:
        return start  # the epoch is a valid anchor, although it looks like another unit
    try:
        ms = datetime_ms(start, "start") if isinstance(start, datetime) else to_ms(start, "start")
    except InvalidInput as error:
        raise InvalidWhen("start", str(start), f"is not an instant: {str(error).removeprefix('start: ')}") from None
    if not 0 <= ms < LATEST_PLAUSIBLE_MS:
        raise InvalidWhen("start", str(start), "is before 1970 or after 5138: choose an instant nearer to now")
    return ms


def _amount(interval_ms: int) -> str:
    parts = []
    for unit, size in list(_UNITS_MS.items())[1:]:
        number, interval_ms = divmod(interval_ms, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts)
