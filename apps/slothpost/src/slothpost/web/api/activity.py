"""`/api/products/{product}/activity`: what happened to a product, from every source."""

from __future__ import annotations

from datetime import datetime

import msgspec

from slothpost.model import Activity, ActivityKind, Source
from slothpost.web.api.operation import Call, NoBody, operation
from slothpost.web.api.pages import Next, PageQuery, next_of
from tickler.table import MISSING


class SightingBody(msgspec.Struct, frozen=True):
    """A source that told about an activity."""

    source: Source
    event: str


class ActivityBody(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened. What has no `worth` is never told; `x_post` and `threads_post` tell of it."""

    id: str
    product: str
    at: datetime
    kind: ActivityKind
    title: str
    body: str
    url: str | None
    is_private: bool
    worth: int
    sightings: list[SightingBody]
    x_post: str | None
    threads_post: str | None


class ActivityPage(msgspec.Struct, frozen=True):
    """A page of activity."""

    items: list[ActivityBody]
    next: Next


@operation("GET", "/products/{product}/activity")
async def list_activity(call: Call[PageQuery, NoBody]) -> ActivityPage:
    """List what happened to a product, the latest first."""
    page = await call.slothpost.activities.recent(*call.product, first=call.query.limit, after=call.query.cursor)
    return ActivityPage([activity_body(activity) for activity in page.items], next_of(page))


OPERATIONS = (list_activity,)


def activity_body(activity: Activity) -> ActivityBody:
    return ActivityBody(
        id=activity.id,
        product=activity.product,
        at=activity.at,
        kind=activity.kind,
        title=activity.title,
        body=activity.body,
        url=None if activity.url is MISSING else activity.url,
        is_private=activity.is_private,
        worth=activity.worth,
        sightings=[SightingBody(each.source, each.event) for each in activity.sightings],
        x_post=None if activity.x_post is MISSING else activity.x_post,
        threads_post=None if activity.threads_post is MISSING else activity.threads_post,
    )
