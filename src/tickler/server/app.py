"""The service as an ASGI app."""

from __future__ import annotations

from functools import cache
from typing import Any

from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Send

from tickler.client import Tickler
from tickler.errors import TicklerError
from tickler.observe.metrics import Metrics
from tickler.server.api import bulk, fires, schedules, system
from tickler.server.context import SERVICE, Context
from tickler.server.event_stream import EventStream
from tickler.server.json_body import check_bodiless
from tickler.server.middleware.caller import ADMITTED, caller_of, check_allowed
from tickler.server.middleware.gateway import Gateway
from tickler.server.middleware.idempotency import Idempotency
from tickler.server.middleware.rate_limit import RateLimit, loop_time
from tickler.server.middleware.sessions import Sessions
from tickler.server.pages import router as pages
from tickler.server.pages.rendering import error_page
from tickler.server.problems import answer
from tickler.server.settings import ServerSettings


def make_app(tickler: Tickler, settings: ServerSettings, *, runs_here: bool = False, live: EventStream | None = None) -> ASGIApp:
    """Everything on one open Tickler. `runs_here` says that a runner works in this process.

    `live` hears of what happens; whoever passes one may have it `follow` workers elsewhere.
    """
    sessions = Sessions(tickler.store.records, tickler.clock, settings)
    live = live or EventStream()
    tickler.listen(live)
    service = Context(tickler, settings, sessions, live, Metrics(tickler), runs_here=runs_here)
    app = routes()

    async def handled(scope: Any, receive: Receive, send: Send) -> None:
        scope[SERVICE] = service
        await app(scope, receive, send)

    once = Idempotency(handled, tickler.store.records, tickler.clock)
    return Gateway(once, settings, tickler.tokens, sessions, RateLimit(settings.rate, loop_time), service.failures)


@cache
def routes() -> Litestar:
    """All that answers, for whatever service is in the scope of a request."""
    return Litestar(
        route_handlers=[*schedules.HANDLERS, *fires.HANDLERS, *bulk.HANDLERS, *system.HANDLERS, pages.ROUTER, pages.ASSETS],
        before_request=_admitted,  # not guards: for each of those Litestar copies the handler
        exception_handlers={TicklerError: _answer, HTTPException: _answer, Exception: _answer},
        openapi_config=None,
        request_max_body_size=None,  # the door counts
        logging_config=None,
    )


async def _admitted(request: Request[Any, Any, Any]) -> None:
    check_allowed(caller_of(request.scope), request.route_handler.opt)
    request.scope[ADMITTED] = True  # type: ignore[literal-required]  # a key of ours
    check_bodiless(request)


def _answer(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """People get a page, programs a problem."""
    if request.scope["path"].startswith(("/v1/", "/static/")) or "text/html" not in request.headers.get("accept", ""):
        return answer(request, error)
    return error_page(request, error)
