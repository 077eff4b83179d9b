"""The weekly plan of a channel: when posts go out, and when their drafts are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

from tickler import At, Weekly
from tickler.errors import InvalidInput

DRAFT_LEAD = timedelta(hours=12)
MAX_DRAFT_LEAD = timedelta(days=6)

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_S = 86_400
_WEEK_S = 7 * _DAY_S


class PlannedSlot(msgspec.Struct, frozen=True):
    """An instant at which a post goes out, and that at which its draft is made."""

    at: datetime
    draft_at: datetime


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

    def slots_from(self, first: date, days: int) -> Iterator[PlannedSlot]:
        """Yield the slots of local days, each with the instant of its draft, in the order of the plan."""
        for day in (first + timedelta(n) for n in range(days)):
            for text in self.slots.days().get(_DAYS[day.weekday()], []):
                wall = datetime.combine(day, time.fromisoformat(text))
                at, draft_at = self._instant(wall), self._instant(wall - self.lead)
                if at is not None:  # the zone may have skipped that day
                    yield PlannedSlot(at, at if draft_at is None else draft_at)

    def due_slots(self, now: datetime, *, since: datetime) -> list[PlannedSlot]:
        """Return the slots after `since` whose drafts should have been made by now: those to come, and those that passed."""
        first = since.astimezone(ZoneInfo(self.slots.tz)).date() - timedelta(1)
        days = (now - since) // timedelta(1) + self.lead // timedelta(1) + 4
        return [slot for slot in self.slots_from(first, days) if slot.at > since and slot.draft_at <= now]

    def next_slot(self, after: datetime, *, taken: frozenset[datetime] = frozenset()) -> datetime | None:
        """Return the first slot after an instant that is not taken; None if nothing is scheduled."""
        at = self.slots.next_after(_ms(after))
        while at is not None and _datetime(at) in taken:
            at = self.slots.next_after(at)
        return None if at is None else _datetime(at)

    def days_later(self, at: datetime, days: int) -> datetime | None:
        """Return the instant so many local days later at the same wall-clock time; None if the zone skipped that day."""
        return self._instant(at.astimezone(ZoneInfo(self.slots.tz)).replace(tzinfo=None) + timedelta(days=days))

    def _instant(self, wall: datetime) -> datetime | None:
        at = At(wall.isoformat(), tz=self.slots.tz).at_ms
        return None if at is None else _datetime(at)

    def drafts(self) -> Weekly:
        """Return when drafts are made: the slots, moved earlier by the lead on the wall clock.

        So a draft for 09:00 is made at 21:00 the evening before, also in the week of a DST change.
        """
        earlier: dict[str, list[str]] = {}
        for number, day in enumerate(_DAYS):
            for text in self.slots.days().get(day, []):
                second = (number * _DAY_S + _seconds(text) - int(self.lead.total_seconds())) % _WEEK_S
                earlier.setdefault(_DAYS[second // _DAY_S], []).append(_time(second % _DAY_S))
        return Weekly(earlier, tz=self.slots.tz)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _datetime(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _seconds(text: str) -> int:
    hours, minutes, *seconds = (int(part) for part in text.split(":"))
    return hours * 3600 + minutes * 60 + sum(seconds)


def _time(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
