"""Lateness of a steady 500 fires per second, compared with a bare asyncio timer in the same run."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp

from measure import Result
from postgres import bench_server
from punctual_chart import draw
from sink import SinkProcess
from tickler import Every, RunOptions, Schedule, connect
from tickler.webhooks.envelope import iso

A_SECOND = 500
SECONDS = 10
MOST_LATER_MS = 30.0
CHART = Path(__file__).parent / "punctual.svg"


async def run(say: Callable[[str], None]) -> list[Result]:
    os.environ.setdefault("TICKLER_SIGNING_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    with bench_server() as server, SinkProcess() as sink:
        say(f"PostgreSQL: {A_SECOND} fires a second for {SECONDS} s")
        asleep = await _ours(server.url("asleep"), sink, RunOptions())
        say("the same, claimed 250 ms ahead and held")
        ahead = await _ours(server.url("ahead"), sink, RunOptions(ahead=0.25))
        say("a bare asyncio timer")
        bare = await _timer(sink)
    draw({"sleeps until the next is due": asleep, "claims 250 ms ahead": ahead, "a bare asyncio timer": bare}, CHART)
    say(f"drawn in {CHART.name}")
    return [_result("sleeps until the next is due", asleep, bare), _result("claims 250 ms ahead", ahead, bare)]


def _result(name: str, ours: list[float], bare: list[float]) -> Result:
    later_ms = percentile(ours, 99) - percentile(bare, 99)
    return Result(
        f"PostgreSQL, {A_SECOND} fires a second: {name}", _shown(ours), _shown(bare), "a bare timer; ratio: ms later at p99",
        later_ms, MOST_LATER_MS, at_most=True,
    )  # fmt: skip


def _shown(late_ms: list[float]) -> str:
    return "p50 {:.1f}, p95 {:.1f}, p99 {:.1f} ms".format(*(percentile(late_ms, at) for at in (50, 95, 99)))


def percentile(values: list[float], at: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) * at // 100, len(ordered) - 1)]


async def _ours(url: str, sink: SinkProcess, options: RunOptions) -> list[float]:
    """Return schedules that fire once a second, each at its own instant."""
    async with connect(url, allow_networks=("127.0.0.0/8",)) as tickler:
        start = tickler.now_ms() // 1000 * 1000 + 1000
        await tickler.schedules.put_many(
            Schedule(owner=f"u{n}", key="tick", when=Every(seconds=1, start=start + n * 1000 // A_SECOND), target=sink.url)
            for n in range(A_SECOND)
        )
        running = asyncio.create_task(tickler.run(options))
        await asyncio.sleep(3)  # until it is steady
        sink.arrived()
        await asyncio.sleep(SECONDS)
        arrived = sink.arrived()
        tickler.stop()
        await running
        sink.arrived()
    return [at - nominal for _, nominal, at in arrived]


async def _timer(sink: SinkProcess) -> list[float]:
    loop = asyncio.get_running_loop()
    posts: set[asyncio.Task[None]] = set()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def post(nominal_ms: int) -> None:
            headers = {"content-type": "application/json", "tickler-nominal-at": iso(nominal_ms)}
            async with session.post(sink.url, data=b"{}", headers=headers) as response:
                await response.read()

        def fire(nominal_ms: int) -> None:
            task = asyncio.create_task(post(nominal_ms))
            posts.add(task)
            task.add_done_callback(posts.discard)

        start_ms = round(time.time() * 1000) + 1000
        offset_s = loop.time() - time.time()
        for n in range(A_SECOND * SECONDS):
            nominal_ms = start_ms + n * 1000 // A_SECOND
            loop.call_at(nominal_ms / 1000 + offset_s, fire, nominal_ms)
        await asyncio.sleep(SECONDS + 1.5)
        await asyncio.gather(*posts)
    return [at - nominal for _, nominal, at in sink.arrived()]
