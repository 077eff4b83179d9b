"""The time zones that forms suggest."""

from __future__ import annotations

from zoneinfo import available_timezones

ZONES = sorted(name for name in available_timezones() if "/" in name or name == "UTC")
