"""Small named records with compare-and-set and expiry, as callers use them.

Workers, tokens, idempotency keys, settings and facts about the store are records, each of its own kind.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from tickler.clock import Clock, to_ms
from tickler.errors import InvalidInput
from tickler.model.limits import check_limit
from tickler.model.record import Record
from tickler.model.schedule import check_name
from tickler.records.contract import RecordStore
from tickler.records.kinds import is_own

MAX_VALUE_BYTES = 64 * 1024


class Records:
    """Checks and encodes arguments, and adds the time.

    `put` and `delete` take `using=`: a connection of yours with an open transaction, or a transaction of a table. They join it.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, kind: str, name: str) -> Record | None:
        _check(kind, name)
        return await self._store.get(kind, name, now_ms=self._clock.now_ms())

    async def put(
        self,
        kind: str,
        name: str,
        value: object,
        *,
        expires_at: int | datetime | None = None,
        expected: int | None = None,
        using: object = None,
    ) -> Record:
        _check_writable(kind, name)
        if expected is not None and (isinstance(expected, bool) or not isinstance(expected, int) or not 0 <= expected < 1 << 63):
            raise InvalidInput(f"expected: {expected!r} is not a version: pass that of the record you read, or 0 for none")
        until = None if expires_at is None else to_ms(expires_at, "expires_at")
        version = await self._store.put(
            kind, name, _encode(value), now_ms=self._clock.now_ms(), expires_at=until, expected=expected, using=using
        )
        return Record(kind, name, value, version, until)

    async def delete(self, kind: str, name: str, *, using: object = None) -> bool:
        _check_writable(kind, name)
        return await self._store.delete(kind, name, using=using)

    async def list(self, kind: str, *, after: str = "", limit: int = 100) -> list[Record]:
        check_name("kind", kind)
        if after != "":
            check_name("after", after)
        return await self._store.list(kind, now_ms=self._clock.now_ms(), after=after, limit=check_limit(limit))

    async def prune(self) -> int:
        return await self._store.prune(self._clock.now_ms())


def _check(kind: str, name: str) -> None:
    check_name("kind", kind)
    check_name("name", name)


def _check_writable(kind: str, name: str) -> None:
    _check(kind, name)
    if is_own(kind):
        raise InvalidInput(f"kind: {kind!r} is reserved by Tickler: use another")


def _encode(value: object) -> bytes:
    try:
        encoded = msgspec.json.encode(value)
        survives = msgspec.json.decode(encoded) == value
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidInput(f"value: cannot be encoded as JSON: {error}") from None
    if not survives:
        raise InvalidInput(
            "value: is not plain JSON: use only dicts with text keys, lists, text, finite numbers, True, False and None"
        )
    if len(encoded) > MAX_VALUE_BYTES:
        raise InvalidInput(f"value: has {len(encoded)} bytes: at most {MAX_VALUE_BYTES} are allowed")
    return encoded
