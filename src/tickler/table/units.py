"""What DynamoDB charges: the size of an item, and the units that writing and reading it cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tickler.dynamo.codec import Item, size_of

WRITE_BYTES = 1024
READ_BYTES = 4096


def write_units(item: Item | None) -> int:
    """Return the units to write an item of this size once. Deleting nothing costs one, too."""
    return max(1, math.ceil(size_of(item) / WRITE_BYTES)) if item else 1


def read_units(item: Item | None, *, consistent: bool = True) -> float:
    whole = max(1, math.ceil(size_of(item) / READ_BYTES)) if item else 1
    return whole if consistent else whole / 2


def table_units(before: Item | None, after: Item | None) -> int:
    """Return the units of the table itself: those of the larger of the item before and after."""
    return max(write_units(before), write_units(after))


def index_units(gsi: str, before: Item | None, after: Item | None) -> int:
    """Return the units of one index that projects all attributes.

    Entering or leaving it is one write; a changed key two, because the entry moves; any other change one; no change none.
    """
    old, new = (_key(gsi, item) for item in (before, after))
    if old is None or new is None:
        return 0 if old == new else write_units(before if new is None else after)
    if old != new:
        return write_units(before) + write_units(after)
    return 0 if before == after else table_units(before, after)


def all_units(gsis: Iterable[str], before: Item | None, after: Item | None, *, transaction: bool = False) -> Mapping[str, int]:
    """Return the units of the table, under `table`, and of each index. A transaction writes each twice.

    To delete what does not exist costs one in either case.
    """
    times = 2 if transaction and (before or after) else 1
    units = {"table": table_units(before, after), **{gsi: index_units(gsi, before, after) for gsi in gsis}}
    return {name: times * each for name, each in units.items()}


def _key(gsi: str, item: Item | None) -> tuple[str, str] | None:
    if item is None or f"{gsi}pk" not in item or f"{gsi}sk" not in item:
        return None
    return item[f"{gsi}pk"]["S"], item[f"{gsi}sk"]["S"]
