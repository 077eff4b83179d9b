"""Where the rows of a list are: a range of one partition in key order, between two positions."""

from __future__ import annotations

from typing import Any, NamedTuple

from pricebook.editions.cursors import Position
from pricebook.model import CombinationPrice, Price, PriceRow, has_combination

Selection = Any  # of rows. The table toolkit does not export its type


class Window(NamedTuple):
    """The part of a list behind `low` and before `high`, both excluded; None is no bound."""

    low: Position | None = None
    high: Position | None = None


class StoreRange(NamedTuple):
    """Prices of a store in one channel, by product. Their positions are (product,) or (product, combination)."""

    store: str
    channel: str
    type: str
    product_prefix: str = ""

    def selections(self, window: Window) -> list[Selection]:
        entity = CombinationPrice if has_combination(self.type) else Price
        of_type: Selection = entity.key(self.store).under(self.channel).under(self.type)
        return _between(of_type.starting_with(self.product_prefix) if self.product_prefix else of_type, window)

    def position(self, row: PriceRow) -> Position:
        return (row.product, row.combination) if isinstance(row, CombinationPrice) else (row.product,)

    @property
    def coordinates(self) -> int:
        return 2 if has_combination(self.type) else 1


class ProductRange(NamedTuple):
    """Prices of a product in one channel, by store. Their positions are (store,) or (store, combination)."""

    product: str
    channel: str
    type: str

    def selections(self, window: Window) -> list[Selection]:
        entity = CombinationPrice if has_combination(self.type) else Price
        return _between(entity.of_product(self.type, self.product).under(self.channel), window)

    def position(self, row: PriceRow) -> Position:
        return (row.store, row.combination) if isinstance(row, CombinationPrice) else (row.store,)

    @property
    def coordinates(self) -> int:
        return 2 if has_combination(self.type) else 1


RowRange = StoreRange | ProductRange


def _between(rows: Selection, window: Window) -> list[Selection]:
    """Return what lies between two positions. A position of two coordinates cuts through the rows of its first one."""
    low, high = window
    if low is not None and high is not None and low[0] == high[0]:
        return [rows.under(low[0]).after(low[1]).before(high[1])] if len(low) == 2 else [rows.after(low[0]).before(high[0])]
    inner = rows if low is None else rows.after(low[0])
    inner = inner if high is None else inner.before(high[0])
    selections = [inner]
    if low is not None and len(low) == 2:
        selections.insert(0, rows.under(low[0]).after(low[1]))
    if high is not None and len(high) == 2:
        selections.append(rows.under(high[0]).before(high[1]))
    return selections
