"""A worker process for `processes.py`: delivers when it is told to, and prints the processor time that it took.

`python bench/delivering_worker.py URL MS` prints a line when it is ready. It reads lines in pairs: the instant at which to begin,
and anything when to stop; then it prints the seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time

from tickler import ManualClock, RunOptions, connect
from tickler.process.event_loop import run
from tickler.process.gc_tuning import tune_gc

AT_ONCE = 100
OPTIONS = RunOptions(in_flight=AT_ONCE, per_owner=AT_ONCE, per_host=AT_ONCE)


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    clock = ManualClock(int(sys.argv[2]))
    async with connect(sys.argv[1], clock=clock, allow_networks=("127.0.0.0/8",)) as tickler:
        tune_gc()
        _print("ready")
        while line := await reader.readline():
            clock.set(int(line))
            before = time.process_time()
            running = asyncio.create_task(tickler.run(OPTIONS))
            await reader.readline()
            tickler.stop()
            await running
            _print(str(time.process_time() - before))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(main)
