"""One Chromium for these tests, and an installation for each, served on a port of this machine with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import pytest
import pytest_asyncio
from browser.chromium import started
from browser.visitor import TELEPHONE, Visitor
from browser.visitors import run_on_one_worker, serving_here, visitors
from page_client import web_of

from installation import Installation, network_settings, open_installation
from slothpost.settings import Settings
from slothpost.sources.source_settings import SourceSettings
from slothpost.standins.appstore import AppStoreStandIn
from slothpost.standins.github import GithubStandIn
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.vercel import VercelStandIn
from slothpost.standins.x import XStandIn
from slothpost.web.app import create_app
from tickler import ManualClock
from tickler.web import listen

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

HERE = Path(__file__).parent
MONDAY = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    run_on_one_worker(items, HERE)


class Served(msgspec.Struct, frozen=True):
    """An installation that browsers reach, and the sources beside it."""

    installation: Installation
    url: str
    github: GithubStandIn
    vercel: VercelStandIn
    appstore: AppStoreStandIn

    async def sign_in_path(self, user: str = "ada") -> str:
        return f"/sign-in/{await web_of(self.installation.app).links.create(user)}"


class Visit(Protocol):
    def __call__(
        self, user: str | None = "ada", *, size: ViewportSize = TELEPHONE, scripts: bool = True
    ) -> Awaitable[Visitor]: ...


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with started() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def served(key: None) -> AsyncIterator[Served]:
    clock = ManualClock(MONDAY)

    def now() -> datetime:
        return datetime.fromtimestamp(clock.now_ms() / 1000, UTC)

    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listen("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        x = await stack.enter_async_context(XStandIn(now=now))
        threads = await stack.enter_async_context(ThreadsStandIn(now=now))
        github = await stack.enter_async_context(GithubStandIn(now=now))
        vercel = await stack.enter_async_context(VercelStandIn(now=now, redirect_uri=f"{url}/connections/vercel"))
        appstore = await stack.enter_async_context(AppStoreStandIn(now=now))
        sources = SourceSettings(
            github_api_url=github.url,
            vercel_api_url=vercel.url,
            vercel_url=vercel.url,
            itunes_url=appstore.url,
            vercel_client_id=vercel.client_id,
            vercel_client_secret=vercel.client_secret,
            vercel_integration_slug=vercel.slug,
        )
        settings = Settings(store="memory://", base_url=url, sources=sources, **network_settings(x, threads))
        installation = await stack.enter_async_context(open_installation(settings, clock, x, threads))
        await installation.a_user()
        await stack.enter_async_context(serving_here(create_app(installation.app), listening))
        yield Served(installation, url, github, vercel, appstore)


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser, served: Served) -> AsyncIterator[Visit]:
    """`await visit()` returns a visitor who is signed in, with a fresh browser context, the size of a phone unless given."""
    async with visitors(chromium) as new:

        async def new_visitor(user: str | None = "ada", *, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Visitor:
            visitor = await new(served.url, zone="Europe/Berlin", size=size, scripts=scripts)
            if user is not None:
                await visitor.page.goto(served.url + await served.sign_in_path(user))
                await visitor.press("Sign in", visitor.page.locator("main"))
                await visitor.page.wait_for_load_state()  # scripts have run
            return visitor

        yield new_visitor
