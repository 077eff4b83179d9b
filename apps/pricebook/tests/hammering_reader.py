"""A process that goes through the prices of a store again and again, until a file is there, and tells what it has seen."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from reading_traversal import Traversals

from book import table_url
from pricebook.editions.reading import Prices
from pricebook.model import pricebook


async def main(url: str, products: str, until: str) -> None:
    async with pricebook.connect(table_url(url)) as db:
        reader = Traversals(Prices(db, lambda: datetime.now(UTC)), "1", int(products))
        while not Path(until).exists():
            await reader.finish()
            await asyncio.sleep(0)
    seen = {"done": reader.done, "versions": len(reader.versions), "mixtures": reader.mixtures}
    sys.stdout.write(f"{json.dumps(seen)}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
