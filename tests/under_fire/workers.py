"""Worker processes: started, killed, replaced and stopped; and what each of them said before it went."""

from __future__ import annotations

import asyncio
import signal
from array import array
from asyncio.subprocess import Process
from fcntl import ioctl
from termios import FIONREAD
from types import TracebackType
from typing import Self

import msgspec

from under_fire.processes import TIMEOUT_S, end, ended, is_stopped, start, until
from under_fire.worker import Claimed, Claiming, Dispatched, Held, Late, Line, Options, Said, Working

_decode = msgspec.json.Decoder(Line).decode


class Worker:
    """One process, and what it has said."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.is_working = False
        self.asked_for = 0  # the limit of a claim that the store has not answered
        self.claimed: list[Held] = []
        self.dispatched: set[tuple[str, int]] = set()
        self.late = 0
        self.said: list[str] = []
        self._reading = asyncio.create_task(self._read())

    @property
    def held(self) -> list[Held]:
        """What it claimed and has not finished."""
        return [held for held in self.claimed if (held.id, held.attempt) not in self.dispatched]

    async def heard(self) -> None:
        """Wait until it has ended, and all that it said is known."""
        await asyncio.wait_for(self._reading, TIMEOUT_S)
        await ended(self.process)

    async def heard_so_far(self) -> None:
        """Of one that stands still: wait until nothing that it said is unread."""
        pipe = self.process._transport.get_pipe_transport(1).get_extra_info("pipe")  # type: ignore[attr-defined]
        await until("all it said is read", lambda: _unread(pipe.fileno()) == 0)
        await asyncio.sleep(0.01)  # so that what was read is heard

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while (line := await self.process.stdout.readline()).endswith(b"\n"):  # of a killed one the last may be half a line
            self._hear(_decode(line))

    def _hear(self, line: Line) -> None:
        match line:
            case Working():
                self.is_working = True
            case Claiming(limit):
                self.asked_for = limit
            case Claimed(held):
                self.asked_for = 0
                self.claimed += held
            case Dispatched(id, attempt):
                self.dispatched.add((id, attempt))
            case Late(number):
                self.late += number
            case Said(text):
                self.said.append(text)


class Workers:
    """Several of them on one store. Those that still live at the end of the `async with` are killed."""

    def __init__(self, url: str, options: Options) -> None:
        self._arguments = ("-m", "under_fire.worker", url, msgspec.json.encode(options).decode())
        self.living: list[Worker] = []
        self.killed: list[Worker] = []

    async def start(self, number: int = 1) -> None:
        """Start so many more, and wait until they work."""
        started = [Worker(await start(*self._arguments)) for _ in range(number)]
        self.living += started
        await until("the workers work", lambda: all(worker.is_working for worker in started))

    async def kill_one_at_work(self) -> Worker:
        """Send SIGKILL to the worker that holds most, once one holds an at-least-once fire.

        It is stopped before, and heard to the end: it might have ended its last attempt just now.
        """
        while True:
            await until("a worker holds something", lambda: any(_owed(worker) for worker in self.living))
            worker = max(self.living, key=_owed)
            worker.process.send_signal(signal.SIGSTOP)
            await until("it stands still", lambda worker=worker: is_stopped(worker.process))
            await worker.heard_so_far()
            if _owed(worker):
                break
            worker.process.send_signal(signal.SIGCONT)
        worker.process.kill()
        self.living.remove(worker)
        self.killed.append(worker)
        await worker.heard()
        return worker

    async def stop(self) -> None:
        """SIGTERM for all, which they are to survive until all is written."""
        for worker in self.living:
            worker.process.send_signal(signal.SIGTERM)
        for worker in self.living:
            await worker.heard()
            assert worker.process.returncode == 0, worker.said

    def all_alive(self) -> bool:
        return all(worker.process.returncode is None for worker in self.living)

    @property
    def said(self) -> list[str]:
        return [text for worker in [*self.killed, *self.living] for text in worker.said]

    @property
    def late(self) -> int:
        """Leases that turned out to be another's."""
        return sum(worker.late for worker in [*self.killed, *self.living])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for worker in self.living:
            await end(worker.process)
            await worker.heard()


def _unread(pipe: int) -> int:
    size = array("i", [0])
    ioctl(pipe, FIONREAD, size)
    return size[0]


def _owed(worker: Worker) -> int:
    return sum(held.owed for held in worker.held)
