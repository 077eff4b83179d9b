"""Questions that come together: answered together, and nobody is held up or spoiled by somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import asyncpg
import pytest

from postgres_server import PostgresServer
from tickler import Cron, ManualClock, Schedule, Tickler, connect
from tickler.database.postgres.request_batcher import MAX_BATCH, RequestBatcher
from tickler.database.store_url import parse_url

NOW_MS = 1_921_406_400_000


class Answering:
    """Doubles numbers, when it is let to."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = asyncio.Event()

    async def __call__(self, asked: Sequence[int]) -> list[int]:
        self.batches.append(list(asked))
        await self.go.wait()
        if 13 in asked:
            raise ValueError("thirteen")
        return [2 * n for n in asked]


async def test_who_asks_while_an_answer_is_on_its_way_is_answered_by_the_next() -> None:
    answering = Answering()
    gathering = RequestBatcher(answering)
    tasks = [asyncio.create_task(gathering.ask(0))]
    await asyncio.sleep(0.01)
    tasks += [asyncio.create_task(gathering.ask(n)) for n in (1, 2, 2, 3)]
    await asyncio.sleep(0.01)
    assert answering.batches == [[0]]
    answering.go.set()
    assert await asyncio.gather(*tasks) == [0, 2, 4, 4, 6]
    assert answering.batches == [[0], [1, 2, 2, 3]]
    assert await gathering.ask(4) == 8


async def test_what_has_to_be_apart_is_asked_one_after_the_other() -> None:
    answering = Answering()
    answering.go.set()
    gathering = RequestBatcher(answering, apart=lambda n: n % 10)
    assert await asyncio.gather(*(gathering.ask(n) for n in (1, 11, 2, 21))) == [2, 22, 4, 42]
    assert answering.batches == [[1, 2], [11], [21]]


async def test_what_goes_wrong_is_told_to_those_who_asked_together_and_to_nobody_else() -> None:
    answering = Answering()
    answering.go.set()
    gathering = RequestBatcher(answering)
    together = await asyncio.gather(gathering.ask(1), gathering.ask(13), return_exceptions=True)
    assert [type(answer) for answer in together] == [ValueError, ValueError]
    assert await gathering.ask(2) == 4


async def test_who_has_gone_is_not_asked_for() -> None:
    answering = Answering()
    gathering = RequestBatcher(answering)
    first, gone, last = (asyncio.create_task(gathering.ask(n)) for n in (1, 2, 3))
    await asyncio.sleep(0)
    gone.cancel()
    answering.go.set()
    assert (await first, await last) == (2, 6)
    assert answering.batches == [[1, 3]]


async def test_an_answer_that_is_long_in_coming_does_not_hold_up_the_next() -> None:
    answering = Answering()
    gathering = RequestBatcher(answering)
    slow = asyncio.create_task(gathering.ask(1))
    await asyncio.sleep(0.01)
    follows = asyncio.create_task(gathering.ask(2))
    while len(answering.batches) < 2:
        await asyncio.sleep(0.01)
    assert not slow.done()
    answering.go.set()
    assert (await slow, await follows) == (2, 4)


async def test_so_many_are_answered_at_once_and_no_more() -> None:
    answering = Answering()
    answering.go.set()
    gathering = RequestBatcher(answering)
    await asyncio.gather(*(gathering.ask(14 + n) for n in range(MAX_BATCH + 5)))
    assert [len(batch) for batch in answering.batches] == [MAX_BATCH, 5]


# On the server.


@pytest.fixture
async def t(postgres_url: str) -> AsyncIterator[Tickler]:
    async with connect(postgres_url, clock=ManualClock(NOW_MS)) as tickler:
        yield tickler


@pytest.fixture
async def other(t: Tickler, postgres_server: PostgresServer, postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_server.dsn)
    await connection.execute(f"SET search_path = {parse_url(postgres_url).parameters['schema']}")
    yield connection
    await connection.close()


def schedule(key: str, payload: object = None) -> Schedule:
    return Schedule(owner="u1", key=key, when=Cron("0 * * * *"), payload=payload)


async def test_a_schedule_that_somebody_holds_does_not_hold_up_the_others(t: Tickler, other: asyncpg.Connection) -> None:
    await t.schedules.put(schedule("held"))
    transaction = other.transaction()
    await transaction.start()
    await other.execute("SELECT FROM tickler_schedules WHERE key = 'held' FOR UPDATE")
    alone = asyncio.create_task(t.schedules.put(schedule("held", payload=0)))
    await asyncio.sleep(0.01)
    held, *puts = (asyncio.create_task(t.schedules.put(schedule(key, payload=1))) for key in ("held", "a", "b", "c"))
    assert [stored.version for stored in await asyncio.gather(*puts)] == [1, 1, 1]
    assert (await t.schedules.put(schedule("d"))).version == 1
    assert [alone.done(), held.done()] == [False, False]
    await transaction.commit()
    assert {(await alone).version, (await held).version} == {2, 3}


async def test_a_new_schedule_that_somebody_is_about_to_write_does_not_hold_up_the_others(
    t: Tickler, other: asyncpg.Connection
) -> None:
    await t.schedules.put(schedule("first"))  # of its zone, which is remembered in the same transaction
    transaction = other.transaction()
    await transaction.start()
    await t.schedules.put(schedule("twin"), using=other)
    twin, *puts = (asyncio.create_task(t.schedules.put(schedule(key, payload=1))) for key in ("twin", "a", "b"))
    assert [stored.version for stored in await asyncio.gather(*puts)] == [1, 1]
    assert not twin.done()
    await transaction.commit()
    assert (await twin).version == 2


async def test_a_put_that_was_given_up_is_undone_and_its_connection_is_free_again(t: Tickler, other: asyncpg.Connection) -> None:
    await t.schedules.put(schedule("held"))
    transaction = other.transaction()
    await transaction.start()
    await other.execute("SELECT FROM tickler_schedules WHERE key = 'held' FOR UPDATE")
    for _ in range(12):  # more than there are connections
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(t.schedules.put(schedule("held", payload="given up")), 0.12)
    async with asyncio.timeout(5):
        assert await t.schedules.get("u1", "held") is not None
    await transaction.commit()
    await t.schedules.put(schedule("next"))
    stored = await t.schedules.get("u1", "held")
    assert stored is not None
    assert (stored.version, stored.payload) == (1, None)


async def test_many_at_once_get_what_is_there(t: Tickler) -> None:
    await asyncio.gather(*(t.schedules.put(schedule(f"k{n}", payload=n)) for n in range(250)))
    got = await asyncio.gather(*(t.schedules.get("u1", f"k{n % 300}") for n in range(600)))
    assert [None if each is None else each.payload for each in got] == [n % 300 if n % 300 < 250 else None for n in range(600)]
