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
_LATER = timedelta(days=2)


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

    @property
    def tomorrow(self) -> date:
        return self.today + timedelta(days=1)

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
        return self._element(at, self.text(at))

    def _element(self, at: datetime, words: str) -> Markup:
        instant = at.astimezone(UTC).isoformat(timespec="seconds")
        return Markup('<time datetime="{}" title="{}">{}</time>').format(instant, self.title(at), words)

    def exact(self, at: datetime) -> Markup:
        """Render an instant with its seconds."""
        return self._element(at, f"{self.text(at)}{at.astimezone(self.zone).strftime(':%S')}")

    def soon(self, at: datetime) -> Markup:
        """Render an instant with how far it is away, if that is less than an hour."""
        away = at - self.now
        if not timedelta(0) < away < _SOON:
            return self.element(at)
        return Markup('{} <small class="away">{}</small>').format(self.element(at), away_words(away))

    def away(self, at: datetime) -> str:
        """Return how far away an instant is, or when it is if that is more than two days from now."""
        away = at - self.now
        return away_words(away) if away < _LATER else self.text(at)

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
