"""An event loop whose time passes as soon as there is nothing to do: hours of waiting are tested in no time, and exactly.

For what waits by the loop alone, with a store in memory: a thread that is still at work would be overtaken.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ParamSpec

P = ParamSpec("P")

START_MS = 1_921_406_400_000  # 2030-11-20T12:00:00Z
MAX_S = 4 * 3_600.0  # a test that takes longer waits for something that does not come
REAL_PATIENCE_S = 10.0


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._passed_s = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._passed_s

    def pass_time(self, seconds: float) -> None:
        self._passed_s += seconds


class _Selector(selectors.BaseSelector):
    """Asks the real one without waiting; where it would have waited, time passes."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:  # only something from outside can go on now, such as a thread that ends
            ready = self._real.select(REAL_PATIENCE_S)
            assert ready, "everything waits, and nothing would ever wake it"
            return ready
        self._loop.pass_time(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class LoopClock:
    """The time of the running loop, as Tickler counts it; `set_by` moves it, like setting a clock."""

    def __init__(self) -> None:
        self.set_by_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.set_by_ms + round(asyncio.get_running_loop().time() * 1000)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on a loop of its own whose time is virtual."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(asyncio.wait_for(test(*args, **kwargs), MAX_S))

    return run
