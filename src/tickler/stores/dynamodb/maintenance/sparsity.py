"""Whether a sparse index is sparse: one that holds most of a table costs what the table costs, and finds no less slowly."""

from __future__ import annotations

from typing import Any

import msgspec

from tickler.dynamo import Item

MAX_SHARE = 0.3
FEW_ITEMS = 1_000  # with fewer, nothing is saved by leaving some out
MAX_STATUSES = 1_100  # a DynamoIndex has up to 1,024 shards of what is active


class Sparsity(msgspec.Struct, frozen=True):
    """How many items a table has, and how many of them are in an index."""

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
    """Counts, item by item, what an index that is keyed on text and a number holds."""

    def __init__(self, index: str, status: str, next: str) -> None:
        self.index = index
        self.status = status
        self._next = next
        self.indexed = 0
        self.example: Item = {}  # whose status is not that of the first, if there is one: it may say that it is idle
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
        """Why it is no sparse index, though it seems to be one of what is due: one with a few statuses, or shards of one."""
        sparsity = Sparsity(self.index, items, self.indexed)
        if sparsity.is_sparse or len(self._statuses) > min(MAX_STATUSES, self.indexed // 10):
            return None
        return (
            f"is on {sparsity.share:.0%} of all {items:,} items: if {self.index} is the index of a DynamoIndex, it is not sparse"
        )


def sparsity_of(description: dict[str, Any], index: str) -> Sparsity:
    """As DescribeTable counts them: DynamoDB does so every few hours."""
    counts = {each["IndexName"]: each.get("ItemCount", 0) for each in description.get("GlobalSecondaryIndexes", [])}
    return Sparsity(index, description.get("ItemCount", 0), counts.get(index, 0))
