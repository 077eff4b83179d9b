"""Schedules that become due while workers are killed and stores go away, and the occurrences they stand for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Self

from tickler import At, Every, ManualClock, Policy, Schedule, Tickler, connect
from tickler.clock import to_datetime
from tickler.model.policy import DEFAULT_POLICY
from tickler.model.target import Target
from under_fire.accounts import Due
from under_fire.target_windows import Declared, declared

# So long after the put the first of them is due: a put must not take longer, and in a soak SQLite's lock is fought over.
SOON_MS = 10_000 if os.environ.get("TICKLER_SOAK") == "1" else 2_000
WITHIN_MS = 1_000
HOUR_MS = 3_600_000


class Load:
    """What was put: the occurrences that a test expects of it, and what was declared."""

    def __init__(self) -> None:
        self.due: list[Due] = []
        self.declared: list[Declared] = []

    def __iadd__(self, more: Load) -> Self:
        self.due += more.due
        self.declared += more.declared
        return self

    def __len__(self) -> int:
        return len(self.due)


Delivery = Literal["at-least-once", "at-most-once"]


def policy(delivery: Delivery, timeout: float = 1) -> Policy:
    """Quick to notice, quick to try again, and slow to give up."""
    return Policy(delivery=delivery, missed="all", attempts=20, timeout=timeout, backoff=[0.2])


async def put_one_shots(
    tickler: Tickler,
    owner: str,
    number: int,
    target: str,
    delivery: Delivery = "at-least-once",
    *,
    in_ms: int = SOON_MS,
    timeout: float = 1,
) -> Load:
    """One instant each, spread over a second that begins soon. `owner` is new, so keys are counted from 0."""
    how = policy(delivery, timeout)
    begins_at = tickler.now_ms() + in_ms
    load = Load()
    load.due = [Due(owner, f"once-{n:05}", begins_at + n * WITHIN_MS // number) for n in range(number)]
    schedules = [
        Schedule(owner=owner, key=each.key, when=At(to_datetime(each.nominal_at)), target=target, policy=how) for each in load.due
    ]
    load.declared = [declared(schedule) for schedule in schedules]
    await tickler.schedules.put_many(schedules)
    return load


async def put_repeating(tickler: Tickler, owner: str, number: int, times: int, target: str) -> Load:
    """So many that fire every second, so many times."""
    begins_at = tickler.now_ms() + SOON_MS
    load = Load()
    for n in range(number):
        start = begins_at + n * WITHIN_MS // number
        instants = [start + k * 1_000 for k in range(times)]
        every = Every(seconds=1, start=start)
        schedule = Schedule(
            owner=owner, key=f"every-{n:03}", when=every, ends_at=instants[-1], target=target, policy=policy("at-least-once")
        )
        await tickler.schedules.put(schedule)
        load.due += [Due(owner, schedule.key, instant) for instant in instants]
        load.declared.append(declared(schedule))
    return load


async def put_overdue(url: str, owner: str, keys: Sequence[str], target: Target | str, how: Policy = DEFAULT_POLICY) -> None:
    """Schedules that have been due for a minute: put at a time when they were not, or they would be refused."""
    async with connect(url) as now, connect(url, clock=ManualClock(now.now_ms() - HOUR_MS)) as before:
        at = At(to_datetime(now.now_ms() - 60_000))
        await before.schedules.put_many([Schedule(owner=owner, key=key, when=at, target=target, policy=how) for key in keys])


async def nothing_is_owed(tickler: Tickler) -> bool:
    """Nothing will become due any more, and nothing waits to be delivered."""
    if await tickler.index.next_due() is not None:
        return False
    return not any([(await tickler.fires.list(state=state, limit=1)).items for state in ("open", "waiting")])
