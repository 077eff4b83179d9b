"""The web application as an ASGI app: pages, the API, webhooks and the beat from outside, behind one protection."""

from __future__ import annotations

from functools import cache

from litestar import Litestar, Response, Router
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from slothpost.app import Slothpost
from slothpost.errors import SlothpostError
from slothpost.model import User
from slothpost.settings import Settings
from slothpost.sources.webhooks import MAX_BODY_BYTES
from slothpost.web.api import API_ROUTES
from slothpost.web.api.problems import problem_response
from slothpost.web.api_tokens import API_TOKEN_PREFIX, ApiToken, ApiTokens
from slothpost.web.context import CONTEXT, Context, HttpRequest, web_of
from slothpost.web.large_bodies import LargeBodies
from slothpost.web.pages import PAGE_ROUTES
from slothpost.web.pages.assets import ASSETS
from slothpost.web.pages.rendering import error_page, only_sessions
from slothpost.web.problems import refused_of
from slothpost.web.tick import TICK_ROUTES
from slothpost.web.webhooks import WEBHOOK_ROUTES
from tickler.errors import TicklerError
from tickler.web import Web, WebSettings

SESSION_S = 90 * 86_400  # people come by a link that somebody makes for them, and cannot ask for one each morning

_ERRORS = (SlothpostError, TicklerError, HTTPException, Exception)


def create_app(slothpost: Slothpost) -> ASGIApp:
    """Build the ASGI app of an open slothpost."""
    settings = web_settings(slothpost.settings)
    web: Web[User] = Web(slothpost.t, "slothpost", user=slothpost.users.get, settings=settings, error_page=error_page)
    tokens = ApiTokens(slothpost.db, web.tokens(ApiToken, prefix=API_TOKEN_PREFIX, subject=lambda token: token.user))
    context = Context(slothpost, web, tokens, LargeBodies())
    app = routes()

    async def with_context(scope: Scope, receive: Receive, send: Send) -> None:
        scope[CONTEXT] = context  # type: ignore[literal-required]  # a key of ours
        await app(scope, receive, send)

    return web.protect(with_context, assets=ASSETS)


def web_settings(settings: Settings) -> WebSettings:
    """Return how the application may be reached: under its own address, and under the names of this machine."""
    return WebSettings(
        hosts=(*WebSettings().hosts, settings.host),
        https=settings.is_https,
        proxies=settings.proxies,
        session_s=SESSION_S,
        foreign=("/webhooks", "/tick"),
        probes=("/health/live",),
        bodies={"/webhooks": MAX_BODY_BYTES},
    )


@cache
def routes() -> Litestar:
    """Build the router. It serves every slothpost of the process: the context is in the scope of each request."""
    pages = Router("/", route_handlers=PAGE_ROUTES, before_request=only_sessions)
    return Litestar(
        route_handlers=[pages, *API_ROUTES, *WEBHOOK_ROUTES, *TICK_ROUTES],
        exception_handlers=dict.fromkeys(_ERRORS, _answer),
        openapi_config=None,
        request_max_body_size=None,  # the protection enforces it
        logging_config=None,
    )


def _answer(request: HttpRequest, error: Exception) -> Response[bytes]:
    """Return a page to browsers and problem+json to programs."""
    if request.scope["path"].startswith("/api/"):
        return problem_response(request, error)
    answer = web_of(request).answer(request.scope, refused_of(error))
    return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))
