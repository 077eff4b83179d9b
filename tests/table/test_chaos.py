"""The engine that misbehaves: each way of it, and what a table does then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tickler.clock import ManualClock
from tickler.database.memory import MemoryDatabase
from tickler.database.sqlite.connection import Connection
from tickler.errors import InvalidInput, StoreUnavailable, TransactionConflict
from tickler.table.engines.engine import Engine
from tickler.table.engines.memory.engine import MemoryEngine
from tickler.table.engines.sqlite.engine import SqliteEngine
from tickler.table.key import ItemId
from tickler.table.open_table import OpenTable
from tickler.table.transaction import Transaction
from tickler.testing import ChaosEngine
from tickler.testing.table_contract import TableContract
from tickler.testing.table_fixtures import NOW, TABLE, Account, Order, numbers, order

Open = Callable[..., OpenTable]


class TestWithoutOptions(TableContract):
    @pytest.fixture
    async def engine(self) -> Engine:
        return ChaosEngine(MemoryEngine(TABLE, MemoryDatabase()), seed=1)


class TestWithLateExpiry(TableContract):
    sweeps = False

    @pytest.fixture
    async def engine(self) -> Engine:
        return ChaosEngine(MemoryEngine(TABLE, MemoryDatabase()), seed=1, late_expiry=True)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture(params=["memory", "sqlite"])
async def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Open]:
    """A function from options of chaos to an open table, always the same one."""
    engine: Engine = MemoryEngine(TABLE, MemoryDatabase())
    if request.param == "sqlite":
        engine = SqliteEngine(TABLE, Connection(str(tmp_path / "chaos.db"), "sqlite:///chaos.db", 5))
    await engine.open(create=True)
    yield lambda **options: OpenTable(TABLE, ChaosEngine(engine, **{"seed": 1, **options}), clock, create=True)
    await engine.close()


def chaos_of(db: OpenTable) -> ChaosEngine:
    assert isinstance(db.engine, ChaosEngine)
    return db.engine


async def in_index(db: OpenTable) -> list[int]:
    return numbers((await db.query(Order.pending(), first=1000)).items)


async def test_an_index_lags_behind_and_catches_up(opened: Open) -> None:
    db = opened(stale_writes=2)
    for n in range(30):
        await db.put(order(n))
    seen = await in_index(db)
    assert 0 < len(seen) < 30
    assert await db.count(Order.pending()) == len(seen)
    assert await in_index(db) == seen
    chaos_of(db).catch_up()
    assert await in_index(db) == list(range(30))


async def test_an_index_shows_a_state_of_the_last_few_and_never_an_earlier_one_again(opened: Open) -> None:
    db = opened(stale_writes=3)
    await db.put(order(1))
    chaos_of(db).catch_up()
    shown = []
    for n in range(1, 60):
        await db.update(order(1).key, Order.items.set(n))
        (item,) = (await db.query(Order.pending(), first=5)).items
        assert n - 3 <= item.items <= n
        shown.append(n - item.items)
        assert (await db.get(order(1).key)) == order(1, items=n)
    assert set(shown) == {0, 1, 2, 3}
    assert all(later <= earlier + 1 for earlier, later in pairwise(shown))


async def test_a_deleted_item_and_a_moved_one_are_seen_where_they_were(opened: Open) -> None:
    db = opened(stale_writes=1, seed=2)
    for n in range(20):
        await db.put(order(n))
    chaos_of(db).catch_up()
    await db.delete_many([order(n).key for n in range(10)])
    for n in range(10, 20):
        await db.update(order(n).key, Order.status.set("shipped"))
    ghosts = await in_index(db)
    assert any(n < 10 for n in ghosts)
    assert any(n >= 10 for n in ghosts)
    assert len(ghosts) < 20
    page = await db.query(Order.key("c1"), first=100, consistent=True)
    assert [each.status for each in page.items] == ["shipped"] * 10


async def test_consistent_reads_of_the_table_are_never_stale(opened: Open) -> None:
    db = opened(stale_writes=5)
    stale_gets = stale_queries = 0
    for n in range(40):
        await db.upsert(Account.key.id(1), Account.balance.set(n))
        current = Account(id=1, balance=n, version=n + 1)
        assert await db.get(current.key) == current
        assert await db.get_many([current.key]) == [current]
        assert (await db.query(Account.key(1), first=1, consistent=True)).items == [current]
        stale_gets += await db.get(current.key, consistent=False) != current
        stale_queries += (await db.query(Account.key(1), first=1)).items != [current]
    assert stale_gets == stale_queries > 5


async def test_an_index_refuses_consistent_reads(opened: Open) -> None:
    with pytest.raises(InvalidInput, match="leave it out"):
        await opened(stale_writes=1).query(Order.pending(), first=1, consistent=True)
    with pytest.raises(InvalidInput, match="leave it out"):
        await opened(stale_writes=1).count(Order.pending(), consistent=True)


async def test_consistent_counts_of_the_table_are_never_stale(opened: Open) -> None:
    db = opened(stale_writes=3)
    stale = 0
    for n in range(20):
        await db.put(order(n))
        assert await db.count(Order.key("c1"), consistent=True) == n + 1
        stale += await db.count(Order.key("c1")) != n + 1
    assert stale > 5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("backwards", [False, True])
async def test_a_walk_over_a_stale_index_shows_no_item_twice(opened: Open, seed: int, backwards: bool) -> None:
    db = opened(stale_writes=3, seed=seed)
    await db.put_many([order(n) for n in range(25)])
    for n in range(0, 25, 2):
        await db.update(order(n).key, Order.rating.set(n % 3))
        await db.update(order(n).key, Order.rating.set(2 - n % 3))
        await db.update(order(24 - n).key, Order.status.set("shipped" if n % 4 else "pending"))
    for selection in (Order.pending(), Order.rated()):
        query = selection.newest_first() if backwards else selection
        page = await db.query(query, first=3)
        walked = [each.key for each in page.items]
        while page.has_next:
            page = await db.query(query, first=3, after=page.end)
            walked += [each.key for each in page.items]
        assert len(walked) == len(set(walked)) == await db.count(selection)
        assert walked == [each.key for each in (await db.query(query, first=100)).items]


async def test_throttling_comes_before_anything_is_done(opened: Open) -> None:
    db = opened(throttled=0.5)
    done = 0
    for _ in range(60):
        with suppress(StoreUnavailable):
            await db.upsert(Account.key.id(1), Account.balance.add(1))
            done += 1
    assert 15 < done < 45
    assert await opened().get(Account.key.id(1)) == Account(id=1, balance=done, version=done)
    db = opened(throttled=1)
    for read in (db.get(Account.key.id(1)), db.query(Account.key(1), first=1), db.count(Account.key(1))):
        with pytest.raises(StoreUnavailable, match="try again"):
            await read


async def test_conflicts_strike_only_writes_of_several_items_and_write_nothing(opened: Open) -> None:
    db = opened(conflicts=1)
    await db.put(order(1))
    await db.put_many([order(2), order(3)])
    with pytest.raises(TransactionConflict):  # noqa: PT012  # the end of the block writes
        async with db.transaction() as tx:
            tx.put(order(4))
            tx.delete(order(1).key)
    assert numbers((await db.query(Order.key("c1"), first=9)).items) == [1, 2, 3]


async def test_transact_survives_conflicts(opened: Open) -> None:
    db = opened(conflicts=0.4, seed=3)
    calls = 0

    async def move(tx: Transaction) -> None:
        nonlocal calls
        calls += 1
        source = await tx.get(Account.key.id(1))
        tx.upsert(Account.key.id(1), Account.balance.set((source.balance if source else 100) - 1))
        tx.upsert(Account.key.id(2), Account.balance.add(1))

    for _ in range(30):
        await db.transact(move, tries=20)
    assert calls > 35
    left = await db.get_many([Account.key.id(1), Account.key.id(2)])
    assert [each.balance for each in left if each] == [70, 30]


async def test_transact_gives_up_after_its_tries(opened: Open) -> None:
    calls = 0

    async def write_two(tx: Transaction) -> None:
        nonlocal calls
        calls += 1
        tx.put(order(1))
        tx.put(order(2))

    with pytest.raises(TransactionConflict):
        await opened(conflicts=1).transact(write_two, tries=4)
    assert calls == 4


@pytest.mark.parametrize("stale_writes", [0, 2])
async def test_with_late_expiry_expired_items_stay_and_are_never_shown(
    opened: Open, clock: ManualClock, stale_writes: int
) -> None:
    db = opened(late_expiry=True, stale_writes=stale_writes)
    await db.put(order(1))
    await db.put(order(2))
    await db.update(order(1).key, Order.expires_at.set(NOW + timedelta(seconds=10)))
    chaos_of(db).catch_up()
    clock.advance(timedelta(seconds=10))
    assert await db.sweep() == 0
    assert await in_index(db) == [2]
    assert await db.get(order(1).key, consistent=False) is None
    assert await db.count(Order.key("c1")) == 1
    assert await opened().sweep() == 1  # it had stayed


async def test_an_engine_that_shows_expired_items_is_caught(clock: ManualClock) -> None:
    class Forgetful(MemoryEngine):
        async def get(self, ids: Sequence[ItemId[Any]], *, consistent: bool, now_ms: int) -> list[Any]:
            return await super().get(ids, consistent=consistent, now_ms=0)

    chaos = ChaosEngine(Forgetful(TABLE, MemoryDatabase()), seed=1, late_expiry=True)
    db = OpenTable(TABLE, chaos, clock, create=True)
    await db.put(order(1, expires_at=NOW))
    with pytest.raises(AssertionError, match="has expired"):
        await db.get(order(1).key)


async def test_the_same_seed_does_the_same() -> None:
    async def outcomes(seed: int) -> list[object]:
        engine = ChaosEngine(MemoryEngine(TABLE, MemoryDatabase()), seed=seed, stale_writes=3, throttled=0.2, conflicts=0.5)
        db = OpenTable(TABLE, engine, ManualClock(NOW), create=True)

        async def both(tx: Transaction) -> None:
            tx.upsert(Account.key.id(1), Account.balance.add(1))
            tx.put(order(1))

        seen: list[object] = []
        work: list[Callable[[], Awaitable[object]]] = [
            lambda: db.put(order(2)), lambda: db.transact(both, tries=1), lambda: db.count(Order.pending())
        ]  # fmt: skip
        for n in range(60):
            try:
                seen.append(await work[n % 3]())
            except (StoreUnavailable, TransactionConflict) as error:
                seen.append(str(error))
        return seen

    assert await outcomes(1) == await outcomes(1) != await outcomes(2)
