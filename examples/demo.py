"""The demo of `make run`: a few thousand schedules of 48 small shops. Some fire all the time, and some fail.

make run        or        tickler serve --store sqlite:///demo.db --setup examples.demo:fill
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tickler import Cron, Delivery, Every, GiveUp, Policy, PythonTarget, Schedule, Tickler, Weekly, When

ACCOUNTS = 400
NAMES = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron")
OWNERS = [f"{name}-{trade}" for trade in ("books", "cafe", "labs", "press", "shop", "studio") for name in NAMES]
ZONES = ("America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "Europe/London", "Europe/Paris", "America/New_York",
         "Asia/Tokyo", "Europe/Berlin")  # fmt: skip

LONG_AGO_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z

# Kinds of schedules. The account number replaces randomness, so that every run is the same.
KINDS: dict[str, Callable[[int, str], When]] = {
    "digest": lambda n, tz: Cron(f"{n % 4 * 15} {7 + n % 3} * * mon-fri", tz=tz),
    "post": lambda n, tz: Weekly({"tue": f"{8 + n % 9:02}:00", "thu": ["09:00", "17:30"]}, tz=tz),
    "price": lambda n, tz: Cron("0 0 * * *", tz=tz),
    "newsletter": lambda n, tz: Cron("0 9 * * mon", tz="UTC"),  # all at the same instant: see the forecast
    "sync": lambda n, tz: Cron("*/5 8-19 * * mon-sat", tz=tz),  # while the shop is open
    "stock": lambda n, tz: Every(seconds=60 + n * 7 % 1201, start=LONG_AGO_MS + n * 7_919),  # so that some are due at once
}


async def fill(tickler: Tickler) -> None:
    """Register all handlers, and put the schedules if the store is empty."""
    for kind in KINDS:
        tickler.handler(kind)(work)
    tickler.handler("flaky")(flaky)
    tickler.handler("refusing")(refusing)
    if (await tickler.schedules.list(limit=1)).items:
        return
    await tickler.schedules.put_many(schedule for n in range(ACCOUNTS) for schedule in schedules_of(n))
    quick = Policy(attempts=3, backoff=[2, 5])
    await tickler.schedules.put_many(
        [
            Schedule(owner="amber-books", key="flaky-hook", when="@every 20s", target=PythonTarget("flaky"), policy=quick),
            Schedule(owner="birch-cafe", key="refused-post", when="*/5 * * * *", target=PythonTarget("refusing"), policy=quick),
            Schedule(owner="cedar-labs", key="typo", when="*/2 * * * *", target=PythonTarget("digset"), policy=quick),
            Schedule(owner="delta-press", key="holiday", when="0 9 * * *", target=PythonTarget("digest"), enabled=False),
        ]
    )
    for owner, key in (("amber-books", "flaky-hook"), ("birch-cafe", "refused-post"), ("cedar-labs", "typo")):
        await tickler.trigger(owner, key)  # something to look at from the first second


def schedules_of(account: int) -> list[Schedule]:
    owner, tz = OWNERS[account % len(OWNERS)], ZONES[account % len(ZONES)]
    return [
        Schedule(
            owner=owner,
            key=f"{kind}-{account // len(OWNERS)}",
            when=make(account, tz),
            target=PythonTarget(kind),
            payload={"account": account, "shop": owner},
        )
        for kind, make in KINDS.items()
    ]


async def work(delivery: Delivery) -> object:
    """Take as long as real work might."""
    await asyncio.sleep(int(delivery.id[-2:], 16) / 1_000)
    return {"done": delivery.key}


async def flaky(delivery: Delivery) -> object:
    """Fail the first attempt, and sometimes all of them."""
    if delivery.attempt < 2 or delivery.id.endswith("0"):
        raise ConnectionError("the other side hung up")
    return "at last"


async def refusing(delivery: Delivery) -> object:
    raise GiveUp("the account behind this was closed")
