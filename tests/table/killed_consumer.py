"""Two processes of one consumer, of which some are killed when asked for, and replaced: for `test_killed_consumers`.

They are forks of this process, so that modules are imported once. What happens is written to a file, a line each: what, by which
process, when, and to which change.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from datetime import timedelta

from tickler.table import ItemChange, changed, created
from tickler.testing.stream_fixtures import STREAMED, Task

PROCESSES = 2
LEASE_S = 1.0
WATCHED_EVERY_S = 0.05
STALLED_S = LEASE_S / 3


class EventFile:
    """Lines that several processes append."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, what: str, process: int, change: str = "- 0") -> None:
        os.write(self._file, f"{what} {process} {time.monotonic_ns()} {change}\n".encode())


async def consume(url: str, events: EventFile) -> None:
    async with STREAMED.connect(url) as db:
        consumer = db.consumer("it", lease=timedelta(seconds=LEASE_S))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, consumer.stop)

        @consumer.on(created(Task), changed(Task))
        async def handle(change: ItemChange[Task | None, Task]) -> None:
            shown = f"{change.new.id} {change.new.size}"
            events.add("began", os.getpid(), shown)
            await asyncio.sleep(random.choice((0, 0.002, 0.002, 0.2)))
            events.add("ended", os.getpid(), shown)

        watching = asyncio.create_task(watch(events))
        await consumer.run()
        watching.cancel()


async def watch(events: EventFile) -> None:
    """Note when this process had no processor for so long that it may rightly have lost its leases."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(WATCHED_EVERY_S)
        if time.monotonic() - before > WATCHED_EVERY_S + STALLED_S:
            events.add("stalled", os.getpid())


def start(url: str, events: EventFile) -> int:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(consume(url, events))
            os._exit(0)
        finally:
            os._exit(1)
    return child


def main(url: str, path: str) -> None:
    """Kill and replace as many processes as each line of stdin says. At its end let them stop by themselves."""
    events = EventFile(path)
    STREAMED.connect(url)  # imports the modules of this store
    running = [start(url, events) for _ in range(PROCESSES)]
    for line in sys.stdin:
        for child in random.sample(running, int(line)):
            events.add("killed", child)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            running[running.index(child)] = start(url, events)
    for child in running:
        os.kill(child, signal.SIGTERM)
    if any(os.waitpid(child, 0)[1] for child in running):
        raise SystemExit("a process did not stop by itself")


if __name__ == "__main__":
    main(*sys.argv[1:])
