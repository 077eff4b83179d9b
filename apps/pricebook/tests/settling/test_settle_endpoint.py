"""Schedules may call `/settle` over HTTP. What comes there has to be signed, and may come late, or again."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

import pytest
import uvicorn
from aiohttp import web
from web.asking import Got, ask

from book import MARCH, staged
from pricebook.app import Pricebook, Settings, open_pricebook
from pricebook.errors import InvalidField
from pricebook.settling import SettlingOptions
from pricebook.web.app import create_app
from tickler import HttpTarget, ManualClock, new_key, new_secret
from tickler.testing import play

SECRET = new_secret()
TOMORROW = MARCH + timedelta(days=1)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """What secrets of schedules are encrypted with."""
    monkeypatch.setenv("TICKLER_KEY", new_key())


@contextmanager
def a_port() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        yield listening


@asynccontextmanager
async def a_pricebook(clock: ManualClock, port: int, *secrets: str) -> AsyncIterator[Pricebook]:
    """A pricebook whose schedules call a port of this machine, with a change tomorrow."""
    url = f"http://127.0.0.1:{port}/settle"
    settings = Settings(store="memory://", settle_url=url, settle_secrets=secrets, allow_networks=("127.0.0.0/8",))
    async with open_pricebook(settings, clock=clock) as book:
        await book.switch.open_store("1")
        number = await book.switch.open_edition("1", TOMORROW)
        await book.switch.stage("1", number, staged({"P1": 200}))
        await book.switch.seal("1", number)
        await book.settling.consume()
        yield book


@asynccontextmanager
async def serving(book: Pricebook, listening: socket.socket) -> AsyncIterator[None]:
    server = uvicorn.Server(uvicorn.Config(create_app(book).asgi, lifespan="off", log_config=None, access_log=False))
    running = asyncio.create_task(server.serve([listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    yield
    server.should_exit = True
    await running


class Recorder:
    """Takes the request of a schedule, and keeps it."""

    def __init__(self) -> None:
        self.body = b""
        self.headers: dict[str, str] = {}

    async def take(self, request: web.Request) -> web.Response:
        self.body = await request.read()
        self.headers = {name.lower(): value for name, value in request.headers.items() if name.lower() != "host"}
        return web.Response()


@asynccontextmanager
async def recording(listening: socket.socket) -> AsyncIterator[Recorder]:
    recorder, application = Recorder(), web.Application()
    application.router.add_post("/settle", recorder.take)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    yield recorder
    await runner.cleanup()


async def test_a_schedule_settles_its_store_by_a_signed_request(clock: ManualClock) -> None:
    with a_port() as listening:
        async with a_pricebook(clock, listening.getsockname()[1], SECRET) as book, serving(book, listening):
            played = await play(book.t, clock, until=TOMORROW + timedelta(minutes=1))
            (entry,) = played.of("store/1").attempts
            assert (entry.happened, entry.status) == ("delivered", 200)
            assert json.loads(entry.answer or "") == {"result": "settled 1 editions in 1 rows, and sent 0 events"}


async def test_a_request_that_comes_again_finds_nothing_to_do(clock: ManualClock) -> None:
    async with recorded(clock) as (book, recorder):
        first, second = [await post(book, recorder) for _ in range(2)]
        assert json.loads(first.body) == {"result": "settled 1 editions in 1 rows, and sent 0 events"}
        assert json.loads(second.body) == {"result": "settled 0 editions in 0 rows, and sent 0 events"}


async def test_what_is_not_signed_is_refused_and_settles_nothing(clock: ManualClock) -> None:
    async with recorded(clock) as (book, recorder):
        body, headers = recorder.body, recorder.headers
        assert (await post(book, recorder, body=body.replace(b"store/1", b"store/2"))).status == 401
        assert (await post(book, recorder, headers={"content-type": "application/json"})).status == 401
        assert (await post(book, recorder, headers={**headers, "webhook-signature": "v1,AAAA"})).status == 401
        clock.advance(301)
        late = await post(book, recorder)
        assert (late.status, "replay of an old message" in late.problem["detail"]) == (401, True)
        clock.advance(-301)
        assert b"settled 1 editions" in (await post(book, recorder)).body, "nothing was settled until now"


async def test_a_signed_delivery_that_is_not_of_a_store_is_refused(clock: ManualClock) -> None:
    async with recorded(clock) as (book, recorder):
        await book.t.send("somebody", "else", HttpTarget(book.settings.settle_url or "", secret=SECRET))
        await play(book.t, clock, until=timedelta(0))
        refused = await post(book, recorder)
        assert (refused.status, "not of the schedule of a store" in refused.problem["detail"]) == (401, True)


async def test_during_a_rotation_the_former_secret_is_accepted(clock: ManualClock) -> None:
    async with recorded(clock, SECRET) as (_, recorder), a_pricebook(clock, 9, new_secret(), SECRET) as other:
        assert (await post(other, recorder)).status == 200


async def test_without_a_secret_there_is_no_such_page(clock: ManualClock) -> None:
    async with open_pricebook(Settings(store="memory://"), clock=clock) as book:
        assert (await ask(create_app(book).asgi, "POST", "/settle", {}, [b"{}"])).status == 404


def test_schedules_cannot_call_an_address_without_a_secret() -> None:
    with pytest.raises(InvalidField, match="new_secret"):
        SettlingOptions(url="https://prices.example/settle")


@asynccontextmanager
async def recorded(clock: ManualClock, *secrets: str) -> AsyncIterator[tuple[Pricebook, Recorder]]:
    """A pricebook, and the request of its schedule, which has settled nothing."""
    with a_port() as listening:
        port = listening.getsockname()[1]
        async with a_pricebook(clock, port, *(secrets or (SECRET,))) as book, recording(listening) as recorder:
            await play(book.t, clock, until=TOMORROW + timedelta(minutes=1))
            assert recorder.body
            yield book, recorder


async def post(book: Pricebook, recorder: Recorder, *, body: bytes | None = None, headers: dict[str, str] | None = None) -> Got:
    sent = recorder.headers if headers is None else headers
    return await ask(create_app(book).asgi, "POST", "/settle", sent, [recorder.body if body is None else body])
