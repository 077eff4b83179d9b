"""An in-memory store that can be away, be slow or lose its answers, and that counts its calls."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from tickler.errors import StoreUnavailable
from tickler.model.fire import Settlement
from tickler.stores.memory import MemoryStore
from tickler.stores.store import Store

AWAY = "the store is away"


class Faults:
    """Injects faults into the calls of a store, by name: `fires.claim`, `records.put`, …"""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.failing: dict[str, Exception] = {}  # every call, until it is taken out
        self.failing_once: dict[str, list[Exception | None]] = {}  # call by call; None lets one pass
        self.losing_answers: set[str] = set()  # it is done, and the caller is told that the store is away
        self.held: dict[str, asyncio.Event] = {}  # it is done, and the caller is told when the event is set
        self.settled: list[Settlement] = []  # in the order in which they were written
        self._waiters: list[tuple[str, int, asyncio.Event]] = []

    def away(self, *names: str) -> None:
        self.failing |= {name: StoreUnavailable(AWAY) for name in names}

    def back(self) -> None:
        self.failing.clear()

    async def until_asked(self, name: str, more: int = 1) -> None:
        """Wait until a call was made so many more times."""
        reached = asyncio.Event()
        self._waiters.append((name, self.asked[name] + more, reached))
        await reached.wait()

    async def pass_on(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        self.asked[name] += 1
        for awaited, number, reached in self._waiters:
            if self.asked[awaited] >= number:
                reached.set()
        once = self.failing_once.get(name)
        error = once.pop(0) if once else self.failing.get(name)
        if error is not None:
            raise error
        answer = await work()
        if name in self.held:
            await self.held[name].wait()
        if name in self.losing_answers:
            raise StoreUnavailable(AWAY)
        return answer


class _Part:
    """One of a store's collections."""

    def __init__(self, kind: str, part: object, faults: Faults) -> None:
        self._kind = kind
        self._part = part
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._part, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute

        async def call(*args: Any, **kwargs: Any) -> Any:
            answer = await self._faults.pass_on(f"{self._kind}.{name}", lambda: attribute(*args, **kwargs))
            if name == "settle":
                self._faults.settled += cast(Sequence[Settlement], args[0])
            return answer

        return call


class FaultyStore:
    """The type checker does not see a Store here, because calls are forwarded; `store()` returns one."""

    def __init__(self, faults: Faults) -> None:
        self.real = MemoryStore()
        self.faults = faults
        self.fires = _Part("fires", self.real.fires, faults)
        self.schedules = _Part("schedules", self.real.schedules, faults)
        self.records = _Part("records", self.real.records, faults)
        self.clock: Callable[[], int] | None = None  # of the store's own machine
        self.wakers: list[Callable[[], None]] = []
        self.hangs_up = asyncio.Event()  # whoever watches is told then that the connection ended
        self.can_call = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    async def now_ms(self) -> int | None:
        return None if self.clock is None else self.clock()

    async def watch(self, wake: Callable[[], None]) -> bool:
        if self.can_call:
            self.wakers.append(wake)
            await self.hangs_up.wait()
        return self.can_call

    def store(self) -> Store:
        return cast(Store, self)
