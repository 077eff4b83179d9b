"""The pure middle of settling and of manual changes: what becomes of a fire, and which waiting fire opens next.

The SQL stores express the same in their statements: the guard (`holds`) and the effects (`settled`) are in `stores/sql/fires.py`,
the wake rule (`next_to_wake`) is in each store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from msgspec.structs import replace

from tickler.model.fire import Entry, Fire, Settlement, cancelled, retried, sent_again


def holds(stored: Fire | None, fire: Fire) -> bool:
    """Tell whether a lease is still the caller's: the same worker, attempt and lease token."""
    return stored is not None and (stored.holder, stored.attempt) == (fire.holder, fire.attempt)


def settled(fire: Fire, settlement: Settlement, now_ms: int) -> Fire | None:
    """Return a leased fire as its settlement leaves it, or None when that closes it."""
    if settlement.then == "done":
        return None
    unleased = replace(fire, worker=None, lease_token=None, reason=settled_reason(settlement))
    if settlement.then == "dead":
        return replace(unleased, state="dead", deliver_after=None)
    deliver_after = now_ms if settlement.deliver_after is None else settlement.deliver_after
    if settlement.then == "retry":
        return replace(unleased, deliver_after=deliver_after)
    return replace(unleased, deliver_after=deliver_after, attempt=fire.attempt - 1, reason=unleased.reason or fire.reason)


def settled_reason(settlement: Settlement) -> str | None:
    if settlement.reason is not None or settlement.entry is None:
        return settlement.reason
    return settlement.entry.detail


def ends_fire(settlement: Settlement) -> bool:
    """Tell whether a settlement makes way for the next waiting fire of the schedule."""
    return settlement.fire is not None and settlement.then in ("done", "dead")


def next_to_wake(fires: Iterable[Fire]) -> Fire | None:
    """Return the earliest waiting one of a schedule's fires, or None while another is open."""
    waiting: list[Fire] = []
    for fire in fires:
        if fire.state == "open":
            return None
        if fire.state == "waiting":
            waiting.append(fire)
    return min(waiting, key=lambda fire: (fire.nominal_at, fire.id), default=None)


def woken(fire: Fire, now_ms: int) -> Fire:
    """Return a waiting fire as it opens: not before its instant, since it may have been claimed ahead of time.

    What limits an open fire's age counts from then: the fire before it may have been postponed for weeks.
    """
    opened_at = max(now_ms, fire.nominal_at)
    return replace(fire, state="open", opened_at=opened_at, deliver_after=opened_at)


class ManualChange(NamedTuple):
    """What a person's retry or cancellation does to a fire. `after` is None when it is cancelled, which wakes the next."""

    after: Fire | None
    entry: Entry


def change(fire: Fire | None, to: Literal["open", "cancelled"], now_ms: int, why: str) -> ManualChange | None:
    """Decide a retry or a cancellation. None unless the fire is dead, or to be cancelled and not leased."""
    if fire is None or fire.worker is not None or (to == "open" and fire.state != "dead"):
        return None
    if to == "open":
        return ManualChange(sent_again(fire, now_ms), retried(fire, now_ms, why))
    return ManualChange(None, cancelled(fire, now_ms, why))
