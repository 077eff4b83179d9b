"""Processes that are killed at each point of publishing: never twice, and never lost without a word."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from installation import berlin, network_settings, open_installation
from slothpost.model import ChannelName
from slothpost.posts.publisher import Point
from slothpost.settings import Settings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock

SLOT = berlin("2027-03-02 09:00")
WORKER = Path(__file__).parent / "publishing_worker.py"
POINTS = get_args(Point)

# What becomes of a post after a kill at each point, and how many there are on the network.
ON_X = {"before_mark": ("published", 1), "marked": ("unconfirmed", 0), "called": ("unconfirmed", 1), "settled": ("published", 1)}
ON_THREADS = dict.fromkeys(POINTS, ("published", 1))
CASES = [("x", point) for point in ON_X] + [("threads", point) for point in ON_THREADS]


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def stored_url(request: pytest.FixtureRequest, soak: bool) -> str:
    """Each store that several processes can share."""
    if request.param != "sqlite" and not soak:
        pytest.skip(f"kills on {request.param}: make soak")
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.mark.parametrize(("name", "point"), CASES)
async def test_a_kill_while_publishing_posts_never_twice_and_loses_nothing_silently(
    name: ChannelName, point: Point, stored_url: str, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn
) -> None:
    settings = Settings(store=stored_url, table=_table(stored_url), **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as here:
        product = await here.a_channel({"tue": "09:00"}, name)
        post = await here.app.review.approve("ada", (await here.a_draft(product, name=name)).id, by="Ada")
        clock.set(SLOT)
        assert await _run_until_killed(settings, SLOT, point) == -signal.SIGKILL
        clock.set(SLOT + timedelta(minutes=2))
        await here.for_(timedelta(minutes=20))
        found = await here.post(post)
        on_network = len(x.posts if name == "x" else threads.posts)
        assert (found.state, on_network) == (ON_X if name == "x" else ON_THREADS)[point]
        if found.state == "unconfirmed":
            assert "interrupted" in found.evidence
            assert [notice.kind for notice in await here.app.notices.latest("ada")] == ["unconfirmed"]
            assert [card.post.id for card in (await here.app.review.queue("ada")).items] == [post.id]


def _table(url: str) -> str:
    """Return a table for this test: on DynamoDB, all tests share one server."""
    return url.removeprefix("dynamodb://").partition("?")[0] + "_posts" if url.startswith("dynamodb") else "slothpost"


async def _run_until_killed(settings: Settings, at: datetime, point: Point) -> int | None:
    values = {
        "store": settings.store,
        "table": settings.table,
        "x": msgspec.to_builtins(settings.x),
        "threads": msgspec.to_builtins(settings.threads),
    }
    process = await asyncio.create_subprocess_exec(sys.executable, str(WORKER), json.dumps(values), at.isoformat(), point)
    async with asyncio.timeout(60):
        return await process.wait()
