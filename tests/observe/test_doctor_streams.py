"""The doctor on consumers of tables in the same database: each fault is made for real, found, repaired, and gone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from postgres_server import PostgresServer
from tickler import ManualClock, Tickler, connect
from tickler.database.sqlite.connection import Connection
from tickler.observe import Diagnosis, Finding
from tickler.table import Attr, Consumer, Entity, ItemChange, Key, Table, attr, created
from tickler.table.engines.postgres.engine import _LOGS
from tickler.table.open_table import OpenTable
from tickler.table.streams.pruner import RETENTION_MS

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
CHECKS = {"stream-stopped", "stream-lost", "stream-parked"}

desk = Table("doctor_desk", stream=True)


class Ticket(Entity, table=desk):
    id: Attr[str] = attr()
    key = Key("TICKET" / id, "TICKET")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
async def t(any_url: str, clock: ManualClock) -> AsyncIterator[Tickler]:
    async with connect(any_url, clock=clock, create=True) as tickler:
        yield tickler


@pytest.fixture
async def db(t: Tickler) -> AsyncIterator[OpenTable]:
    async with desk.connect(t, create=True) as opened:
        yield opened


def consumer_of(db: OpenTable, name: str = "mailer", error: Exception | None = None) -> Consumer:
    consumer = db.consumer(name, attempts=1)

    @consumer.on(created(Ticket))
    async def handle(change: ItemChange[None, Ticket]) -> None:
        if error is not None:
            raise error

    return consumer


def of_streams(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for finding in diagnosis.findings if finding.check in CHECKS]


async def found(t: Tickler) -> Finding:
    (finding,) = of_streams(await t.doctor())
    return finding


@asynccontextmanager
async def hanging(db: OpenTable) -> AsyncIterator[None]:
    """A running consumer that holds its shards, and whose handler has begun and does not end."""
    begun, hang = asyncio.Event(), asyncio.Event()
    consumer = db.consumer("mailer")

    @consumer.on(created(Ticket))
    async def handle(change: ItemChange[None, Ticket]) -> None:
        begun.set()
        await hang.wait()

    async with consumer.running():
        await asyncio.wait_for(begun.wait(), 20)
        yield
        hang.set()


@pytest.mark.parametrize("any_url", ["memory", "sqlite", "postgres"], indirect=True)
class TestEverywhere:
    async def test_a_consumer_that_gets_on_is_healthy(self, t: Tickler, db: OpenTable, clock: ManualClock) -> None:
        consumer = consumer_of(db)
        await db.put(Ticket(id="1"))
        await consumer.consume()
        clock.advance(timedelta(hours=1))
        diagnosis = await t.doctor()
        assert of_streams(diagnosis) == []
        assert set(diagnosis.passed) >= CHECKS

    async def test_a_consumer_that_has_just_begun_has_not_stopped(self, t: Tickler, db: OpenTable) -> None:
        await db.put(Ticket(id="1"))
        async with hanging(db):
            assert of_streams(await t.doctor()) == []

    async def test_one_that_nobody_runs_has_stopped_once_changes_wait_for_long(
        self, t: Tickler, db: OpenTable, clock: ManualClock
    ) -> None:
        consumer = consumer_of(db)
        await db.put(Ticket(id="1"))
        await consumer.consume()
        await db.put_many([Ticket(id="2"), Ticket(id="3")])
        clock.advance(timedelta(minutes=10))
        assert of_streams(await t.doctor()) == []
        clock.advance(timedelta(minutes=5))
        stopped = await found(t)
        assert (stopped.check, stopped.severity, stopped.count) == ("stream-stopped", "critical", 1)
        assert stopped.says == "1 consumer of a table has stopped"
        assert stopped.example == "mailer of doctor_desk: 2 changes wait for 15 min, and no process runs it"
        assert "start it again" in stopped.remedy
        assert "`tickler table forget`" in stopped.remedy
        await consumer.consume()
        assert of_streams(await t.doctor()) == []

    async def test_one_that_is_gone_for_good_is_forgotten(self, t: Tickler, db: OpenTable, clock: ManualClock) -> None:
        consumer = consumer_of(db)
        await consumer.consume()
        await db.put(Ticket(id="1"))
        clock.advance(timedelta(hours=1))
        assert (await found(t)).check == "stream-stopped"
        await consumer.forget()
        assert of_streams(await t.doctor()) == []

    async def test_one_that_is_held_but_does_not_move_has_stopped_too(
        self, t: Tickler, db: OpenTable, clock: ManualClock
    ) -> None:
        await db.put(Ticket(id="1"))
        async with hanging(db):
            clock.advance(timedelta(minutes=11))
            stopped = await found(t)
            assert stopped.check == "stream-stopped"
            assert stopped.example is not None
            assert "1 change waits for 11 min" in stopped.example
        assert of_streams(await t.doctor()) == []

    async def test_parked_changes_are_found_until_they_are_delivered(self, t: Tickler, db: OpenTable) -> None:
        consumer = consumer_of(db, error=ValueError("no"))
        await db.put_many([Ticket(id="1"), Ticket(id="2")])
        await consumer.consume()
        parked = await found(t)
        assert (parked.check, parked.severity, parked.count) == ("stream-parked", "warning", 2)
        assert parked.example == "mailer of doctor_desk: 2 changes"
        assert "`tickler table retry`" in parked.remedy
        mended = consumer_of(db)
        await mended.retry()
        await mended.consume()
        assert of_streams(await t.doctor()) == []

    async def test_changes_that_were_deleted_unread_are_told_for_a_week(
        self, t: Tickler, db: OpenTable, clock: ManualClock
    ) -> None:
        consumer = consumer_of(db)
        lost: list[bool] = []
        consumer.on_lost(lambda: lost.append(True))
        await db.put(Ticket(id="1"))
        await consumer.consume()
        await db.put_many([Ticket(id=str(n)) for n in range(2, 30)])
        positions = {shard.id: None for shard in await db.engine.changes.shards()}
        assert await db.engine.changes.prune([positions], keep_ms=-RETENTION_MS, limit=1000)
        await db.put_many([Ticket(id=str(n)) for n in range(30, 60)])
        await consumer.consume()
        assert lost
        clock.advance(timedelta(days=2))
        finding = await found(t)
        assert (finding.check, finding.severity, finding.count) == ("stream-lost", "warning", 1)
        assert finding.example == "mailer of doctor_desk: changes were deleted before it read them, noticed 2 d ago"
        clock.advance(timedelta(days=6))
        assert of_streams(await t.doctor()) == []

    async def test_of_several_consumers_the_one_with_most_to_do_is_the_example(
        self, t: Tickler, db: OpenTable, clock: ManualClock
    ) -> None:
        await consumer_of(db, "early").consume()
        await db.put(Ticket(id="1"))
        await consumer_of(db, "late").consume()
        await db.put(Ticket(id="2"))
        clock.advance(timedelta(hours=1))
        stopped = await found(t)
        assert stopped.count == 2
        assert stopped.example is not None
        assert stopped.example.startswith("early of doctor_desk: 2 changes wait")


async def test_a_database_without_tables_is_asked_once(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    async with connect(sqlite_url, create=True) as t:
        read = Connection.read

        async def counted(self: Connection, work: object) -> object:
            def traced(database: sqlite3.Connection) -> object:
                database.set_trace_callback(asked.append)
                try:
                    return work(database)  # type: ignore[operator]  # as it is called
                finally:
                    database.set_trace_callback(None)

            return await read(self, traced)

        monkeypatch.setattr(Connection, "read", counted)
        assert of_streams(await t.doctor()) == []
    about_tables = [statement for statement in asked if "stream" in statement or "tickler_table" in statement]
    assert len(about_tables) == 1


async def test_streams_that_a_role_may_not_read_are_left_out(postgres_url: str, postgres_server: PostgresServer) -> None:
    schema = postgres_url.partition("schema=")[2]
    owner = await asyncpg.connect(postgres_server.dsn)
    async with connect(postgres_url, create=True) as t, desk.connect(t, create=True) as db:
        await consumer_of(db, error=ValueError("no")).consume()
        role = f"nobody_{schema}"
        await owner.execute(f"""
            CREATE ROLE {role};
            GRANT USAGE ON SCHEMA {schema} TO {role};
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
            REVOKE ALL ON {schema}.tickler_table_metadata FROM {role};
        """)
        try:
            await owner.execute(f"SET ROLE {role}")
            names = await owner.fetch(_LOGS, schema)
            await owner.execute("RESET ROLE")
            assert names == []
            assert len(await owner.fetch(_LOGS, schema)) == 1
        finally:
            await owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
            await owner.close()


async def test_a_table_of_somebody_else_with_such_a_name_is_left_alone(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE "tv.stream" (id INTEGER)')
    connection.commit()
    connection.close()
    async with connect(sqlite_url, create=True) as t:
        assert of_streams(await t.doctor()) == []


async def test_a_change_that_came_just_now_waits_for_nobody_yet(clock: ManualClock) -> None:
    async with connect("memory://", clock=clock) as t, desk.connect(t) as db:
        await db.put(Ticket(id="1"))
        await consumer_of(db).consume()
        clock.advance(timedelta(hours=1))
        await db.put(Ticket(id="2"))
        assert of_streams(await t.doctor()) == []
        clock.advance(timedelta(minutes=11))
        assert (await found(t)).check == "stream-stopped"


async def test_a_shard_that_hangs_is_found_while_others_move(clock: ManualClock) -> None:
    async with connect("memory://", clock=clock) as t, desk.connect(t) as db:
        hang = asyncio.Event()
        seen: list[str] = []
        consumer = db.consumer("mailer")

        @consumer.on(created(Ticket))
        async def handle(change: ItemChange[None, Ticket]) -> None:
            seen.append(change.new.id)
            if change.new.id == "stuck":
                await hang.wait()

        await db.put(Ticket(id="stuck"))
        async with consumer.running():
            for n in range(12):
                clock.advance(timedelta(minutes=1))
                await db.put_many([Ticket(id=f"{n}-{each}") for each in range(8)])
                await asyncio.sleep(0.05)
            assert len(seen) > 12
            assert (await found(t)).check == "stream-stopped"
            hang.set()
