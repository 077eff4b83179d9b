"""Shutdown of `work` and `serve`: the first signal drains, the second exits at once, and nothing that hangs prevents the exit."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NoReturn

PARENT = "TICKLER_PARENT"  # environment variable with the supervisor's process id
PARENT_POLL_S = 1.0
CANCEL_TIMEOUT_S = 1.0
EXIT_TIMEOUT_S = 10.0  # after the drain, for the last writes
SAME_SIGNAL_S = 0.3  # timeout(1) and other wrappers send the same signal twice
STOPPED_TWICE = 130  # what a shell reports for Ctrl-C

log = logging.getLogger("tickler")


def pop_number(variable: str) -> int | None:
    """Return what the supervisor told this process, and remove it from the environment: child processes must not inherit it."""
    text = os.environ.pop(variable, "")
    return int(text) if text.isdecimal() else None


class StopSignal:
    """Tells a second stop signal from an echo of the first one."""

    def __init__(self) -> None:
        self._first_at: float | None = None

    def is_second(self) -> bool:
        """Call once per signal."""
        now = time.monotonic()
        if self._first_at is None:
            self._first_at = now
        return now - self._first_at > SAME_SIGNAL_S


class Shutdown:
    """Stops a run on signals, or when its parent is gone. Attempts in flight get `drain_s`.

    A process with a parent ignores Ctrl-C and does not count signals: a terminal and systemd signal both processes, and the
    parent kills its children on the second signal.
    """

    def __init__(self, stop: Callable[[], None], drain_s: float, parent: int | None) -> None:
        self._stop = stop
        self._drain_s = drain_s
        self._parent = parent
        self._signal = StopSignal()
        self._is_stopping = False
        self._loop = asyncio.get_running_loop()
        self._parent_watch: asyncio.Task[None] | None = None

    def listen(self) -> None:
        # Not with loop.add_signal_handler: the second signal must work while something blocks the loop.
        signal.signal(signal.SIGTERM, self._on_signal)
        if self._parent is None:
            signal.signal(signal.SIGINT, self._on_signal)
        else:
            self._parent_watch = asyncio.create_task(self._watch_parent(self._parent), name="parent watch")

    async def end(self) -> None:
        """Cancel remaining tasks after the run, such as a handler that ignores cancellation, and exit without those that stay."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            _, others = await asyncio.wait(others, timeout=CANCEL_TIMEOUT_S)
        if others:
            _exit_now(f"stopped, although these tasks did not end: {_describe(others)}", 0)

    def _on_signal(self, number: int, frame: object) -> None:
        if self._signal.is_second() and self._parent is None:
            _exit_now("exiting at once: other workers deliver what is in flight when its leases expire", STOPPED_TWICE)
        with suppress(RuntimeError):  # the loop is closed: it has stopped
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        again = "; signal again to exit at once" if self._parent is None else ""
        log.info("stopping: attempts in flight have up to %g s%s", self._drain_s, again)
        self._loop.call_later(self._drain_s + EXIT_TIMEOUT_S, self._on_timeout)
        self._stop()

    def _on_timeout(self) -> None:
        _exit_now(f"did not stop in time, exiting; remaining tasks: {_describe(asyncio.all_tasks())}", 1)

    async def _watch_parent(self, parent: int) -> None:
        while os.getppid() == parent:  # noqa: ASYNC110  # no portable notification
            await asyncio.sleep(PARENT_POLL_S)
        log.warning("the parent process is gone")
        self._begin()


def _exit_now(why: str, code: int) -> NoReturn:
    log.warning("%s", why)
    os._exit(code)


def _describe(tasks: Iterable[asyncio.Task[object]]) -> str:
    return "; ".join(sorted(_stack(task) for task in tasks))


def _stack(task: asyncio.Task[object]) -> str:
    """Return the coroutines that a task waits in, the innermost last."""
    names: list[str] = []
    coroutine: object = task.get_coro()
    while name := getattr(coroutine, "__qualname__", None):
        names.append(name)
        coroutine = getattr(coroutine, "cr_await", None)
    return " > ".join(names) or task.get_name()
