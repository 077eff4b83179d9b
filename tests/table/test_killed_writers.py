"""A process that is killed while it writes an item and its schedule leaves both or neither, wherever it was killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from table.dropping import drop
from table.joined_shop import Order, shop

import tickler
from tickler import Tickler
from tickler.table.open_table import OpenTable

MAX_STEPS = 200


@pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
async def test_a_writer_that_is_killed_at_any_step_leaves_its_whole_transaction_or_nothing(any_url: str) -> None:
    name = f"killed_{time.monotonic_ns()}"
    async with tickler.connect(any_url) as t, shop.connect(t, name=name, create=True) as db:
        await db.put_many([Order(id=f"old{n}") for n in range(1, MAX_STEPS)])
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "table.killed_writer", any_url, name, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent
        )
        answer, _ = await process.communicate()
        assert process.returncode == 0
        attempts = [await written(t, db, n) for n in range(1, int(answer) + 1)]
        await drop(db)
    assert all(len(set(parts)) == 1 for parts in attempts), attempts
    *killed, completed = [all(parts) for parts in attempts]
    assert completed
    assert killed == sorted(killed), "what was committed stays so at each later step"
    assert not killed[0], "a kill before the commit"
    assert killed[-1], "a kill after it"


async def written(t: Tickler, db: OpenTable, number: int) -> list[bool]:
    """Return which parts of a transaction are there."""
    new, old = await db.get_many([Order.key.id(f"new{number}"), Order.key.id(f"old{number}")])
    assert old is not None
    return [new is not None, old.status == "changed", await t.schedules.get("shop", str(number)) is not None]
