"""A local App Store: the public lookup of apps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any, Self

from aiohttp import web

from slothpost.standins.faults import Faults, FaultyAnswers
from slothpost.standins.loopback import Loopback


class AppStoreStandIn:
    """`async with AppStoreStandIn(now=…) as store` serves the lookup at `store.url`. Too many requests are answered with 403."""

    def __init__(self, *, now: Callable[[], datetime], port: int = 0) -> None:
        self.url = ""
        self.calls: list[str] = []  # the query of each request
        self.faults = Faults(publishing="/")
        self._apps: dict[tuple[str, str], dict[str, Any]] = {}
        self._now = now
        self._server = Loopback(port)

    def release(
        self,
        app: int,
        version: str,
        *,
        name: str = "Teapot",
        notes: str | None = None,
        at: datetime | None = None,
        country: str = "us",
    ) -> None:
        """Put a version of an app into the store of a country, in place of the one before."""
        self._apps[str(app), country] = {
            "wrapperType": "software",
            "trackId": app,
            "trackName": name,
            "version": version,
            "releaseNotes": notes,
            "releaseDate": "2020-01-01T08:00:00Z",
            "currentVersionReleaseDate": f"{at or self._now():%Y-%m-%dT%H:%M:%SZ}",
            "trackViewUrl": f"https://apps.apple.com/{country}/app/id{app}?uo=4",
        }

    async def __aenter__(self) -> Self:
        answers = FaultyAnswers(self.faults, self._server.stopping, text_of=_no_text, limited=_limited)

        @web.middleware
        async def middleware(request: web.Request, handler: Any) -> web.StreamResponse:
            self.calls.append(request.query_string)
            return await answers.answer(request, handler)

        app = web.Application(middlewares=[middleware])
        app.add_routes([web.get("/lookup", self._look_up)])
        self.url = await self._server.start(app)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.stop()

    async def _look_up(self, request: web.Request) -> web.Response:
        found = self._apps.get((request.query.get("id", ""), request.query.get("country", "us")))
        content = {"resultCount": 0 if found is None else 1, "results": [] if found is None else [found]}
        return web.json_response(content, content_type="text/javascript")


def _limited(reset_at: datetime | None) -> web.Response:
    return web.Response(status=HTTPStatus.FORBIDDEN)


async def _no_text(request: web.Request) -> str:
    return ""
