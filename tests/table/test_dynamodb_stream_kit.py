"""The kit of streams over tables on DynamoDB Local."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import pytest

from tickler.dynamo.client import Client
from tickler.table import changed
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.engines.engine import Engine
from tickler.table.open_table import OpenTable
from tickler.table.streams.parking import PARKED
from tickler.testing.consumer_contract import caught_up, record
from tickler.testing.stream_contract import StreamContract
from tickler.testing.stream_fixtures import STREAMED, Task, task


class TestDynamodb(StreamContract):
    sweeps = False
    prunes = False
    bounds_reads = False  # the service does

    @pytest.fixture
    async def engine(self, dynamodb_client: Client, dynamodb_table: str) -> AsyncIterator[Engine]:
        engine = DynamodbEngine(STREAMED, dynamodb_client, dynamodb_table, owned=False)
        await engine.open(create=True)
        yield engine
        await engine.close()

    async def test_a_change_with_more_bytes_than_one_write_may_have_is_parked_and_tried_again(
        self, db: OpenTable, engine: DynamodbEngine, dynamodb_client: Client, dynamodb_table: str
    ) -> None:
        await db.put(task(1))
        for size in (1, 2):
            # Truth values take 2 bytes each where DynamoDB limits an item, and 14 in each image of it.
            marks = [{"BOOL": n % (size + 2) == 0} for n in range(190_000)]
            request = {
                "TableName": dynamodb_table,
                "Key": {"pk": {"S": "TASK#t001"}, "sk": {"S": "TASK"}},
                "UpdateExpression": "SET marks = :marks, #size = :size",
                "ExpressionAttributeNames": {"#size": "size"},
                "ExpressionAttributeValues": {":marks": {"L": marks}, ":size": {"N": str(size)}},
            }
            await dynamodb_client.call("UpdateItem", request)
        consumer = db.consumer("it", attempts=1)
        record(consumer, changed(Task), lambda change: None)
        await caught_up(consumer)
        _, entry = await engine.metadata.read(PARKED)
        assert len(zlib.decompress(entry.value)) > 4 * 1024 * 1024
        assert await consumer.retry() == 2
        await caught_up(consumer)
        first, second = await consumer.parked()
        assert (first.attempts, second.attempts) == (2, 0)
        assert first.error.startswith("InvalidItem: Task: is stored with other attributes")
