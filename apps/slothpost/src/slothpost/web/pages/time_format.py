"""Times as the pages show them: on the wall clock of the reader, with a word for the days around today."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from markupsafe import Markup, escape

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NEAR = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}

# How the engine writes instants into its sentences: in UTC, or in a zone with the time in UTC behind it.
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d{3})? (?:UTC|([\w+/-]+) \((\d\d:\d\d) UTC\))", re.ASCII)


class Clock(msgspec.Struct, frozen=True):
    """Where and when somebody looks at a page."""

    now: datetime
    zone_name: str

    @property
    def zone(self) -> ZoneInfo:
        return zone_of(self.zone_name)

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()

    def day_of(self, at: datetime) -> date:
        """Return the day on which an instant falls for the reader."""
        return at.astimezone(self.zone).date()

    def day(self, at: date) -> str:
        """Return a day such as Today, or Thu 19 Nov."""
        near = _NEAR.get((at - self.today).days)
        if near is not None:
            return near
        year = "" if at.year == self.today.year else f" {at.year}"
        return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month]}{year}"

    def weekday(self, at: date) -> str:
        return _DAYS[at.weekday()]

    def text(self, at: datetime) -> str:
        """Return an instant such as Today, 09:00."""
        local = at.astimezone(self.zone)
        return f"{self.day(local.date())}, {minute(local)}"

    def element(self, at: datetime, zone_name: str | None = None) -> Markup:
        """Render an instant; with a zone that is not the reader's, also the time there."""
        instant = at.astimezone(UTC).isoformat(timespec="seconds")
        there = ""
        if zone_name is not None and self._differs(at, zone_name):
            local = at.astimezone(zone_of(zone_name))
            there = Markup(" <small>{} in {}</small>").format(f"{_DAYS[local.weekday()]} {minute(local)}", zone_name)
        return Markup('<time datetime="{}" title="{}">{}</time>{}').format(instant, self.title(at), self.text(at), there)

    def minute_element(self, at: datetime) -> Markup:
        """Render the time of day alone, where the day is clear."""
        instant = at.astimezone(UTC).isoformat(timespec="seconds")
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            instant, self.title(at), minute(at.astimezone(self.zone))
        )

    def title(self, at: datetime) -> str:
        return f"{at.astimezone(self.zone):%Y-%m-%d %H:%M:%S} {self.zone_name}"

    def input(self, at: datetime) -> str:
        """Return the value of an input of the type datetime-local."""
        return f"{at.astimezone(self.zone):%Y-%m-%dT%H:%M}"

    def read_input(self, text: str) -> datetime | None:
        """Read such a value; None if it is none."""
        try:
            wall = datetime.fromisoformat(text.strip())
            return (wall.replace(tzinfo=self.zone) if wall.tzinfo is None else wall).astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    def sentence(self, text: str) -> Markup:
        """Render a sentence of the engine: with times on the reader's clock, and code between backticks."""
        parts = re.split(r"`([^`]+)`", text)
        return Markup().join(
            Markup("<code>{}</code>").format(part) if number % 2 else self._with_times(part)
            for number, part in enumerate(parts)
        )  # fmt: skip

    def _with_times(self, text: str) -> Markup:
        pieces: list[Markup] = []
        start = 0
        for found in _INSTANT.finditer(text):
            at = _read_instant(*found.groups())
            pieces += [escape(text[start : found.start()]), escape(found[0]) if at is None else self.element(at)]
            start = found.end()
        return Markup().join([*pieces, escape(text[start:])])

    def _differs(self, at: datetime, zone_name: str) -> bool:
        return at.astimezone(zone_of(zone_name)).utcoffset() != at.astimezone(self.zone).utcoffset()


def minute(at: datetime) -> str:
    """Return a time of day without its seconds, which the title of an element has."""
    return f"{at:%H:%M}"


def zone_of(name: str) -> ZoneInfo:
    """Return a zone; UTC if this machine does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def span(duration: timedelta) -> str:
    """Return a duration in its largest units, such as 12 h or 1 h 30 min."""
    minutes = int(duration.total_seconds()) // 60
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 min"


def _read_instant(local: str, zone_name: str | None, utc_time: str | None) -> datetime | None:
    """Read what the engine wrote. The time in UTC tells apart the two hours when clocks go back."""
    wall = datetime.fromisoformat(local)
    if zone_name is None:
        return wall.replace(tzinfo=UTC)
    both = [wall.replace(tzinfo=zone_of(zone_name), fold=fold).astimezone(UTC) for fold in (0, 1)]
    return next((at for at in both if utc_time in (None, f"{at:%H:%M}")), None)
