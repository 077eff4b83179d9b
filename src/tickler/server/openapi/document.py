"""Makes the OpenAPI 3.1 document of the routes and types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from tickler.fires.fires import MAX_FIRE_ID_LENGTH
from tickler.model.fire import FireState
from tickler.model.schedule import MAX_NAME_BYTES, State
from tickler.model.target import MAX_URL_LENGTH
from tickler.server.json_body import JSON, MERGE_PATCH, NDJSON
from tickler.server.middleware.idempotency import MAX_KEY_LENGTH
from tickler.server.openapi import types
from tickler.server.openapi.routes import ROUTES, TAGS, Route
from tickler.server.openapi.schemas import schemas_of
from tickler.server.query_params import BUDGET_MS, LIMIT, PREVIEW_COUNT, NumberParam
from tickler.version import VERSION
from tickler.web.problems import MEDIA_TYPE, Problem
from tickler.when import parse_when
from tickler.when.parsing import MAX_TEXT_LENGTH

_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES, "pattern": types.PRINTABLE}
_INSTANT = {
    "anyOf": [
        {"type": "integer", "minimum": types.EARLIEST_MS, "maximum": types.LATEST_MS},
        {"type": "string", **types.INSTANT_TEXT},
    ],
    "description": "Milliseconds since the epoch, or ISO 8601 with an offset.",
}


def _number(parameter: NumberParam) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": parameter.maximum, "default": parameter.default}


_CURSOR = {"type": "string", "minLength": 1, "description": "The `next` of an earlier page."}
_PARAMETERS: Mapping[str, dict[str, Any]] = {
    "owner": _TEXT,
    "key": _TEXT,
    "key_prefix": {**_TEXT, "minLength": 0, "pattern": types.PRINTABLE.replace("+", "*")},
    "state": {"type": "string", "enum": list(get_args(State))},
    "failing": {"type": "string", "enum": ["true", "false"], "description": "`true`: only schedules that have a dead fire."},
    "fire_state": {"type": "string", "enum": list(get_args(FireState))},
    "limit": _number(LIMIT),
    "after": {**_CURSOR, "format": "cursor"},
    "after_fire": {**_CURSOR, "pattern": "^[0-9]{1,15}-[!-~]{1,199}$"},
    "after_audit_entry": {**_CURSOR, "pattern": "^[0-9A-Za-z]([0-9A-Za-z-]{0,39})$"},
    "n": _number(PREVIEW_COUNT),
    "at": _INSTANT,
    "after_instant": _INSTANT,
    "when": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH, "format": "when"},
    "tz": {"type": "string", "default": parse_when("@daily").tz, "format": "time-zone"},
    "target": {"type": "string", "maxLength": MAX_URL_LENGTH, "description": "A URL to warn about; needs the scope write."},
    "budget_ms": _number(BUDGET_MS),
    "deep": {"type": "string", "enum": ["true", "false"]},
}
_SHOWN_AS = {"fire_state": "state", "after_fire": "after", "after_audit_entry": "after", "after_instant": "after"}
_ONE_ETAG = '(W/)?"[1-9][0-9]{0,17}(-[0-9a-f]{1,12}(-[0-9a-f]{1,32})?)?"'
_ETAG = {"type": "string", "pattern": rf"^(\*|{_ONE_ETAG}(, *{_ONE_ETAG})*)$"}
_HEADERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "if-match": ("Only at the version of one of these etags, and not created anew; `*`: only if it exists.", _ETAG),
    "if-none-match": ("Only if the schedule has none of these etags.", {"type": "string"}),
    "if-none-match: *": ("Only if the schedule does not exist.", {"type": "string", "pattern": r"^\*$"}),
    "idempotency-key": (
        "Executes the request once, even if it is sent again.",
        {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": "^[!-~]+$"},
    ),
}
_PROBLEMS = {
    400: "Malformed request",
    401: "Missing or invalid token",
    403: "The token lacks the scope, or is bound to one owner",
    404: "Not found, or not visible to the token",
    408: "The body did not arrive in time",
    409: "Sent before with other content; or an earlier request with this idempotency key, or a deep check, is still running",
    412: "The schedule is at another version",
    413: "The body is too long",
    414: "The path or the query is too long",
    415: "The body is not sent as JSON",
    421: "Unknown host name",
    422: "Invalid value: an unknown time zone, an invalid expression, a schedule that never fires",
    429: "Too many requests, or too many at once, such as a second import; see `retry-after`",
    431: "The headers are too long",
    503: "The store does not answer",
}
_IN_PATH = {"owner": _TEXT, "key": _TEXT, "fire_id": {**_TEXT, "maxLength": MAX_FIRE_ID_LENGTH}}
_PUBLIC = ("/health/live", "/health/ready")
_SECURITY = {"token": {"type": "http", "scheme": "bearer"}}
_ETAG_HEADER = {"required": True, "schema": {"type": "string"}, "description": "Version, creation time, and digest of the state."}
_REMOVED = {
    "schema": {"type": "string"},
    "description": "Removed fields, separated by commas: `target, policy.attempts`; `paused` if the schedule was paused.",
}


@cache
def document() -> dict[str, Any]:
    """Return the document as plain values."""
    requests = dict.fromkeys(route.body for route in ROUTES if isinstance(route.body, type))  # in the order of the routes
    responses = dict.fromkeys([Problem, *(route.response for route in ROUTES if isinstance(route.response, type))])
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tickler", "version": VERSION, "description": "Which of my users' schedules are due right now?"},
        "servers": [{"url": "/", "description": "The service that serves this document"}],
        "tags": [{"name": name, "description": description} for name, description in TAGS.items()],
        "paths": paths,
        "components": {"schemas": schemas_of(requests, responses), "securitySchemes": _SECURITY},
        "security": [{"token": []}, {}],
    }


def _operation(route: Route) -> dict[str, Any]:
    in_path = [(name, schema) for name, schema in _IN_PATH.items() if f"{{{name}}}" in route.path]
    parameters = [{"name": name, "in": "path", "required": True, "schema": schema} for name, schema in in_path]
    for name in route.query:
        shown, required = _SHOWN_AS.get(name, name), name == "when"
        parameters.append({"name": shown, "in": "query", "required": required, "schema": _PARAMETERS[name]})
    for name in (*route.headers, *(("idempotency-key",) if _is_idempotent(route) else ())):
        description, schema = _HEADERS[name]
        shown = name.partition(":")[0]
        parameters.append({"name": shown, "in": "header", "required": False, "description": description, "schema": schema})
    operation: dict[str, Any] = {"operationId": route.id, "tags": [route.tag], "summary": route.summary, "parameters": parameters}
    operation["responses"] = _responses(route)
    if route.body is not None:
        operation["requestBody"] = {"required": route.body != NDJSON, "content": _request_content(route.body)}
    if route.path in _PUBLIC:
        operation["security"] = [{}]
    return operation


def _responses(route: Route) -> dict[str, Any]:
    good: dict[str, Any] = {"description": route.summary}
    if route.response is not None:
        good["content"] = _content(route.response)
    responses = {str(route.status): good}
    if route.response in (types.StoredScheduleBody, types.ScheduleWithHealth):
        good["headers"] = {"etag": _ETAG_HEADER}
    if route.id in ("putSchedule", "patchSchedule"):
        good["headers"] = {**good["headers"], "tickler-removed": _REMOVED}
    if route.id == "putSchedule":
        good["links"] = _LINKS
        responses["201"] = {**good, "description": "Created"}
    if route.id == "send":
        responses["200"] = {**good, "description": "Sent before: nothing was sent"}
    if route.id == "triggerSchedule":
        good["links"] = _FIRE_LINKS
    if route.id == "getSchedule":
        responses["304"] = {"description": "Not modified", "headers": good["headers"]}
    for status in sorted({*_common_errors(route), *route.errors}):
        content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses[str(status)] = {"description": _PROBLEMS[status], "content": content}
    return responses


def _common_errors(route: Route) -> set[int]:
    """Return the statuses that every such route may answer."""
    errors = {400, 414, 431, 503}
    if route.path not in _PUBLIC:
        errors |= {401, 403, 404, 421, 429}
    if route.method in ("put", "patch", "post", "delete"):
        errors |= {408, 413}
    return errors | ({409, 422} if _is_idempotent(route) else set())


def _is_idempotent(route: Route) -> bool:
    return route.method in ("post", "patch") and route.body != NDJSON


def _request_content(kind: Any) -> dict[str, Any]:
    """Return the content types of a request. Generated clients that do not know NDJSON send it as bytes."""
    content = _content(kind)
    if kind == NDJSON:
        content["application/octet-stream"] = {"schema": {"type": "string", "format": "binary"}}
    if kind is types.SchedulePatch:
        content = {MERGE_PATCH: content[JSON], **content}
    return content


def _content(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"}}}
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}


_FIRE_LINKS = {
    route.id: {"operationId": route.id, "parameters": {"path.fire_id": "$response.body#/id"}}
    for route in ROUTES
    if "{fire_id}" in route.path
}
_LINKS = {
    route.id: {"operationId": route.id, "parameters": {"path.owner": "$request.path.owner", "path.key": "$request.path.key"}}
    for route in ROUTES
    if "{key}" in route.path and route.id not in ("putSchedule", "send")
}
