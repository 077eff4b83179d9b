"""`/graphql`: queries by POST and GET, and mutations by POST."""

from __future__ import annotations

from typing import Any

from graphql import GraphQLError
from litestar import Response, route
from litestar.enums import HttpMethod

from pricebook.errors import PricebookError
from pricebook.graphql.context import RequestContext
from pricebook.graphql.executor.executor import Prepared
from pricebook.graphql.service import GraphqlAnswer, refused
from pricebook.graphql.versions import etag_of, stores_of
from pricebook.web.context import HttpRequest, context_of, graphql_context
from pricebook.web.graphql_request import read_body, read_query
from tickler.errors import TicklerError
from tickler.web import Refused

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"


@route("/graphql", http_method=[HttpMethod.GET, HttpMethod.POST], status_code=200)
async def graphql(request: HttpRequest) -> Response[bytes]:
    """Run an operation. A query by GET about the prices of stores has an ETag, which changes when they do."""
    shared, context = context_of(request), graphql_context(request)
    is_get = request.method == "GET"
    try:
        sent = read_query(request.scope["query_string"]) if is_get else read_body(await _json_body(request))
    except GraphQLError as error:
        return _response(request, refused([error]), 400)
    prepared = shared.graphql.prepare(sent)
    if isinstance(prepared, GraphqlAnswer):
        return _response(request, prepared)
    if is_get and not prepared.is_query:
        raise Refused(405, "send mutations by POST: an address must change nothing", headers={"allow": "POST"})
    etag = await _etag(prepared, context) if is_get else None
    if etag is None:
        return _response(request, await shared.graphql.run(prepared, context))
    headers = {"etag": etag, "cache-control": "private, no-cache", "vary": "authorization, accept"}
    if _is_known(request, etag):
        return Response(b"", status_code=304, headers=headers)
    return _response(request, await shared.graphql.run(prepared, context), headers=headers)


GRAPHQL_ROUTES: list[Any] = [graphql]


async def _json_body(request: HttpRequest) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refused(415, f"send the operation as JSON, with content-type: {JSON}", "content-type")
    return await request.body()


async def _etag(prepared: Prepared, context: RequestContext) -> str | None:
    """Return the ETag of an answer, which is that of before its prices are read: what changes in between is read again."""
    stores = stores_of(prepared)
    try:
        return None if stores is None else await etag_of(prepared, stores, context.prices)
    except (PricebookError, TicklerError):
        return None  # the answer says why


def _is_known(request: HttpRequest, etag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return "*" in known or etag.removeprefix("W/") in known


def _response(
    request: HttpRequest, answer: GraphqlAnswer, status: int | None = None, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """Answer in the media type that the client accepts. In the older one, status 200 says only that GraphQL has answered."""
    accepts = GRAPHQL_JSON in request.headers.get("accept", "")
    code = status or (400 if answer.is_refused and accepts else 200)
    return Response(answer.body, status_code=code, media_type=GRAPHQL_JSON if accepts else JSON, headers=headers)
