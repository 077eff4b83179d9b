"""Counts of requests, retries and consumed capacity."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Usage:
    """Counts since the client was created. DynamoDB reports the units; some engines report none for batches."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()  # by operation, retries included
        self.retries: Counter[str] = Counter()  # by the error code that caused them
        self.read_units = 0.0
        self.write_units = 0.0

    def count(self, operation: str, consumed: Any) -> None:
        """Add the `ConsumedCapacity` of a response: an object, or a list of them."""
        for each in consumed if isinstance(consumed, list) else [consumed]:
            units = each.get("CapacityUnits", 0.0)
            if operation in READS:
                self.read_units += units
            else:
                self.write_units += units


READS = frozenset({"Query", "Scan", "GetItem", "BatchGetItem"})
WRITES = frozenset(
    {
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "BatchWriteItem",
        "TransactWriteItems",
        "ExecuteTransaction",
        "ExecuteStatement",
        "BatchExecuteStatement",
    }
)
