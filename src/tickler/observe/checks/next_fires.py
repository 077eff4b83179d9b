"""Checks that the stored next fire of every schedule is what this machine computes."""

from __future__ import annotations

from tickler.clock import Clock
from tickler.database.progress import OnProgress
from tickler.model.schedule import StoredSchedule
from tickler.observe.checks.clocks import older_zones
from tickler.observe.checks.index_consistency import REPAIR, apply_change, pages
from tickler.observe.checks.snapshot import zones
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import instant, some
from tickler.schedules import write
from tickler.stores.store import Store


async def stale_next_fire(store: Store, clock: Clock, on_progress: OnProgress) -> Finding | None:
    """Find wrong next fires. If this machine's time zone rules are the older ones, that is the finding instead."""
    number, example, done = 0, None, 0
    total = await store.index.count()
    async for page in pages(store, "active"):
        now_ms = clock.now_ms()
        misplaced = [each for each in page if write.is_misplaced(each, now_ms)]
        number += len(misplaced)
        example = example or (_example(misplaced[0]) if misplaced else None)
        done += len(page)
        on_progress("computing next fires", done, total)
    if not number:
        return None
    used = await zones(store.records, clock.now_ms())
    if used.is_older_here:
        return older_zones(used, number, example)
    one, many = "schedule has a wrong next fire", "schedules have a wrong next fire"
    return Finding(
        check="stale-next-fire",
        severity="warning",
        count=number,
        says=f"{some(number, one, many)}, such as from a time zone database older than {used.here}",
        example=example,
        remedy=REPAIR,
        repairable=True,
    )


async def recompute(store: Store, clock: Clock, on_progress: OnProgress) -> tuple[int, int]:
    """Correct wrong next fires, except those about to be due: a worker may have claimed them already."""
    found = repaired = done = 0
    total = await store.index.count()
    async for page in pages(store, "active"):
        now_ms = clock.now_ms()
        misplaced = [each.id for each in page if write.is_misplaced(each, now_ms)]
        found += len(misplaced)
        repaired += await apply_change(store, clock, misplaced, write.recompute)
        done += len(page)
        on_progress("recomputing next fires", done, total)
    return repaired, found - repaired


def _example(schedule: StoredSchedule) -> str:
    return f"{schedule.id}, {schedule.when}, has {instant(schedule.next_fire_at or 0, schedule.when)}"
