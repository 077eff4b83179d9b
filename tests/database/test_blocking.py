"""The same Tickler without `await`."""

from __future__ import annotations

import inspect
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from tickler.client import Tickler
from tickler.clock import ManualClock
from tickler.connect import connect, connect_sync
from tickler.database.blocking import Blocking
from tickler.errors import (
    InvalidInput,
    NeverFires,
    ScheduleNotFound,
    SchemaMissing,
    StoreUnavailable,
    TicklerError,
    VersionConflict,
)
from tickler.index.index import Index
from tickler.model.index_row import IndexRow
from tickler.model.schedule import Schedule, StoredSchedule
from tickler.records.records import Records
from tickler.schedules.schedules import Schedules
from tickler.when import At, Cron

NOW_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
HOUR_MS = 3_600_000
HOURLY = Cron("0 * * * *")


def schedule(key: str = "digest", payload: object = None) -> Schedule:
    return Schedule(owner="u1", key=key, when=HOURLY, payload=payload)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def t(url: str, clock: ManualClock) -> Iterator[Blocking]:
    with connect_sync(url, clock=clock) as tickler:
        yield tickler


@pytest.fixture
def own_connection(sqlite_url: str) -> Iterator[sqlite3.Connection]:
    """The application's own, made on the thread of the test."""
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("CREATE TABLE posts (title TEXT)")
    yield connection
    connection.close()


def posts(connection: sqlite3.Connection) -> list[str]:
    return [title for (title,) in connection.execute("SELECT title FROM posts ORDER BY title")]


def still_running(before: set[threading.Thread]) -> list[str]:
    """Threads that do not end by themselves."""
    others = set(threading.enumerate()) - before
    for thread in others:
        thread.join(2)
    return [thread.name for thread in others if thread.is_alive()]


# The same calls.


def test_every_call_works_without_await(t: Blocking, clock: ManualClock) -> None:
    put = t.schedules.put(schedule(payload={"a": 1}))
    assert isinstance(put, StoredSchedule)
    assert t.schedules.get("u1", "digest") == put
    assert t.schedules.put_many(schedule(f"k{n}") for n in range(3)) == 3
    assert t.schedules.pause("u1", "k0").state == "paused"
    assert t.schedules.resume("u1", "k0").state == "active"
    assert t.schedules.update(schedule("k1", payload=2), version=1).version == 2
    page = t.schedules.list(owner="u1", limit=2)
    assert [each.key for each in page.items] == ["digest", "k0"]
    assert [each.key for each in t.schedules.list(after=page.next).items] == ["k1", "k2"]
    assert t.schedules.delete("u1", "k2") is True
    assert t.schedules.declare("system", [Schedule(owner="system", key="a", when=HOURLY)]).added == ["a"]
    assert t.schedules.pause_all("system") == t.schedules.delete_all("system") == 1

    t.index.upsert(IndexRow("u2", "mine", HOURLY, NOW_MS + 5))
    assert t.index.count() == 4
    assert t.index.next_due() == NOW_MS + 5
    clock.advance(timedelta(hours=1))
    assert [row.key for row in t.index.claim_due(clock.now_ms(), limit=1)] == ["mine"]
    assert len(t.index.claim_due(clock.now_ms())) == 3
    t.index.remove("u2", "mine")

    assert t.records.put("setting", "a", [1]).version == 1
    assert t.records.get("setting", "a").value == [1]
    assert len(t.records.list("setting")) == 1
    assert t.records.delete("setting", "a") is True
    assert t.records.prune() == 0


def test_what_is_no_call_is_passed_through(t: Blocking, url: str) -> None:
    assert t.capabilities == connect(url).capabilities
    with pytest.raises(AttributeError, match="nonsense"):
        _ = t.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        _ = t.schedules.nonsense


async def test_both_kinds_see_the_same_store(url: str, clock: ManualClock) -> None:
    with connect_sync(url, clock=clock) as blocking:
        put = blocking.schedules.put(schedule())
    async with connect(url, clock=clock) as t:
        assert await t.schedules.get("u1", "digest") == put


