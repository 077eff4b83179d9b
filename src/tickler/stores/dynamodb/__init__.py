"""DynamoDB: one table, one item per schedule, and a sharded sparse index. `layout.py` documents the items."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tickler.aws.address import Address
from tickler.database.dynamodb_url import address_of, table_of
from tickler.database.progress import OnProgress, no_progress
from tickler.database.store_url import StoreUrl
from tickler.dynamo.client import Client
from tickler.dynamo.failures import RequestRefused
from tickler.dynamo.tables import describe
from tickler.errors import InvalidInput, SchemaMissing, StoreUnavailable
from tickler.stores.dynamodb import schema
from tickler.stores.dynamodb.fires.fire_store import DynamodbFires
from tickler.stores.dynamodb.index.index_store import DynamodbIndex
from tickler.stores.dynamodb.index.user_table import DueItem, DynamoIndex
from tickler.stores.dynamodb.layout import MAX_NAME_BYTES
from tickler.stores.dynamodb.maintenance import reshard, templates
from tickler.stores.dynamodb.maintenance.contents import contents
from tickler.stores.dynamodb.maintenance.malformed_items import find_malformed
from tickler.stores.dynamodb.records import DynamodbRecords
from tickler.stores.dynamodb.schedules.schedule_store import DynamodbSchedules
from tickler.stores.dynamodb.sends import DynamodbSends
from tickler.stores.dynamodb.settings import REFRESH_MS, Settings, read_settings
from tickler.stores.dynamodb.table import Table
from tickler.stores.optional import MalformedItem
from tickler.stores.store import Capabilities

__all__ = ["DueItem", "DynamoIndex", "DynamodbStore", "open_store"]

log = logging.getLogger("tickler")


class DynamodbStore:
    capabilities = Capabilities(
        shared=True,
        joins_transactions=False,
        order="within-call",
        atomic="each",
        makes_tables=False,
        longest_name_bytes=MAX_NAME_BYTES,
        clock_ms=1000,
        prunes_itself=True,
        poll_ms=5000,
        backup_tool="turn on point-in-time recovery of the table, or use `aws dynamodb create-backup`, "
        "and restore it with `aws dynamodb restore-table-to-point-in-time`",
    )

    def __init__(
        self, table: str, address: Address, *, label: str, shards: int | None = None, refresh_ms: int = REFRESH_MS
    ) -> None:
        self._table = Table(Client(address), table, label)
        self._shards = shards
        made_with = shards or schema.DEFAULT_SHARDS
        self._new_settings = Settings(schema.NEWEST, made_with, made_with, refresh_ms)
        self.records = DynamodbRecords(self._table)
        self.index = DynamodbIndex(self._table, self.records)
        self.schedules = DynamodbSchedules(self._table, self.records)
        self.fires = DynamodbFires(self._table, self.records)
        self.sends = DynamodbSends(self._table, self.records)
        self.contents = contents(self._table)

    @property
    def database(self) -> Client:
        return self._table.client

    @property
    def client(self) -> Client:
        """The client of this store; its `usage` counts requests and units."""
        return self._table.client

    @property
    def table_name(self) -> str:
        return self._table.name

    async def open(self, *, create: bool) -> None:
        await self._table.client.open()
        try:
            settings = await read_settings(self._table.client, self._table.name)
            if settings is None and create:
                await schema.make(self._table.client, self._table.name, self._table.label, self._new_settings)
                log.info("created the Tickler tables in %s", self._table.label)
                settings = await read_settings(self._table.client, self._table.name)
            if settings is None:
                raise SchemaMissing(self._table.label)
            schema.check_version(self._table.label, settings.schema)
            self._check_shards(settings)
            description = await describe(self._table.client, self._table.name)
            if description is None:
                raise SchemaMissing(self._table.label)
            schema.check_keys(self._table.label, description)
        except RequestRefused as error:
            await self.close()
            raise StoreUnavailable(f"{self._table.label}: {error}") from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._table.settings.forget()
        await self._table.client.close()

    async def now_ms(self) -> int | None:
        await read_settings(self._table.client, self._table.name)
        return self._table.client.server_now_ms

    async def migrate(self) -> list[str]:
        table = self._table
        async with self._connected():
            before = await read_settings(table.client, table.name)
            if before is not None:
                schema.check_version(table.label, before.schema)
            await schema.make(table.client, table.name, table.label, self._new_settings)
            return [] if before is not None else [schema.FIRST_MIGRATION]

    async def reshard(self, shards: int, on_progress: OnProgress = no_progress) -> None:
        async with self._connected():
            await reshard.raise_shards(self._table, shards, on_progress)

    async def move_home(self, region: str, from_region: str | None = None, on_progress: OnProgress = no_progress) -> None:
        async with self._connected():
            await reshard.move_home(self._table, region, from_region, on_progress)

    async def malformed_items(self) -> AsyncIterator[MalformedItem]:
        async with self._connected():
            async for item in find_malformed(self._table.client, self._table.name, self._table.label):
                yield item

    def definition(self, form: str) -> str:
        return templates.render(form, self._table.name)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        await self._table.client.open()
        try:
            yield
        finally:
            await self.close()

    def _check_shards(self, settings: Settings) -> None:
        if self._shards not in (None, settings.write_shards):
            raise InvalidInput(
                f"{self._table.label}: the table has {settings.write_shards} shards: leave shards= out of the URL, "
                f"or run `tickler migrate --shards {self._shards}`"
            )


def open_store(url: StoreUrl) -> DynamodbStore:
    """Parse `dynamodb://TABLE?region=…&endpoint=…`. `shards=` applies when the table is created; `timeout=` is in seconds."""
    url.refuse_unknown("region", "endpoint", "shards", "timeout")
    return DynamodbStore(table_of(url), address_of(url), label=url.text, shards=_shards(url))


def _shards(url: StoreUrl) -> int | None:
    text = url.parameters.get("shards")
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= schema.MAX_SHARDS:
        raise InvalidInput(f"{url.text}: shards={text!r} is not a whole number from 1 to {schema.MAX_SHARDS}")
    return int(text)
