"""A response produced while the request body arrives, for clients that read nothing until they have sent everything."""

from __future__ import annotations

import asyncio
from contextlib import closing
from tempfile import SpooledTemporaryFile

from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import Receive, Send

IN_MEMORY_BYTES = 1_000_000
MAX_UNREAD_BYTES = 64 * 1024 * 1024  # then production waits for the client to read
CHUNK_BYTES = 65_536


class SpooledResponse(ASGIStreamingResponse):
    """Buffers unread output in memory, then in a file, so that a slow reader does not block production until that is full.

    It does not listen for a disconnect: the iterator that produces the response reads the request.
    """

    async def send_body(self, send: Send, receive: Receive) -> None:
        with closing(_Spool()) as spool:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._produce(spool))
                while chunk := await spool.read():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _produce(self, spool: _Spool) -> None:
        try:
            async for chunk in self.iterator:
                await spool.write(chunk if isinstance(chunk, bytes) else chunk.encode())
        finally:
            spool.end()


class _Spool:
    """A FIFO buffer of bytes."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  # closed by `close`
        self._written = self._read = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._drained = asyncio.Event()

    def close(self) -> None:
        self._file.close()

    async def write(self, chunk: bytes) -> None:
        """Append; if the file has reached its limit, wait until all of it was read."""
        while self._written >= MAX_UNREAD_BYTES and self._read < self._written:
            self._drained.clear()
            await self._drained.wait()
        if self._read == self._written:
            self._file.seek(0)
            self._file.truncate()
            self._read = self._written = 0
        self._file.seek(self._written)
        self._written += self._file.write(chunk)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def read(self) -> bytes:
        """Return bytes as soon as there are any; none at the end."""
        while self._read == self._written and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        self._file.seek(self._read)
        chunk = self._file.read(CHUNK_BYTES)
        self._read += len(chunk)
        if self._read == self._written:
            self._drained.set()
        return chunk
