"""Controls processes that claim from one store, to test competing and killed claimers."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from types import TracebackType
from typing import Self

import msgspec

READY = b"ready\n"  # printed by a claimer that waits for a command
CLAIM_TIMEOUT_S = 60

Occurrence = tuple[str, str, int]


class Claimers:
    """A set of claimer processes, which end with the `async with` at the latest."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._processes: list[Process] = []
        self.returned: Counter[Occurrence] = Counter()
        self.killed = 0

    async def start(self, number: int, now_ms: int, limit: int) -> None:
        """Start processes and wait until they are ready to claim."""
        arguments = [sys.executable, "-m", "tickler.testing.claimer", self._url, str(now_ms), str(limit)]
        for _ in range(number):
            self._processes.append(await asyncio.create_subprocess_exec(*arguments, stdin=PIPE, stdout=PIPE, env=_environment()))
        await self.settle()

    def go(self) -> None:
        """Let all processes claim concurrently until nothing is due."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")

    async def settle(self) -> None:
        """Wait until all processes are ready again."""
        for process in self._processes:
            while (line := await self._line(process)) != READY:
                assert line, "a claimer ended too early"
                self._count(line)

    async def kill_one_at_work(self) -> None:
        """Kill a process right after one of its claims has returned, in the middle of its next step.

        A process that found nothing left is already idle: it does not count as killed.
        """
        process = self._processes.pop()
        is_claiming = (line := await self._line(process)) != READY
        if is_claiming:
            self._count(line)
        process.kill()
        await self._drain(process)
        assert process.returncode is not None
        if is_claiming and process.returncode < 0:
            self.killed += 1

    async def finish(self) -> Counter[Occurrence]:
        """Wait until nothing is due, end the processes, and return all claimed occurrences, also those of killed processes."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
            await self._drain(process)
            assert process.returncode == 0, f"a claimer failed with {process.returncode}"
        self._processes.clear()
        return self.returned

    async def _drain(self, process: Process) -> None:
        while line := await self._line(process):
            if line != READY:
                self._count(line)
        await asyncio.wait_for(process.wait(), CLAIM_TIMEOUT_S)

    async def _line(self, process: Process) -> bytes:
        assert process.stdout is not None
        return await asyncio.wait_for(process.stdout.readline(), CLAIM_TIMEOUT_S)

    def _count(self, line: bytes) -> None:
        if line.endswith(b"\n"):  # a killed process may leave a partial line: that claim is lost
            self.returned.update(msgspec.json.decode(line, type=list[Occurrence]))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await self._drain(process)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
