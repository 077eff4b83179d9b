"""The recipe of docs/guides/table.md that keeps schedules in step with items, as it stands there, on every engine."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from table.dropping import drop
from table.guide_tables import GUIDE, guide_classes

import tickler
from tickler.client import Tickler
from tickler.table.open_table import OpenTable

TABLES = guide_classes()
Ticket = TABLES["Ticket"]
TOMORROW = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)


class Recipe:
    """What the snippet of the guide defines, on one engine."""

    def __init__(self, t: Tickler, db: OpenTable) -> None:
        self.t = t
        self.db = db
        names = {**TABLES, "tickler": tickler, "t": t, "db": db}
        (snippet,) = [
            each for each in re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text("utf-8"), re.M | re.S) if "def follow(" in each
        ]
        exec(snippet, names)
        self.consumer = names["reminders"]
        self.follow = names["follow"]
        self.sweep = names["sweep"]

    async def catch_up(self) -> None:
        assert (await self.consumer.consume(budget_ms=20_000)).caught_up
        assert await self.consumer.parked() == []

    async def times(self) -> dict[str, datetime]:
        """Return when each ticket will be reminded, by its schedules."""
        page = await self.t.schedules.list(owner="reminders", limit=1000)
        return {each.payload["id"]: datetime.fromtimestamp((each.next_fire_at or 0) / 1000, UTC) for each in page.items}  # type: ignore[index]  # of the recipe


@pytest.fixture
async def recipe(any_url: str) -> AsyncIterator[Recipe]:
    async with tickler.connect(any_url) as t, TABLES["desk"].connect(t, name=f"desk_{time.monotonic_ns()}", create=True) as db:
        yield Recipe(t, db)
        await drop(db)


async def test_a_schedule_follows_its_item(recipe: Recipe) -> None:
    db = recipe.db
    await db.put(Ticket(id="1", remind_at=TOMORROW))
    await db.put(Ticket(id="2"))
    await db.put(Ticket(id="3", status="done", remind_at=TOMORROW))
    await recipe.catch_up()
    assert await recipe.times() == {"1": TOMORROW}
    await db.update(Ticket.key.id("1"), Ticket.remind_at.set(TOMORROW + timedelta(hours=1)))
    await db.update(Ticket.key.id("3"), Ticket.status.set("open"))
    await recipe.catch_up()
    assert await recipe.times() == {"1": TOMORROW + timedelta(hours=1), "3": TOMORROW}
    await db.update(Ticket.key.id("1"), Ticket.status.set("done"))
    await db.delete(Ticket.key.id("3"))
    await recipe.catch_up()
    assert await recipe.times() == {}


async def test_a_replay_of_all_changes_changes_nothing(recipe: Recipe) -> None:
    await recipe.db.put(Ticket(id="1", remind_at=TOMORROW + timedelta(hours=2)))
    await recipe.db.put(Ticket(id="1", remind_at=TOMORROW))
    await recipe.db.put(Ticket(id="2", remind_at=TOMORROW))
    await recipe.db.delete(Ticket.key.id("2"))
    await recipe.catch_up()
    before = await recipe.t.schedules.get("reminders", "TICKET#1/TICKET")
    delivered = recipe.consumer._delivery.delivered
    await recipe.consumer.forget()
    await recipe.catch_up()
    assert recipe.consumer._delivery.delivered == 2 * delivered > 0
    assert await recipe.times() == {"1": TOMORROW}
    after = await recipe.t.schedules.get("reminders", "TICKET#1/TICKET")
    assert before is not None
    assert after is not None
    assert after.version == before.version


async def test_a_time_that_has_passed_is_due_at_once(recipe: Recipe) -> None:
    await recipe.db.put(Ticket(id="1", remind_at=datetime(2020, 1, 1, tzinfo=UTC)))
    await recipe.catch_up()
    (at,) = (await recipe.times()).values()
    assert abs(at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_the_sweep_mends_what_was_lost(recipe: Recipe) -> None:
    for n in range(3):
        await recipe.db.put(Ticket(id=str(n), remind_at=TOMORROW))
    await recipe.catch_up()
    await recipe.t.schedules.delete("reminders", "TICKET#0/TICKET")
    await recipe.t.schedules.put(schedule_of("1", TOMORROW + timedelta(days=9)))
    await recipe.t.schedules.put(schedule_of("ghost", TOMORROW))
    await recipe.sweep()
    assert await recipe.times() == {"0": TOMORROW, "1": TOMORROW, "2": TOMORROW}
    await recipe.sweep()
    assert len(await recipe.times()) == 3


def schedule_of(id: str, at: datetime) -> Any:
    target = tickler.PythonTarget("remind")
    return tickler.Schedule(owner="reminders", key=f"TICKET#{id}/TICKET", when=tickler.At(at), target=target, payload={"id": id})
