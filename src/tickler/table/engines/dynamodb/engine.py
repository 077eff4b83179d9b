"""The engine on DynamoDB: native attributes, keys of indexes kept in step by the planner, and conditions on the server."""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import msgspec

from tickler.database.dynamodb_url import address_of, table_of
from tickler.database.progress import OnProgress, no_progress
from tickler.database.store_url import StoreUrl
from tickler.dynamo import Client, Item
from tickler.dynamo.failures import ConditionFailed
from tickler.dynamo.tables import describe
from tickler.dynamo.transactions import TransactionPart
from tickler.errors import InvalidInput, SchemaMissing
from tickler.table.definition import METADATA_PARTITION, TableDefinition
from tickler.table.engines.dynamodb import schema
from tickler.table.engines.dynamodb.connection import Connection
from tickler.table.engines.dynamodb.measure import measure
from tickler.table.engines.dynamodb.reads import DynamodbReader
from tickler.table.engines.dynamodb.reindex import reindex
from tickler.table.engines.dynamodb.writes import Writer
from tickler.table.engines.engine import Reader
from tickler.table.index_texts import IndexTexts
from tickler.table.measurement import Measurement
from tickler.table.operation import Operation

_METADATA_KEY: Item = {"pk": {"S": METADATA_PARTITION}, "sk": {"S": METADATA_PARTITION}}
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class DynamodbEngine(DynamodbReader):
    """Keeps a table in the DynamoDB table `name`. `owned`: the client is opened and closed with the engine."""

    makes_tables = False

    def __init__(self, table: TableDefinition, client: Client, name: str, *, owned: bool = True) -> None:
        super().__init__(Connection(table, client, name))
        self._writer = Writer(self._connection)
        self._owned = owned

    async def open(self, *, create: bool) -> list[str]:
        connection = self._connection
        made: list[str] = []
        if self._owned:
            await connection.client.open()
        try:
            with connection.translated():
                if create:
                    made = await schema.make(connection.client, connection.name, connection.label, connection.table.gsis)
                description = await describe(connection.client, connection.name)
            if description is None:
                raise SchemaMissing(connection.label, connection.name)
            schema.check(connection.label, description, connection.table.gsis)
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

    async def load(self, entities: Iterable[Any], on_progress: OnProgress = no_progress) -> int:
        return await self._writer.load(entities, on_progress)

    def snapshot(self) -> AbstractAsyncContextManager[Reader]:
        raise InvalidInput("DynamoDB has no snapshots: read what belongs together with get_many, or in one query")

    async def secret(self) -> bytes:
        return b64decode((await self._metadata())["secret"]["B"])

    async def index_texts(self) -> IndexTexts:
        found = (await self._metadata()).get("index_texts", {"S": "{}"})
        return msgspec.json.decode(found["S"], type=IndexTexts)

    async def merge_index_texts(self, texts: IndexTexts) -> None:
        while True:
            stored = (await self._metadata()).get("index_texts", {"S": "{}"})
            merged = {**msgspec.json.decode(stored["S"], type=IndexTexts), **texts}
            update: dict[str, object] = {
                "Key": _METADATA_KEY,
                "UpdateExpression": "SET index_texts = :merged",
                "ConditionExpression": "attribute_not_exists(index_texts) OR index_texts IN (:stored, :merged)",
                "ExpressionAttributeValues": {":merged": {"S": msgspec.json.encode(merged).decode()}, ":stored": stored},
            }
            with suppress(ConditionFailed):  # another program recorded its own in between
                await self._connection.call("UpdateItem", update, _decode)
                return

    async def has_more_than(self, items: int) -> bool:
        request: dict[str, object] = {"Select": "COUNT", "Limit": items + 2}
        found = 0
        while True:  # an answer has at most 1 MB, which may be few items
            answer = await self._connection.call("Scan", request, _decode)
            found += int(answer["Count"])
            if found > items + 1 or "LastEvaluatedKey" not in answer:
                return found > items + 1  # beside the metadata
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def measure(self, *, now_ms: int, sample: int | None) -> Measurement:
        return await measure(self._connection, now_ms, sample)

    async def reindex(self, on_progress: OnProgress = no_progress) -> int:
        return await reindex(self._connection, on_progress)

    async def sweep(self, *, now_ms: int, limit: int) -> int:
        """Return 0: DynamoDB deletes expired items by itself."""
        return 0

    async def _metadata(self) -> Item:
        """Return the item of the table itself, which is made when it is first needed."""
        read = {"Key": _METADATA_KEY, "ConsistentRead": True}
        found: Item | None = (await self._connection.call("GetItem", read, _decode)).get("Item")
        if found is not None:
            return found
        made: Item = {**_METADATA_KEY, "secret": {"B": b64encode(secrets.token_bytes(32)).decode()}}
        with suppress(ConditionFailed):  # another process was first
            await self._connection.call("PutItem", {"Item": made, "ConditionExpression": "attribute_not_exists(pk)"}, _decode)
        item: Item = (await self._connection.call("GetItem", read, _decode))["Item"]
        return item


def open_engine(table: TableDefinition, url: StoreUrl) -> DynamodbEngine:
    url.refuse_unknown("region", "endpoint", "timeout")
    return DynamodbEngine(table, Client(address_of(url)), table_of(url))


def shared_engine(table: TableDefinition, client: Client, name: str) -> DynamodbEngine:
    return DynamodbEngine(table, client, name, owned=False)
