"""The web application as an ASGI app: GraphQL, pages and the rest, behind one protection."""

from __future__ import annotations

from functools import cache
from typing import Any

from litestar import Litestar, Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct

from pricebook.app.pricebook import Pricebook
from pricebook.errors import PricebookError
from pricebook.graphql.limits import Limits
from pricebook.graphql.schema import build_schema
from pricebook.graphql.service import Graphql
from pricebook.pages.assets import ASSETS
from pricebook.pages.rendering import error_page
from pricebook.pages.routes import PAGE_ROUTES
from pricebook.pages.uploads import FILES, PASTED
from pricebook.people import Person
from pricebook.web.bulk_endpoints import BULK_ROUTES, LARGE_BODIES
from pricebook.web.context import CONTEXT, Context, HttpRequest, context_of
from pricebook.web.graphql_endpoint import GRAPHQL_ROUTES
from pricebook.web.health import HEALTH_ROUTES
from pricebook.web.problems import refused_of
from pricebook.web.request_ids import RequestIds, request_id_of
from pricebook.web.settle_endpoint import SETTLE_ROUTES
from pricebook.web.tick import TICK_ROUTES
from pricebook.web.tokens import PriceTokens
from pricebook.web.visitors import make_web, price_tokens, web_settings
from tickler.errors import TicklerError
from tickler.web import Web, WebSettings

MAX_QUERY = 100_000
MAX_PASTED = 1_048_576
BODIES = {"/graphql": MAX_QUERY, FILES: None, PASTED: MAX_PASTED, **LARGE_BODIES}  # None: files are read as they come
FOR_PROGRAMS = ("/graphql", "/tick", "/settle", "/bulk", "/export", "/health")

_ERRORS = (PricebookError, TicklerError, HTTPException, Exception)


class WebApp(Struct, frozen=True, eq=False):
    """What a server serves, the tokens that it accepts, and its sessions and links."""

    asgi: ASGIApp
    tokens: PriceTokens
    web: Web[Person]


def create_app(book: Pricebook, *, settings: WebSettings | None = None, limits: Limits | None = None) -> WebApp:
    """Build the ASGI app of an open pricebook. Without `settings`, its own say how it may be reached."""
    web = make_web(book, settings or web_settings(book.settings, BODIES), error_page)
    tokens = price_tokens(web)
    context = Context(book, web, tokens, Graphql(build_schema(), limits))
    app = routes()

    async def with_context(scope: Scope, receive: Receive, send: Send) -> None:
        scope[CONTEXT] = context  # type: ignore[literal-required]  # a key of ours
        await app(scope, receive, send)

    return WebApp(RequestIds(web.protect(with_context, assets=ASSETS)), tokens, web)


@cache
def routes() -> Litestar:
    """Build the router. It serves every pricebook of the process: the context is in the scope of each request."""
    return Litestar(
        route_handlers=[*GRAPHQL_ROUTES, *BULK_ROUTES, *SETTLE_ROUTES, *HEALTH_ROUTES, *TICK_ROUTES, *PAGE_ROUTES],
        exception_handlers=dict.fromkeys(_ERRORS, _answer),
        openapi_config=None,
        request_max_body_size=None,  # the protection enforces it
        logging_config=None,
    )


def _answer(request: HttpRequest, error: Exception) -> Response[bytes]:
    """Return problem+json to programs, and a page to browsers that ask for one."""
    scope: dict[str, Any] = dict(request.scope)
    if scope["path"].startswith(FOR_PROGRAMS):
        scope["headers"] = [each for each in scope["headers"] if each[0] != b"accept"]
    answer = context_of(request).web.answer(scope, refused_of(error, request_id_of(scope)))
    return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))
