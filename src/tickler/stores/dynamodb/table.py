"""The table, with the statements, queries and counts that several modules need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeVar

from tickler.dynamo import statements
from tickler.dynamo.batches import Outcome, gathered
from tickler.dynamo.client import Client
from tickler.dynamo.codec import Item
from tickler.dynamo.statements import Condition, Statement
from tickler.errors import InvalidInput, StoreUnavailable
from tickler.stores.dynamodb.index.due_query import SparseIndex
from tickler.stores.dynamodb.layout import DUE, LISTED, OPEN, shard_name, text
from tickler.stores.dynamodb.settings import CurrentSettings

T = TypeVar("T")

TRIES = 50  # of a write whose condition fails because others keep changing the item
CHECK_POLICY = "compare the policy of these credentials with `tickler migrate --print-iam`"
LOST = frozenset({"ConditionalCheckFailed", "DuplicateItem"})  # another writer was first


class Table:
    """An existing table, as seen from one region. `label` names the store in messages."""

    def __init__(self, client: Client, name: str, label: str) -> None:
        self.client = client
        self.name = name
        self.label = label
        self.due = SparseIndex(name, DUE, "due_shard", "next_fire_at")
        self.open = SparseIndex(name, OPEN, "open_shard", "deliver_after")
        self.listed = SparseIndex(name, LISTED, "listed", "sk")
        self.settings = CurrentSettings(client, name, label)

    @property
    def home(self) -> str:
        """The region whose rows are claimed here, and the home of new rows."""
        return self.client.region

    async def shards(self) -> list[str]:
        """Return this region's shards of the indexes `due` and `open`."""
        settings = await self.settings.get()
        return [shard_name(self.home, shard) for shard in range(settings.read_shards)]

    def insert(self, item: Item) -> Statement:
        return statements.insert(self.name, item)

    def update(
        self, key: Item, values: Item, condition: Condition, remove: Sequence[str] = (), *, old: bool = False
    ) -> Statement:
        return statements.update(self.name, key, values, condition, remove, old=old)

    def delete(self, key: Item, condition: Condition, *, old: bool = False) -> Statement:
        return statements.delete(self.name, key, condition, old=old)

    def contended(self, what: object) -> StoreUnavailable:
        return StoreUnavailable(f"{self.label}: {what} was changed by others {TRIES} times in a row: try again")

    async def pages(self, request: Mapping[str, object]) -> AsyncIterator[dict[str, Any]]:
        """Yield all pages of a query or, if the request has no key condition, of a scan."""
        operation = "Query" if "KeyConditionExpression" in request else "Scan"
        paged = {"TableName": self.name, **request}
        while True:
            page = await self.client.call(operation, paged)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            paged["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def first(self, request: Mapping[str, object], read: Callable[[Item], T | None], limit: int | None) -> list[T]:
        """Query until `read` has returned a value for `limit` items, or for all items, and return these values."""
        found: list[T] = []
        async for page in self.pages(request if limit is None else {**request, "Limit": limit}):
            found += [value for item in page["Items"] if (value := read(item)) is not None]
            if limit is not None and len(found) >= limit:
                return found[:limit]
        return found

    async def count(
        self, index: SparseIndex, partitions: Sequence[str], *, until: int | None = None, most: int | None = None
    ) -> int:
        """Count the entries in partitions of an index, up to `until` in each if given. Stops at `most`."""
        values: Item = {} if until is None else {":until": {"N": str(until)}}
        request: dict[str, object] = {"IndexName": index.name, "Select": "COUNT"} | ({} if most is None else {"Limit": most})
        request["KeyConditionExpression"] = f"{index.partition_key} = :partition" + (
            "" if until is None else f" AND {index.sort_key} <= :until"
        )

        async def one(partition: str) -> int:
            found = 0
            async for page in self.pages({**request, "ExpressionAttributeValues": {":partition": text(partition), **values}}):
                found += page["Count"]
                if most is not None and found >= most:
                    return most
            return found

        total = sum(all_of(await gathered(one(partition) for partition in partitions)))
        return total if most is None else min(total, most)


def all_of(results: Sequence[T | Exception]) -> list[T]:
    """Return the results, or raise the first exception among them."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return list(results)  # type: ignore[arg-type]  # no exception is left


def settled(outcomes: Sequence[Outcome | Exception]) -> list[Outcome]:
    """Return outcomes that succeeded or lost a race. Raises `StoreUnavailable` for any other, which was refused or failed."""
    for outcome in (found := all_of(outcomes)):
        if not outcome.done and outcome.code not in LOST:
            raise refused(outcome)
    return found


def refused(outcome: Outcome) -> StoreUnavailable:
    return StoreUnavailable(f"DynamoDB refused a write ({outcome.code}): {CHECK_POLICY}")


def refuse_using(using: object) -> None:
    if using is not None:
        raise InvalidInput("using= has no connection to join on DynamoDB: pass a transaction of a table, or leave it out")
