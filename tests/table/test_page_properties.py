"""Walks through pages while others insert and delete: what exists throughout is visited once and in order.

Each page is compared with a read of everything at the same moment, which in turn is compared with the items in Python.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table.walks import (
    NOW,
    QUERIES,
    TABLE,
    Asked,
    Disturbance,
    Drawn,
    Item,
    Step,
    disturbances,
    names,
    passing,
    sizes,
    staying,
    steps,
)

from dynamodb_server import DynamodbServer
from postgres_server import PostgresServer
from tickler.clock import ManualClock
from tickler.table import MISSING, Page
from tickler.table.open_table import OpenTable

SOAK = os.environ.get("TICKLER_SOAK") == "1"
_rooms = itertools.count()


class Walk:
    """A query of a new room. Some of its items stay, and others come and go."""

    def __init__(self, db: OpenTable, name: str) -> None:
        self.db: Any = db
        self.asked: Asked = QUERIES[name]
        self.room = f"r{next(_rooms)}"
        self.items: dict[Any, Item] = {}  # that are stored, by key
        self.stays: list[Any] = []  # keys of the query's items that stay, in its order
        self.disturbed: set[Any] = set()  # keys of items that were written since the last page

    async def fill(self, stays: list[Drawn], passes: list[Drawn]) -> None:
        drawn = [*stays, *passes]
        self.items = {item.key: item for item in (each.item(self.room) for each in drawn)}
        await self.db.put_many(self.items.values())
        staying = {each.item(self.room).key for each in stays}
        self.stays = [key for key in await self.everything() if key in staying]

    async def clear(self) -> None:
        await self.db.delete_many(self.items)

    async def disturb(self, changes: list[Disturbance]) -> None:
        for change in changes:
            item = change.drawn.item(self.room)
            self.disturbed.add(item.key)
            if change.deletes:
                await self.db.delete(item.key)
                self.items.pop(item.key, None)
            else:
                await self.db.put(item)
                self.items[item.key] = item

    async def page(self, **request: Any) -> Page[Any]:
        page: Page[Any] = await self.db.query(*self.asked.selections(self.room), where=self.asked.where, **request)
        return page

    async def everything(self) -> list[Any]:
        """Return the keys of all items of the query, after a look at whether they are the right ones, in order."""
        found = (await self.page(first=1000)).items
        expected = [item for item in self.items.values() if self.asked.has(item) and item.expires_at is MISSING]
        assert {each.key: each for each in found} == {each.key: each for each in expected}
        assert len(found) == len(expected)
        places = [self.asked.order(each) for each in found]
        for one, other in pairwise(reversed(places) if self.asked.backwards else places):
            assert one <= other
        return [each.key for each in found]


async def walk_there_and_back(db: OpenTable, name: str, stays: list[Drawn], passes: list[Drawn], script: list[Step]) -> None:
    walk = Walk(db, name)
    await walk.fill(stays, passes)
    await there_and_back(walk, script)
    await walk.clear()


async def there_and_back(walk: Walk, script: list[Step]) -> None:
    """Go from page to page in any direction, and compare each with everything that there is at that moment."""
    everything = await walk.everything()
    page = await walk.page(first=2)
    assert [each.key for each in page.items] == everything[:2]
    assert (page.has_previous, page.has_next) == (False, len(everything) > 2)
    for step in script:
        if not page.items:
            return
        anchor = page.items[-1 if step.forward else 0].key
        passed = [key for key in everything[: everything.index(anchor) + step.forward] if key in walk.stays]
        walk.disturbed.clear()
        await walk.disturb(step.before)
        everything = await walk.everything()
        request = {"first": step.size, "after": page.end} if step.forward else {"last": step.size, "before": page.start}
        page = await walk.page(**request)
        found = [each.key for each in page.items]
        if anchor in everything and anchor not in walk.disturbed:
            at = everything.index(anchor)
            start, end = (at + 1, at + 1 + step.size) if step.forward else (max(0, at - step.size), at)
            assert found == everything[start:end]
        if found:
            start = everything.index(found[0])
            end = start + len(found)
            assert found == everything[start:end]
            cut = start if step.forward else end
            assert [key for key in everything[:cut] if key in walk.stays] == passed
            assert len(found) == step.size or (end == len(everything) if step.forward else start == 0)
            assert (page.has_previous, page.has_next) == (start > 0, end < len(everything))
        else:
            assert passed == (walk.stays if step.forward else [])
            others = bool(everything)
            assert (page.has_previous, page.has_next) == ((others, False) if step.forward else (False, others))


async def walk_through(
    db: OpenTable, name: str, stays: list[Drawn], passes: list[Drawn], sized: list[int], changes: list[list[Disturbance]]
) -> None:
    """Go through all pages forward, then through all backward: both visit what stays once and in order."""
    walk = Walk(db, name)
    await walk.fill(stays, passes)
    for forward in (True, False):
        size = cycle(sized)
        visited: list[Any] = []
        page = await walk.page(**({"first": next(size)} if forward else {"last": next(size)}))
        for change in cycle(changes):
            found = [each.key for each in page.items if each.key in walk.stays]
            visited = visited + found if forward else found + visited
            if not (page.has_next if forward else page.has_previous):
                break
            await walk.disturb(change)
            page = await walk.page(
                **({"first": next(size), "after": page.end} if forward else {"last": next(size), "before": page.start})
            )
        assert visited == walk.stays
    await walk.clear()


def check_walks(db: OpenTable, examples: int, runner: asyncio.Runner) -> None:
    runner.run(db.open())
    enough = settings(
        max_examples=40 * examples if SOAK else examples,
        derandomize=not SOAK,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

    @enough
    @given(st.tuples(names, staying, passing, steps))
    def turns(drawn: Any) -> None:
        runner.run(walk_there_and_back(db, *drawn))

    @enough
    @given(st.tuples(names, staying, passing, sizes, disturbances))
    def through(drawn: Any) -> None:
        runner.run(walk_through(db, *drawn))

    try:
        turns()
        through()
    finally:
        runner.run(db.close())


def check(url: str, examples: int) -> None:
    with asyncio.Runner() as runner:
        check_walks(TABLE.connect(url, create=True, clock=ManualClock(NOW)), examples, runner)


def test_walks_in_memory_visit_what_stays_once_and_in_order() -> None:
    check("memory://", 120)


def test_walks_on_sqlite_visit_what_stays_once_and_in_order(tmp_path: Path) -> None:
    check(f"sqlite:///{tmp_path}/walks.db", 60)


def test_walks_on_sqlite_in_memory_visit_what_stays_once_and_in_order() -> None:
    check("sqlite://", 60)


def test_walks_on_postgresql_visit_what_stays_once_and_in_order(postgres_server: PostgresServer) -> None:
    check(postgres_server.url(f"walks_{os.getpid()}"), 20)


def test_walks_on_dynamodb_visit_what_stays_once_and_in_order(dynamodb_server: DynamodbServer) -> None:
    check(f"dynamodb://walks_{os.getpid()}?region=eu-west-1&endpoint={dynamodb_server.endpoint}", 10)
