"""Several processes of the same command: started, watched, replaced, and told to stop together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from types import FrameType

from tickler.cli.shutdown import PARENT, TOLD_TWICE, StopSignal

PLACE = "TICKLER_PLACE"  # which of them a process is, in the environment that it gets
POLL_S = 0.1
SHORT_LIFE_S = 5.0  # one that dies so soon is replaced more and more slowly
MAX_PAUSE_S = 30.0

log = logging.getLogger("tickler")


def taken_place() -> int:
    """Which of several this process is, counted from 0."""
    text = os.environ.pop(PLACE, "")
    return int(text) if text.isdecimal() else 0


class Supervisor:
    """Runs this command again, with `--processes 1`, so many times. `patience_s`: how long they may take to stop."""

    def __init__(self, number: int, patience_s: float) -> None:
        self._number = number
        self._patience_s = patience_s
        self._children: dict[int, tuple[subprocess.Popen[bytes], float]] = {}  # by place
        self._start_at: dict[int, float] = {}
        self._failures: dict[int, int] = {}
        self._told = StopSignal()
        self._stopping = False
        self._at_once = False

    def run(self) -> int:
        """Until told to stop; the exit code, 0 when all of them ended well. Told again, they are killed: leases do the rest."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._start_at = dict.fromkeys(range(self._number), 0.0)
        while not self._stopping:
            for place in range(self._number):
                self._look_after(place)
            time.sleep(POLL_S)
        return self._finish()

    def _look_after(self, place: int) -> None:
        now = time.monotonic()
        child = self._children.get(place)
        if child is not None:
            process, started = child
            code = process.poll()
            if code is None:
                return
            del self._children[place]
            failures = self._failures[place] = self._failures.get(place, 0) + 1 if now - started < SHORT_LIFE_S else 0
            pause_s = min(2.0**failures - 1, MAX_PAUSE_S)
            self._start_at[place] = now + pause_s
            log.warning("worker %d of %d ended with %d; another starts in %.0f s", place + 1, self._number, code, pause_s)
        if now >= self._start_at[place]:
            # The last of an option that is given twice counts.
            command = [sys.executable, "-m", "tickler", *sys.argv[1:], "--processes", "1"]
            environ = {**os.environ, PARENT: str(os.getpid()), PLACE: str(place)}
            self._children[place] = (subprocess.Popen(command, env=environ), now)  # noqa: S603  # this very command

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._at_once = self._told.is_again()
        self._stopping = True

    def _finish(self) -> int:
        processes = [process for process, _ in self._children.values()]
        for process in processes:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + self._patience_s
        while any(process.poll() is None for process in processes) and time.monotonic() < until and not self._at_once:
            time.sleep(POLL_S)
        if self._at_once:
            log.warning("leaving at once: what is in flight is delivered by others when its leases end")
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        if self._at_once:
            os._exit(TOLD_TWICE)  # however often it is told meanwhile
        # One that had only begun, or had ended already but for the interpreter, does not handle the signal any better.
        return 0 if all(process.returncode in (0, -signal.SIGTERM) for process in processes) else 1
