"""OWE: the contract of fires: claim what is due, lease what is owed, settle what was tried, remember all of it.

A fire is one occurrence of a schedule. It is open from its claim until it is delivered, dead or cancelled:

    claim ──► leased ──delivered──► gone, and in the history
                │ ▲
          retry │ │ lease (also when a lease ran out)
                ▼ │
               open                    waiting ──► open      (overlap="wait": when the one before it is settled)
                │
                └─ given up ──► dead ──retry by a person──► open

A schedule that is delivered at most once has no open fires: what is claimed is in the claimer's hands alone. What the claimer
cannot even begin it gives back by opening a fire (`unbegun_fire`), whose next attempt is its only one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Literal, get_args

import msgspec

from tickler.clock import Clock, to_ms
from tickler.errors import FireNotFound, InvalidInput, StoreUnavailable
from tickler.fires.contract import ClaimRequest, FireStore, LeaseRequest
from tickler.model.cursor import _place, _read_place
from tickler.model.fire import (
    HISTORY_RETENTION_MS,
    MANUALLY,
    Claim,
    Entry,
    Fire,
    FireState,
    Health,
    Settlement,
    sent_again,
)
from tickler.model.limits import check_limit
from tickler.model.schedule import Id, check_name, checked_id

MAX_FIRE_ID_LENGTH = 200
MAX_LEASE_MS = 86_400_000


RETRY_PAGE = 100  # fires that are read together, to be sent again one by one


class FirePage(msgspec.Struct, frozen=True):
    """Some fires, and the cursor with which the following ones are asked for; None at the end."""

    items: list[Fire]
    next: str | None


class HistoryPage(msgspec.Struct, frozen=True):
    """Some of a schedule's history, and the cursor with which what lies before it is asked for; None at the end."""

    items: list[Entry]
    next: str | None


class Retried(msgspec.Struct, frozen=True):
    """How many dead fires were sent again, by owner, and whether there are more."""

    by_owner: Mapping[str, int]
    more: bool

    @property
    def count(self) -> int:
        return sum(self.by_owner.values())


