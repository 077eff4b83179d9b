"""Times as the pages show them: on the clock of the reader or of a store, with a word for the days around today."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from markupsafe import Markup

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_NEAR = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}
_SOON = timedelta(hours=1)


class PageClock(msgspec.Struct, frozen=True):
    """When somebody looks at a page, and the zone in which it shows times."""

    now: datetime
    zone_name: str

    @property
    def zone(self) -> ZoneInfo:
        return zone_of(self.zone_name)

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()

    def of(self, zone_name: str) -> PageClock:
        """Return the clock of another zone, such as that of a store."""
        return PageClock(self.now, zone_name)

    def day(self, at: date) -> str:
        """Return a day such as Today, or Thu 19 Nov."""
        near = _NEAR.get((at - self.today).days)
        return self.full_day(at) if near is None else near

    def full_day(self, at: date) -> str:
        year = "" if at.year == self.today.year else f" {at.year}"
        return f"{DAYS[at.weekday()]} {at.day} {MONTHS[at.month]}{year}"

    def text(self, at: datetime) -> str:
        """Return an instant such as Today, 09:00."""
        local = at.astimezone(self.zone)
        return f"{self.day(local.date())}, {local:%H:%M}"

    def time_of_day(self, at: datetime) -> str:
        """Return a time such as 09:00."""
        return f"{at.astimezone(self.zone):%H:%M}"

    def element(self, at: datetime) -> Markup:
        instant = at.astimezone(UTC).isoformat(timespec="seconds")
        return Markup('<time datetime="{}" title="{}">{}</time>').format(instant, self.title(at), self.text(at))

    def soon(self, at: datetime) -> Markup:
        """Render an instant with how far it is away, if that is less than an hour."""
        away = at - self.now
        if not timedelta(0) < away < _SOON:
            return self.element(at)
        return Markup('{} <small class="away">{}</small>').format(self.element(at), away_words(away))

    def title(self, at: datetime) -> str:
        return f"{at.astimezone(self.zone):%Y-%m-%d %H:%M:%S} {self.zone_name}"


def away_words(away: timedelta) -> str:
    """Return how far away something is, such as in 4 min."""
    minutes = round(away.total_seconds() / 60)
    if minutes < 1:
        return "in less than a minute"
    if minutes < 100:
        return f"in {minutes} min"
    hours = round(minutes / 60)
    return f"in {hours} h" if hours < 48 else f"in {round(hours / 24)} days"


def zone_of(name: str) -> ZoneInfo:
    """Return a zone; UTC if this machine does not know it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
