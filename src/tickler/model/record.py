"""Records: small named values."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True):
    """A named value. `version` counts its writes from 1. From `expires_at` on it is absent."""

    kind: str
    name: str
    value: object
    version: int
    expires_at: int | None = None


def value_of(record: Record, kind: type[T]) -> T | None:
    """Return the value, or None if it is not of this kind: a newer version may have written it."""
    try:
        return msgspec.convert(record.value, kind)
    except msgspec.ValidationError:
        return None
