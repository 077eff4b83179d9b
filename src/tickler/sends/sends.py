"""Sends as callers use them. A send is a one-shot schedule that is due at once, and a record that remembers it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tickler.clock import Clock, to_datetime, to_ms
from tickler.database.unit_of_work import after_commit
from tickler.errors import InvalidSchedule, SendConflict
from tickler.model.fire import HISTORY_RETENTION_MS, MAX_OPEN_MS, fire_id
from tickler.model.policy import DEFAULT_POLICY, Policy, policy_to_json
from tickler.model.record import Record, value_of
from tickler.model.schedule import Id, Schedule
from tickler.model.schedule_json import encoded_payload
from tickler.model.target import HttpTarget, Target
from tickler.schedules import write as changes
from tickler.sends.contract import NewSend, SeenSend, SendStore
from tickler.webhooks.encryption import Encryption
from tickler.when import At, iso_utc

_encode = msgspec.json.Encoder(order="deterministic").encode


class Sent(msgspec.Struct, frozen=True):
    """A send. `fire_id` is the id of its fire, which receivers get; `is_new` is False if it was sent by an earlier call."""

    owner: str
    key: str
    fire_id: str
    nominal_at: int
    is_new: bool

    @property
    def nominal(self) -> datetime:
        """The instant from which on it is delivered."""
        return to_datetime(self.nominal_at)


class SendOptions(NamedTuple):
    """When a send is due, by default at once, and how it is delivered."""

    at: int | datetime | None = None
    policy: Policy = DEFAULT_POLICY


class Sends:
    """Checks arguments and decides what to write; the store applies it."""

    def __init__(
        self,
        store: SendStore,
        clock: Clock,
        *,
        encryption: Encryption | None = None,
        retention_ms: int = HISTORY_RETENTION_MS,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._encryption = encryption or Encryption()
        self._remembered_ms = MAX_OPEN_MS + retention_ms  # as long as the history has its last attempt, and never shorter
        self._wake = wake  # called after each new send

    async def send(
        self,
        id: Id,
        target: Target | str,
        payload: object,
        options: SendOptions,
        *,
        using: object = None,
    ) -> Sent:
        """Send once for each id. `SendConflict` if the id was used for other content, or is that of a schedule."""
        now_ms = self._clock.now_ms()
        at_ms = None if options.at is None else to_ms(options.at, "at")
        schedule = _schedule(id, target, payload, options.policy, now_ms if at_ms is None else max(at_ms, now_ms))
        new = _Message(schedule, at_ms, self._encryption)
        sent: Sent | None = None

        def decide(seen: SeenSend) -> NewSend | None:
            nonlocal sent
            sent = new.earlier(seen, now_ms)
            if sent is not None:
                return None
            sent = new.sent
            return new.to_write(now_ms, sent.nominal_at + self._remembered_ms)

        await self._store.send(id, decide, using=using)
        assert sent is not None
        if sent.is_new:
            after_commit(using, self._wake)
        return sent


class _Remembered(msgspec.Struct, frozen=True):
    """The value of the record that remembers a send. Its digest tells other content from the same."""

    nominal_at: int
    digest: str


class _Message:
    """What a call of `send` asks for. `at_ms` is the instant that the caller named, if any."""

    def __init__(self, schedule: Schedule, at_ms: int | None, encryption: Encryption) -> None:
        self._schedule = schedule
        self._encryption = encryption
        self._content = _content(schedule, at_ms, encryption)

    @property
    def sent(self) -> Sent:
        """The result if it is new."""
        assert isinstance(self._schedule.when, At)
        assert self._schedule.when.at_ms is not None
        return _sent(self._schedule.id, self._schedule.when.at_ms, is_new=True)

    def earlier(self, seen: SeenSend, now_ms: int) -> Sent | None:
        """Return the earlier send of the same content. `SendConflict` if it had another, or a schedule has the same id."""
        id = self._schedule.id
        if seen.record is not None and not _has_expired(seen.record, now_ms):
            remembered = value_of(seen.record, _Remembered)
            if remembered is None:
                raise SendConflict(*id, "was sent by a newer Tickler, so this one cannot compare it; nothing was sent: upgrade")
            earlier = _sent(id, remembered.nominal_at, is_new=False)
            if not self._encryption.digests.fits(remembered.digest, self._content, str(id)):
                was = f"was sent with other content for {iso_utc(earlier.nominal_at)}"
                raise SendConflict(*id, f"{was}; nothing was sent: use another key for other content", earlier.fire_id)
            return earlier
        if seen.schedule is not None:
            raise SendConflict(*id, "is a schedule; nothing was sent: use another key, or delete the schedule first")
        return None

    def to_write(self, now_ms: int, expires_at: int) -> NewSend:
        schedule, nominal_at = self._schedule, self.sent.nominal_at
        if isinstance(schedule.target, HttpTarget):
            schedule = replace(schedule, target=self._encryption.encrypt_target(schedule.target, schedule.owner))
        value = msgspec.json.encode(_Remembered(nominal_at, self._encryption.digests.make(self._content)))
        return NewSend(changes.send(schedule, nominal_at, now_ms), value, expires_at)


def _schedule(id: Id, target: Target | str, payload: object, policy: Policy, nominal_at: int) -> Schedule:
    when = At(to_datetime(nominal_at))
    schedule = Schedule(owner=id.owner, key=id.key, when=when, target=target, payload=payload, policy=policy, delete_after=True)
    if schedule.target is None:
        raise InvalidSchedule("target", "is missing: pass a URL, an HttpTarget or a PythonTarget")
    return schedule


def _content(schedule: Schedule, at_ms: int | None, encryption: Encryption) -> bytes:
    """Return what must be the same for a send to be the same: its secrets as they are, since encrypted text always differs."""
    encoded_payload(schedule.payload)  # refuses what is not plain JSON
    target = schedule.target
    if isinstance(target, HttpTarget) and target.sealed is not None and encryption.has_keys:
        target = encryption.decrypt_target(target, schedule.owner)
    policy = policy_to_json(schedule.policy)
    return _encode({"target": target, "payload": schedule.payload, "policy": policy, "at": at_ms})


def _sent(id: Id, nominal_at: int, *, is_new: bool) -> Sent:
    return Sent(id.owner, id.key, fire_id(id.owner, id.key, nominal_at), nominal_at, is_new)


def _has_expired(record: Record, now_ms: int) -> bool:
    return record.expires_at is not None and record.expires_at <= now_ms
