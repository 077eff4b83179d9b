"""Cursors: an instant and a position in a list, signed together with the query that they belong to."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from pricebook.errors import InvalidCursor
from pricebook.model import Setting
from tickler.errors import ConditionFailed
from tickler.table import OpenTable

Position = tuple[str, ...]

_SIGNATURE_BYTES = 16
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_SETTING = "cursors"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, Position]).decode


class Cursors:
    """Writes and reads the cursors of one query."""

    def __init__(self, secret: bytes, query: tuple[str, ...]) -> None:
        key = hashlib.blake2b(_encode(query), key=secret, digest_size=32).digest()
        self._begun = hashlib.blake2b(key=key, digest_size=_SIGNATURE_BYTES)

    def writer(self, at: datetime) -> Callable[[Position], str]:
        """Return what writes the cursors of an instant. A page has many of them, so this does what it can beforehand."""
        at_ms, begun = (at - _EPOCH) // _MILLISECOND, self._begun

        def write(position: Position) -> str:
            body = _encode((at_ms, position))
            signature = begun.copy()
            signature.update(body)
            text = binascii.b2a_base64(signature.digest() + body, newline=False)
            return text.translate(_URL_SAFE).rstrip(b"=").decode()

        return write

    def read(self, cursor: str, coordinates: int) -> tuple[datetime, Position]:
        """Return the instant and the position of a cursor. `InvalidCursor` if it was changed, or is of another query."""
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            raise InvalidCursor("the cursor is not one of ours: begin with the first page") from None
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(body)):
            raise InvalidCursor("the cursor belongs to another query, or was changed: begin with the first page")
        at_ms, position = _decode(body)
        if len(position) != coordinates:
            raise InvalidCursor("the cursor is of another version of pricebook: begin with the first page")
        return _EPOCH + at_ms * _MILLISECOND, position

    def _signature(self, body: bytes) -> bytes:
        signature = self._begun.copy()
        signature.update(body)
        return signature.digest()


class CursorSecret:
    """The key that signs cursors: made once, and kept in the table, so that each process takes the cursors of the others."""

    def __init__(self, db: OpenTable) -> None:
        self._db = db
        self._secret: bytes | None = None
        self._one_at_a_time = asyncio.Lock()

    async def get(self) -> bytes:
        if self._secret is None:
            async with self._one_at_a_time:
                self._secret = self._secret or await self._read()
        return self._secret

    async def _read(self) -> bytes:
        id = Setting.key.id(_SETTING)
        found = await self._db.get(id)
        if found is None:
            try:
                found = await self._db.create(Setting(name=_SETTING, value=secrets.token_bytes(32)))
            except ConditionFailed:  # another process was first
                found = await self._db.get(id)
        assert found is not None
        return found.value
