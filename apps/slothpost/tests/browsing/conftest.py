"""One Chromium for these tests, and an installation for each, served on a port of this machine with a clock that tests move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import pytest
import pytest_asyncio
import uvicorn
from browser.chromium import started
from browser.visitor import TELEPHONE, Visitor
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

# Returns what a finger would miss.
_SMALL = """() => [...document.querySelectorAll(
  "button, .button, nav a, summary, select, input:not([type=hidden], [type=checkbox])"
)].filter((element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0)
  .map((element) => [element.getBoundingClientRect(), element.outerHTML.slice(0, 100)])
  .filter(([box]) => box.height < 43.5 || box.width < 43.5).map(([box, what]) => `${box.width} by ${box.height}: ${what}`)"""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all on one worker, so that Chromium starts once, and on the event loop that it is bound to."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


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
        server = _Server(uvicorn.Config(create_app(installation.app), ws="none", lifespan="off", log_config=None))
        await stack.enter_async_context(_serving(server, asyncio.create_task(server.serve([listening]))))
        yield Served(installation, url, github, vercel, appstore)


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser, served: Served) -> AsyncIterator[Visit]:
    """`await visit()` returns a visitor who is signed in, with a fresh browser context, the size of a phone unless given."""
    async with AsyncExitStack() as stack:
        visitors: list[Visitor] = []

        async def new_visitor(user: str | None = "ada", *, size: ViewportSize = TELEPHONE, scripts: bool = True) -> Visitor:
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
            if user is not None:
                await visitors[-1].page.goto(served.url + await served.sign_in_path(user))
                await visitors[-1].press("Sign in", visitors[-1].page.locator("main"))
                await visitors[-1].page.wait_for_load_state()  # scripts have run
            return visitors[-1]

        yield new_visitor
        assert [fault for visitor in visitors for fault in visitor.faults] == []


async def fits_fingers(visitor: Visitor) -> None:
    """Check that every control is large enough for a finger."""
    assert await visitor.page.evaluate(_SMALL) == [], visitor.path


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
