"""What may become of an edition, and when. Pure: each function returns the edition as it is written to the head, or refuses.

    open ──seal──▶ sealed ──move──▶ sealed ──settle──▶ settling ──▶ gone from the head
      └──cancel──▶ cancelled ◀──cancel──┘ (until it is settled)

No change takes effect before `now + margin`, so that a reader that took its instant earlier never learns of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from pricebook.editions.timing import Timing
from pricebook.errors import NotAllowed
from pricebook.model import Edition, Head
from tickler.table import MISSING, Missing, evolve


def opened(slot: datetime, now: datetime, retracts: int | Missing = MISSING, change_set: str | Missing = MISSING) -> Edition:
    return Edition(state="open", slot=slot, opened_at=now, retracts=retracts, change_set=change_set)


def sealed(edition: Edition, from_at: datetime | None, now: datetime, timing: Timing) -> Edition:
    """Let an edition count from an instant on; None: as soon as possible. One that is too late counts `buffer` from now."""
    _check_not_over(edition)
    if edition.state != "open":
        raise NotAllowed("it is sealed already: move it, or cancel it")
    wanted = edition.slot if from_at is None else from_at
    soonest = now + timing.margin
    if wanted < soonest:
        wanted = max(edition.slot, soonest if from_at is None else now + timing.buffer)
    elif wanted < edition.slot:
        raise _too_early(edition)
    return evolve(edition, state="sealed", from_at=wanted, sealed_at=now)


def moved(edition: Edition, from_at: datetime, now: datetime, timing: Timing) -> Edition:
    """Let an edition that does not count yet count from another instant on."""
    _check_not_over(edition)
    if edition.state != "sealed" or edition.from_at is MISSING:
        raise NotAllowed("it is not sealed: seal it for the instant from which it shall count")
    soonest = now + timing.margin
    if edition.from_at < soonest:
        raise NotAllowed("it counts already, or is about to: cancel it, and open another edition")
    if from_at < edition.slot:
        raise _too_early(edition)
    if from_at < soonest:
        raise NotAllowed(f"it can count from {soonest.isoformat()} on: choose a later instant")
    return evolve(edition, from_at=from_at)


def cancelled(edition: Edition, now: datetime, timing: Timing) -> Edition:
    """Let an edition count no more, or never. Its prices vanish together, also when they count already."""
    _check_not_over(edition)
    if edition.state == "open" or edition.from_at is MISSING:
        return evolve(edition, to_at=now)
    soonest = now + timing.margin
    if edition.from_at >= soonest:
        return evolve(edition, to_at=edition.from_at)
    if edition.retracts is not MISSING:
        raise NotAllowed("it takes back another edition, and counts already: stage those prices again as a new edition")
    return evolve(edition, to_at=soonest)


def settling(edition: Edition) -> Edition:
    """Let nobody change an edition any more, because rows begin to hold its prices for good."""
    return evolve(edition, state="settling")


def is_due(edition: Edition, now: datetime) -> bool:
    """Tell whether an edition can be settled: it counts, or it was cancelled and counts no more, or never will."""
    at = due_at(edition)
    return at is not None and at <= now


def due_at(edition: Edition) -> datetime | None:
    """Return the instant from which on an edition can be settled, None if that is not known yet.

    One that was cancelled before it counted can be settled at once, and has an instant that has passed.
    """
    if edition.to_at is not MISSING:
        return edition.to_at if ever_counts(edition) else edition.opened_at
    return None if edition.state == "open" or edition.from_at is MISSING else edition.from_at


def ever_counts(edition: Edition) -> bool:
    return (
        edition.state != "open"
        and edition.from_at is not MISSING
        and (edition.to_at is MISSING or edition.from_at < edition.to_at)
    )


def order_of(number: int, edition: Edition) -> tuple[datetime, int]:
    """Return what editions are settled in the order of: the order in which they hide each other."""
    return (edition.slot if edition.from_at is MISSING else edition.from_at, number)


def change_instants(head: Head) -> Iterator[datetime]:
    """Yield the instants at which prices of a store change, as far as the head knows them."""
    if head.changed_at is not MISSING:
        yield head.changed_at
    yield from head.untils
    for edition in head.editions.values():
        if ever_counts(edition):
            yield from edition.untils
            if edition.from_at is not MISSING:
                yield edition.from_at
            if edition.to_at is not MISSING:
                yield edition.to_at


def last_change(head: Head, at: datetime) -> datetime | None:
    """Return the last instant up to `at` at which a price of the store changed. Prices are the same as long as it is."""
    return max((each for each in change_instants(head) if each <= at), default=None)


def version_of(head: Head, at: datetime) -> str:
    """Return what stays the same as long as all prices of the store do."""
    changed_at = last_change(head, at)
    return "0" if changed_at is None else f"{changed_at.astimezone(UTC):%Y%m%dT%H%M%S.%f}"[:-3]


def _check_not_over(edition: Edition) -> None:
    if edition.state == "settling":
        raise NotAllowed("it is settled: roll it back with a new edition")
    if edition.to_at is not MISSING:
        raise NotAllowed("it was cancelled: open another edition")


def _too_early(edition: Edition) -> NotAllowed:
    return NotAllowed(
        f"its prices are staged for {edition.slot.isoformat()} or later: stage them again to let them count earlier"
    )
