"""Whether a price may take its place in a row: a row has one price for each instant. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from pricebook.editions.transitions import ever_counts
from pricebook.errors import NotAllowed, PriceConflict, StagedOtherwise
from pricebook.model import CombinationPrice, Edition, Head, Price, PriceKey, Value
from tickler.table import MISSING, Change, Condition


class StagedWrite(NamedTuple):
    """How a value is written to a row, and the condition under which the row is as it was read."""

    key: PriceKey
    change: Change[Any]
    when: Condition[Any]


def open_edition(head: Head, number: int) -> Edition:
    """Return an edition that is neither sealed nor cancelled."""
    edition = head.editions.get(number)
    if edition is None or edition.state != "open" or edition.to_at is not MISSING:
        raise NotAllowed(f"edition {number} of store {head.store} is not open: open another one")
    return edition


def edition_to_stage(head: Head, number: int, oldest: datetime) -> Edition:
    """Return an edition to which prices can be staged.

    Not one whose rows would name an instant before `oldest`, of which rows have given up what counted then.
    """
    edition = open_edition(head, number)
    if edition.slot < oldest:
        raise NotAllowed(
            f"edition {number} of store {head.store} is for {edition.slot.isoformat()}, which is long past: open another one"
        )
    return edition


def how_to_stage(key: PriceKey, value: Value, found: Value | None, head: Head) -> StagedWrite | None:
    """Return how to stage a value where `found` was read, None if it is there.

    The price of an edition that never counts gives way. `PriceConflict` names the edition of any other price.
    """
    if found == value:
        return None
    assert value.edition is not MISSING, "a value is staged for an edition"
    path = _values(key)[open_edition(head, value.edition).slot]
    if found is None:
        return StagedWrite(key, path.set(value), path.missing())
    if found.edition == value.edition:
        raise StagedOtherwise(
            f"edition {value.edition} of store {head.store} has another price for {key.of}: open another edition"
        )
    if found.edition is MISSING or not is_dead(found.edition, head):
        raise conflict(head, key, None if found.edition is MISSING else found.edition)
    return StagedWrite(key, path.set(value), path == found)


def conflict(head: Head, key: PriceKey, number: int | None) -> PriceConflict:
    """Return the refusal that names the edition of another price, and the change set that it is of."""
    edition = None if number is None else head.editions.get(number)
    change_set = None if edition is None or edition.change_set is MISSING else edition.change_set
    return PriceConflict(head.store, key.of, number, change_set)


def is_dead(number: int, head: Head) -> bool:
    """Tell whether an edition has no price that counts or will count: it was cancelled, or the head has forgotten it."""
    if number >= head.next_edition:
        return False  # opened after the head was read
    edition = head.editions.get(number)
    return edition is None or (edition.to_at is not MISSING and not ever_counts(edition))


def _values(key: PriceKey) -> Any:
    return Price.values if key.combination is None else CombinationPrice.values
