"""The audit: what happened to stores and to change sets, and to which prices. Entries are created, and never changed."""

from __future__ import annotations

from datetime import date, datetime

from pricebook.model.change_set import ChangeSetState
from pricebook.model.head import Edition
from pricebook.model.price import money_of
from pricebook.model.table import pricebook
from pricebook.money import Money
from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, attr


class AuditEntry(Entity, table=pricebook):
    """A transition of an edition of a store, with the edition before and after; or of a change set, with its states.

    `subject` is `store/{store}` or `change/{change set}`.
    """

    subject: Attr[str] = attr()
    at: Attr[datetime] = attr()
    id: Attr[str] = attr()
    day: Attr[date] = attr()  # in UTC
    actor: Attr[str] = attr()
    action: Attr[str]
    reason: Attr[str] = attr(default="")
    request: Attr[str] = attr(default="")
    store: Attr[str | Missing] = attr(default=MISSING)
    edition: Attr[int | Missing] = attr(default=MISSING)
    change_set: Attr[str | Missing] = attr(default=MISSING)
    scope: Attr[set[str]] = attr(default=set())  # of the change set: who may see its stores may see this
    before: Attr[Edition | Missing] = attr(default=MISSING)
    after: Attr[Edition | Missing] = attr(default=MISSING)
    state_before: Attr[ChangeSetState | Missing] = attr(default=MISSING)
    state_after: Attr[ChangeSetState | Missing] = attr(default=MISSING)
    lines: Attr[int | Missing] = attr(default=MISSING)  # that were added or removed

    key = Key("AUDIT" / subject, at / id)
    of_actor = Index("gsi1", "ACTOR" / actor, at / subject / id)
    of_day = Index("gsi2", "AUDITED" / day, at / subject / id)


class AuditedPrice(Entity, table=pricebook):
    """A price that was decided, written once before its edition is sealed. What became of it is told by the edition's entries.

    `before` is the price that counted when it was decided, at the instant from which the new one was to count.
    """

    store: Attr[str] = attr()
    edition: Attr[int] = attr()
    channel: Attr[str] = attr()
    type: Attr[str] = attr()
    product: Attr[str] = attr()
    combination: Attr[str] = attr()
    at: Attr[datetime] = attr()  # when the edition was opened
    from_at: Attr[datetime]  # from when on it was to count
    actor: Attr[str]
    change_set: Attr[str]
    reason: Attr[str] = attr(default="")
    request: Attr[str] = attr(default="")
    before_amount: Attr[int | Missing] = attr(default=MISSING)
    before_currency: Attr[str | Missing] = attr(default=MISSING)
    after_amount: Attr[int | Missing] = attr(default=MISSING)
    after_currency: Attr[str | Missing] = attr(default=MISSING)

    key = Key("AUDITED_PRICES" / store / edition, channel / type / product / combination)
    of_product = Index("gsi1", "AUDITED_PRODUCT" / type / product, at / store / edition / channel / combination)

    def before(self) -> Money | None:
        if self.before_amount is MISSING or self.before_currency is MISSING:
            return None
        return money_of(self.before_amount, self.before_currency)

    def after(self) -> Money | None:
        if self.after_amount is MISSING or self.after_currency is MISSING:
            return None
        return money_of(self.after_amount, self.after_currency)
