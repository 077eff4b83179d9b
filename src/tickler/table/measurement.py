"""How full a table and its indexes are: what an engine's `measure` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

SAMPLED_ITEMS = 10_000  # that `measure` reads of the table, and of each index, where it cannot count without reading


class Partition(msgspec.Struct, frozen=True):
    """A partition key, and how many items have it."""

    key: str
    items: int


class Fill(msgspec.Struct, frozen=True):
    """The items of the table or of one index, by the name of their entity. If it is not `exact`, it was estimated by a sample."""

    items: Mapping[str, int]
    largest: Partition | None = None
    exact: bool = True

    @property
    def total(self) -> int:
        return sum(self.items.values())


class Measurement(msgspec.Struct, frozen=True):
    """The table, each index by its name, and the mean size of an item of each entity, in bytes. Expired items are not counted."""

    table: Fill
    indexes: Mapping[str, Fill]
    bytes: Mapping[str, int]

    @property
    def exact(self) -> bool:
        return all(fill.exact for fill in (self.table, *self.indexes.values()))


def largest_of(partitions: Iterable[tuple[str, int]]) -> Partition | None:
    """Return the partition with the most items; of several, the first in the order of their keys."""
    found = min(partitions, key=lambda each: (-each[1], each[0]), default=None)
    return None if found is None else Partition(*found)
