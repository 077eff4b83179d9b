"""What only PostgreSQL does: row locks, lost connections, pools and transactions of the caller's, and the plan of a claim."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest

from postgres_server import PostgresServer
from tickler import (
    At,
    Cron,
    Delivery,
    GiveUp,
    IndexRow,
    InvalidInput,
    ManualClock,
    NeverFires,
    PythonTarget,
    Schedule,
    StoreUnavailable,
    Tickler,
    connect,
)
from tickler.database.postgres.pool import BEGIN_CLAIM, Pool
from tickler.database.store_url import parse_url
from tickler.errors import ManagedRow
from tickler.model.fire import Extension
from tickler.model.schedule import Id
from tickler.stores.optional import FindsOrphans, HasClock
from tickler.stores.postgres.index import SELECT_DUE, WALK

NOW_MS = 1_921_406_400_000
HOUR_MS = 3_600_000
HOURLY = Cron("0 * * * *")


def schedule(key: str, **fields: object) -> Schedule:
    return Schedule(owner="u1", key=key, when=HOURLY, **fields)  # type: ignore[arg-type]  # any field of a schedule


def row(key: str) -> IndexRow:
    return IndexRow("u1", key, HOURLY, NOW_MS - 1)


@pytest.fixture
def schema(postgres_url: str) -> str:
    return parse_url(postgres_url).parameters["schema"]


@pytest.fixture
async def t(postgres_url: str) -> AsyncIterator[Tickler]:
    async with connect(postgres_url, clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


@pytest.fixture
async def other(t: Tickler, postgres_server: PostgresServer, schema: str) -> AsyncIterator[asyncpg.Connection]:
    """The caller's own connection."""
    connection = await asyncpg.connect(postgres_server.dsn)
    await connection.execute(f"SET search_path = {schema}")
    await connection.execute("CREATE TABLE orders (name text)")
    yield connection
    await connection.close()


# Row locks.


async def test_the_row_of_a_schedule_that_is_being_put_is_no_orphan_that_is_dropped(
    t: Tickler, other: asyncpg.Connection
) -> None:
    await t.schedules.put_many([schedule("a"), schedule("b")])
    await other.execute("DELETE FROM tickler_schedules")
    async with other.transaction():
        await t.schedules.put(schedule("a"), using=other)
        index = t._store.index
        assert isinstance(index, FindsOrphans)
        assert [id.key for id in await index.orphans(10)] == ["a", "b"], "nobody sees it yet"
        assert await asyncio.wait_for(index.drop_orphans(10), 5) == 1
    stored = await t.schedules.get("u1", "a")
    assert stored is not None
    assert (stored.state, await t.index.count()) == ("active", 1)


async def test_a_put_that_waits_for_an_orphan_to_be_dropped_writes_its_row_anew(t: Tickler, other: asyncpg.Connection) -> None:
    await t.schedules.put(schedule("a"))
    await other.execute("DELETE FROM tickler_schedules")
    async with other.transaction():
        await other.execute("DELETE FROM tickler_index")  # as a repair does that has not ended yet
        putting = asyncio.create_task(t.schedules.put(schedule("a")))
        await asyncio.sleep(0.1)
        assert not putting.done()
    assert (await putting).state == "active"
    assert await t.index.count() == 1


async def test_a_row_locked_by_another_claimer_is_skipped_not_waited_for(t: Tickler, other: asyncpg.Connection) -> None:
    await t.index.upsert_many([row("a"), row("b"), row("c")])
    async with other.transaction():
        await other.execute("SELECT FROM tickler_index WHERE key = 'b' FOR UPDATE")
        claimed = await asyncio.wait_for(t.index.claim_due(NOW_MS), 5)
        assert sorted(r.key for r in claimed) == ["a", "c"]
    assert [r.key for r in await t.index.claim_due(NOW_MS)] == ["b"]


