"""Requests per second of the HTTP API and the pages, compared with an empty Litestar route; measured with wrk."""

from __future__ import annotations

import asyncio
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from measure import Result, Skipped, Stopwatch, pairs
from postgres import bench_server
from tickler import Schedule, connect
from workload import expressions

SERVER = Path(__file__).with_name("api_server.py")
CONNECTIONS = 64
KEYS = 1_000  # put before the measurement: a GET finds each, a PUT replaces it
SECONDS = 3
PAIRS = 5
SCHEDULES = 100_000
VISITS = 5
PAGES = ("/", "/forecast", "/schedules", "/schedules?owner=user-00007", "/schedules/user-00007/digest-7", "/failed", "/doctor")
READS, WRITES = 0.4, 0.15

LUA = """
local n = 0
request = function()
  n = n + 1
  local path = string.format("/v1/schedules/user-%d/digest", n % KEYS)
  return wrk.format("METHOD", path, {["content-type"] = "application/json"}, BODY)
end
"""
JSON = '{"when":"%d 9 * * tue","tz":"Europe/Paris","target":"https://example.org/hook","payload":{"n":%d}}'
BODY = f"string.format('{JSON}', n % 60, n)"


async def run(say: Callable[[str], None]) -> list[Result]:
    if shutil.which("wrk") is None:
        raise Skipped("there is no wrk (apt-get install wrk), so nothing is known of the API's speed")
    with bench_server() as server, tempfile.TemporaryDirectory() as folder:
        results: list[Result] = []
        for store, url in (("PostgreSQL", server.url("api")), ("SQLite", f"sqlite:///{folder}/api.db")):
            say(f"{store}: PUT and GET of schedules")
            results += await _throughput(store, url, Path(folder))
        say(f"pages over {SCHEDULES:,} schedules")
        results += await _pages(f"sqlite:///{folder}/pages.db")
    return results


async def _throughput(store: str, url: str, folder: Path) -> list[Result]:
    put, get = folder / "put.lua", folder / "get.lua"
    script = LUA.replace("KEYS", str(KEYS))
    put.write_text(script.replace("METHOD", "PUT").replace("BODY", BODY))
    get.write_text(script.replace("METHOD", "GET").replace("BODY", "nil"))
    async with connect(url) as tickler:
        await tickler.schedules.put_many(
            Schedule(owner=f"user-{n}", key="digest", when="0 9 * * tue", target="https://example.org/hook") for n in range(KEYS)
        )
    async with _serving("nothing") as empty, _serving(url) as ours:
        results: list[Result] = []
        for verb, requests, target in (("PUT", put, WRITES if store == "PostgreSQL" else 0), ("GET", get, READS)):
            mine, other, ratio = await pairs(_wrk(ours, requests), _wrk(empty, requests), PAIRS)
            name, rates = f"{store}: {verb} /v1/schedules/…", (f"{1 / mine:,.0f}/s", f"{1 / other:,.0f}/s")
            results.append(Result(name, *rates, "a Litestar route that does nothing", ratio, target))
        return results


def _wrk(address: str, script: Path) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        """Return seconds per request."""
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(script), address]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        said = (await process.communicate())[0].decode()
        found = re.search(r"Requests/sec:\s+([\d.]+)", said)
        assert found, said
        assert "Non-2xx" not in said, said
        return 1 / float(found[1])

    return measure


async def _pages(url: str) -> list[Result]:
    async with connect(url) as tickler:
        whens = expressions(3_000)
        await tickler.schedules.put_many(
            Schedule(owner=f"user-{n % 7_000:05}", key=f"digest-{n}", when=whens[n % 3_000], target="https://example.org/hook")
            for n in range(SCHEDULES)
        )
        await tickler.forecast()
    async with _serving(url) as address, aiohttp.ClientSession() as session:
        bare = statistics.median([await _visit(session, f"{address}/health/live") for _ in range(VISITS)])
        results: list[Result] = []
        for path in PAGES:
            ours = statistics.median([await _visit(session, address + path) for _ in range(VISITS)])
            times = (f"{ours * 1000:.0f} ms", f"{bare * 1000:.1f} ms")
            results.append(Result(f"page {path}", *times, "/health/live", ours / bare, 0))
        return results


async def _visit(session: aiohttp.ClientSession, url: str) -> float:
    with Stopwatch() as watch:
        async with session.get(url) as answer:
            await answer.read()
            assert answer.status == 200, url
    return watch.seconds


@asynccontextmanager
async def _serving(what: str) -> AsyncIterator[str]:
    """Start a server process on a store's URL, or with the empty route "nothing", and yield its address."""
    process = await asyncio.create_subprocess_exec(sys.executable, str(SERVER), what, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()
