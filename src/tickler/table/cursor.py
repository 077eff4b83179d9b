"""Cursors of pages: a position, signed together with the query that it belongs to, so that no other query takes it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from functools import cached_property

import msgspec

from tickler.errors import InvalidCursor
from tickler.table.engines.engine import Position
from tickler.table.engines.metadata import EntryWrite, Metadata

_SIGNATURE_BYTES = 16
_ENTRY = "cursors"  # of the metadata

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str | int, ...]).decode


class Cursors:
    """Signs and verifies the cursors of one query. A cursor is as long as its position and 16 bytes, however large the page."""

    def __init__(self, secret: bytes, identity: Callable[[], object]) -> None:
        """`identity` returns what tells the query from others. It is called when the first cursor is read or written."""
        self._secret = secret
        self._identity = identity

    @cached_property
    def _key(self) -> bytes:
        return hashlib.blake2b(_encode(self._identity()), key=self._secret, digest_size=32).digest()

    def write(self, position: Position) -> str:
        body = _encode(position)
        return _text(self._signature(body) + body)

    def read(self, cursor: str) -> Position:
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error, AttributeError, TypeError):
            raise InvalidCursor("the cursor is not one of ours") from None
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if _text(raw) != cursor or not hmac.compare_digest(signature, self._signature(body)):
            raise InvalidCursor("the cursor belongs to another query, or was changed")
        return _decode(body)

    def _signature(self, body: bytes) -> bytes:
        return hashlib.blake2b(body, key=self._key, digest_size=_SIGNATURE_BYTES).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def read_secret(metadata: Metadata) -> bytes:
    """Return the key that signs the cursors of a table: 32 random bytes, made once and kept with it."""
    found = await metadata.read(_ENTRY)
    if not found:
        await metadata.write([EntryWrite(_ENTRY, secrets.token_bytes(32), expected=0)])  # unless another process was first
        found = await metadata.read(_ENTRY)
    return found[0].value
