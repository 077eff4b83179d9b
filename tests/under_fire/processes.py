"""What all processes of these tests share: how they are started, how they speak, and that none outlives its test."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress

TIMEOUT_S = 60.0  # for everything that takes a second or two on a quiet machine
LOOPBACK = "127.0.0.0/8"
MAX_LINE_LENGTH = 1 << 20


async def start(*arguments: str, stdin: bool = False, piped: bool = True) -> Process:
    """Python with these arguments, with the modules that this process has, and in a process group of its own."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=PIPE if stdin else None,
        stdout=PIPE if piped else None,
        env=environment(),
        limit=MAX_LINE_LENGTH,
        start_new_session=True,
    )


async def end(process: Process) -> None:
    """Kill it and its children, as far as they are still there."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.wait_for(process.wait(), TIMEOUT_S)


def is_gone(process: Process) -> bool:
    """With all of its children."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def is_stopped(process: Process) -> bool:
    """Stop a process with SIGSTOP for a while."""
    return os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG) is not None


async def ended(process: Process, within_s: float = TIMEOUT_S) -> int:
    """Its exit code, once it has ended by itself."""
    return await asyncio.wait_for(process.wait(), within_s)


async def until(what: str, is_so: Callable[[], bool] | Callable[[], Awaitable[bool]], within_s: float = TIMEOUT_S) -> None:
    """Wait for something to become so, by looking often."""
    ends_at = time.monotonic() + within_s
    while True:
        found = is_so()
        if found if isinstance(found, bool) else await found:
            return
        assert time.monotonic() < ends_at, f"not so within {within_s:g} s: {what}"
        await asyncio.sleep(0.02)


def environment() -> dict[str, str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", "TICKLER_ALLOW_NETWORKS": LOOPBACK}
