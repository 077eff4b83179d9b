"""On DynamoDB, finding what is due costs what is due: products without a plan, or with one for other days, cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from installation import Installation, network_settings, open_installation
from slothpost.identifiers import DRAFT, draft_key
from slothpost.model import Channel, Product, Voice
from slothpost.plan import Plan
from slothpost.settings import Settings
from slothpost.standins.threads import ThreadsStandIn
from slothpost.standins.x import XStandIn
from tickler import ManualClock, PythonTarget, Schedule
from tickler.table import Entity

OTHER_DAY = {"fri": ["09:00"]}
DUE = 20


def idle(number: int, now: datetime) -> Iterator[Entity]:
    """Half have no plan, and the others one for another day."""
    for n in range(number):
        yield Product(id=f"idle{n}", user="ada", name="Idle", voice=Voice(), created_at=now)
        yield Channel(product=f"idle{n}", name="x", user="ada", days=OTHER_DAY if n % 2 else {}, zone="UTC", active_since=now)


def asleep(number: int) -> Iterator[Schedule]:
    for n in range(1, number, 2):
        yield _schedule(f"idle{n}", OTHER_DAY)


def _schedule(product: str, days: dict[str, list[str]]) -> Schedule:
    when, payload = Plan.read(days, "UTC").drafts(), {"product": product, "channel": "x"}
    return Schedule(owner="ada", key=draft_key(product, "x"), when=when, target=PythonTarget(DRAFT), payload=payload)


async def test_finding_what_is_due_reads_nothing_of_products_that_are_not(
    dynamodb_url: str, clock: ManualClock, x: XStandIn, threads: ThreadsStandIn, now: Callable[[], datetime], soak: bool
) -> None:
    table = dynamodb_url.removeprefix("dynamodb://").partition("?")[0] + "_posts"
    settings = Settings(store=dynamodb_url, table=table, **network_settings(x, threads))
    async with open_installation(settings, clock, x, threads) as here:
        await here.app.t.schedules.put_many(_schedule(f"due{n}", {"tue": ["09:00"]}) for n in range(DUE))
        clock.set(now() + timedelta(hours=14))
        alone = await _read_units_of_a_claim(here)
        clock.set(now() + timedelta(days=6))
        number = 10_000 if soak else 600
        await here.app.db.load(idle(number, now()))
        await here.app.t.schedules.put_many(asleep(number))
        clock.set(now() + timedelta(hours=25))
        assert await _read_units_of_a_claim(here) == alone > 0
        await here.app.t.database.call("DeleteTable", {"TableName": table})  # type: ignore[attr-defined]  # on DynamoDB it is a client


async def _read_units_of_a_claim(here: Installation) -> float:
    usage: Any = here.app.t.database.usage  # type: ignore[attr-defined]  # on DynamoDB it is a client
    await here.app.t.index.claim_due(here.clock.now_ms() - 90 * 86_400_000, limit=1)  # so that nothing is read anew below
    before = usage.read_units
    rows = await here.app.t.index.claim_due(here.clock.now_ms(), limit=DUE)
    assert len(rows) == DUE
    return float(usage.read_units - before)
