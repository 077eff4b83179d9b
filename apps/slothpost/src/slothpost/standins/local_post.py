"""A post on a stand-in."""

from __future__ import annotations

import hashlib
from datetime import datetime

import msgspec


class LocalPost(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    handle: str
    text: str
    at: datetime
    url: str
    topic_tag: str | None = None


def user_id(handle: str) -> str:
    """Return the network's id of a person: the same whenever a stand-in is started."""
    return str(10**15 + int.from_bytes(hashlib.sha256(handle.lower().encode()).digest()[:6], "big"))
