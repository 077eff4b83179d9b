"""The contract of what keeps schedules, which every store implements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tickler.model.schedule import Id, State, StoredSchedule
from tickler.schedules.write import ScheduleChange, ScheduleRemoval

Stored = Mapping[Id, StoredSchedule]
Decide = Callable[[Stored], Sequence[ScheduleChange | ScheduleRemoval]]


class ScheduleStore(Protocol):
    """Keeps schedules and their index rows in step.

    Every write is *read, decide, apply* in one transaction: what `decide` is shown cannot change before its answer is
    applied, and schedule and index row change together or not at all. `decide` does no I/O but look at a clock, which is
    why it is asked only when all locks are held, and may be asked again after a lost race. What it raises leaves
    everything as it was. `using` is a connection of the caller's with a transaction open: the write joins it, and is
    undone alone if it fails.
    """

    async def change(self, ids: Sequence[Id], decide: Decide, *, using: object = None) -> None:
        """Let `decide` see those of `ids` that exist, and apply what it answers."""

    async def change_owner(self, owner: str, decide: Decide, *, using: object = None) -> None:
        """The same, with all schedules of an owner."""

    async def get(self, id: Id) -> StoredSchedule | None: ...

    async def list(
        self, *, owner: str | None, state: State | None, after: Id | None, limit: int, failing: bool = False
    ) -> list[StoredSchedule]:
        """Schedules after `after`, ordered by owner and key as UTF-8 bytes; with `failing`, those that have a dead fire.

        Those are found by way of the dead fires: what is sound costs nothing.
        """
