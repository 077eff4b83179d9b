"""Receives events over HTTP on a port of this machine, and takes only what is signed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from pricebook.events import Receiver
from tickler import Clock, Tickler, new_secret
from tickler.errors import InvalidSignature
from tickler.webhooks import Received, verify


class EventReceiver:
    """`statuses` are those of the next answers; then 200."""

    def __init__(self, clock: Clock, *, legacy: bool = False) -> None:
        self.secret = new_secret()
        self.received: list[Received] = []
        self.forged = 0
        self.statuses: list[int] = []
        self.receiver = Receiver("", legacy=legacy)
        self._clock = clock

    @property
    def events(self) -> list[Any]:
        """What was received, each once: receivers know a repetition by its id."""
        once = {each.id: each for each in self.received}
        return [msgspec.json.decode(each.body) if self.receiver.legacy else each.payload for each in once.values()]

    def of(self, edition: int) -> list[tuple[str, ...]]:
        """Return the types of the events of an edition, sorted, and why prices changed."""
        return sorted(
            (each["type"], *([each["reason"]] if "reason" in each else [])) for each in self.events if each["edition"] == edition
        )

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            received = verify(body, request.headers, self.secret, clock=self._clock)
        except InvalidSignature:
            self.forged += 1
            return web.Response(status=401)
        status = self.statuses.pop(0) if self.statuses else 200
        if status == 200:
            self.received.append(received)
        return web.Response(status=status)


@asynccontextmanager
async def receiving(clock: Clock, *, legacy: bool = False) -> AsyncIterator[EventReceiver]:
    """Receive events while the block runs."""
    receiver = EventReceiver(clock, legacy=legacy)
    application = web.Application()
    application.router.add_post("/events", receiver.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        receiver.receiver = Receiver(f"http://{host}:{port}/events", legacy=legacy)
        yield receiver
    finally:
        await runner.cleanup()


async def share_secrets(t: Tickler, receivers: Iterable[EventReceiver]) -> None:
    """Let events be signed with the secrets of their receivers."""
    for each in receivers:
        await t.secrets.put(each.receiver.owner, each.secret)
