"""The kit of streams over tables on DynamoDB Local."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tickler.dynamo.client import Client
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.engines.engine import Engine
from tickler.testing.stream_contract import StreamContract
from tickler.testing.stream_fixtures import STREAMED


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
