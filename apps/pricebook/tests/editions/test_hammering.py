"""Two reader processes hammer a store, in separate statements, while another process switches all its prices."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reading_traversal import versioned

from book import staged, table_url
from pricebook.editions.switch import Switch
from pricebook.editions.timing import Timing
from pricebook.model import pricebook

PRODUCTS = 500
READERS = 2


async def test_readers_in_other_processes_never_see_a_mixture_while_500_prices_switch(
    stored_url: str, tmp_path: Path, soak: bool
) -> None:
    timing = Timing() if soak else Timing(margin=timedelta(milliseconds=700))
    stop = tmp_path / "stop"
    async with pricebook.connect(table_url(stored_url)) as db:
        switch = Switch(db, lambda: datetime.now(UTC), timing)
        await switch.open_store("1")
        await _change(switch, 1)
        readers = [await _start(stored_url, stop) for _ in range(READERS)]
        try:
            await _switch_often(switch, 60 if soak else 2.5)
        finally:
            stop.touch()
        seen = [json.loads((await reader.communicate())[0]) for reader in readers]
    assert [each["mixtures"] for each in seen] == [[]] * READERS
    assert min(each["versions"] for each in seen) > (10 if soak else 1)
    assert sum(each["done"] for each in seen) > (500 if soak else 50)


async def _switch_often(switch: Switch, seconds: float) -> None:
    """Seal version after version. Some are cancelled while they count, some are settled, and some of those are taken back."""
    ends_at, version = time.monotonic() + seconds, 2
    while time.monotonic() < ends_at:
        number = await _change(switch, version)
        if version % 3 == 0:
            await _until(await switch.cancel("1", number))
        if version % 2 == 0:
            await switch.settle("1")
        if version % 4 == 0:
            await switch.roll_back("1", number)
        version += 1


async def _change(switch: Switch, version: int) -> int:
    number = await switch.open_edition("1")
    await switch.stage("1", number, staged(versioned(version, PRODUCTS)))
    edition = await switch.seal("1", number)
    assert isinstance(edition.from_at, datetime)
    await asyncio.sleep((edition.from_at - datetime.now(UTC)).total_seconds() + 0.1)
    return number


async def _until(edition: Any) -> None:
    await asyncio.sleep((edition.to_at - datetime.now(UTC)).total_seconds() + 0.1)


async def _start(url: str, stop: Path) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "hammering_reader", url, str(PRODUCTS), str(stop)]
    return await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent)
