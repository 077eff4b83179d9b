"""What a target is told of a fire: the same JSON for every kind that takes a message."""

from __future__ import annotations

import json
from functools import lru_cache

import msgspec

from tickler.clock import to_datetime
from tickler.delivery import Delivery
from tickler.payload import encodable_payload


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


TYPE = "schedule.fired"

_encode = msgspec.json.Encoder().encode
_pairs = json.JSONDecoder(object_pairs_hook=list)
_BEFORE_JSON = b"\0 \t\r\n\xef\xbb\xbf"  # spaces and byte order marks


def envelope(delivery: Delivery) -> bytes:
    """Standard Webhooks' payload of a fire. `timestamp` is its nominal instant, and so is `data.nominal_at`, in milliseconds.

    Attempts of one fire differ in `data.attempt` alone. The payload is the JSON that is stored, without a look at it.
    """
    payload = encodable_payload(delivery)
    data = _Data(delivery.id, delivery.owner, delivery.key, delivery.nominal_at, delivery.attempt, payload)
    return _encode(_Envelope(TYPE, iso(delivery.nominal_at), data))


def passes_for_an_envelope(body: bytes) -> bool:
    """Whether somebody's JSON could be taken for an envelope, by one reader or another.

    What users write is signed like Tickler's own words where it is sent alone. Readers differ: of a key that comes twice some
    take the first and some the last, some do not mind upper case, what follows the end, or two bytes for each character.
    """
    if TYPE.encode() not in body and rb"\u" not in body and b"\0" not in body:
        return False
    start = body.lstrip(_BEFORE_JSON)
    if not start.startswith(b"{"):
        return False
    if b"\0" in body:
        return True
    try:
        pairs, _ = _pairs.raw_decode(start.decode())
    except RecursionError:
        return True
    except ValueError:
        return TYPE.encode() in body
    return any(name.lower() == "type" and value == TYPE for name, value in pairs)


@lru_cache(maxsize=256)  # many fire at the same instant
def iso(ms: int) -> str:
    """An instant as ISO 8601 has it, in UTC and to the millisecond."""
    return to_datetime(ms).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
