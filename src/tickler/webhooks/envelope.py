"""What a target is told of a fire: the same JSON for every kind that takes a message."""

from __future__ import annotations

import json
import re
from functools import lru_cache

import msgspec

from tickler.clock import to_datetime
from tickler.model.delivery import Delivery
from tickler.model.payload import encodable_payload


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


def _in_any_way(character: str) -> str:
    """As it is, or escaped as JSON and JavaScript do."""
    code = ord(character)
    return rf"(?:\\?{re.escape(character)}|\\x{code:02x}|\\u{code:04x}|\\u\{{0*{code:x}\}}|\\0*{code:o})"


class _Pairs(list[tuple[str, object]]):
    """An object of JSON, with keys that come twice."""


_TYPE = TYPE.encode()
_encode = msgspec.json.Encoder().encode
_pairs = json.JSONDecoder(object_pairs_hook=_Pairs)
_LINE_GOES_ON = r"(?:\\(?:\r\n|[\r\n\u2028\u2029]))*"  # in the middle of a text
_ESCAPED_TYPE = re.compile(_LINE_GOES_ON.join(map(_in_any_way, TYPE)), re.IGNORECASE)
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
    take the first and some the last, some do not mind upper case, comments, what follows the end, escapes that are JavaScript's,
    or two bytes for each character. What is JSON is read as such; of all else it is enough that an object could begin in it and
    that it has our type, however that is escaped.
    """
    if _TYPE not in body and b"\\" not in body and b"\0" not in body:
        return False
    if b"\0" in body:
        return body.lstrip(_BEFORE_JSON).startswith((b"{", b"/", b"#"))
    text = body.decode(errors="replace")
    try:
        value = _pairs.decode(text.lstrip("\ufeff"))
    except RecursionError:
        return True
    except ValueError:
        return "{" in text and _ESCAPED_TYPE.search(text) is not None
    return isinstance(value, _Pairs) and any(name.lower() == "type" and found == TYPE for name, found in value)


@lru_cache(maxsize=256)  # many fire at the same instant
def iso(ms: int) -> str:
    """An instant as ISO 8601 has it, in UTC and to the millisecond."""
    return to_datetime(ms).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
