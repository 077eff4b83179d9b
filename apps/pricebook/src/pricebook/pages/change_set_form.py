"""The form of a change set: what it is called, and when it counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from pricebook.change_sets import NewChangeSet
from pricebook.errors import InvalidField
from pricebook.model import ChangeSet
from pricebook.pages.clock import PageClock
from tickler.table import MISSING

FIELDS = ("title", "reason", "begins", "day", "at", "ends", "until_day", "until_at")
NOW, DAY, INSTANT, NEVER = "now", "day", "instant", "never"  # how it begins and how it ends

FormValues = Mapping[str, str]


def empty_values(clock: PageClock) -> FormValues:
    """Return the form of a new change set, which begins tomorrow unless somebody chooses otherwise."""
    return {
        "title": "", "reason": "", "begins": DAY, "day": clock.tomorrow.isoformat(), "at": "", "ends": NEVER, "until_day": "",
        "until_at": "",
    }  # fmt: skip


def values_of(found: ChangeSet, clock: PageClock) -> FormValues:
    return {
        "title": found.title,
        "reason": found.reason,
        "begins": INSTANT if found.at is not MISSING else DAY if found.day is not MISSING else NOW,
        "day": "" if found.day is MISSING else found.day.isoformat(),
        "at": "" if found.at is MISSING else clock.input(found.at),
        "ends": INSTANT if found.until_at is not MISSING else DAY if found.until_day is not MISSING else NEVER,
        "until_day": "" if found.until_day is MISSING else found.until_day.isoformat(),
        "until_at": "" if found.until_at is MISSING else clock.input(found.until_at),
    }


def read_values(fields: Mapping[str, str]) -> FormValues:
    return {name: fields.get(name, "") for name in FIELDS}


def read_change(values: FormValues, clock: PageClock) -> NewChangeSet:
    """Return what a form says. Only the field of the chosen kind counts."""
    begins, ends = values["begins"], values["ends"]
    return NewChangeSet(
        title=values["title"],
        reason=values["reason"].strip(),
        day=_day("day", values) if begins == DAY else None,
        at=_instant("at", values, clock) if begins == INSTANT else None,
        until_day=_day("until_day", values) if ends == DAY else None,
        until_at=_instant("until_at", values, clock) if ends == INSTANT else None,
    )


def _day(name: str, values: FormValues) -> date:
    try:
        return date.fromisoformat(values[name].strip())
    except ValueError:
        raise InvalidField(name, "choose a day, such as 2026-12-01") from None


def _instant(name: str, values: FormValues, clock: PageClock) -> datetime:
    at = clock.read_input(values[name])
    if at is None:
        raise InvalidField(name, "choose a day and a time, such as 2026-12-01T09:00")
    return at
