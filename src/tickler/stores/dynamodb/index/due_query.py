"""Finds due rows by querying the partitions of a sparse index, earliest first. Never scans, never filters."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tickler.dynamo.batches import gathered
from tickler.dynamo.client import Client
from tickler.dynamo.codec import Attribute, Item

ROWS_PER_SHARD = 250  # of one claim: a shard takes 500 claims a second, so a large claim queries several
CONTENDED_BATCH_SIZE = 50

R = TypeVar("R")


class SparseIndex(NamedTuple):
    """A GSI that contains an item only while it has both key attributes: a partition, and the instant when it is due."""

    table: str
    name: str
    partition_key: str
    sort_key: str

    def query(self, partition: str, until: Attribute | None = None) -> dict[str, Any]:
        """Return the request for a query of one partition, up to an instant if given."""
        names, values = {"#partition": self.partition_key}, {":partition": {"S": partition}}
        condition = "#partition = :partition"
        if until is not None:
            names["#sort"], values[":until"] = self.sort_key, until
            condition += " AND #sort <= :until"
        return {
            "TableName": self.table,
            "IndexName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }


class DueQuery(Generic[R]):
    """The due rows of one claim, partition by partition, each earliest first.

    Each call of `take` continues where the last one stopped. Rows may be stale: a GSI is eventually consistent, and may still
    show a row that another worker has just claimed. `read` turns an item into a row, or returns None to skip it; `identity`
    tells rows apart.
    """

    def __init__(
        self,
        client: Client,
        index: SparseIndex,
        until: Attribute,
        read: Callable[[Item], R | None],
        *,
        identity: Callable[[R], Hashable],
    ) -> None:
        self._client = client
        self._index = index
        self._until = until
        self._read = read
        self._identity = identity
        self._places: list[tuple[str, Item | None]] = []
        self._width = 1
        self._found: list[R] = []
        self._postponed: list[R] = []
        self._seen: set[Hashable] = set()
        self._rounds = 0
        self._skipped = 0

    def set_partitions(self, partitions: Sequence[str], width: int) -> None:
        """Set the partitions to query, in this order. The first round of queries covers only the first `width`."""
        self._places = [(partition, None) for partition in partitions]
        self._width = width

    async def take(self, wanted: int) -> list[R]:
        """Return up to `wanted` rows that were not returned before; an empty list when none are left.

        If more are found, rows of the first partitions come first, not the earliest of all: other workers start elsewhere.
        """
        while len(self._found) < wanted and self._places:
            await self._query_next(wanted - len(self._found))
        if len(self._found) < wanted:
            self._found += self._postponed
            self._postponed = []
        taken, self._found = self._found[:wanted], self._found[wanted:]
        return taken

    def put_back(self, rows: Sequence[R]) -> None:
        """Return these rows first on the next `take`: they were not tried."""
        self._found = [*rows, *self._found]

    def avoid_contention(self) -> None:
        """Query the untouched partitions first, because another worker is claiming from the current ones."""
        unqueried = [place for place in self._places if place[1] is None]
        if unqueried:
            self._postponed += self._found
            self._found = []
            self._places = unqueried + [place for place in self._places if place[1] is not None]

    async def _query_next(self, wanted: int) -> None:
        """Query some partitions concurrently, a page of each."""
        width = self._width if self._rounds == 0 else len(self._places)
        batch, self._places = self._places[:width], self._places[width:]
        self._rounds += 1
        limit = wanted if len(batch) == 1 else 2 * -(-wanted // len(batch)) + 8  # partitions are not equally full
        limit += self._skipped // len(batch)  # after many skipped rows, as many may follow
        pages = await gathered(self._page(partition, start, limit) for partition, start in batch)
        unfinished: list[tuple[str, Item | None]] = []
        for (partition, _), page in zip(batch, pages, strict=True):
            if isinstance(page, Exception):
                raise page
            for item in page["Items"]:
                self._add(item)
            if "LastEvaluatedKey" in page:
                unfinished.append((partition, page["LastEvaluatedKey"]))
        self._places = unfinished + self._places

    async def _page(self, partition: str, start: Item | None, limit: int) -> dict[str, Any]:
        request = {**self._index.query(partition, self._until), "Limit": limit}
        if start is not None:
            request["ExclusiveStartKey"] = start
        return await self._client.call("Query", request)

    def _add(self, item: Item) -> None:
        row = self._read(item)
        if row is None:
            self._skipped += 1
            return
        identity = self._identity(row)
        if identity not in self._seen:  # a row that moves during the query may appear twice
            self._seen.add(identity)
            self._found.append(row)


class Route:
    """Chooses which partitions a claim queries, and in which order.

    Every claim starts at a random partition, so that workers rarely compete. With a backlog it first queries only as many as
    it needs, otherwise all at once. Workers that do compete claim in small batches, because a lost race costs, too.
    """

    def __init__(self) -> None:
        self._backlog = False
        self._is_contended = False

    def rotate(self, partitions: Sequence[str]) -> list[str]:
        start = random.randrange(len(partitions))  # noqa: S311  # not a secret
        return [*partitions[start:], *partitions[:start]]

    def width(self, partitions: Sequence[str], limit: int) -> int:
        return -(-limit // ROWS_PER_SHARD) if self._backlog else len(partitions)

    def batch_size(self, wanted: int) -> int:
        return min(wanted, CONTENDED_BATCH_SIZE) if self._backlog and self._is_contended else wanted

    def note_batch(self, tried: int, claimed: int) -> bool:
        """Note the result of a batch. Returns whether, in a backlog, other workers got most of it."""
        self._is_contended = claimed < tried / 2
        return self._backlog and self._is_contended

    def note_claim(self, *, full: bool) -> None:
        """Note, after a claim, whether it reached its limit."""
        self._backlog = full
