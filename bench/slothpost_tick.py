"""slothpost: drafts for 10,000 products that are due at the same time, alone and beside 1,000,000 products that are not.

`python bench/slothpost_tick.py URL IDLE` drafts once and prints what it took.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from measure import Result, Stopwatch
from slothpost.app import Slothpost, open_slothpost
from slothpost.identifiers import DRAFT, draft_key
from slothpost.model import Activity, Channel, Post, Product, User, Voice
from slothpost.plan import Plan
from slothpost.settings import Settings
from tickler import ManualClock, PythonTarget, RunOptions, Schedule
from tickler.table import Entity

DUE = 10_000
IDLE = 1_000_000
BEFORE = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)  # a Monday
SLOT = {"tue": "09:00"}  # drafted on Monday at 21:00
OTHER_DAYS = [{day: "09:00"} for day in ("thu", "fri", "sat", "sun")]
TITLES = (
    "Tea timers that survive a restart",
    "A dark theme",
    "Search across all notes",
    "Import from a spreadsheet",
    "Reminders in your own time zone",
)
BATCH = 20_000


class Drafted(msgspec.Struct):
    seconds: float
    processor_s: float


async def run(say: Callable[[str], None]) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        alone = await _measured(f"sqlite:///{folder}/alone.db", 0, say)
        beside = await _measured(f"sqlite:///{folder}/beside.db", IDLE, say)
    ratio = beside.processor_s / alone.processor_s
    return [
        Result(
            f"slothpost: {DUE:,} drafts beside {IDLE:,} idle products",
            f"{DUE / beside.seconds:,.0f}/s",
            f"{DUE / alone.seconds:,.0f}/s",
            f"without them; wall time {beside.seconds / alone.seconds:.2f}",
            ratio,
            1.2,
            at_most=True,
        )
    ]


async def _measured(url: str, idle: int, say: Callable[[str], None]) -> Drafted:
    """Measure in a process of its own, with a heap that has only what it drafts."""
    say(f"SQLite: {DUE:,} products to draft for, beside {idle:,} others")
    await _fill(url, idle)
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, url, stdout=PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return msgspec.json.decode(output, type=Drafted)


async def _fill(url: str, idle: int) -> None:
    async with open_slothpost(Settings(store=url), clock=ManualClock(BEFORE)) as app:
        await app.db.load(itertools.chain(_due(), _idle(idle)))
        schedules = _schedules(idle)
        while batch := list(itertools.islice(schedules, BATCH)):
            await app.t.schedules.put_many(batch)


def _due() -> Iterator[Entity]:
    for n in range(DUE):
        yield User(id=f"u{n}", name=f"User {n}", created_at=BEFORE)
        yield from _product(f"p{n}", f"u{n}", SLOT)
        for number, title in enumerate(TITLES[: n % 3 + 1]):
            yield Activity(
                product=f"p{n}", id=f"commit:{n:032x}{number:08x}", at=BEFORE, kind="feature", title=title, worth=80 - number
            )  # fmt: skip


def _idle(number: int) -> Iterator[Entity]:
    """Half of them have no plan; the plans of the others are for other days."""
    for n in range(number):
        yield from _product(f"i{n}", f"idle{n}", {} if n % 2 else OTHER_DAYS[n // 2 % len(OTHER_DAYS)])


def _product(id: str, user: str, days: dict[str, str]) -> Iterator[Entity]:
    yield Product(id=id, user=user, name="Teapot", description="A timer for tea.", voice=Voice(), created_at=BEFORE)
    plan = {day: [time] for day, time in days.items()}
    yield Channel(product=id, name="x", user=user, days=plan, zone="UTC", active_since=BEFORE)


def _schedules(idle: int) -> Iterator[Schedule]:
    for n in range(DUE):
        yield _schedule(f"p{n}", f"u{n}", SLOT)
    for n in range(0, idle, 2):
        yield _schedule(f"i{n}", f"idle{n}", OTHER_DAYS[n // 2 % len(OTHER_DAYS)])


def _schedule(product: str, user: str, days: dict[str, str]) -> Schedule:
    return Schedule(
        owner=user,
        key=draft_key(product, "x"),
        when=Plan.read(days, "UTC").drafts(),
        target=PythonTarget(DRAFT),
        payload={"product": product, "channel": "x"},
    )


async def _draft(url: str) -> Drafted:
    clock = ManualClock(BEFORE + timedelta(hours=13, seconds=1))
    async with open_slothpost(Settings(store=url), clock=clock) as app:
        processor_s = time.process_time()
        with Stopwatch() as watch:
            await app.t.tick(600_000, RunOptions())
        drafted = Drafted(watch.seconds, time.process_time() - processor_s)
        assert await _drafted(app) == DUE
    return drafted


async def _drafted(app: Slothpost) -> int:
    found = [await app.db.count(Post.of_channel(f"p{n}", "x")) for n in range(DUE)]
    return sum(found)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(asyncio.run(_draft(sys.argv[1]))).decode())
