"""The kit over tables on DynamoDB Local."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tickler.clock import ManualClock
from tickler.dynamo.client import Client
from tickler.table.engines.dynamodb.engine import DynamodbEngine
from tickler.table.engines.engine import Engine
from tickler.table.open_table import OpenTable
from tickler.testing.table_contract import TableContract
from tickler.testing.table_engine_contract import OTHER
from tickler.testing.table_fixtures import NOW, TABLE


class TestDynamodb(TableContract):
    has_consistent_indexes = False
    has_snapshots = False
    sweeps = False
    checks_loads = False

    @pytest.fixture
    async def engine(self, dynamodb_client: Client, dynamodb_table: str) -> AsyncIterator[Engine]:
        engine = DynamodbEngine(TABLE, dynamodb_client, dynamodb_table, owned=False)
        await engine.open(create=True)
        yield engine
        await engine.close()

    def as_another_program(self, engine: Engine) -> OpenTable:
        assert isinstance(engine, DynamodbEngine)
        shared = DynamodbEngine(OTHER, engine.database, engine._connection.name, owned=False)
        return OpenTable(OTHER, shared, ManualClock(NOW), create=True)
