"""Limits the size and the arrival time of a request body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from tickler.web.asgi import Receive
from tickler.web.concurrency import HeldBytes
from tickler.web.problems import Refused

IDLE_S = 10.0  # maximum pause within a streamed body


class BodyLimits(NamedTuple):
    """Size and arrival time of a whole body; both None for a stream, which is limited by its pauses only."""

    max_bytes: int | None
    body_s: float | None
    remedy: str = "send less"

    def check_announced(self, length: int) -> None:
        """Refuse with 413 a body that is announced to be too long."""
        if self.max_bytes is not None and length > self.max_bytes:
            raise self.too_long()

    def too_long(self) -> Refused:
        return Refused(413, f"the body is longer than {self.max_bytes} bytes: {self.remedy}")


class IncomingBody:
    """Wraps an ASGI `receive`. The bytes received count as held by the caller until the request ends."""

    def __init__(self, receive: Receive, limits: BodyLimits, held: HeldBytes | None, *, announced: int, has_body: bool) -> None:
        self._receive = receive
        self._limits = limits
        self._held = held
        self._announced = announced
        self._has_body = has_body
        self._left_s = limits.body_s
        self._received = 0
        self._ended = False

    async def __call__(self) -> Any:
        if self._ended:
            return await self._receive()  # waits for the disconnect
        self._hold()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(IDLE_S if self._left_s is None else max(self._left_s, 0)):
                message: Any = await self._receive()
        except TimeoutError:
            raise Refused(408, "the body did not arrive in time: send it faster") from None
        if self._left_s is not None:
            self._left_s -= loop.time() - began
        if message["type"] != "http.request":
            if self._has_body:
                raise Refused(400, "the connection closed before the whole body arrived")
            return message
        self._ended = not message.get("more_body", False)
        self._received += len(message.get("body", b""))
        most = self._limits.max_bytes
        if most is not None and self._received > most:
            raise self._limits.too_long()
        self._hold()
        return message

    def _hold(self) -> None:
        if self._held is not None and self._limits.max_bytes is not None:
            self._held.grow_to(max(self._announced, self._received))


async def body_chunks(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message: Any = await receive()
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return
