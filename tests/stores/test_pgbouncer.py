"""Behind a real PgBouncer that shares its sessions between transactions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import asyncpg
import pytest

from pgbouncer_server import PgBouncer, needs_pgbouncer
from postgres_server import PostgresServer
from tickler import Cron, IndexRow, ManualClock, Schedule, StoreUnavailable, connect

NOW_MS = 1_921_406_400_000
HOURLY = Cron("0 * * * *")

pytestmark = needs_pgbouncer


@pytest.fixture(scope="module")
def bouncer(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with PgBouncer(postgres_server, tmp_path_factory.mktemp("pgbouncer")) as bouncer:
        yield bouncer.dsn


async def test_schedules_and_claims_work_while_many_clients_share_few_sessions(bouncer: str, postgres_url: str) -> None:
    url = f"{bouncer}?schema={postgres_url.partition('&schema=')[2]}"
    async with connect(url, clock=ManualClock(NOW_MS)) as first, connect(url, clock=ManualClock(NOW_MS)) as second:
        await first.schedules.put_many([Schedule(owner="u1", key=f"k{n:04}", when=HOURLY) for n in range(1200)])
        await asyncio.gather(
            *(t.schedules.put(Schedule(owner="u2", key=f"k{n}", when=HOURLY)) for n in range(20) for t in (first, second))
        )

        async def claim_all(number: int) -> list[IndexRow]:
            t = (first, second)[number % 2]
            mine: list[IndexRow] = []
            while claimed := await t.index.claim_due(NOW_MS + 3_600_000, 50):
                mine += claimed
            return mine

        shares = await asyncio.gather(*(claim_all(number) for number in range(8)))
        claimed = Counter((row.owner, row.key) for share in shares for row in share)
        assert len(claimed) == claimed.total() == 1220


async def test_sessions_are_really_shared(bouncer: str) -> None:
    """What makes the test above worth something: this is not one session a client."""
    connections = [await asyncpg.connect(bouncer, statement_cache_size=0) for _ in range(6)]
    pids = {await connection.fetchval("SELECT pg_backend_pid()") for connection in connections for _ in range(3)}
    for connection in connections:
        await connection.close()
    assert len(pids) <= 3


async def test_a_callers_pool_that_keeps_statements_is_told_what_to_change(bouncer: str, postgres_url: str) -> None:
    schema = postgres_url.partition("&schema=")[2]
    async with connect(postgres_url):
        pass  # makes the tables
    async with asyncpg.create_pool(bouncer, min_size=4, max_size=4) as pool, connect(pool=pool, schema=schema, create=False) as t:
        calls = [call for _ in range(20) for call in (t.index.next_due(), t.index.count(), t.index.set_aside())]
        answers = await asyncio.gather(*calls, return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    assert errors, "no two clients met on one session, so nothing was shown"
    assert {type(error) for error in errors} == {StoreUnavailable}
    assert "statement_cache_size=0" in str(errors[0])
