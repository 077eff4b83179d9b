"""What is sent to the API and answered by it, as types from which its description is made."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tickler.clock import EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS
from tickler.model.fire import Happened
from tickler.model.policy import MAX_ATTEMPTS, MAX_CATCHUP, MAX_DELAYS, MAX_DURATION, Delivery, Missed, Overlap
from tickler.model.schedule import State
from tickler.model.target import HEADER_NAME, LAMBDA_ARN, MAX_HANDLER_LENGTH, MAX_HEADERS, MAX_URL_LENGTH, SQS_ARN

_MAX_DURATION_S = MAX_DURATION // timedelta(seconds=1)
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]+$"
EARLIEST_MS, LATEST_MS = EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS - 1
INSTANT_TEXT = {"format": "date-time", "pattern": "^(197[4-9]|19[89][0-9]|[2-4][0-9]{3}|50[0-9]{2}|51[0-2][0-9]|513[0-7])-"}

_Instant = Annotated[int, Meta(ge=EARLIEST_MS, le=LATEST_MS)] | Annotated[str, Meta(extra_json_schema=INSTANT_TEXT)]
_WhenText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4_096,
        description="cron, @daily, at(…), rate(5 minutes), weekly(tue 09:00)",
        extra_json_schema={"format": "when"},
    ),
]
_Clock = Annotated[str, Meta(pattern="^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$")]
_Name = Annotated[str, Meta(min_length=1, max_length=512, pattern=_PRINTABLE)]
_Zone = Annotated[
    str, Meta(description="such as Europe/Paris; UTC where none is given", extra_json_schema={"format": "time-zone"})
]
_Url = Annotated[str, Meta(max_length=MAX_URL_LENGTH, extra_json_schema={"format": "uri"})]
_Seconds = Annotated[float, Meta(ge=0, le=_MAX_DURATION_S)]
_Warnings = Annotated[list[str], Meta(description="why a worker with the settings of the service would not deliver it")]
_Ms = Annotated[int, Meta(description="milliseconds since the epoch, UTC")]
_HeaderValue = Annotated[str, Meta(pattern="^[\\t -~]*$")]
_HEADERS = Meta(max_length=MAX_HEADERS, extra_json_schema={"propertyNames": {"pattern": f"^{HEADER_NAME.pattern}$"}})
_Headers = Annotated[dict[str, _HeaderValue], _HEADERS]
_PatchedHeaders = Annotated[dict[str, _HeaderValue | None], _HEADERS]
_Secret = Annotated[
    str, Meta(description="a signing secret, as `tickler.new_secret()` makes them", extra_json_schema={"format": "secret"})
]
_Sealed = Annotated[
    str, Meta(description="as it was read, in place of headers and secret", extra_json_schema={"format": "sealed"})
]
_Payload = Annotated[Any, Meta(description="any JSON; whole numbers have to fit into 64 bits")]
_DeleteAfter = Annotated[
    bool, Meta(description="whether it goes once it is finished and delivered; of at(…) true where left out")
]
_Enabled = Annotated[bool, Meta(description="true where it is left out")]


class PolicyBody(msgspec.Struct, forbid_unknown_fields=True):
    """How fires are treated; durations are in seconds."""

    delivery: Delivery | UnsetType = UNSET
    missed: Missed | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    spread: _Seconds | UnsetType = UNSET
    grace: _Seconds | UnsetType = UNSET
    max_catchup: Annotated[int, Meta(ge=1, le=MAX_CATCHUP)] | UnsetType = UNSET
    attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS)] | UnsetType = UNSET
    timeout: Annotated[float, Meta(ge=1e-6, le=_MAX_DURATION_S)] | UnsetType = UNSET
    backoff: Annotated[list[_Seconds], Meta(min_length=1, max_length=MAX_DELAYS)] | UnsetType = UNSET


class HttpTargetBody(msgspec.Struct, tag="http", tag_field="type", forbid_unknown_fields=True):
    """A POST to a URL. Headers and secret are sealed, and come back as their names alone."""

    url: _Url
    body: Literal["json", "raw"] | UnsetType = UNSET
    headers: _Headers | UnsetType | None = UNSET
    secret: _Secret | UnsetType | None = UNSET
    sealed: _Sealed | UnsetType | None = UNSET


class PythonTargetBody(msgspec.Struct, tag="python", tag_field="type", forbid_unknown_fields=True):
    """A handler that the workers have registered, by its name; `echo` is built in."""

    handler: Annotated[str, Meta(min_length=1, max_length=MAX_HANDLER_LENGTH, pattern=_PRINTABLE)]


class SqsTargetBody(msgspec.Struct, tag="sqs", tag_field="type", forbid_unknown_fields=True):
    """A queue, by its ARN."""

    arn: Annotated[str, Meta(pattern=f"^{SQS_ARN.pattern}$")]


class LambdaTargetBody(msgspec.Struct, tag="lambda", tag_field="type", forbid_unknown_fields=True):
    """A function, by its ARN."""

    arn: Annotated[str, Meta(pattern=f"^{LAMBDA_ARN.pattern}$")]


_Target = HttpTargetBody | PythonTargetBody | SqsTargetBody | LambdaTargetBody | _Url


class DayBody(msgspec.Struct, forbid_unknown_fields=True):
    """When on that day; null: not at all."""

    time: _Clock | Annotated[list[_Clock], Meta(min_length=1)] | None


class PlanBody(msgspec.Struct, forbid_unknown_fields=True):
    """The days of a week; at least one has a time."""

    mon: DayBody | UnsetType = UNSET
    tue: DayBody | UnsetType = UNSET
    wed: DayBody | UnsetType = UNSET
    thu: DayBody | UnsetType = UNSET
    fri: DayBody | UnsetType = UNSET
    sat: DayBody | UnsetType = UNSET
    sun: DayBody | UnsetType = UNSET


class WeeklyBody(msgspec.Struct, forbid_unknown_fields=True):
    """A plan for the week."""

    weekly: PlanBody


class ScheduleBody(msgspec.Struct, forbid_unknown_fields=True):
    """What a user declares. Its owner and key are in the path, and may be repeated here."""

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


class PolicyPatch(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of a policy to change; null: back to the default."""

    delivery: Delivery | UnsetType | None = UNSET
    missed: Missed | UnsetType | None = UNSET
    overlap: Overlap | UnsetType | None = UNSET
    spread: _Seconds | UnsetType | None = UNSET
    grace: _Seconds | UnsetType | None = UNSET
    max_catchup: Annotated[int, Meta(ge=1, le=MAX_CATCHUP)] | UnsetType | None = UNSET
    attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS)] | UnsetType | None = UNSET
    timeout: Annotated[float, Meta(ge=1e-6, le=_MAX_DURATION_S)] | UnsetType | None = UNSET
    backoff: Annotated[list[_Seconds], Meta(min_length=1, max_length=MAX_DELAYS)] | UnsetType | None = UNSET


