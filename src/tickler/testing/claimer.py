"""A claimer in a process of its own: `python -m tickler.testing.claimer URL NOW_MS LIMIT`.

Says that it is ready, waits for a line on its input, claims until nothing is due and prints what each claim returned; and so
on, until its input ends. `Claimers` starts and speaks with it.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from tickler.connect import connect
from tickler.testing.claimers import READY


def say(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


async def run(url: str, now_ms: int, limit: int) -> None:
    async with connect(url, create=False) as tickler:
        say(READY)
        while sys.stdin.readline():
            while claimed := await tickler.index.claim_due(now_ms, limit):
                say(msgspec.json.encode([(row.owner, row.key, row.next_fire_at) for row in claimed]) + b"\n")
            say(READY)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
