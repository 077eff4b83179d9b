"""Fires, claims, settlements and the entries of the history."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from tickler.clock import to_datetime
from tickler.model.schedule import Id, StoredSchedule

FireState = Literal["open", "waiting", "dead"]
# delivered; failed, and tried again or not; expired: the worker that had it went away; what a policy skipped; what a person, or
# the end of its schedule, cancelled; what a person sent again
Happened = Literal["delivered", "failed", "expired", "skipped", "cancelled", "retried"]
# The rule that skipped: too late, more than may be caught up with, or the one before was still open.
Rule = Literal["missed", "max_catchup", "overlap"]
MAX_ANSWER_BYTES = 2_048
MANUALLY = "by hand"
MAX_CLAIM_BYTES = 4_000_000  # of schedules, as they are stored, that one claim hands out
HISTORY_RETENTION_MS = 30 * 86_400_000  # how long the history is kept, unless its user says otherwise
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


class DueItem(NamedTuple):
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
