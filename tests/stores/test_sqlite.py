"""What only SQLite does: locks, transactions of the caller's, and the plan of a claim."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tickler import Cron, IndexRow, InvalidInput, ManualClock, NeverFires, Schedule, StoreUnavailable, Tickler, connect
from tickler.database import sqlite as sqlite_database
from tickler.errors import SchemaMissing
from tickler.stores import sqlite as sqlite_store
from tickler.stores.sql.schedules import FAILING
from tickler.stores.sqlite.index import ADVANCE, SELECT_DUE, WALK

NOW_MS = 1_921_406_400_000
HOUR_MS = 3_600_000
HOURLY = Cron("0 * * * *")
TARGET = "https://example.org/hook"


def schedule(key: str, **fields: object) -> Schedule:
    return Schedule(owner="u1", key=key, when=HOURLY, **fields)  # type: ignore[arg-type]  # any field of a schedule


def row(key: str) -> IndexRow:
    return IndexRow("u1", key, HOURLY, NOW_MS - 1)


@pytest.fixture
def path(sqlite_url: str) -> str:
    return sqlite_url.removeprefix("sqlite:///")


@pytest.fixture
async def t(sqlite_url: str) -> AsyncIterator[Tickler]:
    async with connect(sqlite_url, clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


@pytest.fixture
def other(t: Tickler, path: str) -> Iterator[sqlite3.Connection]:
    """The caller's own connection to the same file, in autocommit mode."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE orders (name TEXT)")
    yield connection
    connection.close()


# Locks.


async def test_a_claim_waits_for_a_writer_and_then_sees_what_it_wrote(t: Tickler, other: sqlite3.Connection) -> None:
    """With BEGIN DEFERRED the claim would read first, and fail when it comes to write on what it had read."""
    await t.index.upsert_many([row("a"), row("b")])
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE tickler_index SET next_fire_at = ? WHERE key = 'a'", (NOW_MS + 1,))
    claim = asyncio.create_task(t.index.claim_due(NOW_MS))
    await asyncio.sleep(0.1)
    assert not claim.done()
    other.execute("COMMIT")
    assert [claimed.key for claimed in await claim] == ["b"]


async def test_a_store_locked_by_another_is_unavailable_and_unchanged(
    t: Tickler, other: sqlite3.Connection, sqlite_url: str
) -> None:
    await t.index.upsert(row("a"))
    async with connect(f"{sqlite_url}?timeout=0.2") as impatient:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked by another connection"):
            await impatient.index.claim_due(NOW_MS)
        with pytest.raises(StoreUnavailable):
            await impatient.schedules.put(schedule("b"))
        other.execute("ROLLBACK")
    assert [claimed.key for claimed in await t.index.claim_due(NOW_MS)] == ["a"]
    assert await t.schedules.get("u1", "b") is None


async def test_a_claim_whose_caller_has_gone_leaves_its_rows_due(t: Tickler, other: sqlite3.Connection) -> None:
    await t.index.upsert(row("a"))
    other.execute("BEGIN IMMEDIATE")
    claim = asyncio.create_task(t.index.claim_due(NOW_MS))
    await asyncio.sleep(0.1)
    claim.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claim
    other.execute("COMMIT")
    assert [claimed.key for claimed in await t.index.claim_due(NOW_MS)] == ["a"]


