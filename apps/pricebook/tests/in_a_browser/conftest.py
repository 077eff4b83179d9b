"""One Chromium for these tests, and a pricebook for each, served on a port of this machine with a clock that tests move."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
import uvicorn
from browser.chromium import started
from browser.visitor import TELEPHONE, Visitor

from price_browsing import Served, Visit
from price_site import open_site
from tickler import ManualClock

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

HERE = Path(__file__).parent
MARCH = datetime(2026, 3, 27, 9, tzinfo=UTC)  # two days before clocks change in Berlin


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all on one worker, so that Chromium starts once, and on the event loop that it is bound to."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with started() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def served() -> AsyncIterator[Served]:
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        site = await stack.enter_async_context(open_site(ManualClock(MARCH), url=url))
        await site.a_person("ada")
        server = _Server(uvicorn.Config(site.app.asgi, ws="none", lifespan="off", log_config=None))
        await stack.enter_async_context(_serving(server, asyncio.create_task(server.serve([listening]))))
        yield Served(site, url)


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser, served: Served) -> AsyncIterator[Visit]:
    """`await visit()` returns a visitor who is signed in, with a fresh browser context, the size of a phone unless given."""
    async with AsyncExitStack() as stack:
        visitors: list[Visitor] = []

        async def new_visitor(person: str = "ada", *, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Visitor:
            context = await chromium.new_context(
                viewport=size,
                timezone_id="Europe/Berlin",
                locale="en-GB",
                color_scheme="light",
                reduced_motion="reduce",
                java_script_enabled=scripts,
            )
            stack.push_async_callback(context.close)
            visitors.append(Visitor(await context.new_page(), served.url))
            await visitors[-1].page.goto(served.url + await served.sign_in_path(person))
            await visitors[-1].press("Sign in", visitors[-1].page.locator("main"))
            await visitors[-1].page.wait_for_load_state()  # scripts have run
            return visitors[-1]

        yield new_visitor
        assert [fault for visitor in visitors for fault in visitor.faults] == []


@asynccontextmanager
async def _serving(server: uvicorn.Server, task: asyncio.Task[None]) -> AsyncIterator[None]:
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        await task


class _Server(uvicorn.Server):
    """uvicorn without handlers of signals, which are pytest's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
