"""Formats instants, durations and counts for people."""

from __future__ import annotations

from tickler.clock import to_datetime
from tickler.errors import UnknownTimezone
from tickler.when import When, load_zone


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
