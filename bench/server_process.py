"""A server in a process of its own, whose processor time can be read."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

START_TIMEOUT_S = 60
ANSWER_TIMEOUT_S = 60
END_TIMEOUT_S = 20


class ServerProcess:
    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self.port = port

    async def processor_s(self) -> float:
        """Return the processor seconds that it has taken."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return float(await _line(self._process, ANSWER_TIMEOUT_S))


@asynccontextmanager
async def server_process(script: str, *arguments: str) -> AsyncIterator[ServerProcess]:
    """Run a script of this folder that tells its port first. It is ended with the block."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        yield ServerProcess(process, int(float(await _line(process, START_TIMEOUT_S))))
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _line(process: Process, timeout_s: float) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(timeout_s):
        line = (await process.stdout.readline()).decode().strip()
    if not line:
        raise RuntimeError(f"{process} ended: its error is above")
    return line
