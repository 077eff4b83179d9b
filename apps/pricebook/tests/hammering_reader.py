"""A process that goes through the prices of a store again and again, until a file is there, and tells what it has seen.

After its first traversal it says that it has begun.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from lagging_reads import let_reads_lag
from reading_traversal import FrozenClock, Traversals

from book import table_url
from pricebook.editions.reading import Prices
from pricebook.model import pricebook


async def main(url: str, products: str, until: str) -> None:
    """Each traversal has one instant, and looks at some of its prices across stores, too."""
    async with pricebook.connect(table_url(url)) as db:
        if url.startswith("dynamodb"):
            let_reads_lag(db.engine)
        clock = FrozenClock(lambda: datetime.now(UTC))
        reader = Traversals(Prices(db, clock.now), "1", int(products), clock=clock)
        await reader.finish()
        _say("begun")
        while not Path(until).exists():
            await reader.finish()
            await reader.look_across()
            await asyncio.sleep(0)
    seen = {"done": reader.done, "across": reader.across, "versions": len(reader.versions), "mixtures": reader.mixtures}
    _say(json.dumps(seen))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
