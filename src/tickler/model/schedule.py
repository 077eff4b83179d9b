"""Schedules as users declare them: the source of truth."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec.structs import force_setattr

from tickler.clock import to_ms
from tickler.errors import InvalidInput, InvalidSchedule
from tickler.model.payload import decode_on_access, held_payload
from tickler.model.policy import DEFAULT_POLICY, Policy
from tickler.model.revision import Revision
from tickler.model.target import Target, read_target
from tickler.when import KINDS, At, Unreadable, When, parse_when

MAX_NAME_BYTES = 512

State = Literal["active", "paused", "finished", "unreadable", "unindexed"]


class Id(NamedTuple):
    """The identity of a schedule: its owner, and its key, which is unique per owner."""

    owner: str
    key: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.key}"


class Schedule(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """A schedule of an owner. `when` is a When, or text read with `tz`; `target` is a value or a URL.

    Callers who claim and dispatch themselves omit `target`. The bounds are inclusive, and given as milliseconds or aware
    datetimes. A schedule that is `enabled` but would never fire is refused when it is put.
    """

    owner: str
    key: str
    when: When
    tz: str = None  # type: ignore[assignment]  # __post_init__ sets it to the zone of `when`
    target: Target | None = None
    payload: object = None
    policy: Policy = DEFAULT_POLICY
    starts_at: int | None = None
    ends_at: int | None = None
    delete_after: bool = None  # type: ignore[assignment]  # once it is finished and delivered; by default only for an At
    enabled: bool = True

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            owner: str,
            key: str,
            when: When | str,
            tz: str | None = None,
            target: Target | str | None = None,
            payload: object = None,
            policy: Policy = DEFAULT_POLICY,
            starts_at: int | datetime | None = None,
            ends_at: int | datetime | None = None,
            delete_after: bool | None = None,
            enabled: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_name("owner", self.owner)
        check_name("key", self.key)
        force_setattr(self, "when", _read_when(self.when, self.tz))
        force_setattr(self, "tz", self.when.tz)
        force_setattr(self, "target", read_target(self.target))
        force_setattr(self, "starts_at", _read_bound("starts_at", self.starts_at))
        force_setattr(self, "ends_at", _read_bound("ends_at", self.ends_at))
        if self.delete_after is None:
            force_setattr(self, "delete_after", isinstance(self.when, At))
        self._check()

    def _check(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidSchedule("policy", f"is a {type(self.policy).__name__}: pass a Policy")
        for name, flag in (("enabled", self.enabled), ("delete_after", self.delete_after)):
            if not isinstance(flag, bool):
                raise InvalidSchedule(name, f"{flag!r} is not a boolean: pass True or False")
        if self.starts_at is not None and self.ends_at is not None and self.ends_at < self.starts_at:
            raise InvalidSchedule("ends_at", "is before starts_at: swap them, or leave one out")
        if not self.policy.spread:
            return
        shortest_ms = self.when.shortest_interval_ms()
        if shortest_ms is not None and self.policy.spread >= timedelta(milliseconds=shortest_ms):
            raise InvalidSchedule(
                "policy.spread", f"must be shorter than {shortest_ms / 1000:g} s, the shortest interval of {str(self.when)!r}"
            )

    @property
    def id(self) -> Id:
        return tuple.__new__(Id, (self.owner, self.key))  # used often, and three times as fast as Id(…)

    def offset_ms(self) -> int:
        """Return how far `spread` delays this schedule: constant for the schedule, and uniform over schedules."""
        if not self.policy.spread:
            return 0
        spread_ms = max(self.policy.spread // timedelta(milliseconds=1), 1)
        digest = hashlib.blake2b(f"{self.owner}\0{self.key}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) % spread_ms


decode_on_access(Schedule)


class StoredSchedule(Schedule, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """A schedule as the store returns it, with its version and state.

    `state`: *active* is in the index; *paused* is not enabled; *finished* has no instant left; *unreadable* was set aside
    with a `reason`; *unindexed* is missing from the index: put it again.
    """

    version: int
    created_at: int
    updated_at: int
    state: State
    next_fire_at: int | None = None
    reason: str | None = None
    newer: bool = False  # written by a newer version with fields that are unknown here: it can be deleted, not changed

    def __post_init__(self) -> None:
        """Skip the checks: they ran when the schedule was put, and `declared` runs them again."""
        if self.tz is not self.when.tz:
            force_setattr(self, "tz", self.when.tz)
        if self.delete_after is None:
            force_setattr(self, "delete_after", isinstance(self.when, At))

    @property
    def revision(self) -> Revision:
        """The `version` for `update`, `pause`, `resume` and `delete`, so that they change only what the caller has read."""
        return Revision(self.version, self.created_at)

    def declared(self) -> Schedule:
        """Return only what the user declared."""
        return Schedule(**declared_fields(self))


def declared_fields(schedule: Schedule) -> dict[str, Any]:
    """Return the arguments for `Schedule`. A payload that was not accessed stays undecoded."""
    fields = {name: getattr(schedule, name) for name in Schedule.__struct_fields__ if name != "payload"}
    return fields | {"payload": held_payload(schedule)}


def check_name(field: str, name: object) -> None:
    """Raise `InvalidSchedule` unless `name` can be an owner or a key."""
    if not isinstance(name, str):
        raise InvalidSchedule(field, f"is a {type(name).__name__}: pass text")
    if not name:
        raise InvalidSchedule(field, "is empty: give it a name")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidSchedule(field, "contains an unpaired surrogate: leave it out") from None
    if size > MAX_NAME_BYTES:
        raise InvalidSchedule(field, f"has {size} bytes, more than {MAX_NAME_BYTES}: shorten it")
    if not name.isprintable() and any(ord(character) < 32 or 127 <= ord(character) < 160 for character in name):
        raise InvalidSchedule(field, f"{name!r} contains control characters: leave them out")


def checked_id(owner: str, key: str) -> Id:
    check_name("owner", owner)
    check_name("key", key)
    return Id(owner, key)


def _read_when(when: object, tz: object) -> When:
    if type(when) in (*KINDS, Unreadable) and isinstance(when, When):
        if tz not in (None, when.tz):
            raise InvalidSchedule("tz", f"{tz!r} differs from the zone of {when!r}: leave tz out, or make them equal")
        return when
    if isinstance(when, str):
        if tz is not None and not isinstance(tz, str):
            raise InvalidSchedule("tz", f"is a {type(tz).__name__}: pass a zone's name such as 'Europe/Paris'")
        return parse_when(when, tz)
    if isinstance(when, timedelta):
        raise InvalidSchedule("when", f"is a timedelta: write Every(seconds={when / timedelta(seconds=1):.15g})")
    if isinstance(when, datetime):
        raise InvalidSchedule("when", "is a datetime: write At(…) around it")
    raise InvalidSchedule("when", f"is a {type(when).__name__}: pass a Cron, Weekly, At or Every, or text such as '0 9 * * tue'")


def _read_bound(name: str, bound: int | datetime | None) -> int | None:
    if bound is None:
        return None
    try:
        return to_ms(bound, name)
    except InvalidInput as error:
        raise InvalidSchedule(name, str(error).removeprefix(f"{name}: ")) from None
