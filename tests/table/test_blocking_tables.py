"""Tables without `await`."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tickler
from tickler import InvalidInput, Schedule
from tickler.database.blocking import Blocking
from tickler.errors import (
    ConditionFailed,
    InvalidCursor,
    ItemNotFound,
    SchemaMissing,
    StoreUnavailable,
    TransactionConflict,
    VersionConflict,
)
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.blocking_table import BlockingTable
from tickler.table.open_table import OpenTable

shop = Table("blocking_shop")


class Order(Entity, table=shop):
    id: Attr[str] = attr()
    status: Attr[str] = attr(default="new")
    count: Attr[int] = attr(default=0)
    key = Key("ORDER" / id, "ORDER")
    fresh = Index("gsi1", "NEW", id, when=status == "new")


class Account(Entity, table=shop):
    id: Attr[str] = attr()
    version: Attr[int] = attr(default=0, version=True)
    key = Key("ACCOUNT" / id, "ACCOUNT")


@pytest.fixture(params=["memory", "sqlite", "postgres", "dynamodb"])
def url(request: pytest.FixtureRequest) -> str:
    return "memory://" if request.param == "memory" else url_of(request, request.param)


@pytest.fixture
def db(url: str) -> Iterator[BlockingTable]:
    with shop.connect_sync(url) as opened:
        yield opened


@pytest.fixture
def file_db(sqlite_url: str) -> Iterator[BlockingTable]:
    """For what does not depend on where the table is."""
    with shop.connect_sync(sqlite_url) as opened:
        yield opened


def url_of(request: pytest.FixtureRequest, store: str) -> str:
    return str(request.getfixturevalue(f"{store}_url")).replace("&shards=4", "")


def orders(count: int) -> list[Order]:
    return [Order(id=f"{n:04}") for n in range(count)]


def test_items_are_put_read_changed_and_deleted(db: BlockingTable) -> None:
    order = db.put(Order(id="1"))
    assert order == Order(id="1")
    assert db.get(order.key) == order
    assert db.update(order.key, Order.count.add(2), when=Order.status == "new").count == 2
    assert db.upsert(Order.key.id("2"), Order.count.add(1)) == Order(id="2", count=1)
    assert db.get_many([Order.key.id("2"), Order.key.id("3")]) == [Order(id="2", count=1), None]
    assert db.delete(order.key) == Order(id="1", count=2)
    assert db.get(order.key) is None


def test_queries_have_pages_in_both_directions(db: BlockingTable) -> None:
    db.put_many(orders(5))
    assert db.count(Order.fresh()) == 5
    page = db.query(Order.fresh(), first=2)
    assert [order.id for order in page.items] == ["0000", "0001"]
    page = db.query(Order.fresh(), first=2, after=page.end)
    assert [order.id for order in page.items] == ["0002", "0003"]
    page = db.query(Order.fresh(), last=2, before=page.start)
    assert [order.id for order in page.items] == ["0000", "0001"]


def test_a_loop_reads_page_by_page(db: BlockingTable) -> None:
    assert db.load(order for order in orders(600)) == 600
    assert list(db.iterate(Order.fresh())) == orders(600)
    assert [order.id for order in db.iterate(Order.fresh(), where=Order.id > "0597")] == ["0598", "0599"]


def test_a_transaction_writes_all_at_the_end_of_the_block(db: BlockingTable) -> None:
    db.put(Order(id="1"))
    with db.transaction() as tx:
        order = tx.get(Order.key.id("1"))
        tx.update(order.key, Order.status.set("paid"))
        tx.create(Order(id="2"))
        assert db.get(Order.key.id("2")) is None
    assert db.get_many([Order.key.id("1"), Order.key.id("2")]) == [Order(id="1", status="paid"), Order(id="2")]
    with pytest.raises(InvalidInput, match="has ended"):
        tx.put(Order(id="3"))


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), KeyboardInterrupt(), StopIteration(3), SystemExit(1)], ids=repr)
def test_an_exception_in_the_block_travels_and_writes_nothing(file_db: BlockingTable, error: BaseException) -> None:
    def attempt() -> None:
        with file_db.transaction() as tx:
            tx.put(Order(id="1"))
            raise error

    with pytest.raises(type(error)) as raised:
        attempt()
    assert raised.value is error
    assert file_db.get(Order.key.id("1")) is None


def test_errors_travel_with_their_fields(db: BlockingTable) -> None:
    with pytest.raises(ItemNotFound):
        db.update(Order.key.id("1"), Order.count.add(1))
    db.put(Order(id="1"))
    with pytest.raises(ConditionFailed) as failed:
        db.create(Order(id="1", count=3))
    assert failed.value.found == Order(id="1")
    account = db.put(Account(id="1"))
    db.put(account)
    with pytest.raises(VersionConflict):
        db.put(account)
    with pytest.raises(InvalidCursor):
        db.query(Order.fresh(), first=1, after="nonsense")
    with pytest.raises(InvalidInput, match="at least one change"):
        db.update(Order.key.id("1"))
    with pytest.raises(AttributeError):
        db.nonsense()


def conflict(db: BlockingTable) -> None:
    with db.transaction() as tx:
        tx.get(Order.key.id("1"))
        tx.put(Order(id="2"))
        db.put(Order(id="1", count=5))


def test_a_conflict_is_raised_at_the_end_of_the_block(db: BlockingTable) -> None:
    db.put(Order(id="1"))
    with pytest.raises(TransactionConflict):
        conflict(db)
    assert db.get(Order.key.id("2")) is None


def test_a_function_of_a_transaction_is_repeated_until_it_does_not_conflict(db: BlockingTable) -> None:
    db.put(Order(id="1"))
    tries = []

    def work(tx: Any) -> str:
        order = tx.get(Order.key.id("1"))
        tries.append(threading.current_thread())
        if len(tries) == 1:
            db.update(order.key, Order.count.add(10))
        tx.update(order.key, Order.count.set(order.count + 1))
        return "done"

    assert db.transact(work) == "done"
    assert tries == [threading.current_thread()] * 2
    assert db.get(Order.key.id("1")).count == 11


def test_a_function_that_always_conflicts_gives_up(file_db: BlockingTable) -> None:
    file_db.put(Order(id="1"))
    tries = []

    def work(tx: Any) -> None:
        order = tx.get(Order.key.id("1"))
        tries.append(order.count)
        file_db.update(order.key, Order.count.add(1))
        tx.update(order.key, Order.count.set(0))

    with pytest.raises(TransactionConflict):
        file_db.transact(work, tries=3)
    assert tries == [0, 1, 2]


def test_a_snapshot_reads_one_state(request: pytest.FixtureRequest) -> None:
    for store in ("sqlite", "postgres"):
        with shop.connect_sync(url_of(request, store)) as db:
            db.put_many(orders(3))
            with db.snapshot() as before:
                db.put_many(orders(9))
                assert len(list(before.iterate(Order.fresh()))) == before.count(Order.fresh()) == 3
                assert before.get(Order.key.id("0008")) is None
            assert db.count(Order.fresh()) == 9


@pytest.mark.parametrize("store", ["sqlite://", "dynamodb"])
def test_where_there_are_no_snapshots_the_error_says_so(request: pytest.FixtureRequest, store: str) -> None:
    url = store if "://" in store else url_of(request, store)
    with shop.connect_sync(url) as db, pytest.raises(InvalidInput, match="no snapshots"), db.snapshot():
        pass


def test_what_a_write_would_do_is_explained(file_db: BlockingTable) -> None:
    file_db.put(Order(id="1"))
    (explanation,) = file_db.explain(lambda tx: tx.update(Order.key.id("1"), Order.status.set("paid")))
    assert "gsi1" in str(explanation)
    assert file_db.get(Order.key.id("1")).status == "new"


class TestAbandonedIterators:
    @pytest.fixture
    def closed(self, monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
        """The thread of each iterator's end."""
        ends: list[threading.Thread] = []

        async def iterate(self: OpenTable) -> Any:
            try:
                for n in range(1_000):
                    yield n
            finally:
                ends.append(threading.current_thread())

        monkeypatch.setattr(OpenTable, "iterate", iterate)
        return ends

    def test_one_is_closed_when_the_loop_breaks(self, file_db: BlockingTable, closed: list[threading.Thread]) -> None:
        for n in file_db.iterate():
            if n == 3:
                break
        gc.collect()
        assert [thread.name for thread in closed] == ["tickler-loop"]

    def test_one_is_closed_when_the_loop_raises(self, file_db: BlockingTable, closed: list[threading.Thread]) -> None:
        def divide() -> None:
            for n in file_db.iterate():
                n / 0

        with pytest.raises(ZeroDivisionError):
            divide()
        gc.collect()
        assert len(closed) == 1

    def test_one_may_be_closed_by_hand(self, file_db: BlockingTable, closed: list[threading.Thread]) -> None:
        items = file_db.iterate()
        assert next(items) == 0
        items.close()
        assert len(closed) == 1
        assert list(items) == []

    def test_one_that_outlives_the_table_is_no_error(self, sqlite_url: str, closed: list[threading.Thread]) -> None:
        with shop.connect_sync(sqlite_url) as db:
            items = db.iterate()
            assert next(items) == 0
        items.close()  # pytest would show what is raised in a destructor
        unused = shop.connect_sync(sqlite_url).iterate()
        del unused
        gc.collect()

    def test_one_may_be_collected_on_the_thread_of_the_event_loop(
        self, file_db: BlockingTable, closed: list[threading.Thread]
    ) -> None:
        kept = [file_db.iterate()]
        assert next(kept[0]) == 0
        file_db.load([Order(id="1")], on_progress=lambda *progress: kept.clear())
        assert file_db.get(Order.key.id("1")) == Order(id="1"), "the loop has gone on"
        assert len(closed) == 1


