"""pricebook: pages over HTTP from a table of 4,000,000 prices, beside a bare ASGI application that answers the same bytes.

`PRICEBOOK_PLOT=plot.svg` draws the latencies.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from http_load import HEAD_END, HttpLoad, Latencies, http_load
from latency_chart import draw, text_plot
from measure import Result, shared_folder
from pricebook.app import Settings, open_pricebook
from pricebook_deep_pages import deep_pages
from pricebook_readers import PAGE, QUERIES, Kind, issue_tokens, let_prices_come, mixed, requests, with_upcoming
from pricebook_store import size, sqlite_url
from server_process import ServerProcess, server_process

RATE = 50
AT_ONCE = 8
WARM_UP = 200
RATE_TURNS = 6
TURNS = 3  # of the closed loop, on the large and on the small table in turns
PAGES_PER_PROCESSOR_SECOND = 500
SEED_MS = {50: 8, 95: 15, 99: 35}
PLOT = "PRICEBOOK_PLOT"


class Target(NamedTuple):
    """A server, its load, and the requests that it is sent."""

    server: ServerProcess
    load: HttpLoad
    tokens: list[str]
    stores: int

    async def ms_a_page(self, number: int, kind: Kind | None = None) -> float:
        """Return the server's processor milliseconds a page, asked for one after the other."""
        asked = mixed(self.stores, self.tokens) if kind is None else requests(kind, self.stores, self.tokens)
        await self.load.one_after_the_other(asked, WARM_UP, AT_ONCE)
        before = await self.server.processor_s()
        await self.load.one_after_the_other(asked, number, AT_ONCE)
        return (await self.server.processor_s() - before) / number * 1_000


async def run(say: Callable[[str], None]) -> list[Result]:
    chosen = size()
    async with serving(await sqlite_url(chosen.stores), chosen.stores, say) as ours:
        async with _bare(ours) as bare:
            say(f"{RATE} requests a second for {chosen.measured_s:g} s, and as many to a bare ASGI application")
            results = _latencies(await _in_turns({"pricebook": ours, "bare ASGI": bare}), say)
            say(f"{chosen.pages:,} pages one after the other, {AT_ONCE} at once")
            bare_ms = await bare.ms_a_page(chosen.pages)
        async with serving(await sqlite_url(chosen.few), chosen.few, say) as few:
            results += await _processor_time(ours, few, bare_ms)
    return [*results, *await deep_pages(say)]


@asynccontextmanager
async def serving(url: str, stores: int, say: Callable[[str], None]) -> AsyncIterator[Target]:
    """Serve a loaded store from a process of its own."""
    say(f"SQLite: upcoming changes in {len(with_upcoming(stores)):,} of {stores:,} stores")
    async with open_pricebook(Settings(store=url)) as book:
        await let_prices_come(book, with_upcoming(stores))
        tokens = await issue_tokens(book)
    async with server_process("pricebook_server.py", "serve", url) as server, http_load(server.port) as load:
        yield Target(server, load, tokens, stores)


@asynccontextmanager
async def _bare(ours: Target) -> AsyncIterator[Target]:
    page = shared_folder() / "pricebook-page.json"
    answer = await ours.load.ask(next(requests("store", ours.stores, ours.tokens)))
    page.write_bytes(answer.partition(HEAD_END)[2])
    async with server_process("pricebook_server.py", "bare", str(page)) as server, http_load(server.port) as load:
        yield ours._replace(server=server, load=load)


async def _in_turns(targets: dict[str, Target]) -> dict[str, Latencies]:
    """Ask each at the rate, in turns, so that all see the same machine."""
    found = {name: Latencies([], 0) for name in targets}
    streams = {name: mixed(target.stores, target.tokens) for name, target in targets.items()}
    for name, target in targets.items():
        await target.load.at_rate(streams[name], RATE, min(size().measured_s, 2))  # warm
    for _ in range(RATE_TURNS):
        for name, target in targets.items():
            some = await target.load.at_rate(streams[name], RATE, size().measured_s / RATE_TURNS)
            found[name] = found[name].joined(some)
    return found


def _latencies(asked: dict[str, Latencies], say: Callable[[str], None]) -> list[Result]:
    ours, bare = asked["pricebook"], asked["bare ASGI"]
    for line in text_plot(asked, SEED_MS):
        say(line)
    if PLOT in os.environ:
        draw(asked, SEED_MS, Path(os.environ[PLOT]))
    results = [_bounded(f"p{percent}", ours, bare, percent, 3.0 if percent == 95 else 0.0) for percent in SEED_MS]
    results += [
        Result(
            f"pricebook: p{percent} of {RATE} queries a second, beside the seed's",
            f"{ours.percentile(percent):.1f} ms",
            f"{seed} ms",
            "the seed, on DynamoDB in production",
            ours.percentile(percent) / seed,
            1.0,
            at_most=True,
        )
        for percent, seed in SEED_MS.items()
    ]
    timeouts = Result("pricebook: timeouts", str(ours.timeouts), "0", f"of {len(ours.ms):,} queries", ours.timeouts, 0.5, True)
    return [*results, timeouts]


def _bounded(name: str, ours: Latencies, bare: Latencies, percent: int, target: float) -> Result:
    mine, theirs = ours.percentile(percent), bare.percentile(percent)
    return Result(
        f"pricebook: {name} of {RATE} queries a second, {size().prices:,} prices",
        f"{mine:.2f} ms",
        f"{theirs:.2f} ms",
        "bare ASGI that answers the same bytes",
        mine / theirs,
        target,
        at_most=target > 0,
    )


async def _processor_time(ours: Target, few: Target, bare_ms: float) -> list[Result]:
    large: list[float] = []
    small: list[float] = []
    for _ in range(TURNS):
        large.append(await ours.ms_a_page(size().pages // TURNS))
        small.append(await few.ms_a_page(size().pages // TURNS))
    mine, theirs = sorted(large)[TURNS // 2], sorted(small)[TURNS // 2]
    by_kind = {kind: await ours.ms_a_page(size().pages // 10, kind) for kind in QUERIES}
    detail = ", ".join(f"{kind} {ms:.2f}" for kind, ms in by_kind.items())
    return [
        Result(
            f"pricebook: pages of {PAGE} a second on one core",
            f"{1_000 / mine:,.0f}/s",
            f"{PAGES_PER_PROCESSOR_SECOND}/s",
            f"the bound; ms a page: {detail}",
            1_000 / mine / PAGES_PER_PROCESSOR_SECOND,
            1.0,
        ),
        Result("pricebook: processor time of a page", f"{mine:.3f} ms", f"{bare_ms:.3f} ms", "bare ASGI", mine / bare_ms, 0),
        Result(
            f"pricebook: processor time of a page of {size().prices:,} prices",
            f"{mine:.3f} ms",
            f"{theirs:.3f} ms",
            f"of {few.stores * size().products:,} prices",
            mine / theirs,
            1.3,
            at_most=True,
        ),
    ]
