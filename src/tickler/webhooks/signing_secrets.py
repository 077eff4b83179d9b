"""Signing secrets of owners, kept encrypted as records, and the choice of the secrets for a delivery."""

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
from tickler.model.duration import Duration, to_duration
from tickler.model.policy import MAX_DURATION
from tickler.model.record import Record
from tickler.model.schedule import check_name
from tickler.model.target import HttpTarget
from tickler.records.contract import RecordStore
from tickler.records.kinds import SECRET
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.signature import check_secret, new_secret

MAX_SECRETS = 5  # of an owner: each adds a signature to every delivery
REMEMBERED_MS = 60_000
MAX_REMEMBERED = 10_000

log = logging.getLogger("tickler.secrets")


class _StoredSecrets(msgspec.Struct, frozen=True, omit_defaults=True):
    """One secret of an owner. Without `sealed` it is the default secret, which applied before the owner's first own one."""

    sealed: str | None = None
    until: int | None = None  # it signs until then; None: until it is rotated


class SigningSecrets:
    """Manages the signing secrets of owners. Workers use a change within a minute. A secret is shown only once."""

    def __init__(self, records: RecordStore, encryption: Encryption, clock: Clock) -> None:
        self._records = records
        self._encryption = encryption
        self._clock = clock

    async def put(self, owner: str, secret: str) -> None:
        """Sign the owner's deliveries with this secret only."""
        check_name("owner", owner)
        sealed = self._encryption.encrypt_text(check_secret(secret), _purpose(owner))
        await self._write(owner, [_StoredSecrets(sealed)], self._clock.now_ms(), None)

    async def rotate(self, owner: str, *, overlap: Duration = timedelta(hours=24)) -> str:
        """Make a new secret, and return it this once. During `overlap`, deliveries are signed with the old one as well.

        Give it to the receivers within that time. `VersionConflict` if another caller rotates it at the same moment.
        """
        check_name("owner", owner)
        overlap_ms = to_duration("overlap", overlap, MAX_DURATION) // timedelta(milliseconds=1)
        secret = new_secret()
        sealed = self._encryption.encrypt_text(secret, _purpose(owner))
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
        """Sign with the default again. Return whether the owner had a secret."""
        check_name("owner", owner)
        return await self._records.delete(SECRET, owner)

    async def _write(self, owner: str, kept: Sequence[_StoredSecrets], now_ms: int, expected: int | None) -> None:
        await self._records.put(SECRET, owner, msgspec.json.encode(kept), now_ms=now_ms, expected=expected)


class _Own(NamedTuple):
    """The secrets of an owner, each with the instant at which it ends. The secret None is the default."""

    secrets: tuple[tuple[str | None, int | None], ...]
    read_at: int

    def is_fresh(self, now_ms: int) -> bool:
        return self.read_at <= now_ms < self.read_at + REMEMBERED_MS


class SecretCache:
    """Finds the secrets for a delivery: the target's own, else the owner's, else the default.

    The default is TICKLER_SIGNING_SECRET: one secret, or two with a comma during a rotation. Without it, this process generates
    one, so that every delivery is signed. Secrets are cached for a minute. While no owner has one, that costs one small read a
    minute.
    """

    def __init__(self, records: RecordStore, encryption: Encryption, clock: Clock, environ: Mapping[str, str]) -> None:
        self._records = records
        self._encryption = encryption
        self._clock = clock
        self._configured = configured_secrets(environ)
        self._generated: tuple[str, ...] = ()
        self._any_owner = False  # whether any owner has a secret
        self._asking = asyncio.Lock()
        self._asked_at: int | None = None
        self._owners: dict[str, _Own] = {}

    async def secrets_of(self, delivery: Delivery, target: HttpTarget) -> Sequence[str]:
        """Return the secrets, newest first. `target` is the decrypted one."""
        return (target.secret,) if target.secret is not None else await self.of(delivery.owner)

    async def of(self, owner: str) -> tuple[str, ...]:
        """Return the owner's secrets, newest first; never empty."""
        now_ms = self._clock.now_ms()
        if not await self._any_owner_has_one(now_ms):
            return self._default()
        own = self._owners.get(owner)
        if own is None or not own.is_fresh(now_ms):
            own = await self._read_again(owner, own, now_ms)
        secrets: tuple[str, ...] = ()
        for secret, until in own.secrets:
            if until is None or now_ms < until:
                secrets += self._configured if secret is None else (secret,)
        return secrets or self._default()

    async def _any_owner_has_one(self, now_ms: int) -> bool:
        asked_at = self._asked_at
        if asked_at is not None and asked_at <= now_ms < asked_at + REMEMBERED_MS:
            return self._any_owner
        if asked_at is not None:
            self._asked_at = now_ms  # other tasks use the known answer while this one reads
        try:
            async with self._asking:
                if self._asked_at is None or asked_at is not None:  # of many concurrent tasks, the first reads for all
                    self._any_owner = bool(await self._records.list(SECRET, now_ms=now_ms, limit=1))
                    self._asked_at = now_ms
        except StoreUnavailable:
            if asked_at is None:
                raise
        return self._any_owner

    async def _read_again(self, owner: str, known: _Own | None, now_ms: int) -> _Own:
        if known is not None:
            self._remember(owner, known._replace(read_at=now_ms))  # other tasks use it while this one reads
        try:
            record = await self._records.get(SECRET, owner, now_ms=now_ms)
        except StoreUnavailable:
            if known is None:
                raise
            return known
        own = _Own(() if record is None else tuple(self._decrypted(owner, kept) for kept in _read(record)), now_ms)
        self._remember(owner, own)
        return own

    def _decrypted(self, owner: str, kept: _StoredSecrets) -> tuple[str | None, int | None]:
        return (None if kept.sealed is None else self._encryption.decrypt_text(kept.sealed, _purpose(owner)), kept.until)

    def _remember(self, owner: str, own: _Own) -> None:
        self._owners.pop(owner, None)
        if len(self._owners) >= MAX_REMEMBERED:
            del self._owners[next(iter(self._owners))]  # the one that was read first
        self._owners[owner] = own

    def _default(self) -> tuple[str, ...]:
        if self._configured:
            return self._configured
        if not self._generated:
            self._generated = (new_secret(),)
            log.warning(
                "there is no signing secret: deliveries are signed with one that this process generated, which receivers "
                "cannot verify; set TICKLER_SIGNING_SECRET to one that tickler.new_secret() made"
            )
        return self._generated


def configured_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets in TICKLER_SIGNING_SECRET, newest first."""
    secrets = [text.strip() for text in environ.get("TICKLER_SIGNING_SECRET", "").split(",") if text.strip()]
    if len(secrets) > 2:
        raise InvalidInput(f"TICKLER_SIGNING_SECRET: has {len(secrets)} secrets: keep only the newest two")
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
