"""An answer that is made while its request still comes in, for clients that read nothing before they have sent everything."""

from __future__ import annotations

import asyncio
from tempfile import SpooledTemporaryFile

from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import Receive, Send

IN_MEMORY_BYTES = 1_000_000
MAX_UNREAD_BYTES = 64 * 1024 * 1024  # then whoever asked has to read before more is made
PIECE_BYTES = 65_536


class SpooledResponse(ASGIStreamingResponse):
    """What nobody has read yet waits in memory, then in a file; making it waits for nobody until that is full.

    It leaves the request alone, which whatever makes the answer reads.
    """

    async def send_body(self, send: Send, receive: Receive) -> None:
        with _Spool() as spool:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._make(spool))
                while piece := await spool.read():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _make(self, spool: _Spool) -> None:
        try:
            async for piece in self.iterator:
                await spool.write(piece if isinstance(piece, bytes) else piece.encode())
        finally:
            spool.end()


class _Spool:
    """Bytes, first in, first out."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  # closed by __exit__
        self._written = self._read = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._drained = asyncio.Event()

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    async def write(self, piece: bytes) -> None:
        """At the end; once the file is as long as it may be, when all of it was read."""
        while self._written >= MAX_UNREAD_BYTES and self._read < self._written:
            self._drained.clear()
            await self._drained.wait()
        if self._read == self._written:
            self._file.seek(0)
            self._file.truncate()
            self._read = self._written = 0
        self._file.seek(self._written)
        self._written += self._file.write(piece)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def read(self) -> bytes:
        """Some, as soon as there are some; none at the end."""
        while self._read == self._written and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        self._file.seek(self._read)
        piece = self._file.read(PIECE_BYTES)
        self._read += len(piece)
        if self._read == self._written:
            self._drained.set()
        return piece
