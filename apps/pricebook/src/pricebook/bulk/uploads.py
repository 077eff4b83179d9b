"""Keeps uploads in the table, in compressed chunks, so that any process can read them."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime

from pricebook.bulk.limits import BulkLimits
from pricebook.errors import InvalidField
from pricebook.model import BulkChunk, BulkUpload
from tickler.errors import TicklerError
from tickler.table import OpenTable

LEVEL = 1  # of compression: prices get about five times smaller with it, and not much more with others
DELETED_AT_A_TIME = 25

_PLAIN = "send plain text, as CSV in UTF-8 or as NDJSON"
_NO_TEXT = {
    b"\x1f\x8b": f"is compressed: {_PLAIN}",
    b"PK\x03\x04": "is a spreadsheet (.xlsx) or an archive: save it as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "is a spreadsheet (.xls): save it as CSV UTF-8",
    b"\xff\xfe": f"is in UTF-16: {_PLAIN}",
    b"\xfe\xff": f"is in UTF-16: {_PLAIN}",
}


class Uploads:
    def __init__(self, db: OpenTable, limits: BulkLimits) -> None:
        self._db = db
        self._limits = limits

    async def store(self, source: AsyncIterator[bytes], expires_at: datetime) -> BulkUpload:
        """Keep a stream. If it breaks off nothing is kept; what a killed process leaves expires."""
        upload = _Upload(secrets.token_hex(16), self._limits.chunk)
        try:
            async for piece in source:
                self._check_size(upload.take(piece))
                while len(upload.held) >= self._limits.chunk:
                    await self._put(upload, self._limits.chunk, expires_at)
            if upload.held:
                await self._put(upload, len(upload.held), expires_at)
            if upload.chunks == 0:
                raise InvalidField("file", "is empty: send prices as CSV or NDJSON")
        except BaseException:
            with suppress(TicklerError):  # the error that is raised is the one to see
                await self.delete(upload.done())
            raise
        return upload.done()

    async def read(self, upload: BulkUpload, offset: int = 0) -> AsyncIterator[bytes]:
        """Yield what follows an offset, piece by piece."""
        first, left_out = divmod(offset, upload.chunk)
        for number in range(first, upload.chunks):
            chunk = await self._db.get(BulkChunk.key.id(upload.id, number), consistent=True)
            if chunk is None:
                raise InvalidField("file", "is not kept any more: upload it again")
            yield zlib.decompress(chunk.data)[left_out:]
            left_out = 0

    async def delete(self, upload: BulkUpload) -> None:
        for first in range(0, upload.chunks, DELETED_AT_A_TIME):
            numbers = range(first, min(first + DELETED_AT_A_TIME, upload.chunks))
            await self._db.delete_many([BulkChunk.key.id(upload.id, number) for number in numbers])

    async def _put(self, upload: _Upload, size: int, expires_at: datetime) -> None:
        content = bytes(upload.held[:size])
        if upload.chunks == 0:
            _check_kind(content)
        data = zlib.compress(content, LEVEL)
        number, upload.chunks = upload.chunks, upload.chunks + 1  # first, so that one whose answer is lost is deleted, too
        await self._db.put(BulkChunk(upload=upload.id, number=number, data=data, expires_at=expires_at))
        del upload.held[:size]

    def _check_size(self, size: int) -> None:
        if size > self._limits.size:
            raise InvalidField("file", f"is larger than {self._limits.size:,} bytes: split it into several")


def _check_kind(beginning: bytes) -> None:
    """Refuse what is no text by how it begins. Each line is read as UTF-8 later."""
    for mark, reason in _NO_TEXT.items():
        if beginning.startswith(mark):
            raise InvalidField("file", reason)


class _Upload:
    """What has arrived so far. Only what is less than a chunk is held."""

    def __init__(self, id: str, chunk: int) -> None:
        self.id = id
        self.chunks = 0
        self.held = bytearray()
        self._chunk = chunk
        self._hasher = hashlib.sha256()
        self._size = 0
        self._line_ends = 0
        self._ends_line = True

    def take(self, piece: bytes) -> int:
        """Return the size so far."""
        if piece:
            self.held += piece
            self._hasher.update(piece)
            self._size += len(piece)
            self._line_ends += piece.count(b"\n")
            self._ends_line = piece.endswith(b"\n")
        return self._size

    def done(self) -> BulkUpload:
        lines = self._line_ends + (not self._ends_line)
        return BulkUpload(
            id=self.id, chunks=self.chunks, chunk=self._chunk, size=self._size, lines=lines, digest=self._hasher.hexdigest()
        )
