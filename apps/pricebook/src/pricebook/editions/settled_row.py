"""What a row looks like once some of its editions are settled. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from pricebook.editions.evaluate import NO_EDITIONS, Values, earliest, turning_points, value_at
from pricebook.editions.transitions import ever_counts, order_of
from pricebook.model import Edition, Value
from tickler.table import MISSING, evolve

MICROSECOND = timedelta(microseconds=1)


class SettledRow(NamedTuple):
    """The values that a row keeps, and those that become past, by the instant from which they counted."""

    values: dict[datetime, Value]
    past: dict[datetime, Value]


class Settlement(NamedTuple):
    """Which editions to settle. Values of editions below `next_edition` that are neither among these nor in `others` are left
    over from a process that stopped, and are removed. Former values are kept if they counted at `horizon` or later."""

    editions: Mapping[int, Edition]
    others: Mapping[int, Edition]
    next_edition: int
    horizon: datetime

    def concerns(self, values: Values) -> bool:
        return any(self.takes(value) for value in values.values())

    def takes(self, value: Value) -> bool:
        edition = value.edition
        return edition is not MISSING and edition < self.next_edition and edition not in self.others


def settled_row(values: Values, settlement: Settlement) -> SettledRow:
    """Settle the editions of a row in the order in which they hide each other, then move what nobody can ask for any more.

    At every instant from the horizon on, the row has the same price before and after.
    """
    left = {slot: value for slot, value in values.items() if not settlement.takes(value)}
    taken = [(slot, value) for slot, value in values.items() if settlement.takes(value)]
    known = [(value, settlement.editions[_number(value)]) for _, value in taken if _number(value) in settlement.editions]
    for value, edition in sorted(known, key=lambda each: order_of(_number(each[0]), each[1])):
        if not ever_counts(edition) or edition.from_at is MISSING:
            continue
        if value.retracts is not MISSING:
            _retract(left, value.retracts, edition.from_at)
        else:
            _insert(left, edition.from_at, value, edition)
    needed = _needed(left, settlement.horizon)
    old = {slot: value for slot, value in left.items() if slot < settlement.horizon and value.edition is MISSING}
    past = {slot: value for slot, value in old.items() if slot not in needed}
    return SettledRow({slot: value for slot, value in left.items() if slot not in past}, past)


def _number(value: Value) -> int:
    return 0 if value.edition is MISSING else value.edition


def _retract(values: dict[datetime, Value], number: int, at: datetime) -> None:
    for slot, value in values.items():
        if value.settled == number:
            values[slot] = evolve(value, ended_at=earliest(value.ended_at, at))


def _insert(values: dict[datetime, Value], from_at: datetime, value: Value, edition: Edition) -> None:
    """Put a value where it counts from its instant, or if a row has a value there, a microsecond below: see `moment`."""
    slot = from_at
    while slot in values:
        slot -= MICROSECOND
    values[slot] = evolve(value, edition=MISSING, settled=value.edition, ended_at=edition.to_at)


def _needed(values: Values, horizon: datetime) -> set[datetime]:
    """Return the slots of settled values that count at some instant from the horizon on, if no edition hides them.

    All of them, if an edition is about to take one back: then what is below it counts again.
    """
    settled = {slot: value for slot, value in values.items() if value.edition is MISSING}
    if any(value.retracts is not MISSING for value in values.values()):
        return set(settled)
    points = {horizon, *(point for point in turning_points(settled, NO_EDITIONS) if point > horizon)}
    found = (value_at(settled, NO_EDITIONS, point) for point in points)
    return {counting.slot for counting in found if counting is not None}
