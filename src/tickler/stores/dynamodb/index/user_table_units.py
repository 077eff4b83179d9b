"""Checks that the instants in a user's table are in the unit that the caller named.

Seconds read as milliseconds lie in January 1970, so that everything is due. Milliseconds read as seconds lie in the far
future, so that nothing ever is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from tickler.dynamo.batches import gathered
from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item
from tickler.errors import SchemaMismatch
from tickler.stores.dynamodb.index.due_query import SparseIndex
from tickler.stores.dynamodb.table import all_of

Unit = Literal["ms", "s"]

MS_PER: dict[Unit, int] = {"ms": 1, "s": 1000}
NAMES: dict[Unit, str] = {"ms": "milliseconds", "s": "seconds"}
PLAUSIBLE_MS = 20 * 366 * 86_400_000
SAMPLE_SIZE = 10  # from either end of each partition

log = logging.getLogger("tickler.index")


def is_misread(number: str, unit: Unit, now_ms: int) -> bool:
    """Whether a number is decades away from now in this unit, and near it in the other one."""
    return not _is_near(number, unit, now_ms) and _is_near(number, _other(unit), now_ms)


class UnitCheck:
    """Checks the unit before the first write and before each claim, because a claim in the wrong unit also writes in it."""

    def __init__(self, index: SparseIndex, unit: Unit) -> None:
        self._index = index
        self._unit = unit
        self.is_known = False  # set once an item was found to tell it by

    async def before_write(self, client: Client, partitions: Sequence[str], now_ms: int) -> None:
        """Raise `SchemaMismatch` if a sample of the index is in the other unit. Samples on each call until there are items."""
        if self.is_known:
            return
        sampled = await _sample(client, self._index, partitions)
        self.refuse(sampled, now_ms)
        self.is_known = bool(sampled)
        for reason in {reason for item in sampled if (reason := self.misread(item, now_ms)) is not None}:
            log.warning("%s: an item is in another unit than the others: %s; write it again", self._index.table, reason)

    def refuse(self, items: Sequence[Item], now_ms: int) -> None:
        """Raise `SchemaMismatch` if half of these items or more are misread, since then the unit is wrong, not the items."""
        reasons = [reason for item in items if (reason := self.misread(item, now_ms)) is not None]
        if reasons and 2 * len(reasons) >= len(items):
            remedy = f"nothing was written: pass unit={_other(self._unit)!r}"
            raise SchemaMismatch(f"dynamodb://{self._index.table}", f"{reasons[0]}; {remedy}", self._index.sort_key)

    def misread(self, item: Item, now_ms: int) -> str | None:
        """Return why an item's instant cannot be in this unit, or None if it can, or the item has no instant."""
        number = item.get(self._index.sort_key, {}).get("N")
        if number is None or not is_misread(number, self._unit, now_ms):
            return None
        far, near = NAMES[self._unit], NAMES[_other(self._unit)]
        return f"{self._index.sort_key} is {number}, which is decades from now in {far} and close to now in {near}"


def _other(unit: Unit) -> Unit:
    return "s" if unit == "ms" else "ms"


def _is_near(number: str, unit: Unit, now_ms: int) -> bool:
    return abs(Decimal(number) * MS_PER[unit] - now_ms) <= PLAUSIBLE_MS


async def _sample(client: Client, index: SparseIndex, partitions: Sequence[str]) -> list[Item]:
    """Read a few items from both ends of each partition, the earliest and the latest."""

    async def from_end(end: tuple[str, bool]) -> list[Item]:
        partition, forward = end
        request = {**index.query(partition), "ScanIndexForward": forward, "Limit": SAMPLE_SIZE}
        items: list[Item] = (await client.call("Query", request))["Items"]
        return items

    found = all_of(await gathered(map(from_end, [(partition, forward) for partition in partitions for forward in (True, False)])))
    return [item for items in found for item in items]
