"""Change sets: prices that people change together, in any number of stores. Their lines and stores are items of their own."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal, get_args

from pricebook.model.price import PriceKey, has_combination, money_of
from pricebook.model.table import pricebook
from pricebook.money import Money
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Part, attr

ChangeSetState = Literal["draft", "submitted", "approving", "approved", "withdrawing", "settled", "cancelled", "superseded"]
EndedState = Literal["settled", "cancelled", "superseded"]
ChangeStoreState = Literal["pending", "open", "staged", "sealed", "settled"]

ENDED_STATES: dict[str, EndedState] = {state: state for state in get_args(EndedState)}
NO_COMBINATION = "-"  # of lines whose type has none: a part of a key is not empty


class Decision(Part):
    """Who let what is being done in stores be done, and why."""

    actor: Attr[str]
    reason: Attr[str] = attr(default="")
    request: Attr[str] = attr(default="")


class ChangeSet(Entity, table=pricebook):
    """What is to change, and how far it is. It is effective while it is approved and its instant has passed.

        draft ⇄ submitted ──▶ approving ──▶ approved ──▶ settled
                    ▲ └──▶ cancelled ▲          │           │
                    └── withdrawing ─┘◀─────────┘           ▼
                                        (a rollback of it) superseded

    `at` or `day` is when it is to count: an instant, or midnight of a day where each store is; neither: at once.
    `until_at` or `until_day` is when the former prices count again.

    It is superseded when another change set, whose `rolls_back` names it, has taken it back in each of its stores. From the
    approval of that one on, `superseded_by` names it, and this one cannot be withdrawn any more.
    """

    id: Attr[str] = attr()
    title: Attr[str]
    reason: Attr[str] = attr(default="")
    state: Attr[ChangeSetState] = attr(default="draft")
    rev: Attr[int] = attr(default=1)  # raised by each write, also of its lines
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
    decision: Attr[Decision | Missing] = attr(default=MISSING)  # what is carried out, or was
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
    ended = Index("gsi2", "ENDED_CHANGES" / state, ended_at / id, when=state.one_of(["settled", "cancelled", "superseded"]))
    unfinished = Index(
        "gsi1",
        "CHANGES" / state,
        due_at / id,
        when=state.one_of(["approving", "approved", "withdrawing"]),
    )


class ChangeStore(Entity, table=pricebook):
    """A store of a change set, and how far the change is there. `edition` is the one that has its prices.

    `round` is the revision of the change set that has written it last. A process that still carries out an older decision finds a
    later round, and stops.
    """

    change_set: Attr[str] = attr()
    store: Attr[str] = attr()
    state: Attr[ChangeStoreState] = attr(default="pending")
    round: Attr[int] = attr(default=0)
    edition: Attr[int | Missing] = attr(default=MISSING)
    wanted_at: Attr[datetime | Missing] = attr(default=MISSING)  # the instant that was asked for, in the zone of the store
    from_at: Attr[datetime | Missing] = attr(default=MISSING)  # from when on it counts: later, if it was late
    retracts: Attr[int | Missing] = attr(default=MISSING)  # the edition that a rollback takes back here
    retraction: Attr[int | Missing] = attr(default=MISSING)  # the edition that takes this one back, while that is staged

    key = Key("CHANGE" / change_set, "STORE" / store)
    of_store = Index("gsi2", "CHANGES_OF" / store, edition / change_set, when=state == "sealed")
    unsettled = Index("gsi1", "UNSETTLED_STORES" / change_set, store, when=state == "sealed")


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
    """In how many of its stores a change set is staged, sealed and settled. It is written now and then while that goes on."""

    change_set: Attr[str] = attr()
    staged: Attr[int] = attr(default=0)
    sealed: Attr[int] = attr(default=0)
    settled: Attr[int] = attr(default=0)

    key = Key("CHANGE" / change_set, "PROGRESS")
