"""The slots that a post may move to."""

from __future__ import annotations

from datetime import datetime

from slothpost.planning.channel_plan import plan_of, taken_slots
from slothpost.posts.cards import Card
from tickler.table import OpenTable

MAX_CHOICES = 12


async def free_slots(db: OpenTable, card: Card, now: datetime) -> list[datetime]:
    """Return the next free slots of a post's channel; none if the post cannot move."""
    if "move" not in card.actions:
        return []
    plan, taken = plan_of(card.state), await taken_slots(db, card.post.product, card.post.channel, now)
    slots: list[datetime] = []
    at = plan.next_slot(now, taken=taken)
    while at is not None and len(slots) < MAX_CHOICES:
        slots.append(at)
        at = plan.next_slot(at, taken=taken)
    return slots
