"""Suggestions for text that is not a cron expression. Every suggestion is itself valid."""

from __future__ import annotations

import re

from tickler.errors import InvalidWhen
from tickler.when.at import At
from tickler.when.eventbridge import compile_eventbridge
from tickler.when.every import parse_every

_INTERVAL = re.compile(r"@?(?:every\s+)?(\d{1,9})\s*(w|d|h|m|s|weeks?|days?|hours?|minutes?|seconds?)", re.IGNORECASE)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]\s*([\d:.,]+)\s*(Z|[+-][\d:]+)?)?", re.ASCII | re.IGNORECASE)
_ONE_DIGIT = re.compile(r"\d(?!\d)", re.ASCII)
_YEARS = re.compile(r"[\d,/-]*\d{4}[\d,/-]*", re.ASCII)


def interval_hint(expr: str) -> str:
    """Say how to write an interval."""
    like = _INTERVAL.fullmatch(expr.strip())
    meant = "@every 5m" if like is None else f"@every {like[1]}{like[2][0].lower()}"
    try:
        parse_every(meant)
    except InvalidWhen:  # too short, or too long
        meant = "@every 5m"
    return f"for an interval write '{meant}'"


def cron_hint(expr: str) -> str | None:
    """Explain a date, a year or a question mark, none of which belongs into cron fields. None if there is none of them."""
    date = _DATE.fullmatch(expr.strip())
    if date is not None:
        return _date_hint(*date.groups())
    parts = expr.split()
    if "?" in expr:
        if len(parts) == 6 and "?" in (parts[2], parts[4]):
            return f"has EventBridge's '?' but not its brackets: write '{_in_brackets(expr)}'"
        return (
            "has a '?', which is not cron: write '*' instead, and weekdays by name, "
            "since numbers begin with 0 for Sunday here, and with 1 in schedulers that have '?'"
        )
    if len(parts) in (6, 7) and _YEARS.fullmatch(parts[-1]):
        return (
            "ends with a year, but six fields begin with seconds, and none of them is a year: set starts_at and ends_at, "
            "or write EventBridge's 'cron(0 9 1 1 ? 2030)'"
        )
    return None


def _date_hint(day: str, clock: str | None, offset: str | None) -> str:
    clock = "00:00:00" if clock is None else f"0{clock}" if _ONE_DIGIT.match(clock) else clock
    moment = f"{day}T{clock}{offset or ''}"
    try:
        At(moment)
    except InvalidWhen:
        return "is not a valid date and time: for one instant write it like 'at(2026-03-15T09:00:00)'"
    return f"is a date: for one instant write 'at({moment})'" + (", without tz" if offset else "")


def _in_brackets(expr: str) -> str:
    """Return the expression as EventBridge writes it, or an example if that would be invalid too."""
    try:
        reads = compile_eventbridge(expr.upper()).has_a_date()
    except InvalidWhen:
        reads = False
    return f"cron({expr.upper()})" if reads else "cron(0 9 ? * MON-FRI *)"
