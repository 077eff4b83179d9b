"""The lines of a change set as one list. Each store has a partition of its own."""

from __future__ import annotations

from pricebook.editions.keyset_pages import Bounds, Listed, Place, Selection
from pricebook.model import ChangeLine, ChangeStore
from tickler.table import OpenTable

STORES_AT_A_TIME = 16


class LinesOfAllStores:
    types: tuple[type, ...] = (str, str, str, str, str)
    newest_first = False

    def __init__(self, id: str) -> None:
        self._id = id

    def place(self, item: ChangeLine) -> Place:
        return (item.store, *_in_store(item))

    async def find(self, db: OpenTable, bounds: Bounds, wanted: int, *, from_end: bool) -> list[ChangeLine]:
        low, high, included = bounds
        left = _stores(ChangeStore.key(self._id))
        around = Bounds(None if low is None else low[:1], None if high is None else high[:1], included=True)
        found: list[ChangeLine] = []
        while len(found) < wanted:
            stores = await left.find(db, around, STORES_AT_A_TIME, from_end=from_end)
            for store in (each.store for each in stores):
                inner = Bounds(
                    None if low is None or low[0] != store else low[1:],
                    None if high is None or high[0] != store else high[1:],
                    included,
                )
                lines = Listed(ChangeLine.key(self._id, store), _in_store, (str, str, str, str))
                found += await lines.find(db, inner, wanted - len(found), from_end=from_end)
                if len(found) == wanted:
                    break
            if len(stores) < STORES_AT_A_TIME:
                break
            last = stores[-1].store
            narrowed = ChangeStore.key(self._id).before(last) if from_end else ChangeStore.key(self._id).after(last)
            left = _stores(narrowed)
        return found


def _stores(selection: Selection) -> Listed[ChangeStore]:
    return Listed(selection, lambda found: (found.store,), (str,))


def _in_store(line: ChangeLine) -> Place:
    return line.channel, line.type, line.product, line.combination
