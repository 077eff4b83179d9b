"""Columns of a record, as both SQL stores select them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tickler.model.record import Record


def read_record(row: Iterable[Any]) -> Record:
    """Return the record of a row with kind, name, value, version and expires_at."""
    kind, name, value, version, expires_at = row
    return Record(kind, name, msgspec.json.decode(value), version, expires_at)
