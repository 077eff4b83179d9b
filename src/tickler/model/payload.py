"""Payloads that stay JSON, as a store keeps them, until they are accessed.

Decoded, a payload can take fifty times the memory, so a payload that is only passed on is never decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import msgspec

from tickler.errors import InvalidSchedule

_decode = msgspec.json.Decoder().decode
_NOT_DECODED = object()


class RawPayload:
    """JSON in place of a value. It compares equal to its decoded value, and is decoded only once."""

    __slots__ = ("_value", "json")

    def __init__(self, json: msgspec.Raw) -> None:
        self.json = json
        self._value: object = _NOT_DECODED

    def decoded(self) -> object:
        """Return the value: the same object each time, so that changes to it stay visible."""
        if self._value is _NOT_DECODED:
            self._value = self.read()
        return self._value

    def encodable(self) -> object:
        """Return what an encoder takes: the JSON itself, or the value if it was decoded and may have changed."""
        return self.json if self._value is _NOT_DECODED else self._value

    def read(self) -> object:
        """Decode a fresh value, which is not kept."""
        try:
            return _decode(self.json)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise InvalidSchedule("payload", f"cannot be read ({error}): put the schedule again") from None

    def __eq__(self, other: object) -> bool:
        """Compare without keeping the decoded values."""
        if isinstance(other, RawPayload):
            if _NOT_DECODED is self._value is other._value and bytes(self.json) == bytes(other.json):
                return True
            other = other._peek()
        return self._peek() == other

    def __hash__(self) -> int:
        return hash(self._peek())

    def __repr__(self) -> str:
        return repr(self._peek())

    def __reduce__(self) -> tuple[object, ...]:
        return RawPayload, (msgspec.Raw(msgspec.json.encode(self.encodable())),)

    def _peek(self) -> object:
        return self.read() if self._value is _NOT_DECODED else self._value


def decode_on_access(kind: type[msgspec.Struct]) -> None:
    """Make `payload` of this struct and its subclasses return the value of the `RawPayload` that it holds."""
    kind.held_payload = kind.__dict__["payload"]  # type: ignore[attr-defined]  # the field itself, under another name

    def payload(struct: msgspec.Struct) -> object:
        held = held_payload(struct)
        return held.decoded() if type(held) is RawPayload else held

    kind.payload = property(payload)  # type: ignore[attr-defined]  # every struct that is given here has that field


# Returns what the field holds: a `RawPayload` or the value itself.
held_payload: Callable[[msgspec.Struct], object] = attrgetter("held_payload")


def encodable_payload(struct: msgspec.Struct) -> object:
    """Return what an encoder takes for the payload, without decoding it."""
    held = held_payload(struct)
    return held.encodable() if type(held) is RawPayload else held


def is_untouched(struct: msgspec.Struct) -> bool:
    """Return whether the payload is still the JSON from a store, which was checked when it was put."""
    held = held_payload(struct)
    return type(held) is RawPayload and held.encodable() is held.json


def fresh_payload(struct: msgspec.Struct) -> object:
    """Return the payload for another struct, which does not share its decoded value with this one."""
    held = held_payload(struct)
    return RawPayload(held.json) if type(held) is RawPayload else held


def payload_bytes(struct: msgspec.Struct) -> int:
    """Return the size of an undecoded payload in bytes; 0 for any other."""
    held = held_payload(struct)
    return len(held.json) if type(held) is RawPayload else 0
