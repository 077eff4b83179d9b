"""The contract of what an engine keeps about a table beside its items: small named values with versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """A stored value. Its version is 1 when it is created, and each write raises it."""

    key: str
    version: int
    value: bytes


class EntryWrite(NamedTuple):
    """Stores a value under a key, or deletes it if the value is None.

    It happens only if the stored version is `expected`, where 0 stands for no value; None writes in any case.
    """

    key: str
    value: bytes | None
    expected: int | None = None


class Metadata(Protocol):
    """Values by key, for programs that share a table. Keys are ASCII text; a value may have a megabyte."""

    async def read(self, prefix: str, *, after: str = "", limit: int | None = None, keys_only: bool = False) -> list[Entry]:
        """Return entries whose keys begin with `prefix`, behind `after`, in the order of keys. `keys_only`: with empty values."""

    async def write(self, writes: Sequence[EntryWrite]) -> list[bool]:
        """Write entries, each atomically and by itself, and return whether each happened. No two name the same key."""
