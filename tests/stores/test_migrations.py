"""Schemas: made, migrated with data in them, refused by name."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable

import asyncpg
import msgspec
import pytest

from tickler import Cron, ManualClock, Schedule, connect
from tickler.connect import store_for_url
from tickler.database.migrations import Migration
from tickler.database.store_url import parse_url
from tickler.errors import SchemaMissing, SchemaOutdated, SchemaTooNew
from tickler.stores.postgres import PostgresStore
from tickler.stores.postgres import schema as postgres_schema
from tickler.stores.sqlite import SqliteStore
from tickler.stores.sqlite import schema as sqlite_schema

NOW_MS = 1_921_406_400_000
NEWEST = sqlite_schema.NEWEST

Execute = Callable[[str], Awaitable[None]]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def execute(url: str) -> Execute:
    """Runs a script on the database behind the store's back; `{schema}.` stands before each table."""

    async def on_sqlite(script: str) -> None:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.executescript(script.replace("{schema}.", ""))
        connection.close()

    async def on_postgres(script: str) -> None:
        connection = await asyncpg.connect(url.partition("&schema=")[0])
        await connection.execute(script.replace("{schema}", parse_url(url).parameters["schema"]))
        await connection.close()

    return on_sqlite if url.startswith("sqlite") else on_postgres


async def migrate_with(url: str, migrations: list[Migration]) -> list[str]:
    """What a version of Tickler with these migrations would do."""
    store = store_for_url(url)
    if isinstance(store, SqliteStore):
        connection = store._connection
        await connection.open()
        try:
            return await connection.write(lambda raw: sqlite_schema.migrate(raw, connection.name, migrations))
        finally:
            await connection.close()
    assert isinstance(store, PostgresStore)
    await store._database.open()
    try:
        return await postgres_schema.migrate(store._database, migrations)
    finally:
        await store._database.close()


def migrations_of(url: str) -> list[Migration]:
    return sqlite_schema.MIGRATIONS if url.startswith("sqlite") else postgres_schema.MIGRATIONS


def later(url: str, *numbers: int) -> list[Migration]:
    """Migrations that a coming version might bring: they widen tables that have data in them."""
    added = [
        Migration(
            n,
            f"{n:04}_later",
            "-- a; comment\n"
            + "".join(
                f"ALTER TABLE {{schema}}.tickler_{table} ADD COLUMN later_{n} bigint;\n"
                for table in ("schedules", "index", "aside", "records")
            ),
        )
        for n in numbers
    ]
    if url.startswith("sqlite"):
        added = [migration._replace(sql=migration.sql.replace("{schema}.", "")) for migration in added]
    return [*migrations_of(url), *added]


def test_both_sql_stores_are_at_the_same_version_and_number_without_gaps() -> None:
    for migrations in (sqlite_schema.MIGRATIONS, postgres_schema.MIGRATIONS):
        assert [migration.number for migration in migrations] == list(range(1, NEWEST + 1))


async def test_migrating_an_empty_store_makes_it_usable_and_again_does_nothing(url: str) -> None:
    assert await store_for_url(url).migrate() == [migration.name for migration in migrations_of(url)]
    assert await store_for_url(url).migrate() == []
    async with connect(url, create=False) as t:
        await t.schedules.put(Schedule(owner="u1", key="a", when="@hourly"))
        record = await t.records.get("store", "schema")
    assert record is not None
    assert record.value == {"version": NEWEST}


# What a worker of the first version wrote: an hourly schedule with a target, one without, and a row of the index alone.
VERSION_1 = """
    INSERT INTO {schema}.tickler_schedules (owner, key, when_text, tz, enabled, version, created_at, updated_at, body) VALUES
        ('u1', 'aimed', '0 * * * *', 'UTC', true, 1, 1, 1, '{"target":{"type":"http","url":"https://example.org/"},"payload":7}'),
        ('u1', 'aimless', '0 * * * *', 'UTC', true, 1, 1, 1, '{"payload":{"target":"none"}}');
    INSERT INTO {schema}.tickler_index (owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format) VALUES
        ('u1', 'aimed', '0 * * * *', 'UTC', 1921410000000, NULL, 0, true, 1),
        ('u1', 'aimless', '0 * * * *', 'UTC', 1921410000000, NULL, 0, true, 1),
        ('u1', 'alone', '0 * * * *', 'UTC', 1921410000000, NULL, 0, false, 1);
"""


