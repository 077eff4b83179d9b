"""The API, described as OpenAPI 3.1: values by the types they are made of, routes by their table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from tickler.fires.fires import MAX_FIRE_ID_LENGTH
from tickler.model.fire import FireState
from tickler.model.policy import default_fields
from tickler.model.schedule import State
from tickler.server.json_body import JSON, MERGE_PATCH
from tickler.server.openapi.routes import NDJSON, ROUTES, TAGS, Route
from tickler.server.openapi.schemas import schemas_of
from tickler.server.openapi.types import (
    EARLIEST_MS,
    INSTANT_TEXT,
    LATEST_MS,
    SchedulePatch,
    ScheduleWithHealth,
    StoredScheduleBody,
)
from tickler.server.problems import MEDIA_TYPE, Problem
from tickler.version import VERSION

_NAME = r"^[^\x00-\x1f\x7f-\x9f]+$"
_TEXT = {"type": "string", "minLength": 1, "maxLength": 512, "pattern": _NAME}
_INSTANT = {
    "anyOf": [{"type": "integer", "minimum": EARLIEST_MS, "maximum": LATEST_MS}, {"type": "string", **INSTANT_TEXT}],
    "description": "milliseconds since the epoch, or ISO 8601 with an offset",
}
_CURSOR = {"type": "string", "minLength": 1, "description": "the `next` of an earlier page"}
_PARAMETERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "owner": ("owner", _TEXT),
    "key": ("key", _TEXT),
    "key_prefix": ("key_prefix", {**_TEXT, "minLength": 0, "pattern": _NAME.replace("+", "*")}),
    "state": ("state", {"type": "string", "enum": list(get_args(State))}),
    "failing": (
        "failing",
        {"type": "string", "enum": ["true", "false"], "description": "`true`: only those that have a dead fire"},
    ),
    "fire_state": ("state", {"type": "string", "enum": list(get_args(FireState))}),
    "limit": ("limit", {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 100}),
    "after": ("after", {**_CURSOR, "format": "cursor"}),
    "after_fire": ("after", {**_CURSOR, "pattern": "^[0-9]{1,15}-[!-~]{1,199}$"}),
    "after_deed": ("after", {**_CURSOR, "pattern": "^[0-9A-Za-z]([0-9A-Za-z-]{0,39})$"}),
    "n": ("n", {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}),
    "at": ("at", _INSTANT),
    "after_instant": ("after", _INSTANT),
    "when": ("when", {"type": "string", "minLength": 1, "maxLength": 4_096, "format": "when"}),
    "tz": ("tz", {"type": "string", "default": "UTC", "format": "time-zone"}),
    "target": (
        "target",
        {
            "type": "string",
            "maxLength": 2_048,
            "description": "a URL to warn of; takes the scope write",
        },
    ),
    "budget_ms": ("budget_ms", {"type": "integer", "minimum": 1, "maximum": 300_000, "default": 50_000}),
    "deep": ("deep", {"type": "string", "enum": ["true", "false"]}),
}
_ONE_ETAG = '(W/)?"[1-9][0-9]{0,17}(-[0-9a-f]{1,12}(-[0-9a-f]{1,32})?)?"'
_ETAG = {"type": "string", "pattern": rf"^(\*|{_ONE_ETAG}(, *{_ONE_ETAG})*)$"}
_HEADERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "if-match": (
        "only if it is at the version of one of these etags, and was not deleted and made anew; `*`: only if there is one",
        _ETAG,
    ),
    "if-none-match": ("only if it is another one than those of these etags", {"type": "string"}),
    "if-none-match: *": ("only if there is none", {"type": "string", "pattern": r"^\*$"}),
    "idempotency-key": (
        "do it once, however often it is sent",
        {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    ),
}
_PROBLEMS = {
    400: "what was sent does not fit",
    401: "a token is needed",
    403: "the token does not go so far",
    404: "there is no such thing, or it is not yours",
    408: "the request did not arrive in time",
    409: "the first request with this idempotency key, or the last look at everything, is not done yet",
    412: "it is at another version",
    413: "too much was sent",
    414: "the path or the query is too long",
    415: "JSON is needed",
    421: "it was asked for by a name that it does not have",
    422: "it fits, but cannot be: no such zone, an expression that does not read, a schedule that never fires",
    429: "too much at once, such as a second import, or too often: `retry-after` says when to come back",
    431: "the headers are too long",
    503: "the store does not answer",
}
_IN_PATH = {"owner": _TEXT, "key": _TEXT, "fire_id": {**_TEXT, "maxLength": MAX_FIRE_ID_LENGTH}}
_OPEN = ("/health/live", "/health/ready")
_REMOVED = {
    "schema": {"type": "string"},
    "description": "what was there before and is not any more, with commas: `target, policy.attempts`; `paused` if it was",
}


@cache
def document() -> dict[str, Any]:
    """All of it, as plain values."""
    sent = {route.body for route in ROUTES if isinstance(route.body, type)}
    answered = {Problem} | {route.answers for route in ROUTES if isinstance(route.answers, type)}
    components = schemas_of(sent, answered)
    for name, value in default_fields().items():
        components["PolicyBody"]["properties"][name]["description"] = f"{json.dumps(value)} where it is left out"
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tickler", "version": VERSION, "description": "Which of my users' schedules are due right now?"},
        "servers": [{"url": "/", "description": "where this description was read"}],
        "tags": [{"name": name, "description": says} for name, says in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(route: Route) -> dict[str, Any]:
    in_path = [(name, schema) for name, schema in _IN_PATH.items() if f"{{{name}}}" in route.path]
    parameters = [{"name": name, "in": "path", "required": True, "schema": schema} for name, schema in in_path]
    for name in route.query:
        shown, schema = _PARAMETERS[name]
        parameters.append({"name": shown, "in": "query", "required": name == "when", "schema": schema})
    for name in (*route.headers, *(("idempotency-key",) if _is_done_once(route) else ())):
        says, schema = _HEADERS[name]
        header = {"name": name.partition(":")[0], "in": "header", "required": False, "description": says, "schema": schema}
        parameters.append(header)
    operation: dict[str, Any] = {"operationId": route.id, "tags": [route.tag], "summary": route.says, "parameters": parameters}
    operation["responses"] = _responses(route)
    if route.body is not None:
        operation["requestBody"] = {"required": route.body != NDJSON, "content": _sent(route.body)}
    if route.path in _OPEN:
        operation["security"] = [{}]
    return operation


def _responses(route: Route) -> dict[str, Any]:
    good: dict[str, Any] = {"description": route.says}
    if route.answers is not None:
        good["content"] = _content(route.answers)
    responses = {str(route.status): good}
    if route.answers in (StoredScheduleBody, ScheduleWithHealth):
        good["headers"] = {
            "etag": {
                "required": True,
                "schema": {"type": "string"},
                "description": "its version, when it was made, and what moves by itself",
            }
        }
    if route.id in ("putSchedule", "patchSchedule"):
        good["headers"] = {**good["headers"], "tickler-removed": _REMOVED}
    if route.id == "putSchedule":
        good["links"] = _LINKS
        responses["201"] = {**good, "description": "It is new"}
    if route.id == "triggerSchedule":
        good["links"] = _FIRE_LINKS
    if route.id == "getSchedule":
        responses["304"] = {"description": "It is what you have", "headers": good["headers"]}
    for status in sorted({*_usual(route), *route.refuses}):
        content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses[str(status)] = {"description": _PROBLEMS[status], "content": content}
    return responses


def _usual(route: Route) -> set[int]:
    """What may be answered whatever is asked for."""
    usual = {400, 414, 431, 503}
    if route.path not in _OPEN:
        usual |= {401, 403, 404, 421, 429}
    if route.method in ("put", "patch", "post", "delete"):
        usual |= {408, 413}
    return usual | ({409, 422} if _is_done_once(route) else set())


def _is_done_once(route: Route) -> bool:
    return route.method in ("post", "patch") and route.body != NDJSON


def _sent(kind: Any) -> dict[str, Any]:
    """What a request may carry. Who generates a client that does not know NDJSON sends it as bytes."""
    content = _content(kind)
    if kind == NDJSON:
        content["application/octet-stream"] = {"schema": {"type": "string", "format": "binary"}}
    if kind is SchedulePatch:
        content = {MERGE_PATCH: content[JSON], **content}
    return content


def _content(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"}}}
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}


_FIRE_LINKS = {
    name: {"operationId": name, "parameters": {"path.fire_id": "$response.body#/id"}}
    for name in ("getFire", "retryFire", "cancelFire")
}
_LINKS = {
    name: {
        "operationId": name,
        "parameters": {"path.owner": "$request.path.owner", "path.key": "$request.path.key"},
    }
    for name in (
        "getSchedule",
        "patchSchedule",
        "pauseSchedule",
        "resumeSchedule",
        "triggerSchedule",
        "whySchedule",
        "historyOfSchedule",
        "previewSchedule",
        "deleteSchedule",
    )
}
