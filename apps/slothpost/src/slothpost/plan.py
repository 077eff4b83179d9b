"""The weekly plan of a channel: when posts go out, and when their drafts are made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from tickler import Weekly
from tickler.errors import InvalidInput

DRAFT_LEAD = timedelta(hours=12)
MAX_DRAFT_LEAD = timedelta(days=6)

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_S = 86_400
_WEEK_S = 7 * _DAY_S


class Plan(msgspec.Struct, frozen=True):
    """The slots of a channel and the lead of their drafts. A day is on when it has a time; there is no other switch."""

    slots: Weekly
    lead: timedelta = DRAFT_LEAD

    @classmethod
    def read(cls, days: Mapping[str, object], tz: str, lead: timedelta = DRAFT_LEAD) -> Plan:
        """Read a plan from a form or the API: each day has a time, a list of times, or None.

        `InvalidWhen` names an unknown day, time, field or zone.
        """
        if not timedelta(0) <= lead <= MAX_DRAFT_LEAD:
            raise InvalidInput(f"lead: {lead} is not between 0 and {MAX_DRAFT_LEAD.days} days: choose a shorter one")
        return cls(Weekly(days, tz=tz), lead)

    @property
    def is_scheduled(self) -> bool:
        """False if no day has a time: the channel is then shown as not scheduled."""
        return bool(self.slots.days())

    def drafts(self) -> Weekly:
        """Return when drafts are made: the slots, moved earlier by the lead on the wall clock.

        So a draft for 09:00 is made at 21:00 the evening before, also in the week of a DST change.
        """
        earlier: dict[str, list[str]] = {}
        for number, day in enumerate(_DAYS):
            for time in self.slots.days().get(day, []):
                second = (number * _DAY_S + _seconds(time) - int(self.lead.total_seconds())) % _WEEK_S
                earlier.setdefault(_DAYS[second // _DAY_S], []).append(_time(second % _DAY_S))
        return Weekly(earlier, tz=self.slots.tz)


def _seconds(time: str) -> int:
    hours, minutes, *seconds = (int(part) for part in time.split(":"))
    return hours * 3600 + minutes * 60 + sum(seconds)


def _time(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
