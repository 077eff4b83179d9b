"""The contract of a store of schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tickler.errors import TransactionConflict
from tickler.model.schedule import Id, State, StoredSchedule
from tickler.schedules.write import ScheduleChange, ScheduleRemoval

Stored = Mapping[Id, StoredSchedule]
Decide = Callable[[Stored], Sequence[ScheduleChange | ScheduleRemoval]]


def check_unchanged(seen: Stored, found: Stored) -> None:
    """Raise `TransactionConflict` unless the schedules that a part of a transaction was decided from are still the same."""
    for id in seen.keys() | found.keys():
        if seen.get(id) != found.get(id):
            raise TransactionConflict(f"the schedule {id}")


class ScheduleStore(Protocol):
    """Keeps schedules and their index rows consistent.

    Every write is *read, decide, apply* in one transaction: what `decide` sees must not change before its answer is applied, and
    a schedule and its index row change together or not at all. `decide` does no I/O but reads a clock, so it is called only when
    all locks are held, and may be called again after a lost race. If it raises, nothing changes. `using` is a connection of the
    caller with an open transaction: the write joins it, and is rolled back alone if it fails. Or `using` is a `UnitOfWork`: then
    `decide` is called once, at once, and its changes become a part of it, which raises `TransactionConflict` when it is committed
    unless what `decide` saw is still so.
    """

    async def change(self, ids: Sequence[Id], decide: Decide, *, using: object = None) -> None:
        """Call `decide` with those of `ids` that exist, and apply the changes that it returns."""

    async def change_owner(self, owner: str, decide: Decide, *, using: object = None) -> None:
        """Call `decide` with all schedules of an owner, and apply the changes that it returns."""

    async def get(self, id: Id, *, using: object = None) -> StoredSchedule | None:
        """Return a schedule, with a connection of the caller's as its open transaction sees it."""

    async def list(
        self, *, owner: str | None, state: State | None, after: Id | None, limit: int, failing: bool = False
    ) -> list[StoredSchedule]:
        """Return schedules after `after`, ordered by owner and key as UTF-8 bytes; with `failing`, those with a dead fire.

        Failing schedules must be found by way of the dead fires, without reading the others.
        """
