"""What has piled up: rows that do not read, fires that were given up, history that nobody pruned, logs."""

from __future__ import annotations

from tickler.clock import Clock
from tickler.index.advance import reads
from tickler.observe.checks.snapshot import MAX_COUNTED, PRUNED_AFTER_MS, StoreSnapshot
from tickler.observe.diagnosis import Finding, OnProgress
from tickler.observe.human_format import instant, some, span
from tickler.stores.store import Store


def set_aside(standing: StoreSnapshot) -> Finding | None:
    rows = standing.set_aside
    if not rows:
        return None
    number, first = min(len(rows), MAX_COUNTED), rows[0]
    more = len(rows) > number
    by_now = any(reads(row.when_text, row.tz) for row in rows)
    one = "schedule does not read, and was set aside: it does not fire"
    many = "schedules do not read, and were set aside: they do not fire"
    return Finding(
        check="set-aside",
        severity="warning",
        count=number,
        at_least=more,
        says=some(number, one, many, at_least=more),
        example=f"{first.owner}/{first.key}: {first.when_text!r} in {first.tz} does not read: {first.reason}",
        remedy="`tickler doctor --repair` takes back what reads by now; put the rest again" if by_now else "put it again",
        repairable=by_now,
    )


async def take_back(store: Store, clock: Clock, progress: OnProgress) -> tuple[int, int]:
    repaired = await store.index.restore()
    return repaired, await store.index.count_set_aside()


def dead(standing: StoreSnapshot) -> Finding | None:
    fires = standing.dead
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
        says=some(
            number, "fire was given up, and is not tried again", "fires were given up, and are not tried again", at_least=more
        ),
        example=f"{first.owner}/{first.key} of {instant(first.nominal_at, None)}{why}",
        remedy=f"mend what they were sent to, and send them again: `tickler retry {first.id}`, or `tickler retry --all`; "
        f"one that nobody wants any more is cleared by `tickler fires --cancel {first.id}`",
    )


def unpruned(standing: StoreSnapshot) -> Finding | None:
    if not standing.expired:
        return None
    number = min(standing.expired, MAX_COUNTED)
    return Finding(
        check="unpruned",
        severity="warning",
        count=number,
        at_least=standing.expired > number,
        says=f"the history grows: what should have gone more than {span(PRUNED_AFTER_MS)} ago is still there",
        remedy="`tickler doctor --repair`; a worker that runs prunes all of it by itself, a tick up to 1,000 entries",
        repairable=True,
    )


def storage(standing: StoreSnapshot) -> Finding | None:
    problem = standing.storage
    if problem is None:
        return None
    return Finding(
        check="storage", severity="warning", count=1, says=problem.says, example=problem.example, remedy=problem.remedy
    )


async def prune(store: Store, clock: Clock, progress: OnProgress) -> tuple[int, int]:
    pruned = 0
    while some := await store.fires.prune(clock.now_ms()):
        pruned += some
        progress("pruning the history", pruned, None)
    while await store.records.prune(clock.now_ms()):
        pass
    return pruned, 0
