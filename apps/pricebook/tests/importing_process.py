"""A process that imports made prices and exports them, and prints how much memory that took: the most that it saw, in bytes.

Files that are mapped into memory do not count, such as the database.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from imports import ADA, Imports
from pricebook.app import Settings, open_pricebook
from pricebook.bulk import BulkLimits
from pricebook.bulk.export import ExportOptions, Exports
from pricebook.model import BulkOptions

STORES = 10


async def made(lines: int) -> AsyncIterator[bytes]:
    """Yield a CSV whose last tenth has lines of before once more."""
    yield b"store,product,amount,currency\n"
    different = lines - lines // 10
    for first in range(0, lines, 1_000):
        numbers = (n % different for n in range(first, min(first + 1_000, lines)))
        yield "".join(f"{n % STORES},PRODUCT-{n:07},{n % 100}.00,EUR\n" for n in numbers).encode()


async def main(url: str, lines: int) -> int:
    """Return the peak."""
    seen: list[int] = []
    watching = asyncio.create_task(_watch(seen))
    await _import_and_export(url, lines)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    return max(seen)


async def _watch(seen: list[int]) -> None:
    while True:
        (line,) = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("RssAnon:")]
        seen.append(int(line.split()[1]) * 1_024)
        await asyncio.sleep(0.05)


async def _import_and_export(url: str, lines: int) -> None:
    async with open_pricebook(Settings(store=url)) as opened:
        imports = Imports(opened, BulkLimits(failures=lines))
        for store in range(STORES):
            await opened.switch.open_store(str(store))
        job = await imports.jobs.start(ADA, BulkOptions(format="csv"), made(lines))
        await imports.work(job.id)
        found = await imports.get(job.id)
        assert (found.state, found.counts.changes) == ("done", lines - 2 * (lines // 10)), found
        async for _ in (await Exports(opened.db, opened.now).export(ADA, ExportOptions())).pieces:
            pass


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(main(sys.argv[1], int(sys.argv[2])))}\n")
