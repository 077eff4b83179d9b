"""Measures whether an index is sparse. One that holds most of a table costs as much as the table, and is no faster."""

from __future__ import annotations

from typing import Any

import msgspec

from tickler.dynamo.codec import Item

MAX_SHARE = 0.3
FEW_ITEMS = 1_000  # a sparse index saves nothing on a smaller table
MAX_STATUSES = 1_100  # a DynamoIndex has up to 1,024 shards, each with its own status


class Sparsity(msgspec.Struct, frozen=True):
    """The number of items of a table, and of those in an index."""

    index: str
    items: int
    indexed: int

    @property
    def share(self) -> float:
        return self.indexed / self.items if self.items else 0.0

    @property
    def is_sparse(self) -> bool:
        return self.items < FEW_ITEMS or self.share <= MAX_SHARE


class SparsityCount:
    """Counts the items of an index that is keyed on text and a number."""

    def __init__(self, index: str, status: str, next: str) -> None:
        self.index = index
        self.status = status
        self._next = next
        self.indexed = 0
        self.example: Item = {}  # preferably with another status than the first item, which may mean inactive
        self._statuses: set[str] = set()

    def add(self, item: Item) -> None:
        status = item.get(self.status, {}).get("S")
        if status is not None and "N" in item.get(self._next, {}):
            self.indexed += 1
            if len(self._statuses) < 2 and status not in self._statuses:
                self.example = item
            if len(self._statuses) <= MAX_STATUSES:
                self._statuses.add(status)

    def reason(self, items: int) -> str | None:
        """Return why an index that looks like one of due items is not sparse. Its statuses are few, or shards of one."""
        sparsity = Sparsity(self.index, items, self.indexed)
        if sparsity.is_sparse or len(self._statuses) > min(MAX_STATUSES, self.indexed // 10):
            return None
        return (
            f"is on {sparsity.share:.0%} of all {items:,} items: if {self.index} is the index of a DynamoIndex, it is not sparse"
        )


def sparsity_of(description: dict[str, Any], index: str) -> Sparsity:
    """Read the counts of DescribeTable, which DynamoDB updates every few hours."""
    counts = {each["IndexName"]: each.get("ItemCount", 0) for each in description.get("GlobalSecondaryIndexes", [])}
    return Sparsity(index, description.get("ItemCount", 0), counts.get(index, 0))
