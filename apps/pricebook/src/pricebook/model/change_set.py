"""Change sets: prices that people change together, in any number of stores. Their lines and stores are items of their own."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pricebook.model.price import PriceKey, has_combination, money_of
from pricebook.model.table import pricebook
from pricebook.money import Money
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, attr

ChangeSetState = Literal["draft", "submitted", "approving", "approved", "withdrawing", "settled", "cancelled", "superseded"]
ChangeStoreState = Literal["pending", "open", "staged", "sealed", "settled"]

NO_COMBINATION = "-"  # of lines whose type has none: a part of a key is not empty


class ChangeSet(Entity, table=pricebook):
    """What is to change, and how far it is. It is effective while it is approved and its instant has passed.

    `at` or `day` is when it is to count: an instant, or midnight of a day where each store is; neither: at once.
    `until_at` or `until_day` is when the former prices count again.
    """

    id: Attr[str] = attr()
    title: Attr[str]
    reason: Attr[str] = attr(default="")
    state: Attr[ChangeSetState] = attr(default="draft")
    rev: Attr[int] = attr(default=1)  # raised by each edit and each decision
    scope: Attr[set[str]] = attr(default=set())  # stores, or prefixes of stores, that cover all of it
    at: Attr[datetime | Missing] = attr(default=MISSING)
    day: Attr[date | Missing] = attr(default=MISSING)
    until_at: Attr[datetime | Missing] = attr(default=MISSING)
    until_day: Attr[date | Missing] = attr(default=MISSING)
    stores: Attr[int] = attr(default=0)  # counted when it is submitted
    lines: Attr[int] = attr(default=0)  # likewise
    created_by: Attr[str]
    created_at: Attr[datetime] = attr()
    submitted_by: Attr[str | Missing] = attr(default=MISSING)
    submitted_at: Attr[datetime | Missing] = attr(default=MISSING)
    approved_by: Attr[str | Missing] = attr(default=MISSING)
    approved_at: Attr[datetime | Missing] = attr(default=MISSING)
    first_at: Attr[datetime | Missing] = attr(default=MISSING)  # when it counts in the first of its stores
    last_at: Attr[datetime | Missing] = attr(default=MISSING)  # and in the last one
    due_at: Attr[datetime | Missing] = attr(default=MISSING)  # from when on somebody has to do something about it
    ended_at: Attr[datetime | Missing] = attr(default=MISSING)
    withdrawn_to: Attr[Literal["submitted", "cancelled"] | Missing] = attr(default=MISSING)  # while it is withdrawing
    refused: Attr[str | Missing] = attr(default=MISSING)  # why the last approval failed
    rolls_back: Attr[str | Missing] = attr(default=MISSING)
    superseded_by: Attr[str | Missing] = attr(default=MISSING)

    key = Key("CHANGE" / id, "CHANGE")
    open = Index(
        "gsi2",
        "OPEN_CHANGES",
        created_at / id,
        when=state.one_of(["draft", "submitted", "approving", "approved", "withdrawing"]),
    )
    unfinished = Index(
        "gsi1",
        "CHANGES" / state,
        due_at / id,
        when=state.one_of(["approving", "approved", "withdrawing"]),
    )


class ChangeStore(Entity, table=pricebook):
    """A store of a change set, and how far the change is there. `edition` is the one that has its prices."""

    change_set: Attr[str] = attr()
    store: Attr[str] = attr()
    state: Attr[ChangeStoreState] = attr(default="pending")
    edition: Attr[int | Missing] = attr(default=MISSING)
    from_at: Attr[datetime | Missing] = attr(default=MISSING)
    retracts: Attr[int | Missing] = attr(default=MISSING)  # the edition that a rollback takes back here

    key = Key("CHANGE" / change_set, "STORE" / store)
    of_store = Index("gsi2", "CHANGES_OF" / store, edition / change_set, when=state == "sealed")


class ChangeLine(Entity, table=pricebook):
    """A price that a change set gives a product in a store; without an amount, the product has no price from then on."""

    change_set: Attr[str] = attr()
    store: Attr[str] = attr()
    channel: Attr[str] = attr()
    type: Attr[str] = attr()
    product: Attr[str] = attr()
    combination: Attr[str] = attr(default=NO_COMBINATION)
    amount: Attr[int | Missing] = attr(default=MISSING)  # minor units
    currency: Attr[str | Missing] = attr(default=MISSING)

    key = Key("LINES" / change_set / store, channel / type / product / combination)

    def money(self) -> Money | None:
        if self.amount is MISSING or self.currency is MISSING:
            return None
        return money_of(self.amount, self.currency)

    def price_key(self) -> PriceKey:
        combination = self.combination if has_combination(self.type) else None
        return PriceKey(self.store, self.channel, self.type, self.product, combination)


class ChangeProgress(Entity, table=pricebook):
    """In how many of its stores a change set is staged, sealed and settled. Apart from the set, which it does not change."""

    change_set: Attr[str] = attr()
    staged: Attr[int] = attr(default=0)
    sealed: Attr[int] = attr(default=0)
    settled: Attr[int] = attr(default=0)

    key = Key("CHANGE" / change_set, "PROGRESS")
