"""Makes what readers get of what rows hold."""

from __future__ import annotations

from datetime import datetime

from pricebook.editions.evaluate import Counting
from pricebook.editions.pages import ChangeNode, PriceNode
from pricebook.model import CombinationPrice, PriceRow, Value
from tickler.table import MISSING


def price_node(row: PriceRow, counting: Counting) -> PriceNode | None:
    """Return the price of a row, None if its product has no price."""
    value = counting.value
    amount = value.money()
    if amount is None:
        return None
    return PriceNode(
        row.store,
        row.channel,
        row.type,
        row.product,
        amount,
        counting.from_at,
        None if value.until is MISSING else value.until,
        None if value.lowest is MISSING else value.lowest_30_days(),
        row.combination if isinstance(row, CombinationPrice) else None,
    )


def change_node(row: PriceRow, value: Value, edition: int, from_at: datetime) -> ChangeNode:
    return ChangeNode(
        row.store,
        row.channel,
        row.type,
        row.product,
        value.money(),
        from_at,
        edition,
        None if value.until is MISSING else value.until,
        value.lowest_30_days(),
        row.combination if isinstance(row, CombinationPrice) else None,
    )
