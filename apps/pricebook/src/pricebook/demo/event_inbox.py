"""A receiver of events, as a user of pricebook would write one: it takes what is signed, each once, and shows it on a page."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from pricebook.app import Pricebook
from pricebook.events import Receiver
from tickler import Clock, new_secret, verify
from tickler.errors import InvalidSignature

HOST = "127.0.0.1"
LOCAL_HOSTS = (HOST, "localhost")
PATH = "/events"
KEPT = 500

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Events</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="5">
<style>body{{font:15px/1.5 system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem}}td{{padding:.15rem 1.2rem .15rem 0}}</style>
<h1>Events that a receiver got</h1><p>{summary}</p><table>{rows}</table></html>"""


class _Event(Struct, frozen=True):
    at: datetime
    type: str
    store: str
    detail: str


class EventInbox:
    """`async with EventInbox(port) as inbox` receives at `inbox.url`, once `open` has told it which secret signs."""

    def __init__(self, port: int = 0) -> None:
        self.url = ""
        self._port = port
        self._secret = new_secret()
        self._clock: Clock | None = None
        self._known: set[str] = set()
        self._events: deque[_Event] = deque(maxlen=KEPT)
        self._refused = 0
        self._runner: web.AppRunner | None = None

    @property
    def page(self) -> str:
        return f"{self.url.removesuffix(PATH)}/"

    @property
    def types(self) -> list[str]:
        return [event.type for event in self._events]

    async def open(self, book: Pricebook) -> None:
        """Agree on a secret with the sender, as an operator does by `pricebook receiver secret`."""
        self._clock = book.t.clock
        await book.t.secrets.put(Receiver.read(self.url).owner, self._secret)

    async def __aenter__(self) -> Self:
        application = web.Application(middlewares=[_only_from_here])
        application.add_routes([web.post(PATH, self._receive), web.get("/", self._show)])
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, self._port).start()
        except OSError:  # another program has this port: any other will do
            await web.TCPSite(self._runner, HOST, 0).start()
        self.url = f"http://{HOST}:{self._runner.addresses[0][1]}{PATH}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        try:
            received = verify(await request.read(), request.headers, self._secret, clock=self._clock)
        except InvalidSignature:
            self._refused += 1
            return web.Response(status=HTTPStatus.UNAUTHORIZED)
        if received.id not in self._known:  # a repetition has the same id
            self._known.add(received.id)
            self._events.append(_event(received.payload))
        return web.Response()

    async def _show(self, _: web.Request) -> web.Response:
        rows = "".join(
            f"<tr><td>{event.at:%H:%M:%S} UTC<td>{escape(event.type)}<td>store {escape(event.store)}<td>{escape(event.detail)}"
            for event in reversed(self._events)
        )
        summary = (
            f"{len(self._known)} since it was started, each signed by pricebook. {self._refused} were not, and were refused."
        )
        return web.Response(text=_PAGE.format(summary=summary, rows=rows), content_type="text/html")


def _event(payload: Any) -> _Event:
    detail = f"from {payload.get('localTime', '')} {payload.get('timeZone', '')}"
    return _Event(datetime.now(UTC), str(payload.get("type")), str(payload.get("store")), detail)


@web.middleware
async def _only_from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse names of other sites that lead to this machine."""
    if request.host.partition(":")[0] not in LOCAL_HOSTS:
        raise web.HTTPForbidden(text="this page is for this machine alone")
    return await handler(request)
