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

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, get_args

import msgspec
from msgspec.structs import replace

from tickler.clock import Clock, to_datetime, to_ms
from tickler.errors import FireNotFound, InvalidInput, StoreUnavailable
from tickler.index.index import check_limit
from tickler.model.schedule import Id, StoredSchedule, check_name, checked_id

FireState = Literal["open", "waiting", "dead"]
# delivered; failed, and tried again or not; expired: the worker that had it went away; what a policy skipped; what a person, or
# the end of its schedule, cancelled; what a person sent again
Happened = Literal["delivered", "failed", "expired", "skipped", "cancelled", "retried"]
# The rule that skipped: too late, more than may be caught up with, or the one before was still open.
Rule = Literal["missed", "max_catchup", "overlap"]

LONGEST_ANSWER_BYTES = 2_048
LONGEST_FIRE_ID = 200
LONGEST_LEASE_MS = 86_400_000
BY_HAND = "by hand"
RETRIED_TOGETHER = 100  # fires that are read together, to be sent again one by one
MAX_CLAIM_BYTES = 4_000_000  # of schedules, as they are stored, that one claim hands out
KEPT_MS = 30 * 86_400_000  # how long the history is kept, unless its user says otherwise
GIVEN_BACK = "given back: "  # how the reason of a fire begins whose attempt did not begin
_SEPARATOR = "\t"  # in no worker's name


class Fire(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """An occurrence that is not settled yet. `attempt` counts leases from 1; 0 before the first."""

    id: str
    owner: str
    key: str
    nominal_at: int
    opened_at: int
    attempt: int = 0
    state: FireState = "open"
    deliver_after: int | None = None  # not before this instant; while it is leased, the end of the lease
    worker: str | None = None  # who has it leased
    reason: str | None = None  # why it is dead, or was not delivered the last time
    lease_token: int | None = None  # set by every lease after its claim: tells leases of the same worker and attempt apart

    @property
    def holder(self) -> str | None:
        """The worker and the token of its lease, as stores keep and compare them."""
        return self.worker if self.lease_token is None else f"{self.worker}{_SEPARATOR}{self.lease_token}"

    @property
    def is_given_back(self) -> bool:
        """Whether the worker that had it last could not begin its attempt."""
        return self.reason is not None and self.reason.startswith(GIVEN_BACK)

    @property
    def nominal(self) -> datetime:
        """The instant the schedule named."""
        return to_datetime(self.nominal_at)

    @property
    def schedule_id(self) -> Id:
        return Id(self.owner, self.key)


# In the order of the columns of SQL stores.
fire_columns = attrgetter(
    "id", "owner", "key", "nominal_at", "opened_at", "attempt", "state", "deliver_after", "holder", "reason"
)


def fire_of(columns: Iterable[Any]) -> Fire:
    """From its `fire_columns`."""
    id, owner, key, nominal_at, opened_at, attempt, state, deliver_after, holder, reason = columns
    worker, lease_token = (None, None) if holder is None else read_holder(holder)
    return Fire(
        id=id,
        owner=owner,
        key=key,
        nominal_at=nominal_at,
        opened_at=opened_at,
        attempt=attempt,
        state=state,
        deliver_after=deliver_after,
        worker=worker,
        reason=reason,
        lease_token=lease_token,
    )


def read_holder(holder: str) -> tuple[str, int | None]:
    """The worker and the lease token of a `Fire.holder`."""
    worker, _, token = holder.partition(_SEPARATOR)
    return (worker, int(token)) if token.isdecimal() else (holder, None)


class Claim(NamedTuple):
    """Something to deliver now. `fire` is None where the schedule is delivered at most once."""

    schedule: StoredSchedule
    nominal_at: int
    fire: Fire | None
    due_at: int  # the nominal instant, plus the offset of the schedule's spread


def is_at_most_once(claim: Claim) -> bool:
    """Whether it is lost with its worker. One that was given back, or that a person triggered, has a fire all the same."""
    return claim.fire is None or claim.schedule.policy.delivery == "at-most-once"


class Due(NamedTuple):
    """Something that waits to be taken: a row of the index that is due, or an open fire."""

    owner: str
    key: str
    at: int  # since when
    fire_id: str | None  # None where no fire was opened yet


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, repr_omit_defaults=True):
    """One thing that happened, as the history keeps it. `at` is when it began, `nominal_at` when it should have.

    A skip has the first nominal instant, the last one in `until_at`, and how many there were: at least, if it is 1,000.
    """

    owner: str
    key: str
    nominal_at: int
    at: int
    happened: Happened
    fire_id: str | None = None
    attempt: int = 0
    status: int | None = None  # of the target's answer; 0 when there was none
    duration_ms: int | None = None
    detail: str | None = None  # what went wrong
    answer: str | None = None  # its first 2 KB
    worker: str | None = None
    gave_up: bool = False  # it was not tried again by itself after this
    rule: Rule | None = None
    until_at: int | None = None
    count: int | None = None

    @property
    def nominal(self) -> datetime:
        """The instant the schedule named."""
        return to_datetime(self.nominal_at)

    @property
    def late_ms(self) -> int:
        return self.at - self.nominal_at


