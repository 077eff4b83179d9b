"""A process that sends a number of keys as soon as it is told, and says of each whether it was new: for `test_sends`."""

from __future__ import annotations

import asyncio
import sys

import tickler


async def main(url: str, number: int) -> None:
    async with tickler.connect(url) as t:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        for n in range(number):
            sent = await t.send("u1", f"k{n}", "https://example.org/hook", n)
            sys.stdout.write(f"{sent.is_new:d} {sent.fire_id}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
