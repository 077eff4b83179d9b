"""What a line of an import means: a price for a product, no price from then on, or nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from pricebook.errors import InvalidField, PricebookError
from pricebook.model import ALL, PriceKey
from pricebook.money import Money
from tickler.errors import TicklerError

COLUMNS = ("store", "channel", "type", "product", "combination", "amount", "currency", "delete")
EXPORTED = COLUMNS[:-1]

_YES = frozenset({"yes", "true", "1", "x"})
_NO = frozenset({"", "no", "false", "0"})


class Fields(Struct):
    """A line as it is written. What is empty was not given."""

    store: str = ""
    channel: str = ""
    type: str = ""
    product: str = ""
    combination: str = ""
    amount: str = ""
    currency: str = ""
    delete: str = ""


class PriceLine(NamedTuple):
    """A good line. Without an amount, and unless it deletes, the price stays as it is."""

    line: int
    key: PriceKey
    amount: Money | None
    deletes: bool

    @property
    def keeps(self) -> bool:
        return self.amount is None and not self.deletes


class Refusal(NamedTuple):
    line: int
    reason: str
    other_line: int | None = None


def price_line(line: int, fields: Fields, currency: str) -> PriceLine | Refusal:
    """Read a line. `currency` is for amounts without one."""
    try:
        key = PriceKey(fields.store, fields.channel or ALL, fields.type or "Base", fields.product, fields.combination or None)
        key.check_names()
        deletes = _flag(fields.delete)
        return PriceLine(line, key, _amount(fields, currency, deletes=deletes), deletes)
    except (PricebookError, TicklerError) as error:
        return Refusal(line, str(error))


@lru_cache(maxsize=65_536)
def amount_and_currency(money: Money) -> tuple[str, str]:
    """Return an amount as it is exported. Prices repeat, and writing one costs more than looking it up."""
    amount, currency = str(money).split(" ")
    return amount, currency


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in _YES and word not in _NO:
        raise InvalidField("delete", f"{text[:40]!r} is neither yes nor no: write yes to delete the price, or leave it empty")
    return word in _YES


def _amount(fields: Fields, currency: str, *, deletes: bool) -> Money | None:
    text = fields.amount.strip()
    if not text:
        return None
    if deletes:
        raise InvalidField("amount", "cannot go with delete: leave one of them empty")
    chosen = fields.currency.strip() or currency
    if not chosen:
        raise InvalidField("currency", "is missing: write it in each line, or choose one for the whole import")
    amount = Money.read(text, chosen)
    if amount.minor < 0:
        raise InvalidField("amount", f"is {amount}: a price is not negative")
    return amount
