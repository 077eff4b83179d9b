"""`Cron.next_after`, compared with croniter and cronsim."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from measure import Result, Stopwatch, pairs
from tickler import Cron
from tickler.index.advance import DueRow, advance
from workload import NOW_MS, due_rows, expressions

CALLS = 3000


async def run(say: Callable[[str], None]) -> list[Result]:
    say("Cron.next_after over random expressions and zones")
    rng = random.Random(3)
    crons = [when for when in expressions(2000) if isinstance(when, Cron)]
    chosen = [rng.choice(crons) for _ in range(CALLS)]
    instants = [NOW_MS + rng.randrange(365 * 86_400_000) for _ in range(CALLS)]
    zones = {when.tz: ZoneInfo(when.tz) for when in crons}

    async def ours() -> float:
        with Stopwatch() as watch:
            for when, after in zip(chosen, instants, strict=True):
                when.next_after(after)
        return watch.seconds

    async def by_croniter() -> float:
        with Stopwatch() as watch:
            for when, after in zip(chosen, instants, strict=True):
                croniter(str(when), datetime.fromtimestamp(after / 1000, zones[when.tz])).get_next(datetime)
        return watch.seconds

    async def by_cronsim() -> float:
        with Stopwatch() as watch:
            for when, after in zip(chosen, instants, strict=True):
                next(CronSim(str(when), datetime.fromtimestamp(after / 1000, zones[when.tz])))
        return watch.seconds

    rows = [
        DueRow(n, row.owner, row.key, str(row.when), row.when.tz, row.next_fire_at, None, 0, False)
        for n, row in enumerate(due_rows(CALLS, 300))
    ]

    async def in_a_batch() -> float:
        with Stopwatch() as watch:
            advance(rows, NOW_MS)
        return watch.seconds

    await ours()
    results = []
    for name, peer, target in (("croniter", by_croniter, 5.0), ("cronsim", by_cronsim, 1.0)):
        mine, other, ratio = await pairs(ours, peer)
        results.append(
            Result("Cron.next_after", f"{mine / CALLS * 1e6:.1f} µs", f"{other / CALLS * 1e6:.1f} µs", name, ratio, target)
        )
    mine, other, ratio = await pairs(in_a_batch, ours)
    results.append(
        Result(
            "a row of a batch, all of it",
            f"{mine / CALLS * 1e6:.1f} µs",
            f"{other / CALLS * 1e6:.1f} µs",
            "one next_after",
            ratio,
            0.0,
        )
    )
    return results
