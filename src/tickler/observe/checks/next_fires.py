"""Whether every schedule waits for its next instant, as this machine's time zone database has it."""

from __future__ import annotations

from tickler.clock import Clock
from tickler.model.schedule import StoredSchedule
from tickler.observe.checks.clocks import older_zones
from tickler.observe.checks.index_consistency import REPAIR, changed, pages
from tickler.observe.checks.snapshot import zones
from tickler.observe.diagnosis import Finding, OnProgress
from tickler.observe.human_format import instant, some
from tickler.schedules import write as changes
from tickler.stores.store import Store


async def stale_next_fire(store: Store, clock: Clock, progress: OnProgress) -> Finding | None:
    """Where this machine's rules are the older ones, they prove nothing against what is stored: that is the finding then."""
    number, example, done = 0, None, 0
    total = await store.index.count()
    async for page in pages(store, "active"):
        now_ms = clock.now_ms()
        misplaced = [each for each in page if changes.is_misplaced(each, now_ms)]
        number += len(misplaced)
        example = example or (_example(misplaced[0]) if misplaced else None)
        done += len(page)
        progress("computing next fires", done, total)
    if not number:
        return None
    used = await zones(store.records, clock.now_ms())
    if used.is_older_here:
        return older_zones(used, number, example)
    one, many = "schedule waits for an instant that is not its next", "schedules wait for instants that are not their next"
    return Finding(
        check="stale-next-fire",
        severity="warning",
        count=number,
        says=f"{some(number, one, many)}, as by an older time zone database than {used.here}",
        example=example,
        remedy=REPAIR,
        repairable=True,
    )


async def recompute(store: Store, clock: Clock, progress: OnProgress) -> tuple[int, int]:
    """What is about to be due is left: a worker may have taken it already."""
    met = repaired = done = 0
    total = await store.index.count()
    async for page in pages(store, "active"):
        now_ms = clock.now_ms()
        misplaced = [each.id for each in page if changes.is_misplaced(each, now_ms)]
        met += len(misplaced)
        repaired += await changed(store, clock, misplaced, changes.recompute)
        done += len(page)
        progress("recomputing next fires", done, total)
    return repaired, met - repaired


def _example(schedule: StoredSchedule) -> str:
    return f"{schedule.id}, {schedule.when}, waits for {instant(schedule.next_fire_at or 0, schedule.when)}"
