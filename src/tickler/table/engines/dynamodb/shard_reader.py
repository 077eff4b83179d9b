"""Reads pages of a shard with shard iterators, which are kept from one page to the next and made anew when they are missing.

An iterator is kept under the position that it stands at, so that several consumers do not disturb each other, and a consumer that
goes back reads again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tickler.dynamo.failures import EXPIRED_ITERATOR, NOT_FOUND, TRIMMED, RequestRefused
from tickler.errors import StoreUnavailable
from tickler.table.engines.change_log import ChangeRecord
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.dynamodb.stream_position import END, first_ms, instant_ms, is_instant, sequence_number
from tickler.table.engines.dynamodb.stream_records import StreamRecord, changes_of
from tickler.table.engines.dynamodb.stream_shards import StreamShards, shard_id

MAX_PAGE = 1_000  # records
MAX_ITERATORS = 10_000
RETENTION_MS = 24 * 3_600_000
TRIES = 4


class _Page(msgspec.Struct, frozen=True, gc=False):
    Records: list[StreamRecord] = []
    NextShardIterator: str | None = None


class _Iterator(msgspec.Struct, frozen=True, gc=False):
    ShardIterator: str


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_iterator = msgspec.json.Decoder(_Iterator).decode


class ShardPage(NamedTuple):
    """Some changes of a shard. `is_followed`: there is more to read at once, as far as can be told."""

    changes: Sequence[ChangeRecord]
    position: str | None
    is_followed: bool = False
    ended: bool = False
    lost: bool = False


class ShardReader:
    def __init__(self, connection: Connection, shards: StreamShards) -> None:
        self._connection = connection
        self._shards = shards
        self._iterators: dict[tuple[str, str | None], str] = {}  # the last used at the end

    async def page(self, shard: str, position: str | None, limit: int) -> ShardPage:
        """Read up to `limit` records behind a position. A shard that DynamoDB does not find, and does not list, has ended."""
        if position == END:
            return ShardPage((), END, ended=True)
        limit = min(limit, MAX_PAGE)
        with self._connection.translated():
            try:
                page, lost = await self._read(shard, position, limit)
            except RequestRefused as error:
                if error.code != NOT_FOUND:
                    raise
                return await self._missing(shard)
        records = page.Records
        changes = changes_of(self._connection.table, shard, records, since_ms=first_ms(position))
        if page.NextShardIterator is None:
            return ShardPage(changes, END, ended=True, lost=lost)
        reached = records[-1].dynamodb.SequenceNumber if records else _behind_lost(position) if lost else position
        self._keep(shard, reached, page.NextShardIterator)
        is_followed = len(records) == limit or bool(records and not changes) or (not records and self._shards.is_closed(shard))
        return ShardPage(changes, reached, is_followed, lost=lost)

    async def pin(self, shard: str, position: str) -> None:
        """Let a position stand behind the newest record, for this process. Without records it could not be told otherwise.

        A first page is read, because only then is it certain that the iterator does not move any more.
        """
        with self._connection.translated():
            try:
                iterator = await self._iterator(shard, "LATEST")
                page = await self._records(iterator, 1)
            except RequestRefused as error:
                if error.code not in (NOT_FOUND, TRIMMED):
                    raise
                return
        if page.NextShardIterator is not None and not page.Records:
            self._keep(shard, position, page.NextShardIterator)

    async def _read(self, shard: str, position: str | None, limit: int) -> tuple[_Page, bool]:
        """Return a page, and whether records before it have been trimmed that were not read."""
        iterator = self._iterators.pop((shard, position), None)
        number, lost = sequence_number(position), False
        for _ in range(TRIES):
            try:
                if iterator is None:
                    iterator = await self._iterator(shard, "AFTER_SEQUENCE_NUMBER" if number else "TRIM_HORIZON", number)
                    lost = lost or self._is_too_old(position)
                return await self._records(iterator, limit), lost
            except RequestRefused as error:
                if error.code == TRIMMED:
                    number, lost = None, position is not None
                elif error.code != EXPIRED_ITERATOR:
                    raise
                iterator = None
        raise StoreUnavailable(f"{self._connection.label}: the shard {shard} was trimmed {TRIES} times in a row: try again")

    async def _missing(self, shard: str) -> ShardPage:
        """Return the end of a shard that DynamoDB does not find and does not list. One that it lists is there a moment later."""
        self._shards.outdate()
        if shard in (await self._shards.listing()).ids:
            raise StoreUnavailable(f"{self._connection.label}: DynamoDB lists the shard {shard}, but cannot find it: try again")
        return ShardPage((), END, ended=True, lost=True)

    def _is_too_old(self, position: str | None) -> bool:
        """Tell whether an instant is so long ago that records behind it may have been trimmed."""
        now_ms = self._connection.client.server_now_ms
        return is_instant(position) and now_ms is not None and now_ms - instant_ms(position) > RETENTION_MS

    async def _iterator(self, shard: str, kind: str, number: str | None = None) -> str:
        request: dict[str, object] = {
            "StreamArn": await self._shards.stream_arn(shard),
            "ShardId": shard_id(shard),
            "ShardIteratorType": kind,
            **({"SequenceNumber": number} if number else {}),
        }
        return (await self._connection.client.call_decoded("GetShardIterator", request, _decode_iterator)).ShardIterator

    async def _records(self, iterator: str, limit: int) -> _Page:
        request = {"ShardIterator": iterator, "Limit": limit}
        return await self._connection.client.call_decoded("GetRecords", request, _decode_page)

    def _keep(self, shard: str, position: str | None, iterator: str) -> None:
        self._iterators[shard, position] = iterator
        if len(self._iterators) > MAX_ITERATORS:
            del self._iterators[next(iter(self._iterators))]


def _behind_lost(position: str | None) -> str | None:
    """Return a position that says the same as one whose record was trimmed, but does not report the loss again."""
    return position if is_instant(position) else None
