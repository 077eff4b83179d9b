"""From when until when a change set counts in a store. Pure."""

from __future__ import annotations

from datetime import datetime

from pricebook.editions.timing import midnight
from pricebook.model import ChangeSet
from tickler.table import MISSING


def wanted_at(found: ChangeSet, tz: str) -> datetime | None:
    """Return the instant that was asked for, in the zone of a store; None: as soon as it is approved."""
    if found.at is not MISSING:
        return found.at
    return None if found.day is MISSING else midnight(found.day, tz)


def ends_too_early(store: str) -> str:
    return f"store {store}: these prices would end before they count: choose a later end"


def until(found: ChangeSet, tz: str) -> datetime | None:
    """Return the instant from which the former prices count again."""
    if found.until_at is not MISSING:
        return found.until_at
    return None if found.until_day is MISSING else midnight(found.until_day, tz)
