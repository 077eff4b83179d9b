"""The names under which the engine knows what slothpost has: handlers, and keys of schedules."""

from __future__ import annotations

import secrets
from datetime import datetime

from slothpost.model import ChannelName, Source

DRAFT = "slothpost.draft"
PUBLISH = "slothpost.publish"
DECIDE = "slothpost.decide"
ACTIVITY = "slothpost.activity"
POLL = "slothpost.poll"
REFRESH = "slothpost.refresh"


def draft_key(product: str, channel: ChannelName) -> str:
    return f"draft/{product}/{channel}"


def publish_key(post: str) -> str:
    return f"publish/{post}"


def decide_key(post: str, at: datetime) -> str:
    """The instant is part of the name, so that a post may get another one while this is being delivered."""
    return f"decide/{post}/{int(at.timestamp())}"


def poll_key(product: str, source: Source) -> str:
    return f"poll/{product}/{source}"


def drafted_post_id(product: str, channel: ChannelName, slot_at: datetime) -> str:
    """Return the same id for a slot each time, so that a slot is drafted once."""
    return f"{product}-{channel}-{slot_at:%Y%m%dT%H%M%S}"


def new_id() -> str:
    return secrets.token_hex(8)
