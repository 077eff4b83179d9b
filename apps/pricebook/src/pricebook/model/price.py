"""Prices: one row for each store, channel, type and product, with its values by the instant from which they count."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import cast

from msgspec import Struct

from pricebook.errors import InvalidField
from pricebook.model.table import pricebook
from pricebook.money import Money
from tickler.table import MISSING, Attr, Entity, Index, ItemId, Key, Missing, Part, attr

ALL = "ALL"  # the channel whose prices count where a channel has none of its own

money_of = lru_cache(maxsize=65_536)(Money)  # prices repeat, and checking a currency costs more than looking one up


MAX_KEY_BYTES = 900  # of a row; keys of its audit and of its past have an instant, too, and DynamoDB takes 1,024
_MAX_CHARACTER = 12  # bytes of a character in a key: four of UTF-8, each written as %XX


class Value(Part):
    """What a row's price is from an instant on. Without an amount, the product has no price from then on.

    `edition` is there until the value is settled: until then it counts only if the head of the store says so, and its instant in
    the row is a lower bound. A settled value counts from exactly its instant in the row.
    """

    amount: Attr[int | Missing] = attr(default=MISSING)  # minor units
    currency: Attr[str | Missing] = attr(default=MISSING)
    edition: Attr[int | Missing] = attr(default=MISSING)
    settled: Attr[int | Missing] = attr(default=MISSING)  # the edition that it was of, None if it was loaded
    until: Attr[datetime | Missing] = attr(default=MISSING)
    ended_at: Attr[datetime | Missing] = attr(default=MISSING)  # of one that was cancelled or taken back after it counted
    lowest: Attr[int | Missing] = attr(default=MISSING)  # of the 30 days before a reduction, in minor units
    retracts: Attr[int | Missing] = attr(default=MISSING)  # an edition whose value in this row no longer counts from here on

    def money(self) -> Money | None:
        if self.amount is MISSING or self.currency is MISSING:
            return None
        return money_of(self.amount, self.currency)

    def lowest_30_days(self) -> Money | None:
        if self.lowest is MISSING or self.currency is MISSING:
            return None
        return money_of(self.lowest, self.currency)


class Price(Entity, table=pricebook):
    """A price of a product, such as its base price."""

    store: Attr[str] = attr()
    channel: Attr[str] = attr()
    type: Attr[str] = attr()
    product: Attr[str] = attr()
    values: Attr[dict[datetime, Value]] = attr(default={})

    key = Key("STORE" / store, channel / type / product / "")
    of_product = Index("gsi1", "TYPE" / type / product, channel / "STORE" / store)


class CombinationPrice(Entity, table=pricebook):
    """A price of a product in a combination, such as what it costs to swap it into a menu."""

    store: Attr[str] = attr()
    channel: Attr[str] = attr()
    type: Attr[str] = attr()
    product: Attr[str] = attr()
    combination: Attr[str] = attr()
    values: Attr[dict[datetime, Value]] = attr(default={})

    key = Key("STORE" / store, channel / type / product / combination / "")
    of_product = Index("gsi1", "TYPE" / type / product, channel / "STORE" / store / combination)


PriceRow = Price | CombinationPrice
PRICE_TYPES: dict[str, type[Price] | type[CombinationPrice]] = {"Base": Price, "Swap": CombinationPrice}


class PriceKey(Struct, frozen=True, order=True):
    """What a price is of. Types with a combination need one, and others have none."""

    store: str
    channel: str
    type: str
    product: str
    combination: str | None = None

    def __post_init__(self) -> None:
        for name in ("store", "channel", "product"):
            if not getattr(self, name):
                raise InvalidField(name, "is empty: name one")
        if has_combination(self.type) and not self.combination:
            raise InvalidField("combination", f"is missing: prices of type {self.type} have one")
        if not has_combination(self.type) and self.combination is not None:
            raise InvalidField("combination", f"is not for prices of type {self.type}: leave it out")

    @property
    def row(self) -> ItemId[PriceRow]:
        if self.combination is None:
            return cast("ItemId[PriceRow]", Price.key.id(self.store, self.channel, self.type, self.product))
        id = CombinationPrice.key.id(self.store, self.channel, self.type, self.product, self.combination)
        return cast("ItemId[PriceRow]", id)

    def new_row(self, values: dict[datetime, Value]) -> PriceRow:
        if self.combination is None:
            return Price(store=self.store, channel=self.channel, type=self.type, product=self.product, values=values)
        return CombinationPrice(
            store=self.store,
            channel=self.channel,
            type=self.type,
            product=self.product,
            combination=self.combination,
            values=values,
        )

    def check_names(self) -> None:
        """Refuse names that cannot be used wherever a price is kept: of what has them already, nothing could be settled."""
        names = f"{self.store}{self.channel}{self.product}{self.combination or ''}"
        if "\0" in names:
            raise InvalidField("product", "a name has a NUL character: is this a file of another kind?")
        if not names.isascii() and any("\ud800" <= character <= "\udfff" for character in names):
            raise InvalidField("product", "a name has half a character: write it as UTF-8")
        if _MAX_CHARACTER * len(names) > MAX_KEY_BYTES and len(f"{self.row.pk}{self.row.sk}".encode()) > MAX_KEY_BYTES:
            raise InvalidField(
                "product", f"the names of store, channel and product are longer than {MAX_KEY_BYTES} bytes: use shorter ones"
            )

    @property
    def of(self) -> str:
        """Return what it is of in its store, for people: what most prices have alike is left out."""
        further = [] if self.type == "Base" else [self.type]
        further += [] if self.combination is None else [f"combination {self.combination}"]
        further += [] if self.channel == ALL else [f"channel {self.channel}"]
        return f"{self.product} ({', '.join(further)})" if further else self.product

    @property
    def words(self) -> str:
        """Return it as people say it, such as `PROD0001 in store 10005`."""
        return f"{self.of} in store {self.store}"

    def __str__(self) -> str:
        return self.row.sk


def row_id(row: PriceRow) -> ItemId[PriceRow]:
    return cast("ItemId[PriceRow]", row.key)


def key_of(row: PriceRow) -> PriceKey:
    combination = row.combination if isinstance(row, CombinationPrice) else None
    return PriceKey(row.store, row.channel, row.type, row.product, combination)


def has_combination(type: str) -> bool:
    if type not in PRICE_TYPES:
        raise InvalidField("type", f"{type[:40]!r} is unknown: use one of {', '.join(PRICE_TYPES)}")
    return PRICE_TYPES[type] is CombinationPrice
