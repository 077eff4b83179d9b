"""The contract of what keeps fires, which every store implements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from tickler.model.fire import (
    MANUALLY,
    MAX_CLAIM_BYTES,
    Claim,
    DueItem,
    Entry,
    Extension,
    Fire,
    FireState,
    Health,
    Settlement,
)
from tickler.model.schedule import Id


class FireStore(Protocol):
    """Keeps fires and their history. `now_ms` is the caller's; a store never looks at a clock.

    `expires_at` is until when entries are kept.
    """

    async def claim(
        self,
        now_ms: int,
        limit: int,
        worker: str,
        lease_ms: int,
        *,
        expires_at: int,
        except_owners: Collection[str] = (),
        ahead_ms: int = 0,
        max_bytes: int = MAX_CLAIM_BYTES,
    ) -> list[Claim]:
        """Take due schedules that have a target, earliest first, until `limit` occurrences fire, and advance them, each as its
        policy says.

        One transaction (where the store is `atomic="call"`) finds them, applies `missed` and `overlap`, advances, opens the
        fires of those that are delivered at least once and leases them to `worker` until now_ms + lease_ms. What a policy
        skips is an entry of the history. A second claim at the same `now_ms` gets nothing that this one got. With
        missed="all" one schedule may give several claims, oldest first; the answer is then longer than `limit` by those of
        the last of them at most. An occurrence whose fire is open already is not claimed again.
        With overlap="wait" only the first of them is returned, and only if none is open; the others wait.

        A claim also ends before the schedule with which those that it took would come to more than `max_bytes`, as they are
        stored, though it always takes one; those that follow stay due. No payload is decoded until somebody looks at it.

        With `ahead_ms`, schedules that come due within that time are taken too, each for the one instant that is its next.

        Rows of `except_owners` are passed over. Rows that do not read, rows of a newer format and zones that this machine
        lacks are treated as in `ScheduleIndex.claim_due`, and so are rows whose schedule does not read; rows without a
        schedule or whose schedule has no target are left to those who claim from the index.
        """

    async def lease(
        self,
        now_ms: int,
        limit: int,
        worker: str,
        lease_ms: int,
        *,
        expires_at: int,
        expired: bool = True,
        except_owners: Collection[str] = (),
        max_bytes: int = MAX_CLAIM_BYTES,
        head_start_ms: int = 0,
    ) -> list[Claim]:
        """Take up to `limit` open fires with deliver_after <= now_ms, earliest first, for their next attempt.

        A fire that is still leased to somebody has run out of its lease: that is an "expired" entry of the history, with the
        worker and the attempt it had. Such a fire is not leased again if its schedule is delivered at most once or has no
        attempts left: it is dead. Fires whose schedule is gone are cancelled. With `expired=False`, leases that ran out are
        left alone; fires of `except_owners` are passed over. It ends at `max_bytes` of schedules, as `claim` does.

        Fires whose reason says that they were given back are left to other workers until `head_start_ms` after their
        deliver_after: for a worker that could not begin them either.
        """

    async def extend(self, fires: Sequence[Fire], until_ms: int) -> Extension:
        """Make leases last until then. All that the answer does not name were extended.

        A fire that somebody has locked must not hold up the others: it is skipped.
        """

    async def settle(self, settlements: Sequence[Settlement], now_ms: int, *, expires_at: int) -> list[Fire]:
        """Record attempts and change their fires, in one transaction where the store has them.

        Entries are always kept: it did happen. A fire is changed only if its lease is still the caller's, by worker, attempt
        and lease token; those whose lease is not come back. Where one is done or dead, the earliest waiting fire of its
        schedule becomes open, if none other is, though not before its instant. It may be called again with what it was called
        with, when nobody knows whether it succeeded.
        """

    async def open(self, fire: Fire) -> bool:
        """Open a fire, from its deliver_after on, whose schedule exists; False when the fire or no such schedule is there."""

    async def change(
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = MANUALLY
    ) -> Fire | None:
        """Send a dead fire again, as if it was opened now and with no attempts counted, or cancel one that is not leased now.

        The fire as it was; None, and nothing done, when there is none in such a state. Either leaves an entry that says why.
        """

    async def get(self, fire_id: str) -> Fire | None: ...

    async def history(self, *, id: Id, before: tuple[int, str] | None, limit: int) -> list[tuple[str, Entry]]:
        """Entries of a schedule, the latest first, each with the name that, with its `at`, is the cursor for what lies before."""

    async def health(self, ids: Sequence[Id]) -> dict[Id, Health]:
        """Of each of `ids` its newest entry, and whether a fire of its is dead. Costs a few look-ups an id, however long its
        history is.
        """

    async def next_at(self) -> int | None:
        """The earliest instant at which `claim` or `lease` would find something, or None."""

    async def peek(self, due_by: int, limit: int) -> list[DueItem]:
        """Up to `limit` of what `claim` and `lease` would look at, at that instant, earliest first, without taking it.

        Rows that nobody gets, since they do not read, are of a newer format or have lost their schedule, may be among them.
        """

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Remove up to `limit` entries whose time is over; how many. Never holds others up."""

    async def list(
        self, *, state: FireState, id: Id | None, owner: str | None, after: tuple[int, str] | None, limit: int
    ) -> list[Fire]:
        """Fires in a state, of a schedule, an owner or all, ordered by nominal instant and id; those after that place."""
