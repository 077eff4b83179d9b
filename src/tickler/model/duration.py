"""Durations as callers pass them: a timedelta, or a number of seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tickler.errors import InvalidInput

Duration = timedelta | float


def to_duration(
    name: str,
    value: object,
    longest: timedelta,
    error: Callable[[str, str], InvalidInput] = lambda name, reason: InvalidInput(f"{name}: {reason}"),
) -> timedelta:
    """Return the timedelta of what a caller passed as `name`. Raise `error(name, reason)` unless it is from 0 to `longest`."""
    is_seconds = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= longest.total_seconds()
    duration = timedelta(seconds=value) if is_seconds else value  # type: ignore[arg-type]  # a number, as was just checked
    if isinstance(duration, timedelta) and timedelta(0) <= duration <= longest:
        return duration
    limit = "a day" if longest.days == 1 else f"{longest.days} days"
    raise error(name, f"{value!r} is not a duration from 0 to {limit}: pass seconds or a timedelta")
