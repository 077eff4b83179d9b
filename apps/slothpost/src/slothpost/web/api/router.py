"""Serves the operations: finds the user, reads the request, and writes the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import Response, Router, get, route
from litestar.handlers import HTTPRouteHandler

from slothpost.web.api.decoding import JSON, read_body, read_query
from slothpost.web.api.openapi import document
from slothpost.web.api.operation import Call, Operation
from slothpost.web.api.operations import OPERATIONS
from slothpost.web.api.problems import PROBLEM_HANDLERS
from slothpost.web.context import HttpRequest, slothpost_of, user_of


async def answer(request: HttpRequest, operation: Operation) -> Response[bytes]:
    """Do what a request asks for."""
    user = user_of(request, operation.scope)
    query = read_query(operation.query, request.scope["query_string"])
    body = read_body(operation.body, await request.body(), request.headers.get("content-type", ""))
    names: dict[str, str] = dict(request.path_params)
    found = await operation.run(Call(slothpost_of(request), user, names, query, body))
    return Response(msgspec.json.encode(found), status_code=operation.status, media_type=JSON)


def handler_of(path: str, operations: Sequence[Operation]) -> HTTPRouteHandler:
    """Return the route of all operations of one path: of several routes, Litestar would name the methods of one in `allow`."""
    by_method: dict[str, Operation] = {operation.method: operation for operation in operations}

    async def handle(request: HttpRequest) -> Response[bytes]:
        return await answer(request, by_method[request.method])

    return route(path.replace("}", ":str}"), http_method=[operation.method for operation in operations], status_code=200)(handle)


@get("/openapi.json")
async def describe(request: HttpRequest) -> Response[bytes]:
    """Describe the API. It needs no token, and shows nothing of any user."""
    return Response(msgspec.json.encode(document()), media_type=JSON)


_PATHS = dict.fromkeys(operation.path for operation in OPERATIONS)

API_ROUTES: list[Any] = [
    Router(
        "/api",
        route_handlers=[*(handler_of(path, [each for each in OPERATIONS if each.path == path]) for path in _PATHS), describe],
        exception_handlers=PROBLEM_HANDLERS,
    )
]
