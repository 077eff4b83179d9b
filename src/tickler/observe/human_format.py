"""Formats instants, durations and counts for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from tickler.clock import datetime_ms, to_datetime
from tickler.errors import UnknownTimezone
from tickler.when import When, load_zone

_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?) (?:UTC|([\w+/-]+) \((\d\d:\d\d) UTC\))", re.ASCII)


def instant(ms: int, when: When | None) -> str:
    """Format an instant in the schedule's zone and in UTC, exactly, so that it can be pasted into a query."""
    utc = to_datetime(ms)
    fraction = f".{ms % 1000:03}" if ms % 1000 else ""
    text = f"{utc:%Y-%m-%d %H:%M:%S}{fraction} UTC"
    if when is None or when.tz == "UTC":
        return text
    try:
        there = utc.astimezone(load_zone(when.tz).info)
    except UnknownTimezone:
        return text
    return f"{there:%Y-%m-%d %H:%M:%S}{fraction} {when.tz} ({utc:%H:%M} UTC)"


def split_at_instants(text: str) -> Iterator[str | int]:
    """Yield the words of a sentence, and in milliseconds the instants that `instant` wrote into it."""
    start = 0
    for found in _INSTANT.finditer(text):
        if (ms := _milliseconds(*found.groups())) is not None:
            yield text[start : found.start()]
            yield ms
            start = found.end()
    yield text[start:]


def _milliseconds(local: str, zone: str | None, utc_time: str | None) -> int | None:
    """Read what `instant` wrote; None if it is no instant. The time in UTC tells apart the two hours when clocks go back."""
    try:
        info = UTC if zone is None else load_zone(zone, suggest=False).info
        both = [datetime.fromisoformat(local).replace(tzinfo=info, fold=fold).astimezone(UTC) for fold in (0, 1)]
        return next((datetime_ms(at, "at") for at in both if utc_time in (None, f"{at:%H:%M}")), None)
    except (ValueError, OverflowError, UnknownTimezone):
        return None


def span(ms: int) -> str:
    """Format a duration with its two largest units."""
    if ms < 1_000:
        return f"{ms} ms"
    units = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))
    parts: list[str] = []
    for name, size in units:
        number, ms = divmod(ms, size)
        if number:
            parts.append(f"{number} {name}")
    return " ".join(parts[:2])


def count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def some(number: int, one: str, many: str, *, at_least: bool = False) -> str:
    """Format a number with its singular or plural phrase."""
    return f"{'at least ' if at_least else ''}{number:,} {one if number == 1 else many}"
