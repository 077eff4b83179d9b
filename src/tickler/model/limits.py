"""Checks of the limits that callers pass."""

from __future__ import annotations

from tickler.errors import InvalidInput

MAX_LIMIT = 100_000


def check_limit(limit: object) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit: {limit!r} is not a number of rows: pass a whole number from 1 to {MAX_LIMIT}")
    return limit
