"""A table whose items are written together with schedules."""

from __future__ import annotations

from tickler import Schedule
from tickler.table import Attr, Entity, Index, Key, Table, attr

shop = Table("joined_shop")


class Order(Entity, table=shop):
    id: Attr[str] = attr()
    status: Attr[str] = attr(default="new")
    key = Key("ORDER" / id, "ORDER")
    fresh = Index("gsi1", "NEW_ORDER", id, when=status == "new")


def reminder(key: str, minute: int = 0) -> Schedule:
    return Schedule(owner="shop", key=key, when=f"at(2090-01-01T00:{minute:02}:00)")