def test_names_docstrings_and_signatures_are_those_of_the_originals() -> None:
    t = connect_sync("sqlite://")
    for part, kind in ((t, Tickler), (t.schedules, Schedules), (t.index, Index), (t.records, Records)):
        calls = [name for name, call in vars(kind).items() if inspect.iscoroutinefunction(call) and not name.startswith("_")]
        calls = [name for name in calls if name not in ("open", "close")]  # these also start and stop the loop
        assert calls or part is t
        for name in calls:
            original, wrapped = getattr(kind, name), getattr(part, name)
            assert wrapped.__name__ == name
            assert wrapped.__doc__ == original.__doc__
            assert wrapped.__qualname__ == original.__qualname__
            parameters = list(inspect.signature(original).parameters.values())[1:]
            assert list(inspect.signature(wrapped).parameters.values()) == parameters
            assert not inspect.iscoroutinefunction(wrapped)


# Errors.


def test_errors_travel_to_the_caller_with_their_fields(t: Blocking) -> None:
    with pytest.raises(NeverFires) as never:
        t.schedules.put(Schedule(owner="u1", key="digest", when=At("2020-01-01T00:00:00Z")))
    assert (never.value.owner, never.value.key) == ("u1", "digest")
    with pytest.raises(ScheduleNotFound):
        t.schedules.pause("u1", "nothing")
    t.schedules.put(schedule())
    with pytest.raises(VersionConflict) as conflict:
        t.schedules.update(schedule(payload=1), version=7)
    assert (conflict.value.expected, conflict.value.found) == (7, 1)
    with pytest.raises(InvalidInput, match=r"^limit: "):
        t.index.claim_due(NOW_MS, 0)
    with pytest.raises(TypeError):
        t.schedules.put()
    assert t.index.count() == 1, "and it still works"


@pytest.mark.parametrize("when", ["before", "after"])
def test_use_outside_with_says_how_to_use_it(url: str, when: str) -> None:
    t = connect_sync(url)
    schedules = t.schedules
    if when == "after":
        with t:
            t.schedules.put(schedule())
    calls: list[Callable[[], object]] = [
        lambda: t.schedules.put(schedule()),
        lambda: t.index.count(),
        lambda: schedules.get("u1", "digest"),
    ]
    for call in calls:
        with pytest.raises(TicklerError, match=r"this is not open: use it inside `with`, or call open\(\) first$"):
            call()


def test_it_can_be_entered_again(url: str, clock: ManualClock) -> None:
    t = connect_sync(url, clock=clock)
    for n in range(3):
        with t as opened:
            assert opened is t
            assert t.index.count() == n
            t.schedules.put(schedule(f"k{n}"))


def test_an_error_in_the_body_leaves_with_it_and_closes(url: str) -> None:
    before = set(threading.enumerate())
    t = connect_sync(url)

    def fail() -> None:
        with t:
            t.schedules.put(schedule())
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        fail()
    with pytest.raises(TicklerError):
        t.index.count()
    assert still_running(before) == []


# Threads and loops.


def test_several_threads_may_call_at_once(t: Blocking) -> None:
    def work(thread: int) -> list[str]:
        for n in range(10):
            t.schedules.put(schedule(f"{thread}-{n}", payload=thread))
        claimed: list[str] = []
        started.wait(30)
        while rows := t.index.claim_due(NOW_MS + HOUR_MS, limit=3):
            claimed += [row.key for row in rows]
        return claimed

    started = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        shares = list(threads.map(work, range(8)))
    assert Counter(key for share in shares for key in share) == Counter(f"{thread}-{n}" for thread in range(8) for n in range(10))
    assert t.index.count() == 80


