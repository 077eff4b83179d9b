"""PostgreSQL, for many workers on one database, also behind PgBouncer in transaction mode."""

from __future__ import annotations

import logging
from collections.abc import Callable

import asyncpg

from tickler.database.migrations import check_version, script
from tickler.database.postgres.pool import Pool, pool_for
from tickler.database.store_url import StoreUrl
from tickler.errors import InvalidInput
from tickler.stores.optional import no_such_form
from tickler.stores.postgres import schema
from tickler.stores.postgres.contents import contents
from tickler.stores.postgres.fires import PostgresFires
from tickler.stores.postgres.index import PostgresIndex
from tickler.stores.postgres.records import PostgresRecords
from tickler.stores.postgres.schedules import PostgresSchedules
from tickler.stores.postgres.sends import PostgresSends
from tickler.stores.store import Capabilities

log = logging.getLogger("tickler")


class PostgresStore:
    def __init__(self, database: Pool) -> None:
        self._database = self.database = database
        backup_tool = f"use `pg_dump --schema={database.schema}` and `pg_restore`"
        self.capabilities = Capabilities(
            shared=True, joins_transactions=True, order="total", poll_ms=5000, backup_tool=backup_tool
        )
        self.schedules = PostgresSchedules(database)
        self.index = PostgresIndex(database)
        self.records = PostgresRecords(database)
        self.fires = PostgresFires(database, self.index)
        self.sends = PostgresSends(database, self.schedules)
        self.contents = contents(database)

    async def open(self, *, create: bool) -> None:
        await self._database.open()
        try:
            found = await schema.version(self._database)
            if found is None and create:
                if await schema.migrate(self._database):
                    log.info("created the Tickler tables in %s", self._database.name)
                found = await schema.version(self._database)
            check_version(self._database.name, found, schema.NEWEST)
        except BaseException:
            await self._database.close()
            raise

    async def close(self) -> None:
        await self._database.close()

    async def now_ms(self) -> int | None:
        sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        return int(await self._database.read(lambda connection: connection.fetchval(sql)))

    async def watch(self, wake: Callable[[], None]) -> bool:
        return await self._database.listen(wake)

    async def migrate(self) -> list[str]:
        await self._database.open()
        try:
            return await schema.migrate(self._database)
        finally:
            await self._database.close()

    def definition(self, form: str) -> str:
        if form != "sql":
            raise no_such_form(self._database.name, form, "sql")
        tables = script(schema.MIGRATIONS, "{schema}.tickler_records")
        return self._database.sql(f"CREATE SCHEMA IF NOT EXISTS {{schema}};\n\n{tables}")


def open_store(url: StoreUrl) -> PostgresStore:
    return PostgresStore(pool_for(url))


def store_for_pool(pool: object, schema_name: str) -> PostgresStore:
    if not isinstance(pool, asyncpg.Pool):
        raise InvalidInput(f"pool= got a {type(pool).__name__}; pass an asyncpg pool, made with asyncpg.create_pool")
    return PostgresStore(Pool(f"pool, schema {schema_name}", schema_name, pool=pool))
