"""The changes of a table on DynamoDB, from DynamoDB Streams.

The id of a shard is the label of its stream and DynamoDB's id of the shard, because a stream that was turned off and on again is
another one. `stream_position.py` has the forms of positions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tickler.dynamo.batches import MAX_CONCURRENT, gathered, run_concurrently
from tickler.errors import StoreUnavailable
from tickler.table.engines.change_log import ChangeRecord, Shard, ShardRead
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.dynamodb.lambda_events import records_of_event
from tickler.table.engines.dynamodb.shard_reader import ShardPage, ShardReader
from tickler.table.engines.dynamodb.stream_position import END, from_instant
from tickler.table.engines.dynamodb.stream_shards import StreamShards, is_shard

MAX_PAGES = 10  # of a shard in one read

Positions = Mapping[str, str | None]

log = logging.getLogger("tickler.table")


def loop_time() -> float:
    return asyncio.get_running_loop().time()


class DynamodbChangeLog:
    poll_s = (0.25, 1.0)

    def __init__(self, connection: Connection, now_s: Callable[[], float] = loop_time) -> None:
        self._connection = connection
        self._shards = StreamShards(connection, now_s)
        self._reader = ShardReader(connection, self._shards)
        self._turn = 0

    async def shards(self) -> list[Shard]:
        return (await self._shards.listing()).shards

    async def end(self) -> dict[str, str]:
        """Return positions behind which this process finds only changes from now on.

        Another process, or this one after a restart, may find changes of the last minute, too: until a shard has a record, its
        end has no number, and records are told apart by their time, which is rounded.
        """
        listing = await self._shards.listing(fresh=True)
        now_ms = self._connection.client.server_now_ms
        assert now_ms is not None  # there was a response
        positions = {shard.id: from_instant(now_ms) if shard.id in listing.open else END for shard in listing.shards}
        pinned = await run_concurrently(list(listing.open), lambda shard: self._reader.pin(shard, positions[shard]))
        for failure in pinned:
            if failure is not None:
                raise failure
        return positions

    async def read(self, positions: Positions, *, limit: int) -> list[ShardRead]:
        """Read some shards at a time, each its share of `limit`; those that have more get what others have left."""
        found: dict[str, ShardRead] = {}
        failure: Exception | None = None
        pages: Counter[str] = Counter()
        left = limit
        waiting = deque(self._in_turn([each for each in positions.items() if is_shard(each[0])]))
        while waiting and left > 0:
            some = [waiting.popleft() for _ in range(min(len(waiting), MAX_CONCURRENT))]
            share = -(-left // len(some))
            results = await gathered(self._reader.page(shard, position, share) for shard, position in some)
            for (shard, position), page in zip(some, results, strict=True):
                if isinstance(page, Exception):
                    failure = self._kept_back(page, shard)
                    continue
                found[shard] = _joined(shard, found.get(shard), page)
                left -= len(page.changes)
                pages[shard] += 1
                if page.ended and position != END:
                    self._shards.outdate()
                elif page.is_followed and pages[shard] < MAX_PAGES:
                    waiting.append((shard, page.position))
        if failure is not None and not any(each.records for each in found.values()):
            raise failure
        return list(found.values())

    def decode(self, entity: str, image: bytes) -> Any:
        return self._connection.decoded(entity, image)

    async def waiting(self, positions: Positions, *, limit: int) -> int | None:
        """Return None: DynamoDB does not count records."""
        return None

    async def prune(self, positions: Sequence[Positions], *, keep_ms: int, limit: int) -> int:
        """Return 0: DynamoDB deletes records after 24 hours."""
        return 0

    def records_of(self, event: Mapping[str, Any]) -> list[ChangeRecord]:
        """Return the changes of an event with which Lambda calls a function. `InvalidInput` if it is another kind of event."""
        return records_of_event(self._connection.table, self._connection.name, event)

    def _in_turn(self, shards: Sequence[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
        """Return shards with another first at each call, so that none has to wait for the others for long."""
        self._turn += MAX_CONCURRENT
        start = self._turn % len(shards) if shards else 0
        return [*shards[start:], *shards[:start]]

    def _kept_back(self, failure: Exception, shard: str) -> Exception:
        """Keep a failure of one shard back while others are read. Any other error is raised."""
        if not isinstance(failure, StoreUnavailable):
            raise failure
        log.warning("%s: cannot read the shard %s, and reads the others: %s", self._connection.label, shard, failure)
        return failure


def _joined(shard: str, before: ShardRead | None, page: ShardPage) -> ShardRead:
    records = page.changes if before is None else [*before.records, *page.changes]
    return ShardRead(shard, records, page.position, page.ended, page.lost or (before is not None and before.lost))
