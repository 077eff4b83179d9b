"""A Tickler on a faulty in-memory store, in virtual time, with a handler whose behaviour a test sets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec

from tickler import At, Delivery, HttpTarget, Outcome, PythonTarget, RunOptions, Schedule, Target, Tickler
from tickler.client import Settings
from tickler.clock import to_datetime
from tickler.fires import Claim, Entry, Fire
from tickler.model.policy import DEFAULT_POLICY, Policy
from tickler.model.schedule import StoredSchedule
from tickler.when import When

from .faulty_store import Faults, FaultyStore
from .virtual_time import START_MS, LoopClock

AT_MOST_ONCE = Policy(delivery="at-most-once")


class Arrival(msgspec.Struct, frozen=True):
    """One call of the handler."""

    owner: str
    key: str
    attempt: int
    at_ms: int
    nominal_at: int

    @property
    def late_ms(self) -> int:
        return self.at_ms - self.nominal_at


class Bench:
    """Notes every delivery, and then asks `behave` for its outcome.

    An Outcome is taken as it is; anything else is a Python handler's answer.
    """

    def __init__(self, *, kept_days: float = 30) -> None:
        self.faults = Faults()
        self.store = FaultyStore(self.faults)
        self.clock = LoopClock()
        self.settings = Settings(create=True, environ={}, keep_history=timedelta(days=kept_days))
        self.tickler = Tickler(self.store.store(), self.clock, self.settings)
        self.arrived: list[Arrival] = []
        self.at_once = 0
        self.most_at_once = 0
        self.most_of: Counter[str] = Counter()  # by owner
        self._of: Counter[str] = Counter()
        self._waiters: list[tuple[int, asyncio.Event]] = []
        self.behave: Callable[[Delivery], Awaitable[object]] = _at_once
        self.tickler.handler("work")(self._work)
        self.tickler.deliver_with(HttpTarget, self)

    def another(self) -> Tickler:
        """Return a Tickler on the same store, as another process would have it: it wakes no worker here."""
        return Tickler(self.store.store(), self.clock, self.settings)

    async def open(self) -> None:
        """Do nothing, as a deliverer."""

    async def close(self) -> None:
        """Do nothing, as a deliverer."""

    async def deliver(self, delivery: Delivery, target: HttpTarget) -> Outcome:
        """Deliver to hosts that do not exist."""
        outcome = await self._work(delivery)
        return outcome if isinstance(outcome, Outcome) else Outcome(verdict="delivered", status=204)

    async def _work(self, delivery: Delivery) -> object:
        self.arrived.append(Arrival(delivery.owner, delivery.key, delivery.attempt, self.clock.now_ms(), delivery.nominal_at))
        for number, reached in self._waiters:
            if len(self.arrived) >= number:
                reached.set()
        self._of[delivery.owner] += 1
        self.most_of[delivery.owner] = max(self.most_of[delivery.owner], self._of[delivery.owner])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self.behave(delivery)
        finally:
            self.at_once -= 1
            self._of[delivery.owner] -= 1

    @property
    def keys(self) -> list[str]:
        return [arrival.key for arrival in self.arrived]

    async def until_arrived(self, number: int) -> None:
        """Wait until so many attempts have begun in total."""
        reached = asyncio.Event()
        self._waiters.append((number, reached))
        if len(self.arrived) < number:
            await reached.wait()

    async def put(self, *schedules: Schedule) -> None:
        await self.tickler.schedules.put_many(schedules)

    async def fires(self, state: str = "open") -> list[Fire]:
        return (await self.tickler.fires.list(state=state, limit=10_000)).items  # type: ignore[arg-type]  # one of the states

    async def history(self, key: str = "digest", owner: str = "u1") -> list[Entry]:
        """Return the history, oldest first."""
        return (await self.tickler.fires.history(owner, key, limit=10_000)).items[::-1]

    async def happened(self, key: str = "digest", owner: str = "u1") -> list[str]:
        return [entry.happened for entry in await self.history(key, owner)]

    async def stored(self, key: str = "digest", owner: str = "u1") -> StoredSchedule:
        found = await self.tickler.schedules.get(owner, key)
        assert found is not None, f"{owner}/{key} is gone"
        return found

    async def claimed_by_a_ghost(self, lease_ms: int = 60_000) -> list[Claim]:
        """Claim as a worker that then disappears."""
        return await self.tickler.fires.claim(self.clock.now_ms(), worker="ghost", lease_ms=lease_ms)

    @asynccontextmanager
    async def running(self, options: RunOptions | None = None) -> AsyncIterator[asyncio.Task[None]]:
        """Run a worker until the end of the `async with`, and wait for it."""
        task = asyncio.create_task(self.tickler.run(options))
        try:
            yield task
        finally:
            self.tickler.stop()
            await task


async def _at_once(delivery: Delivery) -> object:
    return None


def after(seconds: float, then: object = None) -> Callable[[Delivery], Awaitable[object]]:
    """Return a behaviour that waits, and then returns or raises something."""

    async def behave(delivery: Delivery) -> object:
        await asyncio.sleep(seconds)
        if isinstance(then, BaseException):
            raise then
        return then

    return behave


def soon(seconds: float) -> At:
    """Return the instant so many seconds after the start of the test."""
    return At(to_datetime(START_MS + round(seconds * 1000)))


def schedule(
    key: str = "digest",
    when: When | float = 10.0,
    policy: Policy = DEFAULT_POLICY,
    *,
    owner: str = "u1",
    host: str | None = None,
) -> Schedule:
    """Return a schedule, due at a when or so many seconds after the start of the test, for a handler or a host."""
    once = not isinstance(when, When)
    due = when if isinstance(when, When) else soon(when)
    target: Target = PythonTarget("work") if host is None else HttpTarget(f"https://{host}.example/hook")
    return Schedule(owner=owner, key=key, when=due, target=target, policy=policy, delete_after=False if once else None)


def many(number: int, when: float = 10.0, policy: Policy = DEFAULT_POLICY, *, owner: str = "u1") -> Sequence[Schedule]:
    return [schedule(f"k{n:05}", when, policy, owner=owner) for n in range(number)]
