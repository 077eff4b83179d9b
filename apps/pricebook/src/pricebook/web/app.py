"""The web application as an ASGI app: GraphQL, pages and the rest, behind one protection."""

from __future__ import annotations

from functools import cache

from litestar import Litestar, Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct

from pricebook.app.pricebook import Pricebook
from pricebook.app.settings import Settings
from pricebook.errors import PricebookError
from pricebook.graphql.limits import Limits
from pricebook.graphql.schema import build_schema
from pricebook.graphql.service import Graphql
from pricebook.people import Person
from pricebook.web.context import CONTEXT, Context, HttpRequest, context_of
from pricebook.web.graphql_endpoint import GRAPHQL_ROUTES
from pricebook.web.health import HEALTH_ROUTES
from pricebook.web.problems import refused_of
from pricebook.web.request_ids import RequestIds, request_id_of
from pricebook.web.tick import TICK_ROUTES
from pricebook.web.tokens import PROGRAMS, TOKEN_PREFIX, PriceToken, PriceTokens, programs
from tickler.errors import TicklerError
from tickler.web import Web, WebSettings

APPLICATION = "pricebook"  # its name in records and cookies
MAX_BODY = 100_000
SESSION_S = 90 * 86_400  # people come by a link that somebody makes for them, and cannot ask for one each morning

_ERRORS = (PricebookError, TicklerError, HTTPException, Exception)


class WebApp(Struct, frozen=True, eq=False):
    """What a server serves, the tokens that it accepts, and its sessions and links."""

    asgi: ASGIApp
    tokens: PriceTokens
    web: Web[Person]


def create_app(book: Pricebook, *, settings: WebSettings | None = None, limits: Limits | None = None) -> WebApp:
    """Build the ASGI app of an open pricebook. Without `settings`, its own say how it may be reached."""

    async def find(subject: str) -> Person | None:
        return programs() if subject == PROGRAMS else await book.people.get(subject)

    web: Web[Person] = Web(book.t, APPLICATION, user=find, settings=settings or web_settings(book.settings))
    tokens = PriceTokens(web.tokens(PriceToken, prefix=TOKEN_PREFIX, subject=lambda _: PROGRAMS))
    context = Context(book, web, tokens, Graphql(build_schema(), limits))
    app = routes()

    async def with_context(scope: Scope, receive: Receive, send: Send) -> None:
        scope[CONTEXT] = context  # type: ignore[literal-required]  # a key of ours
        await app(scope, receive, send)

    return WebApp(RequestIds(web.protect(with_context)), tokens, web)


def web_settings(settings: Settings) -> WebSettings:
    """Return how the application may be reached: under its own address, and under the names of this machine."""
    return WebSettings(
        hosts=(*WebSettings().hosts, settings.host),
        https=settings.is_https,
        proxies=settings.proxies,
        session_s=SESSION_S,
        foreign=("/tick",),
        probes=("/health",),
        max_body=MAX_BODY,
    )


@cache
def routes() -> Litestar:
    """Build the router. It serves every pricebook of the process: the context is in the scope of each request."""
    return Litestar(
        route_handlers=[*GRAPHQL_ROUTES, *HEALTH_ROUTES, *TICK_ROUTES],
        exception_handlers=dict.fromkeys(_ERRORS, _answer),
        openapi_config=None,
        request_max_body_size=None,  # the protection enforces it
        logging_config=None,
    )


def _answer(request: HttpRequest, error: Exception) -> Response[bytes]:
    """Return a page to browsers and problem+json to programs."""
    answer = context_of(request).web.answer(request.scope, refused_of(error, request_id_of(request.scope)))
    return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))
