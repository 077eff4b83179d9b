"""`/graphql`: queries by POST and GET, and mutations by POST.

It speaks ASGI itself: requests and responses of the framework take as long as reading a page of prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphql import GraphQLError
from litestar import asgi
from litestar.enums import ScopeType
from litestar.types import HTTPScope, Receive, Scope, Send

from pricebook.errors import PricebookError
from pricebook.graphql.context import RequestContext
from pricebook.graphql.executor.executor import Prepared
from pricebook.graphql.service import GraphqlAnswer, refused
from pricebook.graphql.versions import etag_of, stores_of
from pricebook.web.context import context_in, graphql_context
from pricebook.web.graphql_request import read_body, read_query
from tickler.errors import TicklerError
from tickler.web import Refused

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
METHODS = ("GET", "POST")


class _Response(NamedTuple):
    body: bytes
    status: int
    headers: Mapping[str, str]


class _Disconnected(Exception):
    """The client has gone, or its request was refused while it arrived."""


@asgi("/graphql", copy_scope=False)
async def graphql(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != ScopeType.HTTP or scope["method"] not in METHODS:
        raise Refused(405, "this address does not support this method", headers={"allow": ", ".join(METHODS)})
    try:
        response = await _answer(scope, receive)
    except _Disconnected:
        return
    headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


GRAPHQL_ROUTES: list[Any] = [graphql]


async def _answer(scope: HTTPScope, receive: Receive) -> _Response:
    """Run an operation. A query by GET about the prices of stores has an ETag, which changes when they do."""
    shared, context = context_in(scope), graphql_context(scope)
    is_get = scope["method"] == "GET"
    try:
        sent = read_query(scope["query_string"]) if is_get else read_body(await _json_body(scope, receive))
    except GraphQLError as error:
        return _response(scope, refused([error]), 400)
    prepared = shared.graphql.prepare(sent)
    if isinstance(prepared, GraphqlAnswer):
        return _response(scope, prepared)
    if is_get and not prepared.is_query:
        raise Refused(405, "send mutations by POST: an address must change nothing", headers={"allow": "POST"})
    etag = await _etag(prepared, context) if is_get else None
    if etag is None:
        return _response(scope, await shared.graphql.run(prepared, context))
    headers = {"etag": etag, "cache-control": "private, no-cache", "vary": "authorization, accept"}
    if _is_known(scope, etag):
        return _Response(b"", 304, headers)
    return _response(scope, await shared.graphql.run(prepared, context), headers=headers)


async def _json_body(scope: Scope, receive: Receive) -> bytes:
    kind = _header(scope, b"content-type").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refused(415, f"send the operation as JSON, with content-type: {JSON}", "content-type")
    parts = []
    while True:
        message: Any = await receive()
        if message["type"] != "http.request":
            raise _Disconnected
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _etag(prepared: Prepared, context: RequestContext) -> str | None:
    """Return the ETag of an answer, which is that of before its prices are read: what changes in between is read again."""
    stores = stores_of(prepared)
    try:
        return None if stores is None else await etag_of(prepared, stores, context.prices)
    except (PricebookError, TicklerError):
        return None  # the answer says why


def _is_known(scope: Scope, etag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in _header(scope, b"if-none-match").split(",")]
    return "*" in known or etag.removeprefix("W/") in known


def _response(
    scope: Scope, answer: GraphqlAnswer, status: int | None = None, headers: Mapping[str, str] | None = None
) -> _Response:
    """Answer in the media type that the client accepts. In the older one, status 200 says only that GraphQL has answered."""
    accepts = GRAPHQL_JSON in _header(scope, b"accept")
    code = status or (400 if answer.is_refused and accepts else 200)
    return _Response(answer.body, code, {"content-type": GRAPHQL_JSON if accepts else JSON, **(headers or {})})


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for each, value in scope["headers"] if each == name), "")