def test_errors_travel_to_the_thread_that_called(t: Blocking) -> None:
    def work(thread: int) -> str:
        try:
            t.schedules.pause("u1", f"nothing {thread}")
        except ScheduleNotFound as error:
            return error.key
        return ""

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(40))) == [f"nothing {thread}" for thread in range(40)]


async def test_it_works_where_an_event_loop_is_running_already(url: str, clock: ManualClock) -> None:
    """It has a loop of its own, in a thread of its own; it blocks this one, which is for the caller to know."""
    with connect_sync(url, clock=clock) as t:
        assert t.schedules.put(schedule()).version == 1
        assert t.index.count() == 1


def test_two_may_be_open_at_once(url: str, clock: ManualClock) -> None:
    with connect_sync(url, clock=clock) as one, connect_sync(url, clock=clock) as other:
        one.schedules.put(schedule())
        assert other.schedules.get("u1", "digest") == one.schedules.get("u1", "digest")


def test_entering_what_is_open_leaves_no_thread_behind(url: str) -> None:
    before = set(threading.enumerate())
    t = connect_sync(url)
    with suppress(TicklerError), t, t:
        pass
    assert still_running(before) == []


def test_no_thread_is_left_behind(url: str) -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        with connect_sync(url) as t:
            t.schedules.put(schedule())
            assert set(threading.enumerate()) > before
    assert still_running(before) == []


