"""Fires as callers use them: claim due schedules, lease open fires, settle attempts, read the history.

A fire is one occurrence of a schedule. It is open from its claim until it is delivered, dead or cancelled:

    claim ──► leased ──delivered──► closed, and in the history
       retry or │ ▲
       postpone │ │ lease (also when a lease ran out)
                ▼ │
               open                    waiting ──► open      (overlap="wait": when the fire before it is settled)
                │
                └─ no attempts left ──► dead ──manual retry──► open

A schedule that is delivered at most once has no open fires: only its claimer knows of the claim. A claimer that cannot start the
attempt, or whose target postpones it, opens a fire (`uncounted_fire`), whose next attempt is its only one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from tickler.clock import Clock, to_ms
from tickler.errors import FireNotFound, InvalidInput, StoreUnavailable
from tickler.fires.contract import ClaimRequest, FireStore, LeaseRequest
from tickler.model.cursor import decode_instant, encode_instant
from tickler.model.fire import HISTORY_RETENTION_MS, MANUALLY, Claim, Entry, Fire, FireState, Health, Settlement, sent_again
from tickler.model.limits import check_limit
from tickler.model.schedule import Id, check_name, checked_id

MAX_FIRE_ID_LENGTH = 200
MAX_LEASE_MS = 86_400_000


RETRY_PAGE = 100  # fires read at once, and reopened one by one


class FirePage(msgspec.Struct, frozen=True):
    """A page of fires, and the cursor of the next page; None at the end."""

    items: list[Fire]
    next: str | None


class HistoryPage(msgspec.Struct, frozen=True):
    """A page of a schedule's history, latest first, and the cursor of earlier entries; None at the end."""

    items: list[Entry]
    next: str | None


class Retried(msgspec.Struct, frozen=True):
    """How many dead fires were reopened, by owner, and whether there are more."""

    by_owner: Mapping[str, int]
    more: bool

    @property
    def count(self) -> int:
        return sum(self.by_owner.values())


