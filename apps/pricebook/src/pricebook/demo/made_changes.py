"""The change sets of the demo: what they are called, in which stores, and to what they change which products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from msgspec import Struct

from pricebook.change_sets import Line
from pricebook.loading.made_catalogue import MadeCatalogue
from pricebook.model import ALL, PriceKey
from pricebook.money import Money

CATALOGUE = MadeCatalogue(store_count=200, product_count=100, web_every=10)


class MadeChange(Struct, frozen=True, kw_only=True):
    """`stores` and `products` are numbers of the catalogue. Prices become `percent` of what they are in the catalogue.

    After `lasts`, the former ones count again.
    """

    title: str
    reason: str
    stores: Sequence[int]
    products: Sequence[int]
    percent: int
    lasts: timedelta | None = None

    def lines(self) -> Iterator[Line]:
        for store in self.stores:
            for product in self.products:
                yield changed_price(store, product, self.percent)


AUTUMN = MadeChange(
    title="Autumn prices",
    reason="Suppliers have raised theirs in October.",
    stores=range(12),
    products=range(6),
    percent=104,
)
MISTAKE = MadeChange(
    title="Coffee for everybody",
    reason="Competitors sell it for less.",
    stores=range(30, 36),
    products=(20, 21),
    percent=70,
)
DRAFT = MadeChange(
    title="Winter range",
    reason="Prices of the new range; Mara is still adding some.",
    stores=range(60, 64),
    products=range(30, 33),
    percent=110,
)
DOUBTFUL = MadeChange(
    title="Clearance of summer goods",
    reason="Nobody buys them any more.",
    stores=range(80, 86),
    products=range(40, 43),
    percent=35,
)
WAITING = MadeChange(
    title="Breakfast week",
    reason="The yearly offer, as agreed with marketing.",
    stores=range(90, 108),
    products=range(50, 53),
    percent=88,
)
TONIGHT = MadeChange(
    title="New month, new prices",
    reason="Each store changes at its own midnight.",
    stores=range(120, 150),
    products=range(10, 13),
    percent=103,
)
CONFLICTING = MadeChange(
    title="Rounded prices",
    reason="Somebody else thinks of the same products.",
    stores=range(120, 124),
    products=(10, 11),
    percent=105,
)
SOON = (
    MadeChange(
        title="Bread is cheaper after five",
        reason="What is left goes at half price.",
        stores=range(14),
        products=range(60, 64),
        percent=50,
        lasts=timedelta(minutes=40),
    ),
    MadeChange(
        title="Dairy follows the market",
        reason="Weekly adjustment.",
        stores=range(4, 22),
        products=range(64, 67),
        percent=102,
    ),
    MadeChange(
        title="Fruit of the day",
        reason="A lorry too many has come in.",
        stores=range(70, 80),
        products=range(67, 69),
        percent=80,
    ),
    MadeChange(
        title="Drinks for the match",
        reason="It begins in an hour.",
        stores=range(6, 16),
        products=range(70, 74),
        percent=95,
    ),
)

UPLOAD_TITLE = "Spring assortment"


def changed_price(store: int, product: int, percent: int, channel: str = ALL) -> Line:
    name = CATALOGUE.store(store)
    amount = CATALOGUE.amount(name, channel, product) * percent // 100
    return Line(PriceKey(name, channel, "Base", CATALOGUE.product(product)), Money(amount, CATALOGUE.currency))


def doubtful_lines() -> Iterator[Line]:
    """Return prices about which a report says something: a large change, a product that no store has, no change at all."""
    yield from DOUBTFUL.lines()
    store = CATALOGUE.store(80)
    yield Line(PriceKey(store, ALL, "Base", "PROD9999"), Money(499, CATALOGUE.currency))
    yield changed_price(81, 44, 100)


def faulty_upload() -> bytes:
    """Return a CSV file in which most lines are good, and some are wrong in ways that people know."""
    lines = ["store,channel,product,amount,currency"]
    for store in range(150, 170):
        name = CATALOGUE.store(store)
        for product in range(80, 86):
            amount = CATALOGUE.amount(name, ALL, product) * 107 // 100
            lines.append(f"{name},ALL,{CATALOGUE.product(product)},{amount // 100}.{amount % 100:02},{CATALOGUE.currency}")
    lines[17] = lines[16]  # twice
    lines[33] = lines[33].replace(f",{CATALOGUE.currency}", ",Euro")
    lines[54] = lines[54].replace(CATALOGUE.product(85), "PROD9999")
    lines[71] = f"99999{lines[71][5:]}"  # no such store
    lines[90] = lines[90].rpartition(",")[0].rpartition(",")[0] + f",-1.00,{CATALOGUE.currency}"
    return ("\n".join(lines) + "\n").encode()
