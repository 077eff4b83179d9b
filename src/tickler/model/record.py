"""Small named values."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True):
    """A named value. `version` counts its writes from 1; after `expires_at` it is absent."""

    kind: str
    name: str
    value: object
    version: int
    expires_at: int | None = None


def value_of(record: Record, kind: type[T]) -> T | None:
    """Its value; None where that is none of this kind, as what a newer version wrote may be: that must not hide the others."""
    try:
        return msgspec.convert(record.value, kind)
    except msgspec.ValidationError:
        return None
