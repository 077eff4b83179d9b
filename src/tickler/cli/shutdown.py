"""How a worker's process ends: told once, it finishes; told again, it leaves at once; and nothing that hangs keeps it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NoReturn

PARENT = "TICKLER_PARENT"  # the process that looks after this one, in the environment that it gives
WATCH_S = 1.0
LINGER_S = 1.0
EXIT_TIMEOUT_S = 10.0  # beyond the drain, for what is written last
SAME_S = 0.3  # timeout(1) and others that pass signals on send the same one twice
TOLD_TWICE = 130  # as a shell has it for Ctrl-C

log = logging.getLogger("tickler")


def taken_parent() -> int | None:
    """Who looks after this process. What this process starts is not told, and so does not take it for its own."""
    text = os.environ.pop(PARENT, "")
    return int(text) if text.isdecimal() else None


class StopSignal:
    """Whether a process was told to stop, and whether again."""

    def __init__(self) -> None:
        self._first_at: float | None = None

    def is_again(self) -> bool:
        """To be asked once a signal."""
        now = time.monotonic()
        if self._first_at is None:
            self._first_at = now
        return now - self._first_at > SAME_S


class Shutdown:
    """Stops a run that has `drain_s` for what is in flight, on signals or because the parent is gone.

    One that has a parent leaves Ctrl-C to it, and does not count: a terminal tells both, and so does systemd. The parent kills
    whom it would tell again.
    """

    def __init__(self, stop: Callable[[], None], drain_s: float, parent: int | None) -> None:
        self._stop = stop
        self._drain_s = drain_s
        self._parent = parent
        self._told = StopSignal()
        self._is_stopping = False
        self._loop = asyncio.get_running_loop()
        self._watching: asyncio.Task[None] | None = None

    def listen(self) -> None:
        # Not by the loop: whoever asks again may do so because something keeps the loop.
        signal.signal(signal.SIGTERM, self._on_signal)
        if self._parent is None:
            signal.signal(signal.SIGINT, self._on_signal)
        else:
            self._watching = asyncio.create_task(self._watch(self._parent), name="watching the parent")

    async def end(self) -> None:
        """After the run: what is still there, such as a handler that goes on when it is cancelled, gets a second."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            _, others = await asyncio.wait(others, timeout=LINGER_S)
        if others:
            _leave(f"stopped, but for what does not end: {_shown(others)}", 0)

    def _on_signal(self, number: int, frame: object) -> None:
        if self._told.is_again() and self._parent is None:
            _leave("leaving at once: what is in flight is delivered by others when its leases end", TOLD_TWICE)
        with suppress(RuntimeError):  # the loop is closed: it has stopped
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        again = "; again to leave at once" if self._parent is None else ""
        log.info("stopping: up to %g s for what is in flight%s", self._drain_s, again)
        self._loop.call_later(self._drain_s + EXIT_TIMEOUT_S, self._give_up)
        self._stop()

    def _give_up(self) -> None:
        _leave(f"did not stop in time, and leaves; what is still there: {_shown(asyncio.all_tasks())}", 1)

    async def _watch(self, parent: int) -> None:
        while os.getppid() == parent:  # noqa: ASYNC110  # nothing tells of it, on all systems alike
            await asyncio.sleep(WATCH_S)
        log.warning("the process that started this one is gone")
        self._begin()


def _leave(why: str, code: int) -> NoReturn:
    log.warning("%s", why)
    os._exit(code)


def _shown(tasks: Iterable[asyncio.Task[object]]) -> str:
    return "; ".join(sorted(_where(task) for task in tasks))


def _where(task: asyncio.Task[object]) -> str:
    """What a task waits in, the innermost last."""
    names: list[str] = []
    waits: object = task.get_coro()
    while name := getattr(waits, "__qualname__", None):
        names.append(name)
        waits = getattr(waits, "cr_await", None)
    return " > ".join(names) or task.get_name()