def test_processes_that_start_together_on_a_new_file_all_succeed(sqlite_url: str) -> None:
    script = f"""
import asyncio, tickler
async def main():
    async with tickler.connect({sqlite_url!r}) as t:
        await t.index.count()
asyncio.run(main())
"""
    processes = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) for _ in range(6)]
    errors = [process.communicate(timeout=60)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, errors


async def test_a_put_that_waited_for_the_lock_goes_by_the_time_after_it(sqlite_url: str, other: sqlite3.Connection) -> None:
    """Else it would bring back an instant that was claimed while it waited, and that would fire twice."""
    clock = ManualClock(NOW_MS - 1000)
    async with connect(sqlite_url, clock=clock) as waiting:
        await waiting.schedules.put(schedule("a", enabled=False))
        other.execute("BEGIN IMMEDIATE")
        put = asyncio.create_task(waiting.schedules.put(schedule("a")))
        await asyncio.sleep(0.1)
        clock.set(NOW_MS + 1000)
        other.execute("COMMIT")
        assert (await put).next_fire_at == NOW_MS + 3_600_000


# The caller's own transaction.


async def test_a_joined_transaction_waits_for_other_writers_and_says_when_it_came_too_late(
    t: Tickler, other: sqlite3.Connection, path: str
) -> None:
    joined = sqlite3.connect(path, isolation_level=None, timeout=5)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO orders VALUES ('o1')")
    joined.execute("BEGIN")
    joined.execute("SELECT * FROM orders").fetchall()
    other.execute("COMMIT")
    with pytest.raises(StoreUnavailable, match="BEGIN IMMEDIATE"):
        await t.schedules.put(schedule("a"), using=joined)
    joined.execute("ROLLBACK")
    joined.execute("BEGIN")
    await t.schedules.put(schedule("a"), using=joined)
    joined.execute("COMMIT")
    joined.close()
    assert await t.index.count() == 1


async def test_a_callers_connection_keeps_its_row_factory(t: Tickler, other: sqlite3.Connection) -> None:
    await t.schedules.put(schedule("a"))
    other.row_factory = lambda cursor, row: {column[0]: value for column, value in zip(cursor.description, row, strict=True)}
    other.execute("BEGIN")
    await t.schedules.put(schedule("a", payload=1), using=other)
    assert other.execute("SELECT count(*) AS n FROM tickler_schedules").fetchone() == {"n": 1}
    other.execute("COMMIT")
    stored = await t.schedules.get("u1", "a")
    assert stored is not None
    assert stored.version == 2


async def test_a_put_joins_the_callers_transaction_and_commits_with_it(t: Tickler, other: sqlite3.Connection) -> None:
    other.execute("BEGIN")
    other.execute("INSERT INTO orders VALUES ('o1')")
    stored = await t.schedules.put(schedule("reminder"), using=other)
    assert stored.next_fire_at == NOW_MS + 3_600_000
    assert await t.schedules.get("u1", "reminder") is None, "nothing is seen before the commit"
    other.execute("COMMIT")
    assert await t.schedules.get("u1", "reminder") == stored
    assert await t.index.count() == 1


async def test_a_rolled_back_transaction_takes_the_schedule_with_it(t: Tickler, other: sqlite3.Connection) -> None:
    other.execute("BEGIN")
    other.execute("INSERT INTO orders VALUES ('o1')")
    await t.schedules.put_many([schedule("a"), schedule("b")], using=other)
    other.execute("ROLLBACK")
    assert (await t.schedules.list()).items == []
    assert await t.index.count() == 0


async def test_a_write_that_fails_inside_the_callers_transaction_is_undone_alone(t: Tickler, other: sqlite3.Connection) -> None:
    other.execute("BEGIN")
    other.execute("INSERT INTO orders VALUES ('o1')")
    await t.schedules.put(schedule("good"), using=other)
    with pytest.raises(NeverFires):
        await t.schedules.put(schedule("bad", ends_at=NOW_MS + 1), using=other)
    other.execute("COMMIT")
    assert other.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    assert [stored.key for stored in (await t.schedules.list()).items] == ["good"]


async def test_every_write_joins_the_callers_transaction(t: Tickler, other: sqlite3.Connection) -> None:
    await t.schedules.put_many([schedule(key) for key in "abcd"])
    await t.index.upsert(row("alone"))
    other.execute("BEGIN")
    await t.schedules.pause("u1", "a", using=other)
    await t.schedules.delete("u1", "b", using=other)
    await t.schedules.update(schedule("c", payload=1), version=1, using=other)
    await t.schedules.declare("system", [Schedule(owner="system", key="s", when=HOURLY)], using=other)
    await t.schedules.pause_all("u1", using=other)
    await t.schedules.resume("u1", "a", using=other)
    await t.schedules.delete_all("u1", using=other)
    await t.index.upsert(IndexRow("x", "y", HOURLY, NOW_MS), using=other)
    await t.index.remove("u1", "alone", using=other)
    other.execute("ROLLBACK")
    assert [(stored.key, stored.version) for stored in (await t.schedules.list()).items] == [(key, 1) for key in "abcd"]
    assert await t.index.count() == 5


async def test_using_needs_an_open_transaction_on_a_connection_to_the_same_file(t: Tickler, other: sqlite3.Connection) -> None:
    with pytest.raises(InvalidInput, match="BEGIN"):
        await t.schedules.put(schedule("a"), using=other)
    with pytest.raises(InvalidInput, match=r"pass sqlite3's Connection"):
        await t.schedules.put(schedule("a"), using="connection")
    stranger = sqlite3.connect(":memory:", isolation_level=None)
    stranger.execute("BEGIN")
    with pytest.raises(InvalidInput, match="another database"):
        await t.schedules.put(schedule("a"), using=stranger)
    stranger.close()


async def test_a_connection_in_pythons_default_mode_can_be_joined_after_its_first_write(
    t: Tickler, other: sqlite3.Connection, path: str
) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("INSERT INTO orders VALUES ('o1')")
        await t.schedules.put(schedule("a"), using=connection)
    connection.close()
    assert await t.index.count() == 1


# One transaction for schedule and index row; nothing half done.


@pytest.mark.parametrize("event", ["INSERT", "UPDATE", "DELETE"])
async def test_a_write_whose_mirror_fails_changes_nothing(t: Tickler, other: sqlite3.Connection, event: str) -> None:
    await t.schedules.put(schedule("there"))
    before = await t.schedules.get("u1", "there")
    other.execute(f"CREATE TRIGGER fail BEFORE {event} ON tickler_index BEGIN SELECT RAISE(ABORT, 'index broken'); END")
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


async def test_a_claim_that_fails_half_way_advances_nothing(t: Tickler, other: sqlite3.Connection) -> None:
    await t.index.upsert_many([row("a"), row("b"), row("c")])
    other.execute(
        "CREATE TRIGGER fail BEFORE UPDATE ON tickler_index WHEN new.key = 'b' BEGIN SELECT RAISE(ABORT, 'disk broken'); END"
    )
    with pytest.raises(StoreUnavailable, match="disk broken"):
        await t.index.claim_due(NOW_MS)
    other.execute("DROP TRIGGER fail")
    assert [claimed.key for claimed in await t.index.claim_due(NOW_MS)] == ["a", "b", "c"]


# How it is set up, and what a claim reads.


async def test_commits_survive_a_power_failure(t: Tickler) -> None:
    store = t._store
    settings = await store._connection.read(  # type: ignore[attr-defined]
        lambda raw: [raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    )
    assert settings == ["wal", 2]


async def test_a_claim_walks_the_index_and_sorts_nothing(t: Tickler, other: sqlite3.Connection) -> None:
    await t.index.upsert_many([IndexRow("u1", f"k{n}", HOURLY, NOW_MS + n) for n in range(2000)])
    other.execute("ANALYZE")
    plan = "\n".join(line[3] for line in other.execute(f"EXPLAIN QUERY PLAN {SELECT_DUE}", (NOW_MS, 1, 100)))
    assert "USING INDEX tickler_index_due (next_fire_at<?)" in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN" not in plan


async def test_a_claim_finds_its_rows_by_id_also_with_statistics_of_a_small_index(t: Tickler, other: sqlite3.Connection) -> None:
    await t.index.upsert(row("a"))
    other.execute("ANALYZE")
    given, found = (line[3] for line in other.execute(f"EXPLAIN QUERY PLAN {ADVANCE}", ("[]",)))
    assert given.startswith("SCAN moved")
    assert found.startswith("SEARCH i USING INTEGER PRIMARY KEY")


async def test_a_large_schedule_among_small_ones_is_claimed_in_order(t: Tickler) -> None:
    sizes = {"a": 1, "b": 20_000, "c": 1}
    await t.schedules.put_many([schedule(key, target=TARGET, payload="x" * size) for key, size in sizes.items()])
    claims = await t.fires.claim(NOW_MS + HOUR_MS, 500, worker="w")
    assert [(claim.schedule.key, len(str(claim.schedule.payload))) for claim in claims] == [*sizes.items()]


@pytest.mark.parametrize("body", ["CAST(x'ff' AS TEXT)", "x'ff'", "'{'"])
async def test_a_body_that_is_no_text_blocks_nothing(t: Tickler, other: sqlite3.Connection, body: str) -> None:
    await t.schedules.put_many([schedule(key, target=TARGET) for key in ("a", "bad", "c")])
    other.execute(f"UPDATE tickler_schedules SET body = {body} WHERE key = 'bad'")
    claims = await t.fires.claim(NOW_MS + HOUR_MS, 500, worker="w")
    assert [claim.schedule.key for claim in claims] == ["a", "c"]
    assert [aside.key for aside in await t.index.set_aside()] == ["bad"]


async def test_a_page_of_a_walk_begins_where_the_last_one_ended(t: Tickler, other: sqlite3.Connection) -> None:
    await t.index.upsert_many([IndexRow("u1", f"k{n}", HOURLY, NOW_MS + n) for n in range(2000)])
    other.execute("ANALYZE")
    (line,) = other.execute(f"EXPLAIN QUERY PLAN {WALK}", (1000, 100))
    assert line[3] == "SEARCH tickler_index USING INTEGER PRIMARY KEY (rowid>?)"


def test_no_statement_numbers_its_parameters() -> None:
    """Python 3.12 warns of a sequence for `?1`, and 3.14 refuses it."""
    folders = (Path(package.__file__ or "").parent for package in (sqlite_store, sqlite_database))
    sources = [file for folder in folders for file in folder.glob("*.py")]
    assert len(sources) > 10
    numbered = [file.name for file in sources if re.search(r"\?\d", file.read_text(encoding="utf-8"))]
    assert numbered == []


async def test_failing_schedules_are_found_by_their_dead_fires_alone(t: Tickler, other: sqlite3.Connection) -> None:
    failing = FAILING.replace("{schema}.", "")
    for query in (
        failing,
        "SELECT * FROM tickler_fires WHERE state = 'dead' AND state <> 'open' ORDER BY nominal_at, id LIMIT 9",
    ):
        (line,) = other.execute(f"EXPLAIN QUERY PLAN {query}")
        assert "INDEX tickler_fires_held (state=?)" in line[3]
    of_all = f"SELECT 1 FROM tickler_schedules s WHERE (s.owner, s.key) IN ({failing}) ORDER BY s.owner, s.key"
    plan = [line[3] for line in other.execute(f"EXPLAIN QUERY PLAN {of_all}")]
    assert plan[0].startswith("SEARCH s USING"), "they are looked up, and not all of them looked at"


async def test_a_missing_table_is_named_as_such_with_its_remedy(t: Tickler, other: sqlite3.Connection) -> None:
    other.execute("DROP TABLE tickler_index")
    with pytest.raises(SchemaMissing, match="tickler migrate"):
        await t.index.claim_due(NOW_MS)
