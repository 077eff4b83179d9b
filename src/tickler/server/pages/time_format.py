"""Times as the page shows them: one format for all. `static/time.js` writes the same text in the zone that the reader chose."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from markupsafe import Markup, escape

from tickler.clock import to_datetime
from tickler.errors import UnknownTimezone
from tickler.observe.human_format import split_at_instants
from tickler.when.zones import load_zone


def format_time(ms: int, zone: tzinfo = UTC, form: str = "full", *, now_ms: int) -> str:
    """Return the wall-clock time. The forms are those of `static/time.js`: full, date, day, minute and second.

    The full form omits seconds that are zero and the current year.
    """
    at = to_datetime(ms).astimezone(zone)
    date = f"{at.day} {at:%b}"
    if form == "full":
        year = "" if at.year == to_datetime(now_ms).astimezone(zone).year else f" {at.year}"
        return f"{at:%a} {date}{year}, {at:%H:%M}{f':{at:%S}' if at.second else ''}"
    forms = {"date": f"{at:%a} {date}", "day": f"{date}, {at:%H:%M}", "minute": f"{at:%H:%M}", "second": f"{at:%H:%M:%S}"}
    return forms[form]


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
    text, offset = format_time(ms, info, now_ms=now_ms), zone_name(at.astimezone(info))
    chosen = Markup(' data-ms="{}"').format(ms) if zone is None else ""
    return Markup('<time datetime="{0}" title="{0}"{1}>{2} <small>{3}</small></time>').format(
        at.isoformat(timespec="milliseconds"), chosen, text, offset
    )


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
