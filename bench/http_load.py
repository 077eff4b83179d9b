"""An HTTP client for measurements: requests at a rate, whose latency counts from the instant at which each was to be sent.

A server that falls behind so shows the whole delay, as those who wait for it see it. Connections are kept alive.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

TIMEOUT_S = 5.0
EARLY_S = 0.003  # before a request the client polls, since timers of event loops are a millisecond late
LENGTH = b"content-length: "
HEAD_END = b"\r\n\r\n"


class Failed(Exception):
    """An answer is not what was asked for."""


class Latencies(NamedTuple):
    """In milliseconds, in order; `timeouts` were not answered in time."""

    ms: Sequence[float]
    timeouts: int

    def joined(self, other: Latencies) -> Latencies:
        return Latencies(sorted([*self.ms, *other.ms]), self.timeouts + other.timeouts)

    def percentile(self, percent: float) -> float:
        return self.ms[min(int(len(self.ms) * percent / 100), len(self.ms) - 1)]


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = 0  # bytes of the answer, once its head is there
        self._waiting: asyncio.Future[bytes] | None = None
        self._lost: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc or ConnectionError("the server closed the connection")
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(self._lost)

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        self._waiting = waiting = asyncio.get_running_loop().create_future()
        if self._lost is not None:
            waiting.set_exception(self._lost)
        else:
            self._transport.write(request)
        return waiting

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        if not self._needed:
            end = buffer.find(HEAD_END)
            if end < 0:
                return
            head = bytes(buffer[:end]).lower()
            at = head.find(LENGTH) + len(LENGTH)
            self._needed = end + len(HEAD_END) + int(head[at:].partition(b"\r")[0])
        if len(buffer) < self._needed:
            return
        answer = bytes(buffer)
        buffer.clear()
        self._needed = 0
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)

    @property
    def is_open(self) -> bool:
        """Servers close connections that have long been idle."""
        return self._lost is None

    def close(self) -> None:
        self._transport.close()


class HttpLoad:
    """Sends ready requests, over as many connections as are needed. Answers must have status 200."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[_Connection] = []

    async def ask(self, request: bytes) -> bytes:
        connection = next((each for each in self._taken() if each.is_open), None) or await self._connect()
        try:
            answer = await connection.ask(request)
        except BaseException:
            connection.close()
            raise
        self._free.append(connection)
        if not answer.startswith(b"HTTP/1.1 200") or b'"errors"' in answer:
            raise Failed(answer[:600].decode(errors="replace"))
        return answer

    async def at_rate(
        self, requests: Iterator[bytes], per_second: float, seconds: float, ended: asyncio.Event | None = None
    ) -> Latencies:
        """Send requests evenly spaced, until `ended`, whatever becomes of those before. Returns the latency of each."""
        latencies: list[float] = []
        timeouts = 0

        async def one(request: bytes, intended: float) -> None:
            nonlocal timeouts
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await self.ask(request)
            except TimeoutError:
                timeouts += 1
            latencies.append((time.perf_counter() - intended) * 1_000)

        started = time.perf_counter() + 0.05
        running: set[asyncio.Task[None]] = set()
        for number in range(max(int(per_second * seconds), 1)):
            intended = started + number / per_second
            await _until(intended)
            if ended is not None and ended.is_set():
                break
            task = asyncio.create_task(one(next(requests), intended))
            running.add(task)
            for done in [each for each in running if each.done()]:
                running.discard(done)
                done.result()  # raises what failed
        await asyncio.gather(*running)
        return Latencies(sorted(latencies), timeouts)

    async def one_after_the_other(self, requests: Iterator[bytes], number: int, at_once: int) -> None:
        """Send a number of requests, each as soon as one before it is answered."""
        left = number

        async def go_on() -> None:
            nonlocal left
            while left:
                left -= 1
                await self.ask(next(requests))

        await asyncio.gather(*(go_on() for _ in range(at_once)))

    def close(self) -> None:
        for connection in self._free:
            connection.close()

    def _taken(self) -> Iterator[_Connection]:
        while self._free:
            yield self._free.pop()

    async def _connect(self) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(_Connection, "127.0.0.1", self._port)
        return connection


@asynccontextmanager
async def http_load(port: int) -> AsyncIterator[HttpLoad]:
    load = HttpLoad(port)
    try:
        yield load
    finally:
        load.close()


def post(path: str, body: bytes, token: str) -> bytes:
    """Return a request with a JSON body, as it is sent."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\naccept: application/json\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _until(instant: float) -> None:
    early = instant - time.perf_counter() - EARLY_S
    if early > 0:
        await asyncio.sleep(early)
    while time.perf_counter() < instant:
        await asyncio.sleep(0)
