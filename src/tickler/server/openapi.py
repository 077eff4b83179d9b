"""The API, described as OpenAPI 3.1. Values are described by the types they are made of; routes by the table below."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from tickler.audit import DeedPage
from tickler.clock import EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS
from tickler.deliver.runner import Summary
from tickler.fires import Fire, FirePage, FireState, HistoryPage
from tickler.observe.diagnosis import Diagnosis
from tickler.observe.forecast import Forecast
from tickler.observe.why import Why
from tickler.policy import Delivery, Missed, Overlap
from tickler.schedule import State
from tickler.server.problems import MEDIA_TYPE, Problem
from tickler.server.stats import Stats
from tickler.version import VERSION

NDJSON = "application/x-ndjson"

_NAME = r"^[^\x00-\x1f\x7f-\x9f]+$"
_EARLIEST_MS, _LATEST_MS = EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS - 1
_Instant = Annotated[int, Meta(ge=_EARLIEST_MS, le=_LATEST_MS)] | Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
_WhenText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4_096,
        description="cron, @daily, at(…), rate(5 minutes), weekly(tue 09:00)",
        extra_json_schema={"format": "when"},
    ),
]
_Clock = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]
_Zone = Annotated[
    str, Meta(description="such as Europe/Paris; UTC where none is given", extra_json_schema={"format": "time-zone"})
]
_Url = Annotated[str, Meta(max_length=2_048, extra_json_schema={"format": "uri"})]
_Seconds = Annotated[float, Meta(ge=0, le=31_622_400)]
_Ms = Annotated[int, Meta(description="milliseconds since the epoch, UTC")]


class PolicyBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How fires are treated; durations are in seconds."""

    delivery: Delivery = "at-least-once"
    missed: Missed = "latest"
    overlap: Overlap = "allow"
    spread: _Seconds = 0
    grace: _Seconds = 60
    max_catchup: Annotated[int, Meta(ge=1, le=10_000)] = 100
    attempts: Annotated[int, Meta(ge=1, le=1_000)] = 10
    timeout: Annotated[float, Meta(gt=0, le=31_622_400)] = 30
    backoff: Annotated[tuple[_Seconds, ...], Meta(min_length=1, max_length=100)] = (5, 300, 1_800)


class HttpTargetBody(msgspec.Struct, tag="http", tag_field="type", forbid_unknown_fields=True, omit_defaults=True):
    """A POST to a URL. Headers and secret are sealed, and come back as their names alone."""

    url: _Url
    body: Literal["json", "raw"] = "json"
    headers: dict[str, str] | None = None
    secret: str | None = None
    sealed: str | None = None


class PythonTargetBody(msgspec.Struct, tag="python", tag_field="type", forbid_unknown_fields=True):
    """A handler that the workers have registered, by its name; `echo` is built in."""

    handler: Annotated[str, Meta(min_length=1, max_length=128)]


class SqsTargetBody(msgspec.Struct, tag="sqs", tag_field="type", forbid_unknown_fields=True):
    """A queue, by its ARN."""

    arn: str


class LambdaTargetBody(msgspec.Struct, tag="lambda", tag_field="type", forbid_unknown_fields=True):
    """A function, by its ARN."""

    arn: str


class DayBody(msgspec.Struct, forbid_unknown_fields=True):
    """When on that day; null: not at all."""

    time: _Clock | Annotated[list[_Clock], Meta(min_length=1)] | None


class PlanBody(msgspec.Struct, forbid_unknown_fields=True):
    """The days of a week; at least one has a time."""

    mon: DayBody | msgspec.UnsetType = msgspec.UNSET
    tue: DayBody | msgspec.UnsetType = msgspec.UNSET
    wed: DayBody | msgspec.UnsetType = msgspec.UNSET
    thu: DayBody | msgspec.UnsetType = msgspec.UNSET
    fri: DayBody | msgspec.UnsetType = msgspec.UNSET
    sat: DayBody | msgspec.UnsetType = msgspec.UNSET
    sun: DayBody | msgspec.UnsetType = msgspec.UNSET


