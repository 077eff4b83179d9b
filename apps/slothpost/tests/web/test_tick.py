"""A beat from outside makes what is due, with a real server on a file."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import uvicorn
from uvicorn.server import ServerState
from web.asking import ask

from installation import Installation, berlin, network_settings, open_installation
from slothpost.model import Product
from slothpost.settings import Settings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from slothpost.web.app import create_app
from tickler import ManualClock

SECRET = "what only the cron knows"
BEARER = {"authorization": f"Bearer {SECRET}"}


@pytest.fixture
async def here(sqlite_url: str, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn) -> AsyncIterator[Installation]:
    settings = Settings(store=sqlite_url, tick_secret=SECRET, **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as installation:
        yield installation


@pytest.fixture
async def address(here: Installation) -> AsyncIterator[str]:
    """Serve without uvicorn's main loop, which takes a tenth of a second to start and to stop."""
    config = uvicorn.Config(create_app(here.app), lifespan="off", log_config=None)
    config.load()
    state, protocol = ServerState(), config.http_protocol_class
    listening = socket.create_server(("127.0.0.1", 0))
    made: Any = protocol
    server = await asyncio.get_running_loop().create_server(
        lambda: made(config=config, server_state=state, app_state={}), sock=listening
    )
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.close()
    for connection in list(state.connections):
        connection.transport.abort()
    await asyncio.gather(*state.tasks, return_exceptions=True)


async def beat(address: str, method: str = "GET", query: str = "") -> Any:
    async with aiohttp.ClientSession() as session, session.request(method, f"{address}/tick{query}", headers=BEARER) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def planned(here: Installation) -> Product:
    product = await here.a_channel({"tue": "09:00"})
    await here.an_activity(product)
    return product


async def test_a_due_draft_is_made_by_a_beat(here: Installation, address: str) -> None:
    product = await planned(here)
    assert (await beat(address))["claimed"] == 0
    here.clock.set(berlin("2027-03-01 21:00"))
    assert (await beat(address, "POST"))["delivered"] == 1
    (post,) = await here.posts(product)
    assert (post.state, post.slot_at) == ("drafted", berlin("2027-03-02 09:00"))


async def test_an_approved_post_is_published_by_a_beat(here: Installation, address: str) -> None:
    product = await here.a_channel({"tue": "09:00"})
    post = await here.a_draft(product)
    await here.app.review.approve("ada", post.id, by="Ada")
    here.clock.set(berlin("2027-03-02 09:00"))
    await beat(address, query="?budget_ms=5000")
    assert [each.text for each in here.x.posts] == [post.text]


async def test_beats_at_the_same_time_do_everything_once(here: Installation, address: str) -> None:
    product = await planned(here)
    here.clock.set(berlin("2027-03-01 21:00"))
    summaries = await asyncio.gather(*(beat(address) for _ in range(4)))
    assert sum(each["delivered"] for each in summaries) == 1
    assert len(await here.posts(product)) == 1


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {SECRET}", SECRET, "Bearer é"])
async def test_a_beat_without_the_secret_does_nothing(here: Installation, given: str) -> None:
    await planned(here)
    here.clock.set(berlin("2027-03-01 21:00"))
    app = create_app(here.app)
    refused = await ask(app, "POST", "/tick", {"authorization": given, "accept": "text/html"})
    assert (refused.status, refused.problem["code"]) == (401, "unauthorized")
    assert await here.app.t.index.next_due() == here.clock.now_ms()


async def test_wrong_secrets_are_slowed_down(here: Installation) -> None:
    app = create_app(here.app)
    statuses = [(await ask(app, "GET", "/tick", {"authorization": f"Bearer {n}"})).status for n in range(35)]
    assert set(statuses) == {401, 429}
    assert (await ask(app, "GET", "/tick", BEARER)).status == 200


@pytest.mark.parametrize(("query", "field"), [("budget_ms=0", "budget_ms"), ("budget_ms=x", "budget_ms"), ("n=1", "n")])
async def test_a_parameter_that_cannot_be_used_is_named(here: Installation, query: str, field: str) -> None:
    answer = await ask(create_app(here.app), "GET", f"/tick?{query}", BEARER)
    assert (answer.status, answer.problem["field"]) == (422, field)


async def test_without_a_secret_in_the_settings_there_is_no_such_page(
    clock: ManualClock, x: XStandIn, threads: ThreadsStandIn
) -> None:
    settings = Settings(store="memory://", **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as here:
        for headers in ({}, BEARER, {"authorization": "Bearer "}, {"authorization": "Bearer None"}):
            assert (await ask(create_app(here.app), "GET", "/tick", headers)).status == 404
