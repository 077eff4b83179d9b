"""Positions in a shard, as text: behind the sequence number of a record, from an instant on, or at the end of a closed shard."""

from __future__ import annotations

import secrets

END = "$"
CLOCK_MARGIN_MS = 5_000  # by which the clocks of DynamoDB's machines may differ
MINUTE_MS = 60_000  # to which DynamoDB Local rounds the time of a record; the service rounds to the second

_FROM = "@"


def from_instant(ms: int) -> str:
    """Return a position from an instant on. No two are equal, so that each can have a shard iterator of its own."""
    return f"{_FROM}{ms}-{secrets.token_hex(4)}"


def first_ms(position: str | None) -> int:
    """Return the time of the first record that a position stands before, as far as records are told apart by time."""
    if not is_instant(position):
        return 0
    return (instant_ms(position) - CLOCK_MARGIN_MS) // MINUTE_MS * MINUTE_MS


def is_instant(position: str | None) -> bool:
    return position is not None and position.startswith(_FROM)


def instant_ms(position: str | None) -> int:
    return int((position or "").removeprefix(_FROM).partition("-")[0])


def sequence_number(position: str | None) -> str | None:
    """Return the number behind which to read; None to read from the oldest record."""
    return None if is_instant(position) else position