class WeeklyBody(msgspec.Struct, forbid_unknown_fields=True):
    """A plan for the week."""

    weekly: PlanBody


class ScheduleBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a user declares. Its owner and key are in the path, and may be repeated here."""

    when: _WhenText | WeeklyBody
    tz: _Zone | None = None
    target: HttpTargetBody | PythonTargetBody | SqsTargetBody | LambdaTargetBody | _Url | None = None
    payload: Any = None
    policy: PolicyBody | None = None
    starts_at: _Instant | None = None
    ends_at: _Instant | None = None
    delete_after: bool | msgspec.UnsetType = msgspec.UNSET
    enabled: bool = True
    owner: str | None = None
    key: str | None = None


class StoredScheduleBody(msgspec.Struct):
    """A schedule as it is stored, and what the store knows of it."""

    owner: str
    key: str
    when: str
    tz: str
    enabled: bool
    payload: Any
    state: State
    next_fire_at: _Ms | None
    version: int
    created_at: _Ms
    updated_at: _Ms
    target: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    policy: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    starts_at: str | msgspec.UnsetType = msgspec.UNSET
    ends_at: str | msgspec.UnsetType = msgspec.UNSET
    delete_after: bool | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET


class SchedulePage(msgspec.Struct):
    """Some schedules, and the cursor for the following ones."""

    items: list[StoredScheduleBody]
    next: str | None


class PreviewedInstant(msgspec.Struct):
    """An instant with its offset, and what there is to say of the wall clock around it."""

    at: str
    marks: list[str]


class Preview(msgspec.Struct):
    """The next instants of a when, and the when in words."""

    when: str
    tz: str
    words: str
    next: list[PreviewedInstant]


class Retried(msgspec.Struct):
    """How many dead fires were sent again: up to 1,000, the earliest first. `more`: there are others, ask again."""

    retried: int
    more: bool


class RetryBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whose dead fires; neither: everybody's."""

    owner: str | msgspec.UnsetType = msgspec.UNSET
    key: str | msgspec.UnsetType = msgspec.UNSET


class _Route(msgspec.Struct, frozen=True):
    method: str
    path: str
    id: str
    says: str
    answers: Any
    status: int = 200
    query: tuple[str, ...] = ()
    body: Any = None
    refuses: tuple[int, ...] = ()
    headers: tuple[str, ...] = ()


_SCHEDULE = "/v1/schedules/{owner}/{key}"
_FIRE = "/v1/fires/{fire_id}"
_PAGED = ("limit", "after")

