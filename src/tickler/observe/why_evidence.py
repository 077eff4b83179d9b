"""The evidence that *why* explains: a schedule, its fires, its history, and the workers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from tickler.fires.contract import FireStore
from tickler.fires.redaction import SOMEBODY, redacted_entry, redacted_fire
from tickler.model.fire import Entry, Fire, FireState
from tickler.model.schedule import Id, StoredSchedule
from tickler.records.worker_status import WorkerReport, workers
from tickler.stores.store import Store
from tickler.when import When

PAGE = 200  # history entries
MAX_PAGES = 10  # of history, when searching for an instant
MAX_FIRES = 100  # of a schedule, in each state
STATES: tuple[FireState, ...] = ("open", "waiting", "dead")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that an explanation is made from."""

    id: Id
    now_ms: int
    schedule: StoredSchedule | None
    fires: Sequence[Fire]  # open, waiting and dead, by nominal instant
    history: Sequence[Entry]  # the latest first
    is_complete: bool  # whether `history` has every entry about the instant in question
    workers: Sequence[WorkerReport]

    @property
    def when(self) -> When | None:
        return None if self.schedule is None else self.schedule.when

    @property
    def alive(self) -> list[WorkerReport]:
        return [worker for worker in self.workers if worker.is_alive(self.now_ms)]


async def gather(store: Store, id: Id, now_ms: int, at: int | None) -> Evidence:
    schedule = await store.schedules.get(id)
    unsettled: list[Fire] = []
    for state in STATES:
        unsettled += await store.fires.list(state=state, id=id, owner=None, after=None, limit=MAX_FIRES)
    history, is_complete = await _history(store.fires, id, at)
    return Evidence(
        id=id,
        now_ms=now_ms,
        schedule=schedule,
        fires=sorted(unsettled, key=lambda fire: (fire.nominal_at, fire.id)),
        history=history,
        is_complete=is_complete,
        workers=await workers(store.records, now_ms),
    )


def without_worker_names(evidence: Evidence) -> Evidence:
    return replace(
        evidence,
        fires=[redacted_fire(fire, SOMEBODY) for fire in evidence.fires],
        history=[redacted_entry(entry, SOMEBODY) for entry in evidence.history],
        workers=[replace(worker, name=SOMEBODY, short_of=None) for worker in evidence.workers],
    )


async def _history(fires: FireStore, id: Id, at: int | None) -> tuple[list[Entry], bool]:
    """Return the latest page, or all pages back to `at`, and whether the search was complete."""
    history: list[Entry] = []
    before: tuple[int, str] | None = None
    for _ in range(1 if at is None else MAX_PAGES):
        page = await fires.history(id=id, before=before, limit=PAGE)
        history += [entry for _, entry in page]
        if len(page) < PAGE:
            return history, True
        name, last = page[-1]
        before = (last.at, name)
        if at is not None and last.at < at:  # no attempt precedes its instant
            return history, True
    return history, False
