"""A process that claims: `python -m tickler.testing.claimer URL NOW_MS LIMIT`. `Claimers` starts and controls it.

It prints `ready`, waits for a line on stdin, claims until nothing is due, and prints the result of each claim; then it starts
over, until stdin ends.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from tickler.connect import connect
from tickler.testing.claimers import READY


def write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


async def run(url: str, now_ms: int, limit: int) -> None:
    async with connect(url, create=False) as tickler:
        write_line(READY)
        while sys.stdin.readline():
            while claimed := await tickler.index.claim_due(now_ms, limit):
                write_line(msgspec.json.encode([(row.owner, row.key, row.next_fire_at) for row in claimed]) + b"\n")
            write_line(READY)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
