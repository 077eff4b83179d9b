"""Calls of one SQLite connection that come together: one commit for all, and each succeeds or fails by itself."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tickler import StoreUnavailable
from tickler.database.sqlite.connection import Connection


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Connection]:
    connection = Connection(str(tmp_path / "turns.db"), "sqlite:///turns.db", 0.2)
    await connection.open()
    await connection.write(lambda raw: raw.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)"))
    yield connection
    await connection.close()


def insert(n: int, text: str = "") -> Callable[[sqlite3.Connection], int]:
    def work(raw: sqlite3.Connection) -> int:
        raw.execute("INSERT INTO t VALUES (?, ?)", (n, text))
        return n

    return work


async def numbers(connection: Connection) -> list[int]:
    return [n for (n,) in await connection.read(lambda raw: raw.execute("SELECT n FROM t ORDER BY n").fetchall())]


async def traced(connection: Connection) -> list[str]:
    statements: list[str] = []
    await connection.read(lambda raw: raw.set_trace_callback(statements.append))
    return statements


async def test_writes_that_come_together_share_a_commit(connection: Connection) -> None:
    statements = await traced(connection)
    assert await asyncio.gather(*(connection.write(insert(n)) for n in range(50))) == list(range(50))
    assert await numbers(connection) == list(range(50))
    assert statements.count("COMMIT") <= 2  # the first may have begun before the rest was there


async def test_one_that_fails_is_undone_alone(connection: Connection) -> None:
    def spoiled(raw: sqlite3.Connection) -> None:
        insert(2)(raw)
        raise ValueError("no")

    calls = [insert(1), spoiled, insert(1), insert(3)]
    first, failed, twice, third = await asyncio.gather(*(connection.write(call) for call in calls), return_exceptions=True)
    assert (first, type(failed), third) == (1, ValueError, 3)
    assert isinstance(twice, StoreUnavailable)
    assert isinstance(twice.__cause__, sqlite3.IntegrityError)
    assert await numbers(connection) == [1, 3]


async def test_what_undoes_all_is_told_to_all(connection: Connection) -> None:
    """A full disk ends the whole transaction: who is told of success has it, and nobody else does."""
    await connection.read(lambda raw: raw.execute("PRAGMA max_page_count = 20").fetchall())
    calls = [insert(1), insert(2, "x" * 1_000_000), insert(3)]
    outcomes = await asyncio.gather(*(connection.write(call) for call in calls), return_exceptions=True)
    assert isinstance(outcomes[1], StoreUnavailable)
    assert await numbers(connection) == [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert await connection.write(insert(4)) == 4


async def test_a_lock_that_is_not_to_be_had_is_told_to_all_who_came_together(connection: Connection) -> None:
    other = sqlite3.connect(connection.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    outcomes = await asyncio.gather(*(connection.write(insert(n)) for n in range(3)), return_exceptions=True)
    assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
    other.close()
    assert await numbers(connection) == []


async def test_one_whose_caller_has_gone_changes_nothing_and_the_others_go_on(connection: Connection) -> None:
    other = sqlite3.connect(connection.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits = asyncio.create_task(connection.write(insert(0)))
    await asyncio.sleep(0.02)
    gone, stays = (asyncio.create_task(connection.write(insert(n))) for n in (1, 2))
    await asyncio.sleep(0)
    gone.cancel()
    other.close()
    assert (await waits, await stays) == (0, 2)
    assert await numbers(connection) == [0, 2]


async def test_one_whose_caller_goes_while_it_is_written_is_undone(connection: Connection) -> None:
    begun, go = threading.Event(), threading.Event()

    def slowly(raw: sqlite3.Connection) -> None:
        insert(1)(raw)
        begun.set()
        go.wait(10)

    leaving = asyncio.create_task(connection.write(slowly))
    await asyncio.to_thread(begun.wait, 10)
    leaving.cancel()
    await asyncio.wait([leaving])
    go.set()
    assert await numbers(connection) == []


async def test_one_whose_caller_goes_before_the_commit_of_all_is_undone_alone(connection: Connection) -> None:
    begun, go = threading.Event(), threading.Event()

    def slowly(raw: sqlite3.Connection) -> int:
        begun.set()
        go.wait(10)
        return insert(2)(raw)

    other = sqlite3.connect(connection.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits = asyncio.create_task(connection.write(insert(0)))
    await asyncio.sleep(0.02)
    leaving, stays = asyncio.create_task(connection.write(insert(1))), asyncio.create_task(connection.write(slowly))
    await asyncio.sleep(0)
    other.close()
    await waits
    await asyncio.to_thread(begun.wait, 10)  # the first is written, and not committed yet
    leaving.cancel()
    await asyncio.wait([leaving])
    go.set()
    assert await stays == 2
    assert await numbers(connection) == [0, 2]


async def test_a_loop_that_is_closed_holds_up_nobody(connection: Connection) -> None:
    begun, go = threading.Event(), threading.Event()

    def slowly(raw: sqlite3.Connection) -> None:
        begun.set()
        go.wait(10)

    def elsewhere() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(connection.read(slowly))
        loop.call_later(0.01, loop.stop)
        loop.run_forever()
        begun.wait(10)
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
        loop.close()

    await asyncio.to_thread(elsewhere)
    go.set()
    assert await connection.write(insert(1)) == 1


async def test_whatever_a_call_raises_the_next_are_served(connection: Connection) -> None:
    def ends(raw: sqlite3.Connection) -> None:
        next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await connection.read(ends)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await connection.write(ends)

    def leaves(raw: sqlite3.Connection) -> None:
        raise SystemExit

    for ask in (connection.read, connection.write):
        with pytest.raises(RuntimeError, match="SystemExit"):
            await ask(leaves)
    assert await connection.write(insert(1)) == 1


async def test_reads_and_writes_of_many_tasks_all_come_back(connection: Connection) -> None:
    async def task(n: int) -> bool:
        await connection.write(insert(n))
        return n in await numbers(connection)

    assert all(await asyncio.gather(*(task(n) for n in range(600))))
