"""What a row's price is at an instant. Pure: the same values, editions and instant always give the same price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from pricebook.editions.timing import MILLISECOND
from pricebook.model import Edition, Value
from pricebook.money import Money
from tickler.table import MISSING, Missing

Values = Mapping[datetime, Value]
Editions = Mapping[int, Edition]

NO_EDITIONS: Editions = {}
LOWEST_OVER = timedelta(days=30)


class Counting(Struct, frozen=True):
    """The value that counts at an instant, and since when. `slot` is where the row has it."""

    from_at: datetime
    value: Value
    slot: datetime


def value_at(values: Values, editions: Editions, at: datetime) -> Counting | None:
    """Return the value that counts: of those that are settled, or of an edition that counts, the one of the greatest instant.

    None if there is none. A value without an amount says that the product has no price. Values of unknown editions do not count.
    """
    if len(values) == 1:
        ((slot, value),) = values.items()
        if value.edition is MISSING and value.until is MISSING and value.ended_at is MISSING and value.retracts is MISSING:
            return Counting(moment(slot), value, slot) if slot <= at else None  # as nearly all rows are
    retracted = _retracted(values, editions, at)
    best: Counting | None = None
    best_rank = (at, -1)
    for slot, value in values.items():
        if slot > at or value.retracts is not MISSING or value.settled in retracted:
            continue
        if value.edition is MISSING:
            from_at = moment(slot)
            rank, ends_at = (from_at, settled_number(value)), earliest(value.until, value.ended_at)
        else:
            edition = editions.get(value.edition)
            if edition is None or not edition.counts_at(at) or edition.from_at is MISSING:
                continue
            from_at, rank, ends_at = edition.from_at, (edition.from_at, value.edition), earliest(value.until, edition.to_at)
        if ends_at is not MISSING and at >= ends_at:
            continue
        if best is None or rank > best_rank:
            best_rank = rank
            best = Counting(from_at, value, slot)
    return best


def _retracted(values: Values, editions: Editions, at: datetime) -> set[object]:
    """Return the settled editions that editions which count take back."""
    found: set[object] = set()
    for slot, value in values.items():
        if value.retracts is not MISSING and slot <= at and value.edition is not MISSING:
            edition = editions.get(value.edition)
            if edition is not None and edition.counts_at(at):
                found.add(value.retracts)
    return found


def marks(values: Values, at: datetime) -> Iterator[int]:
    """Yield the editions of a row's unsettled values that may count at an instant: what a reader has to know of the head."""
    for slot, value in values.items():
        if value.edition is not MISSING and slot <= at:
            yield value.edition


def has_unknown_mark(values: Values, editions: Editions, at: datetime) -> bool:
    """Tell whether a row has an unsettled value that may count, of an edition that is not among these."""
    for slot, value in values.items():  # noqa: SIM110  # a generator costs three times as much, in every row of every page
        if value.edition is not MISSING and slot <= at and value.edition not in editions:
            return True
    return False


def moment(slot: datetime) -> datetime:
    """Return the instant from which a settled value counts.

    Instants of prices are whole milliseconds. Where a row has a value of the same instant already, another one is settled a
    microsecond before, because a row has one value for each instant in its map. No reader asks for what is between.
    """
    below = slot.microsecond % 1000
    return slot + MILLISECOND - timedelta(microseconds=below) if below else slot


def settled_number(value: Value) -> int:
    """Return the edition that a settled value was of, 0 if it was loaded: of two of one instant, the greater one's counts."""
    return 0 if value.settled is MISSING else value.settled


def earliest(one: datetime | Missing, other: datetime | Missing) -> datetime | Missing:
    """Return the earlier of two instants of which each may be missing."""
    if one is MISSING:
        return other
    return one if other is MISSING else min(one, other)


def turning_points(values: Values, editions: Editions) -> set[datetime]:
    """Return all instants at which the price of a row may change."""
    points = {moment(slot) for slot in values}
    for value in values.values():
        edition = None if value.edition is MISSING else editions.get(value.edition)
        candidates = [value.until, value.ended_at, *([] if edition is None else [edition.from_at, edition.to_at])]
        points.update(each for each in candidates if isinstance(each, datetime))
    return points


def lowest_before(rows: Sequence[Values], editions: Editions, at: datetime, new: Money) -> Money | None:
    """Return the lowest price in the 30 days before `at` if `new` reduces the price, else None.

    `rows` has the values of a channel, then those of ALL, whose price counts where the channel has none.
    """
    before = at - MILLISECOND
    current = money_at(rows, editions, before)
    if current is None or current.currency != new.currency or new.minor >= current.minor:
        return None
    start = at - LOWEST_OVER
    points = {point for values in rows for point in turning_points(values, editions) if start < point < at}
    found = [money_at(rows, editions, point) for point in (start, before, *points)]
    return min((each for each in found if each is not None and each.currency == new.currency), key=lambda each: each.minor)


def money_at(rows: Sequence[Values], editions: Editions, at: datetime) -> Money | None:
    """Return the price at an instant: that of the first of the rows that has one. `rows` are as for `lowest_before`."""
    for values in rows:
        counting = value_at(values, editions, at)
        if counting is not None and (money := counting.value.money()) is not None:
            return money
    return None
