"""The key that signs cookies and form tokens. All processes of an application share it; the first of them creates it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from contextlib import suppress

import msgspec

from tickler.clock import Clock
from tickler.errors import VersionConflict
from tickler.records.contract import RecordStore

RECORD = "cookie-key"


class SigningKey:
    """Signs texts for a purpose. A signature for one purpose is not valid for another."""

    def __init__(self, records: RecordStore, clock: Clock, record_kind: str) -> None:
        self._records = records
        self._clock = clock
        self._kind = record_kind
        self._cached: bytes | None = None

    async def sign(self, purpose: str, text: str) -> str:
        return hmac.new(await self._key(), f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()

    async def is_signature(self, signature: str, purpose: str, text: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest((await self.sign(purpose, text)).encode(), signature.encode())

    async def _key(self) -> bytes:
        if self._cached is None:
            now_ms = self._clock.now_ms()
            fresh = msgspec.json.encode(base64.b64encode(os.urandom(32)).decode())
            with suppress(VersionConflict):  # another process created it first
                await self._records.put(self._kind, RECORD, fresh, now_ms=now_ms, expected=0)
            record = await self._records.get(self._kind, RECORD, now_ms=now_ms)
            assert record is not None
            self._cached = base64.b64decode(str(record.value))
        return self._cached
