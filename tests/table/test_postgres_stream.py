"""The kit of streams over tables in PostgreSQL: and what is a change there, who may read it, and what reading costs."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from table.test_postgres import connected, engine_at, opened, pool_at

from pgbouncer_server import PgBouncer, needs_pgbouncer
from postgres_server import PostgresServer
from tickler.clock import ManualClock
from tickler.errors import ConditionFailed, SchemaMismatch, StoreUnavailable
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr
from tickler.table.engines.change_log import ALL_SHARDS, ChangeRecord, shard_of
from tickler.table.engines.engine import Engine
from tickler.table.engines.postgres.change_log import PostgresChangeLog
from tickler.table.engines.postgres.engine import PostgresEngine, streamed_tables
from tickler.table.open_table import OpenTable
from tickler.testing.stream_contract import StreamContract
from tickler.testing.stream_fixtures import STREAMED

NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)
EVERY_SHARD: dict[str, str | None] = dict.fromkeys(shard.id for shard in ALL_SHARDS)
EMPTIED = """
    DELETE FROM {schema}.kit_stream;
    DELETE FROM {schema}."kit_stream.stream";
    DELETE FROM {schema}.tickler_table_metadata;
"""
_numbers = itertools.count()

stock = Table("stock", stream=True)
silent = Table("stock")


class Part(Entity, table=stock):
    id: Attr[str] = attr()
    count: Attr[int] = attr(default=0)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)
    key = Key("PART" / id, "PART")


class SilentPart(Entity, table=silent, stored_as="Part"):
    id: Attr[str] = attr()
    count: Attr[int] = attr(default=0)
    key = Key("PART" / id, "PART")
    by_count = Index("gsi1", "COUNT", count / id)


class TestPostgres(StreamContract):
    @pytest.fixture
    async def engine(self, postgres_server: PostgresServer) -> AsyncIterator[Engine]:
        """Of one schema for all tests, as in the kit of tables."""
        engine = engine_at(postgres_server.url(f"stream_kit_{os.getpid()}"), STREAMED)
        await engine.open(create=True)
        yield engine
        await engine._pool.read(lambda connection: connection.execute(engine._pool.sql(EMPTIED)))
        await engine.close()


def log_of(db: OpenTable) -> PostgresChangeLog:
    assert isinstance(db.engine, PostgresEngine)
    return db.engine.changes


async def changes(db: OpenTable, positions: dict[str, str | None] = EVERY_SHARD) -> list[ChangeRecord]:
    reads = await log_of(db).read(positions, limit=1_000)
    return sorted((record for read in reads for record in read.records), key=lambda record: int(record.position))


async def shown(db: OpenTable) -> list[tuple[str, int | None, int | None]]:
    """Each change with the counts before and after it."""

    def count(record: ChangeRecord, image: bytes | None) -> int | None:
        return None if image is None else log_of(db).decode(record.entity, image).count

    return [(record.pk, count(record, record.old), count(record, record.new)) for record in await changes(db)]


def inserted(schema: str, id: str) -> str:
    return f"INSERT INTO {schema}.stock (pk, sk, entity, body) VALUES ('PART#{id}', 'PART', 'Part', '{{}}')"


@pytest.fixture
async def db(postgres_url: str) -> AsyncIterator[OpenTable]:
    async with opened(postgres_url, stock) as db:
        yield db


async def test_each_kind_of_write_is_a_change_with_both_images(db: OpenTable) -> None:
    await db.put(Part(id="a"))
    await db.update(Part.key.id("a"), Part.count.add(2))
    await db.upsert(Part.key.id("b"), Part.count.add(1))
    await db.put_many([Part(id="a", count=3), Part(id="c")])
    await db.delete(Part.key.id("a"))
    await db.delete_many([Part.key.id("b"), Part.key.id("missing")])
    assert await shown(db) == [
        ("PART#a", None, 0),
        ("PART#a", 0, 2),
        ("PART#b", None, 1),
        ("PART#a", 2, 3),
        ("PART#c", None, 0),
        ("PART#a", 3, None),
        ("PART#b", 1, None),
    ]


async def test_a_load_and_a_sweep_are_changes(db: OpenTable) -> None:
    ending = NOW - timedelta(hours=1)
    await db.load([Part(id=f"p{n}", expires_at=ending if n < 2 else MISSING) for n in range(4)])
    assert await db.sweep() == 2
    assert await shown(db) == [
        *((f"PART#p{n}", None, 0) for n in range(4)),
        *((f"PART#p{n}", 0, None) for n in range(2)),
    ]


async def test_a_write_of_the_same_content_is_no_change_and_takes_no_number(db: OpenTable) -> None:
    await db.put(Part(id="a"))
    end = await log_of(db).end()
    await db.put(Part(id="a"))
    await db.put_many([Part(id="a")])
    await db.update(Part.key.id("a"), Part.count.add(0))
    await db.delete(Part.key.id("missing"))
    assert await log_of(db).end() == end


async def test_what_a_transaction_checks_is_no_change(db: OpenTable) -> None:
    async with db.transaction() as tx:
        tx.check(Part.key.id("absent"), Part.id.missing())
        tx.delete(Part.key.id("also absent"))
        tx.put(Part(id="a"))
    with suppress(ConditionFailed):
        async with db.transaction() as tx:
            tx.put(Part(id="b"))
            tx.check(Part.key.id("a"), Part.id.missing())
    assert await shown(db) == [("PART#a", None, 0)]


async def test_a_reindex_is_no_change(db: OpenTable, postgres_url: str) -> None:
    await db.put_many([Part(id="a", count=1), Part(id="b", count=2)])
    end = await log_of(db).end()
    async with opened(postgres_url, silent) as reindexed:  # with an index that the other definition lacks
        assert await reindexed.count(SilentPart.by_count()) == 2
        await reindexed.put(SilentPart(id="a", count=5))
    assert await changes(db, {**end}) == (await changes(db))[2:]
    assert (await shown(db))[2:] == [("PART#a", 1, 5)]


async def test_changes_of_other_programs_are_kept_whatever_their_search_path(db: OpenTable, postgres_url: str) -> None:
    connection, schema = await connected(postgres_url)
    await connection.execute("SET search_path = ''")
    await connection.execute(inserted(schema, "a"))
    await connection.execute(f"UPDATE {schema}.stock SET body = 'x'")
    await connection.execute(f"DELETE FROM {schema}.stock")
    await connection.close()
    assert [(record.old, record.new) for record in await changes(db)] == [(None, b"{}"), (b"{}", b"x"), (b"x", None)]


async def test_a_stream_that_is_lacking_is_named_and_can_be_made(postgres_url: str) -> None:
    async with opened(postgres_url, silent) as before:
        await before.put(SilentPart(id="a"))
    with pytest.raises(SchemaMismatch, match="lacks the stream: run"):
        await engine_at(postgres_url, stock).open(create=False)
    async with opened(postgres_url, stock) as db:
        await db.put(Part(id="a", count=1))
        assert await shown(db) == [("PART#a", 0, 1)]
    connection, schema = await connected(postgres_url)
    await connection.execute(f'ALTER TABLE {schema}.stock DISABLE TRIGGER "stock.stream.delete"')
    with pytest.raises(SchemaMismatch, match="lacks the stream: run"):
        await engine_at(postgres_url, stock).open(create=False)
    async with opened(postgres_url, stock) as db:
        await db.delete(Part.key.id("a"))
        assert await shown(db) == [("PART#a", 0, 1), ("PART#a", 1, None)]
    await connection.close()


async def test_tables_with_a_stream_are_found(db: OpenTable, postgres_url: str) -> None:
    async with opened(postgres_url):
        pool = pool_at(postgres_url)
        await pool.open()
        assert await streamed_tables(pool) == ["stock"]
        await pool.close()


async def test_the_database_agrees_on_the_shard_of_a_key(db: OpenTable) -> None:
    names = [f"{n}-æ-漢-{chr(0x1F600 + n)}" for n in range(200)]
    await db.put_many([Part(id=name) for name in names])
    whole = await changes(db)
    assert {record.shard for record in whole} == set(EVERY_SHARD)
    for shard in EVERY_SHARD:
        assert await changes(db, {shard: None}) == [record for record in whole if shard_of(record.pk) == shard]
        expected = sum(record.shard == shard for record in whole)
        assert await log_of(db).waiting({shard: None}, limit=1_000) == expected


async def test_shards_at_different_positions_are_read_from_each(db: OpenTable) -> None:
    await db.put_many([Part(id=f"p{n}") for n in range(60)])
    whole = await changes(db)
    asked = {"1": None, "4": whole[40].position, "6": whole[20].position}
    expected = [each for each in whole if each.shard in asked and int(each.position) > int(asked[each.shard] or 0)]
    assert await changes(db, asked) == expected
    assert await log_of(db).waiting(asked, limit=1_000) == len(expected)
    (first, *_) = await log_of(db).read({"1": None, "4": None}, limit=3)
    assert int(first.position or 0) < int(whole[-1].position), "more of it is left"


async def test_an_idle_read_is_one_statement_without_a_look_at_locks(postgres_url: str) -> None:
    statements: list[str] = []

    async def listened(connection: asyncpg.Connection) -> None:
        connection.add_query_logger(lambda record: statements.append(record.query))

    pool = pool_at(postgres_url)
    dsn, schema = postgres_url.partition("&schema=")[0], pool.schema.strip('"')
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1, init=listened) as driver:
        shared = type(pool)("caller's", schema, pool=driver)
        async with OpenTable(stock, PostgresEngine(stock, shared, owned=False), ManualClock(NOW), create=True) as db:
            await db.put(Part(id="a"))
            end: dict[str, str | None] = {**await log_of(db).end()}
            statements.clear()
            assert await changes(db, end) == []
            ours = [text for text in statements if "stock" in text]
            assert len(ours) == 1
            text = ours[0].replace("$1", end["0"] or "")
            plan = await shared.fetch(f"EXPLAIN ANALYZE {text}")
            assert "never executed" in next(row[0] for row in plan if "pg_lock_status" in row[0])


async def test_a_position_behind_the_last_number_is_set_back(db: OpenTable) -> None:
    await db.put(Part(id="a"))
    reads = await log_of(db).read({"0": "7", "1": None}, limit=10)
    assert [(read.position, read.lost) for read in reads] == [("1", True), ("0", False)]


async def test_what_was_too_old_is_told_to_those_who_have_not_read_it(db: OpenTable) -> None:
    await db.put_many([Part(id=f"p{n:02}") for n in range(20)])
    log = log_of(db)
    assert await log.prune([dict.fromkeys(EVERY_SHARD, "5")], keep_ms=-1_000, limit=10) == 5 + 10
    shard = shard_of("PART#p19")
    (behind,) = await log.read({shard: "7"}, limit=100)
    assert (behind.lost, behind.records[-1].pk) == (True, "PART#p19")
    (ahead,) = await log.read({shard: "15"}, limit=100)
    assert not ahead.lost
    assert await log.prune([dict.fromkeys(EVERY_SHARD, "20")], keep_ms=10**9, limit=100) == 6
    assert await changes(db) == []


@asynccontextmanager
async def role_at(server: PostgresServer) -> AsyncIterator[str]:
    """Yield the name of a role without any rights."""
    name = f"role_{os.getpid()}_{next(_numbers)}"
    connection = await asyncpg.connect(server.dsn)
    await connection.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    await connection.execute(f"DROP OWNED BY {name} CASCADE")
    await connection.execute(f"DROP ROLE {name}")
    await connection.close()


def as_role(url: str, role: str) -> str:
    return url.replace("//postgres:@", f"//{role}:@")


async def test_an_ordinary_role_has_a_stream_in_its_own_schema(postgres_server: PostgresServer, postgres_url: str) -> None:
    admin, schema = await connected(postgres_url)
    async with role_at(postgres_server) as role:
        await admin.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
        async with opened(as_role(postgres_url, role), stock) as db:
            async with admin.transaction():
                await admin.execute(
                    f"INSERT INTO {schema}.stock (pk, sk, entity, body) VALUES ('PART#z', 'PART', 'Part', '{{}}')"
                )
                await db.put(Part(id="a"))
                assert await changes(db) == []  # it sees the locks of another role
            assert [record.pk for record in await changes(db)] == ["PART#z", "PART#a"]
            assert await log_of(db).prune([{**await log_of(db).end()}], keep_ms=10**9, limit=10) == 2
    await admin.close()


def rights_in_guide(schema: str, writer: str, consumer: str) -> list[str]:
    """Return the statements that the guide shows, for this table and these roles."""
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "table.md").read_text(encoding="utf-8")
    text = guide.partition("```sql\n")[2].partition("```")[0]
    for shown, here in (("app.", f"{schema}."), ("SCHEMA app", f"SCHEMA {schema}"), ("shop", "stock")):
        text = text.replace(shown, here)
    return text.replace("writer", writer).replace("consumer", consumer).splitlines()


async def test_other_roles_write_and_consume_with_the_rights_that_the_guide_names(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with opened(postgres_url, stock):
        pass
    admin, schema = await connected(postgres_url)
    async with role_at(postgres_server) as writer, role_at(postgres_server) as consumer:
        rights = rights_in_guide(schema, writer, consumer)
        for right in rights[:-1]:
            await admin.execute(right)
        async with opened(as_role(postgres_url, writer), stock) as db:
            await db.put(Part(id="a"))
            await db.put(Part(id="b"))
        async with opened(as_role(postgres_url, consumer), stock) as db:
            with pytest.raises(StoreUnavailable, match=r"permission denied|rights"):
                await changes(db)
            await admin.execute(rights[-1])
            assert [record.pk for record in await changes(db)] == ["PART#a", "PART#b"]
            assert await log_of(db).prune([dict.fromkeys(EVERY_SHARD, "1")], keep_ms=-1_000, limit=10) == 2
    await admin.close()


@pytest.fixture
def bouncer(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("pgbouncer")
    with PgBouncer(postgres_server, folder) as bouncer:
        yield bouncer.dsn


@needs_pgbouncer
async def test_behind_a_pooler_that_shares_sessions_nothing_is_skipped(bouncer: str, postgres_url: str) -> None:
    schema = postgres_url.partition("&schema=")[2]
    async with stock.connect(f"{bouncer}?schema={schema}") as db:
        slow, _ = await connected(postgres_url)
        async with slow.transaction():
            await slow.execute(inserted(schema, "slow"))
            await db.put(Part(id="a"))
            await db.put_many([Part(id=f"p{n}") for n in range(20)])
            assert await changes(db) == []
        assert [record.pk for record in await changes(db)][:2] == ["PART#slow", "PART#a"]
        assert len(await changes(db)) == 22
        assert await log_of(db).prune([{**await log_of(db).end()}], keep_ms=10**9, limit=100) == 22
        await slow.close()