def test_no_thread_is_left_behind_when_it_cannot_be_opened(url: str, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(SchemaMissing), connect_sync(url, create=False):
        pass
    with pytest.raises(StoreUnavailable), connect_sync(f"sqlite:///{tmp_path}/no/such/t.db"):
        pass
    with pytest.raises(StoreUnavailable), connect_sync("postgresql://127.0.0.1:1/x"):
        pass
    assert still_running(before) == []


# A transaction of the caller's.


def test_a_write_joins_a_transaction_of_the_calling_thread(
    sqlite_url: str, own_connection: sqlite3.Connection, clock: ManualClock
) -> None:
    with connect_sync(sqlite_url, clock=clock) as t:
        own_connection.execute("BEGIN")
        own_connection.execute("INSERT INTO posts VALUES ('first')")
        stored = t.schedules.put(schedule(), using=own_connection)
        t.index.upsert(IndexRow("u2", "mine", HOURLY, NOW_MS), using=own_connection)
        assert t.index.count() == 0, "nobody else sees it before the commit"
        own_connection.execute("COMMIT")
        assert t.schedules.get("u1", "digest") == stored
        assert t.index.count() == 2
        assert posts(own_connection) == ["first"]


def test_a_write_is_rolled_back_with_the_callers_transaction(
    sqlite_url: str, own_connection: sqlite3.Connection, clock: ManualClock
) -> None:
    with connect_sync(sqlite_url, clock=clock) as t:
        t.schedules.put(schedule("kept"))
        own_connection.execute("BEGIN")
        own_connection.execute("INSERT INTO posts VALUES ('first')")
        t.schedules.put(schedule(), using=own_connection)
        t.schedules.delete("u1", "kept", using=own_connection)
        t.schedules.put_many([schedule(f"k{n}") for n in range(10)], using=own_connection)
        own_connection.execute("ROLLBACK")
        assert [each.key for each in t.schedules.list().items] == ["kept"]
        assert t.index.count() == 1
        assert posts(own_connection) == []


def test_a_write_that_fails_is_undone_alone(sqlite_url: str, own_connection: sqlite3.Connection, clock: ManualClock) -> None:
    past = Schedule(owner="u1", key="past", when=At("2020-01-01T00:00:00Z"))
    with connect_sync(sqlite_url, clock=clock) as t:
        own_connection.execute("BEGIN")
        own_connection.execute("INSERT INTO posts VALUES ('first')")
        t.schedules.put(schedule(), using=own_connection)
        with pytest.raises(NeverFires):
            t.schedules.put_many([schedule("new"), past], using=own_connection)
        with pytest.raises(ScheduleNotFound):
            t.schedules.pause("u1", "nothing", using=own_connection)
        assert own_connection.in_transaction
        own_connection.execute("COMMIT")
        assert [each.key for each in t.schedules.list().items] == ["digest"]
        assert posts(own_connection) == ["first"]


def test_every_thread_may_bring_a_transaction_of_its_own(sqlite_url: str, clock: ManualClock) -> None:
    with connect_sync(sqlite_url, clock=clock) as t:

        def work(thread: int) -> None:
            connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
            for n in range(5):
                connection.execute("BEGIN IMMEDIATE")
                t.schedules.put(schedule(f"{thread}-{n}"), using=connection)
                connection.execute("COMMIT" if n % 2 == 0 else "ROLLBACK")
            connection.close()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        expected = [f"{thread}-{n}" for thread in range(4) for n in (0, 2, 4)]
        assert [each.key for each in t.schedules.list().items] == expected
        assert t.index.count() == 12


async def test_a_transaction_is_joined_where_an_event_loop_is_running_too(
    sqlite_url: str, own_connection: sqlite3.Connection, clock: ManualClock
) -> None:
    with connect_sync(sqlite_url, clock=clock) as t:
        own_connection.execute("BEGIN")
        t.schedules.put(schedule(), using=own_connection)
        own_connection.execute("COMMIT")
        assert t.index.count() == 1


@pytest.mark.parametrize(
    ("using", "said"),
    [(object(), "^using= got a object; pass"), (sqlite3, "^using= got a module; pass"), ("sqlite://", "^using= got a str; pass")],
    ids=["object", "module", "text"],
)
def test_what_is_no_connection_is_refused(t: Blocking, using: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        t.schedules.put(schedule(), using=using)
    assert t.index.count() == 0


def test_a_connection_without_a_transaction_is_refused(
    sqlite_url: str, own_connection: sqlite3.Connection, clock: ManualClock
) -> None:
    with connect_sync(sqlite_url, clock=clock) as t:
        with pytest.raises(InvalidInput, match=r"^using= has no open transaction to join: execute 'BEGIN'"):
            t.schedules.put(schedule(), using=own_connection)
        assert t.index.count() == 0


def test_a_connection_to_another_file_is_refused(sqlite_url: str, tmp_path: Path, clock: ManualClock) -> None:
    other = sqlite3.connect(tmp_path / "other.db", isolation_level=None)
    other.execute("BEGIN")
    with (
        connect_sync(sqlite_url, clock=clock) as t,
        pytest.raises(InvalidInput, match=r"^using= is connected to another database"),
    ):
        t.schedules.put(schedule(), using=other)
    assert other.in_transaction
    other.close()


def test_a_connection_of_another_thread_is_an_error_and_hangs_nobody(sqlite_url: str, clock: ManualClock) -> None:
    """sqlite3 refuses it; the refusal reaches whoever called, and the Tickler goes on."""
    with connect_sync(sqlite_url, clock=clock) as t, ThreadPoolExecutor(1) as elsewhere:
        theirs = elsewhere.submit(sqlite3.connect, sqlite_url.removeprefix("sqlite:///"), isolation_level=None).result()
        elsewhere.submit(theirs.execute, "BEGIN").result()
        with pytest.raises((TicklerError, sqlite3.ProgrammingError)):
            t.schedules.put(schedule(), using=theirs)
        assert t.index.count() == 0
        elsewhere.submit(theirs.close).result()


def test_use_after_a_fork_is_a_clear_error_and_not_a_wait_for_ever(sqlite_url: str) -> None:
    script = f"""
import os, sys, tickler
t = tickler.connect_sync({sqlite_url!r}).open()
child = os.fork()
if child == 0:
    try:
        t.index.count()
    except tickler.InvalidInput as error:
        t.close()  # the parent's, so nothing happens
        os._exit(0 if "after the fork" in str(error) else 1)
    os._exit(2)  # it did not raise
status = os.waitpid(child, 0)[1]
t.close()
t.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
