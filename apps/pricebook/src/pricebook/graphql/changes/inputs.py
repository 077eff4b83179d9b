"""What mutations of change sets take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import strawberry

from pricebook.change_sets import Line, NewChangeSet
from pricebook.errors import InvalidField
from pricebook.graphql.scalars import Day, Instant, MinorUnits
from pricebook.model import ALL, PriceKey
from pricebook.money import Money
from tickler.errors import InvalidInput

MAX_LINES = 500  # of a mutation

T = TypeVar("T")
I = TypeVar("I", bound="PriceKeyInput")  # noqa: E741

_NAMES = {"type": "recordType"}  # of fields, where the schema has others
_REV = "The rev that you have read: if somebody has changed the change set since then, nothing happens."
_REASON = "Why, for the audit."


@strawberry.input(description="An amount of money.")
class MoneyInput:
    minor: MinorUnits = strawberry.field(description="Such as 1999 for 19.99 EUR.")
    currency: str = strawberry.field(description="An ISO 4217 code.")


@strawberry.input(description="What a price is of.")
class PriceKeyInput:
    store: strawberry.ID
    product: strawberry.ID
    channel: str = strawberry.field(default=ALL, description="The channel that it is for, or ALL.")
    type: str = strawberry.field(default="Base", name="recordType", description="Such as Base or Swap.")
    combination: str | None = strawberry.field(default=None, description="Prices of type Swap need one.")

    def key(self) -> PriceKey:
        return PriceKey(self.store, self.channel, self.type, self.product, self.combination)


@strawberry.input(description="A price that a product gets in a store.")
class PriceInput(PriceKeyInput):
    price: MoneyInput | None = strawberry.field(
        default=strawberry.UNSET, description="It cannot be left out. Null: the product has no price from then on."
    )

    def line(self) -> Line:
        if self.price is strawberry.UNSET:
            raise InvalidField("price", "is missing: give one, or null if the product shall have none")
        return Line(self.key(), None if self.price is None else Money(self.price.minor, self.price.currency))


@strawberry.input(description="What is to change, and when: with neither `at` nor `day` as soon as it is approved.")
class CreatePriceChangeInput:
    title: str
    reason: str = strawberry.field(default="", description=_REASON)
    at: Instant | None = strawberry.field(default=None, description="The instant from which it is to count.")
    day: Day | None = strawberry.field(default=None, description="It is to count from midnight of this date on in each store.")
    until_at: Instant | None = strawberry.field(default=None, description="The instant at which the former prices count again.")
    until_day: Day | None = strawberry.field(default=None, description="The former prices count again at midnight of this date.")

    def change(self) -> NewChangeSet:
        return NewChangeSet(
            title=self.title, reason=self.reason, at=self.at, day=self.day, until_at=self.until_at, until_day=self.until_day
        )


@strawberry.input(description="All of what a change set says about itself: what is left out is empty from then on.")
class EditPriceChangeInput(CreatePriceChangeInput):
    id: strawberry.ID
    rev: int = strawberry.field(description=_REV)


@strawberry.input
class AddPricesInput:
    id: strawberry.ID
    prices: list[PriceInput] = strawberry.field(description=f"At most {MAX_LINES}. One that is there already is replaced.")


@strawberry.input
class RemovePricesInput:
    id: strawberry.ID
    prices: list[PriceKeyInput] = strawberry.field(description=f"At most {MAX_LINES}. One that is not there is left out.")


@strawberry.input
class SubmitPriceChangeInput:
    id: strawberry.ID
    rev: int | None = strawberry.field(default=None, description=_REV)


@strawberry.input
class ApprovePriceChangeInput:
    id: strawberry.ID
    rev: int = strawberry.field(description=_REV)
    reason: str = strawberry.field(default="", description=_REASON)


@strawberry.input
class DecidePriceChangeInput:
    id: strawberry.ID
    rev: int | None = strawberry.field(default=None, description=_REV)
    reason: str = strawberry.field(default="", description=_REASON)


@strawberry.input
class RollbackPriceChangeInput:
    id: strawberry.ID
    reason: str = strawberry.field(default="", description=_REASON)


@strawberry.input
class ChangePricesNowInput:
    title: str
    reason: str = strawberry.field(default="", description=_REASON)
    prices: list[PriceInput] = strawberry.field(description=f"At most {MAX_LINES}.")


def read_all(prices: Sequence[I], read: Callable[[I], T]) -> list[T]:
    """Read the prices of a mutation. Errors name the one at fault."""
    if not prices:
        raise InvalidField("prices", "is empty: name one or more")
    if len(prices) > MAX_LINES:
        remedy = "send them in parts, or as a file by POST /bulk"
        raise InvalidField("prices", f"there are {len(prices):,}, and {MAX_LINES} is the most: {remedy}")
    known: dict[PriceKey, int] = {}
    found = []
    for number, price in enumerate(prices):
        name = f"prices[{number}]"
        try:
            found.append(read(price))
            first = known.setdefault(price.key(), number)
        except InvalidField as error:
            raise InvalidField(f"{name}.{_NAMES.get(error.field, error.field)}", error.reason) from None
        except InvalidInput as error:
            raise InvalidField(f"{name}.price", str(error)) from None
        if first != number:
            raise InvalidField(name, f"is of the same price as prices[{first}]: name each once")
    return found
