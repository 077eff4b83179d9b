"""Whether instants in somebody's table are in the unit that was named.

Seconds that are read as milliseconds lie in January 1970, so that everything is due; milliseconds read as seconds lie in the
far future, so that nothing ever is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from tickler.dynamo import Client, Item
from tickler.dynamo.batches import gathered
from tickler.errors import SchemaMismatch
from tickler.stores.dynamodb.index.due_query import SparseIndex
from tickler.stores.dynamodb.table import all_of

Unit = Literal["ms", "s"]

MS_PER: dict[Unit, int] = {"ms": 1, "s": 1000}
NAMES: dict[Unit, str] = {"ms": "milliseconds", "s": "seconds"}
PLAUSIBLE_MS = 20 * 366 * 86_400_000
SAMPLED = 10  # from either end of each partition

log = logging.getLogger("tickler.index")


def is_misread(number: str, unit: Unit, now_ms: int) -> bool:
    """Whether a number is decades away from now in this unit, and near it in the other one."""
    return not _is_near(number, unit, now_ms) and _is_near(number, _other(unit), now_ms)


class UnitCheck:
    """Before the first write, and before each claim of an item: a claim in the wrong unit writes it in that unit, too."""

    def __init__(self, index: SparseIndex, unit: Unit) -> None:
        self._index = index
        self._unit = unit
        self.is_known = False  # until there was an item to tell it by

    async def before_write(self, client: Client, partitions: Sequence[str], now_ms: int) -> None:
        """`SchemaMismatch` when a few items of the index say that the table is in the other unit. Asks until there are some."""
        if self.is_known:
            return
        sampled = await _sample(client, self._index, partitions)
        self.refuse(sampled, now_ms)
        self.is_known = bool(sampled)
        for reason in {reason for item in sampled if (reason := self.misread(item, now_ms)) is not None}:
            log.warning("%s: an item does not fit the others: %s: write it anew", self._index.table, reason)

    def refuse(self, items: Sequence[Item], now_ms: int) -> None:
        """`SchemaMismatch` when half of these items or more are misread: then it is the unit that is wrong, and not the items."""
        reasons = [reason for item in items if (reason := self.misread(item, now_ms)) is not None]
        if reasons and 2 * len(reasons) >= len(items):
            remedy = f"nothing was written: pass unit={_other(self._unit)!r}"
            raise SchemaMismatch(f"dynamodb://{self._index.table}", f"{reasons[0]}; {remedy}", self._index.sort_key)

    def misread(self, item: Item, now_ms: int) -> str | None:
        """Why the instant of an item is not in this unit; None when it may be, or there is none."""
        number = item.get(self._index.sort_key, {}).get("N")
        if number is None or not is_misread(number, self._unit, now_ms):
            return None
        far, near = NAMES[self._unit], NAMES[_other(self._unit)]
        return f"{self._index.sort_key} is {number}, which is far from now in {far} and near it in {near}"


def _other(unit: Unit) -> Unit:
    return "s" if unit == "ms" else "ms"


def _is_near(number: str, unit: Unit, now_ms: int) -> bool:
    return abs(Decimal(number) * MS_PER[unit] - now_ms) <= PLAUSIBLE_MS


async def _sample(client: Client, index: SparseIndex, partitions: Sequence[str]) -> list[Item]:
    """A few items from both ends of the index: the earliest and the latest of each partition."""

    async def from_end(end: tuple[str, bool]) -> list[Item]:
        partition, forward = end
        request = {
            "TableName": index.table,
            "IndexName": index.name,
            "KeyConditionExpression": "#partition = :partition",
            "ExpressionAttributeNames": {"#partition": index.partition_key},
            "ExpressionAttributeValues": {":partition": {"S": partition}},
            "ScanIndexForward": forward,
            "Limit": SAMPLED,
        }
        items: list[Item] = (await client.call("Query", request))["Items"]
        return items

    found = all_of(await gathered(map(from_end, [(partition, forward) for partition in partitions for forward in (True, False)])))
    return [item for items in found for item in items]
