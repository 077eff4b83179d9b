"""The contract of a store of fires, and the requests it answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

import msgspec

from tickler.model.fire import MANUALLY, MAX_CLAIM_BYTES, Claim, DueItem, Entry, Extension, Fire, FireState, Health, Settlement
from tickler.model.schedule import Id


class TakeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's request for fires to deliver."""

    now_ms: int
    limit: int
    worker: str
    lease_ms: int  # fires are leased to the worker until now_ms + lease_ms
    expires_at: int  # when the history entries that result may be pruned
    except_owners: Collection[str] = ()  # skip schedules and fires of these owners
    max_bytes: int = MAX_CLAIM_BYTES  # of schedules as stored; one is taken even if it is larger


class ClaimRequest(TakeRequest, frozen=True, kw_only=True):
    """A request for due schedules."""

    ahead_ms: int = 0  # also take what comes due within this time

    @property
    def until_ms(self) -> int:
        return self.now_ms + self.ahead_ms


class LeaseRequest(TakeRequest, frozen=True, kw_only=True):
    """A request for open fires."""

    expired: bool = True  # also take over leases that ran out
    head_start_ms: int = 0  # leave fires that were released for a reason to other workers for this long


FOREVER_MS = (1 << 63) - 1


class FireStore(Protocol):
    """Keeps fires and their history. The caller passes `now_ms`; a store never reads a clock.

    History entries may be pruned from `expires_at` on.
    """

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim due schedules that have a target, earliest first, until `limit` occurrences fire, and advance them.

        One transaction (where the store is `atomic="call"`) finds them, applies `missed` and `overlap`, advances them, opens
        the fires of schedules that are delivered at least once and leases those to the worker. Instants that a policy skips
        become entries of the history. A second claim at the same `now_ms` must not return what this one returned. An occurrence
        whose fire is open already is not claimed again.

        With missed="all" one schedule may yield several claims, oldest first, and the last schedule may exceed `limit`. With
        overlap="wait" only its first occurrence is returned, and only if no fire of it is open; the others wait. With
        `ahead_ms`, schedules that come due within that time are claimed too, each for its next instant only.

        A claim ends before the schedule that would exceed `max_bytes`; later schedules stay due. No payload is decoded before
        it is used.

        Unreadable rows, rows of a newer format and unknown zones are treated as in `ScheduleIndex.claim_due`, and so are rows
        whose schedule is unreadable. Rows without a schedule or a target are left to callers of `claim_due`.
        """

    async def lease(self, request: LeaseRequest) -> list[Claim]:
        """Lease up to `limit` open fires with deliver_after <= now_ms for their next attempt, earliest first.

        A fire that still has a worker is one whose lease ran out. That becomes an "expired" entry of the history, with the
        worker and the attempt it had. If its schedule is delivered at most once or has no attempts left, the fire becomes dead
        instead. Fires whose schedule was deleted are cancelled. `max_bytes` limits a lease as it limits a claim.

        With `head_start_ms`, a fire that was released for a reason is not leased until that long after its deliver_after: the
        caller could not start it either, and another worker may.
        """

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        """Extend leases until then. Every fire that the answer does not name was extended.

        A locked fire must not delay the others: it is skipped.
        """

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        """Record attempts and change their fires, in one transaction where the store has transactions.

        Entries are always recorded, because the attempt did happen. A fire changes only if the caller still holds its lease, by
        worker, attempt and lease token; the other fires are returned. When a fire is done or dead, the earliest waiting fire of
        its schedule opens, if no other fire is open, and not before its instant; its `opened_at` is when it opens. A caller that
        does not know whether a call succeeded may repeat it.
        """

    async def open(self, fire: Fire, entry: Entry | None = None, *, expires_at: int = 0, using: object = None) -> bool:
        """Open a fire from its deliver_after on, and record an entry that belongs to it: both or neither.

        Return False if the fire exists already or its schedule does not. Then nothing is recorded. `using` is a connection of the
        caller with an open transaction, which this joins. Or it is a `UnitOfWork`: then the answer is that of now, and
        `TransactionConflict` is raised at the commit if the fire could not be opened any more.
        """

    async def change(
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = MANUALLY
    ) -> Fire | None:
        """Reopen a dead fire, as of now and with no attempts counted, or cancel one that is not leased.

        Return the fire as it was, or None if there is none in such a state. Records an entry with the reason.
        """

    async def get(self, fire_id: str) -> Fire | None: ...

    async def history(self, *, id: Id, before: tuple[int, str] | None, limit: int) -> list[tuple[str, Entry]]:
        """Return entries of a schedule, latest first. Each comes with a name that forms a cursor together with its `at`."""

    async def health(self, ids: Sequence[Id]) -> dict[Id, Health]:
        """Return the newest entry of each schedule and whether it has a dead fire. Costs a few look-ups an id."""

    async def peek(self, due_by: int, limit: int) -> list[DueItem]:
        """Return up to `limit` rows and fires that are due at an instant, earliest first, without taking them.

        Rows that no claim returns may be among them: unreadable ones, those of a newer format, orphans.
        """

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Remove up to `limit` expired entries and return how many. Must not block other writers."""

    async def list(
        self, *, state: FireState, id: Id | None, owner: str | None, after: tuple[int, str] | None, limit: int
    ) -> list[Fire]:
        """Return fires in a state, of a schedule, an owner or all, by nominal instant and id, after a place in that order."""


async def next_at(fires: FireStore) -> int | None:
    """Return the earliest instant at which `claim` or `lease` would find something, or None."""
    return next((due.at for due in await fires.peek(FOREVER_MS, 1)), None)
