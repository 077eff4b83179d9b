"""`tick`: as much as a budget allows, and nothing claimed that is not tried."""

from __future__ import annotations

import asyncio

import pytest

from tickler import Delivery, Policy, PythonTarget, RunOptions, Tickler, connect
from tickler.model.policy import Delivery as Often
from under_fire.load import put_overdue

SLACK_MS = 10_000  # what a busy machine may take on top


async def put_due(url: str, number: int, often: Often = "at-least-once") -> None:
    keys = [f"{often} {n:05}" for n in range(number)]
    await put_overdue(url, "u1", keys, PythonTarget("work"), Policy(delivery=often, backoff=[0]))


async def happened(tickler: Tickler, number: int, often: Often = "at-least-once") -> list[list[tuple[str, int]]]:
    found = [(await tickler.fires.history("u1", f"{often} {n:05}")).items for n in range(number)]
    return [[(entry.happened, entry.attempt) for entry in items] for items in found]


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


async def test_a_tick_delivers_all_that_is_due_and_says_that_nothing_is_left(url: str) -> None:
    await put_due(url, 150)
    async with connect(url) as tickler:
        tickler.handler("work")(lambda fire: None)

        summary = await tickler.tick(60_000)

        assert (summary.claimed, summary.delivered, summary.failed, summary.left) == (150, 150, 0, False)
        assert summary.duration_ms < 60_000
        assert await happened(tickler, 150) == [[("delivered", 1)]] * 150


async def test_a_tick_whose_budget_is_too_small_says_so_and_the_next_ones_deliver_the_rest(url: str) -> None:
    budget_ms, options = 300, RunOptions(in_flight=8, per_owner=5, drain=5)
    await put_due(url, 30)
    async with connect(url) as tickler:

        @tickler.handler("work")
        async def work(fire: Delivery) -> None:
            await asyncio.sleep(0.15)

        summaries = [await tickler.tick(budget_ms, options)]
        assert summaries[0].delivered < 30
        assert summaries[0].left

        while summaries[-1].left:
            summaries.append(await tickler.tick(budget_ms, options))
        assert sum(summary.delivered for summary in summaries) == 30
        assert all(summary.duration_ms < budget_ms + 5_000 + SLACK_MS for summary in summaries)
        assert await happened(tickler, 30) == [[("delivered", 1)]] * 30


async def test_a_tick_says_that_something_is_left_when_it_had_claimed_it_and_released_it(url: str) -> None:
    """All is claimed, little is begun, nothing else is due."""
    options = RunOptions(in_flight=10, per_owner=2, drain=5)
    await put_due(url, 10)
    begun = 0
    async with connect(url) as tickler:

        @tickler.handler("work")
        async def work(fire: Delivery) -> None:
            nonlocal begun
            begun += 1
            await asyncio.sleep(1)

        summary = await tickler.tick(200, options)

        assert begun == summary.delivered < 10
        assert summary.left


async def test_a_tick_tries_all_it_claims_of_what_is_delivered_at_most_once(url: str) -> None:
    """Attempts last longer than budget and drain together: what waited for them would never be begun."""
    options = RunOptions(in_flight=20, per_owner=4, per_host=6, drain=0.3)
    await put_due(url, 30, "at-most-once")
    begun: list[str] = []
    async with connect(url) as tickler:

        @tickler.handler("work")
        async def work(fire: Delivery) -> None:
            begun.append(fire.id)
            await asyncio.sleep(30)

        summary = await tickler.tick(300, options)

        assert summary.claimed == len(begun) == len(set(begun)) > 0
        assert summary.left
        recorded = [events for events in await happened(tickler, 30, "at-most-once") if events]
        assert recorded == [[("failed", 1)]] * len(begun)
        page = await tickler.schedules.list(owner="u1")
        assert sum(schedule.state == "active" for schedule in page.items) == 30 - len(begun)
