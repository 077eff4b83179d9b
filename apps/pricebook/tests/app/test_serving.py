"""The web server and the worker in one process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import aiohttp
import pytest

from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.app.handlers import begin_sweeps, sweep
from pricebook.editions.staging import Staged
from pricebook.identifiers import SWEEP_OWNER
from pricebook.model import BulkChunk
from pricebook.money import Money
from pricebook.serving import serve
from tickler import PythonTarget
from tickler.web import listen

HANG_S = 30


@pytest.fixture
async def book(sqlite_url: str) -> AsyncIterator[Pricebook]:
    async with open_pricebook(Settings(store=sqlite_url)) as opened:
        yield opened


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:  # also one that is taken and dropped while the server ends
        return False
    writer.close()
    return True


async def test_a_signal_lets_what_is_being_done_end(book: Pricebook) -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @book.t.handler("slow")
    async def slow(delivery: object) -> None:
        begun.set()
        await go_on.wait()
        done.set()

    with closing(listen("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        serving = asyncio.create_task(serve(book, listening, works=True))
        async with asyncio.timeout(HANG_S):
            await book.t.send("ada", "slow", PythonTarget("slow"))
            await begun.wait()
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/health/live") as answer:
                assert answer.status == 200
            signal.raise_signal(signal.SIGTERM)
            while await answers(port):
                await asyncio.sleep(0.01)
            assert not serving.done()
            go_on.set()
            await serving
    assert done.is_set()


async def test_it_follows_what_is_written_and_sweeps(book: Pricebook) -> None:
    await book.switch.open_store("1")
    with closing(listen("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(serve(book, listening, works=True))
        async with asyncio.timeout(HANG_S):
            number = await book.switch.open_edition("1")
            await book.switch.stage("1", number, [Staged("ALL", "Base", "TEA", Money(250, "EUR"))])
            await book.switch.seal("1", number)
            while not (await book.t.schedules.list(owner="store/1")).items:
                await asyncio.sleep(0.01)
            assert await book.t.schedules.get(SWEEP_OWNER, "sweep") is not None
            signal.raise_signal(signal.SIGTERM)
            await serving


async def test_a_sweep_finds_nothing_where_nothing_was_lost(book: Pricebook) -> None:
    await begin_sweeps(book)
    await begin_sweeps(book)
    assert len((await book.t.schedules.list(owner=SWEEP_OWNER)).items) == 1
    await book.t.trigger(SWEEP_OWNER, "sweep")
    assert (await book.t.tick()).delivered == 1
    assert await sweep(book) == "began again: 0 stores, 0 change sets, 0 imports"


async def test_a_part_of_a_sweep_that_fails_keeps_no_other_from_its_turn(
    book: Pricebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> int:
        raise RuntimeError("a store cannot be looked at")

    done: list[str] = []

    async def succeed(part: object) -> int:
        done.append(type(part).__name__)
        return 0

    monkeypatch.setattr(type(book.settling), "sweep", fail)
    monkeypatch.setattr(type(book.change_sets), "sweep", succeed)
    monkeypatch.setattr(type(book.bulk), "sweep", succeed)
    with pytest.raises(RuntimeError, match="a store cannot be looked at"):
        await sweep(book)
    assert sorted(done) == ["BulkJobs", "ChangeSets"]


async def test_a_sweep_deletes_what_has_expired(book: Pricebook) -> None:
    now = book.now()
    await book.db.put(BulkChunk(upload="left", number=0, data=b"of a process that was killed", expires_at=now))
    await sweep(book)
    assert await book.db.sweep() == 0


async def test_a_worker_that_fails_ends_it_with_its_error(book: Pricebook) -> None:
    fires: Any = book.t.store.fires

    async def claim(request: object) -> object:
        raise RuntimeError("a bug")

    fires.claim = claim
    with closing(listen("127.0.0.1", 0)) as listening, pytest.raises(RuntimeError, match="a bug"):
        async with asyncio.timeout(HANG_S):
            await serve(book, listening, works=True)


async def test_without_a_worker_it_only_answers(book: Pricebook) -> None:
    with closing(listen("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        serving = asyncio.create_task(serve(book, listening, works=False))
        async with asyncio.timeout(HANG_S), aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/health/live") as answer:
                assert answer.status == 200
            assert book.t.own_workers == []
            signal.raise_signal(signal.SIGINT)
            await serving
