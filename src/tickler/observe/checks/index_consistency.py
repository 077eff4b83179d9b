"""Checks that schedules and the index agree, by reading both completely."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from tickler.clock import Clock
from tickler.database.progress import OnProgress
from tickler.errors import InvalidInput
from tickler.model.schedule import Id, State, StoredSchedule
from tickler.observe.diagnosis import Finding
from tickler.observe.human_format import some
from tickler.schedules import write
from tickler.schedules.contract import Stored
from tickler.schedules.write import ScheduleChange
from tickler.stores.optional import FindsOrphans
from tickler.stores.store import Store

PAGE = 1_000
WRITE_BATCH = 200  # small, so that locks are short
READ_BATCH = 200  # schedules, each with a payload of up to 256 KB
MAX_TRIES, PAUSE_S = 10, 0.1
REPAIR = "`tickler doctor --repair`"


async def unindexed(store: Store, clock: Clock, on_progress: OnProgress) -> Finding | None:
    number, example = 0, None
    async for page in pages(store, "unindexed"):
        number += len(page)
        example = example or str(page[0].id)
        on_progress("looking for schedules that are not in the index", number, None)
    if not number:
        return None
    one = "enabled schedule is not in the index: it will never fire"
    many = "enabled schedules are not in the index: they will never fire"
    return Finding(
        check="unindexed",
        severity="critical",
        count=number,
        says=some(number, one, many),
        example=example,
        remedy=REPAIR,
        repairable=True,
    )


async def reindex(store: Store, clock: Clock, on_progress: OnProgress) -> tuple[int, int]:
    found = repaired = 0
    async for page in pages(store, "unindexed"):
        found += len(page)
        repaired += await apply_change(store, clock, [each.id for each in page], write.reindex)
        on_progress("putting schedules back into the index", repaired, None)
    return repaired, found - repaired


async def orphans(store: Store, clock: Clock, on_progress: OnProgress) -> Finding | None:
    on_progress("looking for index rows without a schedule", 0, None)
    found = await store.index.orphans(PAGE + 1) if isinstance(store.index, FindsOrphans) else []
    if not found:
        return None
    number = min(len(found), PAGE)
    more = len(found) > number
    one = "index row has no schedule: workers skip it each time it is due"
    many = "index rows have no schedule: workers skip them each time they are due"
    return Finding(
        check="orphans",
        severity="warning",
        count=number,
        at_least=more,
        says=some(number, one, many, at_least=more),
        example=str(found[0]),
        remedy=REPAIR,
        repairable=True,
    )


async def drop_orphans(store: Store, clock: Clock, on_progress: OnProgress) -> tuple[int, int]:
    """Remove orphans. Rows that a claim has locked are skipped, and tried again a moment later."""
    index, dropped, left = store.index, 0, 0
    assert isinstance(index, FindsOrphans), "an index that found orphans"
    for _ in range(MAX_TRIES):
        while batch := await index.drop_orphans(WRITE_BATCH):
            dropped += batch
            on_progress("removing index rows without a schedule", dropped, None)
        if not (left := len(await index.orphans(PAGE))):
            break
        await asyncio.sleep(PAUSE_S)
    return dropped, left


async def pages(store: Store, state: State) -> AsyncIterator[list[StoredSchedule]]:
    """Yield all schedules in a state, by owner and key."""
    after: Id | None = None
    while page := await store.schedules.list(owner=None, state=state, after=after, limit=READ_BATCH):
        yield page
        after = page[-1].id


async def apply_change(
    store: Store, clock: Clock, ids: Sequence[Id], change: Callable[[StoredSchedule, int], ScheduleChange | None]
) -> int:
    """Apply `change` to those schedules that still need it when they are locked. Return their number."""
    number = total = 0

    def decide(stored: Stored) -> list[ScheduleChange]:
        nonlocal number
        now_ms = clock.now_ms()
        changes: list[ScheduleChange] = []
        for each in stored.values():
            with suppress(InvalidInput):  # a stored schedule that would be refused today stays as it is
                if (made := change(each, now_ms)) is not None:
                    changes.append(made)
        number = len(changes)
        return changes

    for start in range(0, len(ids), WRITE_BATCH):
        await store.schedules.change(ids[start : start + WRITE_BATCH], decide)
        total += number
    return total
