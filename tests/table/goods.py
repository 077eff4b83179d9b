"""Entities for tests of engines: each kind of attribute, and indexes of each kind."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, Table, attr

goods = Table("goods")
NOW = datetime(2099, 3, 15, tzinfo=UTC)  # ahead of the clock of DynamoDB, which would delete what has expired


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Address(Part):
    city: Attr[str]
    zip: Attr[str | None] = attr(default=None)


class Item(Entity, table=goods):
    shop: Attr[str] = attr()
    id: Attr[int] = attr()
    status: Attr[str] = attr(default="new")
    count: Attr[int] = attr(default=0)
    level: Attr[int] = attr(default=5)
    price: Attr[Decimal | Missing] = attr(default=MISSING)
    weight: Attr[float] = attr(default=0.5)
    open: Attr[bool] = attr(default=False)
    note: Attr[str | None] = attr(default=None)
    address: Attr[Address | Missing] = attr(default=MISSING)
    tags: Attr[set[str]] = attr(default=set())
    sizes: Attr[set[int]] = attr(default=set())
    events: Attr[list[str]] = attr(default=[])
    prices: Attr[dict[datetime, Decimal]] = attr(default={})
    color: Attr[Color] = attr(default=Color.RED)
    day: Attr[date | Missing] = attr(default=MISSING)
    uuid: Attr[UUID | Missing] = attr(default=MISSING)
    blob: Attr[bytes | Missing] = attr(default=MISSING)
    due_at: Attr[datetime | Missing] = attr(default=MISSING)
    expires_at: Attr[datetime | Missing] = attr(default=MISSING, expires=True)
    deleted_at: Attr[datetime | Missing] = attr(default=MISSING, deleted=True)

    key = Key("SHOP" / shop, "ITEM" / id)
    by_status = Index("gsi1", "STATUS" / status, count / id)
    due = Index("gsi2", "DUE", due_at / id, when=(open == True) & (count > 0))  # noqa: E712  # a condition
    in_city = Index("gsi3", "CITY" / address[Address.city], id)


class Counter(Entity, table=goods):
    id: Attr[str] = attr()
    n: Attr[int] = attr(default=0)
    version: Attr[int] = attr(version=True)
    key = Key("COUNTER", id)
    by_n = Index("gsi1", "COUNTER", n / id)


class Note(Entity, table=goods):
    shop: Attr[str] = attr()
    text: Attr[str] = attr(default="")
    key = Key("SHOP" / shop, "NOTE")


def item(id: int = 1, **values: Any) -> Item:
    return Item(shop="s", id=id, **values)