async def test_a_claim_holds_its_rows_until_it_has_advanced_them(t: Tickler, other: asyncpg.Connection) -> None:
    """A second claim that starts while the first waits to write gets nothing of the first one's."""
    await t.index.upsert_many([row("a"), row("b")])
    async with other.transaction():
        await other.execute("LOCK TABLE tickler_index IN SHARE MODE")  # lets rows be locked, but not written
        first = asyncio.create_task(t.index.claim_due(NOW_MS, 1))
        await _until_blocked(other, 1)
        second = asyncio.create_task(t.index.claim_due(NOW_MS, 1))
        await _until_blocked(other, 2)
    claimed = [*await first, *await second]
    assert sorted(r.key for r in claimed) == ["a", "b"]
    assert await t.index.claim_due(NOW_MS) == []


async def test_a_fire_that_somebody_has_locked_holds_up_no_other_lease_and_is_not_lost(
    t: Tickler, other: asyncpg.Connection
) -> None:
    """A worker whose event loop stands still in the middle of settling one keeps the leases of the others."""
    await t.schedules.put_many([schedule("a", target=PythonTarget("work")), schedule("b", target=PythonTarget("work"))])
    claims = await t.fires.claim(NOW_MS + HOUR_MS, worker="w")
    fires = {claim.fire.key: claim.fire for claim in claims if claim.fire is not None}
    until_ms = NOW_MS + 2 * HOUR_MS
    async with other.transaction():
        await other.execute("SELECT FROM tickler_fires WHERE key = 'a' FOR UPDATE")
        extension = await asyncio.wait_for(t.store.fires.extend(list(fires.values()), until_ms), 5)
        with pytest.raises(StoreUnavailable, match=r"^1 of 1 leases were not extended, as their fires are locked: try again$"):
            await t.fires.extend([fires["a"]], until_ms)
    assert extension == Extension([], [fires["a"]])
    ends = {fire.key: fire.deliver_after for fire in (await t.fires.list()).items}
    assert ends == {"a": fires["a"].deliver_after, "b": until_ms}
    assert await t.fires.extend(list(fires.values()), until_ms) == []


async def test_a_fire_that_is_being_taken_over_is_lost_when_that_is_done_and_not_before(
    t: Tickler, other: asyncpg.Connection
) -> None:
    await t.schedules.put(schedule("a", target=PythonTarget("work")))
    (claim,) = await t.fires.claim(NOW_MS + HOUR_MS, worker="w")
    assert claim.fire is not None
    async with other.transaction():
        await other.execute("UPDATE tickler_fires SET worker = 'another', attempt = 2")
        extension = await asyncio.wait_for(t.store.fires.extend([claim.fire], NOW_MS + 2 * HOUR_MS), 5)
        assert extension == Extension([], [claim.fire])
    assert await t.store.fires.extend([claim.fire], NOW_MS + 2 * HOUR_MS) == Extension([claim.fire], [])


