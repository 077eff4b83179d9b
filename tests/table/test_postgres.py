"""The kit over tables in PostgreSQL, and what only PostgreSQL has to do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from postgres_server import PostgresServer
from tickler.clock import ManualClock
from tickler.database.postgres.pool import Pool
from tickler.errors import ConditionFailed, SchemaMismatch, SchemaMissing, StoreUnavailable
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.cursor import read_secret
from tickler.table.engines.engine import Engine
from tickler.table.engines.postgres.engine import PostgresEngine
from tickler.table.open_table import OpenTable
from tickler.testing.table_contract import TableContract
from tickler.testing.table_engine_contract import OTHER
from tickler.testing.table_fixtures import NOW, TABLE, Customer, Order, order


def engine_at(url: str, table: Table = TABLE) -> PostgresEngine:
    return PostgresEngine(table, pool_at(url))


def pool_at(url: str) -> Pool:
    return Pool(url, parse_qs(urlsplit(url).query)["schema"][0], dsn=url.partition("&schema=")[0])


def opened(url: str, table: Table = TABLE) -> OpenTable:
    return OpenTable(table, engine_at(url, table), ManualClock(NOW), create=True)


class TestPostgres(TableContract):
    @pytest.fixture
    async def engine(self, postgres_server: PostgresServer) -> AsyncIterator[Engine]:
        """Of one schema for all tests: to empty it takes the server a tenth of what it takes to make another."""
        engine = engine_at(postgres_server.url(f"table_kit_{os.getpid()}"))
        await engine.open(create=True)
        yield engine
        await engine._pool.read(lambda connection: connection.execute(engine._pool.sql("DELETE FROM {schema}.kit_shop")))
        await engine.close()

    def as_another_program(self, engine: Engine) -> OpenTable:
        assert isinstance(engine, PostgresEngine)
        return OpenTable(OTHER, PostgresEngine(OTHER, engine._pool, owned=False), ManualClock(NOW), create=True)


small = Table(TABLE.name)


class Small(Entity, table=small):
    id: Attr[str] = attr()
    key = Key("SMALL" / id, "SMALL")
    one = Index("gsi1", "SMALL", id)


async def test_a_table_that_does_not_exist_is_named_with_the_remedy(postgres_url: str) -> None:
    with pytest.raises(SchemaMissing, match=r"no table 'kit_shop'.*tickler table create"):
        await engine_at(postgres_url).open(create=False)


async def test_indexes_that_a_table_lacks_are_named_and_can_be_made(postgres_url: str) -> None:
    async with opened(postgres_url, small) as before:
        await before.put(Small(id="s1"))
    with pytest.raises(SchemaMismatch, match="lacks gsi2, gsi3, gsi4: run") as lacking:
        await engine_at(postgres_url).open(create=False)
    assert lacking.value.attribute == "gsi2"
    async with opened(postgres_url) as db:
        await db.put(order(1, rating=3))
        assert await db.count(Order.rated()) == 1
        connection, schema = await connected(postgres_url)
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(f"UPDATE {schema}.kit_shop SET gsi3sk = NULL")
        await connection.execute(f'DROP INDEX {schema}."kit_shop.gsi.gsi3"')
        await connection.close()
    with pytest.raises(SchemaMismatch, match="lacks gsi3"):
        await engine_at(postgres_url).open(create=False)


async def test_a_put_of_the_same_content_changes_no_row(postgres_url: str) -> None:
    async with opened(postgres_url) as db:
        await db.put(order(1, rating=2))
        connection, schema = await connected(postgres_url)
        version = f"SELECT id, xmin::text FROM {schema}.kit_shop"
        before = await connection.fetchrow(version)
        await db.put(order(1, rating=2))
        await db.put_many([order(1, rating=2)])
        assert await connection.fetchrow(version) == before
        await db.put(order(1, rating=3))
        after = await connection.fetchrow(version)
        assert after is not None
        assert before is not None
        assert (after[0], after[1] == before[1]) == (before[0], False)
        await connection.close()


async def test_a_put_without_condition_is_one_statement(postgres_url: str) -> None:
    statements: list[str] = []

    async def listened(connection: asyncpg.Connection) -> None:
        connection.add_query_logger(lambda record: statements.append(record.query))

    dsn, schema = postgres_url.partition("&schema=")[0], parse_qs(urlsplit(postgres_url).query)["schema"][0]
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1, init=listened) as driver:
        pool = Pool("caller's", schema, pool=driver)
        async with OpenTable(TABLE, PostgresEngine(TABLE, pool, owned=False), ManualClock(NOW), create=True) as db:
            for write in (db.put(order(1)), db.put(order(1, items=1)), db.delete(order(1).key)):
                statements.clear()
                await write
                assert len([text for text in statements if "kit_shop" in text or "BEGIN" in text]) == 1


async def test_a_check_for_absence_holds_until_the_transaction_is_committed(postgres_url: str) -> None:
    async with opened(postgres_url) as db:
        for n in range(10):

            async def insert(n: int = n) -> None:
                async with db.transaction() as tx:
                    tx.check(Customer.key.id(f"c{n}"), Customer.id.missing())
                    tx.create(order(n, customer=f"c{n}"))

            async def profile(n: int = n) -> None:
                async with db.transaction() as tx:
                    tx.check(order(n, customer=f"c{n}").key, Order.id.missing())
                    tx.create(Customer(id=f"c{n}", name="Ada"))

            outcomes = await asyncio.gather(insert(), profile(), return_exceptions=True)
            assert sorted(map(repr, map(type, outcomes))) == sorted(map(repr, (type(None), ConditionFailed)))


async def test_engines_that_create_a_table_at_once_agree(postgres_url: str) -> None:
    engines = [engine_at(postgres_url) for _ in range(4)]
    await asyncio.gather(*(engine.open(create=True) for engine in engines))
    assert len({await read_secret(engine.metadata) for engine in engines}) == 1
    for engine in engines:
        await engine.close()


async def test_a_database_that_is_away_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match="cannot connect"):
        await engine_at("postgresql://nobody@127.0.0.1:1/none?x=y&schema=s").open(create=True)


async def connected(url: str) -> tuple[asyncpg.Connection, str]:
    return await asyncpg.connect(url.partition("&schema=")[0]), parse_qs(urlsplit(url).query)["schema"][0]
