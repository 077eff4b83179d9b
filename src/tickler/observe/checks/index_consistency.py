"""Whether schedules and the index agree: both are read to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from tickler.clock import Clock
from tickler.errors import InvalidInput
from tickler.model.schedule import Id, State, StoredSchedule
from tickler.observe.diagnosis import Finding, OnProgress
from tickler.observe.human_format import some
from tickler.schedules import write as changes
from tickler.schedules.contract import Stored
from tickler.schedules.write import ScheduleChange
from tickler.stores.optional import FindsOrphans
from tickler.stores.store import Store

PAGE = 1_000
CHANGED_TOGETHER = 200  # so that nobody waits long for the locks
READ_TOGETHER = 200  # schedules, each of which may have a payload of 256 KB
TRIES, PAUSE_S = 10, 0.1
REPAIR = "`tickler doctor --repair`"


async def unindexed(store: Store, clock: Clock, progress: OnProgress) -> Finding | None:
    number, example = 0, None
    async for page in pages(store, "unindexed"):
        number += len(page)
        example = example or str(page[0].id)
        progress("looking for schedules that are not in the index", number, None)
    if not number:
        return None
    return Finding(
        check="unindexed",
        severity="critical",
        count=number,
        says=some(
            number,
            "schedule is enabled and not in the index: it will never fire",
            "schedules are enabled and not in the index: they will never fire",
        ),
        example=example,
        remedy=REPAIR,
        repairable=True,
    )


async def reindex(store: Store, clock: Clock, progress: OnProgress) -> tuple[int, int]:
    met = repaired = 0
    async for page in pages(store, "unindexed"):
        met += len(page)
        repaired += await changed(store, clock, [each.id for each in page], changes.reindex)
        progress("putting schedules back into the index", repaired, None)
    return repaired, met - repaired


async def orphans(store: Store, clock: Clock, progress: OnProgress) -> Finding | None:
    progress("looking for rows without a schedule", 0, None)
    found = await store.index.orphans(PAGE + 1) if isinstance(store.index, FindsOrphans) else []
    if not found:
        return None
    number = min(len(found), PAGE)
    more = len(found) > number
    return Finding(
        check="orphans",
        severity="warning",
        count=number,
        at_least=more,
        says=some(
            number,
            "row of the index has no schedule behind it: workers look at it in vain",
            "rows of the index have no schedule behind them: workers look at them in vain",
            at_least=more,
        ),
        example=str(found[0]),
        remedy=REPAIR,
        repairable=True,
    )


async def drop_orphans(store: Store, clock: Clock, progress: OnProgress) -> tuple[int, int]:
    """A row that a claim has locked just now is passed over: it is tried again a moment later."""
    index, dropped, left = store.index, 0, 0
    assert isinstance(index, FindsOrphans), "an index that found orphans"
    for _ in range(TRIES):
        while some := await index.drop_orphans(CHANGED_TOGETHER):
            dropped += some
            progress("removing rows without a schedule", dropped, None)
        if not (left := len(await index.orphans(PAGE))):
            break
        await asyncio.sleep(PAUSE_S)
    return dropped, left


async def pages(store: Store, state: State) -> AsyncIterator[list[StoredSchedule]]:
    """All schedules in a state, by owner and key."""
    after: Id | None = None
    while page := await store.schedules.list(owner=None, state=state, after=after, limit=READ_TOGETHER):
        yield page
        after = page[-1].id


async def changed(
    store: Store, clock: Clock, ids: Sequence[Id], change: Callable[[StoredSchedule, int], ScheduleChange | None]
) -> int:
    """Change those of `ids` that still need it when nobody else can touch them; how many."""
    number = total = 0

    def decide(stored: Stored) -> list[ScheduleChange]:
        nonlocal number
        now_ms = clock.now_ms()
        made = [made for each in stored.values() if (made := _tried(change, each, now_ms)) is not None]
        number = len(made)
        return made

    for start in range(0, len(ids), CHANGED_TOGETHER):
        await store.schedules.change(ids[start : start + CHANGED_TOGETHER], decide)
        total += number
    return total


def _tried(
    change: Callable[[StoredSchedule, int], ScheduleChange | None], stored: StoredSchedule, now_ms: int
) -> ScheduleChange | None:
    try:
        return change(stored, now_ms)
    except InvalidInput:
        return None  # what is stored would be refused today: it is left as it is
