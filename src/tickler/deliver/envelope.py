"""What a target is told of a fire: the same JSON for every kind that takes a message."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from tickler.clock import to_datetime
from tickler.delivery import Delivery


class _Data(msgspec.Struct, frozen=True, gc=False):
    id: str
    owner: str
    key: str
    nominal_at: int
    attempt: int
    payload: object


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    type: str
    timestamp: str
    data: _Data


_encode = msgspec.json.Encoder().encode


def envelope(delivery: Delivery) -> bytes:
    """Standard Webhooks' payload of a fire. `timestamp` is its nominal instant, and so is `data.nominal_at`, in milliseconds.

    Attempts of one fire differ in `data.attempt` alone.
    """
    data = _Data(delivery.id, delivery.owner, delivery.key, delivery.nominal_at, delivery.attempt, delivery.payload)
    return _encode(_Envelope("schedule.fired", iso(delivery.nominal_at), data))


@lru_cache(maxsize=256)  # many fire at the same instant
def iso(ms: int) -> str:
    """An instant as ISO 8601 has it, in UTC and to the millisecond."""
    return to_datetime(ms).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
