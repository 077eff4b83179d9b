"""Processes that are killed at their first step, at their second, and so on to the end.

Each attempt is a process of its own, forked from a program that has imported all modules. Tests start that by `answer_of`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]


class Steps:
    """Counts steps once it is begun, and kills this process at number `last`."""

    def __init__(self, last: int) -> None:
        self._last = last
        self._taken: int | None = None

    def begin(self, engine: Any = None, *, before_writes: bool = True) -> None:
        """Count from now on: points, and steps before and after each write of an engine of the table toolkit."""
        self._taken = 0
        for name in () if engine is None else ("write", "write_each"):
            setattr(engine, name, self._around(getattr(engine, name), before_writes))

    async def at_point(self, _: str) -> None:
        self._step()

    def _around(self, write: Callable[..., Awaitable[Any]], before_writes: bool) -> Callable[..., Awaitable[Any]]:
        async def stepping(*args: Any, **kwargs: Any) -> Any:
            if before_writes:
                self._step()
            written = await write(*args, **kwargs)
            self._step()
            return written

        return stepping

    def _step(self) -> None:
        if self._taken is None:
            return
        self._taken += 1
        if self._taken == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def survivor(work: Callable[[int], Coroutine[Any, Any, None]], numbers: Iterable[int] | None = None) -> int:
    """Do work with each number in turn, 1, 2, 3 unless others are given. Returns the first one with which it was not killed."""
    return next(number for number in numbers or itertools.count(1) if not _is_killed(lambda: work(number)))  # noqa: B023  # at once


def all_done(works: Iterable[Work]) -> int:
    """Do all of them at once, each in its own process. Returns how many came to their end."""
    children = [_fork(work) for work in works]
    return sum(os.waitpid(child, 0)[1] == 0 for child in children)


async def answer_of(module: str, *arguments: str | int) -> int:
    """Run a module of this folder as a program, and return the number that it prints."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=Path(__file__).parent)
    answer, _ = await process.communicate()
    assert process.returncode == 0
    return int(answer)


def _is_killed(work: Work) -> bool:
    _, status = os.waitpid(_fork(work), 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise SystemExit("an attempt failed")
    return False


def _fork(work: Work) -> int:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work())
            os._exit(0)
        finally:
            os._exit(1)
    return child
