"""From a URL, or a Tickler, to an open table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

import tickler
from tickler import InvalidInput, Schedule, Tickler
from tickler.clock import ManualClock
from tickler.dynamo.client import Client
from tickler.dynamo.failures import RequestRefused
from tickler.errors import SchemaMismatch, SchemaMissing, StoreUnavailable
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.open_table import OpenTable

shop = Table("connect_shop")
stock = Table("connect_stock")


class Order(Entity, table=shop):
    id: Attr[str] = attr()
    key = Key("ORDER" / id, "ORDER")
    all = Index("gsi1", "ORDER", id)


class Shelf(Entity, table=stock):
    id: Attr[str] = attr()
    key = Key("ORDER" / id, "ORDER")
    all = Index("gsi2", "SHELF", id)


@pytest.fixture
def table_url(any_url: str) -> str:
    return any_url.replace("&shards=4", "")


@pytest.fixture(params=["memory", "sqlite in memory", "sqlite", "postgres", "dynamodb"])
def tickler_url(request: pytest.FixtureRequest) -> str:
    urls = {"memory": "memory://", "sqlite in memory": "sqlite://"}
    return urls.get(request.param) or str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
async def t(tickler_url: str) -> AsyncIterator[Tickler]:
    async with tickler.connect(tickler_url) as opened:
        yield opened


@pytest.fixture
async def names(dynamodb_client: Client, dynamodb_table: str) -> AsyncIterator[tuple[str, str]]:
    """What two tables are called on DynamoDB, where they are not in a schema or a file of their own."""
    yield dynamodb_table, f"{dynamodb_table}_stock"
    with suppress(RequestRefused):
        await dynamodb_client.call("DeleteTable", {"TableName": f"{dynamodb_table}_stock"})


async def use(db: OpenTable, id: str = "1") -> None:
    """Write, and read by the key and by an index."""
    await db.put(Order(id=id))
    assert await db.get(Order.key.id(id)) == Order(id=id)
    assert id in [order.id for order in (await db.query(Order.all(), first=100)).items]


class TestByUrl:
    async def test_a_table_is_kept_under_its_url(self, table_url: str) -> None:
        async with shop.connect(table_url) as db:
            await use(db)
        async with shop.connect(table_url) as db:
            found = await db.get(Order.key.id("1"))
        assert found == (None if table_url == "memory://" else Order(id="1"))

    async def test_a_relative_path_is_one_in_the_present_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        async with shop.connect("sqlite:///my%20shop.db?timeout=1&cache_mb=4&wal_mb=8") as db:
            monkeypatch.chdir("/")
            await use(db)
        assert [path.name for path in tmp_path.iterdir()] == ["my shop.db"]

    async def test_a_database_in_memory_is_another_one_each_time(self) -> None:
        for url in ("sqlite://", "memory://"):
            async with shop.connect(url) as one, shop.connect(url) as other:
                await use(one)
                assert await other.get(Order.key.id("1")) is None

    async def test_both_schemes_of_postgresql_are_one(self, postgres_url: str) -> None:
        async with shop.connect(postgres_url) as db:
            await use(db)
        async with shop.connect(postgres_url.replace("postgresql://", "postgres://")) as db:
            assert await db.get(Order.key.id("1")) == Order(id="1")

    async def test_schemas_of_postgresql_are_apart(self, postgres_url: str) -> None:
        async with shop.connect(postgres_url) as db:
            await use(db)
            other = postgres_url.replace("schema=", "schema=other_")
            with pytest.raises(SchemaMissing):
                await shop.connect(other, create=False).open()

    async def test_nothing_happens_before_it_is_opened(self, tmp_path: Path) -> None:
        db = shop.connect(f"sqlite:///{tmp_path / 'shop.db'}")
        shop.connect("postgresql://nobody@127.0.0.1:1/nothing")
        shop.connect("dynamodb://nothing")
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(StoreUnavailable, match="is closed"):
            await db.get(Order.key.id("1"))
        await db.close()

    async def test_it_may_be_opened_again(self, table_url: str) -> None:
        db = shop.connect(table_url)
        for id in ("1", "2"):
            async with db:
                await use(db, id)

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("shop.db", "not a store's URL: write one such as"),
            ("", "not a store's URL"),
            ("mysql://host/shop", "'mysql://host/shop' has an unknown scheme: use one of memory://, sqlite://, postgresql://,"),
            ("mysql://user:hunter2@host/shop", "'mysql://user:…@host/shop' has an unknown scheme"),
            ("sqlite:///shop.db?colour=blue", "unknown parameter 'colour': use timeout, cache_mb, wal_mb"),
            ("memory://?colour=blue", "unknown parameter 'colour': use none"),
            ("dynamodb://shop?colour=blue", "unknown parameter 'colour': use region, endpoint, timeout"),
            ("sqlite://shop.db", "write three slashes before a relative path, as in sqlite:///shop.db"),
            ("sqlite:///", "name a file, as in sqlite:///"),
            ("sqlite:///shop.db?timeout=soon", "timeout='soon' is not a number of seconds"),
            ("dynamodb://", "name a table, as in dynamodb://"),
            ("dynamodb://a b", "name a table, as in dynamodb://"),
            ("sqlite:///shop.db?create=yes", "create='yes' is invalid: write create=1 or create=0"),
            ("postgresql://host/shop?schema=a-b", "schema: 'a-b' is not a plain name"),
        ],
    )
    def test_a_url_that_makes_no_sense_is_refused_at_once(self, url: str, said: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            shop.connect(url)
        assert said in str(refused.value)
        assert "hunter2" not in str(refused.value)

    async def test_what_postgresql_does_not_know_is_an_error_when_it_is_opened(self, postgres_url: str) -> None:
        with pytest.raises(StoreUnavailable, match="colour"):
            await shop.connect(f"{postgres_url}&colour=blue").open()

    @pytest.mark.parametrize("source", [None, 3, b"sqlite://", Order(id="1"), shop])
    def test_what_is_neither_a_url_nor_a_tickler_is_refused(self, source: Any) -> None:
        with pytest.raises(InvalidInput, match="pass one, or a URL such as"):
            shop.connect(source)

    def test_a_name_beside_a_url_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="in a URL, write dynamodb://NAME"):
            shop.connect("sqlite://", name="other")

    async def test_the_clock_may_be_given(self) -> None:
        clock = ManualClock(1_921_406_400_000)
        async with shop.connect("memory://", clock=clock) as db:
            assert db._clock is clock


class TestCreate:
    @pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
    async def test_a_missing_table_is_an_error_that_names_the_remedy(self, table_url: str) -> None:
        bare = table_url.replace("&create=1", "")
        for missing in (shop.connect(bare, create=False), shop.connect(f"{bare}{'&' if '?' in bare else '?'}create=0")):
            with pytest.raises(SchemaMissing, match=r"there is no table '.*': run `tickler table create`") as refused:
                await missing.open()
            assert isinstance(refused.value.table, str)

    async def test_a_missing_file_is_not_made(self, tmp_path: Path) -> None:
        for url in (f"sqlite:///{tmp_path / 'shop.db'}?create=0", f"sqlite:///{tmp_path / 'shop.db'}"):
            with pytest.raises(SchemaMissing, match="there is no table 'connect_shop'"):
                await shop.connect(url, create=None if "create" in url else False).open()
        assert list(tmp_path.iterdir()) == []

    async def test_the_argument_goes_before_the_url(self, sqlite_url: str) -> None:
        async with shop.connect(f"{sqlite_url}?create=0", create=True) as db:
            await use(db)

    async def test_on_dynamodb_a_table_is_made_on_demand_only(self, dynamodb_url: str) -> None:
        url = dynamodb_url.replace("&create=1&shards=4", "")
        with pytest.raises(SchemaMissing, match="there is no table"):
            await shop.connect(url).open()
        async with shop.connect(f"{url}&create=1") as db:
            await use(db)
        async with shop.connect(url) as db:
            assert await db.get(Order.key.id("1")) == Order(id="1")

    async def test_a_table_that_is_there_needs_no_rights_to_make_one(self, table_url: str) -> None:
        async with shop.connect(table_url, create=True):
            pass
        async with shop.connect(table_url, create=False) as db:
            await use(db)

    async def test_a_table_of_somebody_else_is_left_alone(self, postgres_url: str) -> None:
        query = parse_qs(urlsplit(postgres_url).query)
        connection = await asyncpg.connect(postgres_url.partition("&schema=")[0])
        try:
            (schema,) = query["schema"]
            await connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.connect_shop (id int, name text)")
            with pytest.raises(SchemaMismatch, match="'connect_shop' is not of this toolkit: it has no column 'body'"):
                await shop.connect(postgres_url).open()
            columns = "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0"
            assert [row[0] for row in await connection.fetch(columns, f"{schema}.connect_shop")] == ["id", "name"]
        finally:
            await connection.close()


class TestBesideATickler:
    async def test_a_table_shares_the_database_of_a_tickler(self, t: Tickler, names: tuple[str, str]) -> None:
        async with shop.connect(t, name=names[0], create=True) as db:
            await use(db)
            assert await db.engine.database.is_same(t.database)
            async with db.transaction() as tx:
                tx.put(Order(id="2"))
                await t.schedules.put(Schedule(owner="u1", key="2", when="@hourly"), using=tx)
            assert await t.index.count() == 1

    async def test_a_pool_of_your_own_works_too(self, postgres_url: str) -> None:
        (schema,) = parse_qs(urlsplit(postgres_url).query)["schema"]
        pool = await asyncpg.create_pool(postgres_url.partition("&schema=")[0], min_size=0)
        async with tickler.connect(pool=pool, schema=schema) as t, shop.connect(t) as db:
            await use(db)
        await pool.close()

    async def test_the_clock_is_that_of_the_tickler(self) -> None:
        clock = ManualClock(1_921_406_400_000)
        async with tickler.connect("sqlite://", clock=clock) as t, shop.connect(t) as db:
            assert db._clock is clock

    async def test_closing_the_table_leaves_the_tickler_open(self, t: Tickler, names: tuple[str, str]) -> None:
        for _ in range(2):
            async with shop.connect(t, name=names[0], create=True) as db:
                await use(db)
            assert await t.index.count() == 0

    async def test_a_table_that_cannot_be_opened_leaves_the_tickler_open(self, t: Tickler, names: tuple[str, str]) -> None:
        if t.database.name != "memory://":
            with pytest.raises(SchemaMissing, match="there is no table"):
                await shop.connect(t, name=names[0], create=False).open()
        assert await t.index.count() == 0

    @pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
    async def test_after_the_tickler_the_table_is_closed_too(self, any_url: str, names: tuple[str, str]) -> None:
        async with tickler.connect(any_url) as t:
            db = await shop.connect(t, name=names[0], create=True).open()
            await use(db)
        with pytest.raises(StoreUnavailable, match=r"is closed: use it inside `async with"):
            await db.get(Order.key.id("1"))
        with pytest.raises(StoreUnavailable, match=r"is closed: use it inside `async with"):
            await db.put(Order(id="2"))
        await db.close()

    @pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
    async def test_a_tickler_that_is_not_open_yet_is_an_error(self, any_url: str, names: tuple[str, str]) -> None:
        with pytest.raises(StoreUnavailable, match=r"is closed: use it inside `async with"):
            await shop.connect(tickler.connect(any_url), name=names[0]).open()

    async def test_two_tables_in_one_database_are_apart(self, t: Tickler, names: tuple[str, str]) -> None:
        async with shop.connect(t, name=names[0], create=True) as db, stock.connect(t, name=names[1], create=True) as other:
            await use(db)
            await other.put(Shelf(id="1"))
            await other.put(Shelf(id="2"))
            assert await db.count(Order.all()) == 1
            assert await other.count(Shelf.all()) == 2
            assert await other.get(Shelf.key.id("1")) == Shelf(id="1")
            with pytest.raises(InvalidInput, match="Order is not an entity of the table 'connect_stock'"):
                await other.get(Order.key.id("1"))
            with pytest.raises(InvalidInput, match="Order is not an entity of the table 'connect_stock'"):
                await other.put(Order(id="3"))


@pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
async def test_one_definition_may_be_open_twice_at_once(table_url: str) -> None:
    async with shop.connect(table_url) as one, shop.connect(table_url) as other, shop.connect("memory://") as third:
        await one.put(Order(id="1"))
        assert await other.get(Order.key.id("1")) == Order(id="1")
        assert await third.get(Order.key.id("1")) is None
        await one.put(Order(id="2"))
        page = await one.query(Order.all(), first=1)
        assert (await other.query(Order.all(), first=1, after=page.end)).items == [Order(id="2")], "a cursor is valid in both"
        await other.delete(Order.key.id("1"))
        assert await one.get(Order.key.id("1")) is None


async def test_an_entity_may_be_defined_after_connect(tmp_path: Path) -> None:
    late = Table("late")
    db = late.connect(f"sqlite:///{tmp_path / 'late.db'}")

    class Thing(Entity, table=late):
        id: Attr[str] = attr()
        key = Key("THING" / id, "THING")
        all = Index("gsi1", "THING", id)

    async with db:
        await db.put(Thing(id="1"))
        assert await db.count(Thing.all()) == 1


async def test_arguments_of_another_kind_are_refused_with_what_to_pass() -> None:
    table = Table("kinds", stream=True)

    class Thing(Entity, table=table):
        id: Attr[str] = attr()
        age: Attr[int] = attr(default=0)
        key = Key("THING" / id, "THING")
        old = Index("gsi1", "OLD", id, when=age > 9)

    async with table.connect("memory://") as db:
        wrong: Any = db
        for id in (Thing.key("k"), "k", Thing.key):
            with pytest.raises(InvalidInput, match=r"is not the key of an item: pass order\.key"):
                await wrong.get(id)
            with pytest.raises(InvalidInput, match="is not the key of an item"):
                await wrong.delete(id)
        with pytest.raises(InvalidInput, match=r"Thing\.old is no selection: call an index or a key"):
            await wrong.query(Thing.old, first=3)
        with pytest.raises(InvalidInput, match=r"is no change: use set, add"):
            await wrong.update(Thing.key.id("k"), Thing.age == 3)
        with pytest.raises(InvalidInput, match=r"is no event: pass some, as in @consumer\.on"):
            wrong.consumer("c").on(Thing)
