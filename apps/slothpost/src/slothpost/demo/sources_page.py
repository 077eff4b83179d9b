"""A page on which the visitor ships something: the local GitHub, Vercel and App Store then deliver to slothpost."""

from __future__ import annotations

from http import HTTPStatus
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler

from slothpost.app import Slothpost
from slothpost.demo.local_services import LocalServices
from slothpost.demo.places import Places
from slothpost.demo.shipper import Shipper
from slothpost.demo.source_actions import Impossible, SourceActions
from slothpost.demo.sources_html import Said, render
from slothpost.demo.ways_in import by_http, secrets_of
from slothpost.settings import Settings
from slothpost.standins.loopback import HOST, Loopback

LOCAL_HOSTS = (HOST, "localhost")
MAX_TEXT = 2_000


class SourcesPage:
    """`async with SourcesPage(…) as page` serves it at `page.url`. It knows what is connected once slothpost is open."""

    def __init__(self, services: LocalServices, settings: Settings) -> None:
        self.url = ""
        self._services = services
        self._settings = settings
        self._places: Places | None = None
        self._actions: SourceActions | None = None
        self._said: Said | None = None
        self._server = Loopback(services.sources_port)

    def open(self, slothpost: Slothpost) -> None:
        self._places = Places(slothpost, self._services)
        shipper = Shipper(self._services, secrets_of(slothpost), by_http(self._settings))
        self._actions = SourceActions(self._services, self._places, shipper)

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[_only_from_here])
        app.add_routes([web.get("/", self._show), web.post(r"/{action:[\w-]+}", self._act)])
        self.url = await self._server.start(app)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.stop()

    async def _show(self, request: web.Request) -> web.Response:
        if self._places is None:
            raise web.HTTPServiceUnavailable(text="slothpost is starting: reload this page in a moment")
        said, self._said = self._said, None
        text = render([found.place for found in await self._places.all()], said, self._settings.url("/activity"))
        return web.Response(text=text, content_type="text/html", headers={"cache-control": "no-store"})

    async def _act(self, request: web.Request) -> web.Response:
        if self._actions is None:
            raise web.HTTPServiceUnavailable(text="slothpost is starting: go back, and try again in a moment")
        fields = {name: str(value)[:MAX_TEXT] for name, value in (await request.post()).items()}
        try:
            self._said = await self._actions.act(request.match_info["action"], fields)
        except Impossible:
            raise web.HTTPConflict(text="this is connected otherwise by now: go back, and reload the page") from None
        return web.Response(status=HTTPStatus.SEE_OTHER, headers={"location": "/"})


@web.middleware
async def _only_from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse forms of other sites, and names of other sites that lead to this machine."""
    is_foreign = request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin", "same-site")
    if request.host.partition(":")[0] not in LOCAL_HOSTS or (is_foreign and request.method != "GET"):
        raise web.HTTPForbidden(text="this page is for this machine alone")
    return await handler(request)
