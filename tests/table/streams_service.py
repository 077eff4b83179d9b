"""A loopback server that serves the streams of one table as DynamoDB Streams is documented to.

It does what DynamoDB Local does not show: shards split, close, are trimmed and disappear, iterators expire, pages are empty,
requests are throttled, and a stream that is turned off and on again has another ARN.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

NAME = "streamed"
TABLE_ARN = f"arn:aws:dynamodb:eu-west-1:123456789012:table/{NAME}"
RETENTION_S = 24 * 3600
ITERATOR_S = 15 * 60

Body = dict[str, Any]


class Refused(Exception):
    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message)
        self.code = code


class FakeShard(msgspec.Struct):
    id: str
    parent: str | None = None
    records: list[Body] = []  # that were not trimmed
    trimmed: str = ""  # the number of the last record that was
    is_closed: bool = False
    empty_pages: int = 0  # before the first data of an iterator that was made anew


class FakeStream(msgspec.Struct):
    label: str
    created_at_s: float
    view_type: str = "NEW_AND_OLD_IMAGES"
    is_on: bool = True
    shards: list[FakeShard] = []

    @property
    def arn(self) -> str:
        return f"{TABLE_ARN}/stream/{self.label}"

    def close(self) -> None:
        """Turn it off. It stays readable."""
        self.is_on = False
        for shard in self.shards:
            shard.is_closed = True


class _Iterator(msgspec.Struct, frozen=True):
    """Stands before the first record with a number greater than `behind`; before the oldest if it is empty."""

    stream: str
    shard: str
    behind: str | None  # None: behind the newest, whichever that is when it is first used
    made_at_s: float
    empty_pages: int


class StreamsService:
    """Time stands still unless a test moves `now_s`."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0
        self.table_created_at_s = self.now_s
        self.streams: list[FakeStream] = []
        self.shards_a_page = 100
        self.records_a_page = 1_000
        self.throttled: Counter[str] = Counter()  # how many of the next requests are, by operation
        self.broken: set[str] = set()  # ids of shards that cannot be read just now
        self.requests: Counter[str] = Counter()
        self.limits: list[int] = []  # that were asked for in GetRecords
        self.hosts: list[str] = []
        self._iterators: dict[str, _Iterator] = {}
        self._numbers = itertools.count(1)
        self._shard_numbers = itertools.count(1)
        self._operations: dict[str, Callable[[Body], Body]] = {
            "DynamoDB_20120810.DescribeTable": self._describe_table,
            "DynamoDBStreams_20120810.ListStreams": self._list_streams,
            "DynamoDBStreams_20120810.DescribeStream": self._describe_stream,
            "DynamoDBStreams_20120810.GetShardIterator": self._get_shard_iterator,
            "DynamoDBStreams_20120810.GetRecords": self._get_records,
        }

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_post("/", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._runner.cleanup()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def turn_on(self, view_type: str = "NEW_AND_OLD_IMAGES", shards: int = 1) -> FakeStream:
        label = datetime.fromtimestamp(self.now_s, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")
        stream = FakeStream(label, self.now_s, view_type, shards=[self._new_shard(None) for _ in range(shards)])
        self.streams.append(stream)
        return stream

    def split(self, stream: FakeStream, shard: FakeShard, into: int = 2) -> list[FakeShard]:
        """Close a shard. Its children take over."""
        shard.is_closed = True
        children = [self._new_shard(shard.id) for _ in range(into)]
        stream.shards += children
        return children

    def trim(self, shard: FakeShard, count: int) -> None:
        """Delete the oldest records."""
        shard.trimmed = shard.records[count - 1]["dynamodb"]["SequenceNumber"]
        del shard.records[:count]

    def put(self, shard: FakeShard, pk: str, old: Body | None, new: Body | None) -> str:
        """Add a record of an item, whose attributes are as on the wire, and return its number."""
        keys = {"pk": {"S": pk}, "sk": {"S": "A"}}
        number = f"{next(self._numbers) * 100:021}"
        record = {
            "eventID": f"event-{number}",
            "eventName": "REMOVE" if new is None else "INSERT" if old is None else "MODIFY",
            "eventSource": "aws:dynamodb",
            "dynamodb": {
                "ApproximateCreationDateTime": float(int(self.now_s)),
                "Keys": keys,
                "SequenceNumber": number,
                "StreamViewType": "NEW_AND_OLD_IMAGES",
                **({} if old is None else {"OldImage": keys | old}),
                **({} if new is None else {"NewImage": keys | new}),
            },
        }
        shard.records.append(record)
        return number

    def _new_shard(self, parent: str | None) -> FakeShard:
        return FakeShard(f"shardId-{next(self._shard_numbers):020}-0123abcd", parent, records=[])

    async def _handle(self, request: web.Request) -> web.Response:
        target = request.headers["x-amz-target"]
        operation = target.rpartition(".")[2]
        self.requests[operation] += 1
        self.hosts.append(request.headers["host"])
        headers = {"Date": formatdate(self.now_s, usegmt=True)}
        try:
            if self.throttled[operation] > 0:
                self.throttled[operation] -= 1
                raise Refused("LimitExceededException", "Rate exceeded")
            if target not in self._operations:
                raise Refused("UnknownOperationException", target)
            answer = self._operations[target](json.loads(await request.read()))
        except Refused as refused:
            body = {"__type": f"com.amazonaws.dynamodb.v20120810#{refused.code}", "message": str(refused)}
            return web.json_response(body, status=400, headers=headers)
        return web.json_response(answer, headers=headers)

    def _describe_table(self, request: Body) -> Body:
        latest = self.streams[-1] if self.streams else None
        table: Body = {"TableName": NAME, "TableArn": TABLE_ARN, "CreationDateTime": self.table_created_at_s}
        if latest is not None:
            table |= {"LatestStreamArn": latest.arn, "LatestStreamLabel": latest.label}
        if latest is not None and latest.is_on:
            table["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": latest.view_type}
        return {"Table": table}

    def _list_streams(self, request: Body) -> Body:
        """Return one stream a page, newest first, as DynamoDB Local does."""
        streams = self.streams[::-1]
        after = request.get("ExclusiveStartStreamArn")
        start = 0 if after is None else [stream.arn for stream in streams].index(after) + 1
        page = [{"StreamArn": each.arn, "StreamLabel": each.label, "TableName": NAME} for each in streams[start : start + 1]]
        return {"Streams": page, **({"LastEvaluatedStreamArn": page[-1]["StreamArn"]} if start + 1 < len(streams) else {})}

    def _describe_stream(self, request: Body) -> Body:
        stream = self._stream(request["StreamArn"])
        after = request.get("ExclusiveStartShardId")
        start = 0 if after is None else [shard.id for shard in stream.shards].index(after) + 1
        page = stream.shards[start : start + self.shards_a_page]
        description: Body = {
            "StreamArn": stream.arn,
            "StreamLabel": stream.label,
            "StreamStatus": "ENABLED" if stream.is_on else "DISABLED",
            "StreamViewType": stream.view_type,
            "CreationRequestDateTime": stream.created_at_s,
            "Shards": [_shard_description(shard) for shard in page],
        }
        if start + len(page) < len(stream.shards):
            description["LastEvaluatedShardId"] = page[-1].id
        return {"StreamDescription": description}

    def _get_shard_iterator(self, request: Body) -> Body:
        stream = self._stream(request["StreamArn"])
        shard = self._shard(stream, request["ShardId"])
        kind, number = request["ShardIteratorType"], request.get("SequenceNumber", "")
        if kind == "AFTER_SEQUENCE_NUMBER":
            if number < shard.trimmed or (shard.trimmed and number == shard.trimmed):
                raise Refused("TrimmedDataAccessException", "The data you are trying to access has been trimmed")
            return {"ShardIterator": self._iterator(stream, shard, number, 0)}
        behind = {"TRIM_HORIZON": shard.trimmed, "LATEST": None}[kind]
        return {"ShardIterator": self._iterator(stream, shard, behind, shard.empty_pages)}

    def _get_records(self, request: Body) -> Body:
        iterator = self._iterators.get(request["ShardIterator"])
        self.limits.append(request.get("Limit", 1_000))
        if iterator is None:
            raise Refused("ValidationException", "Invalid ShardIterator")
        if self.now_s - iterator.made_at_s > ITERATOR_S:
            raise Refused("ExpiredIteratorException", "Iterator expired")
        stream = self._stream(iterator.stream)
        shard = self._shard(stream, iterator.shard)
        if shard.id in self.broken:
            raise Refused("InternalServerError", "The request processing has failed")
        behind = iterator.behind if iterator.behind is not None else _newest(shard)
        if behind < shard.trimmed:
            raise Refused("TrimmedDataAccessException", "The data you are trying to access has been trimmed")
        if iterator.empty_pages:
            return {"Records": [], "NextShardIterator": self._iterator(stream, shard, behind, iterator.empty_pages - 1)}
        limit = min(request.get("Limit", 1_000), self.records_a_page)
        left = [record for record in shard.records if record["dynamodb"]["SequenceNumber"] > behind]
        page = left[:limit]
        if shard.is_closed and len(left) <= limit:
            return {"Records": page}
        behind = page[-1]["dynamodb"]["SequenceNumber"] if page else behind
        return {"Records": page, "NextShardIterator": self._iterator(stream, shard, behind, 0)}

    def _stream(self, arn: str) -> FakeStream:
        for stream in self.streams:
            if stream.arn == arn:
                return stream
        raise Refused("ResourceNotFoundException", f"Requested resource not found: Stream: {arn} not found")

    def _shard(self, stream: FakeStream, id: str) -> FakeShard:
        for shard in stream.shards:
            if shard.id == id:
                return shard
        raise Refused("ResourceNotFoundException", "Shard does not exist")

    def _iterator(self, stream: FakeStream, shard: FakeShard, behind: str | None, empty_pages: int) -> str:
        token = f"{stream.arn}|{len(self._iterators)}"
        self._iterators[token] = _Iterator(stream.arn, shard.id, behind, self.now_s, empty_pages)
        return token


def _newest(shard: FakeShard) -> str:
    return str(shard.records[-1]["dynamodb"]["SequenceNumber"]) if shard.records else shard.trimmed


def _shard_description(shard: FakeShard) -> Body:
    numbers: Body = {"StartingSequenceNumber": "000000000000000000001"}
    if shard.is_closed:
        numbers["EndingSequenceNumber"] = _newest(shard) or "000000000000000000001"
    return {
        "ShardId": shard.id,
        "SequenceNumberRange": numbers,
        **({} if shard.parent is None else {"ParentShardId": shard.parent}),
    }
