"""Counts of the current state, from a bounded number of bounded reads, however many schedules there are."""

from __future__ import annotations

import msgspec

from tickler.client import Tickler
from tickler.model.fire import FireState
from tickler.records.worker_status import WorkerReport
from tickler.stores.optional import ReadsOwnerRows

MAX_COUNTED = 10_000
MAX_FIRES = 200
MAX_OWN_ROWS = 1_000
LATE_MS = 60_000


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the current state. They stop at `most` and `most_fires`: a count that reaches its limit means "at least"."""

    now_ms: int
    clock_offset_ms: int = 0  # the store's clock minus this machine's
    next_due_at: int | None = None  # also None if `more` and therefore unknown
    sleeping: int = 0  # in the index, and not due
    due: int = 0
    late: int = 0  # due for more than a minute
    in_flight: int = 0
    open: int = 0  # fires not delivered yet: leased, or to be retried
    waiting: int = 0
    dead: int = 0
    most: int = MAX_COUNTED
    more: bool = False  # not all rows were read: sleeping, due and late mean "at least"
    most_fires: int = MAX_FIRES
    workers: list[WorkerReport] = []
    workers_alive: int = 0


async def stats(tickler: Tickler, owner: str | None = None) -> Stats:
    """Count everything, or only what belongs to an owner."""
    return await _of_all(tickler) if owner is None else await _of_owner(tickler, owner)


async def _of_all(tickler: Tickler) -> Stats:
    now_ms = tickler.now_ms()
    workers = await tickler.workers()
    alive = [worker for worker in workers if worker.is_alive(now_ms)]
    due = await tickler.index.count(due_by=now_ms, most=MAX_COUNTED)
    return Stats(
        now_ms=now_ms,
        clock_offset_ms=tickler.clock_offset_ms,
        next_due_at=await tickler.index.next_due(),
        sleeping=max(await tickler.index.count(most=MAX_COUNTED) - due, 0),
        due=due,
        late=await tickler.index.count(due_by=now_ms - LATE_MS, most=MAX_COUNTED) if due else 0,
        in_flight=sum(worker.in_flight for worker in alive),
        open=await _count_fires(tickler, "open"),
        waiting=await _count_fires(tickler, "waiting"),
        dead=await _count_fires(tickler, "dead"),
        workers=workers,
        workers_alive=len(alive),
    )


async def _of_owner(tickler: Tickler, owner: str) -> Stats:
    """Count the owner's first rows. If there are more, the owner's next due instant is unknown."""
    now_ms = tickler.now_ms()
    nexts, more = await _next_fires(tickler, owner)
    is_open = (await tickler.fires.list(state="open", owner=owner, limit=MAX_FIRES)).items
    return Stats(
        now_ms=now_ms,
        next_due_at=None if more else min(nexts, default=None),
        sleeping=sum(at > now_ms for at in nexts),
        due=sum(at <= now_ms for at in nexts),
        late=sum(at <= now_ms - LATE_MS for at in nexts),
        in_flight=sum(fire.worker is not None for fire in is_open),
        open=len(is_open),
        waiting=await _count_fires(tickler, "waiting", owner),
        dead=await _count_fires(tickler, "dead", owner),
        most=MAX_OWN_ROWS,
        more=more,
        workers_alive=sum(worker.is_alive(now_ms) for worker in await tickler.workers()),  # no names: those are host names
    )


async def _next_fires(tickler: Tickler, owner: str) -> tuple[list[int], bool]:
    """Return when the owner's first rows are due, and whether there are more."""
    index = tickler.store.index
    if isinstance(index, ReadsOwnerRows):
        return await index.next_fires(owner, MAX_OWN_ROWS)
    page = await tickler.schedules.list(owner=owner, limit=MAX_OWN_ROWS)
    return [each.next_fire_at for each in page.items if each.next_fire_at is not None], page.next is not None


async def _count_fires(tickler: Tickler, state: FireState, owner: str | None = None) -> int:
    return len((await tickler.fires.list(state=state, owner=owner, limit=MAX_FIRES)).items)
