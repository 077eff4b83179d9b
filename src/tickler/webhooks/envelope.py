"""The JSON message of a fire, the same for every kind of target."""

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
    """Return a pattern for a character, plain or escaped as in JSON and JavaScript."""
    code = ord(character)
    return rf"(?:\\?{re.escape(character)}|\\x{code:02x}|\\u{code:04x}|\\u\{{0*{code:x}\}}|\\0*{code:o})"


class _Pairs(list[tuple[str, object]]):
    """A JSON object that keeps duplicate keys."""


_TYPE = TYPE.encode()
_encode = msgspec.json.Encoder().encode
_pairs = json.JSONDecoder(object_pairs_hook=_Pairs)
_LINE_GOES_ON = r"(?:\\(?:\r\n|[\r\n\u2028\u2029]))*"  # a line continuation inside a string
_ESCAPED_TYPE = re.compile(_LINE_GOES_ON.join(map(_in_any_way, TYPE)), re.IGNORECASE)
_BEFORE_JSON = b"\0 \t\r\n\xef\xbb\xbf"  # spaces and byte order marks


def envelope(delivery: Delivery) -> bytes:
    """Return the Standard Webhooks message of a fire. `timestamp` and `data.nominal_at` are its nominal instant.

    Attempts of one fire differ only in `data.attempt`. The payload is the stored JSON, not decoded.
    """
    payload = encodable_payload(delivery)
    data = _Data(delivery.id, delivery.owner, delivery.key, delivery.nominal_at, delivery.attempt, payload)
    return _encode(_Envelope(TYPE, iso(delivery.nominal_at), data))


def passes_for_an_envelope(body: bytes) -> bool:
    """Return whether some receiver could take a raw body for an envelope.

    A raw body is written by users, but signed like our own envelopes. Parsers differ: of a duplicate key some take the first and
    some the last; some accept upper case, comments, trailing text, JavaScript's escapes, or UTF-16. Valid JSON is therefore
    parsed, and any other text counts if an object could begin in it and if it contains our type in any escaped form.
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
    """Format an instant as ISO 8601 in UTC, to the millisecond."""
    return to_datetime(ms).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