class Health(msgspec.Struct, frozen=True, gc=False):
    """How the fires of a schedule fare: what happened last, and whether one of them is dead, which makes it *failing*."""

    last: Entry | None = None
    failing: bool = False


class Settlement(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """What became of an attempt: what to remember of it, and what to do with the fire.

    `then`: "done" closes the fire; "retry" opens it again from `deliver_after` on; "dead" gives it up; "release" gives the lease
    back, from `deliver_after` or else from now on, as if it had never been taken, and leaves no entry; the fire keeps its reason
    unless there is a new one. `fire` is None where delivery is at most once.
    """

    id: Id
    fire: Fire | None
    then: Literal["done", "retry", "dead", "release"]
    entry: Entry | None
    deliver_after: int | None = None
    delete_schedule: bool = False  # if it is finished, and owes nothing more
    reason: str | None = None  # of a release: why the attempt did not begin


class Extension(NamedTuple):
    """The leases that an extension did not extend."""

    lost: list[Fire]  # another worker has the fire, or it is settled
    skipped: Sequence[Fire] = ()  # still the caller's; a transaction that is under way has the fire locked: ask again soon


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
        self, fire_id: str, to: Literal["open", "cancelled"], now_ms: int, *, expires_at: int, why: str = BY_HAND
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

    async def peek(self, due_by: int, limit: int) -> list[Due]:
        """Up to `limit` of what `claim` and `lease` would look at, at that instant, earliest first, without taking it.

        Rows that nobody gets, since they do not read, are of a newer format or have lost their schedule, may be among them.
        """

    async def prune(self, now_ms: int, limit: int = 1000) -> int:
        """Remove up to `limit` entries whose time is over; how many. Never holds others up."""

    async def count_expired(self, now_ms: int, most: int) -> int:
        """How many entries `prune` would remove, no further than `most`; 0 where the store prunes by itself."""

    async def list(
        self, *, state: FireState, id: Id | None, owner: str | None, after: tuple[int, str] | None, limit: int
    ) -> list[Fire]:
        """Fires in a state, of a schedule, an owner or all, ordered by nominal instant and id; those after that place."""


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
        self, store: FireStore, clock: Clock, *, kept_ms: int = KEPT_MS, wake: Callable[[], None] = lambda: None
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
            at, check_limit(limit), worker, lease_ms, expires_at=at + self._kept_ms, except_owners=except_owners
        )

    async def lease(self, now_ms: int | datetime, limit: int = 100, *, worker: str, lease_ms: int = 60_000) -> list[Claim]:
        """Take up to `limit` open fires for their next attempt, or about 4 MB; see `FireStore.lease`."""
        at = to_ms(now_ms, "now_ms")
        _check_lease(worker, lease_ms)
        return await self._store.lease(at, check_limit(limit), worker, lease_ms, expires_at=at + self._kept_ms)

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
            limit = RETRIED_TOGETHER if left is None else min(left, RETRIED_TOGETHER)
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
        why = BY_HAND if by is None else f"by {by}"
        expires_at = now_ms + self._kept_ms
        fire = await self._store.change(_checked_fire_id(fire_id), to, now_ms, expires_at=expires_at, why=why)
        if fire is None:
            raise FireNotFound(fire_id, refused)
        self._wake()
        return fire


