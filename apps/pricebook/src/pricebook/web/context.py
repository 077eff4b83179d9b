"""What the requests of one application share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from litestar import Request
from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.access.price_reader import PriceReader
from pricebook.graphql.context import RequestContext
from pricebook.graphql.service import Graphql
from pricebook.web.request_ids import request_id_of
from pricebook.web.tokens import PriceTokens, caller_of
from tickler import Tickler
from tickler.web import Web

CONTEXT = "pricebook.context"  # key in the ASGI scope

HttpRequest = Request[Any, Any, Any]


class Context(Struct, frozen=True, eq=False):
    t: Tickler
    web: Web[Caller]
    tokens: PriceTokens
    prices: PriceReader
    graphql: Graphql


def context_of(request: HttpRequest) -> Context:
    context: Context = request.scope[CONTEXT]  # type: ignore[literal-required]  # a key of ours
    return context


def caller_of_request(request: HttpRequest) -> Caller:
    """Return who asks, by token or session. Nobody is refused with 401."""
    return caller_of(context_of(request).web.visitor(request.scope))


def now_of(request: HttpRequest) -> datetime:
    return datetime.fromtimestamp(context_of(request).t.now_ms() / 1000, UTC)


def graphql_context(request: HttpRequest) -> RequestContext:
    """Return what the resolvers of a request share."""
    return RequestContext(
        context_of(request).prices, caller_of_request(request), now_of(request), request=request_id_of(request.scope)
    )
