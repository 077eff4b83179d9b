"""The entities of the typing samples."""

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Literal

from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, Table, attr

shop = Table("shop")
Status = Literal["pending", "confirmed", "shipped"]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Country(Part):
    code: Attr[str]


class Address(Part):
    city: Attr[str]
    zip: Attr[str | None] = attr(default=None)
    country: Attr[Country]


class Customer(Entity, table=shop):
    id: Attr[str] = attr()
    name: Attr[str]
    key = Key("CUSTOMER" / id, "PROFILE")


class Order(Entity, table=shop):
    customer: Attr[str] = attr()
    id: Attr[str] = attr()
    status: Attr[Status] = attr()
    placed_at: Attr[datetime] = attr()
    address: Attr[Address] = attr()
    items: Attr[int] = attr(default=0)
    total: Attr[Decimal] = attr(default=Decimal(0))
    weight: Attr[float | Missing] = attr(default=MISSING)
    tags: Attr[set[str]]
    labels: Attr[frozenset[str] | Missing] = attr(default=MISSING)
    notes: Attr[list[str]]
    remarks: Attr[list[str] | Missing] = attr(default=MISSING)
    prices: Attr[dict[date, Decimal]]
    addresses: Attr[dict[str, Address]]
    billing: Attr[Address | None] = attr(default=None)
    second: Attr[Address | Missing] = attr(default=MISSING)
    stock: Attr[dict[str, int] | Missing] = attr(default=MISSING)
    note: Attr[str | None] = attr(default=None)
    deleted_at: Attr[datetime | Missing] = attr(default=MISSING, deleted=True)

    key = Key("CUSTOMER" / customer, "ORDER" / placed_at / id)
    pending = Index("gsi1", "PENDING_ORDER", placed_at / id, when=status == "pending")
    trash = Index("gsi2", "DELETED" / customer, deleted_at / id)
    by_status = Index("gsi3", "STATUS" / status, placed_at.descending() / id, when=items > 0)
    by_city = Index("gsi4", address[Address.city], "ORDER" / placed_at, when=address[Address.country][Country.code] == "DE")
    by_price = Index("gsi6", "PRICE", second[Address.city], when=customer.starts_with("c"))
    recently_deleted = Index("gsi5", "DELETED", deleted_at.descending(), when=status.one_of(["pending", "shipped"]))


class Invoice(Entity, table=shop):
    customer: Attr[str] = attr()
    number: Attr[int] = attr()
    colour: Attr[Colour | Missing] = attr(default=MISSING)
    due: Attr[date | Missing] = attr(default=MISSING)
    version: Attr[int] = attr(version=True)
    key = Key("CUSTOMER" / customer, "INVOICE" / number)
    by_colour = Index("gsi1", "INVOICE" / colour, due)
    overdue = Index("gsi2", "DUE" / due.descending(), number)


class Ticket(Entity, table=shop):
    customer: Attr[str] = attr()
    number: Attr[int] = attr()
    key = Key("CUSTOMER" / customer, "TICKET" / number)


class Depot(Entity, table=shop):
    country: Attr[str] = attr()
    region: Attr[str] = attr()
    row: Attr[int] = attr()
    kind: Attr[Literal["dry", "cold"]] = attr()
    key = Key("DEPOT" / country / region, kind / row)


class Setting(Entity, table=shop):
    key = Key("SETTING", "ONLY")


class Counter(Entity, table=shop):
    name: Attr[str] = attr()
    key = Key("COUNTER", name)
