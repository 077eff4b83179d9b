"""The errors of pricebook, for the API, pages and bulk jobs: each says what to do in a sentence."""

from __future__ import annotations


class PricebookError(Exception):
    """Base class of all of them."""


class NotFound(PricebookError):
    """There is no such thing, or it belongs to somebody else: nobody learns which."""

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no such {what}: check its name")
        self.what = what


class NotAllowed(PricebookError):
    """What was asked for does not fit the present state."""


class LacksRole(NotAllowed):
    """The caller may not do this at all."""

    def __init__(self, role: str) -> None:
        super().__init__(f"the caller lacks the role {role!r}: use a token, or ask somebody, that has it")
        self.role = role


class InvalidField(PricebookError):
    """A field has a value that cannot be used."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidCursor(PricebookError):
    """A cursor was changed, belongs to another query, or is older than prices are kept side by side."""


class HasChanged(NotAllowed):
    """Somebody else has changed it since it was read. `rev` is its revision now."""

    def __init__(self, what: str, rev: int) -> None:
        super().__init__(f"somebody else has changed {what} meanwhile: look at it again (it is at revision {rev})")
        self.rev = rev


class StagedOtherwise(NotAllowed):
    """An edition that is open has a price already, and not this one: a price of 30 days that goes with it may have changed."""


class PriceConflict(NotAllowed):
    """Another edition of the store has a price for the same channel, product and date. `edition` is None for one that counts.

    `change_set` is the one that the other edition is of, if it is of one; `title` is for those who may know it.
    """

    def __init__(
        self, store: str, price: str, edition: int | None, change_set: str | None = None, title: str | None = None
    ) -> None:
        called = change_set if title is None else f"{title!r} ({change_set})"
        other = f"edition {edition}" if change_set is None else f"change set {called}"
        where = "has a price that counts already" if edition is None and change_set is None else f"is in {other}, too,"
        super().__init__(f"{price} in store {store} {where} at the same instant: cancel that one, or choose another instant")
        self.store = store
        self.price = price
        self.edition = edition
        self.change_set = change_set
