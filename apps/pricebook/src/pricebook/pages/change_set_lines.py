"""The forms that add prices to a draft, and remove some."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import product

import msgspec

from pricebook.access.caller import Caller
from pricebook.change_sets import Line
from pricebook.editions.pages import PageArgs
from pricebook.errors import InvalidField
from pricebook.model import ALL, PriceKey, has_combination
from pricebook.money import Money
from pricebook.pages.stores import narrowed
from pricebook.stores import Stores

FIELDS = ("in_stores", "products", "channel", "type", "combination", "amount", "currency")
MAX_LINES = 20_000  # that one form adds
AT_A_TIME = 1_000

_BETWEEN = re.compile(r"[\s,;]+")
_read_keys = msgspec.json.Decoder(tuple[str, str, str, str, str | None]).decode

LineValues = Mapping[str, str]


def empty_line(currency: str) -> LineValues:
    return dict.fromkeys(FIELDS, "") | {"channel": ALL, "type": "Base", "currency": currency}


def read_line(fields: Mapping[str, str]) -> LineValues:
    return {name: fields.get(name, "").strip() for name in FIELDS}


async def lines_of(caller: Caller, stores: Stores, values: LineValues) -> list[Line]:
    """Return a line for each store and product that a form names. An empty price is none from then on."""
    products = _words("products", values, "name a product, such as PROD0003")
    combination = values["combination"] or None
    if has_combination(values["type"]) and combination is None:
        raise InvalidField("combination", f"is missing: prices of type {values['type']} have one")
    amount = _amount(values)
    names = [name async for name in _stores_of(caller, stores, _words("in_stores", values, "name a store, or * for all"))]
    if len(names) * len(products) > MAX_LINES:
        raise InvalidField("in_stores", f"that is more than {MAX_LINES:,} prices: upload them as a file")
    channel, type = values["channel"] or ALL, values["type"]
    return [Line(PriceKey(store, channel, type, each, combination), amount) for store, each in product(names, products)]


def key_text(key: PriceKey) -> str:
    """Return a key as the value of a checkbox."""
    return msgspec.json.encode((key.store, key.channel, key.type, key.product, key.combination)).decode()


def read_keys(texts: Sequence[str]) -> list[PriceKey]:
    try:
        return [PriceKey(*_read_keys(text)) for text in texts]
    except (msgspec.ValidationError, msgspec.DecodeError):
        raise InvalidField("key", "is not a price of this page: open the page again") from None


async def _stores_of(caller: Caller, stores: Stores, words: Sequence[str]) -> AsyncIterator[str]:
    """Yield the stores that words name: an id, or the beginning of ids with a * behind it."""
    found: set[str] = set()
    for word in words:
        if not word.endswith("*"):
            names = [word]
        else:
            names = [store async for store in _beginning_with(caller, stores, word.rstrip("*"))]
            if not names:
                raise InvalidField("in_stores", f"no store begins with {word.rstrip('*')!r}: check the list of stores")
        for name in names:
            if name not in found:
                found.add(name)
                yield name


async def _beginning_with(caller: Caller, stores: Stores, prefix: str) -> AsyncIterator[str]:
    reader = narrowed(Caller(caller.id, caller.roles | {"read"}, caller.stores), prefix)
    after: str | None = None
    read = 0
    while read <= MAX_LINES:
        page = await stores.page(reader, PageArgs(first=AT_A_TIME, after=after))
        for head in page.nodes:
            yield head.store
        read += len(page.edges)
        if not page.has_next:
            return
        after = page.end_cursor


def _words(name: str, values: LineValues, remedy: str) -> list[str]:
    words = list(dict.fromkeys(word for word in _BETWEEN.split(values[name]) if word))
    if not words:
        raise InvalidField(name, f"is empty: {remedy}")
    return words


def _amount(values: LineValues) -> Money | None:
    return Money.read(values["amount"].replace(",", "."), values["currency"].upper()) if values["amount"] else None
