"""An application on uvicorn, behind a proxy that connects to a Unix socket."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import uvicorn

from tickler import Tickler
from tickler.web.asgi import App

from .test_protection import protected


@asynccontextmanager
async def visitors_of(app: App, path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    config = uvicorn.Config(app, uds=str(path), log_config=None, lifespan="off", proxy_headers=True)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:
            await asyncio.sleep(0.01)
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session:
        yield session
    server.should_exit = True
    await serving


async def statuses(session: aiohttp.ClientSession, number: int, *addresses: str) -> Counter[int]:
    """Ask so many times, each time as the proxy does that has seen one of these addresses."""
    found: Counter[int] = Counter()
    for n in range(number):
        headers = {"x-forwarded-for": addresses[n % len(addresses)]} if addresses else {}
        async with session.get("http://localhost/", headers=headers) as response:
            found[response.status] += 1
    return found


@pytest.mark.parametrize("url", ["memory://"])
async def test_each_visitor_has_a_rate_of_their_own_if_the_proxy_is_trusted(
    t: Tickler, users: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, app = protected(t, users, proxies=("unix",), rate=0.01)
    async with visitors_of(app, tmp_path / "app.sock") as session:
        visitors = [f"192.0.2.{n}" for n in range(10)]
        assert await statuses(session, 10, *visitors) == {200: 10}
        assert await statuses(session, 1, "192.0.2.1") == {429: 1}
        assert await statuses(session, 2, "198.51.100.1, 192.0.2.77", "198.51.100.2, 192.0.2.77") == {200: 1, 429: 1}
    assert caplog.records == []


@pytest.mark.parametrize("url", ["memory://"])
async def test_without_that_all_are_one_and_the_log_says_so_once(
    t: Tickler, users: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, app = protected(t, users, proxies=("192.0.2.0/24", "127.0.0.1"), rate=0.01)
    async with visitors_of(app, tmp_path / "app.sock") as session:
        assert await statuses(session, 2) == {200: 1, 429: 1}
        assert caplog.records == []
        assert await statuses(session, 3, "192.0.2.1", "198.51.100.2") == {429: 3}
    (warning,) = caplog.messages
    assert warning.endswith("add 'unix' to proxies, if only your proxy can connect to the socket")
