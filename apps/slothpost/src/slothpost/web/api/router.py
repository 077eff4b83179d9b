"""Serves the operations: finds the user, reads the request, and writes the answer."""

from __future__ import annotations

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


def handler_of(operation: Operation) -> HTTPRouteHandler:
    """Return the route of an operation."""

    async def handle(request: HttpRequest) -> Response[bytes]:
        user = user_of(request, operation.scope)
        query = read_query(operation.query, request.scope["query_string"])
        body = read_body(operation.body, await request.body(), request.headers.get("content-type", ""))
        names: dict[str, str] = dict(request.path_params)
        answer = await operation.run(Call(slothpost_of(request), user, names, query, body))
        return Response(msgspec.json.encode(answer), status_code=operation.status, media_type=JSON)

    path = operation.path.replace("}", ":str}")
    return route(path, http_method=[operation.method], status_code=operation.status, opt={"operation": operation})(handle)


@get("/openapi.json")
async def describe(request: HttpRequest) -> Response[bytes]:
    """Describe the API. It needs no token, and shows nothing of any user."""
    return Response(msgspec.json.encode(document()), media_type=JSON)


API_ROUTES: list[Any] = [
    Router(
        "/api",
        route_handlers=[*(handler_of(operation) for operation in OPERATIONS), describe],
        exception_handlers=PROBLEM_HANDLERS,
    )
]
