"""What somebody may have meant whose text does not read as cron, and how to write that."""

from __future__ import annotations

import re

_INTERVAL = re.compile(r"@?(?:every\s+)?(\d{1,9})\s*(w|d|h|m|s|weeks?|days?|hours?|minutes?|seconds?)", re.IGNORECASE)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]([\d:.,]+(?:Z|[+-][\d:]+)?))?", re.ASCII | re.IGNORECASE)
_YEARS = re.compile(r"[\d,/-]*\d{4}[\d,/-]*", re.ASCII)


def interval_hint(expr: str) -> str:
    """How to write an interval."""
    like = _INTERVAL.fullmatch(expr.strip())
    amount = "5m" if like is None else like[1] + like[2][0].lower()
    return f"for an interval write '@every {amount}'"


def cron_hint(expr: str) -> str | None:
    """For what has no place in the fields of cron: a date, a year, EventBridge's question mark. None where there is none."""
    date = _DATE.fullmatch(expr.strip())
    if date is not None:
        return f"is a date: for one instant write 'at({date[1]}T{date[2] or '00:00:00'})'"
    parts = expr.split()
    if "?" in expr:
        if len(parts) == 6 and "?" in (parts[2], parts[4]):
            return f"'?' is EventBridge's, and its expressions have brackets: write 'cron({expr.upper()})'"
        return "write '*' for '?', and weekdays by name: numbers begin with 0 for Sunday here, and with 1 where '?' comes from"
    if len(parts) in (6, 7) and _YEARS.fullmatch(parts[-1]):
        return (
            "six fields begin with seconds, and none of them is a year: set starts_at and ends_at, "
            "or write EventBridge's cron(0 9 1 1 ? 2030)"
        )
    return None