def _check_lease(worker: object, lease_ms: object) -> None:
    check_name("worker", worker)
    if isinstance(lease_ms, bool) or not isinstance(lease_ms, int) or not 0 < lease_ms <= LONGEST_LEASE_MS:
        raise InvalidInput(f"lease_ms: {lease_ms!r} is not a number of milliseconds up to a day: pass 60000 for a minute")


def _checked_fire_id(fire_id: object) -> str:
    if not isinstance(fire_id, str) or not 0 < len(fire_id) <= LONGEST_FIRE_ID or not fire_id.isprintable():
        raise InvalidInput(f"fire_id: {str(fire_id)[:40]!r} is no id: pass that of a fire, as fires.list shows it")
    return fire_id


def _place(at: int, name: str) -> str:
    return f"{at}-{name}"


def _read_place(cursor: object) -> tuple[int, str]:
    at, _, name = str(cursor).partition("-")
    if not (at.isascii() and at.isdecimal() and len(at) < 16 and 0 < len(name) < 200 and name.isprintable()):
        raise _no_cursor(cursor)
    return int(at), name


def entry_number(name: str) -> int:
    """The name of an entry in a cursor, where a store counts its entries."""
    if not (name.isascii() and name.isdecimal() and len(name) < 19):
        raise _no_cursor(name)
    return int(name)


def _no_cursor(cursor: object) -> InvalidInput:
    return InvalidInput(f"after: {ascii(cursor)[:40]} is not a cursor: pass the `next` of an earlier page of the same list")


def fire_id(owner: str, key: str, nominal_at: int, *, triggered: bool = False) -> str:
    """The same for every attempt, and for every worker that meets the occurrence."""
    identity = f"{owner}\0{key}\0{nominal_at}{chr(0) if triggered else ''}".encode()
    return f"fire_{hashlib.blake2b(identity, digest_size=16, person=b'tickler-fire').hexdigest()}"


def health_to_json(health: Health) -> dict[str, object]:
    """As it stands beside a schedule in JSON."""
    last = health.last
    return {"failing": health.failing, "last": None if last is None else {"result": last.happened, "at": last.at}}


def unbegun_fire(claim: Claim, now_ms: int, deliver_after: int, reason: str | None = None) -> Fire:
    """The fire to open for a claim that has none and whose attempt did not begin: no attempt is counted."""
    owner, key = claim.schedule.id
    return Fire(
        id=fire_id(owner, key, claim.nominal_at),
        owner=owner,
        key=key,
        nominal_at=claim.nominal_at,
        opened_at=now_ms,
        deliver_after=deliver_after,
        reason=reason,
    )


def sent_again(fire: Fire, now_ms: int) -> Fire:
    """A dead fire that a person retries: what counts from its opening, such as for how long it may be given back, counts anew."""
    return replace(fire, state="open", opened_at=now_ms, attempt=0, deliver_after=now_ms, reason=None)


def cancelled(fire: Fire, at: int, why: str) -> Entry:
    return _entry(fire, at, "cancelled", why)


def retried(fire: Fire, at: int, why: str) -> Entry:
    """Of a dead fire, as it was."""
    return _entry(fire, at, "retried", why)


def expired(fire: Fire, at: int, *, gave_up: bool) -> Entry:
    """Of a fire whose lease ran out, as it was: the worker that had it did not say what became of it."""
    return _entry(fire, at, "expired", f"{fire.worker} was not heard of before its lease ended", gave_up=gave_up)


def _entry(fire: Fire, at: int, happened: Happened, detail: str, *, gave_up: bool = False) -> Entry:
    return Entry(
        owner=fire.owner,
        key=fire.key,
        nominal_at=fire.nominal_at,
        at=at,
        happened=happened,
        fire_id=fire.id,
        attempt=fire.attempt,
        detail=detail,
        worker=fire.worker,
        gave_up=gave_up,
    )
