"""Says which value of each row counts: knows the head of one store, or looks up the heads of the rows it is asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pricebook.editions.evaluate import NO_EDITIONS, Counting, Editions, has_unknown_mark, marks, value_at
from pricebook.model import Head, PriceRow, row_id
from tickler.table import ItemId


class Gets(Protocol):
    """Reads of a table, or of a snapshot of it."""

    async def get_many(self, ids: Sequence[ItemId[PriceRow]], *, consistent: bool = True) -> list[PriceRow | None]: ...


class HeadGets(Protocol):
    async def get_many(self, ids: Sequence[ItemId[Head]], *, consistent: bool = True) -> list[Head | None]: ...


async def judged(
    rows: Sequence[PriceRow], heads: Mapping[str, Editions], at: datetime, reads: Gets | None
) -> list[Counting | None]:
    """Evaluate rows by the editions of their stores.

    A row with an edition that the head does not know was read before that edition was settled, and the head afterwards; or the
    edition was opened after `at`. So it is read again, consistently. Without `reads` rows and heads are of one state, which has
    no such row.
    """
    found = [value_at(row.values, heads.get(row.store, NO_EDITIONS), at) for row in rows]
    if reads is None:
        return found
    unknown = [n for n, row in enumerate(rows) if has_unknown_mark(row.values, heads.get(row.store, NO_EDITIONS), at)]
    if unknown:
        again = await reads.get_many([row_id(rows[n]) for n in unknown], consistent=True)
        for n, row in zip(unknown, again, strict=True):
            found[n] = None if row is None else value_at(row.values, heads.get(row.store, NO_EDITIONS), at)
    return found


async def heads_for(rows: Sequence[PriceRow], at: datetime, reads: HeadGets) -> dict[str, Editions]:
    """Read the heads of the stores whose rows have a value that may count, but is not settled."""
    stores = list(dict.fromkeys(row.store for row in rows if any(True for _ in marks(row.values, at))))
    if not stores:
        return {}
    heads = await reads.get_many([Head.key.id(store) for store in stores], consistent=True)
    return {store: head.editions for store, head in zip(stores, heads, strict=True) if head is not None}
