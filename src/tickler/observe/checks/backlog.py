"""Checks what has accumulated: unreadable rows, dead fires, unpruned history, logs."""

from __future__ import annotations

from tickler.clock import Clock
from tickler.database.progress import OnProgress
from tickler.index.advance import reads
from tickler.observe.checks.snapshot import MAX_COUNTED, PRUNED_AFTER_MS, StoreSnapshot
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import instant, some, span
from tickler.stores.store import Store


def set_aside(snapshot: StoreSnapshot) -> Finding | None:
    rows = snapshot.set_aside
    if not rows:
        return None
    number, first = min(len(rows), MAX_COUNTED), rows[0]
    more = len(rows) > number
    readable_again = any(reads(row.when_text, row.tz) for row in rows)
    one = "schedule cannot be read and was set aside: it does not fire"
    many = "schedules cannot be read and were set aside: they do not fire"
    return Finding(
        check="set-aside",
        severity="warning",
        count=number,
        at_least=more,
        says=some(number, one, many, at_least=more),
        example=f"{first.owner}/{first.key}: {first.when_text!r} in {first.tz} cannot be read: {first.reason}",
        remedy="`tickler doctor --repair` restores readable ones; put the rest again" if readable_again else "put it again",
        repairable=readable_again,
    )


async def restore(store: Store, clock: Clock, on_progress: OnProgress) -> tuple[int, int]:
    repaired = await store.index.restore()
    return repaired, await store.index.count_set_aside()


def dead(snapshot: StoreSnapshot) -> Finding | None:
    fires = snapshot.dead
    if not fires:
        return None
    number, first = min(len(fires), MAX_COUNTED), fires[0]
    more = len(fires) > number
    why = f": {first.reason}" if first.reason else ""
    return Finding(
        check="dead",
        severity="warning",
        count=number,
        at_least=more,
        says=some(number, "fire is dead, and is not retried", "fires are dead, and are not retried", at_least=more),
        example=f"{first.owner}/{first.key} of {instant(first.nominal_at, None)}{why}",
        remedy=f"fix the receiver, then `tickler retry {first.id}` or `tickler retry --all`; "
        f"discard a fire with `tickler fires --cancel {first.id}`",
    )


def unpruned(snapshot: StoreSnapshot) -> Finding | None:
    if not snapshot.expired:
        return None
    number = min(snapshot.expired, MAX_COUNTED)
    return Finding(
        check="unpruned",
        severity="warning",
        count=number,
        at_least=snapshot.expired > number,
        says=f"the history is not pruned: it has entries that expired more than {span(PRUNED_AFTER_MS)} ago",
        remedy="`tickler doctor --repair`; a running worker prunes the history too, and each tick up to 1,000 entries",
        repairable=True,
    )


def storage(snapshot: StoreSnapshot) -> Finding | None:
    problem = snapshot.storage
    if problem is None:
        return None
    return Finding(
        check="storage", severity="warning", count=1, says=problem.says, example=problem.example, remedy=problem.remedy
    )


async def prune(store: Store, clock: Clock, on_progress: OnProgress) -> tuple[int, int]:
    pruned = 0
    while batch := await store.fires.prune(clock.now_ms()):
        pruned += batch
        on_progress("pruning the history", pruned, None)
    while await store.records.prune(clock.now_ms()):
        pass
    return pruned, 0
