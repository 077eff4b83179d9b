"""Scalars of the schema: instants in UTC, and amounts of money in minor units."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import NewType

import strawberry
from strawberry.types.scalar import ScalarDefinition

from pricebook.money import MAX_MINOR

Instant = NewType("Instant", datetime)
Day = NewType("Day", date)
MinorUnits = NewType("MinorUnits", int)


def read_instant(value: object) -> datetime:
    """Read an instant with an offset. Without one nobody knows when it is."""
    if not isinstance(value, str):
        raise ValueError("an instant is a text such as 2026-03-15T00:00:00Z")
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is not None:
            return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{value[:40]!r} is not an instant: write it as 2026-03-15T00:00:00Z") from None
    raise ValueError(f"{value[:40]!r} has no offset: write it as 2026-03-15T00:00:00Z, or with +01:00")


def write_instant(value: object) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError(f"{value!r} is not an aware datetime")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_day(value: object) -> date:
    try:
        if isinstance(value, str):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("a date is a text such as 2026-03-15")


def write_day(value: object) -> str:
    if type(value) is not date:
        raise TypeError(f"{value!r} is not a date")
    return value.isoformat()


def whole_minor_units(value: object) -> int:
    """Check an amount, which goes both ways as it is."""
    if type(value) is not int or abs(value) > MAX_MINOR:
        raise ValueError(f"{value!r} is not a whole number of minor units up to {MAX_MINOR:,}")
    return value


SCALARS: dict[object, ScalarDefinition] = {
    Instant: strawberry.scalar(
        name="DateTime",
        description="An instant with its offset, such as 2026-03-15T00:00:00Z. Answers are in UTC.",
        serialize=write_instant,
        parse_value=read_instant,
    ),
    Day: strawberry.scalar(
        name="Date",
        description="A date of the stores' own calendars, such as 2026-03-15.",
        serialize=write_day,
        parse_value=read_day,
    ),
    MinorUnits: strawberry.scalar(
        name="MinorUnits",
        description=f"Whole minor units of a currency, such as cents, up to {MAX_MINOR:,}: exact in every JSON parser.",
        serialize=whole_minor_units,
        parse_value=whole_minor_units,
    ),
}
