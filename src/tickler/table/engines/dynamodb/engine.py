"""The engine on DynamoDB: native attributes, keys of indexes kept in step by the planner, and conditions on the server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from tickler.database.dynamodb_url import address_of, table_of
from tickler.database.progress import OnProgress, no_progress
from tickler.database.store_url import StoreUrl
from tickler.dynamo.client import Client
from tickler.dynamo.tables import describe
from tickler.dynamo.transactions import TransactionPart
from tickler.errors import InvalidInput, SchemaMissing
from tickler.table.definition import METADATA_PARTITION, TableDefinition
from tickler.table.engines.dynamodb import schema
from tickler.table.engines.dynamodb.change_log import DynamodbChangeLog
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.dynamodb.measure import measure
from tickler.table.engines.dynamodb.metadata import DynamodbMetadata
from tickler.table.engines.dynamodb.reads import DynamodbReader
from tickler.table.engines.dynamodb.reindex import reindex_some
from tickler.table.engines.dynamodb.writes import Writer
from tickler.table.engines.engine import Reader, Reindexed
from tickler.table.measurement import Measurement
from tickler.table.operation import Operation

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class DynamodbEngine(DynamodbReader):
    """Keeps a table in the DynamoDB table `name`. `owned`: the client is opened and closed with the engine."""

    makes_tables = False

    def __init__(self, table: TableDefinition, client: Client, name: str, *, owned: bool = True) -> None:
        super().__init__(Connection(table, client, name))
        self._writer = Writer(self._connection)
        self.metadata = DynamodbMetadata(self._connection)
        self.changes = DynamodbChangeLog(self._connection)
        self._owned = owned

    async def open(self, *, create: bool) -> list[str]:
        connection, table = self._connection, self._connection.table
        made: list[str] = []
        if self._owned:
            await connection.client.open()
        try:
            with connection.translated():
                if create:
                    made = await schema.make(
                        connection.client, connection.name, connection.label, table.gsis, stream=table.stream
                    )
                description = await describe(connection.client, connection.name)
            if description is None:
                raise SchemaMissing(connection.label, connection.name)
            schema.check(connection.label, description, table.gsis)
            if table.stream:
                schema.check_stream(connection.label, description)
            connection.wires  # noqa: B018  # makes them, and refuses types that cannot be stored
        except BaseException:
            await self.close()
            raise
        return made

    async def close(self) -> None:
        if self._owned:
            await self._connection.client.close()

    @property
    def database(self) -> Client:
        return self._connection.client

    async def write(self, operations: Sequence[Operation], *, now_ms: int, parts: Sequence[TransactionPart] = ()) -> list[Any]:
        return await self._writer.write(operations, now_ms, parts)

    async def write_each(self, operations: Sequence[Operation], *, now_ms: int) -> None:
        await self._writer.write_each(operations)

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress, *, streamed: bool = True) -> int:
        return await self._writer.load(entities, on_progress)

    def snapshot(self) -> AbstractAsyncContextManager[Reader]:
        raise InvalidInput("DynamoDB has no snapshots: read what belongs together with get_many, or in one query")

    async def has_more_than(self, items: int) -> bool:
        request: dict[str, object] = {
            "Select": "COUNT",
            "FilterExpression": "pk <> :metadata",
            "ExpressionAttributeValues": {":metadata": {"S": METADATA_PARTITION}},
            "Limit": items + 10,
        }
        found = 0
        while True:  # an answer has at most 1 MB, which may be few items
            answer = await self._connection.call("Scan", request, _decode)
            found += int(answer["Count"])
            if found > items or "LastEvaluatedKey" not in answer:
                return found > items
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def measure(self, *, now_ms: int, sample: int | None) -> Measurement:
        return await measure(self._connection, now_ms, sample)

    async def reindex_some(self, after: str | None) -> Reindexed:
        return await reindex_some(self._connection, after)

    async def sweep(self, *, now_ms: int, limit: int) -> int:
        """Return 0: DynamoDB deletes expired items by itself."""
        return 0


def open_engine(table: TableDefinition, url: StoreUrl) -> DynamodbEngine:
    url.refuse_unknown("region", "endpoint", "timeout")
    return DynamodbEngine(table, Client(address_of(url)), table_of(url))


def shared_engine(table: TableDefinition, client: Client, name: str) -> DynamodbEngine:
    return DynamodbEngine(table, client, name, owned=False)


async def streamed_tables(client: Client) -> list[str]:
    """Return nothing: DynamoDB does not tell which of its tables are ours."""
    return []
