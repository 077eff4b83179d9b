"""Gives every handler slothpost, the parts of `tickler.web`, and the user of its request."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from litestar import Request

from slothpost.app import Slothpost
from slothpost.model import Product, User
from slothpost.web.api_tokens import ApiScope, ApiTokens
from slothpost.web.large_bodies import LargeBodies
from tickler.web import Refused, Web

CONTEXT = "slothpost.context"  # key in the ASGI scope

HttpRequest = Request[Any, Any, Any]


class Context(msgspec.Struct, frozen=True, eq=False):
    """What the requests of one application share."""

    slothpost: Slothpost
    web: Web[User]
    tokens: ApiTokens
    large_bodies: LargeBodies


def context_of(request: HttpRequest) -> Context:
    context: Context = request.scope[CONTEXT]  # type: ignore[literal-required]  # a key of ours
    return context


def slothpost_of(request: HttpRequest) -> Slothpost:
    return context_of(request).slothpost


def web_of(request: HttpRequest) -> Web[User]:
    return context_of(request).web


def tokens_of(request: HttpRequest) -> ApiTokens:
    return context_of(request).tokens


def user_of(request: HttpRequest, scope: ApiScope | None = None) -> User:
    """Return who sends the request, by session or token. Nobody is refused with 401, a token without the scope with 403."""
    return web_of(request).visitor(request.scope).require(scope)


def operator_of(request: HttpRequest) -> User:
    """Return the user if it is the operator; for everybody else there is no such page."""
    user = user_of(request)
    if not user.is_operator:
        raise Refused(404, "there is no such page")
    return user


def part(request: HttpRequest, name: str) -> str:
    """Return a part of the path by the name that the route gives it."""
    return str(request.path_params[name])


async def products_of(request: HttpRequest) -> list[Product]:
    """Return the products of the user, the oldest first."""
    return await slothpost_of(request).products.list(user_of(request).id)


def now_of(request: HttpRequest) -> datetime:
    return slothpost_of(request).now()
