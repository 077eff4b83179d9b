"""Two reader processes hammer a store, in separate statements, while another process switches all its prices."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from applied_one_by_one import apply_one_by_one
from reading_traversal import versioned

from book import MARCH, staged, table_url
from pricebook.editions.switch import Switch
from pricebook.editions.timing import Timing
from pricebook.model import pricebook
from tickler.table import OpenTable

PRODUCTS = 500
READERS = 2
SOAK_S = 180.0
CONTROL_S = 0.8


async def test_readers_in_other_processes_never_see_a_mixture_while_500_prices_switch(
    stored_url: str, tmp_path: Path, soak: bool
) -> None:
    """On DynamoDB, their reads of indexes and rows lag behind by up to a second wherever that is possible."""
    timing = Timing() if soak else Timing(margin=timedelta(milliseconds=600))
    async with _book(stored_url, timing) as (_, switch), _readers(stored_url, tmp_path, READERS) as seen:
        await _switch_often(switch, SOAK_S if soak else 2)
    _report(seen)
    assert [each["mixtures"] for each in seen] == [[]] * READERS
    assert min(each["versions"] for each in seen) > (6 if soak else 1)
    assert sum(each["done"] for each in seen) > (1_000 if soak else 50)


async def test_readers_do_see_a_mixture_where_prices_are_applied_one_by_one(sqlite_url: str, tmp_path: Path) -> None:
    """The control: in the design that pricebook began from."""
    async with _book(sqlite_url, Timing()) as (db, _), _readers(sqlite_url, tmp_path, 1) as seen:
        ends_at, version = time.monotonic() + CONTROL_S, 2
        while time.monotonic() < ends_at:
            await apply_one_by_one(db, "1", versioned(version, PRODUCTS), MARCH)
            version += 1
    _report(seen)
    assert len(seen[0]["mixtures"]) > seen[0]["done"] / 2


@asynccontextmanager
async def _book(url: str, timing: Timing) -> AsyncIterator[tuple[OpenTable, Switch]]:
    async with pricebook.connect(table_url(url)) as db:
        switch = Switch(db, lambda: datetime.now(UTC), timing)
        await switch.open_store("1")
        await _change(switch, 1)
        yield db, switch


@asynccontextmanager
async def _readers(url: str, folder: Path, number: int) -> AsyncIterator[list[dict[str, Any]]]:
    """Let processes read meanwhile. What they have seen is in the list afterwards."""
    seen: list[dict[str, Any]] = []
    stop = folder / "stop"
    readers = [await _start(url, stop) for _ in range(number)]
    try:
        yield seen
    finally:
        stop.touch()
        answers = [(await reader.communicate())[0] for reader in readers]
    seen += [json.loads(answer) for answer in answers]


def _report(seen: list[dict[str, Any]]) -> None:
    """Shown by pytest -rP."""
    for each in seen:
        sys.stdout.write(f"{each['done']} traversals of {each['versions']} versions, {len(each['mixtures'])} mixtures\n")


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
    """Start a reader, and wait until it has read all prices once."""
    command = [sys.executable, "-m", "hammering_reader", url, str(PRODUCTS), str(stop)]
    reader = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent)
    assert reader.stdout is not None
    assert await reader.stdout.readline() == b"begun\n"
    return reader