async def test_a_fire_that_is_locked_for_a_moment_is_extended_all_the_same(
    t: Tickler, other: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await t.schedules.put(schedule("a", target=PythonTarget("work")))
    (claim,) = await t.fires.claim(NOW_MS + HOUR_MS, worker="w")
    assert claim.fire is not None
    transaction = other.transaction()
    await transaction.start()
    await other.execute("SELECT FROM tickler_fires FOR UPDATE")

    async def pause(seconds: float) -> None:
        await transaction.rollback()

    monkeypatch.setattr("tickler.stores.postgres.fires.asyncio.sleep", pause)
    extension = await t.store.fires.extend([claim.fire], NOW_MS + 2 * HOUR_MS)
    monkeypatch.undo()
    assert extension == Extension([], [])
    assert [fire.deliver_after for fire in (await t.fires.list()).items] == [NOW_MS + 2 * HOUR_MS]


async def test_puts_and_claims_of_one_shots_side_by_side_neither_deadlock_nor_lose(t: Tickler) -> None:
    once = At("2030-11-20T13:00:00Z")
    await t.schedules.put_many([Schedule(owner="u1", key=f"k{n}", when=once) for n in range(60)])

    async def rewrite() -> None:
        for n in range(60):
            await t.schedules.put(schedule(f"k{n}"))

    async def claim() -> list[str]:
        claimed: list[str] = []
        for _ in range(40):
            claimed += [r.key for r in await t.index.claim_due(NOW_MS + HOUR_MS, 2)]
        return claimed

    await asyncio.gather(rewrite(), claim(), claim())
    every = (await t.schedules.list()).items
    assert {stored.state for stored in every} == {"active"}, "whoever came last, the schedule is hourly now and in the index"
    assert await t.index.count() == 60
    assert await t.index.set_aside() == []


async def test_many_puts_of_the_same_new_schedules_at_once_all_succeed(t: Tickler) -> None:
    many = [[schedule(f"k{n:04}", payload=round) for n in range(700)] for round in range(3)]
    await asyncio.gather(*(t.schedules.put_many(each) for each in many))
    assert await t.index.count() == 700
    assert {stored.version for stored in (await t.schedules.list(limit=1000)).items} == {3}


async def test_a_put_that_waited_for_a_claim_goes_by_the_time_after_it(postgres_url: str, other: asyncpg.Connection) -> None:
    """Else it would bring back an instant that was claimed while it waited, and that would fire twice."""
    clock = ManualClock(NOW_MS - 1000)
    async with connect(postgres_url, clock=clock) as waiting:
        await waiting.schedules.put(Schedule(owner="u1", key="a", when="@daily"))
        async with other.transaction():
            await other.execute("SELECT FROM tickler_index FOR UPDATE")
            put = asyncio.create_task(waiting.schedules.put(schedule("a")))
            await _until_blocked(other, 1)
            clock.set(NOW_MS + 1000)
        assert (await put).next_fire_at == NOW_MS + HOUR_MS


async def test_a_delete_that_meets_a_restore_leaves_no_row_behind(t: Tickler, other: asyncpg.Connection) -> None:
    await t.schedules.put(schedule("a"))
    await other.execute("UPDATE tickler_index SET when_text = 'never'")
    await t.index.claim_due(NOW_MS + HOUR_MS)
    async with other.transaction():  # what a restore does, up to its commit
        await other.execute("SELECT FROM tickler_aside FOR UPDATE")
        columns = "owner, key, when_text, tz, next_fire_at, ends_at, offset_ms, managed, format"
        await other.execute(f"INSERT INTO tickler_index ({columns}) SELECT {columns} FROM tickler_aside")
        await other.execute("DELETE FROM tickler_aside")
        delete = asyncio.create_task(t.schedules.delete("u1", "a"))
        await _until_blocked(other, 1)
    assert await delete
    assert await t.index.count() == 0


async def test_an_upsert_that_meets_a_put_does_not_take_its_row(t: Tickler, other: asyncpg.Connection) -> None:
    transaction = other.transaction()
    await transaction.start()
    await t.schedules.put(schedule("a"), using=other)
    upsert = asyncio.create_task(t.index.upsert(IndexRow("u1", "a", Cron("0 9 * * *"), NOW_MS)))
    await _until_blocked(other, 1)
    await transaction.commit()
    with pytest.raises(ManagedRow):
        await upsert
    stored = await t.schedules.get("u1", "a")
    assert stored is not None
    assert stored.next_fire_at == NOW_MS + HOUR_MS


async def test_a_database_that_defaults_to_serializable_changes_nothing(postgres_url: str) -> None:
    async with connect(f"{postgres_url}&default_transaction_isolation=serializable", clock=ManualClock(NOW_MS)) as t:
        await t.index.upsert_many([row(f"k{n}") for n in range(100)])

        async def claim_all() -> list[str]:
            claimed: list[str] = []
            while rows := await t.index.claim_due(NOW_MS, 5):
                claimed += [r.key for r in rows]
            return claimed

        shares = await asyncio.gather(*(claim_all() for _ in range(5)))
    assert sorted(key for share in shares for key in share) == sorted(f"k{n}" for n in range(100))


async def test_many_who_ask_for_the_health_of_a_schedule_share_round_trips_and_each_gets_its_own(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips, fetch = 0, Pool.fetch

    async def counting(pool: Pool, statement: str, *parameters: object) -> list[asyncpg.Record]:
        nonlocal trips
        trips += 1
        return await fetch(pool, statement, *parameters)

    monkeypatch.setattr(Pool, "fetch", counting)
    async with connect(postgres_url, clock=ManualClock(NOW_MS)) as t:
        await t.schedules.put_many([schedule(f"k{n}", target=PythonTarget("note")) for n in range(40)])

        @t.handler("note")
        def note(delivery: Delivery) -> None:
            if delivery.key != "k7":
                raise GiveUp("no use")

        for n in (7, 8):
            await t.trigger("u1", f"k{n}")
        await t.tick()
        trips, ids = 0, [Id("u1", f"k{n % 40}") for n in range(80)]
        found = await asyncio.gather(*(t.fires.health([id]) for id in ids))
    assert trips <= 3
    assert [list(each) for each in found] == [[id] for id in ids]
    by_key = {id.key: each[id] for id, each in zip(ids, found, strict=True)}
    assert {key for key, health in by_key.items() if health.failing} == {"k8"}
    assert {key for key, health in by_key.items() if health.last is not None} == {"k7", "k8"}


# Lost connections.


async def test_a_connection_lost_in_the_middle_of_a_claim_leaves_nothing_half_done(t: Tickler, other: asyncpg.Connection) -> None:
    await t.index.upsert_many([row("a"), row("b")])
    async with other.transaction():
        await other.execute("LOCK TABLE tickler_index IN SHARE MODE")
        claim = asyncio.create_task(t.index.claim_due(NOW_MS))
        (pid,) = await _until_blocked(other, 1)
        await other.execute("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises(StoreUnavailable, match="nothing changed"):
            await claim
    assert [r.key for r in await t.index.claim_due(NOW_MS)] == ["a", "b"]


async def test_the_store_recovers_by_itself_when_all_its_connections_were_cut(t: Tickler, other: asyncpg.Connection) -> None:
    await t.index.upsert(row("a"))
    await asyncio.gather(*(t.index.count() for _ in range(5)))
    await other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
    )
    claimed: list[IndexRow] = []
    for _ in range(8):  # one call for each connection that was cut, at most
        try:
            claimed = await t.index.claim_due(NOW_MS)
            break
        except StoreUnavailable:
            continue
    assert [r.key for r in claimed] == ["a"]


async def test_a_cancelled_claim_leaves_its_rows_due_and_its_connection_usable(t: Tickler, other: asyncpg.Connection) -> None:
    await t.index.upsert(row("a"))
    async with other.transaction():
        await other.execute("LOCK TABLE tickler_index IN SHARE MODE")
        claim = asyncio.create_task(t.index.claim_due(NOW_MS))
        await _until_blocked(other, 1)
        claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
    assert [r.key for r in await t.index.claim_due(NOW_MS)] == ["a"]


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match="cannot connect; nothing changed"):
        async with connect("postgresql://nobody:secret@127.0.0.1:1/nothing"):
            pass


# The caller's own transaction and pool.


async def test_a_put_joins_the_callers_transaction_and_commits_with_it(t: Tickler, other: asyncpg.Connection) -> None:
    async with other.transaction():
        await other.execute("INSERT INTO orders VALUES ('o1')")
        stored = await t.schedules.put(schedule("reminder"), using=other)
        assert await t.schedules.get("u1", "reminder") is None, "nothing is seen before the commit"
    assert await t.schedules.get("u1", "reminder") == stored
    assert await t.index.count() == 1


async def test_a_rolled_back_transaction_takes_the_schedule_with_it(t: Tickler, other: asyncpg.Connection) -> None:
    transaction = other.transaction()
    await transaction.start()
    await t.schedules.put_many([schedule(f"k{n}") for n in range(600)], using=other)
    await transaction.rollback()
    assert (await t.schedules.list()).items == []
    assert await t.index.count() == 0


async def test_a_write_that_fails_inside_the_callers_transaction_is_undone_alone(t: Tickler, other: asyncpg.Connection) -> None:
    async with other.transaction():
        await other.execute("INSERT INTO orders VALUES ('o1')")
        await t.schedules.put(schedule("good"), using=other)
        with pytest.raises(NeverFires):
            await t.schedules.put(schedule("bad", ends_at=NOW_MS + 1), using=other)
    assert await other.fetchval("SELECT count(*) FROM orders") == 1
    assert [stored.key for stored in (await t.schedules.list()).items] == ["good"]


async def test_every_write_joins_the_callers_transaction(t: Tickler, other: asyncpg.Connection) -> None:
    await t.schedules.put_many([schedule(key) for key in "abcd"])
    await t.index.upsert(row("alone"))
    transaction = other.transaction()
    await transaction.start()
    await t.schedules.pause("u1", "a", using=other)
    await t.schedules.delete("u1", "b", using=other)
    await t.schedules.update(schedule("c", payload=1), version=1, using=other)
    await t.schedules.declare("system", [Schedule(owner="system", key="s", when=HOURLY)], using=other)
    await t.schedules.pause_all("u1", using=other)
    await t.schedules.resume("u1", "a", using=other)
    await t.schedules.delete_all("u1", using=other)
    await t.index.upsert(IndexRow("x", "y", HOURLY, NOW_MS), using=other)
    await t.index.remove("u1", "alone", using=other)
    await transaction.rollback()
    assert [(stored.key, stored.version) for stored in (await t.schedules.list()).items] == [(key, 1) for key in "abcd"]
    assert await t.index.count() == 5


async def test_using_needs_an_open_transaction_on_an_asyncpg_connection(t: Tickler, other: asyncpg.Connection) -> None:
    with pytest.raises(InvalidInput, match=r"connection\.transaction"):
        await t.schedules.put(schedule("a"), using=other)
    with pytest.raises(InvalidInput, match="asyncpg connection"):
        await t.schedules.put(schedule("a"), using="connection")


async def test_the_callers_pool_is_used_and_left_open(postgres_server: PostgresServer, schema: str) -> None:
    async with asyncpg.create_pool(postgres_server.dsn, min_size=1, max_size=2) as pool:
        async with connect(pool=pool, schema=schema, clock=ManualClock(NOW_MS)) as tickler:
            await tickler.schedules.put(schedule("a"))
            async with pool.acquire() as connection, connection.transaction():
                await tickler.schedules.put(schedule("b"), using=connection)
        assert await pool.fetchval(f"SELECT count(*) FROM {schema}.tickler_index") == 2


async def test_a_callers_pool_may_have_codecs_of_its_own(postgres_server: PostgresServer, schema: str) -> None:
    async def with_codecs(connection: asyncpg.Connection) -> None:
        for kind in ("json", "jsonb"):
            await connection.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")

    async with (
        asyncpg.create_pool(postgres_server.dsn, min_size=1, max_size=2, init=with_codecs) as pool,
        connect(pool=pool, schema=schema, clock=ManualClock(NOW_MS)) as tickler,
    ):
        async with pool.acquire() as connection, connection.transaction():
            await tickler.schedules.put(schedule("a", payload={"n": 1}), using=connection)
        stored = await tickler.schedules.get("u1", "a")
    assert stored is not None
    assert stored.payload == {"n": 1}


async def test_schemas_are_worlds_of_their_own(postgres_url: str, t: Tickler) -> None:
    await t.schedules.put(schedule("here"))
    elsewhere = f"{postgres_url}_b"
    async with connect(elsewhere) as tickler:
        assert (await tickler.schedules.list()).items == []
    with pytest.raises(InvalidInput, match="plain name"):
        connect(postgres_url.partition("&schema=")[0] + '&schema=a"; DROP')


# One transaction for schedule and index row; nothing half done.


@pytest.mark.parametrize("event", ["INSERT", "UPDATE", "DELETE"])
async def test_a_write_whose_mirror_fails_changes_nothing(t: Tickler, other: asyncpg.Connection, event: str) -> None:
    await t.schedules.put(schedule("there"))
    before = await t.schedules.get("u1", "there")
    await other.execute(
        f"""CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'index broken' USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER fail BEFORE {event} ON tickler_index FOR EACH ROW EXECUTE FUNCTION fail()"""
    )
    writes = {
        "INSERT": t.schedules.put(schedule("new")),
        "UPDATE": t.schedules.put(Schedule(owner="u1", key="there", when="@daily")),
        "DELETE": t.schedules.pause("u1", "there"),
    }
    write = writes.pop(event)
    for unused in writes.values():
        unused.close()
    with pytest.raises(StoreUnavailable, match="index broken"):
        await write
    assert await t.schedules.get("u1", "new") is None
    assert await t.schedules.get("u1", "there") == before


# What a claim reads.


@pytest.mark.parametrize("statistics", ["fresh", "of an empty table", "none"])
async def test_a_claim_walks_the_index_and_sorts_nothing(
    t: Tickler, other: asyncpg.Connection, schema: str, statistics: str
) -> None:
    """Also when the planner believes that hardly anything is due, and would rather collect and sort it."""
    if statistics == "of an empty table":
        await other.execute("ALTER TABLE tickler_index SET (autovacuum_enabled = false); ANALYZE tickler_index")
    await t.index.upsert_many([IndexRow("u1", f"k{n}", HOURLY, NOW_MS - 20_000 + 2 * n) for n in range(20_000)])
    if statistics == "fresh":
        await other.execute("ANALYZE tickler_index")
    await other.execute(BEGIN_CLAIM)
    lines = await other.fetch("EXPLAIN " + SELECT_DUE.replace("{schema}", schema), NOW_MS, 1, 100)
    await other.execute("ROLLBACK")
    plan = "\n".join(line[0] for line in lines)
    assert "Index Scan using tickler_index_due" in plan
    assert "Index Cond: (next_fire_at <=" in plan
    assert "Sort" not in plan
    assert "Seq Scan" not in plan


async def test_a_page_of_a_walk_begins_where_the_last_one_ended(t: Tickler, other: asyncpg.Connection, schema: str) -> None:
    await t.index.upsert_many([IndexRow(f"u{n % 50}", f"k{n}", HOURLY, NOW_MS + n) for n in range(20_000)])
    await other.execute("ANALYZE tickler_index")
    plan = "\n".join(line[0] for line in await other.fetch("EXPLAIN " + WALK.replace("{schema}", schema), "u3", "k53", 100))
    assert "Index Scan using tickler_index_pkey" in plan
    assert "Index Cond: (ROW(owner, key) > ROW(" in plan
    assert "Sort" not in plan


async def test_the_stores_time_is_the_servers(t: Tickler) -> None:
    assert isinstance(t._store, HasClock)
    store_now_ms = await t._store.now_ms()
    assert store_now_ms is not None
    assert abs(store_now_ms - time.time() * 1000) < 10_000


async def _until_blocked(connection: asyncpg.Connection, number: int) -> list[int]:
    """The processes that wait for a lock, once there are that many."""
    async with asyncio.timeout(10):
        while True:
            await connection.execute("SELECT pg_stat_clear_snapshot()")
            blocked = await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            if len(blocked) >= number:
                return [pid for (pid,) in blocked]
            await asyncio.sleep(0.01)