class Fires:
    """Checks arguments and adds the time and the retention of the history; the store does the rest.

    People list, retry and cancel fires; a worker claims, leases, extends and settles them. `wake` is called when something may
    have become due.
    """

    def __init__(
        self, store: FireStore, clock: Clock, *, retention_ms: int = HISTORY_RETENTION_MS, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._clock = clock
        self._retention_ms = retention_ms
        self._wake = wake

    async def claim(
        self,
        now_ms: int | datetime,
        limit: int = 100,
        *,
        worker: str,
        lease_ms: int = 60_000,
        except_owners: Collection[str] = (),
    ) -> list[Claim]:
        """Claim up to `limit` due schedules and advance them, each as its policy says; see `FireStore.claim`.

        A claim returns fewer when they are large, about 4 MB in total. Claim again until nothing is returned.
        """
        request = ClaimRequest(**self._request(now_ms, limit, worker, lease_ms), except_owners=except_owners)
        return await self._store.claim(request)

    async def lease(self, now_ms: int | datetime, limit: int = 100, *, worker: str, lease_ms: int = 60_000) -> list[Claim]:
        """Lease up to `limit` open fires, or about 4 MB, for their next attempt; see `FireStore.lease`."""
        return await self._store.lease(LeaseRequest(**self._request(now_ms, limit, worker, lease_ms)))

    async def extend(self, fires: Sequence[Fire], until: int | datetime) -> list[Fire]:
        """Extend leases until then, and return the fires whose lease is no longer the caller's.

        `StoreUnavailable` when another transaction has locked one of the fires: call again before the lease ends.
        """
        lost, skipped = await self._store.extend(fires, to_ms(until, "until"))
        if skipped:
            raise StoreUnavailable(
                f"{len(skipped)} of {len(fires)} leases were not extended, as their fires are locked: try again"
            )
        return lost

    async def settle(self, settlements: Sequence[Settlement]) -> list[Fire]:
        """Record attempts, settle their fires, and return the fires whose lease is no longer the caller's."""
        now_ms = self._clock.now_ms()
        return await self._store.settle(settlements, now_ms, expires_at=now_ms + self._retention_ms)

    async def get(self, fire_id: str) -> Fire | None:
        return await self._store.get(_checked_fire_id(fire_id))

    async def retry(self, fire_id: str, *, by: str | None = None) -> Fire:
        """Reopen a dead fire, from now and with all its attempts. `FireNotFound` if it is not dead.

        The history records who it was `by`.
        """
        now_ms = self._clock.now_ms()
        refused = "no dead fire has this id: see fires.list(state='dead')"
        fire = await self._change(fire_id, "open", now_ms, by, refused)
        return sent_again(fire, now_ms)

    async def retry_all(self, *, owner: str | None = None, key: str | None = None, by: str | None = None) -> int:
        """Reopen every dead fire of a schedule, of an owner or of all, and return how many."""
        return (await self.retry_many(owner=owner, key=key, by=by)).count

    async def retry_many(
        self, *, owner: str | None = None, key: str | None = None, by: str | None = None, most: int | None = None
    ) -> Retried:
        """Reopen the earliest `most` dead fires of a schedule, of an owner or of all."""
        left = None if most is None else check_limit(most)
        sent: dict[str, int] = {}
        after: str | None = None
        while True:
            limit = RETRY_PAGE if left is None else min(left, RETRY_PAGE)
            page = await self.list(state="dead", owner=owner, key=key, limit=limit, after=after)
            for fire in page.items:
                with suppress(FireNotFound):  # it was retried or cancelled meanwhile
                    await self.retry(fire.id, by=by)
                    sent[fire.owner] = sent.get(fire.owner, 0) + 1
            left, after = None if left is None else left - len(page.items), page.next
            if after is None or left == 0:
                return Retried(sent, after is not None)

    async def cancel(self, fire_id: str, *, by: str | None = None) -> Fire:
        """Cancel a fire. `FireNotFound` if there is none, or if a worker has it leased."""
        refused = "no fire with this id can be cancelled: a worker may have it leased"
        return await self._change(fire_id, "cancelled", self._clock.now_ms(), by, refused)

    async def history(self, owner: str, key: str, *, limit: int = 100, after: str | None = None) -> HistoryPage:
        """Return the history of a schedule, latest first; it outlives the schedule. `after` is a page's `next`."""
        id, before = checked_id(owner, key), None if after is None else decode_instant(after)
        found = await self._store.history(id=id, before=before, limit=check_limit(limit) + 1)
        items = found[:limit]
        following = encode_instant(items[-1][1].at, items[-1][0]) if len(found) > limit else None
        return HistoryPage([entry for _, entry in items], following)

    async def health(self, ids: Iterable[Id]) -> dict[Id, Health]:
        """Return the last result of each schedule, and whether it has a dead fire. For a page of a list."""
        return await self._store.health([checked_id(*id) for id in ids])

    async def list(
        self,
        *,
        state: FireState = "open",
        owner: str | None = None,
        key: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> FirePage:
        """Return open, waiting or dead fires of one schedule, one owner or all, by nominal instant."""
        if state not in get_args(FireState):
            raise InvalidInput(f"state: {state!r} is not one of {', '.join(get_args(FireState))}")
        if key is not None and owner is None:
            raise InvalidInput("key: needs an owner: pass both, or the owner alone")
        id = None if owner is None or key is None else checked_id(owner, key)
        if owner is not None and id is None:
            check_name("owner", owner)
        place = None if after is None else decode_instant(after)
        found = await self._store.list(
            state=state, id=id, owner=owner if id is None else None, after=place, limit=check_limit(limit) + 1
        )
        items = found[:limit]
        return FirePage(items, encode_instant(items[-1].nominal_at, items[-1].id) if len(found) > limit else None)

    def _request(self, now_ms: int | datetime, limit: int, worker: str, lease_ms: int) -> dict[str, Any]:
        at = to_ms(now_ms, "now_ms")
        check_name("worker", worker)
        if isinstance(lease_ms, bool) or not isinstance(lease_ms, int) or not 0 < lease_ms <= MAX_LEASE_MS:
            raise InvalidInput(f"lease_ms: {lease_ms!r} is not a number of milliseconds up to a day: pass 60000 for a minute")
        expires_at = at + self._retention_ms
        return {"now_ms": at, "limit": check_limit(limit), "worker": worker, "lease_ms": lease_ms, "expires_at": expires_at}

    async def _change(self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, by: str | None, refused: str) -> Fire:
        """Change a fire, and return it as it was."""
        if by is not None:
            check_name("by", by)
        why = MANUALLY if by is None else f"by {by}"
        expires_at = now_ms + self._retention_ms
        fire = await self._store.change(_checked_fire_id(fire_id), to, now_ms, expires_at=expires_at, why=why)
        if fire is None:
            raise FireNotFound(fire_id, refused)
        self._wake()
        return fire


def _checked_fire_id(fire_id: object) -> str:
    if not isinstance(fire_id, str) or not 0 < len(fire_id) <= MAX_FIRE_ID_LENGTH or not fire_id.isprintable():
        raise InvalidInput(f"fire_id: {str(fire_id)[:40]!r} is not a fire id: pass one from fires.list")
    return fire_id
