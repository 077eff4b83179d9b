"""Reads as on DynamoDB: without snapshots, and of rows and indexes that do not show the last writes yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random
from typing import NoReturn

import pytest
from reading_traversal import Traversals, versioned

from book import Book, table_url
from pricebook.editions.timing import Timing
from pricebook.model import pricebook
from tickler import InvalidInput, ManualClock
from tickler.table import OpenTable
from tickler.testing import ChaosEngine

PRODUCTS = 12
STORES = ("1", "2", "3")
SECOND = timedelta(seconds=1)


class StaleEngine(ChaosEngine):
    """An engine whose reads lag behind by up to three writes of an item, until they catch up. It has no snapshots."""

    def snapshot(self) -> NoReturn:
        raise InvalidInput("there are no snapshots")


@pytest.fixture(params=["memory", "dynamodb"])
def lagging_url(request: pytest.FixtureRequest, soak: bool) -> str:
    if request.param == "memory":
        return "memory://"
    if not soak:
        pytest.skip("stale reads of DynamoDB Local: make soak")
    return str(request.getfixturevalue("dynamodb_url"))


@asynccontextmanager
async def stale_book(
    url: str, clock: ManualClock, seed: int, timing: Timing | None = None
) -> AsyncIterator[tuple[Book, StaleEngine]]:
    engine = StaleEngine(pricebook.connect(table_url(url), clock=clock).engine, seed=seed, stale_writes=3)
    async with OpenTable(pricebook, engine, clock, create=True) as db:
        yield Book(db, clock, timing), engine


async def traverse_while_it_switches(book: Book, engine: StaleEngine, random: Random, switches: int) -> Traversals:
    """Switch all prices of a store and settle them, while rows lag behind for up to a minute."""
    await book.a_store(prices=versioned(1, PRODUCTS))
    reader = Traversals(book.prices, "1", PRODUCTS, page=5)
    for version in range(2, switches + 2):
        book.pass_(61 * SECOND)
        engine.catch_up()
        number = await book.change(versioned(version, PRODUCTS))
        for _ in range(20):
            await reader.step()
            book.pass_(random.choice((0, 1, 3)) * SECOND)
            if random.random() < 0.1:
                await book.switch.settle("1")
            if random.random() < 0.05 and (await book.head()).editions.get(number) is not None:
                await book.switch.roll_back("1", number)
                break
        await reader.finish()
    return reader


async def test_traversals_of_a_store_see_no_mixture_while_its_rows_lag_behind(
    lagging_url: str, clock: ManualClock, soak: bool, seed: int
) -> None:
    async with stale_book(lagging_url, clock, seed) as (book, engine):
        reader = await traverse_while_it_switches(book, engine, Random(seed), 200 if soak else 30)
        assert reader.mixtures == []
        assert reader.done > 100


async def test_without_consistent_reads_near_a_fresh_edition_they_do(clock: ManualClock, seed: int) -> None:
    """The control: these rows do lag behind."""
    async with stale_book("memory://", clock, seed, Timing(fresh=timedelta(0))) as (book, engine):
        assert (await traverse_while_it_switches(book, engine, Random(seed), 30)).mixtures


async def test_a_product_is_read_right_while_the_index_lags_behind_by_less_than_the_margin(
    lagging_url: str, clock: ManualClock, soak: bool, seed: int
) -> None:
    """Also when the index still has values of editions that were settled since, and that no head knows any more."""
    random = Random(seed)
    async with stale_book(lagging_url, clock, seed) as (book, engine):
        for store in STORES:
            await book.a_store(store, {"P1": 100, "P2": 200})
        expected = dict.fromkeys(STORES, 100)
        for version in range(200 if soak else 40):
            engine.catch_up()  # a moment after the last write
            store = random.choice(STORES)
            await book.change({"P1": 1_000 + version}, store=store)
            assert await book.across("P1") == expected  # stale or not: it does not count yet
            book.pass_()
            engine.catch_up()
            expected[store] = 1_000 + version
            assert await book.across("P1") == expected
            if random.random() < 0.7:
                await book.switch.settle(store)
                assert await book.across("P1") == expected
                assert await book.shown(store) == {"P1": expected[store], "P2": 200}
            book.pass_(SECOND)


async def test_a_row_with_an_edition_that_its_head_has_forgotten_is_read_again(clock: ManualClock) -> None:
    async with stale_book("memory://", clock, 1) as (book, engine):
        await book.a_store(prices={"P1": 100})
        book.pass_(timedelta(minutes=2))
        engine.catch_up()
        for version in range(20):  # some of these reads are stale
            engine.catch_up()
            await book.change({"P1": version})
            engine.catch_up()
            book.pass_(timedelta(minutes=2))  # no edition is fresh
            await book.switch.settle("1")
            assert await book.shown() == {"P1": version}
            assert await book.across("P1") == {"1": version}
