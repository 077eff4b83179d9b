"""Connections that are kept between uses: to whom they go, and when the pool has them back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from postgres_server import PostgresServer
from tickler.database.postgres import kept_connections
from tickler.database.postgres.kept_connections import KeptConnections

TIMEOUT_S = 10.0


@pytest.fixture
async def pool(postgres_server: PostgresServer) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(postgres_server.dsn, min_size=0, max_size=2) as pool:
        yield pool
        pool.terminate()


async def session(connection: asyncpg.pool.PoolConnectionProxy) -> int:
    found: int = await connection.fetchval("SELECT pg_backend_pid()")
    return found


async def test_a_connection_goes_to_the_next_user_without_the_pool(pool: asyncpg.Pool) -> None:
    kept = KeptConnections(pool, TIMEOUT_S)
    first = await kept.take()
    await kept.give_back(first, keep=True)
    assert pool.get_idle_size() == 0
    assert await kept.take() is first


async def test_one_that_failed_or_is_in_a_transaction_goes_back_to_the_pool(pool: asyncpg.Pool) -> None:
    kept = KeptConnections(pool, TIMEOUT_S)
    await kept.give_back(await kept.take(), keep=False)
    assert pool.get_idle_size() == 1
    begun = await kept.take()
    await begun.execute("BEGIN")
    await kept.give_back(begun, keep=True)
    assert pool.get_idle_size() == 1


async def test_one_that_the_server_closed_is_not_used_again(pool: asyncpg.Pool) -> None:
    kept = KeptConnections(pool, TIMEOUT_S)
    first, other = await kept.take(), await kept.take()
    closed = await session(first)
    await kept.give_back(first, keep=True)
    await other.execute("SELECT pg_terminate_backend($1, 5000)", closed)
    await other.execute("SELECT 1")
    assert await session(await kept.take()) != closed


async def test_whoever_waits_gets_the_next_one(pool: asyncpg.Pool) -> None:
    kept = KeptConnections(pool, TIMEOUT_S)
    one, _ = await kept.take(), await kept.take()
    waiting = asyncio.create_task(kept.take())
    await asyncio.sleep(0)
    await kept.give_back(one, keep=True)
    assert await session(await waiting)


async def test_a_pool_that_others_use_has_each_one_back_at_once(pool: asyncpg.Pool) -> None:
    kept = KeptConnections(pool, TIMEOUT_S, keeps=False)
    await kept.give_back(await kept.take(), keep=True)
    assert pool.get_idle_size() == 1


async def test_the_pool_has_them_back_after_a_while(pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "KEPT_S", 0.0)
    kept = KeptConnections(pool, TIMEOUT_S)
    await kept.give_back(await kept.take(), keep=True)
    async with asyncio.timeout(TIMEOUT_S):
        while not pool.get_idle_size():
            await asyncio.sleep(0)
    assert pool.get_idle_size() == pool.get_size() == 1


async def test_closing_waits_for_what_is_in_use_and_closes_what_is_kept(pool: asyncpg.Pool) -> None:
    kept = KeptConnections(pool, TIMEOUT_S)
    used, idle = await kept.take(), await kept.take()
    await kept.give_back(idle, keep=True)
    closing = asyncio.create_task(kept.close())
    await asyncio.sleep(0)
    assert await session(used)
    await kept.give_back(used, keep=True)
    await closing
    assert pool.get_size() == 0
