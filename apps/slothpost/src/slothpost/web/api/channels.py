"""`/api/products/{product}/channels/{channel}`: plans and pauses of X and Threads, and why a channel does what it does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slothpost.errors import InvalidField
from slothpost.model import Channel, ChannelName
from slothpost.planning.plans import CHANNELS, ChannelView
from slothpost.web.api.operation import Call, NoBody, NoQuery, operation
from tickler.errors import InvalidWhen
from tickler.observe import Why
from tickler.table import MISSING

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_PATH = "/products/{product}/channels/{channel}"
_TIME = {"type": "string", "pattern": "^([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$"}
_DAY = {"anyOf": [_TIME, {"type": "array", "items": _TIME}, {"type": "null"}]}
# The values are read by the engine, whose errors say what a day needs; this is what it takes.
_DAYS = Meta(
    description="The time of each day, or its times; null, or no entry, for none.",
    extra_json_schema={"properties": dict.fromkeys(DAYS, _DAY), "additionalProperties": False},
)
_Zone = Annotated[
    str,
    Meta(description="The zone of the times. Default: that of the channel.", extra_json_schema={"format": "time-zone"}),
]


class PlanBody(msgspec.Struct, frozen=True):
    """When a channel posts: a day is on when it has a time. As it is here, it can be put again."""

    days: dict[str, list[str] | None]
    tz: str


class NewPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a channel posts. Days that are left out have no time; without any time, nothing is scheduled."""

    days: Annotated[dict[str, Any], _DAYS]
    tz: _Zone | UnsetType = UNSET


class ChannelBody(msgspec.Struct, frozen=True, kw_only=True):
    """A channel. `hold`: why nothing can be published now; null if nothing prevents it."""

    product: str
    name: ChannelName
    plan: PlanBody
    is_scheduled: bool
    paused: bool
    account: str | None
    topic_tag: str | None
    next_draft: datetime | None
    next_slot: datetime | None
    hold: str | None


class ChannelList(msgspec.Struct, frozen=True):
    """The channels of a product."""

    items: list[ChannelBody]


class WhyFact(msgspec.Struct, frozen=True):
    """One link of the chain. It is not `good` where something fails, and `idle` where nothing happens on purpose."""

    about: str
    says: str
    good: bool
    idle: bool


class WhyBody(msgspec.Struct, frozen=True):
    """Why a channel drafts, or does not, as the engine says."""

    sentence: str
    facts: list[WhyFact]


@operation("GET", "/products/{product}/channels")
async def list_channels(call: Call[NoQuery, NoBody]) -> ChannelList:
    """List the channels of a product, with their next drafts and slots."""
    plans = call.slothpost.plans
    return ChannelList([_channel(await plans.view(*call.product, name)) for name in CHANNELS])


@operation("GET", _PATH)
async def get_channel(call: Call[NoQuery, NoBody]) -> ChannelBody:
    """Get a channel, with its next draft and its next slot."""
    return await _view(call)


@operation("GET", f"{_PATH}/plan")
async def get_plan(call: Call[NoQuery, NoBody]) -> PlanBody:
    """Get when a channel posts."""
    return (await _view(call)).plan


@operation("PUT", f"{_PATH}/plan")
async def set_plan(call: Call[NoQuery, NewPlan]) -> ChannelBody:
    """Set when a channel posts, in place of its present plan."""
    zone = None if call.body.tz is UNSET else call.body.tz
    try:
        await call.slothpost.plans.set_plan(*call.channel, call.body.days, zone)
    except InvalidWhen as error:
        raise _in_plan(error) from None
    return await _view(call)


@operation("POST", f"{_PATH}/pause")
async def pause_channel(call: Call[NoQuery, NoBody]) -> ChannelBody:
    """Pause a channel. What would have been posted meanwhile was not missed."""
    await call.slothpost.plans.pause_channel(*call.channel, paused=True)
    return await _view(call)


@operation("POST", f"{_PATH}/resume")
async def resume_channel(call: Call[NoQuery, NoBody]) -> ChannelBody:
    """Resume a channel."""
    await call.slothpost.plans.pause_channel(*call.channel, paused=False)
    return await _view(call)


@operation("GET", f"{_PATH}/why")
async def why_channel(call: Call[NoQuery, NoBody]) -> WhyBody:
    """Explain why a channel drafts when it does, or why it does not."""
    view = await call.slothpost.plans.view(*call.channel)
    if view.why is None:
        return WhyBody("not scheduled: no day of the plan has a time", [])
    return _why(view.why)


OPERATIONS = (list_channels, get_channel, get_plan, set_plan, pause_channel, resume_channel, why_channel)


async def _view(call: Call[Any, Any]) -> ChannelBody:
    return _channel(await call.slothpost.plans.view(*call.channel))


def _channel(view: ChannelView) -> ChannelBody:
    channel = view.state.channel
    return ChannelBody(
        product=channel.product,
        name=channel.name,
        plan=_plan(channel),
        is_scheduled=view.is_scheduled,
        paused=channel.paused,
        account=None if channel.account is MISSING else channel.account,
        topic_tag=None if channel.topic_tag is MISSING else channel.topic_tag,
        next_draft=view.next_draft,
        next_slot=view.next_slot,
        hold=view.state.hold_reason,
    )


def _plan(channel: Channel) -> PlanBody:
    days: Mapping[str, list[str]] = channel.days
    return PlanBody({day: days.get(day) for day in DAYS}, channel.zone)


def _why(why: Why) -> WhyBody:
    return WhyBody(why.sentence, [WhyFact(fact.about, fact.says, fact.good, fact.idle) for fact in why.facts])


def _in_plan(error: InvalidWhen) -> InvalidField:
    """Name the field as it is in the body: a day is below `days`."""
    if error.field == "tz":
        return InvalidField("tz", str(error))
    return InvalidField("days" if error.field == "plan" else f"days.{error.field}", error.reason if error.inside else str(error))
