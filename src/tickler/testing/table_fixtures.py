"""The table of the conformance kit for engines, and what its tests share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
import pytest_asyncio

from tickler.clock import ManualClock
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, Table, attr
from tickler.table.engines.engine import Engine
from tickler.table.open_table import OpenTable

TABLE = Table("kit_shop")
NOW = datetime(2030, 11, 20, 12, tzinfo=UTC)  # far from the present: an engine that reads the wall clock fails


class Address(Part):
    city: Attr[str]
    zip: Attr[str | None] = attr(default=None)


class Customer(Entity, table=TABLE):
    id: Attr[str] = attr()
    name: Attr[str]
    key = Key("CUSTOMER" / id, "PROFILE")


class Order(Entity, table=TABLE):
    customer: Attr[str] = attr()
    id: Attr[str] = attr()
    status: Attr[Literal["pending", "confirmed", "shipped"]] = attr(default="pending")
    placed_at: Attr[datetime] = attr()
    address: Attr[Address] = attr(default=Address(city="Bonn"))
    items: Attr[int] = attr(default=0)
    tags: Attr[frozenset[str]] = attr(default=frozenset())
    note: Attr[str | Missing | None] = attr(default=MISSING)
    rating: Attr[int | Missing] = attr(default=MISSING)
    deleted_at: Attr[datetime | Missing] = attr(default=MISSING, deleted=True)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)

    key = Key("CUSTOMER" / customer, "ORDER" / placed_at / id)
    pending = Index("gsi1", "PENDING", placed_at / id, when=status == "pending")
    trash = Index("gsi2", "DELETED" / customer, deleted_at / id)
    rated = Index("gsi3", "RATED", rating)
    urgent = Index("gsi4", "URGENT", id, when=tags.contains("urgent"))


class Refund(Entity, table=TABLE):
    """Shares a partition of an index with orders."""

    customer: Attr[str] = attr()
    id: Attr[str] = attr()
    asked_at: Attr[datetime] = attr()
    amount: Attr[int] = attr(default=1)

    key = Key("CUSTOMER" / customer, "REFUND" / id)
    pending = Index("gsi1", "PENDING", asked_at / id)


class Account(Entity, table=TABLE):
    id: Attr[int] = attr()
    balance: Attr[int] = attr(default=0)
    version: Attr[int] = attr(default=0, version=True)
    key = Key("ACCOUNT" / id, "ACCOUNT")


class Score(Entity, table=TABLE):
    game: Attr[str] = attr()
    points: Attr[int] = attr()
    player: Attr[str] = attr()
    key = Key("GAME" / game, "SCORE" / points.descending() / player)


def order(n: int, **attributes: Any) -> Order:
    return Order(**{"customer": "c1", "id": f"o{n:03}", "placed_at": NOW + timedelta(hours=n), **attributes})


def refund(n: int, at: float) -> Refund:
    return Refund(customer="c1", id=f"r{n}", asked_at=NOW + timedelta(hours=at))


def numbers(items: Any) -> list[int]:
    """Return the numbers of orders, in order."""
    return [int(each.id[1:]) for each in items]


class TableFixtures:
    """Base of the kit. Override the fixture `engine` with one that yields an open engine of the empty table `TABLE`.

    `has_snapshots`: False where the engine refuses them. `checks_loads`: False where a load replaces items without a word.
    `sweeps`: False where expired items are deleted without being asked for it. `has_consistent_indexes`: False where the
    indexes refuse consistent reads.
    """

    has_consistent_indexes = True
    has_snapshots = True
    sweeps = True
    checks_loads = True

    pytestmark = pytest.mark.asyncio

    @pytest_asyncio.fixture
    async def engine(self) -> Engine:
        raise pytest.UsageError("override the fixture `engine` with one that yields an open engine of the empty table TABLE")

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock(NOW)

    @pytest.fixture
    def db(self, engine: Engine, clock: ManualClock) -> OpenTable:
        return OpenTable(TABLE, engine, clock, create=True)
