"""Signing secrets: an owner's own, kept sealed among the records, and which of them a delivery is signed with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from tickler.clock import Clock
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.model.delivery import Delivery
from tickler.model.policy import MAX_DURATION, Duration
from tickler.model.record import Record
from tickler.model.schedule import check_name
from tickler.model.target import HttpTarget
from tickler.records.contract import RecordStore
from tickler.records.kinds import SECRET
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.signature import check_secret, new_secret

MAX_SECRETS = 5  # of an owner: each is one more signature in every delivery
REMEMBERED_MS = 60_000
MAX_REMEMBERED = 10_000

log = logging.getLogger("tickler.secrets")


class _StoredSecrets(msgspec.Struct, frozen=True, omit_defaults=True):
    """One secret of an owner. Without `sealed` it stands for the default, which the owner had before the first of their own."""

    sealed: str | None = None
    until: int | None = None  # signs until then; without, until it is rotated


class SigningSecrets:
    """Gives owners signing secrets of their own. Workers follow within a minute; nothing here shows a secret twice."""

    def __init__(self, records: RecordStore, sealer: Encryption, clock: Clock) -> None:
        self._records = records
        self._sealer = sealer
        self._clock = clock

    async def put(self, owner: str, secret: str) -> None:
        """Sign the owner's deliveries with this one, and with no other they had."""
        check_name("owner", owner)
        sealed = self._sealer.seal_text(check_secret(secret), _purpose(owner))
        await self._write(owner, [_StoredSecrets(sealed)], self._clock.now_ms(), None)

    async def rotate(self, owner: str, *, overlap: Duration = timedelta(hours=24)) -> str:
        """Make a new one, which is returned this once. Until `overlap` is over, deliveries are signed with the old one as well.

        Give it to the receivers within that time. `VersionConflict` when somebody else did the same at this moment.
        """
        check_name("owner", owner)
        overlap_ms = _overlap_ms(overlap)
        secret = new_secret()
        sealed = self._sealer.seal_text(secret, _purpose(owner))
        now_ms = self._clock.now_ms()
        record = await self._records.get(SECRET, owner, now_ms=now_ms)
        before = [_StoredSecrets()] if record is None else _read(record)
        ends = [now_ms + overlap_ms if kept.until is None else min(kept.until, now_ms + overlap_ms) for kept in before]
        old = [_StoredSecrets(kept.sealed, until) for kept, until in zip(before, ends, strict=True) if until > now_ms]
        await self._write(
            owner, [_StoredSecrets(sealed), *old[: MAX_SECRETS - 1]], now_ms, 0 if record is None else record.version
        )
        return secret

    async def delete(self, owner: str) -> bool:
        """Sign with the default again; whether the owner had one of their own."""
        check_name("owner", owner)
        return await self._records.delete(SECRET, owner)

    async def _write(self, owner: str, kept: Sequence[_StoredSecrets], now_ms: int, expected: int | None) -> None:
        await self._records.put(SECRET, owner, msgspec.json.encode(kept), now_ms=now_ms, expected=expected)


class _Own(NamedTuple):
    """What was read of an owner: secrets, each with the instant at which it ends. None stands for the default."""

    secrets: tuple[tuple[str | None, int | None], ...]
    read_at: int

    def is_fresh(self, now_ms: int) -> bool:
        return self.read_at <= now_ms < self.read_at + REMEMBERED_MS


