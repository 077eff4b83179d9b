"""What people say about a change set: when its prices count, and what they are."""

from __future__ import annotations

from datetime import date, datetime

from msgspec import Struct

from pricebook.editions.timing import whole_milliseconds
from pricebook.errors import InvalidField
from pricebook.model import NO_COMBINATION, ChangeLine, PriceKey
from pricebook.money import Money
from tickler.table import MISSING

FIRST_YEAR, LAST_YEAR = 2000, 2199
MAX_TITLE = 200
MAX_REASON = 2_000


class NewChangeSet(Struct, frozen=True, kw_only=True):
    """At most one of `at` and `day`, and of `until_at` and `until_day`. Neither at nor day: as soon as it is approved.

    A day begins at midnight where each store is.
    """

    title: str
    reason: str = ""
    at: datetime | None = None
    day: date | None = None
    until_at: datetime | None = None
    until_day: date | None = None

    def checked(self) -> NewChangeSet:
        """Return it with instants in whole milliseconds of UTC, or refuse it."""
        title = self.title.strip()
        if not title:
            raise InvalidField("title", "is empty: write what is changed")
        for name, text, most in (("title", title, MAX_TITLE), ("reason", self.reason, MAX_REASON)):
            if len(text) > most:
                raise InvalidField(name, f"has {len(text):,} characters: use at most {most:,}")
        if self.at is not None and self.day is not None:
            raise InvalidField("day", "cannot go with at: pass an instant or a day")
        if self.until_at is not None and self.until_day is not None:
            raise InvalidField("until_day", "cannot go with until_at: pass an instant or a day")
        for name in ("at", "day", "until_at", "until_day"):
            asked: date | None = getattr(self, name)
            if asked is not None and not FIRST_YEAR <= asked.year <= LAST_YEAR:
                raise InvalidField(name, f"is in the year {asked.year}: choose one from {FIRST_YEAR} to {LAST_YEAR}")
        at = None if self.at is None else _instant("at", self.at)
        until_at = None if self.until_at is None else _instant("until_at", self.until_at)
        if (at and until_at and until_at <= at) or (self.day and self.until_day and self.until_day <= self.day):
            raise InvalidField("until_at" if until_at else "until_day", "is not after the beginning: choose a later end")
        return NewChangeSet(title=title, reason=self.reason, at=at, day=self.day, until_at=until_at, until_day=self.until_day)

    def attributes(self) -> dict[str, object]:
        """Return the attributes of a `ChangeSet` that it gives."""
        return {name: MISSING if value is None else value for name, value in _fields(self).items()}


class Line(Struct, frozen=True):
    """A price. Without an amount, the product has no price from then on."""

    key: PriceKey
    amount: Money | None

    def item(self, change_set: str) -> ChangeLine:
        key, amount = self.key, self.amount
        return ChangeLine(
            change_set=change_set,
            store=key.store,
            channel=key.channel,
            type=key.type,
            product=key.product,
            combination=key.combination or NO_COMBINATION,
            amount=MISSING if amount is None else amount.minor,
            currency=MISSING if amount is None else amount.currency,
        )


def _fields(new: NewChangeSet) -> dict[str, str | datetime | date | None]:
    return {name: getattr(new, name) for name in new.__struct_fields__}


def _instant(field: str, at: datetime) -> datetime:
    try:
        return whole_milliseconds(at)
    except InvalidField as error:
        raise InvalidField(field, error.reason) from None
