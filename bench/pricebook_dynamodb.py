"""pricebook on DynamoDB: read units of a page, write units of a change, and dollars a month for the seed's load.

Units are those that DynamoDB Local reports (`ConsumedCapacity`). Dollars are a calculation with `dynamodb_cost.Prices`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from dynamodb_cost import MILLION, SECONDS_A_MONTH, STORAGE_OVERHEAD_BYTES, Load, Polling, Prices, on_dynamodb
from measure import Result, Skipped
from pricebook.access.caller import ROLES, Caller
from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.change_sets import Line, NewChangeSet
from pricebook.editions.pages import PageArgs
from pricebook.editions.staging import Staged
from pricebook.loading.loader import load_catalogue
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import PriceKey
from pricebook.money import Money
from pricebook_readers import MIX, PAGE
from pricebook_store import SETTLED_SINCE, size
from tickler import ManualClock, RetryLater
from tickler.table.measurement import Measurement

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from dynamodb_server import DynamodbServer

TABLE, PRICES = "bench", "bench_prices"
STORES = 70  # of which a page of a product has 64
FEW_PRODUCTS = 20  # of the stores that only pages of a product read
WHOLE_STORES = 3
PENDING = 10
PAGES = {name: f"a page of {PAGE}, {name}" for name in ("store", "store, 10 pending", "product", "upcoming")}
MARGIN = timedelta(seconds=5)
A_DAY = timedelta(days=1)
SOMEBODY = Caller("bench", frozenset(ROLES))

SEED_DOLLARS = 173
SEED_STORES, SEED_PRODUCTS = 8_000, 500
QUERIES_A_DAY = 50_000
DAYS_A_MONTH = 365 / 12
CHANGES_A_MONTH = 1.0  # of each price, as an assumption: the seed does not say
STREAM_SHARDS = 4  # of a new table on demand
STREAM_POLLS_PER_S = 1.0
STREAM_DOLLARS = 0.02 / 100_000  # a read of a shard, beyond those that are free
FREE_STREAM_READS = 2.5 * MILLION
LAMBDA_DOLLARS = 0.20 / MILLION + 0.5 * 0.050 * 0.0000166667  # a query of 50 ms with 512 MB
INDEXED = 2  # times that the bytes of a price are stored: in the table and in the index of its product

# What is read at most: the head costs a unit, and rows half a unit for 4 KB. A price has about 250 bytes, with 10 pending 1 KB.
MOST_READ = {"store": 3.0, "store, 10 pending": 8.0, "product": 2.0, "version": 1.0, "price at an instant": 2.0}
UPCOMING_PRICE = 0.1  # all prices of a store are read
# What is written at most for a price, and for a store: the row and its index when a price is staged and when it is settled, and
# the former price as a past one; with a change set its line, and what is kept of it. Heads, audit and schedule come once.
MOST_WRITTEN = {"switched": (5.0, 50), "from draft to settled": (7.4, 120)}


class Units(NamedTuple):
    read: dict[str, float]  # of each page
    written: dict[str, float]  # of each price that changes
    bytes: Measurement


async def run(say: Callable[[str], None]) -> list[Result]:
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_EC2_METADATA_DISABLED": "true"}
    server = _server()
    with server:
        say(f"{server.engine}: loading prices")
        clock = ManualClock(datetime.now(UTC))
        async with _open(server, clock) as book:
            for stores, products in ((STORES, min(size().staged, FEW_PRODUCTS)), (WHOLE_STORES, size().staged)):
                await load_catalogue(book.db, MadeCatalogue(stores, products), SETTLED_SINCE)
            say("read units of pages, and write units of changes")
            units = await _units(book, clock)
    return [*_unit_results(units), *_dollars(units, say)]


def _server() -> DynamodbServer:
    try:
        return DynamodbServer()
    except BaseException as error:  # that of a test that is skipped
        raise Skipped(str(error)) from None


@asynccontextmanager
async def _open(server: DynamodbServer, clock: ManualClock) -> AsyncIterator[Pricebook]:
    url = f"dynamodb://{TABLE}?region=eu-west-1&endpoint={server.endpoint}&create=1"
    async with open_pricebook(Settings(store=url, table=PRICES, four_eyes=False), clock=clock) as book:
        yield book


class Meter:
    """Reads what the client was charged."""

    def __init__(self, book: Pricebook) -> None:
        self._usage: Any = book.t.database.usage  # type: ignore[attr-defined]  # on DynamoDB it is a client

    async def read(self, work: Callable[[], Awaitable[object]]) -> float:
        before = self._usage.read_units
        await work()
        return float(self._usage.read_units - before)

    async def written(self, work: Callable[[], Awaitable[object]]) -> float:
        before = self._usage.write_units
        await work()
        return float(self._usage.write_units - before)


async def _units(book: Pricebook, clock: ManualClock) -> Units:
    catalogue, meter, page = MadeCatalogue(STORES, size().staged), Meter(book), PageArgs(first=PAGE)
    one, other, third = (catalogue.store(n) for n in range(3))
    await book.prices.of_store(one, page=page)  # reads the key of cursors
    read = {
        "store": await meter.read(lambda: book.prices.of_store(one, page=page)),
        "product": await meter.read(lambda: book.prices.of_product(catalogue.product(1), page=page)),
        "version": await meter.read(lambda: book.prices.version(one)),
        "price at an instant": await meter.read(lambda: book.prices.as_of(one, catalogue.product(1), book.now())),
    }
    for number in range(PENDING):
        await _change(book, one, timedelta(days=1 + number))
    clock.advance((MARGIN + book.timing.fresh).total_seconds())
    read["store, 10 pending"] = await meter.read(lambda: book.prices.of_store(one, page=page))
    read["upcoming"] = 0.0
    written = {}
    for _ in range(2):  # the second change of a store lets the first one's former prices become past
        changed = _Changed(book, other)
        staged = await meter.written(changed.approve)
        switched = await meter.written(lambda: _change(book, third, A_DAY))
        read["upcoming"] = await meter.read(lambda: book.prices.upcoming(third, page=page))
        clock.advance((A_DAY + MARGIN).total_seconds())
        staged += await meter.written(lambda: book.settling.settle(other))
        switched += await meter.written(lambda: book.switch.settle(third))
        written = {"switched": switched / size().staged, "from draft to settled": staged / size().staged}
        clock.advance(2 * A_DAY.total_seconds())
    return Units(read, written, await book.db.measure(sample=None))


async def _change(book: Pricebook, store: str, later: timedelta) -> None:
    """Stage and seal a change of all prices of a store, without a change set."""
    number = await book.switch.open_edition(store, book.now() + later)
    catalogue = MadeCatalogue(STORES, size().staged)
    staged = [Staged("ALL", "Base", catalogue.product(n), Money(1_234, "EUR")) for n in range(size().staged)]
    await book.switch.stage(store, number, staged)
    await book.switch.seal(store, number)


class _Changed:
    """A change set of all prices of a store."""

    def __init__(self, book: Pricebook, store: str) -> None:
        self._book = book
        self._store = store

    async def approve(self) -> None:
        sets = self._book.change_sets
        new = NewChangeSet(title="bench", at=self._book.now() + A_DAY)
        draft = await sets.create(SOMEBODY, new)
        catalogue = MadeCatalogue(STORES, size().staged)
        keys = [PriceKey(self._store, "ALL", "Base", catalogue.product(n)) for n in range(size().staged)]
        await sets.put_lines(SOMEBODY, draft.id, [Line(key, Money(1_234, "EUR")) for key in keys])
        submitted = await sets.submit(SOMEBODY, draft.id)
        await sets.approve(SOMEBODY, draft.id, rev=submitted.rev, reason="bench")
        while (await sets.get(SOMEBODY, draft.id)).state == "approving":
            with suppress(RetryLater):
                await sets.carry_on(draft.id)
        assert (await sets.get(SOMEBODY, draft.id)).state == "approved"


def _unit_results(units: Units) -> list[Result]:
    most_read = MOST_READ | {"upcoming": 2 + size().staged * UPCOMING_PRICE}
    most_written = {name: a_price + a_store / size().staged for name, (a_price, a_store) in MOST_WRITTEN.items()}
    read = [
        _unit_result(f"a page, {name}" if name in PAGES else name, units.read[name], most, "RU")
        for name, most in most_read.items()
    ]
    return read + [_unit_result(f"a price {name}", units.written[name], most, "WU") for name, most in most_written.items()]


def _unit_result(name: str, found: float, most: float, unit: str) -> Result:
    return Result(
        f"pricebook: DynamoDB: {name}", f"{found:.3g} {unit}", f"{most:.3g} {unit}", "the bound", found / most, 1.0, True
    )


def _dollars(units: Units, say: Callable[[str], None]) -> list[Result]:
    """Return what the seed's load costs a month, with each price changing once in it."""
    prices, charged = SEED_STORES * SEED_PRODUCTS, Prices()
    queries, changes = QUERIES_A_DAY * DAYS_A_MONTH, prices * CHANGES_A_MONTH
    a_page = sum(units.read[kind] for kind in MIX) / len(MIX)
    stored = INDEXED * prices * (units.bytes.bytes["Price"] + STORAGE_OVERHEAD_BYTES)
    kept = changes * (units.bytes.bytes["ChangeLine"] + units.bytes.bytes["PastPrice"] + 2 * STORAGE_OVERHEAD_BYTES)
    fires = Load(schedules=SEED_STORES, fires_per_hour=SEED_STORES / 730, burst=0)
    polls = STREAM_SHARDS * STREAM_POLLS_PER_S * SECONDS_A_MONTH
    items = {
        "queries": queries * a_page * charged.read / MILLION,
        "changes": changes * units.written["from draft to settled"] * charged.write / MILLION,
        "storage": (stored + kept) / 1e9 * charged.storage,
        "schedules": on_dynamodb("", fires, Polling(), charged, 1).total,
        "stream": max(polls - FREE_STREAM_READS, 0) * STREAM_DOLLARS,
        "Lambda": queries * LAMBDA_DOLLARS,
    }
    total = math.fsum(items.values())
    for name, dollars in items.items():
        say(f"{name:>10} ${dollars:.2f}")
    return [
        Result(
            "pricebook: DynamoDB: the seed's load, a month",
            f"${total:.0f}",
            f"${SEED_DOLLARS}",
            f"the seed's; {QUERIES_A_DAY:,} queries a day, {prices:,} prices, each changed {CHANGES_A_MONTH:g} times",
            total / SEED_DOLLARS,
            1.0,
            at_most=True,
        )
    ]
