"""The web application as an ASGI app: GraphQL behind one protection."""

from __future__ import annotations

import logging
from functools import cache

from graphql import GraphQLSchema
from litestar import Litestar, Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct

from pricebook.access.price_reader import PriceReader
from pricebook.graphql.limits import Limits
from pricebook.graphql.schema import build_schema
from pricebook.graphql.service import Graphql
from pricebook.web.context import CONTEXT, Context, HttpRequest, context_of
from pricebook.web.graphql_endpoint import GRAPHQL_ROUTES
from pricebook.web.tokens import TOKEN_PREFIX, PriceToken, PriceTokens
from tickler import Tickler
from tickler.errors import StoreUnavailable, TicklerError
from tickler.web import Refused, Web, WebSettings

MAX_BODY = 100_000

log = logging.getLogger("pricebook.web")


class WebApp(Struct, frozen=True, eq=False):
    """What a server serves, and the tokens that it accepts."""

    asgi: ASGIApp
    tokens: PriceTokens


def create_app(
    t: Tickler,
    prices: PriceReader,
    *,
    settings: WebSettings | None = None,
    limits: Limits | None = None,
    schema: GraphQLSchema | None = None,
) -> WebApp:
    """Build the ASGI app on an open Tickler."""
    web: Web[str] = Web(t, "pricebook", user=_itself, settings=settings or WebSettings(max_body=MAX_BODY))
    tokens = PriceTokens(web.tokens(PriceToken, prefix=TOKEN_PREFIX))
    context = Context(t, web, prices, Graphql(schema or build_schema(), limits))
    app = routes()

    async def with_context(scope: Scope, receive: Receive, send: Send) -> None:
        scope[CONTEXT] = context  # type: ignore[literal-required]  # a key of ours
        await app(scope, receive, send)

    return WebApp(web.protect(with_context), tokens)


@cache
def routes() -> Litestar:
    """Build the router. It serves every pricebook of the process: the context is in the scope of each request."""
    return Litestar(
        route_handlers=[*GRAPHQL_ROUTES],
        exception_handlers=dict.fromkeys((TicklerError, HTTPException, Exception), _answer),
        openapi_config=None,
        request_max_body_size=None,  # the protection enforces it
        logging_config=None,
    )


async def _itself(subject: str) -> str:
    """Return the user of a token, which is the token: there are no accounts of people."""
    return subject


def _answer(request: HttpRequest, error: Exception) -> Response[bytes]:
    answer = context_of(request).web.answer(request.scope, _refused(error))
    return Response(answer.body, status_code=answer.status, headers=dict(answer.headers))


def _refused(error: Exception) -> Refused:
    """Return the refusal that an error means. The details of an unexpected error go to the log only."""
    match error:
        case Refused():
            return error
        case HTTPException():
            detail = "there is no such page: queries go to /graphql" if error.status_code == 404 else error.detail
            return Refused(error.status_code, detail or "this request cannot be answered", headers=dict(error.headers or {}))
        case StoreUnavailable():
            return Refused(503, "the store does not answer: try again in a moment", headers={"retry-after": "5"})
    log.error("a request failed", exc_info=error)
    return Refused(500, "internal error: see the log of pricebook")
