"""The service as an ASGI app."""

from __future__ import annotations

from functools import cache
from typing import Any

from litestar import Litestar, Request, Response, Router
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Send

from tickler.client import Tickler
from tickler.errors import TicklerError
from tickler.observe.metrics import Metrics
from tickler.records.kinds import SERVER
from tickler.server.api import bulk, fires, schedules, sends, system
from tickler.server.context import CONTEXT, Context
from tickler.server.event_stream import EventStream
from tickler.server.json_body import check_bodiless
from tickler.server.middleware.caller import ADMITTED, caller_in, check_allowed
from tickler.server.middleware.gateway import Gateway
from tickler.server.middleware.idempotency import Idempotency
from tickler.server.middleware.sessions import page_sessions
from tickler.server.pages import assets, dashboard, doctor, failed, forecast, login, schedule
from tickler.server.pages import schedules as schedule_list
from tickler.server.pages.rendering import error_page
from tickler.server.problems import problem_response
from tickler.server.settings import ServerSettings
from tickler.web.forms import Forms
from tickler.web.rate_limit import RateLimit

ERRORS = (TicklerError, HTTPException, Exception)
API = (schedules, sends, fires, bulk, system)
PAGES = (dashboard, forecast, schedule_list, schedule, failed, doctor, login)


def make_app(
    tickler: Tickler, settings: ServerSettings, *, runs_here: bool = False, event_stream: EventStream | None = None
) -> ASGIApp:
    """Build the app on an open Tickler. `runs_here`: a worker runs in this process.

    Pass an `event_stream` to have it `follow` the workers of other processes too.
    """
    records, clock = tickler.store.records, tickler.clock
    sessions = page_sessions(records, clock, settings)
    forms = Forms(records, clock, record_kind=SERVER, otherwise="use the API under /v1 instead")
    event_stream = event_stream or EventStream()
    tickler.listen(event_stream)
    context = Context(tickler, settings, sessions, forms, event_stream, Metrics(tickler), runs_here=runs_here)
    app = routes()

    async def with_context(scope: Any, receive: Receive, send: Send) -> None:
        scope[CONTEXT] = context
        await app(scope, receive, send)

    idempotent = Idempotency(with_context, records, clock)
    return Gateway(idempotent, settings, tickler.tokens, sessions, RateLimit(settings.rate), context.failures)


@cache
def routes() -> Litestar:
    """Build the router. It serves every Tickler of the process: the context is in the scope of each request."""
    of_api = [each for module in API for each in module.HANDLERS]
    of_pages = [each for module in PAGES for each in module.HANDLERS]
    pages = Router("/", route_handlers=of_pages, exception_handlers=dict.fromkeys(ERRORS, error_page))
    return Litestar(
        route_handlers=[*of_api, pages, assets.asset],
        before_request=_authorize,  # not guards: Litestar copies the handler for each of them
        exception_handlers=dict.fromkeys(ERRORS, _answer),
        openapi_config=None,
        request_max_body_size=None,  # the gateway enforces it
        logging_config=None,
    )


async def _authorize(request: Request[Any, Any, Any]) -> None:
    check_allowed(caller_in(request.scope), request.route_handler.opt)
    request.scope[ADMITTED] = True  # type: ignore[literal-required]  # a key of ours
    check_bodiless(request)


def _answer(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Return an HTML page to browsers and problem+json to programs."""
    if request.scope["path"].startswith(("/v1/", "/static/")) or "text/html" not in request.headers.get("accept", ""):
        return problem_response(request, error)
    return error_page(request, error)
