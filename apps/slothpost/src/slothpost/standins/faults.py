"""Faults on demand: what a network does at its worst, before or after it has done what it was asked to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Literal

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

FaultKind = Literal[
    "fail",  # answers 5xx
    "hang",  # does not answer
    "drop",  # breaks off the connection
    "cut",  # breaks it off within the body of the answer
    "garble",  # answers with something that nobody can read
    "limit",  # answers that there were too many requests
    "slow",  # answers late
    "call",  # calls back before it answers
]
Callback = Callable[[], Awaitable[None]]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """`taken`: the network does what it was asked to, and then fails. A refusal is answered as ever."""

    kind: FaultKind
    taken: bool = False
    status: int = 503
    reset_at: datetime | None = None  # of a limit
    seconds: float = 0.0  # of a slow answer
    callback: Callback | None = None


class Hold:
    """A request that waits: `arrived` says that it is there, and `release` lets it go on."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def wait(self) -> None:
        self.arrived.set()
        await self._released.wait()


class Faults:
    """Which requests fail next. They are those that publish a post, or those whose path ends as `on` says."""

    def __init__(self, publishing: str) -> None:
        self._publishing = publishing
        self._next: dict[str, deque[Fault]] = {}
        self._marks: dict[str, Fault] = {}
        self._marked: set[str] = set()

    def add(self, fault: Fault, times: int = 1, *, on: str | None = None) -> None:
        self._next.setdefault(on or self._publishing, deque()).extend([fault] * times)

    def take_then_hang(self, times: int = 1, *, on: str | None = None) -> None:
        self.add(Fault(kind="hang", taken=True), times, on=on)

    def take_then_fail(self, times: int = 1, *, status: int = 503, on: str | None = None) -> None:
        self.add(Fault(kind="fail", taken=True, status=status), times, on=on)

    def take_then_drop(self, times: int = 1, *, on: str | None = None) -> None:
        self.add(Fault(kind="drop", taken=True), times, on=on)

    def take_then_cut(self, times: int = 1, *, on: str | None = None) -> None:
        self.add(Fault(kind="cut", taken=True), times, on=on)

    def take_then_garble(self, times: int = 1, *, on: str | None = None) -> None:
        self.add(Fault(kind="garble", taken=True), times, on=on)

    def fail_before_taking(self, times: int = 1, *, status: int = 503, on: str | None = None) -> None:
        self.add(Fault(kind="fail", status=status), times, on=on)

    def drop_before_taking(self, times: int = 1, *, on: str | None = None) -> None:
        self.add(Fault(kind="drop"), times, on=on)

    def hang_before_taking(self, times: int = 1, *, on: str | None = None) -> None:
        self.add(Fault(kind="hang"), times, on=on)

    def limit(self, times: int = 1, *, reset_at: datetime | None = None, on: str | None = None) -> None:
        self.add(Fault(kind="limit", reset_at=reset_at), times, on=on)

    def answer_slowly(self, seconds: float, times: int = 1, *, on: str | None = None) -> None:
        self.add(Fault(kind="slow", seconds=seconds), times, on=on)

    def call_while_taking(self, callback: Callback, *, on: str | None = None) -> None:
        self.add(Fault(kind="call", callback=callback), on=on)

    def hold(self, *, on: str | None = None) -> Hold:
        """Keep the next request waiting, before it is looked at."""
        hold = Hold()
        self.call_while_taking(hold.wait, on=on)
        return hold

    def mark(self, marker: str, fault: Fault) -> None:
        """Let each post that has this in its text meet a fault, once: so somebody who tries a demo sees what becomes of it."""
        self._marks[marker] = fault

    def next_of(self, path: str, text: str) -> Fault | None:
        """Return the fault that a request meets, if any. `text` is that of the post which it publishes."""
        for ending, faults in self._next.items():
            if faults and path.endswith(ending):
                return faults.popleft()
        if text in self._marked:
            return None
        for marker, fault in self._marks.items():
            if text and marker in text:
                self._marked.add(text)
                return fault
        return None


class FaultyAnswers:
    """The middleware of a stand-in: answers as it does, unless a fault is next."""

    def __init__(
        self,
        faults: Faults,
        stopping: asyncio.Event,
        *,
        text_of: Callable[[web.Request], Awaitable[str]],
        limited: Callable[[datetime | None], web.Response],
    ) -> None:
        self._faults = faults
        self._stopping = stopping
        self._text_of = text_of
        self._limited = limited

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        fault = self._faults.next_of(request.path, await self._text_of(request))
        if fault is None:
            return await handler(request)
        if fault.kind in ("slow", "call"):
            await (asyncio.sleep(fault.seconds) if fault.callback is None else fault.callback())
            return await handler(request)
        if fault.taken:
            answer = await handler(request)
            if answer.status >= web.HTTPBadRequest.status_code:
                return answer
        return await self._broken(request, fault)

    async def _broken(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.kind == "hang":
            await self._stopping.wait()
        if fault.kind == "limit":
            return self._limited(fault.reset_at)
        if fault.kind == "garble":
            return web.Response(status=200, body=b"\x00<html>\xff")
        if fault.kind == "cut":
            return await _cut(request)
        if fault.kind == "drop" and request.transport is not None:
            request.transport.abort()
        return web.Response(status=fault.status, text="Service Unavailable")


async def _cut(request: web.Request) -> web.StreamResponse:
    """Say that it is done, and break off before the body says what."""
    response = web.StreamResponse(status=201, headers={"content-length": "1000", "content-type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"data":{"id":"')
    if request.transport is not None:
        request.transport.abort()
    return response
