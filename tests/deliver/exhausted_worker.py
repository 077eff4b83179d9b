"""A worker whose process has no file descriptor left when its fires come due, and gets some back later. Run by a test.

Usage: exhausted_worker.py PORT NUMBER. Prints, as JSON, what happened to the fires meanwhile and in the end.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tickler import At, Policy, RunOptions, Schedule, Tickler, connect

DEADLINE_S = 30.0


async def state(tickler: Tickler, keys: list[str]) -> dict[str, Any]:
    entries = [entry for key in keys for entry in (await tickler.fires.history("u1", key)).items]
    open_fires = (await tickler.fires.list(state="open", limit=1000)).items
    return {
        "happened": sorted(f"{entry.happened} {entry.attempt} {entry.status}" for entry in entries),
        "details": sorted({entry.detail for entry in entries if entry.detail}),
        "released": sum((fire.reason or "").startswith("released: the worker could not connect") for fire in open_fires),
        "dead": len((await tickler.fires.list(state="dead")).items),
    }


def due_in(delay: timedelta, port: int, number: int) -> list[Schedule]:
    due = datetime.now(UTC) + delay
    return [
        Schedule(
            owner="u1",
            key=f"{policy}-{host}-{n}",
            when=At(due),
            target=f"http://{host}:{port}/hook",
            policy=Policy(delivery=policy),
            delete_after=False,
        )
        for policy in ("at-least-once", "at-most-once")
        for host in ("127.0.0.1", "localhost")
        for n in range(number)
    ]


def allow_descriptors(number: int) -> None:
    """Let this process open descriptors below a number; those that are open stay open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


async def main(port: int, number: int) -> None:
    allow_descriptors(128)
    async with connect("memory://", allow_networks=["127.0.0.0/8", "::1/128"]) as tickler:
        await tickler.schedules.put_many(due_in(timedelta(hours=1), port, number))  # whatever that reads, it has read now
        running = asyncio.create_task(tickler.run(RunOptions(in_flight=100, per_owner=100, per_host=100)))
        await asyncio.sleep(0.1)
        until = time.monotonic() + DEADLINE_S
        allow_descriptors(3)  # those of standard input, output and errors, which are open
        schedules = due_in(timedelta(seconds=1), port, number)
        await tickler.schedules.put_many(schedules)
        keys = [schedule.key for schedule in schedules]
        while (during := await state(tickler, keys))["released"] < len(keys) // 2 and time.monotonic() < until:
            await asyncio.sleep(0.02)
        allow_descriptors(128)
        while len((after := await state(tickler, keys))["happened"]) < len(keys) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        tickler.stop()
        await running
        sys.stdout.write(json.dumps({"during": during, "after": after}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
