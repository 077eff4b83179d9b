"""Loads a catalogue into a new table, with its indexes made last. Much faster than editions, and only for what is new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from pricebook.editions.timing import whole_milliseconds
from pricebook.model import ALL, Head, PriceRow, Store, Value
from tickler.table import OpenTable


class OnProgress(Protocol):
    """Told what is being done, how much of it is done, and of how much, if that is known."""

    def __call__(self, activity: str, done: int, total: int | None) -> None: ...


class CatalogueStore(Struct, frozen=True):
    """A store. `channels` are those in which it has prices of its own."""

    store: str
    tz: str = "UTC"
    channels: frozenset[str] = frozenset({ALL})


class Catalogue(Protocol):
    """Stores and their prices, which are made while they are loaded. `len` is the number of prices."""

    def __len__(self) -> int: ...

    def stores(self) -> Iterable[CatalogueStore]: ...

    def prices(self, from_at: datetime) -> Iterator[PriceRow]:
        """Yield the rows of prices that count from an instant on, of one store after the other."""


async def load_catalogue(
    db: OpenTable, catalogue: Catalogue, from_at: datetime, *, home: str = "", on_progress: OnProgress | None = None
) -> int:
    """Load stores and prices that count from an instant on. Returns how many items that are.

    `home` is the region that acts for the stores, if the table is replicated.
    On SQL all or nothing, and refused if one is there already. On DynamoDB it can be repeated. These prices are no changes, so
    consumers of changes do not learn of them where that can be avoided.
    """
    items = _Items(catalogue, whole_milliseconds(from_at), home)
    if on_progress is None:
        return await db.load(items, streamed=False)
    return await db.load(items, on_progress=on_progress, streamed=False)


@lru_cache(maxsize=65_536)
def loaded_value(minor: int, currency: str) -> Value:
    """Return a settled value. Prices repeat, and values are never changed, so that rows can share one."""
    return Value(amount=minor, currency=currency)


class _Items:
    """All items of a catalogue, with their number, by which the engine sees that its indexes are better made last."""

    def __init__(self, catalogue: Catalogue, from_at: datetime, home: str) -> None:
        self._catalogue = catalogue
        self._from_at = from_at
        self._home = home
        self._stores = list(catalogue.stores())

    def __len__(self) -> int:
        return len(self._catalogue) + 2 * len(self._stores)

    def __iter__(self) -> Iterator[Head | Store | PriceRow]:
        for each in self._stores:
            yield Head(store=each.store, tz=each.tz, home=self._home, channels=set(each.channels), changed_at=self._from_at)
            yield Store(store=each.store)
        yield from self._catalogue.prices(self._from_at)
