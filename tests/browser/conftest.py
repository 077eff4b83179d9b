"""One browser for all of these tests, a service of their own, and whoever visits it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
import pytest_asyncio

from tickler import PythonTarget, Schedule, connect, new_key

from .chromium import started
from .service import CROWD, Service, serving
from .visitor import TELEPHONE, Visitor

if TYPE_CHECKING:
    from playwright.async_api import Browser, ViewportSize

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All on one worker, so that Chromium starts once; and on one event loop, which it is bound to."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


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
    """`await visit(service)`: somebody new, in a browser of their own, without cookies, and on a telephone unless it matters."""
    async with AsyncExitStack() as stack:
        visitors: list[Visitor] = []

        async def come(
            service: Service, *, zone: str = "America/Chicago", size: ViewportSize = TELEPHONE, scripts: bool = True
        ) -> Visitor:
            context = await chromium.new_context(
                viewport=size,
                timezone_id=zone,
                locale="en-GB",
                color_scheme="light",
                reduced_motion="reduce",
                java_script_enabled=scripts,
            )
            stack.push_async_callback(context.close)
            visitors.append(Visitor(await context.new_page(), service.url))
            return visitors[-1]

        yield come
        assert [fault for visitor in visitors for fault in visitor.faults] == []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """For everybody, without a token: each test has an owner of its own there, beside a crowd that fires half a day from now."""
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
    """Nobody else's."""
    name: str = request.node.name
    return name.removeprefix("test_")[:60]
