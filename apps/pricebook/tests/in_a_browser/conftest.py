"""One Chromium for these tests, and a pricebook for each, served on a port of this machine with a clock that tests move."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from browser.chromium import started
from browser.visitor import TELEPHONE, Visitor
from browser.visitors import run_on_one_worker, serving_here, visitors

from price_browsing import Served, Visit
from price_site import open_site
from tickler import ManualClock

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

HERE = Path(__file__).parent
MARCH = datetime(2026, 3, 27, 9, tzinfo=UTC)  # two days before clocks change in Berlin


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    run_on_one_worker(items, HERE)


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
        await stack.enter_async_context(serving_here(site.app.asgi, listening))
        yield Served(site, url)


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser, served: Served) -> AsyncIterator[Visit]:
    """`await visit()` returns a visitor who is signed in, with a fresh browser context, the size of a phone unless given."""
    async with visitors(chromium) as new:

        async def new_visitor(person: str = "ada", *, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Visitor:
            visitor = await new(served.url, zone="Europe/Berlin", size=size, scripts=scripts)
            await visitor.page.goto(served.url + await served.sign_in_path(person))
            await visitor.press("Sign in", visitor.page.locator("main"))
            await visitor.page.wait_for_load_state()  # scripts have run
            return visitor

        yield new_visitor
