"""The input of the quick checks, read with a bounded number of bounded queries."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from tickler.clock import Clock, SystemClock
from tickler.database.storage import StorageProblem
from tickler.fires.contract import next_at
from tickler.model.fire import DueItem, Fire
from tickler.model.index_row import SetAside
from tickler.records.contract import RecordStore
from tickler.records.kinds import OUTDATED, STORE
from tickler.records.worker_status import WORKING, WorkerReport, workers
from tickler.stores.optional import ChecksStorage, CountsExpired
from tickler.stores.store import Store
from tickler.table.streamed_tables import consumers_in
from tickler.table.streams.status import ConsumerStatus
from tickler.when import tzdata_version

MAX_COUNTED = 500
CLAIM_TIMEOUT_MS = 10_000  # a fire that is due for less may be about to be claimed
PRUNED_AFTER_MS = 3_600_000  # workers prune every minute


class Zones(msgspec.Struct, frozen=True):
    """Releases of the time zone database: the newest one that the store was used with, and this machine's."""

    store: str
    here: str

    @property
    def is_older_here(self) -> bool:
        releases = [re.fullmatch(r"\d{4}[a-z]+", each) for each in (self.here, self.store)]
        return all(releases) and self.here < self.store


class StoreSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a store at one instant. Lists hold at most `MAX_COUNTED` + 1 items."""

    now_ms: int
    clock_offset_ms: int  # the store's time less this machine's
    workers: Sequence[WorkerReport]
    next_at: int | None  # when the next fire can be claimed
    due: Sequence[DueItem]  # not claimed within CLAIM_TIMEOUT_MS, earliest first
    outdated: Sequence[str]  # names of workers
    zones: Zones
    set_aside: Sequence[SetAside]
    dead: Sequence[Fire]
    expired: int  # history entries that should have been pruned
    storage: StorageProblem | None
    consumers: Sequence[ConsumerStatus] = ()  # of tables in the same database

    @property
    def alive(self) -> list[WorkerReport]:
        return [worker for worker in self.workers if worker.is_alive(self.now_ms)]

    @property
    def working(self) -> list[WorkerReport]:
        return [worker for worker in self.alive if worker.doing == WORKING]

    @property
    def late_ms(self) -> int:
        """Return how long the earliest fire has been due; 0 if none is late."""
        return self.now_ms - self.due[0].at if self.due else 0


async def take_snapshot(store: Store, clock: Clock) -> StoreSnapshot:
    now_ms, most = clock.now_ms(), MAX_COUNTED + 1
    fires = store.fires
    return StoreSnapshot(
        now_ms=now_ms,
        clock_offset_ms=clock.offset_ms if isinstance(clock, SystemClock) else 0,
        workers=await workers(store.records, now_ms),
        next_at=await next_at(store.fires),
        due=await store.fires.peek(now_ms - CLAIM_TIMEOUT_MS, most),
        outdated=[record.name for record in await store.records.list(OUTDATED, now_ms=now_ms, limit=most)],
        zones=await zones(store.records, now_ms),
        set_aside=await store.index.set_aside(most),
        dead=await store.fires.list(state="dead", id=None, owner=None, after=None, limit=most),
        expired=await fires.count_expired(now_ms - PRUNED_AFTER_MS, most) if isinstance(fires, CountsExpired) else 0,
        storage=await store.storage_problem() if isinstance(store, ChecksStorage) else None,
        consumers=await consumers_in(store.database, now_ms),
    )


async def zones(records: RecordStore, now_ms: int) -> Zones:
    recorded = await records.get(STORE, "tzdata", now_ms=now_ms)
    known = recorded.value.get("version", "") if recorded is not None and isinstance(recorded.value, dict) else ""
    return Zones(str(known), tzdata_version())
