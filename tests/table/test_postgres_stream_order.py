"""The order of changes in PostgreSQL, where writers commit in another order than they take numbers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from table.postgres_writers import Committed, Doc, WriterByHand, WriterOfTable, streamed
from table.test_postgres import pool_at

from postgres_server import PostgresServer
from tickler.clock import ManualClock
from tickler.table.engines.change_log import ALL_SHARDS, ChangeRecord
from tickler.table.engines.postgres.change_log import PostgresChangeLog
from tickler.table.engines.postgres.engine import PostgresEngine
from tickler.table.open_table import OpenTable

KEPT_MS = 10**9
EVERY_SHARD = [shard.id for shard in ALL_SHARDS]
INSERT = "INSERT INTO {}.streamed (pk, sk, entity, body) VALUES ($1, 'DOC', 'Doc', '')"


class Site:
    """An open table with a stream, its change log, and connections beside it."""

    def __init__(self, url: str) -> None:
        self.dsn, self.schema = url.partition("&schema=")[0], parse_qs(urlsplit(url).query)["schema"][0]
        self.pool = pool_at(url)
        self.db = OpenTable(streamed, PostgresEngine(streamed, self.pool), ManualClock(1_900_000_000_000), create=True)
        self.insert = INSERT.format(self.schema)
        self._connections: list[asyncpg.Connection] = []

    @property
    def log(self) -> PostgresChangeLog:
        assert isinstance(self.db.engine, PostgresEngine)
        return self.db.engine.changes

    def another_log(self) -> PostgresChangeLog:
        """The log as another process has it, which makes its own observations."""
        return PostgresEngine(streamed, self.pool, owned=False).changes

    async def connect(self) -> asyncpg.Connection:
        self._connections.append(await asyncpg.connect(self.dsn))
        return self._connections[-1]

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
        await self.db.close()


@pytest.fixture
async def site(postgres_url: str) -> AsyncIterator[Site]:
    site = Site(postgres_url)
    await site.db.open()
    yield site
    await site.close()


class Follower:
    """Reads some shards of a log to the end of what is settled, again and again."""

    def __init__(self, log: PostgresChangeLog, shards: Iterable[str] = EVERY_SHARD) -> None:
        self._log = log
        self.positions: dict[str, str | None] = dict.fromkeys(shards)
        self.records: list[ChangeRecord] = []

    async def read(self) -> list[ChangeRecord]:
        found: list[ChangeRecord] = []
        for read in await self._log.read(self.positions, limit=100):
            self.positions[read.shard] = read.position
            found += read.records
            assert not read.lost
        found.sort(key=lambda record: int(record.position))
        self.records += found
        return found

    async def follow(self, writers: asyncio.Event) -> None:
        """Read until nothing is left after the writers have ended."""
        ended = False
        while await self.read() or not ended:
            ended = writers.is_set() and not await self._log.waiting(self.positions, limit=1)
            await asyncio.sleep(0)


class NaiveFollower:
    """Goes on behind the highest number that it has seen."""

    def __init__(self, connection: asyncpg.Connection, schema: str) -> None:
        self._connection = connection
        self._select = f'SELECT seq FROM {schema}."streamed.stream" WHERE seq > $1 ORDER BY seq LIMIT 100'
        self.seen: list[int] = []

    async def read(self) -> list[int]:
        found = [row[0] for row in await self._connection.fetch(self._select, self.seen[-1] if self.seen else 0)]
        self.seen += found
        return found

    async def follow(self, writers: asyncio.Event) -> None:
        while await self.read() or not writers.is_set():
            await asyncio.sleep(0)


async def prune(log: PostgresChangeLog, followers: Sequence[Follower], naive: NaiveFollower, writers: asyncio.Event) -> None:
    """Delete what all have read, meanwhile."""
    while not writers.is_set():
        read_by_naive = dict.fromkeys(EVERY_SHARD, str(naive.seen[-1] if naive.seen else 0))
        await log.prune([*(follower.positions for follower in followers), read_by_naive], keep_ms=KEPT_MS, limit=500)
        await asyncio.sleep(0.05)


async def test_many_writers_and_nothing_is_skipped_repeated_or_out_of_order(site: Site, seed: int, soak: bool) -> None:
    number, wanted = (24, 100_000) if soak else (8, 3_000)
    committed = Committed(wanted)
    by_hand = [WriterByHand(f"hand{n}", await site.connect(), site.schema, committed, seed).run() for n in range(number * 3 // 4)]
    of_table = [WriterOfTable(f"table{n}", site.db, committed, seed).run() for n in range(number // 4)]
    whole = Follower(site.log)
    halves = [Follower(site.another_log(), "0123"), Follower(site.another_log(), "4567")]
    naive = NaiveFollower(await site.connect(), site.schema)
    ended = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for reader in (whole, *halves):
            tasks.create_task(reader.follow(ended))
        tasks.create_task(naive.follow(ended))
        tasks.create_task(prune(site.log, [whole, *halves], naive, ended))
        await asyncio.gather(*by_hand, *of_table)
        ended.set()
    check_history(whole.records, await stored(site), committed)
    assert positions(record for half in halves for record in half.records) == positions(whole.records)
    skipped = set(positions(whole.records)) - set(naive.seen)
    assert skipped, "the writers committed in the order of their numbers, so nothing was shown"


def positions(records: Iterable[ChangeRecord]) -> list[int]:
    return sorted(int(record.position) for record in records)


def check_history(records: Sequence[ChangeRecord], stored: dict[str, bytes], committed: Committed) -> None:
    """Check that each change begins where the one before it ended, and that they are those that were committed."""
    numbers = [int(record.position) for record in records]
    assert len(set(numbers)) == len(numbers)
    images: dict[str, bytes | None] = defaultdict(lambda: None)
    for record in records:  # in the order of delivery
        assert record.old == images[record.pk], "a change of this item is missing or out of order"
        assert record.old != record.new
        images[record.pk] = record.new
    assert {pk: image for pk, image in images.items() if image is not None} == stored
    texts = [streamed.entities["Doc"].decode(record.new).text for record in records if record.new is not None]
    assert sorted(texts) == sorted(committed.texts)
    assert len(records) == committed.changes


async def stored(site: Site) -> dict[str, bytes]:
    return {row[0]: row[1] for row in await site.pool.fetch("SELECT pk, body FROM {schema}.streamed")}


async def test_a_number_that_is_committed_late_is_skipped_by_a_naive_reader_and_not_by_ours(site: Site) -> None:
    slow, fast = await site.connect(), await site.connect()
    naive, ours = NaiveFollower(await site.connect(), site.schema), Follower(site.log)
    async with slow.transaction():
        await slow.execute(site.insert, "DOC#slow")
        await fast.execute(site.insert, "DOC#fast")
        assert await naive.read() == [2]
        assert await ours.read() == []
        assert await site.log.waiting(ours.positions, limit=10) == 1
    assert await naive.read() == []
    assert [record.pk for record in await ours.read()] == ["DOC#slow", "DOC#fast"]


async def test_a_read_waits_a_moment_for_a_transaction_that_is_about_to_end(site: Site) -> None:
    writer = await site.connect()
    transaction = writer.transaction()
    await transaction.start()
    await writer.execute(site.insert, "DOC#1")
    reading = asyncio.create_task(Follower(site.log).read())
    for _ in range(10_000):  # until the read has observed the open transaction
        if site.log._horizon.last:
            break
        await asyncio.sleep(0)
    await transaction.commit()
    assert [record.pk for record in await reading] == ["DOC#1"]


async def test_a_long_transaction_elsewhere_does_not_hold_changes_back(site: Site) -> None:
    long, writer = await site.connect(), await site.connect()
    await long.execute(f"CREATE TABLE {site.schema}.elsewhere (n int)")
    async with long.transaction(isolation="repeatable_read"):
        await long.execute(f"INSERT INTO {site.schema}.elsewhere VALUES (1)")
        await long.fetch(f'SELECT FROM {site.schema}.streamed, {site.schema}."streamed.stream"')
        await writer.execute(site.insert, "DOC#1")
        assert [record.pk for record in await Follower(site.log).read()] == ["DOC#1"]


async def test_a_savepoint_that_is_rolled_back_leaves_no_change_and_holds_nothing_back(site: Site) -> None:
    partly, writer = await site.connect(), await site.connect()
    ours = Follower(site.log)
    async with partly.transaction():
        savepoint = partly.transaction()
        await savepoint.start()
        await partly.execute(site.insert, "DOC#undone")
        await writer.execute(site.insert, "DOC#1")
        assert await ours.read() == []
        await savepoint.rollback()
        assert [record.pk for record in await ours.read()] == ["DOC#1"]
        await partly.execute(site.insert, "DOC#kept")
    assert [record.pk for record in await ours.read()] == ["DOC#kept"]


async def test_the_end_is_behind_all_that_was_committed_before_and_before_all_that_is_committed_later(site: Site) -> None:
    slow = await site.connect()
    await site.db.put(Doc(id=1))
    transaction = slow.transaction()
    await transaction.start()
    await slow.execute(site.insert, "DOC#open")
    ending = asyncio.create_task(site.log.end())
    for _ in range(10_000):
        if site.log._horizon.last:
            break
        await asyncio.sleep(0)
    assert not ending.done()
    await transaction.commit()
    end = await ending
    assert await site.log.waiting(end, limit=10) == 0
    await site.db.put(Doc(id=2))
    follower = Follower(site.log)
    follower.positions = dict(end)
    assert [record.pk for record in await follower.read()] == [Doc.key.id(2).pk]


async def test_the_last_number_is_read_before_the_locks(site: Site) -> None:
    connection = await site.connect()
    plan = [row[0] for row in await connection.fetch(f"EXPLAIN {site.log._observe.replace('$1', '-1')}")]
    locks = next(n for n, line in enumerate(plan) if "pg_lock_status" in line)
    subplan = max(n for n, line in enumerate(plan[:locks]) if "SubPlan" in line)
    assert "Subquery Scan on taken" in plan[0]
    assert any("taken.last" in line for line in plan[subplan:locks]), "it does not depend on the number"


async def test_a_prepared_transaction_holds_changes_back_until_it_is_committed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with PostgresServer(tmp_path / "data", "max_prepared_transactions = 3") as server:
        site = Site(server.url("prepared"))
        await site.db.open()
        writer, other = await site.connect(), await site.connect()
        ours, another = Follower(site.log), Follower(site.another_log())
        await writer.execute("BEGIN")
        await writer.execute(site.insert, "DOC#prepared")
        await other.execute(site.insert, "DOC#1")
        assert await ours.read() == []
        await writer.execute("PREPARE TRANSACTION 'first'")
        await writer.execute(site.insert, "DOC#2")
        assert await ours.read() == []
        assert await another.read() == []
        await writer.execute("COMMIT PREPARED 'first'")
        for follower in (ours, another):
            assert [record.pk for record in await follower.read()] == ["DOC#prepared", "DOC#1", "DOC#2"]
        await site.close()
