"""What is sent to the API and answered by it, as types from which its description is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tickler.clock import EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS
from tickler.policy import Delivery, Missed, Overlap
from tickler.schedule import State

EARLIEST_MS, LATEST_MS = EARLIEST_PLAUSIBLE_MS, LATEST_PLAUSIBLE_MS - 1

_Instant = Annotated[int, Meta(ge=EARLIEST_MS, le=LATEST_MS)] | Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
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
    starts_at: _Ms | msgspec.UnsetType = msgspec.UNSET
    ends_at: _Ms | msgspec.UnsetType = msgspec.UNSET
    delete_after: bool | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET


class SchedulePage(msgspec.Struct):
    """Some schedules, and the cursor for the following ones."""

    items: list[StoredScheduleBody]
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


class Retried(msgspec.Struct):
    """How many dead fires were sent again: up to 1,000, the earliest first. `more`: there are others, ask again."""

    retried: int
    more: bool


class RetryBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whose dead fires; neither: everybody's."""

    owner: str | msgspec.UnsetType = msgspec.UNSET
    key: str | msgspec.UnsetType = msgspec.UNSET
