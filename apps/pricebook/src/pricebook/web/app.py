"""The web application as an ASGI app: GraphQL and what pages add, behind one protection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from litestar import Litestar, Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.access.price_reader import PriceReader
from pricebook.errors import PricebookError
from pricebook.graphql.limits import Limits
from pricebook.graphql.schema import build_schema
from pricebook.graphql.service import Graphql
from pricebook.web.context import CONTEXT, Context, HttpRequest, context_of
from pricebook.web.graphql_endpoint import GRAPHQL_ROUTES
from pricebook.web.problems import refused_of
from pricebook.web.request_ids import RequestIds, request_id_of
from pricebook.web.tokens import PROGRAMS, TOKEN_PREFIX, PriceToken, PriceTokens
from tickler import Tickler
from tickler.errors import TicklerError
from tickler.web import Assets, Refused, Web, WebSettings

MAX_BODY = 100_000

ErrorPage = Callable[[Mapping[str, Any], Refused], str | None]
FindPerson = Callable[[str], Awaitable[Caller | None]]


async def nobody(_: str) -> None:
    """There are no people: only programs with tokens are answered."""


class Site(Struct, frozen=True, eq=False, kw_only=True):
    """What pages for people add. `find_person` returns who a session is of."""

    routes: tuple[Any, ...] = ()
    assets: Assets | None = None
    error_page: ErrorPage | None = None
    find_person: FindPerson = nobody


class WebApp(Struct, frozen=True, eq=False):
    """What a server serves, the tokens that it accepts, and its sessions and links."""

    asgi: ASGIApp
    tokens: PriceTokens
    web: Web[Caller]


def create_app(
    t: Tickler,
    prices: PriceReader,
    *,
    settings: WebSettings | None = None,
    limits: Limits | None = None,
    site: Site | None = None,
) -> WebApp:
    """Build the ASGI app on an open Tickler."""
    site = site or Site()

    async def find(subject: str) -> Caller | None:
        return Caller(PROGRAMS, frozenset()) if subject == PROGRAMS else await site.find_person(subject)

    settings = settings or WebSettings(max_body=MAX_BODY)
    web: Web[Caller] = Web(t, "pricebook", user=find, settings=settings, error_page=site.error_page)
    tokens = PriceTokens(web.tokens(PriceToken, prefix=TOKEN_PREFIX, subject=lambda _: PROGRAMS))
    context = Context(t, web, tokens, prices, Graphql(build_schema(), limits))
    app = routes(site.routes)

    async def with_context(scope: Scope, receive: Receive, send: Send) -> None:
        scope[CONTEXT] = context  # type: ignore[literal-required]  # a key of ours
        await app(scope, receive, send)

    return WebApp(RequestIds(web.protect(with_context, assets=site.assets)), tokens, web)


@cache
def routes(pages: tuple[Any, ...] = ()) -> Litestar:
    """Build the router. It serves every pricebook of the process: the context is in the scope of each request."""
    return Litestar(
        route_handlers=[*GRAPHQL_ROUTES, *pages],
        exception_handlers=dict.fromkeys((PricebookError, TicklerError, HTTPException, Exception), _answer),
        openapi_config=None,
        request_max_body_size=None,  # the protection enforces it
        logging_config=None,
    )


def _answer(request: HttpRequest, error: Exception) -> Response[bytes]:
    answer = context_of(request).web.answer(request.scope, refused_of(error, request_id_of(request.scope)))
    return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))
