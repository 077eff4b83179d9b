"""Claimers in processes of their own, to see what several of them do to one store, and what a killed one leaves behind.

Run as `python -m tickler.testing.claimers URL NOW_MS LIMIT`, it waits for a line on its input, then claims until nothing is
due and prints what each claim returned.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from types import TracebackType
from typing import Self

import msgspec

from tickler.connect import connect

Occurrence = tuple[str, str, int]

PATIENCE_S = 60


class Claimers:
    """A set of claimer processes, ended with the `async with` at the latest."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._processes: list[Process] = []
        self.returned: Counter[Occurrence] = Counter()
        self.killed = 0

    async def start(self, number: int, now_ms: int, limit: int) -> None:
        """Start processes that are ready to claim and wait."""
        for _ in range(number):
            arguments = [sys.executable, "-m", "tickler.testing.claimers", self._url, str(now_ms), str(limit)]
            self._processes.append(await asyncio.create_subprocess_exec(*arguments, stdin=PIPE, stdout=PIPE, env=_environment()))
        for process in self._processes:
            line = await self._line(process)
            assert line == b"ready\n", line

    def go(self) -> None:
        """Let them claim, all at once."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")

    async def kill_one_at_work(self) -> None:
        """Kill a process right after a claim of its has come back; whatever it does by then is cut off."""
        process = self._processes.pop()
        self._count(await self._line(process))
        process.kill()
        await self._drain(process)
        assert process.returncode is not None
        if process.returncode < 0:
            self.killed += 1

    async def finish(self) -> Counter[Occurrence]:
        """Wait until the others find nothing due; all that came back, from the killed ones too."""
        for process in self._processes:
            await self._drain(process)
            assert process.returncode == 0, f"a claimer failed with {process.returncode}"
        self._processes.clear()
        return self.returned

    async def _drain(self, process: Process) -> None:
        while line := await self._line(process):
            self._count(line)
        await asyncio.wait_for(process.wait(), PATIENCE_S)

    async def _line(self, process: Process) -> bytes:
        assert process.stdout is not None
        return await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)

    def _count(self, line: bytes) -> None:
        if line.endswith(b"\n"):  # a killed process may leave half a line: that claim is lost
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


async def _claim_all(url: str, now_ms: int, limit: int) -> None:
    async with connect(url, create=False) as tickler:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        while claimed := await tickler.index.claim_due(now_ms, limit):
            occurrences = [(row.owner, row.key, row.next_fire_at) for row in claimed]
            sys.stdout.buffer.write(msgspec.json.encode(occurrences) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(_claim_all(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
