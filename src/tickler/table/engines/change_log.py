"""The contract of a change log: the ordered changes of a table's items, as an engine keeps them.

A log consists of shards. All changes of an item are in one shard, in the order in which they were committed; when DynamoDB splits
a shard, they go on in a child of it. On SQL the shards are fixed, and divide the items by a hash of their partition key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

SHARDS = 8  # of a log on SQL and in memory


class ChangeRecord(msgspec.Struct, frozen=True):
    """A change of one item: its images before and after, None where there was no item.

    `position` is its place in the shard. `at_ms` is the time of the write by the clock of the database. Images are in the form of
    the engine; `ChangeLog.decode` reads them. An image is never changed by a later write.
    """

    shard: str
    position: str
    at_ms: int
    entity: str
    pk: str
    sk: str
    old: bytes | None
    new: bytes | None


class Shard(NamedTuple):
    """A shard that can be read, once all of its parents have been read to their end."""

    id: str
    parents: tuple[str, ...] = ()


class ShardRead(NamedTuple):
    """Changes of one shard, in order. `position` is where to go on: behind the last of them, or further.

    `ended`: the shard has no more changes, and never will. `lost`: changes between the position that was asked for and these have
    been deleted before they were read.
    """

    shard: str
    records: Sequence[ChangeRecord]
    position: str | None
    ended: bool = False
    lost: bool = False


class ChangeLog(Protocol):
    """Reads the changes of a table. A write that leaves an item's attributes as they are is no change.

    A position is text that only the engine reads; None stands before the oldest change that is kept.
    """

    @property
    def poll_s(self) -> tuple[float, float]:
        """How long a consumer waits between two reads: while there are changes, and after a long time without any."""

    async def shards(self) -> list[Shard]:
        """Return all shards that have changes to read, or will have."""

    async def end(self) -> dict[str, str]:
        """Return a position for each shard, behind which only changes from now on are."""

    async def read(self, positions: Mapping[str, str | None], *, limit: int) -> list[ShardRead]:
        """Return the changes behind a position in each of some shards, about `limit` in all, as far as they are settled.

        A change is settled if no change can still appear before it in its shard. Shards of which nothing is known are left out.
        """

    def decode(self, entity: str, image: bytes) -> Any:
        """Return the item that an image shows. `InvalidItem` if the class of that entity does not fit it."""

    async def waiting(self, positions: Mapping[str, str | None], *, limit: int) -> int | None:
        """Count the changes behind positions, up to `limit`. None where the engine cannot count them."""

    async def prune(self, positions: Sequence[Mapping[str, str | None]], *, keep_ms: int, limit: int) -> int:
        """Delete changes that all consumers have behind them, and those that are older than `keep_ms`; about `limit` at most.

        `positions` are those of each consumer. A consumer that has not read what was deleted is told by `ShardRead.lost`. Returns
        how many were deleted. An engine whose log expires by itself returns 0.
        """


@runtime_checkable
class EventSource(Protocol):
    """A change log that also comes to functions as events, which is what AWS Lambda does with the streams of DynamoDB."""

    def records_of(self, event: Mapping[str, Any]) -> list[ChangeRecord]:
        """Return the changes of an event, in order. `InvalidInput` if it is of another kind, or of another table."""


def shard_of(pk: str) -> str:
    """Return the shard of the items with a partition key, on SQL and in memory."""
    return str(hashlib.sha256(pk.encode()).digest()[0] % SHARDS)


ALL_SHARDS = tuple(Shard(str(n)) for n in range(SHARDS))
