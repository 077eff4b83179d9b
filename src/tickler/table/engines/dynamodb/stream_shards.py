"""The shards of a table's streams, and which have to be read before which.

A stream that was turned off stays readable for 24 hours, beside the one that was turned on after it. All changes of the older one
come first, so that its last shards are the parents of the newer one's first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from tickler.dynamo.failures import NOT_FOUND, RequestRefused
from tickler.dynamo.tables import describe
from tickler.errors import SchemaMissing
from tickler.table.engines.change_log import Shard
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.dynamodb.schema import VIEW_TYPE, check_stream

REFRESH_S = 10.0  # after which new shards are looked for; DescribeStream may be called ten times a second by all processes
MIN_REFRESH_S = 0.2  # for each page of shards
SAME_TABLE_S = 1.0  # a stream that was made earlier than this before its table belonged to another table of the same name
_BETWEEN = "~"  # the label of a stream and the id of a shard


class _Range(msgspec.Struct, frozen=True, gc=False):
    EndingSequenceNumber: str | None = None


class _Shard(msgspec.Struct, frozen=True, gc=False):
    ShardId: str
    ParentShardId: str | None = None
    SequenceNumberRange: _Range = _Range()


class _Description(msgspec.Struct, frozen=True, gc=False):
    CreationRequestDateTime: float  # in seconds
    StreamViewType: str
    Shards: list[_Shard] = []
    LastEvaluatedShardId: str | None = None


class _Described(msgspec.Struct, frozen=True, gc=False):
    StreamDescription: _Description


class _ListedStream(msgspec.Struct, frozen=True, gc=False):
    StreamLabel: str


class _Listed(msgspec.Struct, frozen=True, gc=False):
    Streams: list[_ListedStream] = []
    LastEvaluatedStreamArn: str | None = None


_decode_description = msgspec.json.Decoder(_Described).decode
_decode_list = msgspec.json.Decoder(_Listed).decode


class Stream(NamedTuple):
    label: str
    shards: Sequence[_Shard]


class Listing(NamedTuple):
    """All shards, and the ids of those that may still get changes. It took `pages` requests."""

    shards: list[Shard]
    open: frozenset[str]
    pages: int

    @property
    def ids(self) -> set[str]:
        return {shard.id for shard in self.shards}


class StreamShards:
    """Lists shards, and remembers them for a while. `now_s` is a clock that is never set."""

    def __init__(self, connection: Connection, now_s: Callable[[], float]) -> None:
        self._connection = connection
        self._now_s = now_s
        self._listing: Listing | None = None
        self._listed_at_s = 0.0
        self._is_outdated = False
        self._table_arn = ""
        self._lock = asyncio.Lock()

    async def listing(self, *, fresh: bool = False) -> Listing:
        async with self._lock:
            if self._listing is None or fresh or self._is_due(self._listing):
                with self._connection.translated():
                    self._listing = await self._list()
                self._listed_at_s, self._is_outdated = self._now_s(), False
            return self._listing

    def outdate(self) -> None:
        """Look for new shards soon: one has come to its end, and has children."""
        self._is_outdated = True

    def is_closed(self, shard: str) -> bool:
        """Tell whether a shard was closed when shards were listed last: no change will be added to it."""
        return self._listing is not None and shard not in self._listing.open

    async def stream_arn(self, shard: str) -> str:
        if not self._table_arn:
            await self.listing()
        return f"{self._table_arn}/stream/{shard.rpartition(_BETWEEN)[0]}"

    def _is_due(self, listing: Listing) -> bool:
        age_s = self._now_s() - self._listed_at_s
        return age_s >= max(REFRESH_S, listing.pages) or (self._is_outdated and age_s >= MIN_REFRESH_S * listing.pages)

    async def _list(self) -> Listing:
        connection = self._connection
        table = await describe(connection.client, connection.name)
        if table is None:
            raise SchemaMissing(connection.label, connection.name)
        check_stream(connection.label, table)
        self._table_arn = table["TableArn"]
        streams, pages = [], 0
        for label in await self._labels(table["LatestStreamLabel"]):
            shards, requests = await self._shards(label, table["CreationDateTime"])
            streams.append(Stream(label, shards))
            pages += requests
        return Listing(lineage(streams), _open(streams), pages)

    async def _labels(self, latest: str) -> list[str]:
        """Return the labels of the streams of tables of this name, oldest first. They are instants."""
        found = {latest}
        request: dict[str, object] = {"TableName": self._connection.name}
        while True:
            page = await self._connection.client.call_decoded("ListStreams", request, _decode_list)
            found |= {each.StreamLabel for each in page.Streams}
            if page.LastEvaluatedStreamArn is None:
                return sorted(found)
            request["ExclusiveStartStreamArn"] = page.LastEvaluatedStreamArn

    async def _shards(self, label: str, table_created_at_s: float) -> tuple[list[_Shard], int]:
        """Return the shards of a stream, and in how many requests: none if it was deleted, lacks images, or is another's."""
        shards: list[_Shard] = []
        request: dict[str, object] = {"StreamArn": f"{self._table_arn}/stream/{label}"}
        pages = 0
        while True:
            pages += 1
            try:
                answer = await self._connection.client.call_decoded("DescribeStream", request, _decode_description)
            except RequestRefused as error:
                if error.code == NOT_FOUND:
                    return [], pages
                raise
            page = answer.StreamDescription
            if page.StreamViewType != VIEW_TYPE or page.CreationRequestDateTime < table_created_at_s - SAME_TABLE_S:
                return [], pages
            shards += page.Shards
            if page.LastEvaluatedShardId is None:
                return shards, pages
            request["ExclusiveStartShardId"] = page.LastEvaluatedShardId


def shard_id(id: str) -> str:
    """Return the id that DynamoDB gave to a shard."""
    return id.rpartition(_BETWEEN)[2]


def is_shard(id: str) -> bool:
    return _BETWEEN in id


def lineage(streams: Sequence[Stream]) -> list[Shard]:
    """Return the shards of streams, oldest stream first, with their parents. A parent that is not listed any more is left out."""
    found: list[Shard] = []
    last_of_older: tuple[str, ...] = ()
    for label, shards in streams:
        listed = {shard.ShardId for shard in shards}
        with_children = {shard.ParentShardId for shard in shards}
        for shard in shards:
            parents = (_id(label, shard.ParentShardId),) if shard.ParentShardId in listed else last_of_older
            found.append(Shard(_id(label, shard.ShardId), parents))
        if shards:
            last_of_older = tuple(_id(label, shard.ShardId) for shard in shards if shard.ShardId not in with_children)
    return found


def _open(streams: Sequence[Stream]) -> frozenset[str]:
    return frozenset(
        _id(label, shard.ShardId)
        for label, shards in streams
        for shard in shards
        if shard.SequenceNumberRange.EndingSequenceNumber is None
    )


def _id(label: str, shard: str | None) -> str:
    return f"{label}{_BETWEEN}{shard}"