class TestBesideATickler:
    def test_both_share_a_connection_and_a_transaction(self, url: str, dynamodb_table: str) -> None:
        with tickler.connect_sync(url) as t, shop.connect_sync(t, name=dynamodb_table, create=True) as db:
            with db.transaction() as tx:
                tx.put(Order(id="1"))
                t.schedules.put(Schedule(owner="u1", key="1", when="@hourly"), using=tx)
            assert db.get(Order.key.id("1")) == Order(id="1")
            assert t.schedules.get("u1", "1").state == "active"

    def test_the_tickler_stays_open_when_the_table_is_closed(self, sqlite_url: str) -> None:
        with tickler.connect_sync(sqlite_url) as t:
            for _ in range(2):
                with shop.connect_sync(t) as db:
                    db.put(Order(id="1"))
                assert t.index.count() == 0

    def test_after_the_tickler_the_table_is_closed_too(self, sqlite_url: str) -> None:
        with tickler.connect_sync(sqlite_url) as t:
            db = shop.connect_sync(t).open()
        with pytest.raises(InvalidInput, match="this is not open: use it inside `with`"):
            db.get(Order.key.id("1"))
        db.close()

    def test_a_tickler_that_is_not_open_yet_is_an_error(self, sqlite_url: str) -> None:
        db = shop.connect_sync(tickler.connect_sync(sqlite_url))
        with pytest.raises(InvalidInput, match="this is not open: use it inside `with`"):
            db.open()

    def test_a_table_that_cannot_be_opened_leaves_the_tickler_open(self, sqlite_url: str) -> None:
        with tickler.connect_sync(sqlite_url) as t:
            with pytest.raises(SchemaMissing, match="blocking_shop"):
                shop.connect_sync(t, create=False).open()
            assert t.index.count() == 0

    def test_a_tickler_with_await_is_refused(self, sqlite_url: str) -> None:
        with pytest.raises(InvalidInput, match=r"what tickler\.connect_sync returned"):
            shop.connect_sync(tickler.connect(sqlite_url))  # type: ignore[arg-type]  # what is tested
        with pytest.raises(InvalidInput, match="use connect_sync"):
            shop.connect(tickler.connect_sync(sqlite_url))


