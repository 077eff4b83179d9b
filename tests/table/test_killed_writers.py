"""A process that is killed while it writes in one transaction leaves all of it or nothing, wherever it was killed."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest
from table.dropping import drop
from table.joined_shop import Order, shop

import tickler
from tickler import Schedule, Tickler
from tickler.model.schedule import Id
from tickler.records.kinds import SEND
from tickler.sends.contract import record_name
from tickler.table.open_table import OpenTable

MAX_STEPS = 70
WAYS = {"sqlite": ["table", "connection", "alone"], "postgres": ["table", "connection", "alone"], "dynamodb": ["table", "alone"]}


@pytest.mark.parametrize("any_url", ["sqlite", "postgres", "dynamodb"], indirect=True)
async def test_a_writer_that_is_killed_at_any_step_leaves_its_whole_transaction_or_nothing(
    any_url: str, request: pytest.FixtureRequest
) -> None:
    """In a transaction of a table, in one of its own connection, and in a call of `send` alone."""
    ways, name = WAYS[request.node.callspec.params["any_url"]], f"killed_{time.monotonic_ns()}"
    async with tickler.connect(any_url) as t, shop.connect(t, name=name, create=True) as db:
        await prepare(t, db, ways)
        if "connection" in ways:
            await execute(any_url, f"CREATE TABLE {name}_own (key TEXT)")
        attempts = await killed(any_url, name, ways)
        scheduled = {each.key for each in (await t.schedules.list(owner="shop", limit=1000)).items}
        sent = {key: await was_sent(t, key, scheduled) for keys in attempts.values() for key in keys}
        for way in {"table", "connection"}.intersection(ways):
            fired = {fire.key for fire in (await t.fires.list(owner="shop", limit=1000)).items}
            marks = {record.name for record in await t.records.list("mark", limit=1000)}
            own = await (of_a_table(db, attempts[way]) if way == "table" else of_a_connection(any_url, name, attempts[way]))
            check([[*own[key], key in scheduled, *sent[key], f"fired-{key}" in fired, key in marks] for key in attempts[way]])
        check([[*sent[key]] for key in attempts["alone"]])
        for key in attempts["alone"]:
            again = await t.send("shop", f"sent-{key}", "https://example.org/orders", key)
            assert again.is_new is not all(sent[key]), "the program starts again, and sends what it has not sent"
        await drop(db)


async def prepare(t: Tickler, db: OpenTable, ways: Sequence[str]) -> None:
    """Put what the attempts change: an item, and a schedule to fire."""
    numbers = range(1, MAX_STEPS)
    await db.put_many([Order(id=f"old-table{n}") for n in numbers])
    await t.schedules.put_many(
        Schedule(owner="shop", key=f"fired-{way}{n}", when="@yearly", target="https://example.org/orders")
        for way in ways
        for n in numbers
    )


async def killed(url: str, name: str, ways: Sequence[str]) -> dict[str, list[str]]:
    """Return the keys of the attempts in each way, the last of which was not killed."""
    command = [sys.executable, "-m", "table.killed_writer", url, name, *ways]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent)
    answer, _ = await process.communicate()
    assert process.returncode == 0
    return {way: [f"{way}{n + 1}" for n in range(int(many))] for way, many in zip(ways, answer.split(), strict=True)}


async def of_a_table(db: OpenTable, keys: Sequence[str]) -> dict[str, list[bool]]:
    """Return which items of each attempt were written."""
    new = await db.get_many([Order.key.id(f"new-{key}") for key in keys])
    old = [order for order in await db.get_many([Order.key.id(f"old-{key}") for key in keys]) if order is not None]
    written = [[put is not None, changed.status == "changed"] for put, changed in zip(new, old, strict=True)]
    return dict(zip(keys, written, strict=True))


async def of_a_connection(url: str, name: str, keys: Sequence[str]) -> dict[str, list[bool]]:
    """Return whether the row of each attempt was written."""
    written = {key for (key,) in await execute(url, f"SELECT key FROM {name}_own")}
    return {key: [key in written] for key in keys}


async def was_sent(t: Tickler, key: str, scheduled: set[str]) -> list[bool]:
    """Return whether a send is there, and whether it is remembered."""
    record = await t.records.get(SEND, record_name(Id("shop", f"sent-{key}")))
    return [f"sent-{key}" in scheduled, record is not None]


def check(attempts: list[list[bool]]) -> None:
    assert all(len(set(parts)) == 1 for parts in attempts), attempts
    *killed, completed = [all(parts) for parts in attempts]
    assert completed
    assert killed == sorted(killed), "what was committed stays so at each later step"
    assert not killed[0], "a kill before the commit"
    assert killed[-1], "a kill after it"


async def execute(url: str, statement: str) -> Sequence[Sequence[str]]:
    """Execute a statement of the application."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()
    own = await asyncpg.connect(url.partition("&schema=")[0])
    try:
        return [tuple(row) for row in await own.fetch(statement)]
    finally:
        await own.close()
