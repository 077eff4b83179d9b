"""The plan of a stored channel, and which of its slots are taken."""

from __future__ import annotations

from datetime import datetime, timedelta

from slothpost.model import Channel, ChannelName, Post, Product
from slothpost.plan import Plan
from slothpost.planning.circumstances import ChannelState
from tickler import Weekly
from tickler.table import OpenTable


def plan_of(state: ChannelState) -> Plan:
    return stored_plan(state.product, state.channel)


def stored_plan(product: Product, channel: Channel) -> Plan:
    return Plan(Weekly(channel.days, tz=channel.zone), timedelta(minutes=product.lead_minutes))


async def taken_slots(db: OpenTable, product: str, channel: ChannelName, after: datetime) -> frozenset[datetime]:
    """Return the instants that posts of a channel have, from one on. What was rejected takes none."""
    coming = Post.of_channel(product, channel).since(after)
    return frozenset([post.slot_at async for post in db.iterate(coming, where=Post.state != "skipped")])
