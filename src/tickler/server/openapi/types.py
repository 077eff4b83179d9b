"""Request and response bodies of the API, as types from which the OpenAPI document is made."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tickler.clock import EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS
from tickler.model.fire import StoredHappened
from tickler.model.policy import MAX_ATTEMPTS, MAX_CATCHUP, MAX_DELAYS, MAX_DURATION, Delivery, Missed, Overlap, default_fields
from tickler.model.schedule import MAX_NAME_BYTES, Schedule, State
from tickler.model.target import HEADER_NAME, LAMBDA_ARN, MAX_HANDLER_LENGTH, MAX_HEADERS, MAX_URL_LENGTH, SQS_ARN, HttpTarget
from tickler.server.bulk_retry import MAX_RETRIED
from tickler.when.parsing import MAX_TEXT_LENGTH

# Defaults and bounds come from the code, so that the document cannot differ from it.
_POLICY = default_fields()
_SCHEDULE = Schedule(owner="u1", key="k", when="@daily")
_ONE_SHOT = Schedule(owner="u1", key="k", when="at(2090-01-01T00:00:00)")
_MIN_S, _MAX_S = timedelta.resolution.total_seconds(), MAX_DURATION // timedelta(seconds=1)
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]+$"
EARLIEST_MS, LATEST_MS = EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS - 1
INSTANT_TEXT = {"format": "date-time", "pattern": "^(197[4-9]|19[89][0-9]|[2-4][0-9]{3}|50[0-9]{2}|51[0-2][0-9]|513[0-7])-"}


def _described(description: str, default: object, exception: str = "") -> Meta:
    """Publish the default in the description; `schemas.py` explains why not as `default`."""
    return Meta(description=f"{description} Default: {json.dumps(default)}{exception}.")


def _formatted(name: str, description: str | None = None) -> Meta:
    return Meta(description=description, extra_json_schema={"format": name})


_Instant = Annotated[int, Meta(ge=EARLIEST_MS, le=LATEST_MS)] | Annotated[str, Meta(extra_json_schema=INSTANT_TEXT)]
_SendAt = Annotated[_Instant, Meta(description="When it is delivered; now if it is left out or in the past.")]
_WhenText = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_TEXT_LENGTH),
    _formatted("when", "Cron, @daily, at(…), rate(5 minutes) or weekly(tue 09:00)."),
]
_Clock = Annotated[str, Meta(pattern="^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$")]
_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_BYTES, pattern=PRINTABLE)]
_Zone = Annotated[str, _described("Time zone, such as Europe/Paris.", _SCHEDULE.tz), _formatted("time-zone")]
_Url = Annotated[str, Meta(max_length=MAX_URL_LENGTH), _formatted("uri")]
_Seconds = Annotated[float, Meta(ge=0, le=_MAX_S)]
_Warnings = Annotated[list[str], Meta(description="Why a worker with this service's settings would refuse to deliver.")]
_Ms = Annotated[int, Meta(description="Milliseconds since the epoch, UTC.")]
_HeaderValue = Annotated[str, Meta(pattern="^[\\t -~]*$")]
_HEADERS = Meta(max_length=MAX_HEADERS, extra_json_schema={"propertyNames": {"pattern": f"^{HEADER_NAME.pattern}$"}})
_Headers = Annotated[dict[str, _HeaderValue], _HEADERS]
_PatchedHeaders = Annotated[dict[str, _HeaderValue | None], _HEADERS]
_BodyFormat = Annotated[
    Literal["json", "raw"], _described("`json` wraps the payload, `raw` sends it alone.", HttpTarget("http://a").body)
]
_Secret = Annotated[str, _formatted("secret", "Signing secret, as `tickler.new_secret()` makes it.")]
_Sealed = Annotated[str, _formatted("sealed", "Encrypted headers and secret, as read; replaces both.")]
_Payload = Annotated[Any, Meta(description="Any JSON; integers must fit into 64 bits.")]
_FOR_AT = f"; {json.dumps(_ONE_SHOT.delete_after)} for at(…)"
_DeleteAfter = Annotated[bool, _described("Delete it once finished and delivered.", _SCHEDULE.delete_after, _FOR_AT)]
_Enabled = Annotated[bool, _described("False pauses the schedule.", _SCHEDULE.enabled)]
_Delivery = Annotated[Delivery, _described("Delivery guarantee.", _POLICY["delivery"])]
_Missed = Annotated[Missed, _described("Which missed instants are fired late.", _POLICY["missed"])]
_Overlap = Annotated[Overlap, _described("What happens while an earlier fire is unfinished.", _POLICY["overlap"])]
_Spread = Annotated[_Seconds, _described("Maximum fixed offset per schedule, flattens peaks.", _POLICY["spread"])]
_Grace = Annotated[_Seconds, _described('With missed="skip": lateness that is tolerated.', _POLICY["grace"])]
_Catchup = Annotated[int, Meta(ge=1, le=MAX_CATCHUP), _described('With missed="all": fires per claim.', _POLICY["max_catchup"])]
_Attempts = Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS), _described("Attempts before a fire is dead.", _POLICY["attempts"])]
_Timeout = Annotated[float, Meta(ge=_MIN_S, le=_MAX_S), _described("Time limit of an attempt.", _POLICY["timeout"])]
_Backoff = Annotated[
    list[_Seconds],
    Meta(min_length=1, max_length=MAX_DELAYS),
    _described("Maximum delays before the second attempt, the third, …; the last repeats.", _POLICY["backoff"]),
]


class PolicyBody(msgspec.Struct, forbid_unknown_fields=True):
    """How fires are delivered. Durations are in seconds."""

    delivery: _Delivery | UnsetType = UNSET
    missed: _Missed | UnsetType = UNSET
    overlap: _Overlap | UnsetType = UNSET
    spread: _Spread | UnsetType = UNSET
    grace: _Grace | UnsetType = UNSET
    max_catchup: _Catchup | UnsetType = UNSET
    attempts: _Attempts | UnsetType = UNSET
    timeout: _Timeout | UnsetType = UNSET
    backoff: _Backoff | UnsetType = UNSET


class HttpTargetBody(msgspec.Struct, tag="http", tag_field="type", forbid_unknown_fields=True):
    """An HTTP endpoint that gets a POST. Headers and secret are encrypted, and only the header names are read back."""

    url: _Url
    body: _BodyFormat | UnsetType = UNSET
    headers: _Headers | UnsetType | None = UNSET
    secret: _Secret | UnsetType | None = UNSET
    sealed: _Sealed | UnsetType | None = UNSET


class PythonTargetBody(msgspec.Struct, tag="python", tag_field="type", forbid_unknown_fields=True):
    """A handler registered with the workers, by name; `echo` is built in."""

    handler: Annotated[str, Meta(min_length=1, max_length=MAX_HANDLER_LENGTH, pattern=PRINTABLE)]


class SqsTargetBody(msgspec.Struct, tag="sqs", tag_field="type", forbid_unknown_fields=True):
    """An SQS queue."""

    arn: Annotated[str, Meta(pattern=f"^{SQS_ARN.pattern}$")]


class LambdaTargetBody(msgspec.Struct, tag="lambda", tag_field="type", forbid_unknown_fields=True):
    """A Lambda function."""

    arn: Annotated[str, Meta(pattern=f"^{LAMBDA_ARN.pattern}$")]


_Target = HttpTargetBody | PythonTargetBody | SqsTargetBody | LambdaTargetBody | _Url


class DayBody(msgspec.Struct, forbid_unknown_fields=True):
    """The times of a day; null for none."""

    time: _Clock | Annotated[list[_Clock], Meta(min_length=1)] | None


class PlanBody(msgspec.Struct, forbid_unknown_fields=True):
    """The days of a week; at least one needs a time."""

    mon: DayBody | UnsetType = UNSET
    tue: DayBody | UnsetType = UNSET
    wed: DayBody | UnsetType = UNSET
    thu: DayBody | UnsetType = UNSET
    fri: DayBody | UnsetType = UNSET
    sat: DayBody | UnsetType = UNSET
    sun: DayBody | UnsetType = UNSET


class WeeklyBody(msgspec.Struct, forbid_unknown_fields=True):
    """A weekly plan."""

    weekly: PlanBody


class ScheduleBody(msgspec.Struct, forbid_unknown_fields=True):
    """A schedule. Its owner and key are in the path, and may be repeated here."""

    when: _WhenText | WeeklyBody
    tz: _Zone | UnsetType | None = UNSET
    target: _Target | UnsetType | None = UNSET
    payload: _Payload | UnsetType = UNSET
    policy: PolicyBody | UnsetType | None = UNSET
    starts_at: _Instant | UnsetType | None = UNSET
    ends_at: _Instant | UnsetType | None = UNSET
    delete_after: _DeleteAfter | UnsetType = UNSET
    enabled: _Enabled | UnsetType = UNSET
    owner: str | UnsetType | None = UNSET
    key: str | UnsetType | None = UNSET


class SendBody(msgspec.Struct, forbid_unknown_fields=True):
    """One delivery. Its owner and key are in the path."""

    target: _Target
    payload: _Payload | UnsetType = UNSET
    policy: PolicyBody | UnsetType | None = UNSET
    at: _SendAt | UnsetType | None = UNSET


class TargetPatch(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of a target to change; null removes one. A different `type` replaces the target."""

    type: Literal["http", "python", "sqs", "lambda"] | UnsetType = UNSET
    url: _Url | UnsetType = UNSET
    body: _BodyFormat | UnsetType | None = UNSET
    headers: _PatchedHeaders | UnsetType | None = UNSET
    secret: _Secret | UnsetType | None = UNSET
    sealed: _Sealed | UnsetType | None = UNSET
    handler: str | UnsetType = UNSET
    arn: str | UnsetType = UNSET