class TargetPatch(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of a target to change; null removes one. Another `type` than the stored one replaces the target."""

    type: Literal["http", "python", "sqs", "lambda"] | UnsetType = UNSET
    url: _Url | UnsetType = UNSET
    body: Literal["json", "raw"] | UnsetType | None = UNSET
    headers: _PatchedHeaders | UnsetType | None = UNSET
    secret: _Secret | UnsetType | None = UNSET
    sealed: _Sealed | UnsetType | None = UNSET
    handler: str | UnsetType = UNSET
    arn: str | UnsetType = UNSET


class SchedulePatch(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON merge patch: fields to change; null removes one. What is not named stays as it is."""

    when: _WhenText | WeeklyBody | UnsetType = UNSET
    tz: _Zone | UnsetType | None = UNSET
    target: TargetPatch | _Url | UnsetType | None = UNSET
    payload: _Payload | UnsetType = UNSET
    policy: PolicyPatch | UnsetType | None = UNSET
    starts_at: _Instant | UnsetType | None = UNSET
    ends_at: _Instant | UnsetType | None = UNSET
    delete_after: _DeleteAfter | UnsetType | None = UNSET
    enabled: bool | UnsetType | None = UNSET
    owner: str | UnsetType | None = UNSET
    key: str | UnsetType | None = UNSET


class StoredHttpTarget(msgspec.Struct, tag="http", tag_field="type", omit_defaults=True):
    """Headers and secret are never shown again: `sealed` has them, encrypted, for this owner and host alone."""

    url: str
    body: Literal["json", "raw"] | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    secret: str | UnsetType = UNSET
    sealed: str | UnsetType = UNSET


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
    target: StoredHttpTarget | PythonTargetBody | SqsTargetBody | LambdaTargetBody | UnsetType = UNSET
    policy: PolicyBody | UnsetType = UNSET
    starts_at: _Ms | UnsetType = UNSET
    ends_at: _Ms | UnsetType = UNSET
    delete_after: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    warnings: _Warnings | UnsetType = UNSET


class LastResult(msgspec.Struct):
    """What happened last to a fire of a schedule, and when: the newest entry of its history."""

    result: Happened
    at: _Ms


class ScheduleWithHealth(StoredScheduleBody, kw_only=True):
    """A schedule as it is stored, and how its fires fare. It is failing while a fire of its is dead."""

    failing: bool
    last: LastResult | None


class SchedulePage(msgspec.Struct):
    """Some schedules, and the cursor for the following ones."""

    items: list[ScheduleWithHealth]
    next: str | None


class PreviewedInstant(msgspec.Struct):
    """An instant, what the wall clock shows then, with its offset, and what there is to say of the clock around it."""

    at: _Ms
    local: str
    marks: list[str]


class Preview(msgspec.Struct):
    """The next instants of a when, and the when in words."""

    when: str
    tz: str
    words: str
    next: list[PreviewedInstant]
    warnings: _Warnings | msgspec.UnsetType = msgspec.UNSET


class Retried(msgspec.Struct):
    """How many dead fires were sent again: up to 1,000, the earliest first. `more`: there are others, ask again."""

    retried: int
    more: bool


class RetryBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whose dead fires; neither: everybody's. A key goes with its owner."""

    owner: _Name | UnsetType = UNSET
    key: _Name | UnsetType = UNSET