def test_several_threads_may_use_one_table(db: BlockingTable) -> None:
    db.put(Order(id="counter"))

    def work(number: int) -> int:
        for n in range(5):
            db.put(Order(id=f"{number}-{n}", status="old"))
            db.update(Order.key.id("counter"), Order.count.add(1))
        with db.transaction() as tx:
            tx.put(Order(id=f"{number}"))
        return len(list(db.iterate(Order.key("counter"))))

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(work, range(6))) == [1] * 6
    assert db.get(Order.key.id("counter")).count == 30
    assert [order.id for order in db.iterate(Order.fresh())] == ["0", "1", "2", "3", "4", "5", "counter"]


def test_a_callback_on_the_thread_of_the_event_loop_cannot_wait_for_the_table() -> None:
    with shop.connect_sync("memory://") as db:
        with pytest.raises(InvalidInput, match="this is the thread of the event loop, which would wait for itself"):
            db.load([Order(id="1")], on_progress=lambda *_: db.count(Order.fresh()))
        assert db.count(Order.fresh()) == 1


@pytest.mark.parametrize("use", [lambda db: db.get(Order.key.id("1")), lambda db: list(db.iterate(Order.fresh()))])
def test_a_table_that_is_not_open_is_an_error(sqlite_url: str, use: Callable[[Any], object]) -> None:
    db = shop.connect_sync(sqlite_url)
    with pytest.raises(InvalidInput, match="this is not open: use it inside `with`"):
        use(db)
    with db:
        use(db)
    with pytest.raises(InvalidInput, match="this is not open"):
        use(db)
    with db:
        use(db)


def test_a_part_of_a_table_does_not_end_its_event_loop(file_db: BlockingTable) -> None:
    engine = file_db.engine
    assert isinstance(engine, Blocking)
    engine.close()
    with pytest.raises(StoreUnavailable, match="is closed"):
        file_db.put(Order(id="1"))


def test_a_missing_file_is_an_error_and_leaves_nothing_running(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(SchemaMissing, match="no table 'blocking_shop'"):
        shop.connect_sync(f"sqlite:///{tmp_path / 'shop.db'}?create=0").open()
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)  # it ends by itself
        assert not thread.is_alive()
    assert list(tmp_path.iterdir()) == []
