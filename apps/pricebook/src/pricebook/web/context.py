"""Gives every handler pricebook, the parts of `tickler.web`, and who sends its request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Request
from msgspec import Struct

from pricebook.access.caller import Caller
from pricebook.app.pricebook import Pricebook
from pricebook.graphql.context import RequestContext
from pricebook.graphql.service import Graphql
from pricebook.people import Person
from pricebook.web.request_ids import request_id_of
from pricebook.web.tokens import PriceTokens, caller_of
from tickler.web import Web

CONTEXT = "pricebook.context"  # key in the ASGI scope

HttpRequest = Request[Any, Any, Any]


class Context(Struct, frozen=True, eq=False):
    """What the requests of one application share."""

    book: Pricebook
    web: Web[Person]
    tokens: PriceTokens
    graphql: Graphql


def context_of(request: HttpRequest) -> Context:
    return context_in(request.scope)


def context_in(scope: Mapping[str, Any]) -> Context:
    context: Context = scope[CONTEXT]
    return context


def book_of(request: HttpRequest) -> Pricebook:
    return context_of(request).book


def web_of(request: HttpRequest) -> Web[Person]:
    return context_of(request).web


def caller_of_request(request: HttpRequest) -> Caller:
    """Return who asks, by token or session. Nobody is refused with 401."""
    return caller_of(web_of(request).visitor(request.scope))


def graphql_context(scope: Mapping[str, Any]) -> RequestContext:
    """Return what the resolvers of a request share."""
    shared = context_in(scope)
    caller = caller_of(shared.web.visitor(scope))
    return RequestContext(shared.book, caller, shared.book.now(), request=request_id_of(scope))