def _patch_of(body: type[msgspec.Struct], description: str, **instead: object) -> type[msgspec.Struct]:
    """Return the merge patch of a body: each field may be left out, or be null unless `instead` gives it another type."""
    types = {name: kind | None for name, kind in get_type_hints(body, include_extras=True).items()} | instead
    fields = [(name, kind | UnsetType, UNSET) for name, kind in types.items()]
    name = body.__name__.replace("Body", "Patch")
    return msgspec.defstruct(name, fields, namespace={"__doc__": description}, module=__name__, forbid_unknown_fields=True)


PolicyPatch = _patch_of(PolicyBody, "Fields of a policy to change; null resets one to its default.")
SchedulePatch = _patch_of(
    ScheduleBody,
    "A JSON merge patch: fields to change; null removes one or resets it to its default. Other fields stay.",
    when=_WhenText | WeeklyBody,
    target=TargetPatch | _Url | None,
    payload=_Payload,
    policy=PolicyPatch | None,
)


class StoredHttpTarget(msgspec.Struct, tag="http", tag_field="type", omit_defaults=True):
    """A stored HTTP target. `sealed` holds headers and secret, encrypted for this owner and host; they are never shown again."""

    url: str
    body: _BodyFormat | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    secret: str | UnsetType = UNSET
    sealed: str | UnsetType = UNSET


