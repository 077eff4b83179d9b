"""Fires, claims, settlements and the entries of the history."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, get_args

import msgspec
from msgspec.structs import replace

from tickler.clock import to_datetime
from tickler.model.schedule import Id, StoredSchedule

FireState = Literal["open", "waiting", "dead"]
# delivered; failed: with or without another attempt to come; postponed by its target; expired: the worker's lease ran out;
# skipped by a policy; cancelled by a person, or with its schedule; retried by a person
Happened = Literal["delivered", "failed", "postponed", "expired", "skipped", "cancelled", "retried"]
# Read from a store: one of `Happened`, or what a newer version wrote during an upgrade.
StoredHappened = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [*get_args(Happened)]})]
# The rule that skipped: too late, more instants than `max_catchup`, or the previous fire was still open.
Rule = Literal["missed", "max_catchup", "overlap"]
MAX_ANSWER_BYTES = 2_048
MANUALLY = "by hand"
MAX_CLAIM_BYTES = 4_000_000  # the most stored bytes of schedules that one claim returns
HISTORY_RETENTION_MS = 30 * 86_400_000  # how long the history is kept by default
MAX_OPEN_MS = 30 * 86_400_000  # how long a fire may be released or postponed before it is dead
RELEASED = "released: "  # prefix of a fire's reason when its attempt did not begin
POSTPONED = "postponed: "  # prefix of a fire's reason when its target postponed it
_SEPARATOR = "\t"  # never part of a worker's name
_SECOND = "%Y-%m-%d %H:%M:%S"
_FIRE_ID = hashlib.blake2b(digest_size=16, person=b"tickler-fire")
_UNBEGUN_SINCE = re.compile(rf"{RELEASED}since (\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d) UTC: ")


class Fire(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """An occurrence that is not settled yet. `attempt` counts leases from 1, and is 0 before the first."""

    id: str
    owner: str
    key: str
    nominal_at: int
    opened_at: int
    attempt: int = 0
    state: FireState = "open"
    deliver_after: int | None = None  # the earliest instant of the next attempt; while it is leased, the end of the lease
    worker: str | None = None  # the worker that leases it
    reason: str | None = None  # why it is dead, or why the last attempt failed
    lease_token: int | None = None  # set by every lease after the claim, to distinguish leases of the same worker and attempt

    @property
    def holder(self) -> str | None:
        """The worker and its lease token, as stores keep and compare them."""
        return self.worker if self.lease_token is None else f"{self.worker}{_SEPARATOR}{self.lease_token}"

    @property
    def has_release_reason(self) -> bool:
        """Whether the last worker released it because it could not begin the attempt. A worker that stops gives no reason."""
        return self.reason is not None and self.reason.startswith(RELEASED)

    @property
    def unbegun_since(self) -> int:
        """Since when no worker could begin it: since it was opened, unless its reason names a later instant."""
        named = None if self.reason is None else _UNBEGUN_SINCE.match(self.reason)
        with suppress(ValueError):
            if named is not None:
                return int(datetime.strptime(named[1], _SECOND).replace(tzinfo=UTC).timestamp()) * 1_000
        return self.opened_at

    @property
    def was_postponed(self) -> bool:
        """Whether the last attempt postponed it."""
        return self.reason is not None and self.reason.startswith(POSTPONED)

    @property
    def nominal(self) -> datetime:
        """The instant the schedule named."""
        return to_datetime(self.nominal_at)

    @property
    def schedule_id(self) -> Id:
        return Id(self.owner, self.key)


def release_reason(detail: str, since: int | None = None) -> str:
    """Return the reason of a fire whose attempt did not begin. It names the first such release after an earlier attempt."""
    return f"{RELEASED}{detail}" if since is None else f"{RELEASED}since {to_datetime(since):{_SECOND}} UTC: {detail}"


def read_holder(holder: str) -> tuple[str, int | None]:
    """Split a `Fire.holder` into the worker and its lease token."""
    worker, _, token = holder.partition(_SEPARATOR)
    return (worker, int(token)) if token.isdecimal() else (holder, None)


class Claim(NamedTuple):
    """An occurrence to deliver now. `fire` is None if the schedule is delivered at most once."""

    schedule: StoredSchedule
    nominal_at: int
    fire: Fire | None
    due_at: int  # the nominal instant, plus the offset of the schedule's spread


def is_at_most_once(claim: Claim) -> bool:
    """Return whether the claim is lost if its worker dies. It may have a fire: after a release, or if a person triggered it."""
    return claim.fire is None or claim.schedule.policy.delivery == "at-most-once"


class DueItem(NamedTuple):
    """A due index row or an open fire that waits for a worker."""

    owner: str
    key: str
    at: int  # since when it is due
    fire_id: str | None  # None if no fire is open yet


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, repr_omit_defaults=True):
    """One event of the history. `at` is when it began, `nominal_at` when it was due.

    A skip has the first nominal instant, the last one in `until_at`, and their `count`, where 1,000 means at least 1,000. A
    postponement has the instant of the next attempt in `until_at`.
    """

    owner: str
    key: str
    nominal_at: int
    at: int
    happened: StoredHappened
    fire_id: str | None = None
    attempt: int = 0
    status: int | None = None  # of the target's response; 0 if there was none
    duration_ms: int | None = None
    detail: str | None = None  # what went wrong, or why it was postponed
    answer: str | None = None  # the first 2 KB of the response
    worker: str | None = None
    gave_up: bool = False  # the fire became dead: there was no further automatic attempt
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
    """The health of a schedule: its last event, and whether it is *failing*, which means that it has a dead fire."""

    last: Entry | None = None
    failing: bool = False


Then = Literal["done", "retry", "dead", "release", "postpone"]


class Settlement(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """The result of an attempt: the entry for the history, and what happens to the fire.

    `then`: "done" closes the fire; "retry" opens it again from `deliver_after` on; "dead" makes it dead; "release" ends the lease
    as if it had never been taken, without an entry, and makes the fire available from `deliver_after` or else from now on;
    "postpone" does the same with an entry, for an attempt that was made and does not count. Both keep the fire's reason unless
    there is a new one. `fire` is None if delivery is at most once; if such a fire is to be attempted again, it has to be opened.
    """

    id: Id
    fire: Fire | None
    then: Then
    entry: Entry | None
    deliver_after: int | None = None
    delete_schedule: bool = False  # if the schedule is finished and has no other fires
    reason: str | None = None  # of a release or a postponement: why, with its prefix


class Extension(NamedTuple):
    """The leases that an extension did not extend."""

    lost: list[Fire]  # another worker has the fire, or it is settled
    skipped: Sequence[Fire] = ()  # still the caller's, but locked by another transaction: try again soon


def fire_id(owner: str, key: str, nominal_at: int, *, triggered: bool = False) -> str:
    """Return the id of an occurrence, the same for every attempt and every worker."""
    digest = _FIRE_ID.copy()  # twice as fast as a new hash
    digest.update(f"{owner}\0{key}\0{nominal_at}{chr(0) if triggered else ''}".encode())
    return f"fire_{digest.hexdigest()}"


def health_to_json(health: Health) -> dict[str, object]:
    """Return the health as it is shown with a schedule in JSON."""
    last = health.last
    return {"failing": health.failing, "last": None if last is None else {"result": last.happened, "at": last.at}}


def uncounted_fire(claim: Claim, now_ms: int, deliver_after: int, reason: str | None = None) -> Fire:
    """Return the fire to open for a claim without one whose attempt did not begin, or was postponed. No attempt is counted."""
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
    """Return a dead fire as a person retries it: all attempts and time limits start again."""
    return replace(fire, state="open", opened_at=now_ms, attempt=0, deliver_after=now_ms, reason=None)


def cancelled(fire: Fire, at: int, why: str) -> Entry:
    return _entry(fire, at, "cancelled", why)


def retried(fire: Fire, at: int, why: str) -> Entry:
    """Return the entry for a dead fire that a person retried. `fire` is as it was before."""
    return _entry(fire, at, "retried", why)


def expired(fire: Fire, at: int, *, gave_up: bool) -> Entry:
    """Return the entry for a fire whose lease ran out without a settlement. `fire` is as it was before."""
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
