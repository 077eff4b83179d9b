"""Makes the OpenAPI 3.1 document of the operations and their types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import msgspec

from slothpost.model import ChannelName
from slothpost.web.api.decoding import JSON
from slothpost.web.api.operation import NoBody, Operation
from slothpost.web.api.operations import OPERATIONS
from slothpost.web.api.problems import MEDIA_TYPE, Problem

API_VERSION = "1.0"

_REFERENCE = "#/components/schemas/{name}"
_TAGS = {
    "account": "The user whose token it is",
    "products": "Products, their channels with plans, and what happened to them",
    "posts": "Posts, and what is decided about them",
    "review": "What waits for a decision",
}
_NAMES: dict[str, dict[str, Any]] = {
    "product": {"type": "string", "minLength": 1, "description": "The id of a product of yours."},
    "post": {"type": "string", "minLength": 1, "description": "The id of a post of yours."},
    "channel": {"type": "string", "enum": list(get_args(ChannelName))},
}
_PROBLEMS = {
    400: "The body is not JSON",
    401: "No valid token",
    403: "The token lacks the scope",
    404: "There is no such thing, or it is somebody else's",
    408: "The body did not arrive in time",
    409: "It does not fit the present state, or somebody else changed it meanwhile",
    413: "The body is too long",
    414: "The path or the query is too long",
    415: "The body is not sent as JSON",
    421: "Unknown host name",
    422: "A field cannot be used: `field` says which",
    429: "Too many requests: see `retry-after`",
    431: "The headers are too long",
    503: "The store does not answer",
}
_ALWAYS = (400, 401, 403, 404, 414, 421, 422, 429, 431, 503)
_DESCRIPTION = """\
What the pages of slothpost do, for your scripts. Create a token in the settings, and send it as `Authorization: Bearer sp_…`. \
It acts for you: `read` looks, and `write` changes and decides. Instants have an offset."""


@cache
def document() -> dict[str, Any]:
    """Return the document as plain values."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"/api{operation.path}", {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "slothpost", "version": API_VERSION, "description": _DESCRIPTION},
        "servers": [{"url": "/", "description": "The installation that serves this document"}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.path.split("/")[1]],
        "summary": operation.summary,
        "description": f"Needs a token with the scope `{operation.scope}`.",
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": _responses(operation),
    }
    if operation.body is not NoBody:
        described["requestBody"] = {"required": bool(_required(operation.body)), "content": _content(JSON, operation.body)}
    return described


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": _NAMES[name]} for name in operation.names]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    """Describe the query by its type: the bounds and defaults are those of the code."""
    (_,), components = msgspec.json.schema_components([operation.query], ref_template=_REFERENCE)
    properties = components[operation.query.__name__]["properties"]
    return [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()]


def _responses(operation: Operation) -> dict[str, Any]:
    good = {"description": operation.summary, "content": _content(JSON, operation.response)}
    problems = {
        str(status): {"description": _PROBLEMS[status], "content": _content(MEDIA_TYPE, Problem)}
        for status in sorted(_errors(operation))
    }
    return {str(operation.status): good, **problems}


def _errors(operation: Operation) -> Iterator[int]:
    yield from _ALWAYS
    if operation.method != "GET":
        yield from (408, 409, 413, 415)


def _content(media_type: str, kind: type) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": _REFERENCE.format(name=kind.__name__)}}}


def _required(kind: type) -> list[str]:
    return [field.name for field in msgspec.structs.fields(kind) if field.required]


def _schemas() -> dict[str, Any]:
    bodies = [operation.body for operation in OPERATIONS if operation.body is not NoBody]
    responses = [operation.response for operation in OPERATIONS]
    _, components = msgspec.json.schema_components(dict.fromkeys([Problem, *responses, *bodies]), ref_template=_REFERENCE)
    for schema in components.values():  # a generated client would send a default with every request, and freeze it
        for field in schema.get("properties", {}).values():
            field.pop("default", None)
    return components
