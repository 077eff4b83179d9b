"""Items and schedules in one transaction: both or neither, on every engine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from table.dropping import drop
from table.joined_shop import Order, reminder, shop

import tickler
from tickler import InvalidInput, Tickler
from tickler.errors import ConditionFailed, TransactionConflict
from tickler.table.open_table import OpenTable


@pytest.fixture
async def t(any_url: str) -> AsyncIterator[Tickler]:
    async with tickler.connect(any_url) as opened:
        yield opened


@pytest.fixture
async def db(t: Tickler) -> AsyncIterator[OpenTable]:
    async with shop.connect(t, name=f"joined_{time.monotonic_ns()}", create=True) as opened:
        yield opened
        await drop(opened)


async def test_an_item_and_its_schedule_are_written_together(t: Tickler, db: OpenTable) -> None:
    async with db.transaction() as tx:
        tx.put(Order(id="1"))
        stored = await t.schedules.put(reminder("1"), using=tx)
        assert await db.get(Order.key.id("1")) is None
        assert await t.schedules.get("shop", "1") is None, "nothing before the commit"
    assert await db.get(Order.key.id("1")) == Order(id="1")
    found = await t.schedules.get("shop", "1")
    assert found is not None
    assert found.next_fire_at == stored.next_fire_at
    assert await t.index.next_due() == stored.next_fire_at


async def test_neither_is_written_if_the_block_raises(t: Tickler, db: OpenTable) -> None:

    async def attempt() -> None:
        async with db.transaction() as tx:
            tx.put(Order(id="1"))
            await t.schedules.put(reminder("1"), using=tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await attempt()
    assert await db.get(Order.key.id("1")) is None
    assert await t.schedules.get("shop", "1") is None


async def test_neither_is_written_if_a_condition_fails(t: Tickler, db: OpenTable) -> None:
    await db.put(Order(id="1", status="shipped"))

    async def attempt() -> None:
        async with db.transaction() as tx:
            tx.update(Order.key.id("1"), Order.status.set("paid"), when=Order.status == "new")
            await t.schedules.put(reminder("1"), using=tx)

    with pytest.raises(ConditionFailed):
        await attempt()
    assert await t.schedules.get("shop", "1") is None
    assert await db.get(Order.key.id("1")) == Order(id="1", status="shipped")


async def test_neither_is_written_if_the_schedule_was_changed_meanwhile(t: Tickler, db: OpenTable) -> None:
    await t.schedules.put(reminder("1"))

    async def attempt() -> None:
        async with db.transaction() as tx:
            tx.put(Order(id="1"))
            await t.schedules.put(reminder("1", 1), using=tx)
            await t.schedules.put(reminder("1", 2))

    with pytest.raises(TransactionConflict):
        await attempt()
    assert await db.get(Order.key.id("1")) is None
    found = await t.schedules.get("shop", "1")
    assert found is not None
    assert found.when == reminder("1", 2).when


async def test_neither_is_written_if_an_item_that_was_read_was_changed_meanwhile(t: Tickler, db: OpenTable) -> None:
    await db.put(Order(id="1"))

    async def attempt() -> None:
        async with db.transaction() as tx:
            assert await tx.get(Order.key.id("1")) == Order(id="1")
            await t.schedules.put(reminder("1"), using=tx)
            await db.update(Order.key.id("1"), Order.status.set("paid"))

    with pytest.raises(TransactionConflict):
        await attempt()
    assert await t.schedules.get("shop", "1") is None


async def test_what_was_read_as_absent_must_stay_absent(t: Tickler, db: OpenTable) -> None:

    async def attempt() -> None:
        async with db.transaction() as tx:
            assert await tx.get(Order.key.id("1")) is None
            tx.put(Order(id="2"))
            await db.put(Order(id="1"))

    with pytest.raises(TransactionConflict):
        await attempt()
    assert await db.get(Order.key.id("2")) is None


async def test_a_transaction_is_repeated_until_it_does_not_conflict(db: OpenTable) -> None:
    await db.put(Order(id="1"))
    tries = 0

    async def ship(tx: object) -> str:
        nonlocal tries
        tries += 1
        order = await tx.get(Order.key.id("1"))  # type: ignore[attr-defined]  # a Transaction
        if tries == 1:
            await db.update(Order.key.id("1"), Order.status.set("paid"))
        tx.update(order.key, Order.status.set(order.status + "!"))  # type: ignore[attr-defined]  # likewise
        return "done"

    assert await db.transact(ship) == "done"
    assert tries == 2
    assert await db.get(Order.key.id("1")) == Order(id="1", status="paid!")


async def test_pausing_and_deleting_join_too(t: Tickler, db: OpenTable) -> None:
    for key in ("1", "2"):
        await t.schedules.put(reminder(key))
    async with db.transaction() as tx:
        tx.put(Order(id="1"))
        await t.schedules.pause("shop", "1", using=tx)
        await t.schedules.delete("shop", "2", using=tx)
    paused = await t.schedules.get("shop", "1")
    assert paused is not None
    assert paused.state == "paused"
    assert await t.schedules.get("shop", "2") is None


async def test_a_transaction_that_has_ended_is_refused(t: Tickler, db: OpenTable) -> None:
    async with db.transaction() as tx:
        tx.put(Order(id="1"))
    with pytest.raises(InvalidInput, match="has ended"):
        await t.schedules.put(reminder("1"), using=tx)
    with pytest.raises(InvalidInput, match="has ended"):
        tx.put(Order(id="2"))


async def test_a_transaction_on_another_database_is_refused(t: Tickler, tmp_path: Path) -> None:
    async with shop.connect(f"sqlite:///{tmp_path / 'other.db'}") as other, other.transaction() as tx:
        with pytest.raises(InvalidInput, match="file, database, or account and region"):
            await t.schedules.put(reminder("1"), using=tx)


async def test_a_table_by_a_url_of_the_same_file_joins(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'app.db'}"
    async with tickler.connect(url) as t, shop.connect(url) as db:
        async with db.transaction() as tx:
            tx.put(Order(id="1"))
            await t.schedules.put(reminder("1"), using=tx)
        assert await t.schedules.get("shop", "1") is not None


async def test_a_table_by_a_url_of_the_same_database_joins(postgres_url: str) -> None:
    async with tickler.connect(postgres_url) as t, shop.connect(postgres_url) as db:
        async with db.transaction() as tx:
            tx.put(Order(id="1"))
            await t.schedules.put(reminder("1"), using=tx)
        assert await t.schedules.get("shop", "1") is not None


def test_it_works_without_await(tmp_path: Path) -> None:
    with tickler.connect_sync(f"sqlite:///{tmp_path / 'app.db'}") as t, shop.connect_sync(t) as db:
        with db.transaction() as tx:
            tx.put(Order(id="1"))
            t.schedules.put(reminder("1"), using=tx)
        assert db.get(Order.key.id("1")) == Order(id="1")
        assert t.schedules.get("shop", "1").state == "active"
        assert list(db.iterate(Order.fresh())) == [Order(id="1")]


WRITER = """
import asyncio, itertools, sys
import tickler
from table.joined_shop import Order, reminder, shop

async def main(url, name):
    async with tickler.connect(url) as t, shop.connect(t, name=name, create=True) as db:
        print("ready", flush=True)
        for n in itertools.count():
            async with db.transaction() as tx:
                tx.put(Order(id=f"{sys.argv[3]}-{n}"))
                await t.schedules.put(reminder(f"{sys.argv[3]}-{n}"), using=tx)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
async def test_a_writer_that_is_killed_at_any_moment_leaves_both_or_neither(any_url: str, soak: bool) -> None:
    if not soak:
        pytest.skip("test_killed_writers.py kills at each step; at random: make soak")
    url = any_url
    name = f"killed_{time.monotonic_ns()}"
    async with tickler.connect(url) as t, shop.connect(t, name=name, create=True) as db:
        for victim in range(3):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", WRITER, url, name, str(victim), stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent
            )
            assert process.stdout is not None
            await process.stdout.readline()
            await asyncio.sleep(0.05 + 0.037 * victim)
            process.kill()
            await process.wait()
        orders = {order.id async for order in db.iterate(Order.fresh())}
        scheduled = {each.key for each in (await t.schedules.list(owner="shop", limit=1000)).items}
        assert orders == scheduled
        assert orders
        await drop(db)
