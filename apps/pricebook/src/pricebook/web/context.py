"""What the requests of one application share."""

from __future__ import annotations

from typing import Any

from litestar import Request
from msgspec import Struct

from pricebook.access.price_reader import PriceReader
from pricebook.graphql.service import Graphql
from tickler import Tickler
from tickler.web import Web

CONTEXT = "pricebook.context"  # key in the ASGI scope

HttpRequest = Request[Any, Any, Any]


class Context(Struct, frozen=True, eq=False):
    t: Tickler
    web: Web[str]
    prices: PriceReader
    graphql: Graphql


def context_of(request: HttpRequest) -> Context:
    context: Context = request.scope[CONTEXT]  # type: ignore[literal-required]  # a key of ours
    return context
