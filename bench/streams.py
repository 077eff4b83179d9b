"""A table with a change log beside the same table without one, and what it costs to follow the log."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from measure import Result, Stopwatch, pairs
from postgres import bench_server
from tickler.table import Attr, Entity, Index, ItemChange, Key, Table, attr, created
from tickler.table.engines.postgres.engine import PostgresEngine
from tickler.table.engines.sqlite.engine import SqliteEngine
from tickler.table.open_table import OpenTable

PAIRS = 7
WRITERS = 8
SINGLE = 800  # puts and updates of a run
BATCHES, BATCH = 8, 500
POLLS = 500
CONSUMED = 20_000
LAGS = 300
MAX_LAG = 50  # times a put
MIN_RATIO = 0.7
MAX_IDLE_PERCENT = 0.5  # of the time, for the polls of an idle log

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

Work = Callable[[], Awaitable[object]]


def shop(*, stream: bool) -> tuple[Table, type[Any]]:
    """Return a table of orders of about 300 bytes."""
    table = Table("shop", stream=stream)

    class Order(Entity, table=table):
        customer: Attr[str] = attr()
        id: Attr[int] = attr()
        status: Attr[str] = attr(default="pending")
        placed_at: Attr[datetime] = attr()
        total_cents: Attr[int] = attr(default=0)
        email: Attr[str] = attr(default="someone@example.org")
        note: Attr[str] = attr(default="leave it with the neighbours on the second floor, please; they are at home until noon")
        tags: Attr[list[str]] = attr(default=["gift", "fragile"])

        key = Key("CUSTOMER" / customer, "ORDER" / id)
        pending = Index("gsi1", "PENDING_ORDER", placed_at / id, when=status == "pending")

    return table, Order


class Writer:
    """Writes to one table: new orders, updates of orders, and batches. It counts processor time beside wall time."""

    def __init__(self, db: OpenTable, order: type[Any]) -> None:
        self._db = db
        self._order = order
        self._number = 0
        self.processor: dict[str, list[float]] = {"puts": [], "updates": [], "batches": []}

    async def puts(self) -> float:
        orders = self._orders(SINGLE)
        return await self._timed("puts", [self._db.put(each) for each in orders])

    async def updates(self) -> float:
        orders = self._orders(SINGLE)
        await self._db.put_many(orders)
        add, ship = self._order.total_cents.add(5), self._order.status.set("shipped")
        return await self._timed("updates", [self._db.update(each.key, add, ship) for each in orders])

    async def batches(self) -> float:
        orders = [self._orders(BATCH) for _ in range(BATCHES)]
        return await self._timed("batches", [self._db.put_many(each) for each in orders])

    def _orders(self, number: int) -> list[Any]:
        start, self._number = self._number, self._number + number
        return [
            self._order(customer=f"c{n % 100}", id=n, placed_at=NOON + timedelta(seconds=n)) for n in range(start, self._number)
        ]

    async def _timed(self, name: str, works: Sequence[Awaitable[object]]) -> float:
        began = time.process_time()
        with Stopwatch() as watch:
            await in_lanes(iter(works))
        self.processor[name].append(time.process_time() - began)
        return watch.seconds


async def in_lanes(works: Iterator[Awaitable[object]]) -> None:
    """Await works, as many at a time as there are writers."""

    async def lane() -> None:
        for work in works:
            await work

    await asyncio.gather(*(lane() for _ in range(WRITERS)))


async def run(say: Callable[[str], None]) -> list[Result]:
    return [*await on_sqlite(say), *await on_postgres(say)]


async def on_sqlite(say: Callable[[str], None]) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        (streamed, order), (plain, plain_order) = shop(stream=True), shop(stream=False)
        async with (
            streamed.connect(f"sqlite:///{folder}/streamed.db") as ours,
            plain.connect(f"sqlite:///{folder}/plain.db") as theirs,
        ):
            results = await writes(say, "SQLite", Writer(ours, order), Writer(theirs, plain_order))
            engine = ours.engine
            assert isinstance(engine, SqliteEngine)
            read = engine._read

            async def nothing() -> None:
                await read(lambda database: database.execute("SELECT 1").fetchall())

            results.append(await idle_poll("SQLite", engine, nothing))
            async with streamed.connect(f"sqlite:///{folder}/streamed.db") as elsewhere:
                return [*results, *await consumed(say, "SQLite", ours, elsewhere, order)]


async def on_postgres(say: Callable[[str], None]) -> list[Result]:
    with bench_server() as server:
        (streamed, order), (plain, plain_order) = shop(stream=True), shop(stream=False)
        async with streamed.connect(server.url("streamed")) as ours, plain.connect(server.url("plain")) as theirs:
            results = await writes(say, "PostgreSQL", Writer(ours, order), Writer(theirs, plain_order))
            engine = ours.engine
            assert isinstance(engine, PostgresEngine)
            pool = engine._pool
            results.append(await idle_poll("PostgreSQL", engine, lambda: pool.fetch("SELECT 1")))
            async with streamed.connect(server.url("streamed")) as elsewhere:
                return [*results, *await consumed(say, "PostgreSQL", ours, elsewhere, order)]


async def writes(say: Callable[[str], None], name: str, ours: Writer, theirs: Writer) -> list[Result]:
    works = {
        "puts": (f"{SINGLE} puts of new items", SINGLE, ours.puts, theirs.puts),
        "updates": (f"{SINGLE} updates", SINGLE, ours.updates, theirs.updates),
        "batches": (f"{BATCHES} batches of {BATCH}", BATCHES * BATCH, ours.batches, theirs.batches),
    }
    results = []
    for kind, (what, number, with_log, without) in works.items():
        say(f"{name}: {what}, with a change log and without")
        mine, others, ratio = await pairs(with_log, without, PAIRS)
        each = zip(ours.processor[kind], theirs.processor[kind], strict=True)
        processor = statistics.median(other / my for my, other in each)
        shown = (f"{number / mine:,.0f}/s", f"{number / others:,.0f}/s")
        beside = f"without a log; processor time here {processor:.2f}"
        results.append(Result(f"{name} stream: {what}", *shown, beside, ratio, MIN_RATIO))
    return results


async def idle_poll(name: str, engine: SqliteEngine | PostgresEngine, nothing: Work) -> Result:
    """Compare a read at the end of a log with the simplest statement, and with the time that a consumer waits for the next."""
    log = engine.changes
    end: dict[str, str | None] = {**await log.end()}

    async def poll() -> float:
        return await repeated(lambda: log.read(end, limit=200))

    mine, others, _ = await pairs(poll, lambda: repeated(nothing), PAIRS)
    shown = (f"{mine * 1e6:,.0f} µs", f"{others * 1e6:,.0f} µs")
    percent = 100 * mine / log.poll_s[1]
    return Result(f"{name} stream: idle polls, % of the time", *shown, "SELECT 1", percent, MAX_IDLE_PERCENT, at_most=True)


async def consumed(
    say: Callable[[str], None], name: str, writing: OpenTable, reading: OpenTable, order: type[Any]
) -> list[Result]:
    """Measure a consumer that does nothing, beside reading and decoding the same changes, and its lag beside a put.

    It runs on another open table than the writer, as in another process: no write wakes it.
    """
    say(f"{name}: {CONSUMED:,} changes through one consumer, and its lag")
    log = reading.engine.changes
    start: dict[str, str | None] = {**await log.end()}
    consumer = reading.consumer("bench", start="now")
    await consumer.consume()
    arrived: dict[int, float] = {}

    @consumer.on(created(order))
    async def handle(change: ItemChange[None, Any]) -> None:
        arrived[change.new.id] = time.perf_counter()

    await writing.put_many([order(customer=f"s{n % 97}", id=n, placed_at=NOON) for n in range(CONSUMED)])
    with Stopwatch() as by_hand:
        found = 0
        while found < CONSUMED:
            reads = await log.read(start, limit=200)
            start = {**start, **{read.shard: read.position for read in reads}}
            found += len([log.decode(each.entity, each.new) for read in reads for each in read.records if each.new is not None])
    with Stopwatch() as delivered:
        await consumer.consume(budget_ms=60_000)
    assert len(arrived) == CONSUMED
    shown = f"{CONSUMED / delivered.seconds:,.0f}/s", f"{CONSUMED / by_hand.seconds:,.0f}/s"
    through = Result(f"{name} stream: through a consumer", *shown, "read and decoded", by_hand.seconds / delivered.seconds, 0)
    lags, puts = [], []
    async with consumer.running():
        for n in range(CONSUMED, CONSUMED + LAGS):
            began = time.perf_counter()
            await writing.put(order(customer=f"s{n % 97}", id=n, placed_at=NOON))
            committed = time.perf_counter()
            while n not in arrived:
                await asyncio.sleep(0.0005)
            lags.append(arrived[n] - committed)
            puts.append(committed - began)
            await asyncio.sleep(0.005)
    p50, p99 = statistics.median(lags), statistics.quantiles(lags, n=100)[98]
    put = statistics.median(puts)
    shown = f"p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms", f"{put * 1000:.1f} ms"
    return [through, Result(f"{name} stream: lag from commit to handler", *shown, "a put", p50 / put, MAX_LAG, at_most=True)]


async def repeated(work: Work) -> float:
    with Stopwatch() as watch:
        for _ in range(POLLS):
            await work()
    return watch.seconds / POLLS