async def test_what_the_first_version_wrote_is_kept_and_delivered_if_it_has_a_target(url: str, execute: Execute) -> None:
    await migrate_with(url, migrations_of(url)[:1])
    for statement in VERSION_1.split(";")[:2]:
        await execute(statement)
    assert await migrate_with(url, migrations_of(url)) == [migration.name for migration in migrations_of(url)[1:]]
    async with connect(url, clock=ManualClock(NOW_MS)) as t:
        assert [stored.key for stored in (await t.schedules.list()).items] == ["aimed", "aimless"]
        (claim,) = await t.fires.claim(NOW_MS + 3_600_000, worker="w")
        assert (claim.schedule.key, claim.schedule.payload, claim.nominal_at) == ("aimed", 7, NOW_MS + 3_600_000)
        assert sorted(row.key for row in await t.index.claim_due(NOW_MS + 3_600_000)) == ["aimless", "alone"]


async def test_a_store_keeps_its_data_over_a_migration_and_works_after(url: str) -> None:
    async with connect(url, clock=ManualClock(NOW_MS)) as t:
        await t.schedules.put_many([Schedule(owner="u1", key=f"k{n}", when="@hourly", payload=n) for n in range(20)])
        await t.schedules.put(Schedule(owner="u1", key="once", when="at(2030-11-20T12:30:00)"))
        before = (await t.schedules.list()).items
    assert await migrate_with(url, later(url, NEWEST + 1)) == [f"{NEWEST + 1:04}_later"]
    async with connect(url, clock=ManualClock(NOW_MS)) as t:
        assert (await t.schedules.list()).items == before
        assert len(await t.index.claim_due(NOW_MS + 3_600_000)) == 21
        assert [stored.key for stored in (await t.schedules.list(state="finished")).items] == ["once"]


async def test_a_worker_runs_on_the_next_schema_version_and_refuses_the_one_after_by_name(url: str) -> None:
    await migrate_with(url, later(url, NEWEST + 1))
    async with connect(url) as t:
        await t.schedules.put(Schedule(owner="u1", key="a", when=Cron("0 * * * *")))
    await migrate_with(url, later(url, NEWEST + 1, NEWEST + 2))
    with pytest.raises(
        SchemaTooNew, match=f"schema version {NEWEST + 2}, and this Tickler works up to version {NEWEST + 1}: upgrade"
    ):
        await connect(url).open()
    with pytest.raises(SchemaTooNew):
        await store_for_url(url).migrate()


async def test_connecting_never_migrates_an_older_schema_but_names_the_command(url: str, execute: Execute) -> None:
    await store_for_url(url).migrate()
    await execute("""UPDATE {schema}.tickler_records SET value = '{"version": 0}' WHERE kind = 'store' AND name = 'schema'""")
    with pytest.raises(SchemaOutdated, match="tickler migrate --store"):
        await connect(url, create=True).open()


async def test_without_tables_and_without_create_the_error_names_the_command(url: str) -> None:
    with pytest.raises(SchemaMissing, match="tickler migrate --store"):
        await connect(url, create=False).open()


async def test_a_migration_that_fails_leaves_the_version_that_was_there(url: str) -> None:
    await store_for_url(url).migrate()
    broken = [*later(url, NEWEST + 1), Migration(NEWEST + 2, "broken", "CREATE TABLE tickler_records (x int); NONSENSE")]
    with pytest.raises(Exception, match=r".+"):
        await migrate_with(url, broken)
    assert await migrate_with(url, migrations_of(url)) == []
    assert await migrate_with(url, later(url, NEWEST + 1)) == [f"{NEWEST + 1:04}_later"], "the first half was undone too"


async def test_the_printed_script_makes_the_same_store_out_of_band(url: str, execute: Execute) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tickler", "migrate", "--store", url, "--print-sql"], capture_output=True, text=True, check=True
    )
    with pytest.raises(SchemaMissing):
        await connect(url, create=False).open()
    await execute(printed.stdout)
    async with connect(url, create=False, clock=ManualClock(NOW_MS)) as t:
        await t.schedules.put(Schedule(owner="u1", key="a", when="@hourly"))
        assert await t.index.count() == 1
    assert await store_for_url(url).migrate() == []


async def test_the_stores_facts_are_records(url: str) -> None:
    async with connect(url) as t:
        schema, tzdata = await t.records.get("store", "schema"), await t.records.get("store", "tzdata")
    assert schema is not None
    assert tzdata is not None
    assert schema.value == {"version": NEWEST}
    assert msgspec.convert(tzdata.value, dict[str, str])["version"] >= "2024a"
