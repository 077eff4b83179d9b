"""One browser for all of these tests, one service, and visitors of its pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
import pytest_asyncio

from tickler import PythonTarget, Schedule, connect, new_key

from .chromium import started
from .service import CROWD, Service, serving
from .visitor import TELEPHONE, Visitor
from .visitors import run_on_one_worker, visitors

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    run_on_one_worker(items, HERE)


class Visit(Protocol):
    def __call__(
        self, service: Service, *, zone: str = "America/Chicago", size: ViewportSize = TELEPHONE, scripts: bool = True
    ) -> Awaitable[Visitor]: ...


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    async with started() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser) -> AsyncIterator[Visit]:
    """`await visit(service)` returns a new visitor with a fresh browser context, the size of a phone unless given."""
    async with visitors(chromium) as new:

        async def new_visitor(
            service: Service, *, zone: str = "America/Chicago", size: ViewportSize = TELEPHONE, scripts: bool = True
        ) -> Visitor:
            return await new(service.url, zone=zone, size=size, scripts=scripts)

        yield new_visitor


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service without tokens. Each test has its own owner there, beside a crowd that fires half a day from now."""
    folder = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder / 'tickler.db'}"
    async with connect(url) as t:
        daily, target = f"0 {(t.now_ms() // 3_600_000 + 12) % 24} * * *", PythonTarget("echo")
        crowd = [Schedule(owner="crowd", key=f"{number:04}", when=daily, target=target) for number in range(CROWD)]
        await t.schedules.put_many(crowd)
    async with serving(url, folder, TICKLER_KEY=new_key()) as service:
        yield service


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(visit: Visit, service: Service) -> Visitor:
    return await visit(service)


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> str:
    """An owner that no other test uses."""
    name: str = request.node.name
    return name.removeprefix("test_")[:60]
