"""The prices of a product over a time, one after the other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from pricebook.editions.evaluate import Counting, Editions, Values, turning_points, value_at
from pricebook.money import Money
from tickler.table import MISSING


class Span(Struct, frozen=True):
    """From when until when a price counts. Without an amount, the product has none. `until` is there if it ends by itself."""

    from_at: datetime
    to_at: datetime | None  # None: it still counts at the end of the time that was asked for
    amount: Money | None
    until: datetime | None = None
    edition: int | None = None  # None once it is settled


def spans_of(rows: Sequence[Values], editions: Editions, start: datetime, end: datetime) -> list[Span]:
    """Return the prices between two instants. `rows` has the values of a channel, then those of ALL, which it falls back on.

    The first span begins where its price does if that is later than `start`: what was before is no longer in the rows.
    """
    points = sorted({start, *(each for values in rows for each in turning_points(values, editions) if start < each < end)})
    found: list[tuple[datetime, Counting | None]] = [(at, _counting(rows, editions, at)) for at in points]
    changes = [each for number, each in enumerate(found) if number == 0 or _shown(each[1]) != _shown(found[number - 1][1])]
    if changes and changes[0][1] is None:
        changes = changes[1:]
    ends = (*(at for at, _ in changes[1:]), None)
    return [_span(at, to_at, counting) for (at, counting), to_at in zip(changes, ends, strict=False)]


def _counting(rows: Sequence[Values], editions: Editions, at: datetime) -> Counting | None:
    """Return what counts: the first row's value that has an amount; if none has one, the value that says so."""
    found = [each for values in rows if (each := value_at(values, editions, at)) is not None]
    return next((each for each in found if each.value.money() is not None), found[0] if found else None)


def _shown(counting: Counting | None) -> object:
    return None if counting is None else (counting.value.money(), counting.value.until, counting.from_at)


def _span(at: datetime, to_at: datetime | None, counting: Counting | None) -> Span:
    if counting is None:
        return Span(at, to_at, None)
    value = counting.value
    until = None if value.until is MISSING else value.until
    return Span(at, to_at, value.money(), until, None if value.edition is MISSING else value.edition)
