"""Supervises several processes of `tickler work`: starts, restarts and stops them together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from types import FrameType

from tickler.cli.shutdown import PARENT, STOPPED_TWICE, StopSignal

NUMBER = "TICKLER_PLACE"  # environment variable with the number of a child process, from 0
POLL_S = 0.1
SHORT_LIFE_S = 5.0  # a process that dies sooner is restarted with increasing delay
MAX_PAUSE_S = 30.0

log = logging.getLogger("tickler")


class Supervisor:
    """Runs this command `count` times, with `--processes 1`. The processes have `stop_timeout_s` to stop."""

    def __init__(self, count: int, stop_timeout_s: float) -> None:
        self._count = count
        self._stop_timeout_s = stop_timeout_s
        self._children: dict[int, tuple[subprocess.Popen[bytes], float]] = {}  # by number
        self._start_at: dict[int, float] = {}
        self._failures: dict[int, int] = {}
        self._signal = StopSignal()
        self._stopping = False
        self._exit_at_once = False

    def run(self) -> int:
        """Run until a stop signal, and return the exit code: 0 if all processes ended well. A second signal kills them."""
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, self._stop)
        self._start_at = dict.fromkeys(range(self._count), 0.0)
        while not self._stopping:
            for number in range(self._count):
                self._supervise(number)
            time.sleep(POLL_S)
        return self._finish()

    def _supervise(self, number: int) -> None:
        now = time.monotonic()
        child = self._children.get(number)
        if child is not None:
            process, started = child
            code = process.poll()
            if code is None:
                return
            del self._children[number]
            failures = self._failures[number] = self._failures.get(number, 0) + 1 if now - started < SHORT_LIFE_S else 0
            pause_s = min(2.0**failures - 1, MAX_PAUSE_S)
            self._start_at[number] = now + pause_s
            log.warning("worker %d of %d exited with code %d; restarting in %.0f s", number + 1, self._count, code, pause_s)
        if now >= self._start_at[number]:
            # The last value of a repeated option counts.
            command = [sys.executable, "-m", "tickler", *sys.argv[1:], "--processes", "1"]
            environ = {**os.environ, PARENT: str(os.getpid()), NUMBER: str(number)}
            self._children[number] = (subprocess.Popen(command, env=environ), now)  # noqa: S603  # this command itself

    def _stop(self, signal_number: int, frame: FrameType | None) -> None:
        self._exit_at_once = self._signal.is_second()
        self._stopping = True

    def _finish(self) -> int:
        processes = [process for process, _ in self._children.values()]
        for process in processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + self._stop_timeout_s
        while any(process.poll() is None for process in processes) and time.monotonic() < until and not self._exit_at_once:
            time.sleep(POLL_S)
        if self._exit_at_once:
            log.warning("exiting at once: other workers deliver what is in flight when its leases expire")
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        if self._exit_at_once:
            os._exit(STOPPED_TWICE)  # further signals change nothing
        # A process that is just starting or exiting dies of SIGTERM before it handles it.
        return 0 if all(process.returncode in (0, -signal.SIGTERM) for process in processes) else 1
