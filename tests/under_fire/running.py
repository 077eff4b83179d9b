"""Workers in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tickler import RunOptions, Tickler
from under_fire.processes import TIMEOUT_S

SHORT_LEASE = RunOptions(lease=5, drain=10)


@asynccontextmanager
async def running(*ticklers: Tickler, options: RunOptions = SHORT_LEASE) -> AsyncIterator[None]:
    """Each runs until the end of the `async with`, and has to end well."""
    tasks = [asyncio.create_task(tickler.run(options)) for tickler in ticklers]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for tickler in ticklers:
            tickler.stop()
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*tasks)
