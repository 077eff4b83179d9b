"""A delivery or a poll that was read: small enough to wait in the engine until it is taken in."""

from __future__ import annotations

import msgspec

from slothpost.activity.happening import Happening
from slothpost.model import Source


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What one delivery or one poll found out about a product.

    `subject` is the id of its repository, project or app at the source.
    """

    product: str
    source: Source
    delivery: str
    subject: str | None
    happenings: tuple[Happening, ...]

    def to_json(self) -> object:
        """Return plain values, as the engine takes them."""
        return msgspec.json.decode(msgspec.json.encode(self))

    @classmethod
    def from_json(cls, payload: object) -> Event:
        return msgspec.convert(payload, cls)
