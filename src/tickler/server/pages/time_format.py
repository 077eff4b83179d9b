"""Times as the page shows them: one format for all. `static/time.js` writes the same text in the zone that the reader chose."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from markupsafe import Markup, escape

from tickler.clock import to_datetime
from tickler.errors import UnknownTimezone
from tickler.observe.human_format import split_at_instants
from tickler.when.zones import load_zone

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def format_time(ms: int, zone: tzinfo = UTC, form: str = "full", *, now_ms: int) -> str:
    """Return the wall-clock time. The forms are those of `static/time.js`: full, date, day, minute and second.

    The full form omits seconds that are zero and the current year.
    """
    at = to_datetime(ms).astimezone(zone)
    minute = f"{at.hour:02}:{at.minute:02}"
    if form == "minute":
        return minute
    if form == "second":
        return f"{minute}:{at.second:02}"
    date = f"{at.day} {_MONTHS[at.month]}"
    if form == "day":
        return f"{date}, {minute}"
    date = f"{_DAYS[at.weekday()]} {date}"
    if form == "date":
        return date
    year = "" if at.year == _year(now_ms // 1000, zone) else f" {at.year}"
    return f"{date}{year}, {minute}{f':{at.second:02}' if at.second else ''}"


@lru_cache(maxsize=64)
def _year(now_s: int, zone: tzinfo) -> int:
    return datetime.fromtimestamp(now_s, zone).year


def zone_name(at: datetime) -> str:
    """Return the offset of an aware datetime: UTC, UTC+1 or UTC-3:30."""
    minutes = int((at.utcoffset() or timedelta()).total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}" if minutes else "UTC"


def time_element(ms: int, zone: str | None = None, *, now_ms: int) -> Markup:
    """Render a time in a named zone; without a name, in UTC until a script changes it to the zone that the reader chose."""
    try:
        info: tzinfo = UTC if zone is None else load_zone(zone).info
    except UnknownTimezone:
        info = UTC
    at = to_datetime(ms)
    instant = at.isoformat(timespec="milliseconds")
    chosen = f' data-ms="{ms}"' if zone is None else ""
    text, offset = format_time(ms, info, now_ms=now_ms), zone_name(at.astimezone(info))
    return Markup(f'<time datetime="{instant}" title="{instant}"{chosen}>{text} <small>{offset}</small></time>')  # noqa: S704  # digits


def with_times(text: str, *, now_ms: int) -> Markup:
    """Escape a text, and render the instants in it as times."""
    parts = split_at_instants(text)
    return Markup().join(time_element(part, now_ms=now_ms) if isinstance(part, int) else escape(part) for part in parts)


def sentence(text: str, *, now_ms: int) -> Markup:
    """Render a sentence of *why*, of *doctor* or of an error: with times, and with code for what stands between backticks."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if number % 2 else with_times(part, now_ms=now_ms)
        for number, part in enumerate(parts)
    )