class StoredScheduleBody(msgspec.Struct):
    """A stored schedule with its state."""

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
    target: StoredHttpTarget | PythonTargetBody | SqsTargetBody | LambdaTargetBody | UnsetType = UNSET
    policy: PolicyBody | UnsetType = UNSET
    starts_at: _Ms | UnsetType = UNSET
    ends_at: _Ms | UnsetType = UNSET
    delete_after: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    warnings: _Warnings | UnsetType = UNSET


class LastResult(msgspec.Struct):
    """The newest entry of a schedule's history."""

    result: StoredHappened
    at: _Ms


class ScheduleWithHealth(StoredScheduleBody, kw_only=True):
    """A stored schedule with its health. It is `failing` while it has a dead fire."""

    failing: bool
    last: LastResult | None


class SchedulePage(msgspec.Struct):
    """A page of schedules; `next` is the cursor of the next page, null at the end."""

    items: list[ScheduleWithHealth]
    next: str | None


class PreviewedInstant(msgspec.Struct):
    """An instant, its local time with offset, and notes on clock changes around it."""

    at: _Ms
    local: str
    marks: list[str]


class Preview(msgspec.Struct):
    """The next instants of an expression, and the expression in words."""

    when: str
    tz: str
    words: str
    next: list[PreviewedInstant]
    warnings: _Warnings | UnsetType = UNSET


class RetryResult(msgspec.Struct):
    """How many dead fires were retried, earliest first. `more`: there are others, send the request again."""

    retried: Annotated[int, Meta(description=f"At most {MAX_RETRIED:,}.")]
    more: bool


class RetryBody(msgspec.Struct, forbid_unknown_fields=True):
    """The dead fires to retry: of an owner, of one of its schedules, or, with neither, of all owners."""

    owner: _Name | UnsetType = UNSET
    key: _Name | UnsetType = UNSET