ROUTES = (
    _Route("put", _SCHEDULE, "putSchedule",
           "Make or replace a schedule", StoredScheduleBody, body=ScheduleBody, refuses=(412, 415, 422),
           headers=("if-match", "if-none-match: *")),
    _Route("get", _SCHEDULE, "getSchedule",
           "A schedule as it is stored", StoredScheduleBody, refuses=(404, 422), headers=("if-none-match",)),
    _Route("delete", _SCHEDULE, "deleteSchedule",
           "Remove it, and cancel what it owes", None, 204, refuses=(404, 412, 422), headers=("if-match",)),
    _Route("get", "/v1/schedules", "listSchedules",
           "Schedules by owner and key", SchedulePage, query=("owner", "key_prefix", "state", *_PAGED), refuses=(422,)),
    _Route("post", f"{_SCHEDULE}/pause", "pauseSchedule", "Hold new fires", StoredScheduleBody,
           refuses=(404, 412, 422), headers=("if-match",)),
    _Route("post", f"{_SCHEDULE}/resume", "resumeSchedule", "Fire again, from now on", StoredScheduleBody,
           refuses=(404, 412, 422), headers=("if-match",)),
    _Route("post", f"{_SCHEDULE}/trigger", "triggerSchedule", "Fire now, out of turn", Fire, 202, refuses=(404, 422)),
    _Route("get", f"{_SCHEDULE}/preview", "previewSchedule",
           "Its next instants", Preview, query=("n", "after_instant"), refuses=(404, 422)),
    _Route("get", f"{_SCHEDULE}/why", "whySchedule", "Why it fired, or did not", Why, query=("at",), refuses=(422,)),
    _Route("get", f"{_SCHEDULE}/fires", "historyOfSchedule",
           "What happened to its fires", HistoryPage, query=_PAGED, refuses=(422,)),
    _Route("get", "/v1/preview", "preview",
           "The next instants of an expression", Preview, query=("when", "tz", "n", "after_instant"), refuses=(422,)),
    _Route("post", "/v1/schedules:import", "importSchedules", "Put a schedule a line", NDJSON, body=NDJSON),
    _Route("get", "/v1/schedules:export", "exportSchedules", "Every schedule a line", NDJSON, query=("owner",), refuses=(422,)),
    _Route("get", "/v1/fires", "listFires",
           "Open, waiting or dead fires", FirePage, query=("fire_state", "owner", "key", *_PAGED), refuses=(422,)),
    _Route("get", _FIRE, "getFire", "A fire that is not settled", Fire, refuses=(404, 422)),
    _Route("post", f"{_FIRE}/retry", "retryFire", "Send a dead fire again", Fire, 202, refuses=(404, 422)),
    _Route("post", f"{_FIRE}/cancel", "cancelFire", "Never deliver it", Fire, refuses=(404, 422)),
    _Route("post", "/v1/fires:retry", "retryFires",
           "Send dead fires again", Retried, 202, body=RetryBody, refuses=(415, 422)),
    _Route("get", "/v1/tick", "tickByGet", "Deliver what is due now", Summary, query=("budget_ms",)),
    _Route("post", "/v1/tick", "tick", "Deliver what is due now", Summary, query=("budget_ms",)),
    _Route("get", "/v1/stats", "getStats", "How it stands, in numbers", Stats),
    _Route("get", "/v1/forecast", "getForecast", "How much is to come", Forecast),
    _Route("get", "/v1/doctor", "getDoctor", "What is wrong", Diagnosis, query=("deep",), refuses=(409,)),
    _Route("post", "/v1/doctor:repair", "repair", "Mend what can be mended", Diagnosis),
    _Route("get", "/v1/audit", "listDeeds", "Who did what", DeedPage, query=("owner", *_PAGED), refuses=(422,)),
    _Route("get", "/v1/live", "live", "Attempts as they happen", "text/event-stream"),
    _Route("get", "/health/live", "isLive", "The process answers", "text/plain"),
    _Route("get", "/health/ready", "isReady", "The store answers", "text/plain"),
    _Route("get", "/metrics", "getMetrics", "For Prometheus", "text/plain"),
)  # fmt: skip