class SecretCache:
    """What deliveries are signed with: the target's own secret, else the owner's, else the default.

    The default is TICKLER_SIGNING_SECRET, one or, while it is rotated, two with a comma between them; without it one is made up,
    so that every delivery is signed. What was read is remembered for a minute. While no owner has a secret of their own, that
    is one small read a minute.
    """

    def __init__(self, records: RecordStore, sealer: Encryption, clock: Clock, environ: Mapping[str, str]) -> None:
        self._records = records
        self._sealer = sealer
        self._clock = clock
        self._configured = configured_secrets(environ)
        self._made_up: tuple[str, ...] = ()
        self._anybody = False  # has a secret of their own
        self._asking = asyncio.Lock()
        self._asked_at: int | None = None
        self._owners: dict[str, _Own] = {}

    async def secrets_of(self, delivery: Delivery, target: HttpTarget) -> Sequence[str]:
        """Newest first. `target` is the unsealed one."""
        return (target.secret,) if target.secret is not None else await self.of(delivery.owner)

    async def of(self, owner: str) -> tuple[str, ...]:
        """Newest first; never empty."""
        now_ms = self._clock.now_ms()
        if not await self._anybody_has_one(now_ms):
            return self._default()
        own = self._owners.get(owner)
        if own is None or not own.is_fresh(now_ms):
            own = await self._read_again(owner, own, now_ms)
        secrets: tuple[str, ...] = ()
        for secret, until in own.secrets:
            if until is None or now_ms < until:
                secrets += self._configured if secret is None else (secret,)
        return secrets or self._default()

    async def _anybody_has_one(self, now_ms: int) -> bool:
        asked_at = self._asked_at
        if asked_at is not None and asked_at <= now_ms < asked_at + REMEMBERED_MS:
            return self._anybody
        if asked_at is not None:
            self._asked_at = now_ms  # others go on with what is known while this one asks
        try:
            async with self._asking:
                if self._asked_at is None or asked_at is not None:  # of many that begin at once, the first asks for all
                    self._anybody = bool(await self._records.list(SECRET, now_ms=now_ms, limit=1))
                    self._asked_at = now_ms
        except StoreUnavailable:
            if asked_at is None:
                raise
        return self._anybody

    async def _read_again(self, owner: str, known: _Own | None, now_ms: int) -> _Own:
        if known is not None:
            self._remember(owner, known._replace(read_at=now_ms))  # others go on with it while this one reads
        try:
            record = await self._records.get(SECRET, owner, now_ms=now_ms)
        except StoreUnavailable:
            if known is None:
                raise
            return known
        own = _Own(() if record is None else tuple(self._opened(owner, kept) for kept in _read(record)), now_ms)
        self._remember(owner, own)
        return own

    def _opened(self, owner: str, kept: _StoredSecrets) -> tuple[str | None, int | None]:
        return (None if kept.sealed is None else self._sealer.unseal_text(kept.sealed, _purpose(owner)), kept.until)

    def _remember(self, owner: str, own: _Own) -> None:
        self._owners.pop(owner, None)
        if len(self._owners) >= MAX_REMEMBERED:
            del self._owners[next(iter(self._owners))]  # the one that was read longest ago
        self._owners[owner] = own

    def _default(self) -> tuple[str, ...]:
        if self._configured:
            return self._configured
        if not self._made_up:
            self._made_up = (new_secret(),)
            log.warning(
                "there is no signing secret: deliveries are signed with one that was made up for this process, "
                "which receivers cannot verify: set TICKLER_SIGNING_SECRET to one that tickler.new_secret() made"
            )
        return self._made_up


def configured_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Those of TICKLER_SIGNING_SECRET, newest first."""
    secrets = [text.strip() for text in environ.get("TICKLER_SIGNING_SECRET", "").split(",") if text.strip()]
    if len(secrets) > 2:
        raise InvalidInput(f"TICKLER_SIGNING_SECRET: has {len(secrets)} secrets: leave the newest and the one before it")
    try:
        return tuple(check_secret(text) for text in secrets)
    except InvalidInput as error:
        raise InvalidInput(f"TICKLER_SIGNING_SECRET: {str(error).removeprefix('secret: ')}") from None


def _purpose(owner: str) -> str:
    return f"signing secret of {owner}"


def _read(record: Record) -> list[_StoredSecrets]:
    try:
        return msgspec.convert(record.value, type=list[_StoredSecrets])
    except msgspec.ValidationError:
        raise InvalidInput(f"{_purpose(record.name)}: was written by a newer Tickler: upgrade, or put it again") from None


def _overlap_ms(overlap: object) -> int:
    if isinstance(overlap, timedelta):
        seconds = overlap.total_seconds()
    elif isinstance(overlap, int | float) and not isinstance(overlap, bool):
        seconds = overlap
    else:
        raise InvalidInput(f"overlap: {overlap!r} is not a duration: pass seconds or a timedelta")
    if not 0 <= seconds <= MAX_DURATION.total_seconds():
        raise InvalidInput(f"overlap: {overlap!r} must lie between 0 and {MAX_DURATION.days} days")
    return round(seconds * 1000)
