"""The days of the demo, counted from the day of its next post."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

import msgspec

DEFAULT_ZONE = "Europe/Berlin"

_LOCALTIME = "/etc/localtime"
_SENSIBLE = ("08:00", "10:00", "12:30", "15:00", "17:30", "20:00", "22:00")
_NOTICE = timedelta(minutes=90)  # so long before its slot a visitor finds the draft, at least


class Days(msgspec.Struct, frozen=True):
    """Day 0 is that of the next post, which is today or tomorrow; days before it are negative."""

    zone: str
    first: date
    soon: str  # the time of the next post

    def at(self, day: int, text: str) -> datetime:
        """Return an instant by its day and its time on the wall clock."""
        local = datetime.combine(self.first + timedelta(days=day), time.fromisoformat(text), ZoneInfo(self.zone))
        return local.astimezone(UTC)


def days_of(now: datetime, zone: str) -> Days:
    """Choose the next post: at a time of day at which people post, 90 minutes from now at least, and 12 hours at most."""
    today = now.astimezone(ZoneInfo(zone)).date()
    candidates = (Days(zone, today + timedelta(days=day), text) for day in (0, 1) for text in _SENSIBLE)
    return next(each for each in candidates if each.at(0, each.soon) >= now + _NOTICE)


def machine_zone() -> str:
    """Return the time zone of this machine; Berlin's if it has none, or is set to UTC as servers are."""
    name = os.environ.get("TZ") or os.path.realpath(_LOCALTIME).rpartition("zoneinfo/")[2]
    return name if "/" in name and not name.startswith("Etc/") and name in available_timezones() else DEFAULT_ZONE