class Fires:
    """What callers use: checks what it is given, knows the time and how long the history is kept; the store does the rest.

    People look at fires, send dead ones again and cancel; a runner claims, leases, extends and settles. `wake` is called when
    something may have become due.
    """

    def __init__(
        self, store: FireStore, clock: Clock, *, kept_ms: int = HISTORY_RETENTION_MS, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._store = store
        self._clock = clock
        self._kept_ms = kept_ms
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
        """Take up to `limit` due schedules and advance them, each as its policy says; see `FireStore.claim`.

        Fewer where they are large: a claim hands out about 4 MB. Claim again until nothing comes.
        """
        at = to_ms(now_ms, "now_ms")
        _check_lease(worker, lease_ms)
        return await self._store.claim(
            ClaimRequest(
                now_ms=at,
                limit=check_limit(limit),
                worker=worker,
                lease_ms=lease_ms,
                expires_at=at + self._kept_ms,
                except_owners=except_owners,
            )
        )

    async def lease(self, now_ms: int | datetime, limit: int = 100, *, worker: str, lease_ms: int = 60_000) -> list[Claim]:
        """Take up to `limit` open fires for their next attempt, or about 4 MB; see `FireStore.lease`."""
        at = to_ms(now_ms, "now_ms")
        _check_lease(worker, lease_ms)
        expires_at = at + self._kept_ms
        return await self._store.lease(
            LeaseRequest(now_ms=at, limit=check_limit(limit), worker=worker, lease_ms=lease_ms, expires_at=expires_at)
        )

    async def extend(self, fires: Sequence[Fire], until: int | datetime) -> list[Fire]:
        """Make leases last until then; those that are another's by now come back.

        `StoreUnavailable` when another transaction keeps one of the fires locked: call it again before the lease ends.
        """
        lost, skipped = await self._store.extend(fires, to_ms(until, "until"))
        if skipped:
            raise StoreUnavailable(f"{len(skipped)} of {len(fires)} leases were not extended: their fires are locked; try again")
        return lost

    async def settle(self, settlements: Sequence[Settlement]) -> list[Fire]:
        """Record attempts and change their fires; those that are another's by now come back."""
        now_ms = self._clock.now_ms()
        return await self._store.settle(settlements, now_ms, expires_at=now_ms + self._kept_ms)

    async def get(self, fire_id: str) -> Fire | None:
        return await self._store.get(_checked_fire_id(fire_id))

    async def retry(self, fire_id: str, *, by: str | None = None) -> Fire:
        """Send a dead fire again, from now on and with all its attempts. `FireNotFound` when it is not dead.

        The history remembers who it was `by`, as far as you say.
        """
        now_ms = self._clock.now_ms()
        refused = "there is no dead fire of that id: see fires.list(state='dead')"
        fire = await self._change(fire_id, "open", now_ms, by, refused)
        return sent_again(fire, now_ms)

    async def retry_all(self, *, owner: str | None = None, key: str | None = None, by: str | None = None) -> int:
        """Send every dead fire of a schedule, of an owner or of all again that is dead by now; how many there were."""
        return (await self.retry_many(owner=owner, key=key, by=by)).count

    async def retry_many(
        self, *, owner: str | None = None, key: str | None = None, by: str | None = None, most: int | None = None
    ) -> Retried:
        """The same, of the earliest `most` of them."""
        left = None if most is None else check_limit(most)
        sent: dict[str, int] = {}
        after: str | None = None
        while True:
            limit = RETRY_PAGE if left is None else min(left, RETRY_PAGE)
            page = await self.list(state="dead", owner=owner, key=key, limit=limit, after=after)
            for fire in page.items:
                with suppress(FireNotFound):  # somebody else has sent it, or cancelled it
                    await self.retry(fire.id, by=by)
                    sent[fire.owner] = sent.get(fire.owner, 0) + 1
            left, after = None if left is None else left - len(page.items), page.next
            if after is None or left == 0:
                return Retried(sent, after is not None)

    async def cancel(self, fire_id: str, *, by: str | None = None) -> Fire:
        """Never deliver it. `FireNotFound` when there is none, or when a worker has it right now."""
        refused = "there is no fire of that id that could be cancelled: a worker may have it"
        return await self._change(fire_id, "cancelled", self._clock.now_ms(), by, refused)

    async def history(self, owner: str, key: str, *, limit: int = 100, after: str | None = None) -> HistoryPage:
        """What happened to a schedule's fires, the latest first; it outlives the schedule. `after` is a page's `next`."""
        id, before = checked_id(owner, key), None if after is None else _read_place(after)
        found = await self._store.history(id=id, before=before, limit=check_limit(limit) + 1)
        items = found[:limit]
        following = _place(items[-1][1].at, items[-1][0]) if len(found) > limit else None
        return HistoryPage([entry for _, entry in items], following)

    async def health(self, ids: Iterable[Id]) -> dict[Id, Health]:
        """How the fires of some schedules fare: of each its last result, and whether one is dead. For a page of a list."""
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
        """Fires that are open, waiting or dead, of one schedule, one owner or all, by nominal instant."""
        if state not in get_args(FireState):
            raise InvalidInput(f"state: {state!r} is not one of {', '.join(get_args(FireState))}")
        if key is not None and owner is None:
            raise InvalidInput("key: says nothing without an owner: pass both, or the owner alone")
        id = None if owner is None or key is None else checked_id(owner, key)
        if owner is not None and id is None:
            check_name("owner", owner)
        place = None if after is None else _read_place(after)
        found = await self._store.list(
            state=state, id=id, owner=owner if id is None else None, after=place, limit=check_limit(limit) + 1
        )
        items = found[:limit]
        return FirePage(items, _place(items[-1].nominal_at, items[-1].id) if len(found) > limit else None)

    async def _change(self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, by: str | None, refused: str) -> Fire:
        """The fire as it was."""
        if by is not None:
            check_name("by", by)
        why = MANUALLY if by is None else f"by {by}"
        expires_at = now_ms + self._kept_ms
        fire = await self._store.change(_checked_fire_id(fire_id), to, now_ms, expires_at=expires_at, why=why)
        if fire is None:
            raise FireNotFound(fire_id, refused)
        self._wake()
        return fire


def _check_lease(worker: object, lease_ms: object) -> None:
    check_name("worker", worker)
    if isinstance(lease_ms, bool) or not isinstance(lease_ms, int) or not 0 < lease_ms <= MAX_LEASE_MS:
        raise InvalidInput(f"lease_ms: {lease_ms!r} is not a number of milliseconds up to a day: pass 60000 for a minute")


def _checked_fire_id(fire_id: object) -> str:
    if not isinstance(fire_id, str) or not 0 < len(fire_id) <= MAX_FIRE_ID_LENGTH or not fire_id.isprintable():
        raise InvalidInput(f"fire_id: {str(fire_id)[:40]!r} is no id: pass that of a fire, as fires.list shows it")
    return fire_id
