"""Counts the items of an SQL table and of its indexes, in one statement, so that all counts are of one moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tickler.table.engines.sql.layout import Layout
from tickler.table.measurement import Fill, Measurement, Partition

_TABLE = ""  # stands for the table itself among the names of indexes


def measure_statement(layout: Layout, now_ms: int) -> tuple[str, list[Any]]:
    """Return the statement for `measurement_of`: rows of an index, whether it is a partition, its name, items, and bytes."""
    numbers = iter(range(1, 2 * (1 + len(layout.gsis)) + 1))
    selects = []
    for gsi in (_TABLE, *layout.gsis):
        of_entities, of_largest = (_conditions(gsi, next(numbers)) for _ in range(2))
        size = "sum(length(body))" if gsi == _TABLE else "0"
        selects.append(f"SELECT '{gsi}', 0, entity, count(*), {size} FROM {layout.table} WHERE {of_entities} GROUP BY entity")
        selects.append(
            f"SELECT * FROM (SELECT '{gsi}', 1, {gsi}pk, count(*), 0 FROM {layout.table} WHERE {of_largest} "
            f"GROUP BY {gsi}pk ORDER BY count(*) DESC, {gsi}pk LIMIT 1) AS largest_{gsi}"
        )
    return layout.finished(" UNION ALL ".join(selects)), [now_ms] * len(selects)


def measurement_of(layout: Layout, rows: Iterable[Any]) -> Measurement:
    items: dict[str, dict[str, int]] = {gsi: {} for gsi in (_TABLE, *layout.gsis)}
    largest: dict[str, Partition] = {}
    sizes: dict[str, int] = {}
    for gsi, is_partition, name, count, size in rows:
        if is_partition:
            largest[gsi] = Partition(name, count)
            continue
        items[gsi][name] = count
        if gsi == _TABLE:
            sizes[name] = round(size / count)
    fills = {gsi: Fill(dict(sorted(each.items())), largest.get(gsi)) for gsi, each in items.items()}
    return Measurement(fills.pop(_TABLE), fills, dict(sorted(sizes.items())))


def _conditions(gsi: str, number: int) -> str:
    alive = f"(expires_at IS NULL OR expires_at > ${number})"
    return alive if gsi == _TABLE else f"{gsi}pk IS NOT NULL AND {alive}"
