"""Finding what is due: the partitions of a sparse index, each earliest first. Never scans, never filters."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tickler.dynamo import Client, Item
from tickler.dynamo.batches import gathered
from tickler.dynamo.codec import Attribute

ROWS_A_SHARD = 250  # of one claim: a shard takes 500 claims a second, so a large claim asks several

ROWS_A_STEP = 50

R = TypeVar("R")


class SparseIndex(NamedTuple):
    """A GSI that has an item only while it is of interest: keyed on where it is, and on when it is due."""

    table: str
    name: str
    partition_key: str
    sort_key: str


class DueQuery(Generic[R]):
    """The due rows of one claim, partition after partition, each earliest first.

    `take` gives some, and goes on where it stopped when asked again. Rows may be ghosts: a GSI is eventually consistent, so one
    that somebody has just claimed may still be seen. `read` makes a row of an item, or None of one that is to be left alone;
    `identity` tells rows apart.
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
        self._waves = 0
        self._passed_over = 0

    def over(self, partitions: Sequence[str], width: int) -> None:
        """Look in these, in this order; at first only in so many of them."""
        self._places = [(partition, None) for partition in partitions]
        self._width = width

    async def take(self, wanted: int) -> list[R]:
        """Up to `wanted` rows that this search has not given before; none when nothing is left.

        Where more is found, the first partitions go first, not the earliest of all: others start elsewhere.
        """
        while len(self._found) < wanted and self._places:
            await self._look(wanted - len(self._found))
        if len(self._found) < wanted:
            self._found += self._postponed
            self._postponed = []
        taken, self._found = self._found[:wanted], self._found[wanted:]
        return taken

    def untake(self, rows: Sequence[R]) -> None:
        """Give these first when asked again: nobody has tried them."""
        self._found = [*rows, *self._found]

    def go_elsewhere(self) -> None:
        """Somebody else is at work where this search is: come back to what is left there when all other places were asked."""
        unasked = [place for place in self._places if place[1] is None]
        if unasked:
            self._postponed += self._found
            self._found = []
            self._places = unasked + [place for place in self._places if place[1] is not None]

    async def _look(self, wanted: int) -> None:
        """Ask some partitions for a page each, all at once."""
        width = self._width if self._waves == 0 else len(self._places)
        wave, self._places = self._places[:width], self._places[width:]
        self._waves += 1
        limit = wanted if len(wave) == 1 else 2 * -(-wanted // len(wave)) + 8  # they are not equally full
        limit += self._passed_over // len(wave)  # where much is to be left alone, as much again may follow
        pages = await gathered(self._page(partition, start, limit) for partition, start in wave)
        unfinished: list[tuple[str, Item | None]] = []
        for (partition, _), page in zip(wave, pages, strict=True):
            if isinstance(page, Exception):
                raise page
            for item in page["Items"]:
                self._add(item)
            if "LastEvaluatedKey" in page:
                unfinished.append((partition, page["LastEvaluatedKey"]))
        self._places = unfinished + self._places

    async def _page(self, partition: str, start: Item | None, limit: int) -> dict[str, Any]:
        request: dict[str, object] = {
            "TableName": self._index.table,
            "IndexName": self._index.name,
            "KeyConditionExpression": "#partition = :partition AND #sort <= :until",
            "ExpressionAttributeNames": {"#partition": self._index.partition_key, "#sort": self._index.sort_key},
            "ExpressionAttributeValues": {":partition": {"S": partition}, ":until": self._until},
            "Limit": limit,
        }
        if start is not None:
            request["ExclusiveStartKey"] = start
        return await self._client.call("Query", request)

    def _add(self, item: Item) -> None:
        row = self._read(item)
        if row is None:
            self._passed_over += 1
            return
        identity = self._identity(row)
        if identity not in self._seen:  # a row that moves while it is looked for may be met twice
            self._seen.add(identity)
            self._found.append(row)


class Route:
    """Which partitions a claim asks, and in which order.

    Every claim starts at a random one, so that workers rarely meet. As long as there is a backlog it begins with only as many
    as it needs; otherwise it asks all of them at once. Where workers do meet, they go by small steps: a lost race costs, too.
    """

    def __init__(self) -> None:
        self._backlog = False
        self._meets_others = False

    def order(self, partitions: Sequence[str]) -> list[str]:
        start = random.randrange(len(partitions))  # noqa: S311  # not a secret
        return [*partitions[start:], *partitions[:start]]

    def width(self, partitions: Sequence[str], limit: int) -> int:
        return -(-limit // ROWS_A_SHARD) if self._backlog else len(partitions)

    def step(self, wanted: int) -> int:
        return min(wanted, ROWS_A_STEP) if self._backlog and self._meets_others else wanted

    def met_others(self, tried: int, won: int) -> bool:
        """After a step: whether most of it was lost to somebody else."""
        self._meets_others = won < tried / 2
        return self._backlog and self._meets_others

    def learn(self, *, full: bool) -> None:
        """After a claim: whether it got all it wanted."""
        self._backlog = full