_TEXT = {"type": "string", "minLength": 1, "maxLength": 512, "pattern": _NAME}
_INSTANT = {
    "anyOf": [{"type": "integer", "minimum": _EARLIEST_MS, "maximum": _LATEST_MS}, {"type": "string", "format": "date-time"}],
    "description": "milliseconds since the epoch, or ISO 8601 with an offset",
}
_PARAMETERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "owner": ("owner", _TEXT),
    "key": ("key", _TEXT),
    "key_prefix": ("key_prefix", {**_TEXT, "minLength": 0, "pattern": _NAME.replace("+", "*")}),
    "state": ("state", {"type": "string", "enum": list(get_args(State))}),
    "fire_state": ("state", {"type": "string", "enum": list(get_args(FireState))}),
    "limit": ("limit", {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 100}),
    "after": ("after", {"type": "string", "description": "the `next` of an earlier page"}),
    "n": ("n", {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}),
    "at": ("at", _INSTANT),
    "after_instant": ("after", _INSTANT),
    "when": ("when", {"type": "string", "minLength": 1, "maxLength": 4_096, "format": "when"}),
    "tz": ("tz", {"type": "string", "default": "UTC", "format": "time-zone"}),
    "budget_ms": ("budget_ms", {"type": "integer", "minimum": 1, "maximum": 300_000, "default": 50_000}),
    "deep": ("deep", {"type": "string", "enum": ["true", "false"]}),
}
_ONE_ETAG = '(W/)?"[1-9][0-9]{0,17}(-[0-9a-f]{1,12}(-[0-9a-f]{1,32})?)?"'
_ETAG = {"anyOf": [{"const": "*"}, {"type": "string", "pattern": f"^{_ONE_ETAG}(, *{_ONE_ETAG})*$"}]}
_HEADERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "if-match": (
        "only if it is at the version of one of these etags, and was not deleted and made anew; `*`: only if there is one",
        _ETAG,
    ),
    "if-none-match": ("only if it is another one than those of these etags", {"type": "string"}),
    "if-none-match: *": ("only if there is none", {"const": "*"}),
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
    429: "too many requests",
    431: "the headers are too long",
    503: "the store does not answer",
}
_JSON_ITEM = {"$ref": "#/components/schemas/Json"}
_JSON = {
    "description": "any JSON; whole numbers have to fit into 64 bits",
    "anyOf": [
        {"type": ["null", "boolean", "string"]},
        {"type": "integer", "minimum": -(1 << 63), "maximum": (1 << 64) - 1},
        {"type": "number", "minimum": -1e300, "maximum": 1e300},
        {"type": "array", "items": _JSON_ITEM},
        {"type": "object", "additionalProperties": _JSON_ITEM},
    ],
}
_OPEN = ("/health/live", "/health/ready")


@cache
def document() -> dict[str, Any]:
    """All of it, as plain values."""
    types = {each for route in ROUTES for each in (route.answers, route.body) if isinstance(each, type)}
    _, components = msgspec.json.schema_components([Problem, *types], ref_template="#/components/schemas/{name}")
    components["ScheduleBody"]["properties"]["payload"] = {"$ref": "#/components/schemas/Json", "default": None}
    components["Json"] = _JSON
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tickler", "version": VERSION, "description": "Which of my users' schedules are due right now?"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(route: _Route) -> dict[str, Any]:
    in_path = [name for name in ("owner", "key", "fire_id") if f"{{{name}}}" in route.path]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in in_path]
    for name in route.query:
        shown, schema = _PARAMETERS[name]
        parameters.append({"name": shown, "in": "query", "required": name == "when", "schema": schema})
    for name in (*route.headers, *(("idempotency-key",) if _is_done_once(route) else ())):
        says, schema = _HEADERS[name]
        header = {"name": name.partition(":")[0], "in": "header", "required": False, "description": says, "schema": schema}
        parameters.append(header)
    operation: dict[str, Any] = {"operationId": route.id, "summary": route.says, "parameters": parameters}
    operation["responses"] = _responses(route)
    if route.body is not None:
        operation["requestBody"] = {"required": route.body != NDJSON, "content": _content(route.body)}
    if route.path in _OPEN:
        operation["security"] = [{}]
    return operation


def _responses(route: _Route) -> dict[str, Any]:
    good: dict[str, Any] = {"description": route.says}
    if route.answers is not None:
        good["content"] = _content(route.answers)
    responses = {str(route.status): good}
    if route.answers is StoredScheduleBody:
        good["headers"] = {
            "etag": {
                "required": True,
                "schema": {"type": "string"},
                "description": "its version, when it was made, and what moves by itself",
            }
        }
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


def _usual(route: _Route) -> set[int]:
    """What may be answered whatever is asked for."""
    usual = {400, 401, 414, 421, 431, 503}
    if route.path not in _OPEN:
        usual |= {403, 404, 429}
    if route.method in ("put", "post", "delete"):
        usual |= {408, 413}
    return usual | ({409, 422} if _is_done_once(route) else set())


def _is_done_once(route: _Route) -> bool:
    return route.method == "post" and route.body != NDJSON


def _content(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"}}}
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}


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
        "pauseSchedule",
        "resumeSchedule",
        "triggerSchedule",
        "whySchedule",
        "historyOfSchedule",
        "previewSchedule",
        "deleteSchedule",
    )
}
